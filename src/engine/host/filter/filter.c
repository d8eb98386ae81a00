/* filter.c - returns the compiled programs for the architecture we run on */
#include "filter/filter.h"

#include <stddef.h>

#include "filter/set_priv.h"

#include "base/banned.h"

#if defined(__x86_64__) && defined(__LP64__)
#define FILTER_SET (&filter_set_x86_64)
#elif defined(__aarch64__) && defined(__LP64__)
#define FILTER_SET (&filter_set_aarch64)
#else
#define FILTER_SET ((const struct filter_set *)NULL)
#endif

static struct filter slice(const struct filter_set *set, struct filter_slot slot)
{
	return (struct filter){ slot.n ? set->code + slot.first : NULL, slot.n };
}

struct filter filter_base(uint32_t switches)
{
	const struct filter_set *set = FILTER_SET;

	if (!set || switches >= FILTER_SWITCHES)
		return (struct filter){ NULL, 0 };
	return slice(set, set->base[switches]);
}

struct filter filter_traps(uint32_t traps)
{
	const struct filter_set *set = FILTER_SET;

	if (!set || traps >= TRAP_COMBINATIONS)
		return (struct filter){ NULL, 0 };
	return slice(set, set->traps[traps]);
}

struct filter filter_keeper(void)
{
	const struct filter_set *set = FILTER_SET;

	if (!set)
		return (struct filter){ NULL, 0 };
	return slice(set, set->keeper);
}
