/*
 * diag.h - what is wrong with a policy, where, and what to write instead
 *
 * Reads:  source text
 * Writes: nothing
 * Next:   cli/ prints a list; SDKs read its JSON
 */
#ifndef WRIT_POLICY_DIAG_H
#define WRIT_POLICY_DIAG_H

#include "base/arena.h"
#include "base/buf.h"

enum { DIAG_MAX = 20 }; /* errors shown in one run; the rest is counted */

enum diag_level { DIAG_ERROR = 0, DIAG_WARNING, DIAG_NOTE };

/* A text being read. @name is what a person calls it: a path, "-", "--allow". */
struct source {
	struct sv name;
	struct sv dir; /* where its `use` and relative names start; "" if nowhere */
	struct sv text;
	bool built_in; /* shipped with writ */
	bool base;     /* the base profile itself */
	bool alone;    /* may not use other files: only its own text is pinned by trust */
};

/* A stretch of a source. col is 1-based, in bytes; line 0 means no place. */
struct place {
	const struct source *src;
	uint32_t line, col, len;
};

struct diag {
	enum diag_level level;
	struct place at;
	struct sv text; /* one line, no full stop */
	struct sv hint; /* what to write instead; may be empty */
};

struct diags {
	struct arena *arena;
	VEC(struct diag) list;
	size_t errors, warnings;
	bool lost; /* out of memory while reporting: treat as an error */
};

/* Adds one; @hint may be NULL. Out of memory sets .lost and .errors. */
printf_like(5, 6) void diag_add(struct diags *d, enum diag_level level, struct place at,
				const char *hint, const char *fmt, ...);

/* By source in the order they were first reported, then by place. */
void diags_sort(struct diags *d);

/* The word of @list (ends with NULL) nearest to @word, or NULL if none is near. */
const char *diag_nearest(struct sv word, const char *const *list);

/* Compiler-like text: place, line, caret, hint. Escapes what a terminal would obey. */
void diags_print(const struct diags *d, struct buf *b, bool colour);

/* Bytes of the character at the start of @s, and whether a terminal shows it plainly. */
size_t diag_glyph(struct sv s, bool *ret_plain);

/* Appends @s with control, bidi and invisible characters made visible. */
void diag_put_safe(struct buf *b, struct sv s);

#endif
