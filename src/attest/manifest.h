/*
 * manifest.h - session.json: which session, under what, ended how
 *
 * Reads:  facts, or the text of a manifest from outside
 * Writes: canonical JSON
 * Next:   statement.h has its digest as the first subject
 */
#ifndef WRIT_ATTEST_MANIFEST_H
#define WRIT_ATTEST_MANIFEST_H

#include "attest/attest.h"

must_check int manifest_print(const struct attest_facts *f, struct buf *b, struct writ_err *err);
/* Strict: the bytes are the only ones that say this. */
must_check int manifest_parse(struct arena *a, struct sv bytes, struct attest_facts *ret,
			      struct writ_err *err);
/* NULL if both say the same, else the name of the first member that differs. */
const char *manifest_differs(const struct attest_facts *a, const struct attest_facts *b);

#endif
