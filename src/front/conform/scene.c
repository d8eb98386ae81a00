#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "conform/conform_priv.h"

#include "base/banned.h"

enum {
	SETUP_MS = 120000,
	JUDGE_MS = 300000,
	CALL_MS = 60000,
	EXPLAIN_MS = 30000,
	ROW_MS = 30000,	 /* limit for a row that has a sandbox of its own */
	TIMED_MS = 4000, /* limit for a row that is judged even if the attempt still runs */
	BEAT_MS = 3000,	 /* limit for an attempt to start, before the suite kills its supervisor */
	/*
	 * limit that writ promises: all processes are dead within a second of the supervisor's
	 * death
	 */
	DEATH_MS = 1000,
	/* limit for the rows that share a sandbox, plus BATCH_ROW_MS for each row */
	BATCH_MS = 60000,
	BATCH_ROW_MS = 3000,
};

/* --- Build a command --- */

struct argv {
	VEC(const char *) v;
	struct suite *s;
	bool failed;
};

static void push(struct argv *a, const char *word)
{
	a->failed = a->failed || !word || !vec_add(a->s->arena, &a->v, word);
}

/* Terminates the argument list; returns NULL if memory ran out. */
static const char *const *words(struct argv *a)
{
	return !a->failed && vec_add(a->s->arena, &a->v, NULL) ? a->v.v : NULL;
}

static void push_all(struct argv *a, const char *const *list)
{
	for (; *list; list++)
		push(a, *list);
}

static const char *join_ids(struct suite *s, const struct batch *b, const char *end)
{
	scoped_buf text = BUF_INIT(1 << 20);

	for (size_t i = 0; i < b->rows.n; i++) {
		buf_str(&text, i ? "," : "");
		buf_sv(&text, b->rows.v[i]->id);
	}
	buf_str(&text, end);
	return text.failed ? NULL : arena_str(s->arena, buf_view(&text));
}

/* Replaces {work}, {out} and {dir} in a word of --under. */
static const char *fill_in(struct suite *s, const char *word, const char *scene)
{
	static const struct {
		const char *name, *tail;
	} places[] = { { "{work}", "/work" }, { "{out}", "/out" }, { "{dir}", "" } };
	scoped_buf text = BUF_INIT(1 << 16);

	while (*word) {
		size_t i = 0;

		while (i < ARRAY_LEN(places) &&
		       strncmp(word, places[i].name, strlen(places[i].name)) != 0)
			i++;
		if (i == ARRAY_LEN(places)) {
			buf_ch(&text, *word++);
			continue;
		}
		buf_fmt(&text, "%s%s", scene, places[i].tail);
		word += strlen(places[i].name);
	}
	return text.failed ? NULL : arena_str(s->arena, buf_view(&text));
}

/* Pushes a command of writ that takes a tier and a policy. */
static void push_writ(struct argv *a, const char *verb, const char *policy)
{
	const char *tier = a->s->opt->tier;

	push_all(a, (const char *const[]){ a->s->opt->writ, verb, "--policy", policy,
					   tier ? "--tier" : NULL, tier, NULL });
}

/* Pushes the command of the tested sandbox; the caller pushes the program to run after it. */
static int push_sandbox(struct argv *a, const char *scene, struct sv extra, struct writ_err *err)
{
	const struct conform_options *opt = a->s->opt;
	const char *policy;

	if (opt->under) {
		for (size_t i = 0; i < opt->words.words.n; i++)
			push(a, fill_in(a->s, opt->words.words.v[i], scene));
		if (opt->words.words.n)
			push(a, "--");
		return 0;
	}
	if (testbed_policy(a->s, scene, extra, &policy, err) < 0)
		return err->code;
	push_writ(a, "run", policy);
	push(a, "--");
	return 0;
}

static void push_program(struct argv *a, const char *scene, const char *verb, const char *ids)
{
	push(a, arena_fmt(a->s->arena, "%s/work/writ-escape", scene));
	push_all(a, (const char *const[]){ verb, ids, scene, NULL });
}

/* --- Set up and tear down --- */

static int set_up(struct suite *s, const char *scene, const struct batch *b, struct writ_err *err)
{
	scoped_buf said = BUF_INIT(1 << 16);
	struct argv a = { .s = s };
	struct start how = { .out = -1, .err = -1 };
	int code = 0, r;

	push_all(&a, (const char *const[]){ s->program, "setup", scene, NULL });
	for (size_t i = 0; i < b->rows.n; i++)
		push(&a, b->rows.v[i]->id.p);
	how.argv = words(&a);
	if (!how.argv)
		return writ_nomem(err);
	/*
	 * Wait for the setup even after a stop request: the suite could not end a helper process
	 * that was started but not yet recorded.
	 */
	r = conform_child_call(s, &how, SETUP_MS, true, NULL, &said, &code, err);
	if (r < 0)
		return r;
	return code ? writ_fail(err, WRIT_E_SYS, 0, "the scene could not be made: %.70s",
				said.n ? said.p : "no reason was given")
		    : 0;
}

