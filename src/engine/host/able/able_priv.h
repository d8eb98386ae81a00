/* able_priv.h - the facts and switches that all levels of the host engine follow from */
#ifndef WRIT_ABLE_ABLE_PRIV_H
#define WRIT_ABLE_ABLE_PRIV_H

#include "able/able.h"
#include "plan/plan.h"

struct ground {
	const struct host_facts *f;
	const struct cap_set *set;
	const struct engine_ask *ask;
	enum plan_tier tier;
	/* The policy asks for a copy-on-write workspace, and this version has the feature. */
	bool cow;
	bool mediate; /* the mediator can work: seccomp notification, Landlock and no io_uring */
	bool landlock_fs;
	bool nested_userns, io_uring; /* the policy has `kernel nested-userns`, `kernel io_uring` */
	bool own_proc, own_net, own_ipc;
};

/* A struct hold with the level @l, the mechanism @b, the price @c and the remedy @f. */
#define HOLD_FOR(l, b, c, f) ((struct hold){ LEVEL_##l, (b), (c), (f) })
#define HOLD(l, b) HOLD_FOR(l, b, "none", NULL)

void able_ground_init(struct ground *g, const struct engine_ask *ask, const char **ret_tier_why);

/*
 * Returns plan_lacks(@f): the text why this version of writ lacks the feature @f, or NULL. Always
 * NULL if engine_ask.whole is set, which lets tests plan as if no feature were missing.
 */
const char *able_lacks(const struct ground *g, enum plan_feature f);
/*
 * Returns @fix, a text that advises a copy-on-write workspace; returns @without if this version of
 * writ has no such workspaces.
 */
const char *able_cow_fix(const struct ground *g, const char *fix, const char *without);

/* Functions of rules.c. */
struct hold able_hold_cap(const struct ground *g, const struct cap *c);
struct hold able_hold_denial(const struct ground *g, const struct cap *d);
struct hold able_hold_workspace(const struct ground *g);
struct hold able_hold_net_level(const struct ground *g);

/* Functions of limits.c. */
struct hold able_hold_limit(const struct ground *g, enum cap_limit limit);
bool able_by_scope(const struct ground *g, enum cap_limit limit);

/*
 * Function of guarantees.c: the level of a guarantee before the planner lowers it to the level of a
 * rule.
 */
struct hold able_hold_guarantee(const struct ground *g, enum guarantee guarantee);

#endif
