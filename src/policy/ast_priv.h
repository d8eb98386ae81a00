/*
 * ast_priv.h - a parsed policy file, before it means anything
 *
 * Reads:  policy/lex.h
 * Writes: diagnostics
 * Next:   policy/lower.c turns statements into capabilities; policy/print.c
 *         writes them back
 */
#ifndef WRIT_POLICY_AST_PRIV_H
#define WRIT_POLICY_AST_PRIV_H

#include "policy/lex.h"
#include "policy/policy.h"

enum verb_id {
	VERB_NONE = 0,
	VERB_READ,
	VERB_WRITE,
	VERB_PUT,
	VERB_EXEC,
	VERB_NET,
	VERB_LISTEN,
	VERB_UNIX,
	VERB_GIT,
	VERB_DEVICE,
	VERB_KERNEL,
	VERB_TOOL,
	VERB_AGENT,
	VERB_SHELL,
};

enum qual_id {
	QUAL_ARGS = 0,
	QUAL_COUNT,
	QUAL_DOWN,
	QUAL_FETCH,
	QUAL_METHODS,
	QUAL_MODE,
	QUAL_PRIVATE,
	QUAL_PUSH,
	QUAL_QUERY,
	QUAL_RATE,
	QUAL_SHA256,
	QUAL_TLS,
	QUAL_UP,
	/* keep last */
	QUAL_COUNT_ALL
};

struct verb {
	const char *name;
	enum verb_id id;
	uint32_t quals;	    /* bits of 1 << enum qual_id */
	const char *object; /* what stands behind it, for "expected ..." */
};

struct qual {
	enum qual_id id;
	struct word word; /* the whole key=value, for its place */
	struct sv value;  /* empty for a flag */
};

enum stmt_kind {
	STMT_NONE = 0,
	STMT_VERSION,
	STMT_USE,
	STMT_RULE,
	STMT_OPEN,
	STMT_ENV,
	STMT_SECRET,
	STMT_LIMIT,
	STMT_WORKSPACE,
	STMT_STATE,
	STMT_ISOLATION,
	STMT_REQUIRE,
	STMT_ACCEPT,
	STMT_DANGER,
	STMT_AGENT,
	STMT_TEST,
	STMT_NET_LEVEL,
};

struct stmt {
	enum stmt_kind kind;
	const struct source *src;
	uint32_t line;
	bool inner;	      /* belongs to the agent block above it */
	const struct word *w; /* all its words */
	size_t n;

	/* STMT_RULE and STMT_TEST */
	enum policy_effect effect;
	const struct verb *verb;
	struct word object; /* without the leading '?' */
	bool optional;	    /* the object began with '?' */
	const struct qual *quals;
	size_t quals_n;
};

struct ast {
	VEC(struct stmt) stmts;
	bool drops_base; /* use none */
};

extern const struct verb policy_verbs[]; /* ends with VERB_NONE */
const struct verb *verb_find(struct sv name);
const char *qual_name(enum qual_id id);

/* The place of one word, or of a whole statement. */
struct place word_place(const struct stmt *s, const struct word *w);
struct place stmt_place(const struct stmt *s);

/* Parses a file. Errors are diagnostics; the return value is only for memory. */
must_check int ast_parse(struct diags *d, const struct source *src, struct ast *ret_ast,
			 struct writ_err *err);

/*
 * Parses a rule given on a command line, "write:./logs" or "write ./logs". The
 * result is added to @ast only if it is right.
 */
must_check int ast_parse_rule(struct diags *d, const struct source *src, enum policy_effect effect,
			      enum stmt_kind kind, struct ast *ast, struct writ_err *err);

/* "limit" and "secret" statements given on a command line without their keyword. */
must_check int ast_parse_statement(struct diags *d, const struct source *src, const char *keyword,
				   struct ast *ast, struct writ_err *err);

/* One statement in its canonical spacing, without a newline. */
void stmt_print(const struct stmt *s, struct buf *b);

#endif
