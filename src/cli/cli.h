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
#include "host/advisory.h"
#include "host/facts.h"
#include "plan/plan.h"
#include "policy/policy.h"

enum {
	EXIT_DONE = 0,
	EXIT_NO = 1,   /* why: denied; lint: findings; trust: refused */
	EXIT_ASKS = 3, /* why: a person would be asked */
	EXIT_POLICY = 121,
	EXIT_GUARANTEE = 122,
	EXIT_FAILED = 125,
};

enum { OUT_MAX = 64 << 20 };

/* Everything a verb needs to know about where it runs. */
struct place_info {
	struct sv cwd, home, config, state; /* physical or as the environment says */
	struct sv real_home;		    /* of this uid, whatever HOME says; may be empty */
	struct sv workspace;		    /* empty: none */
	const char *no_workspace;	    /* why there is none */
	struct sv realm;
};

struct loaded {
	struct place_info where;
	struct policy_env env;
	struct sv own[2]; /* config and state: never writable inside */
	size_t own_n;
	struct diags diags;
	struct policy *policy;	  /* NULL if the diagnostics hold errors */
	struct sv workspace_file; /* agent.writ that was read, or empty */
	bool workspace_trusted;
	struct sv program;	  /* where the command really lies, or empty */
};

/* Where are we? @make_realm writes the realm file at first use. */
must_check int where_find(struct arena *a, const char *cwd, bool make_realm, struct place_info *ret,
			  struct writ_err *err);

/*
 * Where a shell would find @name, physically, and the tree it is installed in: a
 * directory that may be shown with it. Empty if it lies where everything is shown.
 */
must_check int program_find(struct arena *a, const struct place_info *w, const char *name,
			    struct sv *ret_file, struct sv *ret_tree);

/* The real file system behind struct policy_ops. */
extern const struct policy_ops world_ops;

/*
 * Loads what the rule flags and operands say. Prints diagnostics. Returns 0 or
 * an exit code. @operand is a policy file or NULL.
 */
must_check int load_policy(struct args *a, const char *operand, bool missing_ok,
			   struct loaded *ret);
/* The same for a run of @program, whose own files become readable. May be NULL. */
must_check int load_policy_for(struct args *a, const char *operand, bool missing_ok,
			       const char *program, struct loaded *ret);

/* Facts of this machine, or the record given with --facts. Returns an exit code. */
must_check int load_facts(struct args *a, bool tools, struct host_facts *ret);
/* The same from what was found earlier since this machine started, if it still fits. */
must_check int load_facts_kept(struct args *a, struct sv state, struct host_facts *ret);
must_check int load_plan(struct args *a, const struct loaded *l, const struct cap_set *set,
			 const struct host_facts *f, struct plan **ret);

/* The advisory table: the installed one if it is newer than ours. */
must_check int load_advisories(struct args *a, const struct place_info *w, struct advisory_db *ret,
			       struct writ_err *err);

/* Names of files that trust/ and init/ keep: config/projects/ID.writ and so on. */
must_check bool project_file(struct arena *a, const struct place_info *w, const char *folder,
			     const char *suffix, const char **ret);

must_check int read_text(struct arena *a, const char *path, struct source *ret,
			 struct writ_err *err);

/* Replaces one of our own files (mode 0600), making its directories (0700). */
must_check int keep_file(struct arena *a, const char *path, struct sv text, struct writ_err *err);

/* Writes @b to standard output; returns @code, or EXIT_FAILED if that failed. */
must_check int out(struct buf *b, int code);
void note(const char *fmt, ...) printf_like(1, 2);
must_check int fail(const struct writ_err *err, const char *what); /* EXIT_FAILED */
bool use_colour(int fd);
void show_diags(const struct diags *d); /* on standard error */

int cmd_allow(struct args *a);
int cmd_caps(struct args *a);
int cmd_check(struct args *a);
int cmd_completion(struct args *a);
int cmd_doctor(struct args *a);
int cmd_explain(struct args *a);
int cmd_help(struct args *a);
int cmd_init(struct args *a);
int cmd_lint(struct args *a);
int cmd_man(struct args *a);
int cmd_profile(struct args *a);
int cmd_ps(struct args *a);
int cmd_revoke(struct args *a);
int cmd_run(struct args *a);
int cmd_session(struct args *a);
int cmd_net(struct args *a);
int cmd_stop(struct args *a);
int cmd_trust(struct args *a);
int cmd_version(struct args *a);
int cmd_why(struct args *a);

int cli_main(int argc, char **argv);

#endif
