/*
 * load_priv.h - load files and command line rules into one set
 *
 * Reads:  lang/lower_priv.h
 * Writes: a set and diagnostics
 * Next:   lang/compose.c adds base, narrows and finishes agents
 */
#ifndef WRIT_LANG_LOAD_PRIV_H
#define WRIT_LANG_LOAD_PRIV_H

#include "lang/lower_priv.h"

/* A file on the path of `use` lines that led to the current file. The list detects cycles. */
struct loading {
	const struct loading *up;
	struct sv id;
	unsigned depth;
};

struct loader {
	struct lower l;
	VEC(struct sv) seen; /* ids of files already loaded */
	bool agents_ok;	     /* load agent blocks; false for a file that only narrows */
};

static const char only_narrows[] =
	"agent.writ may only narrow until you read it and type: writ trust";

void lang_init_set(struct cap_set *s);

/* Makes a struct lower with a new set; copies the other members from @l. */
must_check int lang_fork_lower(const struct lower *l, struct lower *ret);
must_check int lang_load_file(struct loader *o, const struct source *src, const struct loading *in);
must_check int lang_load_arg(struct loader *o, const struct policy_arg *arg);

/* Lowers the base profile into the set of @l. */
must_check int lang_load_base(struct lower *l);

/* Steps of compose.c that chain.c combines in another way. */
must_check int lang_default_exec(struct lower *l);
must_check int protect_own_files(struct lower *l);
must_check int lang_set_root(struct lower *l, struct cap_set *set);
must_check int lang_append_set(struct arena *a, struct cap_set *set, const struct cap_set *more,
			       struct writ_err *err);
must_check int lang_add_base(struct lower *l, struct cap_set *set);
must_check int lang_load_inputs(struct loader *o, const struct policy_input *in);
/*
 * Finishes the sets of all agents. With @narrowed, an untrusted file or a token narrowed the
 * parent, so narrow each agent to the parent; otherwise report an agent that exceeds the parent.
 */
must_check int lang_finish_agents(struct policy *p, bool narrowed);
/*
 * Lets a policy with `allow agent` reach policy_env.agent_socket. @hops are the hops of @p->set,
 * still writable; NULL if the set has no hops.
 */
must_check int lang_grant_agents(const struct policy_env *env, struct arena *a, struct policy *p,
				 struct cap_set *hops, struct writ_err *err);
/*
 * Ends the loading of policy @p: sorts the diagnostics and fails with WRIT_E_SYNTAX if one is an
 * error.
 */
must_check int lang_finish(struct diags *d, struct policy *p, struct policy **ret,
			   struct writ_err *err);
bool lang_is_operator_action(enum cap_action action);

#endif
