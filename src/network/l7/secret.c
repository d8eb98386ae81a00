#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "codec/base64.h"
#include "l7/l7_priv.h"
#include "l7/placeholder.h"

#include "base/banned.h"

enum { BASIC_MAX = 8192 };

/* --- storage of the values --- */

static int vault_map(struct vault *v, size_t size, struct writ_err *err)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return writ_nomem(err);
	if (mlock(p, size) < 0 || madvise(p, size, MADV_DONTDUMP) < 0) {
		(void)munmap(p, size);
		return writ_fail(err, WRIT_E_SYS, 0, "lock memory for secrets");
	}
	v->bytes = p;
	v->size = size;
	return 0;
}

static void secret_form(struct secret *s, struct sv as)
{
	if (sv_starts(as, SV("header:")))
		*s = (struct secret){ .as = AS_HEADER, .key = sv_skip(as, 7) };
	else if (sv_starts(as, SV("query:")))
		*s = (struct secret){ .as = AS_QUERY, .key = sv_skip(as, 6) };
	else
		*s = (struct secret){ .as = sv_is(as, "basic") ? AS_BASIC : AS_BEARER,
				      .key = SV("authorization") };
}

static int secret_add(struct l7 *l, const struct l7_secret *from, char *to, struct writ_err *err)
{
	struct secret *s = &l->vault.v[l->vault.n];
	scoped_buf b = BUF_INIT(PLACEHOLDER_MAX);
	char *text;

	secret_form(s, from->as);
	memcpy(to, from->value.p, from->value.n);
	s->value = (struct sv){ to, from->value.n };
	s->name = from->name;
	placeholder_put(&b, from->name, l->settings.id);
	text = arena_fmt(&l->arena, "http.request:" SV_FMT ":" SV_FMT ";m=*;q=any",
			 SV_ARG(l->settings.realm), SV_ARG(from->to));
	if (b.failed || !arena_sv(&l->arena, buf_view(&b), &s->placeholder) || !text)
		return writ_nomem(err);
	l->vault.n++;
	return cap_parse(&l->arena, CAP_GRANT, sv_from(text), &s->to, err);
}

static int make_sets(struct l7 *l, struct writ_err *err)
{
	struct vault *v = &l->vault;
	struct scan_value values[L7_SECRETS_MAX], placeholders[L7_SECRETS_MAX];
	size_t room;

	for (size_t i = 0; i < v->n; i++) {
		values[i] = (struct scan_value){ v->v[i].value, (uint32_t)i };
		placeholders[i] = (struct scan_value){ v->v[i].placeholder, (uint32_t)i };
	}
	if (scan_set_new(&l->arena, values, v->n, &v->values, err) < 0 ||
	    scan_set_new(&l->arena, placeholders, v->n, &v->placeholders, err) < 0)
		return err->code;
	room = scan_room_min(v->values) > scan_room_min(v->placeholders)
		       ? scan_room_min(v->values)
		       : scan_room_min(v->placeholders);
	v->window_n = room < SCAN_ROOM ? SCAN_ROOM : room;
	v->window = malloc(v->window_n);
	return v->window ? 0 : writ_nomem(err);
}

int vault_fill(struct l7 *l, const struct l7_settings *s, struct writ_err *err)
{
	size_t size = 0, at = 0;
	int r;

	if (s->secrets.n == 0)
		return 0;
	for (size_t i = 0; i < s->secrets.n; i++)
		size += s->secrets.v[i].value.n;
	l->vault.v = arena_array(&l->arena, struct secret, s->secrets.n);
	if (!l->vault.v)
		return writ_nomem(err);
	r = vault_map(&l->vault, size, err);
	for (size_t i = 0; r == 0 && i < s->secrets.n; i++) {
		const struct l7_secret *one = &s->secrets.v[i];

		r = secret_add(l, one, l->vault.bytes + at, err);
		at += one->value.n;
		explicit_bzero((char *)(uintptr_t)one->value.p, one->value.n);
	}
	return r < 0 ? r : make_sets(l, err);
}

void vault_clear(struct vault *v)
{
	if (v->window)
		explicit_bzero(v->window, v->window_n);
	free(v->window);
	if (v->bytes) {
		explicit_bzero(v->bytes, v->size);
		(void)munmap(v->bytes, v->size);
	}
	*v = (struct vault){ 0 };
}

/* --- secrets that belong to a request --- */

bool l7_secret_bound(const struct l7 *l, struct sv host, uint16_t port)
{
	for (size_t i = 0; i < l->vault.n; i++) {
		uint16_t lo, hi;

		if (cap_opens(&l->vault.v[i].to, host, &lo, &hi) && port == lo)
			return true;
	}
	return false;
}

