/*
 * judge.h - which boundaries of a session held, by what its log says
 *
 * Reads:  entries of a session's log, in order, public forms or whole lines
 * Writes: a finding for each boundary
 * Next:   cli/ (writ attest verify)
 *
 * Whoever ran the session says what was tried and what came of it; the verdict is drawn
 * here, by whoever checks. What is missing is unknown, never held: taking an entry away
 * cannot make a finding better. The rules are those of docs/protocol/evidence.md.
 */
#ifndef WRIT_ATTEST_JUDGE_H
#define WRIT_ATTEST_JUDGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum boundary {
	BOUNDARY_FILESYSTEM,
	BOUNDARY_NETWORK,
	BOUNDARY_PROCESS,
	BOUNDARY_RESOURCES,
	BOUNDARY_CREDENTIALS,
	BOUNDARIES,
};

enum verdict {
	VERDICT_UNKNOWN = 0,
	VERDICT_HELD,
	VERDICT_VIOLATED,
	VERDICT_NOT_ENFORCED,
};

/* What the evidence is worth: said, read back from the kernel, tried from inside. */
enum strength { STRENGTH_E0, STRENGTH_E1, STRENGTH_E2 };

struct finding {
	enum verdict verdict;
	enum strength strength;
	uint64_t denials;
	uint64_t entry; /* where the log shows a violation */
	uint64_t tried; /* attempts that were refused, at the start and at the end */
	uint64_t known; /* that there could be */
	char why[160]; /* for people: what it rests on, or what is missing */
};

/* What was said of a boundary so far; for judge.c alone. */
struct judge_seen {
	bool applied, read, unread, late; /* late: after something was let run */
	bool start, end;		  /* something was tried */
	uint64_t refused[2];		  /* at the start, at the end: the fewest of one entry */
	bool start_vague, end_vague;	  /* a control failed, or an attempt showed nothing */
	bool violated;
	enum strength by; /* of the violation */
	char none[64], partial[64], unasked[64];
	char what[48]; /* of the violation, or of what showed nothing */
};

struct judgement {
	bool started, ended;
	uint64_t entries;
	uint64_t left_out; /* events that are not in the log: it was full */
	struct finding of[BOUNDARIES];
	/* Of judge.c */
	bool released, early, counted;
	struct judge_seen seen[BOUNDARIES];
};

const char *boundary_name(enum boundary b); /* filesystem */
const char *verdict_name(enum verdict v);   /* held */

/* Zero @j, give it every entry from the first on, then draw the conclusion. */
void judge_entry(struct judgement *j, const json_t *entry);
void judge_end(struct judgement *j);

#endif
