/*
 * host.h - the host engine: namespaces, Landlock, seccomp and mediation on this kernel
 *
 * Theory of operation
 *
 * host_engine implements plan/engine.h, which has the contract. able() is the pure module `able`;
 * compile() has module `compile` write a sealed jail program; the rest sends and receives the
 * messages of jail/program.h, so no other module of the session knows them. A handle (struct
 * host_run) is one jail and the cgroup with its limits.
 *
 * Reads:  plan/engine.h, messages of writ-init and the keeper, /proc of the jail's processes
 * Writes: messages to them, the cgroup
 * Next:   engines/engines.h hands it to the planner
 */
#ifndef WRIT_HOST_HOST_H
#define WRIT_HOST_HOST_H

#include "plan/engine.h"

extern const struct engine host_engine;

#endif
