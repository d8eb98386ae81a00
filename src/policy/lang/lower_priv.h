/*
 * lower_priv.h - lowering: statements become capabilities
 *
 * Reads:  lang/ast_priv.h
 * Writes: a struct policy and diagnostics
 * Next:   lang/check.c checks the result
 */
#ifndef WRIT_LANG_LOWER_PRIV_H
#define WRIT_LANG_LOWER_PRIV_H

#include "lang/ast_priv.h"

/* Values of canonical params, indexed by enum cap_param. */
struct params {
	struct sv v[P_COUNT]; /* an empty value means that the param is absent */
};

/*
 * A lowered statement, and the ranges of grants and denials in the set that the statement produced.
 */
struct lowered_rule {
	const struct stmt *s;
	uint32_t rule;
	size_t cap_from, cap_n, not_from, not_n;
};

struct lower {
	const struct policy_env *env;
	struct diags *d;
	struct policy *policy;
	struct arena *a;     /* arena of the policy and all its parts */
	/* set that receives the capabilities: the policy's own set or an agent's */
	struct cap_set *set;
	struct writ_err *err;
	uint32_t rule;	/* index in set->rules of the statement being lowered */
	/* an allow or ask line for exec, or `shell none`, was seen: add no default exec grant */
	bool exec_seen;
	VEC(struct lowered_rule) done;
	VEC(const struct stmt *) tests;
};

/* A resolved path as canonical text, and the kind of file that the path names. */
struct lowered_path {
	struct sv text;	      /* canonical text of the path, with wildcards */
	/*
	 * canonical text of the path as the user wrote it, for a denied path that passes through
	 * links; otherwise empty
	 */
	struct sv as_written;
	struct sv literal;   /* physical name of the part before any wildcard, not encoded */
	enum path_kind kind; /* kind of the file that the literal part names */
	bool whole;	     /* the path has no wildcard */
};

/* Copies the text of @b into the arena; false if @b failed or memory ran out. */
must_check bool lang_keep(struct lower *l, const struct buf *b, struct sv *ret);
/*
 * Reports an error at the object of @s. Returns false, so that callers can return the result of
 * lower_error().
 */
#define lower_error(l, s, hint, ...) \
	lang_error((l)->d, (s), lower_main_word(s), (hint), __VA_ARGS__)
const struct word *lower_main_word(const struct stmt *s);

/* Adds one capability of the current rule to the set: a grant, or a denial without params. */
must_check bool lower_add(struct lower *l, const struct stmt *s, enum cap_action action,
			  struct sv resource, const struct params *params);

/*
 * Resolves the path of @s. For a denial the canonical text covers everything below the path, and
 * inner double stars are allowed. Returns false after reporting an error. *@ret_skip: the path is
 * optional and missing.
 */
must_check bool lower_path(struct lower *l, const struct stmt *s, struct lowered_path *ret,
			   bool *ret_skip);

/*
 * Expands . ~ $VAR in the path of @s and resolves links; refuses wildcards. Used for sockets,
 * devices and questions.
 */
must_check bool lower_plain_path(struct lower *l, const struct stmt *s, struct sv *ret_raw);

must_check bool lower_net(struct lower *l, const struct stmt *s);
must_check bool lower_git(struct lower *l, const struct stmt *s);

/* The components of a network object, shared by rules, secrets and questions. */
struct net_object {
	bool any;  /* the object is "*" */
	bool http; /* the object is an http:// or https:// URL, or a bare host */
	bool tls;
	bool bare; /* the object is a host without scheme, port and path */
	bool has_path;
	struct sv host; /* canonical host pattern */
	uint16_t lo, hi;
	struct sv path; /* canonical URL path pattern */
};
must_check bool lang_net_parse(struct lower *l, const struct stmt *s, struct sv text,
			       struct net_object *ret);
must_check bool lang_net_url_text(struct lower *l, const struct net_object *o, struct sv *ret);

/*
 * Converts the text of a path's word to path bytes: a NUL, which stands for an escaped star,
 * becomes a star.
 */
must_check bool lang_path_bytes(struct arena *a, struct sv path, struct sv *ret);

/* Reports that the value of the qualifier @q is wrong; returns false. */
bool lang_bad_qual(struct lower *l, const struct stmt *s, const struct qual *q, const char *hint);
/* Lowers the qualifiers that several verbs share: count, rate, up and down. */
must_check bool lower_counters(struct lower *l, const struct stmt *s, struct params *p);
const struct qual *lang_qual_find(const struct stmt *s, enum qual_id id);

must_check bool lower_limit(struct lower *l, const struct stmt *s);
must_check bool lower_secret(struct lower *l, const struct stmt *s);
must_check bool lower_env(struct lower *l, const struct stmt *s);
must_check bool lower_guarantees(struct lower *l, const struct stmt *s);

/* Copies @s in lower case. Returns false if memory runs out. */
must_check bool lang_lower_case(struct lower *l, struct sv s, struct sv *ret);
/* Parses a size ("64K", "2G") into bytes. */
must_check bool lang_size_parse(struct sv s, uint64_t *ret_bytes);

/* Lowers one statement. Returns false after reporting an error. */
must_check bool lower_stmt(struct lower *l, const struct stmt *s);

/* Writes the rule of statement @s on one line, as a user would write the rule in a file. */
must_check bool lower_rule_text(struct lower *l, const struct stmt *s, struct sv *ret);

/* Lowers a question or a test line to a request (question.c). */
must_check bool lang_question_lower(struct lower *l, const struct stmt *s,
				    struct policy_question *ret);

/*
 * Reports duplicates, and rules that can never take effect, among l->done[@from..], the statements
 * of one file (check.c).
 */
void lang_check_file(struct lower *l, size_t from);

/*
 * Reports, with the message @fmt, each statement of @child that grants more than @parent or sets a
 * wider limit than @parent.
 */
void lang_check_within(struct lower *child, const struct cap_set *parent, enum diag_level level,
		       const char *fmt);

/*
 * Reports variables that would pass a secret into the session, and secrets for hosts with
 * tls=passthrough.
 */
void lang_check_secrets(struct lower *l);

/* Evaluates the test lines of @l against @set and reports failed tests as errors. */
void lang_check_tests(struct lower *l, const struct cap_set *set);

#endif
