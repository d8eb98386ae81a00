#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "rpc/rpc.h"

#include "base/banned.h"

enum { CHUNK = 32 << 10 };

/* --- a connection --- */

struct rpc_conn *rpc_new(int fd)
{
	struct rpc_conn *c = calloc(1, sizeof(*c));

	if (!c) {
		fd_scope_close(&fd);
		return NULL;
	}
	c->fd = fd;
	/* Leave room for one read more than a line, so that a longer line is detected. */
	c->in = (struct buf)BUF_INIT((size_t)RPC_LINE_MAX + 2 * CHUNK);
	c->out = (struct buf)BUF_INIT((size_t)2 * RPC_OUT_MAX);
	return c;
}

static void drop_fds(int *fds, size_t *n)
{
	for (size_t i = 0; i < *n; i++)
		fd_scope_close(&fds[i]);
	*n = 0;
}

static void drop_all(struct rpc_fds *list, size_t *n)
{
	for (size_t i = 0; i < *n; i++)
		drop_fds(list[i].fds, &list[i].n);
	*n = 0;
}

static void drop_first(struct rpc_fds *list, size_t *n)
{
	drop_fds(list[0].fds, &list[0].n);
	memmove(list, list + 1, --*n * sizeof(list[0]));
}

void rpc_free(struct rpc_conn *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < RPC_CALLS_MAX; i++)
		json_decref(c->calls[i].id);
	drop_all(c->got, &c->got_n);
	drop_all(c->sent, &c->sent_n);
	buf_clear(&c->in);
	buf_clear(&c->out);
	fd_scope_close(&c->fd);
	free(c);
}

bool rpc_is_lost(const struct rpc_conn *c)
{
	return c->lost != NULL;
}

void rpc_lose(struct rpc_conn *c, const char *why)
{
	if (!c->lost)
		c->lost = why;
}

/* --- reading --- */

/* Removes the first *@at bytes of @b, which were used; descriptors stay with their bytes. */
static void drop_used(struct buf *b, size_t *at, struct rpc_fds *list, size_t n)
{
	if (*at == 0)
		return;
	memmove(b->p, b->p + *at, b->n - *at);
	b->n -= *at;
	for (size_t i = 0; i < n; i++)
		list[i].at -= *at;
	*at = 0;
}

int rpc_receive(struct rpc_conn *c, struct writ_err *err)
{
	struct rpc_fds got = { 0 };
	size_t n = 0;
	char *room;
	int r;

	c->in_seen -= c->in_at;
	drop_used(&c->in, &c->in_at, c->got, c->got_n);
	room = c->lost ? NULL : buf_grow(&c->in, CHUNK);
	if (!room)
		return writ_fail(err, WRIT_E_LIMIT, 0, "%s", c->lost ? c->lost : "no memory");
	r = packet_receive(c->fd, room, CHUNK, &n, got.fds, &got.n, err);
	c->in.n -= CHUNK - n;
	if (r < 0 && err->sys == EAGAIN)
		return 0;
	if (r == 0)
		r = writ_fail(err, WRIT_E_SYS, 0, "the connection was closed");
	if (r < 0) {
		rpc_lose(c, "the connection was closed");
		return r;
	}
	if (got.n == 0)
		return 1;
	/*
	 * The kernel ends a read after bytes that carry descriptors, so the descriptors belong to
	 * the last byte read.
	 */
	got.at = c->in.n - 1;
	if (c->got_n == RPC_GOT_MAX) {
		drop_fds(got.fds, &got.n);
		rpc_lose(c, "descriptors without a message");
		return writ_fail(err, WRIT_E_LIMIT, 0, "%s", c->lost);
	}
	c->got[c->got_n++] = got;
	return 1;
}

static void bad(struct rpc_message *m, enum rpc_code code, const char *why)
{
	m->kind = RPC_BAD;
	m->code = code;
	m->why = why;
}

/*
 * Reads the parameters in a memfd.
 * SECURITY: only a memfd has seals, and reading a memfd never waits for another process.
 */
