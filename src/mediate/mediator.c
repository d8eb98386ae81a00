#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "base/banned.h"

enum { KEEP_MAX = 64 * 1024 * 1024, SCRATCH_MAX = 1024 * 1024, FIXED_FDS = 2 };

/* --- Making one --- */

/* SECURITY: after a fork /proc/self/fd must be the new process's, or names would lie. */
static int open_self(struct mediator *m, struct writ_err *err)
{
	const pid_t pid = getpid();

	if (m->pid == pid)
		return 0;
	scope_close(&m->self);
	m->self = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (m->self < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "open /proc/self/fd");
	m->pid = pid;
	return 0;
}

static int open_handles(struct mediator *m, struct writ_err *err)
{
	m->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	m->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (m->proc < 0 || m->root < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "open /proc");
	m->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (m->inotify < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "inotify");
	return order_open(m, err) < 0 ? err->code : open_self(m, err);
}

/* Our own copy of the entries, so that live grants can be added. */
static int set_caps(struct mediator *m, size_t room, struct writ_err *err)
{
	struct cap_entry *more = reallocarray(m->caps, room + 1, sizeof(*more));

	if (!more)
		return writ_nomem(err);
	m->caps = more;
	m->set.caps.v = more;
	m->set.caps.room = room;
	return 0;
}

static int index_set(struct mediator *m, struct writ_err *err)
{
	if (!cap_set_index(&m->keep, &m->set))
		return writ_nomem(err);
	return roots_find(m, err);
}

static struct mediator *alloc(const struct mediate_options *opt)
{
	struct mediator *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->opt = *opt;
	m->keep = (struct arena)ARENA_INIT(KEEP_MAX);
	m->scratch = (struct arena)ARENA_INIT(SCRATCH_MAX);
	m->text = (struct buf)BUF_INIT(CAP_TEXT_MAX);
	m->self = m->proc = m->root = m->jail = m->inotify = m->order = -1;
	m->is_root = geteuid() == 0;
	for (size_t i = 0; i < TASKS; i++)
		m->tasks[i].proc = m->tasks[i].status = m->tasks[i].pidfd = -1;
	m->workers = malloc(sizeof(*m->workers));
	if (m->workers)
		atomic_init(m->workers, 1);
	return m;
}

int mediate_new(const struct mediate_options *opt, struct mediator **ret_m, struct writ_err *err)
{
	struct mediator *m = alloc(opt);
	int r;

	if (!m || !m->workers) {
		mediate_free(m);
		return writ_nomem(err);
	}
	m->set = *opt->set;
	m->policy_caps = opt->set->caps.n;
	r = set_caps(m, opt->set->caps.n, err);
	if (r == 0 && m->policy_caps)
		memcpy(m->caps, opt->set->caps.v, m->policy_caps * sizeof(*m->caps));
	if (r == 0)
		r = index_set(m, err);
	if (r == 0)
		r = open_handles(m, err);
	if (r < 0) {
		mediate_free(m);
		return r;
	}
	*ret_m = m;
	return 0;
}

/* What is only kept to save time. */
static void forget(struct mediator *m)
{
	for (size_t i = 0; i < TASKS; i++)
		task_drop(&m->tasks[i]);
	for (size_t i = 0; i < COMMS; i++)
		comm_drop(&m->comms[i]);
}

void mediate_free(struct mediator *m)
{
	if (!m)
		return;
	notify_roam(m);
	for (size_t i = 0; i < SHADOWS; i++)
		shadow_drop(m, &m->shadows[i]);
	forget(m);
	bound_clear(m);
	for (size_t i = 0; i < m->listeners_n; i++)
		scope_close(&m->listeners[i].fd);
	for (size_t i = 0; i < m->roots_n; i++)
		free(m->roots[i].path);
	free(m->roots);
	free(m->caps);
	scope_close(&m->self);
	scope_close(&m->proc);
	scope_close(&m->root);
	scope_close(&m->jail);
	scope_close(&m->inotify);
	scope_close(&m->order);
	arena_clear(&m->keep);
	arena_clear(&m->scratch);
	buf_clear(&m->text);
	workers_free(m->workers);
	free(m);
}

int mediate_add(struct mediator *m, int fd, struct writ_err *err)
{
	scoped_fd owned = fd;

	if (m->listeners_n == LISTENERS)
		return writ_fail(err, WRIT_E_LIMIT, 0, "more than %d listeners", LISTENERS);
	notify_wake_here(fd);
	m->listeners[m->listeners_n++].fd = take_fd(&owned);
	return 0;
}

int mediate_grant(struct mediator *m, const struct cap_entry *e, struct writ_err *err)
{
	struct cap_entry add = { .rule = e->rule };
	int r = cap_parse(&m->keep, CAP_GRANT, e->cap.text, &add.cap, err);

	if (r == 0)
		r = set_caps(m, m->set.caps.n + 1, err);
	if (r < 0)
		return r;
	m->caps[m->set.caps.n++] = add;
	return index_set(m, err);
}

