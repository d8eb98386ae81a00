/* Bodies on their way through a call, both directions. */
#include <stdlib.h>

#include "l7/l7_priv.h"

#include "base/banned.h"

enum { UP_WINDOW = 4096 }; /* smaller ones are filled too often */

/* --- from the client --- */

size_t call_up_room(const struct call *c)
{
	if (c->up_discard)
		return L7_BODY;
	return c->up.n < L7_BODY ? L7_BODY - c->up.n : 0;
}

static void block(struct call *c)
{
	if (c->answered)
		call_fail(c, "placeholder-wrong-place");
	else
		call_refuse(c, 403, "placeholder-wrong-place");
}

/* False: the call was ended for what was found. */
static bool look(struct call *c, struct sv data, bool last)
{
	const struct scan_set *set = c->l7->vault.placeholders;
	const size_t least = scan_room_min(set), room = least < UP_WINDOW ? UP_WINDOW : least;
	enum scan_state state;
	struct scan_out out;

	if (!c->up_scan) {
		c->up_scan = malloc(sizeof(*c->up_scan) + room);
		if (!c->up_scan) {
			call_fail(c, "memory");
			return false;
		}
		scan_init(c->up_scan, set, (char *)(c->up_scan + 1), room);
	}
	while ((state = scan_next(c->up_scan, &data, last, &out)) != SCAN_MORE) {
		if (state == SCAN_HIT) {
			block(c);
			return false;
		}
		if (!fifo_add(&c->up, out.bytes)) {
			call_fail(c, "memory");
			return false;
		}
	}
	return true;
}

void call_up_data(struct call *c, struct sv data)
{
	if (c->up_discard) {
		if (c->up_debt)
			client2_consume(c, c->up_debt);
		return;
	}
	if (secret_searched(c)) {
		if (!look(c, data, false))
			return;
	} else if (!fifo_add(&c->up, data)) {
		call_fail(c, "memory");
		return;
	}
	if (c->server)
		server_wake(c);
}

void call_up_end(struct call *c)
{
	if (c->up_end)
		return;
	if (!c->up_discard && c->l7->vault.n) {
		if (c->up_scan && !look(c, SV(""), true))
			return;
		if (c->up_trailers.n &&
		    secret_found(c->l7, c->l7->vault.placeholders, buf_view(&c->up_trailers))) {
			block(c);
			return;
		}
	}
	c->up_end = true;
	if (c->server)
		server_wake(c);
}

void call_up_drop(struct call *c, size_t n)
{
	fifo_drop(&c->up, n);
	if (!c->client->h2)
		link_wake(&c->client->link);
	else if (c->up_debt)
		client2_consume(c, n < c->up_debt ? n : c->up_debt);
}

/* --- from the server --- */

size_t call_down_room(const struct call *c)
{
	const size_t n = c->down.n + c->raw.n;

	return n < L7_BODY ? L7_BODY - n : 0;
}

void call_interim(struct call *c, const struct http1_response *r)
{
	struct http1_response bare = {
		.status = r->status, .minor = 1, .reason = SV(""), .interim = true
	};

	if (c->answered || c->interims++ == 16)
		return;
	/* SECURITY: its fields are not looked through. */
	if (c->guarded)
		r = &bare;
	if (c->client->h2)
		client2_interim(c, r);
	else
		client1_interim(c, r);
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

/* Makes ready to look through the answer; NULL, or why it cannot be. */
static const char *set_guard(struct call *c, struct http1_response *r, struct sv head)
{
	bool many = false;
	const struct http1_field *coding = coding_of(r, &many);
	const char *why = NULL;

	if (secret_found(c->l7, c->l7->vault.values, head))
		return "secret-in-answer";
	if (!guard_sees(r))
		return "the server sent a part, or in a form, that cannot be looked through";
	if (r->framing == HTTP1_NONE && !r->websocket)
		return NULL;
	if (many)
		return "the server sent a coding that cannot be looked through";
	c->guard = guard_new(c->l7, coding ? coding->value : SV(""), &why);
	if (!c->guard)
		return why;
	if (guard_decodes(c->guard)) {
		r->fields[coding - r->fields].drop = true;
		r->framing = HTTP1_CHUNKED;
	}
	return NULL;
}

void call_answer(struct call *c, struct http1_response *r, struct sv head)
{
	struct http1_send how = { .framing = r->framing, .length = r->length };
	const char *why;

	if (c->answered || !call_pay(c, false, head.n))
		return;
	why = c->guarded ? set_guard(c, r, head) : NULL;
	if (why) {
		call_refuse(c, 502, why);
		return;
	}
	how.framing = r->framing == HTTP1_UNTIL_CLOSE ? HTTP1_CHUNKED : r->framing;
	c->answered = true;
	c->status = r->status;
	if (c->client->h2)
		client2_answer(c, r, &how);
	else
		client1_answer(c, r, &how);
}

static void repay(struct call *c, size_t n)
{
	if (c->server && c->server->h2 && c->down_debt)
		server2_consume(c, n < c->down_debt ? n : c->down_debt);
}

/* What was looked through goes on; the rest waits for room. */
static void sift(struct call *c)
{
	const size_t before = c->raw.n;
	const char *why = NULL;

	if (!guard_run(c->guard, &c->raw, c->raw_end && !c->down_end, &c->down, &why)) {
		call_fail(c, why);
		return;
	}
	repay(c, before - c->raw.n);
	if (c->raw_end && c->raw.n == 0)
		c->down_end = true;
	client_more(c);
}

void call_down_data(struct call *c, struct sv data)
{
	if (c->broken || !call_pay(c, false, data.n))
		return;
	if (!fifo_add(c->guard ? &c->raw : &c->down, data)) {
		call_fail(c, "memory");
		return;
	}
	if (c->guard)
		sift(c);
	else
		client_more(c);
}

void call_down_end(struct call *c)
{
	if (c->broken || c->down_end)
		return;
	if (c->guarded && c->down_trailers.n &&
	    secret_found(c->l7, c->l7->vault.values, buf_view(&c->down_trailers))) {
		call_fail(c, "secret-in-answer");
		return;
	}
	c->raw_end = true;
	if (c->guard) {
		sift(c);
		return;
	}
	c->down_end = true;
	client_more(c);
}

void call_down_drop(struct call *c, size_t n)
{
	fifo_drop(&c->down, n);
	if (c->guard && (c->raw.n || (c->raw_end && !c->down_end)))
		sift(c);
	else if (!c->guard)
		repay(c, n);
	if (c->server)
		server_wake(c);
}
