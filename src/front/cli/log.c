#include "cli/log.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

int cli_log_place_find(struct args *a, bool make, struct log_place *ret, struct writ_err *err)
{
	struct find_where w;
	const int r = cli_where_find(a->arena, NULL, make, &w, err);

	if (r == 0)
		*ret = (struct log_place){ w.state, w.config, w.realm };
	return r;
}

bool cli_log_is_here(const struct log_place *p)
{
	char path[LOG_PATH];
	struct writ_err no = { 0 };

	return audit_log_path(p->state, "log", path, &no) == 0 && access(path, F_OK) == 0;
}

int cli_log_signer(struct signer_install *ret, struct writ_err *err)
{
	return signer_find(getenv("WRIT_SIGNER"), ret, err);
}

static int read_key(struct args *a, struct log_view *v, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(NOTE_VKEY_MAX + 2);
	char path[LOG_PATH];
	struct sv text, line;
	int r = audit_log_path(v->copy.state, "log/log.vkey", path, err);

	if (r < 0 || (r = fd_read_file(path, &b, err)) < 0)
		return r;
	text = buf_view(&b);
	line = sv_cut(&text, '\n');
	return arena_sv(a->arena, line, &line) ? note_key_parse(line, &v->key, err)
					       : writ_nomem(err);
}

void cli_log_view_own(const struct log_place *p, struct log_view *ret)
{
	*ret = (struct log_view){ .place = *p, .asks = { .place = *p } };
}

int cli_log_view_held(struct args *a, const struct log_place *p, const struct signer_install *in,
		      bool sign, struct log_view *ret, struct writ_err *err)
{
	struct log_view *v = ret;
	int r;

	*v = (struct log_view){ .held = true };
	v->copy.in = *in;
	v->copy.realm = p->realm;
	v->copy.sign = sign;
	v->copy.entries = true;
	r = p->realm.n ? signer_copy_open(&v->copy, p->state, err) : 0;
	if (r == 0 && v->copy.there)
		r = read_key(a, v, err);
	if (r < 0)
		cli_log_view_close(v);
	v->place = (struct log_place){ v->copy.state, p->config, p->realm };
	v->asks = (struct witness_log){ v->place, signer_copy_fetch, signer_copy_store, &v->copy };
	return r;
}

void cli_log_view_close(struct log_view *v)
{
	if (v->held)
		signer_copy_close(&v->copy);
}

const char *cli_log_view_words(const struct log_view *v)
{
	return attest_custody_words(v->held ? CUSTODY_OTHER_UID : CUSTODY_SAME_UID);
}

/* --- trusted keys --- */

/* Makes the key in the file @path, a verifier key or a PEM public key, the only trusted key. */
static int key_file(const char *path, const struct log_place *p, struct pins *ret,
		    struct writ_err *err)
{
	scoped_buf b = BUF_INIT(4096);
	char origin[LOG_ORIGIN_MAX];
	struct sign_public pub;
	struct note_key key;
	int r = fd_read_file(path, &b, err);

	audit_log_origin(p->realm, origin);
	if (r == 0 && sv_starts(buf_view(&b), SV("-----"))) {
		r = keys_parse_public(buf_view(&b), &pub, err);
		if (r == 0)
			r = note_key_init(&key, NOTE_KEY_ED25519, sv_from(origin), &pub, err);
	} else if (r == 0) {
		struct sv rest = buf_view(&b);

		r = note_key_parse(sv_trim(sv_cut(&rest, '\n')), &key, err);
	}
	if (r < 0)
		return r;
	buf_str(&ret->text, "log ");
	note_key_print(&key, &ret->text);
	buf_str(&ret->text, "\nquorum none\n");
	r = buf_check(&ret->text, err);
	return r == 0 ? tlog_policy_parse(buf_view(&ret->text), &ret->policy, err) : r;
}

/*
 * Chooses the keys that are trusted for log @v. The user's own log and the log of writ-signer have
 * the same origin name, but a pinned key of one does not apply to the other. The key of the
 * installed signer is trusted, since only root can install a signer.
 */
static void choose_keys(const struct log_view *v, const struct note_key *signer, struct pins *pins)
{
	struct tlog_policy *p = &pins->policy;
	size_t n = 0;

	if (!signer)
		return;
	for (size_t i = 0; i < p->logs_n; i++)
		if (!sv_eq(p->log[i].key.name, signer->name) ||
		    note_key_eq(&p->log[i].key, signer) == v->held)
			p->log[n++] = p->log[i];
	p->logs_n = n;
	for (size_t i = 0; i < n; i++)
		if (note_key_eq(&p->log[i].key, signer))
			return;
	if (v->held && n < TLOG_LOGS_MAX)
		p->log[p->logs_n++] = (struct tlog_log){ .key = *signer, .url = SV("") };
	if (p->quorum == TLOG_QUORUM_UNSET)
		p->quorum = TLOG_QUORUM_NONE;
}

int cli_log_pins(const struct args *a, const struct log_view *v, const struct note_key *signer,
		 struct pins *ret, struct writ_err *err)
{
	char path[LOG_PATH];
	int r;

	if (a->given[OPT_KEY])
		return key_file(a->value[OPT_KEY], &v->place, ret, err);
	if (a->given[OPT_POLICY]) {
		r = pins_read(a->value[OPT_POLICY], ret, err);
		return r == 0 && ret->text.n == 0
			       ? writ_fail(err, WRIT_E_SYS, ENOENT, "%s", a->value[OPT_POLICY])
			       : r;
	}
	r = audit_log_path(v->place.config, "log.policy", path, err);
	if (r < 0 || (r = pins_read(path, ret, err)) < 0)
		return r;
	choose_keys(v, signer, ret);
	return 0;
}
