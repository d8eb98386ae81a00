/*
 * store.h - lists of trusted authorities in the forms that some programs want
 *
 * Reads:  certificates as PEM
 * Writes: the caller's buffer
 * Next:   session/ puts them where programs inside look
 */
#ifndef WRIT_CODEC_STORE_H
#define WRIT_CODEC_STORE_H

#include "base/buf.h"

/*
 * Appends to @der the first certificate in *@pem, and moves *@pem behind it. False
 * at the end. What is between certificates, and one that is not base64, is skipped.
 */
must_check bool store_next(struct sv *pem, struct buf *der);

/*
 * What Java calls a trust store: PKCS #12 without password, encryption or checksum,
 * as JDKs have shipped theirs since 18 and all since 8 can read.
 */
must_check int store_java(struct sv pem, struct buf *to, struct writ_err *err);

/* A policy file for Chromium and its kin: the certificates in @pem are trusted as well. */
must_check int store_browser(struct sv pem, struct buf *to, struct writ_err *err);

#endif
