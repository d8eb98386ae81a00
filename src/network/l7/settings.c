#include "l7/settings.h"

#include <string.h>

#include "codec/json.h"
#include "l7/placeholder.h"

#include "base/banned.h"

/* --- encoding --- */

static bool is_ours(enum cap_action action)
{
	return action == CAP_NET_CONNECT || action == CAP_HTTP_REQUEST || action == CAP_SECRET_USE;
}

/*
 * Writes network capabilities as JSON. @bare: omit the rule numbers, because the capabilities
 * belong to a hop, whose rule numbers mean nothing in this session.
 */
static void put_entries(struct buf *b, const char *name, const struct cap_entry *v, size_t n,
			bool bare)
{
	json_put_key(b, name);
	buf_ch(b, '[');
	for (size_t i = 0; i < n; i++) {
		if (!is_ours(v[i].cap.action))
			continue;
		json_put_sep(b);
		buf_ch(b, '{');
		json_put_number(b, "rule", bare ? RULE_NONE : v[i].rule);
		json_put_member(b, "text", v[i].cap.text);
		buf_ch(b, '}');
	}
	buf_ch(b, ']');
}

static void put_rules(struct buf *b, const struct cap_set *s)
{
	json_put_key(b, "rules");
	buf_ch(b, '[');
	for (size_t i = 0; i < s->rules.n; i++) {
		json_put_sep(b);
		buf_ch(b, '{');
		json_put_number(b, "n", i);
		json_put_member(b, "text", s->rules.v[i].text);
		buf_ch(b, '}');
	}
	buf_ch(b, ']');
}

static void put_secret(struct buf *b, const struct l7_secret *s)
{
	json_put_sep(b);
	buf_ch(b, '{');
	json_put_member(b, "as", s->as);
	json_put_member(b, "name", s->name);
	json_put_member(b, "to", s->to);
	json_put_key(b, "value");
	buf_ch(b, '"');
	for (size_t i = 0; i < s->value.n; i++)
		buf_fmt(b, "%02x", (unsigned)(unsigned char)s->value.p[i]);
	buf_str(b, "\"}");
}

/*
 * Counts the network capabilities before entry @n of the set. The count is the index of entry @n in
 * the settings, which have only network capabilities.
 */
static size_t ours_before(const struct cap_entry *v, size_t n)
{
	size_t ours = 0;

	for (size_t i = 0; i < n; i++)
		ours += is_ours(v[i].cap.action);
	return ours;
}

static void put_pools(struct buf *b, const struct quota_shared *s)
{
	if (s->pools_n == 0)
		return;
	json_put_key(b, "pools");
	buf_ch(b, '[');
	for (size_t i = 0; i < s->pools_n; i++) {
		json_put_sep(b);
		buf_ch(b, '{');
		json_put_number(b, "down", s->pools[i].down);
		json_put_number(b, "requests", s->pools[i].requests);
		json_put_number(b, "slot", s->pools[i].slot);
		json_put_number(b, "up", s->pools[i].up);
		buf_ch(b, '}');
	}
	buf_ch(b, ']');
}

static void put_cells(struct buf *b, const struct l7_settings *s)
{
	if (s->shared.cells_n == 0)
		return;
	json_put_key(b, "cells");
	buf_ch(b, '[');
	for (size_t i = 0; i < s->shared.cells_n; i++) {
		const uint32_t price = s->shared.cells[i].price;

		if (price >= s->set.prices.n || !is_ours(s->set.prices.v[price].cap.action))
			continue;
		json_put_sep(b);
		buf_fmt(b, "{\"price\":%zu,\"slot\":%u}", ours_before(s->set.prices.v, price),
			s->shared.cells[i].slot);
	}
	buf_ch(b, ']');
}

static void put_hops(struct buf *b, const struct cap_set *s)
{
	if (s->hops_n == 0)
		return;
	json_put_key(b, "hops");
	buf_ch(b, '[');
	for (size_t i = 0; i < s->hops_n; i++) {
		const struct cap_set *hop = &s->hops[i];

		json_put_sep(b);
		buf_ch(b, '{');
		put_entries(b, "caps", hop->caps.v, hop->caps.n, true);
		put_entries(b, "nots", hop->nots.v, hop->nots.n, true);
		json_put_member(b, "says", hop->says);
		buf_ch(b, '}');
	}
	buf_ch(b, ']');
}

