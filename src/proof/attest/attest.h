/*
 * attest.h - facts about a session, and the evidence they come from
 *
 * Theory of operation
 *
 * The attest module turns the audit logs about one session into files that can be verified
 * elsewhere, and verifies such files. The files are
 *   entries.jsonl        the session's log, in public form (audit/entry.h)
 *   *.tlog-proof         proofs that the realm's log contains the session's start and end entries
 *   rotated-N.tlog-proof proofs of every rotation of the log key
 *   session.json         the manifest: which session, under which policy, how it ended
 *   the bundle           an in-toto statement with digests of the above, signed by writ-signer
 *
 * Producing (prove.h): find the session's entries in the realm's log, prove them in a signed
 * checkpoint, derive the manifest and the statement from them. The caller has writ-signer sign the
 * statement and wraps it in a bundle (bundle.h).
 *
 * Verifying (check.h): verify the bundle's signature with pinned keys, the proofs with pinned log
 * keys and witnesses, the entries with the root in the end entry, and the statement and the
 * manifest with the entries. Then judge.h derives a verdict per boundary from the entries. The
 * answer is yes, no, "unpinned" (no trusted key signed it) or "cut" (the session was interrupted).
 *
 * Invariants
 *   - Statement and manifest contain evidence, never a verdict. The verifier draws the verdict, so
 *     a newer verifier can be stricter about old evidence.
 *   - Removing an entry never improves a verdict: missing evidence means unknown.
 *   - All formats are canonical: two different files never mean the same.
 *   - The functions here depend on their arguments only. prove.h reads the log; nothing else does
 *     any I/O. Texts are views of the caller's bytes or belong to the arena.
 *
 * Common mistakes
 *   - Reading facts from a proof before it was verified: attest_read_proofs() verifies nothing.
 *   - Believing `custody` because the log says so. Whoever holds the key writes that member; see
 *     attest_checked.custody_known.
 *
 * Reads:  the realm's entries about a session, the session's own entries
 * Writes: nothing
 * Next:   statement.h (prints the facts), check.h (compares them)
 */
#ifndef WRIT_ATTEST_ATTEST_H
#define WRIT_ATTEST_ATTEST_H

#include <jansson.h>

#include "base/arena.h"
#include "base/buf.h"
#include "tlog/tree.h"

struct judgement;

enum {
	ATTEST_ENTRIES_MAX = 128 << 20, /* limit for all entries of one session, in bytes */
	ATTEST_TEXT_MAX = 256 << 10,	/* limit for a manifest, statement or bundle, in bytes */
	ATTEST_ID_MAX = 64,
	ATTEST_ROTATED_MAX = 64, /* most rotations of a log key that are followed */
};

struct attest_file {
	const char *name; /* name of the file, for messages */
	struct sv bytes;
};

/* Proofs of the rotations of a log's key, oldest first. */
struct attest_rotated {
	struct attest_file v[ATTEST_ROTATED_MAX];
	size_t n;
};

/* Holder of the log key, that is, the party who could have signed another log. */
enum custody {
	CUSTODY_NONE = 0,
	CUSTODY_SAME_UID,  /* the user's own processes can read the key */
	/* writ-signer holds the log key under its own group; the user cannot read the key */
	CUSTODY_OTHER_UID,
};

/* name of the custody in files, such as same-uid */
const char *attest_custody_name(enum custody c);
const char *attest_custody_words(enum custody c); /* description of the custody for people */
must_check bool attest_custody_parse(struct sv s, enum custody *ret);

/* Is @s an id, a realm or a version: letters, digits, dots and dashes? A path is none of these. */
bool attest_is_word(struct sv s);

/* Facts contained in both the manifest and the statement. */
struct attest_session {
	struct sv id, realm;
	enum custody custody;
	uint64_t started, finished; /* microseconds since 1970, according to the log */
	uint64_t exit;
	uint64_t entries; /* number of entries in the session's own log */
	struct digest root;
};

