#include "egress/egress_priv.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/banned.h"

/* --- lists --- */

static void link_flow(struct flow **list, struct flow *f)
{
	f->prev = NULL;
	f->next = *list;
	if (*list)
		(*list)->prev = f;
	*list = f;
}

static void unlink_flow(struct flow **list, struct flow *f)
{
	if (f->prev)
		f->prev->next = f->next;
	else
		*list = f->next;
	if (f->next)
		f->next->prev = f->prev;
}

struct flow *flow_by_id(struct egress *e, uint32_t id)
{
	for (struct flow *f = e->waiting; f; f = f->next)
		if (f->id == id)
			return f;
	return NULL;
}

void flow_set_due(struct egress *e, struct flow *f, uint64_t due_ms)
{
	f->setup->due_ms = due_ms;
	egress_wake(e, due_ms);
}

/* --- events --- */

static void fill_event(const struct egress *e, const struct flow *f, struct egress_event *ev)
{
	ev->flow = f->id;
	ev->port = f->port;
	ev->way = f->way;
	ev->proxy = f->proxy;
	ev->rule = f->bill.entry < e->set.caps.n ? e->set.caps.v[f->bill.entry].rule : RULE_NONE;
	ev->up = f->bytes[0];
	ev->down = f->bytes[1];
	ev->lasted_us = e->now_us - f->started_us;
	egress_copy_text(ev->host, sizeof(ev->host), f->host);
	if (f->setup)
		memcpy(ev->dropped, f->setup->dropped, sizeof(ev->dropped));
}

/* --- beginning and end --- */

static struct flow *flow_new(struct egress *e, int fd)
{
	struct flow *f = calloc(1, sizeof(*f));
	struct setup *s = calloc(1, sizeof(*s));

	if (!f || !s) {
		free(f);
		free(s);
		return NULL;
	}
	*f = (struct flow){ .kind = KIND_FLOW,
			    .fd = { fd, -1 },
			    .id = ++e->ids,
			    .bill = { .entry = SIZE_MAX },
			    .started_us = e->now_us,
			    .setup = s };
	for (size_t i = 0; i < ATTEMPTS; i++)
		s->attempts[i].fd = -1;
	link_flow(&e->waiting, f);
	e->waiting_n++;
	e->flows_n++;
	s->limit_ms = e->now_ms + HEAD_MS;
	flow_set_due(e, f, s->limit_ms);
	return f;
}

/*
 * Releases the setup of a flow. SECURITY: an event of this epoll round may still point to an
 * attempt in the setup, so the memory is freed after the round.
 */
static void drop_setup(struct egress *e, struct flow *f)
{
	struct setup *s = f->setup;

	if (!s)
		return;
	dial_stop(e, f);
	for (size_t i = 0; i < ATTEMPTS; i++)
		s->attempts[i].kind = KIND_DEAD;
	free(s->head);
	s->next_dead = e->dead_setups;
	e->dead_setups = s;
	f->setup = NULL;
	unlink_flow(&e->waiting, f);
	e->waiting_n--;
	e->half_closed_n -= s->half_closed;
}

static void close_side(struct egress *e, int fd, bool reset)
{
	const struct linger hard = { 1, 0 };

	if (fd < 0)
		return;
	egress_unwatch(e, fd);
	if (reset)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(fd);
}

/*
 * Closes the sockets of a flow and removes the flow from the lists of waiting flows and tunnels.
 * free_dead() frees the flow after the round, because epoll may still report an event for it.
 */
void flow_drop(struct egress *e, struct flow *f, bool reset)
{
	const bool waiting = f->setup != NULL;

	drop_setup(e, f);
	if (!waiting)
		unlink_flow(&e->flows, f);
	tunnel_free(e, f);
	close_side(e, f->fd[0], reset);
	close_side(e, f->fd[1], reset);
	f->fd[0] = f->fd[1] = -1;
	f->state = FLOW_DEAD;
	e->flows_n--;
	f->next = e->dead;
	e->dead = f;
}

