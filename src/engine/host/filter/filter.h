/*
 * filter.h - seccomp programs, compiled at build time from one table
 *
 * Theory of operation
 *
 * syscalls.tbl has one row per system call: what a jailed program and the keeper may do with it,
 * and when it goes to the mediator. generate.c compiles the table into BPF programs while writ is
 * built, one for each combination of switches or traps; filter.c returns the right one at run
 * time. There is no state, and nothing is computed when a session starts.
 *
 * A jailed program runs under two filters at once. The base program is the allow-list: it allows,
 * refuses, or compares arguments; a call without a row is ENOSYS. The trap program sends chosen
 * calls to the mediator and allows the rest. The kernel takes the stricter answer of the two.
 *
 * Inputs are bits of enum filter_switch and enum filter_trap; the output is a program.
 *
 * Invariants
 *   - A foreign architecture kills the process in the base program. x32 numbers are above all rows
 *     and therefore ENOSYS.
 *   - Arguments are compared as the kernel reads them. For an int it ignores the upper half of the
 *     register, so only the lower half is compared; for a pointer both halves are.
 *   - A filter decides on registers only, never on memory: the caller cannot change registers any
 *     more.
 *   - The same table gives the same programs on every build machine.
 *
 * Common mistakes
 *   - The trap program must be loaded first: the base program refuses to install another listener.
 *   - Variants of a call (open, openat, creat) each need a row with the same decision.
 *   - A new switch doubles the number of base programs, a new trap that of trap programs.
 *
 * Reads:  nothing (the table is filter/syscalls.tbl, compiled by filter/generate.c)
 * Writes: nothing
 * Next:   compile/ copies a program into the jail program; writ-init loads it
 */
#ifndef WRIT_FILTER_FILTER_H
#define WRIT_FILTER_FILTER_H

#include <linux/filter.h>
#include <stdint.h>

/* Switches that make the base program allow more, or less, than by default. */
enum filter_switch {
	FILTER_TIER_B = 1u << 0,	/* host namespaces: no netlink, no MSG_FASTOPEN, ... */
	FILTER_NESTED_USERNS = 1u << 1, /* `kernel nested-userns` in the policy */
	FILTER_PTRACE_OWN = 1u << 2,	/* `kernel ptrace-own` in the policy */
	FILTER_IO_URING = 1u << 3,	/* `kernel io_uring` in the policy */
	/* the policy lists programs: sealed memfds only, no AT_EMPTY_PATH */
	FILTER_EXEC_LIST = 1u << 4,
	FILTER_SWITCHES = 32, /* number of combinations */
};

/* Traps: groups of calls that the trap program sends to the mediator. */
enum filter_trap {
	TRAP_EXEC = 1u << 0,  /* execve, execveat: recorded, then let through */
	TRAP_WRITE = 1u << 1, /* opens that create, write or truncate; mkdir, rename, link ... */
	TRAP_READ = 1u << 2,  /* every open */
	/* Calls that change modes, owners, times or xattrs, by path and by descriptor. */
	TRAP_META = 1u << 3,
	/* Calls that name an address: connect, bind, sendto, sendmsg, sendmmsg. */
	TRAP_NET = 1u << 4,
	/* connect, and creating UNIX datagram sockets, which could send without connecting */
	TRAP_UNIX = 1u << 5,
	TRAP_COMBINATIONS = 64,
};

struct filter {
	const struct sock_filter *v;
	/* Number of instructions; 0: no such program for this architecture, or unknown bits. */
	uint16_t n;
};

struct filter filter_base(uint32_t switches);
struct filter filter_traps(uint32_t traps); /* returns the trap program; n is 0 if @traps is 0 */
struct filter filter_keeper(void);	    /* returns the filter of the keeper process */

#endif
