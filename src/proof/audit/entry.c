#include "audit/entry.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "crypto/crypto.h"
#include "tlog/tree.h"

#include "base/banned.h"

void entry_clear(struct entry *e)
{
	buf_clear(&e->values);
	e->n = 0;
	e->failed = false;
}

static bool is_plain(char c)
{
	return c >= 0x20 && c <= 0x7e && c != '%';
}

/*
 * Appends @s percent-encoded; for JSON also with a backslash before each quotation mark and
 * backslash.
 */
static void put_encoded(struct buf *b, struct sv s, bool json)
{
	size_t from = 0;

	for (size_t i = 0; i < s.n; i++) {
		const char c = s.p[i];
		const bool escape = json && (c == '"' || c == '\\');

		if (is_plain(c) && !escape)
			continue;
		buf_sv(b, sv_sub(s, from, i - from));
		from = i + 1;
		if (escape)
			buf_add(b, (const char[]){ '\\', c }, 2);
		else
			buf_fmt(b, "%%%02X", (unsigned char)c);
	}
	buf_sv(b, sv_skip(s, from));
}

void entry_encode(struct buf *b, struct sv s)
{
	put_encoded(b, s, false);
}

/*
 * Returns the value of an upper-case hex digit, or -1 for any other character. Refuses lower case,
 * so that each value has one spelling.
 */
static int hex_upper(char c)
{
	return c >= 'a' && c <= 'f' ? -1 : sv_hex(c);
}

int entry_decode(struct sv s, struct buf *b, struct writ_err *err)
{
	for (size_t i = 0; i < s.n; i++) {
		int hi, lo;

		if (is_plain(s.p[i])) {
			buf_ch(b, s.p[i]);
			continue;
		}
		hi = s.p[i] == '%' && i + 2 < s.n ? hex_upper(s.p[i + 1]) : -1;
		lo = hi >= 0 ? hex_upper(s.p[i + 2]) : -1;
		if (lo < 0 || is_plain((char)(hi << 4 | lo)))
			return writ_fail(err, WRIT_E_SYNTAX, 0,
					 "not percent-encoded as it must be");
		buf_ch(b, (char)(hi << 4 | lo));
		i += 2;
	}
	return buf_check(b, err);
}

/*
 * Adds the member @key to the entry; the member's value was appended to .values from offset @at on.
 */
static void add(struct entry *e, const char *key, size_t at)
{
	for (size_t i = 0; i < e->n; i++)
		e->failed |= strcmp(e->members[i].key, key) == 0;
	/*
	 * Keys starting with a capital or an underscore are reserved: `_salt` and `_sd` sort before
	 * all other keys, so these two can be written first.
	 */
	if (e->n == ENTRY_MEMBERS || e->values.failed || key[0] < 'a')
		e->failed = true;
	if (e->failed)
		return;
	e->members[e->n++] = (struct entry_member){ .key = key,
						    .at = (uint32_t)at,
						    .n = (uint32_t)(e->values.n - at) };
}

/*
 * Appends a JSON string. A quotation mark and a backslash get a backslash; unprintable bytes and
 * the percent sign are percent-encoded.
 */
static void put_string(struct buf *b, struct sv s)
{
	buf_ch(b, '"');
	put_encoded(b, s, true);
	buf_ch(b, '"');
}

void entry_str(struct entry *e, const char *key, struct sv value)
{
	const size_t at = e->values.n;

	put_string(&e->values, value);
	add(e, key, at);
}

void entry_num(struct entry *e, const char *key, uint64_t value)
{
	const size_t at = e->values.n;
	const uint64_t most = (uint64_t)CJ_INT_MAX;

	buf_u64(&e->values, value > most ? most : value);
	add(e, key, at);
}

void entry_bool(struct entry *e, const char *key, bool value)
{
	const size_t at = e->values.n;

	buf_str(&e->values, value ? "true" : "false");
	add(e, key, at);
}

void entry_digest(struct entry *e, const char *key, const struct digest *d)
{
	const size_t at = e->values.n;

	buf_ch(&e->values, '"');
	base64_encode(BASE64_URL, (struct sv){ (const char *)d->b, sizeof(d->b) }, &e->values);
	buf_ch(&e->values, '"');
	add(e, key, at);
}

void entry_list(struct entry *e, const char *key, char *const *list, size_t max)
{
	const size_t at = e->values.n;

	buf_ch(&e->values, '[');
	for (char *const *item = list; *item && e->values.n - at < max; item++) {
		if (item != list)
			buf_ch(&e->values, ',');
		put_string(&e->values, sv_sub(sv_from(*item), 0, max));
	}
	buf_ch(&e->values, ']');
	add(e, key, at);
}

