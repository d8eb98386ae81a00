#include "parts/network_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "gitnet/git.h"
#include "parts/denials.h"
#include "parts/engine.h"
#include "parts/git_transport.h"
#include "parts/grants.h"
#include "parts/helper.h"
#include "parts/inspection.h"
#include "parts/notice.h"
#include "parts/questions.h"
#include "parts/record.h"
#include "parts/tokens.h"

#include "base/banned.h"

/*
 * The supervisor's side of the network: starts egress, which relays connections, and the resolver,
 * which looks names up; passes listeners to egress; and records events. If no rule allows the
 * network, egress is started when a process in the jail first looks up a name or connects to the
 * proxy, to refuse the request and record the refusal.
 */

/* Limits for messages of egress and of the reader of requests. */
enum {
	READER_DEATHS = 16,
	HEAR_MAX = 256, /* most messages that are read at once */
	HEAR_MANY = 16, /* after so many messages in HEAR_MS, no message is read for REST_MS */
	HEAR_MS = 10,
	REST_MS = 3,
};

const struct session_initial network_initial = { sizeof(struct network), NULL };

int network_init(struct session *s, struct writ_err *err)
{
	struct network *n = network_of(s);

	(void)err;
	n->egress = n->reader = n->totals_fd = -1;
	for (size_t i = 0; i < EARLY_MAX; i++)
		n->early[i] = -1;
	return 0;
}

bool network_owns(const struct session *s, pid_t pid)
{
	const struct network *n = network_of(s);

	return pid == n->egress_pid || pid == n->resolver_pid || pid == n->reader_pid;
}

static bool is_wanted(const struct session *s)
{
	return (engine_view(s)->listeners.n || engine_view(s)->traps) &&
	       (reach_any(&s->opt->policy->set) || git_transport_is_handed(s));
}

/*
 * Closes all descriptors (terminal, jail, record) but @socket, which becomes 0, and those of @kept,
 * which become 1 and so on.
 */
static void leave_behind(int socket, int *kept, size_t n)
{
	const int above = (int)n + 1;

	/*
	 * Move all descriptors to high numbers first: each may have the number that another is to
	 * get.
	 */
	socket = fcntl(socket, F_DUPFD_CLOEXEC, above);
	for (size_t i = 0; i < n; i++)
		kept[i] = fcntl(kept[i], F_DUPFD_CLOEXEC, above);
	if (dup3(socket, 0, O_CLOEXEC) < 0)
		_exit(1);
	for (size_t i = 0; i < n; i++) {
		if (dup3(kept[i], (int)i + 1, O_CLOEXEC) < 0)
			_exit(1);
		kept[i] = (int)i + 1;
	}
	if (close_range((unsigned)above, ~0u, 0) < 0)
		_exit(1);
}

/* --- ports of `listen`, only on the loopback interface of the host --- */

static int publish_one(uint16_t port, int *ret_fd, struct writ_err *err)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
					.sin_port = htons(port),
					.sin_addr = { htonl(INADDR_LOOPBACK) } };
	const int on = 1;
	scoped_fd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 128) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "listen %u: 127.0.0.1:%u of this host",
				 port, port);
	*ret_fd = fd_take(&fd);
	return 0;
}

static int publish(struct session *s, struct writ_err *err)
{
	const struct cap_set *set = &s->opt->policy->set;
	int r = 0;

	for (size_t i = 0; r == 0 && i < set->caps.n; i++) {
		const struct cap *c = &set->caps.v[i].cap;

		for (uint32_t port = c->port_lo;
		     c->action == CAP_NET_BIND && r == 0 && port <= c->port_hi; port++) {
			struct egress_port *p =
				network_of(s)->ports_n < PORTS_MAX
					? &network_of(s)->ports[network_of(s)->ports_n]
					: NULL;

			if (!p)
				return writ_fail(err, WRIT_E_LIMIT, 0,
						 "more than %d ports to listen on", PORTS_MAX);
			p->port = (uint16_t)port;
			r = publish_one(p->port, &p->fd, err);
			network_of(s)->ports_n += r == 0;
		}
	}
	return r;
}

static void unpublish(struct session *s)
{
	for (size_t i = 0; i < network_of(s)->ports_n; i++)
		close(network_of(s)->ports[i].fd);
	network_of(s)->ports_n = 0;
}

