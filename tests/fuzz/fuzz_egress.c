#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "egress/egress_priv.h"
#include "fuzz.h"

/*
 * What an agent sends to the process that relays, taken in as it would be: by its
 * proxy, by a listener for TLS, by its names over datagrams and over a stream.
 * Nothing is ever dialled: the policy names no address, nobody resolves names or reads requests.
 */

enum entrance { ENTER_PROXY = 0, ENTER_TLS, ENTER_DATAGRAM, ENTER_STREAM, ENTRANCES };

static const char *const grants[] = {
	"net.connect:r:tcp/raw.example.com:7000",
	"net.connect:r:tcp/*.pkg.example.com:7000-7003",
	"http.request:r:https://tls.example.com:443/**;m=*;q=any",
	"http.request:r:http://web.example.com:80/v1/**;m=GET;q=any",
};

struct scene {
	struct egress *e;
	struct arena arena;
	struct cap_set set;
	int boss, listener, near, far;
};

static void make_set(struct scene *s)
{
	struct writ_err err = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(grants); i++) {
		struct cap_entry *c = vec_push(&s->arena, &s->set.caps);

		must(c && cap_parse(&s->arena, CAP_GRANT, sv_from(grants[i]), &c->cap, &err) == 0);
		c->rule = RULE_NONE;
	}
}

static void open_scene(struct scene *s)
{
	struct egress *e = calloc(1, sizeof(*e));
	struct writ_err err = { 0 };
	int pair[2];

	*s = (struct scene){ .e = e, .arena = ARENA_INIT(16 << 20), .near = -1, .far = -1 };
	must(e);
	make_set(s);
	e->arena = (struct arena)ARENA_INIT(16 << 20);
	e->set = s->set;
	must(reach_init(&e->arena, &e->set, SV("r"), &e->reach, &err) == 0);
	quota_init(&e->quota, &e->arena, &e->set);
	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	e->supervisor.fd = pair[0];
	s->boss = pair[1];
	e->session = SV("s");
	e->resolver.fd = e->reader.fd = e->dial.route[0] = e->dial.route[1] = -1;
	e->due_ms = UINT64_MAX;
	e->epoll = epoll_create1(EPOLL_CLOEXEC);
	must(e->epoll >= 0);
}

/* A listener, and somebody who has connected to it and sent nothing yet. */
static void connect_scene(struct scene *s, struct listener *l, bool stream)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	socklen_t n = sizeof(sa_family_t);
	const int type = (stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK;

	l->fd = s->listener = socket(AF_UNIX, type, 0);
	s->far = socket(AF_UNIX, type, 0);
	must(l->fd >= 0 && s->far >= 0 && bind(l->fd, (struct sockaddr *)&at, n) == 0);
	n = sizeof(at);
	must(getsockname(l->fd, (struct sockaddr *)&at, &n) == 0);
	if (stream)
		must(listen(l->fd, 1) == 0);
	else /* so that it has an address to answer to */
		must(bind(s->far, (struct sockaddr *)&(struct sockaddr_un){ AF_UNIX, "" },
			  sizeof(sa_family_t)) == 0);
	must(connect(s->far, (struct sockaddr *)&at, n) == 0);
}

/* Every wish for a listener is for what the policy opens; every event is well-formed. */
static void check_messages(struct scene *s)
{
	struct egress_message m;
	struct egress_event ev;
	struct egress_bind b;
	int fds[EGRESS_FDS];
	size_t n;

	while (egress_receive(s->boss, &m, fds, &n) == 1) {
		must(n == 0);
		if (m.type == EGRESS_BIND) {
			must(m.text_n == sizeof(b));
			memcpy(&b, m.text, sizeof(b));
			must(b.addr[0] == 198 && b.port >= 7000 && b.port <= 7003);
		} else if (m.type == EGRESS_EVENT) {
			must(m.text_n == sizeof(ev));
			memcpy(&ev, m.text, sizeof(ev));
			must(memchr(ev.host, 0, sizeof(ev.host)) &&
			     cap_why_receive(&ev.why));
			must(ev.answer == CAP_DENY || ev.what == EGRESS_CLOSE ||
			     ev.why.cause != CAUSE_NONE);
			must(!ev.address[0]);
		} else {
			must(m.type == EGRESS_WANT_RESOLVER || m.type == EGRESS_WANT_READER);
		}
	}
}

static void drain(int fd)
{
	char bytes[4096];

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

/* In pieces, as a network would. */
static void feed(struct scene *s, struct listener *l, enum entrance how, const uint8_t *data,
		 size_t size, size_t piece)
{
	struct flow *f;

	while (size) {
		const size_t n = size < piece ? size : piece;

		if (send(s->far, data, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			return;
		data += n;
		size -= n;
		f = s->e->waiting;
		if (how == ENTER_DATAGRAM)
			egress_dns_datagram(s->e, l);
		else if (how == ENTER_STREAM && s->e->dns.clients)
			egress_dns_ready(s->e, s->e->dns.clients);
		else if (f)
			flow_ready(s->e, f, 0, EPOLLIN);
		check_messages(s);
		drain(s->far);
	}
}

static void close_scene(struct scene *s)
{
	struct egress *e = s->e;

	while (e->waiting)
		flow_drop(e, e->waiting, false);
	must(e->flows == NULL && e->flows_n == 0 && e->waiting_n == 0);
	e->now_ms = UINT64_MAX - 1;
	egress_dns_timers(e);
	must(e->dns.clients_n == 0);
	while (e->dead) {
		struct flow *f = e->dead;

		e->dead = f->next;
		free(f);
	}
	while (e->dead_setups) {
		struct setup *setup = e->dead_setups;

		e->dead_setups = setup->next_dead;
		free(setup);
	}
	close(e->epoll);
	close(e->supervisor.fd);
	close(s->boss);
	close(s->listener);
	close(s->far);
	arena_clear(&e->arena);
	arena_clear(&s->arena);
	free(e);
}

/* One byte says where it comes in, one how large the pieces are. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct listener l = { .kind = KIND_LISTENER };
	struct scene s;
	enum entrance how;

	if (size < 2)
		return 0;
	how = (enum entrance)(data[0] % ENTRANCES);
	open_scene(&s);
	connect_scene(&s, &l, how != ENTER_DATAGRAM);
	l.l.what = how == ENTER_PROXY ? REACH_PROXY : REACH_HOST;
	if (how == ENTER_TLS) {
		l.l.host = SV("tls.example.com");
		l.l.port = 443;
		l.way = REACH_SNI;
	}
	if (how == ENTER_STREAM)
		egress_dns_accept(s.e, &l);
	else if (how != ENTER_DATAGRAM)
		flow_accept(s.e, &l);
	feed(&s, &l, how, data + 2, size - 2, data[1] ? data[1] : size);
	close_scene(&s);
	return 0;
}
