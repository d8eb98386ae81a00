#include "parts/record_priv.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "parts/agents.h"
#include "parts/inspection.h"
#include "parts/notice.h"
#include "parts/probe.h"
#include "parts/tokens.h"

#include "base/banned.h"

/* RECORD_MAX: largest record; COMMAND_KEPT: most bytes of a recorded command line. */
enum { RECORD_MAX = 64 << 20, COMMAND_KEPT = 64 << 10 };

const struct session_initial record_initial =
	SESSION_INITIAL(struct record, .log = SLOG_INIT, .signer = -1);

/* Members with names of files, hosts, people and programs, which are private to the user. */
static const char *const private_keys[] = {
	"address",  "args", "ca_file", "guarantees",	 "host",      "new", "not_dialled",
	"object",   "old",  "path",    "program",	 "protected", "ref", "repository",
	"resolver", "rule", "said",    "upstream_proxy", "where",     "why", "workspace",
};

static bool is_private(const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(private_keys); i++)
		if (private_keys[i][0] == key[0] && strcmp(private_keys[i], key) == 0)
			return true;
	return false;
}

struct entry record_begin(const char *event)
{
	struct entry e = { 0 };

	entry_begin(&e, event);
	return e;
}

void record_str(struct entry *e, const char *key, struct sv value)
{
	entry_str(e, key, value);
	if (is_private(key))
		entry_hide(e);
}

void record_why(struct entry *e, const struct cap_why *why)
{
	char text[CAP_WHY_TEXT];

	if (why->cause != CAUSE_NONE)
		record_str(e, "why",
			   sv_from(cap_why_print(why->cause, why->detail, text, sizeof(text))));
}

void record_num(struct entry *e, const char *key, int64_t value)
{
	entry_num(e, key, value < 0 ? 0 : (uint64_t)value);
}

/* SECURITY: a session that cannot be recorded ends. */
void record_fail(struct session *s, const struct writ_err *err)
{
	if (record_of(s)->log_failed)
		return;
	record_of(s)->log_failed = true;
	notice_print(s, "the record cannot be written: %s", err->what);
	if (session_phase(s) < SESSION_ENDING)
		session_end(s, "the record cannot be written", SESSION_FAILED);
}

static void check(struct session *s, int r, const struct writ_err *err)
{
	if (r < 0)
		record_fail(s, err);
}

void record_gather(struct session *s)
{
	slog_hold(&record_of(s)->log);
}

void record_flush(struct session *s)
{
	struct writ_err err = { 0 };

	if (record_of(s)->log.fd >= 0)
		check(s, slog_flush(&record_of(s)->log, &err), &err);
}

void record_end(struct session *s, struct entry *e)
{
	struct writ_err err = { 0 };

	/*
	 * A record has a limit of RECORD_MAX bytes, because an agent can cause any number of
	 * entries. Drop and count entries beyond the limit, except those of the session's end.
	 */
	if (record_of(s)->log.bytes > RECORD_MAX && session_phase(s) < SESSION_ENDING)
		record_of(s)->dropped++;
	else if (record_of(s)->log.fd >= 0)
		check(s, slog_append(&record_of(s)->log, e, &err), &err);
	entry_clear(e);
}

void record_what(struct session *s, const char *event, const char *text)
{
	struct entry e = record_begin(event);

	record_str(&e, "what", sv_from(text));
	record_end(s, &e);
}

void record_limit(struct session *s, const char *limit, const char *key, int64_t value)
{
	struct entry e = record_begin("limit");

	record_str(&e, "limit", sv_from(limit));
	if (key)
		record_num(&e, key, value);
	record_end(s, &e);
}

bool record_gathers(const struct session *s)
{
	return record_of(s)->log.holds;
}

bool record_has_failed(const struct session *s)
{
	return record_of(s)->log_failed;
}

struct sv record_path(const struct session *s)
{
	return record_of(s)->path;
}

void record_put_totals(const struct session *s, struct entry *e)
{
	record_num(e, "not_recorded", (int64_t)record_of(s)->dropped);
	record_num(e, "entries", (int64_t)record_of(s)->log.tree.size);
}

