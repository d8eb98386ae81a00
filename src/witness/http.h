/*
 * http.h - the little HTTP that logs and witnesses speak
 *
 * Reads:  bytes of the other side
 * Writes: the caller's buffer
 * Next:   serve.h, ask.h
 *
 * One request per connection, plain HTTP, a body with a length. Heads are read by
 * wire/http1.h, which refuses everything that two readers may take differently.
 */
#ifndef WRIT_WITNESS_HTTP_H
#define WRIT_WITNESS_HTTP_H

#include "tlog/witness.h"
#include "wire/http1.h"

enum {
	HTTP_HEAD_MAX = 8192,
	HTTP_REQUEST_MAX = HTTP_HEAD_MAX + WITNESS_REQUEST_MAX,
	HTTP_ANSWER_BODY = 16384, /* lines of signature */
	HTTP_ANSWER_MAX = HTTP_HEAD_MAX + HTTP_ANSWER_BODY,
};

/*
 * A request as far as it is there. WIRE_DONE: *@ret_body is that of a POST to
 * /add-checkpoint. WIRE_BAD: *@ret_status is the answer. @bytes are all since the start.
 */
enum wire_state http_request_take(struct sv bytes, struct sv *ret_body, unsigned *ret_status,
				  struct writ_err *err);
/* Appends a whole answer, after which the connection is closed. */
void http_answer_put(unsigned status, const char *type, struct sv body, struct buf *b);

/* "http://ADDRESS[:PORT][/PATH]". There is no https, and names are not looked up. */
struct http_url {
	struct wire_authority at;
	struct sv path; /* without a slash at its end; may be empty */
};

must_check int http_url_parse(struct sv url, struct http_url *ret, struct writ_err *err);

/* Appends a POST of @body to add-checkpoint below @url. */
void http_request_put(const struct http_url *url, struct sv body, struct buf *b);
/* @ended: nothing will follow @bytes. */
enum wire_state http_answer_take(struct sv bytes, bool ended, unsigned *ret_status,
				 struct sv *ret_body, struct writ_err *err);

#endif
