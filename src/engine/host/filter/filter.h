/*
 * filter.h - seccomp programs, compiled at build time from one table
 *
 * Theory of operation
 *
 * syscalls.tbl has one row per system call: what a jailed program and the keeper may do with the
 * call, and when the call goes to the mediator. generate.c compiles the table into BPF programs
 * while writ is built: one base program per combination of switches, one trap program per
 * combination of traps, and one for the keeper. filter.c returns the right program at run time. The
 * module has no state and computes nothing when a session starts.
 *
 * A jailed program runs under one or two filters. The base program is the allow-list: it allows,
 * refuses, or compares arguments; a call without a row fails with ENOSYS. The trap program, which
 * writ-init loads if the plan has any trap, sends chosen calls to the mediator and allows the rest.
 * The kernel takes the stricter answer of the two.
 *
 * Inputs are bits of enum filter_switch and enum filter_trap; the output is a program.
 *
 * Invariants
 *   - The base program kills a process that makes a call of a foreign architecture. x32 numbers are
 *     above all rows, so the base program answers ENOSYS.
 *   - A filter compares arguments as the kernel reads them: for an int only the lower half of the
 *     register, because the kernel ignores the upper half; for a pointer both halves.
 *   - A filter decides on registers, never on memory: while the filter runs, other threads can
 *     change memory but not the registers of the caller.
 *   - The same table gives the same programs on every build machine.
 *
 * Common mistakes
 *   - Load at most one trap program: the kernel refuses another listener to a process that has one.
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

/* Switches that make the base program allow more or less than without any switch. */
enum filter_switch {
	/* tier B, the host's namespaces: no netlink, no MSG_FASTOPEN, ... */
	FILTER_TIER_B = 1u << 0,
	FILTER_NESTED_USERNS = 1u << 1, /* `kernel nested-userns` in the policy */
	FILTER_PTRACE_OWN = 1u << 2,	/* `kernel ptrace-own` in the policy */
	FILTER_IO_URING = 1u << 3,	/* `kernel io_uring` in the policy */
	/* Program list: no memfd without MFD_NOEXEC_SEAL, no execveat() with AT_EMPTY_PATH. */
	FILTER_EXEC_LIST = 1u << 4,
	FILTER_SWITCHES = 32, /* number of combinations */
};

/* Traps: groups of calls that the trap program sends to the mediator. */
enum filter_trap {
	/* execve and execveat: the mediator records the program and lets the call through */
	TRAP_EXEC = 1u << 0,
	/* opens that create, write or truncate; mkdir, rename, link, bind, umask ... */
	TRAP_WRITE = 1u << 1,
	TRAP_READ = 1u << 2,  /* every open without O_PATH */
	/*
	 * Calls that change modes, owners, times, xattrs or file flags, by path or by descriptor.
	 */
	TRAP_META = 1u << 3,
	/* Calls that name an address: connect, bind, sendto, sendmsg, sendmmsg; and listen. */
	TRAP_NET = 1u << 4,
	/* connect, and creating UNIX datagram sockets, which could send without connect */
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
