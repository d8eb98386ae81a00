/*
 * check_tool - what the C code says of bytes, for comparison with writ_check.py
 *
 *     check_tool            reads questions, a line each, and answers each with a line
 *     check_tool grow DIR FROM TO    appends entries to the realm's log in DIR and signs it
 *
 * A question is a word and its arguments in hexadecimal ("-": empty), as the table at the
 * end has them. An answer begins with "ok" or with why not.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attest/judge.h"
#include "audit/realm.h"
#include "audit/slog.h"
#include "base/fd.h"
#include "codec/json.h"
#include "tlog/proof.h"
#include "tlog/tile.h"
#include "tlog_keys.h"
#include "token_keys.h"

enum { ARGS_MAX = 12, LINE_BYTES_MAX = 8 << 20 };

struct question {
	struct sv arg[ARGS_MAX];
	size_t n;
};

static struct sv from_hex(struct arena *a, struct sv hex)
{
	char *out = arena_array(a, char, hex.n / 2 + 1);

	if (!out || sv_is(hex, "-"))
		return SV("");
	for (size_t i = 0; i + 1 < hex.n; i += 2)
		out[i / 2] = (char)(sv_hex(hex.p[i]) << 4 | sv_hex(hex.p[i + 1]));
	return (struct sv){ out, hex.n / 2 };
}

static uint64_t number(struct sv s)
{
	uint64_t v = 0;

	(void)!sv_to_u64(s, UINT64_MAX, &v);
	return v;
}

static void no(struct buf *b, const struct writ_err *err)
{
	buf_fmt(b, "no %s", err->what);
}

static void ask_entry(struct arena *a, const struct question *q, struct buf *b)
{
	scoped_buf out = BUF_INIT(ENTRY_LINE_MAX);
	struct writ_err err = { 0 };

	(void)a;
	if (entry_public(q->arg[0], &out, &err) < 0)
		no(b, &err);
	else
		buf_fmt(b, "ok " SV_FMT, SV_ARG(buf_view(&out)));
}

static void ask_session(struct arena *a, const struct question *q, struct buf *b)
{
	scoped_fd fd = memfd_create("session", MFD_CLOEXEC);
	struct writ_err err = { 0 };
	struct slog_read r;

	(void)a;
	if (fd < 0 || write(fd, q->arg[0].p, q->arg[0].n) != (ssize_t)q->arg[0].n ||
	    lseek(fd, 0, SEEK_SET) < 0) {
		buf_str(b, "no memory");
	} else if (slog_read(fd, NULL, NULL, &r, &err) < 0) {
		no(b, &err);
	} else {
		buf_fmt(b, "ok %" PRIu64 " ", r.size);
		digest_hex(&r.root, b);
		buf_fmt(b, " %" PRIu64, r.torn);
	}
}

static void ask_policy(struct arena *a, const struct question *q, struct buf *b)
{
	struct tlog_policy *p = arena_new(a, struct tlog_policy);
	struct writ_err err = { 0 };

	if (!p || tlog_policy_parse(q->arg[0], p, &err) < 0)
		no(b, &err);
	else
		buf_fmt(b, "ok %zu %zu", p->logs_n, p->witnesses_n);
}

static void ask_proof(struct arena *a, const struct question *q, struct buf *b)
{
	struct tlog_policy *p = arena_new(a, struct tlog_policy);
	struct writ_err err = { 0 };
	struct proof_facts facts;
	enum proof_verdict v;

	if (!p || tlog_policy_parse(q->arg[2], p, &err) < 0) {
		buf_str(b, "policy");
		return;
	}
	v = proof_verify(q->arg[0], q->arg[1], p, &facts, &err);
	if (v == PROOF_HOLDS)
		buf_fmt(b, "ok %" PRIu64 " %" PRIu64, facts.index, facts.checkpoint.size);
	else
		buf_str(b, proof_verdict_name(v));
}

static void ask_checkpoint(struct arena *a, const struct question *q, struct buf *b)
{
	struct writ_err err = { 0 };
	struct checkpoint c;
	struct note_key key;
	struct note *note = arena_new(a, struct note);

	if (!note || note_key_parse(q->arg[1], &key, &err) < 0)
		no(b, &err);
	else if (checkpoint_open(q->arg[0], &key, note, &c, &err) < 0)
		no(b, &err);
	else
		buf_fmt(b, "ok %" PRIu64, c.size);
}

static void ask_bundle(struct arena *a, const struct question *q, struct buf *b)
{
	struct writ_err err = { 0 };
	struct sv in = q->arg[0], one;
	size_t n = 0;

	(void)a;
	while (in.n) {
		if (tlog_bundle_next(&in, &one, &err) < 0) {
			no(b, &err);
			return;
		}
		n++;
	}
	buf_fmt(b, "ok %zu", n);
}

static void ask_open(struct arena *a, const struct question *q, struct buf *b)
{
	struct realm r = REALM_INIT;
	struct writ_err err = { 0 };
	char *path = arena_array(a, char, q->arg[0].n + 1);

	if (!path)
		return;
	memcpy(path, q->arg[0].p, q->arg[0].n);
	path[q->arg[0].n] = 0;
	if (realm_open(&r, path, false, &err) < 0)
		no(b, &err);
	else
		buf_fmt(b, "ok %" PRIu64, r.tree.size);
	realm_close(&r);
}

static void ask_judge(struct arena *a, const struct question *q, struct buf *b)
{
	struct judgement *j = arena_new(a, struct judgement);
	struct writ_err err = { 0 };
	struct sv rest = q->arg[0];

	if (!j)
		return;
	memset(j, 0, sizeof(*j));
	while (rest.n) {
		const struct sv line = sv_cut(&rest, '\n');
		scoped_json *o = NULL;

		if (json_decode(line, ENTRY_LINE_MAX, &o, &err) < 0) {
			no(b, &err);
			return;
		}
		judge_entry(j, o);
	}
	judge_end(j);
	buf_str(b, "ok");
	for (enum boundary i = 0; i < BOUNDARIES; i++) {
		const struct finding *f = &j->of[i];

		buf_fmt(b, " %s/%d", verdict_name(f->verdict), (int)f->strength);
		if (f->verdict == VERDICT_VIOLATED)
			buf_fmt(b, "@%" PRIu64, f->entry);
	}
	buf_fmt(b, " left out %" PRIu64, j->left_out);
}

static void refused(struct buf *b, const struct token_why *why)
{
	buf_fmt(b, "%s %d %s", token_code_name(why->code), why->hop, why->err.what);
}

/* TRUST REALM NOW LOCAL PRESENTATION LIST... */
static void ask_chain(struct arena *a, const struct question *q, struct buf *b)
{
	struct token_why why = { .hop = TOKEN_HOP_NONE };
	struct rvk list[ARGS_MAX];
	struct trust trust;
	struct token_here here = { .realm = q->arg[1],
				   .now = number(q->arg[2]),
				   .local = sv_is(q->arg[3], "1"),
				   .trust = &trust,
				   .lists = list };
	struct chain *c = arena_new(a, struct chain);

	if (!c || token_trust_decode(a, q->arg[0], &trust, &why) < 0)
		goto no;
	for (size_t i = 5; i < q->n; i++)
		if (rvk_open(a, q->arg[i], &trust, 0, &list[here.lists_n++], &why) < 0)
			goto no;
	if (chain_present(a, q->arg[4], &here, c, &why) < 0)
		goto no;
	buf_fmt(b, "ok %zu", c->n);
	return;
no:
	refused(b, &why);
}

