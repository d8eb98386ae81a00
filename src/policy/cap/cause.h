/*
 * cause.h - reasons of denials and failures
 *
 * Reads:  cause.def, the table of reasons and their texts
 * Writes: the text of a reason, for people
 * Next:   set.h decides; session/parts/denial_text.c prints a whole denial
 *
 * A process that refuses something sends the reason as a number and, for some reasons, a detail
 * such as the key of a git configuration. Code compares numbers. The text is made where a person
 * or an agent reads it, by cap_why_print(), and is never read back.
 */
#ifndef WRIT_CAP_CAUSE_H
#define WRIT_CAP_CAUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

enum cap_cause {
	CAUSE_NONE = 0,
#define CAUSE(name, text) CAUSE_##name,
#include "cap/cause.def"
#undef CAUSE
	CAUSES
};

enum { CAP_DETAIL = 254, CAP_WHY_TEXT = 400 };

/* A reason in a message between processes. */
struct cap_why {
	uint16_t cause;		 /* enum cap_cause */
	char detail[CAP_DETAIL]; /* empty: the reason has no detail */
};

/* Returns the reason with a copy of @detail, which is cut if it is long; NULL: no detail. */
struct cap_why cap_why(enum cap_cause cause, const char *detail);
/*
 * Makes a received reason safe to print: terminates the detail. Returns false for an unknown
 * cause.
 */
must_check bool cap_why_receive(struct cap_why *w);
/* Writes the text of a reason to @to and returns @to. @detail may be NULL. */
const char *cap_why_print(enum cap_cause cause, const char *detail, char *to, size_t room);

#endif
