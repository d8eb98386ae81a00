/*
 * fields.h - reads members of JSON objects that have no unknown members; private to this module
 *
 * Reads:  canonical JSON whose signature was verified
 * Writes: the caller's arena
 * Next:   token.c, pop.c, rvk.c, trust.c
 *
 * All functions refuse with TOKEN_E_SCHEMA unless noted otherwise, and name the member. Strings are
 * copied into the arena.
 */
#ifndef WRIT_TOKEN_FIELDS_H
#define WRIT_TOKEN_FIELDS_H

#include "codec/json.h"
#include "token/token.h"

/*
 * Checks that @o is an object whose members are the @n members @keys and no others. The keys from
 * index @must on are optional.
 */
must_check int token_fields_check(const json_t *o, const char *const *keys, size_t n, size_t must,
				  struct token_why *why);

/*
 * Decodes the canonical JSON of a payload and refuses any other text with TOKEN_E_NONCANON. Checks
 * the keys like token_fields_check(), and that the member "writ" is 1.
 */
must_check int token_fields_open(struct sv bytes, const char *const *keys, size_t n, size_t must,
				 json_t **ret_o, struct token_why *why);

must_check int token_field_u64(const json_t *o, const char *key, uint64_t *ret_v,
			       struct token_why *why);
/* Reads a member that is a string of 1 to @max printable ASCII bytes without spaces. */
must_check int token_field_sv(struct arena *a, const json_t *o, const char *key, size_t max,
			      struct sv *ret_s, struct token_why *why);
must_check int token_field_id(const json_t *o, const char *key, struct token_id *ret_id,
			      struct token_why *why);
must_check int token_field_digest(const json_t *o, const char *key, struct digest *ret_d,
				  struct token_why *why);
/*
 * Reads a key member {"crv":"Ed25519","kty":"OKP","x":KEY}; refuses weak keys and non-canonical
 * encodings.
 */
must_check int token_field_jwk(const json_t *o, const char *key, struct sign_public *ret_key,
			       struct token_why *why);

/*
 * Reads a list of at most @max strings (TOKEN_E_SIZE) in strictly increasing byte order
 * (TOKEN_E_NONCANON). @ok checks each string.
 */
must_check int token_field_list(struct arena *a, const json_t *o, const char *key, size_t min,
				size_t max, bool (*ok)(struct sv), const struct sv **ret_v,
				size_t *ret_n, struct token_why *why);

/* Like token_field_list() for capabilities, which are appended to caps or nots of @set. */
must_check int token_field_caps(struct arena *a, const json_t *o, const char *key,
				enum cap_kind kind, size_t min, struct cap_set *set,
				struct token_why *why);

/* Compares two struct sv by their bytes, for qsort() and bsearch(). */
int token_by_bytes(const void *a, const void *b);
/*
 * Makes a JSON list of @n strings, each @step bytes behind the one before, in byte order and
 * without duplicates. NULL: out of memory.
 */
json_t *token_list(const struct sv *v, size_t n, size_t step);

bool token_field_is_id(struct sv s);	 /* is @s a version 7 UUID? */
bool token_field_is_digest(struct sv s); /* does @s encode 32 bytes in base64url? */

/*
 * Appends @v as canonical JSON to @b. Refuses with TOKEN_E_SCHEMA, or TOKEN_E_SIZE if @b is full.
 */
must_check int token_fields_encode(const json_t *v, struct buf *b, struct token_why *why);

#endif
