/*
 * pin.h - whose keys count here: a file that was written when the keys were made
 *
 * Reads:  CONFIG/attest.pub.pem; for those of logs see audit/pin.h
 * Writes: it, when a key is made
 * Next:   check.h
 */
#ifndef WRIT_ATTEST_PIN_H
#define WRIT_ATTEST_PIN_H

#include "attest/bundle.h"

/* Adds the key to the file at @path, which is made; nothing if it is there already. */
must_check int pin_attest(const char *path, const struct attest_key *key, struct writ_err *err);

#endif
