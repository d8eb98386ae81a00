/*
 * probe_priv.h - how a thing is tried: in a child, with a time limit
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   the probe_*.c files, and nobody else
 *
 * A trial runs in a forked child and reports through a pipe. Only a report
 * counts: a child that a filter killed, that hung or that crashed has failed.
 */
#ifndef WRIT_HOST_PROBE_PRIV_H
#define WRIT_HOST_PROBE_PRIV_H

#include <sys/types.h>

#include "host/cgroup.h"
#include "host/facts.h"

/* Long enough for a busy machine that is emulated: what is late counts as missing. */
enum { PROBE_CHILD_MS = 6000, PROBE_TOTAL_MS = 20000 };

/* A trial's report. A trial returns 0 or an errno and may set the values. */
struct report {
	uint32_t magic;
	int32_t sys;
	bool shaky; /* something failed that may work the next time; an errno says so itself */
	uint64_t v[4];
};

/* What trials need to know; const while a trial runs. */
struct probe {
	int64_t deadline_ms;  /* monotonic; no trial runs past it */
	uid_t uid;	      /* effective ids, outside every new namespace */
	gid_t gid;
	bool userns;	      /* trials enter a user namespace; else they act as they are */
	char dir[512];	      /* private temporary directory, "" if none could be made */
	char cgroup_name[32]; /* of the child cgroup */
	const struct cgroup_trial *cgroup;
	bool *shaky; /* set if a trial was; NULL: nobody asks */
};

typedef int trial_decl(const struct probe *p, int arg, struct report *r);
typedef trial_decl *trial_fn;

/* A running trial. */
struct trial {
	pid_t pid;
	int fd;
	int64_t deadline_ms;
	bool *shaky;
};

/* Does @sys tell more about the moment than about the machine? */
bool is_passing(int sys);

must_check int trial_start(const struct probe *p, trial_fn fn, int arg, struct trial *ret_t);
/* Waits, kills if late, reaps. Returns 0 or an errno; *@ret_r is always filled. */
int trial_finish(struct trial *t, struct report *ret_r);
/* Both, for trials that say yes or no. */
bool trial_ok(const struct probe *p, trial_fn fn, int arg);

/*
 * Inside a trial: a second process that dies with its parent. Returns like
 * fork(); the caller reaps with grandchild_wait(), which gives its exit status
 * or -1 if it died by a signal.
 */
pid_t grandchild_fork(void);
int grandchild_wait(pid_t pid);

/*
 * Inside a trial: new namespaces @flags, in a new user namespace whose uid and
 * gid 0 are ours if p->userns. Returns 0 or an errno.
 */
int enter_ns(const struct probe *p, int flags);
/* One id of each kind; also used for the second level. Returns 0 or an errno. */
int write_maps(uid_t in_uid, uid_t out_uid, gid_t in_gid, gid_t out_gid);
/* Makes every mount private, so that nothing done later leaves the namespace. */
int private_mounts(void);

/* At most @size - 1 bytes of @path, NUL-terminated, with the last newline cut; -1 on failure. */
ssize_t read_small(const char *path, char *buf, size_t size);
/* A decimal number alone in a file, or @missing. */
uint64_t read_number(const char *path, uint64_t missing);

/* One row of a table of trials; what they find goes into the facts. */
struct trial_row {
	trial_fn fn;
	size_t offset; /* of a bool: did it succeed? Not used with @take */
	void (*take)(const struct report *r, struct host_facts *f);
};
enum { TRIALS_MAX = 24 };
/* Runs all rows at the same time; no row may depend on another. */
void trials_run(const struct probe *p, const struct trial_row *rows, size_t n,
		struct host_facts *f);

/* The trials, by file; the tables in probe.c say what each one fills. */
trial_decl try_user, try_user_nested, try_all_ns, try_proc, try_pivot, try_mount_api, try_anyip;
trial_decl try_landlock;
trial_decl try_filter, try_notify, try_getfd;
trial_decl try_overlay, try_overlay_tmpfs, try_reflink, try_fuse, try_kvm, try_openat2;
trial_decl try_io_uring, try_compat32, try_systemd, try_nproc;
void take_all_ns(const struct report *r, struct host_facts *f);
void take_landlock(const struct report *r, struct host_facts *f);
void take_notify(const struct report *r, struct host_facts *f);
void take_systemd(const struct report *r, struct host_facts *f);

/* If try_all_ns() failed: each kind alone. */
void probe_each_ns(const struct probe *p, struct host_facts *f);
/* If try_user() failed with *@r: the word for userns_limit. */
const char *why_no_userns(const struct probe *p, const struct host_facts *f,
			  const struct report *r);

void probe_who(struct probe *p, struct host_facts *f); /* first: it sees us untouched */
void probe_switches(struct host_facts *f);
bool probe_subids(const struct host_facts *f);

/* Whether @text, in the format of /etc/subuid, gives @uid or @name a range. */
bool subid_has_range(struct sv text, uint64_t uid, struct sv name);
/* The name of @uid in @text, in the format of /etc/passwd; "" if it has none. */
struct sv passwd_name(struct sv text, uint64_t uid);
/* The first version number in the output of a program, "" if there is none. */
struct sv tool_version(struct sv text);

/* The cgroup trial sleeps in the kernel for long, so it runs beside the others. */
struct cgroup_trial {
	bool started;
	struct trial t;
	struct cgroup_places places; /* where a child cgroup may have been made */
};
void probe_cgroup_start(struct probe *p, struct host_facts *f, struct cgroup_trial *ret_c);
void probe_cgroup_finish(const struct probe *p, struct cgroup_trial *c, struct host_facts *f);
/* Where nobody finished. */
void probe_cgroup_sweep(const struct probe *p);

#endif
