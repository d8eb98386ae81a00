/*
 * target.h - what an HTTP request asks for, in the one form that is judged and sent
 *
 * Reads:  the path and query of a request, as on the wire
 * Writes: the same in canonical form, into the caller's buffer
 * Next:   cap_put_http_path() makes a capability's path of it; the request that
 *         goes on has the text from here
 *
 * Encoded letters, digits, - _ and ~ are decoded; other escapes get upper-case
 * digits; bytes that no path may have are encoded. Refused is what two servers may
 * read differently: encoded / \ . % NUL and control bytes, a backslash, ';', empty
 * and dot segments, bytes or escapes that are no UTF-8. That is what
 * cap_put_http_path() refuses and a little more, never less, and both forms of a
 * path that is taken are the same capability.
 */
#ifndef WRIT_WIRE_TARGET_H
#define WRIT_WIRE_TARGET_H

#include "base/buf.h"
#include "wire/wire.h"

enum target_state {
	TARGET_BAD = 0,	  /* never valid: 400 */
	TARGET_AMBIGUOUS, /* valid, but no path rule can judge it */
	TARGET_OK,
};

struct target {
	struct sv text; /* path, and "?" with the query if it is not empty */
	struct sv path, query;
};

/* Appends to @out, which the views are tied to. Says why in @err if it is not OK. */
enum target_state target_parse(struct sv raw, struct buf *out, struct target *ret_target,
			       struct writ_err *err);

/* 1 to 16 capital letters: what a rule can name. */
must_check bool target_method_check(struct sv method);

/*
 * Is this the name of a field by which servers let a client replace the method,
 * path or host that was judged? They are never sent on. '_' counts as '-', as it
 * does for servers that make variables of them.
 */
bool target_is_override(struct sv field);

#endif
