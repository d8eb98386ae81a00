/*
 * event.h - a report that an operation inside was refused, or that a program was started
 *
 * Reads:  cap/set.h
 * Writes: nothing
 * Next:   session/parts/denials.c counts, numbers and records events
 */
#ifndef WRIT_PLAN_EVENT_H
#define WRIT_PLAN_EVENT_H

#include "cap/cause.h"
#include "cap/set.h"

enum mediate_op {
	MEDIATE_NONE = 0,
	MEDIATE_EXEC, /* a program was started, or its start was denied */
	MEDIATE_READ,
	MEDIATE_WRITE,
	MEDIATE_CONNECT,
	MEDIATE_BIND,
	MEDIATE_GIT, /* reported by the git helper: a repository and the operation */
	MEDIATE_NET, /* reported by egress: a connection or lookup of a name; not a system call */
	MEDIATE_META,
};

enum { MEDIATE_TEXT = 1024 };

/*
 * Event for the record. Strings may contain any byte but NUL; long strings are cut, but never
 * inside a UTF-8 character.
 */
struct mediate_event {
	enum mediate_op op;
	bool denied;
	uint8_t reason;		   /* enum cap_reason, if denied */
	uint8_t protect;	   /* CAP_REASON_PROTECTED: 1 + index into protect_names; 0: none */
	uint16_t cause;		   /* enum cap_cause, if denied */
	int32_t sys;		   /* errno that the caller received; 0: the call succeeded */
	uint32_t rule;		   /* index of the rule that decided, or RULE_NONE */
	int32_t pid;		   /* pid of the caller, in the mediator's pid namespace */
	/* Device and inode of the object when it was denied; @ino 0: there was none, or unknown. */
	uint64_t dev, ino;
	char comm[16];		   /* name of the calling thread, for people */
	char object[MEDIATE_TEXT]; /* physical path, or address or repository as text */
	char extra[MEDIATE_TEXT];  /* exec: arguments, joined by blanks; else detail of @cause */
};

/*
 * Encodes an event for another process. @ret_bytes must have space for sizeof(*e) bytes. Returns
 * the number of bytes written.
 */
size_t event_encode(const struct mediate_event *e, char *ret_bytes);
must_check bool event_decode(const char *bytes, size_t n, struct mediate_event *ret);

#endif
