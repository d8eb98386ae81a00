#include "init/init.h"

#include <asm/stat.h>
#include <linux/mount.h>
#include <linux/openat2.h>

#include "base/banned.h"

/* Flags of mount(2). The flags for read-only, nosuid, nodev and noexec equal MOUNT_ATTR_*. */
enum {
	OLD_MS_REMOUNT = 1 << 5,
	OLD_MS_BIND = 1 << 12,
	OLD_MS_REC = 1 << 14,
	OLD_MS_PRIVATE = 1 << 18,
	DETACH = 2
};
enum { CLOSED = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC };
enum { S_IFMT_ = 0170000, S_IFDIR_ = 0040000 };
/*
 * Directories of which every host has at least one. pid 1 mounts the new root on one of them, and
 * later moves the feed's mount onto one of them in the old root, until the old root is detached.
 */
static const char *const mount_points[] = { "/tmp", "/proc", "/usr", NULL };
static const char masks[] = "/.mask", empty_dir[] = "/.mask/dir", empty_file[] = "/.mask/file";

/* Paths in a program are physical, so a link in one is an error. */
long init_open_name(int dir, const char *path)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				      .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };

	if (dir != AT_FDCWD)
		while (*path == '/')
			path++;
	return sys(openat2, dir, *path ? path : ".", &how, sizeof(how));
}

bool init_is_dir(int fd)
{
	struct stat st;

	return sys(fstat, fd, &st) == 0 && (st.st_mode & S_IFMT_) == S_IFDIR_;
}

/* Records the file system at @path as one that was created for this jail. */
static int add_own_device(struct init *in, const char *path)
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

static void drop_parent(struct init *in)
{
	if (in->parent >= 0)
		(void)sys(close, in->parent);
	in->parent = -1;
}

/* Closes the cached parent directory init.parent if a mount at @dst has covered that directory. */
static void note_mount(struct init *in, const char *dst)
{
	const size_t n = strlen(dst);

	if (memcmp(in->parent_path, dst, n) == 0)
		drop_parent(in);
}

/*
 * Opens the directory of a mount target and caches the descriptor in init.parent. SECURITY: refuses
 * a directory that is not on a file system of this jail. pid 1 never creates anything in a tree of
 * the user.
 */
static int open_parent(struct init *in, const char *dst, size_t n)
{
	struct stat st;
	long fd, r;

	if (n >= sizeof(in->parent_path))
		return -ENAMETOOLONG;
	if (in->parent >= 0 && memcmp(in->parent_path, dst, n) == 0 && in->parent_path[n] == 0)
		return 0;
	drop_parent(in);
	memcpy(in->parent_path, dst, n);
	in->parent_path[n] = 0;
	fd = init_open_name(AT_FDCWD, n ? in->parent_path : "/");
	if (fd < 0)
		return (int)fd;
	in->parent = (int)fd;
	r = sys(fstat, fd, &st);
	if (r == 0 && !is_own_device(in, st.st_dev))
		r = -EXDEV;
	if (r < 0)
		drop_parent(in);
	return (int)r;
}

/*
 * Creates the mount target @dst: a directory if @dir, else a file. Opens its directory as
 * init.parent; *@ret_name is the name of the target in that directory.
 */
static int make_target(struct init *in, const char *dst, bool dir, const char **ret_name)
{
	size_t slash = 0;
	long r;

	for (size_t i = 0; dst[i]; i++)
		if (dst[i] == '/')
			slash = i;
	r = open_parent(in, dst, slash);
	*ret_name = dst + slash + 1;
	if (r == 0 && dir)
		r = sys(mkdirat, in->parent, *ret_name, 0755);
	else if (r == 0)
		r = sys(mknodat, in->parent, *ret_name, 0100644, 0);
	return r == -EEXIST ? 0 : (int)r;
}

/*
 * Attaches the mount @tree at @dst. A target that pid 1 has just created cannot be a link, so
 * move_mount() uses the name of the target directly.
 */
