#include "token/action.h"

#include "audit/entry.h"
#include "codec/json.h"
#include "token/jws.h"

#include "base/banned.h"

static json_t *text_of(struct sv s)
{
	return json_stringn(s.n ? s.p : "", s.n);
}

/* Returns @raw as a JSON string, percent-encoded as in log entries. */
static json_t *encoded(struct sv raw)
{
	scoped_buf b = BUF_INIT(3 * raw.n + 1);

	entry_encode(&b, raw);
	return b.failed ? NULL : text_of(buf_view(&b));
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

static json_t *object_of(const struct action *x)
{
	const struct jws_kid man = jws_text(x->manifest.b);

	return json_pack("{s:s,s:o,s:s,s:o,s:o}", "a", "session.open", "argv", argv_of(x), "man",
			 man.s, "r", text_of(x->realm), "s", text_of(x->salt));
}

int token_action_encode(const struct action *x, struct buf *b, struct token_why *why)
{
	scoped_json *o = NULL;
	struct writ_err err = { 0 };

	if (!sv_is_graph(x->realm) || !sv_is_graph(x->salt))
		return token_refuse(why, TOKEN_E_ACTH, "a part that is not canonical");
	o = object_of(x);
	if (!o)
		return token_nomem(why);
	if (cj_encode(o, b, &err) < 0)
		return token_refuse(why, b->failed ? TOKEN_E_SIZE : TOKEN_E_ACTH, "%s", err.what);
	return 0;
}
