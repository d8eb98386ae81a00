#include "tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/logkey.h"
#include "audit/pin.h"
#include "audit/slog.h"
#include "audit/verify.h"
#include "base/fd.h"

/*
 * A realm with sessions, made once. Each case works on a copy, changes one thing from
 * outside, and looks whether verification says so, and where.
 */

enum { SESSIONS = 136, ROTATED_AT = 60, CUT = 7, GONE = 9 };

static char top[] = "/dev/shm/test-verify-XXXXXX";
static char state[128], config[128];
static struct log_place place;
static struct sv only; /* files of other sessions are not read */

static void sh(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void sh(const char *fmt, ...)
{
	char text[512];
	va_list ap;
	int status;
	pid_t pid;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pid = fork();
	if (pid == 0) {
		(void)!chdir(top);
		execl("/bin/sh", "sh", "-c", text, (char *)NULL);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) < 0 || status)
		ok(false, "sh: %s", text);
}

static void id_of(unsigned i, char ret[static 9])
{
	(void)snprintf(ret, 9, "s%07u", i);
}

static void append(struct realm *log, const char *event, const char *id, const struct slog *l)
{
	struct digest root = tree_frontier_root(&l->tree);
	struct writ_err err = { 0 };
	scoped_entry e = { 0 };

	entry_begin_at(&e, event, 1000000);
	entry_str(&e, "session", sv_from(id));
	if (strcmp(event, "session.start") != 0) {
		entry_num(&e, "entries", l->tree.size);
		entry_digest(&e, "root", &root);
	}
	if (realm_append(log, &e, false, NULL, &err) < 0)
		ok(false, "append: %s", err.what);
}

static void line(struct slog *l, const char *event, const char *object)
{
	struct writ_err err = { 0 };
	scoped_entry e = { 0 };

	entry_begin_at(&e, event, 1000000);
	entry_str(&e, "object", sv_from(object));
	entry_hide(&e);
	if (slog_append(l, &e, &err) < 0)
		ok(false, "line: %s", err.what);
}

static void session(struct realm *log, unsigned i)
{
	struct writ_err err = { 0 };
	struct slog l = SLOG_INIT;
	char path[256], id[9];

	id_of(i, id);
	(void)snprintf(path, sizeof(path), "%s/sessions/%s.jsonl", state, id);
	if (slog_open(&l, path, false, &err) < 0)
		ok(false, "slog: %s", err.what);
	line(&l, "start", "a");
	append(log, "session.start", id, &l);
	line(&l, "denied", "/etc/shadow");
	line(&l, "exec", "sh");
	if (i == CUT) {
		slog_close(&l);
		return;
	}
	line(&l, "end", "z");
	append(log, "session.end", id, &l);
	slog_close(&l);
	if (i == GONE)
		(void)unlink(path);
}

static void make(void)
{
	struct writ_err err = { 0 };
	char path[256];
	struct realm log;
	uint64_t index;

	(void)snprintf(path, sizeof(path), "%s/log", state);
	for (unsigned i = 0; i < SESSIONS; i++) {
		if (i == ROTATED_AT && audit_log_rotate(&place, &index, &err) < 0)
			ok(false, "rotate: %s", err.what);
		if (realm_open(&log, path, true, &err) < 0) {
			ok(false, "open: %s", err.what);
			return;
		}
		session(&log, i);
		if (audit_log_sign(&place, &log, i == 100, &err) < 0)
			ok(false, "sign: %s", err.what);
		realm_close(&log);
	}
}

