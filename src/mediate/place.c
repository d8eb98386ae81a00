#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"

/*
 * From a path as the target means it to a directory we hold and one name in it.
 * The target's root is the root, its directory is where it starts; magic links are
 * never followed, and nothing is opened but with O_PATH.
 */

enum { DIR_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC };

void place_clear(struct place *p)
{
	scope_close(&p->dir);
	p->dir = -1;
}

bool path_of_fd(struct mediator *m, int fd, char to[PATH_MAX], size_t *ret_n)
{
	char name[16];
	ssize_t n;

	(void)snprintf(name, sizeof(name), "%d", fd);
	n = readlinkat(m->self, name, to, PATH_MAX);
	if (n <= 0 || n >= PATH_MAX)
		return false;
	to[n] = 0;
	*ret_n = (size_t)n;
	return true;
}

int reopen(struct mediator *m, int fd, int flags)
{
	char name[16];
	int got;

	(void)snprintf(name, sizeof(name), "%d", fd);
	got = openat(m->self, name, flags | O_NOCTTY | O_CLOEXEC);
	return got < 0 ? -errno : got;
}

/*
 * SECURITY: a directory of a mount that was taken away still has a path, counted
 * from that mount's root, and could be shaped like one that may be written. And a
 * directory that a mount was put over is reached by its name, not from below.
 */
