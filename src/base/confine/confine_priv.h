/*
 * confine_priv.h - code shared by the profiles for helpers and for foreign programs
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   confine.c (helpers), command.c (foreign programs)
 */
#ifndef WRIT_CONFINE_CONFINE_PRIV_H
#define WRIT_CONFINE_CONFINE_PRIV_H

#include "confine/confine.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

enum { X32 = 0x40000000 };

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IS(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), yes, no)
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, (uint32_t)(value))

/* Sets no_new_privs, drops capabilities, forbids core dumps and makes the process non-dumpable. */
must_check int confine_privileges(struct writ_err *err);

/*
 * Allows access to files only in @trees and refuses the operations @net (CONFINE_BIND,
 * CONFINE_CONNECT) on TCP sockets. Also refuses abstract UNIX sockets of other processes and
 * signals to them. Each rule applies as far as the Landlock of this kernel can enforce it. Fails
 * with WRIT_E_UNENFORCEABLE if the kernel has no Landlock.
 */
enum { CONFINE_BIND = 1, CONFINE_CONNECT = 2 };
must_check int confine_trees(const struct confine_tree *trees, size_t n, uint64_t net,
			     struct writ_err *err);

/*
 * Installs a seccomp filter that allows only @calls, and socket() for the types @sockets; any other
 * system call kills the process.
 */
must_check int confine_filter(const int *calls, size_t n, unsigned sockets, struct writ_err *err);

#endif
