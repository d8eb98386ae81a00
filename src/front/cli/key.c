#include <errno.h>

#include "audit/logkey.h"
#include "audit/pin.h"
#include "cli/cli.h"
#include "cli/log.h"
#include "codec/json.h"
#include "token/jws.h"

#include "base/banned.h"

/* The verb key: creates, shows and rotates the keys of this user. */

static const char custody[] = "self-attested (same user holds the key)";

static bool role_of(const char *name, enum key_role *ret)
{
	for (unsigned i = KEY_NONE + 1; i < KEY_ROLES; i++)
		if (sv_is(sv_from(name), keys_role_name((enum key_role)i))) {
			*ret = (enum key_role)i;
			return true;
		}
	cli_note("there is no key \"%s\": log, issue or witness", name);
	return false;
}

/* Prints the public name of a key: a note verifier key or a JWK thumbprint. */
static int put_name(const struct log_place *p, enum key_role role, const struct sign_public *pub,
		    struct buf *b, struct writ_err *err)
{
	scoped_buf name = BUF_INIT(128);
	struct note_key key;
	int r;

	if (role == KEY_ISSUE) {
		buf_str(b, jws_thumbprint(pub).s);
		return 0;
	}
	buf_fmt(&name, "writ/%s/" SV_FMT, keys_role_name(role), SV_ARG(p->realm));
	r = note_key_init(&key, role == KEY_WITNESS ? NOTE_KEY_COSIGNATURE : NOTE_KEY_ED25519,
			  buf_view(&name), pub, err);
	if (r == 0)
		note_key_print(&key, b);
	return r;
}

static bool is_pinned(const struct log_place *p, const struct sign_public *pub)
{
	scoped_pins pins = PINS_INIT;
	struct writ_err no = { 0 };
	char path[LOG_PATH], origin[LOG_ORIGIN_MAX];
	struct note_key key;

	audit_log_origin(p->realm, origin);
	return audit_log_path(p->config, "log.policy", path, &no) == 0 &&
	       pins_read(path, &pins, &no) == 0 &&
	       note_key_init(&key, NOTE_KEY_ED25519, sv_from(origin), pub, &no) == 0 &&
	       pins_has_log(&pins, &key);
}

/* Prints one key. @pinned and @note, a line of the text form, apply only to the key of the log. */
static void put_key(bool json, enum key_role role, struct sv name, const struct sign_public *pub,
		    bool pinned, const char *note, const char *held_by, size_t *n, struct buf *b)
{
	scoped_buf pem = BUF_INIT(512);

	keys_print_public(pub, &pem);
	if (json) {
		buf_str(b, (*n)++ ? ",\n{" : "{");
		json_put_member(b, "role", sv_from(keys_role_name(role)));
		json_put_member(b, role == KEY_ISSUE ? "thumbprint" : "vkey", name);
		json_put_member(b, "pem", buf_view(&pem));
		if (role == KEY_LOG)
			json_put_flag(b, "pinned", pinned);
		json_put_member(b, "custody", sv_from(held_by));
		buf_ch(b, '}');
		return;
	}
	buf_fmt(b, "%s%-8s " SV_FMT "\n", (*n)++ ? "\n" : "", keys_role_name(role), SV_ARG(name));
	if (role == KEY_LOG)
		buf_fmt(b, "         %s\n", note);
	buf_sv(b, buf_view(&pem));
}

/*
 * Shows the key of writ-signer, which keeps the log. The key of an installed signer is trusted
 * without a pin.
 */
static int show_held(struct args *a, const struct log_place *p, const struct signer_install *in,
		     size_t *n, struct buf *b, struct writ_err *err)
{
	struct log_view *v = arena_new(a->arena, struct log_view);
	scoped_buf name = BUF_INIT(NOTE_VKEY_MAX);
	int r = v ? cli_log_view_held(a, p, in, false, v, err) : writ_nomem(err);

	if (r < 0)
		return r;
	if (v->copy.there) {
		note_key_print(&v->key, &name);
		put_key(a->given[OPT_JSON], KEY_LOG, buf_view(&name), &v->key.pub, true,
			cli_log_view_words(v), attest_custody_name(CUSTODY_OTHER_UID), n, b);
	}
	cli_log_view_close(v);
	return 0;
}

static int show_one(const struct log_place *p, enum key_role role, bool json, size_t *n,
		    struct buf *b, struct writ_err *err)
{
	scoped_buf name = BUF_INIT(NOTE_VKEY_MAX), note = BUF_INIT(256);
	struct writ_err none = { 0 };
	scoped_key_pair pair;
	char dir[LOG_PATH];
	bool pinned;
	int r = audit_log_path(p->state, "keys", dir, err);

	if (r == 0 && keys_load(dir, role, false, &pair, &none) < 0)
		return none.sys == ENOENT ? 0 : (*err = none).code;
	if (r < 0 || (r = put_name(p, role, &pair.pub, &name, err)) < 0)
		return r;
	pinned = role == KEY_LOG && is_pinned(p, &pair.pub);
	buf_fmt(&note, "%s; %s", pinned ? "pinned" : "NOT pinned: writ key init pins it", custody);
	put_key(json, role, buf_view(&name), &pair.pub, pinned, note.p, "same-uid", n, b);
	return 0;
}

