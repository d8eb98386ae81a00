#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session_priv.h"

#include "base/banned.h"

/*
 * The supervisor's side of the network: it starts the process that relays and
 * the one that looks names up, passes listeners on, and keeps the record.
 */

/* Without a rule it is started when somebody first asks for a name: to say no, and on record. */
enum {
	READER_DEATHS = 16,
	HEAR_MAX = 256, /* messages at once */
	HEAR_MANY = 16, /* in so many milliseconds: they may gather */
	HEAR_MS = 10,
	REST_MS = 3,
};

bool net_wanted(const struct session *s)
{
	return (s->view.listeners.n || s->view.traps) &&
	       (reach_any(&s->opt->policy->set) || gitnet_is_handed(s));
}

/*
 * Everything goes but @socket, which becomes 0, and what is @kept, which becomes
 * 1 and so on: terminal, jail, record.
 */
static void leave_behind(int socket, int *kept, size_t n)
{
	const int above = (int)n + 1;

	/* Out of the way first: any may stand where another is to go. */
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

/* --- ports of `listen`, on the host's loopback and nowhere else --- */

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
	*ret_fd = take_fd(&fd);
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
				s->ports_n < PORTS_MAX ? &s->ports[s->ports_n] : NULL;

			if (!p)
				return writ_fail(err, WRIT_E_LIMIT, 0,
						 "more than %d ports to listen on", PORTS_MAX);
			p->port = (uint16_t)port;
			r = publish_one(p->port, &p->fd, err);
			s->ports_n += r == 0;
		}
	}
	return r;
}

static void unpublish(struct session *s)
{
	for (size_t i = 0; i < s->ports_n; i++)
		close(s->ports[i].fd);
	s->ports_n = 0;
}

_Noreturn static void egress_child(struct session *s, int socket)
{
	int kept[PORTS_MAX + 1];
	const size_t n = s->ports_n + (s->route[0] > 0);
	const struct egress_options opt = { .set = &s->opt->policy->set,
					    .realm = s->opt->realm,
					    .session = sv_from(s->id),
					    .listeners = s->view.listeners.v,
					    .listeners_n = s->view.listeners.n,
					    .names = &s->view.reach,
					    .ports = s->ports,
					    .ports_n = s->ports_n,
					    .upstream = s->upstream,
					    .git_port = gitnet_is_handed(s) ? GIT_PORT : 0,
					    .totals = s->totals,
					    .counters = s->shared,
					    .route = s->route[0] > 0 ? (int)n : 0 };

	for (size_t i = 0; i < s->ports_n; i++)
		kept[i] = s->ports[i].fd;
	kept[s->ports_n] = s->route[0];
	leave_behind(socket, kept, n);
	for (size_t i = 0; i < s->ports_n; i++)
		s->ports[i].fd = kept[i];
	egress_main(&opt, 0);
}

/* Tunnels, requests and git are counted by several processes, against one limit. */
int net_totals(struct session *s, struct writ_err *err)
{
	const uint64_t *l = s->opt->policy->set.limits;
	void *p;

	if (s->totals)
		return 0;
	if (!l[LIMIT_UP] && !l[LIMIT_DOWN] && !l[LIMIT_REQUESTS])
		return 0;
	s->totals_fd = memfd_create("writ-totals", MFD_CLOEXEC);
	if (s->totals_fd < 0 || ftruncate(s->totals_fd, sizeof(*s->totals)) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "memfd_create");
	p = mmap(NULL, sizeof(*s->totals), PROT_READ | PROT_WRITE, MAP_SHARED, s->totals_fd, 0);
	if (p == MAP_FAILED)
		return writ_fail(err, WRIT_E_SYS, errno, "mmap");
	s->totals = p;
	return 0;
}

int net_start(struct session *s, struct writ_err *err)
{
	int r = publish(s, err);

	if (r == 0)
		r = net_totals(s, err);

	/* Without a network of its own, the mediator and egress have to agree. */
	if (r == 0 && s->view.listeners.n == 0)
		r = helper_pair(s->route, err);
	if (r == 0)
		r = helper_start(s, egress_child, "egress", &s->egress_pid, &s->egress, err);
	unpublish(s);
	if (s->route[0] > 0)
		close(s->route[0]);
	s->route[0] = 0;
	return r;
}

static void tell(struct session *s, const struct egress_message *m, const int *fds, size_t n)
{
	if (s->egress >= 0 && egress_send(s->egress, m, fds, n) != 1 && s->state < SESSION_ENDING)
		session_end(s, "the way to the network is gone", SESSION_FAILED);
}

