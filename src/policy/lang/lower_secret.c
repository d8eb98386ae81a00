#include "lang/lower_priv.h"

#include "base/banned.h"

static bool is_env_name(struct sv s, bool star)
{
	size_t stars = 0;

	for (size_t i = 0; i < s.n; i++) {
		const char c = s.p[i];
		const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
		const bool digit = c >= '0' && c <= '9';

		if (c == '*')
			stars++;
		else if (!letter && !(digit && i))
			return false;
	}
	/*
	 * Require two characters next to a star: `env *` would pass every variable that happens to
	 * be set.
	 */
	return s.n > 0 && s.n < 256 && stars <= (star ? 1 : 0) && s.n - stars >= 2 - !stars;
}

static bool pass_variable(struct lower *l, const struct stmt *s, struct sv name)
{
	struct stmt as_rule = *s;

	as_rule.object = s->w[1];
	return lower_add(l, &as_rule, CAP_ENV_PASS,
			 sv_from(arena_fmt(l->a, "/" SV_FMT, SV_ARG(name))), NULL);
}

bool lower_env(struct lower *l, const struct stmt *s)
{
	struct sv value = s->w[1].text;
	const struct sv name = sv_cut(&value, '=');
	const bool pass = name.n == s->w[1].text.n;

	if (!is_env_name(name, pass))
		return lang_error(l->d, s, &s->w[1], "env NAME, env NAME=VALUE or env LC_*",
				  "\"" SV_FMT "\" is not a variable's name", SV_ARG(name));
	for (size_t i = 0; i < l->policy->envs.n; i++) {
		struct policy_setenv *old = &l->policy->envs.v[i];

		if (!sv_eq(old->name, name) || (old->pass == pass && sv_eq(old->value, value)))
			continue;
		/*
		 * A value that the user wrote replaces a value from a profile, in any order of the
		 * lines.
		 */
		if (s->src->built_in)
			return true;
		if (old->shipped) {
			*old = (struct policy_setenv){ name, value, pass, false, l->rule };
			return !pass || pass_variable(l, s, name);
		}
		return lang_error(l->d, s, &s->w[1], "keep one of them",
				  SV_FMT " already has another value", SV_ARG(name));
	}
	if (!vec_add(l->a, &l->policy->envs,
		     (struct policy_setenv){ name, value, pass, s->src->built_in, l->rule }))
		return lower_error(l, s, NULL, "out of memory");
	return !pass || pass_variable(l, s, name);
}

/* Checks that word @at of the statement is @want. */
static bool expect(struct lower *l, const struct stmt *s, size_t at, const char *want)
{
	if (sv_is(s->w[at].text, want))
		return true;
	return lang_error(l->d, s, &s->w[at], "secret NAME from SOURCE to URL as FORM",
			  "expected \"%s\"", want);
}

static bool secret_source(struct lower *l, const struct stmt *s, struct policy_secret *out)
{
	static const char *const kinds[] = { [SECRET_ENV] = "env:",
					     [SECRET_FILE] = "file:",
					     [SECRET_CMD] = "cmd:",
					     [SECRET_KEYRING] = "keyring:" };
	const struct word *w = &s->w[3];

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (sv_starts(w->text, sv_from(kinds[i])) && w->text.n > sv_from(kinds[i]).n) {
			out->kind = (enum secret_source)i;
			out->source = sv_skip(w->text, sv_from(kinds[i]).n);
			if (out->kind == SECRET_ENV && !is_env_name(out->source, false))
				break;
			return true;
		}
	return lang_error(l->d, s, w, "env:NAME, file:PATH, \"cmd:PROGRAM ARGS\" or keyring:NAME",
			  "\"" SV_FMT "\" is not a source", SV_ARG(w->text));
}

/* Does @s have 1 to 64 bytes, each a letter, a digit or a byte of @more? */
static bool is_plain(struct sv s, const char *more)
{
	return s.n > 0 && s.n <= 64 && sv_is_alnum(s, more);
}

/*
 * Parses the form in which a secret is presented. Header names are case-insensitive; their
 * canonical form is lower case.
 */
static bool secret_form(struct lower *l, const struct stmt *s, struct policy_secret *out)
{
	const struct word *w = &s->w[7];

	out->form = w->text;
	if (sv_starts(w->text, SV("header:")) && !lang_lower_case(l, w->text, &out->form))
		return lower_error(l, s, NULL, "out of memory");
	if (sv_is(out->form, "bearer") || sv_is(out->form, "basic") || sv_is(out->form, "env") ||
	    (sv_starts(out->form, SV("header:")) && is_plain(sv_skip(out->form, 7), "-")) ||
	    (sv_starts(out->form, SV("query:")) && is_plain(sv_skip(out->form, 6), "-._")))
		return true;
	return lang_error(l->d, s, w, "bearer, basic, header:NAME, query:NAME or env",
			  "\"" SV_FMT "\" is not a form", SV_ARG(w->text));
}

