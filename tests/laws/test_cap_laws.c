/*
 * Laws of capabilities, over random input. A failed law prints the texts that
 * broke it, once per law; WRIT_SEED and WRIT_CASES repeat or prolong a run.
 */
#include "tap.h"

#include <stdlib.h>

#include "cap/component.h"
#include "cap/set.h"
#include "gen.h"

enum { CASES = 40000, CASES_LONG = 500000, SET_SIZE = 6, SET_EVERY = 8 };

enum law {
	ROUND_TRIP = 0,
	MUTANT_ROUND_TRIP,
	REFLEXIVE,
	TRANSITIVE,
	ANTISYMMETRIC,
	SOUND,
	MEET_WITHIN_BOTH,
	MEET_COMMUTES,
	MEET_OF_NESTED,
	MEET_SOUND,
	DENIAL_NARROWS,
	DENIAL_WINS,
	DECIDE_IS_NAIVE,
	SET_MEET_WITHIN,
	SET_MEET_SOUND,
	SET_MEET_STRICT,
	SET_MEET_WITH_ITSELF,
	LAW_COUNT
};

static const struct {
	const char *name;
	size_t least; /* how often in a thousand cases it must have had something to say */
} laws[LAW_COUNT] = {
	[ROUND_TRIP] = { "printing the parts gives the text back", 1000 },
	[MUTANT_ROUND_TRIP] = { "an accepted mutant is as canonical as its origin", 100 },
	[REFLEXIVE] = { "within is reflexive", 1000 },
	[TRANSITIVE] = { "within is transitive", 200 },
	[ANTISYMMETRIC] = { "within both ways means the same text", 50 },
	[SOUND] = { "what a child matches its parent matches", 200 },
	[MEET_WITHIN_BOTH] = { "a meet is within both", 200 },
	[MEET_COMMUTES] = { "a meet is the same both ways", 1000 },
	[MEET_OF_NESTED] = { "the meet of child and parent is the child", 200 },
	[MEET_SOUND] = { "what a meet matches both match", 100 },
	[DENIAL_NARROWS] = { "one more denial never allows more", 1000 },
	[DENIAL_WINS] = { "what a denial matches is denied", 200 },
	[DECIDE_IS_NAIVE] = { "deciding skips nothing that matches", 1000 },
	[SET_MEET_WITHIN] = { "a meet of sets is within both", 50 },
	[SET_MEET_SOUND] = { "what a meet of sets matches both match", 50 },
	[SET_MEET_STRICT] = { "a meet of sets never answers more freely than either", 50 },
	[SET_MEET_WITH_ITSELF] = { "a set met with itself answers the same", 50 },
};

struct run {
	struct gen g;
	size_t tried[LAW_COUNT], broken[LAW_COUNT];
	size_t mutants, partial_meets, allowed, asked;
};

/* Counts one case in which @law had something to say. */
static bool holds(struct run *r, enum law law, bool yes, struct sv a, struct sv b, struct sv c)
{
	r->tried[law]++;
	if (!yes && r->broken[law]++ == 0)
		printf("# broken: %s\n#   " SV_FMT "\n#   " SV_FMT "\n#   " SV_FMT "\n",
		       laws[law].name, SV_ARG(a), SV_ARG(b), SV_ARG(c));
	return yes;
}

static void round_trip(struct run *r, enum law law, const struct cap *c)
{
	scoped_buf b = BUF_INIT(2 * CAP_TEXT_MAX);

	cap_print(c, &b);
	(void)holds(r, law, sv_eq(buf_view(&b), c->text), c->text, buf_view(&b), SV(""));
}

static bool parses(struct run *r, enum cap_kind kind, struct sv text, struct cap *c)
{
	struct writ_err err = { 0 };
	const int code = cap_parse(r->g.a, kind, text, c, &err);

	if (code < 0 && code != WRIT_E_SYNTAX && code != WRIT_E_LIMIT) {
		printf("Bail out! %s\n", err.what);
		exit(2);
	}
	return code == 0;
}