/* Listeners that writ-init made before anything else ran. */
void net_listeners(struct session *s, uint32_t first, const int *fds, size_t n)
{
	const struct egress_message m = { .type = EGRESS_LISTENERS,
					  .id = first,
					  .count = (uint32_t)n };

	/* The last of them is not egress's. */
	if (s->view.git && n && first + n > s->view.listeners.n) {
		struct writ_err err = { 0 };

		if (gitnet_start(s, fcntl(fds[n - 1], F_DUPFD_CLOEXEC, 3), &err) < 0)
			session_end(s, "the git helper cannot be started", SESSION_FAILED);
		net_listeners(s, first, fds, n - 1);
		return;
	}
	if (n == 0)
		return;
	if (s->egress >= 0) {
		tell(s, &m, fds, n);
		return;
	}
	for (size_t i = 0; i < n && first + i < EARLY_MAX; i++)
		s->early[first + i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
}

void net_first(struct session *s)
{
	struct writ_err err = { 0 };

	if (s->egress >= 0)
		return;
	if (net_start(s, &err) < 0) {
		session_end(s, "the way to the network cannot be started", SESSION_FAILED);
		return;
	}
	for (size_t i = 0; i < EARLY_MAX; i++) {
		if (s->early[i] >= 0)
			net_listeners(s, (uint32_t)i, &s->early[i], 1);
		scope_close(&s->early[i]);
		s->early[i] = -1;
	}
}

/* The keeper's answer to a wish of egress. */
void net_bound(struct session *s, uint32_t id, int fd)
{
	const struct egress_message m = { .type = EGRESS_BOUND, .id = id };

	tell(s, &m, &fd, fd >= 0);
}

static void bind_more(struct session *s, const struct egress_message *from)
{
	struct jail_message m = { .type = JAIL_LISTEN, .id = from->id };
	struct egress_bind b;
	struct jail_listen l = { 0 };
	struct writ_err err = { 0 };

	if (from->text_n != sizeof(b))
		return;
	memcpy(&b, from->text, sizeof(b));
	memcpy(l.addr, b.addr, sizeof(l.addr));
	l.port = b.port;
	l.v6 = b.v6 != 0;
	l.kind = b.dial ? JAIL_DIALLER : JAIL_STREAM;
	if (s->jail.keeper < 0 || jail_send(s->jail.keeper, &m, NULL, 0,
					    (struct sv){ (const char *)&l, sizeof(l) }, &err) < 0)
		net_bound(s, from->id, -1);
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

/* Only once somebody connects to a name. */
static void start_resolver(struct session *s)
{
	const struct egress_message m = { .type = EGRESS_RESOLVER };
	struct writ_err err = { 0 };
	int fd;

	if (s->resolver_pid > 0) {
		kill(s->resolver_pid, SIGKILL);
		(void)waitpid(s->resolver_pid, NULL, 0);
		s->resolver_pid = 0;
	}
	if (helper_start(s, resolve_child, "the resolver", &s->resolver_pid, &fd, &err) < 0)
		return;
	tell(s, &m, &fd, 1);
	close(fd);
}

/* --- events --- */

static const char *const what_names[] = { "lookup", "connect", "closed", "request", "published" };
static const char *const answer_names[] = { "deny", "ask", "allow" };
static const char *const way_names[] = { "closed", "raw", "tls", "read" };

void net_record(struct session *s, const struct egress_event *e, uint64_t count)
{
	struct entry entry = { 0 };

	record_begin(s, &entry, "net");
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
	if (e->why[0])
		record_str(&entry, "why", sv_from(e->why));
	if (e->rule < s->opt->policy->set.rules.n)
		record_str(&entry, "rule", s->opt->policy->set.rules.v[e->rule].text);
	record_end(s, &entry);
}

/* As a rule would name it. */
static void object_of(const struct egress_event *e, char *to, size_t room)
{
	if (e->what == EGRESS_REQUEST)
		(void)snprintf(to, room, "https://%s%.*s", e->host, 400, e->path);
	else if (e->what == EGRESS_LOOKUP || e->port == 443)
		(void)snprintf(to, room, "%s", e->host);
	else
		(void)snprintf(to, room, "%s:%u", e->host, e->port);
}

/* What a person is asked: all that the answer is for, and of a request what it does. */
static void question_of(const struct egress_event *e, char *to, size_t room)
{
	if (e->what == EGRESS_REQUEST)
		(void)snprintf(to, room, "%s %s:%u%s", e->method, e->host, e->port, e->path);
	else
		object_of(e, to, room);
}

static void note_denial(struct session *s, const struct egress_event *e)
{
	struct mediate_event d = { .op = MEDIATE_NET, .denied = true, .rule = e->rule };

	object_of(e, d.object, sizeof(d.object));
	(void)snprintf(d.comm, sizeof(d.comm), "%s", e->what == EGRESS_LOOKUP ? "name" : "network");
	(void)snprintf(d.extra, sizeof(d.extra), "%s", e->why);
	denial_note(s, &d);
}

static void note_event(struct session *s, const struct egress_event *e)
{
	const bool lookup = e->what == EGRESS_LOOKUP && e->answer == CAP_DENY;
	const bool again = lookup && !burst_is_first(s, e);

	if (!again)
		net_record(s, e, 0);
	if (e->what == EGRESS_CLOSE && e->answer == CAP_ALLOW && e->why[0] && !s->hurried)
		say(s, "%s:%u: %s", e->host, e->port, e->why);
	if (e->answer == CAP_DENY && (!again || s->denials.n < DENIALS_MAX))
		note_denial(s, e);
}

/* SECURITY: what a process of ours says may be wrong once somebody took it over. */
static bool take_event(const struct egress_message *m, struct egress_event *ret)
{
	if (m->text_n != sizeof(*ret))
		return false;
	memcpy(ret, m->text, sizeof(*ret));
	ret->host[sizeof(ret->host) - 1] = 0;
	ret->address[sizeof(ret->address) - 1] = 0;
	ret->dropped[sizeof(ret->dropped) - 1] = 0;
	ret->why[sizeof(ret->why) - 1] = 0;
	ret->method[sizeof(ret->method) - 1] = 0;
	ret->path[sizeof(ret->path) - 1] = 0;
	ret->credential[sizeof(ret->credential) - 1] = 0;
	return ret->what < ARRAY_LEN(what_names) && ret->answer < ARRAY_LEN(answer_names) &&
	       ret->way < ARRAY_LEN(way_names);
}

/* Nothing is begun any more; but whom it has sent to may still have to be found. */
static bool is_heard_late(const struct session *s, uint32_t type)
{
	return type == EGRESS_EVENT || type == EGRESS_FINISHED ||
	       (type == EGRESS_WANT_RESOLVER && s->finish_ms && !s->hurried);
}

/* One message of egress or of the reader: 1, -1 if there is none, 0 if it is gone. */
static int heard(struct session *s, int from)
{
	struct egress_message m;
	struct egress_event e;
	int fds[EGRESS_FDS];
	size_t n;
	const int r = egress_receive(from, &m, fds, &n);

	if (r > 0 && m.type == EGRESS_GIT && from == s->egress && n == 1)
		gitnet_hand(s, fds[0]);
	for (size_t i = 0; r > 0 && i < n; i++)
		close(fds[i]);
	if (r <= 0)
		return r;
	if (s->state == SESSION_ENDED && !is_heard_late(s, m.type))
		return 1;
	if (m.type == EGRESS_BIND && from == s->egress) {
		bind_more(s, &m);
	} else if (m.type == EGRESS_WANT_RESOLVER && from == s->egress) {
		start_resolver(s);
	} else if (m.type == EGRESS_WANT_READER && from == s->egress && s->reader < 0) {
		struct writ_err err = { 0 };

		if (read_start(s, &err) < 0)
			say(s, "%s", err.what);
	} else if (m.type == EGRESS_FINISHED) {
		*(from == s->egress ? &s->egress_finished : &s->reader_finished) = true;
	} else if (m.type == EGRESS_EVENT && take_event(&m, &e)) {
		note_event(s, &e);
	} else if (m.type == EGRESS_READY && from == s->reader) {
		struct writ_err err = { 0 };

		if (read_trust(s, (struct sv){ m.text, m.text_n }, &err) < 0)
			session_end(s, "the authority cannot be told", SESSION_FAILED);
	} else if (m.type == EGRESS_ASK) {
		char object[MEDIATE_TEXT];

		if (!take_event(&m, &e))
			return 0;
		question_of(&e, object, sizeof(object));
		ask_add(s, m.id, from == s->reader, object);
	}
	return 1;
}

/*
 * To wake up for each of thousands of connections would cost more than relaying them
 * does. What is said meanwhile waits in the socket, and nothing of it is lost.
 */
static void count_heard(struct session *s, uint32_t n)
{
	const uint64_t now = clock_ms();

	if (now >= s->heard_ms + HEAR_MS) {
		s->heard = now >= s->heard_ms + 2 * HEAR_MS ? 0 : s->heard / 2;
		s->heard_ms = now;
	}
	s->heard += n;
	s->rest_ms = s->heard >= HEAR_MANY ? now + REST_MS : 0;
}

int net_rest(struct session *s, int most)
{
	const uint64_t now = s->rest_ms ? clock_ms() : 0;

	if (s->rest_ms <= now) {
		s->rest_ms = 0;
		return 0;
	}
	return most >= 0 && (uint64_t)most < s->rest_ms - now ? most : (int)(s->rest_ms - now);
}

bool net_hear(struct session *s, const int *from)
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

void net_event(struct session *s)
{
	if (net_hear(s, &s->egress))
		return;
	/* SECURITY: no listener is left either, so nothing gets out. */
	scope_close(&s->egress);
	s->egress = -1;
	if (s->state < SESSION_ENDING)
		session_end(s, "the way to the network is gone", SESSION_FAILED);
}

/* What has to be read needs somebody who reads, whom programs inside were told to trust. */
static bool can_be_held(const struct session *s, const struct cap *c)
{
	const bool is_signed = s->opt->policy->set.net_level == NET_LEVEL_SIGNED;

	if (is_signed)
		return s->reader >= 0 && c->action == CAP_HTTP_REQUEST && !c->tls_pass;
	return s->reader >= 0 || c->action != CAP_HTTP_REQUEST || reach_is_open(c);
}

/* SECURITY: what comes over the control socket is read as any capability is. */
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

/* Each capability of a live grant to one of our processes. False: it is gone. */
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

bool net_grant(struct session *s, const struct grant *g)
{
	if (s->view.listeners.n == 0 || !is_fit(s, sv_from(g->path)))
		return false;
	net_first(s);
	if (s->egress < 0 || !tell_grant(s->egress, g, true))
		return false;
	/* A reader that is gone is told with the next one's start. */
	if (s->reader < 0 || tell_grant(s->reader, g, true))
		return true;
	(void)tell_grant(s->egress, g, false);
	return false;
}

void net_revoke(struct session *s, const struct grant *g)
{
	/* SECURITY: a grant that cannot be taken back ends the session. */
	if ((s->egress >= 0 && !tell_grant(s->egress, g, false)) ||
	    (s->reader >= 0 && !tell_grant(s->reader, g, false)))
		session_end(s, "a grant could not be taken back", SESSION_FAILED);
}

/* What it read ends with it; raw tunnels go on, and another one takes its place. */
void net_read_event(struct session *s)
{
	struct writ_err err = { 0 };
	struct entry entry = { 0 };

	if (net_hear(s, &s->reader))
		return;
	scope_close(&s->reader);
	s->reader = -1;
	/* One that only hung up is not waited for. */
	if (s->reader_pid > 0) {
		kill(s->reader_pid, SIGKILL);
		(void)waitpid(s->reader_pid, NULL, 0);
	}
	s->reader_pid = 0;
	if (s->state >= SESSION_ENDING)
		return;
	record_begin(s, &entry, "reader");
	record_str(&entry, "what",
		   SV("the process that reads requests ended, and is started again"));
	record_end(s, &entry);
	if (++s->reader_deaths > READER_DEATHS || read_start(s, &err) < 0) {
		session_end(s, "nobody can read requests any more", SESSION_FAILED);
		return;
	}
	for (size_t i = 0; i < s->grants.n; i++)
		if (s->grants.v[i].net && s->grants.v[i].state == GRANT_HELD)
			(void)tell_grant(s->reader, &s->grants.v[i], true);
}

void net_clear(struct session *s)
{
	pid_t *const pids[] = { &s->egress_pid, &s->resolver_pid, &s->reader_pid };

	scope_close(&s->egress);
	scope_close(&s->reader);
	s->egress = s->reader = -1;
	if (s->totals)
		(void)munmap(s->totals, sizeof(*s->totals));
	s->totals = NULL;
	scope_close(&s->totals_fd);
	s->totals_fd = -1;
	for (size_t i = 0; i < EARLY_MAX; i++)
		scope_close(&s->early[i]);
	for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
		if (*pids[i] <= 0)
			continue;
		kill(*pids[i], SIGKILL);
		while (waitpid(*pids[i], NULL, 0) < 0 && errno == EINTR)
			;
		*pids[i] = 0;
	}
}
