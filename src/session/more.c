#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session/session_priv.h"

#include "base/banned.h"

enum { TELL_MAX = 8192 };

enum { NOBODY = CLIENTS_MAX };

static size_t client_of(const struct session *s, uint32_t id)
{
	size_t i = 0;

	while (i < CLIENTS_MAX && (s->clients[i].fd < 0 || s->clients[i].command != id))
		i++;
	return i;
}

void more_tell(const struct session *s, size_t client, const int *fds, size_t fds_n,
	       const char *fmt, ...)
{
	struct buf b = BUF_INIT(TELL_MAX);
	struct writ_err err = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vfmt(&b, fmt, ap);
	va_end(ap);
	/* A client that went away is noticed when its socket says so. */
	(void)!packet_send(s->clients[client].fd, buf_view(&b), fds, fds_n, &err);
	buf_clear(&b);
}

static void answer_why(struct session *s, size_t client, const struct writ_err *err)
{
	control_answer(s, client, "error %s%s%s", err->what, err->sys ? ": " : "",
		       err->sys ? strerror(err->sys) : "");
}

/* --- those that run --- */

static struct running *running_get(struct session *s, uint32_t id)
{
	for (size_t i = 0; i < s->running_n; i++)
		if (s->running[i].id == id)
			return &s->running[i];
	return NULL;
}

static void send_signal(struct session *s, uint32_t id, int64_t number)
{
	const struct jail_message m = { .type = JAIL_SIGNAL, .id = id, .value = number };
	struct writ_err err = { 0 };

	(void)!jail_send(s->jail.session, &m, NULL, 0, SV(""), &err);
}

static void kill_command(struct session *s, uint32_t id)
{
	const struct running *r = running_get(s, id);

	send_signal(s, id, r && r->pty ? JAIL_KILL_LED : SIGKILL);
}

static void too_late(struct session *s, struct running *r)
{
	struct screen *c = screen_get(s, r->id);
	struct entry entry = { 0 };

	record_begin(s, &entry, "limit");
	record_str(&entry, "limit", SV("command"));
	record_num(&entry, "command", r->id);
	record_end(s, &entry);
	r->late = true;
	if (c)
		screen_say(c, "the command limit is reached");
	kill_command(s, r->id);
}

int more_timeout(struct session *s, int least)
{
	const uint64_t length = s->opt->policy->set.limits[LIMIT_COMMAND] * 1000;
	const uint64_t now = clock_ms();

	if (!length || s->state != SESSION_RUNNING)
		return least;
	for (size_t i = 0; i < s->running_n; i++) {
		struct running *r = &s->running[i];

		if (r->late)
			continue;
		if (now >= r->started_ms + length)
			too_late(s, r);
		else if (r->started_ms + length - now < (uint64_t)least)
			least = (int)(r->started_ms + length - now);
	}
	return least;
}

/* --- news of them --- */

/* Who wanted to join it before it had a terminal. */
static void join_waiting(struct session *s, struct screen *c)
{
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		struct writ_err err = { 0 };

		if (s->clients[i].fd < 0 || s->clients[i].joins != c->command)
			continue;
		s->clients[i].joins = 0;
		if (screen_attach(s, c, i, true, &err) < 0)
			answer_why(s, i, &err);
	}
}

void more_terminal(struct session *s, uint32_t id, int fd)
{
	struct screen *c = screen_get(s, id);
	const size_t client = client_of(s, id);
	struct writ_err err = { 0 };

	if (!c || c->pty >= 0 || c->ended || fd < 0) {
		scope_close(&fd);
		return;
	}
	screen_open(c, fd);
	if (client != NOBODY && c->keep)
		more_tell(s, client, NULL, 0, "started %u", id);
	else if (client != NOBODY && screen_attach(s, c, client, false, &err) < 0)
		answer_why(s, client, &err);
	join_waiting(s, c);
}

void more_stopped(struct session *s, uint32_t id)
{
	const size_t client = client_of(s, id);

	if (client != NOBODY)
		more_tell(s, client, NULL, 0, "stopped");
}

