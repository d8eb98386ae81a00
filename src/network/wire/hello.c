#include "wire/hello.h"

#include "wire/wire_priv.h"

#include "base/banned.h"

enum {
	RECORD_HANDSHAKE = 22,
	RECORD_MAX = 16384,
	CLIENT_HELLO = 1,
	HANDSHAKE_HEAD = 4,
	EXTENSIONS_MAX = 128,
	TLS_1_0 = 0x0301,
	TLS_1_2 = 0x0303,
	TLS_1_3 = 0x0304,
};

enum {
	EXT_SERVER_NAME = 0,
	EXT_ALPN = 16,
	EXT_PRE_SHARED_KEY = 41,
	EXT_EARLY_DATA = 42,
	EXT_SUPPORTED_VERSIONS = 43,
	EXT_ECH = 0xfe0d,
	EXT_ESNI = 0xffce, /* Encrypted SNI, the draft that preceded ECH */
};

void hello_init(struct hello *h, void *buffer, size_t room)
{
	*h = (struct hello){ .body = buffer,
			     .room = room < HELLO_ROOM_MAX ? room : HELLO_ROOM_MAX,
			     .state = HELLO_MORE };
}

/* --- Parsing the reassembled message. --- */

static bool names_read(struct cursor data, struct hello *h, struct writ_err *err)
{
	struct cursor list = cursor_part(&data, 2);
	const uint32_t type = cursor_uint(&list, 1);
	const struct cursor name = cursor_part(&list, 2);

	if (data.failed || data.n || list.failed || list.n || type != 0)
		return false;
	return wire_name_parse(cursor_sv(name), &h->name, err) == 0;
}

static bool alpn_read(struct cursor data, struct hello *h)
{
	struct cursor list = cursor_part(&data, 2);

	if (data.failed || data.n || list.n == 0)
		return false;
	h->has_alpn = true;
	while (list.n) {
		const struct cursor one = cursor_part(&list, 1);

		if (list.failed || one.n == 0 || h->alpn_n == HELLO_ALPN_MAX)
			return false;
		h->alpn[h->alpn_n++] = cursor_sv(one);
	}
	return true;
}

/*
 * Tests for a GREASE value (RFC 8701), 0x?a?a. Clients add GREASE values so that servers continue
 * to ignore unknown values.
 */
static bool is_grease(uint32_t v)
{
	return (v & 0x0f0f) == 0x0a0a && v >> 8 == (v & 0xff);
}

static bool versions_read(struct cursor data, struct hello *h)
{
	struct cursor list = cursor_part(&data, 1);
	uint32_t best = 0;

	if (data.failed || data.n || list.n == 0 || list.n % 2)
		return false;
	while (list.n) {
		const uint32_t v = cursor_uint(&list, 2);

		if (!is_grease(v) && v > best && v <= TLS_1_3)
			best = v;
	}
	h->version = (uint16_t)best;
	return true;
}

/*
 * Records that the hello has an Encrypted ClientHello extension. Returns false unless the extension
 * has the outer form (type 0), the only form that clients send in the clear.
 */
static bool ech_read(struct cursor data, struct hello *h)
{
	h->has_ech = true;
	return data.n > 0 && data.p[0] == 0;
}

static bool extension_read(uint32_t type, struct cursor data, bool last, struct hello *h,
			   struct writ_err *err)
{
	switch (type) {
	case EXT_SERVER_NAME:
		return names_read(data, h, err);
	case EXT_ALPN:
		return alpn_read(data, h);
	case EXT_SUPPORTED_VERSIONS:
		return versions_read(data, h);
	case EXT_EARLY_DATA:
		h->has_early_data = true;
		return data.n == 0;
	case EXT_PRE_SHARED_KEY:
		return last;
	case EXT_ECH:
		return ech_read(data, h);
	case EXT_ESNI:
		h->has_ech = true;
		return true;
	default:
		return true;
	}
}

static bool extensions_read(struct cursor list, struct hello *h, struct writ_err *err)
{
	uint16_t seen[EXTENSIONS_MAX];

	for (size_t n = 0; list.n; n++) {
		const uint32_t type = cursor_uint(&list, 2);
		const struct cursor data = cursor_part(&list, 2);

		if (list.failed || n == EXTENSIONS_MAX)
			return false;
		for (size_t i = 0; i < n; i++)
			if (seen[i] == type)
				return false;
		seen[n] = (uint16_t)type;
		if (!extension_read(type, data, list.n == 0, h, err))
			return false;
	}
	return true;
}

static enum hello_state bad(struct hello *h, struct writ_err *err, int code, const char *what)
{
	wire_set_error(err, code, what);
	return h->state = HELLO_BAD;
}

static enum hello_state message_read(struct hello *h, struct writ_err *err)
{
	struct cursor c = { .p = h->body + HANDSHAKE_HEAD, .n = h->n - HANDSHAKE_HEAD };
	const uint32_t version = cursor_uint(&c, 2);
	struct cursor ciphers, compressions, extensions;
	struct writ_err why = { 0 };

