/*
 * base64.h - strict base64 with exactly one encoding per byte string
 *
 * Reads:  bytes from outside
 * Writes: nothing
 * Next:   tlog/ (hashes, signatures), token/
 *
 * Decoding accepts no blanks or line ends, requires padding exactly where the form has
 * it, requires unused bits to be zero, and rejects characters of the other alphabet.
 * Tokens and log entries are compared as text, so two texts must not decode to
 * the same bytes.
 */
#ifndef WRIT_CODEC_BASE64_H
#define WRIT_CODEC_BASE64_H

#include "base/buf.h"

enum base64_form {
	BASE64_PADDED, /* RFC 4648 section 4: + and /, with padding */
	BASE64_URL,    /* RFC 4648 section 5: - and _, without padding */
};

/* Returns the length of the encoding of @n bytes; @n is at most SIZE_MAX / 2. */
size_t base64_length(enum base64_form form, size_t n);

void base64_encode(enum base64_form form, struct sv bytes, struct buf *b);
/* Encodes @bytes into @ret, which holds base64_length() characters; adds no NUL. */
void base64_put(enum base64_form form, struct sv bytes, char *ret);

/* Checks that the base64 @text is well-formed; *@ret_n is the number of bytes that it encodes. */
must_check bool base64_check(enum base64_form form, struct sv text, size_t *ret_n);

/* Decodes the base64 @text. Returns false unless @text is well-formed and encodes @n bytes. */
must_check bool base64_decode(enum base64_form form, struct sv text, void *ret_bytes, size_t n);

/* Appends the bytes that the base64 @text encodes; returns false if @text is malformed. */
must_check bool base64_decode_to(enum base64_form form, struct sv text, struct buf *b);

#endif