void more_failed(struct session *s, uint32_t id, const struct writ_err *err)
{
	const size_t client = client_of(s, id);
	struct screen *c = screen_get(s, id);
	struct writ_err why;
	char text[256];

	command_why(s, err, &why);
	(void)snprintf(text, sizeof(text), "%s%s%s", why.what, why.sys ? ": " : "",
		       why.sys ? strerror(why.sys) : "");
	if (c && c->keep)
		screen_say(c, text);
	if (client != NOBODY)
		more_tell(s, client, NULL, 0, "failed %s", text);
}

int more_exited(struct session *s, uint32_t id, int status)
{
	struct running *r = running_get(s, id);
	struct screen *c = screen_get(s, id);
	size_t client;

	if (r && r->late)
		status = SESSION_TIMEOUT;
	if (r)
		*r = s->running[--s->running_n];
	if (c) {
		join_waiting(s, c);
		screen_end(s, c, status);
	}
	client = client_of(s, id);
	/* Who is attached hears of it behind the last byte. */
	if (client != NOBODY && (!c || c->link < 0)) {
		more_tell(s, client, NULL, 0, "exit %d", status);
		control_drop(s, client);
	}
	return status;
}

/* --- one more --- */

/* NUL-terminated strings of @text, the first @n of them. */
static char **take_strings(struct session *s, struct sv *text, size_t n)
{
	char **v = arena_array(s->a, char *, n + 1);

	for (size_t i = 0; v && i < n; i++) {
		const size_t end = sv_find(*text, 0);

		if (end == SIZE_MAX)
			return NULL;
		v[i] = arena_str(s->a, sv_sub(*text, 0, end));
		if (!v[i])
			return NULL;
		*text = sv_skip(*text, end + 1);
	}
	return v;
}

/*
 * "exec ARGS ENV PTY GIVEN UMASK ROWS COLS KEEP", and a descriptor that holds the
 * directory, the arguments and the environment, each with a NUL behind it. The
 * client's environment is not the command's: the policy chooses from it.
 */
static int exec_parse(struct session *s, struct sv rest, const int *fds, size_t fds_n,
		      struct command_ask *ret, bool *ret_keep, struct writ_err *err)
{
	uint64_t v[8];
	struct buf b = BUF_INIT(JAIL_MAX);
	struct sv text, cwd;
	size_t end;
	int r;

	for (size_t i = 0; i < ARRAY_LEN(v); i++)
		if (!sv_to_u64(sv_cut(&rest, ' '), 65535, &v[i]))
			return writ_fail(err, WRIT_E_SYNTAX, 0, "that request has no meaning");
	if (fds_n == 0 || v[0] == 0 || (size_t)__builtin_popcountll(v[3] & 7) != fds_n - 1)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "that request is not whole");
	r = lseek(fds[0], 0, SEEK_SET) < 0 ? writ_fail(err, WRIT_E_SYS, errno, "read a request")
					   : fd_read_all(fds[0], &b, err);
	if (r == 0 && !arena_sv(s->a, buf_view(&b), &text))
		r = writ_nomem(err);
	buf_clear(&b);
	if (r < 0)
		return r;
	end = sv_find(text, 0);
	cwd = sv_sub(text, 0, end);
	text = sv_skip(text, end == SIZE_MAX ? text.n : end + 1);
	*ret = (struct command_ask){ .cwd = cwd.n ? cwd : s->opt->cwd,
				     .argv = take_strings(s, &text, v[0]),
				     .pty = (uint32_t)v[2] & 7,
				     .given = (uint32_t)v[3] & 7,
				     .umask = (uint32_t)v[4] & 0777,
				     .rows = (uint16_t)v[5],
				     .cols = (uint16_t)v[6] };
	ret->environ = take_strings(s, &text, v[1]);
	*ret_keep = v[7];
	return ret->argv && ret->environ
		       ? 0
		       : writ_fail(err, WRIT_E_SYNTAX, 0, "that request is cut off");
}

/* Room for its terminal, and outside of namespaces of our own the terminal itself. */
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
	if (s->view.own_mounts)
		return 0;
	r = front_terminal(ask->pty, ask->rows, ask->cols, fds, ret_master, err);
	if (r == 0)
		ask->given |= ask->pty;
	return r;
}

