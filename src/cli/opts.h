/*
 * opts.h - verbs and options as one table
 *
 * Reads:  argv
 * Writes: nothing
 * Next:   each verb reads struct args; --help, completion and the man pages read
 *         the same rows
 */
#ifndef WRIT_CLI_OPTS_H
#define WRIT_CLI_OPTS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "policy/policy.h"

enum opt_id {
	OPT_HELP = 0,
	OPT_POLICY,
	OPT_PROFILE,
	OPT_ALLOW,
	OPT_ASK,
	OPT_DENY,
	OPT_LIMIT,
	OPT_SECRET,
	OPT_ENV,
	OPT_VAR,
	OPT_WORKSPACE,
	OPT_CWD,
	OPT_ADAPTER,
	OPT_TIER,
	OPT_FACTS,
	OPT_ALL,
	OPT_PROTECTED,
	OPT_JSON,
	OPT_SARIF,
	OPT_FORMAT,
	OPT_RECORD,
	OPT_UPDATE,
	OPT_THREAT,
	OPT_FORCE,
	OPT_YES,
	OPT_PRINT,
	OPT_AGENT,
	OPT_VERBOSE,
	OPT_QUIET,
	OPT_STATUS_FD,
	OPT_NEUTRAL,
	OPT_ALWAYS,
	OPT_DETACH,
	OPT_EXPLAIN_DENIALS,
	OPT_BOUND,
	OPT_ID,
	OPT_USER,
	OPT_UNDER,
	OPT_DECLARE,
	OPT_BARE,
	OPT_NO_CONTROLS,
	OPT_JOBS,
	OPT_DIR,
	OPT_LIST,
	OPT_OLDER_THAN,
	OPT_DURABILITY,
	OPT_LAST,
	OPT_OUT,
	OPT_JSONL,
	OPT_PUBLIC,
	OPT_KEY,
	OPT_LISTEN,
	OPT_ATTEST_OUT,
	OPT_REQUIRE,
	OPT_TOKEN,
	OPT_FOR,
	OPT_DEPTH,
	OPT_SINGLE_USE,
	OPT_HOLDER,
	OPT_ORG,
	/* keep last */
	OPT_COUNT
};

struct opt {
	enum opt_id id;
	const char *name;
	char letter;	 /* 0: none */
	const char *arg; /* NULL: a switch */
	const char *help;
	const char *values; /* for completion: words, or "file", "dir" */
};

struct opt_value {
	enum opt_id id;
	const char *value;
};

struct args;

struct cli_verb {
	const char *name;
	const char *operands; /* "[FILE]" */
	const char *summary;
	uint64_t opts; /* bits of 1 << enum opt_id */
	const char *example;
	const char *about; /* a paragraph for the man page and --help */
	int (*run)(struct args *a);
	bool hidden;
	bool command; /* takes a command: options end at the first operand */
};

extern const struct cli_verb cli_verbs[]; /* ends with a NULL name */
const struct opt *opt_get(enum opt_id id);
/* What @o means to @v: verbs share options, not always the words for them. */
const char *opt_help(const struct cli_verb *v, const struct opt *o);
const struct cli_verb *verb_get(struct sv name);

struct find_where;
struct args {
	const struct cli_verb *verb;
	struct arena *arena;
	bool given[OPT_COUNT];
	const char *value[OPT_COUNT]; /* the last one */
	VEC(struct policy_arg) rules; /* --allow --ask --deny --limit --secret --env --profile */
	VEC(const char *) policies;   /* --policy */
	VEC(struct policy_var) vars;  /* --var */
	VEC(struct opt_value) repeated; /* --bound --id */
	VEC(const char *) operands;
	const struct find_where *where; /* NULL: nobody has looked yet */
};

/* Fails with WRIT_E_SYNTAX and a text that says what to type. */
must_check int opts_parse(const struct cli_verb *verb, int argc, char **argv, struct args *ret_args,
			  struct writ_err *err);

/* The text of --help for one verb, or for writ as a whole (NULL). */
void opts_help(const struct cli_verb *verb, struct buf *b);

/* complete.c, man.c: generated from the same tables. */
must_check int complete_print(struct sv shell, struct buf *b, struct writ_err *err);
must_check int man_print(struct sv page, struct buf *b, struct writ_err *err);

#endif
