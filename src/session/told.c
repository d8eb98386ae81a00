#include <string.h>

#include "codec/json.h"
#include "policy/diag.h"
#include "policy/protect.h"
#include "session/session.h"

#include "base/banned.h"

/* What a person may do about a denial. */
enum remedy {
	REMEDY_NONE = 0,
	REMEDY_GRANT, /* read or write of a path: live, too */
	REMEDY_UNIX,  /* a line about a socket */
	REMEDY_OPEN,  /* a protection that is lifted by name */
};

struct advice {
	enum remedy remedy;
	const char *hint;
	const struct protect_name *row; /* REMEDY_OPEN */
};

static bool ends_in(struct sv s, const char *end)
{
	return sv_ends(s, sv_from(end));
}

/* "NAME is protected: why", as the mediator says it. */
static const struct protect_name *protected_row(struct sv why)
{
	static const char text[] = " is protected: ";
	const char *at = why.n ? memmem(why.p, why.n, text, sizeof(text) - 1) : NULL;

	return at ? protect_find(sv_sub(why, 0, (size_t)(at - why.p))) : NULL;
}

static struct advice advise(const struct session_denial *d)
{
	const struct protect_name *row = protected_row(d->why);
	const bool path = d->object.n && d->object.p[0] == '/';

	if (row)
		return (struct advice){
			REMEDY_OPEN,
			"other programs run or obey it: open it only for an agent you "
			"would let run them",
			row
		};
	if (d->rule.n)
		return (struct advice){
			.hint = "that line wins over every grant: change or remove it"
		};
	if (sv_starts(d->why, SV("the block of agent ")) ||
	    sv_is(d->why, "the session that started this agent never had it"))
		return (struct advice){
			.hint = "an agent cannot be widened: its block in the policy decides"
		};
	if (sv_ends(d->why, SV(" dropped it")) || sv_ends(d->why, SV(" never had it")))
		return (struct advice){
			.hint = "a token cannot be widened: begin again with one that has it"
		};
	if (d->named)
		return (struct advice){
			REMEDY_GRANT,
			"a program was given this name; it exists outside and not inside", NULL
		};
	if (sv_is(d->why, "no rule allows it") &&
	    (sv_is(d->op, "net") || (path && (sv_is(d->op, "read") || sv_is(d->op, "write")))))
		return (struct advice){ REMEDY_GRANT, "a grant of it is enough", NULL };
	if (path && sv_is(d->op, "connect") && ends_in(d->why, "no rule allows this socket"))
		return (struct advice){ REMEDY_UNIX, "a line for the next session is needed",
					NULL };
	if (path && sv_is(d->op, "connect"))
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

static bool is_plain(struct sv s)
{
	for (size_t i = 0; i < s.n; i++) {
		const char c = s.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (c && strchr("/._+@=,-", c))))
			return false;
	}
	return s.n > 0;
}

/* A word of a policy that means exactly these bytes. */
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

/* The line of a policy that would allow it; nothing if there is none. */
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

void session_denial_text(const struct session_denial *d, struct buf *b)
{
	const struct advice a = advise(d);
	struct buf line = BUF_INIT(32768);

	if (d->number)
		buf_fmt(b, "%-2u ", d->number);
	else
		buf_str(b, "-  ");
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
			"   now        writ allow " SV_FMT "#%u\n"
			"   always     writ allow --always " SV_FMT "#%u\n",
			SV_ARG(d->session), d->number, SV_ARG(d->session), d->number);
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
	buf_clear(&line);
}

static void member(struct buf *b, const char *key, struct sv value)
{
	if (value.n == 0)
		return;
	buf_fmt(b, ",\"%s\":", key);
	json_put_str(b, value);
}

void session_denial_json(const struct session_denial *d, struct buf *b)
{
	const struct advice a = advise(d);
	struct buf line = BUF_INIT(32768);

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
	buf_fmt(b, ",\"named\":%s", d->named ? "true" : "false");
	member(b, "hint", sv_from(a.hint));
	if (can_grant(d, &a))
		buf_fmt(b, ",\"allow\":\"writ allow " SV_FMT "#%u\"", SV_ARG(d->session),
			d->number);
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
	buf_clear(&line);
}
