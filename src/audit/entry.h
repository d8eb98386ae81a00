/*
 * entry.h - one entry of a log, with members that can be taken out later
 *
 * Reads:  what happened
 * Writes: a line of canonical JSON, and the hash that stands for it in a tree
 * Next:   audit/slog.h (the log of a session), audit/realm.h
 *
 * A line has every member in the open. `_salt` names those that are private, with a
 * random salt each. What is hashed is the public form: the line without them and
 * without `_salt`, and with `_sd`, the sorted digests of their disclosures. So a
 * private member can be shown to one person and kept from another, or be erased for
 * good, and no hash changes. A disclosure is [salt, name, value] as canonical JSON in
 * base64url; its digest is the SHA-256 of that text.
 *
 * Strings are percent-encoded: bytes outside of 0x20..0x7e, and the percent sign.
 */
#ifndef WRIT_AUDIT_ENTRY_H
#define WRIT_AUDIT_ENTRY_H

#include <jansson.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "base/sv.h"

enum {
	ENTRY_MEMBERS = 32,
	ENTRY_PUBLIC_MAX = 16384, /* of the public form */
	ENTRY_LINE_MAX = 1 << 20,
	ENTRY_SALT = 16,	/* bytes */
	ENTRY_SALT_TEXT = 22,	/* and as text */
	ENTRY_DIGEST_TEXT = 43, /* a digest as text */
};

struct entry_member {
	const char *key; /* not copied: a literal */
	uint32_t at, n;	 /* its value in .values */
	bool hidden;
};

/* Zero it, give .values a maximum by entry_begin(), and clear it when done. */
struct entry {
	struct buf values;
	struct entry_member members[ENTRY_MEMBERS];
	size_t n;
	bool failed; /* too many members, or two of one name */
};

/*
 * Random bytes for salts, fetched for many at once while lines are gathered. Each is
 * wiped as it is taken, and what is left when the lines are written.
 */
struct entry_salts {
	uint8_t b[ENTRY_MEMBERS * ENTRY_SALT];
	size_t left;
};

#define scoped_entry __attribute__((cleanup(entry_clear))) struct entry
void entry_clear(struct entry *e);

/* Every entry has a kind and a time: now, or microseconds since 1970. */
void entry_begin(struct entry *e, const char *event);
void entry_begin_at(struct entry *e, const char *event, uint64_t time_us);
void entry_str(struct entry *e, const char *key, struct sv value);
void entry_num(struct entry *e, const char *key, uint64_t value); /* above 2^53-1: that */
void entry_bool(struct entry *e, const char *key, bool value);
void entry_digest(struct entry *e, const char *key, const struct digest *d); /* base64url */
/* A list of strings: those of @list up to a NULL, or as many as have about @max bytes. */
void entry_list(struct entry *e, const char *key, char *const *list, size_t max);
/* The member added last is private. */
void entry_hide(struct entry *e);

/* Appends the line, without its newline, to @line; its hash in the tree. */
must_check int entry_finish(const struct entry *e, struct buf *line, struct digest *ret_leaf,
			    struct writ_err *err);
/* The same, and the public form to @open. Salts come from @salts, or from the kernel: NULL. */
must_check int entry_finish_both(const struct entry *e, struct entry_salts *salts, struct buf *line,
				 struct buf *open, struct digest *ret_leaf, struct writ_err *err);

/* Appends the text that shows one private member; @value is canonical JSON. */
void entry_disclosure(struct sv salt, struct sv name, struct sv value, struct buf *b);

/*
 * Appends the public form of @line, which is itself a line: the one to keep when what is
 * private shall be gone. @line must be canonical, as entry_finish() makes it.
 */
must_check int entry_public(struct sv line, struct buf *b, struct writ_err *err);
must_check int entry_leaf(struct sv line, struct digest *ret_leaf, struct writ_err *err);

/* Appends @s as an entry has it; as it was. The latter refuses what the former never makes. */
void entry_encode(struct buf *b, struct sv s);
must_check int entry_decode(struct sv s, struct buf *b, struct writ_err *err);

/*
 * The member @key of a line that was decoded, as it was before it became an entry. Empty
 * if it is no string. The bytes are those of @o, or in @a.
 */
struct sv entry_text(const json_t *o, const char *key, struct arena *a);

/* The kind of a line, without decoding it; empty if it has none. */
struct sv entry_event(struct sv line);

#endif
