#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "locate/locate.h"

#include "vcs/repo.h"

#include "base/banned.h"

static enum path_kind kind_of_mode(mode_t mode)
{
	if (S_ISDIR(mode))
		return PATH_DIR;
	return S_ISREG(mode) ? PATH_FILE : PATH_OTHER;
}

static enum path_kind kind_of(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? PATH_MISSING : kind_of_mode(st.st_mode);
}

/*
 * Checks that @path is absolute and has no empty, "." or ".." component. The path is then physical
 * unless a component is a symbolic link.
 */
static bool is_straight(struct sv path)
{
	return path.n > 1 && path.p[0] == '/' && sv_is_straight(sv_skip(path, 1));
}

/* Handles the common case with one lookup by the kernel: if no component that exists is a link, the
 * path is physical as written. Modifies @name. Returns false if realpath() is needed. */
static bool lookup_without_links(struct sv path, char *name, enum path_kind *ret)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
	size_t keep = path.n;
	struct stat st;

	if (!is_straight(path) || path.p[path.n - 1] == '/')
		return false;
	while (keep) {
		scoped_fd fd = (int)syscall(SYS_openat2, AT_FDCWD, name, &how, sizeof(how));

		if (fd >= 0 && fstat(fd, &st) == 0) {
			*ret = keep == path.n ? kind_of_mode(st.st_mode) : PATH_MISSING;
			return true;
		}
		if (fd >= 0 || (errno != ENOENT && errno != ENOTDIR))
			return false;
		while (keep && name[keep - 1] != '/')
			keep--;
		name[keep ? --keep : 0] = 0;
	}
	return false;
}

/*
 * Opens the directory that contains @path, for which is_straight() holds, and keeps it open in @w.
 * Returns false if a component is a link.
 */
static bool open_parent(struct find_world *w, struct sv path, size_t slash)
{
	const struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				      .resolve = RESOLVE_NO_SYMLINKS };
	const struct sv above = sv_sub(path, 0, slash);
	char name[PATH_MAX];

	if (w->above >= 0 && sv_eq(w->above_name, above))
		return true;
	memcpy(name, above.p, above.n);
	name[above.n] = 0;
	fd_scope_close(&w->above);
	w->above = -1;
	if (!arena_sv(w->a, above, &w->above_name))
		return false;
	w->above = (int)syscall(SYS_openat2, AT_FDCWD, name, &how, sizeof(how));
	return w->above >= 0;
}

/*
 * Looks a file up in the directory of the previous lookup. Rules name many files in few
 * directories, so the directory stays open and each file costs one call. Returns false if this
 * lookup cannot decide and the general lookup is needed.
 */
static bool lookup_in_last_dir(struct find_world *w, struct sv path, const char *name,
			       enum path_kind *ret)
{
	const size_t slash = sv_rfind(path, '/');
	struct stat st;

	if (!w->keeps || slash == 0 || !is_straight(path) || path.p[path.n - 1] == '/' ||
	    !open_parent(w, path, slash))
		return false;
	if (fstatat(w->above, name + slash + 1, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			return false;
		*ret = PATH_MISSING;
		return true;
	}
	if (S_ISLNK(st.st_mode))
		return false;
	*ret = kind_of_mode(st.st_mode);
	return true;
}

/* Resolves the deepest existing ancestor of @path and appends the rest of @path. */
static bool world_lookup(void *ctx, struct arena *a, struct sv path, struct policy_path *ret)
{
	char name[PATH_MAX], real[PATH_MAX];
	struct policy_path out = { .kind = PATH_MISSING };
	size_t keep = path.n;
	const char *text;

	if (path.n >= sizeof(name) || memchr(path.p, 0, path.n)) {
		*ret = (struct policy_path){ PATH_MISSING, path };
		return true;
	}
	memcpy(name, path.p, path.n);
	name[path.n] = 0;
	if (lookup_in_last_dir(ctx, path, name, &out.kind) ||
	    lookup_without_links(path, name, &out.kind)) {
		if (!arena_sv(a, path, &out.physical))
			return false;
		*ret = out;
		return true;
	}
	memcpy(name, path.p, path.n);
	while (!realpath(keep ? name : "/", real)) {
		if (keep == 0)
			return false;
		while (keep && name[keep - 1] != '/')
			keep--;
		while (keep && name[keep - 1] == '/')
			keep--;
		name[keep] = 0;
	}
	if (keep == path.n)
		out.kind = kind_of(real);
	text = arena_fmt(a, "%s" SV_FMT, strcmp(real, "/") == 0 && keep < path.n ? "" : real,
			 SV_ARG(sv_skip(path, keep)));
	out.physical = sv_from(text);
	if (text)
		*ret = out;
	return text != NULL;
}

/*
 * Takes a path for another machine as written: links on this machine say nothing about links on the
 * other.
 */
static bool world_written(void *ctx, struct arena *a, struct sv path, struct policy_path *ret)
{
	struct policy_path out = { .kind = PATH_MISSING };

	(void)ctx;
	if (!arena_sv(a, path, &out.physical))
		return false;
	*ret = out;
	return true;
}

static bool world_no_program(void *ctx, struct arena *a, struct sv name, struct sv *ret)
{
	(void)ctx, (void)a, (void)name;
	*ret = SV("");
	return true;
}

static bool world_program(void *ctx, struct arena *a, struct sv name, struct sv *ret)
{
	const struct find_world *w = ctx;

	return locate_in_path(a, w->in->path, name, ret);
}

/*
 * Returns a file that writ has read before. SECURITY: the policy that was checked is the policy
 * that runs; the supervisor must not read a policy file again.
 */
static int replay(const struct find_input *in, struct sv dir, struct sv name, struct source *ret,
		  struct sv *ret_id, struct writ_err *err)
{
	for (size_t i = 0; i < in->used.n; i++)
		if (sv_eq(in->used.v[i].dir, dir) && sv_eq(in->used.v[i].name, name)) {
			*ret = in->used.v[i].src;
			*ret_id = in->used.v[i].id;
			return 0;
		}
	return writ_fail(err, WRIT_E_BUG, 0, "a file that nobody read before: " SV_FMT,
			 SV_ARG(name));
}

static int world_read(void *ctx, struct arena *a, struct sv dir, struct sv name,
		      struct source *ret_src, struct sv *ret_id, struct writ_err *err)
{
	const struct find_world *w = ctx;
	char real[PATH_MAX];
	struct find_used used = { 0 };
	struct find_used *slot;
	const char *path;
	int r;