/* Failures; @where is set to the place of the first, or empty. */
static size_t look(char where[static 128], struct verify_report *ret)
{
	static struct arena a = ARENA_INIT(64 << 20);
	static struct verify_report v;
	struct pins pins = PINS_INIT;
	char log[256], sessions[256], policy[256], origin[LOG_ORIGIN_MAX];
	struct verify_options opt = { .log = log, .sessions = sessions };
	struct writ_err err = { 0 };
	int r;

	arena_clear(&a);
	a = (struct arena)ARENA_INIT(64 << 20);
	(void)snprintf(log, sizeof(log), "%s/log", state);
	(void)snprintf(sessions, sizeof(sessions), "%s/sessions", state);
	(void)snprintf(policy, sizeof(policy), "%s/log.policy", config);
	audit_log_origin(place.realm, origin);
	opt.origin = sv_from(origin);
	opt.only = only;
	r = pins_read(policy, &pins, &err);
	opt.pins = &pins.policy;
	if (r == 0)
		r = realm_verify(&opt, &a, &v, &err);
	if (r < 0)
		ok(false, "verify: %s", err.what);
	pins_clear(&pins);
	(void)snprintf(where, 128, "%s", v.failures.n ? v.failures.v[0].place : "");
	for (size_t i = 0; i < v.failures.n && i < 3; i++)
		tap_note("%s: %s", v.failures.v[i].place, v.failures.v[i].what);
	if (ret)
		*ret = v;
	return v.failures_n;
}

static void restore(void)
{
	sh("rm -rf state config && cp -a kept/state kept/config .");
}

static void test_whole(void)
{
	struct verify_report v;
	char where[128];
	size_t n[VERIFY_BROKEN + 1] = { 0 };

	ok(look(where, &v) == 0, "a realm that nobody touched verifies: %s", where);
	ok(v.pinned && v.keys == 2, "its keys are two, and pinned");
	ok(v.size == 2 * SESSIONS && v.covered == v.size, "all is signed");
	for (size_t i = 0; i < v.sessions.n; i++)
		n[v.sessions.v[i].state]++;
	ok(n[VERIFY_SEALED] == SESSIONS - 2 && n[VERIFY_CUT] == 1 && n[VERIFY_GONE] == 1,
	   "one was cut off, one is gone, the others are sealed");
}

static void test_open(void)
{
	struct writ_err err = { 0 };
	struct slog l = SLOG_INIT;
	struct verify_report v;
	char where[128], path[256];
	const struct verify_session *s;

	(void)snprintf(path, sizeof(path), "%s/sessions/running1.jsonl", state);
	ok(slog_open(&l, path, false, &err) == 0, "a session runs");
	line(&l, "start", "a");
	ok(look(where, &v) == 0, "nothing is wrong with that");
	s = verify_find(&v, SV("running1"));
	ok(s && s->state == VERIFY_OPEN, "it is open");
	slog_close(&l);
	ok(look(where, &v) == 0, "nor with one that died before the log knew it");
	s = verify_find(&v, SV("running1"));
	ok(s && s->state == VERIFY_UNKNOWN, "which is unknown");
	restore();
}

