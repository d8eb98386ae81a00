/*
 * json.h - JSON: a canonical subset for signed data, and strict parsing of foreign files
 *
 * Theory of operation
 *
 * The codec module turns bytes into values and back, without side effects: JSON (json.h),
 * base64 (base64.h) and lists of trusted certificates (store.h). Input is untrusted
 * and bounded before it is parsed.
 *
 * Signatures and digests cover bytes, so a signed value needs exactly one encoding.
 * cj_encode() produces it and cj_decode() accepts no other: it decodes, encodes again and
 * compares. The subset that may be signed: objects, arrays, strings of 0x20..0x7e,
 * integers 0..2^53-1, true and false; keys of A-Z a-z 0-9 _ . $ - and not empty; depth at
 * most 8. No null, no floats, no negative numbers, no duplicate keys. Within this subset,
 * sorted keys and no blanks give the bytes of RFC 8785.
 *
 * json_decode() reads files of other programs (settings, manifests), which are not
 * canonical, and rejects duplicate keys, of which two parsers could choose different ones.
 *
 * Common mistakes
 *   - Never sign or hash the output of json_dumps(); only cj_encode() is canonical.
 *   - Arbitrary text (paths, names from outside) does not fit the subset. Encode such
 *     text as base64 or hex before it goes into a signed object.
 *
 * Reads:  bytes from outside
 * Writes: nothing
 * Next:   cap/ (digests), audit/, token/
 */
#ifndef WRIT_CODEC_JSON_H
#define WRIT_CODEC_JSON_H

#include <jansson.h>

#include "base/buf.h"

enum { CJ_DEPTH_MAX = 8 };
#define CJ_INT_MAX ((json_int_t)9007199254740991)

static inline void scope_json(json_t **v)
{
	json_decref(*v);
}
#define scoped_json __attribute__((cleanup(scope_json))) json_t

/* Appends the canonical form of the JSON value @v; fails if @v is outside the canonical subset. */
must_check int cj_encode(const json_t *v, struct buf *b, struct writ_err *err);

/*
 * Decodes canonical JSON; fails unless encoding the value again gives the same bytes. The caller
 * owns *@ret_v and releases it with json_decref().
 */
must_check int cj_decode(struct sv bytes, json_t **ret_v, struct writ_err *err);

/*
 * Decodes JSON of other programs: strict RFC 8259, duplicate keys refused, no NUL, at most @max
 * bytes and 64 levels of nesting.
 */
must_check int json_decode(struct sv bytes, size_t max, json_t **ret_v,
			   struct writ_err *err);
/* Variant of json_decode() with at most @depth levels of nesting. */
must_check int json_decode_within(struct sv bytes, size_t max, size_t depth, json_t **ret_v,
				  struct writ_err *err);

/* Appends @s as a quoted JSON string; bytes that are not UTF-8 become U+FFFD. */
void json_put_str(struct buf *b, struct sv s);
/* Appends @v as jansson prints it with @flags. Returns false if memory runs out or @b is full. */
must_check bool json_put(struct buf *b, const json_t *v, size_t flags);
/*
 * The functions below append a member of an object, or an item of an array. They put a comma first
 * unless @b ends with the bracket that opens the object or array.
 */
void json_put_sep(struct buf *b); /* appends only the comma */
void json_put_item(struct buf *b, struct sv value);
void json_put_key(struct buf *b, const char *name); /* appends only the name and a colon */
void json_put_member(struct buf *b, const char *name, struct sv value);
void json_put_number(struct buf *b, const char *name, uint64_t value);
void json_put_flag(struct buf *b, const char *name, bool value);

#endif
