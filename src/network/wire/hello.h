/*
 * hello.h - decode a TLS ClientHello to learn which server the client asks for
 *
 * Reads:  the first bytes of a stream
 * Writes: the caller's buffer, where the message is reassembled
 * Next:   egress/ compares the name with the connection's destination before it forwards a
 *         byte; cap/ has tls=sni for connections whose name was checked
 *
 * The message may arrive in any pieces and in any number of TLS records.
 *
 * SECURITY: the whole message is parsed and validated, so that no other TLS implementation can find
 * a different name in the message: no extension occurs twice, no byte is left over, there is
 * exactly one name. A stream that begins like TLS but is malformed is HELLO_BAD, never "TLS without
 * a name".
 */
#ifndef WRIT_WIRE_HELLO_H
#define WRIT_WIRE_HELLO_H

#include "wire/name.h"

enum {
	HELLO_ROOM = 16384,	/* buffer size that is sufficient for the hellos of browsers */
	HELLO_ROOM_MAX = 65536, /* longer hellos are refused, whatever the size of the buffer */
	HELLO_ALPN_MAX = 16,
};

enum hello_state {
	HELLO_BAD = 0, /* the stream is TLS that is malformed or too long, or SSL 2 */
	HELLO_NOT_TLS,
	HELLO_MORE,
	HELLO_OK,
};

struct hello {
	/* Members that are valid after HELLO_OK. */
	struct wire_host name; /* server name; kind NONE: the hello has no server_name extension */
	/*
	 * the hello has an Encrypted ClientHello extension, so @name may be only the
	 * public name of the real server
	 */
	bool has_ech;
	bool has_early_data;
	bool has_alpn;
	struct sv alpn[HELLO_ALPN_MAX]; /* offered protocols, as views into the buffer */
	size_t alpn_n;
	/* the highest TLS version offered: 0x0303 is TLS 1.2, 0x0304 is TLS 1.3 */
	uint16_t version;

	/* State of the decoder. */
	uint8_t *body;
	size_t room, n, record_left;
	uint8_t head[5];
	uint8_t head_n;
	enum hello_state state;
};

void hello_init(struct hello *h, void *buffer, size_t room);

/*
 * Consumes the next @bytes of the stream. The first result other than HELLO_MORE is final; later
 * calls return the same result. *@ret_used is the number of @bytes that belong to the hello; bytes
 * after the hello are not examined. HELLO_BAD sets @err.
 */
enum hello_state hello_push(struct hello *h, struct sv bytes, size_t *ret_used,
			    struct writ_err *err);

#endif
