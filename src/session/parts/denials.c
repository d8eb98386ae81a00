
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "parts/control.h"
#include "parts/engine.h"
#include "parts/hints.h"
#include "parts/notice.h"
#include "parts/record.h"
#include "parts/terminal.h"

#include "base/banned.h"

struct denials {
	VEC(struct denial) denials;
	int feed;	/* denials.jsonl, which the agent can read; -1: none */
	bool seen_exec; /* the first program has started */
};

static struct denials *denials_of(const struct session *s)
{
	return session_state(s, &denials_initial);
}

const struct session_initial denials_initial = SESSION_INITIAL(struct denials, .feed = -1);

void denials_clear(struct session *s)
{
	fd_scope_close(&denials_of(s)->feed);
}

void denials_feed(struct session *s, int fd)
{
	struct denials *d = denials_of(s);

	if (fd >= 0 && d->feed < 0)
		d->feed = fd;
	else
		fd_scope_close(&fd);
}

size_t denials_count(const struct session *s)
{
	return denials_of(s)->denials.n;
}

const struct denial *denials_get(const struct session *s, size_t number)
{
	const struct denials *d = denials_of(s);

	return number > 0 && number <= d->denials.n ? &d->denials.v[number - 1] : NULL;
}

static const char *verb(enum mediate_op op)
{
	switch (op) {
	case MEDIATE_READ:
		return "read";
	case MEDIATE_WRITE:
	case MEDIATE_META:
		return "write";
	case MEDIATE_EXEC:
		return "exec";
	case MEDIATE_CONNECT:
		return "connect";
	case MEDIATE_BIND:
		return "listen";
	case MEDIATE_NET:
		return "net";
	case MEDIATE_GIT:
		return "git";
	case MEDIATE_NONE:
		break;
	}
	return "use";
}

/* Returns whether a shipped profile expects this denial, so that no person needs to see it. */
static bool is_expected(const struct session *s, const struct denial *d)
{
	const struct cap_set *set = &s->opt->policy->set;

	return !s->opt->verbose && d->rule < set->rules.n && set->rules.v[d->rule].shipped;
}

void denials_print(const struct session *s, const struct session_denial *d)
{
	scoped_buf line = BUF_INIT(8 * MEDIATE_TEXT);
	struct session_denial e = *d;

	e.running = session_phase(s) < SESSION_ENDING;
	session_denial_line(&e, &line);
	if (!line.failed)
		notice_print(s, SV_FMT, SV_ARG(buf_view(&line)));
}

static void show(const struct session *s, size_t i)
{
	const struct denial *d = &denials_of(s)->denials.v[i];
	struct denial_texts room;
	const struct session_denial e = denials_describe(s, d, (uint32_t)i + 1, &room);

	if (!is_expected(s, d))
		denials_print(s, &e);
}

static void show_all(struct session *s)
{
	const size_t most = s->opt->verbose ? denials_of(s)->denials.n : 20;

	if (s->opt->quiet)
		return;
	for (size_t i = 0; i < denials_of(s)->denials.n && i < most; i++)
		show(s, i);
	if (denials_of(s)->denials.n > most)
		notice_print(s, "and %zu more denials, in " SV_FMT, denials_of(s)->denials.n - most,
			     SV_ARG(record_path(s)));
	for (size_t i = 1; i <= hints_count(s) && (s->opt->verbose || i <= 20); i++) {
		struct denial_texts room;
		const struct session_denial e = hints_describe(s, i, &room);

		denials_print(s, &e);
	}
}

/* --- a denial with all its details --- */

static enum guarantee guarantee_of(const struct denial *d)
{
	switch (d->op) {
	case MEDIATE_READ:
		return G_FS_READ;
	case MEDIATE_META:
		return G_FS_METADATA;
	case MEDIATE_EXEC:
		return G_EXEC;
	case MEDIATE_CONNECT:
	case MEDIATE_BIND:
		return d->object[0] == '/' || d->cause == CAUSE_ABSTRACT ||
				       d->cause == CAUSE_DATAGRAM
			       ? G_IPC
			       : G_NET;
	case MEDIATE_NET:
	case MEDIATE_GIT:
		return G_NET;
	case MEDIATE_NONE:
	case MEDIATE_WRITE:
		break;
	}
	return G_FS_WRITE;
}

/* Formats the place of a rule, such as "policy.writ:3", into @room. */
static struct sv where_of(const struct cap_rule *r, char *room, size_t n)
{
	const int used = r->line ? snprintf(room, n, SV_FMT ":%u", SV_ARG(r->file), r->line)
				 : snprintf(room, n, SV_FMT, SV_ARG(r->file));

	return used > 0 && (size_t)used < n ? (struct sv){ room, (size_t)used } : SV("");
}

