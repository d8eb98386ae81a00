#include "lang/load_priv.h"

#include <inttypes.h>
#include <string.h>

#include "base/banned.h"

/*
 * State of policy_chain() while it builds the policy of a session that runs under tokens. The
 * rights of the session come from the tokens alone; this machine adds only the base profile, which
 * every session has.
 */

struct chained {
	struct lower l; /* lowering state; .set is the meet of the hops processed so far */
	struct cap_set *hops;
	size_t n;
	const struct policy *agents; /* agents described by the command line's rules, or NULL */
};

static int add_rule(struct lower *l, struct cap_set *set, struct sv file, struct sv text,
		    enum cap_rule_kind kind)
{
	struct cap_rule *r = vec_push(l->a, &set->rules);

	if (!r)
		return writ_nomem(l->err);
	/* A path that a token names may be missing on this machine. Treat the path as optional. */
	*r = (struct cap_rule){ .file = file,
				.line = (uint32_t)set->rules.n,
				.text = text,
				.kind = kind,
				.optional = true };
	return 0;
}

/*
 * Copies the entries of the set @from and makes a rule for each entry, so that messages can name
 * the entry that decided.
 */
static int copy_entries(struct lower *l, struct cap_set *to, const struct cap_set *from,
			struct sv name)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < from->caps.n + from->nots.n; i++) {
		const bool deny = i >= from->caps.n;
		const struct cap *c =
			deny ? &from->nots.v[i - from->caps.n].cap : &from->caps.v[i].cap;
		const struct cap_entry e = { *c, (uint32_t)to->rules.n };

		if (!(deny ? vec_add(l->a, &to->nots, e) : vec_add(l->a, &to->caps, e)))
			return writ_nomem(l->err);
		r = add_rule(l, to, name, c->text, RULE_GRANTS);
	}
	return r;
}

static int copy_hop(struct lower *l, struct cap_set *to, const struct policy_hop *hop)
{
	const char *text;
	int r;

	lang_init_set(to);
	to->says = hop->says;
	r = copy_entries(l, to, hop->set, hop->name);
	for (enum cap_limit i = 0; r == 0 && i < LIMIT_COUNT; i++) {
		if (hop->set->limits[i] == 0)
			continue;
		to->limits[i] = hop->set->limits[i];
		to->limit_rule[i] = (uint32_t)to->rules.n;
		text = arena_fmt(l->a, "limit %s=%" PRIu64, cap_limit_name(i), to->limits[i]);
		r = text ? add_rule(l, to, hop->name, sv_from(text), RULE_LIMIT)
			 : writ_nomem(l->err);
	}
	for (enum guarantee g = 0; r == 0 && g < G_COUNT; g++) {
		if (hop->set->require[g] == LEVEL_NONE)
			continue;
		to->require[g] = hop->set->require[g];
		to->require_rule[g] = (uint32_t)to->rules.n;
		text = arena_fmt(l->a, "require %s=%s", guarantee_name(g),
				 level_name(to->require[g]));
		r = text ? add_rule(l, to, hop->name, sv_from(text), RULE_REQUIRE)
			 : writ_nomem(l->err);
	}
	return r;
}

/* --- rules of the command line: one more hop --- */

static bool has_grants(const struct policy_input *in)
{
	for (size_t i = 0; i < in->args_n; i++)
		if (in->args[i].kind == ARG_ALLOW || in->args[i].kind == ARG_ASK ||
		    in->args[i].kind == ARG_USE)
			return true;
	return in->files_n > 0;
}

static bool can_narrow(const struct policy_input *in, struct writ_err *err)
{
	for (size_t i = 0; i < in->args_n; i++)
		if (in->args[i].kind == ARG_SECRET || in->args[i].kind == ARG_ENV) {
			(void)!writ_fail(err, WRIT_E_DENIED, 0,
					 SV_FMT " adds something, and a token can only be narrowed",
					 SV_ARG(in->args[i].src.name));
			return false;
		}
	return true;
}

