/*
 * host_priv.h - a handle of the host engine
 */
#ifndef WRIT_HOST_HOST_PRIV_H
#define WRIT_HOST_HOST_PRIV_H

#include "host/host.h"
#include "jail/jail.h"
#include "limit/cgroup.h"
#include "plan/plan.h"

struct host_run {
	struct engine_run run; /* must be first: the part of the handle that the session reads */
	struct jail jail;
	/* Memfd with the sealed jail program, from host_compile() to host_start(); else -1. */
	int program;
	const struct plan *plan; /* the plan of the session; NULL until host_limit() */
	struct cgroup cgroup;
	struct cgroup_limits limits; /* the limits that the cgroup enforces */
	char name[32];		     /* name of the cgroup's directories */
};

static inline struct host_run *host_of(struct engine_run *run)
{
	return (struct host_run *)run;
}

/* readback.c: implements engine.readback. */
void host_readback(struct engine_run *run, pid_t pid, const struct engine_probed *probed,
		   struct engine_readback *ret);

/* mediation.c: implements engine.mediate. */
int host_mediate(const struct engine_run *run, struct arena *a, const struct engine_mediate *how);

#endif