struct flow *flow_for_reader(struct egress *e, uint32_t reader_id)
{
	struct flow *f = e->waiting_n < WAITING_MAX ? flow_new(e, -1) : NULL;

	if (f) {
		f->for_reader = true;
		f->reader_id = reader_id;
	}
	return f;
}

void flow_reader_lost(struct egress *e)
{
	struct flow *next;

	for (struct flow *f = e->waiting; f; f = next) {
		next = f->next;
		if (!f->for_reader)
			continue;
		f->for_reader = false;
		flow_refuse(e, f, CAP_ALLOW, RULE_NONE, CAUSE_NO_READER);
	}
}

static void end(struct egress *e, struct flow *f, bool reset, enum cap_answer answer,
		enum cap_cause cause)
{
	struct egress_event ev = { .what = EGRESS_CLOSE, .answer = answer };

	fill_event(e, f, &ev);
	ev.why = cap_why(cause, NULL);
	egress_event(e, &ev);
	flow_drop(e, f, reset);
}

void flow_close(struct egress *e, struct flow *f, bool reset, enum cap_cause cause)
{
	end(e, f, reset, cause != CAUSE_NONE ? CAP_DENY : CAP_ALLOW, cause);
}

void flow_cut(struct egress *e, struct flow *f, enum cap_cause cause)
{
	end(e, f, true, CAP_ALLOW, cause);
}

/*
 * Refuses a pending flow. @answer CAP_ALLOW means that the policy allowed the flow but the
 * destination could not be reached. The client sees a reset; a client of the proxy port gets an
 * answer in the proxy protocol. For a flow that the reader requested, only the reader gets the
 * cause.
 */
void flow_refuse_detail(struct egress *e, struct flow *f, enum cap_answer answer, uint32_t rule,
			enum cap_cause cause, const char *detail)
{
	struct egress_event ev = { .what = EGRESS_OPEN,
				   .answer = answer,
				   .why = cap_why(cause, detail) };

	if (f->for_reader) {
		reader_dialled(e, f, -1, NULL, &ev.why);
		return;
	}
	fill_event(e, f, &ev);
	if (rule != RULE_NONE)
		ev.rule = rule;
	ev.reason = f->reason;
	egress_event(e, &ev);
	egress_head_refuse(e, f, answer, &ev.why);
	flow_drop(e, f, !f->proxy);
}

void flow_refuse(struct egress *e, struct flow *f, enum cap_answer answer, uint32_t rule,
		 enum cap_cause cause)
{
	flow_refuse_detail(e, f, answer, rule, cause, NULL);
}

/*
 * Ends a pending flow whose client has left. SECURITY: record a flow whose name was being resolved
 * or whose destination was being dialled. A question to a name server or a packet may already have
 * left the machine, and either can carry data that the agent chose, so a client must not be able to
 * keep it off the record by leaving. A flow in another state has sent nothing outside.
 */
static void leave(struct egress *e, struct flow *f)
{
	switch ((enum flow_state)f->state) {
	case FLOW_NAME:
	case FLOW_DIAL:
		flow_refuse(e, f, CAP_ALLOW, RULE_NONE, CAUSE_LEFT);
		break;
	case FLOW_HEAD:
	case FLOW_ASKED:
	case FLOW_INSIDE:
	case FLOW_UNREAD:
	case FLOW_TUNNEL:
	case FLOW_DEAD:
		flow_drop(e, f, false);
		break;
	}
}

/* --- decisions --- */

static struct answer *answer_for(struct egress *e, const struct flow *f)
{
	for (size_t i = 0; i < e->answers.n; i++)
		if (e->answers.v[i].port == f->port && sv_eq(e->answers.v[i].host, f->host))
			return &e->answers.v[i];
	return NULL;
}

