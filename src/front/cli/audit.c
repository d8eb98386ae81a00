#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "audit/slog.h"
#include "audit/verify.h"
#include "base/fd.h"
#include "cli/log.h"
#include "parts/session.h"
#include "tlog/proof.h"

#include "base/banned.h"

/*
 * Says whether writ-signer or this user keeps the log of the session, if writ-signer is installed.
 */
static void say_whose(const struct log_place *p, struct sv session)
{
	struct signer_install in;
	struct writ_err no = { 0 };
	struct signer_answer w;

	if (cli_log_signer(&in, &no) < 0 || !in.there || p->realm.n == 0)
		return;
	signer_answer_init(&w);
	if (signer_attest(&in, p->realm, session, -1, &w, &no) < 0)
		cli_note("writ-signer does not say whether it keeps the log of this session: %s",
			 no.what);
	else
		cli_note("session " SV_FMT "%s: %s", SV_ARG(session),
			 w.ended   ? ", ended"
			 : w.begun ? ", not ended"
				   : ", in this user's own log",
			 attest_custody_words(w.begun ? CUSTODY_OTHER_UID : CUSTODY_SAME_UID));
	signer_answer_clear(&w);
}

/* --- export, redact --- */

struct copying {
	struct buf *b;
	bool public;
};

static int copy_line(void *ctx, uint64_t index, struct sv line, struct writ_err *err)
{
	struct copying *c = ctx;
	int r = 0;

	(void)index;
	if (c->public)
		r = entry_public(line, c->b, err);
	else
		buf_sv(c->b, line);
	buf_ch(c->b, '\n');
	return r == 0 ? buf_check(c->b, err) : r;
}

static int audit_export(const struct args *a, const struct log_place *p, struct sv session)
{
	scoped_buf b = BUF_INIT(OUT_MAX * 2);
	struct copying c = { &b, a->given[OPT_PUBLIC] };
	struct writ_err err = { 0 };
	struct slog_read got;
	char id[SESSION_ID + 1];
	scoped_fd fd = session_record(p->state, session, id, &err);

	if (fd < 0)
		return cli_fail(&err, NULL);
	if (slog_read(fd, copy_line, &c, &got, &err) < 0) {
		(void)!cli_fail(&err, "the record does not verify");
		return EXIT_NO;
	}
	if (got.torn)
		cli_note("half a line at the end is left out");
	say_whose(p, sv_from(id));
	return cli_out(&b, EXIT_DONE);
}

/*
 * Removes private values from a record. The tree hash of the record does not change, because it
 * covers only the public form of each line.
 */
static int redact(const struct log_place *p, const char *id, int fd, struct buf *b,
		  struct writ_err *err)
{
	struct copying c = { b, true };
	char path[LOG_PATH], name[SESSION_ID + 32];
	struct slog_read got;
	struct stat st;
	int r;

