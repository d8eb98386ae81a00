/*
 * id.h - the digest as a type of its own, so that passing other bytes is a compile error
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   every module
 */
#ifndef WRIT_BASE_ID_H
#define WRIT_BASE_ID_H

#include <stdint.h>

struct digest {
	uint8_t b[32]; /* a SHA-256 hash */
};

#endif
