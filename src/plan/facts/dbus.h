/*
 * dbus.h - the part of the D-Bus wire format needed for one call and its replies
 *
 * Reads:  bytes from another program
 * Writes: nothing
 * Next:   scope.c
 *
 * Only messages in little-endian byte order are supported: the order of all architectures that writ
 * supports. Reading allocates nothing; results are views of the given bytes.
 */
#ifndef WRIT_FACTS_DBUS_H
#define WRIT_FACTS_DBUS_H

#include "base/buf.h"

enum dbus_type { DBUS_NONE = 0, DBUS_CALL, DBUS_RETURN, DBUS_ERROR, DBUS_SIGNAL };

enum {
	DBUS_HEAD = 16,	      /* length of the fixed header, which contains the message length */
	DBUS_MAX = 128 << 10, /* largest message accepted; expected replies are much shorter */
};

struct dbus_message {
	enum dbus_type type;
	uint32_t serial, reply_to;		  /* message numbers; 0: absent */
	struct sv path, interface, member, error; /* header fields; empty: absent */
	struct sv signature, body;
};

/* Sets *@ret_n to the length of the message that begins with @head, of at least DBUS_HEAD bytes. */
must_check int dbus_length(struct sv head, size_t *ret_n, struct writ_err *err);
/* Decodes @bytes, which must be exactly one message. */
must_check int dbus_decode(struct sv bytes, struct dbus_message *ret, struct writ_err *err);

/*
 * Reader for the values of a message body. The dbus_get_*() functions return false at the end of
 * the body or for malformed data.
 */
struct dbus_reader {
	struct sv bytes;
	size_t at;
};
must_check bool dbus_get_u32(struct dbus_reader *r, uint32_t *ret);
/* Reads a string or an object path. */
must_check bool dbus_get_str(struct dbus_reader *r, struct sv *ret);

/*
 * Functions that append values. The buffer must begin with the message or with its body, because
 * alignment counts from the beginning of the buffer.
 */
void dbus_put_align(struct buf *b, size_t to);
void dbus_put_u32(struct buf *b, uint32_t v);
void dbus_put_u64(struct buf *b, uint64_t v);
void dbus_put_str(struct buf *b, struct sv s);
void dbus_put_sig(struct buf *b, const char *signature);
/*
 * dbus_array_begin() starts an array whose elements are aligned to @to and returns the position of
 * the array's length, which dbus_array_end() fills in.
 */
size_t dbus_array_begin(struct buf *b, size_t to);
void dbus_array_end(struct buf *b, size_t at, size_t to);

struct dbus_call {
	uint32_t serial;
	const char *destination, *path, *interface, *member, *signature;
};
void dbus_put_call(struct buf *b, const struct dbus_call *c, struct sv body);

#endif
