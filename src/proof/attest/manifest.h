/*
 * manifest.h - session.json: which session, under which policy, how it ended
 *
 * Reads:  facts, or the text of a manifest from outside
 * Writes: canonical JSON
 * Next:   statement.h has the digest of the manifest as the first subject
 */
#ifndef WRIT_ATTEST_MANIFEST_H
#define WRIT_ATTEST_MANIFEST_H

#include "attest/attest.h"

must_check int manifest_print(const struct attest_facts *f, struct buf *b, struct writ_err *err);
/* Parses a manifest. Only the canonical encoding is accepted, so equal facts have equal bytes. */
must_check int manifest_parse(struct arena *a, struct sv bytes, struct attest_facts *ret,
			      struct writ_err *err);
/*
 * Returns NULL if @a and @b contain the same facts, or the name of the first member that differs.
 */
const char *manifest_differs(const struct attest_facts *a, const struct attest_facts *b);

#endif
