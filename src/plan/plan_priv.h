/*
 * plan_priv.h - what the files of planning share
 *
 * Reads:  plan/plan.h
 * Writes: nothing
 * Next:   plan/plan.c puts the parts together
 */
#ifndef WRIT_PLAN_PLAN_PRIV_H
#define WRIT_PLAN_PLAN_PRIV_H

#include "plan/plan.h"

/* What planning knows before it looks at any rule. */
struct ground {
	const struct host_facts *f;
	const struct cap_set *set;
	const struct plan_options *opt;
	enum plan_tier tier;
	bool cow;     /* copy-on-write workspace */
	bool mediate; /* seccomp notification can be used */
	bool landlock_fs;
	bool nested_userns, io_uring; /* kernel switches asked for */
	bool own_proc, own_net, own_ipc;
};

void ground_init(struct ground *g, const struct cap_set *set, const struct host_facts *f,
		 const struct plan_options *opt, const char **ret_tier_why);

/* The weaker of two holds; at equal levels the first with a price, else the later. */
struct hold hold_min(struct hold a, struct hold b);

/* able.c: plan_lacks() and plan_lacks_for(), unless all of it is to be planned. */
const char *ground_lacks(const struct ground *g, enum plan_feature f);
const char *ground_lacks_for(const struct ground *g, const struct cap *c);
/* @fix, which names copy-on-write workspaces, or @without if there are none. */
const char *cow_fix(const struct ground *g, const char *fix, const char *without);

/* rules.c: one capability or denial on the host adapter. */
struct hold hold_cap(const struct ground *g, const struct cap *c);
struct hold hold_denial(const struct ground *g, const struct cap *d);

/* limits.c */
struct hold hold_limit(const struct ground *g, enum cap_limit limit);
enum guarantee limit_guarantee(enum cap_limit limit);

/* adapters.c: other engines. */
struct hold adapter_hold(const struct ground *g, enum guarantee guarantee);
enum cap_isolation adapter_isolation(enum plan_adapter a);

/* guarantees.c: what holds whatever the rules say; gaps that come with the host. */
struct hold host_guarantee(const struct ground *g, enum guarantee guarantee);
must_check bool plan_add_gaps(struct arena *a, const struct ground *g, struct plan *p);

/* order.c */
must_check bool plan_add_steps(struct arena *a, const struct ground *g, struct plan *p);

#endif
