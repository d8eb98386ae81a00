/* Running, sessions, events, grants, pools. */
#include <poll.h>
#include <signal.h>

#include "scene.h"

static struct scene_output out;

static void test_output(struct scene *s, struct writ_policy *p)
{
	struct writ_exit how;
	struct writ_error err = { 0 };
	char path[SCENE_PATH + 32], script[1024], *text;

	ok(scene_sh(p, "echo out; echo err >&2; pwd; exit 7", &out, &how, &err) == 7,
	   "the exit status: %s", err.text);
	snprintf(script, sizeof(script), "out\n%s\n", s->work);
	is_str(out.text[1], script, "its output");
	is_str(out.text[2], "err\n", "and its other output");
	ok(strlen(how.session) == 8 && !how.ended_by[0] && !how.why[0],
	   "an id, and nothing else to say");

	ok(scene_sh(p, "kill -9 $$", &out, &how, &err) == 137, "a signal");
	snprintf(script, sizeof(script), "echo new > made; cat %s/secret", s->other);
	ok(scene_sh(p, script, &out, &how, &err) == 1, "outside cannot be read");
	ok(out.n[1] == 0, "not a byte of it");
	snprintf(path, sizeof(path), "%s/made", s->work);
	text = scene_read(path);
	ok(text && strcmp(text, "new\n") == 0, "inside can be written");
	free(text);
	ok(scene_sh(p, "head -c 3000000 /dev/zero | wc -c; exec sleep 0", &out, &how, &err) == 0 &&
		   strstr(out.text[1], "3000000"),
	   "much is no problem");
}

static void test_input(struct writ_policy *p)
{
	static char big[3 << 20];
	const char *const cat[] = { "wc", "-c", NULL };
	const char *const nobody[] = { "true", NULL };
	struct writ_run_options opt = WRIT_INIT(struct writ_run_options);
	struct writ_exit how = WRIT_INIT(struct writ_exit);
	struct writ_error err = { 0 };

	memset(&out, 0, sizeof(out));
	opt.argv = cat;
	opt.input = big;
	opt.input_n = sizeof(big);
	opt.output = scene_collect;
	opt.output_ctx = &out;
	ok(writ_run(p, &opt, &how, &err) == 0 && how.code == 0 && strstr(out.text[1], "3145728"),
	   "input arrives");
	opt.argv = nobody;
	ok(writ_run(p, &opt, &how, &err) == 0 && how.code == 0,
	   "input that nobody reads hurts nobody");
}

static void test_descriptors(struct scene *s, struct writ_policy *p)
{
	const char *const argv[] = { "sh", "-c", "read x; echo \"got $x\"; echo e >&2", NULL };
	struct writ_run_options opt = WRIT_INIT(struct writ_run_options);
	struct writ_exit how = WRIT_INIT(struct writ_exit);
	struct writ_error err = { 0 };
	char path[SCENE_PATH + 32], text[64] = "";
	int pipes[2], fds[3];

	snprintf(path, sizeof(path), "%s/secret", s->other);
	fds[0] = open(path, O_RDONLY | O_CLOEXEC);
	if (pipe2(pipes, O_CLOEXEC) < 0)
		exit(1);
	fds[1] = pipes[1];
	fds[2] = -1;
	opt.argv = argv;
	opt.stdio = fds;
	ok(writ_run(p, &opt, &how, &err) == 0 && how.code == 0, "with descriptors: %s", err.text);
	close(pipes[1]);
	ok(read(pipes[0], text, sizeof(text) - 1) > 0, "something came");
	is_str(text, "got secret\n", "what was handed over can be used");
	close(pipes[0]);
	close(fds[0]);
	opt.output = scene_collect;
	ok(writ_run(p, &opt, &how, &err) == WRIT_ERROR_ARGUMENT,
	   "descriptors and a callback is too much");
}

