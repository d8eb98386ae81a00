/*
 * env.h - the machine as the policy language sees it
 *
 * Reads:  nothing; locate/ implements the callbacks, tests answer from a table
 * Writes: nothing
 * Next:   lang/policy.h
 */
#ifndef WRIT_LANG_ENV_H
#define WRIT_LANG_ENV_H

#include "base/arena.h"
#include "base/err.h"
#include "lang/diag.h"

enum path_kind { PATH_MISSING = 0, PATH_FILE, PATH_DIR, PATH_OTHER };

/*
 * State of a path at the time of the lookup. The physical path has no symbolic links; for a missing
 * path it is the physical name of the deepest existing ancestor followed by the missing rest.
 */
struct policy_path {
	enum path_kind kind;
	struct sv physical; /* path without links, in the arena given to the call */
};

/*
 * The git directory of a workspace whose git directory is elsewhere: a linked worktree or a
 * submodule.
 */
struct policy_repository {
	/* physical path of the git directory; empty if it is inside the workspace or missing */
	struct sv git;
	/*
	 * Name of this worktree below git/worktrees; empty for a submodule, which has the whole git
	 * directory to itself.
	 */
	struct sv worktree;
	VEC(struct sv) others; /* names of the other existing worktrees of the repository */
	/* listing the other worktrees failed: the policy must not grant creation of worktrees */
	bool closed;
};

/* Access of the pure modules to the machine. Tests implement these callbacks with a table. */
struct policy_ops {
	/*
	 * Looks up a path. A path that is too long or contains a NUL counts as PATH_MISSING.
	 * Returns false only if memory runs out.
	 */
	bool (*lookup)(void *ctx, struct arena *a, struct sv path, struct policy_path *ret);
	/*
	 * Finds the physical path of the program that a shell would run for @name; an empty view if
	 * there is no such program.
	 */
	bool (*program)(void *ctx, struct arena *a, struct sv name, struct sv *ret);
	/*
	 * Reads the policy file of the line `use @name` in a source whose directory is @dir (see
	 * struct source). *@ret_id is equal for two names of the same file.
	 */
	int (*read)(void *ctx, struct arena *a, struct sv dir, struct sv name,
		    struct source *ret_src, struct sv *ret_id, struct writ_err *err);
	void *ctx;
	/*
	 * Finds the git directory of @workspace if it is outside @workspace. A NULL callback: every
	 * git directory is inside its workspace. Returns false if memory runs out.
	 */
	bool (*repository)(void *ctx, struct arena *a, struct sv workspace,
			   struct policy_repository *ret);
};

struct policy_var {
	struct sv name, value;
};

struct policy_env {
	const struct policy_ops *ops;
	struct sv workspace;  /* physical path of the workspace; empty if there is no workspace */
	struct sv home;	      /* physical path of the operator's real home; may be empty */
	struct sv realm;      /* realm of this machine, "l-..." */
	const struct sv *own; /* directories of writ's own files, as configured */
	size_t own_n;
	const struct policy_var *vars; /* values of variables for $NAME in paths */
	size_t vars_n;
	/*
	 * Physical directory of the command's own files. A policy with base makes this directory
	 * readable; empty: none.
	 */
	struct sv program;
	/* socket to which a session may connect if its policy has `allow agent`; may be empty */
	struct sv agent_socket;
	/* a missing path is only a warning, because the policy is examined, not run */
	bool missing_ok;
	/*
	 * Paths in the policy are paths of another machine: do not look them up; a final slash
	 * means a directory.
	 */
	bool elsewhere;
};

#endif
