/*
 * http1.h - parse HTTP/1 heads strictly, and print new ones
 *
 * Reads:  bytes of clients and servers
 * Writes: heads to be forwarded, into the caller's buffer
 * Next:   target.h parses the target, cap/ decides, and the peer receives a head that the
 *         printers here wrote; a received head is never forwarded
 *
 * SECURITY: a head that two implementations may frame differently is refused, because that
 * is how a second request is hidden inside the first (request smuggling): bare CR or LF,
 * folded lines, blanks before a colon, control bytes, two lengths, a length together with a
 * transfer coding, any coding but chunked, a Host that differs from the target's authority,
 * names such as Content_Length. Hop-by-hop fields, and those that Connection names, are
 * marked as dropped and not printed.
 *
 * Usage: call http1_head_find() until WIRE_DONE; http1_request_parse() on that many bytes;
 * then http1_body_next() (http1_body.h) on the rest until WIRE_DONE. The next head follows.
 * All views point into the bytes of the head.
 */
#ifndef WRIT_WIRE_HTTP1_H
#define WRIT_WIRE_HTTP1_H

#include "base/buf.h"
#include "wire/name.h"

struct http1_limits {
	size_t head;   /* most bytes of a head, including the empty line */
	size_t line;   /* most bytes of one line */
	size_t fields; /* most fields of one head */
};

extern const struct http1_limits http1_limits_default; /* head 64 KiB, line 16 KiB, 100 fields */

/* Progress of http1_head_find(); zero at the start of every head. */
struct http1_find {
	size_t seen, line, lines;
};

/*
 * Looks for the end of a head. @bytes are all bytes since the start of the head; bytes that an
 * earlier call examined are skipped. With WIRE_DONE, *@ret_n is the length of the head.
 */
enum wire_state http1_head_find(struct http1_find *f, struct sv bytes,
				const struct http1_limits *limits, size_t *ret_n,
				struct writ_err *err);

/* Field names that the framing or a rule depends on; HTTP1_OTHER is every other name. */
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
	HTTP1_HOP, /* hop-by-hop: Keep-Alive, TE, Trailer, Proxy-* and similar */
	/* Alt-Svc: dropped from responses, because it names a server that bypasses the proxy */
	HTTP1_ALT_SVC,
	HTTP1_OVERRIDE, /* fields of target_is_override(); dropped from requests */
	/* end-to-end, but dropped from trailers: credentials, Content-* and similar */
	HTTP1_END,
};

struct http1_field {
	struct sv name, value;
	enum http1_id id;
	bool drop; /* the printers omit this field */
};

enum http1_framing {
	HTTP1_NONE = 0, /* the message has no body */
	HTTP1_LENGTH,
	HTTP1_CHUNKED,
	HTTP1_UNTIL_CLOSE, /* the body ends when the connection closes; responses only */
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
	bool tls;	  /* the URL of an absolute-form target begins with https */
	struct sv target; /* "/path?query", "*", or empty for CONNECT */
	bool has_host;	  /* the request names a host; HTTP/1.0 may lack it */
	struct wire_authority host;
	unsigned minor; /* minor version of HTTP/1: 0 or 1 */
	enum http1_framing framing;
	uint64_t length;
	bool keep_alive;
	bool expect;	     /* the client expects 100-continue */
	struct sv websocket; /* value of Sec-WebSocket-Key; empty: the client requests no upgrade */
	struct http1_field *fields;
	size_t fields_n;
};

/*
 * Parses the @head that http1_head_find() delimited. @fields has @room entries, at least as many as
 * the limits allow. @port is the default port for a Host without a port: 443 inside TLS, else 80.
 */
must_check int http1_request_parse(struct sv head, uint16_t port, struct http1_field *fields,
				   size_t room, struct http1_request *ret_request,
				   struct writ_err *err);

struct http1_response {
	unsigned status, minor;
	struct sv reason;
	enum http1_framing framing;
	uint64_t length;
	/* the head states a length; also for a HEAD or 304 response, which has no body */
	bool has_length;
	bool keep_alive;
	bool interim;	/* a 1xx response, which another head follows */
	bool websocket; /* a 101 response that upgrades to WebSocket */
	struct http1_field *fields;
	size_t fields_n;
};

/* Properties of the request that determine where its response ends. */
struct http1_asked {
	bool head;	/* the method of the request was HEAD */
	bool websocket; /* the request asked for a WebSocket upgrade */
};

must_check int http1_response_parse(struct sv head, struct http1_asked asked,
				    struct http1_field *fields, size_t room,
				    struct http1_response *ret_response, struct writ_err *err);

/* How to print a head; the framing may differ from that of the received message. */
struct http1_send {
	struct sv target; /* target of a request, from target_parse() */
	enum http1_framing framing;
	uint64_t length;
	bool close;
	/* fields to add; they replace received fields of the same name, where '_' equals '-' */
	const struct http1_field *set;
	size_t set_n;
};

/*
 * Append an HTTP/1.1 head to a buffer. A request is printed in origin form, whatever
 * form it was received in.
 */
must_check int http1_request_print(const struct http1_request *q, const struct http1_send *how,
				   struct buf *b, struct writ_err *err);
must_check int http1_response_print(const struct http1_response *r, const struct http1_send *how,
				    struct buf *b, struct writ_err *err);

/* Tests that @name is a token and @value has no control bytes. For fields that the caller adds. */
must_check bool http1_field_check(struct sv name, struct sv value);

#endif
