#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>

#include "codec/json.h"
#include "policy/diag.h"
#include "session/session_priv.h"

#include "base/banned.h"

/* As much of *@text as fits now. 1: something went, 0: nothing did, -1: nothing ever will. */
static int tell_some(struct sv *text)
{
	struct stat st;
	const bool stalls =
		fstat(STDERR_FILENO, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
	struct pollfd p = { STDERR_FILENO, POLLOUT, 0 };
	const size_t part = text->n < PIPE_BUF ? text->n : PIPE_BUF;
	struct iovec v = { .iov_len = part };
	ssize_t n;

	memcpy(&v.iov_base, &text->p, sizeof(text->p)); /* it is only read */
	if (poll(&p, 1, 0) != 1)
		return 0;
	if (!(p.revents & POLLOUT))
		return -1;
	n = stalls ? pwritev2(STDERR_FILENO, &v, 1, -1, RWF_NOWAIT) : -1;
	/* Kernels before 6.4 do not know that of pipes: this much fits, if nobody is faster. */
	if (!stalls || (n < 0 && errno == EOPNOTSUPP))
		n = write(STDERR_FILENO, text->p, part);
	if (n <= 0)
		return n == 0 || errno == EAGAIN || errno == EINTR ? 0 : -1;
	*text = sv_skip(*text, (size_t)n);
	return 1;
}

/*
 * SECURITY: the agent may share this pipe, and fill it: whoever keeps its time never waits for
 * somebody to read. What does not fit is not said; it is on record.
 */
static void tell_now(struct sv text)
{
	while (text.n && tell_some(&text) > 0)
		;
}

/*
 * The session is over, so that whoever reads this may take their time. But the limit of the
 * session, and who wants it to end, are heard: then only somebody who goes on reading is waited
 * for.
 */
static void tell_last(const struct session *s, struct sv text)
{
	const struct timespec step = { .tv_nsec = 50000000 };
	const uint64_t length = s->opt->policy->set.limits[LIMIT_SESSION] * 1000;
	bool hurried = s->hurried;
	uint64_t read_ms = clock_ms();
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGHUP);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGQUIT);
	while (text.n && clock_ms() < read_ms + GRACE_MS) {
		const int r = tell_some(&text);

		if (r < 0)
			return;
		if (r > 0) {
			read_ms = clock_ms();
			continue;
		}
		hurried |= sigtimedwait(&ends, NULL, &step) > 0 ||
			   (length && clock_ms() >= s->started_ms + length);
		if (!hurried)
			read_ms = clock_ms();
	}
}

