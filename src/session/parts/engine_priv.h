/*
 * engine_priv.h - state of the engine
 */
#ifndef WRIT_PARTS_ENGINE_PRIV_H
#define WRIT_PARTS_ENGINE_PRIV_H

#include "parts/engine.h"

struct engine_state {
	struct engine_run *run;
	struct repo_identity identity;
	int mounts; /* mountinfo of the jail, if the policy denies reading a file; else -1 */
};

static inline struct engine_state *engine_of(const struct session *s)
{
	return session_state(s, &engine_initial);
}

/* Implemented in init_messages.c. */
void init_messages_recv(struct session *s);
void engine_mounts_changed(struct session *s);

#endif