	if (w->replay)
		return replay(w->in, dir, name, ret_src, ret_id, err);
	if (sv_starts(name, SV("~/")))
		path = arena_fmt(a, SV_FMT SV_FMT, SV_ARG(w->in->where.home),
				 SV_ARG(sv_skip(name, 1)));
	else if (sv_starts(name, SV("/")))
		path = arena_str(a, name);
	else
		path = arena_fmt(a, SV_FMT SV_FMT, SV_ARG(dir), SV_ARG(name));
	if (!path)
		return writ_nomem(err);
	if (!realpath(path, real))
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	r = locate_text(w->a, path, &used.src, err);
	if (r < 0)
		return r;
	slot = vec_push(w->a, &w->in->used);
	if (!slot || !arena_sv(w->a, sv_from(real), &used.id) || !arena_sv(w->a, dir, &used.dir) ||
	    !arena_sv(w->a, name, &used.name))
		return writ_nomem(err);
	*slot = used;
	*ret_src = used.src;
	*ret_id = used.id;
	return 0;
}

static bool world_repository(void *ctx, struct arena *a, struct sv workspace,
			     struct policy_repository *ret)
{
	(void)ctx;
	return vcs_repo_find(a, workspace, ret);
}

void locate_world_init(struct find_world *w, struct arena *a, struct find_input *in)
{
	size_t own_n = 0;

	*w = (struct find_world){ .in = in, .a = a, .above = -1 };
	w->ops = (struct policy_ops){ .lookup = world_lookup,
				      .program = world_program,
				      .read = world_read,
				      .repository = world_repository,
				      .ctx = w };
	if (in->elsewhere)
		w->ops = (struct policy_ops){ .lookup = world_written,
					      .program = world_no_program,
					      .read = world_read,
					      .ctx = w };
	/* SECURITY: writ's own directories are never writable inside a sandbox. */
	if (in->where.config.n)
		w->own[own_n++] = in->where.config;
	if (in->where.state.n)
		w->own[own_n++] = in->where.state;
	w->env = (struct policy_env){ .ops = &w->ops,
				      .own = w->own,
				      .own_n = own_n,
				      .workspace = in->where.workspace,
				      .home = in->where.home,
				      .realm = in->where.realm,
				      .vars = in->vars.v,
				      .vars_n = in->vars.n,
				      .program = in->tree,
				      .agent_socket = in->agent_socket,
				      .missing_ok = in->missing_ok,
				      .elsewhere = in->elsewhere };
}

int locate_policy(struct find_world *w, struct diags *d, struct policy **ret, struct writ_err *err)
{
	const struct find_input *in = w->in;
	const struct policy_input input = { .files = in->files.v,
					    .files_n = in->files.n,
					    .narrow = in->has_narrow ? &in->narrow : NULL,
					    .args = in->args.v,
					    .args_n = in->args.n,
					    .default_write = in->default_write };
	int r;

	w->keeps = true;
	r = policy_new(&w->env, &input, d, ret, err);
	w->keeps = false;
	fd_scope_close(&w->above);
	w->above = -1;
	return r;
}
