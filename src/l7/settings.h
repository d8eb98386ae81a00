/*
 * settings.h - what the supervisor tells the reader of requests before it starts
 *
 * Reads:  JSON in a sealed memfd
 * Writes: the same
 * Next:   main.c builds a session of it; the supervisor calls the encoder
 *
 *   {"caps":[{"rule":0,"text":"http.request:..."}],"id":"32 hex digits",
 *    "level":0,"limits":{"down":0,"requests":0,"session":0,"up":0},"nots":[],"prices":[],
 *    "realm":"local","rules":[{"n":0,"text":"net https://..."}],
 *    "secrets":[{"as":"bearer","name":"TOKEN","to":"https://...","value":"hex"}],
 *    "session":"7f3a"}
 *
 * Only capabilities that have to do with the network are sent; rules keep their
 * numbers. Of a policy that is the meet of several sets there is also "hops", each with
 * its caps and nots, and of one that is counted across sessions "cells", pairs of a price
 * and a counter, and "pools", limits of several sessions together. A limit of 0 is none.
 * Values are bytes, so they are in hexadecimal; one with CR, LF or NUL is refused, because
 * it could not stand in a header.
 */
#ifndef WRIT_L7_SETTINGS_H
#define WRIT_L7_SETTINGS_H

#include "cap/set.h"
#include "reach/quota.h"

enum {
	L7_SETTINGS_MAX = 8 << 20,
	L7_SECRETS_MAX = 64,
	L7_VALUE_MIN = 8, /* a shorter one could not be looked for in what comes back */
	L7_VALUE_MAX = 4096,
	L7_RULES_MAX = 65536,
};

struct l7_secret {
	struct sv name;
	struct sv as; /* bearer, basic, header:NAME or query:NAME */
	struct sv to; /* URL as in a capability */
	struct sv value;
};

struct l7_settings {
	struct sv realm, session;
	struct sv id; /* of placeholders; placeholder.h */
	struct cap_set set;
	VEC(struct l7_secret) secrets;
	struct quota_shared shared; /* cells and pools; a cell that is not about us goes */
};

must_check int l7_settings_encode(const struct l7_settings *s, struct buf *b, struct writ_err *err);

/* Everything is in @a afterwards, the values too: copy them and clear it. */
must_check int l7_settings_decode(struct arena *a, struct sv bytes, struct l7_settings *ret,
				  struct writ_err *err);

#endif
