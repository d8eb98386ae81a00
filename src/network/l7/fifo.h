/*
 * fifo.h - a bounded queue of bytes
 *
 * Reads:  bytes of the caller
 * Writes: heap memory of the queue
 * Next:   link.c fills and empties queues, the codecs read the front of a queue
 */
#ifndef WRIT_L7_FIFO_H
#define WRIT_L7_FIFO_H

#include "base/sv.h"

struct fifo {
	char *p;
	size_t at, n, room, max;
	bool wipe; /* bytes that leave the queue are overwritten, because they contain a secret */
};

#define FIFO_INIT(maximum)                                                                         \
	{                                                                                          \
		.max = (maximum)                                                                   \
	}

/* Returns the queued bytes; valid until the next call that changes the queue. */
struct sv fifo_view(const struct fifo *f);
size_t fifo_left(const struct fifo *f);
/* Adds all of @bytes. Returns false and adds none if room or memory is lacking. */
must_check bool fifo_add(struct fifo *f, struct sv bytes);
void fifo_drop(struct fifo *f, size_t n);
void fifo_clear(struct fifo *f); /* frees the queue's memory; @max stays */

/*
 * Returns space for up to @want bytes at the end of the queue, or NULL. The caller writes bytes to
 * the space and adds their number to @n of the queue. *@ret_n is the size of the space.
 */
must_check char *fifo_space(struct fifo *f, size_t want, size_t *ret_n);

#endif
