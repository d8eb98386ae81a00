#include "token/chain.h"

#include <time.h>

#include "base/banned.h"

enum { PARTS_MAX = TOKEN_CHAIN_MAX + 1 };

const struct token *chain_leaf(const struct chain *c)
{
	return &c->token[c->n - 1];
}

/*
 * Step 1 (steps: docs/protocol/tokens.md): checks sizes and splits the presentation at its tildes
 * into *@ret_n parts.
 */
static int split(struct sv text, size_t max, struct sv ret_part[static PARTS_MAX], size_t *ret_n,
		 struct token_why *why)
{
	size_t n = 1;

	if (text.n > TOKEN_PRESENTATION_MAX)
		return token_refuse(why, TOKEN_E_SIZE, "%zu bytes, at most %d", text.n,
				    TOKEN_PRESENTATION_MAX);
	for (size_t i = 0; i < text.n; i++)
		n += text.p[i] == '~';
	if (n > max)
		return token_refuse(why, TOKEN_E_SIZE, "%zu parts, at most %zu", n, max);
	for (size_t i = 0; i < n; i++)
		ret_part[i] = sv_cut(&text, '~');
	*ret_n = n;
	return 0;
}

/* Steps 2 and 3 for one token: finds the key, verifies the signature, decodes the claims. */
static int open_token(struct arena *a, struct sv text, const struct token_here *here,
		      struct chain *c, struct token_why *why)
{
	scoped_buf payload = BUF_INIT(TOKEN_MAX);
	const struct token *before = c->n ? chain_leaf(c) : NULL;
	struct token *t = &c->token[c->n];
	struct jws j;
	int r = jws_split(text, TOKEN_MAX, JWS_CAP, &j, why);

	if (r < 0)
		return r;
	if (before && !jws_kid_eq(&j.kid, &before->cnf_kid))
		return token_refuse(why, TOKEN_E_LINK_ISS, "kid is not the holder before");
	if (!before)
		c->issuer = token_trust_find(here->trust, &j.kid);
	if (!c->issuer)
		return token_refuse(why, TOKEN_E_ROOT, "no issuer with key %s", j.kid.s);
	if ((r = jws_open(&j, before ? &before->cnf : &c->issuer->key, &payload, why)) < 0 ||
	    (r = token_decode(a, buf_view(&payload), t, why)) < 0)
		return r;
	t->kid = j.kid;
	t->hash = crypto_sha256(j.input);
	t->ath = crypto_sha256(text);
	c->n++;
	return 0;
}

/* Step 4: checks the root token and its issuer. */
static int check_root(const struct chain *c, const struct token_here *here, struct token_why *why)
{
	const struct token *t = &c->token[0];
	const struct trust_issuer *i = c->issuer;
	int r = token_root_check(t, why);

	if (r < 0)
		return r;
	if (!sv_eq(t->iss, i->iss))
		return token_refuse(why, TOKEN_E_ROOT, "iss is not who signed");
	if (here->now < i->nbf || here->now >= i->exp)
		return token_refuse(why, TOKEN_E_ROOT, "the issuer is not valid now");
	for (size_t k = 0; k < t->aud_n; k++)
		if (!token_has_realm(i->realms, i->realms_n, t->aud[k]))
			return token_refuse(why, TOKEN_E_ROOT, "the issuer has no say in " SV_FMT,
					    SV_ARG(t->aud[k]));
	return i->self ? 0 : token_set_check(&i->ceiling, &t->set, TOKEN_E_CEILING, why);
}

/*
 * SECURITY: refuse a holder key that is also an issuer's key or that occurs twice in the chain. A
 * key with two roles would let a signature made in one role count in the other. Also refuse a token
 * id that occurs twice.
 */
static int check_keys(const struct chain *c, size_t at, const struct trust *trust,
		      struct token_why *why)
{
	const struct token *t = &c->token[at];

	if (token_trust_find(trust, &t->cnf_kid))
		return token_refuse(why, TOKEN_E_LINK_ISS, "the holder's key is an issuer's");
	for (size_t i = 0; i < at; i++) {
		if (jws_kid_eq(&c->token[i].cnf_kid, &t->cnf_kid))
			return token_refuse(why, TOKEN_E_LINK_ISS, "the holder's key occurs twice");
		if (token_id_eq(&c->token[i].jti, &t->jti))
			return token_refuse(why, TOKEN_E_REPLAY, "jti occurs twice");
	}
	return 0;
}

/*
 * Steps 4 and 5: checks the root token, every link between two tokens, and that the last token is
 * valid in the verifier's realm.
 */
static int check_links(const struct chain *c, const struct token_here *here, struct token_why *why)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->n; i++) {
		why->hop = (int)i;
		r = i == 0 ? check_root(c, here, why)
			   : token_link_check(&c->token[i - 1], &c->token[i], why);
		if (r == 0)
			r = check_keys(c, i, here->trust, why);
	}
	if (r == 0 && !token_has_realm(chain_leaf(c)->aud, chain_leaf(c)->aud_n, here->realm))
		return token_refuse(why, TOKEN_E_AUD, "not for realm " SV_FMT, SV_ARG(here->realm));
	return r;
}

static int expired(const struct token *t, uint64_t now, struct token_why *why)
{
	const time_t at = (time_t)t->exp;
	char text[32] = "";
	struct tm tm;

	if (gmtime_r(&at, &tm))
		(void)strftime(text, sizeof(text), " at %Y-%m-%d %H:%M:%SZ", &tm);
	return token_refuse(why, TOKEN_E_TIME, "expired%s, %llu seconds ago", text,
			    (unsigned long long)(now - t->exp));
}

