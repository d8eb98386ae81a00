/*
 * settings.h - the settings that the supervisor passes to the reader before it starts
 *
 * Reads:  JSON in a sealed memfd
 * Writes: JSON, which the supervisor stores in the memfd
 * Next:   the supervisor encodes the settings; main.c decodes them
 *
 *   {"caps":[{"rule":0,"text":"http.request:..."}],"id":"32 hex digits",
 *    "level":0,"limits":{"down":0,"requests":0,"session":0,"up":0},"nots":[],"prices":[],
 *    "realm":"local","rules":[{"n":0,"text":"net https://..."}],
 *    "secrets":[{"as":"bearer","name":"TOKEN","to":"https://...","value":"hex"}],
 *    "session":"7f3a"}
 *
 * The settings have only network capabilities; rules keep their numbers. A policy that is the
 * intersection of several sets has "hops", each with its caps and nots. A policy that is
 * counted across sessions has "cells" (pairs of a price and a counter) and "pools" (limits
 * that several sessions share). A limit of 0 is none. Secret values are bytes and therefore
 * hexadecimal; a value with a control byte is refused, because a header cannot contain it.
 */
#ifndef WRIT_L7_SETTINGS_H
#define WRIT_L7_SETTINGS_H

#include "cap/set.h"
#include "reach/quota.h"

enum {
	L7_SETTINGS_MAX = 8 << 20,
	L7_SECRETS_MAX = 64,
	L7_VALUE_MIN = 8, /* a shorter value would match by chance when responses are searched */
	L7_VALUE_MAX = 4096,
	L7_RULES_MAX = 65536,
};

struct l7_secret {
	struct sv name;
	struct sv as; /* how the secret is sent: bearer, basic, header:NAME or query:NAME */
	struct sv to; /* destination URL, as in a capability */
	struct sv value;
};

struct l7_settings {
	struct sv realm, session;
	struct sv id; /* random id in the placeholders of this session (placeholder.h) */
	struct cap_set set;
	VEC(struct l7_secret) secrets;
	/* cells and pools; the encoder omits cells that are not about the network */
	struct quota_shared shared;
};

must_check int l7_settings_encode(const struct l7_settings *s, struct buf *b, struct writ_err *err);

/*
 * Decodes the settings into memory of @a, including the secret values. The caller copies the secret
 * values and wipes them in @a.
 */
must_check int l7_settings_decode(struct arena *a, struct sv bytes, struct l7_settings *ret,
				  struct writ_err *err);

#endif
