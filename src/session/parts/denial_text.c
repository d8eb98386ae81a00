#include <stdio.h>
#include <string.h>

#include "codec/json.h"
#include "parts/session.h"

#include "base/banned.h"

struct sv session_denial_why(enum cap_cause cause, const char *detail,
			     const struct protect_name *protect, char to[static DENIAL_WHY])
{
	if (cause == CAUSE_PROTECTED && protect)
		(void)snprintf(to, DENIAL_WHY, "%s is protected: %s", protect->name, detail);
	else
		(void)cap_why_print(cause, detail, to, DENIAL_WHY);
	return sv_from(to);
}

/* Remedies that a person has for a denial. */
enum remedy {
	REMEDY_NONE = 0,
	REMEDY_GRANT, /* grant read or write of a path; also possible while the session runs */
	REMEDY_UNIX,  /* add a policy line about a socket */
	REMEDY_OPEN,  /* open a protected name */
};

struct advice {
	enum remedy remedy;
	const char *hint;
	const struct protect_name *row; /* the protected name to open, if REMEDY_OPEN */
};

static struct advice advise_by_op(const struct session_denial *d)
{
	if (sv_is(d->op, "connect") && sv_starts(d->object, SV("/")))
		return (struct advice){ .hint = "it acts for whoever connects: only `danger unix` "
						"in a policy opens it" };
	if (sv_is(d->op, "connect") || sv_is(d->op, "listen"))
		return (struct advice){
			.hint = "nothing leads out without a net line in the policy"
		};
	if (sv_is(d->op, "exec"))
		return (struct advice){ .hint = "the policy lets it run no other program" };
	return (struct advice){ .hint = "no line allows this: work without it, or do it outside" };
}

static bool is_grantable(const struct session_denial *d)
{
	return sv_is(d->op, "net") ||
	       (sv_starts(d->object, SV("/")) && (sv_is(d->op, "read") || sv_is(d->op, "write")));
}

static struct advice advise(const struct session_denial *d)
{
	if (d->rule.n && d->reason != CAP_REASON_PROTECTED)
		return (struct advice){
			.hint = "that line wins over every grant: change or remove it"
		};
	switch (d->reason) {
	case CAP_REASON_PROTECTED:
		if (!d->protect)
			break;
		return (struct advice){
			REMEDY_OPEN,
			"other programs run or obey it: open it only for an agent you "
			"would let run them",
			d->protect
		};
	case CAP_REASON_AGENT:
		return (struct advice){
			.hint = "an agent cannot be widened: its block in the policy decides"
		};
	case CAP_REASON_TOKEN:
		return (struct advice){
			.hint = "a token cannot be widened: begin again with one that has it"
		};
	case CAP_REASON_NO_RULE:
		if (d->guessed)
			return (struct advice){
				REMEDY_GRANT,
				"a program was given this name; it exists outside and not inside",
				NULL
			};
		if (!is_grantable(d))
			break;
		return (struct advice){ REMEDY_GRANT, "a grant of it is enough", NULL };
	case CAP_REASON_SOCKET:
		return (struct advice){ REMEDY_UNIX, "a line for the next session is needed",
					NULL };
	case CAP_REASON_RULE:
	case CAP_REASON_OTHER:
		break;
	}
	return advise_by_op(d);
}

static bool is_plain(struct sv s)
{
	return s.n > 0 && sv_is_alnum(s, "/._+@=,-");
}

/*
 * Appends @s as one word of a policy. Quotes and escapes it, if necessary, so that the word stands
 * for exactly the bytes of @s.
 */
static void put_word(struct buf *b, struct sv s)
{
	if (is_plain(s)) {
		buf_sv(b, s);
		return;
	}
	buf_ch(b, '"');
	for (size_t i = 0; i < s.n; i++) {
		const struct sv one = sv_sub(s, i, 1);

		if (is_plain(one) || one.p[0] == ' ')
			buf_sv(b, one);
		else if (one.p[0] == '*')
			buf_str(b, "\\*");
		else
			buf_fmt(b, "\\x%02x", (unsigned char)one.p[0]);
	}
	buf_ch(b, '"');
}

/* Appends the line of a policy that would allow the denied operation, if there is such a line. */
static void put_line(struct buf *b, const struct session_denial *d, const struct advice *a)
{
	switch (a->remedy) {
	case REMEDY_NONE:
		break;
	case REMEDY_GRANT:
		buf_fmt(b, "allow " SV_FMT " ", SV_ARG(d->op));
		put_word(b, d->object);
		break;
	case REMEDY_UNIX:
		buf_str(b, "allow unix ");
		put_word(b, d->object);
		break;
	case REMEDY_OPEN:
		buf_fmt(b, "open %s", a->row->name);
		break;
	}
}

static bool can_grant(const struct session_denial *d, const struct advice *a)
{
	return a->remedy == REMEDY_GRANT && d->running && d->number;
}

static void put_rule(struct buf *b, const struct session_denial *d)
{
	buf_str(b, "   rule       ");
	if (d->rule.n) {
		if (d->where.n) {
			diag_put_safe(b, d->where);
			buf_str(b, ": ");
		}
		diag_put_safe(b, d->rule);
	} else {
		diag_put_safe(b, d->why);
	}
	buf_ch(b, '\n');
}

/*
 * Appends the name of an object. SECURITY: the agent chose the name. With blanks, it could read
 * like the rest of the line: quote it.
 */
