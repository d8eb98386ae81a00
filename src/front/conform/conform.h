/*
 * conform.h - try every known way out of a sandbox on this machine
 *
 * Theory of operation
 *
 * writ-escape knows a list of attempts (rows). Each row belongs to a bound and a guarantee. The
 * suite runs every row twice: first without a sandbox, because an attempt that fails even there
 * proves nothing on this machine, then inside. writ-escape judges both from outside, by their
 * effects. The suite compares the result with what the sandbox declared beforehand.
 *
 * For each row:  set up a scene -> run the attempt -> judge -> tear down   (scene.c)
 *   bare    inside      declared   verdict
 *   fails   stays       -          n.a.
 *   works   stays       -          held, or blocked if the control fails too
 *   -       gets out    no         ESCAPED
 *   -       gets out    yes        gap
 *   works   no trace    -          NOT RUN
 * Rows marked positive are work that must succeed: works, or BROKEN. verdict.c has all cases.
 *
 * Rows that can share a sandbox run in one; others run in one each, in parallel worker processes or
 * one at a time (suite.c). testbed.c makes the directory, the user and the environment; child.c
 * starts processes and receives signals; parse.c reads what other programs print.
 *
 * Inputs: rows of `writ-escape list --json`, levels of `writ explain --json` or --declare. Output:
 * a conform_report, printed by report.c.
 *
 * Invariants
 *   - A sandbox passes only if nothing escaped, everything ran and allowed work succeeded.
 *   - What an attempt prints never decides alone if its row can be judged from outside.
 *   - A gap is only what --declare or `writ explain` names for this policy. Results of attempts do
 *     not influence it.
 *   - Every process and file that a run creates is gone afterwards, also after a signal.
 *
 * Common mistakes
 *   - A row that is dangerous without a sandbox must be marked never-bare.
 *   - Attempts start processes in groups of their own; end them by session, not by group.
 *   - Bytes from inside a sandbox go to a terminal or JSON only through put_plain() and
 *     json_put_str().
 *
 * Reads:  what `writ-escape` lists and judges, what `writ explain --json` declares,
 *         a file of earlier trials
 * Writes: scenes below one directory, which are gone afterwards
 * Next:   cli/conform prints the report
 */
#ifndef WRIT_CONFORM_CONFORM_H
#define WRIT_CONFORM_CONFORM_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "cap/guarantee.h"

/* Observed outcome of one attempt. */
enum conform_seen {
	SEEN_SILENT = 0, /* the attempt left no trace of having run */
	SEEN_HELD,
	SEEN_ESCAPED,
	SEEN_SKIPPED, /* not tried: without a sandbox the attempt would harm the machine */
	/* number of values; keep last */
	SEEN_COUNT
};

/*
 * Outcome of the control: the same operation as the attempt, inside the sandbox, on an object where
 * the operation is allowed.
 */
enum conform_control {
	CONTROL_NONE = 0, /* the row has no control, or controls were not requested */
	CONTROL_FAILS,
	CONTROL_WORKS,
	/* number of values; keep last */
	CONTROL_COUNT
};

enum conform_verdict {
	ROW_NOT_RUN = 0,
	ROW_HELD,
	ROW_BLOCKED,
	ROW_ESCAPED,
	ROW_GAP,
	ROW_NA,
	ROW_WORKS,
	ROW_BROKEN,
	/* number of values; keep last */
	ROW_COUNT
};

/*
 * Properties of a row, in the order of conform_flag_name(), which has the names that `writ-escape
 * list --json` prints.
 */
enum conform_flag {
	ROW_OWN = 1u << 0,
	ROW_LAUNCH = 1u << 1,
	ROW_NEVER_BARE = 1u << 2,
	ROW_INHERENT = 1u << 3,
	ROW_KILL_SUPERVISOR = 1u << 4,
	ROW_ROOT_SETUP = 1u << 5,
	ROW_POSITIVE = 1u << 6,
	ROW_TTY = 1u << 7,
	ROW_SERIAL = 1u << 8,
	ROW_TIMED = 1u << 9,
	/* bit after the last flag; keep last */
	ROW_FLAGS_END = 1u << 10
};

struct conform_row {
	struct sv id, bound, guarantee, what;
	struct sv policy; /* an additional policy line, or empty */
	struct sv gap;	  /* name of the gap in the plan that covers this row, or empty */
	/* the row is judged by effects outside the sandbox, not by the attempt's own report */
	bool outside;
	bool control;
	unsigned flags;
};

struct conform_rows {
	VEC(struct conform_row) rows;
};

enum { CONFORM_TEXT = 320 };

