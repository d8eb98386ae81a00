#include "lang/lower_priv.h"
#include "lang/protect.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

static const struct cap_entry *caps_of(const struct lower *l, const struct lowered_rule *r)
{
	return l->set->caps.v ? l->set->caps.v + r->cap_from : NULL;
}

static const struct cap_entry *nots_of(const struct lower *l, const struct lowered_rule *r)
{
	return l->set->nots.v ? l->set->nots.v + r->not_from : NULL;
}

/* --- duplicates in one file --- */

struct keyed {
	uint64_t hash;
	const struct lowered_rule *r;
};

static uint64_t hash_more(uint64_t h, struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (unsigned char)s.p[i]) * UINT64_C(0x100000001b3);
	return (h ^ 0xff) * UINT64_C(0x100000001b3);
}

/* `limit time` is an alias of `limit command`. */
static struct sv limit_key(const struct stmt *s)
{
	return sv_is(s->w[1].text, "time") ? SV("command") : s->w[1].text;
}

/*
 * Hashes the meaning of a statement: its capabilities, or its words if the statement has no
 * capabilities.
 */
static uint64_t hash_rule(const struct lower *l, const struct lowered_rule *r)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < r->cap_n; i++)
		h = hash_more(h, caps_of(l, r)[i].cap.text);
	for (size_t i = 0; i < r->not_n; i++)
		h = hash_more(hash_more(h, SV("not")), nots_of(l, r)[i].cap.text);
	if (r->cap_n + r->not_n)
		return h;
	if (r->s->kind == STMT_LIMIT)
		return hash_more(hash_more(h, SV("limit")), limit_key(r->s));
	for (size_t i = 0; i < r->s->n; i++)
		h = hash_more(h, r->s->w[i].text);
	return h;
}

static bool same_entries(const struct cap_entry *x, const struct cap_entry *y, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!sv_eq(x[i].cap.text, y[i].cap.text))
			return false;
	return true;
}

static bool same_meaning(const struct lower *l, const struct lowered_rule *x,
			 const struct lowered_rule *y)
{
	if (x->cap_n != y->cap_n || x->not_n != y->not_n)
		return false;
	if (x->cap_n + x->not_n)
		return same_entries(caps_of(l, x), caps_of(l, y), x->cap_n) &&
		       same_entries(nots_of(l, x), nots_of(l, y), x->not_n);
	if (x->s->kind != y->s->kind)
		return false;
	if (x->s->kind == STMT_LIMIT)
		return sv_eq(limit_key(x->s), limit_key(y->s));
	if (x->s->n != y->s->n)
		return false;
	for (size_t i = 0; i < x->s->n; i++)
		if (!sv_eq(x->s->w[i].text, y->s->w[i].text))
			return false;
	return true;
}

static int by_hash(const void *x, const void *y)
{
	const struct keyed *a = x, *b = y;

	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	return a->r->s->line < b->r->s->line ? -1 : a->r->s->line > b->r->s->line;
}

static void check_duplicates(struct lower *l, size_t from)
{
	const size_t n = l->done.n - from;
	struct keyed *k = arena_array(l->a, struct keyed, n ? n : 1);

	if (!k) {
		l->d->lost = true;
		l->d->errors++;
		return;
	}
	for (size_t i = 0; i < n; i++)
		k[i] = (struct keyed){ hash_rule(l, &l->done.v[from + i]), &l->done.v[from + i] };
	qsort(k, n, sizeof(*k), by_hash);
	for (size_t i = 1; i < n; i++) {
		if (k[i].hash == k[i - 1].hash && same_meaning(l, k[i].r, k[i - 1].r))
			diag_add(l->d, DIAG_ERROR, lang_stmt_place(k[i].r->s), "keep one of them",
				 "this says the same as line %u", k[i - 1].r->s->line);
	}
}

/* --- rules that can never match --- */

/*
 * An entry of a deny or ask rule, rewritten as the grant that covers the same requests. Another
 * grant within this grant can never take effect.
 */
struct shadow {
	struct cap cap;
	const struct stmt *s;
	bool denies;
};

struct shadows {
	VEC(struct shadow) list;
};

