#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "codec/json.h"
#include "lib/run_priv.h"
#include "session/session.h"

#include "base/banned.h"

int run_options(const struct writ_run_options *from, struct writ_run_options *ret,
		struct writ_error *err)
{
	if (!from || !lib_options(ret, sizeof(*ret), sizeof(size_t), from))
		return lib_argument(err, "options of an unknown size, or none");
	if (ret->flags & ~(uint32_t)WRIT_RUN_NEUTRAL)
		return lib_argument(err, "flags that this version does not know");
	if (ret->stdio && (ret->output || ret->input_n))
		return lib_argument(err, "either descriptors or input and output, not both");
	if (ret->input_n && !ret->input)
		return lib_argument(err, "input_n without input");
	return 0;
}

/* Strings stay where they are: the bytes are copied at once. */
static bool add_list(struct arena *a, char *const *from, char ***ret, size_t *ret_n)
{
	size_t n = 0;

	while (from && from[n])
		n++;
	*ret = arena_array(a, char *, n + 1);
	*ret_n = n;
	if (*ret && n)
		memcpy(*ret, from, n * sizeof(*from));
	return *ret != NULL;
}

int run_command(struct writ *w, const struct writ_run_options *opt, struct lib_command *c,
		struct arena *a, struct buf *b, struct writ_err *err)
{
	char *const *argv = (char *const *)(uintptr_t)opt->argv;
	char *const *env = opt->environ ? (char *const *)(uintptr_t)opt->environ : w->environ;
	char *real = opt->cwd ? realpath(opt->cwd, NULL) : NULL;
	int r = 0;

	c->flags = opt->flags;
	if (opt->cwd && !real)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", opt->cwd);
	if (!add_list(a, argv, &c->argv.v, &c->argv.n) ||
	    !add_list(a, env, &c->environ.v, &c->environ.n))
		r = writ_nomem(err);
	if (real)
		c->cwd = sv_from(real);
	if (r == 0)
		r = lib_command_encode(c, b, err);
	c->cwd = SV("");
	free(real);
	return r;
}

/* --- what a supervisor says --- */

/* One line of JSON that the session writes about itself. */
static void take_status(struct run_news *news, struct sv text)
{
	struct writ_err none = { 0 };
	json_t *v = NULL;
	const char *by;

	if (json_decode(text, 8192, &v, &none) < 0)
		return;
	news->denials = (uint32_t)json_integer_value(json_object_get(v, "denials"));
	by = json_string_value(json_object_get(v, "ended_by"));
	if (by && strlen(by) < sizeof(news->ended_by))
		memcpy(news->ended_by, by, strlen(by) + 1);
	json_decref(v);
}

int run_hear(const struct super *s, int timeout_ms, struct run_news *news, struct writ_err *err)
{
	char text[8192];
	size_t n = 0;
	const int r = super_hear(s, timeout_ms, text, sizeof(text), &n, NULL, err);
	struct super_answer a;

	if (r <= 0)
		return r;
	if (n == SESSION_ID) {
		memcpy(news->id, text, n);
	} else if (text[0] == '{') {
		take_status(news, (struct sv){ text, n });
	} else if (n == sizeof(a)) {
		memcpy(&a, text, sizeof(a));
		a.err.what[sizeof(a.err.what) - 1] = 0;
		if (a.told == SUPER_ENDED) {
			news->ended = true;
			news->answer = a;
		}
	} else {
		return writ_fail(err, WRIT_E_BUG, 0, "a strange answer of %zu bytes", n);
	}
	return 1;
}

void run_exit(const struct run_news *news, struct writ_exit *ret)
{
	struct writ_exit all = { .code = news->answer.exit, .denials = news->denials };
	size_t size = ret ? ret->size : 0;

	if (!ret)
		return;
	memcpy(all.session, news->id, sizeof(all.session));
	memcpy(all.ended_by, news->ended_by, sizeof(all.ended_by));
	memcpy(all.why, news->answer.err.what, sizeof(news->answer.err.what));
	if (size > sizeof(all))
		size = sizeof(all);
	if (size > sizeof(size_t))
		memcpy((char *)ret + sizeof(size_t), (char *)&all + sizeof(size_t),
		       size - sizeof(size_t));
}

