/*
 * policy.h - the policy language: policy text becomes a checked set of capabilities
 *
 * Theory of operation
 *
 * The input is a list of sources: policy files, shipped profiles and rule flags of the command
 * line. The output is a struct policy with a capability set, environment variables, secrets,
 * protected names that are opened, and one set per described agent. The stages:
 *
 *   lex.c       text to lines of words
 *   parse.c     lines to statements (ast_priv.h)
 *   lower*.c    statements to capabilities, one file per kind of object
 *   load.c      follows `use`, loads agent blocks and command line rules
 *   check.c     reports duplicates, dead rules, secrets that leak, failed test lines
 *   compose.c   adds defaults and the base profile, narrows by an untrusted agent.writ,
 *               finishes agents: policy_new()
 *   chain.c     makes a policy from sets that came as tokens: policy_chain()
 *
 * The module does no input or output. It sees the machine only through struct policy_ops, so
 * the same text and the same answers give the same policy, and tests answer from a table.
 *
 * Invariants
 *   - A policy with an error has no set. No line is ignored in silence: a line that has no
 *     effect gets a warning.
 *   - The order of sources and lines never matters: deny beats ask beats allow.
 *   - An untrusted file can only narrow the policy. Grants of the file are met with the
 *     operator's set, never added to that set.
 *   - An agent never has more rights than its parent.
 *   - The directories of writ's own files are denied in every policy.
 *
 * Common mistakes
 *   - struct policy lives in the arena of the diagnostics, and the sources must live as
 *     long.
 *   - Paths in capabilities are physical (without links). Compare policy text with paths only
 *     after policy_ops.lookup().
 *   - Limits of base are defaults, not rules: base is lowered separately and appended.
 *
 * Reads:  policy sources, and the machine only through struct policy_ops
 * Writes: diagnostics
 * Next:   plan/ takes policy.set and the host's facts
 */
#ifndef WRIT_LANG_POLICY_H
#define WRIT_LANG_POLICY_H

#include "cap/set.h"
#include "lang/diag.h"
#include "lang/env.h"

enum {
	POLICY_DEPTH_MAX = 16,	 /* limit for nested `use` lines */
	POLICY_FILES_MAX = 64,	 /* limit for files in one policy */
	POLICY_RULES_MAX = 4096, /* limit for rules in one policy, all files together */
	POLICY_AGENTS_MAX = 64
};
#define POLICY_ARENA_MAX ((size_t)256 << 20)

enum policy_effect { EFFECT_DENY = 0, EFFECT_ASK, EFFECT_ALLOW };

struct policy_setenv {
	struct sv name;	 /* name of the variable; may contain one star if @pass */
	/* value of the variable; unused if @pass, which passes the operator's value */
	struct sv value;
	bool pass;
	/* the variable comes from a profile: a value written by the user replaces it */
	bool shipped;
	uint32_t rule;
};

enum secret_source { SECRET_ENV = 0, SECRET_FILE, SECRET_CMD, SECRET_KEYRING };

struct policy_secret {
	struct sv name, source, url, form;
	enum secret_source kind;
	uint32_t rule;
};

struct policy_open {
	struct sv path; /* path of a protected name such as ".git/config" */
	uint32_t rule;
};

struct policy;

struct policy_agent {
	struct sv name;
	struct cap_set set;
	/* policy that holds only the variables and secrets of the agent */
	const struct policy *lists;
};

struct lower;

/*
 * A policy. The policy and all objects it points to are allocated in the arena of the diagnostics
 * it was made with.
 */
struct policy {
	struct cap_set set;
	VEC(struct policy_setenv) envs;
	VEC(struct policy_secret) secrets;
	VEC(struct policy_open) opens;
	VEC(struct policy_agent) agents;
	/* lowering state of each agent, parallel to agents; used while loading */
	VEC(struct lower *) agent_work;
	size_t tests;
	bool has_base;
};

