/*
 * agents.h - agents that a session starts, each in a session of its own
 *
 * Reads:  requests of processes in the jail (spawn.h)
 * Writes: sessions
 * Next:   delegate.c makes the policy and token of an agent
 *
 * `writ spawn NAME -- COMMAND` in the jail connects to a socket of the supervisor, which starts
 * another session under the policy block of NAME. The agent's session ends with the session that
 * started the agent.
 */
#ifndef WRIT_PARTS_AGENTS_H
#define WRIT_PARTS_AGENTS_H

#include "loop/loop.h"

bool spawn_allowed(const struct policy *p);
extern const struct session_initial spawn_initial;
must_check int spawn_init(struct session *s, struct writ_err *err);
must_check int spawn_start(struct session *s, struct writ_err *err);
void spawn_poll(struct session *s, struct session_poll *set);
void spawn_on_event(struct session *s, const struct pollfd *p, size_t n);
void spawn_finish(struct session *s);

/* Returns the host path of the socket on which `writ spawn` asks for an agent; empty: no socket. */
struct sv spawn_path(const struct session *s);
void spawn_record(struct session *s);
bool spawn_owns(const struct session *s, pid_t pid);

/* delegate.c: the policy and the token that an agent gets from its session. */
struct token_id;
must_check int delegate_policy(struct session *s, const struct policy_agent *agent,
			       struct policy *ret, struct writ_err *err);
/* Derives the token of an agent. If the token is refused, @err and @ret->why have the reason. */
must_check int delegate_token(struct session *s, const struct policy_agent *agent,
			      const struct token_id *sid, struct session_token *ret,
			      struct writ_err *err);

#endif
