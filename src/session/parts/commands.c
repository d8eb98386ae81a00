#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "parts/control.h"
#include "parts/engine.h"
#include "parts/record.h"
#include "parts/screen.h"
#include "parts/std_fds.h"
#include "parts/terminal.h"

#include "base/banned.h"

enum { NOBODY = CLIENTS_MAX };

const struct session_initial commands_initial = { sizeof(struct commands), NULL };

int commands_init(struct session *s, struct writ_err *err)
{
	(void)err;
	screen_init(commands_of(s));
	return 0;
}

/* Sends a notification to one client. Takes ownership of @params. */
static void notify(const struct session *s, size_t client, const char *method, json_t *params)
{
	if (client != NOBODY && control_conn(s, client))
		rpc_notify(control_conn(s, client), method, params);
	else
		json_decref(params);
}

/* --- running commands --- */

static struct running *running_get(struct session *s, uint32_t id)
{
	for (size_t i = 0; i < commands_of(s)->running_n; i++)
		if (commands_of(s)->running[i].id == id)
			return &commands_of(s)->running[i];
	return NULL;
}

/* Returns the client at the terminal of a command, or else the client that started the command. */
static size_t client_of(struct session *s, uint32_t id)
{
	const struct screen *c = screen_get(s, id);
	const struct running *r = running_get(s, id);

	if (c && c->link >= 0)
		return c->client;
	return r ? r->client : NOBODY;
}

static void kill_command(struct session *s, uint32_t id)
{
	const struct running *r = running_get(s, id);

	engine_signal(s, id, r && r->pty ? ENGINE_KILL_LED : SIGKILL);
}

static void too_late(struct session *s, struct running *r)
{
	struct screen *c = screen_get(s, r->id);

	record_limit(s, "command", "command", r->id);
	r->late = true;
	if (c)
		screen_say(c, "the command limit is reached");
	kill_command(s, r->id);
}

int commands_deadline(struct session *s, int least)
{
	const uint64_t length = s->opt->policy->set.limits[LIMIT_COMMAND] * 1000;
	const uint64_t now = clock_boot_ms();

	if (!length || session_phase(s) != SESSION_RUNNING)
		return least;
	for (size_t i = 0; i < commands_of(s)->running_n; i++) {
		struct running *r = &commands_of(s)->running[i];

		if (r->late)
			continue;
		if (now >= r->started_ms + length)
			too_late(s, r);
		else if (r->started_ms + length - now < (uint64_t)least)
			least = (int)(r->started_ms + length - now);
	}
	return least;
}

/* --- events of commands --- */

/* Joins the clients that asked to join before the command had a terminal. */
static void join_waiting(struct session *s, struct screen *c)
{
	struct caller who;

	while (control_find_call(s, CALL_JOIN, c->command, &who)) {
		struct writ_err err = { 0 };

		if (screen_attach(s, c, &who, true, &err) < 0)
			rpc_refuse_err(who.conn, who.call, &err);
	}
}

static void answer_started(const struct caller *who, uint32_t id)
{
	rpc_result(who->conn, who->call, json_pack("{s:i}", "proc", (int)id), NULL, 0);
}

void commands_terminal(struct session *s, uint32_t id, int fd)
{
	struct screen *c = screen_get(s, id);
	struct caller who;
	struct writ_err err = { 0 };

	if (!c || c->pty >= 0 || c->ended || fd < 0) {
		fd_scope_close(&fd);
		return;
	}
	screen_open(c, fd);
	if (control_find_call(s, CALL_TERMINAL, id, &who)) {
		if (c->keep)
			answer_started(&who, id);
		else if (screen_attach(s, c, &who, false, &err) < 0)
			rpc_refuse_err(who.conn, who.call, &err);
	}
	join_waiting(s, c);
}

void commands_stopped(struct session *s, uint32_t id)
{
	notify(s, client_of(s, id), "proc.stopped", json_pack("{s:i}", "proc", (int)id));
}

void commands_failed(struct session *s, uint32_t id, const struct writ_err *err)
{
	struct screen *c = screen_get(s, id);
	struct writ_err why;
	char text[256];

	command_why(s, err, &why);
	(void)snprintf(text, sizeof(text), "%s%s%s", why.what, why.sys ? ": " : "",
		       why.sys ? strerror(why.sys) : "");
	if (c && c->keep)
		screen_say(c, text);
	notify(s, client_of(s, id), "proc.failed",
	       json_pack("{s:i,s:o}", "proc", (int)id, "why", rpc_bytes(sv_from(text))));
}

