/*
 * mediate_priv.h - one trapped call on its way through, for the files of this room only
 *
 * Reads:  mediate/mediate.h
 * Writes: nothing
 * Next:   serve.c reads a call, an op_*() resolves, decides and acts, answer goes back
 *
 * Two rules hold everywhere. What the target can rewrite (its memory, its
 * descriptor table) is read once, and the act uses what was read. The trees we
 * write to are changed by us alone as far as the target is concerned, one call
 * after the other, so what was checked there still holds when we act.
 */
#ifndef WRIT_MEDIATE_PRIV_H
#define WRIT_MEDIATE_PRIV_H

#include <limits.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/fd.h"
#include "mediate/mediate.h"
#include "policy/protect.h"

/* Kernel interfaces newer than the headers we build with. */
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

enum {
	TASKS = 64,  /* remembered, by thread id */
	COMMS = 8,
	STREAK = 16,
	SHADOWS = 8, /* .git files being written */
	LISTENERS = 32,
	DEVICES = 32,	/* file systems known to hold files */
	LINKS_MAX = 40, /* symbolic links in one path, as in the kernel */
	WORKERS = 64,
	BOUND = 128, /* sockets of the session that exist at once in granted trees */
};

/*
 * What an op_*() returns: a value for the target from 0, -errno, or one of these.
 * An errno is at most 4095.
 */
enum {
	ANSWER_CONTINUE = -10000, /* the kernel and Landlock decide */
	ANSWER_FD = -10001,	  /* call.fd goes to the target */
	ANSWER_LATER = -10002,	  /* a worker answers */
	ANSWER_GONE = -10003,	  /* nobody waits any more */
};

/* A thread of the sandbox. @proc is bound to it: a later thread of the same number has another. */
struct task {
	pid_t tid;
	int proc, status, pidfd;
	bool known; /* the rest was read and is still true */
	unsigned mask;
	pid_t tgid;
	uid_t uid;
	gid_t gid;
};

/* /proc/TID/comm, open. */
struct comm {
	pid_t tid; /* 0: none */
	int fd;
};

/* A .git file under construction: the target writes to memory, we check and install. */
struct shadow {
	bool used;
	int watch, bytes, dir, root;
	char name[NAME_MAX + 1];
	mode_t mode;
	pid_t pid;
	uid_t uid;
	gid_t gid;
};

struct write_root {
	char *path;
	size_t n;
	const struct cap *cap;
};

struct place {
	int dir;		 /* O_PATH, owned; -1: none */
	char name[NAME_MAX + 2]; /* empty: the directory itself */
	bool slash;		 /* only a directory will do */
	bool dotdot;		 /* the path ended in ".." */
	char path[PATH_MAX];	 /* physical, of dir and name together */
	size_t n;
};
#define PLACE_NONE                                                                                 \
	{                                                                                          \
		.dir = -1                                                                          \
	}
#define scoped_place __attribute__((cleanup(place_clear))) struct place

struct listener {
	int fd;
};

/* A socket or a named pipe made in this session; @pin keeps its number from being used again. */
struct bound {
	int pin;
	dev_t dev;
	ino_t ino;
};

struct mediator {
	struct mediate_options opt;
	struct cap_set set; /* the policy's and the live grants */
	struct cap_entry *caps;
	bool revoked; /* a grant was taken back: some directories may hang in the air */
	size_t policy_caps;
	struct arena keep, scratch;
	struct buf text;
	struct write_root *roots;
	size_t roots_n;
	bool globs;	/* some file rule is finer than whole trees */
	bool read_nots; /* something is hidden from reading by a rule */
	bool put_nots;
	int self, proc, root; /* /proc/self/fd, /proc, / */
	int jail;	      /* the one root of all who ask, where it is not ours; -1: not known */
	int order;	      /* see mediate_options.order */
	pid_t pid;	      /* whose /proc/self that is */
	bool is_root;
	int inotify;
	struct shadow shadows[SHADOWS];
	struct task tasks[TASKS];
	struct comm comms[COMMS];
	uint64_t umask_seen; /* when a umask() was last on its way, in ms */
	struct listener listeners[LISTENERS];
	size_t listeners_n;
	dev_t devices[DEVICES];
	size_t devices_n;
	struct bound bound[BOUND];
	size_t bound_n;
	struct seccomp_notif req;
	pid_t last;	 /* who was given a descriptor last */
	unsigned streak; /* so often before, and nobody else between */
	bool near;	 /* we are bound to a processor, and else may run anywhere */
	cpu_set_t anywhere;
	bool ran; /* an exec was let through */
	unsigned serial;
	atomic_int *workers; /* shared with them */
	bool has_event;
	struct mediate_event event;
};

