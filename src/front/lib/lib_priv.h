/*
 * lib_priv.h - handles, policies, and the processes that run sessions for them
 *
 * Theory of operation
 *
 * Policies are read, checked and planned in the calling process; writ_restrict_self() confines the
 * calling process, too. A process of writ does everything else: the library starts the installed
 * program writ with the hidden verb serve-fd and one end of a socket, and sends requests in the
 * protocol of docs/control.md. The process of writ inherits the credentials and the umask of the
 * calling program and receives the descriptors that a request passes, and nothing else: threads,
 * signals, other descriptors and memory of the two processes are separate. The process of writ
 * exits when the calling program closes its end of the socket or dies.
 *
 * session.open carries the texts of a policy and the digest of the compiled policy. The process of
 * writ compiles the texts again and refuses if the digest differs. The process then builds the
 * sandbox and waits for proc.start; a pool is a list of processes that wait for proc.start.
 *
 * Reads:  writ/writ.h
 * Writes: nothing
 * Next:   each function of writ.h is in the file that is named after its subject
 */
#ifndef WRIT_LIB_LIB_PRIV_H
#define WRIT_LIB_LIB_PRIV_H

#include <pthread.h>
#include <sys/types.h>
#include <writ/writ.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "facts/facts.h"
#include "locate/locate.h"
#include "plan/plan.h"
#include "rpc/rpc.h"

/* A process of writ that runs a session for the library. */
struct lib_peer {
	pid_t pid;
	/* socket to the process, which exits when the library closes the socket */
	struct rpc_conn *conn;
};

/* peer.c: start and end a process of writ */
must_check int lib_peer_open(struct writ *w, struct lib_peer *ret, struct writ_err *err);
void lib_peer_close(struct lib_peer *p);
/*
 * Returns facts about this machine. The first call per handle asks a process of writ for the facts;
 * later calls reuse the answer.
 */
must_check int lib_facts(struct writ *w, struct host_facts *ret, struct writ_err *err);

/* program.c: opens the writ program at @path, or the installed one if @path is NULL */
must_check int lib_program_open(const char *path, int *ret_fd, struct writ_err *err);

struct writ {
	struct arena arena;
	struct find_where where;
	char **environ;
	/* descriptor of the writ program; -1: not found, and .no_program has the reason */
	int program;
	struct writ_err no_program;
	pthread_mutex_t lock; /* protects .has_facts and .facts */
	bool has_facts;
	struct host_facts facts;
};

struct writ_policy {
	struct writ *w;
	struct arena arena;
	struct find_input in;
	enum plan_tier tier;
	struct diags diags;
	struct policy *policy;
	struct buf open; /* the parameters of session.open, as JSON */
};

/*
 * pool.c: takes from @pool a process whose sandbox is ready or under construction, or starts such a
 * process. *@ret_id is the id of the unanswered session.open request; 0: answered.
 */
must_check int lib_pool_take(struct writ_policy *p, struct writ_pool *pool, struct lib_peer *ret,
			     int64_t *ret_id, struct writ_err *err);
/*
 * Starts a new process for each one that was taken from @pool, which may be NULL. Call after the
 * caller's own command has started, so that the two starts do not compete.
 */
void lib_pool_refill(struct writ_pool *pool);

/* handle.c: errors, memory and options of the public functions */
int lib_error(struct writ_error *to, const struct writ_err *from);
int lib_argument(struct writ_error *to, const char *what);
/* Returns zeroed memory from calloc(); NULL with the reason in @err if memory ran out. */
must_check void *lib_new(size_t size, struct writ_error *err);
/*
 * Copies the options struct @from to @to and sets the rest of @to to zero. Returns false if the
 * size that @from states is one that this library cannot handle.
 */
must_check bool lib_options(void *to, size_t room, size_t least, const void *from);
must_check int lib_text(struct buf *b, char **ret, struct writ_err *err);

#endif
