/*
 * dbus.h - as much of the D-Bus wire format as one call and its answers need
 *
 * Reads:  bytes of somebody else's program
 * Writes: nothing
 * Next:   scope.c
 *
 * Little endian only, as on every machine we run on. Pure; nothing is allocated
 * while reading, and views are into the bytes that were given.
 */
#ifndef WRIT_SCOPE_DBUS_H
#define WRIT_SCOPE_DBUS_H

#include "base/buf.h"

enum dbus_type { DBUS_NONE = 0, DBUS_CALL, DBUS_RETURN, DBUS_ERROR, DBUS_SIGNAL };

enum {
	DBUS_HEAD = 16,	      /* bytes that say how long a message is */
	DBUS_MAX = 128 << 10, /* of a message that we read; what we ask for is much shorter */
};

struct dbus_message {
	enum dbus_type type;
	uint32_t serial, reply_to;		  /* 0: none */
	struct sv path, interface, member, error; /* empty: none */
	struct sv signature, body;
};

/* The length of the message that begins with @head, which has DBUS_HEAD bytes. */
must_check int dbus_length(struct sv head, size_t *ret_n, struct writ_err *err);
/* Exactly one message. */
must_check int dbus_decode(struct sv bytes, struct dbus_message *ret, struct writ_err *err);

/* Values of a body, one after the other. False: they end, or make no sense. */
struct dbus_reader {
	struct sv bytes;
	size_t at;
};
must_check bool dbus_get_u32(struct dbus_reader *r, uint32_t *ret);
must_check bool dbus_get_str(struct dbus_reader *r, struct sv *ret); /* a path as well */

/* Writing, into a buffer that begins with the message or with its body. */
void dbus_put_align(struct buf *b, size_t to);
void dbus_put_u32(struct buf *b, uint32_t v);
void dbus_put_u64(struct buf *b, uint64_t v);
void dbus_put_str(struct buf *b, struct sv s);
void dbus_put_sig(struct buf *b, const char *signature);
/* An array of elements that begin at multiples of @to; its length, at @at, is known at its end. */
size_t dbus_array_begin(struct buf *b, size_t to);
void dbus_array_end(struct buf *b, size_t at, size_t to);

struct dbus_call {
	uint32_t serial;
	const char *destination, *path, *interface, *member, *signature;
};
void dbus_put_call(struct buf *b, const struct dbus_call *c, struct sv body);

#endif
