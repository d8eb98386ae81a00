/*
 * tlog_tool - a log in files, for comparison with other implementations
 *
 *     tlog_tool make SIZE DIR           writes a log whose entry i is "entry i"
 *     tlog_tool check PROOF ENTRY POLICY    prints the verdict on three files
 *
 * DIR gets the tiles and entry bundles, written as a log does that grew in steps,
 * checkpoint (with two cosignatures), vkeys, and proofs: lines of "inclusion INDEX" or
 * "consistency OLD", then hashes in hexadecimal.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "tlog/proof.h"
#include "tlog/tile.h"
#include "tlog_keys.h"
#include "tree_levels.h"

static struct digest *level[TREE_LEVELS];

static void check(int r, const struct writ_err *err)
{
	if (r >= 0)
		return;
	(void)fprintf(stderr, "tlog_tool: %s\n", err->what);
	exit(1);
}

static void put_file(const char *dir, struct sv name, struct sv bytes)
{
	scoped_buf path = BUF_INIT(4096);
	struct writ_err err = { 0 };
	char *slash;

	buf_fmt(&path, "%s/" SV_FMT, dir, SV_ARG(name));
	check(buf_check(&path, &err), &err);
	slash = strrchr(path.p, '/');
	*slash = 0;
	check(fd_make_dirs(path.p, &err), &err);
	*slash = '/';
	check(fd_replace_file(path.p, bytes, 0644, &err), &err);
}

static struct sv entry(uint64_t i, char text[static 32])
{
	(void)snprintf(text, 32, "entry %" PRIu64, i);
	return sv_from(text);
}

static void put_tiles(const char *dir, uint64_t from, uint64_t to)
{
	struct tree_levels all = tree_levels_of((const struct digest *const *)level, to);
	struct tile_growth g = { .old_size = from, .size = to };
	struct writ_err err = { 0 };
	struct tile t;

	while (tile_growth_next(&g, &t)) {
		scoped_buf name = BUF_INIT(TILE_NAME_MAX), b = BUF_INIT(BUNDLE_BYTES_MAX);
		char text[32];

		tile_name_print(&t, &name);
		for (unsigned i = 0; t.entries && i < t.width; i++)
			check(tlog_bundle_add(&b, entry(t.index * TILE_WIDTH + i, text), &err),
			      &err);
		if (!t.entries)
			check(tile_encode(&all.nodes, &t, &b, &err), &err);
		put_file(dir, buf_view(&name), buf_view(&b));
	}
}

static void put_proof(const char *what, uint64_t n, const struct tree_proof *p, struct buf *b)
{
	buf_fmt(b, "%s %" PRIu64, what, n);
	for (size_t i = 0; i < p->n; i++) {
		buf_ch(b, ' ');
		digest_hex(&p->hash[i], b);
	}
	buf_ch(b, '\n');
}

static void put_proofs(const char *dir, uint64_t size)
{
	struct tree_levels all = tree_levels_of((const struct digest *const *)level, size);
	scoped_buf b = BUF_INIT(16 << 20);
	struct writ_err err = { 0 };
	struct tree_proof p;

	for (uint64_t i = 0; i < size; i += i < 3 || i + 3 >= size ? 1 : size / 50 + 1) {
		check(tree_prove_inclusion(&all.nodes, i, size, &p, &err), &err);
		put_proof("inclusion", i, &p, &b);
		check(tree_prove_consistency(&all.nodes, i + 1, size, &p, &err), &err);
		put_proof("consistency", i + 1, &p, &b);
	}
	check(buf_check(&b, &err), &err);
	put_file(dir, SV("proofs"), buf_view(&b));
}

static void put_checkpoint(const char *dir, uint64_t size, const struct digest *root)
{
	struct tlog_pair log = tlog_pair(NOTE_KEY_ED25519, TLOG_TEST_LOG);
	struct tlog_pair wit[] = { tlog_pair(NOTE_KEY_COSIGNATURE, TLOG_TEST_WITNESS "a"),
				   tlog_pair(NOTE_KEY_COSIGNATURE, TLOG_TEST_WITNESS "b") };
	const struct checkpoint c = { log.key.name, size, *root };
	scoped_buf note = BUF_INIT(NOTE_MAX), text = BUF_INIT(NOTE_MAX), keys = BUF_INIT(4096);
	struct writ_err err = { 0 };

	check(checkpoint_print(&c, &text, &err), &err);
	check(checkpoint_sign(&c, &log.key, &log.sec, &note, &err), &err);
	note_key_print(&log.key, &keys);
	for (size_t i = 0; i < ARRAY_LEN(wit); i++) {
		check(cosign_sign(&wit[i].key, &wit[i].sec, 1794745401, buf_view(&text), &note,
				  &err),
		      &err);
		buf_ch(&keys, '\n');
		note_key_print(&wit[i].key, &keys);
	}
	buf_ch(&keys, '\n');
	put_file(dir, SV("checkpoint"), buf_view(&note));
	put_file(dir, SV("vkeys"), buf_view(&keys));
}

static int make(uint64_t size, const char *dir)
{
	struct tree_frontier f = { 0 };
	struct writ_err err = { 0 };
	struct tree_grown g;
	struct digest root;
	uint64_t written = 0;

	for (unsigned l = 0; size >> l; l++) {
		level[l] = calloc((size >> l) + 1, sizeof(struct digest));
		if (!level[l])
			return 1;
	}
	for (uint64_t i = 0; i < size; i++) {
		char text[32];
		const struct digest leaf = tree_leaf(entry(i, text));

		check(tree_grow(&f, &leaf, &g, &err), &err);
		for (unsigned l = 0; l < g.n; l++)
			level[l][i >> l] = g.node[l];
		if (i % 7777 == 7776) {
			put_tiles(dir, written, i + 1);
			written = i + 1;
		}
	}
	put_tiles(dir, written, size);
	put_proofs(dir, size);
	root = tree_frontier_root(&f);
	put_checkpoint(dir, size, &root);
	for (unsigned l = 0; l < TREE_LEVELS; l++)
		free(level[l]);
	return 0;
}

static int check_files(char **names)
{
	struct buf b[3] = { BUF_INIT(PROOF_MAX), BUF_INIT(1 << 16), BUF_INIT(TLOG_POLICY_MAX) };
	struct writ_err err = { 0 };
	static struct tlog_policy policy;
	struct proof_facts facts;
	enum proof_verdict v;

	for (unsigned i = 0; i < 3; i++)
		check(fd_read_file(names[i], &b[i], &err), &err);
	check(tlog_policy_parse(buf_view(&b[2]), &policy, &err), &err);
	v = proof_verify(buf_view(&b[0]), buf_view(&b[1]), &policy, &facts, &err);
	(void)printf("%s\n", proof_verdict_name(v));
	for (unsigned i = 0; i < 3; i++)
		buf_clear(&b[i]);
	return v == PROOF_HOLDS ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct writ_err err = { 0 };
	uint64_t size;

	check(crypto_start(&err), &err);
	if (argc == 4 && strcmp(argv[1], "make") == 0 &&
	    sv_to_u64(sv_from(argv[2]), 1 << 24, &size))
		return make(size, argv[3]);
	if (argc == 5 && strcmp(argv[1], "check") == 0)
		return check_files(argv + 2);
	(void)fprintf(stderr, "usage: tlog_tool make SIZE DIR | check PROOF ENTRY POLICY\n");
	return 2;
}
