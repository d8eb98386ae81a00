/*
 * pin.h - the log and witness keys that a user trusts: CONFIG/log.policy
 *
 * Reads:  the file, a C2SP tlog-policy (tlog/policy.h)
 * Writes: the file; lines that a person wrote there stay
 * Next:   audit/verify.h, attest/, witness/ (which witnesses to ask)
 *
 * SECURITY: a key stored next to a log proves nothing, since whoever forges the log can also
 * replace the key. Verifiers trust only the keys in this file. The run that made a key, `writ key
 * init`, or a person puts them there.
 */
#ifndef WRIT_AUDIT_PIN_H
#define WRIT_AUDIT_PIN_H

#include "tlog/policy.h"

struct pins {
	struct buf text;
	/* trusted keys, views of .text; empty if the file does not exist */
	struct tlog_policy policy;
};

#define PINS_INIT                                                                                  \
	{                                                                                          \
		.text = BUF_INIT(TLOG_POLICY_MAX)                                                  \
	}
#define scoped_pins __attribute__((cleanup(pins_clear))) struct pins
void pins_clear(struct pins *p);

/* Reads the pin file at @path. A missing file counts as empty. */
must_check int pins_read(const char *path, struct pins *p, struct writ_err *err);
bool pins_has_log(const struct pins *p, const struct note_key *log);

/* Pins a log key in the file at @path. Succeeds if the key is pinned already. */
must_check int pins_add_log(const char *path, const struct note_key *log, struct writ_err *err);

/*
 * Pins a witness and requires its cosignature, along with those of all other witnesses. If a person
 * defined groups or a single witness as the quorum in the pin file, the quorum stays unchanged and
 * *@ret_required is false.
 */
must_check int pins_add_witness(const char *path, const struct note_key *witness, struct sv url,
				bool *ret_required, struct writ_err *err);

#endif
