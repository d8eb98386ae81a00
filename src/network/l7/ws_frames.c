/*
 * Search the WebSocket frames of a client for placeholders. Clients mask the payload of frames, so
 * the reader unmasks a copy for the search and forwards the frames unchanged.
 */
#include <stdlib.h>

#include "l7/l7_priv.h"

#include "base/banned.h"

enum { HEAD_MIN = 6, HEAD_LONGEST = 14, CONTROL_MAX = 125, PIECE = 4096 };

struct frames {
	struct scan scan;
	uint8_t head[HEAD_LONGEST];
	size_t head_n;
	uint64_t left; /* bytes of the frame's payload that have not arrived yet */
	/* number of payload bytes unmasked so far; the mask repeats every four bytes */
	unsigned turn;
	bool is_control;
	char control[CONTROL_MAX];
	size_t control_n;
};

struct frames *l7_frames_new(const struct l7 *l)
{
	const size_t room = scan_room_min(l->vault.placeholders);
	struct frames *f = calloc(1, sizeof(*f) + room);

	if (f)
		scan_init(&f->scan, l->vault.placeholders, (char *)(f + 1), room);
	return f;
}

static size_t head_length(const struct frames *f)
{
	const unsigned n = f->head_n >= 2 ? f->head[1] & 0x7fu : 0;

	return HEAD_MIN + (n == 126 ? 2 : n == 127 ? 8 : 0);
}

/*
 * Handles a complete frame header. Returns false for a header that a client may not send
 * without negotiated extensions.
 */
static bool head_take(struct frames *f)
{
	const size_t n = head_length(f) - HEAD_MIN;

	f->left = f->head[1] & 0x7fu;
	if (n) {
		f->left = 0;
		for (size_t i = 0; i < n; i++)
			f->left = f->left << 8 | f->head[2 + i];
	}
	f->turn = 0;
	f->is_control = f->head[0] & 0x08;
	f->control_n = 0;
	return !(f->head[0] & 0x70) && (f->head[1] & 0x80) &&
	       (!f->is_control || f->left <= CONTROL_MAX);
}

static bool scan_finds(struct frames *f, struct sv text)
{
	enum scan_state state;
	struct scan_out out;

	while ((state = scan_next(&f->scan, &text, false, &out)) == SCAN_CLEAN)
		;
	return state == SCAN_HIT;
}

/* Unmasks a piece of the payload. Returns true if the payload contains a placeholder. */
static bool piece_has(struct l7 *l, struct frames *f, struct sv *data)
{
	const uint8_t *mask = f->head + head_length(f) - 4;
	char plain[PIECE];
	size_t n = data->n < PIECE ? data->n : PIECE;

	n = f->left < n ? (size_t)f->left : n;
	for (size_t i = 0; i < n; i++)
		plain[i] = (char)((uint8_t)data->p[i] ^ mask[f->turn++ % 4]);
	*data = sv_skip(*data, n);
	f->left -= n;
	if (!f->is_control)
		return scan_finds(f, (struct sv){ plain, n });
	memcpy(f->control + f->control_n, plain, n);
	f->control_n += n;
	return l7_secret_found(l, l->vault.placeholders, (struct sv){ f->control, f->control_n });
}

enum cap_cause l7_frames_search(struct l7 *l, struct frames *f, struct sv data)
{
	while (data.n) {
		if (f->left) {
			if (piece_has(l, f, &data))
				return CAUSE_PLACEHOLDER;
			f->head_n = f->left ? f->head_n : 0;
			continue;
		}
		f->head[f->head_n++] = (uint8_t)data.p[0];
		data = sv_skip(data, 1);
		if (f->head_n < head_length(f))
			continue;
		if (!head_take(f))
			return CAUSE_FRAME;
		f->head_n = f->left ? f->head_n : 0;
	}
	return CAUSE_NONE;
}
