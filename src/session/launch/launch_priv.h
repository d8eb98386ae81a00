/*
 * launch_priv.h - functions shared by the steps of a start
 */
#ifndef WRIT_LAUNCH_LAUNCH_PRIV_H
#define WRIT_LAUNCH_LAUNCH_PRIV_H

#include "launch/launch.h"

/* Returns the engine that the request names, or the default engine. */
const struct engine *launch_engine_of(const struct launch_request *req);

void launch_note(const struct launch_events *e, const char *text);

/*
 * policy.c: launch_load() for a session that will run. @agent_socket is the path of the socket on
 * which that session asks for agents.
 */
must_check int launch_load_with(struct arena *a, const struct launch_request *req,
				const struct find_where *where, const char *program,
				struct sv agent_socket, struct launch_loaded *l,
				struct launch_result *ret, struct writ_err *err);

/* token.c: loads the policy of the request's token, narrowed by files and rules in @l->in. */
must_check int launch_load_token(struct arena *a, const struct launch_request *req,
				 const char *program, struct launch_loaded *l,
				 struct launch_result *ret, struct writ_err *err);

#endif
