#include "egress/egress_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "wire/hello.h"
#include "wire/http1.h"
#include "wire/socks.h"

#include "base/banned.h"

/*
 * Parse the first bytes of a client connection: the server name in a TLS hello, or a request to the
 * proxy port. Egress applies the same decision to the destination that these bytes name as to the
 * destination of a connection by address.
 */

enum { HTTP_FIELDS = 100 };

enum head_stage {
	HEAD_START = 0,
	HEAD_SOCKS5, /* egress has answered the SOCKS 5 greeting and expects the request */
	/*
	 * the client has named its destination; the buffered bytes are for the destination, a TLS
	 * hello or a plain HTTP request
	 */
	HEAD_TLS,
};

/* Removes the first @n buffered bytes, which the client addressed to egress itself. */
static void head_consume(struct setup *s, size_t n)
{
	s->head_n -= n;
	memmove(s->head, s->head + n, s->head_n);
}

static void send_client(const struct flow *f, const void *bytes, size_t n)
{
	(void)!send(f->fd[0], bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* --- replies to a client of the proxy port --- */

static void send_forbidden(const struct egress *e, const struct flow *f, enum cap_answer answer,
			   const struct cap_why *w)
{
	char why[CAP_WHY_TEXT];
	scoped_buf body = BUF_INIT(2048), b = BUF_INIT(4096);

	(void)cap_why_print(w->cause, w->detail, why, sizeof(why));
	if (answer == CAP_DENY) {
		buf_fmt(&body, "writ: denied net " SV_FMT ":%u: %s\n", SV_ARG(f->host), f->port,
			why);
		buf_fmt(&body,
			"a person outside can allow it: writ allow " SV_FMT " 'net:" SV_FMT
			":%u'\n",
			SV_ARG(e->session), SV_ARG(f->host), f->port);
	} else {
		buf_fmt(&body, "writ: " SV_FMT ":%u: %s\n", SV_ARG(f->host), f->port, why);
	}
	buf_fmt(&b,
		"HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
		"Connection: close\r\nX-Writ-Reason: %s\r\n\r\n",
		answer == CAP_DENY ? "403 Forbidden" : "502 Bad Gateway", body.n, why);
	buf_sv(&b, buf_view(&body));
	if (!b.failed && !body.failed)
		send_client(f, b.p, b.n);
}

/* Sends @reply in the SOCKS version that the client speaks. Sends nothing to an HTTP client. */
static void send_socks(const struct flow *f, enum socks_reply reply)
{
	uint8_t out[SOCKS5_REPLY_SIZE];

	if (f->setup->protocol == WIRE_SOCKS5) {
		socks5_reply(reply, out);
		send_client(f, out, SOCKS5_REPLY_SIZE);
	} else if (f->setup->protocol == WIRE_SOCKS4) {
		socks4_reply(reply == SOCKS_OK, out);
		send_client(f, out, SOCKS4_REPLY_SIZE);
	}
}

void egress_head_refuse(struct egress *e, struct flow *f, enum cap_answer answer,
			const struct cap_why *why)
{
	if (!f->setup || f->setup->replied)
		return;
	if (f->setup->protocol == WIRE_HTTP)
		send_forbidden(e, f, answer, why);
	else if (f->setup->protocol != WIRE_SOCKS5 || f->setup->stage == HEAD_SOCKS5)
		send_socks(f, answer == CAP_DENY ? SOCKS_NOT_ALLOWED : SOCKS_HOST_UNREACHABLE);
}

void egress_head_accepted(struct flow *f)
{
	static const char connected[] = "HTTP/1.1 200 Connection established\r\n\r\n";

	if (!f->setup || f->setup->replied)
		return;
	f->setup->replied = true;
	send_socks(f, SOCKS_OK);
	if (f->setup->protocol == WIRE_HTTP)
		send_client(f, connected, sizeof(connected) - 1);
}

/* --- the destination of a proxy request --- */

struct sv egress_head_host(const struct egress *e, const struct wire_host *h, char *room,
			   size_t room_n)
{
	scoped_buf b = BUF_INIT(room_n);
	struct sv name = SV("");

	if (h->kind == WIRE_HOST_V4)
		name = reach_name_of(&e->reach, reach_v4(h->addr.b));
	if (name.n == 0) {
		wire_host_print(h, &b);
		egress_copy_text(room, room_n, buf_view(&b));
		name = sv_from(room);
	}
	return sv_is(name, REACH_HOST_NAME) ? SV("localhost") : name;
}

struct sv egress_head_intern(struct egress *e, struct sv host)
{
	for (size_t i = 0; i < e->listeners.n; i++)
		if (sv_eq(e->listeners.v[i]->l.host, host))
			return e->listeners.v[i]->l.host;
	return reach_name_of(&e->reach, reach_intern(&e->reach, host));
}

/*
 * Continues the flow with the destination that the client named to the proxy. If the flow is
 * refused, the client gets the refusal in the proxy protocol that it speaks.
 */
static void route_to(struct egress *e, struct flow *f, const struct wire_host *h, uint16_t port)
{
	struct sv kept;

	f->host = egress_head_host(e, h, f->setup->host, sizeof(f->setup->host));
	f->port = port;
	f->way = (uint8_t)reach_way(&e->reach, f->host, port);
	/*
	 * A plain HTTP request to the proxy names its host in the target. Only the reader can
	 * rewrite the target, so hand the flow to the reader even if the policy allows raw
	 * forwarding.
	 */
	if (f->way == REACH_RAW && f->setup->stage == HEAD_TLS)
		f->way = REACH_READ;
	if (f->way != REACH_CLOSED) {
		kept = egress_head_intern(e, f->host);
		if (kept.n == 0) {
			flow_refuse(e, f, CAP_DENY, RULE_NONE, CAUSE_NAMES);
			return;
		}
		f->host = kept;
	}
	if (f->setup->stage == HEAD_TLS && f->way == REACH_SNI) {
		flow_refuse(e, f, CAP_DENY, RULE_NONE, CAUSE_NOT_TLS);
		return;
	}
	if (f->way == REACH_SNI || (f->way == REACH_READ && f->setup->stage != HEAD_TLS)) {
		egress_head_accepted(f);
		f->setup->stage = HEAD_TLS;
	}
	if (f->way == REACH_SNI) {
		egress_head_read(e, f);
		return;
	}
	flow_decide(e, f);
}

/* --- TLS --- */

static void on_hello(struct egress *e, struct flow *f)
{
	struct hello h;
	struct writ_err err = { 0 };
	uint8_t body[HELLO_ROOM_MAX];
	size_t n;
	struct cap_net_addr addr;
	enum hello_state state;

	hello_init(&h, body, sizeof(body));
	state = hello_push(&h, (struct sv){ f->setup->head, f->setup->head_n }, &n, &err);
	if (state == HELLO_MORE)
		return;
	if (state == HELLO_NOT_TLS)
		flow_refuse(e, f, CAP_DENY, RULE_NONE, CAUSE_NOT_TLS);
	else if (state == HELLO_BAD)
		flow_refuse(e, f, CAP_DENY, RULE_NONE, CAUSE_HELLO);
	else if (h.name.kind == WIRE_HOST_NONE && !cap_addr_parse(f->host, &addr))
		flow_refuse(e, f, CAP_DENY, RULE_NONE, CAUSE_HELLO_NAMELESS);
	else if (h.name.kind != WIRE_HOST_NONE && !sv_eq(wire_host_name(&h.name), f->host))
		flow_refuse(e, f, CAP_DENY, RULE_NONE, CAUSE_HELLO_OTHER);
	else
		flow_decide(e, f);
}

/* --- proxies --- */

static void on_socks_request(struct egress *e, struct flow *f, enum wire_state s,
			     const struct socks_request *req, size_t n)
{
	if (s == WIRE_MORE)
		return;
	if (s == WIRE_BAD) {
		flow_refuse(e, f, CAP_DENY, RULE_NONE, CAUSE_SOCKS);
		return;
	}
	head_consume(f->setup, n);
	if (req->command != SOCKS_CONNECT) {
		if (f->setup->protocol == WIRE_SOCKS5)
			send_socks(f, SOCKS_BAD_COMMAND);
		f->setup->replied = true;
		flow_refuse(e, f, CAP_DENY, RULE_NONE, CAUSE_SOCKS_CONNECT);
		return;
	}
	route_to(e, f, &req->host, req->port);
}

static void on_socks5(struct egress *e, struct flow *f)
{
	struct setup *s = f->setup;
	struct socks_request req;
	enum socks_reply code = SOCKS_FAILED;
	struct writ_err err = { 0 };
	uint8_t out[SOCKS_GREETING_SIZE];
	bool none = false;
	size_t n = 0;
	enum wire_state state;

	if (s->stage == HEAD_START) {
		state = socks5_greeting_parse((struct sv){ s->head, s->head_n }, &none, &n, &err);
		if (state == WIRE_MORE)
			return;
		socks5_greeting_reply(none && state == WIRE_DONE, out);
		send_client(f, out, SOCKS_GREETING_SIZE);
		if (state == WIRE_BAD || !none) {
			flow_refuse(e, f, CAP_DENY, RULE_NONE, CAUSE_SOCKS_OPEN);
			return;
		}
		head_consume(s, n);
		s->stage = HEAD_SOCKS5;
	}
	state = socks5_request_parse((struct sv){ s->head, s->head_n }, &req, &n, &code, &err);
	on_socks_request(e, f, state, &req, n);
}

static void on_socks4(struct egress *e, struct flow *f)
{
	struct socks_request req;
	struct writ_err err = { 0 };
	size_t n = 0;
	const enum wire_state state = socks4_request_parse(
		(struct sv){ f->setup->head, f->setup->head_n }, &req, &n, &err);

	on_socks_request(e, f, state, &req, n);
}

static void bad_request(struct egress *e, struct flow *f)
{
	static const char text[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n"
				   "Connection: close\r\n\r\n";

	send_client(f, text, sizeof(text) - 1);
	f->setup->replied = true;
	flow_refuse(e, f, CAP_DENY, RULE_NONE, CAUSE_PROXY_REQUEST);
}

static void on_http(struct egress *e, struct flow *f)
{
	const struct sv bytes = { f->setup->head, f->setup->head_n };
	struct http1_field fields[HTTP_FIELDS];
	struct http1_find find = { 0 };
	struct http1_request q;
	struct writ_err err = { 0 };
	size_t n;
	const enum wire_state s = http1_head_find(&find, bytes, &http1_limits_default, &n, &err);

	if (s == WIRE_MORE && f->setup->head_n < HEAD_MAX)
		return;
	if (s != WIRE_DONE ||
	    http1_request_parse(sv_sub(bytes, 0, n), 80, fields, HTTP_FIELDS, &q, &err) < 0 ||
	    (q.form != HTTP1_AUTHORITY && (q.form != HTTP1_ABSOLUTE || q.tls))) {
		bad_request(e, f);
		return;
	}
	/*
	 * Keep the head of a plain HTTP request in the buffer, because the
	 * reader parses the head again.
	 */
	if (q.form == HTTP1_AUTHORITY)
		head_consume(f->setup, n);
	else
		f->setup->stage = HEAD_TLS;
	route_to(e, f, &q.host.host, q.host.port);
}

/* --- reading the first bytes --- */

static bool read_more(struct flow *f)
{
	struct setup *s = f->setup;
	ssize_t n = 0;

	if (!s->head)
		s->head = malloc(HEAD_MAX);
	while (s->head && s->head_n < HEAD_MAX) {
		n = recv(f->fd[0], s->head + s->head_n, HEAD_MAX - s->head_n, MSG_DONTWAIT);
		if (n <= 0)
			break;
		s->head_n += (size_t)n;
	}
	return s->head && s->head_n && !(n < 0 && errno != EAGAIN) && (n != 0 || s->head_n);
}

void egress_head_read(struct egress *e, struct flow *f)
{
	struct setup *s = f->setup;
	const bool got = read_more(f);

	if (!got && (f->side[0] & HUNG_UP)) {
		flow_drop(e, f, false);
		return;
	}
	if (!got || s->head_n == 0)
		return;
	if (s->stage == HEAD_TLS || !f->proxy) {
		on_hello(e, f);
		return;
	}
	if (!s->protocol)
		s->protocol = (uint8_t)wire_protocol_of((uint8_t)s->head[0]);
	switch ((enum wire_protocol)s->protocol) {
	case WIRE_SOCKS5:
		on_socks5(e, f);
		break;
	case WIRE_SOCKS4:
		on_socks4(e, f);
		break;
	case WIRE_HTTP:
		on_http(e, f);
		break;
	case WIRE_UNKNOWN:
	case WIRE_TLS:
		flow_refuse(e, f, CAP_DENY, RULE_NONE, CAUSE_PROXY_PROTOCOL);
		break;
	}
}