static void charge_and_dial(struct egress *e, struct flow *f, const struct reach_verdict *v)
{
	enum cap_cause spent = CAUSE_NONE;

	f->bill = v->bill;
	if (f->way != REACH_READ)
		spent = quota_use(&e->quota, &f->bill, e->now_ms);
	if (spent != CAUSE_NONE) {
		flow_refuse(e, f, CAP_DENY, v->rule, spent);
		return;
	}
	dial_start(e, f);
}

/*
 * Asks a person about a flow, unless a person has answered yes for the session. Egress sends one
 * question per name and port, however many flows wait for the answer.
 */
static void ask_person(struct egress *e, struct flow *f, const struct reach_verdict *v)
{
	struct answer *a = answer_for(e, f);
	struct egress_event ev = { .what = EGRESS_OPEN, .answer = CAP_ASK };

	if (a && !a->pending) {
		charge_and_dial(e, f, v);
		return;
	}
	f->state = FLOW_ASKED;
	f->bill = v->bill;
	/*
	 * Set no timeout while the flow waits for a person: the supervisor limits
	 * the time a person may take.
	 */
	f->setup->limit_ms = UINT64_MAX;
	f->setup->due_ms = UINT64_MAX;
	if (a)
		return;
	a = vec_push(&e->arena, &e->answers);
	if (!a || !arena_sv(&e->arena, f->host, &a->host)) {
		flow_refuse(e, f, CAP_DENY, v->rule, CAUSE_MEMORY);
		return;
	}
	a->port = f->port;
	a->pending = f->id;
	fill_event(e, f, &ev);
	egress_notify(e, EGRESS_ASK, f->id, &ev, sizeof(ev));
}

/*
 * Applies a person's answer to question @id. @answer 0: no; 1: yes, for the waiting flows; 2: yes,
 * for the rest of the session.
 */
void flow_answered(struct egress *e, uint32_t id, uint32_t answer)
{
	struct flow *next;

	for (size_t i = 0; i < e->answers.n; i++) {
		struct answer *a = &e->answers.v[i];
		const struct answer key = *a;

		if (a->pending != id)
			continue;
		a->pending = 0;
		if (answer != 2)
			*a = e->answers.v[--e->answers.n];
		for (struct flow *f = e->waiting; f; f = next) {
			const struct reach_verdict v = { .answer = CAP_ASK,
							 .rule = RULE_NONE,
							 .bill = f->bill };

			next = f->next;
			if (f->state != FLOW_ASKED || f->port != key.port ||
			    !sv_eq(f->host, key.host))
				continue;
			if (answer)
				charge_and_dial(e, f, &v);
			else
				flow_refuse(e, f, CAP_DENY, RULE_NONE, CAUSE_PERSON);
		}
		return;
	}
}

void flow_decide(struct egress *e, struct flow *f)
{
	struct reach_key key = { .host = f->host,
				 .port = f->port,
				 .proto = f->way == REACH_RAW ? REACH_TCP : REACH_TLS };
	struct reach_verdict v;

	if (f->way == REACH_READ) {
		reader_hand_over(e, f);
		return;
	}
	v = reach_decide(&e->reach, &key);
	f->reason = (uint8_t)v.reason;
	if (f->way == REACH_CLOSED)
		flow_refuse_detail(e, f, CAP_DENY, v.rule,
				   v.cause != CAUSE_NONE ? v.cause : CAUSE_UNREAD, v.detail);
	else if (v.answer == CAP_DENY)
		flow_refuse_detail(e, f, CAP_DENY, v.rule, v.cause, v.detail);
	else if (v.answer == CAP_ASK)
		ask_person(e, f, &v);
	else
		charge_and_dial(e, f, &v);
}

/* --- accepting --- */

/*
 * Finds the mediator's announcement for an accepted connection. SECURITY: every program of the
 * host can connect to this loopback port; serve only announced connections.
 */
