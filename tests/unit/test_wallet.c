#include "tap.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "token/wallet.h"

/* What a realm keeps about tokens: who may begin a session, what is counted, what still holds. */

static struct arena arena = ARENA_INIT(64 << 20);
static char state[] = "/tmp/writ-wallet-XXXXXX";

static void add(struct cap_set *s, const char *text)
{
	struct cap_entry *e = vec_push(&arena, &s->caps);
	struct writ_err err = { 0 };

	if (!e || cap_parse(&arena, CAP_GRANT, sv_from(text), &e->cap, &err) < 0)
		ok(false, "%s: %s", text, err.what);
}

static bool make_chain(const struct wallet *w, struct chain *ret)
{
	struct token t = { .iss = w->self->iss,
			   .sub = SV("uid:0"),
			   .iat = w->now,
			   .nbf = w->now,
			   .exp = w->now + 600,
			   .rvk = WALLET_RVK,
			   .aud = &w->realm,
			   .aud_n = 1,
			   .max_depth = 3 };
	struct key_pair issuer, holder;
	scoped_buf text = BUF_INIT(TOKEN_MAX);
	struct token_why why = { 0 };
	struct writ_err err = { 0 };

	add(&t.set, "net.connect:l-w:tcp/a.test:1;n=5");
	t.set.limits[LIMIT_REQUESTS] = 7;
	if (wallet_new_id(w, &t.jti, &err) < 0 || wallet_new_id(w, &t.sid, &err) < 0 ||
	    wallet_new_id(w, &t.wf, &err) < 0 || wallet_issuer(w, &issuer, &err) < 0 ||
	    wallet_holder_new(w, t.exp, &holder, &err) < 0)
		return false;
	t.cnf = holder.pub;
	return token_mint(&arena, &t, &issuer, &text, &why) == 0 &&
	       wallet_chain(w, buf_view(&text), false, ret, &why) == 0;
}

static void test_once(const struct wallet *w, const struct chain *c)
{
	struct wallet nowhere = *w;
	struct token_why why = { 0 };
	struct writ_err err = { 0 };

	nowhere.log = "/dev/null/log";
	ok(wallet_claim(w, c, &why) == 0, "a session is ours");
	ok(wallet_spend(&nowhere, c, "x", &why) < 0 && why.code == TOKEN_E_LOG,
	   "what cannot be logged is not begun");
	ok(wallet_claim(w, c, &why) < 0 && why.code == TOKEN_E_REPLAY, "and nobody else's");
	ok(wallet_unclaim(w, c, "x", false, &err) == 0, "nothing ran: %s", err.what);
	ok(wallet_claim(w, c, &why) == 0, "so it can be begun after all");
	ok(wallet_spend(w, c, "x", &why) == 0, "it is: %s", why.err.what);
	ok(wallet_unclaim(w, c, "x", true, &err) == 0, "but no program ran: %s", err.what);
	ok(wallet_claim(w, c, &why) == 0 && wallet_spend(w, c, "y", &why) == 0, "now one did");
	ok(wallet_claim(w, c, &why) < 0 && why.code == TOKEN_E_REPLAY, "that was it");
	ok(wallet_has_logged(w, &chain_leaf(c)->jti), "the log knows it");
	ok(!wallet_has_logged(w, &(struct token_id){ "0199f000-0000-7000-8000-000000000001" }),
	   "and no other");
}

static off_t counters_size(const struct wallet *w)
{
	struct stat st = { 0 };

	return stat(wallet_path(w, &arena, "counters"), &st) < 0 ? -1 : st.st_size;
}

static void test_count(const struct wallet *w, const struct chain *c)
{
	const struct wallet_level level = wallet_level_of(chain_leaf(c));
	const struct wallet_level twice[] = { level, level };
	struct cap_set set = c->token[0].set;
	struct quota_shared x = { 0 }, y = { 0 }, none = { 0 };
	struct wallet_use use;
	struct writ_err err = { 0 };
	int fd = -1, other = -1;
	off_t size;

	memset(&set.prices, 0, sizeof(set.prices));
	ok(wallet_count(w, &level, 1, &set, &none, &fd, &err) < 0 && fd < 0,
	   "what has no price cannot be counted");
	memcpy(&set.prices, &set.caps, sizeof(set.prices));
	ok(wallet_count(w, &level, 1, &set, &x, &fd, &err) == 0 && x.cells_n == 1 && x.pools_n == 1,
	   "a counter and a limit: %s", err.what);
	size = counters_size(w);
	ok(wallet_count(w, twice, 2, &set, &y, &other, &err) == 0 && y.cells_n == 1,
	   "the same counter is debited once");
	ok(counters_size(w) == size, "what is there is used");
	ok(x.cells[0].slot == y.cells[0].slot && x.pools[0].slot == y.pools[0].slot,
	   "both have the same");
	x.v[x.cells[0].slot].uses = 3;
	x.v[x.pools[0].slot].uses = 4;
	ok(wallet_used(w, chain_leaf(c), &set.caps.v[0].cap, &use) && use.uses == 3, "three uses");
	ok(wallet_used_limits(w, chain_leaf(c), &use) && use.uses == 4, "four requests");
	ok(y.v[y.cells[0].slot].uses == 3, "seen by both");
	close(fd);
	close(other);
}

static void test_holds(struct wallet *w, const struct chain *c)
{
	struct token_why why = { 0 };
	struct writ_err err = { 0 };

	ok(wallet_recheck(w, c, w->now, &why) == 0, "it holds: %s", why.err.what);
	ok(wallet_recheck(w, c, w->now + 400, &why) == 0, "our own list does not get old");
	ok(wallet_recheck(w, c, w->now + 700, &why) < 0 && why.code == TOKEN_E_TIME, "it ends");
	ok(wallet_revoke(w, &chain_leaf(c)->jti, &err) == 0, "it is revoked: %s", err.what);
	ok(wallet_recheck(w, c, w->now, &why) < 0 && why.code == TOKEN_E_REVOKED,
	   "and does not hold");
	ok(wallet_recheck(w, c, w->now, &why) < 0, "asked again neither");
	wallet_close(w);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st, (void)kind, (void)ftw;
	return remove(path);
}

int main(void)
{
	struct writ_err err = { 0 };
	struct wallet w;
	struct chain c;

	if (crypto_start(&err) < 0 || !mkdtemp(state) ||
	    wallet_open(&arena, sv_from(state), SV("l-w"), true, &w, &err) < 0 ||
	    !make_chain(&w, &c)) {
		ok(false, "a realm: %s", err.what);
		return tap_done();
	}
	test_once(&w, &c);
	test_count(&w, &c);
	test_holds(&w, &c);
	arena_clear(&arena);
	ok(nftw(state, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0, "nothing is left");
	return tap_done();
}