static bool to_top(struct call *c, struct place *p)
{
	const struct open_how how = { .flags = DIR_FLAGS,
				      .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	struct stat here, there;
	scoped_fd fd = (int)syscall(SYS_openat2, task_root(c), p->n > 1 ? p->path + 1 : ".", &how,
				    sizeof(how));

	if (fd < 0 || fstat(fd, &there) < 0 || fstat(p->dir, &here) < 0 ||
	    here.st_dev != there.st_dev || here.st_ino != there.st_ino)
		return false;
	scope_close(&p->dir);
	p->dir = take_fd(&fd);
	return true;
}

bool mounts_changed(const struct mediator *m)
{
	return m->revoked || m->set.caps.n > m->policy_caps;
}

/* Fills path from dir and name; dir may become another one. */
static int place_path(struct call *c, struct place *p)
{
	const size_t name_n = strlen(p->name);

	if (!path_of_fd(c->m, p->dir, p->path, &p->n))
		return -ENAMETOOLONG;
	if (p->path[0] != '/' || (mounts_changed(c->m) && !to_top(c, p)))
		return -EACCES;
	if (name_n == 0)
		return 0;
	if (p->n + name_n + 2 > PATH_MAX)
		return -ENAMETOOLONG;
	if (p->n > 1)
		p->path[p->n++] = '/';
	memcpy(p->path + p->n, p->name, name_n + 1);
	p->n += name_n;
	return 0;
}

int place_in(struct call *c, int dir, const char *name, struct place *ret)
{
	const size_t n = strlen(name);
	int r;

	ret->slash = ret->dotdot = false;
	ret->dir = n > NAME_MAX ? -1 : fcntl(dir, F_DUPFD_CLOEXEC, 3);
	if (ret->dir < 0)
		return n > NAME_MAX ? -ENAMETOOLONG : -errno;
	memcpy(ret->name, name, n + 1);
	r = place_path(c, ret);
	if (r < 0)
		place_clear(ret);
	return r;
}

static int open_how(int dir, const char *path, uint64_t resolve)
{
	const struct open_how how = { .flags = DIR_FLAGS, .resolve = resolve };
	const long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

/* --- The slow way: name by name --- */

struct walk {
	int at; /* owned */
	int links;
	char rest[PATH_MAX];
};

static bool same_dir(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

static void step_to(struct walk *w, int fd)
{
	scope_close(&w->at);
	w->at = fd;
}

/* @fd is a symbolic link: its text goes before what is left. */
static int walk_link(struct call *c, struct walk *w, int fd)
{
	char text[PATH_MAX];
	const ssize_t n = readlinkat(fd, "", text, sizeof(text));
	const size_t left = strlen(w->rest);
	int root;

	if (n < 0)
		return -errno;
	if (n == 0)
		return -ENOENT;
	if (++w->links > LINKS_MAX)
		return -ELOOP;
	if ((size_t)n + left + 2 > PATH_MAX)
		return -ENAMETOOLONG;
	memmove(w->rest + n + 1, w->rest, left + 1);
	memcpy(w->rest, text, (size_t)n);
	w->rest[n] = '/';
	if (text[0] != '/')
		return 0;
	root = task_root(c);
	root = root < 0 ? root : fcntl(root, F_DUPFD_CLOEXEC, 3);
	if (root < 0)
		return -EACCES;
	step_to(w, root);
	return 0;
}

/* True and the next name in @name, false at the end. */
static int next_name(struct walk *w, char name[NAME_MAX + 1])
{
	size_t skip = strspn(w->rest, "/");
	const size_t n = strcspn(w->rest + skip, "/");

	if (n == 0)
		return 0;
	if (n > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, w->rest + skip, n);
	name[n] = 0;
	skip += n;
	memmove(w->rest, w->rest + skip, strlen(w->rest + skip) + 1);
	return 1;
}

static int walk_step(struct call *c, struct walk *w, const char *name)
{
	struct stat st;
	int fd;

	if (strcmp(name, ".") == 0)
		return 0;
	if (strcmp(name, "..") == 0) {
		const int root = task_root(c);

		if (root < 0)
			return root;
		if (same_dir(w->at, root))
			return 0;
	}
	fd = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0) {
		scope_close(&fd);
		return -EACCES;
	}
	if (S_ISLNK(st.st_mode)) {
		/* SECURITY: a link of procfs may lead anywhere, whatever it says. */
		const int r = device_is_plain(c->m, fd, st.st_dev) ? walk_link(c, w, fd) : -EACCES;

		scope_close(&fd);
		return r;
	}
	if (!S_ISDIR(st.st_mode)) {
		scope_close(&fd);
		return -ENOTDIR;
	}
	step_to(w, fd);
	return 0;
}

static int walk_dir(struct call *c, int base, const char *path, int links)
{
	struct walk w = { .at = fcntl(base, F_DUPFD_CLOEXEC, 3), .links = links };
	char name[NAME_MAX + 1];
	int r;

	if (w.at < 0)
		return -EMFILE;
	(void)snprintf(w.rest, sizeof(w.rest), "%s", path);
	for (;;) {
		r = next_name(&w, name);
		if (r <= 0)
			break;
		r = walk_step(c, &w, name);
		if (r < 0)
			break;
	}
	if (r == 0)
		return w.at;
	scope_close(&w.at);
	return r;
}

/* --- The quick way: the kernel's own walk where it means the same --- */

static bool has_dotdot(const char *path)
{
	for (const char *p = path; (p = strstr(p, "..")); p += 2)
		if ((p == path || p[-1] == '/') && (p[2] == '/' || p[2] == 0))
			return true;
	return false;
}

/* @path leads to a directory; relative to @base, or to the target's root if absolute. */
static int open_dir(struct call *c, int base, const char *path, int links)
{
	int root, fd;

	if (path[0] == '/') {
		root = task_root(c);
		if (root < 0)
			return root;
		path += strspn(path, "/");
		if (*path == 0)
			path = ".";
		fd = open_how(root, path, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
		base = root;
	} else if (!c->m->opt.own_mounts) {
		fd = open_how(base, path, RESOLVE_NO_MAGICLINKS);
	} else if (!has_dotdot(path)) {
		fd = open_how(base, path, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
		if (fd == -ELOOP)
			fd = -EAGAIN;
	} else {
		fd = -EAGAIN;
	}
	if (fd != -EAGAIN && fd != -ENOSYS)
		return fd;
	return walk_dir(c, base, path, links);
}

/* Splits @path, which is relative to @base if it is relative. */
static int find_from(struct call *c, int base, const char *path, int links, struct place *ret)
{
	char dir[PATH_MAX];
	size_t n = strlen(path), end, start;
	int fd;

	for (end = n; end > 0 && path[end - 1] == '/'; end--)
		;
	for (start = end; start > 0 && path[start - 1] != '/'; start--)
		;
	ret->slash = end < n;
	ret->dotdot = end - start == 2 && path[start] == '.' && path[start + 1] == '.';
	if (ret->dotdot || end == 0 || (end - start == 1 && path[start] == '.')) {
		ret->name[0] = 0;
		ret->slash = true;
		start = n;
	} else {
		if (end - start > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(ret->name, path + start, end - start);
		ret->name[end - start] = 0;
	}
	memcpy(dir, path, start);
	dir[start] = 0;
	fd = open_dir(c, base, start ? dir : ".", links);
	if (fd < 0)
		return fd;
	scope_close(&ret->dir);
	ret->dir = fd;
	return place_path(c, ret);
}

/* A name in the directory the target stands in needs no walk. */
static int find_here(struct call *c, int base, const char *path, struct place *ret)
{
	ret->dir = base;
	if (strlen(path) > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(ret->name, path, strlen(path) + 1);
	ret->slash = ret->dotdot = false;
	return place_path(c, ret);
}

/* A directory that the target holds open. */
static int take_dir(struct call *c, int number)
{
	int fd = task_own_fd(c, number);
	struct stat st;
	char name[32];

	if (fd == -ENOSYS) {
		(void)snprintf(name, sizeof(name), "fd/%d", number);
		fd = task_open(c, name, O_DIRECTORY);
		return fd == -ENOENT ? -EBADF : fd;
	}
	if (fd < 0 || (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)))
		return fd;
	scope_close(&fd);
	return -ENOTDIR;
}

/*
 * The last look at the target's own state: everything later is ours. SECURITY: if
 * it waits still, all we read was its own and no successor's.
 */
static int base_of(struct call *c, int dirfd, const char *path)
{
	int base;

	if (path[0] == '/')
		base = task_root(c);
	else if (dirfd == AT_FDCWD)
		base = task_open(c, "cwd", O_DIRECTORY);
	else
		base = dirfd < 0 ? -EBADF : take_dir(c, dirfd);
	/* As root the walk is done without the rights that opening /proc needs. */
	if (base >= 0 && c->m->is_root && (task_root(c) < 0 || task_status(c) < 0)) {
		if (path[0] != '/')
			scope_close(&base);
		base = -EACCES;
	}
	if (base >= 0 && !notify_valid(c->listener, c->id)) {
		if (path[0] != '/')
			scope_close(&base);
		return ANSWER_GONE;
	}
	return base;
}

int place_find(struct call *c, int dirfd, const char *path, struct place *ret)
{
	const bool absolute = path[0] == '/';
	const bool plain = !absolute && !strchr(path, '/') && strcmp(path, ".") != 0 &&
			   strcmp(path, "..") != 0;
	scoped_as as = { 0 };
	int base, r;

	ret->dir = -1;
	if (path[0] == 0)
		return -ENOENT;
	base = base_of(c, dirfd, path);
	if (base < 0)
		return base;
	if (plain) {
		r = find_here(c, base, path, ret);
	} else {
		r = as_begin(c, &as);
		if (r == 0)
			r = find_from(c, base, path, 0, ret);
		if (!absolute)
			scope_close(&base);
	}
	if (r < 0)
		place_clear(ret);
	return r;
}

static const char *const fd_heads[] = { "/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/",
					NULL };

/* "/proc/self/fd/7/a/b" is "a/b" from descriptor 7. The number and "a/b", or -1. */
static int below_own_fd(const char *path, const char **ret_rest)
{
	for (size_t i = 0; fd_heads[i]; i++) {
		struct sv rest = sv_from(path);
		uint64_t n;

		if (!sv_starts(rest, sv_from(fd_heads[i])))
			continue;
		rest = sv_skip(rest, strlen(fd_heads[i]));
		if (!sv_to_u64(sv_cut(&rest, '/'), INT_MAX, &n))
			return -1;
		while (sv_starts(rest, SV("/")))
			rest = sv_skip(rest, 1);
		*ret_rest = rest.p;
		return rest.n ? (int)n : -1;
	}
	return -1;
}

/*
 * Semaphores and shared memory have names in a directory of the whole machine. Where the
 * session has no mounts, they get them in one of its own.
 */
static int lead_shm(const struct mediator *m, char text[static PATH_MAX])
{
	static const struct sv dir = SV_INIT("/dev/shm/");
	char name[NAME_MAX + 1];
	struct sv rest = sv_from(text);
	int n;

	if (m->opt.shm.n == 0 || !sv_starts(rest, dir))
		return 0;
	rest = sv_skip(rest, dir.n);
	if (rest.n == 0 || rest.n > NAME_MAX || sv_find(rest, '/') != SIZE_MAX || sv_is(rest, ".."))
		return 0;
	memcpy(name, rest.p, rest.n);
	name[rest.n] = 0;
	n = snprintf(text, PATH_MAX, SV_FMT "/%s", SV_ARG(m->opt.shm), name);
	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int place_text(struct call *c, int dirfd, unsigned buf, struct place *ret)
{
	const char *rest;
	const int own = below_own_fd(c->text[buf], &rest);

	ret->dir = -1;
	if (own >= 0) {
		const int r = place_find(c, own, rest, ret);

		return r == -EBADF ? -ENOENT : r;
	}
	if (lead_shm(c->m, c->text[buf]) < 0)
		return -ENAMETOOLONG;
	/* What /proc/self is depends on who looks, so we do not. */
	if (sv_starts(sv_from(c->text[buf]), SV("/proc/")))
		return ANSWER_CONTINUE;
	return place_find(c, dirfd, c->text[buf], ret);
}

int place_arg(struct call *c, int dirfd, unsigned i, unsigned buf, struct place *ret)
{
	const int n = task_text(c, c->arg[i], c->text[buf]);

	ret->dir = -1;
	return n < 0 ? n : place_text(c, dirfd, buf, ret);
}

int place_follow(struct call *c, struct place *p, int *links)
{
	char text[PATH_MAX];
	const bool slash = p->slash;
	const ssize_t n = readlinkat(p->dir, p->name, text, sizeof(text) - 2);
	int dir, r;

	if (n < 0)
		return -errno;
	if (n == 0)
		return -ENOENT;
	if (n >= PATH_MAX - 2)
		return -ENAMETOOLONG;
	if (++*links > LINKS_MAX)
		return -ELOOP;
	text[n] = 0;
	dir = p->dir;
	p->dir = -1;
	r = find_from(c, dir, text, *links, p);
	scope_close(&dir);
	p->slash = p->slash || slash;
	return r;
}

/*
 * SECURITY: a place that is left to the kernel is returned as it is, before its
 * last name is looked at: a link in procfs would be ours, not the target's.
 */
int place_object(struct call *c, struct place *p, bool follow, struct stat *ret_st)
{
	int links = 0;

	for (;;) {
		struct stat st;
		int r, fd = openat(p->dir, p->name[0] ? p->name : ".",
				   O_PATH | O_NOFOLLOW | O_CLOEXEC);

		if (fd < 0)
			return -errno;
		if (fstat(fd, &st) < 0) {
			r = -errno;
			scope_close(&fd);
			return r;
		}
		if (!S_ISLNK(st.st_mode) || (!follow && !p->slash)) {
			if (p->slash && !S_ISDIR(st.st_mode)) {
				scope_close(&fd);
				return -ENOTDIR;
			}
			*ret_st = st;
			return fd;
		}
		scope_close(&fd);
		r = place_follow(c, p, &links);
		if (r < 0)
			return r;
		if (is_left_to_kernel(c->m, p))
			return ANSWER_CONTINUE;
	}
}

int own_fd_text(const char *path)
{
	struct sv s = sv_from(path);
	uint64_t n;

	if (sv_is(s, "/dev/stdin"))
		return 0;
	if (sv_is(s, "/dev/stdout"))
		return 1;
	if (sv_is(s, "/dev/stderr"))
		return 2;
	for (size_t i = 0; fd_heads[i]; i++)
		if (sv_starts(s, sv_from(fd_heads[i])) &&
		    sv_to_u64(sv_skip(s, strlen(fd_heads[i])), INT_MAX, &n))
			return (int)n;
	return -1;
}

bool place_exists(const struct place *p)
{
	struct stat st;

	return fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A trailing slash means something to the kernel, so it gets one. */
const char *place_act_name(struct place *p)
{
	const size_t n = strlen(p->name);

	if (p->slash && n && n <= NAME_MAX && p->name[n - 1] != '/') {
		p->name[n] = '/';
		p->name[n + 1] = 0;
	}
	return p->name;
}

struct sv place_folder(const struct place *p)
{
	return sv_sub(place_sv(p), 0, sv_rfind(place_sv(p), '/'));
}
