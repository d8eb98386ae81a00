#include "witness/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "witness/http.h"

#include "base/banned.h"

enum { LEAVE_MS = 1000 };

struct peer {
	int fd; /* socket of the peer; -1 if this slot is free */
	int64_t until;
	uint64_t number; /* number of the connection; increases with every accepted connection */
	/* address of the peer: an IPv4 address, or the first 64 bits of an IPv6 address */
	uint8_t from[8];
	struct buf in, out;
	size_t sent;
	bool answered; /* the response is sent; the server waits for the peer to close */
};

struct server {
	struct witness_store *k;
	int listener;
	void (*log)(void *ctx, unsigned status, size_t bytes);
	void *ctx;
	uint64_t accepted;
	struct peer peers[SERVE_CONNECTIONS];
};

static socklen_t address_of(const struct wire_authority *at, struct sockaddr_storage *ret)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(at->port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(at->port) };

	memset(ret, 0, sizeof(*ret));
	if (at->host.kind == WIRE_HOST_V4) {
		memcpy(&v4.sin_addr, at->host.addr.b, 4);
		memcpy(ret, &v4, sizeof(v4));
		return sizeof(v4);
	}
	memcpy(&v6.sin6_addr, at->host.addr.b, 16);
	memcpy(ret, &v6, sizeof(v6));
	return sizeof(v6);
}

/*
 * Parses the address to listen on. wire_authority_parse() refuses port 0, which selects a free port
 * for bind(). Parse the address without the port in that case.
 */
static int parse_at(struct sv at, struct wire_authority *ret, struct writ_err *err)
{
	const bool any = sv_ends(at, SV(":0"));
	int r = wire_authority_parse(any ? sv_sub(at, 0, at.n - 2) : at, any ? 1 : 0, ret, err);

	if (r == 0 && ret->host.kind == WIRE_HOST_NAME)
		r = writ_fail(err, WRIT_E_SYNTAX, 0, "an address, as in 127.0.0.1:8080");
	if (r == 0 && any)
		ret->port = 0;
	return r;
}

int witness_serve_listen(struct sv at, int *ret_fd, uint16_t *ret_port, struct writ_err *err)
{
	struct sockaddr_storage where;
	struct wire_authority who;
	struct sockaddr_in6 got;
	socklen_t n, got_n = sizeof(got);
	const int on = 1;
	scoped_fd fd = -1;
	int r = parse_at(at, &who, err);

	if (r < 0)
		return r;
	n = address_of(&who, &where);
	fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)&where, n) < 0 || listen(fd, 128) < 0 ||
	    getsockname(fd, (struct sockaddr *)&got, &got_n) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "listen on " SV_FMT, SV_ARG(at));
	/* The port is at the same offset in the IPv4 and IPv6 address structures. */
	*ret_port = ntohs(got.sin6_port);
	*ret_fd = fd_take(&fd);
	return 0;
}

static void reset_peer(struct peer *p)
{
	fd_scope_close(&p->fd);
	buf_clear(&p->in);
	buf_clear(&p->out);
	*p = (struct peer){ .fd = -1,
			    .in = BUF_INIT(HTTP_REQUEST_MAX),
			    .out = BUF_INIT(HTTP_ANSWER_MAX) };
}

static void answer(struct server *s, struct peer *p, unsigned status, const struct buf *body)
{
	witness_http_answer_put(status, status == 409 ? "text/x.tlog.size" : "text/plain",
				buf_view(body), &p->out);
	if (s->log)
		s->log(s->ctx, status, p->in.n);
}

/* Parses all bytes received so far from a peer. Answers the request if it is complete. */
static void handle_input(struct server *s, struct peer *p)
{
	scoped_buf body = BUF_INIT(HTTP_ANSWER_BODY);
	struct writ_err err = { 0 };
	unsigned status = 400;
	struct sv request;

	switch (witness_http_request_take(buf_view(&p->in), &request, &status, &err)) {
	case WIRE_MORE:
		return;
	case WIRE_BAD:
		break;
	case WIRE_DONE:
		status = witness_store_answer(s->k, request, (uint64_t)time(NULL), &body);
		break;
	}
	answer(s, p, status, &body);
}

/* Receives bytes of the request. Returns false if the connection is finished. */
static bool receive(struct server *s, struct peer *p)
{
	char bytes[16384];
	const ssize_t n = recv(p->fd, bytes, sizeof(bytes), 0);

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	if (p->out.n)
		return true; /* the request is already answered: discard further input */
	buf_add(&p->in, bytes, (size_t)n);
	if (p->in.failed) {
		const struct buf none = BUF_INIT(1);

		answer(s, p, 413, &none);
		return true;
	}
	handle_input(s, p);
	return true;
}

