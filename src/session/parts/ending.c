#include "parts/ending.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "codec/json.h"
#include "parts/denials.h"
#include "parts/notice.h"
#include "parts/orphans.h"
#include "parts/record.h"
#include "parts/resource_limits.h"

#include "base/banned.h"

void ending_notice(struct session *s)
{
	const struct session_status *t = session_status(s);

	if (t->ended_by && t->exit_code == SESSION_TIMEOUT)
		notice_print(s, "the %s limit was reached%s", t->ended_by,
			     orphans_left(s) ? "" : ", and everything was ended");
	else if (t->ended_by)
		notice_print(s, "%s", t->ended_by);
}

/*
 * Sets the exit code and the reason of the end if writ-init did not report the end of the command:
 * all processes were killed at once, or a part of writ failed.
 */
static void end_unreported(struct session *s)
{
	const bool out_of_memory = limits_out_of_memory(s);

	if (session_status(s)->has_exit)
		return;
	session_exit(s, out_of_memory ? SESSION_SIGNALLED + SIGKILL : SESSION_FAILED);
	if (out_of_memory)
		session_set_ended_by(s, "memory");
	if (session_status(s)->ended_by)
		return;
	session_set_ended_by(s, "writ-init ended without a word");
	notice_print(s, "%s%s", session_status(s)->ended_by,
		     orphans_left(s) ? "" : ", and everything with it");
}

/* Records the failure that ended the session, such as the end of a process of writ. */
static void record_failure(struct session *s)
{
	const struct session_status *t = session_status(s);

	if (t->ended_by && t->exit_code == SESSION_FAILED)
		record_what(s, "failed", t->ended_by);
}

struct session_report ending_report(const struct session *s)
{
	const struct session_status *t = session_status(s);
	struct session_report r = { .exit = t->exit_code, .denials = (uint32_t)denials_count(s) };

	memcpy(r.id, s->id, sizeof(r.id));
	(void)snprintf(r.ended_by, sizeof(r.ended_by), "%s", t->ended_by ? t->ended_by : "");
	if (t->failed)
		memcpy(r.why, t->err.what, sizeof(t->err.what));
	return r;
}

static void report_status(const struct session *s)
{
	const struct session_status *t = session_status(s);
	scoped_buf b = BUF_INIT(4096);
	struct writ_err err = { 0 };

	if (s->opt->status_fd < 0)
		return;
	buf_fmt(&b, "{\"session\":\"%s\",\"exit\":%d,\"started\":%s,\"denials\":%zu", s->id,
		t->exit_code, t->failed ? "false" : "true", denials_count(s));
	if (t->ended_by)
		json_put_member(&b, "ended_by", sv_from(t->ended_by));
	if (t->failed) {
		json_put_member(&b, "step", sv_from(t->failed_step));
		json_put_member(&b, "error", sv_from(t->err.what));
	}
	buf_str(&b, "}\n");
	(void)!fd_write_all(s->opt->status_fd, buf_view(&b), &err);
}

void ending_finish(struct session *s)
{
	const int64_t left = orphans_left(s);
	struct entry entry;

	end_unreported(s);
	record_failure(s);
	entry = record_begin("end");
	record_num(&entry, "exit", session_status(s)->exit_code);
	record_num(&entry, "denials", (int64_t)denials_count(s));
	record_put_totals(s, &entry);
	if (left)
		record_num(&entry, "left", left);
	record_end(s, &entry);
	/* A session whose record the realm's log does not confirm is no success. */
	if (seal_finish(s) < 0)
		session_exit_spoil(s);
	report_status(s);
	if (s->opt->report)
		*s->opt->report = ending_report(s);
}
