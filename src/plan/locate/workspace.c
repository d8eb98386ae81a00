#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "locate/locate.h"

#include "base/banned.h"

/*
 * Directories that are never a workspace, because granting them would grant files of the system or
 * of all users. Of system_dirs only the directory itself is refused, of system_trees also
 * everything below.
 */
static const char *const system_dirs[] = { "/",	       "/home",	   "/media",   "/mnt",	   "/nix",
					   "/opt",     "/root",	   "/srv",     "/tmp",	   "/var",
					   "/var/lib", "/var/opt", "/var/tmp", "/var/www", NULL };
static const char *const system_trees[] = { "/bin",	"/boot",      "/dev",	      "/efi",
					    "/etc",	"/gnu",	      "/lib",	      "/lib32",
					    "/lib64",	"/libx32",    "/lost+found",  "/proc",
					    "/run",	"/sbin",      "/snap",	      "/sys",
					    "/usr",	"/nix/store", "/var/backups", "/var/cache",
					    "/var/log", "/var/mail",  "/var/run",     "/var/spool",
					    NULL };
/* Source trees inside system_trees: a directory below one of these can be a workspace. */
static const char *const work_trees[] = { "/usr/src", "/usr/local/src", NULL };

static bool in_list(struct sv path, const char *const *list, bool tree)
{
	for (size_t i = 0; list[i]; i++)
		if (tree ? sv_below(path, sv_from(list[i])) : sv_is(path, list[i]))
			return true;
	return false;
}

static bool is_system(struct sv path)
{
	const struct sv rest = sv_skip(path, 9);

	if (in_list(path, system_dirs, false))
		return true;
	/* Treat /var/lib/dpkg as a system directory, but not /var/lib/builds/app, which may be
	 * somebody's work. */
	if (sv_starts(path, SV("/var/lib/")) && sv_find(rest, '/') == SIZE_MAX)
		return true;
	return in_list(path, system_trees, true) &&
	       !(in_list(path, work_trees, true) && !in_list(path, work_trees, false));
}

/*
 * SECURITY: a .git that another user placed above the current directory must not widen the
 * workspace. The .git counts only if it and its directory belong to the user and it looks like a
 * repository, a linked worktree or a submodule.
 */
static bool is_our_repository(struct arena *a, struct sv dir)
{
	const char *top = arena_str(a, dir);
	const char *git = arena_fmt(a, SV_FMT "/.git", SV_ARG(dir));
	const char *head = arena_fmt(a, SV_FMT "/.git/HEAD", SV_ARG(dir));
	struct stat st;

	if (!top || !git || !head || stat(top, &st) < 0 || st.st_uid != geteuid() ||
	    lstat(git, &st) < 0 || st.st_uid != geteuid())
		return false;
	return S_ISREG(st.st_mode) || (S_ISDIR(st.st_mode) && access(head, F_OK) == 0);
}

/*
 * Finds the nearest directory at or above @cwd that is a repository of the user; returns an empty
 * path if there is none.
 */
static struct sv git_top(struct arena *a, struct sv cwd)
{
	for (struct sv dir = cwd; dir.n > 1;) {
		const size_t slash = sv_rfind(dir, '/');

		if (is_our_repository(a, dir))
			return dir;
		dir = sv_sub(dir, 0, slash == SIZE_MAX ? 0 : slash);
	}
	return SV("");
}

/* Checks whether @path is a home directory or contains one. */
static bool holds_home(const struct find_where *w, struct sv path)
{
	return (w->home.n && sv_below(w->home, path)) ||
	       (w->real_home.n && sv_below(w->real_home, path));
}

static const char *why_never(const struct find_where *w, struct sv path)
{
	if (path.n > 1 && holds_home(w, path))
		return "your home directory is never a workspace, nor is what holds it";
	return is_system(path) ? "a system directory is never a workspace" : NULL;
}

static int physical(struct arena *a, const char *path, const char *what, struct sv *ret,
		    struct writ_err *err)
{
	char real[PATH_MAX];

	if (!realpath(path, real))
		return writ_fail(err, WRIT_E_SYS, errno, "%s", what);
	return arena_sv(a, sv_from(real), ret) ? 0 : writ_nomem(err);
}

int locate_cwd(struct arena *a, const char *cwd, struct find_where *w, struct writ_err *err)
{
	w->workspace = SV("");
	w->no_workspace = NULL;
	return physical(a, cwd ? cwd : ".", cwd ? cwd : "the current directory", &w->cwd, err);
}

int locate_workspace(struct arena *a, const char *cwd, struct find_where *w, struct writ_err *err)
{
	int r = locate_cwd(a, cwd, w, err);
	struct sv top;

	if (r < 0)
		return r;
	top = git_top(a, w->cwd);
	w->workspace = top.n && !why_never(w, top) ? top : w->cwd;
	w->no_workspace = why_never(w, w->workspace);
	if (w->no_workspace)
		w->workspace = SV("");
	return 0;
}

int locate_workspace_at(struct arena *a, const char *cwd, const char *workspace,
			struct find_where *w, struct writ_err *err)
{
	int r = locate_cwd(a, cwd, w, err);

	if (r == 0)
		r = physical(a, workspace, workspace, &w->workspace, err);
	if (r == 0 && why_never(w, w->workspace))
		r = writ_fail(err, WRIT_E_DENIED, 0, "%s: %s", why_never(w, w->workspace),
			      workspace);
	return r;
}
