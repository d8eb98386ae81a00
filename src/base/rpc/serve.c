#include <errno.h>
#include <string.h>

#include "rpc/rpc.h"

#include "base/banned.h"

static const struct {
	const char *name;
	int number;
} codes[RPC_E_COUNT] = {
	[RPC_E_INTERNAL] = { "internal", -32603 },
	[RPC_E_PARSE] = { "parse_error", -32700 },
	[RPC_E_REQUEST] = { "invalid_request", -32600 },
	[RPC_E_METHOD] = { "method_not_found", -32601 },
	[RPC_E_PARAMS] = { "invalid_params", -32602 },
	[RPC_E_NOT_FOUND] = { "not_found", -32000 },
	[RPC_E_EXISTS] = { "exists", -32000 },
	[RPC_E_PERMISSION] = { "permission", -32000 },
	[RPC_E_DENIED] = { "denied", -32000 },
	[RPC_E_NEEDS_APPROVAL] = { "needs_approval", -32000 },
	[RPC_E_TIMEOUT] = { "timeout", -32000 },
	[RPC_E_OUTPUT_LIMIT] = { "output_limit", -32000 },
	[RPC_E_LIMIT] = { "limit", -32000 },
	[RPC_E_SESSION_GONE] = { "session_gone", -32000 },
	[RPC_E_UNSUPPORTED] = { "unsupported", -32000 },
	[RPC_E_POLICY] = { "policy_error", -32000 },
	[RPC_E_CANNOT_GUARANTEE] = { "cannot_guarantee", -32000 },
};

const char *rpc_code_name(enum rpc_code code)
{
	return codes[code].name;
}

static enum rpc_code code_of(const struct writ_err *err)
{
	switch ((enum writ_code)err->code) {
	case WRIT_E_SYNTAX:
		return RPC_E_POLICY;
	case WRIT_E_LIMIT:
		return RPC_E_LIMIT;
	case WRIT_E_DENIED:
		return RPC_E_DENIED;
	case WRIT_E_UNENFORCEABLE:
		return RPC_E_CANNOT_GUARANTEE;
	case WRIT_E_SYS:
		break;
	case WRIT_OK:
	case WRIT_E_NOMEM:
	case WRIT_E_BUG:
		return RPC_E_INTERNAL;
	}
	switch (err->sys) {
	case ENOENT:
		return RPC_E_NOT_FOUND;
	case EEXIST:
		return RPC_E_EXISTS;
	case EACCES:
	case EPERM:
		return RPC_E_PERMISSION;
	case ETIMEDOUT:
		return RPC_E_TIMEOUT;
	default:
		return RPC_E_INTERNAL;
	}
}

/* --- answers --- */

static void end_call(struct rpc_call *call)
{
	json_decref(call->id);
	*call = (struct rpc_call){ 0 };
}

void rpc_result(struct rpc_conn *c, struct rpc_call *call, json_t *result, const int *fds,
		size_t fds_n)
{
	if (call->id)
		rpc_send(c,
			 json_pack("{s:s,s:O,s:o}", "jsonrpc", "2.0", "id", call->id, "result",
				   result ? result : json_object()),
			 fds, fds_n);
	else
		json_decref(result);
	end_call(call);
}

/* Sends an error answer. @id is borrowed; NULL: the id of the request is not known. */
static void send_error(struct rpc_conn *c, json_t *id, enum rpc_code code, int sys, struct sv text)
{
	json_t *data = json_pack("{s:s}", "code", codes[code].name);

	if (sys && data)
		(void)json_object_set_new(data, "errno", json_integer(sys));
	rpc_send(c,
		 json_pack("{s:s,s:o,s:{s:i,s:s%,s:o}}", "jsonrpc", "2.0", "id",
			   id ? json_incref(id) : json_null(), "error", "code", codes[code].number,
			   "message", text.p, text.n, "data", data),
		 NULL, 0);
}

/*
 * Sends an error answer with a text. The text may quote names of files, which may hold any byte:
 * make the text valid UTF-8 first.
 */
