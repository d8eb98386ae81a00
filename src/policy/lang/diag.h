/*
 * diag.h - diagnostics: errors in a policy, their place, and a correction
 *
 * Reads:  source text
 * Writes: nothing
 * Next:   cli/ prints a list; SDKs read the diagnostics as JSON
 */
#ifndef WRIT_LANG_DIAG_H
#define WRIT_LANG_DIAG_H

#include "base/arena.h"
#include "base/buf.h"

/*
 * Limit for diagnostics in one list. If the list is full, diag_add() replaces a warning or note by
 * an error, and only counts every other diagnostic.
 */
enum { DIAG_MAX = 20 };

enum diag_level { DIAG_ERROR = 0, DIAG_WARNING, DIAG_NOTE };

/* A text to parse. @name is the name of the text in messages for users: a path, "-", "--allow". */
struct source {
	struct sv name;
	/* directory for `use` and relative names; "" if the source has no directory */
	struct sv dir;
	struct sv text;
	bool built_in; /* this policy text is shipped with writ */
	bool base;     /* this policy text is the base profile */
	/* the source may not use other files, because trust pins only the text of this source */
	bool alone;
};

/* A range of bytes in a source. col is 1-based and counts bytes; line 0 means no position. */
struct place {
	const struct source *src;
	uint32_t line, col, len;
};

struct diag {
	enum diag_level level;
	struct place at;
	struct sv text; /* message on a single line without a full stop */
	struct sv hint; /* correction to suggest to the user; may be empty */
};

struct diags {
	struct arena *arena;
	VEC(struct diag) list;
	size_t errors, warnings;
	bool lost; /* memory ran out while adding a diagnostic: treat as an error */
};

/*
 * Adds a diagnostic; @hint may be NULL. Running out of memory sets .lost and counts an error.
 * Returns false for an error, so that a function that reports one can return the result.
 */
printf_like(5, 6) bool diag_add(struct diags *d, enum diag_level level, struct place at,
				const char *hint, const char *fmt, ...);

/*
 * Sorts diagnostics by source, with sources in the order of their first report, and then by
 * position.
 */
void diag_sort_all(struct diags *d);

/* Returns the element of @list (NULL-terminated) most similar to @word, or NULL. */
const char *diag_nearest(struct sv word, const char *const *list);
/* Returns the hint "did you mean X?", or @otherwise if no element of @list is similar. */
const char *diag_suggest(struct arena *a, struct sv word, const char *const *list,
			 const char *otherwise);

/*
 * Prints diagnostics in the style of a compiler: position, line, caret, hint. Escapes characters
 * that a terminal would interpret.
 */
void diag_print_all(const struct diags *d, struct buf *b, bool colour);

/*
 * Returns the length in bytes of the character at the start of @s. *@ret_plain: a terminal shows
 * the character unchanged.
 */
size_t diag_glyph(struct sv s, bool *ret_plain);

/*
 * Appends @s with a blank for each tab, and \xHH for other control, bidirectional and invisible
 * characters.
 */
void diag_put_safe(struct buf *b, struct sv s);

#endif
