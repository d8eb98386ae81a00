/*
 * packet.h - one message with descriptors over a seqpacket socket
 *
 * Reads:  sockets of sessions
 * Writes: sockets of sessions
 * Next:   control.c, client.c
 */
#ifndef WRIT_SESSION_PACKET_H
#define WRIT_SESSION_PACKET_H

#include "base/err.h"
#include "base/sv.h"

enum { PACKET_FDS = 4 };

must_check int packet_send(int socket, struct sv text, const int *fds, size_t fds_n,
			   struct writ_err *err);
/* Returns 1, 0 at the end, or an error. Descriptors are the caller's, close-on-exec. */
must_check int packet_receive(int socket, char *ret_text, size_t room, size_t *ret_n,
			      int ret_fds[static PACKET_FDS], size_t *ret_fds_n,
			      struct writ_err *err);

#endif
