/* Mount tables, roots and namespaces as a way back to what was hidden or read-only. */
#include "escape.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc's own header for these clashes with the kernel's. */
enum { OLD_RDONLY = 1, OLD_REMOUNT = 32, OLD_BIND = 4096, OLD_REC = 16384, OLD_PRIVATE = 1 << 18 };
enum { DETACH = 2, EXPIRE = 4 };

static long old_mount(const char *from, const char *to, const char *type, unsigned long flags,
		      const char *data)
{
	return syscall(SYS_mount, from, to, type, flags, data);
}

static long old_umount(const char *name, int flags)
{
	return syscall(SYS_umount2, name, flags);
}

static int write_after(struct ctx *c)
{
	return put(open_canary(c, "f", O_WRONLY | O_APPEND));
}

/*
 * Whoever may change mounts may also have a copy of the mount table, in which
 * every trick works as well: so that a machine without a sandbox is left alone.
 */
static void own_mounts(void)
{
	if (unshare(CLONE_NEWNS) == 0)
		(void)old_mount(NULL, "/", NULL, OLD_REC | OLD_PRIVATE, NULL);
}

static void remount_writable(const char *name)
{
	struct statvfs v = { 0 };

	/* The flags it has, but for one: nothing else is to change. */
	if (statvfs(name, &v) == 0)
		(void)old_mount(NULL, name, NULL,
				OLD_REMOUNT | OLD_BIND | (v.f_flag & ~(unsigned long)OLD_RDONLY),
				NULL);
}

/* Each trick is followed by a plain write or read: only the effect counts. */

static int remount_root(struct ctx *c)
{
	own_mounts();
	remount_writable("/");
	remount_writable(c->dir);
	return write_after(c);
}

static int setattr_root(struct ctx *c)
{
	struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };

	own_mounts();
	(void)syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &attr, sizeof(attr));
	return write_after(c);
}

static int bind_and_remount(struct ctx *c)
{
	const char *m = path("%s/e", c->work);

	own_mounts();
	(void)old_mount(c->out, m, NULL, OLD_BIND | OLD_REC, NULL);
	(void)old_mount(NULL, m, NULL, OLD_REMOUNT | OLD_BIND, NULL);
	(void)put(open(path("%s/f", m), O_WRONLY | O_APPEND | O_CLOEXEC));
	return write_after(c);
}

static int clone_tree(struct ctx *c)
{
	const int fd = (int)syscall(SYS_open_tree, AT_FDCWD, c->out,
				    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };

	(void)syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof(attr));
	(void)put(openat(fd, "f", O_WRONLY | O_APPEND | O_CLOEXEC));
	return write_after(c);
}

static int unmount_masks(struct ctx *c)
{
	own_mounts();
	(void)old_umount(c->dir, DETACH);
	(void)old_umount(c->out, DETACH);
	(void)old_umount("/tmp", DETACH);
	(void)old_umount("/var/tmp", DETACH);
	(void)old_umount("/", DETACH);
	return say_fd(c, open_canary(c, "f", O_RDONLY));
}

static int nested(struct ctx *c, int (*then)(struct ctx *c))
{
	const int r = enter_userns(CLONE_NEWNS | CLONE_NEWPID);

	if (r == 0)
		(void)old_mount(NULL, "/", NULL, OLD_REC | OLD_PRIVATE, NULL);
	return then(c);
}

static int nested_remount(struct ctx *c)
{
	return nested(c, remount_root);
}

static int nested_setattr(struct ctx *c)
{
	return nested(c, setattr_root);
}

static int nested_bind(struct ctx *c)
{
	return nested(c, bind_and_remount);
}

static int nested_clone_tree(struct ctx *c)
{
	return nested(c, clone_tree);
}

static int nested_unmount(struct ctx *c)
{
	return nested(c, unmount_masks);
}

static int overlay_over(struct ctx *c)
{
	const char *m = path("%s/e", c->work);

	own_mounts();
	(void)mkdir(path("%s/up", c->work), 0755);
	(void)mkdir(path("%s/wd", c->work), 0755);
	(void)old_mount("overlay", m, "overlay", 0,
			path("lowerdir=%s,upperdir=%s/up,workdir=%s/wd,userxattr", c->out, c->work,
			     c->work));
	(void)say_file(c, path("%s/f", m));
	return say_fd(c, open_canary(c, "f", O_RDONLY));
}