int more_send(struct session *s, struct command_ask *ask, bool keep, int given[static 3],
	      struct writ_err *err)
{
	const uint32_t pty = s->view.own_mounts ? 0 : ask->pty;
	int master = -1, r;

	ask->fds = given;
	if (s->running_n == COMMANDS_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "too many commands are running");
	r = exec_screen(s, ask, keep, given, &master, err);
	if (r == 0)
		r = command_send(s, ask, err);
	for (int i = 0; i < 3; i++)
		if (pty & 1u << i)
			scope_close(&given[i]);
	if (r < 0) {
		struct screen *c = screen_get(s, ask->id);

		if (c)
			screen_free(c);
		scope_close(&master);
		return r;
	}
	s->running[s->running_n++] =
		(struct running){ .id = ask->id, .pty = ask->pty, .started_ms = clock_ms() };
	if (master >= 0)
		more_terminal(s, ask->id, master);
	return 0;
}

void more_exec(struct session *s, size_t client, struct sv rest, const int *fds, size_t fds_n)
{
	scoped_arena scratch = ARENA_INIT((size_t)4 * JAIL_MAX);
	struct arena *const kept = s->a;
	struct command_ask ask = { 0 };
	struct writ_err err = { 0 };
	int given[3] = { -1, -1, -1 };
	bool keep = false;
	size_t next = 1;
	int r;

	/* One command for each client. */
	if (s->clients[client].command) {
		more_hang_up(s, client);
		return;
	}
	/* A kept session may run any number of commands: none of them leaves memory behind. */
	s->a = &scratch;
	r = exec_parse(s, rest, fds, fds_n, &ask, &keep, &err);
	for (int i = 0; r == 0 && i < 3; i++)
		if (ask.given & 1u << i)
			given[i] = fds[next++];
	ask.id = ++s->commands;
	if (r == 0 && s->state != SESSION_RUNNING)
		r = writ_fail(&err, WRIT_E_DENIED, 0, "this session is not running");
	/* It is told of its terminal as soon as there is one. */
	s->clients[client].command = ask.id;
	if (r == 0)
		r = more_send(s, &ask, keep, given, &err);
	s->a = kept;
	if (r < 0) {
		s->clients[client].command = 0;
		answer_why(s, client, &err);
	}
}

/* --- attaching --- */

/* The one that runs, or else the one that ended last. NULL: @why says why. */
static struct screen *choose(struct session *s, struct buf *why)
{
	struct screen *last = NULL;
	size_t runs = 0;

	for (size_t i = 0; i < SCREENS_MAX; i++) {
		struct screen *c = &s->screens[i];

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

void more_attach(struct session *s, size_t client, struct sv number)
{
	struct buf why = BUF_INIT(4096);
	struct writ_err err = { 0 };
	struct screen *c;
	uint64_t n;

	if (!sv_to_u64(number, UINT32_MAX, &n) || s->clients[client].command) {
		more_hang_up(s, client);
		return;
	}
	c = n ? screen_get(s, (uint32_t)n) : choose(s, &why);
	if (!c && n)
		buf_fmt(&why, "command %u has no terminal to join, or ended long ago", (unsigned)n);
	if (!c)
		control_answer(s, client, "error %s", why.p ? why.p : "");
	else if (c->pty < 0 && !c->ended) /* it is just starting */
		s->clients[client].joins = c->command;
	else if (screen_attach(s, c, client, true, &err) < 0)
		answer_why(s, client, &err);
	else /* Nobody was there to hear that it had been stopped. */
		send_signal(s, c->command, SIGCONT);
	buf_clear(&why);
}

void more_detach(struct session *s, size_t client)
{
	struct screen *c = screen_get(s, s->clients[client].command);

	if (c)
		c->keep = true;
}

void more_signal(struct session *s, size_t client, struct sv number)
{
	uint64_t n;

	if (s->clients[client].command && sv_to_u64(number, SIGSYS, &n))
		send_signal(s, s->clients[client].command, (int64_t)n);
}

/* Whoever waited for a command has gone. The command goes too, unless it was to stay. */
void more_hang_up(struct session *s, size_t client)
{
	const uint32_t id = s->clients[client].command;
	const struct screen *c = screen_get(s, id);

	if (id && !(c && c->keep))
		kill_command(s, id);
	control_drop(s, client);
}
