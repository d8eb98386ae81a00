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