	(void)snprintf(name, sizeof(name), "sessions/%s.jsonl", id);
	if (flock(fd, LOCK_SH | LOCK_NB) < 0)
		return writ_fail(err, WRIT_E_DENIED, 0, "session %s is running", id);
	r = slog_read(fd, copy_line, &c, &got, err);
	if (r < 0)
		return r;
	if (got.torn)
		return writ_fail(err, WRIT_E_DENIED, 0, "the record of %s ends in half a line", id);
	if (fstat(fd, &st) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", name);
	if ((r = audit_log_path(p->state, name, path, err)) < 0 ||
	    (r = fd_replace_file(path, buf_view(b), 0600, err)) < 0)
		return r;
	/* Keep the modification time: pruning removes records by age. */
	const struct timespec times[2] = { st.st_atim, st.st_mtim };

	return utimensat(AT_FDCWD, path, times, 0) < 0
		       ? writ_fail(err, WRIT_E_SYS, errno, "%s", name)
		       : 0;
}

static int audit_redact(const struct args *a, const struct log_place *p, struct sv session)
{
	scoped_buf b = BUF_INIT(OUT_MAX * 2);
	struct writ_err err = { 0 };
	char id[SESSION_ID + 1];
	scoped_fd fd = -1;

	if (session.n == 0 && !a->given[OPT_LAST])
		return cli_end(EXIT_FAILED, "what is erased is gone: say which session, or --last");
	fd = session_record(p->state, session, id, &err);
	if (fd < 0 || redact(p, id, fd, &b, &err) < 0)
		return cli_fail(&err, NULL);
	return cli_end(EXIT_DONE, "what was private in the record of session %s is erased; it "
		       "verifies as before", id);
}

/* --- prove --- */

struct proving {
	struct args *a;
	const struct log_view *view;
	struct realm log;
	struct buf note; /* the checkpoint that choose() has chosen */
	uint64_t size;
};

/* Chooses a checkpoint that covers @index: the cosigned one, else the latest, else a new one. */
static int choose(struct proving *s, uint64_t index, struct writ_err *err)
{
	static const char *const files[] = { "cosigned", "checkpoint" };
	struct checkpoint c;
	struct note note;
	int r = 0;

	/*
	 * Turn 0 reads the cosigned checkpoint, turn 1 the latest one, and turn 2 signs a new one.
	 * A copy of the log of writ-signer always has a signed checkpoint, so turn 2 is not needed.
	 */
	for (int turn = 0; turn < (s->view->held ? 2 : 3) && r == 0; turn++) {
		buf_clear(&s->note);
		if (turn == 2)
			r = audit_log_sign(&s->view->place, &s->log, true, err);
		if (r == 0)
			r = realm_read(&s->log, files[turn ? 1 : 0], &s->note, err);
		if (r == 0 && s->note.n)
			r = note_parse(buf_view(&s->note), &note, err);
		if (r == 0 && s->note.n)
			r = checkpoint_parse(note.text, &c, err);
		if (r == 0 && s->note.n && c.size > index) {
			s->size = c.size;
			return 0;
		}
	}
	return r < 0 ? r : writ_fail(err, WRIT_E_DENIED, 0, "no checkpoint covers it");
}

static int put_file(const struct proving *s, const char *id, const char *what, const char *ending,
		    struct sv bytes, struct writ_err *err)
{
	const char *dir = s->a->given[OPT_OUT] ? s->a->value[OPT_OUT] : ".";
	const char *path = arena_fmt(s->a->arena, "%s/%s-%s.%s", dir, id, what, ending);
	const int r = path ? fd_make_dirs(dir, err) : writ_nomem(err);

	return r == 0 ? fd_replace_file(path, bytes, 0644, err) : r;
}

static int prove_one(struct proving *s, const struct tlog_policy *pins, const char *id,
		     const char *what, uint64_t index, struct writ_err *err)
{
	scoped_buf entry = BUF_INIT(ENTRY_PUBLIC_MAX), b = BUF_INIT(PROOF_MAX);
	struct proof proof = { .extra = SV(""), .index = index };
	struct proof_facts facts;
	enum proof_verdict verdict;
	int r = choose(s, index, err);

	proof.checkpoint = buf_view(&s->note);
	if (r < 0 || (r = realm_entry(&s->log, index, &entry, err)) < 0 ||
	    (r = tree_prove_inclusion(&s->log.nodes.nodes, index, s->size, &proof.path, err)) < 0 ||
	    (r = proof_print(&proof, &b, err)) < 0)
		return r;
	/* Verify the proof with writ's own verifier before printing the proof. */
	verdict = proof_verify(buf_view(&b), buf_view(&entry), pins, &facts, err);
	if (verdict != PROOF_HOLDS && verdict != PROOF_NO_QUORUM)
		return writ_fail(err, WRIT_E_DENIED, 0, "the proof does not hold: %s",
				 proof_verdict_name(verdict));
	if (verdict == PROOF_NO_QUORUM)
		cli_note("%s: too few witnesses have cosigned: writ audit witness", what);
	r = put_file(s, id, what, "tlog-proof", buf_view(&b), err);
	return r == 0 ? put_file(s, id, what, "json", buf_view(&entry), err) : r;
}

static int prove(struct args *a, const struct audit_log *log, const struct verify_session *at,
		 struct writ_err *err)
{
	struct proving s = {
		.a = a, .view = &log->view, .log = REALM_INIT, .note = BUF_INIT(NOTE_MAX)
	};
	scoped_pins pins = PINS_INIT;
	const char *id = arena_str(a->arena, at->id);
	char path[LOG_PATH];
	int r = id ? audit_log_path(log->view.place.state, "log", path, err) : writ_nomem(err);

