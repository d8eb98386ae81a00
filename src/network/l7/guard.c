#include <stdlib.h>
#include <zlib.h>

#include "l7/l7_priv.h"

#include "base/banned.h"

/*
 * A response often contains up to NEAR thousandths of a secret value by chance, such as a common
 * token prefix. Only longer beginnings of a value count as guesses, and NEARER_MAX of them are
 * tolerated.
 */
enum { NEAR = 250, NEARER_MAX = 3 };
enum { SLICE = 64, GZIP_OR_ZLIB = 15 + 32, PIECE = 16 << 10 };

enum { WS_LONG = 126, WS_LONGER = 127, WS_CONTROL_MAX = 125, WS_HEAD_MAX = 10, WS_FIN = 0x80 };

/* The frames of a WebSocket server while they arrive. */
struct down_frames {
	uint8_t head[WS_HEAD_MAX];
	size_t head_n;
	uint64_t left;	/* bytes of the frame's payload that have not arrived yet */
	bool open;	/* a message has begun and not ended */
	bool begun;	/* the client has got a frame of the open message */
	uint8_t opcode; /* opcode of the open message */
	char control[WS_CONTROL_MAX];
	size_t control_n;
	struct fifo clean; /* searched bytes of the open message, for the next frame */
};

struct guard {
	struct l7 *l7;
	struct vault *vault;
	struct scan scan;
	z_stream z;
	bool zipped, ended;
	bool websocket;
	struct down_frames down;
};

/*
 * Fields that the reader removes from requests to a server that gets a secret. SECURITY: these
 * fields ask for a response in ranges, each of which could contain a part of the value, or in an
 * encoding in which the search would not find the value.
 */
static const struct sv unasked[] = {
	SV_INIT("range"), SV_INIT("if-range"),	     SV_INIT("request-range"),
	SV_INIT("a-im"),  SV_INIT("accept-charset"), SV_INIT("sec-websocket-extensions"),
};

void l7_guard_request(struct call *c)
{
	for (size_t i = 0; i < c->q.fields_n; i++)
		for (size_t k = 0; k < ARRAY_LEN(unasked); k++)
			c->fields[i].drop |= same_name(c->fields[i].name, unasked[k]);
}

bool l7_guard_sees(const struct http1_response *r)
{
	bool packed = r->status == 206 || r->status == 226;

	for (size_t i = 0; r->websocket && i < r->fields_n; i++)
		packed |= same_name(r->fields[i].name, SV("sec-websocket-extensions"));
	return !packed;
}

struct guard *l7_guard_new(struct l7 *l, struct sv coding, bool websocket, enum cap_cause *why)
{
	const bool zipped = same_name(coding, SV("gzip")) || same_name(coding, SV("x-gzip")) ||
			    same_name(coding, SV("deflate"));
	const size_t room = scan_room_min(l->vault.values);
	struct guard *g;

	*why = CAUSE_CODING;
	if (coding.n && (!zipped || websocket) && !same_name(coding, SV("identity")))
		return NULL;
	*why = CAUSE_MEMORY;
	g = calloc(1, sizeof(*g) + room);
	if (!g)
		return NULL;
	g->l7 = l;
	g->vault = &l->vault;
	g->websocket = websocket;
	g->down.clean = (struct fifo)FIFO_INIT(room + PIECE);
	scan_init(&g->scan, l->vault.values, (char *)(g + 1), room);
	g->zipped = zipped;
	if (zipped && inflateInit2(&g->z, GZIP_OR_ZLIB) != Z_OK) {
		free(g);
		return NULL;
	}
	return g;
}

void l7_guard_free(struct guard *g)
{
	if (!g)
		return;
	if (g->zipped)
		(void)inflateEnd(&g->z);
	fifo_clear(&g->down.clean);
	explicit_bzero(g->scan.window, g->scan.room);
	free(g);
}

bool l7_guard_decodes(const struct guard *g)
{
	return g->zipped;
}

