/*
 * pin.h - the attestation keys that this user trusts: CONFIG/attest.pub.pem
 *
 * Reads:  the file; for log keys see audit/pin.h
 * Writes: the file, when a key is made
 * Next:   check.h
 */
#ifndef WRIT_ATTEST_PIN_H
#define WRIT_ATTEST_PIN_H

#include "attest/bundle.h"

/*
 * Adds @key to the pin file at @path, which is created if missing. Does nothing if the file already
 * has @key.
 */
must_check int attest_pin_key(const char *path, const struct attest_key *key, struct writ_err *err);

#endif
