#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "term/term_priv.h"

#include "base/banned.h"

enum { FROM_PTY, FROM_STDOUT, FROM_STDERR, OUTPUTS };
enum { TURNS = 8, TURNS_LAST = 4096 };

struct relay {
	struct relay_options opt;
	struct tty tty;
	struct stream in, out[OUTPUTS];
	struct stream keys; /* stream of keys from a terminal that is not standard input */
	uint64_t output, activity;
	/* @full: RELAY_OUTPUT_FULL was reported to the owner; @closed: RELAY_CLOSED was reported */
	bool full, closed;
	/* relay_finish() is running: deliver only output that the session has already written */
	bool last;
	bool held; /* relay_hold() is in effect: another part of writ reads the terminal */
	struct writ_err failure;
	char chunk[CHUNK];
};

/* --- setting up --- */

static bool is_pipe(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* Returns the outer descriptor that shows the output of the pseudo terminal; -1: none. */
static int screen_of(const struct relay_options *o)
{
	for (int i = 1; i < 3; i++)
		if (o->on_pty[i])
			return o->outer[i];
	if (o->on_pty[0] && (fcntl(o->outer[0], F_GETFL) & O_ACCMODE) == O_RDWR)
		return o->outer[0];
	return -1;
}

/*
 * Does the command need keys from its terminal although the standard input of the command is no
 * terminal? In `x | less` with a session around less, less reads keys from /dev/tty. The relay
 * forwards keys only once x has ended and less has left line mode: earlier keys may be meant for x.
 */
static bool has_keys(const struct relay_options *o)
{
	const int screen = screen_of(o);

	return !o->on_pty[0] && o->pty >= 0 && o->link <= 0 && !o->joined && screen >= 0 &&
	       (fcntl(screen, F_GETFL) & O_ACCMODE) == O_RDWR;
}

static void init_tty(struct relay *r)
{
	const struct relay_options *o = &r->opt;

	r->tty = (struct tty){ .fd = o->outer[0], .pty = o->pty, .input = o->on_pty[0] };
	r->tty.joined = o->joined;
	if (!isatty(r->tty.fd))
		r->tty.fd = screen_of(o);
	r->tty.lazy = o->on_pty[0] && !o->on_pty[1] && is_pipe(o->outer[1]);
	r->tty.shows = has_keys(o);
	if (r->tty.shows)
		r->tty.input = r->tty.lazy = true;
	tty_start(&r->tty);
}

static void init_stream(struct relay *r, struct stream *s, struct end src, struct end dst)
{
	*s = (struct stream){ .src = src, .dst = dst, .ended = src.fd < 0, .chunk = r->chunk };
	s->held.max = HELD_MAX;
}

static void init_input(struct relay *r, struct end inner)
{
	struct stream *s = &r->in;
	const struct end outer = relay_end_outer(r->opt.outer[0]);

	init_stream(r, s, outer, inner);
	s->escape = r->opt.escape && r->opt.on_pty[0];
	if (outer.kind == END_PIPE && is_pipe(inner.fd)) {
		s->spliced = true;
		s->peek = fcntl(inner.fd, F_SETPIPE_SZ, 1) == (int)sysconf(_SC_PAGESIZE);
	}
}

static void init_keys(struct relay *r, struct end pty)
{
	const struct end none = { .fd = -1 };

	init_stream(r, &r->keys, r->tty.shows ? relay_end_outer(r->tty.fd) : none, pty);
}

/*
 * Sets up an output stream. Splicing is limited to pipes of the session as the source: a regular
 * file or terminal of the user is never spliced into a session's pipe.
 */
static void init_output(struct relay *r, int i, struct end inner, int outer)
{
	struct stream *s = &r->out[i];
	const struct end dst = relay_end_outer(outer);

	init_stream(r, s, inner, dst);
	s->neutral = dst.tty && r->opt.neutral;
	/*
	 * Enlarge only the pipe of standard output: this pipe carries most of the data, and all
	 * pipes of a user share one budget. Failure is harmless.
	 */
	if (i == FROM_STDOUT)
		(void)fcntl(inner.fd, F_SETPIPE_SZ, PIPE_WANTED);
	s->spliced = is_pipe(inner.fd) && (dst.kind == END_PIPE || dst.kind == END_PLAIN);
}

static int check(const struct relay_options *o, struct writ_err *err)
{
	for (int i = 0; i < 3; i++)
		if (o->on_pty[i] && (o->pty < 0 || o->inner[i] >= 0 || o->outer[i] < 0))
			return writ_fail(err, WRIT_E_BUG, 0, "descriptor %d is joined wrongly", i);
	return 0;
}

static void end_input(struct relay *r);
static void end_output(struct relay *r, struct stream *s);

int relay_new(const struct relay_options *opt, struct relay **ret_r, struct writ_err *err)
{
	struct end e[3] = { { .fd = -1 }, { .fd = -1 }, { .fd = -1 } }, pty = { .fd = -1 };
	struct relay *r;
	int code = check(opt, err);

	for (int i = 0; i < 3 && code == 0; i++)
		if (opt->inner[i] >= 0)
			code = relay_end_inner(opt->inner[i], &e[i], err);
	if (code == 0 && opt->pty >= 0)
		code = relay_end_inner(opt->link > 0 ? opt->link : opt->pty, &pty, err);
	if (code < 0)
		return code;
	r = calloc(1, sizeof(*r));
	if (!r)
		return writ_nomem(err);
	r->opt = *opt;
	init_tty(r);
	init_input(r, opt->on_pty[0] ? pty : e[0]);
	init_keys(r, pty);
	init_output(r, FROM_PTY, pty, screen_of(opt));
	init_output(r, FROM_STDOUT, e[1], opt->on_pty[1] ? -1 : opt->outer[1]);
	init_output(r, FROM_STDERR, e[2], opt->on_pty[2] ? -1 : opt->outer[2]);
	if (r->in.ended)
		end_input(r);
	for (int i = FROM_STDOUT; i < OUTPUTS; i++)
		if (r->out[i].dst.fd < 0)
			end_output(r, &r->out[i]);
	*ret_r = r;
	return 0;
}

void relay_free(struct relay *r)
{
	if (!r)
		return;
	tty_restore(&r->tty);
	if (r->opt.link > 0)
		fd_scope_close(&r->opt.pty);
	if (!r->opt.on_pty[0])
		relay_end_close(&r->in.dst);
	relay_end_release(&r->in.src);
	buf_clear(&r->in.held);
	relay_end_release(&r->keys.src);
	buf_clear(&r->keys.held);
	for (int i = 0; i < OUTPUTS; i++) {
		relay_end_close(&r->out[i].src);
		relay_end_release(&r->out[i].dst);
		buf_clear(&r->out[i].held);
	}
	free(r);
}

/* --- endings --- */

/*
 * Ends input to the command. A pipe is closed. The master of a pseudo terminal stays open: closing
 * it would send SIGHUP to a command that has closed the terminal but still runs. Keys have no
 * destination any more, so give the terminal back, and Ctrl-C works on writ again.
 */
static void end_input(struct relay *r)
{
	if (!r->opt.on_pty[0]) {
		stream_end_input(&r->in);
	} else {
		tty_restore(&r->tty);
		r->tty.input = false;
	}
	r->in.ended = true;
	r->in.waits_dst = false;
}

static void end_keys(struct relay *r)
{
	if (!r->tty.shows)
		return;
	tty_restore(&r->tty);
	r->tty.input = false;
	r->keys.ended = true;
	r->keys.waits_dst = false;
	r->keys.dst.fd = -1;
}

static void end_output(struct relay *r, struct stream *s)
{
	s->ended = true;
	if (s != &r->out[FROM_PTY])
		relay_end_close(&s->src);
	else if (r->opt.on_pty[0])
		end_input(r);
	else
		end_keys(r);
}

/*
 * Handles an outer reader that is gone. Close the relay's end, so that the command gets SIGPIPE
 * from its pipe or SIGHUP from its terminal, as it would without the relay.
 */
static void output_broken(struct relay *r, struct stream *s, int sys)
{
	static const char *const names[OUTPUTS] = { "terminal", "standard output",
						    "standard error" };

	if (sys != EPIPE && !s->dst.tty && !r->failure.code)
		(void)!writ_fail(&r->failure, WRIT_E_SYS, sys, "write to %s", names[s - r->out]);
	relay_end_release(&s->dst);
	s->held.n = s->at = 0;
	s->waits_dst = false;
	end_output(r, s);
	if (s == &r->out[FROM_PTY]) {
		r->tty.pty = -1;
		relay_end_close(&s->src);
		if (r->opt.on_pty[0])
			r->in.dst = s->src;
	}
}

/* --- moving --- */

static uint64_t output_left(const struct relay *r)
{
	const uint64_t max = r->opt.output_max;

	if (!max)
		return UINT64_MAX;
	return r->output < max ? max - r->output : 0;
}

static void report_output_full(struct relay *r)
{
	struct stream *s = &r->out[r->opt.on_pty[2] ? FROM_PTY : FROM_STDERR];
	const char *end = s->dst.tty && r->tty.raw ? "\r\n" : "\n";
	scoped_buf b = BUF_INIT(128);

	buf_fmt(&b, "%swrit: output limit of %llu bytes reached; the rest is dropped%s", end,
		(unsigned long long)r->opt.output_max, end);
	if (s->dst.fd >= 0)
		stream_append(s, buf_view(&b));
}

/*
 * Counts @moved bytes of output. Returns true if these bytes were the first above the output limit.
 */
static bool count_output(struct relay *r, const struct stream *s, uint64_t moved)
{
	r->output += moved;
	r->activity += moved;
	if (!s->drop || !moved || r->full)
		return false;
	r->full = true;
	report_output_full(r);
	return true;
}

static void output_turn(struct relay *r, struct stream *s)
{
	for (int i = 0; i < (r->last ? TURNS_LAST : TURNS); i++) {
		enum flow f = stream_flush(s);
		uint64_t moved = 0;

		s->drop = output_left(r) == 0;
		if (f == FLOW_MORE)
			f = s->ended ? FLOW_END
				     : stream_move(s, s->drop ? CHUNK : output_left(r), &moved);
		if (f == FLOW_BROKEN)
			output_broken(r, s, errno);
		/*
		 * After a successful move, FLOW_FULL may mean that the source is empty: splice()
		 * reports a full sink and an empty source as EAGAIN. Poll the source, which is
		 * cheaper, unless relay_finish() has stopped polling sources.
		 */
		s->waits_dst = f == FLOW_FULL && (i == 0 || !s->spliced || r->last || s->held.n);
		if (f == FLOW_END && !s->ended)
			end_output(r, s);
		if (count_output(r, s, moved) || f != FLOW_MORE)
			return;
	}
}

/*
 * Moves bytes from standard input to the session. @hangup: poll() reported that standard input hung
 * up. End of file of a terminal that did not hang up means that the user typed Ctrl-D in line mode.
 */
static void input_turn(struct relay *r, bool hangup)
{
	struct stream *s = &r->in;
	enum flow f = stream_flush(s);
	uint64_t moved = 0;

	if (f == FLOW_MORE && s->src.tty && !tty_may_read(&r->tty))
		f = FLOW_EMPTY;
	else if (f == FLOW_MORE)
		f = stream_move(s, UINT64_MAX, &moved);
	s->waits_dst = f == FLOW_FULL;
	r->activity += moved;
	if (moved && s->src.tty)
		tty_take(&r->tty);
	if (f == FLOW_END && r->opt.on_pty[0] && !hangup)
		stream_append(s, (struct sv){ (const char[]){ (char)tty_eof_key(&r->tty) }, 1 });
	else if (f == FLOW_END || f == FLOW_BROKEN)
		end_input(r);
}

/*
 * SECURITY: while another program writes to writ's standard input, that program may prompt the user
 * on the same terminal, for example for a password. Keys typed for that program must not reach the
 * session, so forward no keys before that program has closed the pipe.
 */
static bool may_have_keys(struct relay *r)
{
	struct pollfd p = { .fd = r->opt.outer[0] };

	if (is_pipe(p.fd) && (poll(&p, 1, 0) < 0 || !(p.revents & POLLHUP)))
		return false;
	return tty_may_read(&r->tty);
}

static void keys_turn(struct relay *r)
{
	struct stream *s = &r->keys;
	enum flow f = stream_flush(s);
	uint64_t moved = 0;

	if (f == FLOW_MORE)
		f = may_have_keys(r) ? stream_move(s, UINT64_MAX, &moved) : FLOW_EMPTY;
	s->waits_dst = f == FLOW_FULL;
	r->activity += moved;
	if (f == FLOW_END || f == FLOW_BROKEN)
		end_keys(r);
}

/* --- polling --- */

static int waits_for(const struct stream *s)
{
	return s->waits_dst ? s->dst.fd : s->ended ? -1 : s->src.fd;
}

static void add_poll_entry(struct pollfd *fds, size_t *n, const struct stream *s)
{
	const int fd = waits_for(s);
	size_t i = 0;

	if (fd < 0)
		return;
	while (i < *n && fds[i].fd != fd)
		i++;
	if (i == *n)
		fds[(*n)++] = (struct pollfd){ .fd = fd };
	fds[i].events = (short)(fds[i].events | (s->waits_dst ? POLLOUT : POLLIN));
}

static short ready(const struct pollfd *fds, size_t n, const struct stream *s)
{
	const short mask =
		(short)(POLLERR | POLLHUP | POLLNVAL | (s->waits_dst ? POLLOUT : POLLIN));
	const int fd = waits_for(s);

	for (size_t i = 0; i < n && fd >= 0; i++)
		if (fds[i].fd == fd)
			return fds[i].revents & mask;
	return 0;
}

size_t relay_poll(struct relay *r, struct pollfd *ret_fds)
{
	struct stream *s = &r->in;
	size_t n = 0;

	if (!r->last && !s->ended && !(r->held && s->src.tty) &&
	    (s->waits_dst || !s->src.tty || tty_may_read(&r->tty)))
		add_poll_entry(ret_fds, &n, s);
	s = &r->keys;
	if (!r->last && !s->ended && !r->held && (s->waits_dst || may_have_keys(r)))
		add_poll_entry(ret_fds, &n, s);
	for (int i = 0; i < OUTPUTS; i++)
		if (r->last ? r->out[i].waits_dst : !(r->held && r->out[i].dst.tty))
			add_poll_entry(ret_fds, &n, &r->out[i]);
	return n;
}

void relay_hold(struct relay *r, bool hold)
{
	r->held = hold;
}

static bool all_done(const struct relay *r)
{
	for (int i = 0; i < OUTPUTS; i++)
		if (!r->out[i].ended || r->out[i].waits_dst)
			return false;
	return true;
}

int relay_step(struct relay *r, const struct pollfd *fds, size_t n, enum relay_event *ret_event,
	       struct writ_err *err)
{
	const bool was_full = r->full, was_closed = r->closed;
	const short input = r->last ? 0 : ready(fds, n, &r->in);
	bool lost = r->in.held.failed;

	if (input)
		input_turn(r, input & POLLHUP);
	if (!r->last && ready(fds, n, &r->keys))
		keys_turn(r);
	for (int i = 0; i < OUTPUTS; i++) {
		if (ready(fds, n, &r->out[i]))
			output_turn(r, &r->out[i]);
		lost |= r->out[i].held.failed;
	}
	if (lost)
		return writ_nomem(err);
	r->closed = all_done(r);
	*ret_event = r->in.detach		? RELAY_DETACH
		     : r->full && !was_full	? RELAY_OUTPUT_FULL
		     : r->closed && !was_closed ? RELAY_CLOSED
						: RELAY_NOTHING;
	return 0;
}

/* --- signals, end and counters --- */

void relay_resize(struct relay *r)
{
	tty_size(&r->tty);
}

void relay_suspend(struct relay *r)
{
	tty_restore(&r->tty);
	r->tty.away = true;
}

void relay_resume(struct relay *r)
{
	tty_retake(&r->tty);
}

static int drain(struct relay *r, bool (*waits)(void *ctx), void *ctx, struct writ_err *err)
{
	enum { ASK_MS = 100 };
	struct pollfd fds[RELAY_POLLS];
	enum relay_event event;
	int code = 0;
	size_t n;

	for (int i = 0; i < OUTPUTS; i++)
		if (!r->out[i].waits_dst && !r->out[i].ended)
			output_turn(r, &r->out[i]);
	while (code == 0 && (n = relay_poll(r, fds)) > 0) {
		if (poll(fds, n, waits ? ASK_MS : -1) > 0)
			code = relay_step(r, fds, n, &event, err);
		if (code == 0 && waits && !waits(ctx))
			code = writ_fail(err, WRIT_E_SYS, 0, "nobody read the rest of its output");
	}
	return code;
}

int relay_finish(struct relay *r, bool (*waits)(void *ctx), void *ctx, struct writ_err *err)
{
	int code;

	r->last = true;
	if (!r->opt.on_pty[0])
		stream_settle(&r->in);
	code = drain(r, waits, ctx, err);
	for (int i = 0; i < OUTPUTS && code == 0; i++)
		if (r->out[i].state.styled && r->out[i].dst.fd >= 0) {
			r->out[i].state.styled = false;
			stream_append(&r->out[i], SV(NEUTRAL_RESET));
		}
	if (code == 0)
		code = drain(r, waits, ctx, err);
	if (code == 0 && r->failure.code) {
		*err = r->failure;
		code = err->code;
	}
	return code;
}

uint64_t relay_output(const struct relay *r)
{
	return r->output;
}

uint64_t relay_activity(const struct relay *r)
{
	return r->activity;
}
