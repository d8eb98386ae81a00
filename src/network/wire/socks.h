/*
 * socks.h - SOCKS 5 without authentication, SOCKS 4 and 4a, and protocol detection
 *
 * Reads:  the first bytes of a connection to the session's proxy port
 * Writes: replies, into the caller's bytes
 * Next:   egress/client_head.c; host and port are judged like those of any other connection
 *
 * Messages have at most a few hundred bytes. The caller keeps all bytes since the start of
 * the message and calls again when more have arrived; there is no decoder state. With
 * WIRE_DONE, *@ret_used is the length of the message.
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

/* Guesses a client's protocol from its first byte. */
enum wire_protocol wire_protocol_of(uint8_t first);

/* Commands, with the numbers of the protocol; SOCKS_OTHER is every other number. */
enum socks_command { SOCKS_OTHER = 0, SOCKS_CONNECT = 1, SOCKS_BIND = 2, SOCKS_UDP = 3 };

/* Reply codes of SOCKS 5 that writ sends. */
enum socks_reply {
	SOCKS_OK = 0,
	SOCKS_FAILED = 1,
	SOCKS_NOT_ALLOWED = 2,
	SOCKS_HOST_UNREACHABLE = 4,
	SOCKS_BAD_COMMAND = 7, /* reply to every command but SOCKS_CONNECT */
	SOCKS_BAD_ADDRESS = 8,
};

enum { SOCKS_GREETING_SIZE = 2, SOCKS5_REPLY_SIZE = 10, SOCKS4_REPLY_SIZE = 8 };

struct socks_request {
	enum socks_command command;
	struct wire_host host;
	uint16_t port;
};

/*
 * Parses the greeting of a SOCKS 5 client. *@ret_none: the client offers "no authentication"; the
 * caller refuses a client that does not.
 */
enum wire_state socks5_greeting_parse(struct sv bytes, bool *ret_none, size_t *ret_used,
				      struct writ_err *err);
void socks5_greeting_reply(bool none, uint8_t out[static SOCKS_GREETING_SIZE]);

/* Parses a SOCKS 5 request. *@ret_reply is the code for the reply if the caller refuses it. */
enum wire_state socks5_request_parse(struct sv bytes, struct socks_request *ret_request,
				     size_t *ret_used, enum socks_reply *ret_reply,
				     struct writ_err *err);
void socks5_reply(enum socks_reply reply, uint8_t out[static SOCKS5_REPLY_SIZE]);

/* Parses a SOCKS 4 request. The host is a name only if the client uses the 4a form. */
enum wire_state socks4_request_parse(struct sv bytes, struct socks_request *ret_request,
				     size_t *ret_used, struct writ_err *err);
void socks4_reply(bool granted, uint8_t out[static SOCKS4_REPLY_SIZE]);

#endif
