#include "jail/init/init.h"

#include <asm/stat.h>
#include <linux/mount.h>
#include <linux/openat2.h>

#include "base/banned.h"

enum { OLD_MS_PRIVATE = 1 << 18, OLD_MS_REC = 1 << 14, DETACH = 2 };
enum { S_IFMT_ = 0170000, S_IFDIR_ = 0040000 };
static const char empty_dir[] = "/.empty", empty_file[] = "/.nothing";

/* Never through a symbolic link: names in a program are physical. */
static long open_name(int dir, const char *path)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				      .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };

	if (dir != AT_FDCWD)
		while (*path == '/')
			path++;
	return sys(openat2, dir, *path ? path : ".", &how, sizeof(how));
}

static bool is_dir(int fd)
{
	struct stat st;

	return sys(fstat, fd, &st) == 0 && (st.st_mode & S_IFMT_) == S_IFDIR_;
}

/* Remembers the file system at @path as one of our own making. */
static int own_device(struct init *in, const char *path)
{
	struct stat st;
	const long r = sys(newfstatat, AT_FDCWD, path, &st, 0);

	if (r < 0)
		return (int)r;
	if (in->made_n == sizeof(in->made_dev) / sizeof(in->made_dev[0]))
		return -E2BIG;
	in->made_dev[in->made_n++] = st.st_dev;
	return 0;
}

static bool is_own_device(const struct init *in, uint64_t dev)
{
	for (uint32_t i = 0; i < in->made_n; i++)
		if (in->made_dev[i] == dev)
			return true;
	return false;
}

/* SECURITY: nothing is ever made in a tree of the user's. */
static int make_target(const struct init *in, const char *dst, bool dir)
{
	char parent[JAIL_PATH];
	size_t slash = 0, n = strlen(dst);
	struct stat st;
	long fd, r;

	if (n >= sizeof(parent))
		return -ENAMETOOLONG;
	for (size_t i = 0; i < n; i++)
		if (dst[i] == '/')
			slash = i;
	memcpy(parent, dst, slash);
	parent[slash] = 0;
	fd = open_name(AT_FDCWD, slash ? parent : "/");
	if (fd < 0)
		return (int)fd;
	r = sys(fstat, fd, &st);
	if (r == 0 && !is_own_device(in, st.st_dev))
		r = -EXDEV;
	if (r == 0 && dir)
		r = sys(mkdirat, fd, dst + slash + 1, 0755);
	else if (r == 0)
		r = sys(mknodat, fd, dst + slash + 1, 0100644, 0);
	(void)sys(close, fd);
	return r == -EEXIST ? 0 : (int)r;
}