static void send_text(struct rpc_conn *c, json_t *id, enum rpc_code code, int sys, struct sv text)
{
	scoped_buf quoted = BUF_INIT(16384);
	struct writ_err err = { 0 };
	scoped_json *value = NULL;

	json_put_str(&quoted, text);
	if (json_decode(buf_view(&quoted), 16384, &value, &err) == 0)
		text = (struct sv){ json_string_value(value), json_string_length(value) };
	else
		text = SV("an error without a text");
	send_error(c, id, code, sys, text);
}

void rpc_refuse(struct rpc_conn *c, struct rpc_call *call, enum rpc_code code, const char *fmt, ...)
{
	scoped_buf b = BUF_INIT(8192);
	va_list ap;

	va_start(ap, fmt);
	buf_vfmt(&b, fmt, ap);
	va_end(ap);
	if (call->id)
		send_text(c, call->id, code, 0, buf_view(&b));
	end_call(call);
}

void rpc_refuse_err(struct rpc_conn *c, struct rpc_call *call, const struct writ_err *err)
{
	if (call->id)
		send_text(c, call->id, code_of(err), err->sys, sv_from(err->what));
	end_call(call);
}

void rpc_notify(struct rpc_conn *c, const char *method, json_t *params)
{
	rpc_send(c,
		 json_pack("{s:s,s:s,s:o}", "jsonrpc", "2.0", "method", method, "params", params),
		 NULL, 0);
}

/* --- requests --- */

struct rpc_call *rpc_find_call(struct rpc_conn *c, uint32_t kind, uint32_t number)
{
	for (size_t i = 0; i < RPC_CALLS_MAX; i++)
		if (c->calls[i].used && c->calls[i].kind == kind && c->calls[i].number == number)
			return &c->calls[i];
	return NULL;
}

/* Returns a free place for the call; NULL if none is free, or if @id is in use. */
static struct rpc_call *new_call(struct rpc_conn *c, json_t *id, const char **ret_why)
{
	struct rpc_call *free_one = NULL;

	*ret_why = "too many requests are not answered yet";
	for (size_t i = 0; i < RPC_CALLS_MAX; i++) {
		struct rpc_call *call = &c->calls[i];

		if (call->used && id && call->id && json_equal(call->id, id)) {
			*ret_why = "a request with this id is not answered yet";
			return NULL;
		}
		if (!call->used && !free_one)
			free_one = call;
	}
	if (free_one)
		*free_one = (struct rpc_call){ .used = true, .id = json_incref(id) };
	return free_one;
}

static const struct rpc_method *find_method(const struct rpc_service *s, const char *name)
{
	for (size_t i = 0; i < s->methods_n; i++)
		if (strcmp(s->methods[i].name, name) == 0)
			return &s->methods[i];
	return NULL;
}

void rpc_dispatch(struct rpc_conn *c, struct rpc_message *m, const struct rpc_service *service,
		  void *ctx)
{
	const struct rpc_method *method;
	struct rpc_call *call;
	const char *why;

	if (m->kind == RPC_BAD) {
		const char *lost = c->lost;

		/* A lost connection sends nothing: restore it until the reason has been sent. */
		c->lost = NULL;
		send_error(c, m->id, m->code, 0, sv_from(m->why));
		if (lost)
			rpc_lose(c, lost);
		return;
	}
	if (m->kind != RPC_REQUEST && m->kind != RPC_NOTIFICATION)
		return;
	call = new_call(c, m->id, &why);
	if (!call) {
		if (m->id)
			send_error(c, m->id, RPC_E_LIMIT, 0, sv_from(why));
		return;
	}
	method = find_method(service, m->method);
	if (!method)
		rpc_refuse(c, call, RPC_E_METHOD, "there is no method \"%.60s\"", m->method);
	else if (!(method->states & service->state))
		rpc_refuse(c, call, service->wrong, "%s", service->wrong_text);
	else
		method->handle(ctx, c, call, m);
}
