#include "parts/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "parts/control.h"
#include "parts/record.h"
#include "term/relay.h"

#include "base/banned.h"

enum {
	CHUNK = 16384,
	/* for output that is replayed, at most four times SCREEN_BACK, and a chunk */
	OUT_MAX = 1 << 20,
	DRAIN_MAX = 256 << 10 /* bytes that an ended command may have left in its terminal */
};

void screen_init(struct commands *c)
{
	for (size_t i = 0; i < SCREENS_MAX; i++)
		c->screens[i] = (struct screen){
			.pty = -1, .link = -1, .in = BUF_INIT(CHUNK), .out = BUF_INIT(OUT_MAX)
		};
}

void screen_free(struct screen *c)
{
	fd_scope_close(&c->pty);
	fd_scope_close(&c->link);
	buf_clear(&c->in);
	buf_clear(&c->out);
	free(c->back);
	*c = (struct screen){
		.pty = -1, .link = -1, .in = BUF_INIT(CHUNK), .out = BUF_INIT(OUT_MAX)
	};
}

void screen_clear(struct session *s)
{
	for (size_t i = 0; i < SCREENS_MAX; i++)
		screen_free(&commands_of(s)->screens[i]);
}

struct screen *screen_get(struct session *s, uint32_t command)
{
	for (size_t i = 0; command && i < SCREENS_MAX; i++)
		if (commands_of(s)->screens[i].command == command)
			return &commands_of(s)->screens[i];
	return NULL;
}

struct screen *screen_take(struct session *s, uint32_t command, struct sv name, bool keep)
{
	struct screen *best = NULL;

	for (size_t i = 0; i < SCREENS_MAX; i++) {
		struct screen *c = &commands_of(s)->screens[i];

		if (c->command && (!c->ended || c->link >= 0))
			continue;
		/* Choose an empty place, or the place of the oldest command that has ended. */
		if (!best || c->command < best->command)
			best = c;
	}
	if (!best)
		return NULL;
	screen_free(best);
	best->command = command;
	best->keep = keep;
	memcpy(best->name, name.p, name.n < sizeof(best->name) ? name.n : sizeof(best->name) - 1);
	return best;
}

void screen_open(struct screen *c, int pty)
{
	const int flags = fcntl(pty, F_GETFL);

	(void)fcntl(pty, F_SETFL, flags | O_NONBLOCK);
	c->pty = pty;
}

/* --- output of the terminal --- */

/* Adds output to the ring buffer, which begins at output % SCREEN_BACK once it is full. */
static void remember(struct screen *c, struct sv text)
{
	if (!c->back)
		c->back = malloc(SCREEN_BACK);
	while (c->back && text.n) {
		const size_t at = (size_t)(c->output % SCREEN_BACK);
		const size_t n = text.n < SCREEN_BACK - at ? text.n : SCREEN_BACK - at;

		memcpy(c->back + at, text.p, n);
		c->output += n;
		text = sv_skip(text, n);
	}
}

static void show(struct screen *c, struct sv text)
{
	remember(c, text);
	if (c->link >= 0)
		buf_sv(&c->out, text);
}

void screen_say(struct screen *c, const char *text)
{
	scoped_buf b = BUF_INIT(1024);

	buf_fmt(&b, "\r\nwrit: %s\r\n", text);
	show(c, buf_view(&b));
}

static void over_limit(struct session *s, struct screen *c)
{
	if (c->full)
		return;
	c->full = true;
	screen_say(c, "the output limit is reached; the rest is dropped");
	record_limit(s, "output", "command", c->command);
}

/* Reads output of the terminal. True: some bytes were read. */
static bool read_terminal(struct session *s, struct screen *c)
{
	const uint64_t max = s->opt->policy->set.limits[LIMIT_OUTPUT];
	char chunk[CHUNK];
	const ssize_t n = read(c->pty, chunk, sizeof(chunk));
	struct sv text = { chunk, n > 0 ? (size_t)n : 0 };

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		c->hung = true;
		return false;
	}
	session_touch(s);
	if (c->full)
		return true;
	if (max && (c->output >= max || text.n > max - c->output))
		text.n = c->output < max ? (size_t)(max - c->output) : 0;
	show(c, text);
	if (text.n < (size_t)n)
		over_limit(s, c);
	return true;
}

/*
 * Replays the output from before the client came: whole lines if older lines are lost, and without
 * escape sequences. A query to the terminal must not be repeated, because the client's terminal
 * would send the answer as keys.
 */
static void recall(struct screen *c)
{
	struct neutral n = { 0 };
	const size_t at = (size_t)(c->output % SCREEN_BACK);
	struct sv old = SV(""), new = { c->back, at };
	size_t line;

	if (!c->back)
		return;
	if (c->output >= SCREEN_BACK) {
		old = (struct sv){ c->back + at, SCREEN_BACK - at };
		line = sv_find(sv_sub(old, 0, 4096), '\n');
		old = sv_skip(old, line == SIZE_MAX ? 0 : line + 1);
	}
	neutral_step(&n, old, &c->out);
	neutral_step(&n, new, &c->out);
}

