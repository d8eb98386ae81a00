/*
 * http1.h - HTTP/1 heads and bodies: read strictly, written anew
 *
 * Reads:  bytes of clients and servers
 * Writes: heads that go on, into the caller's buffer
 * Next:   target.h reads the target, cap/ decides, the other side gets what the
 *         printers here write; no head is ever forwarded as it came
 *
 * A head that two readers may take differently is refused: bare CR or LF, folded
 * lines, blanks before a colon, control bytes, two lengths, a length and a transfer
 * coding, any coding but chunked, a Host that is not the authority, Content_Length. What holds for
 * one hop only is marked as dropped, and so is what a client names in Connection.
 *
 * Use: http1_head_find() until WIRE_DONE; http1_request_parse() on that many bytes;
 * then http1_body_next() on the rest until WIRE_DONE; after it comes the next head.
 * All views are tied to the bytes of the head.
 */
#ifndef WRIT_WIRE_HTTP1_H
#define WRIT_WIRE_HTTP1_H

#include "base/buf.h"
#include "wire/name.h"

struct http1_limits {
	size_t head;   /* bytes of a head, with the empty line */
	size_t line;   /* bytes of one line */
	size_t fields; /* of one head */
};

extern const struct http1_limits http1_limits_default; /* 64 KiB, 16 KiB, 100 */

/* How far a head was looked at; starts as zero for every head. */
struct http1_find {
	size_t seen, line, lines;
};

/*
 * Is the head at the start of @bytes whole? @bytes are all since its start; those
 * seen before are not looked at again. *@ret_n is its length with WIRE_DONE.
 */
enum wire_state http1_head_find(struct http1_find *f, struct sv bytes,
				const struct http1_limits *limits, size_t *ret_n,
				struct writ_err *err);

/* Names that the framing or a rule depends on; every other one is HTTP1_OTHER. */
enum http1_id {
	HTTP1_OTHER = 0,
	HTTP1_HOST,
	HTTP1_CONNECTION,
	HTTP1_CONTENT_LENGTH,
	HTTP1_TRANSFER_ENCODING,
	HTTP1_UPGRADE,
	HTTP1_EXPECT,
	HTTP1_WS_KEY,
	HTTP1_WS_VERSION,
	HTTP1_WS_ACCEPT,
	HTTP1_HOP,	/* for one hop: Keep-Alive, TE, Trailer, Proxy-* ... */
	HTTP1_ALT_SVC,	/* dropped from responses: there is no other way to a server */
	HTTP1_OVERRIDE, /* target_is_override(); dropped from requests */
	HTTP1_END,	/* end to end, but never in a trailer: credentials, Content-* ... */
};

struct http1_field {
	struct sv name, value;
	enum http1_id id;
	bool drop; /* not printed */
};

enum http1_framing {
	HTTP1_NONE = 0, /* no body */
	HTTP1_LENGTH,
	HTTP1_CHUNKED,
	HTTP1_UNTIL_CLOSE, /* responses only */
};

enum http1_form {
	HTTP1_ORIGIN = 0, /* GET /path */
	HTTP1_ABSOLUTE,	  /* GET http://host/path */
	HTTP1_AUTHORITY,  /* CONNECT host:port */
	HTTP1_ASTERISK,	  /* OPTIONS * */
};

struct http1_request {
	struct sv method;
	enum http1_form form;
	bool tls;	  /* the absolute form says https */
	struct sv target; /* "/path?query", "*", or empty for CONNECT */
	bool has_host;	  /* an HTTP/1.0 request may do without */
	struct wire_authority host;
	unsigned minor; /* 0 or 1 */
	enum http1_framing framing;
	uint64_t length;
	bool keep_alive;
	bool expect;	     /* 100-continue */
	struct sv websocket; /* its key, or empty: no upgrade */
	struct http1_field *fields;
	size_t fields_n;
};

/*
 * @head is what http1_head_find() found. @fields has room for as many as the
 * limits allow. @port is meant by a Host without one: 443 inside TLS, else 80.
 */
must_check int http1_request_parse(struct sv head, uint16_t port, struct http1_field *fields,
				   size_t room, struct http1_request *ret_request,
				   struct writ_err *err);

struct http1_response {
	unsigned status, minor;
	struct sv reason;
	enum http1_framing framing;
	uint64_t length;
	bool has_length; /* a HEAD or 304 response says how long it would be */
	bool keep_alive;
	bool interim;	/* 1xx: another head follows */
	bool websocket; /* 101 */
	struct http1_field *fields;
	size_t fields_n;
};

/* What the request was decides how a response ends. */
struct http1_asked {
	bool head;	/* HEAD */
	bool websocket; /* an upgrade was asked for */
};

must_check int http1_response_parse(struct sv head, struct http1_asked asked,
				    struct http1_field *fields, size_t room,
				    struct http1_response *ret_response, struct writ_err *err);

/* --- Bodies. --- */

enum http1_body_at {
	HTTP1_AT_DATA = 0,
	HTTP1_AT_SIZE,
	HTTP1_AT_EXTENSION,
	HTTP1_AT_SIZE_LF,
	HTTP1_AT_DATA_CR,
	HTTP1_AT_DATA_LF,
	HTTP1_AT_LINE, /* trailer: at the start of a line */
	HTTP1_AT_NAME,
	HTTP1_AT_VALUE,
	HTTP1_AT_LINE_LF,
	HTTP1_AT_LAST_LF,
	HTTP1_AT_END,
};

struct http1_body {
	enum http1_framing framing;
	enum http1_body_at at;
	uint64_t left; /* of the body or of the chunk */
	unsigned digits;
	size_t extensions, trailer; /* bytes seen */
	size_t line;		    /* where the trailer's line starts in @trailers */
	struct buf *trailers;
};

/*
 * Trailers that may go on are appended to @trailers as lines; NULL: they are
 * checked and dropped. Chunk extensions are always dropped.
 */
void http1_body_init(struct http1_body *b, enum http1_framing framing, uint64_t length,
		     struct buf *trailers);

/*
 * Takes from the front of *@in and gives one piece of the body, which may be empty,
 * as a view of it. WIRE_MORE with *@in empty: more bytes are needed; else call again.
 */
enum wire_state http1_body_next(struct http1_body *b, struct sv *in, struct sv *ret_data,
				struct writ_err *err);

/* The stream has ended: is that the end of the body? */
bool http1_body_may_end(const struct http1_body *b);

/* --- Printing. --- */

/* How it is sent on, which may be other than how it came. */
struct http1_send {
	struct sv target; /* of a request; from target_parse() */
	enum http1_framing framing;
	uint64_t length;
	bool close;
	const struct http1_field *set; /* these replace all of the same name, '_' for '-' too */
	size_t set_n;
};

/* Appends a head in HTTP/1.1 origin form. A response that came as HTTP/1.0 too. */
must_check int http1_request_print(const struct http1_request *q, const struct http1_send *how,
				   struct buf *b, struct writ_err *err);
must_check int http1_response_print(const struct http1_response *r, const struct http1_send *how,
				    struct buf *b, struct writ_err *err);

enum { HTTP1_CHUNK_HEAD_MAX = 18 };

/* What goes before @n > 0 bytes of data; after them goes CR LF. Returns its length. */
size_t http1_chunk_head(uint64_t n, char out[static HTTP1_CHUNK_HEAD_MAX]);

/* The last chunk, and @trailers as http1_body_next() collected them. */
void http1_chunk_end(struct sv trailers, struct buf *b);

/* Is @name a token, and @value without control bytes? For fields that the caller sets. */
must_check bool http1_field_check(struct sv name, struct sv value);

#endif
