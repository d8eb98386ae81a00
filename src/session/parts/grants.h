/*
 * grants.h - live grants
 *
 * Reads:  requests of clients
 * Writes: mounts, rules of the mediator and egress
 * Next:   control.c receives the requests; engine.c receives the keeper's answers
 *
 * A grant of a path is a mount that the keeper attaches, and rules of the mediator; in tier B only
 * the rules. Overlapping mounts stack in the order of the grants' numbers; the newest is revoked
 * first. SECURITY: a grant that cannot be revoked ends the session.
 */
#ifndef WRIT_PARTS_GRANTS_H
#define WRIT_PARTS_GRANTS_H

#include "parts/control.h"

enum { GRANTS_MAX = ENGINE_GRANTS_MAX };

enum grant_state {
	GRANT_NONE = 0,	 /* the grant was revoked, or could not be attached */
	GRANT_ATTACHING, /* the keeper was asked to attach the mount of the grant */
	GRANT_UNWANTED,	 /* GRANT_ATTACHING, but the grant was revoked meanwhile */
	GRANT_HELD,
	GRANT_DETACHING, /* the keeper was asked to detach the mount of the grant */
};

struct grant {
	enum grant_state state;
	uint32_t number;
	bool write, net;
	/* The path; for a grant of the network its capabilities, one per line. */
	char path[ENGINE_PATH];
	char scope[CAP_TEXT_MAX]; /* text of the grant's capability without its action */
	char rule[ENGINE_PATH + 16];
};

extern const struct session_initial grants_initial;

enum grant_action { GRANT_READ = 0, GRANT_WRITE, GRANT_NET };
struct grant_request {
	enum grant_action action;
	struct sv object; /* a physical path, or the text of the rule after "net" */
	struct sv caps;	  /* capabilities of a net rule, one per line */
	struct engine_object expected; /* the object that the client found at the path */
};
/* Answers @who, at once or when the keeper has attached the mount of the grant. */
void grants_allow(struct session *s, const struct caller *who, const struct grant_request *req);
void grants_revoke(struct session *s, const struct caller *who, uint32_t number);
/* Handles the keeper's answer to an attach or detach request for grant @number. */
void grants_done(struct session *s, uint32_t number, struct writ_err *err);
/* Returns whether the keeper is attaching or detaching a mount. */
must_check bool grants_are_moving(const struct session *s);
/* Calls @each for every held grant of the network. */
void grants_each_net(const struct session *s, void (*each)(void *ctx, const struct grant *g),
		     void *ctx);

#endif