static bool read_file(int fd, json_t **ret)
{
	scoped_buf b = BUF_INIT(RPC_FILE_MAX);
	struct writ_err err = { 0 };

	return fcntl(fd, F_GET_SEALS) >= 0 && lseek(fd, 0, SEEK_SET) == 0 &&
	       fd_read_all(fd, &b, &err) == 0 &&
	       json_decode_within(buf_view(&b), RPC_FILE_MAX, RPC_DEPTH_MAX, ret, &err) == 0;
}

/*
 * Moves to @m the descriptors that its "fds" member counts.
 * SECURITY: takes exactly the descriptors that came with the bytes of this message.
 */
static bool claim_fds(struct rpc_conn *c, struct rpc_message *m)
{
	const json_t *count = json_object_get(m->root, "fds");
	const json_int_t n = json_integer_value(count);

	if (c->got_n && c->got[0].at < c->in_at) {
		memcpy(m->fds, c->got[0].fds, sizeof(m->fds));
		m->fds_n = c->got[0].n;
		c->got[0].n = 0;
		drop_first(c->got, &c->got_n);
	}
	if ((!count || json_is_integer(count)) && n >= 0 && (uint64_t)n == m->fds_n)
		return true;
	rpc_lose(c, "\"fds\" does not count the descriptors that came");
	return false;
}

static bool is_id(const json_t *id)
{
	return json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= RPC_ID_MAX);
}

static void take_params(struct rpc_message *m)
{
	if (json_is_true(json_object_get(m->root, "file"))) {
		if (m->fds_n == 0 || !read_file(m->fds[0], &m->body)) {
			bad(m, RPC_E_PARAMS, "the parameter file is not a memfd with JSON");
			return;
		}
		fd_scope_close(&m->fds[0]);
		memmove(m->fds, m->fds + 1, --m->fds_n * sizeof(m->fds[0]));
	} else {
		m->body = json_incref(json_object_get(m->root, "params"));
		if (!m->body)
			m->body = json_object();
	}
	if (!json_is_object(m->body))
		bad(m, RPC_E_PARAMS, "parameters are an object");
}

/* Decides which kind of message @m->root is. */
static void classify(struct rpc_message *m)
{
	const json_t *method = json_object_get(m->root, "method");
	const char *version = json_string_value(json_object_get(m->root, "jsonrpc"));
	json_t *result = json_object_get(m->root, "result");
	json_t *error = json_object_get(m->root, "error");

	m->id = json_object_get(m->root, "id");
	if (m->id && !is_id(m->id)) {
		const bool unknown = json_is_null(m->id) && error;

		m->id = NULL;
		if (!unknown) {
			bad(m, RPC_E_REQUEST, "an id is a short string or an integer");
			return;
		}
	}
	if (!version || strcmp(version, "2.0") != 0 || (method && !json_is_string(method)) ||
	    (method != NULL) + (result != NULL) + (error != NULL) != 1) {
		bad(m, RPC_E_REQUEST, "not a JSON-RPC 2.0 message");
		return;
	}
	if (method) {
		m->kind = m->id ? RPC_REQUEST : RPC_NOTIFICATION;
		m->method = json_string_value(method);
		take_params(m);
		return;
	}
	m->kind = result ? RPC_RESULT : RPC_ERROR;
	m->body = json_incref(result ? result : error);
}

static void parse(struct rpc_conn *c, struct sv line, struct rpc_message *m)
{
	struct writ_err err = { 0 };

	if (json_decode_within(line, RPC_LINE_MAX, RPC_DEPTH_MAX, &m->root, &err) < 0)
		bad(m, RPC_E_PARSE, "a line is one JSON object, without duplicate keys");
	else if (!json_is_object(m->root))
		bad(m, RPC_E_REQUEST, "a line is one JSON object");
	else if (!claim_fds(c, m))
		bad(m, RPC_E_REQUEST, c->lost);
	else
		classify(m);
	/* SECURITY: close descriptors of a malformed line, so that no later line gets them. */
	while (c->got_n && c->got[0].at < c->in_at)
		drop_first(c->got, &c->got_n);
}

