/*
 * http.h - the part of HTTP that logs and witnesses use
 *
 * Reads:  bytes from the peer
 * Writes: the caller's buffer
 * Next:   serve.h, ask.h
 *
 * One request per connection, plain HTTP, bodies with a Content-Length. wire/http1.h parses the
 * heads and refuses everything that two parsers could interpret differently.
 *
 * SECURITY: plain HTTP is sufficient. The witness's signature authenticates a response, the log's
 * key a request, and checkpoints are not secret. An attacker on the network can only withhold
 * answers. Host names are not resolved, so that this code needs no resolver.
 */
#ifndef WRIT_WITNESS_HTTP_H
#define WRIT_WITNESS_HTTP_H

#include "tlog/witness.h"
#include "wire/http1.h"

enum {
	HTTP_HEAD_MAX = 8192,
	HTTP_REQUEST_MAX = HTTP_HEAD_MAX + WITNESS_REQUEST_MAX,
	HTTP_ANSWER_BODY = 16384, /* limit for a response body, which contains signature lines */
	HTTP_ANSWER_MAX = HTTP_HEAD_MAX + HTTP_ANSWER_BODY,
};

/*
 * Parses a request from @bytes, all bytes received so far. WIRE_DONE: *@ret_body is the body of a
 * POST to /add-checkpoint. WIRE_BAD: *@ret_status is the HTTP status to answer with.
 */
enum wire_state witness_http_request_take(struct sv bytes, struct sv *ret_body,
					  unsigned *ret_status, struct writ_err *err);
/* Appends a complete HTTP response with Connection: close. */
void witness_http_answer_put(unsigned status, const char *type, struct sv body, struct buf *b);

/*
 * URL of the form "http://ADDRESS[:PORT][/PATH]". https and host names other than localhost are not
 * supported.
 */
struct http_url {
	struct wire_authority at;
	struct sv path; /* path of the URL without a trailing slash; may be empty */
};

must_check int witness_http_url_parse(struct sv url, struct http_url *ret, struct writ_err *err);

/* Appends the HTTP request that posts @body to add-checkpoint below @url. */
void witness_http_request_put(const struct http_url *url, struct sv body, struct buf *b);
/* Parses an HTTP response. @ended: the peer has closed the connection. */
enum wire_state witness_http_answer_take(struct sv bytes, bool ended, unsigned *ret_status,
					 struct sv *ret_body, struct writ_err *err);

#endif