void mediate_revoke(struct mediator *m, const struct cap_entry *e)
{
	struct writ_err err = { 0 };
	size_t at = m->set.caps.n;

	/* One of them: another grant may have the same. */
	while (at > m->policy_caps && !sv_eq(m->caps[at - 1].cap.text, e->cap.text))
		at--;
	if (at > m->policy_caps) {
		m->set.caps.n--;
		memmove(m->caps + at - 1, m->caps + at,
			(m->set.caps.n - at + 1) * sizeof(*m->caps));
	}
	m->revoked = true;
	/* SECURITY: an old index fits no more and is not used; a root too many only protects. */
	if (index_set(m, &err) < 0)
		m->set.look_caps = NULL;
}

/* --- Serving --- */

static int64_t answer(struct call *c, int r)
{
	int n;

	if (r != ANSWER_FD)
		return r;
	n = notify_addfd_near(c);
	scope_close(&c->fd);
	return n;
}

/* Events name the errno that was really sent. */
static void finish(struct call *c, int r)
{
	struct mediator *m = c->m;
	int64_t v;

	if (m->opt.observe_only && r != ANSWER_GONE) {
		scope_close(&c->fd);
		if (m->has_event)
			m->event.sys = 0;
		notify_answer(c->listener, c->id, 0, 0, true);
		return;
	}
	if (r == ANSWER_LATER || r == ANSWER_GONE)
		return;
	if (r == ANSWER_CONTINUE) {
		notify_answer(c->listener, c->id, 0, 0, true);
		return;
	}
	v = answer(c, r);
	notify_answer(c->listener, c->id, v < 0 ? 0 : v, v < 0 ? (int)-v : 0, false);
}

static int run_op(struct call *c)
{
	const bool ordered = order_needed(c->nr, c->arg);
	const op_fn fn = op_find(c->nr, &c->op);
	int r = ordered ? order_begin(c->m) : 0;

	if (r < 0)
		return r;
	r = fn(c);
	/* What is kept open may be what the next one needs. */
	if (r == -EMFILE)
		forget(c->m);
	if (ordered)
		order_end(c->m);
	return r;
}

static void serve(struct mediator *m, int listener)
{
	struct call c = { .m = m, .listener = listener, .fd = -1 };
	const int got = notify_recv(m, listener);
	int r = -ENOSYS;

	if (got < 0)
		return;
	c.id = m->req.id;
	c.tid = (pid_t)m->req.pid;
	if (c.tid != m->last)
		notify_roam(m);
	c.nr = m->req.data.nr;
	c.arg = m->req.data.args;
	m->has_event = false;
	if (notify_is_ours(&m->req) && c.tid > 0)
		r = run_op(&c);
	finish(&c, r);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t) < 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Serves what poll() found, until there is something to report. */
static bool serve_ready(struct mediator *m, const struct pollfd *fds, size_t n)
{
	for (size_t i = n; i-- > 0;) {
		if (fds[i].revents & POLLIN) {
			serve(m, fds[i].fd);
			if (m->has_event)
				return true;
		} else if (fds[i].revents) {
			/* Everybody who could ask is gone. */
			scope_close(&m->listeners[i].fd);
			m->listeners[i] = m->listeners[--m->listeners_n];
		}
	}
	return false;
}

static int wait_ms(int timeout_ms, uint64_t until)
{
	const uint64_t now = timeout_ms > 0 ? now_ms() : 0;

	if (timeout_ms <= 0)
		return timeout_ms;
	return now >= until ? 0 : (int)(until - now);
}

int mediate_wait(struct mediator *m, int wake, int timeout_ms, struct mediate_event *ret_event,
		 struct writ_err *err)
{
	const uint64_t until = timeout_ms > 0 ? now_ms() + (uint64_t)timeout_ms : 0;
	struct pollfd fds[FIXED_FDS + LISTENERS];

	if (open_self(m, err) < 0)
		return err->code;
	for (;;) {
		const size_t n = m->listeners_n;
		int r;

		fds[0] = (struct pollfd){ .fd = wake, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = m->inotify, .events = POLLIN };
		for (size_t i = 0; i < n; i++)
			fds[FIXED_FDS + i] =
				(struct pollfd){ .fd = m->listeners[i].fd, .events = POLLIN };
		if (n == 0 && wake < 0)
			return 0;
		r = poll(fds, FIXED_FDS + n, wait_ms(timeout_ms, until));
		if (r < 0 && errno == EINTR)
			return 0;
		if (r < 0)
			return writ_fail(err, WRIT_E_SYS, errno, "poll");
		if (r == 0)
			return 0;
		m->has_event = false;
		/*
		 * First, so that what a program has just written is there when it goes on, and
		 * also when it was its last act.
		 */
		if (fds[1].revents && order_begin(m) == 0) {
			shadow_run(m);
			order_end(m);
		}
		if (fds[0].revents && !m->has_event)
			return 0;
		if (m->has_event || serve_ready(m, fds + FIXED_FDS, n)) {
			*ret_event = m->event;
			m->has_event = false;
			return 1;
		}
		if (timeout_ms == 0 || m->listeners_n == 0)
			return 0;
	}
}
