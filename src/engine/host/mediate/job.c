#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "mediate/job_priv.h"

#include "base/banned.h"

/* Threads for operations that may block: connecting a socket, sending, opening a named pipe. */

enum { STACK = 64 * 1024, ASK_MS = 16 };

struct job *mediate_job_new(struct call *c, enum job_kind kind)
{
	struct job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->kind = kind;
	j->id = c->id;
	j->sock = j->keep = -1;
	j->workers = c->m->workers;
	j->listener = fcntl(c->listener, F_DUPFD_CLOEXEC, 3);
	return j;
}

void mediate_job_free(struct job *j)
{
	if (!j)
		return;
	fd_scope_close(&j->listener);
	fd_scope_close(&j->sock);
	fd_scope_close(&j->keep);
	for (size_t i = 0; i < j->fds_n; i++)
		fd_scope_close(&j->fds[i]);
	free(j->bytes);
	free(j->control);
	free(j);
}

/*
 * Opens a named pipe for JOB_OPEN or JOB_OPEN_TO_WRITE and installs the descriptor in the caller.
 * For reading, open() waits for a writer. For writing, tries with O_NONBLOCK again and again until
 * the pipe has a reader: an open() that waits would count as a writer, and the mediator could not
 * cancel it after the caller was interrupted.
 */
static int64_t open_pipe(const struct job *j)
{
	char path[40];
	scoped_fd fd = -1;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", j->sock);
	if (j->kind == JOB_OPEN) {
		fd = open(path, j->flags | O_NOCTTY | O_CLOEXEC);
		if (fd < 0)
			return -errno;
	}
	for (unsigned ms = 1; fd < 0; ms = ms < ASK_MS ? ms * 2 : ms) {
		/*
		 * Check before each attempt that the caller still waits: a reader that opens the
		 * pipe later must not find a writer for which no caller waits.
		 */
		if (!notify_valid(j->listener, j->id))
			return -EINTR;
		fd = open(path, j->flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (fd < 0 && errno != ENXIO)
			return -errno;
		if (fd < 0)
			clock_sleep_ms(ms);
	}
	if (j->kind == JOB_OPEN_TO_WRITE && fcntl(fd, F_SETFL, j->flags) < 0)
		return -errno;
	return notify_addfd(j->listener, j->id, fd, (unsigned)j->flags & O_CLOEXEC);
}

ssize_t mediate_job_send(struct job *j, int flags)
{
	struct iovec iov = { j->bytes, j->bytes_n };
	struct msghdr msg = { .msg_name = j->addr_n ? j->addr : NULL,
			      .msg_namelen = j->addr_n,
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = j->control_n ? j->control : NULL,
			      .msg_controllen = j->control_n };

	return sendmsg(j->sock, &msg, j->flags | flags | MSG_NOSIGNAL);
}

static int64_t run_job(struct job *j)
{
	ssize_t n;

	if (j->kind == JOB_CONNECT) {
		struct sockaddr_storage to;

		memset(&to, 0, sizeof(to));
		memcpy(&to, j->addr, j->addr_n);
		return connect(j->sock, (const struct sockaddr *)&to, j->addr_n) < 0 ? -errno : 0;
	}
	if (j->kind == JOB_OPEN || j->kind == JOB_OPEN_TO_WRITE)
		return open_pipe(j);
	n = mediate_job_send(j, 0);
	return n < 0 ? -errno : n;
}

/* Each running job holds one reference to the counter, and so does the mediator. */
void mediate_workers_free(atomic_int *workers)
{
	if (workers && atomic_fetch_sub(workers, 1) == 1)
		free(workers);
}

static void *worker_main(void *arg)
{
	struct job *j = arg;
	atomic_int *workers = j->workers;
	const int64_t r = run_job(j);

	notify_answer(j->listener, j->id, r < 0 ? 0 : r, r < 0 ? (int)-r : 0, false);
	mediate_job_free(j);
	mediate_workers_free(workers);
	return NULL;
}

int mediate_job_start(struct call *c, struct job *j)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int r;

	if (j->listener < 0 || j->sock < 0 || atomic_load(c->m->workers) > WORKERS) {
		mediate_job_free(j);
		return -EAGAIN;
	}
	if (pthread_attr_init(&attr) != 0) {
		mediate_job_free(j);
		return -ENOMEM;
	}
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, STACK);
	(void)atomic_fetch_add(c->m->workers, 1);
	/*
	 * A new thread inherits affinity and signal mask. Let the job's thread run on any
	 * processor, and leave signals to the thread that starts it.
	 */
	notify_unpin(c->m);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&thread, &attr, worker_main, j);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	(void)pthread_attr_destroy(&attr);
	if (r != 0) {
		(void)atomic_fetch_sub(c->m->workers, 1);
		mediate_job_free(j);
		return -EAGAIN;
	}
	return ANSWER_LATER;
}
