/*
 * events_priv.h - classify a line of a session's record
 *
 * Reads:  one line of the record
 * Writes: nothing
 * Next:   events.c; the fuzzer
 */
#ifndef WRIT_LIB_EVENTS_PRIV_H
#define WRIT_LIB_EVENTS_PRIV_H

#include <writ/writ.h>

#include "base/sv.h"

enum writ_event_kind events_kind(struct sv line);

#endif
