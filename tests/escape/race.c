/*
 * Races: another process rewrites what a call points to while the call is being
 * looked at. Whoever decides on memory or on names and acts later loses.
 */
#include "escape.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RACE_MS = 800 };

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

static struct shared *share(void)
{
	struct shared *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return s == MAP_FAILED ? NULL : s;
}

/* Two texts of one length take turns in @s; equal length, so that none is ever torn off. */
static pid_t flip(struct shared *s, const char *good, const char *bad)
{
	char a[PATH_SIZE];
	char b[PATH_SIZE];

	/* Slashes at the front make up the difference. */
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

static int run(struct ctx *c, const char *good, const char *bad,
	       int (*act)(struct ctx *c, const char *name))
{
	struct shared *s = share();
	const long end = now_ms() + RACE_MS;
	long tries = 0;
	int r = -EACCES;

	if (!s)
		return -errno;
	const pid_t pid = flip(s, good, bad);
	while (now_ms() < end) {
		for (int i = 0; i < 50; i++)
			r = act(c, s->text) == 0 ? 0 : r;
		tries += 50;
	}
	s->stop = 1;
	(void)wait_for(pid);
	say(c, "%ld tries", tries);
	return r;
}

static int act_open(struct ctx *c, const char *name)
{
	const int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	(void)c;
	return fd < 0 ? -errno : put(fd);
}

static int act_read(struct ctx *c, const char *name)
{
	char buf[64];
	const int fd = open(name, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf));

	if (n > 0 && strncmp(buf, "harmless", 8) != 0)
		say_bytes(c, buf, (size_t)n);
	if (fd >= 0)
		close(fd);
	return n < 0 ? -errno : 0;
}

static int act_mkdir(struct ctx *c, const char *name)
{
	(void)c;
	const int r = rc(mkdir(name, 0755));

	(void)rmdir(path("%s/good", c->work));
	return r;
}

static int act_unlink(struct ctx *c, const char *name)
{
	(void)write_file(path("%s/good", c->work), "harmless");
	return rc(unlink(name));
}

static int act_rename(struct ctx *c, const char *name)
{
	(void)write_file(path("%s/from", c->work), "escaped");
	return rc(rename(path("%s/from", c->work), name));
}

static int act_link(struct ctx *c, const char *name)
{
	const int r = rc(link(path("%s/f", c->work), name));

	(void)unlink(path("%s/good", c->work));
	return r;
}

static int act_chmod(struct ctx *c, const char *name)
{
	(void)c;
	return rc(chmod(name, 0700));
}

static int outside_target(struct ctx *c, const char *name, int (*act)(struct ctx *, const char *))
{
	(void)write_file(path("%s/good", c->work), "harmless");
	return run(c, path("%s/good", c->work), path("%s/%s", c->base, name), act);
}

static int race_open(struct ctx *c)
{
	return outside_target(c, "f", act_open);
}

static int race_read(struct ctx *c)
{
	return outside_target(c, "f", act_read);
}

static int race_mkdir(struct ctx *c)
{
	return outside_target(c, "new", act_mkdir);
}

static int race_unlink(struct ctx *c)
{
	return outside_target(c, "f", act_unlink);
}

static int race_rename(struct ctx *c)
{
	return outside_target(c, "new", act_rename);
}

static int race_link(struct ctx *c)
{
	return outside_target(c, "new", act_link);
}

static int race_chmod(struct ctx *c)
{
	return outside_target(c, "f", act_chmod);
}

static int race_protected(struct ctx *c)
{
	const char *bad = c->control ? path("%s/x", c->base) : path("%s/%s", c->root, c->row->arg);

	return run(c, path("%s/good", c->work), bad, act_open);
}

static int race_protected_rename(struct ctx *c)
{
	const char *bad = c->control ? path("%s/x", c->base) : path("%s/%s", c->root, c->row->arg);

	return run(c, path("%s/good", c->work), bad, act_rename);
}

/* A directory and a symlink to the outside take turns under one name. */
static int race_symlink(struct ctx *c, const char *outside, const char *name)
{
	struct shared *s = share();
	const char *spot = path("%s/spot", c->work);
	const char *other = path("%s/other", c->work);
	const long end = now_ms() + RACE_MS;
	int r = -EACCES;

	(void)mkdir(spot, 0755);
	(void)!symlink(outside, other);
	const pid_t pid = s ? fork() : -1;
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!s->stop)
			(void)syscall(SYS_renameat2, AT_FDCWD, spot, AT_FDCWD, other,
				      RENAME_EXCHANGE);
		_exit(0);
	}
	const char *file = path("%s/%s", spot, name);
	while (pid > 0 && now_ms() < end)
		r = act_open(c, file) == 0 ? 0 : r;
	if (s)
		s->stop = 1;
	(void)wait_for(pid);
	return r;
}

static int race_symlink_out(struct ctx *c)
{
	return race_symlink(c, c->base, "f");
}

static int race_symlink_protected(struct ctx *c)
{
	return race_symlink(c, c->control ? c->base : path("%s/.git/hooks", c->root),
			    "post-checkout");
}

