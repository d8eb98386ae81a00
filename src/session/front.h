/*
 * front.h - where a person's standard descriptors meet a command's
 *
 * Reads:  which of 0, 1, 2 are terminals
 * Writes: pipes and terminals
 * Next:   session/ (run) and session/client.c (exec) relay with what this opened
 */
#ifndef WRIT_SESSION_FRONT_H
#define WRIT_SESSION_FRONT_H

#include "term/relay.h"

struct front {
	struct relay_options relay;
	uint32_t pty, given; /* bits of 1 << fd: a terminal to be made inside; sent along */
	int inside[3];	     /* what is sent along */
	uint16_t rows, cols;
};
#define FRONT_INIT                                                                                 \
	{                                                                                          \
		.relay = { .outer = { -1, -1, -1 }, .inner = { -1, -1, -1 }, .pty = -1 },          \
		.inside = {                                                                        \
			-1,                                                                        \
			-1,                                                                        \
			-1                                                                         \
		}                                                                                  \
	}

/*
 * @stdio: descriptors to use instead of 0, 1 and 2, and never as terminals; or NULL.
 * @host_ttys: the terminal is one of the host's, and open already.
 */
must_check int front_open(struct front *f, const int *stdio, bool host_ttys, struct writ_err *err);
/* A terminal of the host's own of that size; the other side goes to those of @pty. */
must_check int front_terminal(uint32_t pty, uint16_t rows, uint16_t cols, int ret_inside[static 3],
			      int *ret_master, struct writ_err *err);
/* From then on what it relays is the relay's to close; on failure it stays the front's. */
must_check int front_relay(struct front *f, struct relay **ret_relay, struct writ_err *err);
void front_sent(struct front *f); /* closes what was sent along */
void front_clear(struct front *f);

#endif
