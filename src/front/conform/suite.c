#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "conform/conform_priv.h"

#include "base/banned.h"

enum { JOBS_MAX = 16, BARE_BYTES = 16 << 20, LIST_MS = 60000 };

void conform_progress_show(const struct suite *s)
{
	char line[160];
	int n;

	if (s->opt->progress < 0)
		return;
	n = snprintf(line, sizeof(line), "\r\033[K%s: %zu of %zu", s->phase, s->done,
		     s->rows->rows.n);
	if (n > 0)
		(void)!write(s->opt->progress, line, (size_t)n);
}

static void progress_phase(struct suite *s, const char *phase)
{
	s->phase = phase;
	s->done = 0;
	conform_progress_show(s);
}

static void progress_clear(const struct suite *s)
{
	if (s->opt->progress >= 0)
		(void)!write(s->opt->progress, "\r\033[K", 4);
}

/* --- Scenes in parallel --- */

/* Result that a worker process sends. Not larger than PIPE_BUF, so that one write() is atomic. */
struct message {
	size_t row;
	struct conform_trial trial;
	struct writ_err err; /* code 0: the worker ran the scene */
	char errors[STDERR_TAIL + 1];
};
_Static_assert(sizeof(struct message) <= PIPE_BUF, "one write");

struct pool {
	pid_t pids[JOBS_MAX];
	unsigned running;
	int pipe[2];
	struct writ_err err; /* the first failure of a worker */
};

static bool batch_add(struct suite *s, struct batch *b, const struct conform_row *row)
{
	return vec_add(s->arena, &b->rows, row);
}

static void worker_main(struct suite *s, const struct conform_row *row, bool bare,
			struct conform_trial *trials, int to)
{
	struct message m = { .row = (size_t)(row - s->rows->rows.v) };
	struct batch one = { 0 };

	/* If the parent dies, SIGTERM lets this worker remove its scene and exit. */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (batch_add(s, &one, row))
		(void)!scene_run(s, &one, bare, trials, &m.err);
	else
		(void)!writ_nomem(&m.err);
	m.trial = trials[m.row];
	memcpy(m.errors, s->errors, sizeof(m.errors));
	if (write(to, &m, sizeof(m)) != sizeof(m))
		_exit(1);
	_exit(0);
}

static void pool_add(struct pool *p, struct suite *s, const struct conform_row *row, bool bare,
		     struct conform_trial *trials)
{
	const pid_t pid = fork();

	if (pid == 0)
		worker_main(s, row, bare, trials, p->pipe[1]);
	if (pid < 0) {
		(void)!writ_fail(&p->err, WRIT_E_SYS, errno, "fork");
		return;
	}
	p->pids[p->running++] = pid;
}

static void pool_reap(struct pool *p)
{
	for (unsigned i = 0; i < p->running;) {
		int status = 0;

		if (waitpid(p->pids[i], &status, WNOHANG) != p->pids[i]) {
			i++;
			continue;
		}
		if (status && p->err.code == 0)
			(void)!writ_fail(&p->err, WRIT_E_SYS, 0, "a scene ended with status %d",
					 status);
		p->pids[i] = p->pids[--p->running];
	}
}

static void pool_receive(struct pool *p, struct suite *s, struct conform_trial *trials)
{
	struct message m;

	while (read(p->pipe[0], &m, sizeof(m)) == sizeof(m)) {
		if (m.row < s->rows->rows.n)
			trials[m.row] = m.trial;
		if (m.err.code && p->err.code == 0)
			p->err = m.err;
		if (!s->errors[0])
			memcpy(s->errors, m.errors, sizeof(m.errors));
		s->done++;
		conform_progress_show(s);
	}
}

static void pool_stop(const struct pool *p)
{
	for (unsigned i = 0; i < p->running; i++)
		(void)kill(p->pids[i], SIGTERM);
}

/*
 * Runs each row in a separate worker process, at most @jobs at once. After a failure or a stop
 * request, starts no more workers, sends SIGTERM to running workers, and reaps all of them.
 */
static int run_pool(struct suite *s, const struct batch *own, bool bare,
		    struct conform_trial *trials, struct writ_err *err)
{
	const unsigned jobs = s->opt->jobs < JOBS_MAX ? s->opt->jobs : JOBS_MAX;
	struct pool p = { 0 };
	bool stopped = false;

