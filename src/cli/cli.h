/*
 * cli.h - what the verbs share: exit codes, output, the loaded policy
 *
 * Reads:  the command line, the environment, policy files
 * Writes: standard output and error
 * Next:   nothing; this is the outermost room
 */
#ifndef WRIT_CLI_CLI_H
#define WRIT_CLI_CLI_H

#include "cli/opts.h"
#include "find/find.h"
#include "host/advisory.h"
#include "host/facts.h"
#include "plan/plan.h"

enum {
	EXIT_DONE = 0,
	/* why: denied; lint: findings; trust: refused; conform: escaped; audit, attest: no */
	EXIT_NO = 1,
	EXIT_ASKS = 3, /* why: a person would be asked */
	EXIT_FORGED = 4,   /* attest verify: something does not fit */
	EXIT_UNPINNED = 5, /* attest verify: no key that counts has signed it */
	EXIT_POLICY = 121,
	EXIT_GUARANTEE = 122,
	EXIT_FAILED = 125,
};

enum { OUT_MAX = 64 << 20 };

struct cli_token;

struct loaded {
	struct find_input in;
	struct find_world world; /* points to @in: neither moves */
	struct diags diags;
	struct policy *policy; /* NULL if the diagnostics hold errors */
	struct cli_token *token; /* whose policy it is; NULL: nobody's */
};

/* Goes to @cwd and looks around. @make_realm writes the realm file at first use. */
must_check int where_find(struct arena *a, const char *cwd, bool make_realm, struct find_where *ret,
			  struct writ_err *err);

/* No policy yet, and the world as the environment and --var say. */
void input_init(const struct args *a, bool missing_ok, struct find_input *ret);

/*
 * Loads what the rule flags and operands say. Prints diagnostics. Returns 0 or
 * an exit code. @operand is a policy file or NULL.
 */
must_check int load_policy(struct args *a, const char *operand, bool missing_ok,
			   struct loaded *ret);
/* The same for a run of @program, whose own files become readable. May be NULL. */
must_check int load_policy_for(struct args *a, const char *operand, bool missing_ok,
			       const char *program, struct loaded *ret);

/* What the rule flags say and nothing else; @l->in.where is there. An exit code. */
must_check int load_rules(struct args *a, struct loaded *l);
/* token.c: what --token says, narrowed by the rule flags; @l->in.where is there. */
must_check int load_token(struct args *a, const char *program, struct loaded *l);

/* The set as a token carries it: base is named by its digest only. With --all: all of it. */
must_check int caps_own(struct args *a, const struct cap_set *from, struct cap_set *ret,
			struct writ_err *err);

/* Facts of this machine, or the record given with --facts. Returns an exit code. */
must_check int load_facts(struct args *a, bool tools, struct host_facts *ret);
/* The same from what was found earlier since this machine started, if it still fits. */
must_check int load_facts_kept(struct args *a, struct sv state, struct host_facts *ret);
must_check int load_plan(struct args *a, const struct loaded *l, const struct cap_set *set,
			 const struct host_facts *f, struct plan **ret);

/* Why !plan_runs(@p), one line each: the same words that explain has. */
void show_refused(const struct plan *p);

/* The advisory table: the installed one if it is newer than ours. */
must_check int load_advisories(struct args *a, const struct find_where *w, struct advisory_db *ret,
			       struct writ_err *err);

/* find_text(), and standard input for "-". */
must_check int read_text(struct arena *a, const char *path, struct source *ret,
			 struct writ_err *err);

/* Writes @b to standard output; returns @code, or EXIT_FAILED if that failed. */
must_check int out(struct buf *b, int code);
void note(const char *fmt, ...) printf_like(1, 2);
must_check int fail(const struct writ_err *err, const char *what); /* EXIT_FAILED */
bool use_colour(int fd);
void show_diags(const struct diags *d); /* on standard error */

int cmd_allow(struct args *a);
int cmd_attest(struct args *a);
int cmd_audit(struct args *a);
int cmd_caps(struct args *a);
int cmd_check(struct args *a);
int cmd_completion(struct args *a);
int cmd_conform(struct args *a);
int cmd_doctor(struct args *a);
int cmd_explain(struct args *a);
int cmd_help(struct args *a);
int cmd_init(struct args *a);
int cmd_key(struct args *a);
int cmd_lint(struct args *a);
int cmd_man(struct args *a);
int cmd_profile(struct args *a);
int cmd_ps(struct args *a);
int cmd_revoke(struct args *a);
int cmd_run(struct args *a);
int cmd_session(struct args *a);
int cmd_signer(struct args *a);
int cmd_net(struct args *a);
int cmd_spawn(struct args *a);
int cmd_stop(struct args *a);
int cmd_token(struct args *a);
int cmd_trust(struct args *a);
int cmd_version(struct args *a);
int cmd_why(struct args *a);
int cmd_witness(struct args *a);

int cli_main(int argc, char **argv);

#endif