static bool add_shadow(struct lower *l, struct shadows *out, const struct cap *from,
		       const struct stmt *s)
{
	struct shadow sh = { .s = s, .denies = from->kind == CAP_DENIAL };
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX + 64);
	struct writ_err err = { 0 };

	/*
	 * Make a valid grant from the entry: remove the approval of an ask rule; add the params
	 * that a grant of HTTP requires to a denial.
	 */
	if (from->approve_n) {
		const struct sv word = SV(";approve=operator");
		const char *hit = memmem(from->text.p, from->text.n, word.p, word.n);
		const size_t at = hit ? (size_t)(hit - from->text.p) : from->text.n;

		buf_sv(&b, sv_sub(from->text, 0, at));
		buf_sv(&b, sv_skip(from->text, at + word.n));
	} else {
		buf_sv(&b, from->text);
		if (from->action == CAP_HTTP_REQUEST)
			buf_str(&b, ";m=*;q=any");
	}
	/*
	 * No grant can have the form of an entry that does not parse, so such an entry covers no
	 * grant.
	 */
	return cap_parse(l->a, CAP_GRANT, buf_view(&b), &sh.cap, &err) < 0 ||
	       vec_add(l->a, &out->list, sh);
}

static bool collect_shadows(struct lower *l, size_t from, struct shadows *out)
{
	for (size_t i = from; i < l->done.n; i++) {
		const struct lowered_rule *r = &l->done.v[i];

		for (size_t j = 0; j < r->not_n; j++)
			if (!add_shadow(l, out, &nots_of(l, r)[j].cap, r->s))
				return false;
		for (size_t j = 0; j < r->cap_n && r->s->effect == EFFECT_ASK; j++)
			if (!add_shadow(l, out, &caps_of(l, r)[j].cap, r->s))
				return false;
	}
	return true;
}

/*
 * Is @c the main capability of rule @r? A `write` rule also grants reading, and that grant may
 * still take effect.
 */
static bool is_main_act(const struct lowered_rule *r, const struct cap *c)
{
	return c->action != CAP_FS_READ || r->s->verb->id == VERB_READ;
}

static void check_dead(struct lower *l, const struct lowered_rule *r, const struct shadows *shadows)
{
	for (size_t i = 0; i < r->cap_n; i++) {
		const struct cap *c = &caps_of(l, r)[i].cap;

		if (!is_main_act(r, c))
			continue;
		for (size_t j = 0; j < shadows->list.n; j++) {
			const struct shadow *sh = &shadows->list.v[j];

			if (sh->s == r->s || (!sh->denies && r->s->effect != EFFECT_ALLOW) ||
			    !cap_within(c, &sh->cap))
				continue;
			diag_add(l->d, DIAG_ERROR, lang_stmt_place(r->s),
				 "deny beats ask beats allow, wherever they stand",
				 "this can never match: line %u %s all of it", sh->s->line,
				 sh->denies ? "denies" : "asks for");
			return;
		}
	}
}

void lang_check_file(struct lower *l, size_t from)
{
	struct shadows shadows = { 0 };

	check_duplicates(l, from);
	if (!collect_shadows(l, from, &shadows)) {
		l->d->lost = true;
		l->d->errors++;
		return;
	}
	if (shadows.list.n == 0)
		return;
	for (size_t i = from; i < l->done.n; i++)
		if (l->done.v[i].s->kind == STMT_RULE)
			check_dead(l, &l->done.v[i], &shadows);
}

void lang_check_within(struct lower *child, const struct cap_set *parent, enum diag_level level,
		       const char *fmt)
{
	for (size_t i = 0; i < child->done.n; i++) {
		const struct lowered_rule *r = &child->done.v[i];
		bool covered = true;

		/*
		 * Warn only about rules and limits. check_narrow_kinds() reports other statements
		 * of an untrusted file that have no effect.
		 */
		if (level == DIAG_WARNING && r->s->kind != STMT_RULE && r->s->kind != STMT_LIMIT)
			continue;
		for (size_t j = 0; covered && j < r->cap_n; j++) {
			covered = false;
			for (size_t k = 0; !covered && k < parent->caps.n; k++)
				covered = cap_within(&caps_of(child, r)[j].cap,
						     &parent->caps.v[k].cap);
		}
		if (r->s->kind == STMT_LIMIT) {
			enum cap_limit key = LIMIT_COMMAND;
			const bool known = cap_limit_parse(r->s->w[1].text, &key) ||
					   sv_is(r->s->w[1].text, "time");

			covered = known && (parent->limits[key] == 0 ||
					    child->set->limits[key] <= parent->limits[key]);
		}
		if (!covered)
			diag_add(child->d, level, lang_stmt_place(r->s), NULL, "%s", fmt);
	}
}

