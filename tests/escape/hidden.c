/*
 * Files in the workspace that a rule hides by their name. Everything beside them may
 * be read, and programs may be run: so somebody else than the kernel's own check of
 * the directory has to know the difference, at every open.
 */
#include "escape.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RACE_MS = 1500 };

/* In a control the same file under a name that no rule hides. */
static const char *hidden(const struct ctx *c)
{
	return c->control ? path("%s/f", c->work) : path("%s/hidden.env", c->work);
}

static int by_open(struct ctx *c)
{
	return say_file(c, hidden(c));
}

static int by_rdwr(struct ctx *c)
{
	const int fd = open(hidden(c), O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : say_fd(c, fd);
}

static int by_path_fd(struct ctx *c)
{
	const int fd = open(hidden(c), O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : say_file(c, path("/proc/self/fd/%d", fd));
}

static int by_thread_fd(struct ctx *c)
{
	const int fd = open(hidden(c), O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : say_file(c, path("/proc/thread-self/fd/%d", fd));
}

static int by_proc_root(struct ctx *c)
{
	return say_file(c, path("/proc/self/root%s", hidden(c)));
}

static int by_proc_cwd(struct ctx *c)
{
	return say_file(c, c->control ? "/proc/self/cwd/f" : "/proc/self/cwd/hidden.env");
}

static int by_link(struct ctx *c)
{
	if (link(hidden(c), path("%s/shown", c->work)) < 0)
		return -errno;
	return say_file(c, path("%s/shown", c->work));
}

static int by_rename(struct ctx *c)
{
	if (rename(hidden(c), path("%s/shown", c->work)) < 0)
		return -errno;
	return say_file(c, path("%s/shown", c->work));
}

static int by_dir_rename(struct ctx *c)
{
	(void)mkdir(path("%s/d", c->work), 0755);
	if (rename(hidden(c), path("%s/d/hidden.env", c->work)) < 0 ||
	    rename(path("%s/d", c->work), path("%s/e", c->work)) < 0)
		return -errno;
	return say_file(c, path("%s/e/hidden.env", c->work));
}

static int by_symlink(struct ctx *c)
{
	const char *ln = path("/tmp/ln-%s-%d", c->row->id, c->control);

	(void)unlink(ln);
	(void)!symlink(hidden(c), ln);
	return say_file(c, ln);
}

/* The name is gone, what it was is held. */
static int by_deleted(struct ctx *c)
{
	const int fd = open(hidden(c), O_PATH | O_CLOEXEC);

	if (fd < 0 || unlink(hidden(c)) < 0)
		return -errno;
	return say_file(c, path("/proc/self/fd/%d", fd));
}

static int by_shell(struct ctx *c)
{
	const pid_t pid = fork();

	if (pid == 0) {
		(void)execl("/bin/sh", "sh", "-c",
			    "while read -r x; do echo \"+$1 $x\"; done < \"$0\"", hidden(c),
			    c->row->id, NULL);
		_exit(errno & 0xff);
	}
	return wait_for(pid);
}

static int list_hidden(struct ctx *c)
{
	const int at = open(c->control ? c->work : path("%s/hidden.d", c->work),
			    O_PATH | O_DIRECTORY | O_CLOEXEC);
	const int fd = at < 0 ? -1 : open(path("/proc/self/fd/%d", at), O_RDONLY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		return -errno;
	for (const struct dirent *e; (e = readdir(d));)
		say(c, "%s", e->d_name);
	(void)closedir(d);
	return 0;
}

/* --- races --- */

struct shared {
	volatile int stop;
	char text[2 * PATH_SIZE];
};

static long now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static pid_t flip(struct shared *s, const char *good, const char *bad)
{
	char a[PATH_SIZE];
	char b[PATH_SIZE];
	const size_t n = strlen(good) > strlen(bad) ? strlen(good) : strlen(bad);

	memset(a, '/', sizeof(a));
	memset(b, '/', sizeof(b));
	memcpy(a + n - strlen(good), good, strlen(good) + 1);
	memcpy(b + n - strlen(bad), bad, strlen(bad) + 1);
	memcpy(s->text, a, n + 1);
	const pid_t pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!s->stop) {
			memcpy(s->text, b, n + 1);
			memcpy(s->text, a, n + 1);
		}
		_exit(0);
	}
	return pid;
}

/* Who opens a file that is nobody's business, and rewrites the name meanwhile. */
static int race(struct ctx *c, const char *good, int flags)
{
	struct shared *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const long end = now_ms() + RACE_MS;
	char secret[64];
	int r = -EACCES;

	if (s == MAP_FAILED)
		return -errno;
	const pid_t pid = flip(s, good, hidden(c));
	while (pid > 0 && r && now_ms() < end) {
		const int fd = open(s->text, flags | O_CLOEXEC, 0600);
		const ssize_t n = fd < 0 ? -1 : read(fd, secret, sizeof(secret));

		/* What the file begins with is known. */
		if (n > 8 && !memcmp(secret, "SECRET: ", 8)) {
			say_bytes(c, secret, (size_t)n);
			r = 0;
		}
		if (fd >= 0)
			close(fd);
	}
	s->stop = 1;
	(void)wait_for(pid);
	return r;
}

static int race_tmp(struct ctx *c)
{
	const char *good = path("/tmp/good-%s", c->row->id);

	(void)write_file(good, "harmless");
	return race(c, good, O_RDONLY);
}

static int race_proc(struct ctx *c)
{
	return race(c, "/proc/self/status", O_RDONLY);
}

static int race_system(struct ctx *c)
{
	return race(c, "/etc/passwd", O_RDONLY);
}

static int race_device(struct ctx *c)
{
	return race(c, "/dev/null", O_RDWR);
}

static int race_create(struct ctx *c)
{
	return race(c, path("/tmp/make-%s", c->row->id), O_RDONLY | O_CREAT);
}

static int race_descriptor(struct ctx *c)
{
	const int fd = open("/dev/null", O_RDONLY);

	return race(c, path("/proc/self/fd/%d", fd), O_RDONLY);
}

/* --- what must still work --- */

static int use_run(struct ctx *c)
{
	const char *to = path("%s/program", c->work);
	const char *from = path("%s/writ-escape", c->root);
	static char bytes[1 << 16];
	const int in = open(from, O_RDONLY | O_CLOEXEC);
	const int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	ssize_t n;

	if (in < 0 || out < 0)
		return -errno;
	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		if (write(out, bytes, (size_t)n) != n)
			return -errno;
	close(out);
	const pid_t pid = fork();
	if (pid == 0) {
		(void)dup2(open("/dev/null", O_WRONLY), 1);
		(void)execl(to, to, "list", NULL);
		_exit(errno & 0xff);
	}
	return wait_for(pid);
}

static int use_proc(struct ctx *c)
{
	static const char *const names[] = { "/proc/self/status",
					     "/proc/self/maps",
					     "/proc/mounts",
					     "/proc/thread-self/comm",
					     "/proc/cpuinfo",
					     "/proc/self/exe",
					     "/dev/null",
					     "/usr/bin/env",
					     NULL };

	for (size_t i = 0; names[i]; i++) {
		const int fd = open(names[i], O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			say(c, "%s: %s", names[i], strerror(errno));
		if (fd < 0)
			return -errno;
		close(fd);
	}
	return 0;
}

/* clang-format off */
#define POLICY "deny read **/hidden.*"
#define H(id, fn, what) { id, "hidden", "fs.read", what, fn, fn, BY_SECRET, NEED_HIDDEN, ROW_OWN, NULL, 0, POLICY }
#define N(id, fn, what) { id, "hidden", "fs.read", what, fn, NULL, BY_SECRET, NEED_HIDDEN, ROW_OWN, NULL, 0, POLICY }
#define U(id, fn, what) { id, "hidden", "fs.read", what, fn, NULL, BY_REPORT, NEED_HIDDEN, ROW_POSITIVE | ROW_OWN, NULL, 0, POLICY }

static const struct row rows[] = {
	U("HD-001", use_run, "run a program that was just made beside a hidden file"),
	U("HD-002", use_proc, "read of oneself, of the system and of devices beside a hidden file"),
	H("HD-010", by_open, "open a hidden file"), H("HD-011", by_rdwr, "open a hidden file for reading and writing"),
	H("HD-012", by_path_fd, "open a hidden file through /proc/self/fd"), H("HD-013", by_thread_fd, "open a hidden file through /proc/thread-self/fd"),
	N("HD-014", by_proc_root, "open a hidden file through /proc/self/root"), N("HD-015", by_proc_cwd, "open a hidden file through /proc/self/cwd"),
	H("HD-016", by_link, "give a hidden file a second name"), H("HD-017", by_rename, "give a hidden file another name"),
	N("HD-018", by_dir_rename, "move a hidden file in a directory"), H("HD-019", by_symlink, "open a hidden file through a link in /tmp"),
	H("HD-020", by_deleted, "remove a hidden file and open what is held of it"), H("HD-021", by_shell, "let a shell read a hidden file"),
	H("HD-022", list_hidden, "list a hidden directory through a descriptor"),
	N("HD-030", race_tmp, "rewrite a path of /tmp to a hidden file"), N("HD-031", race_proc, "rewrite a path of /proc to a hidden file"),
	N("HD-032", race_system, "rewrite a path of the system to a hidden file"), N("HD-033", race_device, "rewrite the path of a device to a hidden file"),
	N("HD-034", race_create, "rewrite a path that is created to a hidden file"), N("HD-035", race_descriptor, "rewrite the path of a descriptor to a hidden file"),
};
/* clang-format on */

const struct table hidden_rows = { rows, LENGTH(rows) };
