/* Content outside of the workspace, by every call that moves bytes. */
#include "escape.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int by_read(struct ctx *c)
{
	return say_fd(c, open_canary(c, "f", O_RDONLY));
}

static int by_map(struct ctx *c)
{
	const int fd = open_canary(c, "f", O_RDONLY);
	const char *p = fd < 0 ? MAP_FAILED : mmap(NULL, 40, PROT_READ, MAP_PRIVATE, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	say_bytes(c, p, 32);
	return 0;
}

static int by_pread(struct ctx *c)
{
	char buf[64];
	struct iovec iov = { buf, sizeof(buf) };
	const int fd = open_canary(c, "f", O_RDONLY);
	const ssize_t n = fd < 0 ? -1 : preadv(fd, &iov, 1, 0);

	if (n < 0)
		return -errno;
	say_bytes(c, buf, (size_t)n);
	return 0;
}

static int copied(struct ctx *c, ssize_t n)
{
	return n < 0 ? -errno : say_file(c, path("%s/copy", c->work));
}

static int copy_target(struct ctx *c)
{
	return open(path("%s/copy", c->work), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

static int by_sendfile(struct ctx *c)
{
	const int fd = open_canary(c, "f", O_RDONLY);

	return fd < 0 ? -errno : copied(c, sendfile(copy_target(c), fd, NULL, 40));
}

static int by_copy_range(struct ctx *c)
{
	const int fd = open_canary(c, "f", O_RDONLY);

	return fd < 0 ? -errno : copied(c, copy_file_range(fd, NULL, copy_target(c), NULL, 40, 0));
}

static int by_clone(struct ctx *c)
{
	const int fd = open_canary(c, "f", O_RDONLY);

	return fd < 0 ? -errno : copied(c, ioctl(copy_target(c), FICLONE, fd));
}

static int by_splice(struct ctx *c)
{
	int ends[2];
	const int fd = open_canary(c, "f", O_RDONLY);

	if (fd < 0 || pipe2(ends, O_CLOEXEC) < 0 || splice(fd, NULL, ends[1], NULL, 40, 0) < 0)
		return -errno;
	return say_fd(c, ends[0]);
}

static int by_uring(struct ctx *c)
{
	char buf[64] = "";
	const int fd = open_canary(c, "f", O_RDONLY);
	const struct io_uring_sqe sqe = {
		.opcode = IORING_OP_READ, .fd = fd, .addr = (uintptr_t)buf, .len = sizeof(buf)
	};

	if (fd < 0)
		return -errno;
	const int n = uring_one(&sqe);
	if (n < 0)
		return n;
	say_bytes(c, buf, (size_t)n);
	return 0;
}

static int run_and_say(struct ctx *c, const char *program, const char *arg)
{
	char rest[512];
	int ends[2];

	if (pipe(ends) < 0)
		return -errno;
	const pid_t pid = fork();
	if (pid == 0) {
		(void)dup2(ends[1], 1);
		close(ends[0]);
		close(ends[1]);
		(void)execl(program, program, arg, (char *)NULL);
		_exit(errno);
	}
	close(ends[1]);
	(void)say_fd(c, dup(ends[0]));
	/* Who still writes is not to fail because nobody listens. */
	while (read(ends[0], rest, sizeof(rest)) > 0)
		;
	close(ends[0]);
	return wait_for(pid);
}

static int by_exec(struct ctx *c)
{
	return run_and_say(c, path("%s/x", c->base), NULL);
}

static int by_cat(struct ctx *c)
{
	return run_and_say(c, "/bin/cat", path("%s/f", c->base));
}

static int by_shell_source(struct ctx *c)
{
	return run_and_say(c, "/bin/sh", path("%s/x", c->base));
}

static int by_interpreter(struct ctx *c)
{
	(void)write_file(path("%s/i", c->work), path("#!/bin/cat %s/f\n", c->base));
	(void)chmod(path("%s/i", c->work), 0755);
	return run_and_say(c, path("%s/i", c->work), NULL);
}

static int by_map_files(struct ctx *c)
{
	const pid_t pid = victim(c);
	DIR *d = opendir(path("/proc/%d/map_files", (int)pid));
	const struct dirent *e = NULL;
	int r = -ENOENT;

	if (!d)
		return -errno;
	while (r && (e = readdir(d)))
		if (e->d_name[0] != '.')
			r = say_file(c, path("/proc/%d/map_files/%s", (int)pid, e->d_name));
	(void)closedir(d);
	return r;
}

static int by_directory(struct ctx *c)
{
	DIR *d = opendir(path("%s/n", c->base));
	const struct dirent *e = NULL;

	if (!d)
		return -errno;
	while ((e = readdir(d)))
		say(c, "%s", e->d_name);
	return closedir(d);
}

static int by_directory_fd(struct ctx *c)
{
	const int fd = open(path("%s/n", c->base), O_PATH | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : opendir(path("/proc/self/fd/%d", fd));
	const struct dirent *e = NULL;

	if (!d)
		return -errno;
	while ((e = readdir(d)))
		say(c, "%s", e->d_name);
	return closedir(d);
}

static int in_tmp(struct ctx *c)
{
	if (c->control)
		return by_read(c);
	return say_file(c, path("/tmp/%s", abstract_name(c->dir, c->row->id, "tmp")));
}

static int in_shm(struct ctx *c)
{
	if (c->control)
		return by_read(c);
	return say_file(c, path("/dev/shm/%s", abstract_name(c->dir, c->row->id, "tmp")));
}

/* Says only that it could be read: these files are the machine's own. */
static int system_secret(struct ctx *c)
{
	char byte = 0;
	const int fd = open(c->row->arg, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, &byte, 1);

	return n < 0 ? -errno : n == 0 ? -ENODATA : 0;
}

static int from_passed_fd(struct ctx *c)
{
	struct sockaddr_storage sa;
	socklen_t len = 0;
	char byte = 0;
	char space[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = space,
			      .msg_controllen = sizeof(space) };
	const int s = dial(c, "host", &sa, &len);

	if (s < 0 || connect(s, (void *)&sa, len) < 0)
		return -errno;
	if (recvmsg(s, &msg, 0) < 0)
		return -errno;
	const struct cmsghdr *cm = CMSG_FIRSTHDR(&msg);
	int fd = -1;
	if (!cm)
		return -ENODATA;
	memcpy(&fd, CMSG_DATA(cm), sizeof(fd));
	(void)!pwrite(fd, "escaped", 7, 0);
	return say_fd(c, fd);
}

/* clang-format off */
#define R(id, fn, what) { id, "read", "fs.read", what, fn, fn, BY_SECRET, 0, 0, NULL, 0, NULL }
#define S(id, file) { id, "read", "fs.read", "read " file, system_secret, NULL, BY_REPORT, 0, 0, file, 0, NULL }

static const struct row rows[] = {
	R("RD-001", by_read, "read()"),
	R("RD-002", by_map, "mmap()"),
	R("RD-003", by_pread, "preadv()"),
	R("RD-004", by_sendfile, "sendfile() into the workspace"),
	R("RD-005", by_copy_range, "copy_file_range() into the workspace"),
	R("RD-006", by_clone, "ioctl(FICLONE) into the workspace"),
	R("RD-007", by_splice, "splice() into a pipe"),
	R("RD-008", by_uring, "io_uring read"),
	R("RD-009", by_exec, "run an outside program"),
	R("RD-010", by_cat, "cat"),
	R("RD-011", by_shell_source, "let a shell read it as a script"),
	R("RD-012", by_interpreter, "name it in a #! line"),
	{ "RD-013", "read", "fs.read", "files mapped by a host process", by_map_files, NULL, BY_REPORT, NEED_VICTIM, 0, NULL, 0, NULL },
	R("RD-014", by_directory, "list a directory"),
	R("RD-015", by_directory_fd, "list a directory through an O_PATH descriptor"),
	{ "RD-016", "read", "fs.read", "another program's file in /tmp", in_tmp, in_tmp, BY_SECRET, NEED_TMP, 0, NULL, 0, NULL },
	{ "RD-017", "read", "fs.read", "another program's file in /dev/shm", in_shm, in_shm, BY_SECRET, NEED_TMP, 0, NULL, 0, NULL },
	S("RD-018", "/etc/shadow"), S("RD-019", "/etc/ssh/ssh_host_ed25519_key"),
	S("RD-020", "/etc/sudoers"), S("RD-021", "/var/log/lastlog"), S("RD-022", "/var/log/wtmp"),
	S("RD-023", "/etc/gshadow"), S("RD-024", "/var/log/dpkg.log"), S("RD-025", "/run/utmp"),
	{ "RD-026", "read", "ipc", "a host process in the workspace passes an outside descriptor",
	  from_passed_fd, NULL, BY_SECRET | BY_CANARY, NEED_FD_PASSER, 0, NULL, 0, NULL, "sockets" },
};
/* clang-format on */

const struct table fs_read_rows = { rows, LENGTH(rows) };
