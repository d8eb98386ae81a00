/*
 * world.h - a made-up file system for tests of the pure rooms
 *
 * Directories: / /usr /usr/bin /home/me /home/me/app (the workspace) with src,
 * logs and data below it. Files: /usr/bin/git, app/README.md, app/.env. A link:
 * /home/me/link -> /home/me/app/logs. A socket: /run/x.sock. All else is missing.
 */
#ifndef WRIT_TESTS_WORLD_H
#define WRIT_TESTS_WORLD_H

#include "lang/policy.h"

struct world_file {
	const char *path, *text;
};

static const struct {
	const char *path;
	enum path_kind kind;
	const char *physical;
} world_paths[] = {
	{ "/", PATH_DIR, "/" },
	{ "/usr", PATH_DIR, "/usr" },
	{ "/usr/bin", PATH_DIR, "/usr/bin" },
	{ "/usr/bin/git", PATH_FILE, "/usr/bin/git" },
	{ "/usr/lib/git-core", PATH_DIR, "/usr/lib/git-core" },
	{ "/home/me", PATH_DIR, "/home/me" },
	{ "/home/me/.ssh", PATH_DIR, "/home/me/.ssh" },
	{ "/home/me/app", PATH_DIR, "/home/me/app" },
	{ "/home/me/app/src", PATH_DIR, "/home/me/app/src" },
	{ "/home/me/app/logs", PATH_DIR, "/home/me/app/logs" },
	{ "/home/me/app/data", PATH_DIR, "/home/me/app/data" },
	{ "/home/me/app/README.md", PATH_FILE, "/home/me/app/README.md" },
	{ "/home/me/app/.env", PATH_FILE, "/home/me/app/.env" },
	{ "/home/me/link", PATH_DIR, "/home/me/app/logs" },
	{ "/run/x.sock", PATH_OTHER, "/run/x.sock" },
	{ "/opt/a b*c", PATH_DIR, "/opt/a b*c" },
};

__attribute__((unused)) static bool fake_lookup(void *ctx, struct arena *a, struct sv path,
						struct policy_path *ret)
{
	(void)ctx;
	for (size_t i = 0; i < ARRAY_LEN(world_paths); i++)
		if (sv_is(path, world_paths[i].path)) {
			*ret = (struct policy_path){ world_paths[i].kind,
						     sv_from(world_paths[i].physical) };
			return true;
		}
	ret->kind = PATH_MISSING;
	return arena_sv(a, path, &ret->physical);
}

__attribute__((unused)) static bool fake_program(void *ctx, struct arena *a, struct sv name,
						 struct sv *ret)
{
	(void)ctx, (void)a;
	*ret = sv_is(name, "git") ? SV("/usr/bin/git") : SV("");
	return true;
}

/* ctx: a list of files, ended by a NULL path. */
__attribute__((unused)) static int fake_read(void *ctx, struct arena *a, struct sv dir,
					     struct sv name, struct source *ret_src,
					     struct sv *ret_id, struct writ_err *err)
{
	(void)dir, (void)a;
	if (sv_starts(name, SV("./")))
		name = sv_skip(name, 2);
	for (const struct world_file *f = ctx; f && f->path; f++)
		if (sv_is(name, f->path)) {
			*ret_src = (struct source){ .name = sv_from(f->path),
						    .dir = SV(""),
						    .text = sv_from(f->text) };
			*ret_id = sv_from(f->path);
			return 0;
		}
	return writ_fail(err, WRIT_E_SYS, 2, "open " SV_FMT, SV_ARG(name));
}

__attribute__((unused)) static const struct policy_ops fake_ops = { fake_lookup, fake_program,
								    fake_read, NULL };

#define FAKE_ENV(ops_)                                                                             \
	{                                                                                          \
		.ops = (ops_), .workspace = SV_INIT("/home/me/app"), .home = SV_INIT("/home/me"),  \
		.realm = SV_INIT("r")                                                              \
	}

#endif
