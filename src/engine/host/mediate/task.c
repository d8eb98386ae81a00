#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "mediate/op_priv.h"

#include "base/banned.h"

/*
 * Time after a umask() during which the mediator does not trust its cache of umasks. The mediator
 * lets umask() through, and the new umask may take effect only after the mediator has read the
 * status of the thread again.
 */
enum { UMASK_SETTLES_MS = 200 };

/* Flag of kernel 6.9; newer than the oldest supported headers. */
enum { PIDFD_OF_THREAD = O_EXCL };

void task_clear(struct task *t)
{
	if (t->tid) {
		fd_scope_close(&t->proc);
		fd_scope_close(&t->status);
		fd_scope_close(&t->pidfd);
	}
	*t = (struct task){ .proc = -1, .status = -1, .pidfd = -1 };
}

void task_comm_clear(struct task_comm *k)
{
	if (k->tid)
		fd_scope_close(&k->fd);
	*k = (struct task_comm){ .fd = -1 };
}

static int task_new(struct call *c)
{
	struct task *t = c->task;
	char name[16];

	task_clear(t);
	(void)snprintf(name, sizeof(name), "%d", c->tid);
	t->proc = openat(c->m->proc, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (t->proc < 0)
		return -errno;
	t->tid = c->tid;
	c->fresh = true;
	return 0;
}

static int task_find(struct call *c)
{
	c->task = &c->m->tasks[(unsigned)c->tid % TASKS];
	return c->task->tid == c->tid ? 0 : task_new(c);
}

/*
 * Opens an entry of /proc/TID. If the cached directory belongs to a dead thread, opening fails with
 * ESRCH or ENOENT. The kernel has then reused the thread id, and this function opens the directory
 * of the new thread.
 */
static int open_below(struct call *c, const char *name, int flags)
{
	int fd, r = task_find(c);

	if (r < 0)
		return r;
	fd = openat(c->task->proc, name, flags | O_CLOEXEC);
	if (fd < 0 && (errno == ESRCH || errno == ENOENT) && !c->fresh) {
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

int task_open_fd(struct call *c, int fd)
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
	/*
	 * SECURITY: the mediator uses this root for all callers from now on. So the root must not
	 * belong to a later process with the same id.
	 */
	if (fd >= 0 && !notify_valid(c->listener, c->id)) {
		fd_scope_close(&fd);
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
	c->inspected = true;
	return (size_t)got == n ? 0 : -EFAULT;
}

size_t task_read_iov(struct call *c, const struct iovec *its, size_t n, void *to, size_t room)
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
 * Copies a string in pieces that end at page boundaries: the page after the string may not be
 * mapped. The first piece is short, since most strings are short. *@ret_whole: the copy includes
 * the NUL. Returns the number of bytes before the NUL, or -errno.
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

int task_read_path(struct call *c, uint64_t at, char *to)
{
	bool whole;
	const int n = read_string(c, at, to, PATH_MAX, &whole);

	return n >= 0 && !whole ? -ENAMETOOLONG : n;
}

int task_read_prefix(struct call *c, uint64_t at, char *to, size_t room)
{
	bool whole;
	const int n = read_string(c, at, to, room - 1, &whole);

	to[n < 0 ? 0 : n] = 0;
	return n;
}

/* Parses number @nth, counted from 0, after @key (such as "\nUid:") in @text. */
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
		/*
		 * Verify that the thread of the cached directory lives before using cached values.
		 */
		const int fd = open_below(c, "comm", O_PATH);

		if (fd < 0)
			return fd;
		fd_scope_close(&fd);
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
	t->known = c->m->opt.umask_trapped &&
		   clock_monotonic_ms() - c->m->umask_seen > UMASK_SETTLES_MS;
	return 0;
}

/*
 * Lets the call through and drops the cached umasks of all callers: threads may share a umask, and
 * the mediator does not know which threads do.
 */
int op_umask(struct call *c)
{
	struct mediator *m = c->m;

	for (size_t i = 0; i < TASKS; i++)
		m->tasks[i].known = false;
	m->umask_seen = clock_monotonic_ms();
	return ANSWER_CONTINUE;
}

static int get_fd(int pidfd, int fd)
{
	const int got = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);

	return got < 0 ? -errno : got;
}

/*
 * Duplicates a descriptor of the thread through a cached pidfd. Returns -ENOSYS if the kernel has
 * no pidfd for this thread. SECURITY: a new pidfd is stored only next to a /proc directory that the
 * mediator opened during this call, so that both belong to the same thread.
 */
static int dup_thread_fd(struct call *c, int fd)
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

/*
 * Returns @fd if the caller still waits, else closes @fd and returns ANSWER_GONE. SECURITY: if the
 * caller still waits, everything that the mediator has inspected so far belongs to this caller, and
 * not to a later thread with the same id.
 */
static int check_still_waiting(struct call *c, int fd)
{
	if (notify_valid(c->listener, c->id))
		return fd;
	if (fd >= 0)
		fd_scope_close(&fd);
	if (c->task)
		task_clear(c->task);
	return ANSWER_GONE;
}

int task_dup_thread_fd(struct call *c, int fd)
{
	int got = dup_thread_fd(c, fd);

	if (got == -ESRCH && !c->fresh) {
		if (c->task)
			task_clear(c->task);
		got = dup_thread_fd(c, fd);
	}
	got = check_still_waiting(c, got);
	return got >= 0 || got == -EBADF || got == -EMFILE || got == -ENOSYS || got == ANSWER_GONE
		       ? got
		       : -EACCES;
}

int task_dup_fd(struct call *c, int fd)
{
	scoped_fd group = -1;
	int r = task_dup_thread_fd(c, fd);

	if (r != -ENOSYS)
		return r;
	/*
	 * Fall back to the leader of the thread group, which has the same descriptors unless the
	 * thread has a descriptor table of its own.
	 */
	r = task_status(c);
	if (r < 0)
		return r;
	group = (int)syscall(SYS_pidfd_open, c->task->tgid, 0);
	r = check_still_waiting(c, group < 0 ? -EACCES : get_fd(group, fd));
	return r >= 0 || r == -EBADF || r == -EMFILE || r == ANSWER_GONE ? r : -EACCES;
}

/*
 * Reads the name of the calling thread. Opening the file with the name takes longer than reading
 * it, so the file stays open for the next call of the thread: a process that searches PATH makes
 * many calls. If the cached file belongs to a dead thread, reading it returns nothing, and the
 * function opens the file of the thread that has the id now.
 */
void task_read_comm(struct call *c, char to[16])
{
	struct task_comm *k = &c->m->comms[(unsigned)c->tid % COMMS];
	ssize_t n = k->tid == c->tid ? pread(k->fd, to, 15, 0) : 0;
	char name[32];

	if (n <= 0) {
		task_comm_clear(k);
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