/* --- running --- */

/* Another start would be in this one's way, and many commands end at once. */
enum { REFILL_MS = 10 };

/* Hands the command over and carries its bytes until the supervisor is done. */
static int carry(const struct super *s, enum super_ask what, struct sv bytes,
		 const struct writ_run_options *opt, struct run_news *news, struct writ_err *err)
{
	bool refilled = false;
	int64_t refill = INT64_MAX;
	struct run_io io = RUN_IO_INIT;
	int r = run_io_open(&io, opt, err);

	if (r == 0)
		r = super_ask(s, what, bytes, io.given, 3, err);
	run_io_sent(&io);
	while (r >= 0 && !news->ended) {
		r = run_io_carry(&io, opt, s->socket, refill, err);
		if (r > 0) {
			pool_refill(opt->pool);
			refilled = true;
			refill = INT64_MAX;
		} else if (r == 0) {
			const bool begun = news->id[0];

			r = run_hear(s, -1, news, err);
			if (!begun && news->id[0])
				refill = monotonic_ms() + REFILL_MS;
		}
	}
	if (!refilled)
		pool_refill(opt->pool);
	/* What it still held comes now, and then the end of it. */
	if (r >= 0)
		r = run_io_carry(&io, opt, -1, INT64_MAX, err);
	run_io_close(&io);
	return r;
}

static int finish(int r, const struct run_news *news, const struct writ_err *why,
		  struct writ_exit *ret, struct writ_error *err)
{
	if (r < 0)
		return lib_error(err, why);
	if (news->answer.err.code)
		return lib_error(err, &news->answer.err);
	run_exit(news, ret);
	return 0;
}

int writ_run(struct writ_policy *p, const struct writ_run_options *options, struct writ_exit *ret,
	     struct writ_error *err)
{
	scoped_arena a = ARENA_INIT(64 << 20);
	struct buf b = BUF_INIT(64 << 20);
	struct lib_command c = { .id = SV(""), .state = SV(""), .cwd = SV("") };
	struct super s = SUPER_INIT;
	struct run_news news = { 0 };
	struct writ_run_options opt;
	struct writ_err why = { 0 };
	int r = run_options(options, &opt, err);

	if (r < 0)
		return r;
	if (!p || !opt.argv || !opt.argv[0])
		return lib_argument(err, "writ_run: run what?");
	r = run_command(p->w, &opt, &c, &a, &b, &why);
	if (r == 0)
		r = pool_take(p, opt.pool, &s, &why);
	if (r == 0)
		r = carry(&s, SUPER_RUN, buf_view(&b), &opt, &news, &why);
	super_close(&s);
	buf_clear(&b);
	return finish(r, &news, &why, ret, err);
}

int writ_session_exec(struct writ *w, const char *id, const struct writ_run_options *options,
		      struct writ_exit *ret, struct writ_error *err)
{
	scoped_arena a = ARENA_INIT(64 << 20);
	struct buf b = BUF_INIT(64 << 20);
	struct lib_command c = { .cwd = SV("") };
	struct super s = SUPER_INIT;
	struct run_news news = { 0 };
	struct writ_run_options opt;
	struct writ_err why = { 0 };
	int r = run_options(options, &opt, err);

	if (r < 0)
		return r;
	if (!w || !id || !id[0] || !opt.argv || !opt.argv[0] || opt.pool)
		return lib_argument(err, "writ_session_exec: run what, and in which session?");
	c.id = sv_from(id);
	c.state = w->where.state;
	r = run_command(w, &opt, &c, &a, &b, &why);
	if (r == 0)
		r = super_open(w, &s, &why);
	if (r == 0)
		r = carry(&s, SUPER_EXEC, buf_view(&b), &opt, &news, &why);
	super_close(&s);
	buf_clear(&b);
	return finish(r, &news, &why, ret, err);
}
