/*
 * reader.h - messages between egress and the reader of requests (l7)
 *
 * Reads:  nothing
 * Writes: nothing; only the layout is shared
 * Next:   egress/reader.c on one side, l7/messages.c on the other
 *
 * One packet per message, over a SOCK_SEQPACKET pair. Egress hands a client's connection to
 * the reader. When the reader needs a server, it asks egress, which resolves, checks and
 * dials, and hands over that connection as well. SECURITY: the reader therefore needs no
 * right to create sockets.
 */
#ifndef WRIT_EGRESS_READER_H
#define WRIT_EGRESS_READER_H

#include <stdint.h>

#include "cap/cause.h"

enum reader_type {
	READER_NOTHING = 0,
	/* to the reader; descriptor: connection of a client that wants @host at @port */
	READER_TAKE,
	READER_DIAL, /* from the reader: dial @host at @port; the reader chooses @id */
	/*
	 * to the reader, in answer to DIAL: a descriptor of the connection and the dialled address
	 * in @host; or no descriptor, and the reason in @why
	 */
	READER_DIALLED,
	READER_LAST, /* to the reader: no more clients will come */
};

enum { READER_BYTES = 64 << 10 };

struct reader_message {
	uint32_t type; /* enum reader_type */
	uint32_t id;   /* TAKE: id of the flow; DIAL and DIALLED: id that the reader chose */
	uint16_t port;
	uint8_t proxy; /* the client sends plain requests to the proxy port, in absolute form */
	uint8_t tls;   /* the client is expected to speak TLS */
	/* number of bytes that egress has read from the client; the bytes follow this struct */
	uint32_t bytes_n;
	char host[256];
	struct cap_why why;
};

#endif