_Noreturn static void egress_child(struct session *s, int socket)
{
	int kept[PORTS_MAX + 1];
	const size_t n = network_of(s)->ports_n + (network_of(s)->route[0] > 0);
	const struct egress_options opt = { .set = &s->opt->policy->set,
					    .realm = s->opt->realm,
					    .session = sv_from(s->id),
					    .listeners = engine_view(s)->listeners.v,
					    .listeners_n = engine_view(s)->listeners.n,
					    .names = engine_view(s)->reach,
					    .ports = network_of(s)->ports,
					    .ports_n = network_of(s)->ports_n,
					    .upstream = operator_upstream(s),
					    .git_port = git_transport_is_handed(s) ? GIT_PORT : 0,
					    .totals = network_of(s)->totals,
					    .counters = *meter_shared(s),
					    .route = network_of(s)->route[0] > 0 ? (int)n : 0 };

	for (size_t i = 0; i < network_of(s)->ports_n; i++)
		kept[i] = network_of(s)->ports[i].fd;
	kept[network_of(s)->ports_n] = network_of(s)->route[0];
	leave_behind(socket, kept, n);
	for (size_t i = 0; i < network_of(s)->ports_n; i++)
		network_of(s)->ports[i].fd = kept[i];
	egress_main(&opt, 0);
}

/* Allocates counters that egress, the reader and the git helper share: a limit covers all three. */
int network_totals(struct session *s, struct writ_err *err)
{
	const uint64_t *l = s->opt->policy->set.limits;
	void *p;

	if (network_of(s)->totals)
		return 0;
	if (!l[LIMIT_UP] && !l[LIMIT_DOWN] && !l[LIMIT_REQUESTS])
		return 0;
	network_of(s)->totals_fd = memfd_create("writ-totals", MFD_CLOEXEC);
	if (network_of(s)->totals_fd < 0 ||
	    ftruncate(network_of(s)->totals_fd, sizeof(*network_of(s)->totals)) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "memfd_create");
	p = mmap(NULL, sizeof(*network_of(s)->totals), PROT_READ | PROT_WRITE, MAP_SHARED,
		 network_of(s)->totals_fd, 0);
	if (p == MAP_FAILED)
		return writ_fail(err, WRIT_E_SYS, errno, "mmap");
	network_of(s)->totals = p;
	return 0;
}

static int start_egress(struct session *s, struct writ_err *err)
{
	const bool own_network = engine_view(s)->listeners.n > 0;
	/* On the host's network the session itself listens on the ports of `listen`. */
	int r = own_network ? publish(s, err) : 0;

	if (r == 0)
		r = network_totals(s, err);

	/* Without a network namespace, the mediator and egress need a socket to each other. */
	if (r == 0 && !own_network)
		r = helper_pair(network_of(s)->route, err);
	if (r == 0)
		r = helper_start(s, egress_child, "egress", &network_of(s)->egress_pid,
				 &network_of(s)->egress, err);
	unpublish(s);
	if (network_of(s)->route[0] > 0)
		close(network_of(s)->route[0]);
	network_of(s)->route[0] = 0;
	return r;
}

/* Starts egress, which must run before the listeners of the jail exist. */
int network_start(struct session *s, struct writ_err *err)
{
	return is_wanted(s) ? start_egress(s, err) : 0;
}

int network_route(const struct session *s)
{
	return network_of(s)->route[1];
}

void network_route_close(struct session *s)
{
	int *fd = &network_of(s)->route[1];

	if (*fd > 0)
		close(*fd);
	*fd = 0;
}

struct quota_total *network_totals_get(const struct session *s)
{
	return network_of(s)->totals;
}

static void tell(struct session *s, const struct egress_message *m, const int *fds, size_t n)
{
	if (network_of(s)->egress >= 0 && egress_send(network_of(s)->egress, m, fds, n) != 1 &&
	    session_phase(s) < SESSION_ENDING)
		session_end(s, "the way to the network is gone", SESSION_FAILED);
}