struct call {
	struct mediator *m;
	int listener;
	uint64_t id;
	pid_t tid;
	int nr;
	const __u64 *arg;
	struct task *task;
	bool fresh; /* the task's /proc was seen alive during this call */
	int fd;	    /* for ANSWER_FD; owned */
	unsigned fd_flags;
	enum mediate_op op;
	char text[2][PATH_MAX];
};

/* --- notify.c --- */

void notify_wake_here(int listener); /* whoever is woken runs on the processor of who wakes */
bool notify_is_ours(const struct seccomp_notif *req);
int notify_recv(struct mediator *m, int listener); /* 0, -errno */
bool notify_valid(int listener, uint64_t id);
void notify_answer(int listener, uint64_t id, int64_t value, int error, bool go_on);
int notify_addfd(int listener, uint64_t id, int fd, unsigned newfd_flags); /* number or -errno */
/* The same with call.fd, quicker. We are bound to this processor then, until notify_roam(). */
int notify_addfd_near(struct call *c);
void notify_roam(struct mediator *m);

/* --- task.c: the target's memory and /proc --- */

int task_text(struct call *c, uint64_t at, char *to); /* a path; length or -errno */
/* As much of a string as fits; its length or -errno. Always ends in a NUL. */
int task_some(struct call *c, uint64_t at, char *to, size_t room);
int task_read(struct call *c, uint64_t at, void *to, size_t n);
/* Several places, one behind the other in @to: how much came, up to the first that failed. */
size_t task_gather(struct call *c, const struct iovec *its, size_t n, void *to, size_t room);
int task_write(struct call *c, uint64_t at, const void *from, size_t n);
int task_open(struct call *c, const char *name, unsigned flags); /* "cwd", "fd/7": O_PATH */
int task_fd(struct call *c, int fd);	  /* what its descriptor is: O_PATH */
int task_root(struct call *c);		  /* borrowed */
int task_status(struct call *c);	  /* fills call.task; 0 or -errno */
int task_take_fd(struct call *c, int fd); /* the descriptor itself */
int task_own_fd(struct call *c, int fd);  /* the same; -ENOSYS: cannot be had for this thread */
void task_comm(struct call *c, char to[16]);
void task_drop(struct task *t);
void comm_drop(struct comm *k);

/* --- place.c --- */

void place_clear(struct place *p);
/* Up to the last name, which is not followed. 0 or -errno. */
int place_find(struct call *c, int dirfd, const char *path, struct place *ret);
/* The same for call.text[@buf], and for the path at call.arg[@i], which is read into it. */
int place_text(struct call *c, int dirfd, unsigned buf, struct place *ret);
int place_arg(struct call *c, int dirfd, unsigned i, unsigned buf, struct place *ret);
bool place_exists(const struct place *p);
const char *place_act_name(struct place *p); /* as the kernel is told it */
struct sv place_folder(const struct place *p);
/* @p names a link: on to what it points to. -EINVAL if it is none. */
int place_follow(struct call *c, struct place *p, int *links);
/* An O_PATH descriptor of the object itself; links are followed if @follow. */
int place_object(struct call *c, struct place *p, bool follow, struct stat *ret_st);
/* @name in @dir, which stays the caller's. 0 or -errno. */
int place_in(struct call *c, int dir, const char *name, struct place *ret);
/* Since the start something was mounted or taken away: what is in no tree may have any path. */
bool mounts_changed(const struct mediator *m);
bool path_of_fd(struct mediator *m, int fd, char to[PATH_MAX], size_t *ret_n);
int reopen(struct mediator *m, int fd, int flags); /* an O_PATH descriptor, as a real one */
/* "/dev/stdout", "/proc/self/fd/7": the number, or -1. */
int own_fd_text(const char *path);

/* --- decide.c --- */

