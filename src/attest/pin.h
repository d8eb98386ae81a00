/*
 * pin.h - whose keys count here: files that were written when the keys were made
 *
 * Reads:  CONFIG/log.policy (C2SP tlog-policy), CONFIG/attest.pub.pem
 * Writes: them, when a key is made
 * Next:   check.h
 */
#ifndef WRIT_ATTEST_PIN_H
#define WRIT_ATTEST_PIN_H

#include "attest/bundle.h"
#include "tlog/note.h"

/* Adds the key to the file at @path, which is made; nothing if it is there already. */
must_check int pin_log(const char *path, const struct note_key *key, struct writ_err *err);
must_check int pin_attest(const char *path, const struct attest_key *key, struct writ_err *err);

#endif
