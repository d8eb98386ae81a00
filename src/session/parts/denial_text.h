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
	uint32_t number;   /* in it, for `writ allow`; 0: it came too late to have one */
	uint32_t count;	   /* 0: not known */
	bool running;	   /* the session is: it can be granted */
	bool guessed;	   /* a hint: an argument names the object, no failure was observed */
	bool defaults;	   /* no rule was written: a first one must say `allow write .` as well */
	struct sv profile; /* the same for an agent, whose profile was chosen: `use` it */
	int32_t pid;	   /* pid of the program; 0: not known */
	enum cap_reason reason;
	const struct protect_name *protect; /* the name to open; NULL: none */
	struct sv op, object, program;
	struct sv why;			/* for people: shown, never compared */
	struct sv rule, where;		/* the line that denies it; empty: none does */
	struct sv guarantee, level, by; /* the guarantee that refused it; may be empty */
};

enum { DENIAL_WHY = MEDIATE_TEXT + 256 };

/* Writes the reason of a denial to @to and returns it. @protect may be NULL. */
struct sv session_denial_why(enum cap_cause cause, const char *detail,
			     const struct protect_name *protect, char to[static DENIAL_WHY]);
/* For people: one line while the session runs; several lines made harmless. As one JSON object. */
void session_denial_line(const struct session_denial *d, struct buf *b);
void session_denial_text(const struct session_denial *d, struct buf *b);
void session_denial_json(const struct session_denial *d, struct buf *b);

#endif
