#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "codec/json.h"
#include "session/session.h"

#include "base/banned.h"

/* --- ps and stop --- */

struct listing {
	struct buf *b;
	bool json;
	size_t n;
	struct sv state;
};

static bool list_one(void *ctx, const struct session_info *i)
{
	struct listing *l = ctx;

	if (l->json) {
		buf_fmt(l->b,
			"%s{\"session\":\"%s\",\"pid\":%lld,\"seconds\":%llu,\"state\":\"%s\","
			"\"denials\":%u,\"workspace\":",
			l->n ? "," : "", i->id, (long long)i->pid, (unsigned long long)i->started,
			i->state, i->denials);
		json_put_str(l->b, sv_from(i->workspace));
		buf_str(l->b, ",\"command\":");
		json_put_str(l->b, sv_from(i->command));
		buf_ch(l->b, '}');
	} else {
		if (l->n == 0)
			buf_fmt(l->b, "%-10s%-9s%-10s%-9s%-9s%s\n", "SESSION", "PID", "STATE",
				"SECONDS", "DENIALS", "COMMAND");
		buf_fmt(l->b, "%-10s%-9lld%-10s%-9llu%-9u", i->id, (long long)i->pid, i->state,
			(unsigned long long)i->started, i->denials);
		diag_put_safe(l->b, i->command[0] ? sv_from(i->command) : SV("-"));
		buf_ch(l->b, '\n');
	}
	l->n++;
	return true;
}

int cmd_ps(struct args *a)
{
	struct buf b = BUF_INIT(OUT_MAX);
	struct listing l = { .b = &b, .json = a->given[OPT_JSON] };
	struct find_where w;
	struct writ_err err = { 0 };

	if (where_find(a->arena, NULL, false, &w, &err) < 0)
		return fail(&err, NULL);
	session_sweep(w.state);
	if (l.json)
		buf_ch(&b, '[');
	if (session_list(w.state, a->arena, list_one, &l, &err) < 0)
		return fail(&err, NULL);
	if (l.json)
		buf_str(&b, "]\n");
	else if (l.n == 0)
		note("no session is running");
	return out(&b, EXIT_DONE);
}

static bool stop_one(void *ctx, const struct session_info *i)
{
	const struct listing *l = ctx;
	struct buf b = BUF_INIT(4096);
	struct writ_err err = { 0 };

	if (session_ask(l->state, sv_from(i->id), SV("stop"), &b, &err) < 0 && err.sys == ETIMEDOUT)
		note("%s", err.what);
	buf_clear(&b);
	return true;
}

int cmd_stop(struct args *a)
{
	struct buf b = BUF_INIT(4096);
	struct find_where w;
	struct writ_err err = { 0 };
	struct listing l = { 0 };
	int r;

	if ((a->operands.n == 1) == a->given[OPT_ALL] || a->operands.n > 1) {
		note("stop which session? writ ps lists them; --all stops every one");
		return EXIT_FAILED;
	}
	if (where_find(a->arena, NULL, false, &w, &err) < 0)
		return fail(&err, NULL);
	l.state = w.state;
	if (a->given[OPT_ALL])
		r = session_list(w.state, a->arena, stop_one, &l, &err);
	else
		r = session_ask(w.state, sv_from(a->operands.v[0]), SV("stop"), &b, &err);
	buf_clear(&b);
	return r < 0 ? fail(&err, NULL) : EXIT_DONE;
}

/* --- allow and revoke --- */

/*
 * "net:api.test": the rule, and below it the capabilities that it means. Read by
 * the same code as any policy.
 */
static int live_net(struct args *a, const struct find_where *w, struct sv what, struct buf *ret,
		    struct writ_err *err)
{
	const char *text = arena_fmt(a->arena, "net:" SV_FMT, SV_ARG(what));
	const struct source none = { .name = SV("live"), .text = SV("version 1\nuse none\n") };
	const struct policy_arg rule = { ARG_ALLOW, { .name = SV("rule"), .text = sv_from(text) } };
	struct find_input found = { .where = *w };
	struct find_world world = { 0 };
	const struct policy_input in = { .files = &none, .files_n = 1, .args = &rule, .args_n = 1 };
	struct diags d = { .arena = a->arena };
	struct policy *p;

