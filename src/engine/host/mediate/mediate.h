/*
 * mediate.h - answer system calls that the kernel's own rules cannot decide
 *
 * Theory of operation
 *
 * Mounts and Landlock decide most file accesses of a session. They cannot express a rule about one
 * name in a directory, about a name that does not exist yet, about metadata, or about the content
 * of a git configuration. Nor can they decide where a UNIX socket or, on the host's network, a
 * connection leads. For these a seccomp filter (filter/) stops the call and notifies the mediator,
 * which runs outside the session. The kernel keeps the caller waiting until the mediator answers.
 *
 * For each call the mediator
 *   1. copies paths, addresses and data from the caller's memory, once (task.c);
 *   2. resolves a path inside the caller's root to an open directory and one name (place.c), or
 *      duplicates the caller's descriptor;
 *   3. asks the policy about the physical path of that object (decide.c), and whether programs
 *      outside the session obey its name (guard.c) or content (git_files.c);
 *   4. performs the call itself on the objects it holds, with the caller's ids and without
 *      capabilities (creds.c), and returns the result or a descriptor; or refuses with an errno and
 *      reports an event.
 *
 * op.c maps system calls to functions. A call that may block is answered later by a thread (job.c).
 *
 * Inputs are listeners (mediate_add()), the policy (mediate_options.set) and live grants. Outputs
 * are answers to callers and one mediate_event per denial or started program (mediate_wait()).
 *
 * States of a call: received, resolved, decided, then answered, refused or continued by a job. A
 * caller may die or be interrupted in each of them; then its notification becomes invalid
 * (ANSWER_GONE) and must have no effect.
 *
 * Invariants
 *   - After a decision nothing is read from the caller's memory or descriptor table again. A call
 * is let through to the kernel (CONTINUE) only where Landlock makes every possible outcome
 *     harmless: in private directories and in /proc, where the caller has no more rights than
 *     Landlock gives it, and for exec, which no other process can perform.
 *   - Paths of a caller with its own mounts are resolved in its root, never in the host's.
 *   - Decisions are about open objects. Names are compared again by device and inode where the
 *     object came from a descriptor.
 *   - Calls that change names run one at a time, across all mediators of a user (order.c). So no
 *     session changes what a mediator has checked before it acts.
 *   - An observing mediator (observe_only) answers every call with CONTINUE and changes nothing.
 *
 * Common mistakes
 *   - The /proc/TID/fd of a thread differs from its leader's if it does not share CLONE_FILES. Use
 *     task_dup_fd() and task_open_fd(), which take the thread's own.
 *   - A thread id may be reused after its thread died. Call notify_valid() after the last access to
 *     the caller and before the first side effect.
 *   - After a fork the mediator's /proc/self/fd is the parent's; mediate_wait() reopens it.
 *   - After a live grant was revoked, a descriptor may report a path in a detached mount. See
 *     mediate_mounts_changed().
 *   - /proc/self and magic links resolve for the process that looks, here the mediator.
 *
 * Reads:  notifications, the caller's memory and /proc entries, the files it names
 * Writes: files below writable roots of the policy, with the caller's ids
 * Next:   session/ runs one mediator per session and records its events
 */
#ifndef WRIT_MEDIATE_MEDIATE_H
#define WRIT_MEDIATE_MEDIATE_H

#include "cap/set.h"
#include "plan/event.h"

/* Configuration of one mediator. All pointers are borrowed and must outlive the mediator. */
struct mediate_options {
	const struct cap_set *set; /* the policy; its paths are physical */
	struct sv realm;
	struct sv workspace; /* physical path of the workspace; empty if there is none */
	/* Protected names whose protection the policy lifts, such as ".git/config". */
	const struct sv *opens;
	size_t opens_n;
	/*
	 * Absolute directories inside the jail that belong to the session alone ("/tmp", its HOME,
	 * "/dev"). Landlock allows writing in these directories and nowhere else, so the mediator
	 * lets calls about them through to the kernel.
	 */
	const struct sv *private_dirs;
	size_t private_dirs_n;
	/*
	 * Directories of the session that contain files of the host further below. Everything
	 * outside the host_roots belongs to the session and needs no rule, but the mediator
	 * performs the operations, because Landlock cannot distinguish the session's files from the
	 * host's.
	 */
	const struct sv *shared_dirs, *host_roots;
	size_t shared_dirs_n, host_roots_n;
	/* Directory that replaces /dev/shm in paths of callers; empty: no replacement. */
	struct sv shm;
	const struct sv *closed_dirs; /* physical directories where writ keeps its own files */
	size_t closed_dirs_n;
	bool own_mounts; /* tier A: the target processes have a root directory of their own */
	/* Let every call through to the kernel and report calls that would be denied. */
	bool observe_only;
	bool no_exec; /* the policy says `shell none`: refuse every program after the first */
	/*
	 * With TRAP_READ: trees where the mediator decides and performs opens for reading. Landlock
	 * must allow no reading there, unless read_all; elsewhere Landlock decides alone.
	 */
	const struct sv *read_roots;
	size_t read_roots_n;
	/*
	 * Landlock allows reading in read_roots, so that programs in these trees can be run. Then
	 * the mediator lets no open for reading through anywhere: the caller could redirect the
	 * open. In the host's namespaces read_fixed lists paths that the session may read in
	 * addition to those of the rules.
	 */
	bool read_all;
	const struct sv *read_fixed;
	size_t read_fixed_n;
	/*
	 * Lock file that all mediators of one user share, so that an object that one mediator has
	 * checked does not change before that mediator acts. NULL: there is no other mediator.
	 */
	const char *order;
	int route; /* socket to egress, if the session shares the host's network; 0: none */
	/* The filter traps umask(), so the mediator may cache umasks of callers. */
	bool umask_trapped;
};

struct mediator;

/*
 * Lets the exec that waits at @listener through: the first exec of a command, made by writ-init
 * itself. Returns 1 with *@ret_event set, or 0 if the caller has died. Refuses any other call and
 * returns an error.
 */
must_check int mediate_first(int listener, struct mediate_event *ret_event, struct writ_err *err);

must_check int mediate_new(const struct mediate_options *opt, struct mediator **ret_m,
			   struct writ_err *err);
void mediate_free(struct mediator *m);

/* Adds the seccomp listener @fd to the mediator and takes ownership of @fd. */
must_check int mediate_add(struct mediator *m, int fd, struct writ_err *err);

/* mediate_grant() adds the capability of a live grant; mediate_revoke() removes it. */
must_check int mediate_grant(struct mediator *m, const struct cap_entry *e, struct writ_err *err);
void mediate_revoke(struct mediator *m, const struct cap_entry *e);

/*
 * Answers pending calls. Waits at most @timeout_ms (-1: no limit) for the first call, and returns
 * early when @wake (or -1) is readable. Returns 1 with *@ret_event set, 0 if there is nothing to
 * report, or an error. A call that an event refuses is answered by the next mediate_wait(), after
 * the caller has reported the event. Closes listeners whose processes have all exited.
 */
must_check int mediate_wait(struct mediator *m, int wake, int timeout_ms,
			    struct mediate_event *ret_event, struct writ_err *err);

#endif
