#include "limit/limit_priv.h"

#include <stdio.h>
#include <string.h>

#include "base/fd.h"

#include "base/banned.h"

static const char *const v1_names[V1_COUNT] = { "memory", "pids", "cpu", "freezer" };

bool word_in(struct sv list, char sep, struct sv word)
{
	while (list.n)
		if (sv_eq(sv_cut(&list, sep), word))
			return true;
	return false;
}

/* Our own path in the unified hierarchy, or in that of controller @name. */
static bool own_path(struct sv self, const char *name, struct sv *ret_path)
{
	while (self.n) {
		struct sv line = sv_cut(&self, '\n');
		const struct sv id = sv_cut(&line, ':');
		const struct sv list = sv_cut(&line, ':');

		if (name ? word_in(list, ',', sv_from(name)) : sv_is(id, "0") && list.n == 0) {
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
	return name ? sv_is(type, "cgroup") && word_in(line, ',', sv_from(name))
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
	return path->n == 0 || (path->p[0] == '/' && !word_in(*path, '/', SV("..")));
}

/* Fills @ret_dir, and @ret_parent if it is not NULL. */
static void find_dir(struct sv mountinfo, struct sv self, const char *name, char *ret_dir,
		     char *ret_parent)
{
	struct sv own, path, root, point;
	size_t n;

	if (!own_path(self, name, &own))
		return;
	while (mountinfo.n) {
		if (!parse_mount(sv_cut(&mountinfo, '\n'), name, &root, &point))
			continue;
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
		return;
	}
}

void cgroup_places_parse(struct sv mountinfo, struct sv self, struct cgroup_places *ret_p)
{
	*ret_p = (struct cgroup_places){ 0 };
	find_dir(mountinfo, self, NULL, ret_p->own, ret_p->parent);
	for (size_t i = 0; i < V1_COUNT; i++)
		find_dir(mountinfo, self, v1_names[i], ret_p->v1[i], NULL);
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

bool cgroup_name_ok(struct sv name)
{
	if (!sv_starts(name, SV("writ-")) || sv_starts(name, SV("writ-probe")) || name.n > 64)
		return false;
	for (size_t i = 5; i < name.n; i++) {
		const char c = name.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '-' || c == '_'))
			return false;
	}
	return name.n > 5;
}

bool keyed_number(struct sv text, struct sv key, uint64_t *ret_v)
{
	while (text.n) {
		struct sv line = sv_cut(&text, '\n');

		if (sv_eq(sv_cut(&line, ' '), key))
			return sv_to_u64(line, UINT64_MAX, ret_v);
	}
	return false;
}