bool l7_secret_found(struct l7 *l, const struct scan_set *set, struct sv text)
{
	struct scan_out out;
	enum scan_state state;
	struct scan s;

	scan_init(&s, set, l->vault.window, l->vault.window_n);
	while ((state = scan_next(&s, &text, true, &out)) == SCAN_CLEAN)
		;
	return state == SCAN_HIT;
}

static bool has_text(struct sv in, struct sv what)
{
	return in.n && what.n && memmem(in.p, in.n, what.p, what.n);
}

/* Converts the request to a capability, to compare it with the requests that get a secret. */
static bool request_cap(const struct call *c, struct arena *a, struct cap *ret)
{
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
	struct writ_err err;

	buf_fmt(&b, "http.request:" SV_FMT ":https://" SV_FMT ":%u", SV_ARG(c->l7->settings.realm),
		SV_ARG(c->host), c->port);
	if (cap_put_http_path(&b, c->target.path, &err) < 0)
		return false;
	buf_fmt(&b, ";m=" SV_FMT ";q=%s", SV_ARG(c->q.method), c->target.query.n ? "any" : "none");
	return !b.failed && cap_parse(a, CAP_REQUEST, buf_view(&b), ret, &err) == 0;
}

/* --- insertion --- */

/* Appends @from to @b, with the first occurrence of @old replaced by @new. */
static void put_replaced(struct buf *b, struct sv from, struct sv old, struct sv new)
{
	const char *at = memmem(from.p, from.n, old.p, old.n);

	buf_add(b, from.p, (size_t)(at - from.p));
	buf_sv(b, new);
	buf_sv(b, sv_skip(from, (size_t)(at - from.p) + old.n));
}

/* Decodes the credentials of a field value "Basic ..."; appends nothing for any other value. */
static void basic_decode(struct sv value, struct buf *to)
{
	unsigned char out[BASIC_MAX];
	int n;

	if (value.n < 6 || !same_name(sv_sub(value, 0, 6), SV("basic ")))
		return;
	value = sv_trim(sv_skip(value, 6));
	if (value.n == 0 || value.n % 4 || value.n > BASIC_MAX)
		return;
	n = EVP_DecodeBlock(out, (const unsigned char *)value.p, (int)value.n);
	for (size_t i = value.n; n > 0 && i > value.n - 2 && value.p[i - 1] == '='; i--)
		n--;
	if (n > 0)
		buf_add(to, out, (size_t)n);
}

static const struct http1_field *field_of(const struct call *c, struct sv name)
{
	for (size_t i = 0; i < c->q.fields_n; i++)
		if (same_name(c->q.fields[i].name, name))
			return &c->q.fields[i];
	return NULL;
}

static void put_basic(struct buf *b, const struct secret *s, const struct http1_field *f)
{
	scoped_buf pair = BUF_INIT(2 * BASIC_MAX), old = BUF_INIT(BASIC_MAX);

	if (f)
		basic_decode(f->value, &old);
	if (has_text(buf_view(&old), s->placeholder)) {
		put_replaced(&pair, buf_view(&old), s->placeholder, s->value);
	} else {
		if (sv_find(s->value, ':') == SIZE_MAX)
			buf_ch(&pair, ':');
		buf_sv(&pair, s->value);
	}
	buf_str(b, "Basic ");
	base64_encode(BASE64_PADDED, buf_view(&pair), b);
	if (pair.p)
		explicit_bzero(pair.p, pair.n);
}

/*
 * Writes the whole value of the header that carries the secret: the agent's value with the
 * placeholder replaced, or a new value if the agent's has no placeholder.
 */
static void put_header(struct buf *b, const struct secret *s, const struct http1_field *f)
{
	if (s->as == AS_BASIC) {
		put_basic(b, s, f);
	} else if (f && has_text(f->value, s->placeholder)) {
		put_replaced(b, f->value, s->placeholder, s->value);
	} else {
		if (s->as == AS_BEARER)
			buf_str(b, "Bearer ");
		buf_sv(b, s->value);
	}
}

static void put_percent(struct buf *b, struct sv s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (sv_is_alnum(sv_sub(s, i, 1), "-._~"))
			buf_ch(b, s.p[i]);
		else
			buf_fmt(b, "%%%02X", (unsigned)(unsigned char)s.p[i]);
	}
}

/*
 * Writes path and query of the target, with the secret as the value of its query key. Returns how
 * often the key occurs in the query.
 */
