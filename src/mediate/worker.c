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

#include "base/banned.h"

/*
 * What may block, in a thread of its own: connecting, sending, opening a pipe. A job owns all
 * it uses and answers by itself; the mediator only counts how many there are.
 */

enum { STACK = 64 * 1024, ASK_MS = 16 };

struct job *job_new(struct call *c, enum job_kind kind)
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

void job_free(struct job *j)
{
	if (!j)
		return;
	scope_close(&j->listener);
	scope_close(&j->sock);
	scope_close(&j->keep);
	for (size_t i = 0; i < j->fds_n; i++)
		scope_close(&j->fds[i]);
	free(j->bytes);
	free(j->control);
	free(j);
}

/* A pipe, until somebody writes to it. */
static int64_t open_waiting(const struct job *j)
{
	char path[40];
	scoped_fd fd = -1;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", j->sock);
	fd = open(path, j->flags | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return notify_addfd(j->listener, j->id, fd, (unsigned)j->flags & O_CLOEXEC);
}

/*
 * A pipe, until somebody reads it. Not in one call: that one would count as a writer
 * after the target was interrupted, and nothing could end it.
 */
static int64_t open_asking(const struct job *j)
{
	char path[40];
	scoped_fd fd = -1;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", j->sock);
	for (unsigned ms = 1; fd < 0; ms = ms < ASK_MS ? ms * 2 : ms) {
		/* Before each: whoever reads next must not meet a writer that is gone. */
		if (!notify_valid(j->listener, j->id))
			return -EINTR;
		fd = open(path, j->flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (fd < 0 && errno != ENXIO)
			return -errno;
		if (fd < 0)
			sleep_ms(ms);
	}
	if (fcntl(fd, F_SETFL, j->flags) < 0)
		return -errno;
	return notify_addfd(j->listener, j->id, fd, (unsigned)j->flags & O_CLOEXEC);
}

static int64_t run(struct job *j)
{
	struct iovec iov = { j->bytes, j->bytes_n };
	struct msghdr msg = { .msg_name = j->addr_n ? j->addr : NULL,
			      .msg_namelen = j->addr_n,
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = j->control_n ? j->control : NULL,
			      .msg_controllen = j->control_n };
	ssize_t n;

	if (j->kind == JOB_CONNECT) {
		struct sockaddr_storage to;

		memset(&to, 0, sizeof(to));
		memcpy(&to, j->addr, j->addr_n);
		return connect(j->sock, (const struct sockaddr *)&to, j->addr_n) < 0 ? -errno : 0;
	}
	if (j->kind == JOB_OPEN)
		return open_waiting(j);
	if (j->kind == JOB_OPEN_TO_WRITE)
		return open_asking(j);
	n = sendmsg(j->sock, &msg, j->flags | MSG_NOSIGNAL);
	return n < 0 ? -errno : n;
}

/* The counter has one more reference for as long as a worker may touch it. */
static void leave(atomic_int *workers)
{
	if (atomic_fetch_sub(workers, 1) == 1)
		free(workers);
}

static void *work(void *arg)
{
	struct job *j = arg;
	atomic_int *workers = j->workers;
	const int64_t r = run(j);

	notify_answer(j->listener, j->id, r < 0 ? 0 : r, r < 0 ? (int)-r : 0, false);
	job_free(j);
	leave(workers);
	return NULL;
}

int job_start(struct call *c, struct job *j)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int r;

	if (j->listener < 0 || j->sock < 0 || atomic_load(c->m->workers) > WORKERS) {
		job_free(j);
		return -EAGAIN;
	}
	if (pthread_attr_init(&attr) != 0) {
		job_free(j);
		return -ENOMEM;
	}
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, STACK);
	(void)atomic_fetch_add(c->m->workers, 1);
	/* It may run anywhere. Signals are for the supervisor's own thread. */
	notify_roam(c->m);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&thread, &attr, work, j);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	(void)pthread_attr_destroy(&attr);
	if (r != 0) {
		(void)atomic_fetch_sub(c->m->workers, 1);
		job_free(j);
		return -EAGAIN;
	}
	return ANSWER_LATER;
}

void workers_free(atomic_int *workers)
{
	if (workers)
		leave(workers);
}
