/*
 * probe_tmp.h - one private directory for trials, and its complete removal
 *
 * Reads:  $TMPDIR
 * Writes: the directory it made, and nothing outside it
 * Next:   probe.c
 */
#ifndef WRIT_HOST_PROBE_TMP_H
#define WRIT_HOST_PROBE_TMP_H

#include "base/sv.h"

/*
 * Makes a directory below @wanted (may be NULL), $TMPDIR, /var/tmp or /tmp, the
 * first that is writable and not in memory, else the first that is writable.
 */
must_check bool probe_tmp_make(const char *wanted, size_t size, char *ret_dir);

/* Removes it with all below it, following no link; "" is fine. */
void probe_tmp_remove(const char *dir);

#endif