static size_t put_query(struct buf *b, const struct secret *s, const struct target *t)
{
	struct sv rest = t->query;
	size_t found = 0;

	buf_sv(b, t->path);
	for (bool first = true; rest.n; first = false) {
		const struct sv pair = sv_cut(&rest, '&');
		struct sv value = pair;
		const struct sv key = sv_cut(&value, '=');

		buf_ch(b, first ? '?' : '&');
		if (!sv_eq(key, s->key)) {
			buf_sv(b, pair);
			continue;
		}
		found++;
		buf_sv(b, key);
		buf_ch(b, '=');
		put_percent(b, s->value);
	}
	return found;
}

/* --- checking the positions of placeholders --- */

struct plan {
	const struct secret *use[L7_SET_MAX];
	size_t n;
};

static bool is_header(const struct secret *s)
{
	return s->as != AS_QUERY;
}

/* Texts that may stand before a secret in a header: the scheme words of common services. */
static const struct sv schemes[] = {
	SV_INIT("Bearer "), SV_INIT("Token "),	  SV_INIT("Basic "), SV_INIT("ApiKey "),
	SV_INIT("Bot "),    SV_INIT("SSWS "),	  SV_INIT("key="),   SV_INIT("Token token="),
	SV_INIT("Splunk "), SV_INIT("GenieKey "),
};

/*
 * Tests for a text that may stand before the placeholder of @s. SECURITY: servers quote headers
 * that they refuse, often cut at a fixed length. If the agent chose the length of the text before
 * the value, it would choose how much of the value is quoted, and a response with all but the last
 * letter is no match. Basic credentials need a user name, so there one name and a colon may stand.
 */
static bool may_precede(const struct secret *s, struct sv text)
{
	if (s->as == AS_BASIC)
		return text.n == 0 ||
		       (sv_find(text, ':') == text.n - 1 &&
			sv_is_alnum(sv_sub(text, 0, text.n - 1), "-._~@+"));
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		if (same_name(text, schemes[i]))
			return true;
	return text.n == 0;
}

/*
 * Tests whether field @f may carry secret @s, contains the placeholder of @s exactly once, and has
 * no text before it that the agent chose.
 */
static bool field_allowed(const struct secret *s, const struct http1_field *f)
{
	scoped_buf plain = BUF_INIT(BASIC_MAX);
	struct sv v = f->value;
	const char *at;

	if (!is_header(s) || !same_name(f->name, s->key))
		return false;
	if (s->as == AS_BASIC) {
		basic_decode(f->value, &plain);
		v = buf_view(&plain);
	}
	at = v.n ? memmem(v.p, v.n, s->placeholder.p, s->placeholder.n) : NULL;
	return at && may_precede(s, sv_sub(v, 0, (size_t)(at - v.p))) &&
	       !has_text(sv_skip(v, (size_t)(at - v.p) + s->placeholder.n), s->placeholder);
}

static enum cap_cause check_fields(struct call *c, const struct plan *p)
{
	const struct scan_set *set = c->l7->vault.placeholders;

	for (size_t i = 0; i < c->q.fields_n; i++) {
		const struct http1_field *f = &c->q.fields[i];
		bool good = false;

		if (!l7_secret_found(c->l7, set, f->value) && !l7_secret_found(c->l7, set, f->name))
			continue;
		for (size_t k = 0; k < p->n && !good; k++)
			good = field_allowed(p->use[k], f);
		if (!good)
			return CAUSE_PLACEHOLDER;
	}
	return CAUSE_NONE;
}

/*
 * Tests whether a key=value part of the query contains a placeholder, with
 * or without escapes in it.
 */
static bool pair_has(struct l7 *l, struct sv pair)
{
	scoped_buf plain = BUF_INIT(pair.n + 1);
	const bool found = l7_secret_found(l, l->vault.placeholders, pair);

	if (found || sv_find(pair, '%') == SIZE_MAX)
		return found;
	for (size_t i = 0; i < pair.n; i++) {
		char c = pair.p[i];

		if (c == '%' && pair.n - i > 2) {
			c = (char)((sv_hex(pair.p[i + 1]) & 15) << 4 |
				   (sv_hex(pair.p[i + 2]) & 15));
			i += 2;
		}
		buf_ch(&plain, c);
	}
	return plain.failed || l7_secret_found(l, l->vault.placeholders, buf_view(&plain));
}

static enum cap_cause check_target(struct call *c, const struct plan *p)
{
	const struct scan_set *set = c->l7->vault.placeholders;
	struct sv rest = c->target.query;

	if (l7_secret_found(c->l7, set, c->target.path))
		return CAUSE_PLACEHOLDER;
	while (rest.n) {
		const struct sv pair = sv_cut(&rest, '&');
		struct sv value = pair;
		const struct sv key = sv_cut(&value, '=');
		bool good = !pair_has(c->l7, pair);

		for (size_t k = 0; k < p->n && !good; k++)
			good = p->use[k]->as == AS_QUERY && sv_eq(key, p->use[k]->key) &&
			       sv_eq(value, p->use[k]->placeholder);
		if (!good)
			return CAUSE_PLACEHOLDER;
	}
	return CAUSE_NONE;
}

