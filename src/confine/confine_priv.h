/*
 * confine_priv.h - what both ways to confine share
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   confine.c for our own processes, command.c for programs we run
 */
#ifndef WRIT_CONFINE_CONFINE_PRIV_H
#define WRIT_CONFINE_CONFINE_PRIV_H

#include <stddef.h>

#include "base/err.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

enum { X32 = 0x40000000 };

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IS(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), yes, no)
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, (uint32_t)(value))

/* No new privileges, no capabilities, no core, nobody looks into us. */
must_check int confine_privileges(struct writ_err *err);

/* Of all system calls only these; anything else ends the process. */
must_check int confine_filter(const int *calls, size_t n, unsigned sockets, struct writ_err *err);

#endif
