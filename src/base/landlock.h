/*
 * landlock.h - Landlock in its newest form here, for kernels and headers that know less
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   whoever confines itself, and who says how others are to be
 */
#ifndef WRIT_BASE_LANDLOCK_H
#define WRIT_BASE_LANDLOCK_H

#include <stddef.h>
#include <stdint.h>

enum { LL_VERSION = 1 /* asks for the ABI */, LL_RULE_BENEATH = 1 };

struct ll_ruleset {
	uint64_t fs, net, scope;
};

struct ll_beneath {
	uint64_t access;
	int32_t fd;
} __attribute__((packed));

/* Rights on files, by the bit; newer ones exist from a given ABI on. */
enum {
	LL_EXECUTE = 1u << 0,
	LL_WRITE_FILE = 1u << 1,
	LL_READ_FILE = 1u << 2,
	LL_READ_DIR = 1u << 3,
	LL_MAKE_CHAR = 1u << 6,
	LL_MAKE_BLOCK = 1u << 11,
	LL_ABI1 = (1u << 13) - 1,
	LL_REFER = 1u << 13,	 /* 2 */
	LL_TRUNCATE = 1u << 14,	 /* 3 */
	LL_IOCTL_DEV = 1u << 15, /* 5 */
	/* What makes sense for what is no directory. */
	LL_FILE = LL_EXECUTE | LL_WRITE_FILE | LL_READ_FILE | LL_TRUNCATE | LL_IOCTL_DEV,
};

/* Every right on files that a kernel of @abi knows. */
static inline uint64_t ll_known(uint64_t abi)
{
	return (abi >= 1 ? (uint64_t)LL_ABI1 : 0) | (abi >= 2 ? (uint64_t)LL_REFER : 0) |
	       (abi >= 3 ? (uint64_t)LL_TRUNCATE : 0) | (abi >= 5 ? (uint64_t)LL_IOCTL_DEV : 0);
}

/* How much of struct ll_ruleset it takes. */
static inline size_t ll_size(uint64_t abi)
{
	return abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
}

#endif