/* --- applying secrets to a request --- */

/*
 * Adds secret @s to the plan. If several secrets belong to the same field or key, the secret whose
 * placeholder is present wins, else the first secret.
 */
static void plan_add(struct plan *p, const struct call *c, const struct secret *s)
{
	const struct http1_field *f = is_header(s) ? field_of(c, s->key) : NULL;

	for (size_t i = 0; i < p->n; i++) {
		if (p->use[i]->as == AS_QUERY ? s->as != AS_QUERY || !sv_eq(s->key, p->use[i]->key)
					      : !is_header(s) || !same_name(s->key, p->use[i]->key))
			continue;
		if ((f && field_allowed(s, f)) || (!f && has_text(c->target.query, s->placeholder)))
			p->use[i] = s;
		return;
	}
	if (p->n < L7_SET_MAX - 2)
		p->use[p->n++] = s;
}

static void make_plan(const struct call *c, struct plan *ret)
{
	scoped_arena a = ARENA_INIT(1 << 16);
	struct cap req;

	/* SECURITY: insert values only inside TLS, after the server has proved its identity. */
	if (!c->tls || !l7_secret_bound(c->l7, c->host, c->port) || !request_cap(c, &a, &req))
		return;
	for (size_t i = 0; i < c->l7->vault.n; i++)
		if (cap_matches(&c->l7->vault.v[i].to, &req))
			plan_add(ret, c, &c->l7->vault.v[i]);
}

static void note_credential(struct call *c, const struct secret *s)
{
	const size_t n = strlen(c->log.credential);

	if (n + s->name.n + 2 > sizeof(c->log.credential))
		return;
	if (n)
		c->log.credential[n] = ',';
	l7_copy_safe(c->log.credential + n + (n > 0), sizeof(c->log.credential) - n - (n > 0),
		     s->name);
}

static enum cap_cause set_values(struct call *c, const struct plan *p)
{
	size_t at[L7_SET_MAX] = { 0 };

	for (size_t i = 0; i < p->n; i++) {
		const struct secret *s = p->use[i];

		at[i] = c->inject.values.n;
		if (is_header(s)) {
			put_header(&c->inject.values, s, field_of(c, s->key));
			note_credential(c, s);
			continue;
		}
		switch (put_query(&c->inject.values, s, &c->target)) {
		case 0:
			break;
		case 1:
			note_credential(c, s);
			break;
		default:
			return CAUSE_SECRET_TWICE;
		}
	}
	if (c->inject.values.failed)
		return CAUSE_TOO_LONG;
	at[p->n] = c->inject.values.n;
	for (size_t i = 0; i < p->n; i++) {
		const struct sv v = { c->inject.values.p + at[i], at[i + 1] - at[i] };

		if (is_header(p->use[i]))
			c->inject.set[c->inject.set_n++] =
				(struct http1_field){ .name = p->use[i]->key, .value = v };
		else
			c->inject.target = v;
	}
	return CAUSE_NONE;
}

/* Removes WebSocket extensions from a request: the reader could not search compressed frames. */
static void no_extensions(struct call *c)
{
	for (size_t i = 0; i < c->q.fields_n; i++)
		if (same_name(c->q.fields[i].name, SV("sec-websocket-extensions")))
			c->q.fields[i].drop = true;
}

enum cap_cause l7_secret_apply(struct call *c)
{
	struct plan p = { .n = 0 };
	enum cap_cause why;

	if (c->l7->vault.n == 0)
		return CAUSE_NONE;
	if (c->guarded && c->l7->vault.guessed)
		return CAUSE_SECRET_GUESSED;
	make_plan(c, &p);
	if (c->q.websocket.n)
		no_extensions(c);
	why = check_fields(c, &p);
	if (why == CAUSE_NONE)
		why = check_target(c, &p);
	if (why == CAUSE_NONE && p.n)
		why = set_values(c, &p);
	c->has_secret = why == CAUSE_NONE && p.n;
	if (why == CAUSE_NONE && c->guarded) {
		l7_guard_request(c);
		c->inject.set[c->inject.set_n++] =
			(struct http1_field){ .name = SV("accept-encoding"),
					      .value = SV("identity") };
	}
	return why;
}

/*
 * Tests whether the reader searches the request body, and later WebSocket frames, for placeholders.
 * SECURITY: a server that receives a secret may also see the secret's placeholder: agents repeat
 * their environment to a model, for example. Any other request is refused if its body contains a
 * placeholder.
 */
bool l7_secret_searched(const struct call *c)
{
	return c->l7->vault.n && !c->has_secret;
}