	if (pipe2(p.pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "pipe");
	for (size_t next = 0; next < own->rows.n || p.running;) {
		const bool over = s->stopped || p.err.code;

		if (over)
			next = own->rows.n;
		if (over && !stopped)
			pool_stop(&p);
		stopped |= over;
		while (!p.err.code && next < own->rows.n && p.running < jobs)
			pool_add(&p, s, own->rows.v[next++], bare, trials);
		if (p.running)
			conform_signals_wait(s, 200);
		pool_reap(&p);
		pool_receive(&p, s, trials);
	}
	close(p.pipe[0]);
	close(p.pipe[1]);
	if (p.err.code)
		*err = p.err;
	return p.err.code;
}

/* --- Run every row: most rows in one shared sandbox, each of the others in its own --- */

struct schedule {
	struct batch together, own, serial;
};

static void set_trial(struct conform_trial *t, enum conform_seen seen, const char *why)
{
	*t = (struct conform_trial){ .seen = seen };
	(void)snprintf(t->why, sizeof(t->why), "%s", why);
}

/*
 * Distributes the rows: rows that may share a sandbox form one batch; each other row gets its own
 * sandbox, in parallel or one at a time. A row that lacks root, or that must not run without a
 * sandbox, gets its trial at once.
 */
static int make_schedule(struct suite *s, bool bare, struct conform_trial *trials,
			 struct schedule *o, struct writ_err *err)
{
	const bool nothing = bare || (s->opt->under && s->opt->words.words.n == 0);
	const bool raise = s->drop && s->uid != 0;

	for (size_t i = 0; i < s->rows->rows.n; i++) {
		const struct conform_row *row = &s->rows->rows.v[i];
		struct batch *b = row->flags & ROW_SERIAL ? &o->serial : &o->own;

		if (row->flags & ROW_ROOT_SETUP && !raise) {
			set_trial(&trials[i], SEEN_HELD, "needs root to prepare and a user to run");
			continue;
		}
		if (row->flags & ROW_NEVER_BARE && nothing) {
			set_trial(&trials[i], SEEN_SKIPPED, "not run without a sandbox");
			continue;
		}
		if (!(row->flags & ROW_OWN) && row->policy.n == 0)
			b = &o->together;
		if (!batch_add(s, b, row))
			return writ_nomem(err);
	}
	return 0;
}

static int run_all(struct suite *s, bool bare, struct conform_trial *trials, struct writ_err *err)
{
	struct schedule o = { 0 };
	int r = make_schedule(s, bare, trials, &o, err);

	progress_phase(s, bare ? "without a sandbox" : "inside");
	if (r == 0 && o.together.rows.n)
		r = scene_run(s, &o.together, bare, trials, err);
	s->done += s->rows->rows.n - o.own.rows.n - o.serial.rows.n;
	if (r == 0 && !s->stopped)
		r = run_pool(s, &o.own, bare, trials, err);
	for (size_t i = 0; r == 0 && !s->stopped && i < o.serial.rows.n; i++) {
		struct batch one = { 0 };

		conform_progress_show(s);
		r = batch_add(s, &one, o.serial.rows.v[i]) ? scene_run(s, &one, bare, trials, err)
							   : writ_nomem(err);
		s->done++;
	}
	return r;
}

/*
 * Runs all attempts without a sandbox. The results do not depend on the tested sandbox, so a file
 * may keep them for later runs.
 */
static int run_bare(struct suite *s, struct conform_trial *trials, struct writ_err *err)
{
	scoped_buf text = BUF_INIT(BARE_BYTES);
	scoped_buf kept = BUF_INIT(BARE_BYTES);
	int r = 0;

	if (s->opt->bare && fd_read_file(s->opt->bare, &text, err) == 0) {
		r = conform_read_bare(buf_view(&text), s->rows, trials, err);
		if (r)
			return r == 1 ? 0
				      : writ_fail(err, WRIT_E_SYNTAX, 0,
						  "%.70s keeps no trials of ours", s->opt->bare);
	} else if (s->opt->bare && err->sys != ENOENT) {
		return err->code;
	}
	r = run_all(s, true, trials, err);
	if (r < 0 || s->stopped || !s->opt->bare)
		return r;
	conform_put_bare(&kept, s->rows, trials);
	r = buf_check(&kept, err);
	return r < 0 ? r : fd_replace_file(s->opt->bare, buf_view(&kept), 0644, err);
}

static int run_controls(struct suite *s, enum conform_control *controls, struct writ_err *err)
{
	struct batch with = { 0 };

	for (size_t i = 0; i < s->rows->rows.n; i++)
		if (s->rows->rows.v[i].control && !batch_add(s, &with, &s->rows->rows.v[i]))
			return writ_nomem(err);
	if (with.rows.n == 0 || !s->opt->controls)
		return 0;
	progress_phase(s, "controls");
	return scene_controls(s, &with, controls, err);
}

/* --- the report --- */

struct trials {
	struct conform_trial *bare, *inside;
	enum conform_control *controls;
};

static const char *name_tested(struct suite *s)
{
	const struct conform_words *w = &s->opt->words;
	scoped_buf b = BUF_INIT(1 << 16);

	if (!s->opt->under)
		return "writ run";
	for (size_t i = 0; i < w->words.n; i++)
		buf_fmt(&b, "%s%s", i ? " " : "", w->words.v[i]);
	return b.failed ? "" : arena_str(s->arena, b.n ? buf_view(&b) : SV("nothing"));
}

static int fill_report(struct suite *s, const struct trials *t, struct conform_report *r,
		       struct writ_err *err)
{
	const struct conform_levels *l;

