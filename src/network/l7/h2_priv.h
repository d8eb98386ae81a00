/* h2_priv.h - conversion of heads between HTTP/2 and the common parser */
#ifndef WRIT_L7_H2_PRIV_H
#define WRIT_L7_H2_PRIV_H

#include <nghttp2/nghttp2.h>

#include "l7/call_priv.h"
#include "l7/link_priv.h"

/* A header list for nghttp2. */
struct nvs {
	nghttp2_nv v[L7_FIELDS + L7_SET_MAX + 8];
	size_t n;
	struct buf names; /* field names in lower case; @name_at has the offsets */
	struct {
		size_t at, n;
	} name_at[L7_FIELDS + L7_SET_MAX + 8];
};

static inline struct call *h2_call(nghttp2_session *s, int32_t stream)
{
	return stream > 0 ? nghttp2_session_get_stream_user_data(s, stream) : NULL;
}

/* Adds a received field to the header block of call @c. */
void h2_field(struct call *c, struct sv name, struct sv value);
/* Appends a field as an HTTP/1 line; returns false if the field is invalid. */
must_check bool h2_line(struct buf *b, struct sv name, struct sv value);
/* Parses the collected fields as a request; @end: no body follows. Returns false if refused. */
must_check bool h2_request(struct call *c, bool end);
void h2_request_nvs(struct call *c, struct nvs *v);
void h2_response_nvs(const struct http1_response *r, const struct http1_send *how, struct nvs *v,
		     char room[24]);
/* Converts trailers to a header list. @lines have the form that http1_body_next() collects. */
void h2_trailer_nvs(struct sv lines, struct nvs *v);
/* Checks trailer lines by the rules of HTTP/1 and appends them to @to. */
must_check bool h2_trailers(struct sv lines, struct buf *to);
/* Moves the output of nghttp2 to the link, as far as the link's output has room. */
void h2_flush(nghttp2_session *s, struct link *k);

#endif
