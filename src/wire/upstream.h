/*
 * upstream.h - a proxy that whoever runs writ wants connections to go through
 *
 * Reads:  its URL, and what it says to CONNECT
 * Writes: the request, into the caller's buffer
 * Next:   egress/ dials it and asks for addresses that were checked, never for names
 */
#ifndef WRIT_WIRE_UPSTREAM_H
#define WRIT_WIRE_UPSTREAM_H

#include "wire/name.h"

enum {
	UPSTREAM_PAIR_MAX = 384,   /* NAME:PASSWORD */
	UPSTREAM_HEAD_MAX = 16384, /* of an answer */
};

struct upstream {
	struct wire_authority at;
	char login[4 * ((UPSTREAM_PAIR_MAX + 2) / 3) + 1]; /* base64; empty: none */
};

/* "http://HOST:PORT", and nothing else. */
must_check int upstream_parse(struct sv url, struct upstream *ret, struct writ_err *err);

/* One line NAME:PASSWORD, with or without its end. */
must_check int upstream_login(struct upstream *u, struct sv line, struct writ_err *err);

/* Appends the request for a connection to @to. */
void upstream_put(const struct upstream *u, const struct cap_net_addr *to, uint16_t port,
		  struct buf *b);

/* WIRE_DONE: what follows the first *@ret_used bytes is the other end's, if the status is 2xx. */
enum wire_state upstream_answer(struct sv bytes, size_t *ret_used, unsigned *ret_status,
				struct writ_err *err);

#endif
