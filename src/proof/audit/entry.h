/*
 * entry.h - one entry of a log, with members that can be removed later
 *
 * Reads:  names and values of members
 * Writes: a line of canonical JSON, and the leaf hash that represents it in a tree
 * Next:   audit/slog.h (the log of a session), audit/realm.h
 *
 * A line contains every member in the clear. Its member `_salt` lists the private members, each
 * with a random salt. The hash covers the public form: the line without the private members and
 * `_salt`, but with `_sd`, the sorted digests of their disclosures. A private member can thus be
 * shown to one person, withheld from another, or erased for good, and no hash changes. The salt
 * keeps a reader of the digest from guessing the value. A disclosure is [salt, name, value] as
 * canonical JSON in base64url; its digest is the SHA-256 of that text (the construction of SD-JWT).
 *
 * Strings are percent-encoded: bytes outside of 0x20..0x7e, and the percent sign.
 */
#ifndef WRIT_AUDIT_ENTRY_H
#define WRIT_AUDIT_ENTRY_H

#include <jansson.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/id.h"

enum {
	ENTRY_MEMBERS = 32,
	ENTRY_PUBLIC_MAX = 16384, /* limit for the public form of an entry, in bytes */
	ENTRY_LINE_MAX = 1 << 20,
	ENTRY_SALT = 16,	/* length of a salt in bytes */
	ENTRY_SALT_TEXT = 22,	/* length of a salt as base64url */
	ENTRY_DIGEST_TEXT = 43, /* length of a digest as base64url */
};

struct entry_member {
	const char *key; /* name of the member; a string literal, not copied */
	uint32_t at, n;	 /* position and length of the member's value in struct entry.values */
	bool hidden;
};

/* An entry under construction. Zero the entry, call entry_begin(), and entry_clear() when done. */
struct entry {
	struct buf values;
	struct entry_member members[ENTRY_MEMBERS];
	size_t n;
	/*
	 * the entry has too many or too long members, two members of one name, or a reserved name
	 */
	bool failed;
};

/*
 * Random bytes for salts, fetched for many entries at once while lines are held back. Each salt is
 * wiped when an entry takes it, and the unused salts are wiped when the lines are written.
 */
struct entry_salts {
	uint8_t b[ENTRY_MEMBERS * ENTRY_SALT];
	size_t left;
};

#define scoped_entry __attribute__((cleanup(entry_clear))) struct entry
void entry_clear(struct entry *e);

/*
 * Starts an entry. Every entry has an event and a time: entry_begin() takes the current time, and
 * entry_begin_at() takes @time_us, in microseconds since 1970.
 */
void entry_begin(struct entry *e, const char *event);
void entry_begin_at(struct entry *e, const char *event, uint64_t time_us);
void entry_str(struct entry *e, const char *key, struct sv value);
/* Adds a number member. A value above 2^53-1 is stored as 2^53-1. */
void entry_num(struct entry *e, const char *key, uint64_t value);
void entry_bool(struct entry *e, const char *key, bool value);
/* Adds a digest member as base64url. */
void entry_digest(struct entry *e, const char *key, const struct digest *d);
/*
 * Adds a list of strings: all of @list up to its NULL, or only the first strings that fit into
 * about @max bytes.
 */
void entry_list(struct entry *e, const char *key, char *const *list, size_t max);
/* Marks the member added last as private. */
void entry_hide(struct entry *e);

/*
 * Appends the line of entry @e, without a newline, to @line and returns the leaf hash of the entry.
 */
must_check int entry_finish(const struct entry *e, struct buf *line, struct digest *ret_leaf,
			    struct writ_err *err);
/*
 * Like entry_finish(), and also appends the public form to @open. Salts come from @salts, or from
 * the kernel if @salts is NULL.
 */
must_check int entry_finish_both(const struct entry *e, struct entry_salts *salts, struct buf *line,
				 struct buf *open, struct digest *ret_leaf, struct writ_err *err);

/* Appends the disclosure of one private member; @value is canonical JSON. */
void entry_disclosure(struct sv salt, struct sv name, struct sv value, struct buf *b);

/*
 * Appends the public form of @line to @b. The public form is a valid line and replaces the original
 * line when private members are erased. @line must be canonical, as entry_finish() makes lines.
 */
must_check int entry_public(struct sv line, struct buf *b, struct writ_err *err);
must_check int entry_leaf(struct sv line, struct digest *ret_leaf, struct writ_err *err);

/*
 * entry_encode() appends @s percent-encoded. entry_decode() reverses the encoding and refuses any
 * text that entry_encode() never produces.
 */
void entry_encode(struct buf *b, struct sv s);
must_check int entry_decode(struct sv s, struct buf *b, struct writ_err *err);

/*
 * Returns the member @key of a decoded line without its percent-encoding; empty if the member is no
 * string. The bytes belong to @o or to @a.
 */
struct sv entry_text(const json_t *o, const char *key, struct arena *a);

/* Returns the event of a log line without parsing the JSON; empty if the line has no event. */
struct sv entry_event(struct sv line);

#endif
