#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

#include "base/banned.h"

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

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* As a shell looks for it; NULL if there is none. */
static const char *look_up(struct arena *a, const char *name)
{
	struct sv rest = sv_from(getenv("PATH"));

	if (strchr(name, '/'))
		return is_program(name) ? name : NULL;
	while (rest.n) {
		const struct sv dir = sv_cut(&rest, ':');
		const char *path = dir.n ? arena_fmt(a, SV_FMT "/%s", SV_ARG(dir), name) : NULL;

		if (path && path[0] == '/' && is_program(path))
			return path;
	}
	return NULL;
}

/* Too much to show for one program: a home, what holds one, or a whole ~/.local. */
static bool too_wide(const struct place_info *w, struct sv tree)
{
	return tree.n <= 1 || below(w->home, tree) || below(w->real_home, tree) ||
	       sv_eq(parent(tree), w->home) || sv_eq(parent(tree), w->real_home) ||
	       parent(tree).n == 0;
}

/* PREFIX of PREFIX/lib/node_modules/..., PREFIX/bin/x, or the directory itself. */
static struct sv install_tree(struct sv file)
{
	static const char modules[] = "/lib/node_modules/";
	const struct sv dir = parent(file);
	const char *at = memmem(file.p, file.n, modules, sizeof(modules) - 1);

	if (at)
		return sv_sub(file, 0, (size_t)(at - file.p));
	if (sv_ends(dir, SV("/bin")) || sv_ends(dir, SV("/sbin")))
		return parent(dir);
	return dir;
}

int program_find(struct arena *a, const struct place_info *w, const char *name, struct sv *ret_file,
		 struct sv *ret_tree)
{
	const char *path = look_up(a, name);
	char real[PATH_MAX];
	struct sv file, tree;

	if (!path || !realpath(path, real))
		return 0;
	if (!arena_sv(a, sv_from(real), &file))
		return WRIT_E_NOMEM;
	for (size_t i = 0; shown[i]; i++)
		if (below(file, sv_from(shown[i])))
			return 0;
	if (w->workspace.n && below(file, w->workspace))
		return 0;
	tree = install_tree(file);
	if (too_wide(w, tree))
		tree = parent(file);
	*ret_file = file;
	/* Only the file itself, if even its directory is too much. */
	*ret_tree = too_wide(w, tree) || (w->state.n && below(w->state, tree)) ||
				    (w->config.n && below(w->config, tree))
			    ? file
			    : tree;
	return 0;
}
