#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mediate/creds_priv.h"
#include "mediate/place_priv.h"

#include "base/banned.h"

/*
 * Resolves a path of the caller to an open directory and one name in it. An absolute path starts at
 * the caller's root, a relative path at the caller's directory. The lookup never follows magic
 * links of procfs, and opens directories and links with O_PATH only.
 */

enum { DIR_FLAGS = O_PATH | O_DIRECTORY };

void place_clear(struct place *p)
{
	fd_scope_close(&p->dir);
	p->dir = -1;
}

/*
 * True if @path is what the kernel reports for an object that no longer lies below the root of its
 * mount, because the host moved a directory out of a granted tree. SECURITY: the kernel reports "/"
 * for each such object. Only the root directory has that path.
 */
static bool is_outside_mount(struct mediator *m, int fd, struct sv path)
{
	if (sv_is(path, "/ (deleted)"))
		return true;
	return sv_is(path, "/") && !mediate_same_file(fd, m->opt.own_mounts ? m->jail : m->root);
}

bool mediate_path_of_fd(struct mediator *m, int fd, char to[PATH_MAX], size_t *ret_n)
{
	char name[16];
	ssize_t n;

	(void)snprintf(name, sizeof(name), "%d", fd);
	n = readlinkat(m->self, name, to, PATH_MAX);
	errno = n >= PATH_MAX ? ENAMETOOLONG : EACCES;
	if (n <= 0 || n >= PATH_MAX || is_outside_mount(m, fd, (struct sv){ to, (size_t)n }))
		return false;
	to[n] = 0;
	*ret_n = (size_t)n;
	return true;
}

int mediate_reopen(struct mediator *m, int fd, int flags)
{
	char name[16];
	int got;

	(void)snprintf(name, sizeof(name), "%d", fd);
	got = openat(m->self, name, flags | O_NOCTTY | O_CLOEXEC);
	return got < 0 ? -errno : got;
}

