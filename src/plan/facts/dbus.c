#include "facts/dbus.h"

#include <string.h>

#include "base/banned.h"

enum {
	FIELD_PATH = 1,
	FIELD_INTERFACE,
	FIELD_MEMBER,
	FIELD_ERROR,
	FIELD_REPLY,
	FIELD_DESTINATION,
	FIELD_SENDER,
	FIELD_SIGNATURE,
};

/* --- reading --- */

static uint32_t u32_at(struct sv s, size_t at)
{
	const unsigned char *p = (const unsigned char *)s.p + at;

	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Skips padding up to the next multiple of @to; padding must be zero. */
static bool align(struct dbus_reader *r, size_t to)
{
	for (; r->at % to; r->at++)
		if (r->at >= r->bytes.n || r->bytes.p[r->at])
			return false;
	return true;
}

static bool has(const struct dbus_reader *r, size_t n)
{
	return r->at <= r->bytes.n && n <= r->bytes.n - r->at;
}

bool dbus_get_u32(struct dbus_reader *r, uint32_t *ret)
{
	if (!align(r, 4) || !has(r, 4))
		return false;
	*ret = u32_at(r->bytes, r->at);
	r->at += 4;
	return true;
}

/* Reads @n bytes without NUL, followed by a NUL. */
static bool get_text(struct dbus_reader *r, size_t n, struct sv *ret)
{
	struct sv s;

	if (!has(r, n) || !has(r, n + 1))
		return false;
	s = sv_sub(r->bytes, r->at, n);
	if (sv_find(s, 0) != SIZE_MAX || r->bytes.p[r->at + n])
		return false;
	r->at += n + 1;
	*ret = s;
	return true;
}

bool dbus_get_str(struct dbus_reader *r, struct sv *ret)
{
	uint32_t n;

	return dbus_get_u32(r, &n) && get_text(r, n, ret);
}

static bool get_byte(struct dbus_reader *r, uint8_t *ret)
{
	if (!has(r, 1))
		return false;
	*ret = (uint8_t)r->bytes.p[r->at++];
	return true;
}

static bool get_sig(struct dbus_reader *r, struct sv *ret)
{
	uint8_t n;

	return get_byte(r, &n) && get_text(r, n, ret);
}

/* Skips a value of a simple type. Header fields have only simple types. */
static bool skip_value(struct dbus_reader *r, char type)
{
	static const struct {
		char type;
		size_t n;
	} sizes[] = { { 'y', 1 }, { 'n', 2 }, { 'q', 2 }, { 'b', 4 }, { 'i', 4 },
		      { 'u', 4 }, { 'x', 8 }, { 't', 8 }, { 'd', 8 } };
	struct sv drop;

	if (type == 's' || type == 'o')
		return dbus_get_str(r, &drop);
	if (type == 'g')
		return get_sig(r, &drop);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		if (sizes[i].type != type)
			continue;
		if (!align(r, sizes[i].n) || !has(r, sizes[i].n))
			return false;
		r->at += sizes[i].n;
		return true;
	}
	return false;
}

static struct sv *text_field(struct dbus_message *m, uint8_t code, char *ret_type)
{
	*ret_type = 's';
	switch (code) {
	case FIELD_PATH:
		*ret_type = 'o';
		return &m->path;
	case FIELD_INTERFACE:
		return &m->interface;
	case FIELD_MEMBER:
		return &m->member;
	case FIELD_ERROR:
		return &m->error;
	default:
		return NULL;
	}
}

static bool get_field(struct dbus_reader *r, struct dbus_message *m)
{
	struct sv sig, *text;
	uint8_t code;
	char type;

	if (!align(r, 8) || !get_byte(r, &code) || !get_sig(r, &sig) || sig.n != 1)
		return false;
	text = text_field(m, code, &type);
	if (text)
		return sig.p[0] == type && dbus_get_str(r, text);
	if (code == FIELD_REPLY)
		return sig.p[0] == 'u' && dbus_get_u32(r, &m->reply_to);
	if (code == FIELD_SIGNATURE)
		return sig.p[0] == 'g' && get_sig(r, &m->signature);
	return code && skip_value(r, sig.p[0]);
}

int dbus_length(struct sv head, size_t *ret_n, struct writ_err *err)
{
	uint64_t n;

	/* The first four bytes are byte order, message type, flags and protocol version. */
	if (head.n < DBUS_HEAD || head.p[0] != 'l' || head.p[3] != 1)
		return writ_fail_lit(err, WRIT_E_SYNTAX, 0, "that is no D-Bus message");
	n = (uint64_t)u32_at(head, 12) + 7;
	n = DBUS_HEAD + n / 8 * 8 + u32_at(head, 4);
	if (n > DBUS_MAX)
		return writ_fail_lit(err, WRIT_E_LIMIT, 0, "a D-Bus message is too long");
	*ret_n = (size_t)n;
	return 0;
}

