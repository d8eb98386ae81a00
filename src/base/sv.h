/*
 * sv.h - string views: borrowed bytes, by value
 *
 * Reads:  caller's bytes
 * Writes: nothing
 * Next:   every parser
 *
 * Not NUL-terminated, not owned; p is never NULL.
 */
#ifndef WRIT_BASE_SV_H
#define WRIT_BASE_SV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

struct sv {
	const char *p;
	size_t n;
};

#define SV(literal) ((struct sv){ "" literal, sizeof(literal) - 1 })
#define SV_INIT(literal) { "" literal, sizeof(literal) - 1 }
#define SV_FMT "%.*s"
#define SV_ARG(s) (int)(s).n, (s).p

struct sv sv_from(const char *cstr); /* NULL gives the empty view */
bool sv_eq(struct sv a, struct sv b);
bool sv_is(struct sv a, const char *cstr);
int sv_cmp(struct sv a, struct sv b); /* bytewise, like memcmp */
bool sv_starts(struct sv s, struct sv prefix);
bool sv_ends(struct sv s, struct sv suffix);
struct sv sv_sub(struct sv s, size_t from, size_t n); /* clamped */
struct sv sv_skip(struct sv s, size_t n);	      /* clamped */
struct sv sv_trim(struct sv s);			      /* blanks and tabs, both ends */

/* SIZE_MAX if @c does not occur. */
size_t sv_find(struct sv s, char c);
size_t sv_rfind(struct sv s, char c);

/* Returns the part of *@in before @sep and moves *@in past it. */
struct sv sv_cut(struct sv *in, char sep);

/* Is @word one of the words of @list, which @sep separates? */
bool sv_has_word(struct sv list, char sep, struct sv word);

/* Is @path the absolute path @dir or below it? Both are plain; nothing is below "". */
bool sv_below(struct sv path, struct sv dir);

/* Decimal, no sign, no blanks, no leading zero; *@ret_v set on success only. */
must_check bool sv_to_u64(struct sv s, uint64_t max, uint64_t *ret_v);

/* The value of a hexadecimal digit of either case, or -1. */
int sv_hex(char c);
int sv_hex_lower(char c); /* upper case is no digit: where one text per value is wanted */

/* True if every byte is printable ASCII without blanks (0x21..0x7e). */
bool sv_is_graph(struct sv s);

/* Strict UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
bool sv_is_utf8(struct sv s);

/* Edit distance with early exit above @max; for "did you mean". */
size_t sv_distance(struct sv a, struct sv b, size_t max);

#endif
