/*
 * pin.h - which keys a user believes: CONFIG/log.policy
 *
 * Reads:  the file, a C2SP tlog-policy (tlog/policy.h)
 * Writes: the file; what a person wrote there stays
 * Next:   audit/verify.h, attest/, witness/ (which witnesses to ask)
 *
 * A key that lies beside a log is no reason to believe it. What counts is pinned here:
 * by the run that made the key, by `writ key init`, or by a person.
 */
#ifndef WRIT_AUDIT_PIN_H
#define WRIT_AUDIT_PIN_H

#include "tlog/policy.h"

struct pins {
	struct buf text;
	struct tlog_policy policy; /* views of .text; nothing in it if there is no file */
};

#define PINS_INIT                                                                                  \
	{                                                                                          \
		.text = BUF_INIT(TLOG_POLICY_MAX)                                                  \
	}
#define scoped_pins __attribute__((cleanup(pins_clear))) struct pins
void pins_clear(struct pins *p);

/* A file that is not there has nothing in it. */
must_check int pins_read(const char *path, struct pins *p, struct writ_err *err);
bool pins_has_log(const struct pins *p, const struct note_key *log);

/* Fine if it is pinned already. */
must_check int pins_add_log(const char *path, const struct note_key *log, struct writ_err *err);

/*
 * From now on this witness must have cosigned, too: all of them, unless a person has made
 * groups of their own, which stay as they are (*@ret_required is false then).
 */
must_check int pins_add_witness(const char *path, const struct note_key *witness, struct sv url,
				bool *ret_required, struct writ_err *err);

#endif
