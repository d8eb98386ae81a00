/* Forward the bodies of requests and responses, and search them for placeholders and secrets. */
#include <stdlib.h>

#include "l7/l7_priv.h"

#include "base/banned.h"

/* Smallest window for searching a request body: smaller ones would be refilled too often. */
enum { UP_WINDOW = 4096 };

/* --- request bodies, from the client --- */

size_t call_up_room(const struct call *c)
{
	if (c->req.discard)
		return L7_BODY;
	return c->req.bytes.n < L7_BODY ? L7_BODY - c->req.bytes.n : 0;
}

/*
 * Searches a piece of the request body for placeholders and queues the bytes without one. Returns
 * false if the call was stopped, because the piece contains a placeholder or memory ran out.
 */
static bool search_body(struct call *c, struct sv data, bool last)
{
	const struct scan_set *set = c->l7->vault.placeholders;
	const size_t least = scan_room_min(set), room = least < UP_WINDOW ? UP_WINDOW : least;
	enum scan_state state;
	struct scan_out out;

	if (!c->req.scan) {
		c->req.scan = malloc(sizeof(*c->req.scan) + room);
		if (!c->req.scan) {
			call_fail(c, CAUSE_MEMORY);
			return false;
		}
		scan_init(c->req.scan, set, (char *)(c->req.scan + 1), room);
	}
	while ((state = scan_next(c->req.scan, &data, last, &out)) != SCAN_MORE) {
		if (state == SCAN_HIT) {
			call_stop(c, 403, CAUSE_PLACEHOLDER, NULL);
			return false;
		}
		if (!fifo_add(&c->req.bytes, out.bytes)) {
			call_fail(c, CAUSE_MEMORY);
			return false;
		}
	}
	return true;
}

void call_up_data(struct call *c, struct sv data)
{
	if (c->req.discard) {
		if (c->req.debt)
			client_h2_consume(c, c->req.debt);
		return;
	}
	if (l7_secret_searched(c)) {
		if (!search_body(c, data, false))
			return;
	} else if (!fifo_add(&c->req.bytes, data)) {
		call_fail(c, CAUSE_MEMORY);
		return;
	}
	if (c->server)
		server_wake(c);
}

void call_up_end(struct call *c)
{
	if (c->req.ended)
		return;
	if (!c->req.discard && c->l7->vault.n) {
		if (c->req.scan && !search_body(c, SV(""), true))
			return;
		if (c->req.trailers.n &&
		    l7_secret_found(c->l7, c->l7->vault.placeholders, buf_view(&c->req.trailers))) {
			call_stop(c, 403, CAUSE_PLACEHOLDER, NULL);
			return;
		}
	}
	c->req.ended = true;
	if (c->server)
		server_wake(c);
}

void call_up_drop(struct call *c, size_t n)
{
	fifo_drop(&c->req.bytes, n);
	if (!c->client->h2)
		l7_link_wake(&c->client->link);
	else if (c->req.debt)
		client_h2_consume(c, n < c->req.debt ? n : c->req.debt);
}

/* --- response bodies, from the server --- */

size_t call_down_room(const struct call *c)
{
	const size_t n = c->resp.bytes.n + c->resp.raw.n;

	return n < L7_BODY ? L7_BODY - n : 0;
}

void call_interim(struct call *c, const struct http1_response *r)
{
	struct http1_response bare = {
		.status = r->status, .minor = 1, .reason = SV(""), .interim = true
	};

	if (c->answered || ++c->resp.interims > 16)
		return;
	/*
	 * SECURITY: the reader does not search interim (1xx) heads for secrets, so it removes
	 * all fields of such a head.
	 */
	if (c->guarded)
		r = &bare;
	if (c->client->h2)
		client_h2_interim(c, r);
	else
		client_h1_interim(c, r);
}

