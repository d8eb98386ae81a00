/* The same file by every road: each road once for writing and once for reading. */
#include "escape.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int road_fn(struct ctx *c, int flags); /* a descriptor, or -1 with errno */

static const char *under(const char *root, struct ctx *c)
{
	return path("%s%s/f", root, c->base);
}

static int open_under(const char *root, struct ctx *c, int flags)
{
	return open(under(root, c), flags | O_CLOEXEC);
}

static int road_absolute(struct ctx *c, int flags)
{
	return open(under("", c), flags | O_CLOEXEC);
}

static int road_relative(struct ctx *c, int flags)
{
	return open(path("%s/f", c->rel), flags | O_CLOEXEC);
}

static int road_noise(struct ctx *c, int flags)
{
	return open(path("/./..///.%s/.//d/../f", c->base), flags | O_CLOEXEC);
}

static int road_dirfd(struct ctx *c, int flags)
{
	return openat(open(c->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC), path("%s/f", c->rel),
		      flags | O_CLOEXEC);
}

static int road_root_fd(struct ctx *c, int flags)
{
	return openat(open("/", O_PATH | O_CLOEXEC), under("", c) + 1, flags | O_CLOEXEC);
}

static int road_path_dir(struct ctx *c, int flags)
{
	return openat(open(c->base, O_PATH | O_DIRECTORY | O_CLOEXEC), "f", flags | O_CLOEXEC);
}

static int road_chdir(struct ctx *c, int flags)
{
	return chdir(c->base) < 0 ? -1 : open("f", flags | O_CLOEXEC);
}

static int road_fchdir(struct ctx *c, int flags)
{
	const int dir = open(c->base, O_PATH | O_CLOEXEC);

	return dir < 0 || fchdir(dir) < 0 ? -1 : open("f", flags | O_CLOEXEC);
}

static int road_self_root(struct ctx *c, int flags)
{
	return open_under("/proc/self/root", c, flags);
}

static int road_thread_root(struct ctx *c, int flags)
{
	return open_under("/proc/thread-self/root", c, flags);
}

static int road_task_root(struct ctx *c, int flags)
{
	return open_under(path("/proc/self/task/%d/root", (int)getpid()), c, flags);
}

static int road_init_root(struct ctx *c, int flags)
{
	return open_under("/proc/1/root", c, flags);
}

static int road_init_cwd(struct ctx *c, int flags)
{
	return open_under("/proc/1/cwd/../../../../../../..", c, flags);
}

static int road_parent_root(struct ctx *c, int flags)
{
	return open_under(path("/proc/%d/root", (int)getppid()), c, flags);
}

static int road_parent_cwd(struct ctx *c, int flags)
{
	return open_under(path("/proc/%d/cwd/../../../../../../../..", (int)getppid()), c, flags);
}

static int road_self_cwd(struct ctx *c, int flags)
{
	return open(path("/proc/self/cwd/%s/f", c->rel), flags | O_CLOEXEC);
}

static int road_victim_root(struct ctx *c, int flags)
{
	return open_under(path("/proc/%d/root", (int)victim(c)), c, flags);
}

static int road_victim_cwd(struct ctx *c, int flags)
{
	if (c->control)
		return road_absolute(c, flags);
	return open(path("/proc/%d/cwd/f", (int)victim(c)), flags | O_CLOEXEC);
}

static int road_victim_fd(struct ctx *c, int flags)
{
	if (c->control)
		return road_absolute(c, flags);
	return open(path("/proc/%d/fd/%d", (int)victim(c), VICTIM_FD), flags | O_CLOEXEC);
}

static int road_symlink_dir(struct ctx *c, int flags)
{
	(void)!symlink(c->base, path("%s/ln", c->work));
	return open(path("%s/ln/f", c->work), flags | O_CLOEXEC);
}

static int road_symlink_file(struct ctx *c, int flags)
{
	(void)!symlink(under("", c), path("%s/ln", c->work));
	return open(path("%s/ln", c->work), flags | O_CLOEXEC);
}

static int road_symlink_chain(struct ctx *c, int flags)
{
	(void)!symlink("b", path("%s/a", c->work));
	(void)!symlink("/proc/self/root", path("%s/b", c->work));
	return open(path("%s/a%s/f", c->work, c->base), flags | O_CLOEXEC);
}

static int road_symlink_relative(struct ctx *c, int flags)
{
	(void)!symlink(path("%s/f", c->rel), path("%s/ln", c->work));
	return open(path("%s/ln", c->work), flags | O_CLOEXEC);
}

static int road_path_fd(struct ctx *c, int flags)
{
	const int fd = open(under("", c), O_PATH | O_CLOEXEC);

	return fd < 0 ? -1 : open(path("/proc/self/fd/%d", fd), flags | O_CLOEXEC);
}

