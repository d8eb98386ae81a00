/*
 * job_priv.h - an operation that may block, run by a thread of its own
 *
 * A job owns everything that it uses and answers its notification itself, so the mediator can serve
 * other calls meanwhile. The mediator only counts running jobs.
 */
#ifndef WRIT_MEDIATE_JOB_PRIV_H
#define WRIT_MEDIATE_JOB_PRIV_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct call;

enum { WORKERS = 64 };
enum job_kind { JOB_NONE = 0, JOB_CONNECT, JOB_SEND, JOB_OPEN, JOB_OPEN_TO_WRITE };

struct job {
	enum job_kind kind;
	/*
	 * JOB_SEND: @sock is a stream, so the send may be shorter than asked and needs no address.
	 */
	bool stream;
	/* JOB_SEND: one message of sendmmsg(), which never starts a thread */
	bool many;
	int listener;
	int sock; /* socket, or O_PATH descriptor of a named pipe */
	uint64_t id;
	int flags;
	unsigned char addr[128];
	uint32_t addr_n;
	char *bytes;
	size_t bytes_n;
	char *control;
	size_t control_n;
	int fds[256]; /* mediator's duplicates of the descriptors that @control passes on */
	size_t fds_n;
	int keep; /* descriptor of the file that @addr names through /proc/self/fd */
	atomic_int *workers;
};

struct job *mediate_job_new(struct call *c, enum job_kind kind);
/*
 * Starts a thread for @j and takes ownership of @j in every case. Returns ANSWER_LATER or -errno.
 */
int mediate_job_start(struct call *c, struct job *j);
/* Calls sendmsg() with the address, bytes, control data and flags of the job, and with @flags. */
ssize_t mediate_job_send(struct job *j, int flags);
void mediate_job_free(struct job *j);
/* Drops one reference to the counter of running jobs; the last reference frees it. */
void mediate_workers_free(atomic_int *workers);

#endif