	if (!text || sv_find(what, '\n') != SIZE_MAX)
		return text ? writ_fail(err, WRIT_E_SYNTAX, 0, "not a rule") : writ_nomem(err);
	find_world_init(&world, a->arena, &found);
	if (policy_new(&world.env, &in, &d, &p, err) < 0)
		return d.list.n ? writ_fail(err, WRIT_E_SYNTAX, 0, "net " SV_FMT ": " SV_FMT,
					    SV_ARG(sv_sub(what, 0, 60)), SV_ARG(d.list.v[0].text))
				: WRIT_E_SYNTAX;
	buf_fmt(ret, "net " SV_FMT, SV_ARG(what));
	for (size_t i = 0; i < p->set.caps.n; i++)
		if (cap_host_of(&p->set.caps.v[i].cap))
			buf_fmt(ret, "\n" SV_FMT, SV_ARG(p->set.caps.v[i].cap.text));
	return buf_check(ret, err);
}

/* "read:./x" or "read" "./x" as a rule with the physical path. */
static int live_rule(struct args *a, const struct find_where *w, struct sv text, struct buf *ret,
		     struct writ_err *err)
{
	struct sv rest = text;
	const size_t colon = sv_find(text, ':'), blank = sv_find(text, ' ');
	const struct sv verb = sv_cut(&rest, colon < blank ? ':' : ' ');
	const char *path;
	char real[PATH_MAX];

	rest = sv_trim(rest);
	if (sv_is(verb, "net"))
		return live_net(a, w, rest, ret, err);
	if (!sv_is(verb, "read") && !sv_is(verb, "write"))
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 "only read, write and net can be granted live, as in read:./data");
	if (sv_starts(rest, SV("~/")) && getenv("HOME"))
		path = arena_fmt(a->arena, "%s/" SV_FMT, getenv("HOME"), SV_ARG(sv_skip(rest, 2)));
	else
		path = arena_str(a->arena, rest);
	if (!path)
		return writ_nomem(err);
	if (!realpath(path, real))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "%s does not exist", path);
	buf_fmt(ret, SV_FMT " %s", SV_ARG(verb), real);
	return buf_check(ret, err);
}

/* What a denial was about, as a rule. */
static int denied_rule(struct args *a, const struct find_where *w, struct sv id, struct sv number,
		       struct buf *ret, struct writ_err *err)
{
	struct buf b = BUF_INIT(8192);
	const char *ask = arena_fmt(a->arena, "denial " SV_FMT, SV_ARG(number));
	int r = ask ? session_ask(w->state, id, sv_from(ask), &b, err) : writ_nomem(err);

	if (r == 0)
		r = live_rule(a, w, sv_skip(buf_view(&b), 3), ret, err);
	buf_clear(&b);
	return r;
}

static bool is_plain(struct sv rule)
{
	static const char fine[] = "/._+@=,-:*";

	rule = sv_skip(rule, sv_find(rule, ' ') + 1);
	for (size_t i = 0; i < rule.n; i++) {
		const char c = rule.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      strchr(fine, c)) ||
		    c == 0)
			return false;
	}
	return true;
}

struct whose {
	struct arena *a;
	struct sv id, program;
};

static bool find_whose(void *ctx, const struct session_info *i)
{
	struct whose *w = ctx;
	struct sv rest = sv_from(i->command);

	if (!sv_starts(sv_from(i->id), w->id))
		return true;
	(void)!arena_sv(w->a, sv_cut(&rest, ' '), &w->program);
	return false;
}

/* What a run without a policy has, so that adding to it takes nothing away. */
static int first_policy(struct args *a, const struct find_where *w, struct sv id, struct sv *ret,
			struct writ_err *err)
{
	struct whose whose = { .a = a->arena, .id = id };
	int r = session_list(w->state, a->arena, find_whose, &whose, err);

	if (r == 0)
		r = find_agent_text(a->arena, whose.program, environ, ret, err);
	if (r == 0 && ret->n == 0)
		*ret = SV("version 1\nallow write .\n");
	return r;
}

/* Appends the rule to the operator's own policy for this project. */
static int keep_rule(struct args *a, const struct find_where *w, struct sv id, struct sv rule,
		     struct writ_err *err)
{
	const char *path;
	struct source src = { .text = SV("") };
	struct writ_err none = { 0 };
	const char *text;

