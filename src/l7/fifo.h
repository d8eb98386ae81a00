/*
 * fifo.h - bytes on their way through, with a bound
 *
 * Reads:  caller's bytes
 * Writes: its own heap memory
 * Next:   link.c fills and empties them, the codecs look at the front
 */
#ifndef WRIT_L7_FIFO_H
#define WRIT_L7_FIFO_H

#include "base/sv.h"

struct fifo {
	char *p;
	size_t at, n, room, max;
	bool wipe; /* what leaves it is overwritten: it carries a secret */
};

#define FIFO_INIT(maximum)                                                                         \
	{                                                                                          \
		.max = (maximum)                                                                   \
	}

struct sv fifo_view(const struct fifo *f); /* until the next call that changes it */
size_t fifo_left(const struct fifo *f);
must_check bool fifo_add(struct fifo *f, struct sv bytes); /* all of them or none */
void fifo_drop(struct fifo *f, size_t n);
void fifo_clear(struct fifo *f); /* frees; the maximum stays */

/* Room for up to @want more bytes at the end, which fifo_took() then counts. */
must_check char *fifo_space(struct fifo *f, size_t want, size_t *ret_n);
void fifo_took(struct fifo *f, size_t n);

#endif
