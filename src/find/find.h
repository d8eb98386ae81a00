/*
 * find.h - where we are, which policy holds here, what this machine can do
 *
 * Reads:  the environment, policy files, the machine
 * Writes: the realm and the facts, kept for the next time
 * Next:   cli/ and lib/ load a policy with it and plan it
 *
 * What both fronts must decide alike is here, once: what a workspace is, which
 * files are looked for when nobody names one, what a path leads to.
 */
#ifndef WRIT_FIND_FIND_H
#define WRIT_FIND_FIND_H

#include "base/arena.h"
#include "base/err.h"
#include "host/facts.h"
#include "policy/policy.h"

/* --- where.c: directories --- */

struct find_options {
	const char *home, *config, *state; /* NULL: as the environment says */
	char *const *environ;
	bool make_realm; /* at first use */
};

struct find_where {
	struct sv home;		  /* physical; may be empty */
	struct sv real_home;	  /* of this uid, whatever was said; may be empty */
	struct sv config, state;  /* of writ; may be empty */
	struct sv realm;	  /* "l-unset" if it was never made */
	struct sv cwd, workspace; /* physical; the second may be empty */
	const char *no_workspace; /* why it is, if one was looked for; else NULL */
};

/* The value of @name in @env, or the empty view. */
struct sv find_env(char *const *env, const char *name);

/* Everything but cwd and workspace. */
must_check int find_where(struct arena *a, const struct find_options *opt, struct find_where *ret,
			  struct writ_err *err);

/* workspace.c: fills cwd with @cwd (NULL: the current directory) and looks for a workspace. */
must_check int find_workspace(struct arena *a, const char *cwd, struct find_where *w,
			      struct writ_err *err);
/* The same with a workspace that somebody named. One that is never a workspace is denied. */
must_check int find_workspace_at(struct arena *a, const char *cwd, const char *workspace,
				 struct find_where *w, struct writ_err *err);
must_check int find_cwd(struct arena *a, const char *cwd, struct find_where *w,
			struct writ_err *err);

/* Files of ours about one workspace: CONFIG/FOLDER/NAME-HASH.writ; NULL: out of memory. */
const char *find_project_file(struct arena *a, const struct find_where *w, const char *folder);

/* Replaces one of our own files (mode 0600), making its directories (0700). */
must_check int find_keep(struct arena *a, const char *path, struct sv text, struct writ_err *err);

/* --- input.c: the texts of a policy --- */

/* A file that another one names: what `use` got, kept so that it is read once. */
struct find_used {
	struct sv dir, name, id;
	struct source src;
};

/* All that decides about a policy but the state of the file system. */
struct find_input {
	struct find_where where;
	VEC(struct source) files;
	struct source narrow;
	bool has_narrow, default_write, missing_ok;
	bool elsewhere; /* rules for another machine: its paths, as they are written */
	VEC(struct policy_arg) args;
	VEC(struct policy_var) vars;
	VEC(struct find_used) used;
	struct sv path;		 /* where programs are looked for */
	struct sv agent;	 /* the profile that find_agent() chose; may be empty */
	struct sv program, tree; /* see find_program() */
};

must_check int find_text(struct arena *a, const char *path, struct source *ret,
			 struct writ_err *err);
must_check int find_text_fd(struct arena *a, int fd, const char *name, struct source *ret,
			    struct writ_err *err);

must_check int find_add_source(struct arena *a, struct find_input *in, const struct source *src,
			       struct writ_err *err);
must_check int find_add_file(struct arena *a, struct find_input *in, const char *path,
			     struct writ_err *err);
/*
 * What holds here when nobody said anything: the user's own policies and the
 * workspace's agent.writ, or `write .` if there are none. Does nothing if there are
 * files, or arguments that grant.
 */
must_check int find_policies(struct arena *a, struct find_input *in, struct writ_err *err);

/* program.c */

/*
 * Where a shell would find @name, physically, and the tree it is installed in: a
 * directory that may be shown with it. Both stay empty if it lies where everything
 * is shown, or nowhere.
 */
must_check int find_program(struct arena *a, const char *name, struct find_input *in,
			    struct writ_err *err);
/* A program in the directories of @path, physically; *@ret is empty if there is none. */
must_check bool find_in_path(struct arena *a, struct sv path, struct sv name, struct sv *ret);

/* agent.c */

/*
 * The policy of an agent we ship a profile for, if @program is the name of one; else
 * empty. A key that @environ has for it stays outside, as a secret of its own host.
 */
must_check int find_agent_text(struct arena *a, struct sv program, char *const *environ,
			       struct sv *ret, struct writ_err *err);
/* After find_policies(): if nobody wrote any rule, that policy holds instead of `write .`. */
must_check int find_agent(struct arena *a, const char *program, char *const *environ,
			  struct find_input *in, struct writ_err *err);

/* --- world.c: the real file system behind struct policy_ops --- */

struct find_world {
	struct find_input *in;
	struct arena *a;
	bool replay; /* used files come from @in and from nowhere else */
	struct policy_ops ops;
	struct policy_env env;
	struct sv own[2];
	bool keeps; /* a policy is being read: */
	int above;  /* the directory that was looked in last; -1: none */
	struct sv above_name;
};

/* @w points into itself and to @in: neither may move. */
void find_world_init(struct find_world *w, struct arena *a, struct find_input *in);
/* policy_new() of what @w was made with. */
must_check int find_policy(struct find_world *w, struct diags *d, struct policy **ret,
			   struct writ_err *err);

/* --- facts.c --- */

/*
 * What this machine can do: found by trying, or kept in the file @name of @state
 * from an earlier time. @state may be empty.
 */
must_check int find_facts(struct arena *a, struct sv state, const char *name,
			  struct host_facts *ret, struct writ_err *err);

#endif