bool lower_secret(struct lower *l, const struct stmt *s)
{
	struct policy_secret out = { .name = s->w[1].text, .rule = l->rule };
	struct stmt as_rule = *s;
	struct params p = { 0 };
	struct net_object o;

	as_rule.object = s->w[5];
	if (!expect(l, s, 2, "from") || !expect(l, s, 4, "to") || !expect(l, s, 6, "as"))
		return false;
	if (!is_env_name(out.name, false))
		return lang_error(l->d, s, &s->w[1], "as in GITHUB_TOKEN",
				  "\"" SV_FMT "\" is not a name", SV_ARG(out.name));
	if (!secret_source(l, s, &out) || !secret_form(l, s, &out) ||
	    !lang_net_parse(l, &as_rule, s->w[5].text, &o))
		return false;
	/*
	 * SECURITY: require HTTPS and a host without wildcard. Strangers could read a secret that
	 * is sent unencrypted or to a wildcard host.
	 */
	if (!o.http || !o.tls || sv_starts(o.host, SV("*")))
		return lower_error(l, &as_rule, "https://host or https://host/path/**",
				   "a secret goes to one https host only");
	if (!lang_net_url_text(l, &o, &out.url))
		return lower_error(l, s, NULL, "out of memory");
	for (size_t i = 0; i < l->policy->secrets.n; i++)
		if (sv_eq(l->policy->secrets.v[i].name, out.name) &&
		    (l->policy->secrets.v[i].kind != out.kind ||
		     !sv_eq(l->policy->secrets.v[i].source, out.source)))
			return lower_error(l, s, NULL, "secret " SV_FMT " has two sources",
					   SV_ARG(out.name));
	if (!vec_add(l->a, &l->policy->secrets, out))
		return lower_error(l, s, NULL, "out of memory");
	p.v[P_AS] = out.form;
	p.v[P_TO] = out.url;
	as_rule.object = s->w[7];
	return lower_add(l, &as_rule, CAP_SECRET_USE,
			 sv_from(arena_fmt(l->a, "/" SV_FMT, SV_ARG(out.name))), &p);
}

static bool guarantee_word(struct lower *l, const struct stmt *s, const struct word *w,
			   enum guarantee *ret_g, enum level *ret_l)
{
	struct sv value = w->text;
	const struct sv key = sv_cut(&value, '=');
	const char *names[G_COUNT + 1];

	for (unsigned i = 0; i < G_COUNT; i++)
		names[i] = guarantee_name((enum guarantee)i);
	names[G_COUNT] = NULL;
	if (!guarantee_parse(key, ret_g))
		return diag_add(
			l->d, DIAG_ERROR, lang_word_place(s, w),
			diag_suggest(l->a, key, names,
				     "fs.read fs.write fs.metadata net dns ipc proc.see "
				     "proc.signal exec syscall res.memory res.cpu res.pids "
				     "res.disk res.time res.output cred audit"),
			"unknown guarantee \"" SV_FMT "\"", SV_ARG(key));
	if (value.n == 0)
		return lang_error(
			l->d, s, w,
			arena_fmt(l->a, SV_FMT "=exact, stricter, partial or none", SV_ARG(key)),
			"\"" SV_FMT "\" needs a level", SV_ARG(key));
	if (!level_parse(value, ret_l))
		return lang_error(l->d, s, w, "exact, stricter, partial or none",
				  "unknown level \"" SV_FMT "\"", SV_ARG(value));
	return true;
}

bool lower_guarantees(struct lower *l, const struct stmt *s)
{
	for (size_t i = 1; i < s->n; i++) {
		enum guarantee g;
		enum level level;

		if (!guarantee_word(l, s, &s->w[i], &g, &level))
			return false;
		if (s->kind == STMT_REQUIRE) {
			if (level >= l->set->require[g]) {
				l->set->require[g] = level;
				l->set->require_rule[g] = l->rule;
			}
		} else if (!l->set->accepts[g] || level < l->set->accept[g]) {
			l->set->accepts[g] = true;
			l->set->accept[g] = level;
			l->set->accept_rule[g] = l->rule;
		}
	}
	return true;
}
