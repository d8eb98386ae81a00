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
#define OPTION(id, ...) OPT_##id,
#include "cli/options.def"
#undef OPTION
	/* number of options; keep last */
	OPT_COUNT
};

struct opt {
	enum opt_id id;
	const char *name;
	char letter;	 /* short option; 0: none */
	const char *arg; /* name of the argument; NULL: the option is a switch */
	const char *help;
	/* for completion: words, "file", "dir", or the name of a list of words */
	const char *values;
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
 * Returns the help text of option @o for verb @v. Verbs can describe a shared option differently.
 */
const char *opt_help(const struct cli_verb *v, const struct opt *o);
bool opt_taken(const struct cli_verb *v, const struct opt *o); /* does the verb take the option? */
const struct cli_verb *cli_verb_get(struct sv name);

struct args {
	const struct cli_verb *verb;
	struct arena *arena;
	bool given[OPT_COUNT];
	const char *value[OPT_COUNT]; /* the last value given */
	/* values of --allow, --ask, --deny, --limit, --secret, --env and --profile, in order */
	VEC(struct policy_arg) rules;
	VEC(const char *) policies;   /* values of --policy */
	VEC(struct policy_var) vars;  /* values of --var */
	VEC(struct opt_value) repeated; /* values of --bound and --id */
	VEC(const char *) operands;
};

/*
 * Parses the options and operands of @verb. Fails with WRIT_E_SYNTAX and a text that tells the user
 * what to type.
 */
must_check int opts_parse(const struct cli_verb *verb, int argc, char **argv, struct args *ret_args,
			  struct writ_err *err);

/* Prints the --help text of one verb, or of writ as a whole if @verb is NULL. */
void opts_help(const struct cli_verb *verb, struct buf *b);

#endif
