/*
 * landlock.h - Landlock structures and rights, independent of the installed kernel headers
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   confine/ (own processes), jail/ and compile/ (sessions)
 *
 * Build machines often have headers older than the kernels writ runs on, so the newest
 * form of the interface is declared here; ll_known() and ll_size() cut it down to
 * the ABI of the running kernel.
 */
#ifndef WRIT_BASE_LANDLOCK_H
#define WRIT_BASE_LANDLOCK_H

#include <stddef.h>
#include <stdint.h>

enum {
	LL_VERSION = 1, /* flag: landlock_create_ruleset() returns the ABI version of Landlock */
	LL_RULE_BENEATH = 1
};

struct ll_ruleset {
	uint64_t fs, net, scope;
};

struct ll_beneath {
	uint64_t access;
	int32_t fd;
} __attribute__((packed));

/* Landlock rights on files. LL_ABI1 holds all rights of ABI 1; later rights name their ABI. */
enum {
	LL_EXECUTE = 1u << 0,
	LL_WRITE_FILE = 1u << 1,
	LL_READ_FILE = 1u << 2,
	LL_READ_DIR = 1u << 3,
	LL_MAKE_CHAR = 1u << 6,
	LL_MAKE_BLOCK = 1u << 11,
	LL_ABI1 = (1u << 13) - 1,
	LL_REFER = 1u << 13,	 /* since Landlock ABI 2 */
	LL_TRUNCATE = 1u << 14,	 /* since Landlock ABI 3 */
	LL_IOCTL_DEV = 1u << 15, /* since Landlock ABI 5 */
	/* The rights that apply to a file which is not a directory. */
	LL_FILE = LL_EXECUTE | LL_WRITE_FILE | LL_READ_FILE | LL_TRUNCATE | LL_IOCTL_DEV,
};

/* Returns all file rights that a kernel of Landlock ABI @abi knows. */
static inline uint64_t ll_known(uint64_t abi)
{
	return (abi >= 1 ? (uint64_t)LL_ABI1 : 0) | (abi >= 2 ? (uint64_t)LL_REFER : 0) |
	       (abi >= 3 ? (uint64_t)LL_TRUNCATE : 0) | (abi >= 5 ? (uint64_t)LL_IOCTL_DEV : 0);
}

/* Returns the size of struct ll_ruleset that a kernel of Landlock ABI @abi expects. */
static inline size_t ll_size(uint64_t abi)
{
	return abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
}

#endif