/* Returns whether no person wrote a rule. Only then is the workspace writable without a rule. */
static bool is_default(const struct cap_set *set)
{
	for (size_t i = 0; i < set->rules.n; i++)
		if (sv_is(set->rules.v[i].file, "default") && set->rules.v[i].line)
			return true;
	return false;
}

struct session_denial denials_describe(const struct session *s, const struct denial *d,
				       uint32_t number, struct denial_texts *room)
{
	const struct cap_set *set = &s->opt->policy->set;
	const enum guarantee g = guarantee_of(d);
	struct session_denial e = {
		.session = sv_from(s->id),
		.number = number,
		.count = d->count,
		.defaults = is_default(set),
		.profile = s->opt->profile,
		.pid = d->pid,
		.reason = d->reason,
		.protect = d->protect,
		.op = sv_from(verb(d->op)),
		.object = sv_from(d->object),
		.program = sv_from(d->comm),
		.why = session_denial_why(d->cause, d->detail, d->protect, room->why),
		.guarantee = sv_from(guarantee_name(g)),
		.level = sv_from(level_name(s->opt->plan->guarantees[g].level)),
		.by = sv_from(s->opt->plan->guarantees[g].by),
	};

	if (d->rule < set->rules.n) {
		e.rule = set->rules.v[d->rule].text;
		e.where = where_of(&set->rules.v[d->rule], room->where, sizeof(room->where));
	}
	return e;
}

static void explain_all(const struct session *s)
{
	const size_t n = denials_of(s)->denials.n;
	scoped_buf b = BUF_INIT(4 << 20);

	buf_fmt(&b, "writ: %zu %s refused%s\n", n, n == 1 ? "thing was" : "things were",
		engine_view(s)->traps ? "" : "; nothing is mediated here, so none could be seen");
	for (size_t i = 0; i < n + hints_count(s); i++) {
		struct denial_texts room;
		const struct session_denial e =
			i < n ? denials_describe(s, &denials_of(s)->denials.v[i], (uint32_t)i + 1,
						 &room)
			      : hints_describe(s, i - n + 1, &room);

		session_denial_text(&e, &b);
	}
	if (n == DENIALS_MAX)
		buf_fmt(&b, "writ: there were more, in " SV_FMT "\n", SV_ARG(record_path(s)));
	notice_last(s, buf_view(&b));
}

static void write_feed(struct session *s, const struct denial *d, size_t number)
{
	const char *hint = "this is protected: work without it, or ask the person to do it";
	const bool no_rule = d->reason == CAP_REASON_NO_RULE;
	scoped_buf b = BUF_INIT(16384);
	struct writ_err err = { 0 };
	char why[DENIAL_WHY];

	if (denials_of(s)->feed < 0)
		return;
	buf_fmt(&b, "{\"number\":%zu,\"op\":\"%s\"", number, verb(d->op));
	json_put_member(&b, "object", sv_from(d->object));
	json_put_member(&b, "program", sv_from(d->comm));
	json_put_member(&b, "why", session_denial_why(d->cause, d->detail, d->protect, why));
	if (no_rule)
		hint = "a person outside can allow it; ask, and say what for";
	else if (s->opt->token)
		hint = "a token cannot be widened: work without it, or ask for a "
		       "session with another one";
	else if (s->opt->agent)
		hint = "an agent cannot be widened: work without it, or ask for "
		       "another block in the policy";
	json_put_member(&b, "hint", sv_from(hint));
	buf_str(&b, "}\n");
	if (!b.failed)
		(void)!fd_write_all(denials_of(s)->feed, buf_view(&b), &err);
}

void denials_put(struct entry *entry, const struct session_denial *d)
{
	record_str(entry, "op", d->op);
	record_str(entry, "object", d->object);
	record_str(entry, "program", d->program);
	record_num(entry, "pid", d->pid);
	record_str(entry, "why", d->why);
	record_str(entry, "reason", sv_from(cap_reason_name(d->reason)));
	if (d->protect)
		record_str(entry, "protected", sv_from(d->protect->name));
	if (d->number)
		record_num(entry, "number", d->number);
	if (d->defaults)
		entry_bool(entry, "defaults", true);
	if (d->profile.n)
		record_str(entry, "profile", d->profile);
	record_str(entry, "guarantee", d->guarantee);
	record_str(entry, "level", d->level);
	record_str(entry, "by", d->by);
	if (!d->rule.n)
		return;
	record_str(entry, "rule", d->rule);
	record_str(entry, "where", d->where);
}

