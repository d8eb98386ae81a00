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
	struct stream keys; /* of a person whose terminal is not standard input */
	uint64_t output, activity;
	bool full, closed; /* told */
	bool last;	   /* relay_finish() runs: nothing waits for the session */
	bool held;	   /* keys are for somebody else */
	struct writ_err failure;
	char chunk[CHUNK];
};

/* --- setting up --- */

static bool is_pipe(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* Where the session's terminal shows: a terminal of the person that can be written. */
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
 * `x | less`: the command asks its terminal for keys, and not its standard input. It gets
 * them once x is done and it reads them in a way of its own: until then they may be for x.
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
	const struct end outer = end_outer(r->opt.outer[0]);

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

	init_stream(r, &r->keys, r->tty.shows ? end_outer(r->tty.fd) : none, pty);
}

/* Files of a person do not go into pipes by reference, pipes of the session may go out so. */
static void init_output(struct relay *r, int i, struct end inner, int outer)
{
	struct stream *s = &r->out[i];
	const struct end dst = end_outer(outer);

	init_stream(r, s, inner, dst);
	s->neutral = dst.tty && r->opt.neutral;
	/* Only here it pays, and all pipes of an ordinary user share one budget; may fail. */
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

static void input_over(struct relay *r);
static void output_over(struct relay *r, struct stream *s);

int relay_new(const struct relay_options *opt, struct relay **ret_r, struct writ_err *err)
{
	struct end e[3] = { { .fd = -1 }, { .fd = -1 }, { .fd = -1 } }, pty = { .fd = -1 };
	struct relay *r;
	int code = check(opt, err);

	for (int i = 0; i < 3 && code == 0; i++)
		if (opt->inner[i] >= 0)
			code = end_inner(opt->inner[i], &e[i], err);
	if (code == 0 && opt->pty >= 0)
		code = end_inner(opt->link > 0 ? opt->link : opt->pty, &pty, err);
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
		input_over(r);
	for (int i = FROM_STDOUT; i < OUTPUTS; i++)
		if (r->out[i].dst.fd < 0)
			output_over(r, &r->out[i]);
	*ret_r = r;
	return 0;
}

void relay_free(struct relay *r)
{
	if (!r)
		return;
	tty_give(&r->tty);
	if (r->opt.link > 0)
		scope_close(&r->opt.pty);
	if (!r->opt.on_pty[0])
		end_close(&r->in.dst);
	end_release(&r->in.src);
	buf_clear(&r->in.held);
	end_release(&r->keys.src);
	buf_clear(&r->keys.held);
	for (int i = 0; i < OUTPUTS; i++) {
		end_close(&r->out[i].src);
		end_release(&r->out[i].dst);
		buf_clear(&r->out[i].held);
	}
	free(r);
}

/* --- endings --- */

/*
 * A command that has left its terminal still is in its session: the master stays open, or
 * that would be a hangup. Keys have no way in, so the person gets their signals back.
 */
static void input_over(struct relay *r)
{
	if (!r->opt.on_pty[0]) {
		stream_end_input(&r->in);
	} else {
		tty_give(&r->tty);
		r->tty.input = false;
	}
	r->in.ended = true;
	r->in.waits_dst = false;
}

static void keys_over(struct relay *r)
{
	if (!r->tty.shows)
		return;
	tty_give(&r->tty);
	r->tty.input = false;
	r->keys.ended = true;
	r->keys.waits_dst = false;
	r->keys.dst.fd = -1;
}

static void output_over(struct relay *r, struct stream *s)
{
	s->ended = true;
	if (s != &r->out[FROM_PTY])
		end_close(&s->src);
	else if (r->opt.on_pty[0])
		input_over(r);
	else
		keys_over(r);
}

/* Without our end of it the command gets SIGPIPE from its pipe, or SIGHUP from its terminal. */
static void output_broken(struct relay *r, struct stream *s, int sys)
{
	static const char *const names[OUTPUTS] = { "terminal", "standard output",
						    "standard error" };

	if (sys != EPIPE && !s->dst.tty && !r->failure.code)
		(void)!writ_fail(&r->failure, WRIT_E_SYS, sys, "write to %s", names[s - r->out]);
	end_release(&s->dst);
	s->held.n = s->at = 0;
	s->waits_dst = false;
	output_over(r, s);
	if (s == &r->out[FROM_PTY]) {
		r->tty.pty = -1;
		end_close(&s->src);
		if (r->opt.on_pty[0])
			r->in.dst = s->src;
	}
}

/* --- moving --- */

static uint64_t room(const struct relay *r)
{
	const uint64_t max = r->opt.output_max;

	if (!max)
		return UINT64_MAX;
	return r->output < max ? max - r->output : 0;
}

static void say_full(struct relay *r)
{
	struct stream *s = &r->out[r->opt.on_pty[2] ? FROM_PTY : FROM_STDERR];
	const char *end = s->dst.tty && r->tty.raw ? "\r\n" : "\n";
	scoped_buf b = BUF_INIT(128);

	buf_fmt(&b, "%swrit: output limit of %llu bytes reached; the rest is dropped%s", end,
		(unsigned long long)r->opt.output_max, end);
	if (s->dst.fd >= 0)
		stream_say(s, buf_view(&b));
}

/* True if these bytes were the first too many. */
static bool count_output(struct relay *r, const struct stream *s, uint64_t moved)
{
	r->output += moved;
	r->activity += moved;
	if (!s->drop || !moved || r->full)
		return false;
	r->full = true;
	say_full(r);
	return true;
}

static void output_turn(struct relay *r, struct stream *s)
{
	for (int i = 0; i < (r->last ? TURNS_LAST : TURNS); i++) {
		enum flow f = stream_flush(s);
		uint64_t moved = 0;

		s->drop = room(r) == 0;
		if (f == FLOW_MORE)
			f = s->ended ? FLOW_END : stream_move(s, s->drop ? CHUNK : room(r), &moved);
		if (f == FLOW_BROKEN)
			output_broken(r, s, errno);
		/* Behind a success it may have been either side; looking at src is the cheaper
		 * way to find out, except when nobody looks at it any more. */
		s->waits_dst = f == FLOW_FULL && (i == 0 || !s->spliced || r->last || s->held.n);
		if (f == FLOW_END && !s->ended)
			output_over(r, s);
		if (count_output(r, s, moved) || f != FLOW_MORE)
			return;
	}
}

/* @hangup: the terminal itself is gone, as opposed to a person's Ctrl-D in line mode. */
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
		stream_say(s, (struct sv){ (const char[]){ (char)tty_eof_key(&r->tty) }, 1 });
	else if (f == FLOW_END || f == FLOW_BROKEN)
		input_over(r);
}

/*
 * SECURITY: as long as another program writes to our input, it may ask the person something
 * itself, a password say, and the command inside alone decides when it wants keys.
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
		keys_over(r);
}

/* --- polling --- */

static int waits_for(const struct stream *s)
{
	return s->waits_dst ? s->dst.fd : s->ended ? -1 : s->src.fd;
}

static void want(struct pollfd *fds, size_t *n, const struct stream *s)
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
		want(ret_fds, &n, s);
	s = &r->keys;
	if (!r->last && !s->ended && !r->held && (s->waits_dst || may_have_keys(r)))
		want(ret_fds, &n, s);
	for (int i = 0; i < OUTPUTS; i++)
		if (r->last ? r->out[i].waits_dst : !(r->held && r->out[i].dst.tty))
			want(ret_fds, &n, &r->out[i]);
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

/* --- the rest --- */

void relay_resize(struct relay *r)
{
	tty_size(&r->tty);
}

void relay_suspend(struct relay *r)
{
	tty_give(&r->tty);
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
			stream_say(&r->out[i], SV(NEUTRAL_RESET));
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
