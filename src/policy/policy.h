/*
 * policy.h - the language: policy text -> a checked set of capabilities
 *
 * Reads:  policy sources, and the world only through struct policy_ops
 * Writes: diagnostics
 * Next:   plan/ takes policy.set and the host's facts
 *
 * Same text and same answers from the ops give the same policy. Nothing is
 * dropped in silence and nothing widens: a policy with errors has no set.
 */
#ifndef WRIT_POLICY_POLICY_H
#define WRIT_POLICY_POLICY_H

#include "cap/set.h"
#include "policy/diag.h"

enum {
	POLICY_DEPTH_MAX = 16,	 /* nested `use` */
	POLICY_FILES_MAX = 64,	 /* files in one policy */
	POLICY_RULES_MAX = 4096, /* rules in one policy, all files together */
	POLICY_AGENTS_MAX = 64
};
#define POLICY_ARENA_MAX ((size_t)256 << 20)

enum policy_effect { EFFECT_DENY = 0, EFFECT_ASK, EFFECT_ALLOW };

enum path_kind { PATH_MISSING = 0, PATH_FILE, PATH_DIR, PATH_OTHER };

/*
 * What a path is now. physical has no symbolic links; for a missing path it is
 * the physical name of the deepest existing ancestor and the rest behind it.
 */
struct policy_path {
	enum path_kind kind;
	struct sv physical; /* in the arena given to the call */
};

/* The git directory of a workspace that has it elsewhere: a linked worktree, a submodule. */
struct policy_repository {
	struct sv git;		/* physical; empty: there is none */
	struct sv worktree;	/* its name below git/worktrees; empty: all of git is its own */
	VEC(struct sv) others;	/* names of the worktrees that are there besides */
	bool closed;		/* they could not be listed: none may be made */
};

/* How the pure rooms see the world. Tests answer from a table. */
struct policy_ops {
	/* Never fails on strange paths: they are PATH_MISSING. False: out of memory. */
	bool (*lookup)(void *ctx, struct arena *a, struct sv path, struct policy_path *ret);
	/* The physical path of the program a shell would run, or an empty view. */
	bool (*program)(void *ctx, struct arena *a, struct sv name, struct sv *ret);
	/*
	 * Reads the policy file @name as written in a file of directory @dir, both as
	 * struct source has them. *@ret_id is equal for the same file.
	 */
	int (*read)(void *ctx, struct arena *a, struct sv dir, struct sv name,
		    struct source *ret_src, struct sv *ret_id, struct writ_err *err);
	void *ctx;
	/* May be NULL: then there is none. False: out of memory. */
	bool (*repository)(void *ctx, struct arena *a, struct sv workspace,
			   struct policy_repository *ret);
};

struct policy_var {
	struct sv name, value;
};

struct policy_env {
	const struct policy_ops *ops;
	struct sv workspace;  /* physical; empty if there is none */
	struct sv home;	      /* the operator's real home, physical; may be empty */
	struct sv realm;      /* "l-..." */
	const struct sv *own; /* physical directories where writ keeps its own files */
	size_t own_n;
	const struct policy_var *vars; /* $NAME in paths */
	size_t vars_n;
	struct sv program; /* physical tree of the command's own files; base grants reading it */
	bool missing_ok; /* a missing path is a warning: we only look, we do not run */
	bool elsewhere;	 /* paths of another machine: a directory is what ends with a slash */
};

struct policy_setenv {
	struct sv name;	 /* may hold one star when passing */
	struct sv value; /* only if !pass */
	bool pass;
	bool shipped; /* from a profile: gives way to what a person wrote */
	uint32_t rule;
};

enum secret_source { SECRET_ENV = 0, SECRET_FILE, SECRET_CMD, SECRET_KEYRING };

struct policy_secret {
	struct sv name, source, url, form;
	enum secret_source kind;
	uint32_t rule;
};

struct policy_open {
	struct sv path; /* a protected name: ".git/config" */
	uint32_t rule;
};

struct policy;

