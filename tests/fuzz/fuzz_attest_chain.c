/* fuzz_attest_chain - proofs of changes of a log's key, with a form feed between them */
#include <stdlib.h>

#include "attest/chain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool yes)
{
	if (!yes)
		abort();
}

/* Whatever the size: one key of the chain counts, and with all of them pinned it is there. */
static void check(const struct chain *c, uint64_t size)
{
	struct tlog_policy p = { .quorum = TLOG_QUORUM_NONE };
	size_t n = 0;

	p.log[p.logs_n++].key = c->link[0].old;
	for (size_t i = 0; i < c->n && i < 8; i++)
		p.log[p.logs_n++].key = c->link[i].next;
	attest_chain_apply(c, size, true, &p);
	for (size_t i = 0; i < p.logs_n; i++) {
		n += attest_chain_has(c, &p.log[i].key);
		must(note_key_eq(&p.log[i].key, &p.log[0].key));
	}
	must(n >= 1 && n == p.logs_n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sv in = { size ? (const char *)data : "", size };
	scoped_arena a = ARENA_INIT(16 << 20);
	struct attest_rotated files = { .n = 0 };
	struct writ_err err = { 0 };
	struct chain *c = arena_new(&a, struct chain);
	size_t at = 0;

	while (in.n && files.n < ATTEST_ROTATED_MAX)
		files.v[files.n++] = (struct attest_file){ "x", sv_cut(&in, '\f') };
	if (!c || attest_chain_read(&a, &files, SV("writ/log/l-seed"), c, &at, &err) < 0 ||
	    c->n == 0)
		return 0;
	for (size_t i = 0; i < c->n; i++) {
		must(i == 0 || c->link[i].index > c->link[i - 1].index);
		check(c, c->link[i].index);
		check(c, c->link[i].index + 1);
	}
	check(c, 0);
	check(c, UINT64_MAX);
	return 0;
}