static void check_mutant(struct run *r, const struct cap *c)
{
	struct cap mutant;

	r->mutants++;
	if (!parses(r, c->kind, gen_mutated(&r->g, c->text), &mutant))
		return;
	round_trip(r, MUTANT_ROUND_TRIP, &mutant);
	if (c->kind == CAP_GRANT && cap_within(c, &mutant) && cap_within(&mutant, c))
		(void)holds(r, ANTISYMMETRIC, sv_eq(c->text, mutant.text), c->text, mutant.text,
			    SV(""));
}

static void check_within(struct run *r, const struct cap *parent, const struct cap *child,
			 const struct cap *grandchild)
{
	const bool in = cap_within(child, parent);

	(void)holds(r, REFLEXIVE, cap_within(parent, parent), parent->text, SV(""), SV(""));
	if (in && cap_within(grandchild, child))
		(void)holds(r, TRANSITIVE, cap_within(grandchild, parent), parent->text,
			    child->text, grandchild->text);
	if (in && cap_within(parent, child))
		(void)holds(r, ANTISYMMETRIC, sv_eq(parent->text, child->text), parent->text,
			    child->text, SV(""));
}

/* Of one act: mostly of the child, so that the law has something to say. */
static struct cap some_request(struct run *r, const struct cap *parent, const struct cap *child)
{
	const struct cap *from = gen_chance(&r->g, 75) ? child : parent;
	struct cap req = gen_request(&r->g, from), mutant;

	if (gen_chance(&r->g, 15) && parses(r, CAP_REQUEST, gen_mutated(&r->g, req.text), &mutant))
		return mutant;
	return req;
}

static bool meet(struct run *r, const struct cap *x, const struct cap *y, struct cap *ret_cap)
{
	struct writ_err err = { 0 };
	bool any = false;

	if (cap_meet(r->g.a, x, y, ret_cap, &any, &err) < 0)
		return !holds(r, MEET_WITHIN_BOTH, false, x->text, y->text, sv_from(err.what));
	return any;
}

static void check_meet(struct run *r, const struct cap *x, const struct cap *y,
		       const struct cap *req)
{
	struct cap one, two;
	const bool any = meet(r, x, y, &one), other = meet(r, y, x, &two);
	const bool x_in_y = cap_within(x, y), y_in_x = cap_within(y, x);

	(void)holds(r, MEET_COMMUTES, any == other && (!any || sv_eq(one.text, two.text)), x->text,
		    y->text, any && other ? two.text : SV("none one way"));
	if (x_in_y || y_in_x)
		(void)holds(r, MEET_OF_NESTED, any && sv_eq(one.text, x_in_y ? x->text : y->text),
			    x->text, y->text, any ? one.text : SV("none"));
	if (!any)
		return;
	r->partial_meets += !x_in_y && !y_in_x;
	(void)holds(r, MEET_WITHIN_BOTH, cap_within(&one, x) && cap_within(&one, y), x->text,
		    y->text, one.text);
	round_trip(r, ROUND_TRIP, &one);
	if (cap_matches(&one, req))
		(void)holds(r, MEET_SOUND, cap_matches(x, req) && cap_matches(y, req), x->text,
			    y->text, req->text);
}

/* --- Sets --- */

static void add(struct run *r, struct cap_set *s, const struct cap *c)
{
	struct cap_entry *e =
		c->kind == CAP_DENIAL ? vec_push(r->g.a, &s->nots) : vec_push(r->g.a, &s->caps);

	if (!e) {
		printf("Bail out! out of memory\n");
		exit(2);
	}
	*e = (struct cap_entry){ *c, (uint32_t)s->rules.n };
}

/* Section 7 word by word, without any skipping. */
static struct cap_verdict naive(const struct cap_set *s, const struct cap *req)
{
	struct cap_verdict v = { CAP_DENY, RULE_NONE, SIZE_MAX };
	size_t asks = SIZE_MAX;

