/*
 * lex.h - policy text becomes lines of words
 *
 * Reads:  one source
 * Writes: diagnostics
 * Next:   lang/parse.c
 *
 * A word ends at a blank outside quotes. Parts of a word may be in double quotes, with the escapes
 * \" \\ \* \n \t \xHH. '#' at the start of a word begins a comment. In word.text a NUL represents
 * an escaped star, which is not a wildcard; no other NUL can occur.
 */
#ifndef WRIT_LANG_LEX_H
#define WRIT_LANG_LEX_H

#include "lang/diag.h"

enum {
	LEX_TEXT_MAX = 1 << 20,
	LEX_LINE_MAX = 16384,
	LEX_WORDS_MAX = 64,
	LEX_LINES_MAX = 4096, /* limit for lines with at least one word */
};

struct word {
	struct sv raw;	/* word as written in the source */
	struct sv text; /* word without quotes and escapes */
	uint32_t col;	/* 1-based byte column of the word in its line */
};

struct lex_line {
	uint32_t no;
	bool indented;
	const struct word *w;
	size_t n;
};

struct lex_lines {
	VEC(struct lex_line) list;
};

/* Splits a source into lines of words. Reports malformed lines and leaves them out. */
must_check int lex(struct diags *d, const struct source *src, struct lex_lines *ret_lines,
		   struct writ_err *err);

#endif
