#include "egress/egress_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "confine/confine.h"

#include "base/banned.h"

enum { EVENTS = 256 };

static const int calls[] = {
	SYS_accept4,	 SYS_brk,	  SYS_clock_gettime,   SYS_close,   SYS_connect,
	SYS_epoll_ctl,	 SYS_exit,	  SYS_exit_group,      SYS_fcntl,   SYS_futex,
	SYS_getpeername, SYS_getsockname, SYS_getsockopt,      SYS_madvise, SYS_mmap,
	SYS_mprotect,	 SYS_mremap,	  SYS_munmap,	       SYS_pipe2,   SYS_read,
	SYS_recvfrom,	 SYS_recvmsg,	  SYS_rt_sigreturn,    SYS_sendmsg, SYS_msync,
	SYS_sendto,	 SYS_setsockopt,  SYS_shutdown,	       SYS_splice,  SYS_write,
	SYS_epoll_pwait, SYS_getrandom,	  SYS_restart_syscall,
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
};

void egress_copy_text(char *to, size_t room, struct sv from)
{
	const size_t n = from.n < room ? from.n : room - 1;

	if (n)
		memcpy(to, from.p, n);
	to[n] = 0;
}

void egress_watch(struct egress *e, int fd, uint32_t events, void *what)
{
	struct epoll_event ev = { .events = events, .data = { .ptr = what } };

	/*
	 * epoll_ctl() fails only if the kernel has no memory or too many watches. The descriptor
	 * then never becomes ready, and the flow that uses the descriptor times out.
	 */
	(void)epoll_ctl(e->epoll, EPOLL_CTL_ADD, fd, &ev);
}

void egress_unwatch(struct egress *e, int fd)
{
	(void)epoll_ctl(e->epoll, EPOLL_CTL_DEL, fd, NULL);
}

void egress_rewatch(struct egress *e, int fd, uint32_t events, void *what)
{
	struct epoll_event ev = { .events = events, .data = { .ptr = what } };

	(void)epoll_ctl(e->epoll, EPOLL_CTL_MOD, fd, &ev);
}

void egress_wake(struct egress *e, uint64_t at_ms)
{
	if (at_ms < e->due_ms)
		e->due_ms = at_ms;
}

static void read_clock(struct egress *e)
{
	e->now_us = clock_monotonic_us();
	e->now_ms = e->now_us / 1000;
}

/*
 * Sends a message to the supervisor. SECURITY: without a supervisor no event is recorded, so
 * egress exits rather than act unrecorded.
 */
void egress_notify(struct egress *e, uint32_t type, uint32_t id, const void *text, size_t n)
{
	struct egress_message m; /* egress_send() sends only the used part of this struct */

	m.type = type;
	m.id = id;
	m.count = 0;
	m.text_n = (uint32_t)n;
	if (n)
		memcpy(m.text, text, n);
	if (egress_send(e->supervisor.fd, &m, NULL, 0) != 1)
		_exit(0);
}

void egress_event(struct egress *e, const struct egress_event *ev)
{
	egress_notify(e, EGRESS_EVENT, 0, ev, sizeof(*ev));
}

/* --- messages of the supervisor --- */

/*
 * Requests listeners for the ports of localhost that a live grant opened. Egress requests other
 * listeners when a program looks up their name, but programs connect to 127.0.0.1 without a lookup.
 */
static void open_localhost(struct egress *e)
{
	uint16_t ports[REACH_PORTS_MAX];
	const size_t n = reach_ports(&e->reach, SV("localhost"), ports);

	for (size_t i = 0; i < n; i++) {
		const struct reach_listener l = { .what = REACH_HOST,
						  .host = SV("localhost"),
						  .port = ports[i],
						  .addr = { 127, 0, 0, 1 } };

		if (reach_way(&e->reach, l.host, l.port) == REACH_CLOSED ||
		    !egress_bind(e, l.host, l.port) || e->listeners.n >= REACH_LISTENERS_MAX)
			continue;
		egress_add_listener(e, &l)->wanted = true;
		egress_request_binds(e);
	}
}

