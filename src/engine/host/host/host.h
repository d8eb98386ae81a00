/*
 * host.h - the host engine: namespaces, Landlock, seccomp and mediation on this kernel
 *
 * Theory of operation
 *
 * host_engine implements plan/engine.h, which has the contract. able() is the pure module `able`;
 * compile() lets the module `compile` write a sealed jail program; the other functions send and
 * receive the messages of jail/program.h, so no other part of the session knows these messages. A
 * handle (struct host_run) is one jail and the cgroup that limits it.
 *
 * Reads:  plan/engine.h, messages of writ-init and the keeper, /proc of the jail's processes
 * Writes: messages to writ-init and the keeper, the cgroup
 * Next:   engines/engines.h lists host_engine for the planner
 */
#ifndef WRIT_HOST_HOST_H
#define WRIT_HOST_HOST_H

#include "plan/engine.h"

extern const struct engine host_engine;

#endif
