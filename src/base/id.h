/*
 * id.h - fixed-size ids: distinct types, so swapping two is a compile error
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   every room
 */
#ifndef WRIT_BASE_ID_H
#define WRIT_BASE_ID_H

#include <stdint.h>

struct digest {
	uint8_t b[32]; /* SHA-256 */
};

#endif
