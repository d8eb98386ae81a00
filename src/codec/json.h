/*
 * json.h - canonical JSON: what may be signed, and nothing else
 *
 * Reads:  bytes from outside
 * Writes: nothing
 * Next:   cap/ (digests), audit/, token/
 *
 * The subset: objects, arrays, strings of 0x20..0x7e, integers 0..2^53-1, true
 * and false; keys of A-Z a-z 0-9 _ . $ - and not empty; depth at most 8. No
 * null, no floats, no negative numbers, no duplicate keys. Within it, sorted
 * keys and no spaces give the bytes of RFC 8785.
 */
#ifndef WRIT_CODEC_JSON_H
#define WRIT_CODEC_JSON_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"

enum { CJ_DEPTH_MAX = 8 };
#define CJ_INT_MAX ((json_int_t)9007199254740991)

static inline void scope_json(json_t **v)
{
	json_decref(*v);
}
#define scoped_json __attribute__((cleanup(scope_json))) json_t

/* Is @v in the subset? */
must_check int cj_check(const json_t *v, struct writ_err *err);

/* Appends the one canonical form of @v; refuses what is outside the subset. */
must_check int cj_encode(const json_t *v, struct buf *b, struct writ_err *err);

/*
 * Decodes @bytes and refuses them unless encoding gives the same bytes back.
 * *@ret_v is owned by the caller: json_decref().
 */
must_check int cj_decode(struct sv bytes, json_t **ret_v, struct writ_err *err);

/*
 * Plain JSON of others (settings files, manifests): strict RFC 8259, duplicate
 * keys refused, no NUL, at most @max bytes and 64 levels.
 */
must_check int json_decode(struct sv bytes, size_t max, json_t **ret_v,
			   struct writ_err *err);

/* Appends @s as a JSON string with quotes; bytes that are not UTF-8 become U+FFFD. */
void json_put_str(struct buf *b, struct sv s);

#endif
