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

struct guard {
	struct vault *vault;
	struct scan scan;
	z_stream z;
	bool zipped, ended;
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

struct guard *l7_guard_new(struct l7 *l, struct sv coding, enum cap_cause *why)
{
	const bool zipped = same_name(coding, SV("gzip")) || same_name(coding, SV("x-gzip")) ||
			    same_name(coding, SV("deflate"));
	const size_t room = scan_room_min(l->vault.values);
	struct guard *g;

	*why = CAUSE_CODING;
	if (coding.n && !zipped && !same_name(coding, SV("identity")))
		return NULL;
	*why = CAUSE_MEMORY;
	g = calloc(1, sizeof(*g) + room);
	if (!g)
		return NULL;
	g->vault = &l->vault;
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

bool l7_guard_run(struct guard *g, struct fifo *in, bool last, struct fifo *out,
		  enum cap_cause *why)
{
	while (in->n && out->n < L7_BODY) {
		struct sv piece = fifo_view(in);

		piece = sv_sub(piece, 0, g->zipped ? SLICE : PIECE);
		if (!(g->zipped ? unzip(g, piece, out, why) : search(g, piece, false, out, why)))
			return false;
		fifo_drop(in, piece.n);
	}
	if (!last || in->n)
		return true;
	if (g->zipped && !g->ended && g->z.total_in) {
		*why = CAUSE_CODING_SHORT;
		return false;
	}
	return search(g, SV(""), true, out, why);
}
