/* Owner, mode, times, attributes: changing them, and learning from them. */
#include "escape.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#endif
#ifndef SYS_file_setattr
#define SYS_file_setattr 469
#endif

static const struct timespec past[2] = { { 1000, 0 }, { 1000, 0 } };

static const char *file(struct ctx *c)
{
	return path("%s/f", c->base);
}

static int path_fd(struct ctx *c)
{
	return open(file(c), O_PATH | O_CLOEXEC);
}

static int do_chmod(struct ctx *c)
{
	return rc(chmod(file(c), 0777));
}

static int do_chmod_dir(struct ctx *c)
{
	return rc(chmod(c->base, 0777));
}

static int do_fchmodat(struct ctx *c)
{
	return rc(fchmodat(AT_FDCWD, path("%s/f", c->rel), 0777, 0));
}

static int do_fchmodat2(struct ctx *c)
{
	return rc(syscall(SYS_fchmodat2, path_fd(c), "", 0777, AT_EMPTY_PATH));
}

static int do_chmod_proc(struct ctx *c)
{
	return rc(chmod(path("/proc/self/fd/%d", path_fd(c)), 0777));
}

static int do_fchmod(struct ctx *c)
{
	const int fd = open(file(c), O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : rc(fchmod(fd, 0777));
}

static int do_suid(struct ctx *c)
{
	return rc(chmod(path("%s/x", c->base), 06755));
}

static int do_chown(struct ctx *c)
{
	return rc(chown(file(c), geteuid(), getegid()));
}

static int do_lchown(struct ctx *c)
{
	return rc(lchown(path("%s/l", c->base), geteuid(), getegid()));
}

static int do_fchownat(struct ctx *c)
{
	return rc(fchownat(path_fd(c), "", geteuid(), getegid(), AT_EMPTY_PATH));
}

static int do_utimensat(struct ctx *c)
{
	return rc(utimensat(AT_FDCWD, file(c), past, 0));
}

static int do_futimens(struct ctx *c)
{
	const int fd = open(file(c), O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : rc(futimens(fd, past));
}

static int do_utimens_empty(struct ctx *c)
{
	return rc(syscall(SYS_utimensat, path_fd(c), "", past, AT_EMPTY_PATH));
}

static int do_utime(struct ctx *c)
{
#ifdef SYS_utime
	const struct utimbuf t = { 1000, 1000 };

	return rc(syscall(SYS_utime, file(c), &t));
#else
	return do_utimensat(c);
#endif
}

static int do_futimesat(struct ctx *c)
{
#ifdef SYS_futimesat
	const struct timeval t[2] = { { 1000, 0 }, { 1000, 0 } };

	return rc(syscall(SYS_futimesat, AT_FDCWD, file(c), t));
#else
	return do_utimensat(c);
#endif
}

static int do_setxattr(struct ctx *c)
{
	return rc(setxattr(file(c), "user.k", "escaped", 7, 0));
}

static int do_lsetxattr(struct ctx *c)
{
	return rc(lsetxattr(file(c), "user.new", "escaped", 7, 0));
}

static int do_fsetxattr(struct ctx *c)
{
	const int fd = open(file(c), O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : rc(fsetxattr(fd, "user.k", "escaped", 7, 0));
}

static int do_setxattr_proc(struct ctx *c)
{
	return rc(setxattr(path("/proc/self/fd/%d", path_fd(c)), "user.k", "escaped", 7, 0));
}

static int do_removexattr(struct ctx *c)
{
	return rc(removexattr(file(c), "user.k"));
}

static int do_setxattrat(struct ctx *c)
{
	const struct {
		uint64_t value;
		uint32_t size, flags;
	} args = { (uintptr_t) "escaped", 7, 0 };

	return rc(syscall(SYS_setxattrat, AT_FDCWD, file(c), 0, "user.k", &args, sizeof(args)));
}

static int do_acl(struct ctx *c)
{
	/* Version 2: owner rw-, group r--, others rwx. */
	static const unsigned char acl[] = { 2,	  0,   0, 0, 1,	  0,   6,   0,	 255, 255,
					     255, 255, 4, 0, 4,	  0,   255, 255, 255, 255,
					     32,  0,   7, 0, 255, 255, 255, 255 };

	return rc(setxattr(file(c), "system.posix_acl_access", acl, sizeof(acl), 0));
}

static int do_setflags(struct ctx *c)
{
	int flags = 0;
	const int fd = open(file(c), O_RDONLY | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
		return -errno;
	flags ^= FS_NODUMP_FL;
	return rc(ioctl(fd, FS_IOC_SETFLAGS, &flags));
}

static int do_fssetxattr(struct ctx *c)
{
	struct fsxattr x;
	const int fd = open(file(c), O_RDONLY | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, FS_IOC_FSGETXATTR, &x) < 0)
		return -errno;
	x.fsx_xflags ^= FS_XFLAG_NODUMP;
	return rc(ioctl(fd, FS_IOC_FSSETXATTR, &x));
}

static int do_file_setattr(struct ctx *c)
{
	struct {
		uint64_t xflags;
		uint32_t extsize, nextents, projid, cowextsize;
	} attr = { FS_XFLAG_NODUMP, 0, 0, 0, 0 };

	return rc(syscall(SYS_file_setattr, AT_FDCWD, file(c), &attr, sizeof(attr), 0));
}

static int do_uring_setxattr(struct ctx *c)
{
	const char *name = file(c);
	const struct io_uring_sqe sqe = { .opcode = IORING_OP_SETXATTR,
					  .addr = (uintptr_t) "user.k",
					  .addr2 = (uintptr_t) "escaped",
					  .len = 7,
					  .addr3 = (uintptr_t)name };
	const int r = uring_one(&sqe);

	return r < 0 ? r : 0;
}

static int do_int80_chmod(struct ctx *c)
{
	char *low = low_memory();

	if (!low)
		return -ENOSYS;
	fmt(low, PATH_SIZE, "%s/f", c->base);
	return (int)int80(15, (long)low, 0777, 0, 0, 0);
}

/* --- reading --- */

static int told(struct ctx *c, long r, long ns)
{
	if (r < 0)
		return -errno;
	say(c, "ns=%ld ", ns);
	return 0;
}

static int see_stat(struct ctx *c)
{
	struct stat st = { 0 };
	const int r = stat(file(c), &st);

	return told(c, r, st.st_mtim.tv_nsec);
}

static int see_lstat_relative(struct ctx *c)
{
	struct stat st = { 0 };
	const int r = lstat(path("%s/f", c->rel), &st);

	return told(c, r, st.st_mtim.tv_nsec);
}

/* As much of struct statx as we need: not every libc has it. */
struct statx_head {
	char before[112];
	int64_t mtime_seconds;
	uint32_t mtime_ns;
	char after[256 - 124];
};

static int see_statx(struct ctx *c)
{
	struct statx_head st = { 0 };
	const long r = syscall(SYS_statx, AT_FDCWD, file(c), 0x4000, 0xfff, &st);

	return told(c, r, st.mtime_ns);
}

static int see_fstat_path_fd(struct ctx *c)
{
	struct stat st = { 0 };
	const int r = fstat(path_fd(c), &st);

	return told(c, r, st.st_mtim.tv_nsec);
}

static int see_proc_root(struct ctx *c)
{
	struct stat st = { 0 };
	const int r = stat(path("/proc/self/root%s/f", c->base), &st);

	return told(c, r, st.st_mtim.tv_nsec);
}

static int see_uring(struct ctx *c)
{
	struct statx_head st = { 0 };
	const char *name = file(c);
	const struct io_uring_sqe sqe = { .opcode = IORING_OP_STATX,
					  .fd = AT_FDCWD,
					  .addr = (uintptr_t)name,
					  .len = 0xfff,
					  .off = (uintptr_t)&st };
	const int r = uring_one(&sqe);

	return r < 0 ? r : told(c, 0, st.mtime_ns);
}

static int see_readlink(struct ctx *c)
{
	char buf[256];
	const ssize_t n = readlink(path("%s/k", c->base), buf, sizeof(buf));

	if (n < 0)
		return -errno;
	say_bytes(c, buf, (size_t)n);
	return 0;
}

static int see_getxattr(struct ctx *c)
{
	char buf[256];
	const ssize_t n = getxattr(file(c), "user.k", buf, sizeof(buf));

	if (n < 0)
		return -errno;
	say_bytes(c, buf, (size_t)n);
	return 0;
}

/* Different answers for a name that exists and one that does not are an answer. */
static int differs(int there, int missing)
{
	return there == 0 && missing != 0 ? 0 : there != missing ? 0 : -EACCES;
}

static int oracle_access(struct ctx *c)
{
	return differs(rc(access(file(c), F_OK)), rc(access(path("%s/none", c->base), F_OK)));
}

static int oracle_open(struct ctx *c)
{
	return differs(rc(open(file(c), O_RDONLY | O_CLOEXEC)),
		       rc(open(path("%s/none", c->base), O_RDONLY | O_CLOEXEC)));
}

static int oracle_path(struct ctx *c)
{
	return differs(rc(path_fd(c)), rc(open(path("%s/none", c->base), O_PATH | O_CLOEXEC)));
}

static int oracle_chdir(struct ctx *c)
{
	return differs(rc(chdir(path("%s/d", c->base))), rc(chdir(path("%s/none", c->base))));
}

static int oracle_exec(struct ctx *c)
{
	char *const argv[] = { NULL };

	return differs(rc(execve(file(c), argv, argv)),
		       rc(execve(path("%s/none", c->base), argv, argv)));
}

static int oracle_mkdir(struct ctx *c)
{
	return differs(rc(mkdir(path("%s/d", c->base), 0755)),
		       rc(mkdir(path("%s/none/x", c->base), 0755)));
}

static int oracle_unlink(struct ctx *c)
{
	return differs(rc(unlink(path("%s/d", c->base))), rc(unlink(path("%s/none", c->base))));
}

static int watch_inotify(struct ctx *c)
{
	const int fd = inotify_init1(IN_CLOEXEC);

	return fd < 0 ? -errno : rc(inotify_add_watch(fd, c->base, IN_ALL_EVENTS));
}

static int watch_fanotify(struct ctx *c)
{
	const int fd = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID, O_RDONLY);

	return fd < 0 ? -errno
		      : rc(fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN | FAN_ONDIR, AT_FDCWD,
					 c->base));
}

static int handle_of(struct ctx *c)
{
	union {
		struct file_handle h;
		char space[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} u = { .h.handle_bytes = MAX_HANDLE_SZ };
	int id = 0;

	return rc(name_to_handle_at(AT_FDCWD, file(c), &u.h, &id, 0));
}

static int lock_outside(struct ctx *c)
{
	const int fd = open(file(c), O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : rc(flock(fd, LOCK_EX | LOCK_NB));
}

static int lease_outside(struct ctx *c)
{
	const int fd = open(file(c), O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : rc(fcntl(fd, F_SETLEASE, F_RDLCK));
}

/* clang-format off */
#define M(id, fn, what) { id, "meta", "fs.metadata", what, fn, fn, BY_CANARY, 0, 0, NULL, 0, NULL }
#define T(id, fn, what) { id, "meta", "fs.metadata", what, fn, fn, BY_MTIME, 0, 0, NULL, 0, NULL }
#define O(id, fn, what) { id, "meta", "fs.metadata", what, fn, fn, BY_REPORT, 0, 0, NULL, 0, NULL }

static const struct row rows[] = {
	M("MD-001", do_chmod, "chmod()"),
	M("MD-002", do_chmod_dir, "chmod() of a directory"),
	M("MD-003", do_fchmodat, "fchmodat() by relative path"),
	M("MD-004", do_fchmodat2, "fchmodat2(AT_EMPTY_PATH) of an O_PATH descriptor"),
	M("MD-005", do_chmod_proc, "chmod() of an O_PATH descriptor in /proc/self/fd"),
	M("MD-006", do_fchmod, "fchmod() of a read-only descriptor"),
	M("MD-007", do_suid, "set the set-id bits"),
	M("MD-008", do_chown, "chown()"),
	M("MD-009", do_lchown, "lchown() of a symlink"),
	M("MD-010", do_fchownat, "fchownat(AT_EMPTY_PATH) of an O_PATH descriptor"),
	M("MD-011", do_utimensat, "utimensat()"),
	M("MD-012", do_futimens, "futimens() of a read-only descriptor"),
	M("MD-013", do_utimens_empty, "utimensat(AT_EMPTY_PATH) of an O_PATH descriptor"),
	M("MD-014", do_utime, "utime()"),
	M("MD-015", do_futimesat, "futimesat()"),
	M("MD-016", do_setxattr, "setxattr()"),
	M("MD-017", do_lsetxattr, "lsetxattr()"),
	M("MD-018", do_fsetxattr, "fsetxattr() of a read-only descriptor"),
	M("MD-019", do_setxattr_proc, "setxattr() of an O_PATH descriptor in /proc/self/fd"),
	M("MD-020", do_removexattr, "removexattr()"),
	M("MD-021", do_setxattrat, "setxattrat()"),
	M("MD-022", do_acl, "set an access control list"),
	M("MD-023", do_setflags, "ioctl(FS_IOC_SETFLAGS) on a read-only descriptor"),
	M("MD-024", do_fssetxattr, "ioctl(FS_IOC_FSSETXATTR) on a read-only descriptor"),
	M("MD-025", do_file_setattr, "file_setattr()"),
	M("MD-026", do_uring_setxattr, "setxattr by io_uring"),
	M("MD-027", do_int80_chmod, "chmod through the 32-bit system call gate"),
	T("MD-040", see_stat, "learn times by stat()"),
	T("MD-041", see_lstat_relative, "learn times by lstat() and .."),
	T("MD-042", see_statx, "learn times by statx()"),
	T("MD-043", see_fstat_path_fd, "learn times by fstat() of an O_PATH descriptor"),
	T("MD-044", see_proc_root, "learn times through /proc/self/root"),
	T("MD-045", see_uring, "learn times by io_uring statx"),
	{ "MD-046", "meta", "fs.metadata", "where a symlink points", see_readlink, see_readlink, BY_SECRET, 0, 0, NULL, 0, NULL },
	{ "MD-047", "meta", "fs.metadata", "value of an extended attribute", see_getxattr, see_getxattr, BY_SECRET, 0, 0, NULL, 0, NULL },
	O("MD-050", oracle_access, "tell existing from missing by access()"),
	O("MD-051", oracle_open, "tell existing from missing by open()"),
	O("MD-052", oracle_path, "tell existing from missing by open(O_PATH)"),
	O("MD-053", oracle_chdir, "tell existing from missing by chdir()"),
	O("MD-054", oracle_exec, "tell existing from missing by execve()"),
	O("MD-055", oracle_mkdir, "tell existing from missing by mkdir()"),
	O("MD-056", oracle_unlink, "tell existing from missing by unlink()"),
	O("MD-060", watch_inotify, "watch a directory by inotify"),
	O("MD-061", watch_fanotify, "watch a directory by fanotify"),
	O("MD-062", handle_of, "name_to_handle_at()"),
	O("MD-063", lock_outside, "lock an outside file with flock()"),
	O("MD-064", lease_outside, "take a lease on an outside file"),
};
/* clang-format on */

const struct table fs_meta_rows = { rows, LENGTH(rows) };