/* What a hostile hand may do to a file, and the place that must be named. */
static void test_cases(void)
{
	static const struct {
		const char *what, *command, *place;
	} cases[] = {
		{ "a byte of a record", "sed -i '2s/denied/denief/' state/sessions/s0000001.jsonl",
		  "sessions/s0000001.jsonl" },
		{ "a private value in it",
		  "sed -i 's/shadow/shadox/' state/sessions/s0000001.jsonl",
		  "sessions/s0000001.jsonl" },
		{ "a line dropped", "sed -i 2d state/sessions/s0000001.jsonl",
		  "sessions/s0000001.jsonl" },
		{ "its last line dropped", "sed -i '$d' state/sessions/s0000001.jsonl",
		  "sessions/s0000001.jsonl" },
		{ "a line twice", "sed -i 2p state/sessions/s0000001.jsonl",
		  "sessions/s0000001.jsonl" },
		{ "two swapped", "sed -i '2{h;d};3{G}' state/sessions/s0000001.jsonl",
		  "sessions/s0000001.jsonl" },
		{ "another spelling", "sed -i '2s/,/, /' state/sessions/s0000001.jsonl",
		  "sessions/s0000001.jsonl" },
		{ "bytes behind the end", "printf x >> state/sessions/s0000001.jsonl",
		  "sessions/s0000001.jsonl" },
		{ "the record of another",
		  "cp state/sessions/s0000002.jsonl state/sessions/s0000001.jsonl",
		  "sessions/s0000001.jsonl" },
		{ "a line of the one that was cut, not as lines are",
		  "sed -i '2s/:/: /' state/sessions/s0000007.jsonl", "sessions/s0000007.jsonl" },
		{ "a byte of wal/", "sed -i '2s/session/sessioN/' state/log/wal/*", "latest" },
		{ "a line of wal/ dropped", "sed -i 2d state/log/wal/*", "latest" },
		{ "the end of wal/ cut off", "sed -i '$d' state/log/wal/*", "latest" },
		{ "two lines of wal/ swapped", "sed -i '2{h;d};3{G}' state/log/wal/*", "latest" },
		{ "wal/ removed", "rm state/log/wal/*", "wal" },
		{ "a bundle", "sed -i 's/s0000003/s0000004/' state/log/tile/entries/000", "log" },
		{ "a bundle cut off", "truncate -s -7 state/log/tile/entries/000",
		  "tile/entries/000" },
		{ "a bundle removed", "rm state/log/tile/entries/000", "tile/entries/000" },
		{ "a tile",
		  "printf x | dd of=state/log/tile/0/000 bs=1 seek=99 conv=notrunc 2>/dev/null",
		  "tile/entries/000" },
		{ "a tile removed", "rm state/log/tile/0/000", "tile/0/000" },
		{ "an upper tile",
		  "printf x | dd of=state/log/tile/1/000.p/1 bs=1 seek=20 conv=notrunc 2>/dev/null",
		  "tile/1/000.p/1" },
		{ "the checkpoint's size", "sed -i '2s/.*/17/' state/log/checkpoint",
		  "checkpoint" },
		{ "the checkpoint's signature",
		  "sed -i '5s/A/B/' state/log/checkpoint; sed -i '5s/e/f/' state/log/checkpoint",
		  "checkpoint" },
		{ "latest", "sed -i '3s/.*/17/' state/log/latest", "latest" },
		{ "an older latest, and the end cut off",
		  "sed -i '1s/.*/00000000-0000-0000-0000-000000000000/' state/log/latest; sed -i "
		  "'$d' state/log/wal/*",
		  "latest" },
		{ "nothing signed", "rm state/log/latest state/log/checkpoint state/log/rotated/*",
		  "rotated/0000000000000078" },
		{ "the change of keys not signed", "sed -i '5d' state/log/rotated/*",
		  "rotated/0000000000000078" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct verify_report v;
		char where[128];
		size_t n;
		bool named = false;

		sh("%s", cases[i].command);
		n = look(where, &v);
		for (size_t j = 0; j < v.failures.n; j++)
			named |= strcmp(v.failures.v[j].place, cases[i].place) == 0;
		ok(n > 0 && named, "%s: does not verify, at %s", cases[i].what, cases[i].place);
		restore();
	}
}

/* Which keys count, and which do not. */
static void test_pinned(void)
{
	const uint8_t seed[32] = { 9 };
	struct writ_err err = { 0 };
	struct verify_report v;
	struct sign_public pub;
	struct sign_secret sec;
	struct note_key key;
	char where[128], path[256];

	(void)snprintf(path, sizeof(path), "%s/log.policy", config);
	sh("printf 'quorum none\n' > config/log.policy");
	(void)look(where, &v);
	ok(!v.pinned, "no key is pinned: that is said");
	restore();
	sh("sed -i '$d' config/log.policy");
	ok(look(where, &v) == 0 && v.pinned, "the first key alone leads to the second");
	restore();
	sh("sed -i '0,/^log/{/^log/d}' config/log.policy");
	ok(look(where, &v) == 0 && v.pinned, "the second alone vouches for what was before");
	restore();
	sign_keypair(seed, &pub, &sec);
	ok(note_key_init(&key, NOTE_KEY_ED25519, SV("writ/log/l-test"), &pub, &err) == 0 &&
		   pins_add_log(path, &key, &err) == 0,
	   "a key that the log never had is pinned");
	ok(look(where, &v) > 0, "that does not verify");
	sh("printf 'quorum none\n' > config/log.policy");
	ok(pins_add_log(path, &key, &err) == 0 && look(where, &v) > 0 && !v.pinned,
	   "nor does it with that key alone");
	restore();
	/* Somebody who has no key makes everything anew with one of his own. */
	sh("rm -rf state/keys state/log state/sessions; mkdir state/sessions");
	place.config = SV("");
	make();
	place.config = sv_from(config);
	ok(look(where, &v) > 0, "another history with another key does not verify");
	restore();
}

static unsigned flips, missed;

static int flip(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)at;
	/* What `latest` was before is no part of the log: nobody reads it. */
	if (type != FTW_F || strstr(path, "/lock") || strstr(path, "/latest.new") ||
	    st->st_size == 0)
		return 0;
	/* In which boot `latest` was made is not signed, and may change by itself. */
	const uint64_t from = strstr(path, "/latest") ? 37 : 0;

	for (int i = 0; i < 6; i++) {
		const uint64_t some = (uint64_t)i * 2654435761u + 17u * flips;
		const off_t where = (off_t)(from + some % ((uint64_t)st->st_size - from));
		scoped_fd fd = open(path, O_RDWR | O_CLOEXEC);
		char first[128];
		uint8_t c, d;

		if (fd < 0 || pread(fd, &c, 1, where) != 1)
			return 1;
		d = (uint8_t)(c ^ (1u << (flips % 8)));
		(void)!pwrite(fd, &d, 1, where);
		flips++;
		if (look(first, NULL) == 0) {
			missed++;
			tap_note("not noticed: %s at %lld", path, (long long)where);
		}
		(void)!pwrite(fd, &c, 1, where);
	}
	return 0;
}