int mediate_openat2(int dir, const char *path, int flags, uint64_t resolve)
{
	const struct open_how how = { .flags = (unsigned)flags | O_CLOEXEC, .resolve = resolve };
	const long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

bool mediate_same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/*
 * Opens the directory @p->dir again by its path from the caller's root. Returns false if this gives
 * another directory. SECURITY: a directory of a detached mount still reports a path, relative to
 * the root of that mount. A caller that kept such a directory open could make it report the path of
 * a writable directory. If a mount was attached over a directory, a descriptor of that directory
 * leads below the mount, and only the name leads to the mount.
 */
static bool reopen_topmost(struct call *c, struct place *p)
{
	scoped_fd fd = mediate_openat2(task_root(c), p->n > 1 ? p->path + 1 : ".", DIR_FLAGS,
				       RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd < 0 || !mediate_same_file(fd, p->dir))
		return false;
	fd_scope_close(&p->dir);
	p->dir = fd_take(&fd);
	return true;
}

bool mediate_mounts_changed(const struct mediator *m)
{
	return m->rules.revoked || m->rules.set.caps.n > m->rules.policy_caps;
}

/*
 * Fills @p->path from the directory and the name. After mounts changed, replaces @p->dir by the
 * topmost directory with the same path. Returns 0 or -errno.
 */
static int place_path(struct call *c, struct place *p)
{
	const size_t name_n = strlen(p->name);

	if (!mediate_path_of_fd(c->m, p->dir, p->path, &p->n))
		return -errno;
	if (p->path[0] != '/' || (mediate_mounts_changed(c->m) && !reopen_topmost(c, p)))
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

/* Fills @p for the single name @name in @dir. Takes ownership of @dir. */
static int place_name(struct call *c, int dir, const char *name, struct place *ret)
{
	const size_t n = strlen(name);

	ret->dir = dir;
	if (n > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(ret->name, name, n + 1);
	ret->slash = ret->dotdot = false;
	return place_path(c, ret);
}

int place_child(struct call *c, int dir, const char *name, struct place *ret)
{
	int r;

	ret->dir = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	if (ret->dir < 0)
		return -errno;
	r = place_name(c, ret->dir, name, ret);
	if (r < 0)
		place_clear(ret);
	return r;
}

/* --- Slow resolution: name by name --- */

struct walk {
	int at; /* descriptor of the current directory of the walk, owned */
	int links;
	char rest[PATH_MAX];
};

static void step_to(struct walk *w, int fd)
{
	fd_scope_close(&w->at);
	w->at = fd;
}

/* Prepends the target of the symbolic link @fd to the remaining path of the walk. */
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

/* Moves the next component of the path to @name. Returns 1, 0 at the end of the path, or -errno. */
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
	scoped_fd fd = -1;

	if (strcmp(name, ".") == 0)
		return 0;
	if (strcmp(name, "..") == 0) {
		const int root = task_root(c);

		if (root < 0)
			return root;
		if (mediate_same_file(w->at, root))
			return 0;
	}
	fd = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -EACCES;
	/* SECURITY: a magic link of procfs leads to its object, whatever its text says. */
	if (S_ISLNK(st.st_mode))
		return mediate_device_is_plain(c->m, fd, st.st_dev) ? walk_link(c, w, fd) : -EACCES;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	step_to(w, fd_take(&fd));
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
	fd_scope_close(&w.at);
	return r;
}

/* --- Fast resolution: by openat2() where it gives the same result --- */

static bool has_dotdot(const char *path)
{
	for (const char *p = path; (p = strstr(p, "..")); p += 2)
		if ((p == path || p[-1] == '/') && (p[2] == '/' || p[2] == 0))
			return true;
	return false;
}

/*
 * Opens the directory @path, relative to @base, or to the caller's root if @path is absolute. Uses
 * the kernel's own lookup where it cannot leave the caller's root: for an absolute path with
 * RESOLVE_IN_ROOT, in a session on the host's root, and for a path with neither links nor "..".
 * Resolves any other path name by name.
 */
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
		fd = mediate_openat2(root, path, DIR_FLAGS,
				     RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
		base = root;
	} else if (!c->m->opt.own_mounts) {
		fd = mediate_openat2(base, path, DIR_FLAGS, RESOLVE_NO_MAGICLINKS);
	} else if (!has_dotdot(path)) {
		fd = mediate_openat2(base, path, DIR_FLAGS,
				     RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
		if (fd == -ELOOP)
			fd = -EAGAIN;
	} else {
		fd = -EAGAIN;
	}
	if (fd != -EAGAIN && fd != -ENOSYS)
		return fd;
	return walk_dir(c, base, path, links);
}

/*
 * Splits @path, relative to @base, into directory and last name, opens the directory and fills
 * @ret. Returns 0 or -errno.
 */
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
	fd_scope_close(&ret->dir);
	ret->dir = fd;
	return place_path(c, ret);
}

/* Duplicates the caller's descriptor of a directory. Returns a descriptor or -errno. */
static int take_dir(struct call *c, int number)
{
	scoped_fd fd = task_dup_thread_fd(c, number);
	struct stat st;
	char name[32];
	int r;

	if (fd == -ENOSYS) {
		(void)snprintf(name, sizeof(name), "fd/%d", number);
		r = task_open(c, name, O_DIRECTORY);
		return r == -ENOENT ? -EBADF : r;
	}
	if (fd < 0 || (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)))
		return fd_take(&fd);
	return -ENOTDIR;
}

/*
 * Opens the directory where @path starts. This is the last access of the lookup to state that the
 * caller can change. SECURITY: if the notification is still valid afterwards, everything that the
 * mediator has read so far belongs to this caller, and not to a later process with the same id.
 */
static int open_base(struct call *c, int dirfd, const char *path)
{
	int base;

	if (path[0] == '/')
		base = task_root(c);
	else if (dirfd == AT_FDCWD)
		base = task_open(c, "cwd", O_DIRECTORY);
	else
		base = dirfd < 0 ? -EBADF : take_dir(c, dirfd);
	/*
	 * A mediator of root resolves paths without capabilities, but needs capabilities to open
	 * the caller's /proc entries. Open the entries that the lookup and creds_enter() will need
	 * now.
	 */
	if (base >= 0 && c->m->is_root && (task_root(c) < 0 || task_status(c) < 0)) {
		if (path[0] != '/')
			fd_scope_close(&base);
		base = -EACCES;
	}
	if (base >= 0 && !notify_valid(c->listener, c->id)) {
		if (path[0] != '/')
			fd_scope_close(&base);
		return ANSWER_GONE;
	}
	return base;
}

