#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "parts/client.h"
#include "parts/commands.h"
#include "parts/grants.h"
#include "parts/hints.h"

#include "base/banned.h"

/*
 * The methods of a session. A handler checks the form of a request's parameters; the part that owns
 * the subject decides about the request, and when to answer it.
 */

enum { COMMAND_SHOWN = 200, ROWS_BYTES = 256 << 10 };

struct turn {
	struct session *s;
	size_t client;
};

static struct caller caller_of(const struct turn *t, struct rpc_conn *c, struct rpc_call *call)
{
	return (struct caller){ .conn = c, .call = call, .client = t->client };
}

static void bad_params(struct rpc_conn *c, struct rpc_call *call)
{
	rpc_refuse(c, call, RPC_E_PARAMS, "that request has no meaning");
}

static void handle_hello(void *ctx, struct rpc_conn *c, struct rpc_call *call,
			 struct rpc_message *m)
{
	const struct turn *t = ctx;

	(void)m;
	rpc_result(c, call,
		   json_pack("{s:i,s:s,s:s}", "protocol", 1, "server", "writ " WRIT_VERSION,
			     "session", t->s->id),
		   NULL, 0);
}

/* --- session.* --- */

/* Returns the beginning of the command line, for lists of sessions. */
static json_t *shown_command(const struct session *s)
{
	json_t *list = json_array();
	size_t n = 0;

	for (char *const *arg = s->opt->argv; list && *arg && n < COMMAND_SHOWN; arg++) {
		const struct sv text = sv_sub(sv_from(*arg), 0, COMMAND_SHOWN);

		(void)json_array_append_new(list, rpc_bytes(text));
		n += text.n + 1;
	}
	return list;
}

static void handle_get(void *ctx, struct rpc_conn *c, struct rpc_call *call, struct rpc_message *m)
{
	static const char *const names[] = { "starting", "running", "ending", "ended" };
	const struct session *s = ((const struct turn *)ctx)->s;

	(void)m;
	rpc_result(c, call,
		   json_pack("{s:s,s:i,s:I,s:s,s:I,s:o,s:o}", "session", s->id, "pid", getpid(),
			     "seconds",
			     (json_int_t)((clock_boot_ms() - session_status(s)->started_ms) / 1000),
			     "state", names[session_phase(s)], "denials",
			     (json_int_t)denials_count(s), "workspace",
			     rpc_bytes(s->opt->workspace), "command", shown_command(s)),
		   NULL, 0);
}

static void handle_close(void *ctx, struct rpc_conn *c, struct rpc_call *call,
			 struct rpc_message *m)
{
	const struct turn *t = ctx;

	(void)m;
	rpc_result(c, call, NULL, NULL, 0);
	session_end(t->s, "stopped from outside", SESSION_SIGNALLED + SIGTERM);
}

static void handle_session_wait(void *ctx, struct rpc_conn *c, struct rpc_call *call,
				struct rpc_message *m)
{
	(void)ctx, (void)c, (void)m;
	call->kind = SESSION_CALL_END;
}

static void handle_active(void *ctx, struct rpc_conn *c, struct rpc_call *call,
			  struct rpc_message *m)
{
	(void)m;
	session_touch(((struct turn *)ctx)->s);
	rpc_result(c, call, NULL, NULL, 0);
}

json_t *session_report_json(const struct session_report *report)
{
	return json_pack("{s:s,s:i,s:i,s:s,s:o}", "session", report->id, "exit_code", report->exit,
			 "denials", (int)report->denials, "ended_by", report->ended_by, "why",
			 rpc_bytes(sv_from(report->why)));
}

/* --- denial.list --- */

static const char *op_name(enum mediate_op op)
{
	return op == MEDIATE_NET    ? "net"
	       : op == MEDIATE_READ ? "read"
	       : op == MEDIATE_GIT  ? "git"
				    : "write";
}

