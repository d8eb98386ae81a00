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
#include "lang/policy.h"

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
	char letter;	 /* short option; 0: none */
	const char *arg; /* name of the argument; NULL: the option is a switch */
	const char *help;
	const char *values; /* for completion: words, or "file" or "dir" */
};

struct opt_value {
	enum opt_id id;
	const char *value;
};

struct args;

struct cli_verb {
	const char *name;
	const char *operands; /* operands as shown by --help, such as "[FILE]" */
	const char *summary;
	uint64_t opts; /* accepted options: bits of 1 << enum opt_id */
	const char *example;
	const char *about; /* a paragraph for the man page and --help */
	int (*run)(struct args *a);
	bool hidden;
	bool command; /* the verb takes a command: options end at the first operand */
};

extern const struct cli_verb cli_verbs[]; /* ends with a NULL name */
const struct opt *opt_get(enum opt_id id);
/*
 * Returns the help text of option @o for verb @v; verbs that share an option may describe it
 * differently.
 */
const char *opt_help(const struct cli_verb *v, const struct opt *o);
const struct cli_verb *cli_verb_get(struct sv name);

struct args {
	const struct cli_verb *verb;
	struct arena *arena;
	bool given[OPT_COUNT];
	const char *value[OPT_COUNT]; /* the last value given */
	VEC(struct policy_arg) rules; /* --allow --ask --deny --limit --secret --env --profile */
	VEC(const char *) policies;   /* --policy */
	VEC(struct policy_var) vars;  /* --var */
	VEC(struct opt_value) repeated; /* --bound --id */
	VEC(const char *) operands;
};

/* Fails with WRIT_E_SYNTAX and a text that tells the user what to type. */
must_check int opts_parse(const struct cli_verb *verb, int argc, char **argv, struct args *ret_args,
			  struct writ_err *err);

/* Prints the --help text of one verb, or of writ as a whole if @verb is NULL. */
void opts_help(const struct cli_verb *verb, struct buf *b);

/* Generate completion scripts and man pages from the tables of verbs and options. */
must_check int cli_complete_print(struct sv shell, struct buf *b, struct writ_err *err);
must_check int cli_man_print(struct sv page, struct buf *b, struct writ_err *err);

#endif
