/*
 * probe_priv.h - state of the probes
 */
#ifndef WRIT_PARTS_PROBE_PRIV_H
#define WRIT_PARTS_PROBE_PRIV_H

#include "crypto/crypto.h"
#include "parts/part_id.h"
#include "parts/probe.h"

enum { GATES_MAX = 64, READBACK_MAX = 48 };

/* Rows "NAME WANTED FOUND" about the state of the jail, as the kernel reports it. */
struct readback {
	size_t n;
	struct readback_row {
		enum engine_boundary boundary;
		bool read, agrees;
		bool said; /* writ-init reported the value, because the kernel does not */
		char text[80];
	} rows[READBACK_MAX];
	uint64_t own[ENGINE_SPACES]; /* inodes of the supervisor's namespaces */
	char spaces[ENGINE_SPACES][32];
	bool mounts_known;
	struct digest mounts; /* digest of the jail's mount list */
};

struct probing {
	struct engine_bait bait;
	int listener;	     /* socket of the bait on the host's loopback; -1: none */
	struct digest names; /* digest of the names in the command's environment */
	struct probes_gate { /* commands that wait until the evidence is on record */
		uint32_t id;
		int fd;	   /* pipe on which the command waits; -1: it waits in its exec */
		pid_t pid; /* process of the command, set once its probes have run */
	} gates[GATES_MAX];
	size_t gates_n;
	bool tried;    /* the probe results of one command are on record, or about to be */
	bool released; /* a command was released */
	bool open;     /* a probe found a boundary open; @err names it */
	struct writ_err err;
	struct engine_probed start;
	struct readback read;
};

static inline struct probing *probing_of(const struct session *s)
{
	return session_state(s, PART_PROBE);
}

/*
 * readback.c: readback_sealed() reads the state of pid 1 once the jail is sealed; readback_take()
 * reads the state of @pid, which becomes the command.
 */
void readback_sealed(const struct session *s, struct readback *r);
void readback_take(const struct session *s, pid_t pid, const struct engine_probed *p,
		   struct readback *r);

#endif