bool rpc_next(struct rpc_conn *c, struct rpc_message *ret)
{
	const size_t end = sv_find(sv_skip(buf_view(&c->in), c->in_seen), '\n');
	const size_t n = end == SIZE_MAX ? c->in.n - c->in_at : c->in_seen + end - c->in_at;
	struct sv line;

	*ret = (struct rpc_message){ .fds = { -1, -1, -1, -1 } };
	if (c->lost)
		return false;
	if (n > RPC_LINE_MAX) {
		rpc_lose(c, "a line is too long");
		bad(ret, RPC_E_REQUEST, c->lost);
		return true;
	}
	if (end == SIZE_MAX) {
		c->in_seen = c->in.n;
		return false;
	}
	line = sv_sub(buf_view(&c->in), c->in_at, n);
	c->in_at = c->in_seen = c->in_at + n + 1;
	parse(c, line, ret);
	return true;
}

void rpc_message_clear(struct rpc_message *m)
{
	drop_fds(m->fds, &m->fds_n);
	json_decref(m->body);
	json_decref(m->root);
	*m = (struct rpc_message){ 0 };
}

int rpc_take_fd(struct rpc_message *m, size_t i)
{
	return i < m->fds_n ? fd_take(&m->fds[i]) : -1;
}

/* --- writing --- */

/*
 * Writes queued bytes with one sendmsg(), which may carry the descriptors of one message only. If
 * the first queued message has descriptors, sends them with it. Stops before the next message that
 * has descriptors.
 */
static bool flush_once(struct rpc_conn *c)
{
	const bool with = c->sent_n && c->sent[0].at == c->out_at;
	const size_t next = with ? 1 : 0;
	const size_t end = c->sent_n > next ? c->sent[next].at : c->out.n;
	const struct sv bytes = sv_sub(buf_view(&c->out), c->out_at, end - c->out_at);
	struct writ_err err = { 0 };
	size_t n = 0;

	if (packet_send_some(c->fd, bytes, with ? c->sent[0].fds : NULL, with ? c->sent[0].n : 0,
			     &n, &err) < 0) {
		if (err.sys != EAGAIN)
			rpc_lose(c, "the connection was closed");
		return false;
	}
	/*
	 * The kernel attaches descriptors to the first byte: the descriptors are sent even if not
	 * all bytes of the message are.
	 */
	if (with)
		drop_first(c->sent, &c->sent_n);
	c->out_at += n;
	if (c->out_at == c->out.n)
		c->out_at = c->out.n = 0;
	return true;
}

void rpc_flush(struct rpc_conn *c)
{
	while (!c->lost && rpc_wants_write(c) && flush_once(c))
		;
}

bool rpc_wants_write(const struct rpc_conn *c)
{
	return !c->lost && c->out_at < c->out.n;
}

static bool queue_fds(struct rpc_conn *c, const int *fds, size_t fds_n)
{
	struct rpc_fds *s = c->sent_n < RPC_SENT_MAX ? &c->sent[c->sent_n] : NULL;

	if (!s || fds_n > RPC_FDS_MAX)
		return false;
	*s = (struct rpc_fds){ .at = c->out.n };
	c->sent_n++;
	for (; s->n < fds_n; s->n++) {
		s->fds[s->n] = fcntl(fds[s->n], F_DUPFD_CLOEXEC, 3);
		if (s->fds[s->n] < 0)
			return false;
	}
	return true;
}

void rpc_send(struct rpc_conn *c, json_t *message, const int *fds, size_t fds_n)
{
	const bool fine = message &&
			  (fds_n == 0 || json_object_set_new(message, "fds",
							     json_integer((json_int_t)fds_n)) == 0);

	if (!c->lost) {
		drop_used(&c->out, &c->out_at, c->sent, c->sent_n);
		if (!fine || (fds_n && !queue_fds(c, fds, fds_n)) ||
		    !json_put(&c->out, message, JSON_COMPACT))
			rpc_lose(c, "a message could not be queued");
		buf_ch(&c->out, '\n');
		rpc_flush(c);
		if (c->out.n - c->out_at > RPC_OUT_MAX)
			rpc_lose(c, "the client does not read its answers");
	}
	json_decref(message);
}
