/*
 * task_priv.h - the caller of a trapped call: its memory, descriptors and /proc entry
 *
 * Everything a caller can change is read once. A thread id may be reused after its thread died, so
 * each function that inspects the caller either works on a /proc directory that was opened during
 * this call, or is followed by notify_valid() before the result is used.
 */
#ifndef WRIT_MEDIATE_TASK_PRIV_H
#define WRIT_MEDIATE_TASK_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct call;

enum {
	TASKS = 64, /* cached callers, indexed by thread id */
	COMMS = 8,  /* cached /proc/TID/comm files, indexed by thread id */
};

/*
 * A thread of the session. @proc is the thread's own /proc directory: it keeps referring to this
 * thread, and fails with ESRCH after its death even if the id was reused.
 */
struct task {
	pid_t tid;
	int proc, status, pidfd; /* @status: descriptor of /proc/TID/status, kept open */
	bool known;		 /* the members below were read and are still valid */
	unsigned mask;		 /* umask of the thread */
	pid_t tgid;
	uid_t uid; /* file system uid and gid of the thread */
	gid_t gid;
};

/* A cached descriptor of /proc/TID/comm. */
struct task_comm {
	pid_t tid; /* thread id; 0: the entry is unused */
	int fd;
};

/*
 * Copies a path of at most PATH_MAX bytes from the caller's memory; returns its length or -errno.
 */
int task_read_path(struct call *c, uint64_t at, char *to);
/*
 * Copies as much of a string as fits into @to and appends a NUL; returns the number of bytes copied
 * or -errno.
 */
int task_read_prefix(struct call *c, uint64_t at, char *to, size_t room);
/* Copies exactly @n bytes from the caller's memory; returns 0 or -errno. */
int task_read(struct call *c, uint64_t at, void *to, size_t n);
/*
 * Copies several ranges of the caller's memory into @to, one after the other; returns the number of
 * bytes copied before a failure.
 */
size_t task_read_iov(struct call *c, const struct iovec *its, size_t n, void *to, size_t room);
int task_write(struct call *c, uint64_t at, const void *from, size_t n);
/* Opens "cwd", "root", "fd/7" or another entry of the caller's /proc directory with O_PATH. */
int task_open(struct call *c, const char *name, unsigned flags);
/*
 * Opens the file behind the caller's descriptor @fd with O_PATH; returns -EBADF if the caller has
 * no such descriptor.
 */
int task_open_fd(struct call *c, int fd);
/* Returns the caller's root directory; the task keeps the descriptor. */
int task_root(struct call *c);
int task_status(struct call *c); /* fills call.task; 0 or -errno */
/* Duplicates the caller's descriptor itself, so that the duplicate shares file offset and flags. */
int task_dup_fd(struct call *c, int fd);
/*
 * Like task_dup_fd(), but returns -ENOSYS if the kernel offers no pidfd of a thread (before 6.9).
 */
int task_dup_thread_fd(struct call *c, int fd);
void task_read_comm(struct call *c, char to[16]);
void task_clear(struct task *t);
void task_comm_clear(struct task_comm *k);

#endif