/*
 * Runs the part of the setup that needs root. If the setup fails, the attempt also fails without a
 * sandbox, and the row is judged n.a.
 */
static int set_up_root(struct suite *s, const char *scene, struct writ_err *err)
{
	const char *const argv[] = { s->program, "setup-root", scene, NULL };
	const struct start how = { .argv = argv, .raised = true };
	int code;

	return conform_child_call(s, &how, CALL_MS, true, NULL, NULL, &code, err);
}

static void take_down(struct suite *s, const char *scene)
{
	const char *const argv[] = { s->program, "teardown", scene, NULL };
	const struct start how = { .argv = argv };
	struct writ_err err = { 0 };
	int code;

	/*
	 * Ignore a failed teardown: helper processes exit by themselves when their parent has
	 * exited.
	 */
	(void)!conform_child_call(s, &how, CALL_MS, true, NULL, NULL, &code, &err);
	testbed_clear(s, scene);
}

static bool any_flag(const struct batch *b, unsigned flag)
{
	for (size_t i = 0; i < b->rows.n; i++)
		if (b->rows.v[i]->flags & flag)
			return true;
	return false;
}

/* --- Run --- */

/*
 * Waits until the attempt has written its "beat" file, then kills the supervisor, which is the
 * first process of the sandbox.
 */
static void kill_supervisor(struct suite *s, struct child *c, const char *scene,
			    const struct conform_row *row)
{
	const char *beat = arena_fmt(s->arena, "%s/work/%s/beat", scene, row->id.p);
	const int64_t end = clock_monotonic_ms() + BEAT_MS;

	while (beat && access(beat, F_OK) < 0 && clock_monotonic_ms() < end &&
	       !conform_child_wait(s, c, 50, false) && !s->stopped)
		;
	if (c->pid > 0)
		(void)kill(c->pid, SIGKILL);
	(void)conform_child_wait(s, c, CALL_MS, true);
	for (const int64_t later = clock_monotonic_ms() + DEATH_MS;
	     clock_monotonic_ms() < later && !s->stopped;)
		conform_signals_wait(s, later - clock_monotonic_ms());
}

/* Counts output lines that start with "=": one per finished attempt. */
static size_t count_answers(int fd, off_t *at, char *last)
{
	char chunk[16384];
	size_t found = 0;
	ssize_t n;

	while ((n = pread(fd, chunk, sizeof(chunk), *at)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			found += chunk[i] == '=' && *last == '\n';
			*last = chunk[i];
		}
		*at += n;
	}
	return found;
}

static void wait_batch(struct suite *s, struct child *c, size_t n, const char *out)
{
	const int64_t end = clock_monotonic_ms() + BATCH_MS + (long)n * BATCH_ROW_MS;
	const size_t before = s->done;
	scoped_fd seen = open(out, O_RDONLY | O_CLOEXEC);
	off_t at = 0;
	char last = '\n';

	while (!conform_child_wait(s, c, 300, false) && !s->stopped && clock_monotonic_ms() < end) {
		const size_t more = s->opt->progress < 0 ? 0 : count_answers(seen, &at, &last);

		s->done += more;
		if (more)
			conform_progress_show(s);
	}
	s->done = before;
}

static void wait_for(struct suite *s, struct child *c, const char *scene, const struct batch *b,
		     const char *out)
{
	const struct conform_row *row = b->rows.v[0];

	if (b->rows.n > 1) {
		wait_batch(s, c, b->rows.n, out);
	} else if (row->flags & ROW_KILL_SUPERVISOR) {
		kill_supervisor(s, c, scene, row);
	} else if (row->flags & ROW_TIMED) {
		(void)conform_child_wait(s, c, TIMED_MS, false);
		return; /* the attempt may still run while the row is judged */
	} else {
		(void)conform_child_wait(s, c, ROW_MS, false);
	}
	conform_child_end(c);
}

/* Keeps the end of the standard error of the first sandbox in which some attempt did not run. */
static void keep_errors(struct suite *s, struct sv text)
{
	const struct sv end = sv_skip(text, text.n > STDERR_TAIL ? text.n - STDERR_TAIL : 0);

	for (size_t i = 0; i < end.n; i++)
		s->errors[i] = end.p[i] ? end.p[i] : ' ';
	s->errors[end.n] = 0;
}