static void test_environment(struct writ_policy *p)
{
	const char *const argv[] = { "sh", "-c", "echo \"$TOKEN/$LANG\"", NULL };
	const char *const env[] = { "TOKEN=secret", "LANG=C.UTF-8", "PATH=/usr/bin:/bin", NULL };
	struct writ_run_options opt = WRIT_INIT(struct writ_run_options);
	struct writ_exit how = WRIT_INIT(struct writ_exit);

	memset(&out, 0, sizeof(out));
	opt.argv = argv;
	opt.environ = env;
	opt.output = scene_collect;
	opt.output_ctx = &out;
	ok(writ_run(p, &opt, &how, NULL) == 0, "with an environment");
	is_str(out.text[1], "/C.UTF-8\n", "the policy chooses from it");
}

static void test_failures(struct scene *s, struct writ_policy *p)
{
	const char *const argv[] = { "no-such-program", NULL };
	struct writ_run_options opt = WRIT_INIT(struct writ_run_options);
	struct writ_exit how = WRIT_INIT(struct writ_exit);
	struct writ_error err = { 0 };
	struct writ_policy *bad;
	char path[SCENE_PATH + 32];

	opt.argv = argv;
	ok(writ_run(p, &opt, &how, &err) == 0 && how.code == 127 && how.why[0], "no such program");
	printf("# %s\n", how.why);
	opt.cwd = "/no/such/place";
	ok(writ_run(p, &opt, &how, &err) == WRIT_ERROR_SYSTEM && err.sys == ENOENT,
	   "no such directory: %s", err.text);
	opt.argv = NULL;
	ok(writ_run(p, &opt, &how, &err) == WRIT_ERROR_ARGUMENT, "no command");
	bad = scene_policy(s, "isolation >= vm");
	ok(bad && scene_sh(bad, "true", &out, &how, &err) == WRIT_ERROR_UNENFORCEABLE,
	   "what does not hold here does not start: %s", err.text);
	writ_policy_free(bad);

	/* Between load and run, a name comes to mean something else. */
	snprintf(path, sizeof(path), "%s/link", s->top);
	(void)!symlink(s->work, path);
	bad = scene_policy(s, "allow read $LINK");
	ok(bad == NULL, "a variable nobody gave is an error");
}

static void test_changed(struct scene *s)
{
	struct writ_policy_options opt = WRIT_INIT(struct writ_policy_options);
	char text[512], path[SCENE_PATH + 32];
	struct writ_policy *p = NULL;
	struct writ_exit how;
	struct writ_error err = { 0 };

	snprintf(path, sizeof(path), "%s/name", s->top);
	(void)!symlink(s->work, path);
	snprintf(text, sizeof(text), "version 1\nallow read %s\n", path);
	opt.text = text;
	opt.workspace = opt.cwd = s->work;
	ok(writ_policy_load(s->w, &opt, &p, NULL, &err) == 0 &&
		   scene_sh(p, "true", &out, &how, &err) == 0,
	   "a rule by a link: %s", err.text);
	unlink(path);
	(void)!symlink(s->other, path);
	ok(scene_sh(p, "true", &out, &how, &err) == WRIT_ERROR_DENIED,
	   "the link leads elsewhere: that is not the policy that was checked: %s", err.text);
	writ_policy_free(p);
}

/* --- events --- */

/* Shown to every session, writable to none. */
static const char denied_path[] = "/usr/share/writ-lib-test";

