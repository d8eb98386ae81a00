/*
 * test_attest - a session, its log and its statement; what happens when any byte changes
 */
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fcntl.h>

#include "attest/check.h"
#include "attest/prove.h"
#include "attest/statement.h"
#include "audit/pin.h"
#include "base/fd.h"
#include "keys/keys.h"
#include "signer/signer_priv.h"
#include "tlog_keys.h"

#define ORIGIN "writ/log/l-test"

/* Everything about one session. */
struct scene {
	struct arena a;
	char dir[32];
	struct key_pair log_key;
	struct note_key key;
	struct evp_pkey_st *k;
	struct attest_key pub;
	struct tlog_policy policy;
	struct buf lines, entries, bundle;
	struct attest_made made;
	struct attest_trust trust;
	struct attest_evidence ev;
	unsigned asked; /* signatures that were really checked */
	struct buf known;
};

static const char *at(struct scene *s, const char *name)
{
	return arena_fmt(&s->a, "%s/%s", s->dir, name);
}

/* The library is slow: what it said yes to once is not asked again. */
static int verify(void *ctx, const struct attest_key *key, struct sv bytes, struct sv sig,
		  struct writ_err *err)
{
	struct scene *s = ctx;
	scoped_buf b = BUF_INIT(1 << 20);
	int r;

	buf_sv(&b, bytes);
	buf_sv(&b, sig);
	if (s->known.n && sv_eq(buf_view(&b), buf_view(&s->known)))
		return 0;
	s->asked++;
	r = p256_verify(key, bytes, sig, err);
	if (r == 0) {
		s->known.n = 0;
		buf_sv(&s->known, buf_view(&b));
	}
	return r;
}

static void add_line(struct scene *s, struct tree_frontier *tree, struct entry *e)
{
	struct writ_err err = { 0 };
	struct digest leaf;

	if (entry_finish(e, &s->lines, &leaf, &err) < 0 || tree_append(tree, &leaf, &err) < 0)
		ok(false, "an entry: %s", err.what);
	buf_ch(&s->lines, '\n');
	entry_clear(e);
}

static struct tree_frontier write_lines(struct scene *s)
{
	struct tree_frontier tree = { 0 };
	struct entry e = { 0 };

	entry_begin_at(&e, "start", 1000);
	entry_str(&e, "session", SV("abcdefgh"));
	entry_str(&e, "workspace", SV("/home/me/secret"));
	entry_hide(&e);
	add_line(s, &tree, &e);
	for (uint64_t i = 0; i < 3; i++) {
		entry_begin_at(&e, "denied", 1001 + i);
		entry_str(&e, "object", SV("/etc/shadow"));
		entry_hide(&e);
		entry_num(&e, "pid", i);
		add_line(s, &tree, &e);
	}
	entry_begin_at(&e, "end", 2000);
	entry_num(&e, "exit", 7);
	add_line(s, &tree, &e);
	return tree;
}

static void append(struct realm *log, struct entry *e)
{
	struct writ_err err = { 0 };

	if (realm_append(log, e, false, NULL, &err) < 0)
		ok(false, "append: %s", err.what);
	entry_clear(e);
}

static void write_log(struct scene *s, const struct tree_frontier *tree, const char *custody,
		      const char *last)
{
	const struct digest d = crypto_sha256(SV("policy")), root = tree_frontier_root(tree);
	struct writ_err err = { 0 };
	struct attest_found found;
	struct entry e = { 0 };
	struct realm log;

	if (!ok(realm_open(&log, at(s, "log"), true, &err) == 0, "a log: %s", err.what))
		return;
	entry_begin_at(&e, "session.start", 900);
	entry_str(&e, "session", SV("otherone"));
	append(&log, &e);
	entry_begin_at(&e, "session.start", 1000);
	entry_str(&e, "session", SV("abcdefgh"));
	entry_str(&e, "custody", sv_from(custody));
	entry_digest(&e, "plan", &d);
	entry_digest(&e, "policy", &d);
	entry_str(&e, "tier", SV("A"));
	entry_str(&e, "adapter", SV("host"));
	entry_str(&e, "version", SV("0.1.0"));
	append(&log, &e);
	entry_begin_at(&e, last, 2001);
	entry_str(&e, "session", SV("abcdefgh"));
	entry_num(&e, "entries", tree->size);
	entry_digest(&e, "root", &root);
	entry_num(&e, "exit", 7);
	append(&log, &e);
	ok(attest_find(&log, SV("nothere1"), &found, &err) == 0 && !found.started && !found.ended,
	   "a session that is not there is not found");
	ok(attest_find(&log, SV("abcdefgh"), &found, &err) == 0 && found.started && found.ended &&
		   found.start == 1 && found.end == 2,
	   "one that is there is");
	ok(attest_prove(&log, &found, &s->made, &err) < 0, "nothing is signed yet: no proof");
	ok(realm_sign(&log, &s->key, &s->log_key.sec, true, &err) == 0 &&
		   attest_prove(&log, &found, &s->made, &err) == 0,
	   "it is proven: %s", err.what);
	realm_close(&log);
}

