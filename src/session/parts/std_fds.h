/*
 * std_fds.h - the standard descriptors of a person, and those of a command
 *
 * Reads:  which of 0, 1, 2 are terminals
 * Writes: pipes and terminals
 * Next:   terminal.c (run) and attach_client.c (exec) relay between these descriptors
 */
#ifndef WRIT_SESSION_FRONT_H
#define WRIT_SESSION_FRONT_H

#include "term/relay.h"

struct std_fds {
	struct relay_options relay;
	/* Bits 1 << fd. @pty: descriptors that become a terminal; @given: descriptors to send. */
	uint32_t pty, given;
	int inside[3]; /* descriptors for the command in the jail */
	uint16_t rows, cols;
};
#define STD_FDS_INIT                                                                               \
	{                                                                                          \
		.relay = { .outer = { -1, -1, -1 }, .inner = { -1, -1, -1 }, .pty = -1 },          \
		.inside = {                                                                        \
			-1,                                                                        \
			-1,                                                                        \
			-1                                                                         \
		}                                                                                  \
	}

/*
 * Opens the descriptors for a command. @stdio: descriptors to use instead of 0, 1 and 2, and never
 * as terminals; or NULL. @host_ttys: open a terminal of the host now, because the jail cannot make
 * one.
 */
must_check int std_fds_open(struct std_fds *f, const int *stdio, bool host_ttys,
			    struct writ_err *err);
/* Opens a terminal of the host. For each bit of @pty, @ret_inside gets a duplicate of its slave. */
must_check int std_fds_terminal(uint32_t pty, uint16_t rows, uint16_t cols,
				int ret_inside[static 3], int *ret_master, struct writ_err *err);
/*
 * Starts the relay. On success the relay owns the pipes and the terminal; on failure @f keeps them.
 */
must_check int std_fds_relay(struct std_fds *f, struct relay **ret_relay, struct writ_err *err);
void std_fds_sent(struct std_fds *f); /* closes the descriptors that were sent to the command */
void std_fds_clear(struct std_fds *f);

#endif