static int attach(struct init *in, int tree, const char *dst, uint32_t flags)
{
	const char *name;
	long target, r;

	if (flags & JAIL_TARGET) {
		r = make_target(in, dst, init_is_dir(tree), &name);
		if (r == 0)
			r = sys(move_mount, tree, "", in->parent, name, MOVE_MOUNT_F_EMPTY_PATH);
	} else {
		target = init_open_name(AT_FDCWD, dst);
		if (target < 0)
			return (int)target;
		r = sys(move_mount, tree, "", target, "",
			MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
		(void)sys(close, target);
	}
	note_mount(in, dst);
	return (int)r;
}

/*
 * Bind-mounts @src, with all mounts below it, at @dst. @src is relative to @from: the old root, or
 * AT_FDCWD for the new root.
 */
static int bind(struct init *in, int from, const char *src, const char *dst, uint64_t attr,
		uint32_t flags)
{
	struct mount_attr set = { .attr_set = attr, .propagation = OLD_MS_PRIVATE };
	const long fd = init_open_name(from, src);
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

/*
 * Masks an entry of procfs. The kernel itself defines the names in procfs, so no link can redirect
 * them. The mask inherits the mount attributes of its source.
 */
static int mask_kernel(const char *dst, uint32_t flags)
{
	struct stat st;
	long r = sys(newfstatat, AT_FDCWD, dst, &st, AT_SYMLINK_NOFOLLOW);

	/*
	 * Test first whether @dst exists: a mount that fails makes the kernel wait for all
	 * processors.
	 */
	if (r == 0)
		r = sys(mount, (st.st_mode & S_IFMT_) == S_IFDIR_ ? empty_dir : empty_file, dst, 0,
			OLD_MS_BIND, 0);
	return r == -ENOENT && (flags & JAIL_OPTIONAL) ? 0 : (int)r;
}

static int self_kernel(const char *dst, uint64_t attr, uint32_t flags)
{
	long r = sys(mount, dst, dst, 0, OLD_MS_BIND, 0);

	if (r == -ENOENT && (flags & JAIL_OPTIONAL))
		return 0;
	if (r == 0)
		r = sys(mount, 0, dst, 0, OLD_MS_REMOUNT | OLD_MS_BIND | (long)attr, 0);
	return (int)r;
}

static int mask(struct init *in, const char *dst, uint32_t flags)
{
	const long fd = flags & JAIL_KERNEL ? -1 : init_open_name(AT_FDCWD, dst);
	bool dir;

	if (flags & JAIL_KERNEL)
		return mask_kernel(dst, flags);
	if (fd < 0)
		return fd == -ENOENT && (flags & JAIL_OPTIONAL) ? 0 : (int)fd;
	dir = init_is_dir((int)fd);
	(void)sys(close, fd);
	return bind(in, AT_FDCWD, dir ? empty_dir : empty_file, dst, CLOSED, 0);
}

/* Mounts a new file system of @type at @dst, a path of the skeleton. */
static int mount_new(struct init *in, const char *type, const char *options, const char *dst,
		     uint64_t attr, uint32_t flags)
{
	const char *name;
	long r = flags & JAIL_TARGET ? make_target(in, dst, true, &name) : 0;

	if (r == 0)
		r = sys(mount, "writ", dst, type, attr, options);
	note_mount(in, dst);
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

/*
 * Creates the feed, the file of denials to which the supervisor appends later. pid 1 makes the root
 * read-only later, which fails while a file is open for writing through the root's mount. So pid 1
 * opens the feed through a separate mount that is attached nowhere.
 */
static int make_feed(struct init *in, const char *dst)
{
	const long tree = sys(open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	long fd;

	if (tree < 0)
		return (int)tree;
	fd = sys(openat, tree, dst + 1,
		 O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
	if (in->feed_tree >= 0)
		(void)sys(close, in->feed_tree);
	in->feed_tree = (int)tree;
	if (fd < 0)
		return (int)fd;
	if (in->feed >= 0)
		(void)sys(close, in->feed);
	in->feed = (int)fd;
	return 0;
}

/*
 * Detaches the host's root with everything mounted on it. Each detached mount makes the kernel wait
 * for all processors. So pid 1 first moves the mount of the feed onto the old root, and then
 * detaches both mounts at once.
 */
static int drop_old_root(struct init *in)
{
	for (size_t i = 0; in->feed_tree >= 0 && mount_points[i]; i++)
		if (sys(move_mount, in->feed_tree, "", in->old_root, mount_points[i] + 1,
			MOVE_MOUNT_F_EMPTY_PATH) == 0)
			break;
	/*
	 * Close the descriptor of the feed's mount. If the move failed, the mount goes with its
	 * last descriptor.
	 */
	if (in->feed_tree >= 0)
		(void)sys(close, in->feed_tree);
	in->feed_tree = -1;
	(void)sys(close, in->old_root);
	in->old_root = -1;
	return (int)sys(umount2, "/.old", DETACH);
}

static int run_mount_op(struct init *in, const struct jail_head *p, const struct jail_mount *m)
{
	const uint64_t quiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	/*
	 * init_program_check() has verified that the strings m->src and m->dst are inside the
	 * program.
	 */
	const char *src = span_at(p, m->src), *dst = span_at(p, m->dst);
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
		if (m->flags & JAIL_KERNEL)
			return self_kernel(dst, m->arg, m->flags);
		return bind(in, AT_FDCWD, src, dst, m->arg, m->flags);
	case JAIL_OP_TMPFS:
		r = mount_new(in, "tmpfs", src, dst, quiet | m->arg, m->flags);
		return r < 0 ? (int)r : add_own_device(in, dst);
	case JAIL_OP_PROC:
		return mount_new(in, "proc", src, dst, quiet | MOUNT_ATTR_NOEXEC, m->flags);
	case JAIL_OP_DEVPTS:
		return mount_new(in, "devpts", src, dst, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
				 m->flags);
	case JAIL_OP_MASK:
		return mask(in, dst, m->flags);
	case JAIL_OP_FEED:
		return make_feed(in, dst);
	case JAIL_OP_NONE:
	case JAIL_OP_COUNT:
		break;
	}
	return -EINVAL;
}

/*
 * Creates an empty directory and an empty file without access rights, on a read-only mount. pid 1
 * bind-mounts one of the two over each object that the jail must hide.
 */
static int make_masks(void)
{
	long r = sys(mkdirat, AT_FDCWD, masks, 0755);

	if (r == 0)
		r = sys(mkdirat, AT_FDCWD, empty_dir, 0555);
	if (r == 0)
		r = sys(mknodat, AT_FDCWD, empty_file, 0100000, 0);
	if (r == 0)
		r = sys(mount, masks, masks, 0, OLD_MS_BIND, 0);
	if (r == 0)
		r = sys(mount, 0, masks, 0, OLD_MS_REMOUNT | OLD_MS_BIND | CLOSED, 0);
	return (int)r;
}

/* Makes a new tmpfs the root. The host's root stays at /.old until drop_old_root(). */
static int pivot(struct init *in, struct writ_err *err)
{
	long r = sys(mount, 0, "/", 0, OLD_MS_REC | OLD_MS_PRIVATE, 0);

	if (r < 0)
		return init_fail(err, r, "make mounts private", NULL);
	r = -ENOENT;
	for (size_t i = 0; mount_points[i] && r == -ENOENT; i++) {
		r = sys(mount, "writ", mount_points[i], "tmpfs", 0, "mode=0755,size=16m");
		if (r == 0)
			r = sys(chdir, mount_points[i]);
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
	r = add_own_device(in, "/");
	if (r == 0)
		r = make_masks();
	return r < 0 ? init_fail(err, r, "new root", NULL) : 0;
}

/*
 * Creates the new root, unless an earlier call has, and performs the mounts of @p, which may be
 * only the first part of the jail program (JAIL_PREPARE).
 */
int init_root_begin(struct init *in, const struct jail_head *p, struct writ_err *err)
{
	const struct jail_mount *m = span_at(p, p->mounts);
	int r = 0;

	/* The program contains the exact modes of files: clear the umask. */
	(void)sys(umask, 0);
	if (in->old_root < 0)
		r = pivot(in, err);
	for (uint32_t i = 0; r == 0 && i < p->mounts.n; i++) {
		r = run_mount_op(in, p, &m[i]);
		if (r < 0)
			return init_fail(err, r, "set up", span_at(p, m[i].dst));
	}
	return r;
}

int init_root_build(struct init *in, struct writ_err *err)
{
	const struct mount_attr closed = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
						       MOUNT_ATTR_NODEV };
	int r = init_root_begin(in, in->p, err);

	if (r < 0)
		return r;
	drop_parent(in);
	r = drop_old_root(in);
	if (r == 0)
		r = (int)sys(unlinkat, AT_FDCWD, "/.old", AT_REMOVEDIR);
	if (r == 0)
		r = (int)sys(mount_setattr, AT_FDCWD, "/", 0, &closed, sizeof(closed));
	return r < 0 ? init_fail(err, r, "close the new root", NULL) : 0;
}