/* --- secrets --- */

/* Returns the secret whose value or placeholder the variable @e would expose, or NULL. */
static const struct policy_secret *exposed_secret(const struct policy *p,
						  const struct policy_setenv *e)
{
	for (size_t i = 0; i < p->secrets.n; i++) {
		const struct policy_secret *s = &p->secrets.v[i];

		if (sv_is(s->form, "env"))
			continue;
		if (protect_star(e->name, s->name) ||
		    (e->pass && s->kind == SECRET_ENV && protect_star(e->name, s->source)))
			return s;
	}
	return NULL;
}

/*
 * Reports a secret for a tls=passthrough rule. writ inserts secrets into decrypted requests and
 * never decrypts tls=passthrough connections.
 */
static void check_passthrough(struct lower *l, const struct lowered_rule *r)
{
	const struct cap *s = &caps_of(l, r)[0].cap;

	for (size_t i = 0; i < l->set->caps.n; i++) {
		const struct cap *c = &l->set->caps.v[i].cap;

		if (c->action == CAP_HTTP_REQUEST && c->tls_pass && c->url.port == s->to.port &&
		    sv_eq(c->url.host.name, s->to.host.name) &&
		    c->url.host.kind == s->to.host.kind) {
			diag_add(l->d, DIAG_ERROR, lang_stmt_place(r->s),
				 "leave out tls=passthrough, or say as env",
				 "this host is passed through, so the secret could never be set");
			return;
		}
	}
}

void lang_check_secrets(struct lower *l)
{
	for (size_t i = 0; i < l->done.n; i++) {
		const struct lowered_rule *r = &l->done.v[i];
		const struct cap_entry *secret =
			r->s->kind == STMT_SECRET && r->cap_n ? caps_of(l, r) : NULL;

		if (secret && !sv_is(secret->cap.as, "env"))
			check_passthrough(l, r);
	}
	for (size_t i = 0; i < l->policy->envs.n; i++) {
		const struct policy_setenv *e = &l->policy->envs.v[i];
		const struct policy_secret *s = exposed_secret(l->policy, e);

		for (size_t k = 0; s && k < l->done.n; k++)
			if (l->done.v[k].rule == e->rule && l->done.v[k].s->kind == STMT_ENV)
				diag_add(l->d, DIAG_ERROR, lang_stmt_place(l->done.v[k].s),
					 "leave it out: a placeholder of that name stands inside "
					 "anyway",
					 "secret " SV_FMT
					 " stays outside, and this would let it in",
					 SV_ARG(s->name));
	}
}

/* --- test lines --- */

static const char *const answers[] = {
	[CAP_DENY] = "denied", [CAP_ASK] = "asked about", [CAP_ALLOW] = "allowed"
};

void lang_check_tests(struct lower *l, const struct cap_set *set)
{
	for (size_t i = 0; i < l->tests.n; i++) {
		const struct stmt *s = l->tests.v[i];
		struct policy_question q;
		struct cap_verdict v;
		const struct protect_name *row;
		const char *hint = "nothing allows it, and the default is to deny";

		l->policy->tests++;
		if (!lang_question_lower(l, s, &q))
			continue;
		v = policy_answer(set, &q);
		row = policy_protects(l->policy, l->env->workspace, set, &q, &v);
		if (row)
			v.answer = CAP_DENY;
		if ((unsigned)v.answer == (unsigned)s->effect)
			continue;
		if (row)
			hint = arena_fmt(l->a, "%s is protected: %s; `open %s` lifts that",
					 row->name, row->why, row->name);
		else if (v.rule != RULE_NONE)
			hint = arena_fmt(l->a, "because of " SV_FMT ":%u: " SV_FMT,
					 SV_ARG(set->rules.v[v.rule].file),
					 set->rules.v[v.rule].line,
					 SV_ARG(set->rules.v[v.rule].text));
		else if (v.answer == CAP_ALLOW)
			hint = "every session has this directory for itself";
		else if (q.request.action == CAP_NET_CONNECT && q.request.tls_pass)
			hint = "this asks about any request to that host; with a path it asks "
			       "about one";
		diag_add(l->d, DIAG_ERROR, lang_stmt_place(s), hint,
			 "test failed: " SV_FMT " is %s", SV_ARG(q.text), answers[v.answer]);
	}
}
