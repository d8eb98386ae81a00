/*
 * statement.h - the in-toto statement about a session: evidence, never a verdict
 *
 * Reads:  facts, or a payload from outside
 * Writes: canonical JSON
 * Next:   bundle.h carries the statement with its signature
 */
#ifndef WRIT_ATTEST_STATEMENT_H
#define WRIT_ATTEST_STATEMENT_H

#include "attest/attest.h"

/* --- the manifest: session.json, which names the session, its policy and how it ended --- */

must_check int manifest_print(const struct attest_facts *f, struct buf *b, struct writ_err *err);
/* Parses a manifest. Only the canonical encoding is accepted, so equal facts have equal bytes. */
must_check int manifest_parse(struct arena *a, struct sv bytes, struct attest_facts *ret,
			      struct writ_err *err);
/*
 * Returns NULL if @a and @b contain the same facts, or the name of the first member that differs.
 */
const char *manifest_differs(const struct attest_facts *a, const struct attest_facts *b);

/* --- the statement --- */

#define STATEMENT_PREDICATE "https://writ.dev/attestation/agent-session/v0.1"

enum { STATEMENT_WORDS = 16 };

struct statement_words {
	struct sv v[STATEMENT_WORDS];
	size_t n;
};

struct statement {
	struct digest manifest, entries; /* digests of the files session.json and entries.jsonl */
	struct attest_session of;
	struct attest_log log;
	struct statement_words assumptions, not_covered;
};

/* Fills the lists of assumptions and of uncovered threats for this version of writ. */
void statement_words(struct statement *s);

must_check int statement_print(const struct statement *s, struct buf *b, struct writ_err *err);
must_check int statement_parse(struct arena *a, struct sv bytes, struct statement *ret,
			       struct writ_err *err);

#endif