static int show(struct args *a, const struct log_place *p)
{
	scoped_buf b = BUF_INIT(65536);
	struct writ_err err = { 0 };
	enum key_role only = KEY_NONE;
	struct signer_install in;
	size_t n = 0;
	int r;

	if (a->operands.n > 1 && !role_of(a->operands.v[1], &only))
		return EXIT_FAILED;
	r = cli_log_signer(&in, &err);
	if (a->given[OPT_JSON])
		buf_ch(&b, '[');
	if (r == 0 && in.there && (only == KEY_NONE || only == KEY_LOG))
		r = show_held(a, p, &in, &n, &b, &err);
	for (unsigned i = KEY_NONE + 1; r == 0 && i < KEY_ROLES; i++)
		if (only == KEY_NONE || only == i)
			r = show_one(p, (enum key_role)i, a->given[OPT_JSON], &n, &b, &err);
	if (a->given[OPT_JSON])
		buf_str(&b, "]\n");
	if (r < 0)
		return cli_fail(&err, NULL);
	if (n == 0 && !a->given[OPT_JSON])
		cli_note("there is no key yet: the first run makes one, or writ key init");
	return cli_out(&b, EXIT_DONE);
}

/*
 * Creates the log key and the issuer key if they are missing, and pins the log key. The user
 * confirms the pin by running this verb. If writ-signer is installed, it has the log key, and only
 * the issuer key is created.
 */
static int init(const struct log_place *p)
{
	struct writ_err err = { 0 };
	scoped_log_key k = { 0 };
	char dir[LOG_PATH], path[LOG_PATH];
	struct signer_install in;
	scoped_key_pair pair;

	if (cli_log_signer(&in, &err) < 0 ||
	    (!in.there && audit_log_key_load(p, true, &k, &err) < 0) ||
	    audit_log_path(p->state, "keys", dir, &err) < 0 ||
	    keys_load(dir, KEY_ISSUE, true, &pair, &err) < 0 ||
	    audit_log_path(p->config, "log.policy", path, &err) < 0 ||
	    (!in.there && pins_add_log(path, &k.key, &err) < 0))
		return cli_fail(&err, NULL);
	if (in.there)
		return cli_end(EXIT_DONE, "the key of the log is writ-signer's, and counts without "
			       "a pin here; the others are in %s", dir);
	return cli_end(EXIT_DONE, "the keys are in %s, the log's is pinned in %s; %s", dir, path,
		       custody);
}

static int said(struct realm *log, const struct log_place *p, const struct jws_kid *old,
		const struct jws_kid *next, struct writ_err *err)
{
	scoped_entry e = { 0 };
	int r;

	entry_begin(&e, "key.rotate");
	entry_str(&e, "role", SV("issue"));
	entry_str(&e, "old", sv_from(old->s));
	entry_str(&e, "new", sv_from(next->s));
	r = realm_append(log, &e, true, NULL, err);
	return r == 0 ? audit_log_sign(p, log, true, err) : r;
}

/* Rotates the issuer key. Records the rotation in the log before the new key takes effect. */
static int rotate_issue(const struct log_place *p, struct writ_err *err)
{
	char dir[LOG_PATH], path[LOG_PATH];
	scoped_key_pair old, next;
	struct jws_kid was, is;
	scoped_realm log = REALM_INIT;
	int r = audit_log_path(p->state, "keys", dir, err);

	if (r < 0 || (r = audit_log_path(p->state, "log", path, err)) < 0 ||
	    (r = keys_load(dir, KEY_ISSUE, false, &old, err)) < 0 ||
	    (r = keys_next_make(dir, KEY_ISSUE, &next, err)) < 0)
		return r;
	was = jws_thumbprint(&old.pub);
	is = jws_thumbprint(&next.pub);
	if ((r = realm_open(&log, path, true, err)) < 0 ||
	    (r = said(&log, p, &was, &is, err)) < 0)
		return r;
	return keys_next_take(dir, KEY_ISSUE, err);
}

static int rotate(struct args *a, const struct log_place *p)
{
	struct writ_err err = { 0 };
	enum key_role role = KEY_LOG;
	struct signer_install in;
	uint64_t index = 0;

	if (a->operands.n > 1 && !role_of(a->operands.v[1], &role))
		return EXIT_FAILED;
	switch (role) {
	case KEY_LOG:
		if (cli_log_signer(&in, &err) < 0)
			return cli_fail(&err, NULL);
		if (in.there)
			return cli_end(EXIT_FAILED, "the log is writ-signer's, and its key is not "
				       "yours to change; your own log's: WRIT_SIGNER=none writ key "
				       "rotate");
		if (audit_log_rotate(p, &index, &err) < 0)
			return cli_fail(&err, NULL);
		cli_note("entry %llu of the log says so, both keys have signed it; the old one "
			 "stays "
			 "pinned for what it signed",
			 (unsigned long long)index);
		return cli_end(EXIT_DONE, "tell your witnesses the new key: writ key show log");
	case KEY_ISSUE:
		if (rotate_issue(p, &err) < 0)
			return cli_fail(&err, NULL);
		return cli_end(EXIT_DONE,
			       "the log says so; the old public key stays in keys/issue.old.pem");
	case KEY_WITNESS:
		return cli_end(EXIT_FAILED, "logs that know a witness know it by its key: make "
			       "another one with --key instead");
	case KEY_NONE:
	case KEY_ROLES:
		break;
	}
	return EXIT_FAILED;
}

int cmd_key(struct args *a)
{
	const struct sv what = sv_from(a->operands.n ? a->operands.v[0] : "");
	struct writ_err err = { 0 };
	struct log_place p;

	if (a->operands.n < 1 || a->operands.n > 2 ||
	    (!sv_is(what, "init") && !sv_is(what, "show") && !sv_is(what, "rotate")))
		return cli_end(EXIT_FAILED,
			       "key init, show [log|issue|witness], or rotate [log|issue]");
	if (cli_log_place_find(a, !sv_is(what, "show"), &p, &err) < 0)
		return cli_fail(&err, NULL);
	if (sv_is(what, "init"))
		return init(&p);
	return sv_is(what, "show") ? show(a, &p) : rotate(a, &p);
}
