/*
 * policy.h - find dangerous rules in a writ policy that has no errors
 *
 * Reads:  a loaded policy
 * Writes: findings in the caller's arena
 * Next:   cli/ prints the findings with the findings of other formats
 */
#ifndef WRIT_LINT_POLICY_H
#define WRIT_LINT_POLICY_H

#include "lint/lint.h"
#include "lang/policy.h"

/* Appends findings about rules in @src itself, not in profiles that @src uses. */
must_check int lint_policy(struct arena *a, const struct policy *p, const struct source *src,
			   const struct policy_env *env, struct lint_findings *findings,
			   struct writ_err *err);

#endif
