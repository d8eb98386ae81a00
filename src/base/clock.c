#include "base/clock.h"

#include <limits.h>
#include <time.h>

#include "base/banned.h"

int64_t monotonic_ms(void)
{
	struct timespec t = { 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int ms_until(int64_t end)
{
	const int64_t now = monotonic_ms();

	if (end == INT64_MAX)
		return -1;
	return end <= now ? 0 : end - now > INT_MAX ? INT_MAX : (int)(end - now);
}

void sleep_ms(unsigned ms)
{
	const struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	(void)nanosleep(&t, NULL);
}