/* Passes the listeners that writ-init made before any command ran to egress and the git helper. */
void network_listeners(struct session *s, uint32_t first, const int *fds, size_t n)
{
	const struct egress_message m = { .type = EGRESS_LISTENERS,
					  .id = first,
					  .count = (uint32_t)n };

	/* The last listener is for the git helper, not for egress. */
	if (engine_view(s)->git && n && first + n > engine_view(s)->listeners.n) {
		struct writ_err err = { 0 };

		if (git_transport_start(s, fcntl(fds[n - 1], F_DUPFD_CLOEXEC, 3), &err) < 0)
			session_end(s, "the git helper cannot be started", SESSION_FAILED);
		network_listeners(s, first, fds, n - 1);
		return;
	}
	if (n == 0)
		return;
	if (network_of(s)->egress >= 0) {
		tell(s, &m, fds, n);
		return;
	}
	for (size_t i = 0; i < n && first + i < EARLY_MAX; i++)
		network_of(s)->early[first + i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
}

static void start_late(struct session *s)
{
	struct writ_err err = { 0 };

	if (network_of(s)->egress >= 0)
		return;
	if (start_egress(s, &err) < 0) {
		session_end(s, "the way to the network cannot be started", SESSION_FAILED);
		return;
	}
	for (size_t i = 0; i < EARLY_MAX; i++) {
		if (network_of(s)->early[i] >= 0)
			network_listeners(s, (uint32_t)i, &network_of(s)->early[i], 1);
		fd_close(&network_of(s)->early[i]);
	}
}

/* Passes the keeper's answer to a bind request on to egress. */
void network_bound(struct session *s, uint32_t id, int fd)
{
	const struct egress_message m = { .type = EGRESS_BOUND, .id = id };

	tell(s, &m, &fd, fd >= 0);
}

static void bind_more(struct session *s, const struct egress_message *from)
{
	struct engine_listen l = { .id = from->id };
	struct egress_bind b;
	struct writ_err err = { 0 };

	if (from->text_n != sizeof(b))
		return;
	memcpy(&b, from->text, sizeof(b));
	memcpy(l.addr, b.addr, sizeof(l.addr));
	l.port = b.port;
	l.v6 = b.v6 != 0;
	l.dial = b.dial;
	if (!engine_attaches(s) || s->opt->plan->engine->listen(engine_run(s), &l, &err) < 0)
		network_bound(s, from->id, -1);
}

/* --- names --- */

_Noreturn static void resolve_child(struct session *s, int socket)
{
	const struct resolve_options opt = { .servers =
						     s->opt->resolver.n ? s->opt->resolver.p : NULL,
					     .hosts = "/etc/hosts" };

	leave_behind(socket, NULL, 0);
	resolve_main(&opt, 0);
}

/* Starts the resolver. Egress asks for the resolver when a process first connects to a name. */
static void start_resolver(struct session *s)
{
	const struct egress_message m = { .type = EGRESS_RESOLVER };
	struct writ_err err = { 0 };
	int fd;

	helper_kill(&network_of(s)->resolver_pid);
	if (helper_start(s, resolve_child, "the resolver", &network_of(s)->resolver_pid, &fd,
			 &err) < 0)
		return;
	tell(s, &m, &fd, 1);
	close(fd);
}

/* --- events --- */

static const char *const what_names[] = { "lookup", "connect", "closed", "request", "published" };
static const char *const answer_names[] = { "deny", "ask", "allow" };
static const char *const way_names[] = { "closed", "raw", "tls", "read" };

void network_record(struct session *s, const struct egress_event *e, uint64_t count)
{
	struct entry entry = record_begin("net");

	record_str(&entry, "what", sv_from(what_names[e->what]));
	record_str(&entry, "answer", sv_from(answer_names[e->answer]));
	record_str(&entry, "host", sv_from(e->host));
	record_num(&entry, "port", e->port);
	if (count)
		record_num(&entry, "count", (int64_t)count);
	if (e->what != EGRESS_LOOKUP) {
		record_num(&entry, "flow", e->flow);
		record_str(&entry, "way", sv_from(way_names[e->way]));
		record_num(&entry, "up", (int64_t)e->up);
		record_num(&entry, "down", (int64_t)e->down);
		record_num(&entry, "us", (int64_t)e->lasted_us);
	}
	if (e->address[0])
		record_str(&entry, "address", sv_from(e->address));
	if (e->dropped[0])
		record_str(&entry, "not_dialled", sv_from(e->dropped));
	if (e->method[0]) {
		record_str(&entry, "method", sv_from(e->method));
		record_str(&entry, "path", sv_from(e->path));
		record_num(&entry, "status", e->status);
	}
	if (e->credential[0])
		record_str(&entry, "credential", sv_from(e->credential));
	record_why(&entry, &e->why);
	if (e->rule < s->opt->policy->set.rules.n)
		record_str(&entry, "rule", s->opt->policy->set.rules.v[e->rule].text);
	record_end(s, &entry);
}

/* Formats the object of an event as a rule would name it. */
static void object_of(const struct egress_event *e, char *to, size_t room)
{
	if (e->what == EGRESS_REQUEST)
		(void)snprintf(to, room, "https://%s%.*s", e->host, 400, e->path);
	else if (e->what == EGRESS_LOOKUP || e->port == 443)
		(void)snprintf(to, room, "%s", e->host);
	else
		(void)snprintf(to, room, "%s:%u", e->host, e->port);
}

/*
 * Formats the text of a question: the object that the answer is about, and the method of a request.
 */
static void question_of(const struct egress_event *e, char *to, size_t room)
{
	if (e->what == EGRESS_REQUEST)
		(void)snprintf(to, room, "%s %s:%u%s", e->method, e->host, e->port, e->path);
	else
		object_of(e, to, room);
}

static void note_denial(struct session *s, const struct egress_event *e)
{
	struct mediate_event d = {
		.op = MEDIATE_NET,
		.denied = true,
		.reason = e->reason,
		.cause = e->why.cause,
		.rule = e->rule,
	};

	object_of(e, d.object, sizeof(d.object));
	(void)snprintf(d.comm, sizeof(d.comm), "%s", e->what == EGRESS_LOOKUP ? "name" : "network");
	memcpy(d.extra, e->why.detail, sizeof(e->why.detail));
	denials_note(s, &d);
}

static void note_event(struct session *s, const struct egress_event *e)
{
	const bool lookup = e->what == EGRESS_LOOKUP && e->answer == CAP_DENY;
	const bool again = lookup && !denied_names_is_first(s, e);
	char why[CAP_WHY_TEXT];

	if (!again)
		network_record(s, e, 0);
	if (e->what == EGRESS_CLOSE && e->answer == CAP_ALLOW && e->why.cause != CAUSE_NONE &&
	    !session_status(s)->stop_requested)
		notice_print(s, "%s:%u: %s", e->host, e->port,
			     cap_why_print(e->why.cause, e->why.detail, why, sizeof(why)));
	if (e->answer == CAP_DENY && (!again || denials_count(s) < DENIALS_MAX))
		note_denial(s, e);
}

/* SECURITY: egress or the reader may have been taken over: check the values of its events. */
static bool take_event(const struct egress_message *m, struct egress_event *ret)
{
	if (m->text_n != sizeof(*ret))
		return false;
	memcpy(ret, m->text, sizeof(*ret));
	ret->host[sizeof(ret->host) - 1] = 0;
	ret->address[sizeof(ret->address) - 1] = 0;
	ret->dropped[sizeof(ret->dropped) - 1] = 0;
	ret->method[sizeof(ret->method) - 1] = 0;
	ret->path[sizeof(ret->path) - 1] = 0;
	ret->credential[sizeof(ret->credential) - 1] = 0;
	return ret->what < ARRAY_LEN(what_names) && ret->answer < ARRAY_LEN(answer_names) &&
	       ret->way < ARRAY_LEN(way_names) && ret->reason < CAP_REASONS &&
	       cap_why_receive(&ret->why);
}

/*
 * Returns whether a message is handled after the session has ended. No connection starts then, but
 * a delivery may still need the resolver.
 */
static bool is_heard_late(const struct session *s, uint32_t type)
{
	return type == EGRESS_EVENT || type == EGRESS_FINISHED ||
	       (type == EGRESS_WANT_RESOLVER && network_of(s)->finish_ms &&
		!session_status(s)->stop_requested);
}

/*
 * Handles a message of egress or the reader. Returns 1, -1 if no message is pending, or 0 if the
 * peer is gone.
 */
static int heard(struct session *s, int from)
{
	struct egress_message m;
	struct egress_event e;
	int fds[EGRESS_FDS];
	size_t n;
	const int r = egress_receive(from, &m, fds, &n);

	if (r > 0 && m.type == EGRESS_GIT && from == network_of(s)->egress && n == 1)
		git_transport_hand(s, fds[0]);
	for (size_t i = 0; r > 0 && i < n; i++)
		close(fds[i]);
	if (r <= 0)
		return r;
	if (session_phase(s) == SESSION_ENDED && !is_heard_late(s, m.type))
		return 1;
	if (m.type == EGRESS_BIND && from == network_of(s)->egress) {
		bind_more(s, &m);
	} else if (m.type == EGRESS_WANT_RESOLVER && from == network_of(s)->egress) {
		start_resolver(s);
	} else if (m.type == EGRESS_WANT_READER && from == network_of(s)->egress &&
		   network_of(s)->reader < 0) {
		struct writ_err err = { 0 };

		if (inspection_launch(s, &err) < 0)
			notice_print(s, "%s", err.what);
	} else if (m.type == EGRESS_FINISHED) {
		*(from == network_of(s)->egress ? &network_of(s)->egress_finished
						: &network_of(s)->reader_finished) = true;
	} else if (m.type == EGRESS_EVENT && take_event(&m, &e)) {
		note_event(s, &e);
	} else if (m.type == EGRESS_READY && from == network_of(s)->reader) {
		struct writ_err err = { 0 };

		if (inspection_trust(s, (struct sv){ m.text, m.text_n }, &err) < 0)
			session_end(s, "the authority cannot be told", SESSION_FAILED);
	} else if (m.type == EGRESS_ASK) {
		char object[MEDIATE_TEXT];

		if (!take_event(&m, &e))
			return 0;
		question_of(&e, object, sizeof(object));
		questions_add(s, m.id, from == network_of(s)->reader, object);
	}
	return 1;
}

/*
 * Counts messages, and pauses polling when there are many: a wakeup for each of thousands of
 * connections would cost more than to relay them. Messages wait in the socket, and none is lost.
 */
static void count_heard(struct session *s, uint32_t n)
{
	const uint64_t now = clock_boot_ms();

	if (now >= network_of(s)->heard_ms + HEAR_MS) {
		network_of(s)->heard =
			now >= network_of(s)->heard_ms + 2 * HEAR_MS ? 0 : network_of(s)->heard / 2;
		network_of(s)->heard_ms = now;
	}
	network_of(s)->heard += n;
	network_of(s)->rest_ms = network_of(s)->heard >= HEAR_MANY ? now + REST_MS : 0;
}

int network_deadline(struct session *s, int least)
{
	struct network *n = network_of(s);
	const uint64_t now = n->rest_ms ? clock_boot_ms() : 0;

	least = denied_names_deadline(s, least);
	n->rests = n->rest_ms > now;
	if (!n->rests) {
		n->rest_ms = 0;
		return least;
	}
	return (uint64_t)least < n->rest_ms - now ? least : (int)(n->rest_ms - now);
}

bool network_hear(struct session *s, const int *from)
{
	const int fd = *from;
	uint32_t n = 0;
	int r = 1;

	record_gather(s);
	while (r > 0 && n < HEAR_MAX && *from == fd) {
		r = heard(s, fd);
		n += r > 0;
	}
	record_flush(s);
	count_heard(s, n);
	return r != 0;
}

static void recv_egress(struct session *s)
{
	if (network_hear(s, &network_of(s)->egress))
		return;
	/* SECURITY: without egress and its listeners, no connection can leave the jail. */
	fd_close(&network_of(s)->egress);
	if (session_phase(s) < SESSION_ENDING)
		session_end(s, "the way to the network is gone", SESSION_FAILED);
}

/*
 * Returns whether the session can enforce the capability @c of a live grant. Requests can be
 * restricted only if the reader runs, whose certificate authority programs trust.
 */
static bool can_be_held(const struct session *s, const struct cap *c)
{
	const bool is_signed = s->opt->policy->set.net_level == NET_LEVEL_SIGNED;

	if (is_signed)
		return network_of(s)->reader >= 0 && c->action == CAP_HTTP_REQUEST && !c->tls_pass;
	return network_of(s)->reader >= 0 || c->action != CAP_HTTP_REQUEST || reach_is_open(c);
}

/* SECURITY: parses capabilities from the control socket like those of any other source. */
static bool is_fit(const struct session *s, struct sv caps)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	struct cap_set one = { 0 };
	struct writ_err err = { 0 };

	while (caps.n) {
		struct cap_entry *e = vec_push(&a, &one.caps);

		if (!e || cap_parse(&a, CAP_GRANT, sv_cut(&caps, '\n'), &e->cap, &err) < 0 ||
		    !cap_host_of(&e->cap) || !sv_eq(e->cap.realm, s->opt->realm))
			return false;
		e->rule = RULE_NONE;
	}
	for (size_t i = 0; i < one.caps.n; i++)
		if (!can_be_held(s, &one.caps.v[i].cap))
			return false;
	return one.caps.n > 0;
}