/* Puts the mount @tree on @dst. */
static int attach(const struct init *in, int tree, const char *dst, uint32_t flags)
{
	long target, r;

	if (flags & JAIL_TARGET) {
		r = make_target(in, dst, is_dir(tree));
		if (r < 0)
			return (int)r;
	}
	target = open_name(AT_FDCWD, dst);
	if (target < 0)
		return (int)target;
	r = sys(move_mount, tree, "", target, "",
		MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	(void)sys(close, target);
	return (int)r;
}

/* @src of @from (the old root, or AT_FDCWD for our own) at @dst. */
static int bind(const struct init *in, int from, const char *src, const char *dst, uint64_t attr,
		uint32_t flags)
{
	struct mount_attr set = { .attr_set = attr, .propagation = OLD_MS_PRIVATE };
	const long fd = open_name(from, src);
	long tree, r;

	if (fd < 0)
		return (fd == -ENOENT || fd == -ENOTDIR) && (flags & JAIL_OPTIONAL) ? 0 : (int)fd;
	tree = sys(open_tree, fd, "",
		   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
	(void)sys(close, fd);
	if (tree < 0)
		return (int)tree;
	r = sys(mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &set, sizeof(set));
	if (r == 0)
		r = attach(in, (int)tree, dst, flags);
	(void)sys(close, tree);
	return (int)r;
}

static int mask(const struct init *in, const char *dst, uint32_t flags)
{
	const uint64_t attr =
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	const long fd = open_name(AT_FDCWD, dst);
	bool dir;

	if (fd < 0)
		return fd == -ENOENT && (flags & JAIL_OPTIONAL) ? 0 : (int)fd;
	dir = is_dir((int)fd);
	(void)sys(close, fd);
	return bind(in, AT_FDCWD, dir ? empty_dir : empty_file, dst, attr, 0);
}

/* A new file system of @type with "key=value,key" options, mounted at @dst. */
static int fresh(const struct init *in, const char *type, const char *options, const char *dst,
		 uint64_t attr, uint32_t flags)
{
	const long fs = sys(fsopen, type, FSOPEN_CLOEXEC);
	char word[64], *value;
	long r = 0, fd;

	if (fs < 0)
		return (int)fs;
	while (r == 0 && *options) {
		size_t n = 0;

		value = NULL;
		for (; *options && *options != ',' && n + 1 < sizeof(word); options++, n++) {
			word[n] = *options;
			if (*options == '=' && !value) {
				word[n] = 0;
				value = word + n + 1;
			}
		}
		word[n] = 0;
		if (*options == ',')
			options++;
		r = value ? sys(fsconfig, fs, FSCONFIG_SET_STRING, word, value, 0)
			  : sys(fsconfig, fs, FSCONFIG_SET_FLAG, word, 0, 0);
	}
	if (r == 0)
		r = sys(fsconfig, fs, FSCONFIG_CMD_CREATE, 0, 0, 0);
	fd = r == 0 ? sys(fsmount, fs, FSMOUNT_CLOEXEC, attr) : r;
	(void)sys(close, fs);
	if (fd < 0)
		return (int)fd;
	r = attach(in, (int)fd, dst, flags);
	(void)sys(close, fd);
	return (int)r;
}

static int make_file(const char *dst, const void *bytes, uint32_t n, uint32_t mode)
{
	const long fd = sys(openat, AT_FDCWD, dst,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	long r;

	if (fd < 0)
		return (int)fd;
	r = n ? sys(write, fd, bytes, n) : 0;
	(void)sys(close, fd);
	return r == (long)n ? 0 : r < 0 ? (int)r : -EIO;
}

static int carry_out(struct init *in, const struct jail_mount *m)
{
	const uint64_t quiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	const char *src = span_at(in->p, m->src), *dst = span_at(in->p, m->dst);
	long r;

	switch ((enum jail_op)m->op) {
	case JAIL_OP_DIR:
		r = sys(mkdirat, AT_FDCWD, dst, m->arg);
		return r == -EEXIST ? 0 : (int)r;
	case JAIL_OP_FILE:
		return make_file(dst, src, m->src.n, (uint32_t)m->arg);
	case JAIL_OP_LINK:
		return (int)sys(symlinkat, src, AT_FDCWD, dst);
	case JAIL_OP_BIND:
		return bind(in, in->old_root, src, dst, m->arg, m->flags);
	case JAIL_OP_SELF:
		return bind(in, AT_FDCWD, src, dst, m->arg, m->flags);
	case JAIL_OP_TMPFS:
		r = fresh(in, "tmpfs", src, dst, quiet | m->arg, m->flags);
		return r < 0 ? (int)r : own_device(in, dst);
	case JAIL_OP_PROC:
		return fresh(in, "proc", src, dst, quiet | MOUNT_ATTR_NOEXEC, m->flags);
	case JAIL_OP_DEVPTS:
		return fresh(in, "devpts", src, dst, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
			     m->flags);
	case JAIL_OP_MASK:
		return mask(in, dst, m->flags);
	case JAIL_OP_NONE:
	case JAIL_OP_COUNT:
		break;
	}
	return -EINVAL;
}

/* A skeleton of our own becomes /, the host's root stays at /.old for a moment. */
static int pivot(struct init *in, struct writ_err *err)
{
	static const char *const places[] = { "/tmp", "/proc", "/usr", NULL };
	long r = sys(mount, 0, "/", 0, OLD_MS_REC | OLD_MS_PRIVATE, 0);

	if (r < 0)
		return init_fail(err, r, "make mounts private", NULL);
	r = -ENOENT;
	for (size_t i = 0; places[i] && r == -ENOENT; i++) {
		r = sys(mount, "writ", places[i], "tmpfs", 0, "mode=0755,size=16m");
		if (r == 0)
			r = sys(chdir, places[i]);
	}
	if (r < 0)
		return init_fail(err, r, "mount the new root", NULL);
	r = sys(mkdirat, AT_FDCWD, ".old", 0700);
	if (r == 0)
		r = sys(pivot_root, ".", ".old");
	if (r == 0)
		r = sys(chdir, "/");
	if (r == 0)
		r = sys(openat, AT_FDCWD, "/.old", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (r < 0)
		return init_fail(err, r, "pivot_root", NULL);
	in->old_root = (int)r;
	r = own_device(in, "/");
	if (r == 0)
		r = sys(mkdirat, AT_FDCWD, empty_dir, 0555);
	if (r == 0)
		r = make_file(empty_file, "", 0, 0);
	return r < 0 ? init_fail(err, r, "new root", NULL) : 0;
}

int root_build(struct init *in, struct writ_err *err)
{
	const struct mount_attr closed = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
						       MOUNT_ATTR_NODEV };
	const struct jail_mount *m = span_at(in->p, in->p->mounts);
	int r;

	/* Modes in the program are meant as written. */
	(void)sys(umask, 0);
	r = pivot(in, err);
	for (uint32_t i = 0; r == 0 && i < in->p->mounts.n; i++) {
		r = carry_out(in, &m[i]);
		if (r < 0)
			return init_fail(err, r, "set up", span_at(in->p, m[i].dst));
	}
	if (r < 0)
		return r;
	(void)sys(close, in->old_root);
	in->old_root = -1;
	r = (int)sys(umount2, "/.old", DETACH);
	if (r == 0)
		r = (int)sys(unlinkat, AT_FDCWD, "/.old", AT_REMOVEDIR);
	if (r == 0)
		r = (int)sys(mount_setattr, AT_FDCWD, "/", 0, &closed, sizeof(closed));
	return r < 0 ? init_fail(err, r, "close the new root", NULL) : 0;
}
