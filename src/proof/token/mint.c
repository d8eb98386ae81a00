#include "token/token.h"

#include <string.h>

#include "base/banned.h"

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
