/*
 * job_priv.h - an operation that may block, run by a thread of its own
 *
 * A job owns everything it uses and answers its notification itself, so the mediator goes on with
 * other calls. The mediator only counts running jobs.
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
	/* JOB_SEND on a stream socket: may send fewer bytes than asked, needs no address. */
	bool stream;
	bool many; /* JOB_SEND of a sendmmsg(): never handed to a thread */
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
	int fds[256]; /* descriptors that the control data in @control passes on */
	size_t fds_n;
	int keep; /* descriptor of the file that @addr names through /proc/self/fd */
	atomic_int *workers;
};

struct job *mediate_job_new(struct call *c, enum job_kind kind);
/*
 * Starts a thread for @j and takes ownership of @j in every case. Returns ANSWER_LATER or -errno.
 */
int mediate_job_start(struct call *c, struct job *j);
/* Calls sendmsg() with the address, bytes and control data of the job, and additional @flags. */
ssize_t mediate_job_send(struct job *j, int flags);
void mediate_job_free(struct job *j);
/* Drops the mediator's reference to the counter; the last running job frees it. */
void mediate_workers_free(atomic_int *workers);

#endif
