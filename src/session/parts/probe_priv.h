/*
 * probe_priv.h - state of the probes
 */
#ifndef WRIT_PARTS_PROBE_PRIV_H
#define WRIT_PARTS_PROBE_PRIV_H

#include "crypto/crypto.h"
#include "parts/probe.h"

enum { GATES_MAX = 64 };

struct probing {
	struct engine_bait bait;
	int listener;	     /* socket that probes try to reach, on the host's loopback; -1: none */
	struct digest names; /* digest of the names in the command's environment */
	struct probes_gate { /* commands that wait until the evidence is on record */
		uint32_t id;
		int fd;	   /* pipe on which the command waits; -1: the command waits in its exec */
		pid_t pid; /* process of the command, set once its probes have run */
	} gates[GATES_MAX];
	size_t gates_n;
	bool tried;    /* the probe results of one command are on record, or about to be */
	bool released; /* a command was allowed to run */
	bool open;     /* a probe found a boundary open; @err names it */
	struct writ_err err;
	struct engine_probed start;
	struct engine_readback read;
};

static inline struct probing *probing_of(const struct session *s)
{
	return session_state(s, &probes_initial);
}

#endif
