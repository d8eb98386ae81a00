/*
 * attest.h - what is said about a session, and where it comes from
 *
 * Reads:  the realm's entries about a session, the session's own entries
 * Writes: nothing
 * Next:   manifest.h and statement.h (say it), check.h (compares)
 *
 * Everything here is a function of bytes. Texts are views of the caller's bytes or lie in
 * the arena.
 */
#ifndef WRIT_ATTEST_ATTEST_H
#define WRIT_ATTEST_ATTEST_H

#include <jansson.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/id.h"
#include "tlog/tree.h"

enum {
	ATTEST_ENTRIES_MAX = 128 << 20, /* of one session, in bytes */
	ATTEST_TEXT_MAX = 256 << 10,	/* of a manifest, statement or bundle */
	ATTEST_ID_MAX = 64,
	ATTEST_ROTATED_MAX = 64, /* changes of a log's key */
};

struct attest_file {
	const char *name; /* for messages */
	struct sv bytes;
};

/* Proofs of changes of a log's key, the oldest first. */
struct attest_rotated {
	struct attest_file v[ATTEST_ROTATED_MAX];
	size_t n;
};

/* Who could have signed something else. */
enum custody {
	CUSTODY_NONE = 0,
	CUSTODY_SAME_UID,  /* the user can read the key */
	CUSTODY_OTHER_UID, /* writ-signer has it, under a group of its own */
};

const char *custody_name(enum custody c);  /* same-uid */
const char *custody_words(enum custody c); /* for people */
must_check bool custody_parse(struct sv s, enum custody *ret);

/* An id, a realm, a version: letters, digits, dot, dash; never a path. */
bool attest_is_word(struct sv s);

/* What both the manifest and the statement say. */
struct attest_session {
	struct sv id, realm;
	enum custody custody;
	uint64_t started, finished; /* microseconds since 1970, by the log */
	uint64_t exit;
	uint64_t entries; /* of the session's own log */
	struct digest root;
};

struct attest_facts {
	struct attest_session of;
	bool whole; /* it was ended, not cut off */
	struct digest policy, guarantees;
	struct sv tier, adapter, version;
	struct sv executable; /* as the session's log has it; empty: it does not */
};

/* Where the realm's log has it. */
struct attest_log {
	struct sv origin;
	uint64_t size;
	struct digest root;
	uint64_t start, end; /* indices of its entries */
};

/* The realm of a log: what follows writ/log/ in its origin. Empty if that is another name. */
struct sv attest_realm(struct sv origin);

/* What entries session.start and session.end (or session.cut) of a realm's log say. */
must_check int attest_read_start(struct arena *a, struct sv entry, struct attest_facts *f,
				 struct writ_err *err);
must_check int attest_read_end(struct arena *a, struct sv entry, struct attest_facts *f,
			       struct writ_err *err);

/*
 * The session's own log: @bytes are its lines. With @open they must be public forms, as
 * others get them. Calls @each, which may be NULL, with every entry. Fails with the number
 * of the line that is not right; what @f says of entries, root and exit must be so.
 */
must_check int attest_read_entries(struct arena *a, struct sv bytes, bool open,
				   struct attest_facts *f,
				   void (*each)(void *ctx, const json_t *entry), void *ctx,
				   struct writ_err *err);

/* Appends the public forms of all whole lines of @bytes. */
must_check int attest_open_entries(struct sv bytes, struct buf *b, struct writ_err *err);

/* --- fields.c: members of canonical objects --- */

/* Reads members of one object; remembers the first failure, and how many were asked for. */
struct fields {
	const json_t *o;
	struct arena *a;
	size_t asked;
	int failed;
	struct writ_err *err;
};

struct fields fields_of(const json_t *o, struct arena *a, struct writ_err *err);
struct sv member_text(struct fields *f, const char *key);
struct sv member_word(struct fields *f, const char *key);
uint64_t member_number(struct fields *f, const char *key);
bool member_bool(struct fields *f, const char *key);
struct digest member_digest(struct fields *f, const char *key); /* base64url */
enum custody member_custody(struct fields *f, const char *key);
struct fields member_object(struct fields *f, const char *key);
void member_is(struct fields *f, const char *key, struct sv text); /* exactly this */
/* Nothing else may be there. */
must_check int fields_end(struct fields *f);

void put_digest(json_t *o, const char *key, const struct digest *d);

#endif
