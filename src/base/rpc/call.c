#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/fd.h"
#include "rpc/rpc.h"

#include "base/banned.h"

enum { INLINE_MAX = 128 << 10 }; /* in bytes; longer parameters travel in a memfd */

/* Writes parameters above INLINE_MAX bytes to a memfd; otherwise leaves *@ret_fd unchanged. */
static int make_file(const json_t *params, int *ret_fd, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(RPC_FILE_MAX);
	scoped_fd fd = -1;
	int r;

	if (!json_put(&b, params, JSON_COMPACT))
		return writ_fail(err, WRIT_E_LIMIT, 0, "a request is too large");
	if (b.n <= INLINE_MAX)
		return 0;
	fd = memfd_create("writ-request", MFD_CLOEXEC);
	r = fd < 0 ? writ_fail(err, WRIT_E_SYS, errno, "memfd_create")
		   : fd_write_all(fd, buf_view(&b), err);
	if (r == 0)
		*ret_fd = fd_take(&fd);
	return r;
}

int rpc_request(struct rpc_conn *c, const char *method, json_t *params, const int *fds,
		size_t fds_n, int64_t *ret_id, struct writ_err *err)
{
	json_t *message;
	int all[RPC_FDS_MAX];
	scoped_fd file = -1;
	size_t n = 0;
	int r = params ? make_file(params, &file, err) : writ_nomem(err);

	if (r == 0 && fds_n + (file >= 0) > RPC_FDS_MAX)
		r = writ_fail(err, WRIT_E_LIMIT, 0, "a request has too many descriptors");
	if (r < 0) {
		json_decref(params);
		return r;
	}
	if (file >= 0) {
		all[n++] = file;
		json_decref(params);
	}
	for (size_t i = 0; i < fds_n; i++)
		all[n++] = fds[i];
	c->last_id++;
	message = file >= 0 ? json_pack("{s:s,s:I,s:s,s:b}", "jsonrpc", "2.0", "id",
					(json_int_t)c->last_id, "method", method, "file", 1)
			    : json_pack("{s:s,s:I,s:s,s:o}", "jsonrpc", "2.0", "id",
					(json_int_t)c->last_id, "method", method, "params", params);
	if (!message)
		return writ_nomem(err);
	rpc_send(c, message, all, n);
	if (ret_id)
		*ret_id = c->last_id;
	return 0;
}

int rpc_wait(struct rpc_conn *c, int64_t until, struct rpc_message *ret, struct writ_err *err)
{
	for (;;) {
		struct pollfd p = { .fd = c->fd };
		int r;

		if (rpc_next(c, ret)) {
			if (ret->kind != RPC_BAD)
				return 1;
			r = writ_fail(err, WRIT_E_BUG, 0, "not an answer: %s", ret->why);
			rpc_message_clear(ret);
			return r;
		}
		rpc_flush(c);
		p.events = (short)(POLLIN | (rpc_wants_write(c) ? POLLOUT : 0));
		r = poll(&p, 1, clock_ms_until(until));
		if (r == 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return writ_fail(err, WRIT_E_SYS, errno, "poll");
		if (r > 0 && p.revents & (POLLIN | POLLHUP | POLLERR) && rpc_receive(c, err) < 0)
			return err->code;
	}
}

bool rpc_answers(const struct rpc_message *m, int64_t id)
{
	return (m->kind == RPC_RESULT || m->kind == RPC_ERROR) && json_is_integer(m->id) &&
	       json_integer_value(m->id) == id;
}

int rpc_failure(const struct rpc_message *m, struct writ_err *err)
{
	static const struct {
		enum rpc_code code;
		int mine;
	} table[] = {
		{ RPC_E_INTERNAL, WRIT_E_SYS },
		{ RPC_E_POLICY, WRIT_E_SYNTAX },
		{ RPC_E_PARAMS, WRIT_E_SYNTAX },
		{ RPC_E_LIMIT, WRIT_E_LIMIT },
		{ RPC_E_PARSE, WRIT_E_BUG },
		{ RPC_E_REQUEST, WRIT_E_BUG },
		{ RPC_E_OUTPUT_LIMIT, WRIT_E_LIMIT },
		{ RPC_E_CANNOT_GUARANTEE, WRIT_E_UNENFORCEABLE },
	};
	const json_t *data = json_object_get(m->body, "data");
	const char *code = json_string_value(json_object_get(data, "code"));
	const char *text = json_string_value(json_object_get(m->body, "message"));
	const json_int_t sys = json_integer_value(json_object_get(data, "errno"));
	int mine = sys ? WRIT_E_SYS : WRIT_E_DENIED;

	for (size_t i = 0; code && i < ARRAY_LEN(table); i++)
		if (strcmp(rpc_code_name(table[i].code), code) == 0)
			mine = table[i].mine;
	return writ_fail(err, mine, sys > 0 && sys < 4096 ? (int)sys : 0, "%s",
			 text ? text : "refused without a reason");
}

int rpc_call(struct rpc_conn *c, const char *method, json_t *params, int timeout_ms,
	     json_t **ret_result, struct writ_err *err)
{
	const int64_t until = timeout_ms < 0 ? INT64_MAX : clock_monotonic_ms() + timeout_ms;
	struct rpc_message m = { 0 };
	int64_t id;
	int r = rpc_request(c, method, params, NULL, 0, &id, err);

	if (r < 0)
		return r;
	do {
		rpc_message_clear(&m);
		r = rpc_wait(c, until, &m, err);
	} while (r > 0 && !rpc_answers(&m, id) && !(m.kind == RPC_ERROR && !m.id));
	if (r == 0)
		r = writ_fail(err, WRIT_E_SYS, ETIMEDOUT, "no answer");
	if (r > 0)
		r = m.kind == RPC_ERROR ? rpc_failure(&m, err) : 0;
	if (r == 0 && ret_result)
		*ret_result = json_incref(m.body);
	rpc_message_clear(&m);
	return r;
}
