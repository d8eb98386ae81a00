#include "wire/http1_priv.h"
#include "wire/target.h"

#include "base/banned.h"

enum { LISTED_MAX = 32, WS_KEY_SIZE = 24 };

const struct http1_limits http1_limits_default = { .head = 65536, .line = 16384, .fields = 100 };

enum wire_state http1_head_find(struct http1_find *f, struct sv bytes,
				const struct http1_limits *limits, size_t *ret_n,
				struct writ_err *err)
{
	while (f->seen < bytes.n) {
		const char *lf = memchr(bytes.p + f->seen, '\n', bytes.n - f->seen);
		const size_t end = lf ? (size_t)(lf - bytes.p) : bytes.n;

		if (end - f->line > limits->line || end >= limits->head)
			return wire_limit(err, "HTTP head that is too long");
		f->seen = end;
		if (!lf)
			break;
		if (end == f->line || bytes.p[end - 1] != '\r')
			return wire_bad(err, "HTTP line that ends without CR");
		f->seen = end + 1;
		if (end == f->line + 1) {
			if (f->line == 0)
				return wire_bad(err, "HTTP head that starts with an empty line");
			*ret_n = f->seen;
			return WIRE_DONE;
		}
		f->line = f->seen;
		if (f->lines++ > limits->fields)
			return wire_limit(err, "HTTP head with too many fields");
	}
	return WIRE_MORE;
}

/*
 * State while parsing the head of a request or response: its fields, and the
 * framing that they determine.
 */
struct head {
	struct http1_field *fields;
	size_t n, room;
	bool response;
	/* the field with each id; the last field if several have the id */
	const struct http1_field *one[HTTP1_END + 1];
	bool close, keep_alive, upgrade;
	uint64_t length;
	bool has_length, chunked;
};

/* Cuts one line, without CR LF, from the front of *@in into *@ret_line. */
static bool line_cut(struct sv *in, struct sv *ret_line)
{
	const size_t lf = sv_find(*in, '\n');

	if (lf == SIZE_MAX || lf == 0 || in->p[lf - 1] != '\r')
		return false;
	*ret_line = sv_sub(*in, 0, lf - 1);
	*in = sv_skip(*in, lf + 1);
	return true;
}

static int field_parse(struct sv line, struct head *h, struct writ_err *err)
{
	const size_t colon = sv_find(line, ':');
	struct http1_field f = { .name = sv_sub(line, 0, colon), .value = SV("") };

	if (line.p[0] == ' ' || line.p[0] == '\t')
		return wire_refuse(err, "folded HTTP field");
	if (colon == SIZE_MAX || f.name.n == 0 || !http1_all(f.name, HTTP1_IN_TOKEN))
		return wire_refuse(err, "HTTP field with a malformed name");
	f.value = sv_trim(sv_skip(line, colon + 1));
	if (!http1_all(f.value, HTTP1_IN_VALUE))
		return wire_refuse(err, "HTTP field with a control byte");
	if (h->n == h->room)
		return writ_fail_lit(err, WRIT_E_LIMIT, 0, "HTTP head with too many fields");
	f.id = http1_id_of(f.name);
	f.drop = http1_rules[f.id].ours;
	/* SECURITY: some servers read Content_Length as Content-Length, others ignore it. */
	if (f.drop && sv_find(f.name, '_') != SIZE_MAX)
		return wire_refuse(err, "HTTP field that servers may read differently");
	if (http1_rules[f.id].single && h->one[f.id])
		return wire_refuse(err, "HTTP field that may only be there once");
	h->fields[h->n] = f;
	h->one[f.id] = &h->fields[h->n++];
	return 0;
}

static int fields_parse(struct sv in, struct head *h, struct writ_err *err)
{
	struct sv line;

	for (;;) {
		if (!line_cut(&in, &line))
			return wire_refuse(err, "HTTP line that ends without CR");
		if (line.n == 0)
			break;
		if (field_parse(line, h, err) < 0)
			return err->code;
	}
	return in.n ? wire_refuse(err, "HTTP head with bytes behind its end") : 0;
}

