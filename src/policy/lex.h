/*
 * lex.h - policy text -> lines of words
 *
 * Reads:  one source
 * Writes: diagnostics
 * Next:   policy/parse.c
 *
 * A word is a run of characters without blanks; parts of it may stand in double
 * quotes with the escapes \" \\ \* \n \t \xHH. '#' at the start of a word begins
 * a comment. In word.text a NUL stands for a star that was escaped, that is, for
 * one that is not a wildcard; no other NUL can occur.
 */
#ifndef WRIT_POLICY_LEX_H
#define WRIT_POLICY_LEX_H

#include "policy/diag.h"

enum {
	LEX_TEXT_MAX = 1 << 20,
	LEX_LINE_MAX = 16384,
	LEX_WORDS_MAX = 64,
	LEX_LINES_MAX = 4096, /* lines that say something */
};

struct word {
	struct sv raw;	/* as written */
	struct sv text; /* without quotes and escapes */
	uint32_t col;	/* 1-based byte column of raw */
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

/* Bad lines are reported and left out; the rest is still returned. */
must_check int lex(struct diags *d, const struct source *src, struct lex_lines *ret_lines,
		   struct writ_err *err);

#endif