static void record_denial(struct session *s, const struct denial *d)
{
	const size_t n = denials_of(s)->denials.n;
	struct denial_texts room;
	const struct session_denial e =
		denials_describe(s, d, n < DENIALS_MAX ? (uint32_t)n + 1 : 0, &room);
	struct entry entry = record_begin("denied");

	denials_put(&entry, &e);
	record_end(s, &entry);
}

static void record_exec(struct session *s, const struct mediate_event *e)
{
	struct entry entry = record_begin("exec");

	record_str(&entry, "op", sv_from(verb(e->op)));
	record_str(&entry, "object", sv_from(e->object));
	record_str(&entry, "program", sv_from(e->comm));
	record_num(&entry, "pid", e->pid);
	record_str(&entry, "args", sv_from(e->extra));
	record_end(s, &entry);
}

static void fill_first(const struct session *s, struct mediate_event *e)
{
	size_t n = 0;

	if (!s->opt->argv[0])
		return;
	(void)snprintf(e->object, sizeof(e->object), "%s", s->opt->argv[0]);
	for (char *const *arg = s->opt->argv; *arg && n + 1 < sizeof(e->extra); arg++) {
		const int more = snprintf(e->extra + n, sizeof(e->extra) - n, "%s%s",
					  arg == s->opt->argv ? "" : " ", *arg);

		n = more < 0 || n + (size_t)more >= sizeof(e->extra) ? sizeof(e->extra) - 1
								     : n + (size_t)more;
	}
}

static void note_exec(struct session *s, const struct mediate_event *e)
{
	struct mediate_event known = *e;

	/*
	 * At the first exec, the memory of the process still belonged to writ-init and did not have
	 * the arguments: take them from the options of the session.
	 */
	if (!e->object[0] && !denials_of(s)->seen_exec)
		fill_first(s, &known);
	denials_of(s)->seen_exec = true;
	record_exec(s, &known);
	look_at(s, &known);
}

static struct denial *find(const struct session *s, enum mediate_op op, const char *object)
{
	const struct denials *d = denials_of(s);

	for (size_t i = 0; i < d->denials.n; i++)
		if (d->denials.v[i].op == op &&
		    sv_eq(sv_from(d->denials.v[i].object), sv_from(object)))
			return &d->denials.v[i];
	return NULL;
}

bool denials_has(const struct session *s, enum mediate_op op, const char *object)
{
	return find(s, op, object);
}

/*
 * Returns row @number of the protected names, counted from 1; NULL: no such row. SECURITY: the
 * number comes from a helper that may have been taken over.
 */
static const struct protect_name *protect_at(uint8_t number)
{
	const struct protect_name *row = protect_names;

	while (number > 1 && row->name) {
		row++;
		number--;
	}
	return number && row->name ? row : NULL;
}

void denials_fill(const struct session *s, const struct mediate_event *e, struct denial *ret)
{
	*ret = (struct denial){ .op = e->op,
				.reason = (enum cap_reason)e->reason,
				.cause = (enum cap_cause)e->cause,
				.rule = e->rule,
				.pid = e->pid,
				.dev = e->dev,
				.ino = e->ino,
				.count = 1 };
	if (ret->reason == CAP_REASON_PROTECTED)
		ret->protect = protect_at(e->protect);
	/* An event only says that a hop refused. Without a token, the hop is an agent's block. */
	if (ret->reason == CAP_REASON_TOKEN && s->opt->agent && !s->opt->token)
		ret->reason = CAP_REASON_AGENT;
	memcpy(ret->comm, e->comm, sizeof(ret->comm));
	memcpy(ret->object, e->object, sizeof(ret->object));
	memcpy(ret->detail, e->extra, sizeof(ret->detail));
}

/* Records an allowed exec. Counts a repeated denial, and records any other denial. */
void denials_note(struct session *s, const struct mediate_event *e)
{
	struct denials *all = denials_of(s);
	struct denial d, *kept;

	session_touch(s);
	if (!e->denied) {
		note_exec(s, e);
		return;
	}
	kept = find(s, e->op, e->object);
	if (kept) {
		kept->count++;
		return;
	}
	denials_fill(s, e, &d);
	record_denial(s, &d);
	kept = all->denials.n < DENIALS_MAX ? vec_push(s->a, &all->denials) : NULL;
	if (!kept)
		return;
	*kept = d;
	control_reach(s);
	write_feed(s, kept, all->denials.n);
	/* Do not write over a program that owns the terminal: its denials are shown at the end. */
	if ((!terminal_is_interactive(s) || s->opt->explain) && !s->opt->quiet)
		show(s, all->denials.n - 1);
}

void denials_finish(struct session *s)
{
	if (terminal_is_interactive(s) && (session_status(s)->failed || !s->opt->explain))
		show_all(s);
}

void denials_report(struct session *s)
{
	if (s->opt->explain && !session_status(s)->failed)
		explain_all(s);
}
