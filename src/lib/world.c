#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "lib/lib_priv.h"
#include "policy/lex.h"
#include "repo/repo.h"

#include "base/banned.h"

struct sv lib_env_get(char *const *env, const char *name)
{
	for (; *env; env++) {
		struct sv rest = sv_from(*env);

		if (sv_is(sv_cut(&rest, '='), name))
			return rest;
	}
	return SV("");
}

static enum path_kind kind_of(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return PATH_MISSING;
	if (S_ISDIR(st.st_mode))
		return PATH_DIR;
	return S_ISREG(st.st_mode) ? PATH_FILE : PATH_OTHER;
}

/* The deepest ancestor that exists, resolved, with the rest behind it. */
static bool world_lookup(void *ctx, struct arena *a, struct sv path, struct policy_path *ret)
{
	char name[PATH_MAX], real[PATH_MAX];
	struct policy_path out = { .kind = PATH_MISSING };
	size_t keep = path.n;
	const char *text;

	(void)ctx;
	if (path.n >= sizeof(name) || memchr(path.p, 0, path.n)) {
		*ret = (struct policy_path){ PATH_MISSING, path };
		return true;
	}
	memcpy(name, path.p, path.n);
	name[path.n] = 0;
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

static bool is_program(const char *path)
{
	return access(path, X_OK) == 0 && kind_of(path) == PATH_FILE;
}

static bool world_program(void *ctx, struct arena *a, struct sv name, struct sv *ret)
{
	const struct lib_world *w = ctx;
	struct sv path = w->in->path.n ? w->in->path : SV("/usr/local/bin:/usr/bin:/bin");
	char real[PATH_MAX];

	*ret = SV("");
	while (path.n) {
		const struct sv dir = sv_cut(&path, ':');
		const char *file;

		/* An empty or relative entry means the workspace decides: never. */
		if (!sv_starts(dir, SV("/")))
			continue;
		file = arena_fmt(a, SV_FMT "/" SV_FMT, SV_ARG(dir), SV_ARG(name));
		if (!file)
			return false;
		if (is_program(file) && realpath(file, real))
			return arena_sv(a, sv_from(real), ret);
	}
	return true;
}

int lib_read_text(struct arena *a, const char *path, struct source *ret, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(LEX_TEXT_MAX + 1);
	const struct sv name = sv_from(path);
	const size_t slash = sv_rfind(name, '/');
	struct source src = { .dir = SV("") };
	int r = fd_read_file(path, &b, err);

	if (r == WRIT_E_LIMIT)
		return writ_fail(err, WRIT_E_LIMIT, 0, "%s is larger than %d bytes", path,
				 LEX_TEXT_MAX);
	if (r < 0)
		return r;
	if (!arena_sv(a, buf_view(&b), &src.text) || !arena_sv(a, name, &src.name))
		return writ_nomem(err);
	if (slash != SIZE_MAX)
		src.dir = sv_sub(src.name, 0, slash + 1);
	*ret = src;
	return 0;
}

/* SECURITY: what was checked is what runs: the supervisor reads no policy file again. */
static int replay(const struct lib_input *in, struct sv dir, struct sv name, struct source *ret,
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
	const struct lib_world *w = ctx;
	char real[PATH_MAX];
	struct lib_used used = { 0 };
	struct lib_used *slot;
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
	r = lib_read_text(w->a, path, &used.src, err);
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
	return repo_find(a, workspace, ret);
}

int lib_policy_new(struct lib_world *world, struct diags *d, struct policy **ret,
		   struct writ_err *err)
{
	const struct lib_input *in = world->in;
	const struct policy_ops ops = { world_lookup, world_program, world_read, world,
					world_repository };
	struct sv own[2];
	size_t own_n = 0;
	struct policy_env env = { .ops = &ops,
				  .own = own,
				  .workspace = in->where.workspace,
				  .home = in->where.home,
				  .realm = in->where.realm,
				  .vars = in->vars.v,
				  .vars_n = in->vars.n,
				  .program = in->tree,
				  .missing_ok = in->missing_ok };
	const struct policy_input input = { .files = in->files.v,
					    .files_n = in->files.n,
					    .narrow = in->has_narrow ? &in->narrow : NULL,
					    .args = in->args.v,
					    .args_n = in->args.n,
					    .default_write = in->default_write };

	if (in->where.config.n)
		own[own_n++] = in->where.config;
	if (in->where.state.n)
		own[own_n++] = in->where.state;
	env.own_n = own_n;
	return policy_new(&env, &input, d, ret, err);
}

/* --- the command's own files --- */

/* Trees that base shows anyway. */
static const char *const shown[] = { "/usr", "/opt", "/nix/store", "/gnu/store", NULL };

static bool below(struct sv path, struct sv dir)
{
	return dir.n && sv_starts(path, dir) && (path.n == dir.n || path.p[dir.n] == '/');
}

static struct sv parent(struct sv path)
{
	const size_t slash = sv_rfind(path, '/');

	return sv_sub(path, 0, slash == SIZE_MAX ? 0 : slash);
}

/* Too much to show for one program: a home, what holds one, or what lies right in one. */
static bool too_wide(const struct lib_where *w, struct sv tree)
{
	return tree.n <= 1 || below(w->home, tree) || below(w->real_home, tree) ||
	       sv_eq(parent(tree), w->home) || sv_eq(parent(tree), w->real_home) ||
	       parent(tree).n == 0 || below(w->state, tree) || below(w->config, tree);
}

/* PREFIX of PREFIX/lib/node_modules/..., PREFIX/bin/x, or the directory itself. */
static struct sv install_tree(struct sv file)
{
	static const char modules[] = "/lib/node_modules/";
	const struct sv dir = parent(file);
	const char *at = memmem(file.p, file.n, modules, sizeof(modules) - 1);

	if (at)
		return sv_sub(file, 0, (size_t)(at - file.p));
	return sv_ends(dir, SV("/bin")) || sv_ends(dir, SV("/sbin")) ? parent(dir) : dir;
}

int lib_program_find(struct arena *a, const char *name, struct lib_input *in, struct writ_err *err)
{
	struct lib_world w = { .in = in, .a = a };
	char real[PATH_MAX];
	struct sv file = SV("");
	struct sv tree;

	if (strchr(name, '/')) {
		if (is_program(name) && realpath(name, real) && !arena_sv(a, sv_from(real), &file))
			return writ_nomem(err);
	} else if (!world_program(&w, a, sv_from(name), &file)) {
		return writ_nomem(err);
	}
	if (file.n == 0 || (in->where.workspace.n && below(file, in->where.workspace)))
		return 0;
	for (size_t i = 0; shown[i]; i++)
		if (below(file, sv_from(shown[i])))
			return 0;
	tree = install_tree(file);
	if (too_wide(&in->where, tree))
		tree = parent(file);
	in->program = file;
	/* Only the file itself, if even its directory is too much. */
	in->tree = too_wide(&in->where, tree) ? file : tree;
	return 0;
}