/* ORG NOW SEEN TEXT */
static void ask_trust(struct arena *a, const struct question *q, struct buf *b)
{
	struct token_why why = { .hop = TOKEN_HOP_NONE };
	struct sign_public org;
	struct trust trust;

	memset(&org, 0, sizeof(org));
	memcpy(&org, q->arg[0].p, q->arg[0].n < sizeof(org) ? q->arg[0].n : sizeof(org));
	if (token_trust_open(a, q->arg[3], &org, number(q->arg[1]), number(q->arg[2]), &trust,
			     &why) < 0)
		refused(b, &why);
	else
		buf_fmt(b, "ok %zu", trust.n);
}

/* TRUST SEEN TEXT */
static void ask_list(struct arena *a, const struct question *q, struct buf *b)
{
	struct token_why why = { .hop = TOKEN_HOP_NONE };
	struct trust trust;
	struct rvk list;

	if (token_trust_decode(a, q->arg[0], &trust, &why) < 0 ||
	    rvk_open(a, q->arg[2], &trust, number(q->arg[1]), &list, &why) < 0)
		refused(b, &why);
	else
		buf_fmt(b, "ok %" PRIu64, list.seq);
}

static const struct {
	const char *word;
	size_t args; /* at least */
	void (*ask)(struct arena *a, const struct question *q, struct buf *b);
} words[] = {
	{ "entry", 1, ask_entry }, { "session", 1, ask_session },	{ "policy", 1, ask_policy },
	{ "proof", 3, ask_proof }, { "checkpoint", 2, ask_checkpoint }, { "bundle", 1, ask_bundle },
	{ "open", 1, ask_open },   { "chain", 5, ask_chain },		{ "trust", 4, ask_trust },
	{ "list", 3, ask_list },   { "judge", 1, ask_judge },
};

