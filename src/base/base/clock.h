/*
 * clock.h - the clocks of this machine
 *
 * Reads:  the clock
 * Writes: nothing
 * Next:   callers with timeouts
 */
#ifndef WRIT_BASE_CLOCK_H
#define WRIT_BASE_CLOCK_H

#include <stdint.h>

/*
 * clock_monotonic_ms() and clock_monotonic_us() return the time since an arbitrary start: only
 * differences have a meaning. The clock stops while the machine is suspended.
 */
int64_t clock_monotonic_ms(void);
uint64_t clock_monotonic_us(void);
uint64_t clock_real_us(void); /* microseconds since 1970; the clock may be set back */
/*
 * Returns the timeout for a poll() that ends at the time @end of clock_monotonic_ms(): 0 if @end
 * has passed, -1 (no timeout) if @end is INT64_MAX.
 */
int clock_ms_until(int64_t end);
uint64_t clock_boot_ms(void);	  /* milliseconds since boot, suspended time included */
uint64_t clock_cpu_ms(void);	  /* processor time of this thread */
void clock_sleep_ms(unsigned ms); /* sleeps for @ms; returns early if a signal arrives */

#endif