	for (size_t i = 0; i < s->nots.n; i++)
		if (cap_denies(&s->nots.v[i].cap, req))
			return (struct cap_verdict){ CAP_DENY, s->nots.v[i].rule, i, 0 };
	for (size_t i = s->caps.n; i-- > 0;)
		if (cap_matches(&s->caps.v[i].cap, req) && !s->caps.v[i].cap.approve_n)
			v = (struct cap_verdict){ CAP_ALLOW, s->caps.v[i].rule, i, 0 };
	for (size_t i = s->prices.n; v.answer == CAP_ALLOW && i-- > 0;)
		if (cap_matches(&s->prices.v[i].cap, req) && s->prices.v[i].cap.approve_n)
			asks = i;
	if (asks != SIZE_MAX)
		v = (struct cap_verdict){ CAP_ASK, s->prices.v[asks].rule, v.entry, 0 };
	for (size_t i = s->caps.n; i-- > 0;)
		if (cap_matches(&s->caps.v[i].cap, req) && s->caps.v[i].cap.approve_n)
			v = (struct cap_verdict){ CAP_ASK, s->caps.v[i].rule, i, 0 };
	return v;
}

static struct cap_verdict decide(struct run *r, const struct cap_set *s, const struct cap *req)
{
	struct cap_set indexed = *s;
	const struct cap_verdict v = cap_set_decide(s, req), w = naive(s, req);
	struct cap_verdict x;

	if (!cap_set_index(r->g.a, &indexed)) {
		printf("Bail out! out of memory\n");
		exit(2);
	}
	x = cap_set_decide(&indexed, req);
	(void)holds(r, DECIDE_IS_NAIVE,
		    x.answer == w.answer && x.rule == w.rule && x.entry == w.entry, req->text,
		    SV("indexed"), SV(""));

	(void)holds(r, DECIDE_IS_NAIVE,
		    v.answer == w.answer && v.rule == w.rule && v.entry == w.entry, req->text,
		    s->caps.n ? s->caps.v[0].cap.text : SV(""),
		    s->nots.n ? s->nots.v[0].cap.text : SV(""));
	r->allowed += v.answer == CAP_ALLOW;
	r->asked += v.answer == CAP_ASK;
	return v;
}

static void check_denial(struct run *r, const struct cap *parent, const struct cap *child,
			 const struct cap *req)
{
	const struct cap denial =
		gen_chance(&r->g, 60) ? gen_denial_of(&r->g, req) : gen_denial(&r->g);
	struct cap_set s = { 0 };
	struct cap_verdict before, after;

	round_trip(r, ROUND_TRIP, &denial);
	add(r, &s, parent);
	add(r, &s, child);
	before = decide(r, &s, req);
	add(r, &s, &denial);
	after = decide(r, &s, req);
	(void)holds(r, DENIAL_NARROWS, after.answer <= before.answer, parent->text, denial.text,
		    req->text);
	if (cap_denies(&denial, req))
		(void)holds(r, DENIAL_WINS, after.answer == CAP_DENY, parent->text, denial.text,
			    req->text);
}

static bool any_matches(const struct cap_set *s, const struct cap *req)
{
	for (size_t i = 0; i < s->caps.n; i++)
		if (cap_matches(&s->caps.v[i].cap, req))
			return true;
	return false;
}

/* Dropping a member that asks for more would answer more freely than before. */
static void check_same_answers(struct run *r, const struct cap_set *x)
{
	struct writ_err err = { 0 };
	struct cap_set m = { 0 };

	if (cap_set_meet(r->g.a, x, x, &m, &err) < 0) {
		(void)holds(r, SET_MEET_WITH_ITSELF, false, sv_from(err.what), SV(""), SV(""));
		return;
	}
	for (size_t i = 0; i < x->caps.n; i++) {
		const struct cap req = gen_request(&r->g, &x->caps.v[i].cap);

		(void)holds(r, SET_MEET_WITH_ITSELF,
			    decide(r, &m, &req).answer == decide(r, x, &req).answer,
			    x->caps.v[i].cap.text, req.text, SV(""));
	}
}