/* --- the client --- */

void screen_leave(struct screen *c)
{
	fd_close(&c->link);
	c->in.n = c->in_at = 0;
	c->out.n = c->out_at = 0;
}

/* --- bytes between the client and the terminal --- */

/* Sends the status of an ended command after all its output. */
static void last_word(struct session *s, struct screen *c)
{
	struct caller who;

	if (!c->ended || c->link < 0 || c->out_at < c->out.n)
		return;
	who = (struct caller){ .conn = control_conn(s, c->client), .client = c->client };
	while (who.conn && (who.call = rpc_find_call(who.conn, CALL_WAIT, c->command)))
		commands_answer_exit(&who, c->command, c->status);
	screen_leave(c);
}

static void write_link(struct session *s, struct screen *c)
{
	const struct sv rest = sv_skip(buf_view(&c->out), c->out_at);
	const ssize_t n = rest.n ? send(c->link, rest.p, rest.n, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;

	if (n > 0)
		c->out_at += (size_t)n;
	/* Drop the output of a client that is gone; its control socket reports the end. */
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		c->out_at = c->out.n;
	if (c->out_at == c->out.n)
		c->out.n = c->out_at = 0;
	last_word(s, c);
}

static void write_terminal(struct screen *c)
{
	const struct sv rest = sv_skip(buf_view(&c->in), c->in_at);
	const ssize_t n = rest.n ? write(c->pty, rest.p, rest.n) : 0;

	if (n > 0)
		c->in_at += (size_t)n;
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		c->in_at = c->in.n;
	if (c->in_at == c->in.n)
		c->in.n = c->in_at = 0;
}

static void read_link(struct session *s, struct screen *c)
{
	char keys[4096];
	const ssize_t n = recv(c->link, keys, sizeof(keys), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		screen_leave(c);
		return;
	}
	session_touch(s);
	if (c->pty >= 0 && !c->hung)
		buf_add(&c->in, keys, (size_t)n);
}

/* --- joining and leaving --- */

/* Changes the size of the terminal and back, so that full-screen programs redraw. */
static void nudge(const struct screen *c)
{
	struct winsize size;

	if (ioctl(c->pty, TIOCGWINSZ, &size) < 0)
		return;
	size.ws_col++;
	(void)ioctl(c->pty, TIOCSWINSZ, &size);
	size.ws_col--;
	(void)ioctl(c->pty, TIOCSWINSZ, &size);
}

int screen_attach(struct session *s, struct screen *c, const struct caller *who, bool joined,
		  struct writ_err *err)
{
	int p[2], fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "socketpair");
	if (c->link >= 0) {
		struct rpc_conn *before = control_conn(s, c->client);

		screen_leave(c);
		if (before && before != who->conn)
			rpc_notify(before, "proc.taken",
				   json_pack("{s:i}", "proc", (int)c->command));
	}
	c->link = p[0];
	c->client = who->client;
	c->keep |= joined;
	if (joined)
		recall(c);
	fds[0] = c->pty >= 0 ? c->pty : p[1];
	fds[1] = p[1];
	if (c->pty >= 0 && joined)
		nudge(c);
	rpc_result(who->conn, who->call,
		   json_pack("{s:i,s:b,s:b}", "proc", (int)c->command, "neutral", s->opt->neutral,
			     "joined", joined),
		   fds, c->pty >= 0 ? 2 : 1);
	close(p[1]);
	if (c->ended)
		write_link(s, c);
	return 0;
}

void screen_end(struct session *s, struct screen *c, int status)
{
	for (size_t i = 0; c->pty >= 0 && i < DRAIN_MAX / CHUNK && read_terminal(s, c); i++)
		;
	fd_close(&c->pty);
	c->ended = true;
	c->status = status;
	if (c->link >= 0)
		write_link(s, c);
}

void screen_poll(const struct screen *c, struct pollfd ret[static 2])
{
	const bool waits = c->out_at < c->out.n;

	ret[0] = (struct pollfd){ .fd = -1 };
	ret[1] = (struct pollfd){ .fd = c->link, .events = waits ? POLLOUT : 0 };
	if (c->in.n == 0 && !c->ended)
		ret[1].events |= POLLIN;
	/*
	 * While the client does not read, read no output: the command waits, as with any terminal.
	 */
	if (c->pty >= 0 && !c->hung)
		ret[0] = (struct pollfd){ .fd = c->pty,
					  .events = (short)((waits ? 0 : POLLIN) |
							    (c->in.n ? POLLOUT : 0)) };
	if (ret[0].events == 0)
		ret[0].fd = -1;
	if (ret[1].events == 0)
		ret[1].fd = -1;
}

void screen_step(struct session *s, struct screen *c, short pty, short link)
{
	if (pty && c->pty >= 0 && c->out_at == c->out.n)
		(void)read_terminal(s, c);
	if (link & (POLLIN | POLLHUP | POLLERR) && c->link >= 0 && c->in.n == 0)
		read_link(s, c);
	if (c->in.n && c->pty >= 0)
		write_terminal(c);
	if (c->out_at < c->out.n && c->link >= 0)
		write_link(s, c);
}
