/*
 * mediate.h - answer system calls that the kernel's own rules cannot decide
 *
 * Theory of operation
 *
 * Mounts and Landlock decide most file accesses of a session. They cannot express a rule about one
 * name in a directory, about a name that does not exist yet, about metadata, or about the content
 * of a git configuration. Nor can they decide where a UNIX socket leads or, on the host's network,
 * where a connection leads. A seccomp filter (filter/) stops each call that needs such a rule and
 * notifies the mediator, which runs outside the session. The kernel keeps the caller waiting until
 * the mediator answers.
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
 * States of a call: received, resolved, decided, then answered, refused, let through to the kernel
 * or handed to a job. A caller may die or be interrupted in each state. Then its notification
 * becomes invalid (ANSWER_GONE), and the mediator must not perform the call.
 *
 * Invariants
 *   - The mediator performs a call with the path, the address and the descriptor that it decided
 *     about. It never reads these a second time from the caller's memory or descriptor table.
 *   - The mediator lets a call through to the kernel (CONTINUE), which reads the caller's memory
 *     again, only where every possible outcome is harmless: where Landlock restricts the caller to
 *     the same rights (in private directories, in /proc, for reading outside read_roots), where the
 *     call gives no access to files or to other programs (O_PATH, umask, a socket in the session's
 *     own network), and for exec, which no other process can perform.
 *   - If the session has its own mounts, the mediator resolves a caller's path in the caller's
 *     root, also the target of a new link, which programs of the host may follow. It looks a text
 *     up in the host's root only to compare: for the name of a socket that it binds.
 *   - Decisions are about an open object, or about an open directory and one name in it. An object
 *     that came from a descriptor is compared by device and inode with the object at its path.
 *   - Landlock does not restrict the mediator. It opens plain files and directories for a caller,
 *     devices only in /dev, pipes only of the session, and files of /proc as procfs.c says.
 *   - A path that a descriptor reports counts only if it leads to the object: the host may have
 *     replaced the file, or moved it out of its mount.
 *   - Calls that change names take a lock that all mediators of a user share (order.c). So no other
 *     session changes a name between the check of a mediator and its operation.
 *   - An observing mediator (observe_only) answers every call with CONTINUE and changes nothing.
 *
 * Common mistakes
 *   - A thread may have a descriptor table of its own (no CLONE_FILES); then its /proc/TID/fd
 *     differs from its leader's. Use task_dup_fd() and task_open_fd(), which use the thread's.
 *   - A thread id may be reused after its thread died. Call notify_valid() after the last access to
 *     the caller and before the first side effect.
 *   - After a fork the mediator's /proc/self/fd is the parent's; mediate_wait() reopens it.
 *   - After the revocation of a live grant, a caller's descriptor may belong to a detached mount,
 *     and its path then names another object. See mediate_mounts_changed().
 *   - /proc/self and magic links resolve for the process that looks, here the mediator.
 *
 * Reads:  notifications, the caller's memory and /proc entries, the files it names
 * Writes: files below writable roots of the policy, with the caller's ids
 * Next:   host/mediation.c runs the mediator of a session; session/parts records its events
 */
#ifndef WRIT_MEDIATE_MEDIATE_H
#define WRIT_MEDIATE_MEDIATE_H

#include "cap/set.h"
#include "plan/event.h"