static int road_thread_fd(struct ctx *c, int flags)
{
	const int fd = open(under("", c), O_PATH | O_CLOEXEC);

	return fd < 0 ? -1 : open(path("/proc/thread-self/fd/%d", fd), flags | O_CLOEXEC);
}

static int road_dev_fd(struct ctx *c, int flags)
{
	const int fd = open(under("", c), O_PATH | O_CLOEXEC);

	return fd < 0 ? -1 : open(path("/dev/fd/%d", fd), flags | O_CLOEXEC);
}

static int road_reopen(struct ctx *c, int flags)
{
	const int fd = open(under("", c), O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : open(path("/proc/self/fd/%d", fd), flags | O_CLOEXEC);
}

static int openat2_with(int dir, const char *name, int flags, uint64_t resolve)
{
	const struct open_how how = { .flags = (unsigned)flags | O_CLOEXEC, .resolve = resolve };

	return (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
}

static int road_openat2(struct ctx *c, int flags)
{
	return openat2_with(AT_FDCWD, path("%s/f", c->rel), flags, 0);
}

static int road_openat2_root(struct ctx *c, int flags)
{
	const int root = open("/", O_PATH | O_CLOEXEC);

	return openat2_with(root, under("", c), flags, RESOLVE_IN_ROOT);
}

static int road_legacy(struct ctx *c, int flags)
{
#ifdef SYS_open
	return (int)syscall(SYS_open, under("", c), flags | O_CLOEXEC, 0);
#else
	return road_absolute(c, flags);
#endif
}

static int road_int80(struct ctx *c, int flags)
{
	char *low = low_memory();

	errno = ENOSYS;
	if (!low)
		return -1;
	fmt(low, PATH_SIZE, "%s/f", c->base);
	const long fd = int80(295, AT_FDCWD, (long)low, flags, 0, 0);
	errno = fd < 0 ? (int)-fd : 0;
	return fd < 0 ? -1 : (int)fd;
}

static int road_x32(struct ctx *c, int flags)
{
#if defined(__x86_64__)
	return (int)syscall(0x40000000 + SYS_openat, AT_FDCWD, under("", c), flags, 0);
#else
	errno = ENOSYS;
	return (void)c, (void)flags, -1;
#endif
}

static int road_uring(struct ctx *c, int flags)
{
	const struct io_uring_sqe sqe = { .opcode = IORING_OP_OPENAT,
					  .fd = AT_FDCWD,
					  .addr = (uintptr_t)under("", c),
					  .open_flags = (uint32_t)flags };
	const int fd = uring_one(&sqe);

	errno = fd < 0 ? -fd : 0;
	return fd < 0 ? -1 : fd;
}

static int road_uring2(struct ctx *c, int flags)
{
	const struct open_how how = { .flags = (unsigned)flags };
	const struct io_uring_sqe sqe = { .opcode = IORING_OP_OPENAT2,
					  .fd = AT_FDCWD,
					  .addr = (uintptr_t)under("", c),
					  .len = sizeof(how),
					  .off = (uintptr_t)&how };
	const int fd = uring_one(&sqe);

	errno = fd < 0 ? -fd : 0;
	return fd < 0 ? -1 : fd;
}

static int road_handle(struct ctx *c, int flags)
{
	union {
		struct file_handle h;
		char space[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} u = { .h.handle_bytes = MAX_HANDLE_SZ };
	int mount_id = 0;
	const int mount = open(c->work, O_RDONLY | O_CLOEXEC);

	if (name_to_handle_at(AT_FDCWD, under("", c), &u.h, &mount_id, 0) < 0)
		return -1;
	return open_by_handle_at(mount, &u.h, flags | O_CLOEXEC);
}

/* What name_to_handle_at would say about the file, made up from its inode number. */
static int road_made_up_handle(struct ctx *c, int flags)
{
	union {
		struct file_handle h;
		char space[sizeof(struct file_handle) + 8];
	} u = { .h.handle_bytes = 8, .h.handle_type = 1 };
	uint32_t ids[2] = { 2,
			    0 }; /* the root directory of ext2 and its children, any generation */
	const int mount = open(c->work, O_RDONLY | O_CLOEXEC);

	memcpy(u.h.f_handle, ids, sizeof(ids));
	const int root = open_by_handle_at(mount, &u.h, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return root < 0 ? -1 : openat(root, under("", c) + 1, flags | O_CLOEXEC);
}

static int road_hard_link(struct ctx *c, int flags)
{
	if (link(under("", c), path("%s/alias", c->work)) < 0)
		return -1;
	return open(path("%s/alias", c->work), flags | O_CLOEXEC);
}

static int road_renamed_parent(struct ctx *c, int flags)
{
	if (rename(path("%s/d", c->base), path("%s/moved", c->work)) < 0)
		return -1;
	return open(path("%s/moved/g", c->work), flags | O_CLOEXEC);
}

/* The directory we stand in is moved away from below us; ".." must not lead out. */
static int road_moved_cwd(struct ctx *c, int flags)
{
	(void)mkdir(path("%s/one", c->work), 0755);
	(void)mkdir(path("%s/one/two", c->work), 0755);
	if (chdir(path("%s/one/two", c->work)) < 0 ||
	    rename(path("%s/one/two", c->work), path("%s/two", c->work)) < 0)
		return -1;
	return open(path("../%s/f", c->rel), flags | O_CLOEXEC);
}

static road_fn *const roads[] = {
	road_absolute,
	road_relative,
	road_noise,
	road_dirfd,
	road_root_fd,
	road_path_dir,
	road_chdir,
	road_fchdir,
	road_self_root,
	road_thread_root,
	road_task_root,
	road_init_root,
	road_init_cwd,
	road_parent_root,
	road_parent_cwd,
	road_self_cwd,
	road_victim_root,
	road_victim_cwd,
	road_victim_fd,
	road_symlink_dir,
	road_symlink_file,
	road_symlink_chain,
	road_symlink_relative,
	road_path_fd,
	road_thread_fd,
	road_dev_fd,
	road_reopen,
	road_openat2,
	road_openat2_root,
	road_legacy,
	road_int80,
	road_x32,
	road_uring,
	road_uring2,
	road_handle,
	road_made_up_handle,
	road_hard_link,
	road_renamed_parent,
	road_moved_cwd,
};

static int write_by_road(struct ctx *c)
{
	return put(roads[c->row->num](c, O_WRONLY | O_APPEND));
}

static int read_by_road(struct ctx *c)
{
	return say_fd(c, roads[c->row->num](c, O_RDONLY));
}

/* clang-format off */
#define ROAD(n, need, what) \
	{ "FW-" #n, "path", "fs.write", "write: " what, write_by_road, write_by_road, BY_CANARY, need, 0, NULL, n - 100, NULL }, \
	{ "FR-" #n, "path", "fs.read", "read: " what, read_by_road, read_by_road, BY_SECRET, need, 0, NULL, n - 100, NULL }

static const struct row rows[] = {
	ROAD(100, 0, "by absolute path"),
	ROAD(101, 0, "by relative path with .."),
	ROAD(102, 0, "by a path full of . .. and //"),
	ROAD(103, 0, "by .. from a workspace directory descriptor"),
	ROAD(104, 0, "by a descriptor of /"),
	ROAD(105, 0, "by an O_PATH descriptor of its directory"),
	ROAD(106, 0, "after chdir() there"),
	ROAD(107, 0, "after fchdir() to an O_PATH descriptor"),
	ROAD(108, 0, "by /proc/self/root"),
	ROAD(109, 0, "by /proc/thread-self/root"),
	ROAD(110, 0, "by /proc/self/task/TID/root"),
	ROAD(111, 0, "by /proc/1/root"),
	ROAD(112, 0, "by /proc/1/cwd"),
	ROAD(113, 0, "by the parent's /proc/PID/root"),
	ROAD(114, 0, "by the parent's /proc/PID/cwd"),
	ROAD(115, 0, "by /proc/self/cwd and .."),
	ROAD(116, NEED_VICTIM, "by /proc/PID/root of a host process"),
	ROAD(117, NEED_VICTIM, "by /proc/PID/cwd of a host process"),
	ROAD(118, NEED_VICTIM, "by /proc/PID/fd of a host process"),
	ROAD(119, 0, "by a symlink to the directory"),
	ROAD(120, 0, "by a symlink to the file"),
	ROAD(121, 0, "by a chain of symlinks through /proc/self/root"),
	ROAD(122, 0, "by a relative symlink"),
	ROAD(123, 0, "by reopening an O_PATH descriptor in /proc/self/fd"),
	ROAD(124, 0, "by reopening in /proc/thread-self/fd"),
	ROAD(125, 0, "by reopening in /dev/fd"),
	ROAD(126, 0, "by reopening a read-only descriptor"),
	ROAD(127, 0, "by openat2()"),
	ROAD(128, 0, "by openat2(RESOLVE_IN_ROOT) of /"),
	ROAD(129, 0, "by the old open()"),
	ROAD(130, 0, "by the 32-bit openat"),
	ROAD(131, 0, "by the x32 openat"),
	ROAD(132, 0, "by io_uring openat"),
	ROAD(133, 0, "by io_uring openat2"),
	ROAD(134, 0, "by file handle"),
	ROAD(135, 0, "by a made-up file handle of the root directory"),
	ROAD(136, 0, "by a hard link in the workspace"),
	ROAD(137, 0, "by moving its directory into the workspace"),
	ROAD(138, 0, "by .. from a directory moved below us"),
};
/* clang-format on */

const struct table fs_path_rows = { rows, LENGTH(rows) };