struct policy_agent {
	struct sv name;
	struct cap_set set;
	const struct policy *lists; /* its own envs and secrets; nothing else of it is used */
};

struct lower;

/* Lives in the arena of the diagnostics it was made with, as all it points to. */
struct policy {
	struct cap_set set;
	VEC(struct policy_setenv) envs;
	VEC(struct policy_secret) secrets;
	VEC(struct policy_open) opens;
	VEC(struct policy_agent) agents;
	VEC(struct lower *) agent_work; /* parallel to agents, while loading */
	size_t tests;
	bool has_base;
};

/* What to load, in any order. Order never matters. */
struct policy_input {
	const struct source *files; /* whole policies */
	size_t files_n;
	const struct source *narrow; /* may only narrow: an untrusted agent.writ */
	const struct policy_arg *args;
	size_t args_n;
	bool default_write; /* add `write .`: nobody wrote any rule */
};

/* One rule flag of a command line. */
enum policy_arg_kind { ARG_ALLOW = 0, ARG_ASK, ARG_DENY, ARG_LIMIT, ARG_SECRET, ARG_ENV, ARG_USE };
struct policy_arg {
	enum policy_arg_kind kind;
	struct source src; /* name is the flag, text its value */
};

/*
 * policy_new - read, check and lower everything in @in
 *
 * Diagnostics go to @d, and *@ret_policy lives in its arena; the sources must
 * live as long. Fails with WRIT_E_SYNTAX if @d then holds an error.
 */
must_check int policy_new(const struct policy_env *env, const struct policy_input *in,
			  struct diags *d, struct policy **ret_policy, struct writ_err *err);

/* One of several sets that all have to allow something: a token, or an issuer's ceiling. */
struct policy_hop {
	const struct cap_set *set; /* without rules */
	struct sv name;		   /* "token 2" */
	struct sv says;		   /* "hop 2 of 2 dropped it" */
};

/*
 * policy_chain - what every one of @hops allows, and base, and nothing else
 *
 * What @in has can only narrow that. The policy's set is the meet, and has each of
 * them as a hop, so that everything is asked of all.
 */
must_check int policy_chain(const struct policy_env *env, const struct policy_input *in,
			    const struct policy_hop *hops, size_t n, struct diags *d,
			    struct policy **ret_policy, struct writ_err *err);

/* Canonical spacing, comments dropped. Fails with WRIT_E_SYNTAX as policy_new(). */
must_check int policy_print(const struct source *src, struct diags *d, struct buf *b,
			    struct writ_err *err);

/* A question, "write /etc/passwd" or "net:https://h/p;methods=POST". */
struct policy_question {
	struct cap request;
	struct sv text;	   /* how it reads: "write /etc/passwd" */
	bool private_area; /* below a directory that every session has for itself */
};
must_check int policy_ask(const struct policy_env *env, const struct source *src, struct diags *d,
			  struct policy_question *ret_q, struct writ_err *err);

/* cap_set_decide(), and yes for what every session has for itself. */
struct cap_verdict policy_answer(const struct cap_set *set, const struct policy_question *q);
/*
 * What @v lets be written, but holds by a name that other programs obey, unless `open` lifts
 * it. NULL: nothing does.
 */
struct protect_name;
const struct protect_name *policy_protects(const struct policy *p, struct sv workspace,
					   const struct cap_set *set,
					   const struct policy_question *q,
					   const struct cap_verdict *v);

/* Directories that are fresh and private in each session; NULL-terminated. */
extern const char *const policy_private_dirs[];

/* --- profiles shipped with writ --- */

struct policy_profile {
	const char *name;
	const char *text;
	size_t len;
};
extern const struct policy_profile policy_profiles[]; /* sorted; ends with a NULL name */
const struct policy_profile *profile_find(struct sv name);

const char *const *policy_verb_names(void);

/* A name that probably resolves to a private address: one label, .internal, .lan ... */
bool policy_looks_internal(struct sv host);

/* "20m", "1h30m", "7d", as in limits. */
must_check bool policy_duration(struct sv s, uint64_t *ret_seconds);

#endif
