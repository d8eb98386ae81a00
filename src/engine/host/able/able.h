/*
 * able.h - what the host engine can enforce, from recorded facts alone
 *
 * Theory of operation
 *
 * able_host() derives a few booleans from the facts and the policy once (struct ground: the tier,
 * whether calls can be mediated, which namespaces the session gets). Every level follows from them:
 * guarantees.c for guarantees, rules.c for capabilities and denials, limits.c for
 * limits. The steps come from jail/steps.def, so a plan lists exactly what writ-init carries out.
 *
 * The module is pure: it opens no file and asks no kernel. `compile` turns the same policy into a
 * program, which must enforce at least the levels promised here; tests/host compares the two.
 *
 * Reads:  plan/engine.h, plan/plan.h (features that this version lacks), jail/steps.def
 * Writes: nothing
 * Next:   the planner, through host_engine
 */
#ifndef WRIT_ABLE_ABLE_H
#define WRIT_ABLE_ABLE_H

#include "plan/engine.h"

must_check int able_host(const struct engine *e, struct arena *a, const struct engine_ask *ask,
			 struct engine_able *ret, struct writ_err *err);

#endif
