/*
 * denials.h - denials of the session, counted and numbered
 *
 * Reads:  events of the mediator, egress and git
 * Writes: the record, denials.jsonl inside, the terminal
 * Next:   denial_text.h prints a denial; control.c grants one by its number; hints.h has guesses
 */
#ifndef WRIT_PARTS_DENIALS_H
#define WRIT_PARTS_DENIALS_H

#include "audit/entry.h"
#include "loop/loop.h"
#include "parts/denial_text.h"

enum { DENIALS_MAX = 512 };

/* Texts that a struct session_denial borrows. */
struct denial_texts {
	char where[256], why[DENIAL_WHY];
};

/* A refused operation, which may be granted by its number. */
struct denial {
	enum mediate_op op;
	enum cap_reason reason;
	const struct protect_name *protect; /* protected name that a policy can open, or NULL */
	uint32_t rule;
	uint32_t count;
	int32_t pid;
	/* Identity of the object at the first denial; @ino 0: there was none, or unknown. */
	uint64_t dev, ino;
	char comm[16];
	char object[MEDIATE_TEXT];
	enum cap_cause cause;
	char detail[MEDIATE_TEXT]; /* detail of @cause */
};

extern const struct session_initial denials_initial;
void denials_finish(struct session *s);
void denials_clear(struct session *s);
void denials_report(struct session *s);

/* Takes ownership of @fd, the file that lists denials for the agent. */
void denials_feed(struct session *s, int fd);
void denials_note(struct session *s, const struct mediate_event *e);
size_t denials_count(const struct session *s);
/* returns NULL if there is none */
const struct denial *denials_get(const struct session *s, size_t number);
bool denials_has(const struct session *s, enum mediate_op op, const char *object);

/*
 * Also used by hints.c: denials_fill() makes a denial of an event, and denials_describe() adds all
 * that is known about the denial. Texts of the result may be in @room.
 */
void denials_fill(const struct session *s, const struct mediate_event *e, struct denial *ret);
struct session_denial denials_describe(const struct session *s, const struct denial *d,
				       uint32_t number, struct denial_texts *room);
/* Adds the details of @d to an entry of the record. */
void denials_put(struct entry *entry, const struct session_denial *d);
/* Prints one line about @d at once. */
void denials_print(const struct session *s, const struct session_denial *d);

#endif
