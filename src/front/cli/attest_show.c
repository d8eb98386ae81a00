#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attest/prove.h"
#include "base/fd.h"
#include "cli/attest.h"
#include "codec/json.h"
#include "keys/keys.h"

#include "base/banned.h"

/* --- files --- */

int cli_attest_out_open(const char *path, int *ret_fd, struct writ_err *err)
{
	const int r = fd_make_dirs(path, err);
	const int fd = r < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return r < 0 ? r : writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	*ret_fd = fd;
	return 0;
}

/*
 * Writes the evidence files. SECURITY: the agent may have placed a symbolic link under the name of
 * an evidence file. fd_replace_at() renames a new file over the link, so that no link is followed.
 */
static int put_all(const struct signer_answer *w, const struct attest_rotated *rotated,
		   struct sv entries, int dir, struct writ_err *err)
{
	const struct {
		const char *name;
		struct sv bytes;
	} files[] = { { "session.json", buf_view(&w->manifest) },
		      { "entries.jsonl", entries },
		      { "start.tlog-proof", buf_view(&w->start) },
		      { "end.tlog-proof", buf_view(&w->end) },
		      { "log.vkey", buf_view(&w->vkey) },
		      { "attest.pub.pem", buf_view(&w->pem) },
		      { "session.sigstore.json", buf_view(&w->bundle) } };
	int r = 0;

	for (size_t i = 0; r == 0 && i < rotated->n; i++)
		r = fd_replace_at(dir, rotated->v[i].name, rotated->v[i].bytes, 0644, err);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(files); i++)
		r = fd_replace_at(dir, files[i].name, files[i].bytes, 0644, err);
	return r;
}

/* --- statements signed with the user's own keys --- */

static int not_ended(struct sv id, struct writ_err *err)
{
	return writ_fail(err, WRIT_E_DENIED, 0,
			 "no log says that session " SV_FMT " has ended: there is nothing to sign",
			 SV_ARG(id));
}

/*
 * Signs the log and appends its verifier key to @vkey. SECURITY: sync the log before anything
 * derived from it leaves this process.
 */
static int sign_log(struct attest_loaded *l, struct realm *log, struct buf *vkey,
		    struct writ_err *err)
{
	const char *dir = arena_fmt(l->a, SV_FMT "/keys", SV_ARG(l->where.state));
	const char *origin = arena_fmt(l->a, "writ/log/" SV_FMT, SV_ARG(l->where.realm));
	scoped_key_pair pair;
	struct note_key key;
	int r = dir && origin ? keys_load(dir, KEY_LOG, false, &pair, err) : writ_nomem(err);

	if (r < 0 ||
	    (r = note_key_init(&key, NOTE_KEY_ED25519, sv_from(origin), &pair.pub, err)) < 0 ||
	    (r = realm_sign(log, &key, &pair.sec, true, err)) < 0)
		return r;
	note_key_print(&key, vkey);
	buf_ch(vkey, '\n');
	return buf_check(vkey, err);
}

static int prove_own(struct attest_loaded *l, struct attest_made *m, struct buf *vkey,
		     struct attest_rotated *rotated, struct writ_err *err)
{
	const char *path = arena_fmt(l->a, SV_FMT "/log", SV_ARG(l->where.state));
	struct attest_found found = { 0 };
	scoped_realm log = REALM_INIT;
	int r;

	if (!path)
		return writ_nomem(err);
	if (access(path, F_OK) < 0)
		return not_ended(l->id, err);
	if ((r = realm_open(&log, path, true, err)) < 0 ||
	    (r = attest_find(&log, l->id, &found, err)) < 0)
		return r;
	if (!found.started || !found.ended)
		return not_ended(l->id, err);
	if ((r = sign_log(l, &log, vkey, err)) < 0 ||
	    (r = attest_prove(&log, &found, m, err)) < 0)
		return r;
	return attest_prove_rotated(&log, l->a, rotated, err);
}

static int sign_own(struct attest_loaded *l, struct sv payload, struct signer_answer *w,
		    struct writ_err *err)
{
	const char *keys = arena_fmt(l->a, SV_FMT "/keys", SV_ARG(l->where.state));
	const char *file = arena_fmt(l->a, SV_FMT "/keys/attest.pem", SV_ARG(l->where.state));
	const char *pin = arena_fmt(l->a, SV_FMT "/attest.pub.pem", SV_ARG(l->where.config));
	scoped_buf bytes = BUF_INIT(2 * ATTEST_TEXT_MAX), sig = BUF_INIT(ATTEST_SIG_MAX);
	const bool made = file && access(file, F_OK) < 0;
	struct attest_key key;
	struct bundle u;
	int r;

