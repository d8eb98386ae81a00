/*
 * base64.h - bytes as text, one text per bytes
 *
 * Reads:  bytes from outside
 * Writes: nothing
 * Next:   tlog/ (hashes, signatures), token/
 *
 * Decoding is strict: no blanks or line ends, padding exactly where the form has
 * it, unused bits zero, and no letter of the other alphabet.
 */
#ifndef WRIT_CODEC_BASE64_H
#define WRIT_CODEC_BASE64_H

#include "base/buf.h"
#include "base/sv.h"

enum base64_form {
	BASE64_PADDED, /* RFC 4648 section 4: + and /, with padding */
	BASE64_URL,    /* RFC 4648 section 5: - and _, without */
};

/* The length of @n bytes as text; @n is at most SIZE_MAX / 2. */
size_t base64_length(enum base64_form form, size_t n);

void base64_encode(enum base64_form form, struct sv bytes, struct buf *b);
/* The same to @ret, which has room for base64_length(); no NUL is added. */
void base64_put(enum base64_form form, struct sv bytes, char *ret);

/* Is @text in the form, and how many bytes does it stand for? */
must_check bool base64_check(enum base64_form form, struct sv text, size_t *ret_n);

/* False if @text is not in the form, or does not stand for exactly @n bytes. */
must_check bool base64_decode(enum base64_form form, struct sv text, void *ret_bytes, size_t n);

/* Appends what @text stands for; false if it is not in the form. */
must_check bool base64_decode_to(enum base64_form form, struct sv text, struct buf *b);

#endif