/*
 * Applies one option of a Connection field. SECURITY: an option removes all fields of the option's
 * name, so an option must not name a field that the framing or a rule depends on; otherwise a
 * client could have its Content-Length or credentials removed on the way.
 */
static bool connection_option_apply(struct sv word, struct head *h)
{
	const enum http1_id id = http1_id_of(word);

	if (same_text(word, SV("close")))
		h->close = true;
	else if (same_text(word, SV("keep-alive")))
		h->keep_alive = true;
	else if (same_text(word, SV("upgrade")))
		h->upgrade = true;
	else if (id == HTTP1_TRANSFER_ENCODING && h->response)
		/* Accept the option, which some servers send; the framing does not change. */
		return true;
	else if (id != HTTP1_OTHER && id != HTTP1_HOP)
		return false;
	for (size_t i = 0; i < h->n; i++)
		if (same_field(h->fields[i].name, word))
			h->fields[i].drop = true;
	return true;
}

static int connection_parse(struct head *h, struct writ_err *err)
{
	size_t words = 0;

	for (size_t i = 0; h->one[HTTP1_CONNECTION] && i < h->n; i++) {
		struct sv list = h->fields[i].value;

		if (h->fields[i].id != HTTP1_CONNECTION)
			continue;
		do {
			const struct sv word = sv_trim(sv_cut(&list, ','));

			if (word.n == 0 || !http1_all(word, HTTP1_IN_TOKEN) ||
			    words++ == LISTED_MAX)
				return wire_refuse(err, "malformed Connection field");
			if (!connection_option_apply(word, h))
				return wire_refuse(err,
						   "Connection field with a name it may not have");
		} while (list.n);
	}
	return 0;
}

static int framing_parse(struct head *h, unsigned minor, struct writ_err *err)
{
	const struct http1_field *length = h->one[HTTP1_CONTENT_LENGTH];
	const struct http1_field *coding = h->one[HTTP1_TRANSFER_ENCODING];

	if (length && coding)
		return wire_refuse(err, "HTTP message with a length and a transfer coding");
	if (length && !sv_to_u64(length->value, INT64_MAX, &h->length))
		return wire_refuse(err, "malformed Content-Length");
	if (coding && (minor == 0 || !same_text(coding->value, SV("chunked"))))
		return wire_refuse(err, "HTTP transfer coding that is not accepted");
	h->has_length = length;
	h->chunked = coding;
	return 0;
}

static int head_parse(struct sv rest, unsigned minor, struct head *h, struct writ_err *err)
{
	if (fields_parse(rest, h, err) < 0 || connection_parse(h, err) < 0)
		return err->code;
	return framing_parse(h, minor, err);
}

static bool version_parse(struct sv s, unsigned *ret_minor)
{
	if (!sv_is(s, "HTTP/1.1") && !sv_is(s, "HTTP/1.0"))
		return false;
	*ret_minor = s.p[7] == '1';
	return true;
}

/* --- Requests. --- */

/* Splits "http://host:port/path" into the authority and the rest. */
static int absolute_parse(struct http1_request *q, struct writ_err *err)
{
	struct sv rest = q->target;
	size_t end;

	q->tls = same_text(sv_sub(rest, 0, 8), SV("https://"));
	if (!q->tls && !same_text(sv_sub(rest, 0, 7), SV("http://")))
		return wire_refuse(err, "request target that is neither path nor URL");
	rest = sv_skip(rest, q->tls ? 8 : 7);
	end = sv_find(rest, '/');
	q->form = HTTP1_ABSOLUTE;
	q->has_host = true;
	q->target = end != SIZE_MAX		  ? sv_skip(rest, end)
		    : sv_is(q->method, "OPTIONS") ? SV("*")
						  : SV("/");
	return wire_authority_parse(sv_sub(rest, 0, end), q->tls ? 443 : 80, &q->host, err);
}

