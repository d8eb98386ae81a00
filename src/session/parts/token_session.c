#include <string.h>
#include <unistd.h>

#include "codec/base64.h"
#include "crypto/crypto.h"
#include "parts/agents.h"
#include "parts/commands.h"
#include "parts/notice.h"
#include "parts/probe.h"
#include "parts/tokens_priv.h"
#include "token/wallet.h"

#include "base/banned.h"

/*
 * How tokens open a session. A token names one session by an id (sid). First the holder of the
 * token proves that it wants to run this command under this policy and plan; then the supervisor
 * claims the session of the token. When the first program is about to run, the session of the token
 * is spent; if no program ran, the session is given back.
 */

enum { NONCE = 24 };

/* Computes the digest that names the session in the proof: policy and plan. */
static int manifest(const struct session *s, struct digest *ret, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(1 << 20);
	struct digest parts[2];
	int r = cap_set_digest(&s->opt->policy->set, &parts[0], err);

	plan_json(s->opt->plan, &b);
	if (r == 0)
		r = buf_check(&b, err);
	parts[1] = crypto_sha256(buf_view(&b));
	*ret = crypto_sha256((struct sv){ (const char *)parts, sizeof(parts) });
	return r;
}

static int make_action(const struct session *s, const struct digest *man, struct sv nonce,
		       struct buf *b, struct token_why *why)
{
	struct action act = { .realm = s->opt->token->wallet->realm,
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
	return token_action_encode(&act, b, why);
}

/* Acts as the holder of the token: makes the chain of tokens, followed by a proof of possession. */
static int prove(const struct session_token *t, struct sv action, struct sv nonce, struct buf *b,
		 struct token_why *why)
{
	const struct token *leaf = chain_leaf(t->chain);
	struct pop pop = { .acth = crypto_sha256(action),
			   .aud = t->wallet->realm,
			   .iat = t->wallet->now,
			   .nonce = nonce };
	struct key_pair holder;
	int r = wallet_holder(t->wallet, &leaf->cnf_kid, &holder, &why->err);

	if (r < 0) {
		why->hop = (int)t->chain->n - 1;
		return token_refuse(why, TOKEN_E_POP,
				    "its holder is not here: no %.12s... in keys/",
				    leaf->cnf_kid.s);
	}
	r = wallet_new_id(t->wallet, &pop.jti, &why->err);
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
	scoped_buf nonce = BUF_INIT(64), action = BUF_INIT(ACTION_MAX),
		   shown = BUF_INIT(TOKEN_PRESENTATION_MAX);
	uint8_t bytes[NONCE];
	struct chain proved;
	int r = crypto_random(bytes, sizeof(bytes), &why->err);

	base64_encode(BASE64_URL, (struct sv){ (const char *)bytes, sizeof(bytes) }, &nonce);
	if (r == 0)
		r = make_action(s, man, buf_view(&nonce), &action, why);
	if (r == 0)
		r = prove(t, buf_view(&action), buf_view(&nonce), &shown, why);
	/* Verify the chain and the proof as if another party had sent them. */
	if (r == 0)
		r = wallet_present(t->wallet, buf_view(&shown), &proved, why);
	if (r == 0)
		r = chain_action(&proved, buf_view(&action), why);
	if (r == 0 && !sv_eq(proved.pop.nonce, buf_view(&nonce)))
		r = token_refuse(why, TOKEN_E_NONCE, "another nonce");
	if (r == 0)
		*t->chain = proved;
	if (shown.n)
		crypto_wipe(shown.p, shown.n);
	return r;
}

/* SECURITY: wipes the encoded token; the decoded claims stay, without a signature. */
static void forget(const struct session_token *t)
{
	if (t->text_n)
		crypto_wipe(t->text, t->text_n);
}

void tokens_session_name(const struct token_id *sid, char ret_id[static SESSION_ID + 1])
{
	/* Take the end of the token's session id, which is random; its beginning is the time. */
	memcpy(ret_id, sid->s + TOKEN_ID - SESSION_ID, SESSION_ID);
	ret_id[SESSION_ID] = 0;
}

/*
 * Names the session after its token. If a session of that name has a record, because it gave the
 * token's session back, chooses another name.
 */
static int name_session(struct session *s, const struct token_id *sid, struct writ_err *err)
{
	char *id = s->opt->id;
	const char *path;

	tokens_session_name(sid, id);
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

int tokens_start(struct session *s, struct writ_err *err)
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
	/* Wipe the encoded token, unless the session needs it to derive tokens for agents. */
	if (!spawn_allowed(s->opt->policy) || r < 0)
		forget(t);
	/*
	 * The holder's key of an agent's token was made for this proof only, and no token can be
	 * derived with it: remove the key.
	 */
	if (s->opt->agent)
		wallet_holder_remove(t->wallet, &chain_leaf(t->chain)->cnf_kid);
	if (r == 0)
		r = wallet_claim(t->wallet, t->chain, t->why);
	if (r < 0)
		return refused(t, err);
	tokens_of(s)->token_state = TOKEN_CLAIMED;
	return name_session(s, &chain_leaf(t->chain)->sid, err);
}

int tokens_spend(struct session *s, struct writ_err *err)
{
	const struct session_token *t = s->opt->token;

	if (!t || tokens_of(s)->token_state != TOKEN_CLAIMED)
		return 0;
	if (wallet_spend(t->wallet, t->chain, s->id, t->why) < 0)
		return refused(t, err);
	tokens_of(s)->token_state = TOKEN_SPENT;
	return 0;
}

/*
 * SECURITY: no program ran if no command was released, or if the only released command failed in
 * its exec: until its exec succeeds, the process of a command runs writ-init.
 */
static bool ran(const struct session *s)
{
	return probes_released(s) &&
	       !(session_status(s)->failed && session_status(s)->failed_at == ENGINE_STAGE_EXEC &&
		 commands_count(s) == 1);
}

void tokens_close(struct session *s)
{
	const struct session_token *t = s->opt->token;
	struct writ_err err = { 0 };

	if (!t)
		return;
	forget(t);
	if (tokens_of(s)->token_state != TOKEN_UNUSED && !ran(s) &&
	    wallet_unclaim(t->wallet, t->chain, s->id, tokens_of(s)->token_state == TOKEN_SPENT,
			   &err) < 0)
		notice_print(s, "its token stays spent: %s", err.what);
	tokens_of(s)->token_state = TOKEN_UNUSED;
	wallet_close(t->wallet);
}
