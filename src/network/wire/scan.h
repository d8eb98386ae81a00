/*
 * scan.h - find secret values in a byte stream, in several encodings
 *
 * Reads:  the bytes of a request or response, in any pieces
 * Writes: the caller's window
 * Next:   the caller forwards clean bytes, and masks a hit or ends the stream
 *
 * Each value is searched for verbatim, in both base64 alphabets at each of the three
 * alignments, in hexadecimal of both cases, percent-encoded (only reserved bytes, or all;
 * both cases) and as a JSON string. Compressed text, base64 with line breaks and mixed
 * encodings are not detected.
 *
 * Only bytes that could be the beginning of a value are held back; all others are returned
 * at once, so an interactive stream is not delayed. The hits do not depend on how the stream
 * is cut into pieces: the earliest match wins, and at one position the longest.
 */
#ifndef WRIT_WIRE_SCAN_H
#define WRIT_WIRE_SCAN_H

#include "base/arena.h"
#include "base/err.h"

enum {
	SCAN_VALUES_MAX = 256,
	SCAN_VALUE_MIN = 8, /* shortest value: shorter values would match by chance */
	SCAN_VALUE_MAX = 4096,
	SCAN_ROOM = 65536, /* window size that suits most callers */
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
 * Builds a set from @values and copies the values into @a. The set is immutable; any number of
 * streams may share it. Fails with WRIT_E_LIMIT if a value is too short or too long, or if there
 * are too many values.
 */
must_check int scan_set_new(struct arena *a, const struct scan_value *values, size_t n,
			    const struct scan_set **ret_set, struct writ_err *err);

/* Returns the smallest usable size of a window: at least twice the longest encoded value. */
size_t scan_room_min(const struct scan_set *set);

struct scan {
	const struct scan_set *set;
	char *window;
	size_t room, at, n;
};

/* Starts a search. @room, the size of @window, must be at least scan_room_min(). */
void scan_init(struct scan *s, const struct scan_set *set, void *window, size_t room);

enum scan_state {
	SCAN_HIT = 0, /* the returned bytes encode a value and must not be forwarded */
	SCAN_CLEAN,   /* the returned bytes may be forwarded, and are never empty */
	SCAN_MORE,    /* all of @in is consumed; with @last, the stream has ended */
};

struct scan_out {
	struct sv bytes; /* view into the window; valid until the next call */
	uint32_t id;	 /* for SCAN_HIT: the id of the value that was found */
	enum scan_form form;
};

/*
 * Returns the next piece of the stream; call until SCAN_MORE. @last: no bytes follow *@in, so
 * scan_next() holds no bytes back. The caller should replace a hit with a non-empty mask: if the
 * hit were simply removed, the bytes around the hit could join to form a value.
 */
enum scan_state scan_next(struct scan *s, struct sv *in, bool last, struct scan_out *ret_out);

/*
 * Returns, after SCAN_MORE, which share of a value the held bytes may already be, in thousandths
 * (the largest share over all values).
 */
unsigned scan_held(const struct scan *s);

#endif
