/*
 * directories.h - directories of the session on the host
 *
 * Reads:  the state directory
 * Writes: the run directory, homes, files that the agent may read
 * Next:   record.c opens the record beside them
 *
 * The run directory (state/run/ID) is locked as long as the supervisor lives. A directory that can
 * be locked belongs to a session that was killed, and is swept by the next session that starts.
 */
#ifndef WRIT_PARTS_DIRECTORIES_H
#define WRIT_PARTS_DIRECTORIES_H

#include "loop/loop.h"

struct directories {
	/* the agent's HOME; parent of the directories that `state NAME` keeps */
	struct sv home, state;
	struct sv tmp, shm, info; /* directories of tier B; empty in tier A */
	struct sv run;		  /* path of the run directory; empty until directories_run() */
	struct sv rules;	  /* the rules as text, for the agent */
	const char *gate; /* parent of a home that is removed with the session; NULL: none */
	int run_fd;	  /* descriptor of the run directory; -1 until directories_run() */
};

extern const struct session_initial directories_initial;
must_check int directories_start(struct session *s, struct writ_err *err);
/* Removes leftovers of sessions that were killed, and old records. */
must_check int directories_sweep(struct session *s, struct writ_err *err);
void directories_clear(struct session *s);

const struct directories *directories_get(const struct session *s);
/* Makes and locks the run directory, unless it exists. */
must_check int directories_run(struct session *s, struct writ_err *err);

#endif
