/*
 * packet.h - one message with descriptors over a UNIX socket
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

/*
 * Sends the bytes of all @parts as one message. @fds may be NULL if @fds_n is 0; at most
 * PACKET_SENT_FDS descriptors are sent.
 */
must_check int packet_send_parts(int socket, struct iovec *parts, size_t parts_n, const int *fds,
				 size_t fds_n, struct writ_err *err);
must_check int packet_send(int socket, struct sv text, const int *fds, size_t fds_n,
			   struct writ_err *err);
/* Sends the bytes that fit into a stream socket now. Fails with EAGAIN if no byte fits. */
must_check int packet_send_some(int socket, struct sv bytes, const int *fds, size_t fds_n,
				size_t *ret_n, struct writ_err *err);
/*
 * Receives a message. Returns 1 for a message, 0 if the peer has closed the socket or the message
 * is empty, or an error. The caller owns the received descriptors, which are close-on-exec; unused
 * entries of @ret_fds become -1.
 */
must_check int packet_receive(int socket, void *ret_bytes, size_t room, size_t *ret_n,
			      int ret_fds[static PACKET_FDS], size_t *ret_fds_n,
			      struct writ_err *err);

#endif
