#include "token/action.h"

#include "codec/json.h"
#include "crypto/crypto.h"
#include "token/jws.h"

#include "base/banned.h"

/*
 * Returns @raw as a JSON string with unprintable bytes and the percent sign percent-encoded, as in
 * log entries.
 */
static json_t *encoded(struct sv raw)
{
	scoped_buf b = BUF_INIT(3 * raw.n + 1);

	for (size_t i = 0; i < raw.n; i++) {
		const unsigned char c = (unsigned char)raw.p[i];

		if (c < 0x20 || c > 0x7e || c == '%')
			buf_fmt(&b, "%%%02X", c);
		else
			buf_ch(&b, (char)c);
	}
	return b.failed ? NULL : json_stringn(b.n ? b.p : "", b.n);
}

static json_t *argv_of(const struct action *x)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < x->argc; i++) {
		if (json_array_append_new(list, encoded(x->argv[i])) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *text_of(struct sv s)
{
	return json_stringn(s.n ? s.p : "", s.n);
}

static json_t *http_of(const struct action *x)
{
	json_t *o = json_pack("{s:s,s:o,s:o,s:o}", "a", "http.request", "m", text_of(x->method),
			      "q", encoded(x->query), "u", text_of(x->url));

	if (o && x->body) {
		const struct jws_kid d = jws_text(x->body->b);

		if (json_object_set_new(o, "bh", json_string(d.s)) < 0) {
			json_decref(o);
			return NULL;
		}
	}
	return o;
}

static json_t *exec_of(const struct action *x)
{
	const struct jws_kid env = jws_text(x->env.b);
	scoped_buf hex = BUF_INIT(64);

	digest_hex(&x->program, &hex);
	return json_pack("{s:s,s:o,s:s,s:o,s:s%}", "a", "proc.exec", "argv", argv_of(x), "eh",
			 env.s, "p", text_of(x->path), "x", hex.p ? hex.p : "", hex.n);
}

static json_t *object_of(const struct action *x)
{
	const struct jws_kid man = jws_text(x->manifest.b);

	switch (x->kind) {
	case ACTION_NONE:
		return NULL;
	case ACTION_SESSION:
		return json_pack("{s:s,s:o,s:s}", "a", "session.open", "argv", argv_of(x), "man",
				 man.s);
	case ACTION_FS:
		return json_pack("{s:s,s:o}", "a", cap_action_name(x->fs), "p", text_of(x->path));
	case ACTION_HTTP:
		return http_of(x);
	case ACTION_NET:
		return json_pack("{s:s,s:o,s:s,s:i}", "a", "net.connect", "h", text_of(x->host),
				 "pr", "tcp", "pt", (int)x->port);
	case ACTION_EXEC:
		return exec_of(x);
	}
	return NULL;
}

/*
 * Checks the parts of an action.
 * SECURITY: these parts are inserted unescaped into texts, so none may contain a separator of these
 * texts. Parts that a kind of action does not use are empty.
 */
static int check(const struct action *x, struct token_why *why)
{
	const bool fs = x->fs == CAP_FS_READ || x->fs == CAP_FS_WRITE || x->fs == CAP_FS_PUT;
	const struct sv part[] = { x->realm, x->salt, x->path, x->method, x->url, x->host };

	if (x->kind == ACTION_NONE || (x->kind == ACTION_FS && !fs))
		return token_refuse(why, TOKEN_E_ACTH, "no action");
	for (size_t i = 0; i < ARRAY_LEN(part); i++)
		if (part[i].n && (!sv_is_graph(part[i]) || sv_find(part[i], ';') != SIZE_MAX))
			return token_refuse(why, TOKEN_E_ACTH, "a part that is not canonical");
	return 0;
}

int token_action_encode(const struct action *x, struct buf *b, struct token_why *why)
{
	scoped_json *o = NULL;
	struct writ_err err = { 0 };
	const int r = check(x, why);

	if (r < 0)
		return r;
	o = object_of(x);
	if (!o || json_object_set_new(o, "r", text_of(x->realm)) < 0 ||
	    json_object_set_new(o, "s", text_of(x->salt)) < 0)
		return token_nomem(why);
	if (cj_encode(o, b, &err) < 0)
		return token_refuse(why, b->failed ? TOKEN_E_SIZE : TOKEN_E_ACTH, "%s", err.what);
	return 0;
}

/*
 * Appends the arguments of an exec request. An empty argument has no canonical form, so args is
 * left out; only capabilities that do not restrict arguments match a request without args.
 */
static void put_args(const struct action *x, struct buf *b)
{
	scoped_buf args = BUF_INIT(CAP_TEXT_MAX);

	for (size_t i = 0; i < x->argc; i++) {
		if (x->argv[i].n == 0)
			return;
		buf_ch(&args, '/');
		cap_put_seg(&args, x->argv[i]);
	}
	/* Leave space for the digest that follows the arguments. */
	if (args.failed || b->n + args.n > CAP_TEXT_MAX - 96)
		return;
	buf_str(b, ";args=");
	buf_sv(b, x->argc ? buf_view(&args) : SV("/"));
}

static void put_request(const struct action *x, struct buf *b)
{
	switch (x->kind) {
	case ACTION_NONE:
	case ACTION_SESSION:
		return;
	case ACTION_FS:
		buf_fmt(b, "%s:" SV_FMT ":" SV_FMT, cap_action_name(x->fs), SV_ARG(x->realm),
			SV_ARG(x->path));
		return;
	case ACTION_HTTP:
		buf_fmt(b, "http.request:" SV_FMT ":" SV_FMT ";m=" SV_FMT ";q=%s", SV_ARG(x->realm),
			SV_ARG(x->url), SV_ARG(x->method), x->query.n ? "any" : "none");
		return;
	case ACTION_NET:
		buf_fmt(b, "net.connect:" SV_FMT ":tcp/" SV_FMT ":%u", SV_ARG(x->realm),
			SV_ARG(x->host), x->port);
		return;
	case ACTION_EXEC:
		buf_fmt(b, "proc.exec:" SV_FMT ":" SV_FMT, SV_ARG(x->realm), SV_ARG(x->path));
		put_args(x, b);
		buf_str(b, ";sha256=");
		digest_hex(&x->program, b);
		return;
	}
}

int token_action_request(struct arena *a, const struct action *x, struct cap *ret_req,
			 struct token_why *why)
{
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
	struct writ_err err = { 0 };
	struct cap req;
	const int r = check(x, why);

	if (r < 0)
		return r;
	put_request(x, &b);
	if (buf_check(&b, &err) < 0 || cap_parse(a, CAP_REQUEST, buf_view(&b), &req, &err) < 0)
		return token_refuse(why, TOKEN_E_NOCAP, "no request: %s", err.what);
	*ret_req = req;
	return 0;
}