static void on_rule(struct egress *e, const struct egress_message *m)
{
	/*
	 * SECURITY: a message that cannot be parsed may be a revocation. Exit, rather than keep a
	 * grant that the operator revoked.
	 */
	if (!egress_rule_apply(m, &e->arena, &e->set))
		_exit(1);
	for (size_t i = 0; i < e->listeners.n; i++)
		if (e->listeners.v[i]->l.what == REACH_HOST)
			e->listeners.v[i]->way = (uint8_t)reach_way(
				&e->reach, e->listeners.v[i]->l.host, e->listeners.v[i]->l.port);
	open_localhost(e);
}

static bool is_revoked(const struct egress *e, const struct flow *f)
{
	return !f->publish && f->bill.entry < e->set.caps.n &&
	       e->set.caps.v[f->bill.entry].cap.action == CAP_NONE;
}

/* Ends tunnels, and refuses pending flows, whose grant was revoked. */
static void end_revoked(struct egress *e)
{
	struct flow *next;

	for (struct flow *f = e->flows; f; f = next) {
		next = f->next;
		if (is_revoked(e, f))
			flow_close(e, f, true, CAUSE_REVOKED);
	}
	for (struct flow *f = e->waiting; f; f = next) {
		next = f->next;
		if (is_revoked(e, f))
			flow_refuse(e, f, CAP_DENY, RULE_NONE, CAUSE_REVOKED);
	}
}

static void on_listeners(struct egress *e, uint32_t from, int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (from + i < e->listeners.n && e->listeners.v[from + i]->fd < 0)
			egress_open_listener(e, e->listeners.v[from + i], fds[i]);
		else
			close(fds[i]);
}

static void receive_supervisor(struct egress *e)
{
	struct egress_message m;
	int fds[EGRESS_FDS];
	size_t n;
	const int r = egress_receive(e->supervisor.fd, &m, fds, &n);

	if (r == 0)
		_exit(0);
	if (r < 0)
		return;
	switch ((enum egress_type)m.type) {
	case EGRESS_LISTENERS:
		on_listeners(e, m.id, fds, n);
		return;
	case EGRESS_BOUND:
		egress_bound(e, m.id, n ? fds[0] : -1);
		return;
	case EGRESS_RESOLVER:
		if (n != 1)
			_exit(1);
		e->resolver.fd = fds[0];
		egress_watch(e, e->resolver.fd, EPOLLIN, &e->resolver);
		dial_ask_all(e);
		return;
	case EGRESS_READER:
		if (n != 1)
			_exit(1);
		/* The socket of the new reader may arrive before the end of the old one is seen. */
		reader_lost(e);
		e->reader.fd = fds[0];
		egress_watch(e, e->reader.fd, EPOLLIN, &e->reader);
		reader_attached(e);
		return;
	case EGRESS_ANSWER:
		flow_answered(e, m.id, m.count);
		break;
	case EGRESS_GRANT:
	case EGRESS_REVOKE:
		on_rule(e, &m);
		end_revoked(e);
		break;
	case EGRESS_FINISH:
		egress_finish_begin(e, m.count);
		break;
	case EGRESS_NOTHING:
	case EGRESS_BIND:
	case EGRESS_WANT_RESOLVER:
	case EGRESS_WANT_READER:
	case EGRESS_ASK:
	case EGRESS_EVENT:
	case EGRESS_GIT:
	case EGRESS_READY:
	case EGRESS_FINISHED:
		break;
	}
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

static void receive_resolver(struct egress *e)
{
	struct resolve_answer a;
	const ssize_t n = recv(e->resolver.fd, &a, sizeof(a), MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n != (ssize_t)sizeof(a)) {
		close(e->resolver.fd);
		e->resolver.fd = -1;
		dial_ask_again(e);
		return;
	}
	dial_resolved(e, &a);
}

/* --- the loop --- */

static void dispatch(struct egress *e, const struct epoll_event *ev)
{
	const uintptr_t p = (uintptr_t)ev->data.ptr;
	void *what = (void *)(p & ~(uintptr_t)1);

	switch (*(enum kind *)what) {
	case KIND_FLOW:
		flow_ready(e, what, p & 1, ev->events);
		break;
	case KIND_LISTENER: {
		struct listener *l = what;

		if (l->l.what == REACH_DNS_UDP)
			egress_dns_datagram(e, l);
		else if (l->l.what == REACH_DNS_TCP)
			egress_dns_accept(e, l);
		else
			flow_accept(e, l);
		break;
	}
	case KIND_ATTEMPT:
		dial_event(e, what, ev->events);
		break;
	case KIND_SUPERVISOR:
		receive_supervisor(e);
		break;
	case KIND_RESOLVER:
		receive_resolver(e);
		break;
	case KIND_READER:
		reader_receive(e);
		break;
	case KIND_LOOKUP:
		egress_dns_ready(e, what);
		break;
	case KIND_ROUTE:
		egress_shared_receive(e);
		break;
	case KIND_DEAD:
		break;
	}
}

static void run_queue(struct egress *e)
{
	struct flow *f = e->queue;

	e->queue = NULL;
	while (f) {
		struct flow *next = f->queue;

		f->queued = false;
		f->queue = NULL;
		if (f->state == FLOW_TUNNEL)
			tunnel_run(e, f);
		f = next;
	}
}

static void free_dead(struct egress *e)
{
	struct flow **at = &e->dead;

	while (*at) {
		struct flow *f = *at;

		if (f->queued) {
			at = &f->next;
			continue;
		}
		*at = f->next;
		free(f);
	}
	while (e->dead_setups) {
		struct setup *s = e->dead_setups;

		e->dead_setups = s->next_dead;
		free(s);
	}
}

static int next_timeout(const struct egress *e)
{
	if (e->queue)
		return 0;
	if (e->due_ms == UINT64_MAX)
		return -1;
	return e->due_ms <= e->now_ms ? 0 : (int)(e->due_ms - e->now_ms);
}

static void loop(struct egress *e)
{
	struct epoll_event v[EVENTS];

	for (;;) {
		const int n = epoll_wait(e->epoll, v, EVENTS, next_timeout(e));

		read_clock(e);
		for (int i = 0; i < n; i++)
			dispatch(e, &v[i]);
		run_queue(e);
		if (e->now_ms >= e->due_ms) {
			e->due_ms = UINT64_MAX;
			if (e->starved)
				egress_resume_listeners(e);
			flow_timers(e);
			egress_dns_timers(e);
			egress_finish_check(e);
		}
		free_dead(e);
	}
}

static void raise_files(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &l);
	}
}