static int nested_overlay(struct ctx *c)
{
	return nested(c, overlay_over);
}

/* chroot into a directory while holding a descriptor above it, then walk up. */
static int break_chroot(struct ctx *c)
{
	const int above = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (chroot(path("%s/e", c->work)) == 0) {
		(void)!fchdir(above);
		for (int i = 0; i < 30; i++)
			(void)!chdir("..");
		(void)!chroot(".");
	}
	return say_fd(c, open_canary(c, "f", O_RDONLY));
}

static int nested_chroot(struct ctx *c)
{
	return nested(c, break_chroot);
}

static int pivot_back(struct ctx *c)
{
	const char *m = path("%s/e", c->work);

	own_mounts();
	(void)old_mount(m, m, NULL, OLD_BIND, NULL);
	(void)mkdir(path("%s/old", m), 0755);
	(void)syscall(SYS_pivot_root, m, path("%s/old", m));
	(void)say_file(c, path("/old%s/f", c->base));
	return say_fd(c, open_canary(c, "f", O_RDONLY));
}

static int nested_pivot(struct ctx *c)
{
	return nested(c, pivot_back);
}

static int fresh_proc(struct ctx *c)
{
	const char *m = path("%s/e", c->work);

	/* Mounting proc needs to be inside the new pid namespace. */
	const pid_t pid = fork();
	if (pid == 0) {
		(void)old_mount("proc", m, "proc", 0, NULL);
		_exit(say_file(c, path("%s/1/root%s/f", m, c->base)) ? EACCES : 0);
	}
	(void)wait_for(pid);
	return say_fd(c, open_canary(c, "f", O_RDONLY));
}

static int nested_proc(struct ctx *c)
{
	return nested(c, fresh_proc);
}

static int setns_victim(struct ctx *c)
{
	const int fd = open(path("/proc/%d/ns/mnt", (int)victim(c)), O_RDONLY | O_CLOEXEC);
	const int pidfd = (int)syscall(SYS_pidfd_open, victim(c), 0);

	if (fd >= 0)
		(void)setns(fd, CLONE_NEWNS);
	if (pidfd >= 0)
		(void)setns(pidfd, CLONE_NEWNS);
	return say_fd(c, open_canary(c, "f", O_RDONLY));
}

/* A file system on top of a workspace directory, and does the host see it? */
static int mount_seen_outside(struct ctx *c)
{
	return rc(old_mount("none", path("%s/e", c->work), "tmpfs", 0, "size=64k"));
}

/* --- is the call there at all? --- */

static int try_mount(struct ctx *c)
{
	return rc(old_mount("none", path("%s/e", c->work), "tmpfs", 0, "size=64k"));
}

static int try_bind(struct ctx *c)
{
	return rc(old_mount(c->work, path("%s/e", c->work), NULL, OLD_BIND, NULL));
}

static int try_umount(struct ctx *c)
{
	const int r = rc(old_umount(path("%s/e", c->work), EXPIRE));

	return r == -EINVAL ? 0 : r; /* not a mount point: permission was not the obstacle */
}

static int try_setattr(struct ctx *c)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID };
	const int r = rc(syscall(SYS_mount_setattr, AT_FDCWD, path("%s/e", c->work), 0, &attr,
				 sizeof(attr)));

	return r == -EINVAL ? 0 : r;
}