/*
 * If an attempt left no trace, keeps the standard error of the sandbox for the report. For a batch
 * of one row, the first line also becomes the reason of the row.
 */
static void explain_silent_rows(struct suite *s, const struct batch *b,
				struct conform_trial *trials, const char *errors)
{
	scoped_buf text = BUF_INIT(OUTPUT_BYTES);
	struct writ_err err = { 0 };
	size_t silent = 0, row = 0;
	struct sv rest;

	for (size_t i = 0; i < b->rows.n; i++) {
		const size_t k = (size_t)(b->rows.v[i] - s->rows->rows.v);

		silent += trials[k].seen == SEEN_SILENT;
		row = k;
	}
	if (silent == 0 || fd_read_file(errors, &text, &err) < 0)
		return;
	if (!s->errors[0])
		keep_errors(s, buf_view(&text));
	rest = buf_view(&text);
	if (b->rows.n == 1 && !trials[row].why[0])
		conform_copy_text(trials[row].why, sv_cut(&rest, '\n'));
}

static int judge(struct suite *s, const char *scene, const char *ids, const char *out,
		 struct conform_trial *trials, struct writ_err *err)
{
	const char *const argv[] = { s->program, "judge", ids, scene, out, NULL };
	const struct start how = { .argv = argv };
	scoped_buf text = BUF_INIT(OUTPUT_BYTES);
	int code, r;

	r = conform_child_call(s, &how, JUDGE_MS, false, &text, NULL, &code, err);
	if (r == 0)
		conform_read_judged(buf_view(&text), s->rows, trials);
	return r;
}

static int open_output(struct suite *s, const char *scene, const char *tail, const char **ret_name)
{
	const char *name = arena_fmt(s->arena, "%s.%s", scene, tail);
	scoped_fd fd = name ? open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644) : -1;

	*ret_name = name;
	/*
	 * Make the file readable regardless of the umask: the judge reads the file as the tested
	 * user.
	 */
	return fd >= 0 && fchmod(fd, 0644) == 0 ? fd_take(&fd) : -1;
}

/* --- One scene --- */

static int make_command(struct suite *s, const char *scene, const struct batch *b, bool bare,
			const char *ids, const char *const **ret, struct writ_err *err)
{
	const bool alone = b->rows.n == 1;
	struct argv a = { .s = s };
	int r = 0;

	if (alone && b->rows.v[0]->flags & ROW_LAUNCH)
		push_all(&a, (const char *const[]){ s->program, "launch", ids, scene, "--", NULL });
	if (!bare)
		r = push_sandbox(&a, scene, alone ? b->rows.v[0]->policy : SV(""), err);
	if (r < 0)
		return r;
	push_program(&a, scene, "attempt", ids);
	*ret = words(&a);
	return *ret ? 0 : writ_nomem(err);
}

/*
 * Runs the attempts of a batch and lets writ-escape judge them. The output of the attempts goes to
 * files next to the scene, because the judge, another process, reads the output.
 */
static int run_command(struct suite *s, const char *scene, const struct batch *b, bool bare,
		       struct conform_trial *trials, struct writ_err *err)
{
	const char *out_name, *err_name;
	scoped_fd out = open_output(s, scene, "out", &out_name);
	scoped_fd errs = open_output(s, scene, "err", &err_name);
	const char *cwd = arena_fmt(s->arena, "%s/work", scene);
	const char *ids = join_ids(s, b, "");
	struct start how = { .cwd = cwd, .out = out, .err = errs };
	struct child c = { 0 };
	int r;

	if (!cwd || !ids || !out_name || !err_name)
		return writ_nomem(err);
	if (out < 0 || errs < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", out_name);
	r = make_command(s, scene, b, bare, ids, &how.argv, err);
	if (r == 0)
		r = conform_child_start(s, &how, &c, err);
	if (r == 0) {
		wait_for(s, &c, scene, b, out_name);
		if (!s->stopped)
			r = judge(s, scene, ids, out_name, trials, err);
		conform_child_end(&c);
		if (!bare)
			explain_silent_rows(s, b, trials, err_name);
	}
	(void)unlink(out_name);
	(void)unlink(err_name);
	return r;
}

int scene_run(struct suite *s, const struct batch *batch, bool bare, struct conform_trial *trials,
	      struct writ_err *err)
{
	const char *scene = testbed_scene(s, "s", err);
	int r;

