/*
 * conform.h - every known way out of a sandbox, tried on this machine
 *
 * Reads:  what `writ-escape` lists and judges, what `writ explain --json` declares,
 *         a file of earlier trials
 * Writes: scenes below one directory, which are gone afterwards
 * Next:   cli/conform prints the report
 *
 * Each attempt is made twice: first without a sandbox (what does not work even then
 * says nothing here), then inside. Both are judged from outside. What a sandbox
 * declared beforehand not to hold is a gap; anything else that got out escaped.
 */
#ifndef WRIT_CONFORM_CONFORM_H
#define WRIT_CONFORM_CONFORM_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "cap/guarantee.h"

/* What could be seen of one attempt. */
enum conform_seen {
	SEEN_SILENT = 0, /* no trace of having run */
	SEEN_HELD,
	SEEN_ESCAPED,
	SEEN_SKIPPED, /* not tried: without a sandbox it would hurt the machine */
	/* keep last */
	SEEN_COUNT
};

/* The same operation inside, where it is allowed. */
enum conform_control {
	CONTROL_NONE = 0, /* the row has none, or nobody asked */
	CONTROL_FAILS,
	CONTROL_WORKS,
	/* keep last */
	CONTROL_COUNT
};

enum conform_verdict {
	VERDICT_NOT_RUN = 0,
	VERDICT_HELD,
	VERDICT_BLOCKED,
	VERDICT_ESCAPED,
	VERDICT_GAP,
	VERDICT_NA,
	VERDICT_WORKS,
	VERDICT_BROKEN,
	/* keep last */
	VERDICT_COUNT
};

/* As `writ-escape list --json` names them, in this order. */
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
	/* keep last */
	ROW_FLAGS_END = 1u << 10
};

struct conform_row {
	struct sv id, bound, guarantee, what;
	struct sv policy; /* one more policy line, or empty */
	struct sv gap;	  /* a gap of the plan that speaks of this row, or empty */
	bool outside;	  /* judged from outside, not by what it says itself */
	bool control;
	unsigned flags;
};

struct conform_rows {
	VEC(struct conform_row) rows;
};

enum { CONFORM_TEXT = 320 };

struct conform_trial {
	enum conform_seen seen;
	char why[CONFORM_TEXT], said[CONFORM_TEXT]; /* how it got out; its own words */
};

/* --- verdict.c --- */

struct conform_case {
	unsigned flags;
	enum conform_seen bare, inside;
	enum conform_control control;
	bool declared; /* not held, and said so */
	bool refused;  /* not even started with this policy, and said so */
};

enum conform_verdict conform_judge(const struct conform_case *c);
bool conform_passes(enum conform_verdict v);
const char *conform_verdict_name(enum conform_verdict v);
const char *conform_verdict_means(enum conform_verdict v);
const char *conform_seen_name(enum conform_seen s);
const char *conform_flag_name(unsigned bit); /* NULL behind the last one */

/* --- read.c: what other programs and people wrote --- */

/* What a sandbox said beforehand that it does not hold. */
struct conform_levels {
	bool weak[G_COUNT];
	bool refused;
	VEC(struct sv) gaps;
	struct sv tier; /* empty: none was named */
};

must_check int conform_read_rows(struct sv json, struct arena *a, struct conform_rows *ret,
				 struct writ_err *err);
/* "fs.read=none,ipc=partial" */
must_check int conform_read_declared(struct sv text, struct conform_levels *ret,
				     struct writ_err *err);
must_check int conform_read_explain(struct sv json, struct arena *a, struct conform_levels *ret,
				    struct writ_err *err);
bool conform_declared(const struct conform_levels *l, const struct conform_row *row);

/* Sets @trials, one per row, from lines of id, verdict, reason and words. */
void conform_read_judged(struct sv text, const struct conform_rows *rows,
			 struct conform_trial *trials);

/* Trials kept in a file. Reading returns 1 if every row is in it, 0 if not. */
must_check int conform_read_bare(struct sv json, const struct conform_rows *rows,
				 struct conform_trial *trials, struct writ_err *err);
void conform_put_bare(struct buf *b, const struct conform_rows *rows,
		      const struct conform_trial *trials);

/* A command line as a shell would split it: blanks, quotes, backslashes, nothing else. */
struct conform_words {
	VEC(const char *) words;
};
must_check int conform_split(struct sv text, struct arena *a, struct conform_words *ret,
			     struct writ_err *err);

/* --- suite.c --- */

struct conform_options {
	const char *writ;   /* the program that is tested, unless @under */
	const char *escape; /* the program that tries */
	const char *dir;    /* where scenes are made */
	const char *user;   /* NULL: as we are; needs root */
	const char *tier;   /* NULL: what the plan chooses */
	const char *bare;   /* NULL, or a file that keeps what works without a sandbox */
	bool under;	    /* test @words instead; none: nothing at all */
	struct conform_words words;
	struct conform_levels declared; /* what @words does not claim */
	bool controls;
	unsigned jobs;
	int progress; /* a terminal to count on, or -1 */
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
	const char *tested; /* "writ run", or the words of --under */
	struct sv tier, user;
	char said[1536]; /* the sandbox's standard error, if something did not run */
	int signal;	 /* not 0: told to end, and nothing else here counts */
};

/* Every row that @escape knows. */
must_check int conform_list(struct arena *a, const char *escape, struct conform_rows *ret,
			    struct writ_err *err);
/* Blocks SIGCHLD and what ends programs while it runs; starts nothing that it does not end. */
must_check int conform_run(struct arena *a, const struct conform_options *opt,
			   const struct conform_rows *rows, struct conform_report *ret,
			   struct writ_err *err);

/* --- show.c --- */

void conform_show(const struct conform_report *r, bool all, struct buf *b);
void conform_json(const struct conform_report *r, struct buf *b);
void conform_show_rows(const struct conform_rows *rows, struct buf *b);
void conform_json_rows(const struct conform_rows *rows, struct buf *b);
bool conform_report_passes(const struct conform_report *r);

#endif
