/*
 * The hidden verb serve-fd, which the library runs: one session for the program that started this
 * process, over the socket that the program passed. Once the session runs, the session itself
 * answers proc.*, grant.* and similar requests (docs/control.md). This file answers the requests
 * before that: facts of this machine, one more command in a session that already runs, and
 * session.open, which builds the sandbox and then waits for the command. The library's pool
 * consists of processes that wait for their command in this way. This process exits when the
 * library closes its end of the socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "crypto/crypto.h"
#include "launch/launch.h"
#include "parts/session.h"
#include "rpc/rpc.h"

#include "base/banned.h"

enum { SERVED_FD = 3 };

enum state {
	STATE_NEW = 0, /* no session is open */
	STATE_OPENING, /* the library has sent session.open */
	STATE_READY,   /* the sandbox is built and waits for its command */
	STATE_BEGUN,   /* the sandbox has received its command */
	STATE_OVER,
};

enum { CALL_OPEN = 1 };

static const char facts_file[] = "facts.lib";

struct serve {
	struct arena *a;
	struct rpc_conn *conn;
	enum state state;
	struct find_input in;
	enum plan_tier tier;
	struct digest digest; /* digest of the policy that the library checked */
	/*
	 * the command of the session, valid from STATE_READY on; the handlers of proc.start and
	 * session.keep fill it in
	 */
	struct launch_command *command;
	int stdio[3];
};

/* --- requests before a session exists --- */

static void handle_hello(void *ctx, struct rpc_conn *c, struct rpc_call *call,
			 struct rpc_message *m)
{
	(void)ctx, (void)m;
	rpc_result(c, call, json_pack("{s:i,s:s}", "protocol", 1, "server", "writ " WRIT_VERSION),
		   NULL, 0);
}

static void bad_params(struct rpc_conn *c, struct rpc_call *call)
{
	rpc_refuse(c, call, RPC_E_PARAMS, "that request has no meaning");
}

static void handle_facts(void *ctx, struct rpc_conn *c, struct rpc_call *call,
			 struct rpc_message *m)
{
	struct serve *v = ctx;
	scoped_buf b = BUF_INIT(1 << 20);
	struct host_facts facts;
	struct writ_err err = { 0 };
	struct sv state;

	if (!rpc_get_bytes(v->a, json_object_get(m->body, "state"), &state)) {
		bad_params(c, call);
		return;
	}
	if (locate_facts(v->a, state, facts_file, &facts, &err) < 0) {
		rpc_refuse_err(c, call, &err);
		return;
	}
	facts_print(&facts, &b);
	rpc_result(c, call, json_pack("{s:o}", "facts", rpc_bytes(buf_view(&b))), NULL, 0);
}

static void handle_open(void *ctx, struct rpc_conn *c, struct rpc_call *call, struct rpc_message *m)
{
	struct serve *v = ctx;
	uint64_t tier = 0;
	struct sv digest;

	if (!locate_input_decode(v->a, m->body, &v->in) ||
	    !rpc_get_number(m->body, "tier", TIER_B, &tier) ||
	    !rpc_get_bytes(v->a, json_object_get(m->body, "digest"), &digest) ||
	    !digest_parse(digest, &v->digest)) {
		bad_params(c, call);
		return;
	}
	v->tier = (enum plan_tier)tier;
	v->state = STATE_OPENING;
	call->kind = CALL_OPEN;
}

/* --- a command --- */

struct command {
	char **argv, **environ;
	struct sv cwd; /* working directory; empty: the one that the policy sets */
};

/* Reads the command of a request, and takes the three standard descriptors sent with it. */
static bool read_command(struct serve *v, struct rpc_message *m, struct command *ret)
{
	const json_t *cwd = json_object_get(m->body, "cwd");
	size_t argc, envc;

	ret->cwd = SV("");
	if (m->fds_n != 3 ||
	    !rpc_get_strings(v->a, json_object_get(m->body, "argv"), &ret->argv, &argc) ||
	    !rpc_get_strings(v->a, json_object_get(m->body, "env"), &ret->environ, &envc) ||
	    argc == 0 || (cwd && !rpc_get_bytes(v->a, cwd, &ret->cwd)))
		return false;
	for (size_t i = 0; i < 3; i++)
		v->stdio[i] = rpc_take_fd(m, i);
	return true;
}

