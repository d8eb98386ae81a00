#include "cap/set.h"

#include "crypto/crypto.h"

#include "base/banned.h"

static const char *const limit_names[LIMIT_COUNT] = {
	[LIMIT_COMMAND] = "command",   [LIMIT_CPU] = "cpu",	    [LIMIT_DISK] = "disk",
	[LIMIT_DOWN] = "down",	       [LIMIT_FILES] = "files",	    [LIMIT_IDLE] = "idle",
	[LIMIT_MEMORY] = "memory",     [LIMIT_OUTPUT] = "output",   [LIMIT_PIDS] = "pids",
	[LIMIT_REQUESTS] = "requests", [LIMIT_SESSION] = "session", [LIMIT_UP] = "up",
};

const char *cap_limit_name(enum cap_limit l)
{
	return l < LIMIT_COUNT ? limit_names[l] : "unknown";
}

bool cap_limit_parse(struct sv s, enum cap_limit *ret_l)
{
	const size_t i = sv_index(s, limit_names, LIMIT_COUNT);

	if (i < LIMIT_COUNT)
		*ret_l = (enum cap_limit)i;
	return i < LIMIT_COUNT;
}

static bool has_parent(const struct cap *c, const struct cap_set *parent)
{
	for (size_t i = 0; i < parent->caps.n; i++)
		if (cap_within(c, &parent->caps.v[i].cap))
			return true;
	return false;
}

bool cap_set_within(const struct cap_set *child, const struct cap_set *parent, size_t *ret_culprit)
{
	for (size_t i = 0; i < child->caps.n; i++) {
		if (!has_parent(&child->caps.v[i].cap, parent)) {
			*ret_culprit = i;
			return false;
		}
	}
	for (enum cap_limit l = 0; l < LIMIT_COUNT; l++) {
		const uint64_t most = parent->limits[l];

		if (most && (child->limits[l] == 0 || child->limits[l] > most)) {
			*ret_culprit = SIZE_MAX;
			return false;
		}
	}
	return true;
}

/* --- Meet --- */

/*
 * Returns the index that a rule of set y has in the meet of x and y, where the rules of y follow
 * those of x.
 */
static uint32_t rule_index_in_meet(const struct cap_set *x, uint32_t rule)
{
	return rule == RULE_NONE ? RULE_NONE : rule + (uint32_t)x->rules.n;
}

static int add_rules(struct arena *a, const struct cap_set *from, struct cap_set *to,
		     struct writ_err *err)
{
	for (size_t i = 0; i < from->rules.n; i++) {
		struct cap_rule rule = from->rules.v[i];

		if (!arena_sv(a, rule.file, &rule.file) || !arena_sv(a, rule.text, &rule.text) ||
		    !vec_add(a, &to->rules, rule))
			return writ_nomem(err);
	}
	return 0;
}

static bool has_text(const struct cap_entry *v, size_t n, struct sv text)
{
	for (size_t i = 0; i < n; i++)
		if (sv_eq(v[i].cap.text, text))
			return true;
	return false;
}

static bool is_priced(const struct cap *c)
{
	return c->approve_n || c->n || c->max_in || c->max_out || c->rate_n;
}

/*
 * Adds the entries in @v that @to, the result of the meet, does not have yet: denials to its
 * denials, and grants that have a price to its prices. @x is NULL if @v belongs to the first set,
 * whose rules keep their indices.
 * SECURITY: the meet of two grants may match fewer requests than each of the two grants. Another
 * grant can still allow a request in the difference, and that request would escape the price of the
 * first grant. Therefore keep priced grants as prices.
 */
static int add_entries(struct arena *a, enum cap_kind kind, const struct cap_entry *v, size_t n,
		       const struct cap_set *x, struct cap_set *to, struct writ_err *err)
{
	for (size_t i = 0; i < n; i++) {
		const bool deny = kind == CAP_DENIAL;
		struct cap_entry add;
		int r;

		if (deny ? has_text(to->nots.v, to->nots.n, v[i].cap.text)
			 : !is_priced(&v[i].cap) ||
				   has_text(to->prices.v, to->prices.n, v[i].cap.text))
			continue;
		add.rule = x ? rule_index_in_meet(x, v[i].rule) : v[i].rule;
		r = cap_parse(a, kind, v[i].cap.text, &add.cap, err);
		if (r < 0)
			return r;
		if (!(deny ? vec_add(a, &to->nots, add) : vec_add(a, &to->prices, add)))
			return writ_nomem(err);
	}
	return 0;
}

static bool same_price(const struct cap *a, const struct cap *b)
{
	return a->approve_n == b->approve_n && a->n == b->n && a->max_in == b->max_in &&
	       a->max_out == b->max_out && a->rate_n == b->rate_n && a->rate_s == b->rate_s;
}

