/*
 * tlog_keys.h - the keys of tests/vectors/tlog, made from their names
 */
#ifndef WRIT_TESTS_TLOG_KEYS_H
#define WRIT_TESTS_TLOG_KEYS_H

#include <stdlib.h>

#include "tlog/policy.h"

#define TLOG_TEST_LOG "writ.example/log/l-test"
#define TLOG_TEST_WITNESS "writ.example/witness/" /* a, b and c */

struct tlog_pair {
	struct note_key key;
	struct sign_secret sec;
};

__attribute__((unused)) static struct tlog_pair tlog_pair(enum note_key_type type, const char *name)
{
	const struct sv parts[] = { SV("writ-test-vector-v1/"), sv_from(name) };
	const struct digest seed = crypto_sha256_parts(parts, ARRAY_LEN(parts));
	struct writ_err err = { 0 };
	struct sign_public pub;
	struct tlog_pair p;

	sign_keypair(seed.b, &pub, &p.sec);
	if (note_key_init(&p.key, type, sv_from(name), &pub, &err) < 0)
		abort();
	return p;
}

/* The policy "@k of these witnesses"; 0 asks for none. */
__attribute__((unused)) static struct tlog_policy tlog_k_of(const struct note_key *log,
							    const struct note_key *witnesses,
							    size_t n, uint32_t k)
{
	struct tlog_policy p = { .quorum = k ? TLOG_QUORUM_GROUP : TLOG_QUORUM_NONE };

	p.log[p.logs_n++] = (struct tlog_log){ .key = *log, .url = SV("") };
	for (size_t i = 0; i < n; i++)
		p.witness[p.witnesses_n++] = (struct tlog_witness){ .name = witnesses[i].name,
								    .key = witnesses[i],
								    .url = SV("") };
	if (k)
		p.group[p.groups_n++] = (struct tlog_group){ .name = SV("quorum"),
							     .k = k,
							     .witnesses = (1u << n) - 1 };
	return p;
}

#endif
