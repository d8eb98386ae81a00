/*
 * engines.h - the engines of this build, in one array for the planner
 *
 * Theory of operation
 *
 * The array also lists engines of which this version knows only the name, so that `--adapter` can
 * say so: their able() sets .lacks, and their plans promise nothing. A change that implements such
 * an engine replaces its row.
 *
 * Reads:  host/host.h
 * Writes: nothing
 * Next:   cli/ and lib/ hand the array to plan_new()
 */
#ifndef WRIT_ENGINES_ENGINES_H
#define WRIT_ENGINES_ENGINES_H

#include "plan/engine.h"

/*
 * The engines of this build; the array ends with NULL. The first entry, the host engine, is the
 * default.
 */
extern const struct engine *const engines_all[];

#endif