	(void)cursor_take(&c, 32); /* skip the client's random */
	if (cursor_part(&c, 1).n > 32)
		return bad(h, err, WRIT_E_SYNTAX, "TLS hello with a malformed session id");
	ciphers = cursor_part(&c, 2);
	compressions = cursor_part(&c, 1);
	if (c.failed || ciphers.n == 0 || ciphers.n % 2 || compressions.n == 0 ||
	    !memchr(compressions.p, 0, compressions.n))
		return bad(h, err, WRIT_E_SYNTAX, "malformed TLS hello");
	if (version < TLS_1_0 || version > TLS_1_2)
		return bad(h, err, WRIT_E_SYNTAX, "TLS hello of a version that is not accepted");
	h->version = (uint16_t)version;
	if (c.n == 0) /* the client sends no extensions */
		return h->state = HELLO_OK;
	extensions = cursor_part(&c, 2);
	if (c.failed || c.n || !extensions_read(extensions, h, &why))
		return bad(h, err, WRIT_E_SYNTAX,
			   why.code ? why.what : "TLS hello with a malformed extension");
	if (h->version < TLS_1_0)
		return bad(h, err, WRIT_E_SYNTAX, "TLS hello of a version that is not accepted");
	return h->state = HELLO_OK;
}

/* --- Reassembling the message from TLS records. --- */

/*
 * Checks the part of the record header that has arrived. @first: the record is the first of the
 * stream, where an unknown type means "not TLS" rather than an error.
 */
static enum hello_state head_check(struct hello *h, bool first, struct writ_err *err)
{
	const uint8_t *b = h->head;
	size_t n;

	if (first && b[0] & 0x80) {
		/* An SSL 2 hello has a length with the high bit set, then type 1 and a version. */
		if (h->head_n < 5)
			return HELLO_MORE;
		if (b[2] == CLIENT_HELLO && (b[3] == 3 || (b[3] == 0 && b[4] == 2)))
			return bad(h, err, WRIT_E_SYNTAX, "hello of SSL 2");
		return h->state = HELLO_NOT_TLS;
	}
	if (b[0] != RECORD_HANDSHAKE || (h->head_n > 1 && b[1] != 3)) {
		if (first)
			return h->state = HELLO_NOT_TLS;
		return bad(h, err, WRIT_E_SYNTAX, "TLS hello interrupted by another record");
	}
	if (h->head_n < 5)
		return HELLO_MORE;
	n = (size_t)b[3] << 8 | b[4];
	if (b[2] > 4 || n == 0 || n > RECORD_MAX)
		return bad(h, err, WRIT_E_SYNTAX, "malformed TLS record");
	h->record_left = n;
	h->head_n = 0;
	return HELLO_MORE;
}

/* Checks the part of the hello that has arrived; parses the hello once it is complete. */
static enum hello_state message_check(struct hello *h, struct writ_err *err)
{
	size_t size;

	if (h->n && h->body[0] != CLIENT_HELLO)
		return bad(h, err, WRIT_E_SYNTAX, "TLS that does not start with a hello");
	if (h->n < HANDSHAKE_HEAD)
		return HELLO_MORE;
	size = HANDSHAKE_HEAD + ((size_t)h->body[1] << 16 | (size_t)h->body[2] << 8 | h->body[3]);
	if (size > h->room)
		return bad(h, err, WRIT_E_LIMIT, "TLS hello that is too long");
	if (h->n < size)
		return HELLO_MORE;
	if (h->n > size || h->record_left)
		return bad(h, err, WRIT_E_SYNTAX, "TLS hello with bytes behind its end");
	return message_read(h, err);
}

/*
 * Copies bytes of the current record. Stops after the 4-byte handshake header, so that the length
 * in the header is checked before more bytes are copied.
 */
static size_t body_take(struct hello *h, struct sv bytes)
{
	const size_t most = h->n < HANDSHAKE_HEAD ? HANDSHAKE_HEAD : h->room;
	size_t n = bytes.n < h->record_left ? bytes.n : h->record_left;

	if (n > most - h->n)
		n = most - h->n;
	memcpy(h->body + h->n, bytes.p, n);
	h->n += n;
	h->record_left -= n;
	return n;
}

enum hello_state hello_push(struct hello *h, struct sv bytes, size_t *ret_used,
			    struct writ_err *err)
{
	struct sv in = bytes;

	*ret_used = 0;
	if (h->room < HANDSHAKE_HEAD)
		return bad(h, err, WRIT_E_LIMIT, "no room for a TLS hello");
	while (h->state == HELLO_MORE && in.n) {
		enum hello_state s;

		if (h->record_left == 0) {
			h->head[h->head_n++] = (uint8_t)in.p[0];
			in = sv_skip(in, 1);
			s = head_check(h, h->n == 0, err);
		} else {
			in = sv_skip(in, body_take(h, in));
			s = message_check(h, err);
		}
		if (s != HELLO_MORE)
			break;
	}
	*ret_used = bytes.n - in.n;
	return h->state;
}