/* A line of ours on the terminal; names in it come from the agent and are made harmless. */
void say(const struct session *s, const char *fmt, ...)
{
	struct buf b = BUF_INIT(16384), safe = BUF_INIT(65536);
	struct termios mode;
	va_list ap;

	if (s->opt->detach)
		return;
	va_start(ap, fmt);
	buf_vfmt(&b, fmt, ap);
	va_end(ap);
	buf_str(&safe, "writ: ");
	diag_put_safe(&safe, buf_view(&b));
	/* The terminal may be raw while the command runs. */
	buf_str(&safe,
		tcgetattr(STDERR_FILENO, &mode) == 0 && !(mode.c_oflag & OPOST) ? "\r\n" : "\n");
	tell_now(buf_view(&safe));
	buf_clear(&b);
	buf_clear(&safe);
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

/* A shipped profile says that it is to be refused: that needs nobody's attention. */
static bool is_expected(const struct session *s, const struct denial *d)
{
	const struct cap_set *set = &s->opt->policy->set;

	return !s->opt->verbose && d->rule < set->rules.n && set->rules.v[d->rule].shipped;
}

/* SECURITY: the agent chose it, and with blanks it could read like the rest of the line. */
static void put_object(struct buf *b, const char *object)
{
	if (!strpbrk(object, " \"\xc2\xe2\xe3")) {
		buf_str(b, object);
		return;
	}
	buf_ch(b, '"');
	for (; *object; object++) {
		if (*object == '"' || *object == '\\')
			buf_ch(b, '\\');
		buf_ch(b, *object);
	}
	buf_ch(b, '"');
}

static void show(const struct session *s, size_t i)
{
	const struct denial *d = &s->denials.v[i];
	scoped_buf object = BUF_INIT(4 * MEDIATE_TEXT);
	const char *again = d->count > 1 ? ", more than once" : "";

	put_object(&object, d->object);
	if (is_expected(s, d) || object.failed)
		return;
	if (d->rule != RULE_NONE || d->why[0])
		say(s, "denied %s %s (%s): %s%s", verb(d->op), object.n ? object.p : "", d->comm,
		    d->why[0] ? d->why : "a rule denies it", again);
	else if (s->state < SESSION_ENDING)
		say(s, "denied %s %s (%s): no rule allows it%s   once: writ allow %s#%zu",
		    verb(d->op), object.n ? object.p : "", d->comm, again, s->id, i + 1);
	else if ((d->op == MEDIATE_READ || d->op == MEDIATE_WRITE) && object.p[0] == '/')
		say(s, "denied %s %s (%s): no rule allows it%s   next time: --allow %s:%s",
		    verb(d->op), object.p, d->comm, again, verb(d->op), object.p);
	else
		say(s, "denied %s %s (%s): no rule allows it%s", verb(d->op),
		    object.n ? object.p : "", d->comm, again);
}

void denial_show_all(struct session *s)
{
	const size_t most = s->opt->verbose ? s->denials.n : 20;

	if (s->opt->quiet)
		return;
	for (size_t i = 0; i < s->denials.n && i < most; i++)
		show(s, i);
	if (s->denials.n > most)
		say(s, "and %zu more denials, in " SV_FMT, s->denials.n - most,
		    SV_ARG(s->paths.record));
}

/* --- with all that is known --- */

static enum guarantee guarantee_of(enum mediate_op op, const char *object)
{
	switch (op) {
	case MEDIATE_READ:
		return G_FS_READ;
	case MEDIATE_META:
		return G_FS_METADATA;
	case MEDIATE_EXEC:
		return G_EXEC;
	case MEDIATE_CONNECT:
	case MEDIATE_BIND:
		return object[0] == '/' || object[0] == 'a' ? G_IPC : G_NET;
	case MEDIATE_NET:
	case MEDIATE_GIT:
		return G_NET;
	case MEDIATE_NONE:
	case MEDIATE_WRITE:
		break;
	}
	return G_FS_WRITE;
}

/* "policy.writ:3", in @room. */
static struct sv where_of(const struct cap_rule *r, char *room, size_t n)
{
	const int used = r->line ? snprintf(room, n, SV_FMT ":%u", SV_ARG(r->file), r->line)
				 : snprintf(room, n, SV_FMT, SV_ARG(r->file));

	return used > 0 && (size_t)used < n ? (struct sv){ room, (size_t)used } : SV("");
}

/* Did nobody write a rule? Then the workspace is writable only until somebody does. */
static bool is_default(const struct cap_set *set)
{
	for (size_t i = 0; i < set->rules.n; i++)
		if (sv_is(set->rules.v[i].file, "default") && set->rules.v[i].line)
			return true;
	return false;
}

void denial_explain_all(const struct session *s)
{
	const struct cap_set *set = &s->opt->policy->set;
	struct buf b = BUF_INIT(4 << 20);

	buf_fmt(&b, "writ: %zu %s refused%s\n", s->denials.n,
		s->denials.n == 1 ? "thing was" : "things were",
		s->view.traps ? "" : "; nothing is mediated here, so none could be seen");
	for (size_t i = 0; i < s->denials.n; i++) {
		const struct denial *d = &s->denials.v[i];
		const enum guarantee g = guarantee_of(d->op, d->object);
		struct session_denial e = {
			.session = sv_from(s->id),
			.number = (uint32_t)i + 1,
			.count = d->count,
			.named = d->named,
			.defaults = is_default(set),
			.profile = s->opt->profile,
			.op = sv_from(verb(d->op)),
			.object = sv_from(d->object),
			.program = sv_from(d->comm),
			.why = d->why[0] ? sv_from(d->why) : SV("no rule allows it"),
			.guarantee = sv_from(guarantee_name(g)),
			.level = sv_from(level_name(s->opt->plan->guarantees[g].level)),
			.by = sv_from(s->opt->plan->guarantees[g].by),
		};
		char where[256];

		if (d->rule < set->rules.n) {
			e.rule = set->rules.v[d->rule].text;
			e.where = where_of(&set->rules.v[d->rule], where, sizeof(where));
		}
		session_denial_text(&e, &b);
	}
	if (s->denials.n == DENIALS_MAX)
		buf_fmt(&b, "writ: there were more, in " SV_FMT "\n", SV_ARG(s->paths.record));
	tell_last(s, buf_view(&b));
	buf_clear(&b);
}

static void write_feed(struct session *s, const struct denial *d, size_t number)
{
	struct buf b = BUF_INIT(16384);
	struct writ_err err = { 0 };

	if (s->feed < 0)
		return;
	buf_fmt(&b, "{\"number\":%zu,\"op\":\"%s\",\"object\":", number, verb(d->op));
	json_put_str(&b, sv_from(d->object));
	buf_str(&b, ",\"program\":");
	json_put_str(&b, sv_from(d->comm));
	buf_str(&b, ",\"why\":");
	json_put_str(&b, d->why[0] ? sv_from(d->why) : SV("no rule allows it"));
	buf_str(&b, ",\"hint\":");
	if (s->opt->parent.n && !s->opt->token && d->why[0])
		json_put_str(&b, SV("an agent cannot be widened: work without it, or ask for "
				    "another block in the policy"));
	else if (s->opt->token && d->why[0])
		json_put_str(&b, SV("a token cannot be widened: work without it, or ask for a "
				    "session with another one"));
	else if (d->why[0])
		json_put_str(&b,
			     SV("this is protected: work without it, or ask the person to do it"));
	else
		json_put_str(&b, SV("a person outside can allow it; ask, and say what for"));
	buf_str(&b, "}\n");
	if (!b.failed)
		(void)!fd_write_all(s->feed, buf_view(&b), &err);
	buf_clear(&b);
}

static void record_denial(struct session *s, struct entry *entry, const struct mediate_event *e,
			  bool named)
{
	const enum guarantee g = guarantee_of(e->op, e->object);
	const struct cap_set *set = &s->opt->policy->set;
	char where[256];

	if (s->denials.n < DENIALS_MAX)
		record_num(entry, "number", (int64_t)s->denials.n + 1);
	if (named)
		entry_bool(entry, "named", true);
	if (is_default(set))
		entry_bool(entry, "defaults", true);
	if (s->opt->profile.n)
		record_str(entry, "profile", s->opt->profile);
	record_str(entry, "guarantee", sv_from(guarantee_name(g)));
	record_str(entry, "level", sv_from(level_name(s->opt->plan->guarantees[g].level)));
	record_str(entry, "by", sv_from(s->opt->plan->guarantees[g].by));
	if (e->rule >= set->rules.n)
		return;
	record_str(entry, "rule", set->rules.v[e->rule].text);
	record_str(entry, "where", where_of(&set->rules.v[e->rule], where, sizeof(where)));
}

static void record_event(struct session *s, const struct mediate_event *e, bool named)
{
	struct entry entry = { 0 };

	record_begin(s, &entry, e->denied ? "denied" : "exec");
	record_str(&entry, "op", sv_from(verb(e->op)));
	record_str(&entry, "object", sv_from(e->object));
	record_str(&entry, "program", sv_from(e->comm));
	record_num(&entry, "pid", e->pid);
	record_str(&entry, e->denied ? "why" : "args", sv_from(e->extra));
	if (e->denied)
		record_denial(s, &entry, e, named);
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

/* The same thing again is counted, not repeated. */
static void note_denial(struct session *s, const struct mediate_event *e, bool named)
{
	struct denial *d;

	s->active_ms = clock_ms();
	if (!e->denied) {
		struct mediate_event known = *e;

		/* The first program's memory was still writ-init's: we know what it was told. */
		if (!e->object[0] && !s->seen_exec)
			fill_first(s, &known);
		s->seen_exec = true;
		record_event(s, &known, false);
		look_at(s, &known);
		return;
	}
	for (size_t i = 0; i < s->denials.n; i++)
		if (s->denials.v[i].op == e->op &&
		    sv_eq(sv_from(s->denials.v[i].object), sv_from(e->object))) {
			s->denials.v[i].count++;
			return;
		}
	record_event(s, e, named);
	if (s->denials.n == DENIALS_MAX)
		return;
	d = vec_push(s->a, &s->denials);
	if (!d)
		return;
	*d = (struct denial){
		.op = e->op, .rule = e->rule, .pid = e->pid, .count = 1, .named = named
	};
	memcpy(d->comm, e->comm, sizeof(d->comm));
	memcpy(d->object, e->object, sizeof(d->object));
	/* The commonest reason is the one that a grant can change. */
	if (!sv_is(sv_from(e->extra), "no rule allows it"))
		memcpy(d->why, e->extra, sizeof(d->why) - 1);
	session_reach(s);
	/* SECURITY: what was only named is told outside: inside it would tell what exists here. */
	if (!named)
		write_feed(s, d, s->denials.n);
	/* A program that owns the terminal is not written over: it is told at the end. */
	if ((!s->interactive || s->opt->explain) && !s->opt->quiet)
		show(s, s->denials.n - 1);
}

void denial_note(struct session *s, const struct mediate_event *e)
{
	note_denial(s, e, false);
}

void denial_note_named(struct session *s, const struct mediate_event *e)
{
	note_denial(s, e, true);
}
