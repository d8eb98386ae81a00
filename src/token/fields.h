/*
 * fields.h - members of a closed object, for the files of this room only
 *
 * Reads:  canonical JSON whose signature was verified
 * Writes: the caller's arena
 * Next:   token.c, pop.c, rvk.c, trust.c
 *
 * Everything here refuses with TOKEN_E_SCHEMA unless it says otherwise, and
 * names the member. Strings are copied.
 */
#ifndef WRIT_TOKEN_FIELDS_H
#define WRIT_TOKEN_FIELDS_H

#include "base/arena.h"
#include "codec/json.h"
#include "token/jws.h"
#include "token/token.h"

/* Canonical JSON, or TOKEN_E_NONCANON. */
must_check int fields_decode(struct sv bytes, json_t **ret_v, struct token_why *why);

/* Is @o an object with exactly the @n members @keys? Those from @must on may be missing. */
must_check int fields_check(const json_t *o, const char *const *keys, size_t n, size_t must,
			    struct token_why *why);

must_check int field_u64(const json_t *o, const char *key, uint64_t *ret_v, struct token_why *why);
/* 1 to @max bytes, none of them a blank. */
must_check int field_sv(struct arena *a, const json_t *o, const char *key, size_t max,
			struct sv *ret_s, struct token_why *why);
must_check int field_id(const json_t *o, const char *key, struct token_id *ret_id,
			struct token_why *why);
must_check int field_digest(const json_t *o, const char *key, struct digest *ret_d,
			    struct token_why *why);
/* {"crv":"Ed25519","kty":"OKP","x":KEY}; refuses keys that are weak or have a second spelling. */
must_check int field_jwk(const json_t *o, const char *key, struct sign_public *ret_key,
			 struct token_why *why);
/* "writ": 1 */
must_check int field_version(const json_t *o, struct token_why *why);

/*
 * A list in strictly increasing byte order (TOKEN_E_NONCANON) of at most @max
 * (TOKEN_E_SIZE) strings; @ok says whether it can be one.
 */
must_check int field_list(struct arena *a, const json_t *o, const char *key, size_t min, size_t max,
			  bool (*ok)(struct sv), struct sv **ret_v, size_t *ret_n,
			  struct token_why *why);

/* The same of capabilities, appended to caps or nots of @set. */
must_check int field_caps(struct arena *a, const json_t *o, const char *key, enum cap_kind kind,
			  size_t min, struct cap_set *set, struct token_why *why);

bool field_is_id(struct sv s);	   /* a token_id */
bool field_is_digest(struct sv s); /* 32 bytes in base64url */

/* Appends @v as canonical JSON to @b, which has the maximum; TOKEN_E_SCHEMA, TOKEN_E_SIZE. */
must_check int fields_encode(const json_t *v, struct buf *b, struct token_why *why);

#endif
