/*
 * probe.h - evidence: probes in the jail, and the state that the kernel reports about the jail
 *
 * Reads:  results of probes, /proc
 * Writes: the record
 * Next:   attest/judge.h decides from the record which boundary held
 *
 * Before the first command is released, a process in the jail tries what the policy forbids, and
 * the supervisor reads the kernel's state of that process from the host. The results and the state
 * are on record before the command runs. The only decision of this part: no command runs behind a
 * boundary that a probe found open.
 */
#ifndef WRIT_PARTS_PROBE_H
#define WRIT_PARTS_PROBE_H

#include "audit/entry.h"
#include "loop/loop.h"
#include "plan/engine.h"

extern const struct session_initial probes_initial;
must_check int probes_start(struct session *s, struct writ_err *err);
void probes_clear(struct session *s);

const struct engine_bait *probes_bait(const struct session *s);
/* Adds the conditions under which the session begins to the first entry of the record. */
void probes_describe(const struct session *s, struct entry *e);
/*
 * Makes command @id wait until it is released. *@ret_fd: the pipe that the command reads until
 * then; not set if the command waits in its exec, or need not wait.
 */
must_check int probes_gate(struct session *s, uint32_t id, int *ret_fd, struct writ_err *err);
void probes_sealed(struct session *s); /* the jail is sealed: reads the state of pid 1 */
void probes_result(struct session *s, struct engine_event *e);
/* Called before a mediated call of command @id is answered: releases a command that was probed. */
void probes_listener(struct session *s, uint32_t id);
void probes_shut(struct session *s, uint32_t id); /* ends the wait of command @id */
bool probes_released(const struct session *s);	  /* returns whether a command may run */
/* Sets the digest of the names of the variables in the command's environment. */
void probes_set_names(struct session *s, const struct digest *names);

/* probe_refuses.c: returns whether a session ends if a probe finds a boundary open. */
bool probes_refuses(void);

#endif
