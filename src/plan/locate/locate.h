/*
 * locate.h - directories, policies and facts of this invocation
 *
 * Theory of operation
 *
 * Both front ends, the command line and the library, need the same answers before they can plan:
 * which directories writ uses, which directory is the workspace, which policy applies if the user
 * names none, to which files the paths in the policy refer, and what the machine can enforce. This
 * module answers these questions, so that the front ends cannot differ.
 *
 * Steps, in the order in which a front end takes them:
 *   1. locate_where()      home, configuration and state directories, realm       (dirs.c)
 *   2. locate_workspace()  the directory that the agent may work in               (workspace.c)
 *   3. locate_policies()   texts of the policies that apply                       (input.c)
 *      locate_program()       the program to run                                     (program.c)
 *      locate_agent()         the shipped profile of the program                     (agent.c)
 *   4. locate_policy()     the policy, with paths resolved on this machine        (policy_world.c)
 *   5. locate_facts()      facts about the machine, cached                        (facts.c)
 *
 * Invariants
 *   - Home directories, their parents and system directories are never a workspace.
 *   - A policy file inside the workspace can only narrow, unless a person has trusted exactly this
 *     text: the agent may have written the file.
 *   - Paths are physical (without links), so that they mean the same inside and outside.
 *   - Programs are searched in absolute directories of PATH only.
 *
 * Common mistakes
 *   - Moving struct find_world or its input: the struct points into itself.
 *   - Reading a policy file twice. The second text may differ from the one that was checked; use
 *     .replay.
 *
 * Reads:  the environment, policy files, the machine
 * Writes: the realm and the cached facts
 * Next:   cli/ and lib/ load a policy with it and plan it
 */
#ifndef WRIT_LOCATE_LOCATE_H
#define WRIT_LOCATE_LOCATE_H

#include <jansson.h>

#include "facts/advisory.h"
#include "lang/policy.h"

/* --- dirs.c: directories --- */

struct find_options {
	const char *home, *config, *state; /* directories; NULL: taken from the environment */
	char *const *environ;
	bool make_realm; /* create the realm if it does not exist yet */
};

struct find_where {
	struct sv home; /* home directory, physical; may be empty */
	/* Home of this uid in /etc/passwd, whatever the variable HOME says; may be empty. */
	struct sv real_home;
	struct sv config, state;  /* writ's configuration and state directories; may be empty */
	struct sv realm;	  /* "l-unset" if no realm was ever created */
	struct sv cwd, workspace; /* physical paths; the workspace may be empty */
	const char *no_workspace; /* reason why a workspace that was found is refused; else NULL */
};

/* Fills *@ret, except the members cwd and workspace. */
must_check int locate_where(struct arena *a, const struct find_options *opt, struct find_where *ret,
			    struct writ_err *err);

/* workspace.c: sets cwd to @cwd (NULL: the current directory) and searches for a workspace. */
must_check int locate_workspace(struct arena *a, const char *cwd, struct find_where *w,
				struct writ_err *err);
/*
 * Like locate_workspace() with a given workspace. Fails with WRIT_E_DENIED if the given directory
 * can never be a workspace.
 */
must_check int locate_workspace_at(struct arena *a, const char *cwd, const char *workspace,
				   struct find_where *w, struct writ_err *err);
must_check int locate_cwd(struct arena *a, const char *cwd, struct find_where *w,
			  struct writ_err *err);

/*
 * Returns the path of writ's own file about a workspace, CONFIG/FOLDER/NAME-HASH.writ, or NULL if
 * out of memory.
 */
const char *locate_project_file(struct arena *a, const struct find_where *w, const char *folder);

/* --- input.c: texts of policies --- */

/* A file that a `use` line named, kept so that writ reads the file only once. */
struct find_used {
	struct sv dir, name, id;
	struct source src;
};

/* Input that, together with the state of the file system, determines a policy. */
struct find_input {
	struct find_where where;
	VEC(struct source) files;
	struct source narrow;
	bool has_narrow, default_write, missing_ok;
	bool elsewhere; /* the rules are for another machine: do not resolve paths on this one */
	VEC(struct policy_arg) args;
	VEC(struct policy_var) vars;
	VEC(struct find_used) used;
	struct sv path;		/* directories to search for programs, joined by colons */
	/* Value of policy_env.agent_socket; empty unless a session will run. */
	struct sv agent_socket;
	struct sv agent;	/* name of the profile that locate_agent() chose; may be empty */
	/* Physical path of the program, and its install tree: see locate_program(). */
	struct sv program, tree;
};

