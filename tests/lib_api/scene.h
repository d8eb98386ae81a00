/*
 * scene.h - a place for a test of the library: its own state, a workspace, a handle
 *
 * The tests include only what a user of the library has, and the harness.
 */
#ifndef WRIT_TESTS_LIB_SCENE_H
#define WRIT_TESTS_LIB_SCENE_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <writ/writ.h>

#include "tap.h"

enum { SCENE_PATH = 256 };

struct scene {
	char top[SCENE_PATH];	/* everything lies below it */
	char home[SCENE_PATH];	/* and the state of writ in it */
	char work[SCENE_PATH];	/* the workspace */
	char other[SCENE_PATH]; /* outside the workspace, and not writable by the policy */
	struct writ *w;
	int tier; /* enum writ_tier */
};

__attribute__((unused)) static void scene_write(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	if (!f || fputs(text, f) < 0 || fclose(f) != 0) {
		printf("Bail out! cannot write %s\n", path);
		exit(1);
	}
}

/* NULL if it cannot be read; else to be freed. */
__attribute__((unused)) static char *scene_read(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = f ? calloc(1, 65536) : NULL;

	if (text)
		(void)!fread(text, 1, 65535, f);
	if (f)
		fclose(f);
	return text;
}

static void scene_make(struct scene *s)
{
	struct writ_options opt = WRIT_INIT(struct writ_options);
	struct writ_error err = { 0 };
	char path[SCENE_PATH + 32];

	snprintf(s->top, sizeof(s->top), "/var/tmp/writ-lib-XXXXXX");
	if (!mkdtemp(s->top)) {
		printf("Bail out! mkdtemp: %s\n", strerror(errno));
		exit(1);
	}
	snprintf(s->home, sizeof(s->home), "%.200s/home", s->top);
	snprintf(s->work, sizeof(s->work), "%.200s/work", s->top);
	snprintf(s->other, sizeof(s->other), "%.200s/other", s->top);
	if (mkdir(s->home, 0700) < 0 || mkdir(s->work, 0755) < 0 || mkdir(s->other, 0755) < 0)
		exit(1);
	snprintf(path, sizeof(path), "%s/secret", s->other);
	scene_write(path, "secret\n");
	snprintf(path, sizeof(path), "%s/file", s->work);
	scene_write(path, "inside\n");
	opt.home = s->home;
	snprintf(path, sizeof(path), "%s/.config/writ", s->home);
	opt.config_dir = path;
	opt.program = getenv("WRIT"); /* of the same build */
	if (writ_new(&opt, &s->w, &err) < 0) {
		printf("Bail out! writ_new: %s\n", err.text);
		exit(1);
	}
}

static void scene_clear(struct scene *s)
{
	char *argv[] = { (char[]){ "rm" }, (char[]){ "-rf" }, s->top, NULL };
	pid_t pid;

	writ_free(s->w);
	pid = fork();
	if (pid == 0) {
		execvp("rm", argv);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
}

/* The policy of most tests: @rules below `version 1`, with the scene's workspace. */
__attribute__((unused)) static struct writ_policy *scene_policy(struct scene *s, const char *rules)
{
	struct writ_policy_options opt = WRIT_INIT(struct writ_policy_options);
	struct writ_policy *p = NULL;
	struct writ_error err = { 0 };
	char text[1024];

	snprintf(text, sizeof(text), "version 1\n%s\n", rules);
	opt.text = text;
	opt.workspace = s->work;
	opt.cwd = s->work;
	opt.tier = s->tier;
	if (writ_policy_load(s->w, &opt, &p, NULL, &err) < 0)
		printf("# %s\n", err.text);
	return p;
}

/* Output of a command, both streams apart. */
struct scene_output {
	char text[3][65536];
	size_t n[3];
};

__attribute__((unused)) static void scene_collect(void *ctx, int stream, const void *bytes,
						  size_t n)
{
	struct scene_output *o = ctx;

	if (stream < 1 || stream > 2 || n > sizeof(o->text[0]) - 1 - o->n[stream])
		return;
	memcpy(o->text[stream] + o->n[stream], bytes, n);
	o->n[stream] += n;
}

/* Runs `sh -c script`; returns the code, or what writ_run() said. */
__attribute__((unused)) static int scene_sh(struct writ_policy *p, const char *script,
					    struct scene_output *o, struct writ_exit *ret,
					    struct writ_error *err)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct writ_run_options opt = WRIT_INIT(struct writ_run_options);
	int r;

	memset(o, 0, sizeof(*o));
	*ret = (struct writ_exit)WRIT_INIT(struct writ_exit);
	opt.argv = argv;
	opt.output = scene_collect;
	opt.output_ctx = o;
	r = writ_run(p, &opt, ret, err);
	return r < 0 ? r : ret->code;
}

__attribute__((unused)) static double scene_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

#endif
