/*
 * program_priv.h - writ-supervise, carried along in the library
 *
 * Reads:  the installed one, if it is the same
 * Writes: nothing
 * Next:   handle.c opens it once per handle; supervise.c runs it
 */
#ifndef WRIT_LIB_PROGRAM_PRIV_H
#define WRIT_LIB_PROGRAM_PRIV_H

#include "base/err.h"

must_check int program_open(int *ret_fd, struct writ_err *err);

#endif