	if (!keys || !file || !pin)
		return writ_nomem(err);
	bundle_signed(payload, &bytes);
	r = signer_sign(keys, buf_view(&bytes), &key, &sig, err);
	if (r < 0)
		return r;
	u = (struct bundle){ .key = key.id, .payload = payload, .sig = buf_view(&sig) };
	attest_key_print(&key, &w->pem);
	r = bundle_print(&u, &w->bundle, err);
	if (r < 0 || l->where.config.n == 0 || (!made && access(pin, F_OK) == 0))
		return r;
	return attest_pin_key(pin, &key, err);
}

static int make_own(struct attest_loaded *l, struct sv entries, struct signer_answer *w,
		    struct attest_rotated *rotated, struct writ_err *err)
{
	scoped_made m;
	int r;

	attest_made_init(&m);
	if ((r = prove_own(l, &m, &w->vkey, rotated, err)) < 0 ||
	    (r = attest_make(l->a, entries, &m, err)) < 0 ||
	    (r = sign_own(l, buf_view(&m.payload), w, err)) < 0)
		return r;
	buf_sv(&w->start, buf_view(&m.start));
	buf_sv(&w->end, buf_view(&m.end));
	buf_sv(&w->manifest, buf_view(&m.manifest));
	return 0;
}

/* --- statements signed by writ-signer --- */

/* Gets the statement from writ-signer. Returns 1 if writ-signer does not know the session. */
static int make_held(struct attest_loaded *l, struct sv entries, struct signer_answer *w,
		     struct writ_err *err)
{
	scoped_fd fd = memfd_create("entries", MFD_CLOEXEC);
	int r = fd < 0 ? writ_fail(err, WRIT_E_SYS, errno, "memfd_create")
		       : fd_write_all(fd, entries, err);

	if (r < 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "lseek");
	r = signer_attest(&l->signer, l->where.realm, l->id, fd, w, err);
	if (r == 0 && !w->begun) {
		buf_clear(&w->vkey);
		buf_clear(&w->pem);
		return 1;
	}
	return r == 0 && !w->ended ? not_ended(l->id, err) : r;
}

static int make(struct args *a, struct sv id, struct buf *entries, struct signer_answer *w,
		struct attest_rotated *rotated, struct writ_err *err)
{
	struct attest_loaded l;
	int r = cli_attest_load_init(a, &l, err);

	if (r == 0)
		r = cli_attest_load_record(&l, id, err);
	if (r == 0)
		r = attest_public_entries(buf_view(&l.entries), entries, err);
	if (r == 0)
		r = l.signer.there ? make_held(&l, buf_view(entries), w, err) : 1;
	/* SECURITY: use the user's own log only for sessions that the signer never knew. */
	if (r > 0)
		r = make_own(&l, buf_view(entries), w, rotated, err);
	cli_attest_load_clear(&l);
	return r;
}

int cli_attest_out(struct args *a, struct sv id, int dir, struct writ_err *err)
{
	scoped_buf entries = BUF_INIT(ATTEST_ENTRIES_MAX);
	struct attest_rotated rotated = { .n = 0 };
	scoped_answer w;
	int r;

	signer_answer_init(&w);
	r = make(a, id, &entries, &w, &rotated, err);
	return r < 0 ? r : put_all(&w, &rotated, buf_view(&entries), dir, err);
}

/* Prints the statement inside @bundle as indented JSON. */
static int print_statement(struct args *a, struct sv bundle, struct writ_err *err)
{
	struct buf b = BUF_INIT(4 * ATTEST_TEXT_MAX);
	scoped_json *o = NULL;
	struct bundle u;
	char *text;
	int r = bundle_parse(a->arena, bundle, &u, err);

	if (r == 0)
		r = cj_decode(u.payload, &o, err);
	text = r == 0 ? json_dumps(o, JSON_INDENT(2) | JSON_SORT_KEYS) : NULL;
	if (r < 0 || !text)
		return r < 0 ? r : writ_nomem(err);
	buf_fmt(&b, "%s\n", text);
	free(text);
	return cli_out(&b, EXIT_DONE) == EXIT_DONE ? 0 : writ_fail(err, WRIT_E_SYS, 0, "output");
}

int cli_attest_show(struct args *a)
{
	const struct sv id = a->operands.n > 1 ? sv_from(a->operands.v[1]) : SV("");
	scoped_buf entries = BUF_INIT(ATTEST_ENTRIES_MAX);
	struct attest_rotated rotated = { .n = 0 };
	struct writ_err err = { 0 };
	scoped_answer w;
	scoped_fd dir = -1;

	signer_answer_init(&w);
	if (a->given[OPT_OUT] ? cli_attest_out_open(a->value[OPT_OUT], &dir, &err) < 0 ||
					cli_attest_out(a, id, dir, &err) < 0
			      : make(a, id, &entries, &w, &rotated, &err) < 0 ||
					print_statement(a, buf_view(&w.bundle), &err) < 0)
		return cli_fail(&err, NULL);
	return EXIT_DONE;
}