int place_find(struct call *c, int dirfd, const char *path, struct place *ret)
{
	const bool absolute = path[0] == '/';
	const bool plain = !absolute && !strchr(path, '/') && strcmp(path, ".") != 0 &&
			   strcmp(path, "..") != 0;
	scoped_creds creds = { 0 };
	int base, r;

	ret->dir = -1;
	if (path[0] == 0)
		return -ENOENT;
	base = open_base(c, dirfd, path);
	if (base < 0)
		return base;
	if (plain) {
		/* A single name in the caller's directory needs no lookup of a directory. */
		r = place_name(c, base, path, ret);
	} else {
		r = creds_enter(c, &creds);
		if (r == 0)
			r = find_from(c, base, path, 0, ret);
		if (!absolute)
			fd_scope_close(&base);
	}
	if (r < 0)
		place_clear(ret);
	return r;
}

static const char *const fd_heads[] = { "/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/",
					NULL };

/*
 * Parses "/proc/self/fd/7/a/b" and the like, which means "a/b" relative to descriptor 7. Returns
 * the number of the descriptor and stores "a/b" in *@ret_rest. Returns -1 for other paths, and if
 * no name follows.
 */
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
 * Rewrites "/dev/shm/NAME" to NAME in mediate_options.shm. POSIX semaphores and shared memory live
 * in one directory of the whole machine; a session without its own mounts gets a private directory
 * instead.
 */
static int redirect_shm(const struct mediator *m, char text[static PATH_MAX])
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

int place_from_text(struct call *c, int dirfd, unsigned buf, struct place *ret)
{
	const char *rest;
	const int own = below_own_fd(c->text[buf], &rest);

	ret->dir = -1;
	if (own >= 0) {
		const int r = place_find(c, own, rest, ret);

		return r == -EBADF ? -ENOENT : r;
	}
	if (redirect_shm(c->m, c->text[buf]) < 0)
		return -ENAMETOOLONG;
	/* The kernel would resolve /proc/self to the entry of the mediator. */
	if (sv_starts(sv_from(c->text[buf]), SV("/proc/")))
		return ANSWER_CONTINUE;
	return place_find(c, dirfd, c->text[buf], ret);
}

int place_from_arg(struct call *c, unsigned i, unsigned buf, struct place *ret)
{
	const int n = task_read_path(c, c->arg[i], c->text[buf]);

	ret->dir = -1;
	return n < 0 ? n : place_from_text(c, c->dir, buf, ret);
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
	fd_scope_close(&dir);
	p->slash = p->slash || slash;
	return r;
}

/*
 * SECURITY: returns ANSWER_CONTINUE as soon as a link leads to a place that the mediator leaves to
 * the kernel. The mediator does not open the last name there: a magic link in procfs would resolve
 * for the mediator instead of the caller.
 */
int place_open(struct call *c, struct place *p, bool follow, struct stat *ret_st)
{
	int links = 0;

	for (;;) {
		struct stat st;
		scoped_fd fd = openat(p->dir, p->name[0] ? p->name : ".",
				      O_PATH | O_NOFOLLOW | O_CLOEXEC);
		int r;

		if (fd < 0 || fstat(fd, &st) < 0)
			return -errno;
		if (!S_ISLNK(st.st_mode) || (!follow && !p->slash)) {
			if (p->slash && !S_ISDIR(st.st_mode))
				return -ENOTDIR;
			*ret_st = st;
			return fd_take(&fd);
		}
		r = place_follow(c, p, &links);
		if (r < 0)
			return r;
		if (mediate_is_left_to_kernel(c->m, p))
			return ANSWER_CONTINUE;
	}
}

int mediate_parse_own_fd(const char *path)
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

/*
 * Appends the trailing slash of the caller's path to the name again, so that the kernel refuses a
 * name that is not a directory.
 */
const char *place_syscall_name(struct place *p)
{
	const size_t n = strlen(p->name);

	if (p->slash && n && n <= NAME_MAX && p->name[n - 1] != '/') {
		p->name[n] = '/';
		p->name[n + 1] = 0;
	}
	return p->name;
}

struct sv place_parent(const struct place *p)
{
	return sv_sub(place_sv(p), 0, sv_rfind(place_sv(p), '/'));
}