void commands_answer_exit(const struct caller *who, uint32_t id, int status)
{
	rpc_result(who->conn, who->call,
		   json_pack("{s:i,s:i}", "proc", (int)id, "exit_code", status), NULL, 0);
}

/*
 * Answers all clients that wait for command @id, except the client at its terminal, which first
 * receives the rest of the output.
 */
static void answer_waiting(struct session *s, const struct screen *c, uint32_t id, int status)
{
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		struct caller who = { .conn = control_conn(s, i), .client = i };

		if (!who.conn || (c && c->link >= 0 && c->client == i))
			continue;
		while ((who.call = rpc_find_call(who.conn, CALL_TERMINAL, id)))
			answer_started(&who, id);
		while ((who.call = rpc_find_call(who.conn, CALL_WAIT, id)))
			commands_answer_exit(&who, id, status);
	}
}

int commands_exited(struct session *s, uint32_t id, int status)
{
	struct running *r = running_get(s, id);
	struct screen *c = screen_get(s, id);

	if (r && r->late)
		status = SESSION_TIMEOUT;
	if (r)
		*r = commands_of(s)->running[--commands_of(s)->running_n];
	commands_of(s)->ended[commands_of(s)->ended_n++ % COMMANDS_MAX] =
		(struct ended){ id, status };
	if (c) {
		join_waiting(s, c);
		screen_end(s, c, status);
	}
	answer_waiting(s, c, id, status);
	return status;
}

void commands_wait(struct session *s, const struct caller *who, uint32_t id)
{
	const struct screen *c = screen_get(s, id);
	const bool first = id == 1 && !s->opt->detach;
	const struct ended *end = NULL;

	for (size_t i = 0; i < COMMANDS_MAX; i++)
		if (commands_of(s)->ended[i].id == id && id)
			end = &commands_of(s)->ended[i];
	/* The client at a terminal receives the last bytes before the command's status. */
	if (first || running_get(s, id) || (c && c->link >= 0 && c->client == who->client)) {
		who->call->kind = CALL_WAIT;
		who->call->number = id;
	} else if (end) {
		commands_answer_exit(who, id, end->status);
	} else {
		control_refuse(who, RPC_E_NOT_FOUND, "there is no command %u, or it ended long ago",
			       id);
	}
}

/* --- starting a further command --- */

/*
 * Reads the parameters of proc.start. The policy chooses the command's variables from the client's
 * environment. "stdio" has a bit for each standard descriptor that was sent, "pty" one for each
 * that is to be a terminal.
 */
static int exec_parse(struct session *s, const struct rpc_message *m, struct command_ask *ret,
		      bool *ret_keep, struct writ_err *err)
{
	const json_t *p = m->body, *cwd = json_object_get(p, "cwd");
	uint64_t pty = 0, given = 0, mask = 022, rows = 0, cols = 0;
	char **argv = NULL, **envp = NULL;
	size_t argc = 0, envc = 0;

	if (!rpc_get_strings(s->a, json_object_get(p, "argv"), &argv, &argc) || argc == 0 ||
	    !rpc_get_strings(s->a, json_object_get(p, "env"), &envp, &envc) ||
	    !rpc_get_number(p, "pty", 7, &pty) || !rpc_get_number(p, "stdio", 7, &given) ||
	    !rpc_get_number(p, "umask", 0777, &mask) ||
	    !rpc_get_number(p, "rows", UINT16_MAX, &rows) ||
	    !rpc_get_number(p, "cols", UINT16_MAX, &cols) || !rpc_get_flag(p, "detach", ret_keep))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "that request has no meaning");
	*ret = (struct command_ask){ .cwd = s->opt->cwd,
				     .argv = argv,
				     .environ = envp,
				     .pty = (uint32_t)pty,
				     .given = (uint32_t)given,
				     .umask = (uint32_t)mask,
				     .rows = (uint16_t)rows,
				     .cols = (uint16_t)cols };
	if (cwd && !rpc_get_bytes(s->a, cwd, &ret->cwd))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "that request has no meaning");
	if (ret->cwd.n == 0)
		ret->cwd = s->opt->cwd;
	if ((size_t)__builtin_popcountll(given) != m->fds_n || given & pty)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "that request is not whole");
	return 0;
}

