/*
 * compile.h - compile a plan and its policy into a jail program for this machine
 *
 * Theory of operation
 *
 * compile_program() goes through the policy once and writes one sealed memory file
 * (jail/program.h):
 *   1. roots.c collects the paths that rules open, each once, with its rights;
 *   2. skeleton.c adds the directories, devices and files that every jail has, trust.c the files of
 *      certificate authorities;
 *   3. compile.c writes the mounts, masks, listeners and limits, landlock.c the same file rules as
 *      a Landlock ruleset;
 *   4. probes.c lists attempts that must fail from inside, or must work;
 *   5. the seccomp programs of filter/ are appended and the file is sealed.
 * The session gets the result as struct engine_view.
 *
 * Invariants
 *   - A rule that cannot be carried out is an error here, before any process is confined. The plan
 *     has refused such a rule before; this check does not rely on the plan.
 *   - Paths are looked up once, here. writ-init receives physical paths and opens them without
 *     following links.
 *
 * Reads:  plan/plan.h, lang/policy.h, names in the host's file system
 * Writes: one sealed jail program
 * Next:   host/engine.c sends the program to writ-init
 */
#ifndef WRIT_COMPILE_COMPILE_H
#define WRIT_COMPILE_COMPILE_H

#include "jail/jail.h"
#include "plan/plan.h"
#include "lang/policy.h"
#include "reach/reach.h"

/* Can a tier A jail have a file or link of writ's own at @path, whatever the policy grants? */
bool compile_makes(struct sv path);

/*
 * Compiles the mounts that every root on this machine has, whatever the policy. writ-init makes
 * these mounts while the supervisor still reads the policy. If engine_place.furnished is set,
 * compile_program() leaves these mounts out.
 */
must_check int compile_early(struct arena *a, const struct host_facts *facts, struct sv user,
			     int *ret_program, struct writ_err *err);

/*
 * Compiles the jail program for @plan; *@ret_program is a sealed memfd. Fails with
 * WRIT_E_UNENFORCEABLE if the host engine cannot carry out a rule; the error text names the rule.
 */
must_check int compile_program(struct arena *a, const struct plan *plan,
			       const struct policy *policy, const struct engine_place *place,
			       uint32_t fail_at, struct engine_view *ret_view, int *ret_program,
			       struct writ_err *err);

#endif
