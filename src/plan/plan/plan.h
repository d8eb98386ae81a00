/*
 * plan.h - what enforces each line of a policy here, and which lines cannot be enforced
 *
 * Theory of operation
 *
 * plan_new() takes a set of capabilities, the facts of a machine and an array of engines. It asks
 * the chosen engine for its abilities (engine.h), gives every written line the weakest level of its
 * parts, lowers each guarantee to its weakest line, and counts the lines and requirements that do
 * not hold. A run starts only if that count is zero (plan_runs()).
 *
 * A plan is built once and then only read. It lives in the caller's arena; its text is constant or
 * in that arena. The same set, facts and options give the same plan and the same bytes of
 * plan_json(), whose digest is part of the signed record.
 *
 * Reads:  cap/set.h, facts/facts.h, plan/engine.h
 * Writes: nothing
 * Next:   explain prints a plan, session runs it
 */
#ifndef WRIT_PLAN_PLAN_H
#define WRIT_PLAN_PLAN_H

#include "plan/engine.h"

struct plan_options {
	/* All engines, ending with NULL; the first is the default. */
	const struct engine *const *engines;
	const struct engine *engine; /* the engine to plan for; NULL: the first of @engines */
	enum plan_tier tier;	     /* tier to plan for; TIER_NONE: the engine chooses */
	bool overlay_advisory;	     /* overlayfs has an open advisory on this kernel */
	bool whole; /* plan as if this version of writ lacked no feature; for tests */
};

/* Features that depend on the version of writ, not on the machine. */
enum plan_feature {
	FEATURE_NET = 0,
	FEATURE_LISTEN,
	FEATURE_GIT,
	FEATURE_SECRET,
	FEATURE_TOOL,
	FEATURE_AGENT,
	FEATURE_ASK,   /* asking a person before a use */
	FEATURE_TALLY, /* counting uses, and their rates */
	FEATURE_COW,
	FEATURE_ENGINE, /* engines besides the host engine */
	/* keep FEATURE_END last */
	FEATURE_END
};

/*
 * lacks.c: returns the reason why this version of writ lacks the feature @f; NULL if writ has the
 * feature.
 */
const char *plan_lacks(enum plan_feature f);
const char *plan_lacks_for(const struct cap *c);

struct plan_rule {
	uint32_t rule; /* index of the rule in the set's rules */
	/* Guarantee that the weakest part of the rule touches; explain shows it. */
	enum guarantee guarantee;
	struct hold hold;
	uint32_t touches;	 /* bits of 1 << enum guarantee: guarantees that the rule touches */
	uint8_t levels[G_COUNT]; /* the rule's enum level for each guarantee in @touches */
	/* The rule does not hold here, and the policy does not accept that. */
	bool refused;
	/* This version of writ lacks a feature for the rule; the rule lowers no guarantee. */
	bool lacking;
};

struct plan_guarantee {
	enum level level;
	const char *by;
	uint32_t rule; /* index of the rule that lowered the guarantee, or RULE_NONE */
	bool required, refused;
	bool unasked; /* the guarantee is about a resource for which the policy sets no limit */
};

struct plan {
	const struct cap_set *set;
	const struct host_facts *facts;
	struct plan_options opt;
	const struct engine *engine; /* the engine that the plan is for */
	enum plan_tier tier;
	const char *tier_why; /* reason for choosing a tier other than A; NULL for tier A */
	/* Reason why this version of writ cannot carry out the plan at all; NULL: none. */
	const char *lacks;
	/*
	 * Rows of the rules that touch a guarantee or are missing here, in the order of the rules.
	 */
	VEC(struct plan_rule) rules;
	struct plan_guarantee guarantees[G_COUNT];
	engine_gaps gaps;
	engine_steps steps;
	/* Bits of 1 << enum cap_limit: limits that a scope of the user's systemd enforces. */
	uint32_t scoped;
	/* Number of rules and requirements that do not hold; if not 0, writ exits with 122. */
	size_t refused;
};

must_check int plan_new(struct arena *a, const struct cap_set *set, const struct host_facts *facts,
			const struct plan_options *opt, struct plan **ret_plan,
			struct writ_err *err);

/* Returns true if a run of this plan would start. */
bool plan_runs(const struct plan *p);
/* Like plan_runs(), but returns the first reason against a start as an error. */
must_check int plan_check(const struct plan *p, struct writ_err *err);

/* Does a scope of the user's systemd enforce @limit? */
bool plan_scope(const struct plan *p, enum cap_limit limit);

/* Returns the row of the rule number @rule, or NULL if the plan has no row for the rule. */
const struct plan_rule *plan_rule_get(const struct plan *p, uint32_t rule);

/* Returns the guarantee that covers @action; `writ why` prints it. */
const struct plan_guarantee *plan_guarantee_for(const struct plan *p, enum cap_action action);
enum guarantee plan_guarantee_of(enum cap_action action);

const char *plan_tier_name(enum plan_tier t); /* returns "A", "B" or "none" */
/* Returns the engine with the name @name, or NULL. */
const struct engine *plan_engine_find(const struct engine *const *engines, struct sv name);

/* --- explain.c, json.c --- */

struct explain_style {
	bool colour;
	bool all;     /* show the rules of base too */
	bool verbose; /* show guarantees and steps too */
};
/* An agent that a policy names, with the plan of the agent's own rules. */
struct plan_agent {
	struct sv name;
	struct plan *plan;
};
void plan_explain(const struct plan *p, const struct plan_agent *agents, size_t agents_n,
		  const struct explain_style *style, struct buf *b);

/*
 * Prints a plan as JSON: plan_json() the plan alone, plan_json_all() also the plans of the agents
 * that the policy names.
 */
void plan_json(const struct plan *p, struct buf *b);
void plan_json_all(const struct plan *p, const struct plan_agent *agents, size_t agents_n,
		   struct buf *b);

#endif
