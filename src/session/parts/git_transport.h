/*
 * git_transport.h - the git helper, a process that fetches and pushes for `allow git`
 *
 * Reads:  messages of the git helper
 * Writes: entries of fetches and pushes
 * Next:   gitnet/ implements the git helper
 */
#ifndef WRIT_PARTS_GIT_TRANSPORT_H
#define WRIT_PARTS_GIT_TRANSPORT_H

#include "loop/loop.h"

extern const struct session_initial git_transport_initial;
/*
 * Starts the git helper in a session without a network namespace, where egress accepts its
 * connections and hands them over.
 */
must_check int git_transport_start_handed(struct session *s, struct writ_err *err);
void git_transport_poll(struct session *s, struct session_poll *set);
void git_transport_on_event(struct session *s, const struct pollfd *p, size_t n);
void git_transport_clear(struct session *s);

/* Starts the git helper with a listener that writ-init made. Takes ownership of @listener. */
must_check int git_transport_start(struct session *s, int listener, struct writ_err *err);
bool git_transport_is_handed(const struct session *s);
/* Sends the git helper a connection that egress has accepted. */
void git_transport_hand(struct session *s, int fd);
/* Returns the @i-th variable that leads git in the jail to the git helper; false after the last. */
must_check bool git_transport_name(struct session *s, size_t i, struct sv *ret_name,
				   struct sv *ret_value);
bool git_transport_owns(const struct session *s, pid_t pid);

#endif