static json_t *denial_row(const struct denial *d, size_t number)
{
	char why[DENIAL_WHY], inode[48];

	inode[0] = 0;
	if (d->ino)
		(void)snprintf(inode, sizeof(inode), "%llu:%llu", (unsigned long long)d->dev,
			       (unsigned long long)d->ino);
	return json_pack("{s:I,s:s,s:o,s:s,s:I,s:s,s:i,s:o,s:o}", "number", (json_int_t)number,
			 "op", op_name(d->op), "object", rpc_bytes(sv_from(d->object)), "inode",
			 inode, "count", (json_int_t)d->count, "reason",
			 cap_reason_name(d->reason), "pid", d->pid, "program",
			 rpc_bytes(sv_from(d->comm)), "why",
			 rpc_bytes(session_denial_why(d->cause, d->detail, d->protect, why)));
}

static void handle_denials(void *ctx, struct rpc_conn *c, struct rpc_call *call,
			   struct rpc_message *m)
{
	const struct session *s = ((const struct turn *)ctx)->s;
	const bool hints = json_is_true(json_object_get(m->body, "hints"));
	const size_t n = hints ? hints_count(s) : denials_count(s);
	json_t *rows = json_array();
	uint64_t after = 0, most = 0;
	size_t bytes = 0, i;

	if (!rpc_get_number(m->body, "after", UINT32_MAX, &after) ||
	    !rpc_get_number(m->body, "max", UINT32_MAX, &most)) {
		json_decref(rows);
		bad_params(c, call);
		return;
	}
	for (i = after; i < n && bytes < ROWS_BYTES && (!most || i < after + most); i++) {
		const struct denial *d = hints ? hints_get(s, i + 1) : denials_get(s, i + 1);

		bytes += strlen(d->object) + sizeof(*d) - sizeof(d->object);
		(void)json_array_append_new(rows, denial_row(d, i + 1));
	}
	rpc_result(c, call, json_pack("{s:o,s:b}", "denials", rows, "more", i < n), NULL, 0);
}

/* --- grant.* --- */

/* Reads "DEVICE:INODE", the identity of an object. An absent one stays 0. */
static bool read_inode(const json_t *v, struct engine_object *ret)
{
	struct sv text = sv_from(json_string_value(v));
	struct sv dev;

	if (!v)
		return true;
	dev = sv_cut(&text, ':');
	return sv_to_u64(dev, UINT64_MAX, &ret->dev) && sv_to_u64(text, UINT64_MAX, &ret->ino) &&
	       ret->ino;
}

static bool read_grant(struct arena *a, const json_t *params, struct grant_request *ret)
{
	static const char *const names[] = { "read", "write", "net" };
	const char *action = json_string_value(json_object_get(params, "action"));
	const json_t *caps = json_object_get(params, "caps");
	scoped_buf b = BUF_INIT(ENGINE_PATH);
	size_t i = 0, at;
	const json_t *v;
	struct sv text;
	bool fine;

	while (action && i < ARRAY_LEN(names) && strcmp(action, names[i]) != 0)
		i++;
	if (!action || i == ARRAY_LEN(names) ||
	    !rpc_get_bytes(a, json_object_get(params, "object"), &ret->object) ||
	    !read_inode(json_object_get(params, "inode"), &ret->expected) ||
	    (caps && !json_is_array(caps)))
		return false;
	ret->action = (enum grant_action)i;
	json_array_foreach(caps, at, v)
	{
		if (!rpc_get_bytes(a, v, &text) || sv_find(text, '\n') != SIZE_MAX)
			text = SV("");
		buf_fmt(&b, "%s" SV_FMT, at ? "\n" : "", SV_ARG(text));
	}
	/* SECURITY: a rule is one line of the record, so a rule must not contain a newline. */
	fine = !b.failed && arena_sv(a, buf_view(&b), &ret->caps) &&
	       (ret->action != GRANT_NET || sv_find(ret->object, '\n') == SIZE_MAX);
	return fine;
}

static void handle_allow(void *ctx, struct rpc_conn *c, struct rpc_call *call,
			 struct rpc_message *m)
{
	scoped_arena a = ARENA_INIT(4 << 20);
	struct turn *t = ctx;
	const struct caller who = caller_of(t, c, call);
	struct grant_request req = { .caps = SV("") };

	if (read_grant(&a, m->body, &req))
		grants_allow(t->s, &who, &req);
	else
		control_refuse(&who, RPC_E_PARAMS,
			       "only read and write of a path can be granted live");
}

