#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "session/session_priv.h"

#include "base/banned.h"

enum {
	CHUNK = 16384,
	OUT_MAX = 1 << 20,    /* the past of a screen, four times as long, and one chunk more */
	DRAIN_MAX = 256 << 10 /* of what a command left in its terminal */
};

void screen_init(struct session *s)
{
	for (size_t i = 0; i < SCREENS_MAX; i++)
		s->screens[i] = (struct screen){
			.pty = -1, .link = -1, .in = BUF_INIT(CHUNK), .out = BUF_INIT(OUT_MAX)
		};
}

void screen_free(struct screen *c)
{
	scope_close(&c->pty);
	scope_close(&c->link);
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
		screen_free(&s->screens[i]);
}

struct screen *screen_get(struct session *s, uint32_t command)
{
	for (size_t i = 0; command && i < SCREENS_MAX; i++)
		if (s->screens[i].command == command)
			return &s->screens[i];
	return NULL;
}

struct screen *screen_take(struct session *s, uint32_t command, struct sv name, bool keep)
{
	struct screen *best = NULL;

	for (size_t i = 0; i < SCREENS_MAX; i++) {
		struct screen *c = &s->screens[i];

		if (c->command && (!c->ended || c->link >= 0))
			continue;
		/* An empty one, or that of the command that was started first. */
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

/* --- what comes out --- */

/* The ring begins at output % SCREEN_BACK once it is full. */
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
	struct buf b = BUF_INIT(1024);

	buf_fmt(&b, "\r\nwrit: %s\r\n", text);
	show(c, buf_view(&b));
	buf_clear(&b);
}

static void over_limit(struct session *s, struct screen *c)
{
	struct entry entry = { 0 };

	if (c->full)
		return;
	c->full = true;
	screen_say(c, "the output limit is reached; the rest is dropped");
	record_begin(s, &entry, "limit");
	record_str(&entry, "limit", SV("output"));
	record_num(&entry, "command", c->command);
	record_end(s, &entry);
}

/* True if something was read. */
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
	s->active_ms = clock_ms();
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
 * What was there before somebody came. Whole lines where some are lost, and harmless:
 * a question to the terminal must not be asked again, its answer would be typed.
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

/* --- who looks --- */

void screen_leave(struct screen *c)
{
	scope_close(&c->link);
	c->link = -1;
	c->in.n = c->in_at = 0;
	c->out.n = c->out_at = 0;
}

/* --- both ways --- */

/* Everything of an ended command has been shown: its status is the last word. */
static void last_word(struct session *s, struct screen *c)
{
	if (!c->ended || c->link < 0 || c->out_at < c->out.n)
		return;
	more_tell(s, c->client, NULL, 0, "exit %d", c->status);
	s->clients[c->client].command = 0;
	control_drop(s, c->client);
	screen_leave(c);
}

static void write_link(struct session *s, struct screen *c)
{
	const struct sv rest = sv_skip(buf_view(&c->out), c->out_at);
	const ssize_t n = rest.n ? send(c->link, rest.p, rest.n, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;

	if (n > 0)
		c->out_at += (size_t)n;
	/* Whoever is gone is noticed by its other socket. */
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
	s->active_ms = clock_ms();
	if (c->pty >= 0 && !c->hung)
		buf_add(&c->in, keys, (size_t)n);
}

/* --- coming and going --- */

/* Programs that fill the screen draw it again if its size changes. */
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

int screen_attach(struct session *s, struct screen *c, size_t client, bool joined,
		  struct writ_err *err)
{
	int p[2], fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "socketpair");
	if (c->link >= 0) {
		const size_t before = c->client;

		screen_leave(c);
		s->clients[before].command = 0;
		more_tell(s, before, NULL, 0, "taken");
		control_drop(s, before);
	}
	c->link = p[0];
	c->client = client;
	c->keep |= joined;
	if (joined)
		recall(c);
	s->clients[client].command = c->command;
	fds[0] = c->pty >= 0 ? c->pty : p[1];
	fds[1] = p[1];
	if (c->pty >= 0 && joined)
		nudge(c);
	more_tell(s, client, fds, c->pty >= 0 ? 2 : 1, "%s %d %d %u", c->pty >= 0 ? "tty" : "past",
		  s->opt->neutral, joined, c->command);
	close(p[1]);
	if (c->ended)
		write_link(s, c);
	return 0;
}

void screen_end(struct session *s, struct screen *c, int status)
{
	for (size_t i = 0; c->pty >= 0 && i < DRAIN_MAX / CHUNK && read_terminal(s, c); i++)
		;
	scope_close(&c->pty);
	c->pty = -1;
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
	/* Who looks and does not read makes the command wait, as any terminal does. */
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