int l7_settings_encode(const struct l7_settings *s, struct buf *b, struct writ_err *err)
{
	const uint64_t *l = s->set.limits;

	buf_ch(b, '{');
	put_entries(b, "caps", s->set.caps.v, s->set.caps.n, false);
	put_cells(b, s);
	put_hops(b, &s->set);
	json_put_member(b, "id", s->id);
	json_put_number(b, "level", s->set.net_level);
	json_put_key(b, "limits");
	buf_ch(b, '{');
	json_put_number(b, "down", l[LIMIT_DOWN]);
	json_put_number(b, "requests", l[LIMIT_REQUESTS]);
	json_put_number(b, "session", l[LIMIT_SESSION]);
	json_put_number(b, "up", l[LIMIT_UP]);
	buf_ch(b, '}');
	put_entries(b, "nots", s->set.nots.v, s->set.nots.n, false);
	put_pools(b, &s->shared);
	put_entries(b, "prices", s->set.prices.v, s->set.prices.n, false);
	json_put_member(b, "realm", s->realm);
	put_rules(b, &s->set);
	json_put_key(b, "secrets");
	buf_ch(b, '[');
	for (size_t i = 0; i < s->secrets.n; i++)
		put_secret(b, &s->secrets.v[i]);
	buf_ch(b, ']');
	json_put_member(b, "session", s->session);
	buf_ch(b, '}');
	return buf_check(b, err);
}

/* --- decoding --- */

struct decoder {
	struct arena *a;
	struct l7_settings *to;
	struct writ_err *err;
};

static int bad(const struct decoder *d, const char *what)
{
	return writ_fail(d->err, WRIT_E_SYNTAX, 0, "settings of the reader: %s", what);
}

static bool get_text(const struct decoder *d, const json_t *o, const char *key, struct sv *ret)
{
	const json_t *v = json_object_get(o, key);

	return json_is_string(v) &&
	       arena_sv(d->a, (struct sv){ json_string_value(v), json_string_length(v) }, ret);
}

static bool get_number(const json_t *o, const char *key, uint64_t max, uint64_t *ret)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_integer(v) || json_integer_value(v) < 0 ||
	    (uint64_t)json_integer_value(v) > max)
		return false;
	*ret = (uint64_t)json_integer_value(v);
	return true;
}

static int decode_rules(struct decoder *d, const json_t *list)
{
	size_t i;
	json_t *o;

	if (!json_is_array(list))
		return bad(d, "rules");
	json_array_foreach(list, i, o)
	{
		struct cap_rule *r;
		uint64_t n;

		if (!get_number(o, "n", L7_RULES_MAX - 1, &n) || n != d->to->set.rules.n)
			return bad(d, "rules are numbered from 0");
		r = vec_push(d->a, &d->to->set.rules);
		if (!r)
			return writ_nomem(d->err);
		*r = (struct cap_rule){ .file = SV("") };
		if (!get_text(d, o, "text", &r->text))
			return bad(d, "rule without a text");
	}
	return 0;
}

typedef VEC(struct cap_entry) entries;

static int decode_entries(struct decoder *d, const json_t *list, enum cap_kind kind, entries *to)
{
	size_t i;
	json_t *o;

	if (!json_is_array(list))
		return bad(d, "capabilities");
	json_array_foreach(list, i, o)
	{
		struct cap_entry *e = vec_push(d->a, to);
		uint64_t rule;
		struct sv text;

		if (!e)
			return writ_nomem(d->err);
		if (!get_number(o, "rule", UINT32_MAX, &rule) || !get_text(d, o, "text", &text) ||
		    (rule != RULE_NONE && rule >= d->to->set.rules.n))
			return bad(d, "capability");
		e->rule = (uint32_t)rule;
		if (cap_parse(d->a, kind, text, &e->cap, d->err) < 0)
			return d->err->code;
		if (!is_ours(e->cap.action))
			return bad(d, "capability that has nothing to do with the network");
	}
	return 0;
}