	if (!scene)
		return err->code;
	r = set_up(s, scene, batch, err);
	if (r == 0 && any_flag(batch, ROW_ROOT_SETUP))
		r = set_up_root(s, scene, err);
	if (r == 0 && !s->stopped)
		r = run_command(s, scene, batch, bare, trials, err);
	take_down(s, scene);
	return r;
}

int scene_controls(struct suite *s, const struct batch *batch, enum conform_control *controls,
		   struct writ_err *err)
{
	scoped_buf text = BUF_INIT(OUTPUT_BYTES);
	const char *scene = testbed_scene(s, "c", err);
	/* A trailing comma makes writ-escape apply its time limit even to a single id. */
	const char *ids = join_ids(s, batch, ",");
	struct argv a = { .s = s };
	struct start how = { .out = -1, .err = -1 };
	int code, r;

	if (!scene || !ids)
		return scene ? writ_nomem(err) : err->code;
	how.cwd = arena_fmt(s->arena, "%s/work", scene);
	r = set_up(s, scene, batch, err);
	if (r == 0)
		r = push_sandbox(&a, scene, SV(""), err);
	if (r == 0) {
		push_program(&a, scene, "control", ids);
		how.argv = words(&a);
		r = how.argv && how.cwd ? 0 : writ_nomem(err);
	}
	if (r == 0 && !s->stopped)
		r = conform_child_call(s, &how, BATCH_MS + (long)batch->rows.n * BATCH_ROW_MS,
				       false, &text, NULL, &code, err);
	take_down(s, scene);
	for (size_t i = 0; r == 0 && i < batch->rows.n; i++) {
		const char *mark = arena_fmt(s->arena, "=%s 0\n", batch->rows.v[i]->id.p);
		const bool works = mark && text.n && memmem(text.p, text.n, mark, strlen(mark));

		controls[batch->rows.v[i] - s->rows->rows.v] =
			works ? CONTROL_WORKS : CONTROL_FAILS;
	}
	return r;
}

/* Makes a scene with an empty working directory. NULL on failure, with the reason in @err. */
static const char *empty_scene(struct suite *s, const char *name, const char **ret_work,
			       struct writ_err *err)
{
	const char *scene = testbed_scene(s, name, err);

	*ret_work = scene ? arena_fmt(s->arena, "%s/work", scene) : NULL;
	if (!scene || (*ret_work && testbed_mkdir(s, *ret_work, 0755)))
		return scene;
	(void)!writ_fail(err, WRIT_E_SYS, errno, "%s/work", scene);
	return NULL;
}

int scene_try(struct suite *s, struct writ_err *err)
{
	struct argv a = { .s = s };
	struct start how = { .out = -1, .err = -1 };
	const char *scene = empty_scene(s, "t", &how.cwd, err);
	int code, r;

	if (!scene)
		return err->code;
	r = push_sandbox(&a, scene, SV(""), err);
	push_all(&a, (const char *const[]){ s->program, "list", NULL });
	how.argv = words(&a);
	if (r == 0)
		r = how.argv ? conform_child_call(s, &how, ROW_MS, false, NULL, NULL, &code, err)
			     : writ_nomem(err);
	testbed_clear(s, scene);
	return r;
}

/* --- Declared levels --- */

static int ask_explain(struct suite *s, struct sv policy, struct conform_levels *ret,
		       struct writ_err *err)
{
	scoped_buf text = BUF_INIT(OUTPUT_BYTES);
	struct argv a = { .s = s };
	struct start how = { .out = -1, .err = -1 };
	struct writ_err unread = { 0 };
	const char *file, *scene = empty_scene(s, "e", &how.cwd, err);
	int code, r;

	if (!scene)
		return err->code;
	r = testbed_policy(s, scene, policy, &file, err);
	if (r < 0)
		return r;
	push_writ(&a, "explain", file);
	push(&a, "--json");
	how.argv = words(&a);
	r = how.argv ? conform_child_call(s, &how, EXPLAIN_MS, false, &text, NULL, &code, err)
		     : writ_nomem(err);
	/* If `writ explain` prints no plan, the sandbox declares no weakness. */
	if (r == 0 && conform_read_explain(buf_view(&text), s->arena, ret, &unread) < 0)
		*ret = (struct conform_levels){ .tier = SV("") };
	testbed_clear(s, scene);
	return r;
}

int scene_levels(struct suite *s, struct sv policy, const struct conform_levels **ret,
		 struct writ_err *err)
{
	struct declaration d = { .policy = policy };

	if (s->opt->under) {
		*ret = &s->opt->declared;
		return 0;
	}
	for (size_t i = 0; i < s->declarations.n; i++)
		if (sv_eq(s->declarations.v[i].policy, policy)) {
			*ret = &s->declarations.v[i].levels;
			return 0;
		}
	if (ask_explain(s, policy, &d.levels, err) < 0)
		return err->code;
	if (!vec_add(s->arena, &s->declarations, d))
		return writ_nomem(err);
	*ret = &s->declarations.v[s->declarations.n - 1].levels;
	return 0;
}