static int target_read(struct http1_request *q, struct writ_err *err)
{
	if (q->target.n == 0 || !http1_all(q->target, HTTP1_IN_TARGET) ||
	    sv_find(q->target, '#') != SIZE_MAX)
		return wire_refuse(err, "malformed request target");
	if (sv_is(q->method, "CONNECT")) {
		const struct sv authority = q->target;

		q->form = HTTP1_AUTHORITY;
		q->has_host = true;
		q->target = SV("");
		return wire_authority_parse(authority, 0, &q->host, err);
	}
	if (q->target.p[0] == '/')
		return 0;
	if (!sv_is(q->target, "*"))
		return absolute_parse(q, err);
	q->form = HTTP1_ASTERISK;
	return sv_is(q->method, "OPTIONS") ? 0 : wire_refuse(err, "malformed request target");
}

static int request_line_parse(struct sv line, struct http1_request *q, struct writ_err *err)
{
	q->method = sv_cut(&line, ' ');
	q->target = sv_cut(&line, ' ');
	if (!version_parse(line, &q->minor))
		return wire_refuse(err, "malformed request line, or not HTTP/1");
	if (!target_method_check(q->method))
		return wire_refuse(err, "request method that is not accepted");
	return target_read(q, err);
}

static int host_check(const struct head *h, uint16_t port, struct http1_request *q,
		      struct writ_err *err)
{
	const struct http1_field *f = h->one[HTTP1_HOST];
	struct wire_authority a;

	if (!f)
		return q->minor == 0 ? 0 : wire_refuse(err, "request without Host");
	if (q->form == HTTP1_AUTHORITY)
		/* CONNECT clients may omit the port in Host: default to the target's port. */
		port = q->host.port;
	else if (q->form == HTTP1_ABSOLUTE)
		port = q->tls ? 443 : 80;
	if (wire_authority_parse(f->value, port, &a, err) < 0)
		return err->code;
	if (q->has_host && (a.port != q->host.port || !wire_host_eq(&a.host, &q->host.host)))
		return wire_refuse(err, "Host that is not the one of the target");
	if (!q->has_host)
		q->host = a;
	q->has_host = true;
	return 0;
}

/* Tests whether @s is the base64 encoding of 16 bytes. */
static bool is_ws_key(struct sv s)
{
	return s.n == WS_KEY_SIZE && sv_ends(s, SV("==")) &&
	       sv_is_alnum(sv_sub(s, 0, WS_KEY_SIZE - 2), "+/");
}

/*
 * Recognises a WebSocket upgrade. A request to upgrade to another protocol is forwarded without its
 * Upgrade field, so that the server sees no upgrade request.
 */
static int upgrade_check(const struct head *h, struct http1_request *q, struct writ_err *err)
{
	const struct http1_field *up = h->one[HTTP1_UPGRADE], *key = h->one[HTTP1_WS_KEY];
	const struct http1_field *version = h->one[HTTP1_WS_VERSION];

	if (!up || !h->upgrade || !same_text(up->value, SV("websocket")))
		return 0;
	if (q->minor == 0 || !sv_is(q->method, "GET") || q->framing != HTTP1_NONE || !key ||
	    !is_ws_key(key->value) || !version || !sv_is(version->value, "13"))
		return wire_refuse(err, "malformed WebSocket request");
	q->websocket = key->value;
	return 0;
}

static int request_rules(const struct head *h, struct http1_request *q, struct writ_err *err)
{
	const struct http1_field *expect = h->one[HTTP1_EXPECT];
	const bool body = h->has_length || h->chunked;

	if (body && (q->form == HTTP1_AUTHORITY || sv_is(q->method, "TRACE")))
		return wire_refuse(err, "request that may not have a body");
	if (expect && (q->minor == 0 || !same_text(expect->value, SV("100-continue"))))
		return wire_refuse(err, "request with an expectation that is not known");
	q->expect = expect && body && !(h->has_length && h->length == 0);
	q->framing = h->chunked ? HTTP1_CHUNKED : h->has_length ? HTTP1_LENGTH : HTTP1_NONE;
	q->length = h->length;
	q->keep_alive = !h->close && (q->minor == 1 || h->keep_alive);
	for (size_t i = 0; i < h->n; i++)
		h->fields[i].drop |= h->fields[i].id == HTTP1_OVERRIDE;
	return upgrade_check(h, q, err);
}

