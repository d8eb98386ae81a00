/*
 * probe_priv.h - a trial: try one feature in a child process, with a time limit
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   probe.c and the probe_*.c files; no file outside this module includes it
 *
 * A trial runs in a forked child and sends a report through a pipe. Only a complete report counts:
 * a child that was killed by a filter, hung or crashed has failed.
 */
#ifndef WRIT_FACTS_PROBE_PRIV_H
#define WRIT_FACTS_PROBE_PRIV_H

#include <sys/types.h>

#include "facts/cgroup.h"
#include "facts/facts.h"

/* Time limits in ms, generous for busy emulated machines: a trial that is late counts as failed. */
enum { PROBE_CHILD_MS = 6000, PROBE_TOTAL_MS = 20000 };

/*
 * Report of a trial. The trial function returns 0 or an errno, which becomes .sys, and may set
 * values in .v.
 */
struct report {
	uint32_t magic;
	int32_t sys;
	bool transient; /* the trial failed for a temporary reason that .sys does not show */
	uint64_t v[4];
};

/* Context of a trial; constant while the trial runs. */
struct probe {
	int64_t deadline_ms; /* monotonic time after which no trial runs */
	uid_t uid;	     /* effective ids of the prober, as seen outside of new namespaces */
	gid_t gid;
	/*
	 * If set, trials that need namespaces enter a user namespace first; otherwise they use the
	 * privileges of the prober.
	 */
	bool userns;
	char dir[512]; /* path of the private temporary directory; "" if none could be made */
	char cgroup_name[32]; /* name of the child cgroup that the cgroup trial makes */
	const struct cgroup_trial *cgroup;
	bool *transient; /* set to true if a trial failed for a temporary reason; may be NULL */
};

typedef int trial_decl(const struct probe *p, int arg, struct report *r);
typedef trial_decl *trial_fn;

/* A running trial. */
struct trial {
	pid_t pid;
	int fd;
	int64_t deadline_ms;
	bool *transient;
};

/* Checks whether the errno @sys may be temporary, so that it says little about the machine. */
bool facts_is_transient(int sys);

must_check int trial_start(const struct probe *p, trial_fn fn, int arg, struct trial *ret_t);
/*
 * Waits for a trial, kills the trial if it is late, and reaps it. Returns 0 or an errno; *@ret_r is
 * always filled.
 */
int trial_finish(struct trial *t, struct report *ret_r);
/* Starts and finishes a trial. Returns 0 or an errno; *@ret_r is always filled. */
int trial_run(const struct probe *p, trial_fn fn, int arg, struct report *ret_r);
/* Starts and finishes a trial; returns true if the trial succeeded. */
bool trial_ok(const struct probe *p, trial_fn fn, int arg);

/*
 * Forks a second process inside a trial. The new process dies with its parent. Returns like fork().
 * The caller reaps the process with facts_grandchild_wait(), which returns the exit status, or -1
 * if a signal killed the process.
 */
pid_t facts_grandchild_fork(void);
int facts_grandchild_wait(pid_t pid);
/* Forks an idle process, which only counts towards limits; facts_grandchild_end() ends it. */
pid_t facts_grandchild_idle(void);
void facts_grandchild_end(pid_t pid);
/* Kills the process @pid with its process group and reaps it. */
void facts_group_end(pid_t pid);

/*
 * Enters new namespaces of the kinds @flags inside a trial. If p->userns is set, also enters a new
 * user namespace in which the prober's ids are uid and gid 0. In a new mount namespace every mount
 * becomes private. Returns 0 or an errno.
 */
int facts_enter_ns(const struct probe *p, int flags);
/*
 * Writes the id maps of this process's user namespace: @in_uid stands for the outer @out_uid,
 * @in_gid for @out_gid, and no other id is mapped. Returns 0 or an errno.
 */
int facts_write_maps(uid_t in_uid, uid_t out_uid, gid_t in_gid, gid_t out_gid);

/* Reads at most @size - 1 bytes of @path, NUL-terminated and without a final newline; -1 on
 * failure. */
ssize_t facts_read_small(const char *path, char *buf, size_t size);
/* Reads a file that contains one decimal number; returns @missing if reading or parsing fails. */
uint64_t facts_read_number(const char *path, uint64_t missing);

/* A row of a table of trials: the trial, and the fact that its result sets. */
struct trial_row {
	trial_fn fn;
	size_t offset; /* offset of the bool to set; unused if @take is set */
	void (*take)(const struct report *r, struct host_facts *f);
};
enum { TRIALS_MAX = 24 };
/* Runs all rows concurrently; no row may depend on another. */
void facts_trials_run(const struct probe *p, const struct trial_row *rows, size_t n,
		      struct host_facts *f);

/* The trial functions, grouped by file. The tables in probe.c map these functions to facts. */
trial_decl try_user, try_user_nested, try_all_ns, try_proc, try_pivot, try_mount_api, try_anyip;
trial_decl try_landlock;
trial_decl try_filter, try_notify, try_getfd;
trial_decl try_overlay, try_overlay_tmpfs, try_reflink, try_fuse, try_kvm, try_openat2;
trial_decl try_io_uring, try_compat32, try_systemd, try_nproc;
void facts_take_all_ns(const struct report *r, struct host_facts *f);
void facts_take_landlock(const struct report *r, struct host_facts *f);
void facts_take_notify(const struct report *r, struct host_facts *f);
void facts_take_systemd(const struct report *r, struct host_facts *f);

/* Tries each kind of namespace alone. Call this function after try_all_ns() failed. */
void probe_each_ns(const struct probe *p, struct host_facts *f);
/* Explains the failure *@r of try_user(): returns the word for userns_limit. */
const char *facts_why_no_userns(const struct probe *p, const struct host_facts *f,
				const struct report *r);

/* Determines the facts about the host that need no trial, and the ids in @p. Must run first. */
void probe_host(struct probe *p, struct host_facts *f);
void probe_sysctls(struct host_facts *f);
bool probe_subids(const struct host_facts *f);

/* Checks whether @text, in the format of /etc/subuid, gives @uid or @name a range of ids. */
bool facts_subid_has_range(struct sv text, uint64_t uid, struct sv name);
/*
 * Finds the name of @uid in @text, in the format of /etc/passwd; returns "" if @text has no such
 * user.
 */
struct sv facts_passwd_name(struct sv text, uint64_t uid);
/* Finds the first version number in the output of a program; returns "" if there is none. */
struct sv facts_tool_version(struct sv text);

/*
 * The cgroup trial. The kernel takes long to move processes, so this trial runs concurrently with
 * all others.
 */
struct cgroup_trial {
	bool started;
	struct trial t;
	struct cgroup_places places; /* directories below which the trial may make a child cgroup */
};
void probe_cgroup_start(struct probe *p, struct host_facts *f, struct cgroup_trial *ret_c);
void probe_cgroup_finish(const struct probe *p, struct cgroup_trial *c, struct host_facts *f);
/* Removes the cgroups that an interrupted cgroup trial left behind. */
void probe_cgroup_sweep(const struct probe *p);

#endif