static bool is_expected(struct egress *e, int fd, struct expected *ret)
{
	struct sockaddr_in from;
	socklen_t n = sizeof(from);

	return getpeername(fd, (struct sockaddr *)&from, &n) == 0 && from.sin_family == AF_INET &&
	       egress_shared_take(e, false, ntohs(from.sin_port), ret);
}

/* Passes a client connection to the git helper, through the supervisor. */
static void hand_to_git(const struct egress *e, int fd)
{
	const struct egress_message m = { .type = EGRESS_GIT };

	if (egress_send(e->supervisor.fd, &m, &fd, 1) != 1)
		_exit(0);
}

/*
 * Drops one pending flow whose client has already half-closed, if there is one, to free a place for
 * a new flow. Otherwise a burst of clients that came and left would lock out other clients until
 * the timeout.
 */
static void make_room(struct egress *e)
{
	struct flow *f = e->half_closed_n ? e->waiting : NULL;

	while (f && !f->setup->half_closed)
		f = f->next;
	if (f)
		leave(e, f);
}

static void accept_one(struct egress *e, const struct listener *l, int fd)
{
	struct expected x = { 0 };
	struct flow *f;

	if (e->waiting_n >= WAITING_MAX)
		make_room(e);
	f = e->waiting_n < WAITING_MAX && e->flows_n < FLOWS_MAX ? flow_new(e, fd) : NULL;
	if (!f) {
		close_side(e, fd, true);
		return;
	}
	if (l->shared && !is_expected(e, fd, &x)) {
		f->fd[0] = fd;
		flow_drop(e, f, true);
		return;
	}
	if (x.git) {
		hand_to_git(e, fd);
		flow_drop(e, f, false);
		return;
	}
	f->host = l->shared ? x.host : l->l.host;
	f->port = l->shared ? x.port : l->l.port;
	f->way = l->shared ? x.way : l->way;
	f->proxy = l->l.what == REACH_PROXY;
	egress_watch(e, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, f);
	if (l->publish) {
		/* A published port needs a socket that can connect inside the session. */
		f->publish = true;
		f->state = FLOW_INSIDE;
		egress_request_binds(e);
	} else if (f->proxy || f->way == REACH_SNI) {
		f->state = FLOW_HEAD; /* the client's first bytes determine the destination */
	} else {
		flow_decide(e, f);
	}
}

void flow_accept(struct egress *e, struct listener *l)
{
	for (int i = 0; i < 256; i++) {
		const int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			accept_one(e, l, fd);
			continue;
		}
		if (errno == ECONNABORTED || errno == EINTR)
			continue;
		if (errno != EAGAIN)
			egress_pause_listener(e, l);
		return;
	}
}

/* --- connecting --- */

/*
 * Queues the bytes that egress has already read from the client, so that they reach the server
 * first. Returns CAUSE_NONE, or the reason why the bytes cannot be sent.
 */
static enum cap_cause send_head(struct egress *e, struct flow *f)
{
	struct setup *s = f->setup;
	struct transfer *t;

	if (s->head_n == 0)
		return CAUSE_NONE;
	if (f->bill.entry != SIZE_MAX && quota_left(&e->quota, &f->bill, true) < s->head_n)
		return CAUSE_USED_BYTES;
	t = calloc(1, sizeof(*t));
	if (!t)
		return CAUSE_MEMORY;
	*t = (struct transfer){ .bytes = s->head, .n = s->head_n, .pipe = { -1, -1 } };
	f->moving[0] = t;
	f->bytes[0] += s->head_n;
	if (f->bill.entry != SIZE_MAX)
		quota_pass(&e->quota, &f->bill, true, s->head_n);
	s->head = NULL;
	return CAUSE_NONE;
}

