/*
 * scan.h - secrets that must not come back: found in a stream, in several spellings
 *
 * Reads:  the bytes of a response, in any pieces
 * Writes: the caller's window
 * Next:   the caller sends on what is clean, and masks or ends what is not
 *
 * Each value is looked for as it is, in base64 of both alphabets wherever it begins
 * inside a group, in hexadecimal of both cases, percent-encoded (what needs it, or
 * every byte; both cases) and as a JSON string. Not found: compressed text, base64
 * broken into lines, mixtures of spellings.
 *
 * Bytes are held back only while they could be the beginning of a value, so what
 * does not look like one goes on at once. Which bytes are found does not depend on
 * how the stream is cut: the first place, there the longest.
 */
#ifndef WRIT_WIRE_SCAN_H
#define WRIT_WIRE_SCAN_H

#include "base/arena.h"
#include "base/err.h"

enum {
	SCAN_VALUES_MAX = 256,
	SCAN_VALUE_MIN = 8, /* shorter ones would be found everywhere */
	SCAN_VALUE_MAX = 4096,
	SCAN_ROOM = 65536, /* a good size for a window */
};

enum scan_form {
	SCAN_RAW = 0,
	SCAN_BASE64,
	SCAN_BASE64URL,
	SCAN_HEX,
	SCAN_PERCENT,
	SCAN_JSON,
};

struct scan_value {
	struct sv bytes;
	uint32_t id;
};

struct scan_set;

/*
 * Everything is copied into @a; the set is const and any number of streams may share
 * it. Fails with WRIT_E_LIMIT for values that are too short, too long or too many.
 */
must_check int scan_set_new(struct arena *a, const struct scan_value *values, size_t n,
			    const struct scan_set **ret_set, struct writ_err *err);

/* The smallest window: twice the longest spelling. */
size_t scan_room_min(const struct scan_set *set);

struct scan {
	const struct scan_set *set;
	char *window;
	size_t room, at, n;
};

/* @room is at least scan_room_min(). */
void scan_init(struct scan *s, const struct scan_set *set, void *window, size_t room);

enum scan_state {
	SCAN_HIT = 0, /* these bytes must not go on */
	SCAN_CLEAN,   /* these may; never empty */
	SCAN_MORE,    /* *@in is used up; with @last the stream is at its end */
};

struct scan_out {
	struct sv bytes; /* in the window, until the next call */
	uint32_t id;	 /* of SCAN_HIT */
	enum scan_form form;
};

/*
 * Call until SCAN_MORE. @last: nothing follows *@in, so nothing is held back. Masks
 * should not be empty, or what stood around a hit could become one.
 */
enum scan_state scan_next(struct scan *s, struct sv *in, bool last, struct scan_out *ret_out);

/* After SCAN_MORE: how much of a value, of 1000, what is held back would be. */
unsigned scan_held(const struct scan *s);

#endif