/* Single bits of every file of the log. */
static void test_flips(void)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/log", state);
	only = SV("s0000001");
	(void)nftw(path, flip, 16, FTW_PHYS);
	only = SV("");
	ok(flips > 30 && missed == 0, "each of %u bits that were changed is noticed", flips);
}

/* An older copy of the whole log, from before the key was changed. */
static void test_rollback(void)
{
	struct verify_report v;
	char where[128];
	uint64_t index;
	struct writ_err err = { 0 };

	sh("cp -a state old");
	ok(audit_log_rotate(&place, &index, &err) == 0, "the key changes: %s", err.what);
	ok(look(where, &v) == 0 && v.keys == 3, "it verifies with three keys");
	sh("rm -rf state; mv old state");
	ok(look(where, &v) > 0, "a copy of before the change does not");
	restore();
}

/* A change of keys that was cut off at each of its steps. */
static void test_mend(void)
{
	struct writ_err err = { 0 };
	struct key_pair pair;
	char dir[256], path[256], where[128];
	struct realm log;
	uint64_t index;

	(void)snprintf(dir, sizeof(dir), "%s/keys", state);
	(void)snprintf(path, sizeof(path), "%s/log", state);
	ok(keys_next_make(dir, KEY_LOG, &pair, &err) == 0, "a next key, and no more");
	ok(realm_open(&log, path, true, &err) == 0 &&
		   audit_log_sign(&place, &log, false, &err) == 0,
	   "signing goes on");
	realm_close(&log);
	ok(look(where, NULL) == 0 && keys_next_load(dir, KEY_LOG, &pair, &err) < 0,
	   "with the old key, and the next is gone");
	/* The entry is there, the key has not taken its place yet. */
	sh("cp -a state/keys/log.pem was.pem; cp config/log.policy was.policy");
	ok(audit_log_rotate(&place, &index, &err) == 0, "changed");
	sh("mv state/keys/log.pem state/keys/log.next.pem; mv was.pem state/keys/log.pem; "
	   "mv was.policy config/log.policy");
	ok(realm_open(&log, path, true, &err) == 0 &&
		   audit_log_sign(&place, &log, false, &err) == 0,
	   "signing ends the change: %s", err.what);
	realm_close(&log);
	ok(look(where, NULL) == 0, "it verifies: %s", where);
	ok(keys_next_load(dir, KEY_LOG, &pair, &err) < 0, "no next key is left");
	restore();
}

