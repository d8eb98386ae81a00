#include "wire/http1_priv.h"

#include "base/banned.h"

enum {
	/* most hex digits of a chunk's size, so that the size stays below 2^60 */
	DIGITS_MAX = 15,
	EXTENSIONS_MAX = 16384, /* most bytes of all chunk extensions of a body */
	EXTENSION_MAX = 1024,	/* most bytes of the extension of one chunk */
	TRAILER_MAX = 8192,
};

void http1_body_init(struct http1_body *b, enum http1_framing framing, uint64_t length,
		     struct buf *trailers)
{
	*b = (struct http1_body){ .framing = framing, .left = length, .trailers = trailers };
	if (framing == HTTP1_CHUNKED)
		b->at = HTTP1_AT_SIZE;
	else if (framing == HTTP1_NONE || (framing == HTTP1_LENGTH && length == 0))
		b->at = HTTP1_AT_END;
}

bool http1_body_may_end(const struct http1_body *b)
{
	return b->at == HTTP1_AT_END || b->framing == HTTP1_UNTIL_CLOSE;
}

static void data_take(struct http1_body *b, struct sv *in, struct sv *ret_data)
{
	if (b->framing == HTTP1_UNTIL_CLOSE) {
		*ret_data = *in;
		*in = sv_skip(*in, in->n);
		return;
	}
	*ret_data = sv_sub(*in, 0, b->left < in->n ? (size_t)b->left : in->n);
	*in = sv_skip(*in, ret_data->n);
	b->left -= ret_data->n;
	if (b->left == 0)
		b->at = b->framing == HTTP1_CHUNKED ? HTTP1_AT_DATA_CR : HTTP1_AT_END;
}

static bool size_take(struct http1_body *b, char c)
{
	const int v = sv_hex(c);

	if (v >= 0) {
		b->left = b->left << 4 | (unsigned)v;
		return b->digits++ < DIGITS_MAX;
	}
	if (b->digits == 0 || (c != ';' && c != '\r'))
		return false;
	b->at = c == ';' ? HTTP1_AT_EXTENSION : HTTP1_AT_SIZE_LF;
	b->digits = 0; /* after the chunk's size, @digits counts the bytes of the extension */
	return true;
}

static bool extension_take(struct http1_body *b, char c)
{
	if (c == '\r') {
		b->at = HTTP1_AT_SIZE_LF;
		return true;
	}
	return http1_is(c, HTTP1_IN_VALUE) && b->digits++ < EXTENSION_MAX &&
	       b->extensions++ < EXTENSIONS_MAX;
}

static void trailer_add(struct http1_body *b, char c)
{
	if (b->trailers)
		buf_ch(b->trailers, c);
}

/*
 * Drops the complete trailer line from @trailers if the framing or a rule depends on the line's
 * field name. A server that merges trailers into the head would otherwise apply the field.
 */
static void trailer_judge(struct http1_body *b)
{
	struct sv line;

	if (!b->trailers || b->trailers->failed)
		return;
	line = sv_skip(buf_view(b->trailers), b->line);
	if (http1_id_of(sv_sub(line, 0, sv_find(line, ':'))) != HTTP1_OTHER) {
		b->trailers->n = b->line;
		if (b->trailers->p)
			b->trailers->p[b->line] = 0;
	}
}

/* Consumes one byte of the trailer. An empty line ends the trailer. */
static bool trailer_take(struct http1_body *b, char c)
{
	if (b->at == HTTP1_AT_LINE && c == '\r') {
		b->at = HTTP1_AT_LAST_LF;
		return true;
	}
	if (b->trailer++ == TRAILER_MAX)
		return false;
	if (b->at == HTTP1_AT_LINE && b->trailers)
		b->line = b->trailers->n;
	trailer_add(b, c);
	if (b->at == HTTP1_AT_VALUE) {
		if (c == '\r')
			b->at = HTTP1_AT_LINE_LF;
		return c == '\r' || http1_is(c, HTTP1_IN_VALUE);
	}
	if (c == ':' && b->at == HTTP1_AT_NAME) {
		b->at = HTTP1_AT_VALUE;
		return true;
	}
	b->at = HTTP1_AT_NAME;
	return http1_is(c, HTTP1_IN_TOKEN);
}

static bool byte_take(struct http1_body *b, char c)
{
	switch (b->at) {
	case HTTP1_AT_SIZE:
		return size_take(b, c);
	case HTTP1_AT_EXTENSION:
		return extension_take(b, c);
	case HTTP1_AT_SIZE_LF:
		b->at = b->left ? HTTP1_AT_DATA : HTTP1_AT_LINE;
		b->digits = 0;
		return c == '\n';
	case HTTP1_AT_DATA_CR:
		b->at = HTTP1_AT_DATA_LF;
		return c == '\r';
	case HTTP1_AT_DATA_LF:
		b->at = HTTP1_AT_SIZE;
		return c == '\n';
	case HTTP1_AT_LINE:
	case HTTP1_AT_NAME:
	case HTTP1_AT_VALUE:
		return trailer_take(b, c);
	case HTTP1_AT_LINE_LF:
		trailer_add(b, c);
		trailer_judge(b);
		b->at = HTTP1_AT_LINE;
		return c == '\n';
	case HTTP1_AT_LAST_LF:
		b->at = HTTP1_AT_END;
		return c == '\n';
	case HTTP1_AT_DATA:
	case HTTP1_AT_END:
		break;
	}
	return false;
}

enum wire_state http1_body_next(struct http1_body *b, struct sv *in, struct sv *ret_data,
				struct writ_err *err)
{
	*ret_data = sv_sub(*in, 0, 0);
	while (in->n && b->at != HTTP1_AT_END) {
		if (b->at == HTTP1_AT_DATA) {
			data_take(b, in, ret_data);
			return b->at == HTTP1_AT_END ? WIRE_DONE : WIRE_MORE;
		}
		if (!byte_take(b, in->p[0]))
			return wire_bad(err, "malformed chunked body");
		*in = sv_skip(*in, 1);
	}
	if (b->trailers && b->trailers->failed)
		return wire_limit(err, "HTTP trailers that are too long");
	return b->at == HTTP1_AT_END ? WIRE_DONE : WIRE_MORE;
}