static void put_object(struct buf *b, struct sv object)
{
	bool quote = false;

	for (size_t i = 0; i < object.n; i++)
		quote = quote || strchr(" \"\xc2\xe2\xe3", object.p[i]);
	if (!quote) {
		buf_sv(b, object);
		return;
	}
	buf_ch(b, '"');
	for (size_t i = 0; i < object.n; i++) {
		if (object.p[i] == '"' || object.p[i] == '\\')
			buf_ch(b, '\\');
		buf_ch(b, object.p[i]);
	}
	buf_ch(b, '"');
}

/* Appends the number of a denial or hint as `writ allow SESSION#` takes it. */
static void put_number(struct buf *b, const struct session_denial *d)
{
	buf_fmt(b, "%s%u", d->guessed ? "h" : "", d->number);
}

void session_denial_line(const struct session_denial *d, struct buf *b)
{
	const char *again = d->count > 1 ? ", more than once" : "";
	const bool no_rule = d->reason == CAP_REASON_NO_RULE;

	buf_fmt(b, "denied " SV_FMT " ", SV_ARG(d->op));
	put_object(b, d->object);
	buf_fmt(b, " (" SV_FMT "): ", SV_ARG(d->program));
	if (d->rule.n || !no_rule) {
		buf_fmt(b, SV_FMT "%s", SV_ARG(no_rule ? SV("a rule denies it") : d->why), again);
		return;
	}
	buf_fmt(b, "no rule allows it%s", again);
	if (d->running) {
		buf_fmt(b, "   once: writ allow " SV_FMT "#", SV_ARG(d->session));
		put_number(b, d);
	} else if ((sv_is(d->op, "read") || sv_is(d->op, "write")) &&
		   sv_starts(d->object, SV("/"))) {
		buf_fmt(b, "   next time: --allow " SV_FMT ":", SV_ARG(d->op));
		put_object(b, d->object);
	}
}

void session_denial_text(const struct session_denial *d, struct buf *b)
{
	const struct advice a = advise(d);
	scoped_buf line = BUF_INIT(32768);

	if (!d->number)
		buf_str(b, "-  ");
	else if (d->guessed)
		buf_fmt(b, "h%u ", d->number);
	else
		buf_fmt(b, "%-2u ", d->number);
	buf_str(b, "denied ");
	diag_put_safe(b, d->op);
	buf_ch(b, ' ');
	diag_put_safe(b, d->object);
	buf_str(b, " (");
	diag_put_safe(b, d->program);
	if (d->count > 1)
		buf_fmt(b, ", %u times", d->count);
	buf_str(b, ")\n");
	put_rule(b, d);
	if (d->guarantee.n) {
		buf_fmt(b, "   guarantee  " SV_FMT, SV_ARG(d->guarantee));
		buf_fmt(b, ", " SV_FMT ": ", SV_ARG(d->level));
		diag_put_safe(b, d->by);
		buf_ch(b, '\n');
	}
	buf_fmt(b, "   hint       %s\n", a.hint);
	if (can_grant(d, &a))
		buf_fmt(b,
			"   now        writ allow " SV_FMT "#%s%u\n"
			"   always     writ allow --always " SV_FMT "#%s%u\n",
			SV_ARG(d->session), d->guessed ? "h" : "", d->number, SV_ARG(d->session),
			d->guessed ? "h" : "", d->number);
	put_line(&line, d, &a);
	if (line.n && a.remedy != REMEDY_OPEN && is_plain(d->object))
		buf_fmt(b, "   next run   %s" SV_FMT "%s--allow %s:" SV_FMT "\n",
			d->defaults    ? "--allow write:. "
			: d->profile.n ? "--profile "
				       : "",
			SV_ARG(d->profile), d->profile.n ? " " : "",
			a.remedy == REMEDY_UNIX ? "unix"
			: sv_is(d->op, "read")	? "read"
			: sv_is(d->op, "net")	? "net"
						: "write",
			SV_ARG(d->object));
	if (line.n)
		buf_fmt(b, "   policy     %s" SV_FMT "%s" SV_FMT "\n",
			d->defaults    ? "allow write .\n              "
			: d->profile.n ? "use "
				       : "",
			SV_ARG(d->profile), d->profile.n ? "\n              " : "",
			SV_ARG(buf_view(&line)));
}

static void member(struct buf *b, const char *key, struct sv value)
{
	if (value.n)
		json_put_member(b, key, value);
}

void session_denial_json(const struct session_denial *d, struct buf *b)
{
	const struct advice a = advise(d);
	scoped_buf line = BUF_INIT(32768);

	if (d->guessed)
		buf_fmt(b, "{\"number\":\"h%u\",\"op\":", d->number);
	else
		buf_fmt(b, "{\"number\":%u,\"op\":", d->number);
	json_put_str(b, d->op);
	member(b, "object", d->object);
	member(b, "program", d->program);
	if (d->count)
		buf_fmt(b, ",\"count\":%u", d->count);
	member(b, "why", d->why);
	member(b, "rule", d->rule);
	member(b, "where", d->where);
	member(b, "guarantee", d->guarantee);
	member(b, "level", d->level);
	member(b, "by", d->by);
	buf_fmt(b, ",\"named\":%s", d->guessed ? "true" : "false");
	member(b, "hint", sv_from(a.hint));
	if (can_grant(d, &a))
		buf_fmt(b, ",\"allow\":\"writ allow " SV_FMT "#%s%u\"", SV_ARG(d->session),
			d->guessed ? "h" : "", d->number);
	put_line(&line, d, &a);
	member(b, "policy", buf_view(&line));
	if (line.n && d->defaults)
		member(b, "also", SV("allow write ."));
	if (line.n && d->profile.n) {
		buf_str(b, ",\"also\":");
		buf_clear(&line);
		buf_fmt(&line, "use " SV_FMT, SV_ARG(d->profile));
		json_put_str(b, buf_view(&line));
	}
	buf_ch(b, '}');
}
