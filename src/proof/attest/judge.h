/*
 * judge.h - which boundaries of a session held, according to its log
 *
 * Reads:  entries of a session's log, in order, public forms or complete lines
 * Writes: a finding for each boundary
 * Next:   cli/ (writ attest verify)
 *
 * The session records attempts and their results; the verifier draws the verdict here. Missing
 * evidence means unknown, never held, so removing an entry cannot improve a finding. The rules are
 * those of docs/protocol/evidence.md.
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

/*
 * Strength of evidence about a boundary. E0: the session claims that the boundary is set. E1: the
 * settings were read back from the kernel. E2: attempts from inside the session were refused.
 */
enum strength { STRENGTH_E0, STRENGTH_E1, STRENGTH_E2 };

struct finding {
	enum verdict verdict;
	enum strength strength;
	uint64_t denials;
	uint64_t entry; /* index of the log entry that shows a violation */
	/* Attempts that were refused in both phases (the smaller of the start and end counts). */
	uint64_t tried;
	uint64_t known; /* attempts that this version of writ knows for the boundary */
	char why[160];	/* explanation of the verdict for people */
};

/*
 * Evidence about one boundary collected so far; private to judge.c. The members violated, by and
 * what are about a violation; none, partial and unasked are lists of controls for people.
 */
struct judge_seen {
	/*
	 * applied: an entry says that the boundary was applied; read, unread: a value was, or could
	 * not be, read back from the kernel; late: the boundary was applied after a program could
	 * run
	 */
	bool applied, read, unread, late;
	/* the log has probes of the start phase, of the end phase */
	bool start, end;
	/* attempts refused in the start phase, in the end phase; the smallest of several entries */
	uint64_t refused[2];
	/* in the start phase, in the end phase: a control failed, or an attempt was inconclusive */
	bool start_vague, end_vague;
	bool violated;
	enum strength by; /* strength of the evidence for the violation */
	char none[64], partial[64], unasked[64];
	char what[48]; /* name of the violated or inconclusive check */
};

struct judgement {
	bool started, ended;
	uint64_t entries;
	uint64_t left_out; /* events that were not recorded because the log was full */
	struct finding of[BOUNDARIES];
	/* State that is private to judge.c. */
	bool released, early, counted;
	struct judge_seen seen[BOUNDARIES];
};

/* name of the boundary in entries, such as "filesystem" */
const char *attest_boundary_name(enum boundary b);
/* name of the verdict for output, such as "held" */
const char *verdict_name(enum verdict v);

/*
 * Usage: zero @j, pass every log entry from the first on to judge_entry(), then call judge_end().
 */
void judge_entry(struct judgement *j, const json_t *entry);
void judge_end(struct judgement *j);

#endif
