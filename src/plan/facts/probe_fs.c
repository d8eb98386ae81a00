#include "facts/probe_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

/* Constant of a header that conflicts with sys/mount.h. */
#ifndef FICLONE
#define FICLONE _IOW(0x94, 9, int)
#endif

static int make_file(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return errno;
	(void)close(fd);
	return fd_put_at(AT_FDCWD, path, text);
}

/*
 * Makes a lower tree and an overlay over it in the current directory, and uses the overlay as a
 * workspace does. The names are relative, so that overlayfs cannot parse any byte of a path as a
 * mount option.
 */
static int use_overlay(void)
{
	char text[8] = { 0 };
	int e;

	if (mkdir("lower", 0700) < 0 || mkdir("lower/dir", 0700) < 0 || mkdir("upper", 0700) < 0 ||
	    mkdir("work", 0700) < 0 || mkdir("merged", 0700) < 0)
		return errno;
	e = make_file("lower/file", "old");
	if (e == 0)
		e = make_file("lower/dir/inner", "old");
	if (e != 0)
		return e;
	if (mount("overlay", "merged", "overlay", MS_NOSUID | MS_NODEV,
		  "lowerdir=lower,upperdir=upper,workdir=work,userxattr") < 0)
		return errno;
	/* Writing makes overlayfs copy the file up. */
	e = fd_put_at(AT_FDCWD, "merged/file", "new");
	if (e != 0)
		return e;
	/* Removing and recreating a lower directory needs whiteouts and the opaque attribute. */
	if (unlink("merged/dir/inner") < 0 || rmdir("merged/dir") < 0 ||
	    mkdir("merged/dir", 0700) < 0)
		return errno;
	if (access("merged/dir/inner", F_OK) == 0 || access("lower/dir/inner", F_OK) < 0)
		return EIO;
	if (facts_read_small("upper/file", text, sizeof(text)) != 3 || text[0] != 'n' ||
	    facts_read_small("lower/file", text, sizeof(text)) != 3 || text[0] != 'o')
		return EIO;
	return 0;
}

static int enter_dir(const struct probe *p, const char *sub)
{
	const int e = facts_enter_ns(p, CLONE_NEWNS);

	if (e != 0)
		return e;
	if (!p->dir[0])
		return ENOENT;
	if (chdir(p->dir) < 0 || (mkdir(sub, 0700) < 0 && errno != EEXIST))
		return errno;
	return 0;
}

int try_overlay(const struct probe *p, int arg, struct report *r)
{
	const int e = enter_dir(p, "disk");

	(void)arg, (void)r;
	if (e != 0)
		return e;
	return chdir("disk") < 0 ? errno : use_overlay();
}

int try_overlay_tmpfs(const struct probe *p, int arg, struct report *r)
{
	const int e = enter_dir(p, "memory");

	(void)arg, (void)r;
	if (e != 0)
		return e;
	if (mount("tmpfs", "memory", "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,nr_inodes=64") < 0)
		return errno;
	return chdir("memory") < 0 ? errno : use_overlay();
}

int try_reflink(const struct probe *p, int arg, struct report *r)
{
	(void)arg, (void)r;
	if (!p->dir[0] || chdir(p->dir) < 0)
		return ENOENT;

	scoped_fd from = open("from", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	scoped_fd to = open("to", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (from < 0 || to < 0 || ftruncate(from, 1 << 16) < 0 || pwrite(from, "x", 1, 0) != 1)
		return errno;
	return ioctl(to, FICLONE, from) < 0 ? errno : 0;
}

int try_fuse(const struct probe *p, int arg, struct report *r)
{
	scoped_fd fd = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NOCTTY);

	(void)p, (void)arg, (void)r;
	return fd < 0 ? errno : 0;
}

int try_kvm(const struct probe *p, int arg, struct report *r)
{
	scoped_fd fd = open("/dev/kvm", O_RDWR | O_CLOEXEC | O_NOCTTY);

	(void)p, (void)arg, (void)r;
	if (fd < 0)
		return errno;
	return ioctl(fd, KVM_GET_API_VERSION, 0) == KVM_API_VERSION ? 0 : ENODEV;
}

int try_openat2(const struct probe *p, int arg, struct report *r)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH };
	scoped_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)p, (void)arg, (void)r;
	if (root < 0 || syscall(SYS_openat2, root, ".", &how, sizeof(how)) < 0)
		return errno;
	/* If the kernel opens "..", it has ignored RESOLVE_BENEATH. */
	if (syscall(SYS_openat2, root, "..", &how, sizeof(how)) >= 0 || errno != EXDEV)
		return EPROTO;
	return 0;
}