/*
 * Handles proc.run: runs one more command in a running session. session_exec() passes on the
 * standard descriptors of this process, so the received ones become descriptors 0 to 2.
 */
static void handle_run(void *ctx, struct rpc_conn *c, struct rpc_call *call, struct rpc_message *m)
{
	struct serve *v = ctx;
	struct session_look look = { .owner = c->fd };
	struct writ_err err = { 0 };
	struct command command;
	struct sv state, id;
	int code = EXIT_FAILED, r = 0;

	if (!rpc_get_bytes(v->a, json_object_get(m->body, "state"), &state) ||
	    !rpc_get_bytes(v->a, json_object_get(m->body, "session"), &id) ||
	    !read_command(v, m, &command)) {
		bad_params(c, call);
		return;
	}
	v->state = STATE_OVER;
	for (int i = 0; r == 0 && i < 3; i++)
		if (dup2(v->stdio[i], i) < 0)
			r = writ_fail(&err, WRIT_E_SYS, errno, "standard descriptors");
	for (int i = 0; i < 3; i++)
		fd_scope_close(&v->stdio[i]);
	if (r == 0)
		r = session_exec(state, id, command.argv, command.environ, command.cwd, &look,
				 &code, &err);
	if (r < 0)
		rpc_refuse_err(c, call, &err);
	else
		rpc_result(c, call,
			   json_pack("{s:i,s:o}", "exit_code", code, "why",
				     rpc_bytes(sv_from(err.what))),
			   NULL, 0);
}

static void handle_start(void *ctx, struct rpc_conn *c, struct rpc_call *call,
			 struct rpc_message *m)
{
	struct serve *v = ctx;
	struct command command;

	if (!rpc_get_flag(m->body, "neutral", &v->command->neutral) ||
	    !rpc_get_flag(m->body, "named", &v->command->named) || !read_command(v, m, &command)) {
		bad_params(c, call);
		return;
	}
	v->command->cwd = command.cwd;
	v->command->argv = command.argv;
	v->command->environ = command.environ;
	v->command->stdio = v->stdio;
	v->state = STATE_BEGUN;
	call->kind = SESSION_CALL_FIRST;
}

/* Handles session.keep: the session starts without a command and runs until it is closed. */
static void handle_keep(void *ctx, struct rpc_conn *c, struct rpc_call *call, struct rpc_message *m)
{
	struct serve *v = ctx;
	char **env;
	size_t n;

	if (!rpc_get_strings(v->a, json_object_get(m->body, "env"), &env, &n)) {
		bad_params(c, call);
		return;
	}
	v->command->environ = env;
	v->command->detach = v->command->named = true;
	v->state = STATE_BEGUN;
	call->kind = SESSION_CALL_FIRST;
}

static void handle_wait(void *ctx, struct rpc_conn *c, struct rpc_call *call, struct rpc_message *m)
{
	(void)ctx, (void)c, (void)m;
	call->kind = SESSION_CALL_END;
}

static const struct rpc_method methods[] = {
	{ "hello", 1u << STATE_NEW | 1u << STATE_READY | 1u << STATE_BEGUN, handle_hello },
	{ "host.facts", 1u << STATE_NEW, handle_facts },
	{ "proc.run", 1u << STATE_NEW, handle_run },
	{ "session.open", 1u << STATE_NEW, handle_open },
	{ "proc.start", 1u << STATE_READY, handle_start },
	{ "session.keep", 1u << STATE_READY, handle_keep },
	{ "session.wait", 1u << STATE_READY | 1u << STATE_BEGUN, handle_wait },
};

static void dispatch(struct serve *v, struct rpc_message *m)
{
	const struct rpc_service service = { .methods = methods,
					     .methods_n = ARRAY_LEN(methods),
					     .state = 1u << v->state,
					     .wrong = RPC_E_UNSUPPORTED,
					     .wrong_text = "that is not what comes next" };

	rpc_dispatch(v->conn, m, &service, v);
	rpc_message_clear(m);
}

/*
 * Answers requests while the state is @state. Returns false if the library has closed the socket.
 */
