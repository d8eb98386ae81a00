/*
 * token_keys.h - the keys of tests/vectors/token, made from their names, and a verifier's view
 */
#ifndef WRIT_TESTS_TOKEN_KEYS_H
#define WRIT_TESTS_TOKEN_KEYS_H

#include "token/chain.h"

#define TOKEN_TEST_NOW 1794745300u
#define TOKEN_TEST_REALM "l-test7"

__attribute__((unused)) static struct key_pair token_pair(const char *name)
{
	const struct sv parts[] = { SV("writ-test-vector-v1/"), sv_from(name) };
	const struct digest seed = crypto_sha256_parts(parts, ARRAY_LEN(parts));
	struct key_pair p;

	sign_keypair(seed.b, &p.pub, &p.sec);
	return p;
}

#endif
