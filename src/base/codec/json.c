#include "codec/json.h"

#include "base/banned.h"

enum { FOREIGN_DEPTH_MAX = 64 };

/*
 * Returns the deepest nesting of brackets outside strings. Counting the nesting before parsing
 * bounds the recursion of jansson's parser.
 */
static size_t nesting(struct sv s)
{
	size_t depth = 0, most = 0;
	bool quoted = false;

	for (size_t i = 0; i < s.n; i++) {
		const char c = s.p[i];

		if (quoted && c == '\\')
			i++;
		else if (c == '"')
			quoted = !quoted;
		else if (!quoted && (c == '[' || c == '{') && ++depth > most)
			most = depth;
		else if (!quoted && (c == ']' || c == '}') && depth > 0)
			depth--;
	}
	return most;
}

int json_decode(struct sv bytes, size_t max, json_t **ret_v, struct writ_err *err)
{
	return json_decode_within(bytes, max, FOREIGN_DEPTH_MAX, ret_v, err);
}

int json_decode_within(struct sv bytes, size_t max, size_t depth, json_t **ret_v,
		       struct writ_err *err)
{
	json_error_t why;
	json_t *v;

	if (bytes.n > max)
		return writ_fail(err, WRIT_E_LIMIT, 0, "JSON larger than %zu bytes", max);
	if (nesting(bytes) > depth)
		return writ_fail(err, WRIT_E_LIMIT, 0, "JSON nested more than %zu deep", depth);
	v = json_loadb(bytes.p, bytes.n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
	if (!v)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "JSON line %d: %s", why.line, why.text);
	*ret_v = v;
	return 0;
}

static void put_control(struct buf *b, unsigned char c)
{
	static const char letters[] = "btn?fr"; /* escape letters for 0x08 to 0x0d; 0x0b has none */

	if (c >= 0x08 && c <= 0x0d && c != 0x0b) {
		buf_ch(b, '\\');
		buf_ch(b, letters[c - 0x08]);
	} else {
		buf_fmt(b, "\\u%04x", c);
	}
}

/* Returns the number of bytes at the start of @s that need no escaping. */
static size_t plain_at(struct sv s)
{
	size_t n = 0;

	while (n < s.n && s.p[n] >= 0x20 && s.p[n] <= 0x7e && s.p[n] != '"' && s.p[n] != '\\')
		n++;
	return n;
}

void json_put_str(struct buf *b, struct sv s)
{
	buf_ch(b, '"');
	for (;;) {
		const size_t plain = plain_at(s);
		unsigned char c;
		size_t n;

		buf_sv(b, sv_sub(s, 0, plain));
		s = sv_skip(s, plain);
		if (s.n == 0)
			break;
		n = sv_utf8_len(s);
		c = (unsigned char)s.p[0];
		if (n == 0)
			buf_str(b, "\xef\xbf\xbd");
		else if (c < 0x20)
			put_control(b, c);
		else if (c == '"' || c == '\\')
			buf_add(b, (const char[]){ '\\', (char)c }, 2);
		else
			buf_sv(b, sv_sub(s, 0, n));
		s = sv_skip(s, n ? n : 1);
	}
	buf_ch(b, '"');
}

static int put_bytes(const char *bytes, size_t n, void *ctx)
{
	struct buf *b = ctx;

	buf_add(b, bytes, n);
	return b->failed ? -1 : 0;
}

bool json_put(struct buf *b, const json_t *v, size_t flags)
{
	return json_dump_callback(v, put_bytes, b, flags) == 0;
}

void json_put_sep(struct buf *b)
{
	if (b->n && b->p[b->n - 1] != '{' && b->p[b->n - 1] != '[')
		buf_ch(b, ',');
}

void json_put_item(struct buf *b, struct sv value)
{
	json_put_sep(b);
	json_put_str(b, value);
}

void json_put_key(struct buf *b, const char *name)
{
	json_put_sep(b);
	buf_fmt(b, "\"%s\":", name);
}

void json_put_member(struct buf *b, const char *name, struct sv value)
{
	json_put_key(b, name);
	json_put_str(b, value);
}

void json_put_number(struct buf *b, const char *name, uint64_t value)
{
	json_put_key(b, name);
	buf_u64(b, value);
}

void json_put_flag(struct buf *b, const char *name, bool value)
{
	json_put_key(b, name);
	buf_str(b, value ? "true" : "false");
}
