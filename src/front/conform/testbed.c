#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/remove.h"
#include "conform/conform_priv.h"

#include "base/banned.h"

/* The path of a UNIX socket has at most 108 bytes, and a scene appends its own part to DIR. */
enum { DIR_LENGTH = 60, PASSWD_BYTES = 16 << 20 };

/* --- The tested user --- */

/*
 * Finds the user by name, or by uid if the name is empty. Reads /etc/passwd directly: getpwnam()
 * needs shared libraries that a static program does not have.
 */
static bool find_user(struct suite *s, struct sv name, uid_t uid)
{
	scoped_buf text = BUF_INIT(PASSWD_BYTES);
	struct writ_err err = { 0 };
	struct sv rest;

	if (fd_read_file("/etc/passwd", &text, &err) < 0)
		return false;
	rest = buf_view(&text);
	while (rest.n) {
		struct sv line = sv_cut(&rest, '\n');
		struct sv field[7];
		uint64_t id, gid;

		for (size_t i = 0; i < ARRAY_LEN(field); i++)
			field[i] = sv_cut(&line, ':');
		if (!sv_to_u64(field[2], UINT32_MAX - 1, &id) ||
		    !sv_to_u64(field[3], UINT32_MAX - 1, &gid) ||
		    (name.n ? !sv_eq(field[0], name) : id != uid))
			continue;
		s->uid = (uid_t)id;
		s->gid = (gid_t)gid;
		return arena_sv(s->arena, field[0], &s->user) &&
		       arena_sv(s->arena, field[5], &s->home);
	}
	return false;
}

static int choose_user(struct suite *s, struct writ_err *err)
{
	const struct sv name = sv_from(s->opt->user);
	const struct sv home = environ_get(s->opt->environ, SV("HOME"));

	if (name.n) {
		if (!find_user(s, name, 0))
			return writ_fail(err, WRIT_E_SYNTAX, 0, "no user \"%s\" in /etc/passwd",
					 s->opt->user);
		if (geteuid() != 0 && s->uid != geteuid())
			return writ_fail(err, WRIT_E_DENIED, 0, "--user needs root");
		s->drop = geteuid() == 0;
		return 0;
	}
	if (find_user(s, SV(""), geteuid()))
		return 0;
	s->uid = geteuid();
	s->gid = getegid();
	s->home = home.n ? home : SV("/");
	s->user = sv_from(arena_fmt(s->arena, "%u", s->uid));
	return 0;
}

/*
 * Builds the environment of the attempts from few variables, so that an attempt that prints its
 * environment reveals no secret.
 */
static int make_environment(struct suite *s, struct writ_err *err)
{
	static const char *const kept[] = { "PATH=", "LANG=", "TERM=", "TMPDIR=", "WRIT_" };
	VEC(char *) env = { 0 };
	for (char **e = s->opt->environ; *e; e++)
		for (size_t i = 0; i < ARRAY_LEN(kept); i++)
			if (sv_starts(sv_from(*e), sv_from(kept[i])) &&
			    !vec_add(s->arena, &env, *e))
				return writ_nomem(err);
	char *const own[] = {
		arena_fmt(s->arena, "HOME=" SV_FMT, SV_ARG(s->home)),
		arena_fmt(s->arena, "USER=" SV_FMT, SV_ARG(s->user)),
		arena_fmt(s->arena, "LOGNAME=" SV_FMT, SV_ARG(s->user)),
		arena_fmt(s->arena, "SHELL=/bin/sh"),
		arena_fmt(s->arena, "XDG_STATE_HOME=%s/state", s->base),
		arena_fmt(s->arena, "XDG_CONFIG_HOME=%s/config", s->base),
	};
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (!own[i] || !vec_add(s->arena, &env, own[i]))
			return writ_nomem(err);
	if (!vec_add(s->arena, &env, NULL))
		return writ_nomem(err);
	s->env = env.v;
	return 0;
}

/* --- The directory --- */

/*
 * Checks the path of the testbed's directory. The path appears unquoted in policies, lists and
 * socket names, so only plain characters are allowed.
 */
static int check_dir(const char *dir, char ret[PATH_MAX], struct writ_err *err)
{
	if (!realpath(dir, ret))
		return writ_fail(err, WRIT_E_SYS, errno, "--dir %s", dir);
	if (!sv_is_alnum(sv_from(ret), "/._-+"))
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 "--dir: letters, digits and . _ - + only in %s", ret);
	if (strlen(ret) > DIR_LENGTH)
		return writ_fail(err, WRIT_E_LIMIT, 0, "--dir: %s is too long for sockets below it",
				 ret);
	return 0;
}