static void answer(struct sv line, struct buf *b)
{
	scoped_arena a = ARENA_INIT(64 << 20);
	const struct sv word = sv_cut(&line, ' ');
	struct question q = { 0 };

	while (line.n && q.n < ARGS_MAX)
		q.arg[q.n++] = from_hex(&a, sv_cut(&line, ' '));
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (sv_is(word, words[i].word) && q.n >= words[i].args) {
			words[i].ask(&a, &q, b);
			return;
		}
	buf_str(b, "what?");
}

static int serve(void)
{
	size_t room = 0;
	char *line = NULL;
	ssize_t n;

	while ((n = getline(&line, &room, stdin)) > 0) {
		scoped_buf b = BUF_INIT(LINE_BYTES_MAX);

		answer((struct sv){ line, (size_t)n - 1 }, &b);
		(void)printf(SV_FMT "\n", SV_ARG(buf_view(&b)));
		(void)fflush(stdout);
	}
	free(line);
	return 0;
}

static int grow(const char *dir, uint64_t from, uint64_t to)
{
	struct tlog_pair log = tlog_pair(NOTE_KEY_ED25519, TLOG_TEST_LOG);
	struct realm r = REALM_INIT;
	struct writ_err err = { 0 };
	int bad = realm_open(&r, dir, true, &err);

	for (uint64_t i = from; bad >= 0 && i < to; i++) {
		scoped_entry e = { 0 };

		entry_begin_at(&e, "test", 1794745300000000u + i);
		entry_num(&e, "number", i);
		bad = realm_append(&r, &e, false, NULL, &err);
	}
	if (bad >= 0)
		bad = realm_sign(&r, &log.key, &log.sec, true, &err);
	realm_close(&r);
	if (bad < 0)
		(void)fprintf(stderr, "check_tool: %s\n", err.what);
	return bad < 0;
}

int main(int argc, char **argv)
{
	struct writ_err err = { 0 };

	if (crypto_start(&err) < 0)
		return 2;
	if (argc == 1)
		return serve();
	if (argc == 5 && strcmp(argv[1], "grow") == 0)
		return grow(argv[2], number(sv_from(argv[3])), number(sv_from(argv[4])));
	(void)fprintf(stderr, "usage: check_tool | check_tool grow DIR FROM TO\n");
	return 2;
}