/*
 * Detects an agent that guesses a value. SECURITY: the agent can see that the reader holds bytes
 * back. If the agent makes a server echo guessed prefixes, a longer correct prefix holds back more
 * bytes, which reveals the value letter by letter. After more than NEARER_MAX such steps the reader
 * refuses all requests to servers that get a secret.
 */
static bool is_guessed(struct guard *g)
{
	struct vault *v = g->vault;
	const unsigned held = scan_held(&g->scan);

	if (held > NEAR && held > v->near) {
		v->near = held;
		v->guessed |= ++v->nearer > NEARER_MAX;
	}
	return v->guessed;
}

static bool search(struct guard *g, struct sv text, bool last, struct fifo *out,
		   enum cap_cause *why)
{
	struct scan_out found;

	for (;;) {
		switch (scan_next(&g->scan, &text, last, &found)) {
		case SCAN_MORE:
			*why = CAUSE_SECRET_GUESSED;
			return last || !is_guessed(g);
		case SCAN_HIT:
			*why = CAUSE_SECRET_FOUND;
			return false;
		case SCAN_CLEAN:
			if (!fifo_add(out, found.bytes)) {
				*why = CAUSE_MEMORY;
				return false;
			}
		}
	}
}

/*
 * Decompresses a slice of a response and searches it for secrets. The slices are small, because
 * each slice may grow a thousandfold.
 */
static bool unzip(struct guard *g, struct sv in, struct fifo *out, enum cap_cause *why)
{
	char text[PIECE];

	g->z.next_in = (Bytef *)(uintptr_t)in.p;
	g->z.avail_in = (uInt)in.n;
	do {
		int r;

		g->z.next_out = (Bytef *)text;
		g->z.avail_out = sizeof(text);
		*why = CAUSE_CODING_WRONG;
		/*
		 * Refuse bytes after the end of the compressed stream: the reader does not
		 * decompress them, so the client would silently lose them.
		 */
		if (g->ended && g->z.avail_in)
			return false;
		r = g->ended ? Z_OK : inflate(&g->z, Z_NO_FLUSH);
		if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
			return false;
		g->ended |= r == Z_STREAM_END;
		if (!search(g, (struct sv){ text, sizeof(text) - g->z.avail_out }, false, out, why))
			return false;
	} while (g->z.avail_out == 0 || (g->z.avail_in && !g->ended));
	if (g->z.avail_in) {
		*why = CAUSE_CODING_MORE;
		return false;
	}
	return true;
}

/*
 * --- frames of a WebSocket server ---
 *
 * SECURITY: a server may cut a message into frames anywhere, so the heads of frames may lie inside
 * a value. The guard searches the payload of a message without the heads, and forwards the payload
 * in frames of its own, cut where the search holds bytes back. A control frame may lie between two
 * frames of a message; it is complete in itself, and is searched and forwarded as it is.
 */

static bool is_control(const struct down_frames *d)
{
	return d->head[0] & 0x08;
}

static size_t down_head_length(const struct down_frames *d)
{
	const unsigned n = d->head_n >= 2 ? d->head[1] & 0x7fu : 0;

	return 2 + (n == WS_LONG ? 2 : n == WS_LONGER ? 8 : 0);
}

/*
 * Handles a complete frame head. Returns false for a head that a server may not send without
 * negotiated extensions. A masked payload is refused, too: the value would not be found in it.
 */
static bool down_head_take(struct down_frames *d)
{
	const uint8_t opcode = d->head[0] & 0x0f;
	const size_t n = down_head_length(d) - 2;

	d->left = d->head[1];
	for (size_t i = 0; i < n; i++)
		d->left = (i ? d->left << 8 : 0) | d->head[2 + i];
	d->control_n = 0;
	if ((d->head[0] & 0x70) || (d->head[1] & 0x80) || d->left > INT64_MAX)
		return false;
	if (is_control(d))
		return opcode <= 10 && (d->head[0] & WS_FIN) && d->left <= WS_CONTROL_MAX;
	if (opcode > 2 || (opcode == 0) != d->open)
		return false;
	if (opcode) {
		d->open = true;
		d->begun = false;
		d->opcode = opcode;
	}
	return true;
}