/* Reads the parameter @name, which is a number, and refuses the request if it is not. */
static bool read_number(struct rpc_conn *c, struct rpc_call *call, const struct rpc_message *m,
			const char *name, uint32_t *ret)
{
	uint64_t n = 0;

	if (!rpc_get_number(m->body, name, UINT32_MAX, &n)) {
		bad_params(c, call);
		return false;
	}
	*ret = (uint32_t)n;
	return true;
}

static void handle_revoke(void *ctx, struct rpc_conn *c, struct rpc_call *call,
			  struct rpc_message *m)
{
	struct turn *t = ctx;
	const struct caller who = caller_of(t, c, call);
	uint32_t n;

	if (read_number(c, call, m, "grant", &n))
		grants_revoke(t->s, &who, n);
}

/* --- proc.* --- */

static void handle_start(void *ctx, struct rpc_conn *c, struct rpc_call *call,
			 struct rpc_message *m)
{
	struct turn *t = ctx;
	const struct caller who = caller_of(t, c, call);

	commands_exec(t->s, &who, m);
}

static void handle_attach(void *ctx, struct rpc_conn *c, struct rpc_call *call,
			  struct rpc_message *m)
{
	struct turn *t = ctx;
	const struct caller who = caller_of(t, c, call);
	uint32_t n;

	if (read_number(c, call, m, "proc", &n))
		commands_attach(t->s, &who, n);
}

static void handle_detach(void *ctx, struct rpc_conn *c, struct rpc_call *call,
			  struct rpc_message *m)
{
	struct turn *t = ctx;
	const struct caller who = caller_of(t, c, call);
	uint32_t n;

	if (read_number(c, call, m, "proc", &n))
		commands_detach(t->s, &who, n);
}

static void handle_wait(void *ctx, struct rpc_conn *c, struct rpc_call *call, struct rpc_message *m)
{
	struct turn *t = ctx;
	const struct caller who = caller_of(t, c, call);
	uint32_t n;

	if (read_number(c, call, m, "proc", &n))
		commands_wait(t->s, &who, n);
}

static void handle_signal(void *ctx, struct rpc_conn *c, struct rpc_call *call,
			  struct rpc_message *m)
{
	struct turn *t = ctx;
	const struct caller who = caller_of(t, c, call);
	uint64_t number = 0;
	uint32_t n;

	if (!rpc_get_number(m->body, "signal", SIGSYS, &number) || number == 0)
		bad_params(c, call);
	else if (read_number(c, call, m, "proc", &n))
		commands_signal(t->s, &who, n, (int)number);
}

/* --- the table --- */

enum {
	IN_STARTING = 1u << SESSION_STARTING,
	IN_RUNNING = 1u << SESSION_RUNNING,
	IN_ENDING = 1u << SESSION_ENDING,
	IN_ENDED = 1u << SESSION_ENDED,
	IN_ANY = IN_STARTING | IN_RUNNING | IN_ENDING | IN_ENDED,
	IN_LIFE = IN_STARTING | IN_RUNNING | IN_ENDING,
};

static const struct rpc_method methods[] = {
	{ "hello", IN_ANY, handle_hello },
	{ "session.get", IN_ANY, handle_get },
	{ "session.close", IN_ANY, handle_close },
	{ "session.wait", IN_ANY, handle_session_wait },
	{ "session.active", IN_LIFE, handle_active },
	{ "denial.list", IN_ANY, handle_denials },
	{ "grant.allow", IN_LIFE, handle_allow },
	{ "grant.revoke", IN_LIFE, handle_revoke },
	{ "proc.start", IN_RUNNING, handle_start },
	{ "proc.attach", IN_LIFE, handle_attach },
	{ "proc.detach", IN_LIFE, handle_detach },
	{ "proc.wait", IN_ANY, handle_wait },
	{ "proc.signal", IN_LIFE, handle_signal },
};

void control_dispatch(struct session *s, size_t client, struct rpc_message *m)
{
	const struct rpc_service service = { .methods = methods,
					     .methods_n = ARRAY_LEN(methods),
					     .state = 1u << session_phase(s),
					     .wrong = RPC_E_SESSION_GONE,
					     .wrong_text = "this session is not running" };
	struct turn t = { s, client };

	rpc_dispatch(control_conn(s, client), m, &service, &t);
}
