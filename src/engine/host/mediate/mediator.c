#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "mediate/job_priv.h"
#include "mediate/op_priv.h"
#include "mediate/order_priv.h"

#include "base/banned.h"

enum { KEEP_MAX = 64 * 1024 * 1024, SCRATCH_MAX = 1024 * 1024, FIXED_FDS = 2 };

/* --- Create and free --- */

/*
 * SECURITY: a mediator that was created before a fork holds the /proc/self/fd of the parent
 * process, in which the same numbers name other files. Reopen /proc/self/fd in the process that
 * serves the calls.
 */
static int open_self(struct mediator *m, struct writ_err *err)
{
	const pid_t pid = getpid();

	if (m->pid == pid)
		return 0;
	fd_scope_close(&m->self);
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
	return order_open(m, err) < 0 ? err->code : open_self(m, err);
}

/* Enlarges the mediator's copy of the capabilities, which live grants extend, to @room entries. */
static int set_caps(struct mediator *m, size_t room, struct writ_err *err)
{
	struct cap_entry *more = reallocarray(m->rules.caps, room + 1, sizeof(*more));

	if (!more)
		return writ_nomem(err);
	m->rules.caps = more;
	m->rules.set.caps.v = more;
	m->rules.set.caps.room = room;
	return 0;
}

static int index_set(struct mediator *m, struct writ_err *err)
{
	arena_clear(&m->index);
	m->index = (struct arena)ARENA_INIT(KEEP_MAX);
	if (!cap_set_index(&m->index, &m->rules.set))
		return writ_nomem(err);
	return mediate_index_roots(m, err);
}