	for (size_t i = 0; i < s->rows->rows.n; i++) {
		const struct conform_row *row = &s->rows->rows.v[i];
		struct conform_result *slot = vec_push(s->arena, &r->results);

		if (!slot)
			return writ_nomem(err);
		if (scene_levels(s, row->policy, &l, err) < 0)
			return err->code;
		*slot = (struct conform_result){
			.row = row,
			.control = t->controls[i],
			.bare = t->bare[i],
			.inside = t->inside[i],
			.verdict = conform_judge(
				&(struct conform_case){ .flags = row->flags,
							.bare = t->bare[i].seen,
							.inside = t->inside[i].seen,
							.control = t->controls[i],
							.declared = conform_declared(l, row),
							.refused = l->refused }),
		};
	}
	if (scene_levels(s, SV(""), &l, err) < 0)
		return err->code;
	r->tested = name_tested(s);
	r->tier = l->tier;
	r->user = s->user;
	memcpy(r->said, s->errors, sizeof(s->errors));
	return 0;
}

static int run(struct suite *s, struct conform_report *ret, struct writ_err *err)
{
	const size_t n = s->rows->rows.n;
	const struct trials t = { arena_array(s->arena, struct conform_trial, n + 1),
				  arena_array(s->arena, struct conform_trial, n + 1),
				  arena_array(s->arena, enum conform_control, n + 1) };
	int r = testbed_make(s, err);

	if (r < 0)
		return r;
	if (!t.bare || !t.inside || !t.controls)
		return writ_nomem(err);
	if ((r = scene_try(s, err)) < 0 || (!s->stopped && (r = run_bare(s, t.bare, err)) < 0) ||
	    (!s->stopped && (r = run_all(s, false, t.inside, err)) < 0) ||
	    (!s->stopped && (r = run_controls(s, t.controls, err)) < 0))
		return r;
	return !s->stopped ? fill_report(s, &t, ret, err) : 0;
}

int conform_run(struct arena *a, const struct conform_options *opt, const struct conform_rows *rows,
		struct conform_report *ret, struct writ_err *err)
{
	struct suite s = { .arena = a, .opt = opt, .rows = rows };
	struct conform_report r = { .tested = "", .tier = SV(""), .user = SV("") };
	sigset_t old;
	int code;

	conform_signals_block(&s, &old);
	code = run(&s, &r, err);
	progress_clear(&s);
	testbed_remove(&s);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	r.signal = s.stopped;
	if (code < 0 && !s.stopped)
		return code;
	*ret = r;
	return 0;
}

int conform_list(struct arena *a, const char *escape, struct conform_rows *ret,
		 struct writ_err *err)
{
	char *none[] = { NULL };
	const struct conform_options opt = { .progress = -1 };
	struct suite s = { .arena = a, .opt = &opt, .user = SV("this user"), .env = none };
	const char *const argv[] = { escape, "list", "--json", NULL };
	const struct start how = { .argv = argv };
	scoped_buf text = BUF_INIT(OUTPUT_BYTES);
	sigset_t old;
	int code = 0, r;

	conform_signals_block(&s, &old);
	r = conform_child_call(&s, &how, LIST_MS, true, &text, NULL, &code, err);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	if (r == 0 && code)
		r = writ_fail(err, WRIT_E_SYS, 0, "%.80s list ended with %d", escape, code);
	return r < 0 ? r : conform_read_rows(buf_view(&text), a, ret, err);
}