int http1_request_parse(struct sv head, uint16_t port, struct http1_field *fields, size_t room,
			struct http1_request *ret_request, struct writ_err *err)
{
	struct http1_request q = { .method = SV(""), .target = SV(""), .websocket = SV("") };
	struct head h = { .fields = fields, .room = room };
	struct sv line;

	if (!line_cut(&head, &line))
		return wire_refuse(err, "HTTP line that ends without CR");
	if (request_line_parse(line, &q, err) < 0 || head_parse(head, q.minor, &h, err) < 0 ||
	    host_check(&h, port, &q, err) < 0 || request_rules(&h, &q, err) < 0)
		return err->code;
	q.fields = fields;
	q.fields_n = h.n;
	*ret_request = q;
	return 0;
}

/* --- Responses. --- */

static int status_line_parse(struct sv line, struct http1_response *r, struct writ_err *err)
{
	uint64_t status;

	if (!version_parse(sv_cut(&line, ' '), &r->minor))
		return wire_refuse(err, "malformed status line, or not HTTP/1");
	/* Accept a status line that ends after the status: many servers omit the blank there. */
	if (!sv_to_u64(sv_cut(&line, ' '), 999, &status) || status < 100)
		return wire_refuse(err, "malformed status line");
	if (!http1_all(line, HTTP1_IN_VALUE))
		return wire_refuse(err, "status line with a control byte");
	r->status = (unsigned)status;
	r->reason = line;
	return 0;
}

static int switch_check(const struct head *h, struct http1_asked asked, struct writ_err *err)
{
	const struct http1_field *up = h->one[HTTP1_UPGRADE];

	if (asked.websocket && up && h->upgrade && same_text(up->value, SV("websocket")) &&
	    h->one[HTTP1_WS_ACCEPT])
		return 0;
	return wire_refuse(err, "response that switches protocols unasked");
}

static int response_rules(const struct head *h, struct http1_asked asked, struct http1_response *r,
			  struct writ_err *err)
{
	const bool bare = r->status < 200 || r->status == 204;

	if (bare && (h->chunked || h->length > 0))
		return wire_refuse(err, "response that may not have a body");
	if (h->one[HTTP1_HOST])
		return wire_refuse(err, "response with a Host");
	r->interim = r->status < 200 && r->status != 101;
	r->websocket = r->status == 101;
	r->has_length = h->has_length && !bare;
	r->length = h->length;
	if (bare || asked.head || r->status == 304)
		r->framing = HTTP1_NONE;
	else if (h->chunked)
		r->framing = HTTP1_CHUNKED;
	else
		r->framing = h->has_length ? HTTP1_LENGTH : HTTP1_UNTIL_CLOSE;
	r->keep_alive = r->minor == 1 && !h->close && r->framing != HTTP1_UNTIL_CLOSE;
	for (size_t i = 0; i < h->n; i++)
		h->fields[i].drop |= h->fields[i].id == HTTP1_ALT_SVC;
	return r->websocket ? switch_check(h, asked, err) : 0;
}

int http1_response_parse(struct sv head, struct http1_asked asked, struct http1_field *fields,
			 size_t room, struct http1_response *ret_response, struct writ_err *err)
{
	struct http1_response resp = { .reason = SV("") };
	struct head h = { .fields = fields, .room = room, .response = true };
	struct sv line;

	if (!line_cut(&head, &line))
		return wire_refuse(err, "HTTP line that ends without CR");
	if (status_line_parse(line, &resp, err) < 0 ||
	    head_parse(head, resp.minor, &h, err) < 0 ||
	    response_rules(&h, asked, &resp, err) < 0)
		return err->code;
	resp.fields = fields;
	resp.fields_n = h.n;
	*ret_response = resp;
	return 0;
}