/*
 * Reserves a screen for the command's terminal. In tier B, where the jail has no mounts of its own,
 * also opens the terminal on the host.
 */
static int exec_screen(struct session *s, struct command_ask *ask, bool keep, int fds[static 3],
		       int *ret_master, struct writ_err *err)
{
	struct screen *c;
	int r;

	if (!ask->pty)
		return keep ? writ_fail(err, WRIT_E_SYNTAX, 0, "that request is not whole") : 0;
	c = screen_take(s, ask->id, sv_from(ask->argv[0]), keep);
	if (!c)
		return writ_fail(err, WRIT_E_LIMIT, 0,
				 "too many commands of this session have a terminal");
	if (engine_view(s)->own_mounts)
		return 0;
	r = std_fds_terminal(ask->pty, ask->rows, ask->cols, fds, ret_master, err);
	if (r == 0)
		ask->given |= ask->pty;
	return r;
}

/*
 * Sends a command other than that of `run` to the jail. The supervisor holds the command's
 * terminal; with @keep the command keeps running without a client. @given are the descriptors that
 * the client sent, which the caller closes.
 */
static int send_command(struct session *s, struct command_ask *ask, size_t client, bool keep,
			int given[static 3], struct writ_err *err)
{
	const uint32_t pty = engine_view(s)->own_mounts ? 0 : ask->pty;
	int master = -1, r;

	ask->fds = given;
	if (commands_of(s)->running_n == COMMANDS_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "too many commands are running");
	r = exec_screen(s, ask, keep, given, &master, err);
	if (r == 0)
		r = command_send(s, ask, err);
	for (int i = 0; i < 3; i++)
		if (pty & 1u << i)
			fd_scope_close(&given[i]);
	if (r < 0) {
		struct screen *c = screen_get(s, ask->id);

		if (c)
			screen_free(c);
		fd_scope_close(&master);
		return r;
	}
	commands_of(s)->running[commands_of(s)->running_n++] = (struct running){
		.id = ask->id, .client = client, .pty = ask->pty, .started_ms = clock_boot_ms()
	};
	if (master >= 0)
		commands_terminal(s, ask->id, master);
	return 0;
}

void commands_exec(struct session *s, const struct caller *who, struct rpc_message *m)
{
	scoped_arena scratch = ARENA_INIT((size_t)4 * ENGINE_COMMAND_MAX);
	struct arena *const kept = s->a;
	struct command_ask ask = { 0 };
	struct writ_err err = { 0 };
	int given[3] = { -1, -1, -1 };
	bool keep = false;
	size_t next = 0;
	int r;

	/* A session may run any number of commands: free the memory of each request. */
	s->a = &scratch;
	r = exec_parse(s, m, &ask, &keep, &err);
	for (int i = 0; r == 0 && i < 3; i++)
		if (ask.given & 1u << i)
			given[i] = m->fds[next++];
	ask.id = ++commands_of(s)->commands;
	if (r == 0 && ask.pty) {
		/* Register the request first: send_command() may open the terminal. */
		who->call->kind = CALL_TERMINAL;
		who->call->number = ask.id;
	}
	if (r == 0)
		r = send_command(s, &ask, who->client, keep, given, &err);
	s->a = kept;
	if (r == WRIT_E_SYNTAX)
		control_refuse(who, RPC_E_PARAMS, "%s", err.what);
	else if (r < 0)
		rpc_refuse_err(who->conn, who->call, &err);
	else if (!ask.pty)
		answer_started(who, ask.id);
}

/* --- attaching --- */

/*
 * Chooses the screen of the only running command, or else of the command that ended last. Returns
 * NULL, with the reason in @why, if several commands run or no command has a screen.
 */
static struct screen *choose(struct session *s, struct buf *why)
{
	struct screen *last = NULL;
	size_t runs = 0;

	for (size_t i = 0; i < SCREENS_MAX; i++) {
		struct screen *c = &commands_of(s)->screens[i];

		if (c->command == 0)
			continue;
		if (!c->ended)
			buf_fmt(why, "%s%u (%s)",
				runs++ ? ", " : "several run, say which: ", c->command, c->name);
		if (!last || last->ended > c->ended ||
		    (last->ended == c->ended && c->command > last->command))
			last = c;
	}
	if (runs > 1)
		return NULL;
	if (!last)
		buf_str(why, "no command of this session has a terminal to join");
	return last;
}