	if (r == 0)
		r = cli_log_pins(a, &log->view, log->view.held ? &log->view.key : NULL, &pins, err);
	if (r == 0)
		r = realm_open(&s.log, path, !log->view.held, err);
	if (r == 0)
		r = prove_one(&s, &pins.policy, id, "start", at->start, err);
	if (r == 0 && at->end != VERIFY_NONE)
		r = prove_one(&s, &pins.policy, id, "end", at->end, err);
	realm_close(&s.log);
	buf_clear(&s.note);
	return r;
}

static int prove_in(struct args *a, const struct audit_log *log, struct sv session)
{
	const struct verify_session *at = verify_find(log->v, session);
	struct writ_err err = { 0 };

	if (log->v->failures_n)
		return cli_end(EXIT_NO, "the log does not verify: writ audit verify says where");
	if (!at || at->start == VERIFY_NONE)
		return cli_end(EXIT_NO, "the log does not know session " SV_FMT, SV_ARG(session));
	if (prove(a, log, at, &err) < 0)
		return cli_fail(&err, NULL);
	if (log->view.held)
		cli_note("%s", cli_log_view_words(&log->view));
	if (at->end == VERIFY_NONE)
		cli_note("it has no end: there is a proof of its start only");
	return EXIT_DONE;
}

static int audit_prove(struct args *a, const struct log_place *p, struct sv session)
{
	struct audit_logs *l = arena_new(a->arena, struct audit_logs);
	struct writ_err err = { 0 };
	int r = l ? cli_audit_look(a, p, session, true, l, &err) : writ_nomem(&err);

	if (r < 0)
		return cli_fail(&err, NULL);
	r = prove_in(a, cli_audit_log_of(l, session), session);
	cli_audit_looked(l);
	return r;
}

/* --- the verb --- */

/*
 * Resolves the operand to a full session id. Without an operand: the newest session with --last or
 * @last, else an empty id.
 */
static int which(const struct args *a, const struct log_place *p, bool last, struct sv *ret)
{
	struct sv id = sv_from(a->operands.n > 1 ? a->operands.v[1] : "");
	struct writ_err err = { 0 };
	char name[SESSION_ID + 1] = "";

	if ((a->given[OPT_LAST] && id.n) || a->operands.n > 2)
		return cli_end(EXIT_FAILED, "which session: one id, or --last");
	*ret = SV("");
	if (id.n == 0 && !last && !a->given[OPT_LAST])
		return 0;
	scoped_fd fd = session_record(p->state, id, name, &err);

	/*
	 * The record may have been pruned while the log still has the session. Accept a full id
	 * then.
	 */
	if (fd < 0 && id.n != SESSION_ID)
		return cli_fail(&err, NULL);
	return arena_sv(a->arena, fd < 0 ? id : sv_from(name), ret) ? 0 : EXIT_FAILED;
}

int cmd_audit(struct args *a)
{
	const struct sv what = sv_from(a->operands.n ? a->operands.v[0] : "");
	const bool shows = sv_is(what, "show") || sv_is(what, "tail");
	struct writ_err err = { 0 };
	struct log_place p;
	struct sv session;
	int r;

	if (cli_log_place_find(a, false, &p, &err) < 0)
		return cli_fail(&err, NULL);
	if (sv_is(what, "witness") && a->operands.n == 1)
		return cli_audit_witness(a, &p);
	/*
	 * These verbs default to the newest session. verify defaults to all; redact needs a
	 * session.
	 */
	r = which(a, &p, shows || sv_is(what, "prove") || sv_is(what, "export"), &session);
	if (r)
		return r;
	if (shows) {
		say_whose(&p, session);
		return cli_audit_show(a, &p, session, sv_is(what, "tail"));
	}
	if (sv_is(what, "verify"))
		return cli_audit_verify(a, &p, session);
	if (sv_is(what, "prove"))
		return audit_prove(a, &p, session);
	if (sv_is(what, "export"))
		return audit_export(a, &p, session);
	if (sv_is(what, "redact"))
		return audit_redact(a, &p, session);
	return cli_end(EXIT_FAILED, "audit show, tail, verify, prove, export, redact or witness; "
		       "see writ help audit");
}