void record_put_digests(const struct session *s, struct entry *e)
{
	entry_digest(e, "plan", &record_of(s)->plan);
	entry_digest(e, "policy", &record_of(s)->policy);
}

void record_put_durability(const struct session *s, struct entry *e)
{
	record_str(e, "durability", record_of(s)->log.sync ? SV("power") : SV("process"));
}

/* --- the first entry --- */

int record_guarantees(struct session *s, struct writ_err *err)
{
	struct record *r = record_of(s);
	scoped_buf b = BUF_INIT(1 << 20);
	int code;

	plan_json(s->opt->plan, &b);
	code = buf_check(&b, err);
	if (code == 0 && !arena_sv(s->a, buf_view(&b), &r->guarantees))
		code = writ_nomem(err);
	r->plan = crypto_sha256(r->guarantees);
	return code < 0 ? code : cap_set_digest(&s->opt->policy->set, &r->policy, err);
}

static int open_log(struct session *s, struct writ_err *err)
{
	struct slog *log = &record_of(s)->log;
	const char *dir = arena_fmt(s->a, SV_FMT "/sessions", SV_ARG(s->opt->state));
	const char *path = dir ? arena_fmt(s->a, "%s/%s.jsonl", dir, s->id) : NULL;
	const char *run = arena_fmt(s->a, SV_FMT "/run/", SV_ARG(s->opt->state));
	struct writ_err first = { 0 };
	int r;

	if (!path || !run)
		return writ_nomem(err);
	record_of(s)->path = sv_from(path);
	r = slog_open(log, path, s->opt->durable, &first);
	if (r == 0)
		return 0;
	if (first.sys != ENOENT) {
		*err = first;
		return r;
	}
	/* The first session in this state directory makes the directories for all later ones. */
	r = fd_make_dirs(dir, err);
	if (r == 0)
		r = fd_make_dirs(run, err);
	return r < 0 ? r : slog_open(log, path, s->opt->durable, err);
}

static void write_start(struct session *s)
{
	struct entry entry = record_begin("start");
	int64_t n = 0;

	record_str(&entry, "session", sv_from(s->id));
	record_num(&entry, "supervisor", getpid());
	record_str(&entry, "workspace", s->opt->workspace);
	operator_record(s, &entry);
	while (s->opt->argv[n])
		n++;
	/* A long command line is cut. The number of its arguments is always recorded. */
	record_num(&entry, "arguments", n);
	entry_list(&entry, "command", s->opt->argv, COMMAND_KEPT);
	entry_hide(&entry);
	record_str(&entry, "guarantees", record_of(s)->guarantees);
	probes_describe(s, &entry);
	executable_record(s, &entry);
	record_end(s, &entry);
	tokens_record(s);
	spawn_record(s);
}

int record_start(struct session *s, struct writ_err *err)
{
	int r = open_log(s, err);

	if (r == 0)
		r = seal_start(s, err);
	/*
	 * Write the first entry even if the start fails here, so that the record shows the session.
	 */
	if (record_of(s)->log.fd >= 0)
		write_start(s);
	if (r < 0)
		return r;
	/* SECURITY: a session without a record does not start. */
	return record_has_failed(s) ? writ_fail(err, WRIT_E_SYS, 0, "the record cannot be written")
				    : 0;
}

void record_start_failed(struct session *s)
{
	const struct record *r = record_of(s);
	struct writ_err none = { 0 };

	if (r->log.fd >= 0 || (!r->guarantees.n && record_guarantees(s, &none) < 0))
		return;
	if (open_log(s, &none) == 0)
		write_start(s);
}

void record_poll(struct session *s, struct session_poll *set)
{
	session_poll_add(set, record_of(s)->signer, POLLIN);
}

void record_on_event(struct session *s, const struct pollfd *p, size_t n)
{
	(void)n;
	if (p[0].revents)
		seal_lost(s);
}

void record_clear(struct session *s)
{
	struct record *r = record_of(s);

	record_flush(s);
	seal_clear(s);
	slog_close(&r->log);
	fd_scope_close(&r->signer);
}
