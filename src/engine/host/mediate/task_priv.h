/*
 * task_priv.h - the caller of a trapped call: its memory, descriptors and /proc entry
 *
 * Copy a value from the caller's memory once and decide about the copy: the caller's other threads
 * can change the memory at any time. A thread id may be reused after its thread died. So use the
 * result of a function that inspects the caller only if the function used a /proc directory that
 * was seen alive during this call (call.fresh), or if notify_valid() succeeds afterwards.
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
	TASKS = 64, /* number of cached callers; the index is the thread id modulo TASKS */
	COMMS = 8,  /* number of cached /proc/TID/comm files; the index is the id modulo COMMS */
};

/*
 * A thread of the session. @proc is the /proc directory of this thread. After the thread's death
 * every lookup in @proc fails, even if the kernel has reused the thread id.
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
 * Copies a path of less than PATH_MAX bytes from the caller's memory. Returns its length or -errno.
 */
int task_read_path(struct call *c, uint64_t at, char *to);
/*
 * Copies a string from the caller's memory: as many bytes as fit into @to with a NUL at the end.
 * Returns the number of bytes before the NUL, or -errno.
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
/*
 * Opens "cwd", "root", "fd/7" or another entry of the caller's /proc directory with O_PATH. Returns
 * a descriptor or -errno.
 */
int task_open(struct call *c, const char *name, unsigned flags);
/* Opens the file of the caller's descriptor @fd with O_PATH. Returns a descriptor or -errno. */
int task_open_fd(struct call *c, int fd);
/* Returns the root directory for the caller's paths, owned by the mediator, or -errno. */
int task_root(struct call *c);
int task_status(struct call *c); /* sets call.task and its ids and umask; 0 or -errno */
/*
 * Duplicates the caller's descriptor @fd; the duplicate shares file offset and status flags.
 * Returns a descriptor or -errno.
 */
int task_dup_fd(struct call *c, int fd);
/*
 * Like task_dup_fd(), but returns -ENOSYS for a thread that is not the leader of its group if the
 * kernel has no pidfds of such threads (before 6.9).
 */
int task_dup_thread_fd(struct call *c, int fd);
void task_read_comm(struct call *c, char to[16]);
void task_clear(struct task *t);
void task_comm_clear(struct task_comm *k);

#endif