/* Serves the host's sockets for ports of the session that `listen` publishes. */
static void publish(struct egress *e, const struct egress_options *opt)
{
	for (size_t i = 0; i < opt->ports_n; i++) {
		const struct reach_listener l = { .what = REACH_HOST,
						  .host = SV("localhost"),
						  .port = opt->ports[i].port };
		struct listener *new = egress_add_listener(e, &l);

		new->publish = true;
		egress_open_listener(e, new, opt->ports[i].fd);
	}
}

_Noreturn void egress_main(const struct egress_options *opt, int supervisor)
{
	struct egress *e = calloc(1, sizeof(*e));
	struct writ_err err = { 0 };

	if (!e)
		_exit(1);
	e->arena = (struct arena)ARENA_INIT(64 << 20);
	e->set = *opt->set;
	e->reach = *opt->names;
	e->reach.a = &e->arena;
	e->reach.set = &e->set;
	quota_init(&e->quota, &e->arena, &e->set);
	e->quota.total = opt->totals;
	e->quota.shared = opt->counters;
	e->supervisor.fd = supervisor;
	e->session = opt->session;
	e->resolver.fd = e->reader.fd = -1;
	e->mediator.fd = opt->route;
	e->dial.upstream = opt->upstream;
	e->shared.git_port = opt->git_port;
	e->supervisor.kind = KIND_SUPERVISOR;
	e->resolver.kind = KIND_RESOLVER;
	e->reader.kind = KIND_READER;
	e->due_ms = UINT64_MAX;
	e->epoll = epoll_create1(EPOLL_CLOEXEC);
	e->dial.route[0] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	e->dial.route[1] = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (e->epoll < 0 || e->dial.route[0] < 0)
		_exit(1);
	raise_files();
	read_clock(e);
	for (size_t i = 0; i < opt->listeners_n; i++)
		(void)egress_add_listener(e, &opt->listeners[i]);
	publish(e, opt);
	if (e->mediator.fd > 0)
		egress_shared_open(e);
	egress_watch(e, supervisor, EPOLLIN, &e->supervisor);
	/* SECURITY: confine the process before it receives the first byte from outside. */
	if (confine_self(calls, ARRAY_LEN(calls), CONFINE_TCP, &err) < 0)
		_exit(1);
	loop(e);
	_exit(0);
}
