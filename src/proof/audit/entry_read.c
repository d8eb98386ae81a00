#include <string.h>

#include "audit/entry.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "crypto/crypto.h"
#include "tlog/tree.h"

#include "base/banned.h"

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

/* Checks the form of the digests that stand for erased private members. */
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
