/* Changing what lies outside of the workspace, one operation per row. */
#include "escape.h"

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
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

int open_canary(struct ctx *c, const char *name, int flags)
{
	return open(path("%s/%s", c->base, name), flags | O_CLOEXEC, 0644);
}

static int write_trunc(struct ctx *c)
{
	return put(open_canary(c, "f", O_WRONLY | O_TRUNC));
}

static int write_append(struct ctx *c)
{
	return put(open_canary(c, "f", O_WRONLY | O_APPEND));
}

static int write_rdwr(struct ctx *c)
{
	return put(open_canary(c, "f", O_RDWR));
}

/* Truncates without asking for write access in the access mode. */
static int trunc_readonly(struct ctx *c)
{
	const int fd = open_canary(c, "f", O_RDONLY | O_TRUNC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int access_mode_three(struct ctx *c)
{
	const int fd = open_canary(c, "f", 3 | O_TRUNC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int truncate_path(struct ctx *c)
{
	return rc(truncate(path("%s/f", c->base), 0));
}

static int punch_hole(struct ctx *c)
{
	const int fd = open_canary(c, "f", O_RDWR);

	return fd < 0 ? -errno
		      : rc(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 16));
}

static int grow(struct ctx *c)
{
	const int fd = open_canary(c, "f", O_WRONLY);

	return fd < 0 ? -errno : rc(fallocate(fd, 0, 0, 100000));
}

static int pwrite_end(struct ctx *c)
{
	const int fd = open_canary(c, "f", O_WRONLY);

	return fd < 0 ? -errno : rc(pwrite(fd, "escaped", 7, 5));
}

static int shared_map(struct ctx *c)
{
	const int fd = open_canary(c, "f", O_RDWR);
	char *p = fd < 0 ? MAP_FAILED : mmap(NULL, 16, PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	memcpy(p, "escaped", 7);
	return rc(msync(p, 16, MS_SYNC));
}

static int shared_map_later(struct ctx *c)
{
	const int fd = open_canary(c, "f", O_RDONLY);
	char *p = fd < 0 ? MAP_FAILED : mmap(NULL, 16, PROT_READ, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED || mprotect(p, 4096, PROT_READ | PROT_WRITE) < 0)
		return -errno;
	memcpy(p, "escaped", 7);
	return 0;
}

/* The class of bugs where a forced write through /proc reaches the page cache. */
static int map_self_mem(struct ctx *c)
{
	const int fd = open_canary(c, "f", O_RDONLY);
	char *p = fd < 0 ? MAP_FAILED : mmap(NULL, 16, PROT_READ, MAP_SHARED, fd, 0);
	const int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	if (p == MAP_FAILED || mem < 0)
		return -errno;
	return rc(pwrite(mem, "escaped", 7, (off_t)(uintptr_t)p));
}

static int create_new(struct ctx *c)
{
	return put(open_canary(c, "new", O_WRONLY | O_CREAT | O_EXCL));
}

static int create_readonly(struct ctx *c)
{
	const int fd = open_canary(c, "new", O_RDONLY | O_CREAT);

	return fd < 0 ? -errno : close(fd);
}

static int create_legacy(struct ctx *c)
{
#ifdef SYS_creat
	return put((int)syscall(SYS_creat, path("%s/new", c->base), 0644));
#else
	return create_new(c);
#endif
}

static int create_deep(struct ctx *c)
{
	return put(open_canary(c, "d/new", O_WRONLY | O_CREAT));
}

static int create_through_dangling(struct ctx *c)
{
	(void)!symlink(path("%s/new", c->base), path("%s/dangling", c->work));
	return put(open(path("%s/dangling", c->work), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

static int tmpfile_link(struct ctx *c)
{
	const int fd = open(c->base, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);

	if (fd < 0)
		return -errno;
	return rc(linkat(AT_FDCWD, path("/proc/self/fd/%d", fd), AT_FDCWD, path("%s/new", c->base),
			 AT_SYMLINK_FOLLOW));
}

static int tmpfile_link_across(struct ctx *c)
{
	const int fd = open(c->work, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);

	if (fd < 0)
		return -errno;
	return rc(linkat(AT_FDCWD, path("/proc/self/fd/%d", fd), AT_FDCWD, path("%s/new", c->base),
			 AT_SYMLINK_FOLLOW));
}

static int make_dir(struct ctx *c)
{
	return rc(mkdir(path("%s/new", c->base), 0755));
}

static int make_dir_at(struct ctx *c)
{
	return rc(mkdirat(AT_FDCWD, path("%s/d/new/", c->rel), 0755));
}

static int make_node_reg(struct ctx *c)
{
	return rc(mknod(path("%s/new", c->base), S_IFREG | 0644, 0));
}

static int make_fifo(struct ctx *c)
{
	return rc(mkfifo(path("%s/new", c->base), 0644));
}

static int make_node_sock(struct ctx *c)
{
	return rc(mknod(path("%s/new", c->base), S_IFSOCK | 0644, 0));
}

static int make_whiteout(struct ctx *c)
{
	return rc(mknod(path("%s/new", c->base), S_IFCHR | 0644, 0));
}

static int make_symlink(struct ctx *c)
{
	return rc(symlink("/etc/hostname", path("%s/new", c->base)));
}

static int make_hardlink(struct ctx *c)
{
	return rc(link(path("%s/f", c->base), path("%s/new", c->base)));
}

static int make_socket(struct ctx *c)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	fmt(un.sun_path, sizeof(un.sun_path), "%s/new", c->base);
	return fd < 0 ? -errno : rc(bind(fd, (void *)&un, sizeof(un)));
}

static int remove_file(struct ctx *c)
{
	return rc(unlink(path("%s/f", c->base)));
}

static int remove_file_at(struct ctx *c)
{
	const int dir = open(c->base, O_PATH | O_CLOEXEC);

	return dir < 0 ? -errno : rc(unlinkat(dir, "d/g", 0));
}

static int remove_dir(struct ctx *c)
{
	return rc(rmdir(path("%s/e", c->base)));
}

static int remove_dir_at(struct ctx *c)
{
	return rc(unlinkat(AT_FDCWD, path("%s/e", c->rel), AT_REMOVEDIR));
}

static int rename_within(struct ctx *c)
{
	return rc(rename(path("%s/f", c->base), path("%s/new", c->base)));
}

static int rename_at(struct ctx *c)
{
	const int dir = open(c->base, O_PATH | O_CLOEXEC);

	return dir < 0 ? -errno : rc(renameat(dir, "f", dir, "d/f"));
}

static int rename_two(const char *from, const char *to, unsigned flags)
{
	return rc(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags));
}

static int rename_noreplace(struct ctx *c)
{
	return rename_two(path("%s/f", c->base), path("%s/new", c->base), RENAME_NOREPLACE);
}

static int rename_exchange(struct ctx *c)
{
	return rename_two(path("%s/f", c->base), path("%s/d/g", c->base), RENAME_EXCHANGE);
}

static int rename_whiteout(struct ctx *c)
{
	return rename_two(path("%s/f", c->base), path("%s/new", c->base), RENAME_WHITEOUT);
}

static int rename_out(struct ctx *c)
{
	return rc(rename(path("%s/f", c->work), path("%s/f", c->base)));
}

static int rename_in(struct ctx *c)
{
	return rc(rename(path("%s/f", c->base), path("%s/taken", c->work)));
}

static int rename_exchange_across(struct ctx *c)
{
	return rename_two(path("%s/f", c->work), path("%s/f", c->base), RENAME_EXCHANGE);
}

static int rename_dir_in(struct ctx *c)
{
	return rc(rename(path("%s/d", c->base), path("%s/taken", c->work)));
}

static int link_in_and_write(struct ctx *c)
{
	if (link(path("%s/f", c->base), path("%s/alias", c->work)) < 0)
		return -errno;
	return put(open(path("%s/alias", c->work), O_WRONLY | O_APPEND | O_CLOEXEC));
}

static int link_fd_in(struct ctx *c)
{
	const int fd = open_canary(c, "f", O_PATH);

	if (fd < 0)
		return -errno;
	if (linkat(AT_FDCWD, path("/proc/self/fd/%d", fd), AT_FDCWD, path("%s/alias", c->work),
		   AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	return put(open(path("%s/alias", c->work), O_WRONLY | O_APPEND | O_CLOEXEC));
}

static int link_out(struct ctx *c)
{
	return rc(link(path("%s/f", c->work), path("%s/new", c->base)));
}

static int copy_range_out(struct ctx *c)
{
	const int in = open(path("%s/f", c->work), O_RDONLY | O_CLOEXEC);
	const int fd = open_canary(c, "f", O_WRONLY);

	return fd < 0 ? -errno : rc(copy_file_range(in, NULL, fd, NULL, 16, 0));
}

static int sendfile_out(struct ctx *c)
{
	const int in = open(path("%s/f", c->work), O_RDONLY | O_CLOEXEC);
	const int fd = open_canary(c, "f", O_WRONLY);

	return fd < 0 ? -errno : rc(sendfile(fd, in, NULL, 16));
}

static int splice_out(struct ctx *c)
{
	int ends[2];
	const int fd = open_canary(c, "f", O_WRONLY);

	if (fd < 0 || pipe2(ends, O_CLOEXEC) < 0 || write(ends[1], "escaped", 7) < 0)
		return -errno;
	return rc(splice(ends[0], NULL, fd, NULL, 7, 0));
}

/* Page cache pages of a file we may only read, spliced and then written to. */
static int dirty_pipe(struct ctx *c)
{
	int ends[2];
	char drain[4096];
	off_t zero = 0;
	const int fd = open_canary(c, "f", O_RDONLY);

	if (fd < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	const int size = fcntl(ends[1], F_GETPIPE_SZ);
	for (int i = 0; i < size / 4096; i++)
		(void)!write(ends[1], drain, sizeof(drain));
	for (int i = 0; i < size / 4096; i++)
		(void)!read(ends[0], drain, sizeof(drain));
	if (splice(fd, &zero, ends[1], NULL, 1, 0) < 0)
		return -errno;
	return rc(write(ends[1], "escaped", 7));
}

static int clone_out(struct ctx *c)
{
	const int in = open(path("%s/f", c->work), O_RDONLY | O_CLOEXEC);
	const int fd = open_canary(c, "f", O_WRONLY);

	return fd < 0 ? -errno : rc(ioctl(fd, FICLONE, in));
}

static int int80_write(struct ctx *c)
{
	char *low = low_memory();

	if (!low)
		return -ENOSYS;
	fmt(low, PATH_SIZE, "%s/f", c->base);
	const long fd = int80(5, (long)low, O_WRONLY | O_APPEND, 0, 0, 0);
	return fd < 0 ? (int)fd : put((int)fd);
}

static int int80_unlink(struct ctx *c)
{
	char *low = low_memory();

	if (!low)
		return -ENOSYS;
	fmt(low, PATH_SIZE, "%s/f", c->base);
	return (int)int80(10, (long)low, 0, 0, 0, 0);
}

static int uring_open_write(struct ctx *c)
{
	const char *name = path("%s/f", c->base);
	const struct io_uring_sqe sqe = { .opcode = IORING_OP_OPENAT,
					  .fd = AT_FDCWD,
					  .addr = (uintptr_t)name,
					  .open_flags = O_WRONLY | O_APPEND | O_CLOEXEC };
	const int fd = uring_one(&sqe);

	return fd < 0 ? fd : put(fd);
}

static int uring_path(struct ctx *c, int op, const char *a, const char *b)
{
	const struct io_uring_sqe sqe = { .opcode = (uint8_t)op,
					  .fd = AT_FDCWD,
					  .addr = (uintptr_t)a,
					  .addr2 = (uintptr_t)b,
					  .len = op == IORING_OP_MKDIRAT    ? 0755
						 : op == IORING_OP_UNLINKAT ? 0
									    : (uint32_t)AT_FDCWD };
	const int r = uring_one(&sqe);

	(void)c;
	return r < 0 ? r : 0;
}

static int uring_unlink(struct ctx *c)
{
	return uring_path(c, IORING_OP_UNLINKAT, path("%s/f", c->base), NULL);
}

static int uring_rename(struct ctx *c)
{
	return uring_path(c, IORING_OP_RENAMEAT, path("%s/f", c->base), path("%s/new", c->base));
}

static int uring_mkdir(struct ctx *c)
{
	return uring_path(c, IORING_OP_MKDIRAT, path("%s/new", c->base), NULL);
}

static int uring_symlink(struct ctx *c)
{
	const char *to = path("%s/new", c->base);
	const struct io_uring_sqe sqe = { .opcode = IORING_OP_SYMLINKAT,
					  .fd = AT_FDCWD,
					  .addr = (uintptr_t) "/etc/hostname",
					  .addr2 = (uintptr_t)to };
	const int r = uring_one(&sqe);

	return r < 0 ? r : 0;
}

static int uring_link(struct ctx *c)
{
	const int r =
		uring_path(c, IORING_OP_LINKAT, path("%s/f", c->base), path("%s/alias", c->work));

	return r < 0 ? r : put(open(path("%s/alias", c->work), O_WRONLY | O_APPEND | O_CLOEXEC));
}

static int shell_write(struct ctx *c)
{
	const pid_t pid = fork();

	if (pid == 0) {
		(void)execl("/bin/sh", "sh", "-c", "echo escaped > \"$0/f\"", c->base,
			    (char *)NULL);
		_exit(EACCES);
	}
	return wait_for(pid);
}

/* An allowed prefix must end at a component: work-evil is not work. */
static int write_neighbour(struct ctx *c)
{
	const char *name = c->control ? path("%s/neighbour", c->work)
				      : path("%s/work-evil/%s/f", c->dir, c->row->id);
	return put(open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

static int tmp_write(struct ctx *c)
{
	const char *name = c->control ? path("%s/f", c->base)
				      : path("/tmp/%s", abstract_name(c->dir, c->row->id, "tmp"));
	return put(open(name, O_WRONLY | O_APPEND | O_CLOEXEC));
}

static int shm_write(struct ctx *c)
{
	const char *name = c->control
				   ? path("%s/f", c->base)
				   : path("/dev/shm/%s", abstract_name(c->dir, c->row->id, "tmp"));
	return put(open(name, O_WRONLY | O_APPEND | O_CLOEXEC));
}

/* clang-format off */
#define W(id, fn, what) { id, "fs", "fs.write", what, fn, fn, BY_CANARY, 0, 0, NULL, 0, NULL }

static const struct row rows[] = {
	W("FS-001", write_trunc, "open for writing with truncation"),
	W("FS-002", write_append, "open for appending"),
	W("FS-003", write_rdwr, "open for reading and writing"),
	W("FS-004", trunc_readonly, "truncate by O_RDONLY|O_TRUNC"),
	W("FS-005", access_mode_three, "truncate by access mode 3"),
	W("FS-006", truncate_path, "truncate() by path"),
	W("FS-007", punch_hole, "punch a hole"),
	W("FS-008", grow, "fallocate() beyond the end"),
	W("FS-009", pwrite_end, "pwrite()"),
	W("FS-010", shared_map, "write through a shared mapping"),
	{ "FS-011", "fs", "fs.write", "make a read-only shared mapping writable later", shared_map_later, NULL, BY_CANARY, 0, ROW_INHERENT, NULL, 0, NULL },
	{ "FS-012", "fs", "fs.write", "forced write through /proc/self/mem into a read-only mapping", map_self_mem, NULL, BY_CANARY, 0, ROW_INHERENT, NULL, 0, NULL },
	W("FS-013", create_new, "create a file"),
	W("FS-014", create_readonly, "create a file by O_RDONLY|O_CREAT"),
	W("FS-015", create_legacy, "creat()"),
	W("FS-016", create_deep, "create in a subdirectory"),
	W("FS-017", create_through_dangling, "create through a dangling symlink in the workspace"),
	W("FS-018", tmpfile_link, "O_TMPFILE outside, then linkat()"),
	W("FS-019", tmpfile_link_across, "O_TMPFILE in the workspace, linkat() to the outside"),
	W("FS-020", make_dir, "mkdir()"),
	W("FS-021", make_dir_at, "mkdirat() by relative path"),
	W("FS-022", make_node_reg, "mknod() of a regular file"),
	W("FS-023", make_fifo, "mkfifo()"),
	W("FS-024", make_node_sock, "mknod() of a socket"),
	W("FS-025", make_whiteout, "mknod() of an overlay whiteout"),
	W("FS-026", make_symlink, "symlink()"),
	W("FS-027", make_hardlink, "link() among outside names"),
	W("FS-028", make_socket, "bind() of a UNIX socket"),
	W("FS-029", remove_file, "unlink()"),
	W("FS-030", remove_file_at, "unlinkat() through an O_PATH directory"),
	W("FS-031", remove_dir, "rmdir()"),
	W("FS-032", remove_dir_at, "unlinkat(AT_REMOVEDIR)"),
	W("FS-033", rename_within, "rename() among outside names"),
	W("FS-034", rename_at, "renameat() through an O_PATH directory"),
	W("FS-035", rename_noreplace, "renameat2(RENAME_NOREPLACE)"),
	W("FS-036", rename_exchange, "renameat2(RENAME_EXCHANGE) among outside names"),
	W("FS-037", rename_whiteout, "renameat2(RENAME_WHITEOUT)"),
	W("FS-038", rename_out, "rename a workspace file over an outside one"),
	W("FS-039", rename_in, "rename an outside file into the workspace"),
	W("FS-040", rename_exchange_across, "exchange a workspace file with an outside one"),
	W("FS-041", rename_dir_in, "rename an outside directory into the workspace"),
	W("FS-042", link_in_and_write, "hard link into the workspace, write the link"),
	W("FS-043", link_fd_in, "hard link of an O_PATH descriptor, write the link"),
	W("FS-044", link_out, "hard link of a workspace file to the outside"),
	W("FS-045", copy_range_out, "copy_file_range()"),
	W("FS-046", sendfile_out, "sendfile()"),
	W("FS-047", splice_out, "splice() from a pipe"),
	{ "FS-048", "fs", "fs.write", "write into spliced page cache pages", dirty_pipe, NULL, BY_CANARY, 0, ROW_INHERENT, NULL, 0, NULL },
	W("FS-049", clone_out, "ioctl(FICLONE)"),
	W("FS-050", int80_write, "open and write through the 32-bit system call gate"),
	W("FS-051", int80_unlink, "unlink through the 32-bit system call gate"),
	W("FS-052", uring_open_write, "open by io_uring"),
	W("FS-053", uring_unlink, "unlink by io_uring"),
	W("FS-054", uring_rename, "rename by io_uring"),
	W("FS-055", uring_mkdir, "mkdir by io_uring"),
	W("FS-056", uring_symlink, "symlink by io_uring"),
	W("FS-057", uring_link, "hard link by io_uring, write the link"),
	W("FS-058", shell_write, "redirection of a shell"),
	{ "FS-059", "fs", "fs.write", "write to a directory whose name begins like the workspace",
	  write_neighbour, write_neighbour, BY_CANARY, 0, 0, "neighbour", 0, NULL },
	{ "FS-060", "fs", "fs.write", "write to another program's file in /tmp", tmp_write, tmp_write, BY_CANARY, NEED_TMP, 0, NULL, 0, NULL },
	{ "FS-061", "fs", "fs.write", "write to another program's file in /dev/shm", shm_write, shm_write, BY_CANARY, NEED_TMP, 0, NULL, 0, NULL },
};
/* clang-format on */

const struct table fs_write_rows = { rows, LENGTH(rows) };
