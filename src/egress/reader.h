/*
 * reader.h - what egress and the reader of requests say to each other
 *
 * Reads:  nothing
 * Writes: nothing; both sides share only these layouts
 * Next:   egress/reader.c, and l7/ on the other side
 *
 * One packet per message over a SOCK_SEQPACKET pair. Egress hands over a client's
 * connection; whenever the reader needs a server, egress looks up, checks and
 * dials, and hands that connection over as well. So the reader makes no sockets.
 */
#ifndef WRIT_EGRESS_READER_H
#define WRIT_EGRESS_READER_H

#include <stdint.h>

enum reader_type {
	READER_NOTHING = 0,
	READER_TAKE,	/* to the reader; descriptor: a client that wants @host at @port */
	READER_DIAL,	/* from the reader: a server for @host at @port, under its own @id */
	READER_DIALLED, /* to the reader; descriptor, or none and @why; @host is the address */
	READER_LAST,	/* to the reader: no client comes any more */
};

enum { READER_BYTES = 64 << 10 };

struct reader_message {
	uint32_t type; /* enum reader_type */
	uint32_t id;   /* of the flow (TAKE), or what the reader chose (DIAL, DIALLED) */
	uint16_t port;
	uint8_t proxy;	  /* the client spoke to the proxy: its request has absolute form */
	uint8_t tls;	  /* the client is expected to speak TLS */
	uint32_t bytes_n; /* what the client has said already, behind this struct */
	char host[256];
	char why[96];
};

#endif
