/* limits_priv.h - sizes, counts and times that bound the reader */
#ifndef WRIT_L7_LIMITS_PRIV_H
#define WRIT_L7_LIMITS_PRIV_H

enum {
	L7_FIELDS = 100,
	L7_IN = 66 << 10,  /* input buffer of a link, which must hold a whole head */
	L7_OUT = 64 << 10, /* output of a link above which the reader prepares no more bytes */
	L7_OUT_MAX = 192 << 10,
	L7_BODY = 64 << 10,    /* body bytes of one call that the reader buffers, per direction */
	L7_BODY_MAX = 1 << 20, /* L7_BODY plus the bytes that HTTP/2 windows let arrive at once */
	L7_CLIENTS_MAX = 1024,
	L7_ORIGINS_MAX = 4096,
	L7_SERVERS_MAX = 64, /* most connections to one origin */
	L7_ASKS_MAX = 64,
	L7_SET_MAX = 12, /* most fields that the reader adds to one request */
	/* bytes of a request's body that the reader reads and drops to keep the connection */
	L7_DISCARD = 64 << 10,

	L7_HANDSHAKE_MS = 15000,
	L7_HEAD_MS = 10000,
	L7_IDLE_MS = 300000,
	L7_DIAL_MS = 45000,
	L7_POOL_MS = 30000,
	L7_LINGER_MS = 2000,
	L7_GONE_MS = 30000, /* limit for delivering a request whose client has left */
	L7_TICK_MS = 500,
};

#endif
