#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "conform/conform_priv.h"

#include "base/banned.h"

enum {
	SETUP_MS = 120000,
	JUDGE_MS = 300000,
	CALL_MS = 60000,
	EXPLAIN_MS = 30000,
	ROW_MS = 30000,	  /* a row that has a sandbox for itself */
	TIMED_MS = 4000,  /* a row that is judged whether it has ended or not */
	BEAT_MS = 3000,	  /* until a row that is to lose its supervisor must run */
	DEATH_MS = 1000,  /* what is promised: everything dead within a second */
	BATCH_MS = 60000, /* a batch has this and then some for each row */
	BATCH_ROW_MS = 3000,
};

/* --- words of a command --- */

struct argv {
	VEC(const char *) v;
	struct suite *s;
	bool failed;
};

static void push(struct argv *a, const char *word)
{
	const char **slot = word && !a->failed ? vec_push(a->s->arena, &a->v) : NULL;

	if (slot)
		*slot = word;
	else
		a->failed = true;
}

/* Ends the list; NULL if a word was lost. */
static const char *const *words(struct argv *a)
{
	const char **slot = a->failed ? NULL : vec_push(a->s->arena, &a->v);

	return slot ? a->v.v : NULL;
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

/* {work}, {out} and {dir} in a word of --under. */
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

static void push_tier(struct argv *a)
{
	if (a->s->opt->tier) {
		push(a, "--tier");
		push(a, a->s->opt->tier);
	}
}

/* The sandbox that is tested, in front of what it is to run. */
static int push_sandbox(struct argv *a, const char *scene, struct sv extra, struct writ_err *err)
{
	const struct conform_options *opt = a->s->opt;
	const char *policy;
	int r;

	if (opt->under) {
		for (size_t i = 0; i < opt->words.words.n; i++)
			push(a, fill_in(a->s, opt->words.words.v[i], scene));
		if (opt->words.words.n)
			push(a, "--");
		return 0;
	}
	r = ground_policy(a->s, scene, extra, &policy, err);
	if (r < 0)
		return r;
	push(a, opt->writ);
	push(a, "run");
	push_tier(a);
	push(a, "--policy");
	push(a, policy);
	push(a, "--");
	return 0;
}

static void push_program(struct argv *a, const char *scene, const char *verb, const char *ids)
{
	push(a, arena_fmt(a->s->arena, "%s/work/writ-escape", scene));
	push(a, verb);
	push(a, ids);
	push(a, scene);
}

/* --- before and after --- */

static int set_up(struct suite *s, const char *scene, const struct batch *b, struct writ_err *err)
{
	scoped_buf said = BUF_INIT(1 << 16);
	struct argv a = { .s = s };
	struct start how = { .out = -1, .err = -1 };
	int code = 0, r;

	push(&a, s->program);
	push(&a, "setup");
	push(&a, scene);
	for (size_t i = 0; i < b->rows.n; i++)
		push(&a, b->rows.v[i]->id.p);
	how.argv = words(&a);
	if (!how.argv)
		return writ_nomem(err);
	/* Patient: who was started and not yet written down could not be ended. */
	r = child_call(s, &how, SETUP_MS, true, NULL, &said, &code, err);
	if (r < 0)
		return r;
	return code ? writ_fail(err, WRIT_E_SYS, 0, "the scene could not be made: %.70s",
				said.n ? said.p : "no reason was given")
		    : 0;
}

/* What only root can plant. Where that does not work, the row does not work bare either. */
static int set_up_root(struct suite *s, const char *scene, struct writ_err *err)
{
	const char *const argv[] = { s->program, "setup-root", scene, NULL };
	const struct start how = { .argv = argv, .raised = true };
	int code;

	return child_call(s, &how, CALL_MS, true, NULL, NULL, &code, err);
}

static void take_down(struct suite *s, const char *scene)
{
	const char *const argv[] = { s->program, "teardown", scene, NULL };
	const struct start how = { .argv = argv };
	struct writ_err err = { 0 };
	int code;

	/* Its helpers notice by themselves that we have ended. */
	(void)!child_call(s, &how, CALL_MS, true, NULL, NULL, &code, &err);
	ground_clear(s, scene);
}

static bool any_flag(const struct batch *b, unsigned flag)
{
	for (size_t i = 0; i < b->rows.n; i++)
		if (b->rows.v[i]->flags & flag)
			return true;
	return false;
}

/* --- while it runs --- */

/* Waits until the row's heart beats, then kills the first process of its sandbox. */
static void kill_supervisor(struct suite *s, struct child *c, const char *scene,
			    const struct conform_row *row)
{
	const char *beat = arena_fmt(s->arena, "%s/work/%s/beat", scene, row->id.p);
	const long end = now_ms() + BEAT_MS;

	while (beat && access(beat, F_OK) < 0 && now_ms() < end && !child_wait(s, c, 50, false) &&
	       !s->stopped)
		;
	if (c->pid > 0)
		(void)kill(c->pid, SIGKILL);
	(void)child_wait(s, c, CALL_MS, true);
	for (const long later = now_ms() + DEATH_MS; now_ms() < later && !s->stopped;)
		signals_wait(s, later - now_ms());
}

/* Lines that start with =, one for each attempt that has ended. */
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
	const long end = now_ms() + BATCH_MS + (long)n * BATCH_ROW_MS;
	const size_t before = s->done;
	scoped_fd seen = open(out, O_RDONLY | O_CLOEXEC);
	off_t at = 0;
	char last = '\n';

	while (!child_wait(s, c, 300, false) && !s->stopped && now_ms() < end) {
		const size_t more = s->opt->progress < 0 ? 0 : count_answers(seen, &at, &last);

		s->done += more;
		if (more)
			progress_show(s);
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
		(void)child_wait(s, c, TIMED_MS, false);
		return; /* it is judged while it runs, if it does */
	} else {
		(void)child_wait(s, c, ROW_MS, false);
	}
	child_end(c);
}