struct attest_facts {
	struct attest_session of;
	bool whole; /* the session ended normally, not interrupted */
	struct digest policy, guarantees;
	struct sv tier, adapter, version;
	/* program of the session, from the session's log; empty if that log names no program */
	struct sv executable;
};

/*
 * The checkpoint of the realm's log that the proofs are in, and the session's entries in that log.
 */
struct attest_log {
	struct sv origin;
	uint64_t size;
	struct digest root;
	uint64_t start, end; /* indices of the session's start and end entries */
};

/*
 * Returns the realm of a log: the part after writ/log/ in its origin. Empty for any other origin.
 */
struct sv attest_realm(struct sv origin);

/*
 * Reader for the members of one JSON object. The reader keeps the first error and counts the
 * members read, so that callers check once at the end and unknown members are detected.
 */
struct fields {
	const json_t *o;
	struct arena *a;
	size_t asked;
	int failed;
	struct writ_err *err;
};

/* Decodes an entry of a realm's log, in which no member is private. */
struct fields attest_open_entry(struct arena *a, struct sv entry, json_t **ret_o,
				struct writ_err *err);
/* Read facts from the entries session.start and session.end (or session.cut) of a realm's log. */
must_check int attest_read_start(struct arena *a, struct sv entry, struct attest_facts *f,
				 struct writ_err *err);
must_check int attest_read_end(struct arena *a, struct sv entry, struct attest_facts *f,
			       struct writ_err *err);

/*
 * Reads the session's own log from @bytes and passes every entry to judge_entry(), unless @j is
 * NULL. With @open each line must equal its own public form, as in files for others. Checks the
 * number of entries, the root and, unless the session was interrupted, the exit code against @f. On
 * failure @err names the line.
 */
must_check int attest_read_entries(struct arena *a, struct sv bytes, bool open,
				   struct attest_facts *f, struct judgement *j,
				   struct writ_err *err);

/* Appends the public form of every log line in @bytes to @b. */
must_check int attest_public_entries(struct sv bytes, struct buf *b, struct writ_err *err);

/* --- fields.c: read members of canonical JSON objects --- */

struct fields attest_fields_of(const json_t *o, struct arena *a, struct writ_err *err);
/*
 * Decodes canonical JSON of at most @max bytes. The caller releases *@ret_o when it no longer needs
 * the returned fields.
 */
struct fields attest_fields_decode(struct sv bytes, size_t max, json_t **ret_o, struct arena *a,
				   struct writ_err *err);
struct sv attest_member_text(struct fields *f, const char *key);
uint64_t attest_member_number(struct fields *f, const char *key);
struct fields attest_member_object(struct fields *f, const char *key);
/* Checks that the member @key equals @text. */
void attest_member_is(struct fields *f, const char *key, struct sv text);
/* Finishes reading an object: returns the first error. Members that were not read are an error. */
must_check int attest_fields_end(struct fields *f);

/* Type of a member, which determines the C type: struct sv, uint64_t, bool, struct digest, enum. */
enum attest_type {
	ATTEST_TEXT,
	ATTEST_WORD, /* a text that attest_is_word() accepts */
	ATTEST_NUMBER,
	ATTEST_FLAG,
	ATTEST_DIGEST, /* a digest as base64url text */
	ATTEST_CUSTODY,
};

/* A member of a JSON object, and its place in a struct. One table serves writing and reading. */
struct attest_member {
	const char *key;
	enum attest_type type;
	size_t offset;
};

/* Makes an object with the @n members of the struct @from; NULL: out of memory. */
json_t *attest_object(const struct attest_member *v, size_t n, const void *from);
/* Reads the @n members into the struct @ret; @f keeps the first error. */
void attest_get(struct fields *f, const struct attest_member *v, size_t n, void *ret);
/* Decodes the canonical JSON @bytes, which has exactly the @n members, into the struct @ret. */
must_check int attest_decode(struct arena *a, struct sv bytes, const struct attest_member *v,
			     size_t n, void *ret, struct writ_err *err);
/* Returns the key of the first member that differs between the structs @a and @b, or NULL. */
const char *attest_differ(const struct attest_member *v, size_t n, const void *a, const void *b);

#endif