static void test_pins(void)
{
	scoped_pins p = PINS_INIT;
	struct writ_err err = { 0 };
	struct note_key a, b;
	struct sign_public pub;
	struct sign_secret sec;
	uint8_t seed[32] = { 1 };
	char path[256];
	bool required = false;

	(void)snprintf(path, sizeof(path), "%s/pins/log.policy", top);
	sign_keypair(seed, &pub, &sec);
	ok(note_key_init(&a, NOTE_KEY_COSIGNATURE, SV("a/w"), &pub, &err) == 0, "a witness");
	seed[0] = 2;
	sign_keypair(seed, &pub, &sec);
	ok(note_key_init(&b, NOTE_KEY_COSIGNATURE, SV("b/w"), &pub, &err) == 0, "another");
	ok(pins_add_witness(path, &a, SV("http://127.0.0.1:1"), &required, &err) == 0 && required,
	   "added to nothing: %s", err.what);
	ok(pins_add_witness(path, &a, SV("http://127.0.0.1:2"), &required, &err) < 0, "only once");
	ok(pins_add_witness(path, &b, SV("http://127.0.0.1:2"), &required, &err) == 0 && required,
	   "the second");
	ok(pins_read(path, &p, &err) == 0 && p.policy.witnesses_n == 2 &&
		   !tlog_policy_met(&p.policy, 1) && !tlog_policy_met(&p.policy, 2) &&
		   tlog_policy_met(&p.policy, 3),
	   "both must have cosigned");
	sh("printf 'group own any w1 w2\\nquorum own\\n' > tail; "
	   "grep -v -e group -e quorum pins/log.policy > p; cat p tail > pins/log.policy");
	seed[0] = 3;
	sign_keypair(seed, &pub, &sec);
	ok(note_key_init(&b, NOTE_KEY_COSIGNATURE, SV("c/w"), &pub, &err) == 0 &&
		   pins_add_witness(path, &b, SV("http://127.0.0.1:3"), &required, &err) == 0 &&
		   !required,
	   "a quorum of the user's own stays");
	pins_clear(&p);
	ok(pins_read(path, &p, &err) == 0 && p.policy.witnesses_n == 3 &&
		   tlog_policy_met(&p.policy, 1),
	   "and is met as before");
}

int main(void)
{
	struct writ_err err = { 0 };
	char path[256];

	if (crypto_start(&err) < 0 || !mkdtemp(top))
		return 1;
	(void)snprintf(state, sizeof(state), "%s/state", top);
	(void)snprintf(config, sizeof(config), "%s/config", top);
	(void)snprintf(path, sizeof(path), "%s/sessions", state);
	only = SV("");
	place = (struct log_place){ sv_from(state), sv_from(config), SV("l-test") };
	if (fd_make_dirs(path, &err) < 0)
		return 1;
	make();
	sh("mkdir kept && cp -a state config kept");
	test_whole();
	test_open();
	test_cases();
	test_pinned();
	test_flips();
	test_rollback();
	test_mend();
	test_pins();
	sh("rm -rf state config kept pins old tail p");
	(void)rmdir(top);
	return tap_done();
}