enum want { WANT_WRITE = 0, WANT_PUT, WANT_READ };

bool is_private(const struct mediator *m, struct sv path);
bool is_shared(const struct mediator *m, struct sv path); /* see mediate_options.shared_dirs */
bool is_read_fixed(const struct mediator *m, struct sv path); /* by every session */
bool is_below(struct sv path, struct sv dir);
/* Landlock alone decides there: private directories, /proc. */
bool is_left_to_kernel(const struct mediator *m, const struct place *p);
/* 0, or -EACCES with an event. */
int decide_path(struct call *c, enum want want, struct sv path);
bool may(struct mediator *m, enum want want, struct sv path, struct cap_verdict *ret_v);
bool may_read_device(struct mediator *m, struct sv path);
struct protect_hit protected_at(struct mediator *m, int dir, struct sv path);
bool device_is_plain(struct mediator *m, int fd, dev_t dev);
int deny(struct call *c, struct sv object, uint32_t rule, const char *why);
/*
 * SECURITY: would a link at @path that says @text lead past a name that a rule denies
 * writing? Behind it, one that is not there yet would be another one. Its rule.
 */
uint32_t denied_behind(const struct mediator *m, struct sv path, struct sv text);
/* @dir, in which no part is a link, without as many parts as @text begins with "..". */
void link_climb(struct sv *dir, struct sv *text);
int deny_row(struct call *c, struct sv object, const struct protect_name *row);
struct cap_verdict decide_text(struct mediator *m, const char *action, struct sv resource);
int roots_find(struct mediator *m, struct writ_err *err);

static inline struct sv place_sv(const struct place *p)
{
	return (struct sv){ p->path, p->n };
}

/* --- names.c --- */

/* Does @text, as a path in the directory @dir, lead to writ's own files or above them? */
bool leads_to_ours(const struct call *c, struct sv dir, const char *text);
int may_link(struct call *c, const struct place *p, const char *text);
bool is_mounted_on(const struct place *p);

static inline int reg_int(uint64_t arg)
{
	return (int)(uint32_t)arg;
}

/* --- act.c: as whom --- */

struct as {
	bool on;
	bool masked;
	mode_t old_mask;
	uint32_t caps[2]; /* effective before */
};
#define scoped_as __attribute__((cleanup(as_end))) struct as
/* From here on with the target's user and no capability. */
int as_begin(struct call *c, struct as *ret);
int as_mask(struct call *c, struct as *a); /* and the umask from here on */
void as_end(struct as *a);
must_check bool as_ids(const struct mediator *m, uid_t uid, gid_t gid, struct as *ret);

/* --- guard.c: names other tools obey --- */

enum guard {
	GUARD_FREE = 0,
	GUARD_HOLDS,   /* may come to hold a protected name: directories only by mkdir, no links */
	GUARD_CONFIG,  /* replaced by checked content only */
	GUARD_POINTER, /* a .git that is no directory, a commondir, attributes: checked when done */
	GUARD_HOOKS,   /* the directory itself: may be made, empty */
	GUARD_SAMPLE,  /* a hook that never runs */
	GUARD_ONCE,    /* written when it was made; it may go */
	GUARD_SHUT,
};

struct guarded {
	enum guard kind;
	const struct protect_name *row;
	bool module; /* configuration of a submodule */
};

struct guarded guard_look(struct call *c, const struct place *p);
/* What making @p would complete: a repository around settings nobody checked. 0 or -errno. */
int guard_complete(struct call *c, const struct place *p);
int guard_refuse(struct call *c, const struct place *p, const struct guarded *g);

/* --- gitdir.c --- */

/* Puts what @from (a descriptor to read) holds at @to after a check; 0 or -errno. */
int git_install(struct call *c, int from, const struct place *to, const struct guarded *g,
		bool replace);
int git_may_unlink(struct call *c, const struct place *p, const struct guarded *g);
int git_renew(struct call *c, const struct place *config, bool module);
int shadow_open(struct call *c, const struct place *p, unsigned mode, unsigned flags);
void shadow_run(struct mediator *m);
void shadow_drop(struct mediator *m, struct shadow *s);

/* --- order.c: one mediator after the other --- */

