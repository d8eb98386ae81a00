/*
 * upstream.h - the HTTP proxy through which the operator wants connections to go
 *
 * Reads:  the proxy's URL and login, and its answer to CONNECT
 * Writes: the CONNECT request, into the caller's buffer
 * Next:   egress/dial.c connects to the proxy
 *
 * SECURITY: the request names an address that address.h has classified, never a host name.
 * A name would be resolved again by the proxy and could lead elsewhere.
 */
#ifndef WRIT_WIRE_UPSTREAM_H
#define WRIT_WIRE_UPSTREAM_H

#include "wire/name.h"

enum {
	UPSTREAM_PAIR_MAX = 384,   /* longest NAME:PASSWORD */
	UPSTREAM_HEAD_MAX = 16384, /* most bytes of the proxy's answer to CONNECT */
};

struct upstream {
	struct wire_authority at;
	/* base64 of NAME:PASSWORD; empty: no login */
	char login[4 * ((UPSTREAM_PAIR_MAX + 2) / 3) + 1];
};

/*
 * Parses the URL of the operator's proxy, "http://HOST:PORT"; refuses any other
 * scheme, a path, and a login.
 */
must_check int upstream_parse(struct sv url, struct upstream *ret, struct writ_err *err);

/* Sets the login from a line NAME:PASSWORD; a line end is optional. */
must_check int upstream_login(struct upstream *u, struct sv line, struct writ_err *err);

/* Appends a CONNECT request for address @to and @port to @b. */
void upstream_put(const struct upstream *u, const struct cap_net_addr *to, uint16_t port,
		  struct buf *b);

/*
 * Parses the proxy's answer to CONNECT. After WIRE_DONE with a 2xx status, the bytes after the
 * first *@ret_used come from the destination.
 */
enum wire_state upstream_answer(struct sv bytes, size_t *ret_used, unsigned *ret_status,
				struct writ_err *err);

#endif