/* The end of what a sandbox said on standard error in which something did not run. */
static void keep_errors(struct suite *s, struct sv text)
{
	const struct sv end = sv_skip(text, text.n > STDERR_TAIL ? text.n - STDERR_TAIL : 0);

	for (size_t i = 0; i < end.n; i++)
		s->errors[i] = end.p[i] ? end.p[i] : ' ';
	s->errors[end.n] = 0;
}

/* A row that was not heard of has its reason, if there is one, where the sandbox complains. */
static void explain_silence(struct suite *s, const struct batch *b, struct conform_trial *trials,
			    const char *errors)
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

	r = child_call(s, &how, JUDGE_MS, false, &text, NULL, &code, err);
	if (r == 0)
		conform_read_judged(buf_view(&text), s->rows, trials);
	return r;
}

static int open_output(struct suite *s, const char *scene, const char *tail, const char **ret_name)
{
	const char *name = arena_fmt(s->arena, "%s.%s", scene, tail);
	scoped_fd fd = name ? open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644) : -1;

	*ret_name = name;
	/* Whatever our umask is: the judge reads it as the tested user. */
	return fd >= 0 && fchmod(fd, 0644) == 0 ? take_fd(&fd) : -1;
}

/* --- one scene --- */

static int make_command(struct suite *s, const char *scene, const struct batch *b, bool bare,
			const char *ids, const char *const **ret, struct writ_err *err)
{
	const bool alone = b->rows.n == 1;
	struct argv a = { .s = s };
	int r = 0;

	if (alone && b->rows.v[0]->flags & ROW_LAUNCH) {
		push(&a, s->program);
		push(&a, "launch");
		push(&a, ids);
		push(&a, scene);
		push(&a, "--");
	}
	if (!bare)
		r = push_sandbox(&a, scene, alone ? b->rows.v[0]->policy : SV(""), err);
	if (r < 0)
		return r;
	push_program(&a, scene, "attempt", ids);
	*ret = words(&a);
	return *ret ? 0 : writ_nomem(err);
}

static int play(struct suite *s, const char *scene, const struct batch *b, bool bare,
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
		r = child_start(s, &how, &c, err);
	if (r == 0) {
		wait_for(s, &c, scene, b, out_name);
		if (!s->stopped)
			r = judge(s, scene, ids, out_name, trials, err);
		child_end(&c);
		if (!bare)
			explain_silence(s, b, trials, err_name);
	}
	(void)unlink(out_name);
	(void)unlink(err_name);
	return r;
}

int scene_run(struct suite *s, const struct batch *batch, bool bare, struct conform_trial *trials,
	      struct writ_err *err)
{
	const char *scene = ground_scene(s, "s", err);
	int r;

