/*
 * plan.h - what enforces each line on this host, in which order, and what cannot
 *
 * Reads:  cap/set.h (what is asked), host/facts.h (what this machine can do)
 * Writes: nothing. Same set, facts and options give the same plan and bytes.
 * Next:   explain prints it; adapter/ will turn it into a running session
 *
 * A plan is built once and then only read. It lives in the caller's arena. All
 * text it points to is constant or in that arena.
 */
#ifndef WRIT_PLAN_PLAN_H
#define WRIT_PLAN_PLAN_H

#include "cap/set.h"
#include "host/facts.h"

enum plan_tier {
	TIER_NONE = 0, /* nothing here can hold a process */
	TIER_A,	       /* user namespaces: own mounts, processes, network */
	TIER_B,	       /* Landlock, seccomp and mediation in the host's namespaces */
};

enum plan_adapter {
	ADAPTER_HOST = 0,
	ADAPTER_CRUN,
	ADAPTER_RUNC,
	ADAPTER_RUNSC,
	ADAPTER_PODMAN,
	ADAPTER_DOCKER,
	ADAPTER_QEMU,
	ADAPTER_FIRECRACKER,
	ADAPTER_WASM,
	/* keep last */
	ADAPTER_COUNT
};

struct plan_options {
	enum plan_adapter adapter;
	enum plan_tier tier;   /* TIER_NONE: choose */
	bool overlay_advisory; /* overlayfs has an open advisory on this kernel */
	bool whole; /* as if this version could do everything: for tests of planning */
};

/* What may lack in a version of writ, whatever the machine. */
enum plan_feature {
	FEATURE_NET = 0,
	FEATURE_LISTEN,
	FEATURE_GIT,
	FEATURE_SECRET,
	FEATURE_TOOL,
	FEATURE_AGENT,
	FEATURE_ASK,   /* a person, before a use */
	FEATURE_TALLY, /* counts and rates of uses */
	FEATURE_COW,
	FEATURE_ENGINE, /* another than the host */
	/* keep last */
	FEATURE_END
};

/* able.c: why this version cannot do it; NULL if it can. */
const char *plan_lacks(enum plan_feature f);
const char *plan_lacks_for(const struct cap *c);

/* How well one thing holds, by what, at which price, and what would help. */
struct hold {
	enum level level;
	const char *by;
	const char *cost; /* "none", "creates ~2x"; never NULL */
	const char *fix;  /* NULL if nothing would help */
};

struct plan_rule {
	uint32_t rule;		  /* index into the set's rules */
	enum guarantee guarantee; /* of the part that is shown: the weakest */
	struct hold hold;
	uint32_t touches;	 /* bits of 1 << enum guarantee */
	uint8_t levels[G_COUNT]; /* enum level, where touched */
	bool refused;		 /* a person wrote it and it does not hold here */
	bool lacking;		 /* this version cannot do it; no guarantee is the worse for it */
};

struct plan_guarantee {
	enum level level;
	const char *by;
	uint32_t rule; /* the rule that lowered it, or RULE_NONE */
	bool required, refused;
	bool unasked; /* a resource that nobody limited */
};

struct plan_gap {
	const char *what, *why, *fix; /* fix may be NULL */
};

/* One act of the jail. The order of plan.steps is the order of execution. */
struct plan_step {
	const char *name, *why;
	uint32_t needs, gives; /* bits of what holds inside the child */
};

struct plan {
	const struct cap_set *set;
	const struct host_facts *facts;
	struct plan_options opt;
	enum plan_tier tier;
	const char *tier_why;	     /* why not the better one; NULL for tier A */
	const char *lacks;	     /* why this version cannot carry out any of it, or NULL */
	VEC(struct plan_rule) rules; /* one per written rule, in rule order */
	struct plan_guarantee guarantees[G_COUNT];
	VEC(struct plan_gap) gaps;
	VEC(struct plan_step) steps;
	size_t refused; /* rules and requirements that do not hold: exit 122 */
};

must_check int plan_new(struct arena *a, const struct cap_set *set, const struct host_facts *facts,
			const struct plan_options *opt, struct plan **ret_plan,
			struct writ_err *err);

/* Would a run start? */
bool plan_runs(const struct plan *p);

/* The row of @rule, or NULL if that rule has none. */
const struct plan_rule *plan_rule_get(const struct plan *p, uint32_t rule);

/* What enforces the answer to a question about @action; for `writ why`. */
const struct plan_guarantee *plan_guarantee_for(const struct plan *p, enum cap_action action);
enum guarantee plan_guarantee_of(enum cap_action action);

const char *plan_tier_name(enum plan_tier t);	    /* "A" */
const char *plan_adapter_name(enum plan_adapter a); /* "host" */
must_check bool plan_adapter_parse(struct sv s, enum plan_adapter *ret);

/* --- explain.c, json.c --- */

struct explain_style {
	bool colour;
	bool all;     /* base's rules too */
	bool verbose; /* guarantees and steps */
};
/* An agent that a policy names, with what its own rules come to. */
struct plan_agent {
	struct sv name;
	struct plan *plan;
};
void plan_explain(const struct plan *p, const struct plan_agent *agents, size_t agents_n,
		  const struct explain_style *style, struct buf *b);

/* The effective-guarantees record: of a plan, and of one with its agents. */
void plan_json(const struct plan *p, struct buf *b);
void plan_json_all(const struct plan *p, const struct plan_agent *agents, size_t agents_n,
		   struct buf *b);

#endif