static bool serve_while(struct serve *v, enum state state)
{
	struct rpc_message m;
	struct writ_err err = { 0 };

	while (v->state == state) {
		if (rpc_wait(v->conn, INT64_MAX, &m, &err) <= 0)
			return false;
		dispatch(v, &m);
	}
	/*
	 * The session reads new bytes from the socket only, so serve_while() answers the requests
	 * that are already in the connection's buffer.
	 */
	while (v->state == STATE_BEGUN && rpc_next(v->conn, &m))
		dispatch(v, &m);
	return true;
}

/* --- a session --- */

/*
 * Called when the sandbox is ready except for its command: answers session.open and waits for
 * proc.start or session.keep.
 */
static int await(void *ctx, struct launch_command *command, struct writ_err *err)
{
	struct serve *v = ctx;
	struct rpc_call *call = rpc_find_call(v->conn, CALL_OPEN, 0);

	v->command = command;
	v->state = STATE_READY;
	if (call)
		rpc_result(v->conn, call, NULL, NULL, 0);
	return serve_while(v, STATE_READY) ? 0
					   : writ_fail(err, WRIT_E_SYS, 0, "nobody asks any more");
}

/*
 * Answers all requests that still wait: with the end of the session, or with the reason why the
 * session did not start. True if one of them was session.wait.
 */
static bool answer_all(struct serve *v, int r, const struct session_report *report,
		       const struct writ_err *err)
{
	static const uint32_t kinds[] = { CALL_OPEN, SESSION_CALL_FIRST, SESSION_CALL_END };
	struct rpc_call *call;
	bool ended = false;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		while ((call = rpc_find_call(v->conn, kinds[i], 0))) {
			ended |= kinds[i] == SESSION_CALL_END;
			if (r < 0)
				rpc_refuse_err(v->conn, call, err);
			else if (kinds[i] == SESSION_CALL_END)
				rpc_result(v->conn, call, session_report_json(report), NULL, 0);
			else
				rpc_refuse(v->conn, call, RPC_E_SESSION_GONE,
					   "the session did not start");
		}
	return ended;
}

static void serve_session(struct serve *v)
{
	struct session_report report = { 0 };
	const struct launch_request req = {
		.where = { .environ = environ },
		.policy = { .checked = &v->in, .checked_digest = &v->digest },
		.host = { .facts_file = facts_file, .tier = v->tier },
		.command = { .environ = environ },
		.opt = { .status_fd = -1, .quiet = true, .owner = v->conn, .report = &report },
		.events = { .ctx = v, .await = await },
	};
	struct launch_result result;
	struct writ_err err = { 0 }, gone = { 0 };
	struct rpc_message m;
	const int r = launch_run(v->a, &req, &result, &err);
	bool ended;

	if (r < 0 && err.code == 0)
		err.code = r;
	if (r == 0)
		report.exit = result.exit;
	ended = answer_all(v, r, &report, &err);
	/*
	 * The library sends session.wait after proc.start. A short command may end before that
	 * request arrives: wait for it, or for the end of the library. Closing the socket with a
	 * request unread would also discard the answers that the library has not read yet.
	 */
	while (!ended && v->state == STATE_BEGUN && rpc_wait(v->conn, INT64_MAX, &m, &gone) > 0) {
		dispatch(v, &m);
		ended = answer_all(v, r, &report, &err);
	}
}

int cmd_serve_fd(struct args *a)
{
	struct serve v = { .a = a->arena, .stdio = { -1, -1, -1 } };
	struct writ_err err = { 0 };

	if (fcntl(SERVED_FD, F_SETFD, FD_CLOEXEC) < 0 || setsid() < 0)
		return EXIT_FAILED;
	v.conn = rpc_new(SERVED_FD);
	if (!v.conn)
		return EXIT_FAILED;
	if (serve_while(&v, STATE_NEW) && v.state == STATE_OPENING)
		serve_session(&v);
	/* Send the queued answers, until the library has read them or closed the socket. */
	while (rpc_wants_write(v.conn)) {
		struct rpc_message m;

		if (rpc_wait(v.conn, INT64_MAX, &m, &err) <= 0)
			break;
		rpc_message_clear(&m);
	}
	rpc_free(v.conn);
	return EXIT_DONE;
}