	if (!scene)
		return err->code;
	r = set_up(s, scene, batch, err);
	if (r == 0 && any_flag(batch, ROW_ROOT_SETUP))
		r = set_up_root(s, scene, err);
	if (r == 0 && !s->stopped)
		r = play(s, scene, batch, bare, trials, err);
	take_down(s, scene);
	return r;
}

/* Does the operation of each row also work inside, where it is allowed? One sandbox for all. */
int scene_controls(struct suite *s, const struct batch *batch, enum conform_control *controls,
		   struct writ_err *err)
{
	scoped_buf text = BUF_INIT(OUTPUT_BYTES);
	const char *scene = ground_scene(s, "c", err);
	/* With a comma behind it even a single one runs under a time limit. */
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
		r = child_call(s, &how, BATCH_MS + (long)batch->rows.n * BATCH_ROW_MS, false, &text,
			       NULL, &code, err);
	take_down(s, scene);
	for (size_t i = 0; r == 0 && i < batch->rows.n; i++) {
		const char *mark = arena_fmt(s->arena, "=%s 0\n", batch->rows.v[i]->id.p);
		const bool works = mark && text.n && memmem(text.p, text.n, mark, strlen(mark));

		controls[batch->rows.v[i] - s->rows->rows.v] =
			works ? CONTROL_WORKS : CONTROL_FAILS;
	}
	return r;
}

int scene_try(struct suite *s, struct writ_err *err)
{
	const char *scene = ground_scene(s, "t", err);
	struct argv a = { .s = s };
	struct start how = { .out = -1, .err = -1 };
	int code, r;

	if (!scene)
		return err->code;
	how.cwd = arena_fmt(s->arena, "%s/work", scene);
	if (!how.cwd || !ground_folder(s, how.cwd, 0755))
		return writ_fail(err, WRIT_E_SYS, errno, "%s/work", scene);
	r = push_sandbox(&a, scene, SV(""), err);
	push(&a, s->program);
	push(&a, "list");
	how.argv = words(&a);
	if (r == 0)
		r = how.argv ? child_call(s, &how, ROW_MS, false, NULL, NULL, &code, err)
			     : writ_nomem(err);
	ground_clear(s, scene);
	return r;
}

/* --- what it declares --- */

static int ask(struct suite *s, struct sv policy, struct conform_levels *ret, struct writ_err *err)
{
	scoped_buf text = BUF_INIT(OUTPUT_BYTES);
	const char *scene = ground_scene(s, "e", err);
	struct argv a = { .s = s };
	struct start how = { .out = -1, .err = -1 };
	struct writ_err unread = { 0 };
	const char *file;
	int code, r;

	if (!scene)
		return err->code;
	how.cwd = arena_fmt(s->arena, "%s/work", scene);
	if (!how.cwd || !ground_folder(s, how.cwd, 0755))
		return writ_fail(err, WRIT_E_SYS, errno, "%s/work", scene);
	r = ground_policy(s, scene, policy, &file, err);
	if (r < 0)
		return r;
	push(&a, s->opt->writ);
	push(&a, "explain");
	push(&a, "--json");
	push_tier(&a);
	push(&a, "--policy");
	push(&a, file);
	how.argv = words(&a);
	r = how.argv ? child_call(s, &how, EXPLAIN_MS, false, &text, NULL, &code, err)
		     : writ_nomem(err);
	/* Nothing said is nothing declared. */
	if (r == 0 && conform_read_explain(buf_view(&text), s->arena, ret, &unread) < 0)
		*ret = (struct conform_levels){ .tier = SV("") };
	ground_clear(s, scene);
	return r;
}

int scene_levels(struct suite *s, struct sv policy, const struct conform_levels **ret,
		 struct writ_err *err)
{
	struct conform_levels levels;
	struct said *slot;
	int r;

	if (s->opt->under) {
		*ret = &s->opt->declared;
		return 0;
	}
	for (size_t i = 0; i < s->said.n; i++)
		if (sv_eq(s->said.v[i].policy, policy)) {
			*ret = &s->said.v[i].levels;
			return 0;
		}
	r = ask(s, policy, &levels, err);
	if (r < 0)
		return r;
	slot = vec_push(s->arena, &s->said);
	if (!slot)
		return writ_nomem(err);
	*slot = (struct said){ policy, levels };
	*ret = &slot->levels;
	return 0;
}
