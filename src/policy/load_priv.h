/*
 * load_priv.h - files and command-line rules into one set
 *
 * Reads:  policy/lower_priv.h
 * Writes: a set and diagnostics
 * Next:   policy/compose.c adds base, narrows and finishes agents
 */
#ifndef WRIT_POLICY_LOAD_PRIV_H
#define WRIT_POLICY_LOAD_PRIV_H

#include "policy/lower_priv.h"

/* One file in the chain of `use` that led to the current one. */
struct loading {
	const struct loading *up;
	struct sv id;
	unsigned depth;
};

struct loader {
	struct lower l;
	VEC(struct sv) seen; /* ids of files already in the set */
	bool agents_ok;	     /* agent blocks are kept: not while narrowing */
};

static const char only_narrows[] =
	"agent.writ may only narrow until you read it and type: writ trust";

void init_set(struct cap_set *s);

/* A lower for another set, with everything else as in @l. */
must_check int fork_lower(const struct lower *l, struct lower *ret);
must_check int load_file(struct loader *o, const struct source *src, const struct loading *in);
must_check int load_arg(struct loader *o, const struct policy_arg *arg);

/* Lowers the base profile into @l's set. */
must_check int load_base(struct lower *l);

/* compose.c: parts that chain.c puts together in another way */
must_check int default_exec(struct lower *l);
must_check int protect_own_files(struct lower *l);
must_check int set_root(struct lower *l, struct cap_set *set);
must_check int append_set(struct arena *a, struct cap_set *set, const struct cap_set *more,
			  struct writ_err *err);
must_check int add_base(struct lower *l, struct cap_set *set);
must_check int load_inputs(struct loader *o, const struct policy_input *in);
/* @narrowed: something cut the parent down, and its agents are cut down with it. */
must_check int finish_agents(struct policy *p, bool narrowed);
bool is_operators(enum cap_action action);

#endif
