#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "locate/locate.h"

#include "base/banned.h"

/* Trees that the base profile shows in every jail. */
static const char *const shown[] = { "/usr", "/opt", "/nix/store", "/gnu/store", NULL };

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

bool locate_in_path(struct arena *a, struct sv path, struct sv name, struct sv *ret)
{
	struct sv rest = path.n ? path : SV("/usr/local/bin:/usr/bin:/bin");
	char real[PATH_MAX];

	*ret = SV("");
	while (rest.n) {
		const struct sv dir = sv_cut(&rest, ':');
		const char *file;

		/*
		 * SECURITY: skip empty and relative entries of PATH. With such entries, files in
		 * the workspace would decide which program runs.
		 */
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

/*
 * Checks whether a tree is too wide to show for one program: it contains a home directory or writ's
 * own files, or is directly in a home directory or in the root directory.
 */
static bool too_wide(const struct find_where *w, struct sv tree)
{
	return tree.n <= 1 || sv_below(w->home, tree) || sv_below(w->real_home, tree) ||
	       sv_eq(parent(tree), w->home) || sv_eq(parent(tree), w->real_home) ||
	       parent(tree).n == 0 || sv_below(w->state, tree) || sv_below(w->config, tree);
}

/*
 * Returns the tree in which @file is installed: PREFIX of PREFIX/lib/node_modules/..., PREFIX/bin/x
 * or PREFIX/sbin/x, otherwise the directory of @file.
 */
static struct sv install_tree(struct sv file)
{
	static const char modules[] = "/lib/node_modules/";
	const struct sv dir = parent(file);
	const char *at = memmem(file.p, file.n, modules, sizeof(modules) - 1);

	if (at)
		return sv_sub(file, 0, (size_t)(at - file.p));
	return sv_ends(dir, SV("/bin")) || sv_ends(dir, SV("/sbin")) ? parent(dir) : dir;
}

int locate_program(struct arena *a, const char *name, struct find_input *in, struct writ_err *err)
{
	char real[PATH_MAX];
	struct sv file = SV("");
	struct sv tree;

	if (strchr(name, '/')) {
		if (is_program(name) && realpath(name, real) && !arena_sv(a, sv_from(real), &file))
			return writ_nomem(err);
	} else if (!locate_in_path(a, in->path, sv_from(name), &file)) {
		return writ_nomem(err);
	}
	if (file.n == 0 || sv_below(file, in->where.workspace))
		return 0;
	for (size_t i = 0; shown[i]; i++)
		if (sv_below(file, sv_from(shown[i])))
			return 0;
	tree = install_tree(file);
	if (too_wide(&in->where, tree))
		tree = parent(file);
	in->program = file;
	/* If even the directory of the program is too wide, show only the program file. */
	in->tree = too_wide(&in->where, tree) ? file : tree;
	return 0;
}