void commands_attach(struct session *s, const struct caller *who, uint32_t number)
{
	scoped_buf why = BUF_INIT(4096);
	struct writ_err err = { 0 };
	struct screen *c = number ? screen_get(s, number) : choose(s, &why);

	if (!c && number)
		buf_fmt(&why, "command %u has no terminal to join, or ended long ago", number);
	if (!c) {
		control_refuse(who, RPC_E_NOT_FOUND, "%s", why.p ? why.p : "");
	} else if (c->pty < 0 && !c->ended) { /* wait: the terminal does not exist yet */
		who->call->kind = CALL_JOIN;
		who->call->number = c->command;
	} else if (screen_attach(s, c, who, true, &err) < 0) {
		rpc_refuse_err(who->conn, who->call, &err);
	} else { /* the command may have stopped without a client: continue it */
		engine_signal(s, c->command, SIGCONT);
	}
}

void commands_detach(struct session *s, const struct caller *who, uint32_t id)
{
	struct screen *c = screen_get(s, id);

	if (c)
		c->keep = true;
	if (c)
		rpc_result(who->conn, who->call, NULL, NULL, 0);
	else
		control_refuse(who, RPC_E_NOT_FOUND, "command %u has no terminal", id);
}

void commands_signal(struct session *s, const struct caller *who, uint32_t id, int number)
{
	if (!running_get(s, id)) {
		control_refuse(who, RPC_E_NOT_FOUND, "command %u is not running", id);
		return;
	}
	engine_signal(s, id, number);
	rpc_result(who->conn, who->call, NULL, NULL, 0);
}

/*
 * Kills the commands that the client of the closed connection started, except commands that keep
 * running without a client. Detaches the client from the screens that it has joined.
 */
void commands_hang_up(struct session *s, size_t client)
{
	for (size_t i = 0; i < commands_of(s)->running_n; i++) {
		const struct screen *c = screen_get(s, commands_of(s)->running[i].id);

		if (commands_of(s)->running[i].client != client)
			continue;
		commands_of(s)->running[i].client = NOBODY;
		if (!(c && c->keep))
			kill_command(s, commands_of(s)->running[i].id);
	}
	for (size_t i = 0; i < SCREENS_MAX; i++)
		if (commands_of(s)->screens[i].link >= 0 &&
		    commands_of(s)->screens[i].client == client)
			screen_leave(&commands_of(s)->screens[i]);
}

/* --- the first command --- */

uint32_t commands_count(const struct session *s)
{
	return commands_of(s)->commands;
}

/* Starts the first command of a detached session, with a terminal that clients may join. */
static int start_kept(struct session *s, struct command_ask *ask, struct writ_err *err)
{
	int none[3] = { -1, -1, -1 };
	int r;

	ask->pty = 7;
	ask->rows = 24;
	ask->cols = 80;
	r = send_command(s, ask, NOBODY, true, none, err);
	ask->fds = NULL;
	return r;
}

int commands_start(struct session *s, struct writ_err *err)
{
	const mode_t mask = umask(022);
	struct command_ask ask = { .id = 1,
				   .last = !s->opt->detach,
				   .argv = s->opt->argv,
				   .environ = s->opt->environ,
				   .cwd = s->opt->cwd,
				   .program = s->opt->program,
				   .umask = mask };
	int r;

	(void)umask(mask);
	commands_of(s)->commands = 1;
	if (!s->opt->argv[0])
		return 0;
	if (s->opt->detach)
		return start_kept(s, &ask, err);
	r = terminal_open(s, &ask, err);
	if (r == 0)
		r = command_send(s, &ask, err);
	terminal_sent(s);
	return r;
}

/* --- the loop --- */

void commands_poll(struct session *s, struct session_poll *set)
{
	for (size_t i = 0; i < SCREENS_MAX; i++) {
		struct pollfd two[2];

		screen_poll(&commands_of(s)->screens[i], two);
		session_poll_add(set, two[0].fd, two[0].events);
		session_poll_add(set, two[1].fd, two[1].events);
	}
}

void commands_on_event(struct session *s, const struct pollfd *p, size_t n)
{
	for (size_t i = 0; i + 1 < n; i += 2)
		if (p[i].revents || p[i + 1].revents)
			screen_step(s, &commands_of(s)->screens[i / 2], p[i].revents,
				    p[i + 1].revents);
}

void commands_clear(struct session *s)
{
	screen_clear(s);
}