static bool transmit(struct peer *p)
{
	const ssize_t n =
		send(p->fd, p->out.p + p->sent, p->out.n - p->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	p->sent += (size_t)n;
	if (p->sent < p->out.n)
		return true;
	/*
	 * Closing a socket with unread input resets the connection, and the peer would lose the
	 * response. Shut down only the sending side and wait for the peer to close, or for the
	 * timeout.
	 */
	(void)shutdown(p->fd, SHUT_WR);
	p->answered = true;
	p->until = clock_monotonic_ms() + LEAVE_MS;
	return true;
}

static void peer_address(const struct sockaddr_storage *at, uint8_t ret[static 8])
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	memset(ret, 0, 8);
	if (at->ss_family == AF_INET) {
		memcpy(&v4, at, sizeof(v4));
		memcpy(ret, &v4.sin_addr, 4);
		return;
	}
	memcpy(&v6, at, sizeof(v6));
	if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
		memcpy(ret, &v6.sin6_addr.s6_addr[12], 4);
	else
		memcpy(ret, &v6.sin6_addr, 8);
}

/* Counts the connections of the address @from and finds the oldest of them. */
static size_t connections_of(const struct server *s, const uint8_t from[static 8],
			     size_t *ret_oldest)
{
	size_t n = 0;

	for (size_t i = 0; i < SERVE_CONNECTIONS; i++) {
		if (s->peers[i].fd < 0 || memcmp(s->peers[i].from, from, 8) != 0)
			continue;
		if (n++ == 0 || s->peers[i].number < s->peers[*ret_oldest].number)
			*ret_oldest = i;
	}
	return n;
}

/*
 * Finds a slot for a connection from @from. If that address has too many connections, its oldest
 * connection is dropped; if all slots are in use, the oldest connection of the address with the
 * most connections is dropped.
 */
static struct peer *find_slot(struct server *s, const uint8_t from[static 8])
{
	size_t most = 0, give = 0, oldest = 0;

	if (connections_of(s, from, &oldest) >= SERVE_PER_ADDRESS) {
		reset_peer(&s->peers[oldest]);
		return &s->peers[oldest];
	}
	for (size_t i = 0; i < SERVE_CONNECTIONS; i++) {
		size_t n;

		if (s->peers[i].fd < 0)
			return &s->peers[i];
		n = connections_of(s, s->peers[i].from, &oldest);
		if (n > most || (n == most && s->peers[oldest].number < s->peers[give].number)) {
			most = n;
			give = oldest;
		}
	}
	reset_peer(&s->peers[give]);
	return &s->peers[give];
}

static void accept_peer(struct server *s)
{
	struct sockaddr_storage at = { 0 };
	socklen_t n = sizeof(at);
	const int fd =
		accept4(s->listener, (struct sockaddr *)&at, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct peer *p;
	uint8_t from[8];

	if (fd < 0)
		return;
	peer_address(&at, from);
	p = find_slot(s, from);
	p->fd = fd;
	p->until = clock_monotonic_ms() + SERVE_MS;
	p->number = s->accepted++;
	memcpy(p->from, from, sizeof(from));
}

static short waits_for(const struct peer *p)
{
	return p->out.n && !p->answered ? POLLOUT : POLLIN;
}

/* Fills @ret for poll(): the listener, then the connections. ret[i] is of the slot which[i]. */
static nfds_t fill_pollfds(const struct server *s, struct pollfd *ret, size_t *which)
{
	nfds_t n = 1;

	for (size_t i = 0; i < SERVE_CONNECTIONS; i++)
		if (s->peers[i].fd >= 0) {
			ret[n] = (struct pollfd){ s->peers[i].fd, waits_for(&s->peers[i]), 0 };
			which[n++] = i;
		}
	ret[0] = (struct pollfd){ s->listener, POLLIN, 0 };
	return n;
}

static int step(struct server *s, struct writ_err *err)
{
	struct pollfd p[SERVE_CONNECTIONS + 1];
	size_t which[SERVE_CONNECTIONS + 1];
	const nfds_t n = fill_pollfds(s, p, which);
	int64_t now;

	if (poll(p, n, n > 1 ? 1000 : -1) < 0 && errno != EINTR)
		return writ_fail(err, WRIT_E_SYS, errno, "poll");
	now = clock_monotonic_ms();
	for (nfds_t i = 1; i < n; i++) {
		struct peer *peer = &s->peers[which[i]];
		bool goes_on = now < peer->until;

		if (goes_on && p[i].revents & POLLOUT)
			goes_on = transmit(peer);
		else if (goes_on && p[i].revents)
			goes_on = receive(s, peer);
		if (!goes_on)
			reset_peer(peer);
	}
	if (p[0].revents & POLLIN)
		accept_peer(s);
	return 0;
}

int witness_serve_loop(struct witness_store *k, int listener,
		       void (*log)(void *ctx, unsigned status, size_t bytes), void *ctx,
		       struct writ_err *err)
{
	struct server s = { .k = k, .listener = listener, .log = log, .ctx = ctx };
	int r = 0;

	for (size_t i = 0; i < SERVE_CONNECTIONS; i++) {
		s.peers[i].fd = -1;
		reset_peer(&s.peers[i]);
	}
	while (r == 0)
		r = step(&s, err);
	for (size_t i = 0; i < SERVE_CONNECTIONS; i++)
		reset_peer(&s.peers[i]);
	return r;
}
