/*
 * sv.h - string views: borrowed bytes, by value
 *
 * Reads:  caller's bytes
 * Writes: nothing
 * Next:   every parser
 *
 * A view owns nothing and is not NUL-terminated. The pointer p is NULL only in the result of
 * environ_get() for a variable that is not set.
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

struct sv sv_from(const char *cstr); /* returns a view of @cstr; the empty view if @cstr is NULL */
bool sv_eq(struct sv a, struct sv b);
bool sv_is(struct sv a, const char *cstr);
/* Returns the index of the text @s in @list, which has @n elements, or @n if @s is not in @list. */
size_t sv_index(struct sv s, const char *const *list, size_t n);
int sv_cmp(struct sv a, struct sv b); /* compares bytewise, like memcmp */
bool sv_starts(struct sv s, struct sv prefix);
bool sv_ends(struct sv s, struct sv suffix);
/* returns @n bytes from index @from on, clamped to @s */
struct sv sv_sub(struct sv s, size_t from, size_t n);
/* returns @s without its first @n bytes, clamped to @s */
struct sv sv_skip(struct sv s, size_t n);
/* returns @s without blanks and tabs at both ends */
struct sv sv_trim(struct sv s);

/* Return the index of the first (sv_find) or last (sv_rfind) @c in @s; SIZE_MAX: none. */
size_t sv_find(struct sv s, char c);
size_t sv_rfind(struct sv s, char c);

/*
 * Returns the part of *@in before the first @sep and moves *@in past that @sep. Without a @sep,
 * returns all of *@in and leaves *@in empty.
 */
struct sv sv_cut(struct sv *in, char sep);

/* Does @list, whose elements @sep separates, contain @word? */
bool sv_has_word(struct sv list, char sep, struct sv word);

/*
 * Is @path the absolute path @dir or below @dir? Compares text: neither may contain "." or "..". No
 * path is below an empty @dir.
 */
bool sv_below(struct sv path, struct sv dir);

/*
 * Is @path relative, and is none of its components empty, "." or ".."? @path may end with a slash.
 */
bool sv_is_straight(struct sv path);

/* Returns the value of the variable @name in an environment; p is NULL if it is not set. */
struct sv environ_get(char *const *envp, struct sv name);

/* Parses a decimal number without sign, blanks or leading zeros, at most @max. */
must_check bool sv_to_u64(struct sv s, uint64_t max, uint64_t *ret_v);

/* Returns the value of a hexadecimal digit, in either case, or -1. */
int sv_hex(char c);
/* Like sv_hex(), but rejects upper case, for formats with exactly one spelling per value. */
int sv_hex_lower(char c);
/* Parses a number of exactly @digits (at most 16) lower-case hexadecimal digits. */
must_check bool sv_hex_to_u64(struct sv s, size_t digits, uint64_t *ret_v);

/* Is every byte of @s an ASCII letter, a digit or a byte of @more? */
bool sv_is_alnum(struct sv s, const char *more);
/* Returns the lower-case form of an ASCII capital, and any other byte as it is. */
char sv_lower(char c);

/* Is every byte of @s printable ASCII other than a blank (0x21..0x7e)? */
bool sv_is_graph(struct sv s);

/*
 * Returns the length of the UTF-8 sequence at the start of @s, or 0 if the sequence is malformed.
 * @s must not be empty.
 */
size_t sv_utf8_len(struct sv s);
/* Is @s strict UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF? */
bool sv_is_utf8(struct sv s);

/*
 * Returns the edit distance of @a and @b, for messages with "did you mean". Returns some value
 * above @max if the distance exceeds @max or if a text is longer than 64 bytes.
 */
size_t sv_distance(struct sv a, struct sv b, size_t max);

#endif