/* Sends each capability of a live grant to egress or to the reader. False: the peer is gone. */
static bool tell_grant(int to, const struct grant *g, bool on)
{
	struct sv caps = sv_from(g->path);
	bool told = true;

	while (told && caps.n) {
		struct egress_message m = { .type = on ? EGRESS_GRANT : EGRESS_REVOKE };
		const struct sv cap = sv_cut(&caps, '\n');

		m.text_n = (uint32_t)cap.n;
		memcpy(m.text, cap.p, cap.n);
		told = egress_send(to, &m, NULL, 0) == 1;
	}
	return told;
}

bool network_grant(struct session *s, const struct grant *g)
{
	if (engine_view(s)->listeners.n == 0 || !is_fit(s, sv_from(g->path)))
		return false;
	start_late(s);
	if (network_of(s)->egress < 0 || !tell_grant(network_of(s)->egress, g, true))
		return false;
	/* If the reader is gone, the next reader receives all grants when it starts. */
	if (network_of(s)->reader < 0 || tell_grant(network_of(s)->reader, g, true))
		return true;
	(void)tell_grant(network_of(s)->egress, g, false);
	return false;
}

void network_revoke(struct session *s, const struct grant *g)
{
	/* SECURITY: a grant that cannot be revoked ends the session. */
	if ((network_of(s)->egress >= 0 && !tell_grant(network_of(s)->egress, g, false)) ||
	    (network_of(s)->reader >= 0 && !tell_grant(network_of(s)->reader, g, false)))
		session_end(s, "a grant could not be taken back", SESSION_FAILED);
}