static int narrow_by_args(struct chained *c, const struct policy_input *in)
{
	const bool all = !has_grants(in);
	struct loader o = { .agents_ok = true };
	struct cap_set *own;
	int r;

	if (in->args_n + in->files_n == 0)
		return 0;
	if (!can_narrow(in, c->l.err))
		return WRIT_E_DENIED;
	r = lang_fork_lower(&c->l, &o.l);
	o.l.policy = arena_new(c->l.a, struct policy);
	if (r < 0 || !o.l.policy)
		return writ_nomem(c->l.err);
	r = lang_load_inputs(&o, in);
	if (r < 0 || c->l.d->errors)
		return r;
	own = o.l.set;
	if (!all) {
		lang_check_within(&o.l, c->l.set, DIAG_WARNING,
				  "this asks for more than the token allows, so it is cut down");
		r = lang_default_exec(&o.l);
	}
	/*
	 * Keep grants of the tokens whose actions the command line cannot narrow; if the command
	 * line has no grant, keep all grants of the tokens.
	 */
	for (size_t i = 0; r == 0 && i < c->l.set->caps.n; i++) {
		const struct cap *cap = &c->l.set->caps.v[i].cap;

		if (!all && !lang_is_operator_action(cap->action))
			continue;
		if (!vec_add(c->l.a, &own->caps,
			     (struct cap_entry){ *cap, (uint32_t)own->rules.n }))
			return writ_nomem(c->l.err);
		r = add_rule(&o.l, own, SV("token"), cap->text, RULE_GRANTS);
	}
	c->agents = o.l.policy;
	own->says = SV("the rules of the command line dropped it");
	c->hops[c->n++] = *own;
	return r;
}

/* --- putting it together --- */

static int meet_last(struct chained *c)
{
	struct cap_set met = { 0 };
	const int r = cap_set_meet(c->l.a, c->l.set, &c->hops[c->n - 1], &met, c->l.err);

	if (r == 0)
		*c->l.set = met;
	return r;
}

/*
 * SECURITY: base makes the workspace readable, and the workspace is the directory in which writ was
 * started. Under a token only the token decides about the workspace, so remove the grant of base.
 */
static void hide_workspace(struct cap_set *set)
{
	struct sv root = set->root.text;
	size_t kept = 0;

	(void)sv_cut(&root, ':');
	for (size_t i = 0; i < set->caps.n; i++) {
		const struct cap_entry e = set->caps.v[i];
		struct sv text = e.cap.text;

		(void)sv_cut(&text, ':');
		if (root.n && e.cap.action == CAP_FS_READ && set->rules.v[e.rule].built_in &&
		    sv_eq(text, root))
			set->rules.v[e.rule].missing = true;
		else
			set->caps.v[kept++] = e;
	}
	set->caps.n = kept;
}

/*
 * Adds base to every hop. cap_set_decide() asks all hops about every request, and a hop without
 * base would refuse all system files.
 */
static int add_base_to_hops(struct chained *c)
{
	struct lower base;
	int r = lang_fork_lower(&c->l, &base);

	base.policy = arena_new(c->l.a, struct policy);
	if (r < 0 || !base.policy)
		return writ_nomem(c->l.err);
	r = lang_load_base(&base);
	for (size_t i = 0; r == 0 && i < c->n; i++) {
		c->hops[i].root = c->l.set->root;
		r = lang_append_set(c->l.a, &c->hops[i], base.set, c->l.err);
		hide_workspace(&c->hops[i]);
		if (r == 0 && !cap_set_index(c->l.a, &c->hops[i]))
			r = writ_nomem(c->l.err);
	}
	return r;
}

static int add_envs(struct lower *l)
{
	for (size_t i = 0; i < l->set->caps.n; i++) {
		const struct cap *c = &l->set->caps.v[i].cap;
		const struct cap_seg *s = c->path.segs;
		const char *name;

		/* Variables of base are added together with base. */
		if (c->action != CAP_ENV_PASS || c->path.n != 1 ||
		    l->set->rules.v[l->set->caps.v[i].rule].built_in)
			continue;
		name = arena_fmt(l->a, SV_FMT "%s" SV_FMT, SV_ARG(s->pre), s->star ? "*" : "",
				 SV_ARG(s->suf));
		if (!name || !vec_add(l->a, &l->policy->envs,
				      (struct policy_setenv){ .name = sv_from(name),
							      .pass = true,
							      .rule = l->set->caps.v[i].rule }))
			return writ_nomem(l->err);
	}
	return 0;
}

