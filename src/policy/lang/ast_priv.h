/*
 * ast_priv.h - a parsed policy file: statements without meaning yet
 *
 * Reads:  lang/lex.h
 * Writes: diagnostics
 * Next:   lang/lower.c turns statements into capabilities; lang/print.c
 *         prints statements
 */
#ifndef WRIT_LANG_AST_PRIV_H
#define WRIT_LANG_AST_PRIV_H

#include "lang/lex.h"
#include "lang/policy.h"

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
	/* number of values; keep last */
	QUAL_COUNT_ALL
};

struct verb {
	const char *name;
	enum verb_id id;
	uint32_t quals;	    /* qualifiers of the verb, as bits of 1 << enum qual_id */
	const char *object; /* kind of object that the verb takes, for "expected ..." in messages */
};

struct qual {
	enum qual_id id;
	struct word word; /* the whole word key=value, for positions in diagnostics */
	struct sv value;  /* value of the qualifier; empty for a flag */
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
	bool inner;	      /* the statement belongs to the agent block above it */
	/* all words of the statement; a rule flag of the command line has no keyword here */
	const struct word *w;
	size_t n;

	/* Members of STMT_RULE and STMT_TEST. */
	enum policy_effect effect;
	const struct verb *verb;
	struct word object; /* the object without its leading '?' */
	bool optional;	    /* the object was written with a leading '?' */
	const struct qual *quals;
	size_t quals_n;
};

struct ast {
	VEC(struct stmt) stmts;
	bool drops_base; /* the file has `use none` */
};

const struct verb *lang_verb_find(struct sv name);
const char *lang_qual_name(enum qual_id id);

/* Returns the source position of a word, or of a whole statement, for diagnostics. */
struct place lang_word_place(const struct stmt *s, const struct word *w);
struct place lang_stmt_place(const struct stmt *s);
/* Reports an error at the word @w of the statement; returns false. */
#define lang_error(d, s, w, hint, ...) \
	diag_add((d), DIAG_ERROR, lang_word_place((s), (w)), (hint), __VA_ARGS__)

/* Parses a policy file. Syntax errors become diagnostics. Fails only if memory runs out. */
must_check int ast_parse(struct diags *d, const struct source *src, struct ast *ret_ast,
			 struct writ_err *err);

/*
 * Parses a rule given on a command line, "write:./logs" or "write ./logs". Adds the statement of
 * the rule to @ast only if the statement is valid.
 */
must_check int ast_parse_rule(struct diags *d, const struct source *src, enum policy_effect effect,
			      enum stmt_kind kind, struct ast *ast, struct writ_err *err);

/*
 * Parses a "limit", "secret", "env" or "use" statement given on a command line without the keyword.
 */
must_check int ast_parse_statement(struct diags *d, const struct source *src, const char *keyword,
				   struct ast *ast, struct writ_err *err);

/* Prints a statement with canonical spacing, without a newline. */
void lang_stmt_print(const struct stmt *s, struct buf *b);

#endif
