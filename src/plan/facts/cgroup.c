#include "facts/cgroup.h"

#include <string.h>

#include "base/fd.h"
#include "facts/facts.h"

#include "base/banned.h"

static const char *const v1_names[V1_COUNT] = { "memory", "pids", "cpu", "freezer" };

/*
 * Finds a cgroup path in @self, the text of a process's /proc file "cgroup": the path in the
 * unified hierarchy (@name NULL), or in the hierarchy of controller @name.
 */
static bool own_path(struct sv self, const char *name, struct sv *ret_path)
{
	while (self.n) {
		struct sv line = sv_cut(&self, '\n');
		const struct sv id = sv_cut(&line, ':');
		const struct sv list = sv_cut(&line, ':');

		if (name ? sv_has_word(list, ',', sv_from(name)) : sv_is(id, "0") && list.n == 0) {
			*ret_path = line;
			return true;
		}
	}
	return false;
}

/*
 * Parses a line of mountinfo. Returns false unless the line is a mount of the hierarchy @name (see
 * own_path()).
 */
static bool parse_mount(struct sv line, const char *name, struct sv *ret_root, struct sv *ret_point)
{
	struct sv type;

	for (int i = 0; i < 3; i++) /* skip id, parent, device */
		(void)sv_cut(&line, ' ');
	*ret_root = sv_cut(&line, ' ');
	*ret_point = sv_cut(&line, ' ');
	while (line.n && !sv_is(sv_cut(&line, ' '), "-"))
		;
	type = sv_cut(&line, ' ');
	(void)sv_cut(&line, ' '); /* skip the source */
	/*
	 * Mountinfo escapes spaces and newlines with a backslash. Skip mount points with a
	 * backslash; cgroups are not mounted at such paths.
	 */
	if (!sv_starts(*ret_point, SV("/")) || sv_find(*ret_point, '\\') != SIZE_MAX)
		return false;
	return name ? sv_is(type, "cgroup") && sv_has_word(line, ',', sv_from(name))
		    : sv_is(type, "cgroup2");
}

/* Strips @root from @path, for a mount that shows only the hierarchy below @root. */
static bool path_below(struct sv *path, struct sv root)
{
	if (!sv_is(root, "/")) {
		if (!sv_starts(*path, root))
			return false;
		*path = sv_skip(*path, root.n);
	}
	if (sv_is(*path, "/"))
		*path = SV("");
	/*
	 * A path that begins with "/.." belongs to a cgroup outside the cgroup namespace of this
	 * process.
	 */
	return path->n == 0 || (path->p[0] == '/' && !sv_has_word(*path, '/', SV("..")));
}

/*
 * Finds the directory of the process's cgroup in the hierarchy @name (see own_path()) and, if
 * @ret_parent is not NULL, the parent of the directory. Returns true if any hierarchy of the kind
 * @name is mounted.
 */
static bool find_dir(struct sv mountinfo, struct sv self, const char *name, char *ret_dir,
		     char *ret_parent)
{
	struct sv own = SV(""), path, root, point;
	const bool there = own_path(self, name, &own);
	bool mounted = false;
	size_t n;

	while (mountinfo.n) {
		if (!parse_mount(sv_cut(&mountinfo, '\n'), name, &root, &point))
			continue;
		mounted = true;
		if (!there)
			break;
		path = own;
		n = point.n;
		if (!path_below(&path, root) || n + path.n >= CGROUP_PATH)
			continue;
		memcpy(ret_dir, point.p, n);
		memcpy(ret_dir + n, path.p, path.n);
		ret_dir[n + path.n] = 0;
		if (ret_parent && path.n) {
			n += sv_rfind(path, '/');
			memcpy(ret_parent, ret_dir, n);
			ret_parent[n] = 0;
		}
		break;
	}
	return mounted;
}

void facts_cgroup_places_parse(struct sv mountinfo, struct sv self, struct cgroup_places *ret_p)
{
	bool v1 = false, v2;

	*ret_p = (struct cgroup_places){ 0 };
	v2 = find_dir(mountinfo, self, NULL, ret_p->own, ret_p->parent);
	for (size_t i = 0; i < V1_COUNT; i++)
		/* Ignore the freezer when choosing the version: it limits nothing. */
		v1 = (find_dir(mountinfo, self, v1_names[i], ret_p->v1[i], NULL) &&
		      i != V1_FREEZER) ||
		     v1;
	ret_p->version = v1 ? (v2 ? CGROUP_HYBRID : CGROUP_V1) : v2 ? CGROUP_V2 : CGROUP_NONE;
}

int facts_cgroup_places_of(const char *path, struct cgroup_places *ret_p, struct writ_err *err)
{
	scoped_buf mounts = BUF_INIT((size_t)4 << 20), self = BUF_INIT((size_t)64 << 10);
	int r;

	if ((r = fd_read_file("/proc/self/mountinfo", &mounts, err)) < 0 ||
	    (r = fd_read_file(path, &self, err)) < 0)
		return r;
	facts_cgroup_places_parse(buf_view(&mounts), buf_view(&self), ret_p);
	return 0;
}

int facts_cgroup_places_read(struct cgroup_places *ret_p, struct writ_err *err)
{
	return facts_cgroup_places_of("/proc/self/cgroup", ret_p, err);
}