static void grant_reader(void *ctx, const struct grant *g)
{
	const struct session *s = ctx;

	(void)tell_grant(network_of(s)->reader, g, true);
}

/*
 * Handles messages of the reader. Connections of a reader that ended end with it; raw tunnels stay,
 * and a new reader is started.
 */
static void recv_reader(struct session *s)
{
	struct writ_err err = { 0 };

	if (network_hear(s, &network_of(s)->reader))
		return;
	fd_close(&network_of(s)->reader);
	/* Kill a reader that has only closed its socket. */
	helper_kill(&network_of(s)->reader_pid);
	if (session_phase(s) >= SESSION_ENDING)
		return;
	record_what(s, "reader", "the process that reads requests ended, and is started again");
	if (++network_of(s)->reader_deaths > READER_DEATHS || inspection_launch(s, &err) < 0) {
		session_end(s, "nobody can read requests any more", SESSION_FAILED);
		return;
	}
	grants_each_net(s, grant_reader, s);
}

void network_answer(struct session *s, bool reader, uint32_t id, uint32_t answer)
{
	const struct egress_message m = { .type = EGRESS_ANSWER, .id = id, .count = answer };
	const int to = reader ? network_of(s)->reader : network_of(s)->egress;

	if (to >= 0)
		(void)!egress_send(to, &m, NULL, 0);
}

