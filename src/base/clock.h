/*
 * clock.h - time that only goes forward
 *
 * Reads:  the clock
 * Writes: nothing
 * Next:   whoever waits, but not for ever
 */
#ifndef WRIT_BASE_CLOCK_H
#define WRIT_BASE_CLOCK_H

#include <stdint.h>

int64_t monotonic_ms(void); /* monotonic; only differences mean anything */
int ms_until(int64_t end);  /* for poll(): 0 if that is over, -1 for INT64_MAX, which is never */
void sleep_ms(unsigned ms); /* less if a signal comes */

#endif