struct conform_trial {
	enum conform_seen seen;
	/* @why: how the attempt got out, or why it did not run. @said: the attempt's own report. */
	char why[CONFORM_TEXT], said[CONFORM_TEXT];
};

/* --- verdict.c --- */

struct conform_case {
	unsigned flags;
	enum conform_seen bare, inside;
	enum conform_control control;
	bool declared; /* the sandbox declared beforehand that it does not stop this attempt */
	bool refused;  /* the sandbox declared beforehand that it does not start with this policy */
};

enum conform_verdict conform_judge(const struct conform_case *c);
bool conform_passes(enum conform_verdict v);
const char *conform_verdict_name(enum conform_verdict v);
const char *conform_verdict_means(enum conform_verdict v);
const char *conform_seen_name(enum conform_seen s);
const char *conform_flag_name(unsigned bit); /* returns NULL after the last flag */

/* --- parse.c: input from other programs and people --- */

/* Weaknesses that a sandbox declared beforehand. */
struct conform_levels {
	bool weak[G_COUNT];
	bool refused;
	VEC(struct sv) gaps;
	struct sv tier; /* tier of the plan; empty if none was named */
};

must_check int conform_read_rows(struct sv json, struct arena *a, struct conform_rows *ret,
				 struct writ_err *err);
/* Parses "fs.read=none,ipc=partial". */
must_check int conform_read_declared(struct sv text, struct conform_levels *ret,
				     struct writ_err *err);
must_check int conform_read_explain(struct sv json, struct arena *a, struct conform_levels *ret,
				    struct writ_err *err);
bool conform_declared(const struct conform_levels *l, const struct conform_row *row);

/* Sets @trials, one per row, from lines of id, verdict, reason and report, separated by tabs. */
void conform_read_judged(struct sv text, const struct conform_rows *rows,
			 struct conform_trial *trials);

/*
 * Parse and print a file of trials without a sandbox. conform_read_bare() returns 1 if the file has
 * every row, otherwise 0.
 */
must_check int conform_read_bare(struct sv json, const struct conform_rows *rows,
				 struct conform_trial *trials, struct writ_err *err);
void conform_put_bare(struct buf *b, const struct conform_rows *rows,
		      const struct conform_trial *trials);

/*
 * A command line, split like a shell does at blanks, with quotes and backslashes but no other
 * syntax.
 */
struct conform_words {
	VEC(const char *) words;
};
must_check int conform_split(struct sv text, struct arena *a, struct conform_words *ret,
			     struct writ_err *err);

/* --- suite.c --- */

struct conform_options {
	const char *writ;   /* path of the writ program under test, unless @under */
	const char *escape; /* path of writ-escape, which makes the attempts */
	const char *dir;    /* directory for scenes */
	const char *user;   /* user to run attempts as, which needs root; NULL: the current user */
	const char *tier;   /* tier to test; NULL: the plan chooses */
	const char *bare;   /* file that keeps trials without a sandbox; NULL: none */
	/* test the sandbox command in @words instead of writ; no words: test without any sandbox */
	bool under;
	struct conform_words words;
	/* weaknesses that the user declares for the sandbox in @words */
	struct conform_levels declared;
	bool controls;
	unsigned jobs;
	int progress; /* descriptor of the terminal for progress; -1: none */
	char **environ;
};

struct conform_result {
	const struct conform_row *row;
	enum conform_verdict verdict;
	enum conform_control control;
	struct conform_trial bare, inside;
};

struct conform_report {
	VEC(struct conform_result) results;
	const char *tested; /* name of the tested sandbox: "writ run", or the words of --under */
	struct sv tier, user;
	char said[1536]; /* standard error of the sandbox, if some attempt did not run */
	int signal;	 /* signal that stopped the run: the report is incomplete; 0: none */
};

/* Lists all rows that @escape knows. */
must_check int conform_list(struct arena *a, const char *escape, struct conform_rows *ret,
			    struct writ_err *err);
/*
 * Runs the suite. Blocks SIGCHLD and terminating signals meanwhile, and ends every process that the
 * suite started.
 */
must_check int conform_run(struct arena *a, const struct conform_options *opt,
			   const struct conform_rows *rows, struct conform_report *ret,
			   struct writ_err *err);

/* --- report.c --- */

void conform_show(const struct conform_report *r, bool all, struct buf *b);
void conform_json(const struct conform_report *r, struct buf *b);
void conform_show_rows(const struct conform_rows *rows, struct buf *b);
void conform_json_rows(const struct conform_rows *rows, struct buf *b);
bool conform_report_passes(const struct conform_report *r);

#endif
