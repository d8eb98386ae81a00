/*
 * target.h - parse the path and query of an HTTP request into canonical form
 *
 * Reads:  the request target, as received
 * Writes: the canonical target, into the caller's buffer
 * Next:   cap_put_http_path() turns the canonical path into a capability's path for the decision;
 *         the forwarded request carries the canonical text, never the received one
 *
 * Encoded letters, digits, - _ and ~ are decoded; other escapes get upper-case digits;
 * bytes that a path may not contain are encoded.
 *
 * SECURITY: a path that two servers may interpret differently is refused, because a rule
 * about one interpretation could be bypassed by the other: encoded / \ . % ; NUL and control
 * bytes, backslashes, ';', empty and dot segments, dot segments with an encoded blank, '?' or '#'
 * next to them, and bytes or escapes that are not UTF-8.
 * The set is that of cap_put_http_path() plus a few more, never fewer. The received and the
 * canonical form of an accepted path map to the same capability.
 */
#ifndef WRIT_WIRE_TARGET_H
#define WRIT_WIRE_TARGET_H

#include "base/buf.h"
#include "wire/wire.h"

enum target_state {
	TARGET_BAD = 0, /* malformed target; answer 400 */
	/*
	 * well-formed target that servers may interpret differently, so that
	 * no path rule can judge it
	 */
	TARGET_AMBIGUOUS,
	TARGET_OK,
};

struct target {
	struct sv text; /* path, followed by "?" and the query unless the query is empty */
	struct sv path, query;
};

/*
 * Parses @raw and appends the canonical form to @out; the views in the result point into @out. Sets
 * @err unless the result is TARGET_OK.
 */
enum target_state target_parse(struct sv raw, struct buf *out, struct target *ret_target,
			       struct writ_err *err);

/* Tests for 1 to 16 capital letters, which are the methods that a rule can name. */
must_check bool target_method_check(struct sv method);

/*
 * Tests whether @field is a header by which some servers let a client replace the method, path
 * or host of a request. SECURITY: such a field would override the values that the rules judged,
 * so it is never forwarded. '_' counts as '-', as it does in servers that turn fields into
 * variables.
 */
bool target_is_override(struct sv field);

#endif