/* The descriptor a call names is exchanged for another one in the middle of it. */
static int race_dirfd(struct ctx *c)
{
	const int slot = 500;
	const int good = open(c->work, O_PATH | O_CLOEXEC);
	const int bad = open(c->base, O_PATH | O_CLOEXEC);
	struct shared *s = share();
	const long end = now_ms() + RACE_MS;
	int r = -EACCES;

	if (bad < 0 || !s || dup2(good, slot) < 0)
		return -errno;
	/* Shares our descriptor table, and nothing else: plain memory is not needed. */
	const long pid =
		syscall(SYS_clone, 0x400 /* CLONE_FILES */ | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!s->stop) {
			(void)dup2(bad, slot);
			(void)dup2(good, slot);
		}
		_exit(0);
	}
	while (pid > 0 && now_ms() < end) {
		const int fd = openat(slot, "f", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

		if (fd >= 0)
			r = put(fd);
	}
	s->stop = 1;
	(void)wait_for((pid_t)pid);
	return r;
}

/* Turns between @good, where a listener of ours is, and a socket of the host's. */
static int race_addresses(struct ctx *c, const char *kind, const struct sockaddr_storage *good,
			  int listener)
{
	struct shared *s = share();
	struct sockaddr_storage bad;
	struct sockaddr_storage *at = s ? (void *)s->text : NULL;
	const socklen_t size = sizeof(struct sockaddr_un);
	socklen_t n = 0;
	const long end = now_ms() + RACE_MS;
	int r = -EACCES;

	memset(&bad, 0, sizeof(bad));
	if (!s || dial(c, kind, &bad, &n) < 0)
		return -errno;
	memcpy(at, good, size);
	const pid_t pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!s->stop) {
			memcpy(at, &bad, size);
			memcpy(at, good, size);
		}
		_exit(0);
	}
	while (pid > 0 && now_ms() < end) {
		const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		if (connect(fd, (void *)at, size) == 0)
			r = 0;
		close(fd);
		close(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	}
	s->stop = 1;
	(void)wait_for(pid);
	return r;
}

static int race_with_own(struct ctx *c, const char *kind)
{
	struct sockaddr_storage good;
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const int l = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	memset(&good, 0, sizeof(good));
	fmt(un.sun_path, sizeof(un.sun_path), "%s/own", c->work);
	memcpy(&good, &un, sizeof(un));
	if (l < 0 || bind(l, (void *)&un, sizeof(un)) < 0 || listen(l, 64) < 0)
		return -errno;
	return race_addresses(c, kind, &good, l);
}

static int race_connect(struct ctx *c)
{
	return race_with_own(c, "stream");
}

static int race_connect_work(struct ctx *c)
{
	return race_with_own(c, "host");
}

/* Of another family, which nobody needs to decide about. */
static int race_connect_family(struct ctx *c)
{
	struct sockaddr_storage good;
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001) };

	memset(&good, 0, sizeof(good));
	memcpy(&good, &in, sizeof(in));
	return race_addresses(c, "host", &good, -1);
}

/* clang-format off */
#define W(id, fn, what) { id, "race", "fs.write", what, fn, fn, BY_CANARY, 0, 0, NULL, 0, NULL }
#define P(id, fn, file, what) { id, "race", "fs.write", what " " file, fn, fn, BY_WATCH, 0, ROW_OWN, file, 0, NULL }

static const struct row rows[] = {
	W("RC-001", race_open, "rewrite the path of open() for writing"),
	{ "RC-002", "race", "fs.read", "rewrite the path of open() for reading", race_read, race_read, BY_SECRET, 0, 0, NULL, 0, NULL },
	W("RC-003", race_mkdir, "rewrite the path of mkdir()"), W("RC-004", race_unlink, "rewrite the path of unlink()"),
	W("RC-005", race_rename, "rewrite the target of rename()"), W("RC-006", race_link, "rewrite the target of link()"),
	{ "RC-007", "race", "fs.metadata", "rewrite the path of chmod()", race_chmod, race_chmod, BY_CANARY, 0, 0, NULL, 0, NULL },
	W("RC-008", race_symlink_out, "exchange a directory with a symlink during open()"),
	W("RC-009", race_dirfd, "exchange the directory descriptor during openat()"),
	{ "RC-010", "race", "ipc", "rewrite the address of connect()", race_connect, NULL, BY_EVENT, NEED_UNIX, 0, NULL, 0, NULL },
	{ "RC-011", "race", "ipc", "rewrite the address of connect() to a host socket inside", race_connect_work, NULL, BY_EVENT, NEED_WORK_SOCKET, 0, NULL, 0, NULL },
	{ "RC-012", "race", "ipc", "rewrite an internet address to a host socket inside", race_connect_family, NULL, BY_EVENT, NEED_WORK_SOCKET, 0, NULL, 0, NULL },
	P("RC-020", race_protected, ".mcp.json", "rewrite the path of open() to"),
	P("RC-021", race_protected, ".git/hooks/post-checkout", "rewrite the path of open() to"),
	P("RC-022", race_protected_rename, ".mcp.json", "rewrite the target of rename() to"),
	P("RC-023", race_protected_rename, ".git/hooks/post-checkout", "rewrite the target of rename() to"),
	P("RC-024", race_symlink_protected, ".git/hooks/post-checkout", "exchange a directory with a symlink to reach"),
};
/* clang-format on */

const struct table race_rows = { rows, LENGTH(rows) };
