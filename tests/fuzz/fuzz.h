/*
 * fuzz.h - what every fuzz target has: its entry, a law, and a view of its bytes
 */
#ifndef WRIT_TESTS_FUZZ_H
#define WRIT_TESTS_FUZZ_H

#include <stdint.h>
#include <stdlib.h>

#include "base/sv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void must(bool yes)
{
	if (!yes)
		abort();
}

/* libFuzzer's data may be NULL where nothing is given, which no view is. */
static inline struct sv fuzz_bytes(const uint8_t *data, size_t size)
{
	return (struct sv){ size ? (const char *)data : "", size };
}

#endif
