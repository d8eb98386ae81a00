/* Eight threads at once: each with its own policy and sessions, one handle for all. */
#include <pthread.h>

#include "scene.h"

enum { THREADS = 8, ROUNDS = 4 };

static struct scene scene;

struct worker {
	pthread_t thread;
	int number, failures;
	char why[256];
	struct writ_pool *pool; /* of all */
	struct writ_policy *shared;
};

static void fail(struct worker *w, const char *what, const char *text)
{
	w->failures++;
	snprintf(w->why, sizeof(w->why), "%s: %.200s", what, text);
}

static void one_round(struct worker *w, struct writ_policy *p, struct writ_pool *pool, int round)
{
	char script[128], want[64];
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct scene_output *out = calloc(1, sizeof(*out));
	struct writ_run_options opt = WRIT_INIT(struct writ_run_options);
	struct writ_exit how = WRIT_INIT(struct writ_exit);
	struct writ_error err = { 0 };

	if (!out)
		return;
	snprintf(script, sizeof(script), "echo %d.%d; echo %d > made.%d; exit %d", w->number, round,
		 round, w->number, w->number + 1);
	snprintf(want, sizeof(want), "%d.%d\n", w->number, round);
	opt.argv = argv;
	opt.output = scene_collect;
	opt.output_ctx = out;
	opt.pool = pool;
	if (writ_run(p, &opt, &how, &err) < 0)
		fail(w, "run", err.text);
	else if (how.code != w->number + 1)
		fail(w, "exit", how.why);
	else if (strcmp(out->text[1], want) != 0)
		fail(w, "output", out->text[1]);
	free(out);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct writ_policy *p = scene_policy(&scene, "allow write .");
	char *text = NULL;
	struct writ_error err = { 0 };

	if (!p) {
		fail(w, "load", "");
		return NULL;
	}
	if (writ_explain(p, 0, &text, &err) < 0)
		fail(w, "explain", err.text);
	writ_text_free(text);
	for (int i = 0; i < ROUNDS; i++)
		one_round(w, i % 2 ? w->shared : p, i % 2 ? w->pool : NULL, i);
	writ_policy_free(p);
	return NULL;
}

int main(void)
{
	struct worker workers[THREADS];
	struct writ_policy *shared;
	struct writ_pool *pool = NULL;
	struct writ_error err = { 0 };

	memset(workers, 0, sizeof(workers));
	scene_make(&scene);
	shared = scene_policy(&scene, "allow write .");
	ok(shared && writ_pool_new(shared, 2, &pool, &err) == 0, "a pool for all of them");
	for (int i = 0; i < THREADS; i++) {
		workers[i].number = i;
		workers[i].pool = pool;
		workers[i].shared = shared;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
			return 1;
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		ok(workers[i].failures == 0, "thread %d: %d failures %s", i, workers[i].failures,
		   workers[i].why);
	}
	writ_pool_free(pool);
	writ_policy_free(shared);
	ok(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "no child is left behind");
	scene_clear(&scene);
	return tap_done();
}
