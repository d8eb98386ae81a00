#include "escape.h"

#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* One request through a ring of its own. Returns the request's result. */
int uring_one(const struct io_uring_sqe *sqe)
{
	struct io_uring_params p = { 0 };
	const int fd = (int)syscall(SYS_io_uring_setup, 4, &p);

	if (fd < 0)
		return -errno;
	const size_t sq_size = p.sq_off.array + p.sq_entries * sizeof(uint32_t);
	const size_t cq_size = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
	char *sq = mmap(NULL, sq_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
	char *cq = mmap(NULL, cq_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_CQ_RING);
	struct io_uring_sqe *sqes = mmap(NULL, p.sq_entries * sizeof(*sqes), PROT_READ | PROT_WRITE,
					 MAP_SHARED, fd, IORING_OFF_SQES);
	int r = -errno;

	if (sq != MAP_FAILED && cq != MAP_FAILED && sqes != MAP_FAILED) {
		const struct io_uring_cqe *cqes = (const void *)(cq + p.cq_off.cqes);
		uint32_t *tail = (void *)(sq + p.sq_off.tail);

		sqes[0] = *sqe;
		*(uint32_t *)(void *)(sq + p.sq_off.array) = 0;
		__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
		r = rc(syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0));
		if (r == 0)
			r = cqes[0].res;
	}
	/* The ring and its maps live as long as the attempt: a few pages. */
	return r;
}

#if defined(__x86_64__)
/* A filter may kill whoever comes this way: somebody else goes first, so that we can tell. */
static int gate_is_open(void)
{
	const pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		long ret = 20; /* getpid */

		__asm__ volatile("int $0x80"
				 : "+a"(ret)
				 :
				 : "memory", "cc", "r8", "r9", "r10", "r11");
		_exit(0);
	}
	return pid < 0 || waitpid(pid, &status, 0) != pid || WIFEXITED(status);
}
#endif

long int80(long nr, long a, long b, long d, long e, long f)
{
#if defined(__x86_64__)
	long ret = nr;

	if (!gate_is_open())
		return -ENOSYS;

	__asm__ volatile("int $0x80"
			 : "+a"(ret)
			 : "b"(a), "c"(b), "d"(d), "S"(e), "D"(f)
			 : "memory", "cc", "r8", "r9", "r10", "r11");
	return (int)ret;
#else
	(void)nr, (void)a, (void)b, (void)d, (void)e, (void)f;
	return -ENOSYS;
#endif
}

char *low_memory(void)
{
#if defined(MAP_32BIT)
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT,
		       -1, 0);

	return p == MAP_FAILED ? NULL : p;
#else
	return NULL;
#endif
}
