/*
 * cli.h - the command line: exit codes, output, and the loaded policy
 *
 * Theory of operation
 *
 * Each verb is one row of cli_verbs[] (main.c) and one function cmd_NAME(). opts.c parses argv by
 * the option table of opts.h; --help, completion and man pages are printed from the same rows. A
 * verb that needs a policy calls cli_load_policy(), which finds the place (locate), reads the
 * policies in force (lang) and prints diagnostics; explain and doctor add facts and a plan.
 * Functions that print their own failure return an exit code; all others return a negative code and
 * fill struct writ_err.
 *
 * Invariants
 *   - Standard output carries results only; diagnostics and hints go to standard error.
 *   - Every byte that an agent or a foreign file supplied passes through diag_put_safe() before it
 *     reaches a terminal.
 *   - Colour and hints appear only when standard error is a terminal.
 *
 * Common mistakes
 *   - struct loaded contains pointers into itself: do not move or copy it.
 *   - An option that several verbs share may need another help text for one of them: see
 *     opt_help().
 *
 * Reads:  the command line, the environment, policy files
 * Writes: standard output and error
 * Next:   nothing; this is the outermost module
 */
#ifndef WRIT_CLI_CLI_H
#define WRIT_CLI_CLI_H

#include "cli/opts.h"
#include "facts/facts.h"
#include "launch/launch.h"

enum {
	EXIT_DONE = 0,
	/*
	 * why: denied; lint: findings; trust, init: not done; token: refused; conform: an attempt
	 * escaped, did not run or is broken; audit, attest: not verified; signer status: not
	 * installed
	 */
	EXIT_NO = 1,
	EXIT_ASKS = 3,	   /* why: the policy asks a person */
	EXIT_FORGED = 4,   /* attest verify: the evidence contradicts itself */
	EXIT_UNPINNED = 5, /* attest verify: no trusted key has signed the evidence */
	EXIT_POLICY = 121,
	EXIT_GUARANTEE = 122,
	EXIT_FAILED = 125,
};

enum { OUT_MAX = 64 << 20 };

/*
 * Changes to the directory @cwd, unless @cwd is NULL, and finds the directories of workspace, state
 * and configuration. @make_realm creates the realm file at first use.
 */
must_check int cli_where_find(struct arena *a, const char *cwd, bool make_realm,
			      struct find_where *ret, struct writ_err *err);

/* Initialises @ret without a policy; policy variables come from the environment and --var. */
void cli_input_init(const struct args *a, bool missing_ok, struct find_input *ret);

/* Fills a launch request from the command line: place, policy, and callbacks for diagnostics. */
void cli_request(struct args *a, struct launch_request *ret);
/* Parses --adapter and --tier. Returns 0 or an exit code. */
must_check int cli_plan_options(struct args *a, struct launch_host *ret);
/* Reports why a step of launch/ failed. Returns the exit code for the failure. */
must_check int cli_launch_failed(const struct launch_result *result, const struct writ_err *err);

/*
 * Loads the policy for a verb that runs nothing, from the rule options and from @operand, the path
 * of a policy file or NULL. Prints diagnostics. Returns 0 or an exit code.
 */
must_check int cli_load_policy(struct args *a, const char *operand, bool missing_ok,
			       struct launch_loaded *ret);

/*
 * Loads only the rules given as options, including --policy files. The caller sets @l->in.where.
 * Returns 0 or an exit code.
 */
must_check int cli_load_rules(struct args *a, struct launch_loaded *l);
/*
 * Copies the capabilities that a token would carry. Without --all, built-in rules and limits are
 * left out, except the implicit grant to run any readable program; the digest of the profile `base`
 * stands for its rules.
 */
must_check int cli_caps_own(struct args *a, const struct cap_set *from, struct cap_set *ret,
			    struct writ_err *err);

/*
 * Probes this machine, or reads the facts from the file of --facts. With @tools, also asks for the
 * versions of other engines. Returns 0 or an exit code.
 */
must_check int cli_load_facts(struct args *a, bool tools, struct host_facts *ret);
/* Like cli_load_facts(), but reuses stored facts that were probed since boot and still apply. */
must_check int cli_load_facts_kept(struct args *a, struct sv state, struct host_facts *ret);
must_check int cli_load_plan(struct args *a, const struct launch_loaded *l,
			     const struct cap_set *set, const struct host_facts *f,
			     struct plan **ret);

/* Prints why plan @p cannot run, and which `accept` line of a policy would allow a weaker level. */
void cli_show_refused(const struct plan *p);

/*
 * Writes @b to standard output and empties @b. Returns @code, or EXIT_FAILED if the write failed.
 */
must_check int cli_out(struct buf *b, int code);
void cli_note(const char *fmt, ...) printf_like(1, 2);
/* Prints the formatted text as a note, which explains the exit code, and returns @code. */
must_check int cli_end(int code, const char *fmt, ...) printf_like(2, 3);
/* Prints @err and returns EXIT_FAILED. */
must_check int cli_fail(const struct writ_err *err, const char *what);
bool cli_use_colour(int fd);
void cli_show_diags(const struct diags *d); /* prints diagnostics to standard error */

/*
 * State of cli_denial_put(), the callback that prints the denials that session_denials() reports.
 */
struct cli_denials {
	struct buf *b;
	uint64_t number; /* number of the only denial to print; 0: print every denial */
	bool hint;	 /* .number counts hints (SESSION#hN), not denials */
	bool json;
	size_t n; /* number of denials printed so far */
};
bool cli_denial_put(void *ctx, const struct session_denial *d);

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
int cmd_serve_fd(struct args *a);
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