void flow_connected(struct egress *e, struct flow *f, int fd, const struct cap_net_addr *to)
{
	struct egress_event ev = { .what = f->publish ? EGRESS_PUBLISH : EGRESS_OPEN,
				   .answer = CAP_ALLOW };
	scoped_buf b = BUF_INIT(64);
	enum cap_cause spent;

	if (f->for_reader) {
		reader_dialled(e, f, fd, to, NULL);
		return;
	}
	fill_event(e, f, &ev);
	ev.dialled_us = ev.lasted_us;
	if (to)
		cap_addr_print(to, &b);
	egress_copy_text(ev.address, sizeof(ev.address), buf_view(&b));
	egress_event(e, &ev);
	f->fd[1] = fd;
	egress_head_accepted(f);
	spent = send_head(e, f);
	if (spent != CAUSE_NONE) {
		flow_close(e, f, true, spent);
		return;
	}
	drop_setup(e, f);
	link_flow(&e->flows, f);
	f->state = FLOW_TUNNEL;
	f->side[1] |= READABLE;
	f->side[0] |= READABLE;
	egress_rewatch(e, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, (char *)f + 1);
	tunnel_run(e, f);
}

/*
 * Continues a flow to a published port with @fd, a socket that can connect inside the session. @fd
 * is -1 if the supervisor could not make such a socket.
 */
void flow_inside(struct egress *e, uint32_t id, int fd)
{
	struct flow *f = flow_by_id(e, id);
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(f ? f->port : 0),
					.sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct attempt *a;

	if (!f || f->state != FLOW_INSIDE || fd < 0) {
		if (fd >= 0)
			close(fd);
		if (f && f->state == FLOW_INSIDE)
			flow_refuse(e, f, CAP_ALLOW, RULE_NONE, CAUSE_NO_SESSION);
		return;
	}
	f->state = FLOW_DIAL;
	a = &f->setup->attempts[0];
	*a = (struct attempt){ .kind = KIND_ATTEMPT, .fd = fd, .flow = f };
	a->to = (struct cap_net_addr){ { 127, 0, 0, 1 }, 32, false };
	f->setup->limit_ms = e->now_ms + DIAL_MS;
	flow_set_due(e, f, f->setup->limit_ms);
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS)
		flow_refuse(e, f, CAP_ALLOW, RULE_NONE, CAUSE_NO_LISTENER);
	else
		egress_watch(e, fd, EPOLLOUT, a);
}

/* Handles events of a flow that is not a tunnel yet, such as a hang-up of the client. */
static void ready_early(struct egress *e, struct flow *f, uint32_t events)
{
	if (f->state == FLOW_HEAD && (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP))) {
		egress_head_read(e, f);
		return;
	}
	if (events & (EPOLLHUP | EPOLLERR)) {
		leave(e, f);
	} else if ((events & EPOLLRDHUP) && !f->setup->half_closed) {
		f->setup->half_closed = true;
		e->half_closed_n++;
	}
}

void flow_ready(struct egress *e, struct flow *f, unsigned side, uint32_t events)
{
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP))
		f->side[side] |= READABLE;
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		f->side[side] |= HUNG_UP;
	if (f->state == FLOW_TUNNEL)
		tunnel_run(e, f);
	else if (f->state != FLOW_DEAD && side == 0)
		ready_early(e, f, events);
}

/* Handles due timers of pending flows: tries the next address, or refuses a flow that timed out. */
void flow_timers(struct egress *e)
{
	struct flow *next;

	for (struct flow *f = e->waiting; f; f = next) {
		next = f->next;
		if (f->setup->due_ms > e->now_ms) {
			egress_wake(e, f->setup->due_ms);
			continue;
		}
		if (f->state == FLOW_DIAL)
			dial_timer(e, f);
		else if (f->state == FLOW_HEAD)
			flow_refuse(e, f, CAP_DENY, RULE_NONE, CAUSE_HEAD_TIME);
		else if (f->state == FLOW_UNREAD)
			flow_refuse(e, f, CAP_ALLOW, RULE_NONE, CAUSE_NO_READER);
		else if (f->state != FLOW_ASKED)
			flow_refuse(e, f, CAP_ALLOW, RULE_NONE, CAUSE_UNANSWERED);
	}
}
