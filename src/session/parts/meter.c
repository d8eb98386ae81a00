#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "parts/agents.h"
#include "parts/tokens_priv.h"
#include "token/wallet.h"

#include "base/banned.h"

/*
 * Counters that several sessions share: all sessions of one token, and a session with the agents
 * that it starts. Uses of tokens are counted on the disk, for the whole realm; without tokens a
 * session counts in memory that its agents map, too.
 */

struct wallet_level meter_level(const struct session *s)
{
	const struct cap_set *set = &s->opt->policy->set;
	const struct sv parts[] = { SV("session"), sv_from(s->id) };

	return (struct wallet_level){ .key = crypto_sha256_parts(parts, ARRAY_LEN(parts)),
				      .caps = set->prices.v,
				      .n = set->prices.n,
				      .limits = set->limits,
				      .exp = s->opt->token ? s->opt->token->chain->deadline
							   : INT64_MAX };
}

static int count_in_memory(struct session *s, const struct wallet_level *level,
			   struct writ_err *err)
{
	scoped_fd fd = s->opt->agent ? fcntl(s->opt->agent->counters, F_DUPFD_CLOEXEC, 3)
				     : memfd_create("writ-counters", MFD_CLOEXEC);
	const int r = fd < 0 ? writ_fail(err, WRIT_E_SYS, errno, "memfd_create")
			     : wallet_count_in(s->a, fd, level, 1, &s->opt->policy->set,
					       (uint64_t)time(NULL), &tokens_of(s)->shared, err);

	if (r == 0)
		tokens_of(s)->shared_fd = fd_take(&fd);
	return r;
}

int meter_start(struct session *s, struct writ_err *err)
{
	const struct session_token *t = s->opt->token;
	struct wallet_level levels[TOKEN_CHAIN_MAX + 2];
	size_t n = 0;

	for (size_t i = 0; t && i < t->chain->n; i++)
		levels[n++] = wallet_level_of(&t->chain->token[i]);
	/* The session of an agent uses the counters of its parent session. */
	if (s->opt->agent)
		levels[n++] = *s->opt->agent->level;
	else if (spawn_allowed(s->opt->policy))
		levels[n++] = meter_level(s);
	if (n == 0)
		return 0;
	return t ? wallet_count(t->wallet, levels, n, &s->opt->policy->set, &tokens_of(s)->shared,
				&tokens_of(s)->shared_fd, err)
		 : count_in_memory(s, &levels[0], err);
}

const struct quota_shared *meter_shared(const struct session *s)
{
	return &tokens_of(s)->shared;
}

int meter_fd(const struct session *s)
{
	return tokens_of(s)->shared_fd;
}

void meter_close(struct session *s)
{
	if (tokens_of(s)->shared.v)
		(void)munmap(tokens_of(s)->shared.v,
			     tokens_of(s)->shared.n * sizeof(*tokens_of(s)->shared.v));
	tokens_of(s)->shared = (struct quota_shared){ 0 };
	fd_close(&tokens_of(s)->shared_fd);
}
