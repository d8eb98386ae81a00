/*
 * jail.h - the supervisor's side of a jail: start writ-init, send it programs, receive its messages
 *
 * Theory of operation
 *
 * A jail is one writ-init process and all its descendants. jail_start() starts writ-init with two
 * sockets: one to pid 1 of the jail, one (tier A) to the keeper, a process that stays in the outer
 * namespaces and can still change mounts. Messages (program.h) are packets with descriptors. A
 * program or a command is sent as a sealed memfd without pointers, which struct jail_writer builds.
 *
 * Invariants
 *   - The writ-init that runs is byte for byte the one embedded in this binary.
 *   - The kernel reports the pid of the sender of a message (SCM_CREDENTIALS), not the sender.
 *   - Closing the sockets ends the jail: pid 1 kills all processes of the jail at the end of file.
 *
 * Reads:  messages of writ-init and of the keeper
 * Writes: jail programs and commands, as sealed memfds
 * Next:   compile/ writes programs, host/ starts jails and runs commands in them
 */
#ifndef WRIT_JAIL_JAIL_H
#define WRIT_JAIL_JAIL_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "jail/program.h"

/* A started writ-init. JAIL_INIT stands for a closed jail. */
struct jail {
	pid_t pid; /* child of the supervisor: the keeper in tier A, pid 1 of the jail in tier B */
	pid_t init;  /* pid 1 of the jail in the supervisor's pid namespace; 0 until JAIL_HELLO */
	int session; /* socket to pid 1 of the jail */
	int keeper;  /* socket to the keeper; -1 in tier B */
	bool prepared; /* the supervisor has sent the program of compile_early() */
	bool waits;    /* writ-init creates pid 1 only after jail_join() */
};
#define JAIL_INIT                                                                                  \
	{                                                                                          \
		.session = -1, .keeper = -1                                                        \
	}

/*
 * Starts writ-init, which in tier A creates its namespaces at once and then waits for a program. So
 * the supervisor may call this function before reading the policy. @fail_at is the step that must
 * fail, for the fault suite. If the supervisor is root, a writ-init of tier A waits for jail_join()
 * first, so that it can start pid 1 inside a cgroup.
 */
must_check int jail_start(bool own_namespaces, unsigned fail_at, struct jail *ret,
			  struct writ_err *err);
/*
 * Lets a writ-init that waits create pid 1 in the cgroups whose directories are @dirs. The first
 * @unified (0 or 1) directories belong to the unified hierarchy. Moving a running process makes the
 * kernel wait for all processors; starting a process in a cgroup does not. SECURITY: writ-init may
 * fail to start pid 1 in the cgroups. A caller that relies on the cgroups must check the membership
 * of pid 1.
 */
void jail_join(struct jail *j, const int *dirs, size_t n, size_t unified);
/*
 * Kills writ-init, the child of the supervisor, with SIGKILL and reaps it. In tier A no process of
 * the jail survives. In tier B the remaining processes become children of the supervisor, if the
 * supervisor is a subreaper. Does nothing for a closed jail.
 */
void jail_kill(struct jail *j);
/* Kills the jail like jail_kill() and closes its sockets. */
void jail_close(struct jail *j);
/*
 * Closes the sockets of the jail without waiting until the kernel has removed the namespaces:
 * writ-init exits at the end of file on its sockets. For a supervisor that is about to exit.
 */
void jail_leave(struct jail *j);

must_check int jail_send(int socket, const struct jail_message *m, const int *fds, size_t fds_n,
			 struct sv text, struct writ_err *err);
/*
 * Receives a message. Returns 1, 0 at the end of file, or an error. *@ret_fd is -1 or the first
 * descriptor of the message, which the caller owns; *@ret_pid is the sender in the supervisor's pid
 * namespace, or 0.
 */
must_check int jail_receive(int socket, struct jail_message *ret, int *ret_fd, pid_t *ret_pid,
			    struct writ_err *err);

/*
 * Like jail_receive(), but accepts up to JAIL_SOCKETS_MAX descriptors. *@ret_n is their number; the
 * caller owns all of them. Fills *@ret_probed if the message is JAIL_PROBED.
 */
must_check int jail_receive_many(int socket, struct jail_message *ret, int *ret_fds,
				 size_t *ret_n, pid_t *ret_pid, struct jail_probed *ret_probed,
				 struct writ_err *err);

/* --- write.c: bytes without pointers --- */

/* A program or command under construction. The writer copies strings and tables. */
struct jail_writer {
	struct arena *arena;
	VEC(struct jail_mount) mounts;
	VEC(struct jail_rule) rules;
	VEC(struct jail_rlimit) rlimits;
	VEC(struct jail_listen) listens;
	VEC(struct jail_probe) probes;
	VEC(struct jail_span) args, env;
	/*
	 * Strings, each followed by a NUL; spans are offsets into the pool until the program is
	 * sealed.
	 */
	struct buf pool;
};
#define JAIL_WRITER_INIT(a)                                                                        \
	{                                                                                          \
		.arena = (a), .pool = BUF_INIT(JAIL_MAX)                                           \
	}

struct jail_span jail_put(struct jail_writer *w, struct sv s);
must_check bool jail_put_mount(struct jail_writer *w, enum jail_op op, struct sv src, struct sv dst,
			       uint64_t arg, unsigned flags);
must_check bool jail_put_rule(struct jail_writer *w, struct sv path, uint64_t access,
			      unsigned flags);
must_check bool jail_put_rlimit(struct jail_writer *w, unsigned resource, uint64_t value);
must_check bool jail_put_listen(struct jail_writer *w, const struct jail_listen *l);
must_check bool jail_put_probe(struct jail_writer *w, const struct jail_probe *p, struct sv path);
must_check bool jail_put_arg(struct jail_writer *w, struct sv s);
must_check bool jail_put_env(struct jail_writer *w, struct sv name, struct sv value);

/* A seccomp filter. The writer does not copy filters, because filters are constant. */
struct jail_filter {
	const void *v;
	uint32_t n;
};

/*
 * The seccomp filters of a program. jail_seal_program() writes @head, the tables and strings of the
 * writer, and the filters into one sealed memfd.
 */
struct jail_filters {
	struct jail_filter base, traps, keeper;
};
must_check int jail_seal_program(struct jail_writer *w, struct jail_head *head,
				 const struct jail_filters *filters, int *ret_fd,
				 struct writ_err *err);
must_check int jail_seal_command(struct jail_writer *w, struct jail_command *c, int *ret_fd,
				 struct writ_err *err);
void jail_writer_clear(struct jail_writer *w);

/* SHA-256 of writ-init, computed during the build. */
extern const unsigned char jail_init_program_sha256[32];

/* Returns the name of a step as plan and explain print it: "namespaces", "landlock". */
const char *jail_step_name(enum jail_step step);

#endif