	if (w->workspace.n == 0)
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 "--always needs a workspace: run it in the project");
	/* SECURITY: names may come from an agent, and a policy is read line by line. */
	if (!is_plain(rule))
		return writ_fail(
			err, WRIT_E_SYNTAX, 0,
			"granted, but this name is not written into a policy for you: it has "
			"unusual characters");
	path = find_project_file(a->arena, w, "projects");
	if (!path)
		return writ_nomem(err);
	if (find_text(a->arena, path, &src, &none) < 0) {
		const int r = first_policy(a, w, id, &src.text, err);

		if (r < 0)
			return r;
	}
	text = arena_fmt(a->arena, "\nallow " SV_FMT "\n", SV_ARG(rule));
	if (text && memmem(src.text.p, src.text.n, text, strlen(text)))
		return 0;
	text = arena_fmt(a->arena, SV_FMT "%sallow " SV_FMT "\n", SV_ARG(src.text),
			 sv_ends(src.text, SV("\n")) ? "" : "\n", SV_ARG(rule));
	if (!text)
		return writ_nomem(err);
	note("adding to %s: allow " SV_FMT, path, SV_ARG(rule));
	return find_keep(a->arena, path, sv_from(text), err);
}

int cmd_allow(struct args *a)
{
	struct buf rule = BUF_INIT(8192), b = BUF_INIT(8192);
	struct find_where w;
	struct writ_err err = { 0 };
	struct sv id, number;
	const char *request;
	int r;

	if (a->operands.n < 1 || a->operands.n > 3 ||
	    (a->operands.n == 1) != (strchr(a->operands.v[0], '#') != NULL)) {
		note("allow what? as in: writ allow 7f3a#1, or writ allow 7f3a read:./data");
		return EXIT_FAILED;
	}
	if (where_find(a->arena, NULL, false, &w, &err) < 0)
		return fail(&err, NULL);
	number = sv_from(a->operands.v[0]);
	id = sv_cut(&number, '#');
	if (a->operands.n == 1) {
		r = denied_rule(a, &w, id, number, &rule, &err);
	} else {
		const char *text =
			a->operands.n == 2
				? a->operands.v[1]
				: arena_fmt(a->arena, "%s %s", a->operands.v[1], a->operands.v[2]);

		r = text ? live_rule(a, &w, sv_from(text), &rule, &err) : writ_nomem(&err);
	}
	request = r < 0 ? NULL : arena_fmt(a->arena, "allow " SV_FMT, SV_ARG(buf_view(&rule)));
	if (r == 0)
		r = request ? session_ask(w.state, id, sv_from(request), &b, &err)
			    : writ_nomem(&err);
	/* What a person reads ends with the line. */
	if (r == 0 && sv_find(buf_view(&rule), '\n') != SIZE_MAX)
		rule.n = sv_find(buf_view(&rule), '\n');
	if (r == 0)
		note("granted " SV_FMT "; take it back with: writ revoke " SV_FMT " " SV_FMT,
		     SV_ARG(buf_view(&rule)), SV_ARG(id), SV_ARG(sv_skip(buf_view(&b), 3)));
	if (r == 0 && a->given[OPT_ALWAYS])
		r = keep_rule(a, &w, id, buf_view(&rule), &err);
	buf_clear(&rule);
	buf_clear(&b);
	return r < 0 ? fail(&err, NULL) : EXIT_DONE;
}

int cmd_revoke(struct args *a)
{
	struct buf b = BUF_INIT(8192);
	struct find_where w;
	struct writ_err err = { 0 };
	const char *request;
	int r;

	if (a->operands.n != 2) {
		note("revoke which grant? as in: writ revoke 7f3a 1");
		return EXIT_FAILED;
	}
	if (where_find(a->arena, NULL, false, &w, &err) < 0)
		return fail(&err, NULL);
	request = arena_fmt(a->arena, "revoke %s", a->operands.v[1]);
	r = request ? session_ask(w.state, sv_from(a->operands.v[0]), sv_from(request), &b, &err)
		    : writ_nomem(&err);
	buf_clear(&b);
	return r < 0 ? fail(&err, NULL) : EXIT_DONE;
}