/* Sources of a policy. The order of the sources never matters. */
struct policy_input {
	const struct source *files; /* policy files, each a complete policy */
	size_t files_n;
	const struct source *narrow; /* an untrusted agent.writ, which can only narrow the policy */
	const struct policy_arg *args;
	size_t args_n;
	bool default_write; /* the user wrote no rule, so add `allow write .` */
};

/* A rule flag of a command line. */
enum policy_arg_kind { ARG_ALLOW = 0, ARG_ASK, ARG_DENY, ARG_LIMIT, ARG_SECRET, ARG_ENV, ARG_USE };
struct policy_arg {
	enum policy_arg_kind kind;
	struct source src; /* name is the flag, text is its value */
};

/*
 * policy_new - read, check and lower all sources in @in
 *
 * Adds diagnostics to @d. *@ret_policy is allocated in the arena of @d, and the sources must live
 * as long as that arena. Fails with WRIT_E_SYNTAX if @d contains an error afterwards.
 */
must_check int policy_new(const struct policy_env *env, const struct policy_input *in,
			  struct diags *d, struct policy **ret_policy, struct writ_err *err);

/*
 * A capability set in a chain, where every set must allow a request: a token, or an issuer's
 * ceiling.
 */
struct policy_hop {
	const struct cap_set *set; /* capabilities of the hop; the rules of this set are not used */
	struct sv name;		   /* name of the hop for users, such as "token 2" */
	/* message for a request that the hop denies: "hop 2 of 2 dropped it" */
	struct sv says;
};

/*
 * policy_chain - the policy that every set of @hops allows, plus base
 *
 * @in can only narrow the policy. The resulting set is the meet of all hops and keeps each hop, so
 * that cap_set_decide() asks every hop.
 */
must_check int policy_chain(const struct policy_env *env, const struct policy_input *in,
			    const struct policy_hop *hops, size_t n, struct diags *d,
			    struct policy **ret_policy, struct writ_err *err);

/*
 * Prints a policy with canonical spacing and without comments. Fails with WRIT_E_SYNTAX if the
 * policy has an error, like policy_new().
 */
must_check int policy_print(const struct source *src, struct diags *d, struct buf *b,
			    struct writ_err *err);

/* A question about one access: "write /etc/passwd" or "net:https://h/p;methods=POST". */
struct policy_question {
	struct cap request;
	struct sv text;	   /* text of the question for display: "write /etc/passwd" */
	/* the path is below a directory, such as /tmp, that every session gets empty and private */
	bool private_area;
};
must_check int policy_ask(const struct policy_env *env, const struct source *src, struct diags *d,
			  struct policy_question *ret_q, struct writ_err *err);

/*
 * Decides like cap_set_decide(), but also allows access to private directories such as /tmp, unless
 * a rule names the path, and reading of system files of base that only wildcard denials match.
 */
struct cap_verdict policy_answer(const struct cap_set *set, const struct policy_question *q);
/*
 * Returns the protected name that refuses a write which the verdict @v allows, or NULL. `open`
 * lifts the protection of a name.
 */
struct protect_name;
const struct protect_name *policy_protects(const struct policy *p, struct sv workspace,
					   const struct cap_set *set,
					   const struct policy_question *q,
					   const struct cap_verdict *v);

/* --- profiles shipped with writ --- */

struct policy_profile {
	const char *name;
	const char *text;
	size_t len;
};
/* profiles sorted by name; ends with a NULL name */
extern const struct policy_profile policy_profiles[];
const struct policy_profile *lang_profile_find(struct sv name);

const char *const *policy_verb_names(void);

/* Does @host probably resolve to a private address (one label, .internal, .lan, ...)? */
bool policy_looks_internal(struct sv host);

/* Parses a duration as written in limits: "20m", "1h30m", "7d". */
must_check bool policy_duration(struct sv s, uint64_t *ret_seconds);

#endif
