/*
 * policy.h - what is dangerous in a writ policy that is otherwise right
 *
 * Reads:  a loaded policy
 * Writes: nothing but findings in the caller's arena
 * Next:   cli/ prints them with those of other formats
 */
#ifndef WRIT_LINT_POLICY_H
#define WRIT_LINT_POLICY_H

#include "lint/lint.h"
#include "policy/policy.h"

/* Appends findings about the rules that stand in @src itself. */
must_check int lint_policy(struct arena *a, const struct policy *p, const struct source *src,
			   const struct policy_env *env, struct lint_findings *findings,
			   struct writ_err *err);

#endif
