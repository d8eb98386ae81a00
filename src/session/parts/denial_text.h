/*
 * denial_text.h - a denial as text for people and as JSON
 *
 * Reads:  nothing
 * Writes: a buffer
 * Next:   cli/ shows denials of sessions that run or have ended
 */
#ifndef WRIT_PARTS_DENIAL_TEXT_H
#define WRIT_PARTS_DENIAL_TEXT_H

#include "base/buf.h"
#include "cap/set.h"
#include "lang/protect.h"
#include "plan/event.h"

/* A refused operation. Texts are borrowed, and may hold any bytes. */
struct session_denial {
	struct sv session; /* id of the session */
	uint32_t number;   /* number in the session, for `writ allow`; 0: above DENIALS_MAX */
	uint32_t count;	   /* times that the operation was refused; 0: not known */
	bool running;	   /* the session is running, so that the operation can be granted */
	bool guessed;	   /* a hint: an argument names the object, no failure was observed */
	bool defaults;	   /* no person wrote a rule; a first rule must add `allow write .` */
	struct sv profile; /* profile that writ chose, or empty; a first rule must add `use` */
	int32_t pid;	   /* pid of the program; 0: not known */
	enum cap_reason reason;
	const struct protect_name *protect; /* protected name that a policy can open, or NULL */
	struct sv op, object, program;
	struct sv why;			/* reason as text for people; never compared */
	struct sv rule, where;		/* the policy line that denies the operation; its place */
	struct sv guarantee, level, by; /* guarantee that refused it, its level, its mechanism */
};

enum { DENIAL_WHY = MEDIATE_TEXT + 256 };

/* Writes the reason of a denial to @to and returns a view of it. @protect may be NULL. */
struct sv session_denial_why(enum cap_cause cause, const char *detail,
			     const struct protect_name *protect, char to[static DENIAL_WHY]);
/*
 * Append a denial to @b: session_denial_line() as one line for a person who watches the session,
 * session_denial_text() as several lines with all details, session_denial_json() as one JSON
 * object.
 */
void session_denial_line(const struct session_denial *d, struct buf *b);
void session_denial_text(const struct session_denial *d, struct buf *b);
void session_denial_json(const struct session_denial *d, struct buf *b);

#endif
