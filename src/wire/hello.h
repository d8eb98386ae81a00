/*
 * hello.h - the first message of a TLS client: which server it asks for
 *
 * Reads:  the first bytes of a stream
 * Writes: the caller's buffer, where the message is put together
 * Next:   the name is compared with what the connection is for, before any byte
 *         goes on; cap/ has tls=sni for a connection whose name was read
 *
 * The message may come in any pieces and any number of records. The whole of it
 * is walked, so that a name which another reader would find somewhere else is
 * refused: no extension twice, no bytes left over, exactly one name. What looks
 * like TLS and is not right is HELLO_BAD, never "no name".
 */
#ifndef WRIT_WIRE_HELLO_H
#define WRIT_WIRE_HELLO_H

#include "wire/name.h"

enum {
	HELLO_ROOM = 16384,	/* enough for what browsers send */
	HELLO_ROOM_MAX = 65536, /* more is refused whatever the buffer */
	HELLO_ALPN_MAX = 16,
};

enum hello_state {
	HELLO_BAD = 0, /* TLS, but not acceptable; SSL 2 as well */
	HELLO_NOT_TLS,
	HELLO_MORE,
	HELLO_OK,
};

struct hello {
	/* Valid after HELLO_OK. */
	struct wire_host name; /* kind NONE: no server_name extension */
	bool has_ech;	       /* @name is then the outer one, or the client only pretends */
	bool has_early_data;
	bool has_alpn;
	struct sv alpn[HELLO_ALPN_MAX]; /* tied to the buffer */
	size_t alpn_n;
	uint16_t version; /* the highest offered: 0x0303 is TLS 1.2, 0x0304 TLS 1.3 */

	/* The decoder's own. */
	uint8_t *body;
	size_t room, n, record_left;
	uint8_t head[5];
	uint8_t head_n;
	enum hello_state state;
};

void hello_init(struct hello *h, void *buffer, size_t room);

/*
 * Takes the next @bytes of the stream. The first call after which it is not
 * HELLO_MORE has decided; later calls say the same. *@ret_used of @bytes belong to
 * the message; what is behind it is not looked at. @err is set with HELLO_BAD.
 */
enum hello_state hello_push(struct hello *h, struct sv bytes, size_t *ret_used,
			    struct writ_err *err);

#endif