int dbus_decode(struct sv bytes, struct dbus_message *ret, struct writ_err *err)
{
	struct dbus_message m = { 0 };
	struct dbus_reader r = { .bytes = bytes, .at = DBUS_HEAD };
	size_t n, fields;
	int e = dbus_length(bytes, &n, err);

	if (e < 0)
		return e;
	m.path = m.interface = m.member = m.error = m.signature = SV("");
	fields = DBUS_HEAD + u32_at(bytes, 12);
	if (n != bytes.n || bytes.p[1] < DBUS_CALL || bytes.p[1] > DBUS_SIGNAL)
		return writ_fail_lit(err, WRIT_E_SYNTAX, 0, "that is no D-Bus message");
	m.type = (enum dbus_type)bytes.p[1];
	m.serial = u32_at(bytes, 8);
	r.bytes.n = fields;
	while (r.at < fields)
		if (!get_field(&r, &m))
			return writ_fail_lit(err, WRIT_E_SYNTAX, 0, "a D-Bus header is damaged");
	r.bytes.n = bytes.n;
	if (!align(&r, 8) || m.serial == 0 ||
	    ((m.type == DBUS_RETURN || m.type == DBUS_ERROR) && m.reply_to == 0))
		return writ_fail_lit(err, WRIT_E_SYNTAX, 0, "a D-Bus header is damaged");
	m.body = sv_skip(bytes, r.at);
	*ret = m;
	return 0;
}

/* --- writing --- */

void dbus_put_align(struct buf *b, size_t to)
{
	while (b->n % to && !b->failed)
		buf_ch(b, 0);
}

void dbus_put_u32(struct buf *b, uint32_t v)
{
	dbus_put_align(b, 4);
	for (int i = 0; i < 4; i++)
		buf_ch(b, (char)(v >> (8 * i) & 0xff));
}

void dbus_put_u64(struct buf *b, uint64_t v)
{
	dbus_put_align(b, 8);
	for (int i = 0; i < 8; i++)
		buf_ch(b, (char)(v >> (8 * i) & 0xff));
}

void dbus_put_str(struct buf *b, struct sv s)
{
	dbus_put_u32(b, (uint32_t)s.n);
	buf_sv(b, s);
	buf_ch(b, 0);
}

void dbus_put_sig(struct buf *b, const char *signature)
{
	buf_ch(b, (char)strlen(signature));
	buf_str(b, signature);
	buf_ch(b, 0);
}

size_t dbus_array_begin(struct buf *b, size_t to)
{
	size_t at;

	dbus_put_align(b, 4);
	at = b->n;
	dbus_put_u32(b, 0);
	dbus_put_align(b, to);
	return at;
}

/*
 * Stores the length of an array. The length field precedes the padding, and the length does not
 * include the padding.
 */
void dbus_array_end(struct buf *b, size_t at, size_t to)
{
	const size_t first = (at + 4 + to - 1) / to * to;
	const size_t n = b->n - first;

	for (size_t i = 0; i < 4 && !b->failed; i++)
		b->p[at + i] = (char)(n >> (8 * i) & 0xff);
}

static void put_field(struct buf *b, uint8_t code, const char *type, const char *text)
{
	dbus_put_align(b, 8);
	buf_ch(b, (char)code);
	dbus_put_sig(b, type);
	if (type[0] == 'g')
		dbus_put_sig(b, text);
	else
		dbus_put_str(b, sv_from(text));
}

void dbus_put_call(struct buf *b, const struct dbus_call *c, struct sv body)
{
	size_t fields;

	buf_add(b, "l\1\0\1", 4);
	dbus_put_u32(b, (uint32_t)body.n);
	dbus_put_u32(b, c->serial);
	fields = dbus_array_begin(b, 8);
	put_field(b, FIELD_PATH, "o", c->path);
	put_field(b, FIELD_DESTINATION, "s", c->destination);
	put_field(b, FIELD_INTERFACE, "s", c->interface);
	put_field(b, FIELD_MEMBER, "s", c->member);
	put_field(b, FIELD_SIGNATURE, "g", c->signature);
	dbus_array_end(b, fields, 8);
	dbus_put_align(b, 8);
	buf_sv(b, body);
}