static int try_open_tree(struct ctx *c)
{
	return rc(syscall(SYS_open_tree, AT_FDCWD, c->work, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
}

static int try_move_mount(struct ctx *c)
{
	const char *e = path("%s/e", c->work);
	const int r = rc(syscall(SYS_move_mount, AT_FDCWD, e, AT_FDCWD, e, 0));

	return r == -EINVAL || r == -ELOOP ? 0 : r;
}

static int try_fsopen(struct ctx *c)
{
	(void)c;
	return rc(syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC));
}

static int try_fsmount(struct ctx *c)
{
	const long fd = syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);

	(void)c;
	if (fd < 0 || syscall(SYS_fsconfig, fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	return rc(syscall(SYS_fsmount, fd, FSMOUNT_CLOEXEC, 0));
}

static int try_fspick(struct ctx *c)
{
	(void)c;
	return rc(syscall(SYS_fspick, AT_FDCWD, "/", FSPICK_CLOEXEC));
}

static int try_pivot(struct ctx *c)
{
	const int r = rc(syscall(SYS_pivot_root, path("%s/e", c->work), path("%s/e", c->work)));

	return r == -EINVAL || r == -EBUSY ? 0 : r;
}

static int try_chroot(struct ctx *c)
{
	return rc(chroot(path("%s/e", c->work)));
}

static int (*const calls[])(struct ctx *c) = {
	try_mount,  try_bind,	 try_umount, try_setattr, try_open_tree, try_move_mount,
	try_fsopen, try_fsmount, try_fspick, try_pivot,	  try_chroot,
};

static int call_plain(struct ctx *c)
{
	own_mounts();
	return calls[c->row->num](c);
}

static int call_nested(struct ctx *c)
{
	const int r = enter_userns(CLONE_NEWNS | CLONE_NEWPID);

	if (r < 0)
		return r;
	(void)old_mount(NULL, "/", NULL, OLD_REC | OLD_PRIVATE, NULL);
	return calls[c->row->num](c);
}

/* clang-format off */
#define W(id, fn, what) { id, "mount", "fs.write", what ", then write", fn, NULL, BY_CANARY, 0, 0, NULL, 0, NULL }
#define R(id, fn, what) { id, "mount", "fs.read", what ", then read", fn, NULL, BY_SECRET, 0, 0, NULL, 0, NULL }
#define CALL(n, what) \
	{ "MT-1" #n, "mount", "syscall", what, call_plain, NULL, BY_REPORT, 0, 0, NULL, 1 ## n - 100, NULL }, \
	{ "MT-2" #n, "mount", "syscall", what " in a new user namespace", call_nested, NULL, BY_REPORT, 0, 0, NULL, 1 ## n - 100, NULL }

static const struct row rows[] = {
	W("MT-001", remount_root, "remount / read-write"),
	W("MT-002", setattr_root, "mount_setattr() clears read-only"),
	W("MT-003", bind_and_remount, "bind the outside into the workspace"),
	W("MT-004", clone_tree, "open_tree() clone made writable"),
	R("MT-005", unmount_masks, "unmount what hides"),
	W("MT-006", nested_remount, "new user namespace, remount / read-write"),
	W("MT-007", nested_setattr, "new user namespace, mount_setattr()"),
	W("MT-008", nested_bind, "new user namespace, bind the outside"),
	W("MT-009", nested_clone_tree, "new user namespace, open_tree()"),
	R("MT-010", nested_unmount, "new user namespace, unmount what hides"),
	R("MT-011", overlay_over, "overlay over the outside"),
	R("MT-012", nested_overlay, "new user namespace, overlay over the outside"),
	R("MT-013", break_chroot, "chroot and walk up by a held descriptor"),
	R("MT-014", nested_chroot, "new user namespace, chroot and walk up"),
	R("MT-015", pivot_back, "pivot_root"),
	R("MT-016", nested_pivot, "new user namespace, pivot_root"),
	R("MT-017", nested_proc, "new user namespace, fresh /proc"),
	{ "MT-018", "mount", "fs.read", "setns() to a host process's mounts, then read", setns_victim, NULL, BY_SECRET, NEED_VICTIM, 0, NULL, 0, NULL },
	{ "MT-019", "mount", "fs.write", "a mount made inside shows on the host", mount_seen_outside, NULL, BY_MOUNT, 0, ROW_OWN, NULL, 0, NULL },
	CALL(00, "mount()"), CALL(01, "bind mount"), CALL(02, "umount2()"), CALL(03, "mount_setattr()"),
	CALL(04, "open_tree(OPEN_TREE_CLONE)"), CALL(05, "move_mount()"), CALL(06, "fsopen()"),
	CALL(07, "fsmount()"), CALL(08, "fspick()"), CALL(09, "pivot_root()"), CALL(10, "chroot()"),
};
/* clang-format on */

const struct table mount_rows = { rows, LENGTH(rows) };
