/*
 * packet.h - one message with descriptors over a seqpacket socket
 *
 * Reads:  the socket
 * Writes: the socket
 * Next:   the supervisor, its clients, the library
 */
#ifndef WRIT_BASE_PACKET_H
#define WRIT_BASE_PACKET_H

#include "base/err.h"
#include "base/sv.h"

enum { PACKET_FDS = 4, PACKET_SENT_FDS = 8 };

struct iovec;

/* @fds may be NULL if @fds_n is 0. */
must_check int packet_send_parts(int socket, struct iovec *parts, size_t parts_n, const int *fds,
				 size_t fds_n, struct writ_err *err); /* up to PACKET_SENT_FDS */
must_check int packet_send(int socket, struct sv text, const int *fds, size_t fds_n,
			   struct writ_err *err);
/*
 * Returns 1, 0 at the end, or an error. Descriptors are the caller's, close-on-exec;
 * places in @ret_fds that none came for become -1.
 */
must_check int packet_receive(int socket, void *ret_bytes, size_t room, size_t *ret_n,
			      int ret_fds[static PACKET_FDS], size_t *ret_fds_n,
			      struct writ_err *err);

#endif
