#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attest/prove.h"
#include "base/fd.h"
#include "cli/attest.h"
#include "parts/session.h"
#include "tlog/proof.h"

#include "base/banned.h"

int cli_attest_load_init(struct args *a, struct attest_loaded *l, struct writ_err *err)
{
	*l = (struct attest_loaded){ .a = a->arena,
				     .id = SV(""),
				     .entries = BUF_INIT(ATTEST_ENTRIES_MAX),
				     .start = BUF_INIT(PROOF_MAX),
				     .end = BUF_INIT(PROOF_MAX),
				     .manifest = BUF_INIT(ATTEST_TEXT_MAX),
				     .bundle = BUF_INIT(2 * ATTEST_TEXT_MAX),
				     .policy_text = BUF_INIT(TLOG_POLICY_MAX),
				     .vkey = BUF_INIT(4096),
				     .pem = BUF_INIT(64 << 10) };
	if (cli_where_find(a->arena, NULL, false, &l->where, err) < 0)
		return err->code;
	return signer_find(getenv("WRIT_SIGNER"), &l->signer, err);
}

void cli_attest_load_clear(struct attest_loaded *l)
{
	struct buf *const all[] = { &l->entries, &l->start,	  &l->end,  &l->manifest,
				    &l->bundle,	 &l->policy_text, &l->vkey, &l->pem };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		buf_clear(all[i]);
}

/* --- the record of a session --- */

int cli_attest_load_record(struct attest_loaded *l, struct sv id, struct writ_err *err)
{
	char *name = arena_alloc(l->a, 1, SESSION_ID + 1);
	scoped_fd fd = name ? session_record(l->where.state, id, name, err) : writ_nomem(err);

	if (fd < 0)
		return err->code;
	l->ev.entries.name = arena_fmt(l->a, "sessions/%s.jsonl", name);
	if (!l->ev.entries.name)
		return writ_nomem(err);
	l->id = sv_from(name);
	l->ev.lines = true;
	return fd_read_all(fd, &l->entries, err);
}

/* --- the log of the realm --- */

static int from_signer(struct attest_loaded *l, struct writ_err *err)
{
	scoped_answer w;
	int r;

	signer_answer_init(&w);
	r = signer_attest(&l->signer, l->where.realm, l->id, -1, &w, err);
	if (r < 0)
		return r;
	buf_sv(&l->start, buf_view(&w.start));
	buf_sv(&l->end, buf_view(&w.end));
	buf_sv(&l->vkey, buf_view(&w.vkey));
	buf_sv(&l->pem, buf_view(&w.pem));
	l->open = !w.ended;
	l->begun = w.begun;
	return 0;
}

static int from_own(struct attest_loaded *l, const char *path, struct writ_err *err)
{
	struct attest_found found = { 0 };
	scoped_made m;
	scoped_realm log = REALM_INIT;
	int r;

	attest_made_init(&m);
	r = path ? realm_open(&log, path, false, err) : writ_nomem(err);
	if (r < 0)
		return r;
	r = attest_find(&log, l->id, &found, err);
	l->open = !found.started || !found.ended;
	l->unsigned_ = !l->open && found.end >= log.checkpoint.size && found.end >= log.latest.size;
	if (r == 0 && !l->open && !l->unsigned_)
		r = attest_prove(&log, &found, &m, err);
	/*
	 * SECURITY: load the key rotations of the log. The verifier accepts the pinned keys, and
	 * keys to which the log proves a rotation from a pinned key.
	 */
	if (r == 0)
		r = attest_prove_rotated(&log, l->a, &l->ev.rotated, err);
	if (r == 0) {
		buf_sv(&l->start, buf_view(&m.start));
		buf_sv(&l->end, buf_view(&m.end));
	}
	return r;
}

int cli_attest_load_log(struct attest_loaded *l, struct writ_err *err)
{
	const char *path = arena_fmt(l->a, SV_FMT "/log", SV_ARG(l->where.state));
	int r;

	l->ev.start.name = l->ev.end.name = "the realm's log";
	l->open = true;
	if (l->signer.there) {
		r = from_signer(l, err);
		l->ev.start.name = l->ev.end.name = "writ-signer's log";
		/*
		 * SECURITY: fall back to the user's own log only for sessions that began before the
		 * signer was installed. Later sessions must be in the signer's log.
		 */
		if (r < 0 || !l->open || l->begun || !path || access(path, F_OK) < 0)
			return r;
	}
	return from_own(l, path, err);
}