static void test_events(struct scene *s, struct writ_policy *p)
{
	struct writ_event e = WRIT_INIT(struct writ_event);
	struct writ_events *events = NULL;
	struct writ_error err = { 0 };
	struct writ_exit how;
	char script[1024];
	int first = -1, denied = 0, exec = 0, last = -1, r;

	snprintf(script, sizeof(script), "echo x > %s; cat /dev/null; true", denied_path);
	ok(scene_sh(p, script, &out, &how, &err) == 0, "a command that is denied something");
	ok(access(denied_path, F_OK) < 0, "it was not done");
	ok(how.denials == 1, "it is counted: %u", how.denials);
	ok(writ_events_open(s->w, how.session, &events, &err) == 0, "its record is there: %s",
	   err.text);
	while ((r = writ_events_next(events, 0, &e, &err)) > 0) {
		char want[SCENE_PATH + 32];

		snprintf(want, sizeof(want), "\"%s\"", denied_path);
		if (first < 0)
			first = e.kind;
		denied += e.kind == WRIT_EVENT_DENIED && strstr(e.json, want) != NULL;
		exec += e.kind == WRIT_EVENT_EXEC;
		last = e.kind;
		if (e.json_n != strlen(e.json) || e.json[0] != '{')
			ok(false, "an event is one object: %s", e.json);
	}
	ok(r == 0 && first == WRIT_EVENT_START && last == WRIT_EVENT_END, "from start to end");
	ok(denied == 1, "with the denial");
	ok(exec >= 2, "and what was run");
	ok(writ_events_next(events, -1, &e, &err) == 0,
	   "after the end there is nothing to wait for");
	writ_events_close(events);
	ok(writ_events_open(s->w, "../../../x", &events, &err) == WRIT_ERROR_ARGUMENT,
	   "an id is an id");
	ok(writ_events_open(s->w, "zzzzzzzz", &events, &err) == WRIT_ERROR_SYSTEM,
	   "no such session");
}

/* --- sessions --- */

static int in_session(struct scene *s, const char *id, const char *script, struct writ_error *err)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct writ_run_options opt = WRIT_INIT(struct writ_run_options);
	struct writ_exit how = WRIT_INIT(struct writ_exit);
	int r;

	memset(&out, 0, sizeof(out));
	opt.argv = argv;
	opt.output = scene_collect;
	opt.output_ctx = &out;
	r = writ_session_exec(s->w, id, &opt, &how, err);
	return r < 0 ? r : how.code;
}

static void test_session(struct scene *s, struct writ_policy *p)
{
	const char *const nothing[] = { NULL };
	struct writ_run_options opt = WRIT_INIT(struct writ_run_options);
	struct writ_session *session = NULL;
	struct writ_exit how = WRIT_INIT(struct writ_exit);
	struct writ_error err = { 0 };
	char script[1024];
	uint32_t grant = 0;

	opt.argv = nothing;
	ok(writ_session_start(p, &opt, &session, &err) == 0, "a session without a command: %s",
	   err.text);
	if (!session)
		return;
	ok(strlen(writ_session_id(session)) == 8, "it has an id");
	ok(in_session(s, writ_session_id(session), "echo one; exit 4", &err) == 4,
	   "one command: %s", err.text);
	is_str(out.text[1], "one\n", "and what it says");
	ok(in_session(s, writ_session_id(session), "echo two > /tmp/kept", &err) == 0 &&
		   in_session(s, writ_session_id(session), "cat /tmp/kept", &err) == 0,
	   "the next finds what the last one left");
	is_str(out.text[1], "two\n", "as it was");
	ok(writ_session_wait(session, 0, &how, &err) == 0, "it still runs");

	snprintf(script, sizeof(script), "cat %s/secret", s->other);
	ok(in_session(s, writ_session_id(session), script, &err) == 1, "outside cannot be read");
	snprintf(script, sizeof(script), "read %s", s->other);
	ok(writ_session_allow(s->w, writ_session_id(session), script, &grant, &err) == 0 &&
		   grant > 0,
	   "a live grant: %s", err.text);
	snprintf(script, sizeof(script), "cat %s/secret; echo > %s/x", s->other, s->other);
	ok(in_session(s, writ_session_id(session), script, &err) != 0 &&
		   strstr(out.text[1], "secret"),
	   "now it can be read, and not written");
	ok(writ_session_revoke(s->w, writ_session_id(session), grant, &err) == 0, "taken back: %s",
	   err.text);
	snprintf(script, sizeof(script), "cat %s/secret", s->other);
	ok(in_session(s, writ_session_id(session), script, &err) == 1,
	   "and it cannot be read any more");
	ok(writ_session_revoke(s->w, writ_session_id(session), 99, &err) == WRIT_ERROR_DENIED,
	   "there is no grant 99");
	ok(writ_session_allow(s->w, writ_session_id(session), "connect /x", NULL, &err) ==
		   WRIT_ERROR_SYNTAX,
	   "files only");
	ok(writ_session_stop(s->w, writ_session_id(session), &err) == 0, "stopped");
	ok(writ_session_wait(session, 5000, &how, &err) == 1 && how.code == 143 && how.ended_by[0],
	   "and it ends");
	ok(in_session(s, writ_session_id(session), "true", &err) < 0, "it is gone: %s", err.text);
	writ_session_free(session);
}

