#include "base/clock.h"

#include <limits.h>
#include <time.h>

#include "base/banned.h"

static uint64_t read_us(clockid_t clock)
{
	struct timespec t = { 0 };

	(void)clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t clock_monotonic_us(void)
{
	return read_us(CLOCK_MONOTONIC);
}

int64_t clock_monotonic_ms(void)
{
	return (int64_t)(clock_monotonic_us() / 1000);
}

uint64_t clock_real_us(void)
{
	return read_us(CLOCK_REALTIME);
}

int clock_ms_until(int64_t end)
{
	const int64_t now = clock_monotonic_ms();

	if (end == INT64_MAX)
		return -1;
	return end <= now ? 0 : end - now > INT_MAX ? INT_MAX : (int)(end - now);
}

uint64_t clock_boot_ms(void)
{
	return read_us(CLOCK_BOOTTIME) / 1000;
}

uint64_t clock_cpu_ms(void)
{
	return read_us(CLOCK_THREAD_CPUTIME_ID) / 1000;
}

void clock_sleep_ms(unsigned ms)
{
	const struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	(void)nanosleep(&t, NULL);
}