/* Two sets from one family of grants, so that they overlap. */
static void check_sets(struct run *r)
{
	struct cap_set x = { 0 }, y = { 0 }, m = { 0 };
	struct writ_err err = { 0 };
	size_t culprit;

	for (int i = 0; i < SET_SIZE; i++) {
		const struct cap parent = gen_grant(&r->g);
		const struct cap one = gen_narrow(&r->g, &parent);
		const struct cap two = gen_narrow(&r->g, &parent);
		const struct cap denial = gen_denial(&r->g);

		add(r, &x, gen_chance(&r->g, 50) ? &parent : &one);
		if (gen_chance(&r->g, 30))
			add(r, &x, &one);
		add(r, &y, &two);
		if (i < 2)
			add(r, i ? &x : &y, &denial);
	}
	x.limits[gen_below(&r->g, LIMIT_COUNT)] = 1 + gen_below(&r->g, 5);
	y.limits[gen_below(&r->g, LIMIT_COUNT)] = 1 + gen_below(&r->g, 5);
	if (cap_set_meet(r->g.a, &x, &y, &m, &err) < 0) {
		(void)holds(r, SET_MEET_WITHIN, false, sv_from(err.what), SV(""), SV(""));
		return;
	}
	check_same_answers(r, &x);
	if (m.caps.n)
		(void)holds(r, SET_MEET_WITHIN,
			    cap_set_within(&m, &x, &culprit) && cap_set_within(&m, &y, &culprit),
			    m.caps.v[0].cap.text, SV(""), SV(""));
	for (size_t i = 0; i < m.caps.n; i++) {
		const struct cap req = gen_request(&r->g, &m.caps.v[i].cap);

		if (any_matches(&m, &req))
			(void)holds(r, SET_MEET_SOUND,
				    any_matches(&x, &req) && any_matches(&y, &req),
				    m.caps.v[i].cap.text, req.text, SV(""));
		(void)holds(r, SET_MEET_STRICT,
			    decide(r, &m, &req).answer <= decide(r, &x, &req).answer &&
				    decide(r, &m, &req).answer <= decide(r, &y, &req).answer,
			    m.caps.v[i].cap.text, req.text, SV(""));
	}
}

static void one_case(struct run *r, size_t i)
{
	struct gen *g = &r->g;
	const struct cap parent = gen_grant(g);
	const struct cap child = gen_chance(g, 80) ? gen_narrow(g, &parent) : gen_grant(g);
	const struct cap sibling = gen_narrow(g, &parent);
	const struct cap grandchild = gen_narrow(g, &child);
	const struct cap req = some_request(r, &parent, &child);

	round_trip(r, ROUND_TRIP, &parent);
	round_trip(r, ROUND_TRIP, &child);
	round_trip(r, ROUND_TRIP, &req);
	check_mutant(r, &parent);
	check_mutant(r, &req);
	check_within(r, &parent, &child, &grandchild);
	if (cap_within(&child, &parent) && cap_matches(&child, &req))
		(void)holds(r, SOUND, cap_matches(&parent, &req), parent.text, child.text,
			    req.text);
	check_meet(r, &parent, &child, &req);
	check_meet(r, &sibling, &child, &req);
	check_denial(r, &parent, &child, &req);
	if (i % SET_EVERY == 0)
		check_sets(r);
}

static size_t number(const char *name, size_t otherwise)
{
	const char *text = getenv(name);
	uint64_t v;

	return text && sv_to_u64(sv_from(text), SIZE_MAX, &v) ? (size_t)v : otherwise;
}

int main(void)
{
	scoped_arena arena = ARENA_INIT(64 << 20);
	const size_t cases = number("WRIT_CASES", getenv("WRIT_TEST_LONG") ? CASES_LONG : CASES);
	const size_t seed = number("WRIT_SEED", 20240607);
	struct run r = { .g = { .state = seed, .a = &arena } };
	size_t all = 0;

	printf("# seed %zu\n", seed);
	for (size_t i = 0; i < cases; i++) {
		one_case(&r, i);
		if (arena.used > 1 << 20)
			arena_clear(&arena);
	}
	for (enum law l = 0; l < LAW_COUNT; l++) {
		const size_t least = cases * laws[l].least / 1000;

		ok(r.broken[l] == 0, "%s (%zu of %zu broken)", laws[l].name, r.broken[l],
		   r.tried[l]);
		ok(r.tried[l] >= least, "and was tried at least %zu times", least);
		all += r.tried[l];
	}
	ok(r.partial_meets >= cases / 20, "%zu meets were smaller than both", r.partial_meets);
	ok(r.allowed >= cases / 5 && r.asked >= cases / 50, "%zu allowed, %zu asked", r.allowed,
	   r.asked);
	tap_note("%zu cases in %zu rounds, and %zu mutants", all, cases, r.mutants);
	return tap_done();
}