int order_open(struct mediator *m, struct writ_err *err);
bool order_needed(int nr, const __u64 *arg); /* does this call check names and then act on them? */
int order_begin(struct mediator *m);	     /* 0 or -errno */
void order_end(struct mediator *m);

/* --- bound.c: whose socket is it --- */

int bound_add(struct mediator *m, int dir, const char *name); /* 0 or -errno */
bool bound_here(const struct mediator *m, const struct stat *st);
void bound_clear(struct mediator *m);

/* --- tree.c --- */

/* May the directory @name in @dir, of path @from, come to stand at @to? 0 or -errno. */
int tree_check(struct call *c, int dir, const char *name, struct sv from, struct sv to);

/* --- behalf.c, procfs.c: reading where nothing is let through --- */

/* Opens for reading the thing @obj, whose path is @path; ANSWER_FD, ANSWER_LATER or -errno. */
int behalf_open(struct call *c, int obj, const struct stat *st, struct sv path, int flags);
/* A named pipe, for reading or writing. What must wait for the other end waits in a worker. */
int pipe_open(struct call *c, int obj, int flags);
/* The same for a path that begins with /proc. ANSWER_CONTINUE: it is the program itself. */
int proc_open(struct call *c, const char *text, int flags);
/* May the program at @path be run, as far as it may be read? 0 or -errno. */
int behalf_exec(struct call *c, int dirfd, const char *path);

/* --- worker.c: what may block --- */

enum job_kind { JOB_NONE = 0, JOB_CONNECT, JOB_SEND, JOB_OPEN, JOB_OPEN_TO_WRITE };
struct job {
	enum job_kind kind;
	bool stream, many;
	int listener, sock;
	uint64_t id;
	int flags;
	unsigned char addr[128];
	uint32_t addr_n;
	char *bytes;
	size_t bytes_n;
	char *control;
	size_t control_n;
	int fds[256];
	size_t fds_n;
	int keep; /* what addr leads through */
	atomic_int *workers;
};
int job_start(struct call *c, struct job *j); /* takes @j; ANSWER_LATER or -errno */
void job_free(struct job *j);
struct job *job_new(struct call *c, enum job_kind kind);
void workers_free(atomic_int *workers); /* now, or with the last of them */

/* --- serve.c and the calls --- */

typedef int (*op_fn)(struct call *c);
op_fn op_find(int nr, enum mediate_op *ret_op);

/* What acts must ask right before they act. */
static inline bool only_watching(const struct call *c)
{
	return c->m->opt.observe_only;
}

int op_open(struct call *c);
int op_openat(struct call *c);
int op_creat(struct call *c);
int op_mkdir(struct call *c);
int op_mkdirat(struct call *c);
int op_mknod(struct call *c);
int op_mknodat(struct call *c);
int op_symlink(struct call *c);
int op_symlinkat(struct call *c);
int op_unlink(struct call *c);
int op_unlinkat(struct call *c);
int op_rmdir(struct call *c);
int op_rename(struct call *c);
int op_renameat(struct call *c);
int op_renameat2(struct call *c);
int op_link(struct call *c);
int op_linkat(struct call *c);
int op_truncate(struct call *c);
int op_chmod(struct call *c);
int op_fchmod(struct call *c);
int op_fchmodat(struct call *c);
int op_fchmodat2(struct call *c);
int op_chown(struct call *c);
int op_lchown(struct call *c);
int op_fchown(struct call *c);
int op_fchownat(struct call *c);
int op_utime(struct call *c);
int op_utimes(struct call *c);
int op_futimesat(struct call *c);
int op_utimensat(struct call *c);
int op_setxattr(struct call *c);
int op_lsetxattr(struct call *c);
int op_fsetxattr(struct call *c);
int op_removexattr(struct call *c);
int op_lremovexattr(struct call *c);
int op_fremovexattr(struct call *c);
int op_ioctl(struct call *c);
int op_connect(struct call *c);
int op_datagram(struct call *c);
int op_bind(struct call *c);
int op_listen(struct call *c);
int op_sendto(struct call *c);
int op_sendmsg(struct call *c);
int op_sendmmsg(struct call *c);
int op_exec(struct call *c);
int op_execat(struct call *c);
int op_umask(struct call *c);
int op_missing(struct call *c);

#endif