static bool put_frame(uint8_t first, struct sv payload, struct fifo *out, enum cap_cause *why)
{
	char head[WS_HEAD_MAX] = { (char)first };
	const size_t more = payload.n < WS_LONG ? 0 : payload.n <= UINT16_MAX ? 2 : 8;

	head[1] = (char)(more == 0 ? payload.n : more == 2 ? WS_LONG : WS_LONGER);
	for (size_t i = 0; i < more; i++)
		head[2 + i] = (char)(payload.n >> 8 * (more - 1 - i));
	*why = CAUSE_MEMORY;
	return fifo_add(out, (struct sv){ head, 2 + more }) && fifo_add(out, payload);
}

/* Searches a piece of a message. @last: the piece ends the message. */
static bool down_data(struct guard *g, struct sv text, bool last, struct fifo *out,
		      enum cap_cause *why)
{
	struct down_frames *d = &g->down;
	const uint8_t first = (uint8_t)((last ? WS_FIN : 0) | (d->begun ? 0 : d->opcode));

	if (!search(g, text, last, &d->clean, why))
		return false;
	if (d->clean.n == 0 && !last)
		return true;
	d->begun = true;
	d->open = !last;
	if (!put_frame(first, fifo_view(&d->clean), out, why))
		return false;
	fifo_drop(&d->clean, d->clean.n);
	return true;
}

/* Takes the bytes of a payload that *@in begins with; an empty payload has none. */
static bool down_payload(struct guard *g, struct sv *in, struct fifo *out, enum cap_cause *why)
{
	struct down_frames *d = &g->down;
	const struct sv text = sv_sub(*in, 0, d->left < in->n ? (size_t)d->left : in->n);

	*in = sv_skip(*in, text.n);
	d->left -= text.n;
	if (d->left == 0)
		d->head_n = 0;
	if (!is_control(d))
		return down_data(g, text, d->left == 0 && (d->head[0] & WS_FIN), out, why);
	memcpy(d->control + d->control_n, text.p, text.n);
	d->control_n += text.n;
	if (d->left)
		return true;
	*why = CAUSE_SECRET_FOUND;
	return !l7_secret_found(g->l7, g->vault->values,
				(struct sv){ d->control, d->control_n }) &&
	       put_frame(d->head[0], (struct sv){ d->control, d->control_n }, out, why);
}

static bool down_frames_run(struct guard *g, struct sv in, struct fifo *out, enum cap_cause *why)
{
	struct down_frames *d = &g->down;

	while (in.n) {
		if (d->left == 0) {
			d->head[d->head_n++] = (uint8_t)in.p[0];
			in = sv_skip(in, 1);
			if (d->head_n < down_head_length(d))
				continue;
			*why = CAUSE_FRAME;
			if (!down_head_take(d))
				return false;
			if (d->left)
				continue;
		}
		if (!down_payload(g, &in, out, why))
			return false;
	}
	return true;
}

static bool run_piece(struct guard *g, struct sv piece, struct fifo *out, enum cap_cause *why)
{
	if (g->websocket)
		return down_frames_run(g, piece, out, why);
	return g->zipped ? unzip(g, piece, out, why) : search(g, piece, false, out, why);
}

bool l7_guard_run(struct guard *g, struct fifo *in, bool last, struct fifo *out,
		  enum cap_cause *why)
{
	while (in->n && out->n < L7_BODY) {
		struct sv piece = fifo_view(in);

		piece = sv_sub(piece, 0, g->zipped ? SLICE : PIECE);
		if (!run_piece(g, piece, out, why))
			return false;
		fifo_drop(in, piece.n);
	}
	if (!last || in->n)
		return true;
	/* Drop bytes that are held back: they are part of a message that the server did not end. */
	if (g->websocket)
		return true;
	if (g->zipped && !g->ended && g->z.total_in) {
		*why = CAUSE_CODING_SHORT;
		return false;
	}
	return search(g, SV(""), true, out, why);
}