/* Step 6: checks the times of all tokens, and computes the chain's deadline and rvk. */
static int check_times(struct chain *c, uint64_t now, struct token_why *why)
{
	c->deadline = c->rvk = UINT64_MAX;
	for (size_t i = 0; i < c->n; i++) {
		const struct token *t = &c->token[i];

		why->hop = (int)i;
		if (now < t->nbf || t->iat > now + TOKEN_SKEW)
			return token_refuse(why, TOKEN_E_TIME, "not valid yet");
		if (now >= t->exp)
			return expired(t, now, why);
		if (t->exp < c->deadline)
			c->deadline = t->exp;
		if (t->rvk < c->rvk)
			c->rvk = t->rvk;
	}
	return 0;
}

/*
 * Step 7: checks revocation. Only the issuer of the root token can revoke tokens of its chains. All
 * revocation lists of the issuer apply, and at least one list must be fresh, unless the lists come
 * from local state.
 */
static int check_revoked(const struct chain *c, const struct token_here *here,
			 struct token_why *why)
{
	bool fresh = here->local;
	int r;

	for (size_t k = 0; k < here->lists_n; k++) {
		const struct rvk *l = &here->lists[k];
		struct token_why old = { 0 };

		if (!sv_eq(l->iss, c->issuer->iss))
			continue;
		for (size_t i = 0; i < c->n; i++) {
			why->hop = (int)i;
			r = rvk_check(l, &c->token[i], why);
			if (r < 0)
				return r;
		}
		if (rvk_fresh(l, here->now, c->rvk, &old) == 0)
			fresh = true;
	}
	why->hop = TOKEN_HOP_NONE;
	return fresh ? 0
		     : token_refuse(why, TOKEN_E_RVK_STALE,
				    "no list of " SV_FMT " that is at most %llu seconds old",
				    SV_ARG(sv_sub(c->issuer->iss, 0, 60)),
				    (unsigned long long)c->rvk);
}

static int open_parts(struct arena *a, const struct sv *part, size_t n,
		      const struct token_here *here, struct chain *c, struct token_why *why)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		why->hop = (int)i;
		r = open_token(a, part[i], here, c, why);
	}
	if (r < 0 || (r = check_links(c, here, why)) < 0 ||
	    (r = check_times(c, here->now, why)) < 0 || (r = check_revoked(c, here, why)) < 0)
		return r;
	if (!arena_sv(a, here->realm, &c->realm))
		return token_nomem(why);
	/* All tokens are views of one text: hash from the first token to the last one. */
	c->digest = crypto_sha256(
		(struct sv){ part[0].p, (size_t)(part[n - 1].p + part[n - 1].n - part[0].p) });
	return 0;
}

/* Verifies a presentation. With @proof its last part is a proof, otherwise a token. */
static int open_chain(struct arena *a, struct sv text, bool proof, const struct token_here *here,
		      struct chain *ret_chain, struct token_why *why)
{
	struct sv part[PARTS_MAX];
	struct chain *c = arena_new(a, struct chain);
	size_t n = 0;
	int r;

	why->hop = TOKEN_HOP_NONE;
	if (!c)
		return token_nomem(why);
	r = split(text, proof ? PARTS_MAX : TOKEN_CHAIN_MAX, part, &n, why);
	if (r < 0)
		return r;
	if (proof && n < 2)
		return token_refuse(why, TOKEN_E_FORMAT, "no proof");
	n -= proof;
	if ((r = open_parts(a, part, n, here, c, why)) < 0)
		return r;
	if (proof) {
		/* Step 8: verify the proof of possession. */
		why->hop = TOKEN_HOP_PROOF;
		r = pop_verify(a, part[n], chain_leaf(c), c->realm, here->now, &c->pop, why);
		if (r < 0)
			return r;
		c->proved = true;
	}
	*ret_chain = *c;
	return 0;
}

int chain_open(struct arena *a, struct sv tokens, const struct token_here *here,
	       struct chain *ret_chain, struct token_why *why)
{
	return open_chain(a, tokens, false, here, ret_chain, why);
}

int chain_recheck(const struct chain *c, const struct token_here *here, bool links,
		  struct token_why *why)
{
	const struct trust_issuer *now = token_trust_find(here->trust, &c->token[0].kid);
	struct chain again = *c;
	int r = 0;

	why->hop = TOKEN_HOP_NONE;
	if (!now || (!now->self && here->now >= here->trust->exp))
		return token_refuse(why, TOKEN_E_ROOT, "its issuer is not trusted here any more");
	if (here->now < now->nbf || here->now >= now->exp)
		return token_refuse(why, TOKEN_E_ROOT, "the issuer is not valid now");
	again.issuer = now;
	if (links)
		r = check_links(&again, here, why);
	if (r == 0)
		r = check_times(&again, here->now, why);
	return r < 0 ? r : check_revoked(&again, here, why);
}

int chain_present(struct arena *a, struct sv presentation, const struct token_here *here,
		  struct chain *ret_chain, struct token_why *why)
{
	return open_chain(a, presentation, true, here, ret_chain, why);
}

int chain_action(const struct chain *c, struct sv action, struct token_why *why)
{
	const struct digest d = crypto_sha256(action);

	why->hop = TOKEN_HOP_PROOF;
	if (!c->proved || !digest_eq(&d, &c->pop.acth))
		return token_refuse(why, TOKEN_E_ACTH, "the proof is for another action");
	return 0;
}