static int decode_cells(struct decoder *d, const json_t *list)
{
	const size_t n = json_array_size(list);
	struct quota_cell *v = arena_array(d->a, struct quota_cell, n + 1);

	if (!v)
		return writ_nomem(d->err);
	if (list && !json_is_array(list))
		return bad(d, "cells");
	for (size_t i = 0; i < n; i++) {
		const json_t *o = json_array_get(list, i);
		uint64_t price, slot;

		if (!get_number(o, "price", UINT32_MAX, &price) || price >= d->to->set.prices.n ||
		    !get_number(o, "slot", UINT32_MAX, &slot))
			return bad(d, "cells");
		v[i] = (struct quota_cell){ (uint32_t)price, (uint32_t)slot };
	}
	d->to->shared.cells = v;
	d->to->shared.cells_n = n;
	return 0;
}

static int decode_pools(struct decoder *d, const json_t *list)
{
	const size_t n = json_array_size(list);
	struct quota_pool *v = arena_array(d->a, struct quota_pool, n + 1);

	if (!v)
		return writ_nomem(d->err);
	if (list && !json_is_array(list))
		return bad(d, "pools");
	for (size_t i = 0; i < n; i++) {
		const json_t *o = json_array_get(list, i);
		uint64_t slot;

		if (!get_number(o, "slot", UINT32_MAX, &slot) ||
		    !get_number(o, "requests", INT64_MAX, &v[i].requests) ||
		    !get_number(o, "up", INT64_MAX, &v[i].up) ||
		    !get_number(o, "down", INT64_MAX, &v[i].down))
			return bad(d, "pools");
		v[i].slot = (uint32_t)slot;
	}
	d->to->shared.pools = v;
	d->to->shared.pools_n = n;
	return 0;
}

static int decode_hops(struct decoder *d, const json_t *list)
{
	const size_t n = json_array_size(list);
	struct cap_set *v = arena_array(d->a, struct cap_set, n + 1);

	if (!v)
		return writ_nomem(d->err);
	if (list && !json_is_array(list))
		return bad(d, "hops");
	for (size_t i = 0; i < n; i++) {
		const json_t *o = json_array_get(list, i);
		entries caps = { 0 }, nots = { 0 };

		if (!get_text(d, o, "says", &v[i].says))
			return bad(d, "hop");
		if (decode_entries(d, json_object_get(o, "caps"), CAP_GRANT, &caps) < 0 ||
		    decode_entries(d, json_object_get(o, "nots"), CAP_DENIAL, &nots) < 0)
			return d->err->code;
		memcpy(&v[i].caps, &caps, sizeof(caps));
		memcpy(&v[i].nots, &nots, sizeof(nots));
	}
	d->to->set.hops = v;
	d->to->set.hops_n = n;
	return 0;
}

static bool value_ok(struct sv v)
{
	for (size_t i = 0; i < v.n; i++)
		if ((unsigned char)v.p[i] < 0x20 || v.p[i] == 0x7f)
			return false;
	return v.n >= L7_VALUE_MIN && v.n <= L7_VALUE_MAX;
}

static bool get_value(const struct decoder *d, const json_t *o, struct sv *ret)
{
	const json_t *v = json_object_get(o, "value");
	const size_t n = json_is_string(v) ? json_string_length(v) : 1;
	const char *hex = json_string_value(v);
	char *p;

	if (n % 2 || n > 2 * L7_VALUE_MAX)
		return false;
	p = arena_alloc(d->a, n / 2 + 1, 1);
	for (size_t i = 0; p && i < n / 2; i++) {
		const int hi = sv_hex(hex[2 * i]), lo = sv_hex(hex[2 * i + 1]);

		if (hi < 0 || lo < 0)
			return false;
		p[i] = (char)(hi << 4 | lo);
	}
	if (p)
		*ret = (struct sv){ p, n / 2 };
	return p;
}