/*
 * Copies grants with counters or byte limits to the prices of the set. cap_set_meet() does this for
 * several hops, but with one hop no meet happened.
 */
static int keep_prices(struct chained *c)
{
	struct cap_set *set = c->l.set;

	for (size_t i = 0; c->n == 1 && i < set->caps.n; i++) {
		const struct cap *cap = &set->caps.v[i].cap;

		if ((cap->n || cap->rate_n || cap->max_in || cap->max_out) &&
		    !vec_add(c->l.a, &set->prices, set->caps.v[i]))
			return writ_nomem(c->l.err);
	}
	return 0;
}

/* Adds to the policy the base profile and the parts that every session has. */
static int finish(struct chained *c)
{
	struct cap_set *set = c->l.set;
	int r = keep_prices(c);

	if (r < 0 || (r = add_envs(&c->l)) < 0 || (r = protect_own_files(&c->l)) < 0 ||
	    (r = lang_set_root(&c->l, set)) < 0 || (r = lang_add_base(&c->l, set)) < 0)
		return r;
	hide_workspace(set);
	r = add_base_to_hops(c);
	if (r < 0)
		return r;
	if (!cap_set_index(c->l.a, set))
		return writ_nomem(c->l.err);
	set->hops = c->hops;
	set->hops_n = c->n;
	set->says = SV("");
	return 0;
}

/* Takes the agents described on the command line and narrows each to the meet of the tokens. */
static int add_agents(struct chained *c, struct policy *p)
{
	int r = 0;

	if (!c->agents)
		return 0;
	memcpy(&p->agents, &c->agents->agents, sizeof(p->agents));
	memcpy(&p->agent_work, &c->agents->agent_work, sizeof(p->agent_work));
	for (size_t i = 0; i < p->agents.n; i++) {
		struct lower *l = p->agent_work.v[i];

		lang_check_within(l, &p->set, DIAG_WARNING,
				  "this asks for more than its session has, so it is cut down");
		/*
		 * SECURITY: env and secret lines take values from this machine, which a token must
		 * not grant. add_envs() derives the variables from the capabilities instead.
		 */
		memset(&l->policy->envs, 0, sizeof(l->policy->envs));
		memset(&l->policy->secrets, 0, sizeof(l->policy->secrets));
	}
	r = lang_finish_agents(p, true);
	for (size_t i = 0; r == 0 && i < p->agents.n; i++) {
		r = add_envs(p->agent_work.v[i]);
		hide_workspace(&p->agents.v[i].set);
	}
	return r;
}

int policy_chain(const struct policy_env *env, const struct policy_input *in,
		 const struct policy_hop *hops, size_t n, struct diags *d,
		 struct policy **ret_policy, struct writ_err *err)
{
	struct policy *p = arena_new(d->arena, struct policy);
	struct cap_set *met = arena_new(d->arena, struct cap_set);
	struct chained c = { .hops = arena_array(d->arena, struct cap_set, n + 1) };
	int r = 0;

	if (!p || !met || !c.hops)
		return writ_nomem(err);
	c.l = (struct lower){
		.env = env, .d = d, .policy = p, .a = d->arena, .set = met, .err = err
	};
	p->has_base = true;
	if (n)
		r = copy_hop(&c.l, met, &hops[0]);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = copy_hop(&c.l, &c.hops[c.n++], &hops[i]);
		if (r == 0 && i)
			r = meet_last(&c);
	}
	if (r == 0 && n) {
		r = narrow_by_args(&c, in);
		if (r == 0 && c.n > n)
			r = meet_last(&c);
	}
	if (r == 0 && d->errors == 0)
		r = finish(&c);
	p->set = *met;
	if (r < 0 || (d->errors == 0 && (r = add_agents(&c, p)) < 0) ||
	    (d->errors == 0 && (r = lang_grant_agents(env, d->arena, p, c.hops, err)) < 0))
		return r;
	return lang_finish(d, p, ret_policy, err);
}