void entry_hide(struct entry *e)
{
	if (e->n)
		e->members[e->n - 1].hidden = true;
}

void entry_begin_at(struct entry *e, const char *event, uint64_t time_us)
{
	entry_clear(e);
	e->values.max = ENTRY_LINE_MAX;
	entry_str(e, "event", sv_from(event));
	entry_num(e, "time", time_us);
}

void entry_begin(struct entry *e, const char *event)
{
	entry_begin_at(e, event, clock_real_us());
}

/* --- the line and its public form --- */

struct hidden {
	char salt[ENTRY_SALT_TEXT + 1];
	char digest[ENTRY_DIGEST_TEXT + 1];
};

/*
 * Sorts the members of an entry by key. Uses insertion sort, because the members are few and almost
 * in order.
 */
static void sort(const struct entry *e, const struct entry_member **ret)
{
	for (size_t i = 0; i < e->n; i++) {
		size_t at = i;

		for (; at > 0 && strcmp(ret[at - 1]->key, e->members[i].key) > 0; at--)
			ret[at] = ret[at - 1];
		ret[at] = &e->members[i];
	}
}

static struct sv value_of(const struct entry *e, const struct entry_member *m)
{
	return sv_sub(buf_view(&e->values), m->at, m->n);
}

static void put_members(const struct entry *e, const struct entry_member *const *sorted,
			bool hidden, struct buf *b)
{
	for (size_t i = 0; i < e->n; i++) {
		if (sorted[i]->hidden && !hidden)
			continue;
		if (b->n && b->p[b->n - 1] != '{')
			buf_ch(b, ',');
		buf_ch(b, '"');
		buf_str(b, sorted[i]->key);
		buf_str(b, "\":");
		buf_sv(b, value_of(e, sorted[i]));
	}
	buf_ch(b, '}');
}

/* Appends the disclosure of a private member, the array [salt, name, value]. */
static void put_disclosure(struct sv salt, struct sv name, struct sv value, struct buf *text)
{
	const struct sv parts[] = { SV("[\""), salt, SV("\",\""), name, SV("\","), value, SV("]") };

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		buf_sv(text, parts[i]);
}

void entry_disclosure(struct sv salt, struct sv name, struct sv value, struct buf *b)
{
	scoped_buf text = BUF_INIT(ENTRY_LINE_MAX + 256);

	put_disclosure(salt, name, value, &text);
	base64_encode(BASE64_URL, buf_view(&text), b);
	b->failed |= text.failed;
}

/* Salt source and scratch buffers for hiding several members of an entry. */
struct hiding {
	struct entry_salts *salts;
	struct buf text, encoded;
};

static int fetch_salts(struct entry_salts *s, size_t bytes, struct writ_err *err)
{
	const int r = crypto_random(s->b, bytes, err);

	if (r == 0)
		s->left = bytes;
	return r;
}

static int take_salt(struct entry_salts *s, uint8_t ret[static ENTRY_SALT], struct writ_err *err)
{
	uint8_t *at;

	if (s->left == 0 && fetch_salts(s, sizeof(s->b), err) < 0)
		return err->code;
	s->left -= ENTRY_SALT;
	at = s->b + s->left;
	memcpy(ret, at, ENTRY_SALT);
	crypto_wipe(at, ENTRY_SALT);
	return 0;
}

static int hide(const struct entry *e, const struct entry_member *m, struct hiding *h,
		struct hidden *ret, struct writ_err *err)
{
	uint8_t salt[ENTRY_SALT];
	struct digest d;
	int r = take_salt(h->salts, salt, err);

	if (r < 0)
		return r;
	*ret = (struct hidden){ .salt = "" };
	base64_put(BASE64_URL, (struct sv){ (const char *)salt, sizeof(salt) }, ret->salt);
	h->text.n = h->encoded.n = 0;
	put_disclosure(sv_from(ret->salt), sv_from(m->key), value_of(e, m), &h->text);
	base64_encode(BASE64_URL, buf_view(&h->text), &h->encoded);
	r = buf_check(&h->text, err);
	if (r == 0)
		r = buf_check(&h->encoded, err);
	d = crypto_sha256(buf_view(&h->encoded));
	base64_put(BASE64_URL, (struct sv){ (const char *)d.b, sizeof(d.b) }, ret->digest);
	return r;
}

