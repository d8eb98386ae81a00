#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "l7/l7_priv.h"

#include "base/banned.h"

enum { READ_SIZE = 16 << 10, READ_STEP = 64 << 10, RECORD = 16 << 10 };

/* --- opening and closing --- */

void l7_link_open(struct l7 *l, struct link *k, enum link_what what, int fd)
{
	const int on = 1;

	*k = (struct link){ .l7 = l,
			    .what = what,
			    .fd = fd,
			    .first = FIFO_INIT(READER_BYTES),
			    .in = FIFO_INIT(L7_IN),
			    .out = FIFO_INIT(L7_OUT_MAX),
			    .readable = fd >= 0 };
	k->next = l->links;
	k->at = &l->links;
	if (l->links)
		l->links->at = &k->next;
	l->links = k;
	if (fd >= 0) {
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	}
}

static void unwake(struct link *k)
{
	struct link **p = &k->l7->woken;

	while (*p && *p != k)
		p = &(*p)->next_woken;
	if (!*p)
		return;
	*p = k->next_woken;
	if (k->l7->woken_end == &k->next_woken)
		k->l7->woken_end = p;
}

void l7_link_close(struct link *k)
{
	*k->at = k->next;
	if (k->next)
		k->next->at = k->at;
	if (k->woken)
		unwake(k);
	SSL_free(k->ssl);
	/*
	 * SECURITY: remove the watch explicitly. Egress may still have the same file open; epoll
	 * would then continue to report events for freed memory.
	 */
	if (k->fd >= 0) {
		(void)epoll_ctl(k->l7->epoll, EPOLL_CTL_DEL, k->fd, NULL);
		close(k->fd);
	}
	fifo_clear(&k->first);
	fifo_clear(&k->in);
	fifo_clear(&k->out);
}

void l7_link_wake(struct link *k)
{
	if (k->woken || k->dead)
		return;
	k->woken = true;
	k->next_woken = NULL;
	*k->l7->woken_end = k;
	k->l7->woken_end = &k->next_woken;
}

void l7_link_kill(struct link *k)
{
	if (k->dead)
		return;
	k->dead = true;
	k->next_dead = k->l7->dead;
	k->l7->dead = k;
}

void l7_link_finish(struct link *k)
{
	k->closing = true;
	k->deadline_ms = l7_now_ms(k->l7) + L7_LINGER_MS;
	l7_link_wake(k);
}

void l7_link_put(struct link *k, struct sv bytes)
{
	if (!fifo_add(&k->out, bytes))
		l7_link_kill(k);
	l7_link_wake(k);
}

void l7_link_put_piece(struct link *k, struct sv data, bool chunked)
{
	char head[HTTP1_CHUNK_HEAD_MAX];

	if (chunked)
		l7_link_put(k, (struct sv){ head, http1_chunk_head(data.n, head) });
	l7_link_put(k, data);
	if (chunked)
		l7_link_put(k, SV("\r\n"));
}

void l7_link_put_last_chunk(struct link *k, struct sv trailers)
{
	struct buf *b = l7_scratch(k->l7);

	http1_chunk_end(trailers, b);
	if (b->failed)
		l7_link_kill(k);
	else
		l7_link_put(k, buf_view(b));
}

/* --- TLS over a descriptor from which egress has already read --- */

static int bio_read(BIO *b, char *to, size_t n, size_t *ret)
{
	struct link *k = BIO_get_data(b);
	ssize_t got;

	BIO_clear_retry_flags(b);
	if (k->first.n) {
		*ret = n < k->first.n ? n : k->first.n;
		memcpy(to, fifo_view(&k->first).p, *ret);
		fifo_drop(&k->first, *ret);
		return 1;
	}
	/* A read that is shorter than asked for has emptied the socket: do not read again. */
	got = k->drained ? -1 : recv(k->fd, to, n, 0);
	if (got < 0) {
		if (k->drained || errno == EAGAIN || errno == EINTR)
			BIO_set_retry_read(b);
		k->drained = true;
		return 0;
	}
	k->drained = (size_t)got < n && got > 0 && !k->hung_up;
	*ret = (size_t)got;
	return got > 0;
}

static int bio_write(BIO *b, const char *from, size_t n, size_t *ret)
{
	struct link *k = BIO_get_data(b);
	const ssize_t put = send(k->fd, from, n, MSG_NOSIGNAL);

	BIO_clear_retry_flags(b);
	if (put < 0) {
		if (errno == EAGAIN || errno == EINTR)
			BIO_set_retry_write(b);
		return 0;
	}
	*ret = (size_t)put;
	return 1;
}

static long bio_ctrl(BIO *b, int cmd, long n, void *p)
{
	(void)b;
	(void)n;
	(void)p;
	return cmd == BIO_CTRL_FLUSH;
}

BIO_METHOD *l7_link_bio(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "link");

	if (m && (!BIO_meth_set_read_ex(m, bio_read) || !BIO_meth_set_write_ex(m, bio_write) ||
		  !BIO_meth_set_ctrl(m, bio_ctrl))) {
		BIO_meth_free(m);
		m = NULL;
	}
	return m;
}

bool l7_link_tls(struct link *k, SSL *ssl)
{
	BIO *b = ssl ? BIO_new(k->l7->bio) : NULL;

	if (!b) {
		SSL_free(ssl);
		return false;
	}
	BIO_set_data(b, k);
	BIO_set_init(b, 1);
	SSL_set_bio(ssl, b, b);
	k->ssl = ssl;
	k->shaking = true;
	return true;
}