/* --- evidence given as files --- */

/*
 * Loads the key rotations of the user's own log. The given files may come from this log without
 * including its rotations.
 */
static void load_ended(struct attest_loaded *l)
{
	const char *path = arena_fmt(l->a, SV_FMT "/log", SV_ARG(l->where.state));
	struct writ_err none = { 0 };
	scoped_realm log = REALM_INIT;

	if (!path || l->where.realm.n == 0 || realm_open(&log, path, false, &none) < 0)
		return;
	if (attest_prove_rotated(&log, l->a, &l->ended, &none) == 0 && l->ended.n)
		l->trust.ended = &l->ended;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_rotated(const char *name)
{
	return sv_starts(sv_from(name), SV("rotated-")) &&
	       sv_ends(sv_from(name), SV(".tlog-proof"));
}

static int load_rotated(struct attest_loaded *l, const char *path, const char *name,
			struct writ_err *err)
{
	scoped_buf b = BUF_INIT(PROOF_MAX);
	struct attest_file *f = &l->ev.rotated.v[l->ev.rotated.n];
	int r = l->ev.rotated.n < ATTEST_ROTATED_MAX
			? fd_read_file(path, &b, err)
			: writ_fail(err, WRIT_E_LIMIT, 0, "the log's key has changed too often");

	if (r < 0)
		return r;
	f->name = arena_str(l->a, sv_from(name));
	if (!f->name || !arena_sv(l->a, buf_view(&b), &f->bytes))
		return writ_nomem(err);
	l->ev.rotated.n++;
	return 0;
}

enum { KNOWN_FILES = 5 };

/* A file of evidence: its name, the buffer for its bytes, and the evidence that refers to them. */
struct known {
	const char *name;
	struct buf *to;
	struct attest_file *file;
};

static void known_files(struct attest_loaded *l, struct known ret[static KNOWN_FILES])
{
	ret[0] = (struct known){ "entries.jsonl", &l->entries, &l->ev.entries };
	ret[1] = (struct known){ "session.json", &l->manifest, &l->ev.manifest };
	ret[2] = (struct known){ "session.sigstore.json", &l->bundle, &l->ev.bundle };
	ret[3] = (struct known){ "start.tlog-proof", &l->start, &l->ev.start };
	ret[4] = (struct known){ "end.tlog-proof", &l->end, &l->ev.end };
}

static int load_one(struct attest_loaded *l, const char *path, struct writ_err *err)
{
	struct known known[KNOWN_FILES];
	const char *name = base_of(path);

	if (is_rotated(name))
		return load_rotated(l, path, name, err);
	known_files(l, known);
	for (size_t i = 0; i < KNOWN_FILES; i++) {
		if (strcmp(known[i].name, name) != 0)
			continue;
		known[i].file->name = known[i].name;
		buf_clear(known[i].to);
		return fd_read_file(path, known[i].to, err);
	}
	/*
	 * Skip key files among the evidence: they only hint at keys to ask for. Never trust them.
	 */
	return strcmp(name, "log.vkey") == 0 || strcmp(name, "attest.pub.pem") == 0
		       ? 0
		       : writ_fail(err, WRIT_E_SYNTAX, 0,
				   "%.60s is none of the files of a statement", path);
}

int cli_attest_load_files(struct attest_loaded *l, char *const *names, size_t n,
			  struct writ_err *err)
{
	struct known known[KNOWN_FILES];
	struct stat st;
	int r = 0;

	l->foreign = true;
	known_files(l, known);
	load_ended(l);
	if (n == 1 && stat(names[0], &st) == 0 && S_ISDIR(st.st_mode)) {
		for (size_t i = 0; r == 0 && i < KNOWN_FILES; i++) {
			const char *path = arena_fmt(l->a, "%s/%s", names[0], known[i].name);

			r = path ? load_one(l, path, err) : writ_nomem(err);
		}
		/* Add every rotation file; stop at the first number without a file. */
		for (size_t i = 1; r == 0; i++) {
			const char *path =
				arena_fmt(l->a, "%s/rotated-%zu.tlog-proof", names[0], i);

			if (!path || access(path, F_OK) < 0)
				return path ? 0 : writ_nomem(err);
			r = load_one(l, path, err);
		}
		return r;
	}
	for (size_t i = 0; r == 0 && i < n; i++)
		r = load_one(l, names[i], err);
	for (size_t i = 0; r == 0 && i < KNOWN_FILES; i++)
		if (!known[i].file->name)
			r = writ_fail(err, WRIT_E_SYNTAX, 0, "%s is missing", known[i].name);
	return r;
}

/* --- trusted keys --- */

static int verify(void *ctx, const struct attest_key *key, struct sv bytes, struct sv sig,
		  struct writ_err *err)
{
	(void)ctx;
	return signer_verify(key, bytes, sig, err);
}

/* Appends the file @path to @b. A missing file is an error only with @must. */
static int add_file(const char *path, bool must, struct buf *b, struct writ_err *err)
{
	struct writ_err why = { 0 };
	const int r = path ? fd_read_file(path, b, &why) : writ_nomem(&why);

	if (r == 0 || (!must && why.sys == ENOENT))
		return 0;
	*err = why;
	return r;
}

static int load_policy_pins(struct attest_loaded *l, const char *path, struct writ_err *err)
{
	scoped_buf own = BUF_INIT(TLOG_POLICY_MAX);
	struct sv vkey = buf_view(&l->vkey);
	const struct sv key = sv_cut(&vkey, '\n');
	int r = add_file(path ? path
			      : arena_fmt(l->a, SV_FMT "/log.policy", SV_ARG(l->where.config)),
			 path != NULL, &own, err);

	if (r < 0)
		return r;
	/* Trust the key of the installed signer: only root can install a signer. */
	if (!path && key.n && !(own.n && memmem(own.p, own.n, key.p, key.n)))
		buf_fmt(&l->policy_text, "log " SV_FMT "\n", SV_ARG(key));
	buf_sv(&l->policy_text, own.n ? buf_view(&own) : SV("quorum none\n"));
	if (!own.n && l->policy_text.n == SV("quorum none\n").n)
		return 0;
	if ((r = buf_check(&l->policy_text, err)) < 0 ||
	    (r = tlog_policy_parse(buf_view(&l->policy_text), &l->policy, err)) < 0)
		return r;
	l->trust.policy = &l->policy;
	return 0;
}

static int load_key_pins(struct attest_loaded *l, const char *path, struct writ_err *err)
{
	scoped_buf pem = BUF_INIT(64 << 10);
	size_t n = 0, m = 0;
	int r = add_file(path ? path
			      : arena_fmt(l->a, SV_FMT "/attest.pub.pem", SV_ARG(l->where.config)),
			 path != NULL, &pem, err);

	if (r == 0)
		r = attest_keys_parse(buf_view(&pem), l->keys, &n, err);
	if (r == 0 && path && n == 0)
		r = writ_fail(err, WRIT_E_SYNTAX, 0, "%s has no public key", path);
	if (r == 0 && !path)
		r = attest_keys_parse(buf_view(&l->pem), l->keys + n, &m, err);
	l->trust.keys = l->keys;
	l->trust.keys_n = n + m;
	return r;
}

/*
 * Trusts the key of the installed signer for logs that claim to be kept by a separate user. The key
 * was received from the signer with @l->vkey.
 */
static void load_signer(struct attest_loaded *l)
{
	struct sv vkey = buf_view(&l->vkey);
	struct writ_err none = { 0 };

	if (l->signer.there && note_key_parse(sv_cut(&vkey, '\n'), &l->signs, &none) == 0)
		l->trust.signer = &l->signs;
}

int cli_attest_load_pins(struct attest_loaded *l, const char *policy, const char *keys,
			 struct writ_err *err)
{
	struct known known[KNOWN_FILES];
	struct writ_err none = { 0 };
	int r;

	l->trust.verify = verify;
	/*
	 * Ask the installed signer for its keys, unless it has already supplied them with the log.
	 */
	if (l->foreign && l->signer.there && l->vkey.n == 0) {
		scoped_answer w;

		signer_answer_init(&w);
		if (signer_attest(&l->signer, l->where.realm, SV(""), -1, &w, &none) == 0) {
			buf_sv(&l->vkey, buf_view(&w.vkey));
			buf_sv(&l->pem, buf_view(&w.pem));
		}
	}
	r = load_policy_pins(l, policy, err);
	if (r == 0)
		r = load_key_pins(l, keys, err);
	load_signer(l);
	known_files(l, known);
	for (size_t i = 0; i < KNOWN_FILES; i++)
		known[i].file->bytes = buf_view(known[i].to);
	return r;
}
