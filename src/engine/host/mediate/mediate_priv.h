/*
 * mediate_priv.h - the mediator and one trapped call, for the files of this module only
 *
 * mediate.h has the theory of operation. Each noun has a header of its own: call the functions of
 * task_priv.h to inspect the caller, place_priv.h to resolve a path, decide_priv.h and
 * guard_priv.h to ask whether an operation is allowed, creds_priv.h to act with the caller's
 * rights, and notify_priv.h to answer.
 */
#ifndef WRIT_MEDIATE_MEDIATE_PRIV_H
#define WRIT_MEDIATE_MEDIATE_PRIV_H

#include <linux/seccomp.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/fd.h"
#include "mediate/decide_priv.h"
#include "mediate/endpoint_priv.h"
#include "mediate/mediate.h"
#include "mediate/notify_priv.h"
#include "mediate/shadow_priv.h"
#include "mediate/task_priv.h"

enum {
	LISTENERS = 32,
	DEVICES = 32,	/* devices cached by mediate_device_is_plain() */
	LINKS_MAX = 40, /* maximum number of symbolic links in one path, as in the kernel */
};

/*
 * Results of an op_*() function: the return value of the call (0 or more), a negative errno, or one
 * of the constants below. No errno exceeds 4095, so these constants never equal a negative errno.
 */
enum {
	ANSWER_CONTINUE = -10000, /* let the kernel run the call; Landlock decides */
	ANSWER_FD = -10001,	  /* install call.fd in the caller and return its number */
	ANSWER_LATER = -10002,	  /* a job answers when it has finished */
	ANSWER_GONE = -10003,	  /* the caller died or was interrupted: send no answer */
};

/*
 * A refusal that the mediator sends only after its event was reported, so that a denial is on
 * record before the refused program can go on, or exit. @sys is the errno; 0: no refusal waits.
 */
struct refusal {
	int listener, sys;
	uint64_t id;
};

struct mediator {
	struct mediate_options opt;
	struct rules rules;
	struct arena keep;    /* memory for the capabilities; grows until mediate_free() */
	struct arena index;   /* memory for the index of the capabilities */
	struct arena scratch; /* memory for the request that the mediator is deciding */
	struct buf text;      /* text of the request that the mediator is deciding */
	int self;	      /* descriptor of /proc/self/fd of the process @pid */
	int proc, root;	      /* descriptors of /proc and / of the host */
	/* Root directory of all callers, if the session has its own mounts; -1: not opened yet. */
	int jail;
	int order; /* descriptor of the lock file of order_priv.h; -1: there is no lock */
	pid_t pid; /* the process that opened @self */
	bool is_root;
	/* Inotify descriptor that reports when a caller closes a shadow; -1 until the first one. */
	int inotify;
	struct shadow shadows[SHADOWS];
	struct task tasks[TASKS];
	struct task_comm comms[COMMS];
	int64_t umask_seen; /* monotonic time in ms of the last umask() of any caller */
	int listeners[LISTENERS];
	bool started[LISTENERS]; /* the mediator has read the memory of a caller at this listener */
	size_t listeners_n;
	dev_t devices[DEVICES];
	size_t devices_n;
	struct endpoint endpoints[ENDPOINTS_MAX];
	size_t endpoints_n;
	struct seccomp_notif req;
	struct cpu_pin pin;
	bool ran;	     /* a program was started; opt.no_exec refuses every later one */
	unsigned serial;     /* counter that makes names of temporary files unique */
	atomic_int *workers; /* 1 + number of running jobs, shared with the threads of the jobs */
	bool has_event;
	struct mediate_event event;
	struct refusal refusal;
};

/* A trapped system call. */
struct call {
	struct mediator *m;
	int listener;
	uint64_t id;
	pid_t tid; /* thread id of the caller, in the mediator's pid namespace */
	int nr;
	/* Arguments of the call; for a call with OP_AT, those that follow the directory @dir. */
	const __u64 *arg;
	const struct op *row;
	/* caller's descriptor of the directory where the path starts, or AT_FDCWD */
	int dir;
	uint64_t flags; /* flags that the caller gave, or that the call implies */
	struct task *task;
	/*
	 * True if the mediator saw the thread of @task alive during this call, so @task does not
	 * describe an earlier thread with the same id.
	 */
	bool fresh;
	bool inspected; /* the mediator has read the memory of the caller */
	/*
	 * False until a caller at the listener could be inspected. Before its exec a command is
	 * writ-init, whose memory the mediator of an ordinary user cannot read.
	 */
	bool started;
	int fd; /* descriptor for ANSWER_FD; owned by the call */
	unsigned fd_flags;
	enum mediate_op op;
	char text[2][PATH_MAX]; /* paths, copied once from the memory of the caller */
};

/* True if the mediator only observes and must change nothing. Call before each side effect. */
static inline bool is_observing(const struct call *c)
{
	return c->m->opt.observe_only;
}

/* Returns a register as the kernel reads an int: ignores the upper half. */
static inline int reg_int(uint64_t arg)
{
	return (int)(uint32_t)arg;
}

#endif
