#include "session/session_priv.h"

#include <string.h>
#include <unistd.h>

#include "codec/base64.h"
#include "wallet/wallet.h"

#include "base/banned.h"

/*
 * How tokens open a session. First the holder proves that this command is to be run, in
 * this policy, held in this way; then the session is ours. When everything stands and the
 * first program is about to run, it is spent; and if nothing ran, it is given back.
 */

enum { NONCE = 24 };

/* Which session it is to be, as a digest: its policy and how that is held. */
static int manifest(const struct session *s, struct digest *ret, struct writ_err *err)
{
	struct buf b = BUF_INIT(1 << 20);
	struct digest parts[2];
	int r = cap_set_digest(&s->opt->policy->set, &parts[0], err);

	plan_json(s->opt->plan, &b);
	if (r == 0)
		r = buf_check(&b, err);
	parts[1] = crypto_sha256(buf_view(&b));
	buf_clear(&b);
	*ret = crypto_sha256((struct sv){ (const char *)parts, sizeof(parts) });
	return r;
}

static int make_action(const struct session *s, const struct digest *man, struct sv nonce,
		       struct buf *b, struct token_why *why)
{
	struct action act = { .kind = ACTION_SESSION,
			      .realm = s->opt->token->wallet->realm,
			      .salt = nonce,
			      .manifest = *man };
	struct sv *v;

	while (s->opt->argv[act.argc])
		act.argc++;
	v = arena_array(s->a, struct sv, act.argc + 1);
	if (!v)
		return token_nomem(why);
	for (size_t i = 0; i < act.argc; i++)
		v[i] = sv_from(s->opt->argv[i]);
	act.argv = v;
	return action_encode(&act, b, why);
}

/* What the holder does: the chain and a proof behind it. */
static int prove(const struct session_token *t, struct sv action, struct sv nonce, struct buf *b,
		 struct token_why *why)
{
	const struct token *leaf = chain_leaf(t->chain);
	struct pop pop = { .acth = crypto_sha256(action),
			   .aud = t->wallet->realm,
			   .iat = t->wallet->now,
			   .nonce = nonce };
	struct jws_pair holder;
	int r = wallet_holder(t->wallet, &leaf->cnf_kid, &holder, &why->err);

	if (r < 0) {
		why->hop = (int)t->chain->n - 1;
		return token_no(why, TOKEN_E_POP, "its holder is not here: no %.12s... in keys/",
				leaf->cnf_kid.s);
	}
	r = wallet_id(t->wallet, &pop.jti, &why->err);
	buf_sv(b, (struct sv){ t->text, t->text_n });
	buf_ch(b, '~');
	if (r == 0)
		r = pop_sign(t->wallet->a, &pop, leaf, &holder, b, why);
	crypto_wipe(&holder, sizeof(holder));
	return r;
}

static int present(struct session *s, const struct digest *man, struct token_why *why)
{
	const struct session_token *t = s->opt->token;
	struct buf nonce = BUF_INIT(64), action = BUF_INIT(ACTION_MAX),
		   shown = BUF_INIT(TOKEN_PRESENTATION_MAX);
	uint8_t bytes[NONCE];
	struct chain proved;
	int r = crypto_random(bytes, sizeof(bytes), &why->err);

	base64_encode(BASE64_URL, (struct sv){ (const char *)bytes, sizeof(bytes) }, &nonce);
	if (r == 0)
		r = make_action(s, man, buf_view(&nonce), &action, why);
	if (r == 0)
		r = prove(t, buf_view(&action), buf_view(&nonce), &shown, why);
	/* From here on as if somebody else had sent it. */
	if (r == 0)
		r = wallet_present(t->wallet, buf_view(&shown), &proved, why);
	if (r == 0)
		r = chain_action(&proved, buf_view(&action), why);
	if (r == 0 && !sv_eq(proved.pop.nonce, buf_view(&nonce)))
		r = token_no(why, TOKEN_E_NONCE, "another nonce");
	if (r == 0)
		*t->chain = proved;
	if (shown.n)
		crypto_wipe(shown.p, shown.n);
	buf_clear(&nonce);
	buf_clear(&action);
	buf_clear(&shown);
	return r;
}

/* SECURITY: what is left of it is what it says, without a signature. */
static void forget(const struct session_token *t)
{
	if (t->text_n)
		crypto_wipe(t->text, t->text_n);
}

void token_name(const struct token_id *sid, char ret_id[static SESSION_ID + 1])
{
	/* The end of the sid is random; its beginning is the time. */
	memcpy(ret_id, sid->s + TOKEN_ID - SESSION_ID, SESSION_ID);
	ret_id[SESSION_ID] = 0;
}

/* The name of one that gave its session back is on record already: this one gets another. */
static int name_session(struct session *s, const struct token_id *sid, struct writ_err *err)
{
	char *id = s->opt->begun->id;
	const char *path;

	token_name(sid, id);
	path = arena_fmt(s->a, SV_FMT "/sessions/%s.jsonl", SV_ARG(s->opt->state), id);
	if (!path)
		return writ_nomem(err);
	return access(path, F_OK) == 0 ? session_make_id(id, err) : 0;
}

static int refused(const struct session_token *t, struct writ_err *err)
{
	*err = t->why->err;
	return err->code = WRIT_E_DENIED;
}

int token_begin(struct session *s, struct writ_err *err)
{
	const struct session_token *t = s->opt->token;
	struct digest man;
	int r;

	if (!t)
		return 0;
	r = manifest(s, &man, err);
	if (r < 0)
		return r;
	r = present(s, &man, t->why);
	/* Only a session with agents needs it again, to derive for them. */
	if (!session_spawns(s->opt->policy) || r < 0)
		forget(t);
	/* An agent's was made for this proof, and nothing can be derived with it. */
	if (s->opt->parent.n)
		wallet_holder_end(t->wallet, &chain_leaf(t->chain)->cnf_kid);
	if (r == 0)
		r = wallet_claim(t->wallet, t->chain, t->why);
	if (r < 0)
		return refused(t, err);
	s->token_state = TOKEN_CLAIMED;
	return name_session(s, &chain_leaf(t->chain)->sid, err);
}

int token_spend(struct session *s, struct writ_err *err)
{
	const struct session_token *t = s->opt->token;

	if (!t || s->token_state != TOKEN_CLAIMED)
		return 0;
	if (wallet_spend(t->wallet, t->chain, s->id, t->why) < 0)
		return refused(t, err);
	s->token_state = TOKEN_SPENT;
	return 0;
}

/*
 * SECURITY: nothing ran, if nothing was let go, or the one thing that was is writ-init's own
 * process, which the kernel refused to become another.
 */
static bool ran(const struct session *s)
{
	return s->probing.released &&
	       !(s->failed && s->failed_step == STEP_EXEC && s->commands == 1);
}

void token_close(struct session *s)
{
	const struct session_token *t = s->opt->token;
	struct writ_err err = { 0 };

	if (!t)
		return;
	forget(t);
	if (s->token_state != TOKEN_UNUSED && !ran(s) &&
	    wallet_give_back(t->wallet, t->chain, s->id, s->token_state == TOKEN_SPENT, &err) < 0)
		say(s, "its token stays spent: %s", err.what);
	s->token_state = TOKEN_UNUSED;
	wallet_close(t->wallet);
}