void network_poll(struct session *s, struct session_poll *set)
{
	const struct network *n = network_of(s);
	const bool ended = session_phase(s) == SESSION_ENDED;

	session_poll_add(set, n->rests && !ended ? -1 : n->egress, POLLIN);
	session_poll_add(set, n->rests && !ended ? -1 : n->reader, POLLIN);
	for (size_t i = 0; i < EARLY_MAX; i++)
		session_poll_add(set, ended ? -1 : n->early[i], POLLIN);
}

void network_on_event(struct session *s, const struct pollfd *p, size_t n)
{
	if (p[0].revents)
		recv_egress(s);
	if (p[1].revents)
		recv_reader(s);
	for (size_t i = 2; i < n; i++)
		if (p[i].revents)
			start_late(s);
}

void network_clear(struct session *s)
{
	fd_close(&network_of(s)->egress);
	fd_close(&network_of(s)->reader);
	if (network_of(s)->totals)
		(void)munmap(network_of(s)->totals, sizeof(*network_of(s)->totals));
	network_of(s)->totals = NULL;
	fd_close(&network_of(s)->totals_fd);
	for (size_t i = 0; i < EARLY_MAX; i++)
		fd_scope_close(&network_of(s)->early[i]);
	helper_kill(&network_of(s)->egress_pid);
	helper_kill(&network_of(s)->resolver_pid);
	helper_kill(&network_of(s)->reader_pid);
}