static void test_background(struct scene *s, struct writ_policy *p)
{
	const char *const argv[] = { "sh", "-c", "echo begin; sleep 30", NULL };
	struct writ_run_options opt = WRIT_INIT(struct writ_run_options);
	struct writ_event e = WRIT_INIT(struct writ_event);
	struct writ_events *events = NULL;
	struct writ_session *session = NULL;
	struct writ_exit how = WRIT_INIT(struct writ_exit);
	struct writ_error err = { 0 };
	int pipes[2], fds[3] = { -1, -1, -1 }, end = 0;
	char text[16] = "";
	double began;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		exit(1);
	fds[1] = pipes[1];
	opt.argv = argv;
	opt.stdio = fds;
	ok(writ_session_start(p, &opt, &session, &err) == 0, "a session with a command: %s",
	   err.text);
	if (!session)
		return;
	close(pipes[1]);
	ok(read(pipes[0], text, 15) == 6, "whose output comes while it runs");
	ok(writ_events_open(s->w, writ_session_id(session), &events, &err) == 0,
	   "and whose record, too");
	while (writ_events_next(events, 200, &e, &err) > 0)
		end += e.kind == WRIT_EVENT_END;
	ok(end == 0, "it has not ended");
	ok(writ_session_wait(session, 50, &how, &err) == 0, "waiting in vain");
	began = scene_ms();
	writ_session_free(session);
	ok(scene_ms() - began < 6000, "freed, it ends in %.0f ms", scene_ms() - began);
	while (writ_events_next(events, 200, &e, &err) > 0)
		end += e.kind == WRIT_EVENT_END;
	ok(end == 1, "and the record says so");
	writ_events_close(events);
	close(pipes[0]);
}

/* A program that dies takes its sessions with it. */
static void test_orphan(struct scene *s, struct writ_policy *p)
{
	const char *const argv[] = { "sleep", "60", NULL };
	struct writ_run_options opt = WRIT_INIT(struct writ_run_options);
	struct writ_error err = { 0 };
	struct writ_session *session = NULL;
	char id[16] = "";
	int pipes[2];
	double began;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		exit(1);
	opt.argv = argv;
	pid = fork();
	if (pid == 0) {
		if (writ_session_start(p, &opt, &session, &err) == 0)
			(void)!write(pipes[1], writ_session_id(session), 8);
		(void)raise(SIGKILL);
	}
	close(pipes[1]);
	ok(read(pipes[0], id, 8) == 8, "a session of a program that is then killed");
	waitpid(pid, NULL, 0);
	began = scene_ms();
	while (scene_ms() - began < 8000 && in_session(s, id, "true", &err) == 0)
		usleep(50000);
	ok(scene_ms() - began < 8000, "ends within %.0f ms", scene_ms() - began);
	close(pipes[0]);
}