static int by_digest(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Appends `_salt` to the line: the salt of each private member. */
static void put_salts(const struct entry *e, const struct entry_member *const *sorted,
		      const struct hidden *hidden, struct buf *line)
{
	bool first = true;

	for (size_t i = 0; i < e->n; i++)
		if (sorted[i]->hidden) {
			buf_str(line, first ? "\"_salt\":{\"" : ",\"");
			buf_str(line, sorted[i]->key);
			buf_sv(line, SV("\":\""));
			buf_add(line, hidden[i].salt, ENTRY_SALT_TEXT);
			buf_ch(line, '"');
			first = false;
		}
	if (!first)
		buf_ch(line, '}');
}

/*
 * Appends `_sd` to the public form: the digests of the private members, sorted, so that the order
 * of the digests reveals nothing about the names.
 */
static void put_digests(const char **digests, size_t n, struct buf *b)
{
	if (n)
		qsort(digests, n, sizeof(*digests), by_digest);
	for (size_t i = 0; i < n; i++) {
		buf_str(b, i ? ",\"" : "\"_sd\":[\"");
		buf_add(b, digests[i], ENTRY_DIGEST_TEXT);
		buf_ch(b, '"');
	}
	if (n)
		buf_ch(b, ']');
}

int entry_finish(const struct entry *e, struct buf *line, struct digest *ret_leaf,
		 struct writ_err *err)
{
	scoped_buf open = BUF_INIT(ENTRY_PUBLIC_MAX);

	return entry_finish_both(e, NULL, line, &open, ret_leaf, err);
}

int entry_finish_both(const struct entry *e, struct entry_salts *salts, struct buf *line,
		      struct buf *open, struct digest *ret_leaf, struct writ_err *err)
{
	struct entry_salts own;
	struct hiding hiding = { .salts = salts ? salts : &own,
				 .text = BUF_INIT(ENTRY_LINE_MAX + 256),
				 .encoded = BUF_INIT(2 * ENTRY_LINE_MAX) };
	const struct entry_member *sorted[ENTRY_MEMBERS];
	struct hidden hidden[ENTRY_MEMBERS];
	const char *digests[ENTRY_MEMBERS];
	const size_t before = open->n;
	size_t n = 0, private_n = 0;
	int r = 0;

	if (e->failed || e->values.failed)
		return writ_fail(err, WRIT_E_LIMIT, 0, "an entry of the log is too large");
	sort(e, sorted);
	for (size_t i = 0; i < e->n; i++)
		private_n += e->members[i].hidden;
	/* Without a shared source of salts, fetch exactly the salts for this entry in one call. */
	if (!salts)
		r = fetch_salts(&own, private_n * ENTRY_SALT, err);
	for (size_t i = 0; r == 0 && i < e->n; i++)
		if (sorted[i]->hidden) {
			r = hide(e, sorted[i], &hiding, &hidden[i], err);
			digests[n++] = hidden[i].digest;
		}
	buf_clear(&hiding.text);
	buf_clear(&hiding.encoded);
	if (r < 0)
		return r;
	buf_ch(line, '{');
	put_salts(e, sorted, hidden, line);
	put_members(e, sorted, true, line);
	buf_ch(open, '{');
	put_digests(digests, n, open);
	put_members(e, sorted, false, open);
	r = buf_check(open, err);
	if (r == 0 && open->n - before > ENTRY_PUBLIC_MAX)
		r = writ_fail(err, WRIT_E_LIMIT, 0, "an entry has more than %d public bytes",
			      ENTRY_PUBLIC_MAX);
	if (r == 0)
		r = buf_check(line, err);
	if (r == 0)
		*ret_leaf = tree_leaf(sv_skip(buf_view(open), before));
	return r;
}

/* --- reading --- */

/*
 * Functions of entry.h that read log lines back. Lines come from files that anyone may have edited,
 * so each value is checked before use.
 */

static struct sv string_of(const json_t *v)
{
	return json_is_string(v) ? (struct sv){ json_string_value(v), json_string_length(v) }
				 : SV("");
}

static bool is_text_of(struct sv s, size_t bytes)
{
	size_t n;

	return base64_check(BASE64_URL, s, &n) && n == bytes;
}

static int bad(struct writ_err *err, const char *what)
{
	return writ_fail(err, WRIT_E_SYNTAX, 0, "an entry %s", what);
}

static int decode(struct sv line, json_t **ret, struct writ_err *err)
{
	scoped_json *o = NULL;
	int r;

	if (line.n > ENTRY_LINE_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "an entry has more than %d bytes",
				 ENTRY_LINE_MAX);
	r = cj_decode(line, &o, err);
	if (r < 0)
		return r;
	if (!json_is_string(json_object_get(o, "event")) ||
	    !json_is_integer(json_object_get(o, "time")))
		return bad(err, "has no event or no time");
	*ret = json_incref(o);
	return 0;
}

/* Computes the digest that represents the member @name of entry @o in the public form. */
static int digest_of(const json_t *o, const char *name, struct sv salt, char *ret,
		     struct writ_err *err)
{
	const json_t *v = json_object_get(o, name);
	scoped_buf value = BUF_INIT(ENTRY_LINE_MAX), text = BUF_INIT(2 * ENTRY_LINE_MAX);
	struct digest d;
	int r = v ? cj_encode(v, &value, err) : bad(err, "has a salt of nothing");

	if (r < 0)
		return r;
	entry_disclosure(salt, sv_from(name), buf_view(&value), &text);
	if ((r = buf_check(&text, err)) < 0)
		return r;
	d = crypto_sha256(buf_view(&text));
	base64_put(BASE64_URL, (struct sv){ (const char *)d.b, sizeof(d.b) }, ret);
	return 0;
}

/* Inserts @text into the sorted @list of digests; refuses a duplicate. */
static int insert(json_t *list, const char *text, struct writ_err *err)
{
	const size_t n = json_array_size(list);
	size_t at = 0;

	while (at < n && strcmp(string_of(json_array_get(list, at)).p, text) < 0)
		at++;
	if (at < n && strcmp(string_of(json_array_get(list, at)).p, text) == 0)
		return bad(err, "shows one member twice");
	return json_array_insert_new(list, at, json_string(text)) < 0 ? writ_nomem(err) : 0;
}

/* Checks the form and the order of the digests that stand for erased private members. */
static int check_erased(const json_t *list, struct writ_err *err)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const struct sv s = string_of(json_array_get(list, i));

		if (!is_text_of(s, sizeof(struct digest)) ||
		    (i && sv_cmp(string_of(json_array_get(list, i - 1)), s) >= 0))
			return bad(err, "has digests that are none, or in disorder");
	}
	return json_array_size(list) ? 0 : bad(err, "has an empty list of digests");
}

