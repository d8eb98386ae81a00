/*
 * hints.h - guesses about files that a command could not read
 *
 * Reads:  execs
 * Writes: sessions/ID.hints beside the record, the terminal
 * Next:   look.c finds them; denials.h has operations that were observed to fail
 *
 * Tier A cannot observe that a read of a file fails which is not visible inside. A program that was
 * given the name of such a file probably tried to read it. That is a guess, and the agent chooses
 * the arguments. A hint is therefore no denial: it has its own number (ID#h1), is in no count and
 * in no signed entry, and is never shown inside. People see it where they see denials, and can
 * grant it the same way.
 */
#ifndef WRIT_PARTS_HINTS_H
#define WRIT_PARTS_HINTS_H

#include "parts/denials.h"

enum { HINTS_MAX = 256 };

/*
 * Suffix of the file of hints in sessions/. It differs from the suffix of a record, so that no
 * reader takes the file for a record.
 */
#define HINTS_SUFFIX ".hints"

extern const struct session_initial hints_initial;
void hints_clear(struct session *s);

/* Adds a hint about the file that @e names, which exists on the host and is not visible inside. */
void hints_note(struct session *s, const struct mediate_event *e);
size_t hints_count(const struct session *s);
/* returns NULL if there is none */
const struct denial *hints_get(const struct session *s, size_t number);
struct session_denial hints_describe(const struct session *s, size_t number,
				     struct denial_texts *room);

/*
 * look.c: a helper process checks the arguments of each exec, and reports names that exist on the
 * host and not in the jail.
 */
extern const struct session_initial look_initial;
void look_poll(struct session *s, struct session_poll *set);
void look_on_event(struct session *s, const struct pollfd *p, size_t n);
int look_deadline(struct session *s, int least);
void look_finish(struct session *s);
void look_clear(struct session *s);

/* Asks the helper process to check the arguments of the exec @e. */
void look_at(struct session *s, const struct mediate_event *e);

#endif
