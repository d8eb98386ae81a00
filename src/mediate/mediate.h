/*
 * mediate.h - answers trapped system calls: does them on behalf, or refuses
 *
 * Reads:  notifications, the target's memory and /proc entries, the files it names
 * Writes: files below writable roots of the policy, on the target's behalf
 * Next:   session/ runs one mediator per session and records its events
 *
 * Nothing is decided on memory the target can rewrite and then left to the
 * kernel: a path is read once, resolved to a descriptor, decided by what that
 * descriptor is, and the act is done on that descriptor by us. A call is let
 * through (CONTINUE) only where Landlock by itself makes every outcome harmless.
 */
#ifndef WRIT_MEDIATE_MEDIATE_H
#define WRIT_MEDIATE_MEDIATE_H

#include "cap/set.h"

/* What one mediator serves. Everything is borrowed and must outlive it. */
struct mediate_options {
	const struct cap_set *set; /* what the policy says, in physical paths */
	struct sv realm;
	struct sv workspace;	/* physical; empty if there is none */
	const struct sv *opens; /* protections lifted by name: ".git/config" */
	size_t opens_n;
	/*
	 * Absolute directories inside the jail that belong to the session alone
	 * ("/tmp", its HOME, "/dev"): Landlock lets it write there and nowhere else.
	 */
	const struct sv *private_dirs;
	size_t private_dirs_n;
	/*
	 * Directories of the session's own that hold something of the host's below:
	 * what is not below a host_root is the session's, but done on behalf.
	 */
	const struct sv *shared_dirs, *host_roots;
	size_t shared_dirs_n, host_roots_n;
	struct sv shm; /* what /dev/shm stands for in calls that come here; empty: itself */
	const struct sv *closed_dirs; /* where writ keeps its own files, physical */
	size_t closed_dirs_n;
	bool own_mounts;   /* tier A: the target's root is not ours */
	bool observe_only; /* never act or refuse: note what would be denied */
	bool no_exec;	   /* shell none: one program, and nothing after it */
	/*
	 * TRAP_READ: trees where opens for reading are decided and done on behalf.
	 * Landlock must give no right to read there; elsewhere it decides alone.
	 */
	const struct sv *read_roots;
	size_t read_roots_n;
	/*
	 * Landlock lets read what is in read_roots, so that programs in it can be run:
	 * then no open for reading is let through anywhere. In the host's namespaces
	 * read_fixed is what may be read besides the rules.
	 */
	bool read_all;
	const struct sv *read_fixed;
	size_t read_fixed_n;
	/*
	 * A file that all mediators of one user take turns with, so that what one has
	 * checked stays as it was until it has acted. NULL: there is no other.
	 */
	const char *order;
	int route; /* to egress, where the network is shared with the host; 0: nothing is */
	bool umask_trapped; /* umask() comes to us, so a task's is worth remembering */
};

enum mediate_op {
	MEDIATE_NONE = 0,
	MEDIATE_EXEC, /* observed, not a denial */
	MEDIATE_READ,
	MEDIATE_WRITE,
	MEDIATE_CONNECT,
	MEDIATE_BIND,
	MEDIATE_GIT, /* the git helper: a repository and what was to be done there */
	MEDIATE_NET, /* egress: a name or host, by no system call of its own */
	MEDIATE_META,
};

enum { MEDIATE_TEXT = 1024 };

/* One thing worth recording. Text may hold any byte but NUL; cut to fit, never split. */
struct mediate_event {
	enum mediate_op op;
	bool denied;
	int32_t sys;		   /* errno the target sees; 0 if it was done */
	uint32_t rule;		   /* index into the set's rules, or RULE_NONE */
	int32_t pid;		   /* as we see it */
	char comm[16];		   /* name of the thread, for people */
	char object[MEDIATE_TEXT]; /* physical path, or address as text */
	char extra[MEDIATE_TEXT];  /* exec: arguments, joined by blanks; else why */
};

/* From one process to another: @ret_bytes has room for a whole event. How many were used. */
size_t mediate_encode(const struct mediate_event *e, char *ret_bytes);
must_check bool mediate_decode(const char *bytes, size_t n, struct mediate_event *ret);

struct mediator;

/*
 * Lets the call that waits at @listener through if it is an exec: for the first one
 * of a command, which is still writ-init's own. Returns 1 and *@ret_event says so, or
 * 0 if who asked is gone. Anything else is refused, and an error.
 */
must_check int mediate_first(int listener, struct mediate_event *ret_event, struct writ_err *err);

must_check int mediate_new(const struct mediate_options *opt, struct mediator **ret_m,
			   struct writ_err *err);
void mediate_free(struct mediator *m);

/* One more listener; @fd becomes the mediator's. */
must_check int mediate_add(struct mediator *m, int fd, struct writ_err *err);

/* A live grant or its end: @e's capability counts from now on, or not any more. */
must_check int mediate_grant(struct mediator *m, const struct cap_entry *e, struct writ_err *err);
void mediate_revoke(struct mediator *m, const struct cap_entry *e);

/*
 * Answers what is pending, waits at most @timeout_ms (-1: for ever) for the first,
 * and also returns when @wake (or -1) is readable. Returns 1 with *@ret_event set,
 * 0 if there is nothing to report, or an error. Listeners whose targets are all
 * gone are closed.
 */
must_check int mediate_wait(struct mediator *m, int wake, int timeout_ms,
			    struct mediate_event *ret_event, struct writ_err *err);

#endif
