/*
 * jail.h - the supervisor's side of a jail: start writ-init, talk to it
 *
 * Reads:  messages of writ-init and of the keeper
 * Writes: jail programs and commands, as sealed memfds
 * Next:   adapter/ writes programs, session/ starts jails and runs commands in them
 */
#ifndef WRIT_JAIL_JAIL_H
#define WRIT_JAIL_JAIL_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "jail/program.h"

/* One started writ-init. Closed when zero but for the descriptors, which are -1. */
struct jail {
	pid_t pid;   /* our child: the keeper in tier A, init itself in tier B */
	pid_t init;  /* pid 1 as we see it; 0 until it said hello */
	int session; /* to pid 1 */
	int keeper;  /* -1 in tier B */
	bool prepared; /* it was told of what every root has: host_prepare() */
	bool waits;    /* for jail_join(), before it makes pid 1 */
};
#define JAIL_INIT                                                                                  \
	{                                                                                          \
		.session = -1, .keeper = -1                                                        \
	}

/*
 * Starts writ-init, which makes its namespaces at once and then waits for a
 * program: this may be done before the policy has even been read. @fail_at is
 * for the fault suite. Where it can be put into a cgroup as it starts (we are root)
 * it waits for jail_join() first.
 */
must_check int jail_start(bool own_namespaces, unsigned fail_at, struct jail *ret,
			  struct writ_err *err);
/*
 * Lets one that waits go on, as a member of these cgroups: directories, of which
 * @unified (0 or 1) is the unified one and comes first. Moving a process later makes
 * the kernel wait for all processors; starting in one does not. SECURITY: it is tried,
 * not promised: who needs it to be there looks.
 */
void jail_join(struct jail *j, const int *dirs, size_t n, size_t unified);
/*
 * Ends it hard and reaps it. Nothing of a jail with namespaces is left; what lived in
 * another comes to us, if we are a subreaper. Safe on a closed one.
 */
void jail_kill(struct jail *j);
/* The same, and closes it. */
void jail_close(struct jail *j);
/*
 * The same without waiting until the kernel has taken its namespaces apart: it
 * ends by itself as nobody speaks to it any more. For those who end, too.
 */
void jail_leave(struct jail *j);

must_check int jail_send(int socket, const struct jail_message *m, const int *fds, size_t fds_n,
			 struct sv text, struct writ_err *err);
/*
 * One message. Returns 1, 0 at the end of file, or an error. *@ret_fd is -1 or the
 * caller's; *@ret_pid is the sender as we see it, or 0.
 */
must_check int jail_receive(int socket, struct jail_message *ret, int *ret_fd, pid_t *ret_pid,
			    struct writ_err *err);

/*
 * The same with up to JAIL_SOCKETS_MAX descriptors, *@ret_n of them; all are the caller's.
 * @ret_probed is filled if the message is PROBED.
 */
must_check int jail_receive_many(int socket, struct jail_message *ret, int *ret_fds,
				 size_t *ret_n, pid_t *ret_pid, struct jail_probed *ret_probed,
				 struct writ_err *err);

/* --- write.c: bytes without pointers --- */

/* A program or command under construction. Strings and tables are copied. */
struct jail_writer {
	struct arena *arena;
	VEC(struct jail_mount) mounts;
	VEC(struct jail_rule) rules;
	VEC(struct jail_rlimit) rlimits;
	VEC(struct jail_listen) listens;
	VEC(struct jail_probe) probes;
	VEC(struct jail_span) args, env;
	struct buf pool; /* strings, each with a NUL behind it; offsets are into it until sealed */
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

/* Filters are given apart because they are constant. */
struct jail_filter {
	const void *v;
	uint32_t n;
};

/* Puts it all into one sealed memfd. @head has what is not a table; strings are put. */
struct jail_filters {
	struct jail_filter base, traps, keeper;
};
must_check int jail_seal_program(struct jail_writer *w, struct jail_head *head,
				 const struct jail_filters *filters, int *ret_fd,
				 struct writ_err *err);
must_check int jail_seal_command(struct jail_writer *w, struct jail_command *c, int *ret_fd,
				 struct writ_err *err);
void jail_writer_clear(struct jail_writer *w);

/* SHA-256 of writ-init, made when it was built. */
extern const unsigned char jail_init_program_sha256[32];

/* "namespaces", "landlock": as plan and explain call the step. */
const char *jail_step_name(enum jail_step step);

#endif