static void sign(struct scene *s, struct sv payload)
{
	scoped_buf bytes = BUF_INIT(1 << 20), sig = BUF_INIT(ATTEST_SIG_MAX);
	struct writ_err err = { 0 };
	struct bundle u = { .key = s->pub.id, .payload = payload };

	bundle_signed(payload, &bytes);
	if (p256_sign(s->k, buf_view(&bytes), &sig, &err) < 0)
		ok(false, "sign: %s", err.what);
	u.sig = buf_view(&sig);
	s->bundle.n = 0;
	if (bundle_print(&u, &s->bundle, &err) < 0)
		ok(false, "bundle: %s", err.what);
	s->ev.bundle.bytes = buf_view(&s->bundle);
}

static void scene_init(struct scene *s, const char *custody, const char *last)
{
	struct writ_err err = { 0 };
	struct tree_frontier tree;
	int keys;

	*s = (struct scene){ .a = ARENA_INIT(256 << 20),
			     .dir = "/tmp/test-attest-XXXXXX",
			     .lines = BUF_INIT(1 << 20),
			     .entries = BUF_INIT(1 << 20),
			     .bundle = BUF_INIT(1 << 20),
			     .known = BUF_INIT(1 << 20) };
	attest_made_init(&s->made);
	if (!mkdtemp(s->dir) || mkdir(at(s, "keys"), 0700) < 0)
		exit(1);
	ok(keys_load(at(s, "keys"), KEY_LOG, true, &s->log_key, &err) == 0 &&
		   note_key_init(&s->key, NOTE_KEY_ED25519, SV(ORIGIN), &s->log_key.pub, &err) == 0,
	   "a key of the log");
	keys = open(at(s, "keys"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ok(p256_load(keys, &s->k, &err) == 0 && p256_public(s->k, &s->pub, &err) == 0,
	   "a key for statements: %s", err.what);
	close(keys);
	s->policy = tlog_k_of(&s->key, NULL, 0, 0);
	tree = write_lines(s);
	write_log(s, &tree, custody, last);
	ok(attest_public_entries(buf_view(&s->lines), &s->entries, &err) == 0, "public forms");
	s->trust = (struct attest_trust){
		.policy = &s->policy, .keys = &s->pub, .keys_n = 1, .verify = verify, .ctx = s
	};
	s->ev = (struct attest_evidence){ .entries = { "entries.jsonl", buf_view(&s->entries) },
					  .start = { "start.tlog-proof", buf_view(&s->made.start) },
					  .end = { "end.tlog-proof", buf_view(&s->made.end) } };
}

static void scene_clear(struct scene *s)
{
	const char *rm = arena_fmt(&s->a, "rm -r %s", s->dir);

	ok(system(rm) == 0, "it is removed");
	attest_made_clear(&s->made);
	buf_clear(&s->lines);
	buf_clear(&s->entries);
	buf_clear(&s->bundle);
	buf_clear(&s->known);
	p256_free(&s->k);
	arena_clear(&s->a);
}

static void make(struct scene *s)
{
	struct writ_err err = { 0 };

	ok(attest_make(&s->a, buf_view(&s->entries), &s->made, &err) == 0, "a statement: %s",
	   err.what);
	s->ev.manifest = (struct attest_file){ "session.json", buf_view(&s->made.manifest) };
	s->ev.bundle.name = "session.sigstore.json";
	sign(s, buf_view(&s->made.payload));
}

static enum attest_answer check(struct scene *s, struct writ_err *err)
{
	scoped_arena a = ARENA_INIT(64 << 20);
	struct attest_checked c;

	*err = (struct writ_err){ 0 };
	return attest_check(&a, &s->ev, &s->trust, &c, err);
}

/* Every byte of every file, one bit of it. */
static void flip(struct scene *s, struct attest_file *f)
{
	const struct sv whole = f->bytes;
	char *copy = arena_alloc(&s->a, 1, whole.n + 1);
	size_t passed = 0, silent = 0, n = 0;
	struct writ_err err;

	memcpy(copy, whole.p, whole.n);
	f->bytes = (struct sv){ copy, whole.n };
	for (size_t i = 0; i < whole.n; i++, n++) {
		copy[i] = (char)(copy[i] ^ 1 << (i % 8));
		passed += check(s, &err) >= ATTEST_CUT;
		silent += !strstr(err.what, f->name);
		copy[i] = whole.p[i];
	}
	/* Shorter, longer, empty. */
	f->bytes.n = whole.n - 1;
	passed += check(s, &err) >= ATTEST_CUT;
	f->bytes.n = 0;
	passed += check(s, &err) >= ATTEST_CUT;
	copy[whole.n] = '\n';
	f->bytes.n = whole.n + 1;
	passed += check(s, &err) >= ATTEST_CUT;
	ok(passed == 0, "%s: %zu of %zu changes were not noticed", f->name, passed, n + 3);
	ok(silent == 0, "%s: %zu times it was not said where", f->name, silent);
	f->bytes = whole;
}

static void test_changes(struct scene *s)
{
	struct writ_err err;

	flip(s, &s->ev.entries);
	flip(s, &s->ev.start);
	flip(s, &s->ev.end);
	flip(s, &s->ev.manifest);
	flip(s, &s->ev.bundle);
	ok(check(s, &err) == ATTEST_YES, "and whole again it holds: %s", err.what);
	ok(s->asked > 60, "signatures were checked, not remembered: %u", s->asked);
}

/* Whoever holds the right key says something else. */
static void test_other_statement(struct scene *s)
{
	struct statement whole, t;
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(1 << 20);
	size_t caught = 0;

	ok(statement_parse(&s->a, buf_view(&s->made.payload), &whole, &err) == 0, "it is read: %s",
	   err.what);
	for (unsigned i = 0; i < 12; i++) {
		t = whole;
		switch (i) {
		case 0:
			t.of.id = SV("otherone");
			break;
		case 1:
			t.of.realm = SV("l-other");
			break;
		case 2:
			t.of.custody = CUSTODY_OTHER_UID;
			break;
		case 3:
			t.of.started++;
			break;
		case 4:
			t.of.exit = 0;
			break;
		case 5:
			t.of.entries--;
			break;
		case 6:
			t.of.root.b[0] ^= 1;
			break;
		case 7:
			t.log.start--;
			break;
		case 8:
			t.log.size++;
			break;
		case 9:
			t.log.root.b[31] ^= 1;
			break;
		case 10:
			t.manifest.b[3] ^= 1;
			break;
		default:
			t.entries.b[3] ^= 1;
		}
		b.n = 0;
		if (statement_print(&t, &b, &err) < 0)
			ok(false, "print: %s", err.what);
		sign(s, buf_view(&b));
		if (check(s, &err) == ATTEST_NO)
			caught++;
		else
			tap_note("statement %u: %s", i, err.what);
	}
	ok(caught == 12, "%zu of 12 other statements, well signed, do not fit", caught);
	sign(s, buf_view(&s->made.payload));
}

static void test_keys(struct scene *s)
{
	const struct attest_key *keys = s->trust.keys;
	const struct tlog_policy *policy = s->trust.policy;
	struct writ_err err;
	struct note_key wrong = s->key;
	struct sign_secret sec;
	struct tlog_policy other;

	s->trust.keys_n = 0;
	ok(check(s, &err) == ATTEST_UNPINNED && strstr(err.what, "not pinned"),
	   "without a key of ours: %s", err.what);
	s->trust.keys_n = 1;
	s->trust.keys = keys;
	s->trust.policy = NULL;
	ok(check(s, &err) == ATTEST_UNPINNED, "without a log of ours: %s", err.what);
	sign_keypair((const uint8_t[32]){ 9 }, &wrong.pub, &sec);
	ok(note_key_init(&wrong, NOTE_KEY_ED25519, SV(ORIGIN), &wrong.pub, &err) == 0,
	   "another log");
	other = tlog_k_of(&wrong, NULL, 0, 0);
	s->trust.policy = &other;
	ok(check(s, &err) != ATTEST_YES, "with another log of that name: %s", err.what);
	s->trust.policy = policy;
	ok(check(s, &err) == ATTEST_YES, "with ours it holds");
}

static void test_facts(struct scene *s)
{
	struct attest_checked c;
	struct writ_err err = { 0 };

	ok(attest_check(&s->a, &s->ev, &s->trust, &c, &err) == ATTEST_YES, "it holds: %s",
	   err.what);
	is_sv(c.facts.of.id, SV("abcdefgh"), "its id");
	is_sv(c.facts.of.realm, SV("l-test"), "its realm");
	ok(c.facts.of.exit == 7 && c.facts.of.entries == 5 && c.facts.of.started == 1000 &&
		   c.facts.of.finished == 2001,
	   "its times and its end");
	ok(c.log.start == 1 && c.log.end == 2 && c.log.size == 3, "where the log has it");
	ok(c.judgement.entries == 5 && c.judgement.started && c.judgement.ended,
	   "all entries were judged");
	ok(memmem(s->entries.p, s->entries.n, "shadow", 6) == NULL &&
		   memmem(s->lines.p, s->lines.n, "shadow", 6) != NULL,
	   "what is private is not in what others get");
	s->ev.manifest.bytes = s->ev.bundle.bytes = SV("");
	ok(attest_check(&s->a, &s->ev, &s->trust, &c, &err) == ATTEST_NO,
	   "a statement that is empty is not the same as none: %s", err.what);
	s->ev.manifest.name = s->ev.bundle.name = NULL;
	s->ev.entries.bytes = buf_view(&s->lines);
	s->ev.lines = true;
	ok(attest_check(&s->a, &s->ev, &s->trust, &c, &err) == ATTEST_YES,
	   "without a statement, by the session's own file: %s", err.what);
	s->ev.lines = false;
	ok(attest_check(&s->a, &s->ev, &s->trust, &c, &err) == ATTEST_NO,
	   "which is not what others may be given: %s", err.what);
	s->ev.entries.bytes = buf_view(&s->entries);
	s->ev.manifest = (struct attest_file){ "session.json", buf_view(&s->made.manifest) };
	s->ev.bundle = (struct attest_file){ "session.sigstore.json", buf_view(&s->bundle) };
}

static void test_lines(struct scene *s)
{
	const struct sv whole = s->ev.entries.bytes;
	const size_t first = sv_find(whole, '\n') + 1;
	scoped_buf b = BUF_INIT(1 << 20);
	struct writ_err err;

	s->ev.entries.bytes = sv_skip(whole, first);
	ok(check(s, &err) == ATTEST_NO && strstr(err.what, "line 1"), "the first line is gone: %s",
	   err.what);
	s->ev.entries.bytes = sv_sub(whole, 0, sv_rfind(sv_sub(whole, 0, whole.n - 1), '\n') + 1);
	ok(check(s, &err) == ATTEST_NO, "the last line is gone: %s", err.what);
	buf_sv(&b, whole);
	buf_sv(&b, sv_sub(whole, 0, first));
	s->ev.entries.bytes = buf_view(&b);
	ok(check(s, &err) == ATTEST_NO, "a line more: %s", err.what);
	s->ev.entries.bytes = whole;
}

static void test_cut(void)
{
	struct scene s;
	struct attest_checked c;
	struct writ_err err = { 0 };

	scene_init(&s, "other-uid", "session.cut");
	s.ev.entries.bytes = buf_view(&s.lines);
	s.ev.lines = true;
	ok(attest_check(&s.a, &s.ev, &s.trust, &c, &err) == ATTEST_NO,
	   "whoever holds a key cannot say another does: %s", err.what);
	s.trust.signer = &s.key;
	ok(attest_check(&s.a, &s.ev, &s.trust, &c, &err) == ATTEST_CUT && !c.facts.whole &&
		   c.custody_known,
	   "a session that was cut off: %s", err.what);
	ok(attest_make(&s.a, buf_view(&s.entries), &s.made, &err) < 0,
	   "there is no statement about it: %s", err.what);
	scene_clear(&s);
}

static void test_forms(struct scene *s)
{
	static const char *const bad[] = {
		"",	     "{}",
		"[]",	     "null",
		"{\"v\":1}", "{\"mediaType\":\"application/vnd.dev.sigstore.bundle.v0.3+json\"}",
	};
	struct writ_err err = { 0 };
	struct attest_facts f;
	struct statement t;
	struct bundle u;
	scoped_buf b = BUF_INIT(1 << 20);
	size_t refused = 0;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refused += manifest_parse(&s->a, sv_from(bad[i]), &f, &err) < 0 &&
			   statement_parse(&s->a, sv_from(bad[i]), &t, &err) < 0 &&
			   bundle_parse(&s->a, sv_from(bad[i]), &u, &err) < 0;
	ok(refused == sizeof(bad) / sizeof(bad[0]), "what is no form of ours is refused");
	ok(manifest_parse(&s->a, buf_view(&s->made.manifest), &f, &err) == 0 &&
		   manifest_print(&f, &b, &err) == 0 &&
		   sv_eq(buf_view(&b), buf_view(&s->made.manifest)),
	   "a manifest comes out as it went in");
	b.n = 0;
	ok(statement_parse(&s->a, buf_view(&s->made.payload), &t, &err) == 0 &&
		   statement_print(&t, &b, &err) == 0 &&
		   sv_eq(buf_view(&b), buf_view(&s->made.payload)),
	   "and so does a statement");
	b.n = 0;
	ok(bundle_parse(&s->a, buf_view(&s->bundle), &u, &err) == 0 &&
		   bundle_print(&u, &b, &err) == 0 && sv_eq(buf_view(&b), buf_view(&s->bundle)),
	   "and a bundle");
	ok(!attest_is_word(SV("../x")) && !attest_is_word(SV("a/b")) && !attest_is_word(SV("")) &&
		   !attest_is_word(SV(".")) && attest_is_word(SV("l-abc")),
	   "no word is a path");
}

static void test_pins(struct scene *s)
{
	const char *log = at(s, "conf/log.policy"), *pem = at(s, "conf/attest.pub.pem");
	struct attest_key keys[ATTEST_KEYS_MAX], other = s->pub;
	struct tlog_policy p;
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(1 << 20);
	size_t n = 0;

	ok(pins_add_log(log, &s->key, &err) == 0 && pins_add_log(log, &s->key, &err) == 0,
	   "a pin: %s", err.what);
	ok(fd_read_file(log, &b, &err) == 0 && tlog_policy_parse(buf_view(&b), &p, &err) == 0 &&
		   p.logs_n == 1 && p.quorum == TLOG_QUORUM_NONE,
	   "it is a policy with one log: %s", err.what);
	other.der[50] ^= 1;
	other.id = crypto_sha256((struct sv){ (const char *)other.der, ATTEST_SPKI });
	ok(attest_pin_key(pem, &s->pub, &err) == 0 && attest_pin_key(pem, &s->pub, &err) == 0 &&
		   attest_pin_key(pem, &other, &err) == 0,
	   "keys are pinned: %s", err.what);
	b.n = 0;
	ok(fd_read_file(pem, &b, &err) == 0 &&
		   attest_keys_parse(buf_view(&b), keys, &n, &err) == 0 && n == 2 &&
		   digest_eq(&keys[0].id, &s->pub.id) && digest_eq(&keys[1].id, &other.id),
	   "once each: %zu %s", n, err.what);
}

int main(void)
{
	struct writ_err err = { 0 };
	struct scene s;

	if (crypto_start(&err) < 0 || p256_start(&err) < 0)
		return 1;
	scene_init(&s, "same-uid", "session.end");
	make(&s);
	test_facts(&s);
	test_forms(&s);
	test_lines(&s);
	test_keys(&s);
	test_other_statement(&s);
	test_changes(&s);
	test_pins(&s);
	scene_clear(&s);
	test_cut();
	return tap_done();
}
