/*
 * lower_priv.h - statements -> capabilities: what the files of lowering share
 *
 * Reads:  policy/ast_priv.h
 * Writes: a struct policy and diagnostics
 * Next:   policy/check.c looks at the whole
 */
#ifndef WRIT_POLICY_LOWER_PRIV_H
#define WRIT_POLICY_LOWER_PRIV_H

#include "policy/ast_priv.h"

/* Values of canonical params, by enum cap_param. */
struct params {
	struct sv v[P_COUNT]; /* empty: absent */
};

/* A lowered statement, and which entries of its set it made. */
struct lowered_rule {
	const struct stmt *s;
	uint32_t rule;
	size_t cap_from, cap_n, not_from, not_n;
};

struct lower {
	const struct policy_env *env;
	struct diags *d;
	struct policy *policy;
	struct arena *a;     /* the policy's */
	struct cap_set *set; /* the policy's own or an agent's */
	struct writ_err *err;
	uint32_t rule;	/* index of the statement being lowered */
	bool exec_said; /* an exec line or shell none: the default no longer holds */
	VEC(struct lowered_rule) done;
	VEC(const struct stmt *) tests;
};

/* A resolved path as canonical text, and what it is now. */
struct lowered_path {
	struct sv text;	      /* canonical, with wildcards */
	struct sv as_written; /* a denied path that leads over links: by its own names */
	struct sv literal;    /* raw physical name of the part before any wildcard */
	enum path_kind kind;  /* of the literal part */
	bool whole;	      /* the literal part is all there is */
};

/* Reports at the object of @s; returns false so that callers can `return bad(...)`. */
printf_like(4, 5) bool lower_bad(struct lower *l, const struct stmt *s, const char *hint,
				 const char *fmt, ...);

/* Adds one grant (or denial, without params) of the current rule to the set. */
must_check bool lower_add(struct lower *l, const struct stmt *s, enum cap_action action,
			  struct sv resource, const struct params *params);

/*
 * Resolves the path of @s. For a denial the text covers everything below, and
 * inner double stars are allowed. False: reported. *@ret_skip: an optional path
 * that is not here.
 */
must_check bool lower_path(struct lower *l, const struct stmt *s, struct lowered_path *ret,
			   bool *ret_skip);

/* Expands . ~ $VAR; no globs, no lookup. For sockets, devices and questions. */
must_check bool lower_plain_path(struct lower *l, const struct stmt *s, struct sv *ret_raw);

must_check bool lower_net(struct lower *l, const struct stmt *s);
must_check bool lower_git(struct lower *l, const struct stmt *s);

/* A network object in parts; shared by rules, secrets and questions. */
struct net_object {
	bool any;  /* "*" */
	bool http; /* http:// or https:// or a bare host */
	bool tls;
	bool bare; /* a host without scheme, port or path */
	bool has_path;
	struct sv host; /* canonical pattern */
	uint16_t lo, hi;
	struct sv path; /* canonical urlpath pattern */
};
must_check bool net_parse(struct lower *l, const struct stmt *s, struct sv text,
			  struct net_object *ret);
must_check bool net_url_text(struct lower *l, const struct net_object *o, struct sv *ret);

/* The bytes a word stands for as a path: an escaped star becomes a star. */
must_check bool path_bytes(struct arena *a, struct sv path, struct sv *ret);

/* Is @path the directory @dir or below it? Never for an empty @dir. */

/* Qualifiers that several verbs share: count rate up down. */
must_check bool lower_counters(struct lower *l, const struct stmt *s, struct params *p);
const struct qual *qual_find(const struct stmt *s, enum qual_id id);

must_check bool lower_limit(struct lower *l, const struct stmt *s);
must_check bool lower_secret(struct lower *l, const struct stmt *s);
must_check bool lower_env(struct lower *l, const struct stmt *s);
must_check bool lower_guarantees(struct lower *l, const struct stmt *s);

/* "64K", "2G" -> bytes; "20m", "1h30m" -> seconds. */
must_check bool size_parse(struct sv s, uint64_t *ret_bytes);
must_check bool duration_parse(struct sv s, uint64_t *ret_seconds);

/* Everything in @s that makes capabilities. False: reported. */
must_check bool lower_stmt(struct lower *l, const struct stmt *s);

/* One word as a person would write it, and a whole rule likewise. */
must_check bool lower_rule_text(struct lower *l, const struct stmt *s, struct sv *ret);

/* policy/ask.c: the requests that a test line asks about. */
must_check bool ask_lower(struct lower *l, const struct stmt *s, struct policy_question *ret);

/* policy/check.c: duplicates and dead rules among done[@from..], one file's worth. */
void check_file(struct lower *l, size_t from);

/* Every grant of @child's own rules must be within @parent; names those that are not. */
void check_within(struct lower *child, const struct cap_set *parent, enum diag_level level,
		  const char *fmt);

/* A variable that passes what a secret keeps outside is an error. */
void check_secrets(struct lower *l);

/* Evaluates @l's test lines against @set; failures are errors. */
void check_tests(struct lower *l, const struct cap_set *set);

#endif
