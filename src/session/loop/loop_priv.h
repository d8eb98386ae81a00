/*
 * loop_priv.h - the state of a session that only the loop changes
 */
#ifndef WRIT_LOOP_LOOP_PRIV_H
#define WRIT_LOOP_LOOP_PRIV_H

#include "loop/loop.h"

struct session_core {
	struct session_status status;
	struct session_options late; /* copy of the options, with the changes that await() made */
	const struct session_part *parts;
	size_t parts_n;
	bool stirred; /* an event has come since the loop last gave memory back */
	struct {
		const struct session_initial *initial;
		void *state;
	} states[SESSION_PARTS_MAX];
	size_t states_n;
};

/* loop.c: waits once for the descriptors and deadlines of the parts, and calls their handlers. */
void session_step(struct session *s);

#endif