/* Configuration of one mediator. All pointers are borrowed and must outlive the mediator. */
struct mediate_options {
	const struct cap_set *set; /* the policy; its paths are physical */
	/* Realm of the capabilities; part of the text of each request. */
	struct sv realm;
	struct sv workspace; /* physical path of the workspace; empty if there is none */
	/* Protected names whose protection the policy lifts, such as ".git/config". */
	const struct sv *opens;
	size_t opens_n;
	/*
	 * Directories that belong to the session alone, as absolute paths that the session sees:
	 * "/tmp", its HOME, its state directories. Landlock allows the session to write files in
	 * these directories, so the mediator lets calls about them through to the kernel.
	 */
	const struct sv *private_dirs;
	size_t private_dirs_n;
	/*
	 * shared_dirs: directories of the session with files of the host mounted further below.
	 * host_roots: paths of the files of the host. Everything in shared_dirs outside host_roots
	 * belongs to the session and needs no rule. The mediator performs the operations there,
	 * because Landlock cannot distinguish the session's files from the host's.
	 */
	const struct sv *shared_dirs, *host_roots;
	size_t shared_dirs_n, host_roots_n;
	/* Directory that replaces /dev/shm in paths of callers; empty: no replacement. */
	struct sv shm;
	const struct sv *closed_dirs; /* physical directories where writ keeps its own files */
	size_t closed_dirs_n;
	bool own_mounts; /* tier A: the target processes have a root directory of their own */
	/* Let every call through to the kernel, and report the calls that would be denied. */
	bool observe_only;
	bool no_exec; /* the policy says `shell none`: refuse every program after the first */
	/*
	 * With TRAP_READ: trees in which rules decide about opens for reading, and the mediator
	 * performs these opens. Without @read_all, Landlock must allow no reading in these trees,
	 * and the mediator lets opens for reading elsewhere through.
	 */
	const struct sv *read_roots;
	size_t read_roots_n;
	/*
	 * Landlock allows reading in read_roots, so that programs in these trees can be run. The
	 * mediator then lets no open for reading through, wherever the path leads: the caller could
	 * change the path in its memory and read a hidden file.
	 */
	bool read_all;
	/*
	 * With @read_all in the host's namespaces: paths that the session may read without a rule.
	 */
	const struct sv *read_fixed;
	size_t read_fixed_n;
	/*
	 * Path of the lock file that all mediators of one user share, so that an object that one
	 * mediator has checked does not change before that mediator acts. NULL: no lock, because no
	 * other mediator runs.
	 */
	const char *order;
	int route; /* socket connected to egress, if the session uses the host's network; 0: none */
	/* The filter traps umask(), so the mediator may cache umasks of callers. */
	bool umask_trapped;
};

struct mediator;

/*
 * Answers the first call at @listener, which must be the exec that writ-init makes to start a
 * command. Lets this exec through. Returns 1 with *@ret_event set, or 0 if the caller has died.
 * Refuses any other call with EPERM and returns an error.
 */
must_check int mediate_first(int listener, struct mediate_event *ret_event, struct writ_err *err);

must_check int mediate_new(const struct mediate_options *opt, struct mediator **ret_m,
			   struct writ_err *err);
void mediate_free(struct mediator *m);

/* Adds the seccomp listener @fd to the mediator and takes ownership of @fd. */
must_check int mediate_add(struct mediator *m, int fd, struct writ_err *err);

/*
 * mediate_grant() adds the capability of a live grant to the policy; mediate_revoke() removes it.
 * SECURITY: after an error the mediator must not serve another call: its list of writable roots may
 * be incomplete, and protected names below a missing root would not be protected.
 */
must_check int mediate_grant(struct mediator *m, const struct cap_entry *e, struct writ_err *err);
must_check int mediate_revoke(struct mediator *m, const struct cap_entry *e, struct writ_err *err);

/*
 * Serves calls until one call produces an event, @timeout_ms have passed (-1: no limit), @wake (-1:
 * none) is readable, a signal arrives, or no listener is left. With @timeout_ms 0, serves only the
 * calls that wait already. Returns 1 with *@ret_event set, 0 if there is no event, or an error. A
 * call that the event refuses is answered by the next mediate_wait(), so that the caller of this
 * function can record the event first. Closes listeners whose processes have all exited.
 */
must_check int mediate_wait(struct mediator *m, int wake, int timeout_ms,
			    struct mediate_event *ret_event, struct writ_err *err);

#endif
