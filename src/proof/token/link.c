#include "token/token.h"

#include <string.h>

#include "base/banned.h"

bool token_has_realm(const struct sv *realms, size_t n, struct sv realm)
{
	for (size_t i = 0; i < n; i++)
		if (sv_eq(realms[i], realm))
			return true;
	return false;
}

/* Checks that the child token requires every guarantee of the parent token at least as strictly. */
static int check_require(const struct cap_set *parent, const struct cap_set *child,
			 enum token_code code, struct token_why *why)
{
	for (enum guarantee g = 0; g < G_COUNT; g++)
		if (child->require[g] < parent->require[g])
			return token_refuse(why, code, "require %s is weaker", guarantee_name(g));
	if (parent->has_rt && (!child->has_rt || !digest_eq(&parent->rt, &child->rt)))
		return token_refuse(why, code, "rt is another one");
	return 0;
}

int token_set_check(const struct cap_set *parent, const struct cap_set *child, enum token_code code,
		    struct token_why *why)
{
	size_t culprit = 0;

	if (!cap_set_within(child, parent, &culprit)) {
		if (culprit == SIZE_MAX)
			return token_refuse(why, code, "a limit is larger or missing");
		return token_refuse(why, code, "not within: " SV_FMT,
				    SV_ARG(sv_sub(child->caps.v[culprit].cap.text, 0, 96)));
	}
	return check_require(parent, child, code, why);
}

int token_root_check(const struct token *t, struct token_why *why)
{
	const uint64_t start = t->iat < t->nbf ? t->iat : t->nbf;

	if (t->has_parent)
		return token_refuse(why, TOKEN_E_ROOT, "a first token that was derived");
	if (t->depth != 0)
		return token_refuse(why, TOKEN_E_DEPTH, "a first token of depth %llu",
				    (unsigned long long)t->depth);
	if (t->exp - start > TOKEN_LIFE_MAX)
		return token_refuse(why, TOKEN_E_TIME, "valid for more than %d seconds",
				    TOKEN_LIFE_MAX);
	return 0;
}

/* Checks rules I1, I2 and I5 between parent and child token: issuer, parent and depth. */
static int check_origin(const struct token *p, const struct token *c, struct token_why *why)
{
	if (!jws_kid_eq(&c->kid, &p->cnf_kid) || !sv_starts(c->iss, SV(TOKEN_ISS_PREFIX)) ||
	    !sv_eq(sv_skip(c->iss, sizeof(TOKEN_ISS_PREFIX) - 1), jws_kid_sv(&p->cnf_kid)))
		return token_refuse(why, TOKEN_E_LINK_ISS, "iss is not the holder before");
	if (!c->has_parent || !digest_eq(&c->par_hash, &p->hash))
		return token_refuse(why, TOKEN_E_LINK_HASH, "par_hash is not of the token before");
	if (c->depth != p->depth + 1 || c->max_depth > p->max_depth)
		return token_refuse(why, TOKEN_E_DEPTH, "depth %llu of %llu after %llu of %llu",
				    (unsigned long long)c->depth, (unsigned long long)c->max_depth,
				    (unsigned long long)p->depth, (unsigned long long)p->max_depth);
	return 0;
}

int token_link_check(const struct token *parent, const struct token *child, struct token_why *why)
{
	const int r = check_origin(parent, child, why);

	if (r < 0)
		return r;
	/* Rule I3: check the lifetime. */
	if (child->iat < parent->iat || child->nbf < parent->nbf || child->exp > parent->exp)
		return token_refuse(why, TOKEN_E_TIME, "valid when the token before is not");
	for (size_t i = 0; i < child->aud_n; i++)
		if (!token_has_realm(parent->aud, parent->aud_n, child->aud[i]))
			return token_refuse(why, TOKEN_E_AUD, "realm " SV_FMT " was not given",
					    SV_ARG(child->aud[i]));
	if (!sv_eq(child->sub, parent->sub) || !token_id_eq(&child->wf, &parent->wf))
		return token_refuse(why, TOKEN_E_SUB, "sub or wf is another one");
	if (child->rvk > parent->rvk)
		return token_refuse(why, TOKEN_E_WIDEN, "rvk is larger");
	/*
	 * Rule I4: check the authority. Denials are not compared, because the denials of every
	 * token in the chain apply.
	 */
	return token_set_check(&parent->set, &child->set, TOKEN_E_WIDEN, why);
}

/* --- making tokens --- */

/*
 * Encodes the token @t and decodes it again, so that writ signs no token that a verifier would
 * refuse.
 */
static int round_trip(struct arena *a, const struct token *t, struct buf *payload,
		      struct token *ret_t, struct token_why *why)
{
	int r = token_encode(t, payload, why);

	if (r == 0)
		r = token_decode(a, buf_view(payload), ret_t, why);
	if (r == 0)
		ret_t->kid = t->kid;
	return r;
}

/* SECURITY: refuse a token for the key that signs it. Each key has one role. */
static int check_role(const struct token *t, const struct key_pair *key, struct token_why *why)
{
	if (memcmp(t->cnf.b, key->pub.b, sizeof(t->cnf.b)) == 0)
		return token_refuse(why, TOKEN_E_LINK_ISS,
				    "the holder's key is the one that signs");
	return 0;
}

int token_mint(struct arena *a, const struct token *t, const struct key_pair *issuer, struct buf *b,
	       struct token_why *why)
{
	scoped_buf payload = BUF_INIT(TOKEN_MAX);
	struct token root = *t, read;
	int r;

	root.depth = 0;
	root.has_parent = false;
	if ((r = check_role(&root, issuer, why)) < 0 ||
	    (r = round_trip(a, &root, &payload, &read, why)) < 0 ||
	    (r = token_root_check(&read, why)) < 0)
		return r;
	return jws_sign(JWS_CAP, TOKEN_MAX, buf_view(&payload), issuer, b, why);
}

int token_derive(struct arena *a, const struct token *parent, const struct token *t,
		 const struct key_pair *holder, struct buf *b, struct token_why *why)
{
	scoped_buf payload = BUF_INIT(TOKEN_MAX);
	struct token child = *t, read;
	char *iss;
	int r;

	if (memcmp(parent->cnf.b, holder->pub.b, sizeof(parent->cnf.b)) != 0)
		return token_refuse(why, TOKEN_E_LINK_ISS, "the key is not the holder's");
	iss = arena_fmt(a, TOKEN_ISS_PREFIX "%s", parent->cnf_kid.s);
	if (!iss)
		return token_nomem(why);
	child.iss = sv_from(iss);
	child.sub = parent->sub;
	child.wf = parent->wf;
	child.kid = parent->cnf_kid;
	child.depth = parent->depth + 1;
	child.has_parent = true;
	child.par_hash = parent->hash;
	if ((r = check_role(&child, holder, why)) < 0 ||
	    (r = round_trip(a, &child, &payload, &read, why)) < 0 ||
	    (r = token_link_check(parent, &read, why)) < 0)
		return r;
	return jws_sign(JWS_CAP, TOKEN_MAX, buf_view(&payload), holder, b, why);
}