must_check int locate_text(struct arena *a, const char *path, struct source *ret,
			   struct writ_err *err);
/* Reads a file named on a command line: "-" is standard input. */
must_check int locate_text_arg(struct arena *a, const char *path, struct source *ret,
			       struct writ_err *err);

must_check int locate_add_source(struct arena *a, struct find_input *in, const struct source *src,
				 struct writ_err *err);
must_check int locate_add_file(struct arena *a, struct find_input *in, const char *path,
			       struct writ_err *err);
/*
 * Adds the policies that apply if the user names none: the user's own policies and the workspace's
 * agent.writ. An agent.writ that no person has trusted only narrows. If no other policy exists,
 * sets default_write, which stands for `write .`. Does nothing if @in has files already, or
 * arguments that grant.
 */
must_check int locate_policies(struct arena *a, struct find_input *in, struct writ_err *err);

/* --- request.c --- */

/*
 * Encodes an input as the parameters of the request session.open, and decodes it. The encoding
 * leaves out agent, elsewhere and no_workspace, which only the front end needs. NULL: out of
 * memory.
 */
json_t *locate_input_encode(const struct find_input *from);
must_check bool locate_input_decode(struct arena *a, const json_t *from, struct find_input *ret);

/* --- program.c --- */

/*
 * Sets in->program to the physical path of the program that a shell would run for @name, and
 * in->tree to the directory tree in which the program is installed, which a jail shows along with
 * the program. Both stay empty if the program was not found, or is in the workspace or in a tree
 * that every jail shows.
 */
must_check int locate_program(struct arena *a, const char *name, struct find_input *in,
			      struct writ_err *err);
/*
 * Searches for the program @name in the absolute directories of @path; *@ret is the physical path
 * of the program, or empty. Returns false if out of memory.
 */
must_check bool locate_in_path(struct arena *a, struct sv path, struct sv name, struct sv *ret);

/* --- agent.c --- */

/*
 * Returns the policy of a known agent if @program is the name of an agent; else an empty text. If
 * @environ contains the agent's API key, the policy declares the key as a secret, which stays
 * outside of the sandbox and is sent to the agent's own host only.
 */
must_check int locate_agent_text(struct arena *a, struct sv program, char *const *environ,
				 struct sv *ret, struct writ_err *err);
/*
 * Replaces `write .` by the agent's policy. Call this function after locate_policies(). It does
 * nothing if a policy applies or the user gave any rule that grants.
 */
must_check int locate_agent(struct arena *a, const char *program, char *const *environ,
			    struct find_input *in, struct writ_err *err);

/* --- policy_world.c: struct policy_ops for the real file system --- */

struct find_world {
	struct find_input *in;
	struct arena *a;
	/* Take the files that `use` lines name from @in only, never from the file system. */
	bool replay;
	struct policy_ops ops;
	struct policy_env env;
	struct sv own[2];
	bool keeps; /* a policy is being read: keep the directory .above open */
	int above;  /* descriptor of the directory of the last lookup; -1: none */
	struct sv above_name;
};

/* Initialises @w, which points into itself and to @in; neither may be moved. */
void locate_world_init(struct find_world *w, struct arena *a, struct find_input *in);
/* Calls policy_new() with the input of @w. */
must_check int locate_policy(struct find_world *w, struct diags *d, struct policy **ret,
			     struct writ_err *err);

/* --- facts.c --- */

/* Returns the facts about this machine: from the cache file @name in @state if it is valid,
 * otherwise by probing. @state may be empty. */
must_check int locate_facts(struct arena *a, struct sv state, const char *name,
			    struct host_facts *ret, struct writ_err *err);

/*
 * Returns the table of kernel advisories: the table in @state if it is newer than the built-in
 * table. If the table in @state is damaged, returns the built-in table and sets *@ret_damaged to a
 * line that reports the damage; otherwise *@ret_damaged is NULL.
 */
must_check int locate_advisories(struct arena *a, struct sv state, struct advisory_db *ret,
				 const char **ret_damaged, struct writ_err *err);

#endif