static const struct http1_field *coding_of(struct http1_response *r, bool *ret_many)
{
	const struct http1_field *found = NULL;

	for (size_t i = 0; i < r->fields_n; i++) {
		if (!same_name(r->fields[i].name, SV("content-encoding")))
			continue;
		*ret_many = found;
		found = &r->fields[i];
	}
	return found;
}

/*
 * Searches the head of a response for secrets and prepares the search of its body. Returns
 * CAUSE_NONE, or the reason why the response must not be forwarded.
 */
static enum cap_cause set_guard(struct call *c, struct http1_response *r, struct sv head)
{
	bool many = false;
	const struct http1_field *coding = coding_of(r, &many);
	enum cap_cause why = CAUSE_NONE;

	if (l7_secret_found(c->l7, c->l7->vault.values, head))
		return CAUSE_SECRET_FOUND;
	if (!l7_guard_sees(r))
		return CAUSE_FORM;
	if (r->framing == HTTP1_NONE && !r->websocket)
		return CAUSE_NONE;
	if (many)
		return CAUSE_CODING;
	c->resp.guard = l7_guard_new(c->l7, coding ? coding->value : SV(""),
				     r->websocket, &why);
	if (!c->resp.guard)
		return why;
	if (l7_guard_decodes(c->resp.guard)) {
		r->fields[coding - r->fields].drop = true;
		r->framing = HTTP1_CHUNKED;
	}
	return CAUSE_NONE;
}

void call_answer(struct call *c, struct http1_response *r, struct sv head)
{
	struct http1_send how = { .framing = r->framing, .length = r->length };
	enum cap_cause why;

	if (c->answered || !call_charge(c, false, head.n))
		return;
	why = c->guarded ? set_guard(c, r, head) : CAUSE_NONE;
	if (why != CAUSE_NONE) {
		call_refuse(c, 502, why);
		return;
	}
	how.framing = r->framing == HTTP1_UNTIL_CLOSE ? HTTP1_CHUNKED : r->framing;
	call_give(c, r, &how);
}

static void credit_window(struct call *c, size_t n)
{
	if (c->server && c->server->h2 && c->resp.debt)
		server_h2_consume(c, n < c->resp.debt ? n : c->resp.debt);
}

/*
 * Moves searched bytes of the response to the client's queue; bytes for which
 * the queue has no room wait.
 */
static void search_response(struct call *c)
{
	const size_t before = c->resp.raw.n;
	enum cap_cause why = CAUSE_NONE;

	if (!l7_guard_run(c->resp.guard, &c->resp.raw, c->resp.raw_ended && !c->resp.ended,
			  &c->resp.bytes, &why)) {
		call_fail(c, why);
		return;
	}
	credit_window(c, before - c->resp.raw.n);
	if (c->resp.raw_ended && c->resp.raw.n == 0)
		c->resp.ended = true;
	client_more(c);
}

void call_down_data(struct call *c, struct sv data)
{
	if (c->broken || !call_charge(c, false, data.n))
		return;
	if (!fifo_add(c->resp.guard ? &c->resp.raw : &c->resp.bytes, data)) {
		call_fail(c, CAUSE_MEMORY);
		return;
	}
	if (c->resp.guard)
		search_response(c);
	else
		client_more(c);
}

void call_down_end(struct call *c)
{
	if (c->broken || c->resp.ended)
		return;
	if (c->guarded && c->resp.trailers.n &&
	    l7_secret_found(c->l7, c->l7->vault.values, buf_view(&c->resp.trailers))) {
		call_fail(c, CAUSE_SECRET_FOUND);
		return;
	}
	c->resp.raw_ended = true;
	if (c->resp.guard) {
		search_response(c);
		return;
	}
	c->resp.ended = true;
	client_more(c);
}

void call_down_drop(struct call *c, size_t n)
{
	fifo_drop(&c->resp.bytes, n);
	if (c->resp.guard && (c->resp.raw.n || (c->resp.raw_ended && !c->resp.ended)))
		search_response(c);
	else if (!c->resp.guard)
		credit_window(c, n);
	if (c->server)
		server_wake(c);
}