/* Replaces every private member of entry @o by its digest. */
static int hide_private(json_t *o, struct writ_err *err)
{
	json_t *salts = json_object_get(o, "_salt"), *list = json_object_get(o, "_sd"), *salt;
	char text[ENTRY_DIGEST_TEXT + 1] = "";
	const char *name;
	void *next;
	int r = list ? check_erased(list, err) : 0;

	if (r < 0 || !salts)
		return r;
	if (!json_is_object(salts) || !json_object_size(salts))
		return bad(err, "has no salts where they belong");
	if (!list) {
		list = json_array();
		if (json_object_set_new(o, "_sd", list) < 0)
			return writ_nomem(err);
	}
	json_object_foreach_safe(salts, next, name, salt)
	{
		if (!is_text_of(string_of(salt), ENTRY_SALT) || name[0] < 'a' ||
		    strcmp(name, "event") == 0 || strcmp(name, "time") == 0)
			return bad(err, "has a salt that is none");
		if ((r = digest_of(o, name, string_of(salt), text, err)) < 0 ||
		    (r = insert(list, text, err)) < 0)
			return r;
		(void)json_object_del(o, name);
	}
	(void)json_object_del(o, "_salt");
	return 0;
}

int entry_public(struct sv line, struct buf *b, struct writ_err *err)
{
	scoped_json *o = NULL;
	const size_t before = b->n;
	int r;

	if ((r = decode(line, &o, err)) < 0 || (r = hide_private(o, err)) < 0 ||
	    (r = cj_encode(o, b, err)) < 0)
		return r;
	if (b->n - before > ENTRY_PUBLIC_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "an entry has more than %d public bytes",
				 ENTRY_PUBLIC_MAX);
	return 0;
}

int entry_leaf(struct sv line, struct digest *ret_leaf, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(ENTRY_LINE_MAX);
	const int r = entry_public(line, &b, err);

	if (r == 0)
		*ret_leaf = tree_leaf(buf_view(&b));
	return r;
}

struct sv entry_text(const json_t *o, const char *key, struct arena *a)
{
	const struct sv coded = string_of(json_object_get(o, key));
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(ENTRY_LINE_MAX);
	struct sv text = coded;

	if (sv_find(coded, '%') == SIZE_MAX || entry_decode(coded, &b, &err) < 0 ||
	    !arena_sv(a, buf_view(&b), &text))
		return coded;
	return text;
}

/*
 * Finds the event of a line by searching for the text of the key. Inside a JSON string a quotation
 * mark is preceded by a backslash, so the text can occur only as a key.
 */
struct sv entry_event(struct sv line)
{
	static const char mark[] = "\"event\":\"";
	const char *at = line.n ? memmem(line.p, line.n, mark, sizeof(mark) - 1) : NULL;
	struct sv rest;

	if (!at)
		return SV("");
	rest = sv_skip(line, (size_t)(at - line.p) + sizeof(mark) - 1);
	return sv_cut(&rest, '"');
}
