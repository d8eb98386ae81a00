#include "vcs/repo.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "vcs/gitconfig.h"

#include "base/banned.h"

enum { POINTER_MAX = 8192, OTHERS_MAX = 256 };

static bool ours(const char *path, mode_t type)
{
	struct stat st;

	return lstat(path, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & S_IFMT) == type;
}

/* Reads a small file of the user, without the newline at its end. */
static bool read_line(const char *path, char to[PATH_MAX])
{
	scoped_buf b = BUF_INIT(POINTER_MAX);
	struct writ_err err = { 0 };
	struct sv s;

	if (!ours(path, S_IFREG) || fd_read_file(path, &b, &err) < 0)
		return false;
	s = buf_view(&b);
	while (s.n && (s.p[s.n - 1] == '\n' || s.p[s.n - 1] == '\r'))
		s = sv_sub(s, 0, s.n - 1);
	if (s.n == 0 || s.n >= PATH_MAX || memchr(s.p, 0, s.n) || memchr(s.p, '\n', s.n))
		return false;
	memcpy(to, s.p, s.n);
	to[s.n] = 0;
	return true;
}

/* Resolves @dir/@name to a physical path; returns false if the path does not exist. */
static bool resolve(const char *dir, const char *name, char to[PATH_MAX])
{
	char path[2 * PATH_MAX];
	const int n = name[0] == '/' ? snprintf(path, sizeof(path), "%s", name)
				     : snprintf(path, sizeof(path), "%s/%s", dir, name);

	return n > 0 && (size_t)n < sizeof(path) && realpath(path, to);
}

static bool has(const char *dir, const char *name, mode_t type)
{
	char path[PATH_MAX];
	const int n = snprintf(path, sizeof(path), "%s/%s", dir, name);

	return n > 0 && (size_t)n < sizeof(path) && ours(path, type);
}

static bool is_repository(const char *dir)
{
	return ours(dir, S_IFDIR) && has(dir, "objects", S_IFDIR) && has(dir, "refs", S_IFDIR) &&
	       has(dir, "HEAD", S_IFREG);
}

static bool is_inside(const char *path, struct sv dir)
{
	const struct sv p = sv_from(path);

	return sv_starts(p, dir) && (p.n == dir.n || p.p[dir.n] == '/');
}

/*
 * --- linked worktree: GIT/worktrees/NAME/gitdir contains the path of the worktree's .git file ---
 */

/*
 * Checks that the metadata @admin of a linked worktree names the workspace's .git file @pointer,
 * and that its file commondir names the repository @common. SECURITY: without this check, a .git
 * file written by the agent could claim any worktree of the user.
 */
static bool worktree_points_back(const char *admin, const char *pointer, const char *common)
{
	char file[PATH_MAX], text[PATH_MAX], real[PATH_MAX];

	if ((size_t)snprintf(file, sizeof(file), "%s/gitdir", admin) >= sizeof(file) ||
	    !read_line(file, text) || !resolve(admin, text, real) || strcmp(real, pointer) != 0)
		return false;
	return (size_t)snprintf(file, sizeof(file), "%s/commondir", admin) < sizeof(file) &&
	       read_line(file, text) && resolve(admin, text, real) && strcmp(real, common) == 0;
}

/*
 * Lists the other linked worktrees of the repository, which the session must not change. Returns
 * false if there are too many or memory runs out.
 */
static bool list_others(struct arena *a, const char *folder, const char *name,
			struct policy_repository *r)
{
	scoped_list *d = opendir(folder);
	bool good = d != NULL;

	for (const struct dirent *e; good && (e = readdir(d));) {
		struct sv *slot;

		if (e->d_name[0] == '.' || strcmp(e->d_name, name) == 0)
			continue;
		slot = r->others.n < OTHERS_MAX ? vec_push(a, &r->others) : NULL;
		good = slot && arena_sv(a, sv_from(e->d_name), slot);
	}
	return good;
}

static bool worktree_find(struct arena *a, const char *admin, const char *pointer,
			  struct policy_repository *ret)
{
	char folder[PATH_MAX], common[PATH_MAX];
	struct policy_repository r = { 0 };
	const char *name = strrchr(admin, '/') + 1;

	if ((size_t)snprintf(folder, sizeof(folder), "%.*s", (int)(name - admin - 1), admin) >=
		    sizeof(folder) ||
	    !sv_ends(sv_from(folder), SV("/worktrees")) || !resolve(folder, "..", common) ||
	    !ours(admin, S_IFDIR) || !ours(folder, S_IFDIR) || !is_repository(common) ||
	    !worktree_points_back(admin, pointer, common))
		return true;
	if (!arena_sv(a, sv_from(common), &r.git) || !arena_sv(a, sv_from(name), &r.worktree))
		return false;
	r.closed = !list_others(a, folder, name, &r);
	*ret = r;
	return true;
}

/*
 * --- submodule: core.worktree in GIT/modules/NAME/config is the path of the submodule's files ---
 */

/*
 * Accepts a submodule only if core.worktree in its own configuration is the workspace: otherwise a
 * .git file written by the agent could claim any submodule of the user.
 */
static bool module_find(struct arena *a, const char *admin, struct sv workspace,
			struct policy_repository *ret)
{
	scoped_buf b = BUF_INIT(GITCONFIG_MAX);
	char file[PATH_MAX], text[GITCONFIG_VALUE], real[PATH_MAX];
	struct writ_err err = { 0 };

	if (!strstr(admin, "/modules/") || !is_repository(admin) ||
	    (size_t)snprintf(file, sizeof(file), "%s/config", admin) >= sizeof(file) ||
	    !ours(file, S_IFREG) || fd_read_file(file, &b, &err) < 0 ||
	    !gitconfig_get(buf_view(&b), "core", "worktree", text) || !resolve(admin, text, real) ||
	    !sv_is(workspace, real))
		return true;
	return arena_sv(a, sv_from(admin), &ret->git);
}

bool vcs_repo_find(struct arena *a, struct sv workspace, struct policy_repository *ret)
{
	char pointer[PATH_MAX], text[PATH_MAX], admin[PATH_MAX];
	struct sv place;

	*ret = (struct policy_repository){ 0 };
	if (workspace.n == 0 ||
	    (size_t)snprintf(pointer, sizeof(pointer), SV_FMT "/.git", SV_ARG(workspace)) >=
		    sizeof(pointer) ||
	    !read_line(pointer, text) || !gitfile_parse(sv_from(text), &place))
		return true;
	/*
	 * Shorten @pointer to the workspace, against which a relative path in the .git file is
	 * resolved.
	 */
	pointer[workspace.n] = 0;
	if (!resolve(pointer, place.p, admin) || is_inside(admin, workspace))
		return true;
	pointer[workspace.n] = '/';
	if (!worktree_find(a, admin, pointer, ret))
		return false;
	return ret->git.n || module_find(a, admin, workspace, ret);
}
