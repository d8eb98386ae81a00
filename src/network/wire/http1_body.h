/*
 * http1_body.h - find the end of an HTTP/1 body, and print chunks
 *
 * Reads:  the bytes after a head of http1.h
 * Writes: trailers to be forwarded, into the caller's buffer
 * Next:   l7/body.c forwards the pieces, framed anew
 */
#ifndef WRIT_WIRE_HTTP1_BODY_H
#define WRIT_WIRE_HTTP1_BODY_H

#include "wire/http1.h"

enum http1_body_at {
	HTTP1_AT_DATA = 0,
	HTTP1_AT_SIZE,
	HTTP1_AT_EXTENSION,
	HTTP1_AT_SIZE_LF,
	HTTP1_AT_DATA_CR,
	HTTP1_AT_DATA_LF,
	HTTP1_AT_LINE, /* the decoder is in the trailer, at the start of a line */
	HTTP1_AT_NAME,
	HTTP1_AT_VALUE,
	HTTP1_AT_LINE_LF,
	HTTP1_AT_LAST_LF,
	HTTP1_AT_END,
};

struct http1_body {
	enum http1_framing framing;
	enum http1_body_at at;
	uint64_t left; /* bytes of the body or of the chunk that have not arrived yet */
	/* digits seen of the chunk's size; after the size: bytes seen of the chunk's extension */
	unsigned digits;
	/* bytes of all chunk extensions, and bytes of the trailer, seen so far */
	size_t extensions, trailer;
	size_t line; /* offset in @trailers of the current trailer line */
	struct buf *trailers;
};

/*
 * Starts a body. Appends trailers that may be forwarded to @trailers as lines; if @trailers is
 * NULL, checks and drops all trailers. Chunk extensions are always dropped.
 */
void http1_body_init(struct http1_body *b, enum http1_framing framing, uint64_t length,
		     struct buf *trailers);

/*
 * Consumes the front of *@in and returns one piece of the body, possibly empty, as a view of the
 * input. WIRE_MORE with an empty *@in: more input is needed; WIRE_MORE with input left: call again.
 */
enum wire_state http1_body_next(struct http1_body *b, struct sv *in, struct sv *ret_data,
				struct writ_err *err);

/* Tests whether the body is complete if the stream ends now. */
bool http1_body_may_end(const struct http1_body *b);

enum { HTTP1_CHUNK_HEAD_MAX = 19 };

/*
 * Writes the size line of a chunk of @n > 0 bytes, with a NUL, and returns the length of the line.
 * The caller appends CR LF after the data.
 */
size_t http1_chunk_head(uint64_t n, char out[static HTTP1_CHUNK_HEAD_MAX]);

/* Appends the last chunk and the @trailers that http1_body_next() collected. */
void http1_chunk_end(struct sv trailers, struct buf *b);

#endif