int l7_link_handshake(struct link *k)
{
	int r;

	ERR_clear_error();
	r = SSL_do_handshake(k->ssl);
	if (r == 1) {
		k->shaking = false;
		return 1;
	}
	switch (SSL_get_error(k->ssl, r)) {
	case SSL_ERROR_WANT_WRITE:
		k->blocked = true;
		return 0;
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_CLIENT_HELLO_CB:
		return 0;
	default:
		return -1;
	}
}

/* --- reading and writing --- */

static void read_plain(struct link *k, char *to, size_t n)
{
	const ssize_t got = recv(k->fd, to, n, 0);

	if (got > 0)
		k->in.n += (size_t)got;
	else if (got == 0)
		k->eof = true;
	else if (k->hung_up || (errno != EAGAIN && errno != EINTR))
		k->eof = k->truncated = true;
	if (got < (ssize_t)n && !k->hung_up)
		k->readable = false;
}

static void read_tls(struct link *k, char *to, size_t n)
{
	size_t got = 0;
	int r;

	ERR_clear_error();
	r = SSL_read_ex(k->ssl, to, n, &got);
	if (r == 1) {
		k->in.n += got;
		return;
	}
	k->readable = false;
	switch (SSL_get_error(k->ssl, r)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		k->eof = k->truncated = k->hung_up;
		break;
	case SSL_ERROR_ZERO_RETURN:
		k->eof = true;
		break;
	default:
		k->eof = k->truncated = true;
		break;
	}
}

void l7_link_read(struct link *k)
{
	size_t before = k->in.n;

	if (k->fd < 0)
		return;
	if (!k->ssl && k->first.n) {
		if (!fifo_add(&k->in, fifo_view(&k->first)))
			l7_link_kill(k);
		fifo_drop(&k->first, k->first.n);
	}
	while (k->readable && !k->eof && k->in.n - before < READ_STEP) {
		size_t n;
		char *to = fifo_space(&k->in, READ_SIZE, &n);

		if (!to)
			break;
		if (k->ssl)
			read_tls(k, to, n);
		else
			read_plain(k, to, n);
	}
}

/*
 * Handles a failed write. The peer accepts no more bytes, but it may have answered before; the
 * reader still reads that answer.
 */
static bool write_failed(struct link *k)
{
	fifo_drop(&k->out, k->out.n);
	k->readable = true;
	k->drained = false;
	l7_link_wake(k);
	return false;
}

static bool write_tls(struct link *k, struct sv v, size_t *ret_n)
{
	int r, e;

	ERR_clear_error();
	r = SSL_write_ex(k->ssl, v.p, v.n < RECORD ? v.n : RECORD, ret_n);
	if (r == 1)
		return true;
	e = SSL_get_error(k->ssl, r);
	k->blocked = e == SSL_ERROR_WANT_WRITE || e == SSL_ERROR_WANT_READ;
	if (e == SSL_ERROR_SSL)
		l7_link_kill(k);
	return !k->blocked && !k->dead ? write_failed(k) : false;
}

static bool write_plain(struct link *k, struct sv v, size_t *ret_n)
{
	const ssize_t n = send(k->fd, v.p, v.n, MSG_NOSIGNAL);

	if (n >= 0) {
		*ret_n = (size_t)n;
		return true;
	}
	k->blocked = errno == EAGAIN || errno == EINTR;
	return k->blocked ? false : write_failed(k);
}

static bool write_some(struct link *k, struct sv v)
{
	size_t put = 0;

	if (!(k->ssl ? write_tls(k, v, &put) : write_plain(k, v, &put)))
		return false;
	fifo_drop(&k->out, put);
	return true;
}

/*
 * Shuts down the sending side and then discards bytes that still arrive. Closing with unread bytes
 * would send a reset, which could overtake the response.
 */
static void write_end(struct link *k)
{
	if (!k->closing || k->out.n || k->dead)
		return;
	if (!k->shut) {
		if (k->ssl && !k->shaking)
			(void)SSL_shutdown(k->ssl);
		(void)shutdown(k->fd, SHUT_WR);
		k->shut = true;
	}
	fifo_drop(&k->in, k->in.n);
	if (k->eof)
		l7_link_kill(k);
}

void l7_link_write(struct link *k)
{
	if (k->fd < 0)
		return;
	if (k->peer_gone)
		fifo_drop(&k->out, k->out.n);
	while (k->out.n && !k->blocked && !k->dead && !k->shaking)
		if (!write_some(k, fifo_view(&k->out)))
			break;
	write_end(k);
}

void l7_link_watch(struct link *k)
{
	uint32_t want = 0;
	struct epoll_event ev = { .data = { .ptr = k } };

	if (k->fd < 0 || k->dead || k->hung_up)
		return;
	if (!k->eof && (k->shaking || fifo_left(&k->in)))
		want |= EPOLLIN;
	if (k->blocked)
		want |= EPOLLOUT;
	if (want == k->events)
		return;
	ev.events = want;
	if (epoll_ctl(k->l7->epoll, k->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, k->fd, &ev) < 0 &&
	    (errno != EEXIST || epoll_ctl(k->l7->epoll, EPOLL_CTL_MOD, k->fd, &ev) < 0))
		l7_link_kill(k);
	k->events = want;
}
