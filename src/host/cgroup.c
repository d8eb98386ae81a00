#include "host/cgroup.h"

#include <string.h>

#include "base/fd.h"
#include "host/facts.h"

#include "base/banned.h"

static const char *const v1_names[V1_COUNT] = { "memory", "pids", "cpu", "freezer" };

/* Our own path in the unified hierarchy, or in that of controller @name. */
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

/* A line of mountinfo as far as we need it; false if it is not of the kind of @name. */
static bool parse_mount(struct sv line, const char *name, struct sv *ret_root, struct sv *ret_point)
{
	struct sv type;

	for (int i = 0; i < 3; i++) /* id, parent, device */
		(void)sv_cut(&line, ' ');
	*ret_root = sv_cut(&line, ' ');
	*ret_point = sv_cut(&line, ' ');
	while (line.n && !sv_is(sv_cut(&line, ' '), "-"))
		;
	type = sv_cut(&line, ' ');
	(void)sv_cut(&line, ' '); /* source */
	/* A backslash stands for a blank or a newline: nobody mounts cgroups there. */
	if (!sv_starts(*ret_point, SV("/")) || sv_find(*ret_point, '\\') != SIZE_MAX)
		return false;
	return name ? sv_is(type, "cgroup") && sv_has_word(line, ',', sv_from(name))
		    : sv_is(type, "cgroup2");
}

/* Cuts from @path what lies above a mount that shows only the part below @root. */
static bool path_below(struct sv *path, struct sv root)
{
	if (!sv_is(root, "/")) {
		if (!sv_starts(*path, root))
			return false;
		*path = sv_skip(*path, root.n);
	}
	if (sv_is(*path, "/"))
		*path = SV("");
	/* "/.." begins the path of a cgroup outside our namespace. */
	return path->n == 0 || (path->p[0] == '/' && !sv_has_word(*path, '/', SV("..")));
}

/* Fills @ret_dir, and @ret_parent if it is not NULL. True if anything of that kind is mounted. */
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

void cgroup_places_parse(struct sv mountinfo, struct sv self, struct cgroup_places *ret_p)
{
	bool v1 = false, v2;

	*ret_p = (struct cgroup_places){ 0 };
	v2 = find_dir(mountinfo, self, NULL, ret_p->own, ret_p->parent);
	for (size_t i = 0; i < V1_COUNT; i++)
		/* A freezer alone limits nothing. */
		v1 = (find_dir(mountinfo, self, v1_names[i], ret_p->v1[i], NULL) &&
		      i != V1_FREEZER) ||
		     v1;
	ret_p->version = v1 ? (v2 ? CGROUP_HYBRID : CGROUP_V1) : v2 ? CGROUP_V2 : CGROUP_NONE;
}

int cgroup_places_read(struct cgroup_places *ret_p, struct writ_err *err)
{
	scoped_buf mounts = BUF_INIT((size_t)4 << 20);
	scoped_buf self = BUF_INIT((size_t)64 << 10);
	int r = fd_read_file("/proc/self/mountinfo", &mounts, err);

	if (r == 0)
		r = fd_read_file("/proc/self/cgroup", &self, err);
	if (r == 0)
		cgroup_places_parse(buf_view(&mounts), buf_view(&self), ret_p);
	return r;
}