/* The same in the host's namespaces: Landlock, filters and the mediator. */
static void test_tier_b(struct scene *s)
{
	struct writ_policy *p;
	struct writ_exit how;
	struct writ_error err = { 0 };
	char script[1024], *json = NULL;

	s->tier = WRIT_TIER_B;
	p = scene_policy(s, "allow write .");
	s->tier = WRIT_TIER_BEST;
	ok(writ_guarantees(p, &json, &err) == 0 && strstr(json, "\"tier\":\"B\""),
	   "tier B is planned");
	writ_text_free(json);
	snprintf(script, sizeof(script), "echo b > made-b; cat file; cat %s/secret", s->other);
	ok(scene_sh(p, script, &out, &how, &err) == 1, "a run in tier B: %s", err.text);
	is_str(out.text[1], "inside\n", "inside is open, outside is closed");
	writ_policy_free(p);
}

/* --- a pool --- */

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

enum { ROUNDS = 15 };

/* Time until a session with a command runs; negative if it does not. */
static double start_time(struct writ_policy *p, struct writ_pool *pool)
{
	const char *const argv[] = { "true", NULL };
	struct writ_run_options opt = WRIT_INIT(struct writ_run_options);
	struct writ_session *session = NULL;
	struct writ_exit how = WRIT_INIT(struct writ_exit);
	double began, ms;

	opt.argv = argv;
	opt.pool = pool;
	if (pool && writ_pool_wait(pool, 2, 20000, NULL) != 2)
		return -1;
	began = scene_ms();
	if (writ_session_start(p, &opt, &session, NULL) < 0)
		return -1;
	ms = scene_ms() - began;
	if (writ_session_wait(session, 20000, &how, NULL) != 1 || how.code != 0)
		ms = -1;
	writ_session_free(session);
	return ms;
}

static void test_pool(struct scene *s, struct writ_policy *p)
{
	struct writ_policy *other = scene_policy(s, "allow read .");
	struct writ_pool *pool = NULL;
	struct writ_error err = { 0 };
	struct writ_run_options opt = WRIT_INIT(struct writ_run_options);
	struct writ_session *session = NULL;
	const char *const argv[] = { "true", NULL };
	double cold[ROUNDS], warm[ROUNDS];

	ok(writ_pool_new(p, 2, &pool, &err) == 0, "a pool: %s", err.text);
	ok(writ_pool_wait(pool, 2, 5000, &err) == 2, "gets ready: %s", err.text);
	for (int i = 0; i < ROUNDS; i++) {
		cold[i] = start_time(p, NULL);
		warm[i] = start_time(p, pool);
	}
	qsort(cold, ROUNDS, sizeof(cold[0]), compare);
	qsort(warm, ROUNDS, sizeof(warm[0]), compare);
	ok(cold[0] > 0 && warm[0] > 0, "sessions from it and without it");
	printf("# start: %.2f ms without a pool, %.2f ms with one, ratio %.2f (best %.2f, %.2f)\n",
	       cold[ROUNDS / 2], warm[ROUNDS / 2], cold[ROUNDS / 2] / warm[ROUNDS / 2], cold[0],
	       warm[0]);
	ok(warm[ROUNDS / 2] < cold[ROUNDS / 2], "which is faster");
	opt.argv = argv;
	opt.pool = pool;
	ok(writ_session_start(other, &opt, &session, &err) == WRIT_ERROR_DENIED,
	   "a pool serves its own policy: %s", err.text);
	writ_pool_free(pool);
	ok(writ_pool_new(p, 0, &pool, &err) == WRIT_ERROR_ARGUMENT, "an empty pool is none");
	writ_policy_free(other);
}

int main(void)
{
	struct scene s = { 0 };
	struct writ_policy *p;

	scene_make(&s);
	p = scene_policy(&s, "allow write .");
	test_output(&s, p);
	test_input(p);
	test_descriptors(&s, p);
	test_environment(p);
	test_failures(&s, p);
	test_changed(&s);
	test_events(&s, p);
	test_session(&s, p);
	test_background(&s, p);
	test_orphan(&s, p);
	test_tier_b(&s);
	test_pool(&s, p);
	ok(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "no child is left behind");
	writ_policy_free(p);
	scene_clear(&s);
	return tap_done();
}
