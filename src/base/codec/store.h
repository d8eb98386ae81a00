/*
 * store.h - trusted certificates in the file formats that some programs require
 *
 * Reads:  certificates as PEM
 * Writes: the caller's buffer
 * Next:   session/ writes the files where programs inside look for them
 */
#ifndef WRIT_CODEC_STORE_H
#define WRIT_CODEC_STORE_H

#include "base/buf.h"

/*
 * Appends the first certificate in *@pem to @der as DER and moves *@pem past the certificate. Skips
 * text between certificates and certificates that are not base64. Returns false at the end of
 * *@pem.
 */
must_check bool store_next(struct sv *pem, struct buf *der);

/*
 * Writes the certificates in @pem as a Java trust store: PKCS #12 without password, encryption or
 * checksum. JDKs since version 18 ship their own trust store in this form; JDKs of version 8 and
 * later can read this form.
 */
must_check int store_java(struct sv pem, struct buf *to, struct writ_err *err);

/* Writes a policy file that makes Chromium-based browsers trust the certificates in @pem, too. */
must_check int store_browser(struct sv pem, struct buf *to, struct writ_err *err);

#endif