/*
 * Does grant @all make grant @c superfluous?
 * SECURITY: every grant that matches must be paid for, so a grant with a higher price than the
 * grant around it is a restriction and must stay.
 */
static bool covers(const struct cap *all, const struct cap *c)
{
	return cap_within(c, all) && same_price(c, all);
}

/* Adds @c to the set unless a grant of the set covers @c, and removes the grants that @c covers. */
static int add_cap(struct arena *a, const struct cap *c, uint32_t rule, struct cap_set *to,
		   struct writ_err *err)
{
	size_t kept = 0;

	for (size_t i = 0; i < to->caps.n; i++)
		if (covers(&to->caps.v[i].cap, c))
			return 0;
	for (size_t i = 0; i < to->caps.n; i++)
		if (!covers(c, &to->caps.v[i].cap))
			to->caps.v[kept++] = to->caps.v[i];
	to->caps.n = kept;
	return vec_add(a, &to->caps, (struct cap_entry){ *c, rule }) ? 0 : writ_nomem(err);
}

static int meet_caps(struct arena *a, const struct cap_set *x, const struct cap_set *y,
		     struct cap_set *to, struct writ_err *err)
{
	for (size_t i = 0; i < x->caps.n; i++) {
		for (size_t j = 0; j < y->caps.n; j++) {
			struct cap c;
			bool any = false;
			int r = cap_meet(a, &x->caps.v[i].cap, &y->caps.v[j].cap, &c, &any, err);

			if (r < 0 ||
			    (any && (r = add_cap(a, &c, rule_index_in_meet(x, y->caps.v[j].rule),
						 to, err)) < 0))
				return r;
		}
	}
	return 0;
}

static void meet_limits(const struct cap_set *x, const struct cap_set *y, struct cap_set *to)
{
	for (enum cap_limit l = 0; l < LIMIT_COUNT; l++) {
		const bool from_y = y->limits[l] && (!x->limits[l] || y->limits[l] < x->limits[l]);

		to->limits[l] = from_y ? y->limits[l] : x->limits[l];
		to->limit_rule[l] =
			from_y ? rule_index_in_meet(x, y->limit_rule[l]) : x->limit_rule[l];
	}
}

/*
 * Meets the guarantees of two sets: takes the stronger requirement, and accepts a weaker level only
 * if both sets accept that level.
 */
static void meet_guarantees(const struct cap_set *x, const struct cap_set *y, struct cap_set *to)
{
	for (enum guarantee g = 0; g < G_COUNT; g++) {
		bool from_y = y->require[g] > x->require[g];

		to->require[g] = from_y ? y->require[g] : x->require[g];
		to->require_rule[g] =
			from_y ? rule_index_in_meet(x, y->require_rule[g]) : x->require_rule[g];

		to->accepts[g] = x->accepts[g] && y->accepts[g];
		if (!to->accepts[g])
			continue;
		from_y = y->accept[g] > x->accept[g];
		to->accept[g] = from_y ? y->accept[g] : x->accept[g];
		to->accept_rule[g] =
			from_y ? rule_index_in_meet(x, y->accept_rule[g]) : x->accept_rule[g];
	}
}

static void meet_settings(const struct cap_set *x, const struct cap_set *y, struct cap_set *to)
{
	const struct cap_set *of = y->isolation > x->isolation ? y : x;

	to->isolation = of->isolation;
	to->isolation_rule =
		of == y ? rule_index_in_meet(x, of->isolation_rule) : of->isolation_rule;
	of = y->workspace > x->workspace ? y : x;
	to->workspace = of->workspace;
	to->workspace_rule =
		of == y ? rule_index_in_meet(x, of->workspace_rule) : of->workspace_rule;
	of = y->net_level > x->net_level ? y : x;
	to->net_level = of->net_level;
	to->net_level_rule =
		of == y ? rule_index_in_meet(x, of->net_level_rule) : of->net_level_rule;
}

int cap_set_meet(struct arena *a, const struct cap_set *x, const struct cap_set *y,
		 struct cap_set *ret, struct writ_err *err)
{
	struct cap_set s = { 0 };
	int r;