/* Decodes a secret. Parses it as a capability too, which validates its form and destination. */
static int decode_secret(struct decoder *d, const json_t *o)
{
	struct l7_secret s, *to;
	struct cap cap;
	const char *text;

	if (!get_text(d, o, "name", &s.name) || !get_text(d, o, "as", &s.as) ||
	    !get_text(d, o, "to", &s.to) || !get_value(d, o, &s.value))
		return bad(d, "secret");
	text = arena_fmt(d->a, "secret.use:" SV_FMT ":/" SV_FMT ";as=" SV_FMT ";to=" SV_FMT,
			 SV_ARG(d->to->realm), SV_ARG(s.name), SV_ARG(s.as), SV_ARG(s.to));
	if (!text || cap_parse(d->a, CAP_GRANT, sv_from(text), &cap, d->err) < 0 || !cap.to.tls ||
	    sv_is(s.as, "env"))
		return bad(d, "secret with a form or place that it cannot have");
	/* SECURITY: a line break in a value would inject a header. */
	if (!value_ok(s.value))
		return writ_fail(d->err, WRIT_E_SYNTAX, 0,
				 "secret " SV_FMT ": 8 to 4096 bytes without control bytes",
				 SV_ARG(s.name));
	if (d->to->secrets.n == L7_SECRETS_MAX)
		return writ_fail(d->err, WRIT_E_LIMIT, 0, "more than %d secrets", L7_SECRETS_MAX);
	to = vec_push(d->a, &d->to->secrets);
	if (!to)
		return writ_nomem(d->err);
	*to = s;
	return 0;
}

static int decode_limits(struct decoder *d, const json_t *o)
{
	const json_t *limits = json_object_get(o, "limits");
	uint64_t *l = d->to->set.limits, level;

	if (!get_number(limits, "up", UINT64_MAX, &l[LIMIT_UP]) ||
	    !get_number(limits, "down", UINT64_MAX, &l[LIMIT_DOWN]) ||
	    !get_number(limits, "requests", UINT64_MAX, &l[LIMIT_REQUESTS]) ||
	    !get_number(limits, "session", UINT32_MAX, &l[LIMIT_SESSION]) ||
	    !get_number(o, "level", NET_LEVEL_SIGNED, &level))
		return bad(d, "limits");
	d->to->set.net_level = (enum cap_net_level)level;
	return 0;
}

static int decode_all(struct decoder *d, const json_t *o)
{
	struct cap_set *set = &d->to->set;
	entries caps = { 0 }, nots = { 0 }, prices = { 0 };
	const json_t *secrets = json_object_get(o, "secrets");
	size_t i;
	json_t *s;

	if (!get_text(d, o, "realm", &d->to->realm) ||
	    !get_text(d, o, "session", &d->to->session) || !get_text(d, o, "id", &d->to->id) ||
	    !placeholder_id_check(d->to->id) || !json_is_array(secrets))
		return bad(d, "realm, session, id or secrets");
	if (decode_limits(d, o) < 0 || decode_rules(d, json_object_get(o, "rules")) < 0 ||
	    decode_entries(d, json_object_get(o, "caps"), CAP_GRANT, &caps) < 0 ||
	    decode_entries(d, json_object_get(o, "nots"), CAP_DENIAL, &nots) < 0 ||
	    decode_entries(d, json_object_get(o, "prices"), CAP_GRANT, &prices) < 0)
		return d->err->code;
	memcpy(&set->caps, &caps, sizeof(caps));
	memcpy(&set->nots, &nots, sizeof(nots));
	memcpy(&set->prices, &prices, sizeof(prices));
	if (decode_cells(d, json_object_get(o, "cells")) < 0 ||
	    decode_pools(d, json_object_get(o, "pools")) < 0 ||
	    decode_hops(d, json_object_get(o, "hops")) < 0)
		return d->err->code;
	json_array_foreach(secrets, i, s)
	{
		if (decode_secret(d, s) < 0)
			return d->err->code;
	}
	return 0;
}

int l7_settings_decode(struct arena *a, struct sv bytes, struct l7_settings *ret,
		       struct writ_err *err)
{
	struct l7_settings s = { .realm = SV("") };
	struct decoder d = { a, &s, err };
	scoped_json *v = NULL;

	if (json_decode(bytes, L7_SETTINGS_MAX, &v, err) < 0 || decode_all(&d, v) < 0)
		return err->code;
	*ret = s;
	return 0;
}
