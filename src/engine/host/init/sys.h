/*
 * sys.h - system calls without a C library
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   the other files of writ-init
 *
 * writ-init is not linked with a C library. Each call returns the kernel's value: on failure a
 * negated errno.
 */
#ifndef WRIT_INIT_SYS_H
#define WRIT_INIT_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>

#if defined(__x86_64__)
static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}
#elif defined(__aarch64__)
static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}
#else
#error "writ-init knows x86-64 and arm64"
#endif

/*
 * A test build can be told to skip a step of the jail, to prove that the probes notice the missing
 * step. In an installed writ-init the condition is the constant false.
 */
#ifdef WRIT_PLANT
#define PLANTED(fail_at, step)                                                                     \
	((fail_at) == (0x100u | (step)) || ((fail_at) > 0x100u && (step) == STEP_SEALED))
#else
#define PLANTED(fail_at, step) false
#endif

#define SYS_ARG(x) ((long)(x))
#define SYS_N(_1, _2, _3, _4, _5, _6, _7, name, ...) name
#define SYS1(n) sys6(n, 0, 0, 0, 0, 0, 0)
#define SYS2(n, a) sys6(n, SYS_ARG(a), 0, 0, 0, 0, 0)
#define SYS3(n, a, b) sys6(n, SYS_ARG(a), SYS_ARG(b), 0, 0, 0, 0)
#define SYS4(n, a, b, c) sys6(n, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), 0, 0, 0)
#define SYS5(n, a, b, c, d) sys6(n, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), SYS_ARG(d), 0, 0)
#define SYS6(n, a, b, c, d, e)                                                                     \
	sys6(n, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), SYS_ARG(d), SYS_ARG(e), 0)
#define SYS7(n, a, b, c, d, e, f)                                                                  \
	sys6(n, SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), SYS_ARG(d), SYS_ARG(e), SYS_ARG(f))
/* sys(NAME, arguments...) makes the system call __NR_NAME: sys(openat, dir, path, flags, mode). */
#define sys(name, ...) sys_any(__NR_##name, ##__VA_ARGS__)
#define sys_any(...) SYS_N(__VA_ARGS__, SYS7, SYS6, SYS5, SYS4, SYS3, SYS2, SYS1)(__VA_ARGS__)

_Noreturn static inline void sys_exit(int code)
{
	for (;;)
		(void)sys(exit_group, code);
}

/* The compiler generates calls to memcpy() and its kin by itself, so writ-init defines them. */
void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memset(void *to, int byte, size_t n);
int memcmp(const void *a, const void *b, size_t n);
void *memmove(void *to, const void *from, size_t n);
size_t strlen(const char *s);

/* Numbers of system calls that the oldest supported kernel headers do not define. */
#ifndef __NR_mount_setattr
#define __NR_mount_setattr 442
#endif
#ifndef __NR_landlock_create_ruleset
#define __NR_landlock_create_ruleset 444
#define __NR_landlock_add_rule 445
#define __NR_landlock_restrict_self 446
#endif

#endif