	if ((r = add_rules(a, x, &s, err)) < 0 || (r = add_rules(a, y, &s, err)) < 0 ||
	    (r = add_entries(a, CAP_DENIAL, x->nots.v, x->nots.n, NULL, &s, err)) < 0 ||
	    (r = add_entries(a, CAP_DENIAL, y->nots.v, y->nots.n, x, &s, err)) < 0 ||
	    (r = meet_caps(a, x, y, &s, err)) < 0 ||
	    (r = add_entries(a, CAP_GRANT, x->caps.v, x->caps.n, NULL, &s, err)) < 0 ||
	    (r = add_entries(a, CAP_GRANT, x->prices.v, x->prices.n, NULL, &s, err)) < 0 ||
	    (r = add_entries(a, CAP_GRANT, y->caps.v, y->caps.n, x, &s, err)) < 0 ||
	    (r = add_entries(a, CAP_GRANT, y->prices.v, y->prices.n, x, &s, err)) < 0)
		return r;
	meet_limits(x, y, &s);
	meet_guarantees(x, y, &s);
	meet_settings(x, y, &s);
	/*
	 * Keep the digest of the base profile only if both sets have the same one: different base
	 * profiles have no meet.
	 */
	s.has_rt = x->has_rt && y->has_rt && digest_eq(&x->rt, &y->rt);
	if (s.has_rt)
		s.rt = x->rt;
	*ret = s;
	return 0;
}

bool cap_set_has(const struct cap_set *set, enum cap_action action)
{
	for (size_t i = 0; i < set->caps.n; i++)
		if (set->caps.v[i].cap.action == action)
			return true;
	return false;
}

bool cap_set_kernel(const struct cap_set *set, const char *name)
{
	for (size_t i = 0; i < set->caps.n; i++) {
		const struct cap *c = &set->caps.v[i].cap;

		if (c->action == CAP_KERNEL_USE && c->path.n == 1 &&
		    sv_is(c->path.segs[0].pre, name))
			return true;
	}
	return false;
}

/* Returns the number of segments before the first wildcard of @s. */
static size_t literal_head(const struct cap_seq *s)
{
	size_t n = 0;

	while (n < s->n && n < s->hole && !s->segs[n].star)
		n++;
	return n;
}

/* Does the literal prefix of @c's path lead into the workspace of @s? */
static bool in_workspace(const struct cap_set *s, const struct cap *c)
{
	const struct cap_seq *root = &s->root.path;

	if (s->root.action == CAP_NONE || literal_head(&c->path) < root->n)
		return false;
	for (size_t i = 0; i < root->n; i++)
		if (!sv_eq(c->path.segs[i].pre, root->segs[i].pre))
			return false;
	return true;
}

bool cap_set_is_base_tree(const struct cap_set *s, const struct cap_entry *e)
{
	return e->cap.action == CAP_FS_READ && e->rule < s->rules.n &&
	       s->rules.v[e->rule].built_in && !in_workspace(s, &e->cap);
}

bool cap_set_spares_base(const struct cap_set *s, const struct cap *d)
{
	const size_t head = literal_head(&d->path);
	bool over = false;

	if (d->action != CAP_FS_READ || (head == d->path.n && d->path.hole == SIZE_MAX))
		return false;
	for (size_t i = 0; i < s->caps.n; i++) {
		const struct cap_seq *tree = &s->caps.v[i].cap.path;
		size_t same = 0;

		if (!cap_set_is_base_tree(s, &s->caps.v[i]))
			continue;
		while (same < head && same < tree->n &&
		       sv_eq(tree->segs[same].pre, d->path.segs[same].pre))
			same++;
		if (same == tree->n)
			return false;
		over = over || same == head;
	}
	return over;
}

/*
 * A denial exempts system files only if every grant that matches the request comes from base. If a
 * rule of the user grants the path too, the user decided about the path, and denials apply as
 * written. Each hop must also allow or exempt the request.
 */
bool cap_set_base_only(const struct cap_set *s, const struct cap *req, uint32_t *ret_rule)
{
	const struct cap_entry *grant = NULL;

	for (size_t i = 0; i < s->caps.n; i++) {
		const struct cap_entry *e = &s->caps.v[i];

		if (!cap_matches(&e->cap, req))
			continue;
		if (!cap_set_is_base_tree(s, e))
			return false;
		grant = grant ? grant : e;
	}
	for (size_t i = 0; grant && i < s->nots.n; i++)
		if (cap_denies(&s->nots.v[i].cap, req) &&
		    !cap_set_spares_base(s, &s->nots.v[i].cap))
			return false;
	for (size_t i = 0; grant && i < s->hops_n; i++) {
		const struct cap_verdict v = cap_set_decide(&s->hops[i], req);
		uint32_t rule;

		if (v.answer == CAP_DENY && !cap_set_base_only(&s->hops[i], req, &rule))
			return false;
	}
	if (grant)
		*ret_rule = grant->rule;
	return grant != NULL;
}

int cap_set_price_uses(struct arena *a, struct cap_set *s, struct writ_err *err)
{
	for (size_t i = 0; i < s->caps.n; i++) {
		const struct cap *c = &s->caps.v[i].cap;

		if ((c->n || c->max_in || c->max_out) &&
		    !has_text(s->prices.v, s->prices.n, c->text) &&
		    !vec_add(a, &s->prices, s->caps.v[i]))
			return writ_nomem(err);
	}
	return 0;
}
