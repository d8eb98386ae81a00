#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/banned.h"

/* How long after a umask() what a task's status says is not yet worth keeping. */
enum { UMASK_SETTLES_MS = 200 };

/* Newer than the headers we build with, and than many kernels: 6.9. */
enum { PIDFD_OF_THREAD = O_EXCL };

static uint64_t now_ms(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t) < 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void task_drop(struct task *t)
{
	if (t->tid) {
		scope_close(&t->proc);
		scope_close(&t->status);
		scope_close(&t->pidfd);
	}
	*t = (struct task){ .proc = -1, .status = -1, .pidfd = -1 };
}

void comm_drop(struct comm *k)
{
	if (k->tid)
		scope_close(&k->fd);
	*k = (struct comm){ .fd = -1 };
}

static int task_new(struct call *c)
{
	struct task *t = c->task;
	char name[16];

	task_drop(t);
	(void)snprintf(name, sizeof(name), "%d", c->tid);
	t->proc = openat(c->m->proc, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (t->proc < 0)
		return -errno;
	t->tid = c->tid;
	c->fresh = true;
	return 0;
}

static bool is_gone(int error)
{
	return error == ESRCH || error == ENOENT;
}

static int task_find(struct call *c)
{
	c->task = &c->m->tasks[(unsigned)c->tid % TASKS];
	return c->task->tid == c->tid ? 0 : task_new(c);
}

/* Opens below /proc/TID. A remembered directory of a dead thread shows by failing. */
static int open_below(struct call *c, const char *name, int flags)
{
	int fd, r = task_find(c);

	if (r < 0)
		return r;
	fd = openat(c->task->proc, name, flags | O_CLOEXEC);
	if (fd < 0 && is_gone(errno) && !c->fresh) {
		r = task_new(c);
		if (r < 0)
			return r;
		fd = openat(c->task->proc, name, flags | O_CLOEXEC);
	}
	if (fd < 0)
		return -errno;
	c->fresh = true;
	return fd;
}

int task_open(struct call *c, const char *name, unsigned flags)
{
	return open_below(c, name, (int)flags | O_PATH);
}

int task_fd(struct call *c, int fd)
{
	char name[32];
	int r;

	if (fd < 0)
		return -EBADF;
	(void)snprintf(name, sizeof(name), "fd/%d", fd);
	r = task_open(c, name, 0);
	return r == -ENOENT ? -EBADF : r;
}

int task_root(struct call *c)
{
	int fd;

	if (!c->m->opt.own_mounts)
		return c->m->root;
	if (c->m->jail >= 0)
		return c->m->jail;
	fd = task_open(c, "root", O_DIRECTORY);
	/* SECURITY: a successor's would be taken for that of everybody who asks from now on. */
	if (fd >= 0 && !notify_valid(c->listener, c->id)) {
		scope_close(&fd);
		return ANSWER_GONE;
	}
	if (fd >= 0)
		c->m->jail = fd;
	return fd;
}

int task_read(struct call *c, uint64_t at, void *to, size_t n)
{
	const struct iovec mine = { to, n };
	const struct iovec its = { (void *)(uintptr_t)at, n };
	ssize_t got;

	if (n == 0)
		return 0;
	got = process_vm_readv(c->tid, &mine, 1, &its, 1, 0);
	if (got < 0)
		return errno == EFAULT ? -EFAULT : -EACCES;
	return (size_t)got == n ? 0 : -EFAULT;
}

size_t task_gather(struct call *c, const struct iovec *its, size_t n, void *to, size_t room)
{
	const struct iovec mine = { to, room };
	const ssize_t got = n ? process_vm_readv(c->tid, &mine, 1, its, n, 0) : 0;

	return got < 0 ? 0 : (size_t)got;
}

int task_write(struct call *c, uint64_t at, const void *from, size_t n)
{
	union {
		const void *in;
		void *out;
	} p = { from };
	const struct iovec mine = { p.out, n };
	const struct iovec its = { (void *)(uintptr_t)at, n };

	return process_vm_writev(c->tid, &mine, 1, &its, 1, 0) == (ssize_t)n ? 0 : -EFAULT;
}

/*
 * In pieces that end at page borders: what lies behind the string may not be
 * mapped. The first piece is short, most strings fit.
 */
static int read_string(struct call *c, uint64_t at, char *to, size_t room, bool *ret_whole)
{
	size_t n = 0;

	while (n < room) {
		const size_t page = 4096 - (size_t)((at + n) & 4095);
		size_t want = n == 0 && page > 256 ? 256 : page;
		int r;

		if (want > room - n)
			want = room - n;
		r = task_read(c, at + n, to + n, want);
		if (r < 0)
			return r;
		if (memchr(to + n, 0, want)) {
			*ret_whole = true;
			return (int)strlen(to);
		}
		n += want;
	}
	*ret_whole = false;
	return (int)n;
}

int task_text(struct call *c, uint64_t at, char *to)
{
	bool whole;
	const int n = read_string(c, at, to, PATH_MAX, &whole);

	return n >= 0 && !whole ? -ENAMETOOLONG : n;
}

int task_some(struct call *c, uint64_t at, char *to, size_t room)
{
	bool whole;
	const int n = read_string(c, at, to, room - 1, &whole);

	to[n < 0 ? 0 : n] = 0;
	return n;
}

/* The number behind "\n@key:" in @text, the @nth of them. */
static bool status_number(const char *text, const char *key, unsigned nth, unsigned base,
			  unsigned *ret)
{
	const char *p = strstr(text, key);
	unsigned v = 0;

	if (!p)
		return false;
	p += strlen(key);
	for (unsigned i = 0; i <= nth; i++) {
		bool any = false;

		while (*p == ' ' || *p == '\t')
			p++;
		for (v = 0; *p >= '0' && *p <= '9'; p++) {
			v = v * base + (unsigned)(*p - '0');
			any = true;
		}
		if (!any)
			return false;
	}
	*ret = v;
	return true;
}

int task_status(struct call *c)
{
	struct task *t;
	char text[2048];
	unsigned tgid, uid, gid;
	ssize_t n;

	if (!c->fresh) {
		/* Whatever is remembered must be about this thread. */
		const int fd = open_below(c, "comm", O_PATH);

		if (fd < 0)
			return fd;
		scope_close(&fd);
	}
	t = c->task;
	if (t->known)
		return 0;
	if (t->status < 0)
		t->status = open_below(c, "status", O_RDONLY);
	if (t->status < 0)
		return -EACCES;
	n = pread(t->status, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return -EACCES;
	text[n] = 0;
	if (!status_number(text, "\nUmask:", 0, 8, &t->mask) ||
	    !status_number(text, "\nTgid:", 0, 10, &tgid) ||
	    !status_number(text, "\nUid:", 3, 10, &uid) ||
	    !status_number(text, "\nGid:", 3, 10, &gid))
		return -EACCES;
	t->tgid = (pid_t)tgid;
	t->uid = uid;
	t->gid = gid;
	t->known = c->m->opt.umask_trapped && now_ms() - c->m->umask_seen > UMASK_SETTLES_MS;
	return 0;
}

/* The new value stands in a register. Who shares it is not known, so all are forgotten. */
int op_umask(struct call *c)
{
	struct mediator *m = c->m;

	for (size_t i = 0; i < TASKS; i++)
		m->tasks[i].known = false;
	m->umask_seen = now_ms();
	return ANSWER_CONTINUE;
}

static int get_fd(int pidfd, int fd)
{
	const int got = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);

	return got < 0 ? -errno : got;
}

/*
 * The thread's own descriptor, by a pidfd that is kept; -ENOSYS where kernels have none for a
 * thread. SECURITY: what is remembered is one thread's, so a new pidfd comes with a new rest.
 */
static int own_fd(struct call *c, int fd)
{
	struct task *t;
	int r = task_find(c);

	if (r < 0)
		return r;
	t = c->task;
	if (t->pidfd < 0) {
		r = c->fresh ? 0 : task_new(c);
		if (r < 0)
			return r;
		t->pidfd = (int)syscall(SYS_pidfd_open, c->tid, PIDFD_OF_THREAD);
		if (t->pidfd < 0 && errno == EINVAL)
			t->pidfd = (int)syscall(SYS_pidfd_open, c->tid, 0);
	}
	if (t->pidfd < 0)
		return errno == EINVAL ? -ENOSYS : -errno;
	r = get_fd(t->pidfd, fd);
	c->fresh = c->fresh || r >= 0;
	return r;
}

/* SECURITY: if it waits still, all that was looked at was its own, and no successor's. */
static int if_waiting(struct call *c, int fd)
{
	if (notify_valid(c->listener, c->id))
		return fd;
	if (fd >= 0)
		scope_close(&fd);
	if (c->task)
		task_drop(c->task);
	return ANSWER_GONE;
}

int task_own_fd(struct call *c, int fd)
{
	int got = own_fd(c, fd);

	if (got == -ESRCH && !c->fresh) {
		if (c->task)
			task_drop(c->task);
		got = own_fd(c, fd);
	}
	got = if_waiting(c, got);
	return got >= 0 || got == -EBADF || got == -EMFILE || got == -ENOSYS || got == ANSWER_GONE
		       ? got
		       : -EACCES;
}

int task_take_fd(struct call *c, int fd)
{
	scoped_fd group = -1;
	int r = task_own_fd(c, fd);

	if (r != -ENOSYS)
		return r;
	/* Its group's: the same, unless it has a table of its own. */
	r = task_status(c);
	if (r < 0)
		return r;
	group = (int)syscall(SYS_pidfd_open, c->task->tgid, 0);
	r = if_waiting(c, group < 0 ? -EACCES : get_fd(group, fd));
	return r >= 0 || r == -EBADF || r == -EMFILE || r == ANSWER_GONE ? r : -EACCES;
}

/*
 * Who runs one program, or looks for it in one directory after the other, has a name of its
 * own each time. Finding the file is what takes long, so it stays open for a while; a thread
 * that is gone shows by an empty read.
 */
void task_comm(struct call *c, char to[16])
{
	struct comm *k = &c->m->comms[(unsigned)c->tid % COMMS];
	ssize_t n = k->tid == c->tid ? pread(k->fd, to, 15, 0) : 0;
	char name[32];

	if (n <= 0) {
		comm_drop(k);
		(void)snprintf(name, sizeof(name), "%d/comm", c->tid);
		k->fd = openat(c->m->proc, name, O_RDONLY | O_CLOEXEC);
		k->tid = k->fd < 0 ? 0 : c->tid;
		n = k->fd < 0 ? 0 : pread(k->fd, to, 15, 0);
	}
	if (n < 0)
		n = 0;
	if (n > 0 && to[n - 1] == '\n')
		n--;
	to[n] = 0;
}
