/*
 * filter.h - seccomp programs, compiled at build time from one table
 *
 * Reads:  nothing (the table is filter/syscalls.tbl, compiled by filter/generate.c)
 * Writes: nothing
 * Next:   adapter/ copies a program into the jail program; writ-init loads it
 *
 * Two kinds are stacked. The base program is the allow-list: what it does not
 * know is ENOSYS. The trap program sends chosen calls to the mediator and allows
 * the rest; the kernel takes the stricter answer of the two. The trap program is
 * loaded first: the base program refuses listeners, ours included.
 */
#ifndef WRIT_FILTER_FILTER_H
#define WRIT_FILTER_FILTER_H

#include <linux/filter.h>
#include <stdint.h>

/* What the base program allows beyond, or less than, the default. */
enum filter_switch {
	FILTER_TIER_B = 1u << 0,	/* host namespaces: no netlink, no MSG_FASTOPEN ... */
	FILTER_NESTED_USERNS = 1u << 1, /* kernel nested-userns */
	FILTER_PTRACE_OWN = 1u << 2,	/* kernel ptrace-own */
	FILTER_IO_URING = 1u << 3,	/* kernel io_uring */
	FILTER_EXEC_LIST = 1u << 4,	/* an exec list: sealed memfds only, no AT_EMPTY_PATH */
	FILTER_SWITCHES = 32,		/* number of combinations */
};

/* What the trap program sends to the mediator. */
enum filter_trap {
	TRAP_EXEC = 1u << 0,  /* execve, execveat: observed */
	TRAP_WRITE = 1u << 1, /* opens that create, write or truncate; mkdir, rename, link ... */
	TRAP_READ = 1u << 2,  /* every open */
	TRAP_META = 1u << 3,  /* chmod, chown, utimes, xattr, by path and by descriptor */
	TRAP_NET = 1u << 4,   /* connect, bind, sendto, sendmsg, sendmmsg */
	TRAP_UNIX = 1u << 5,  /* connect; UNIX sockets that could send without it: datagrams */
	TRAP_COMBINATIONS = 64,
};

struct filter {
	const struct sock_filter *v;
	uint16_t n; /* 0: no such program on this architecture, or bits nobody knows */
};

struct filter filter_base(uint32_t switches);
struct filter filter_traps(uint32_t traps); /* 0 traps: no program, n is 0 */
struct filter filter_keeper(void); /* what the keeper may still do */

#endif