bool testbed_mkdir(const struct suite *s, const char *path, mode_t mode)
{
	return mkdir(path, 0700) == 0 && !(s->drop && chown(path, s->uid, s->gid) < 0) &&
	       chmod(path, mode) == 0;
}

/*
 * Creates a new file in the testbed. No other user can write to the testbed, so the file cannot
 * exist already.
 */
static int write_new(const char *to, struct sv bytes, mode_t mode, struct writ_err *err)
{
	scoped_fd fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	if (fd < 0 || fchmod(fd, mode) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", to);
	return fd_write_all(fd, bytes, err);
}

static int copy_program(const char *from, const char *to, struct writ_err *err)
{
	scoped_buf bytes = BUF_INIT(OUTPUT_BYTES);
	const int r = fd_read_file(from, &bytes, err);

	return r < 0 ? r : write_new(to, buf_view(&bytes), 0755, err);
}

/*
 * Creates the directory of the run with a copy of writ-escape: the tested user may be unable to
 * read the original.
 */
int testbed_make(struct suite *s, struct writ_err *err)
{
	char dir[PATH_MAX];
	char *base;
	const char *state, *config;

	if (choose_user(s, err) < 0 || check_dir(s->opt->dir, dir, err) < 0)
		return err->code;
	base = arena_fmt(s->arena, "%s/we-XXXXXX", dir);
	if (!base)
		return writ_nomem(err);
	if (!mkdtemp(base))
		return writ_fail(err, WRIT_E_SYS, errno, "%s", base);
	s->base = base;
	state = arena_fmt(s->arena, "%s/state", base);
	config = arena_fmt(s->arena, "%s/config", base);
	s->program = arena_fmt(s->arena, "%s/writ-escape", base);
	if (!state || !config || !s->program)
		return writ_nomem(err);
	if (chmod(base, 0755) < 0 || !testbed_mkdir(s, state, 0700) ||
	    !testbed_mkdir(s, config, 0700))
		return writ_fail(err, WRIT_E_SYS, errno, "%s", base);
	return copy_program(s->opt->escape, s->program, err) < 0 ? err->code
								 : make_environment(s, err);
}

char *testbed_scene(struct suite *s, const char *name, struct writ_err *err)
{
	char *path = arena_fmt(s->arena, "%s/%sXXXXXX", s->base, name);

	if (path && mkdtemp(path) && !(s->drop && chown(path, s->uid, s->gid) < 0) &&
	    chmod(path, 0755) == 0)
		return path;
	(void)!(path ? writ_fail(err, WRIT_E_SYS, errno, "%s", path) : writ_nomem(err));
	return NULL;
}

/*
 * Writes the policy file next to the scene and not into it, because the tested user owns the scene.
 */
int testbed_policy(struct suite *s, const char *scene, struct sv extra, const char **ret_file,
		   struct writ_err *err)
{
	const char *file = arena_fmt(s->arena, "%s.writ", scene);
	const char *text = arena_fmt(s->arena, "version 1\nallow write %s/work\n" SV_FMT "%s",
				     scene, SV_ARG(extra), extra.n ? "\n" : "");
	if (!file || !text)
		return writ_nomem(err);
	if (write_new(file, sv_from(text), 0644, err) < 0)
		return err->code;
	*ret_file = file;
	return 0;
}

/* --- Remove --- */

static void remove_with_retries(const char *path)
{
	static const struct timespec pause = { .tv_nsec = 100000000 };

	/* Retry: helper processes of attempts without a sandbox may need a moment to exit. */
	for (int i = 0; i < 20; i++) {
		remove_tree(AT_FDCWD, path);
		if (access(path, F_OK) < 0 && errno == ENOENT)
			return;
		(void)nanosleep(&pause, NULL);
	}
}

void testbed_clear(const struct suite *s, const char *path)
{
	const char *policy = arena_fmt(s->arena, "%s.writ", path);

	remove_with_retries(path);
	if (policy)
		(void)unlink(policy);
}

void testbed_remove(struct suite *s)
{
	if (s->base)
		remove_with_retries(s->base);
	s->base = NULL;
}