static struct mediator *alloc(const struct mediate_options *opt)
{
	struct mediator *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->opt = *opt;
	m->keep = (struct arena)ARENA_INIT(KEEP_MAX);
	m->index = (struct arena)ARENA_INIT(KEEP_MAX);
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
	m->rules.set = *opt->set;
	m->rules.policy_caps = opt->set->caps.n;
	r = set_caps(m, opt->set->caps.n, err);
	if (r == 0 && m->rules.policy_caps)
		memcpy(m->rules.caps, opt->set->caps.v,
		       m->rules.policy_caps * sizeof(*m->rules.caps));
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

/*
 * Drops the cached descriptors of callers' /proc entries. The caches only save time; the mediator
 * reopens these descriptors on demand.
 */
static void drop_caches(struct mediator *m)
{
	for (size_t i = 0; i < TASKS; i++)
		task_clear(&m->tasks[i]);
	for (size_t i = 0; i < COMMS; i++)
		task_comm_clear(&m->comms[i]);
}

void mediate_free(struct mediator *m)
{
	if (!m)
		return;
	notify_unpin(m);
	for (size_t i = 0; i < SHADOWS; i++)
		shadow_clear(m, &m->shadows[i]);
	drop_caches(m);
	endpoint_clear(m);
	for (size_t i = 0; i < m->listeners_n; i++)
		fd_scope_close(&m->listeners[i]);
	for (size_t i = 0; i < m->rules.roots_n; i++)
		free(m->rules.roots[i].path);
	free(m->rules.roots);
	free(m->rules.caps);
	fd_scope_close(&m->self);
	fd_scope_close(&m->proc);
	fd_scope_close(&m->root);
	fd_scope_close(&m->jail);
	fd_scope_close(&m->inotify);
	fd_scope_close(&m->order);
	arena_clear(&m->keep);
	arena_clear(&m->index);
	arena_clear(&m->scratch);
	buf_clear(&m->text);
	mediate_workers_free(m->workers);
	free(m);
}

int mediate_add(struct mediator *m, int fd, struct writ_err *err)
{
	scoped_fd owned = fd;

	if (m->listeners_n == LISTENERS)
		return writ_fail(err, WRIT_E_LIMIT, 0, "more than %d listeners", LISTENERS);
	notify_sync_wakeup(fd);
	m->started[m->listeners_n] = false;
	m->listeners[m->listeners_n++] = fd_take(&owned);
	return 0;
}

int mediate_grant(struct mediator *m, const struct cap_entry *e, struct writ_err *err)
{
	struct cap_entry add = { .rule = e->rule };
	int r = cap_parse(&m->keep, CAP_GRANT, e->cap.text, &add.cap, err);

	if (r == 0)
		r = set_caps(m, m->rules.set.caps.n + 1, err);
	if (r < 0)
		return r;
	m->rules.caps[m->rules.set.caps.n++] = add;
	/* SECURITY: the kernel reuses device numbers of unmounted file systems. */
	m->devices_n = 0;
	return index_set(m, err);
}

int mediate_revoke(struct mediator *m, const struct cap_entry *e, struct writ_err *err)
{
	size_t at = m->rules.set.caps.n;

	/* Remove one matching entry only: another grant may have the same text. */
	while (at > m->rules.policy_caps && !sv_eq(m->rules.caps[at - 1].cap.text, e->cap.text))
		at--;
	if (at > m->rules.policy_caps) {
		m->rules.set.caps.n--;
		memmove(m->rules.caps + at - 1, m->rules.caps + at,
			(m->rules.set.caps.n - at + 1) * sizeof(*m->rules.caps));
	}
	m->rules.revoked = true;
	return index_set(m, err);
}

/* --- Serve calls --- */

static int64_t install_fd(struct call *c, int r)
{
	int n;

	if (r != ANSWER_FD)
		return r;
	n = notify_addfd_pinned(c);
	fd_scope_close(&c->fd);
	return n;
}

/*
 * Sends the result of an op_*() to the caller. A refusal with an event waits in @refusal until the
 * next mediate_wait(). An observing mediator lets every call through.
 */
static void send_answer(struct call *c, int r)
{
	struct mediator *m = c->m;
	int64_t v;

	if (m->opt.observe_only && r != ANSWER_GONE) {
		fd_scope_close(&c->fd);
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
	v = install_fd(c, r);
	if (v < 0 && m->has_event)
		m->refusal = (struct refusal){ c->listener, (int)-v, c->id };
	else
		notify_answer(c->listener, c->id, v < 0 ? 0 : v, v < 0 ? (int)-v : 0, false);
}

/* Refuses the call whose event the last mediate_wait() returned. */
static void send_refusal(struct mediator *m)
{
	if (m->refusal.sys)
		notify_answer(m->refusal.listener, m->refusal.id, 0, m->refusal.sys, false);
	m->refusal = (struct refusal){ 0 };
}

/* Runs the op_*() function for the call, with the lock between mediators if the call needs it. */
static int run_op(struct call *c)
{
	const bool ordered = order_needed(c->nr, c->arg);
	int r = ordered ? order_lock(c->m) : 0;

	if (r < 0)
		return r;
	c->row = op_find(c->nr);
	c->op = c->row->op;
	c->dir = c->row->form == OP_AT ? reg_int(*c->arg++) : AT_FDCWD;
	c->flags = c->row->flags_at ? c->arg[c->row->flags_at] : c->row->flags;
	/* mediate_path_of_fd() compares with the callers' root. Without it, "/" is refused. */
	(void)task_root(c);
	r = c->row->fn(c);
	/* EMFILE: no descriptor is left. Drop the caches, so that the next call can succeed. */
	if (r == -EMFILE)
		drop_caches(c->m);
	if (ordered)
		order_unlock(c->m);
	return r;
}

static void serve(struct mediator *m, int listener, bool *started)
{
	struct call c = { .m = m, .listener = listener, .started = *started, .fd = -1 };
	const int got = notify_recv(m, listener);
	int r = -ENOSYS;

	if (got < 0)
		return;
	c.id = m->req.id;
	c.tid = (pid_t)m->req.pid;
	if (c.tid != m->pin.last)
		notify_unpin(m);
	c.nr = m->req.data.nr;
	c.arg = m->req.data.args;
	m->has_event = false;
	/* Refuse with ENOSYS a call of another architecture or of a process that is not visible. */
	if (notify_arch_ok(&m->req) && c.tid > 0)
		r = run_op(&c);
	*started = c.started || c.inspected;
	send_answer(&c, r);
}

/*
 * Serves the listeners that poll() reported and drops those without processes. Returns true as soon
 * as one call produces an event.
 */
static bool serve_ready(struct mediator *m, const struct pollfd *fds, size_t n)
{
	for (size_t i = n; i-- > 0;) {
		if (fds[i].revents & POLLIN) {
			serve(m, fds[i].fd, &m->started[i]);
			if (m->has_event)
				return true;
		} else if (fds[i].revents) {
			/* POLLHUP: the last process under this filter has exited. */
			fd_scope_close(&m->listeners[i]);
			m->listeners[i] = m->listeners[--m->listeners_n];
			m->started[i] = m->started[m->listeners_n];
		}
	}
	return false;
}

int mediate_wait(struct mediator *m, int wake, int timeout_ms, struct mediate_event *ret_event,
		 struct writ_err *err)
{
	const int64_t until = timeout_ms < 0 ? INT64_MAX : clock_monotonic_ms() + timeout_ms;
	struct pollfd fds[FIXED_FDS + LISTENERS];

	send_refusal(m);
	if (open_self(m, err) < 0)
		return err->code;
	for (;;) {
		const size_t n = m->listeners_n;
		int r;

		fds[0] = (struct pollfd){ .fd = wake, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = m->inotify, .events = POLLIN };
		for (size_t i = 0; i < n; i++)
			fds[FIXED_FDS + i] =
				(struct pollfd){ .fd = m->listeners[i], .events = POLLIN };
		if (n == 0 && wake < 0)
			return 0;
		r = poll(fds, FIXED_FDS + n, clock_ms_until(until));
		if (r < 0 && errno == EINTR)
			return 0;
		if (r < 0)
			return writ_fail(err, WRIT_E_SYS, errno, "poll");
		if (r == 0)
			return 0;
		m->has_event = false;
		/*
		 * Install closed shadows first: the program that wrote a shadow expects to find the
		 * file with this content when its next call returns. The program may also have
		 * exited after closing the shadow.
		 */
		if (fds[1].revents && order_lock(m) == 0) {
			shadow_handle_closed(m);
			order_unlock(m);
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
