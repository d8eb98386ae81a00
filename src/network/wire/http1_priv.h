/* http1_priv.h - byte classes and field names, shared by the files of the HTTP/1 codec */
#ifndef WRIT_WIRE_HTTP1_PRIV_H
#define WRIT_WIRE_HTTP1_PRIV_H

#include "wire/http1_body.h"
#include "wire/wire_priv.h"

enum { HTTP1_IN_TOKEN = 1, HTTP1_IN_VALUE = 2, HTTP1_IN_TARGET = 4 };

extern const uint8_t http1_bytes[256]; /* the sets HTTP1_IN_* of each byte */

static inline bool http1_is(char c, unsigned set)
{
	return http1_bytes[(unsigned char)c] & set;
}

static inline bool http1_all(struct sv s, unsigned set)
{
	unsigned all = set;

	for (size_t i = 0; i < s.n; i++)
		all &= http1_bytes[(unsigned char)s.p[i]];
	return all;
}

enum http1_id http1_id_of(struct sv name);

/* The rules about fields of each id. */
extern const struct http1_rule {
	bool single; /* a head may have only one such field */
	bool ours;   /* the printers generate or omit the field; they never copy a received one */
} http1_rules[HTTP1_END + 1];

#endif
