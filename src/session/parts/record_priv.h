/*
 * record_priv.h - state of the record
 */
#ifndef WRIT_PARTS_RECORD_PRIV_H
#define WRIT_PARTS_RECORD_PRIV_H

#include "parts/record.h"

struct seal;
struct signer_install;
struct log_place;
struct pins;

struct record {
	struct slog log;
	struct sv path;
	uint64_t dropped;  /* number of entries dropped beyond the size limit */
	bool log_failed;   /* the record could not be written */
	bool sealing;	   /* the realm's log has the beginning of this session */
	struct seal *seal; /* a cache of the realm's log; NULL: none */
	int signer; /* socket of writ-signer, if writ-signer keeps the realm's log; else -1 */
	struct sv guarantees;	    /* the plan as JSON */
	struct digest plan, policy; /* digests of @guarantees and of the policy */
};

static inline struct record *record_of(const struct session *s)
{
	return session_state(s, &record_initial);
}

/* Implemented in seal.c. */
must_check int seal_start(struct session *s, struct writ_err *err);
/* Finds out whether writ-signer keeps the realm's log, and which installation. */
must_check int seal_signer(struct session *s, struct signer_install *ret, struct writ_err *err);
/* Ends the session because writ-signer has ended, or refuses. */
void seal_lost(struct session *s);
void seal_clear(struct session *s);

/*
 * witnesses.c: witnesses_read() reads the list of the realm's witnesses; witnesses_ask() asks them
 * to cosign.
 */
must_check int witnesses_read(const struct log_place *place, struct pins *ret,
			      struct writ_err *err);
/* Asks the witnesses. @known: the result of witnesses_read(); NULL: not read yet, or failed. */
void witnesses_ask(struct session *s, const struct log_place *place, const struct pins *known);

#endif
