/*
 * socks.h - SOCKS 5 without authentication, SOCKS 4 and 4a; which protocol is it?
 *
 * Reads:  the first bytes of a connection to the proxy
 * Writes: replies, into the caller's bytes
 * Next:   the host and port are judged like those of every other connection
 *
 * Messages are at most a few hundred bytes: the caller keeps all bytes since the
 * start of a message and asks again when there are more. *@ret_used is the length
 * of the message with WIRE_DONE.
 */
#ifndef WRIT_WIRE_SOCKS_H
#define WRIT_WIRE_SOCKS_H

#include "wire/name.h"

enum wire_protocol {
	WIRE_UNKNOWN = 0,
	WIRE_SOCKS5,
	WIRE_SOCKS4,
	WIRE_TLS,
	WIRE_HTTP,
};

/* What a client speaks, by its first byte. */
enum wire_protocol wire_protocol_of(uint8_t first);

enum socks_command { SOCKS_OTHER = 0, SOCKS_CONNECT, SOCKS_BIND, SOCKS_UDP };

/* Numbers of SOCKS 5. */
enum socks_reply {
	SOCKS_OK = 0,
	SOCKS_FAILED = 1,
	SOCKS_NOT_ALLOWED = 2,
	SOCKS_NET_UNREACHABLE = 3,
	SOCKS_HOST_UNREACHABLE = 4,
	SOCKS_REFUSED = 5,
	SOCKS_TTL_EXPIRED = 6,
	SOCKS_BAD_COMMAND = 7, /* to anything but SOCKS_CONNECT */
	SOCKS_BAD_ADDRESS = 8,
};

enum { SOCKS_GREETING_SIZE = 2, SOCKS5_REPLY_SIZE = 10, SOCKS4_REPLY_SIZE = 8 };

struct socks_request {
	enum socks_command command;
	struct wire_host host;
	uint16_t port;
};

/* *@ret_none: the client offers to go without authentication; otherwise refuse it. */
enum wire_state socks5_greeting_parse(struct sv bytes, bool *ret_none, size_t *ret_used,
				      struct writ_err *err);
void socks5_greeting_reply(bool none, uint8_t out[static SOCKS_GREETING_SIZE]);

/* With WIRE_BAD *@ret_reply says what to answer before closing. */
enum wire_state socks5_request_parse(struct sv bytes, struct socks_request *ret_request,
				     size_t *ret_used, enum socks_reply *ret_reply,
				     struct writ_err *err);
void socks5_reply(enum socks_reply reply, uint8_t out[static SOCKS5_REPLY_SIZE]);

/* A name only if the client asks in the way of 4a. */
enum wire_state socks4_request_parse(struct sv bytes, struct socks_request *ret_request,
				     size_t *ret_used, struct writ_err *err);
void socks4_reply(bool granted, uint8_t out[static SOCKS4_REPLY_SIZE]);

#endif
