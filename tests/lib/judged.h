/*
 * judged.h - a session's log, judged with and without some of its entries
 */
#ifndef WRIT_TESTS_JUDGED_H
#define WRIT_TESTS_JUDGED_H

#include <stdlib.h>
#include <string.h>

#include "attest/judge.h"

/* Without the entries whose bit is set in @without, which has @n of them or is NULL. */
__attribute__((unused)) static struct judgement judged(json_t *const *entries, size_t n,
						       const bool *without)
{
	struct judgement j = { 0 };

	for (size_t i = 0; i < n; i++)
		if (!without || !without[i])
			judge_entry(&j, entries[i]);
	judge_end(&j);
	return j;
}

/* Taking something away may make a finding unknown; it makes none better. */
__attribute__((unused)) static bool is_no_better(const struct judgement *less,
						 const struct judgement *all)
{
	for (int i = 0; i < BOUNDARIES; i++)
		if ((less->of[i].verdict != VERDICT_UNKNOWN &&
		     less->of[i].verdict != all->of[i].verdict) ||
		    less->of[i].strength > all->of[i].strength)
			return false;
	return true;
}

/* A log as a session writes it: with one end, which says how many came before it. */
__attribute__((unused)) static bool is_whole(json_t *const *entries, size_t n)
{
	size_t ends = 0;

	for (size_t i = 0; i < n; i++) {
		const char *event = json_string_value(json_object_get(entries[i], "event"));

		ends += event && strcmp(event, "end") == 0;
	}
	return ends == 1 && judged(entries, n, NULL).counted;
}

/* Every one and every two entries, and @more other choices. True for what is not whole. */
__attribute__((unused)) static bool removals_hold(json_t *const *entries, size_t n, unsigned more)
{
	const struct judgement all = judged(entries, n, NULL);
	bool *without = calloc(n + 1, sizeof(bool)), good = without != NULL;
	unsigned seed = 7;

	if (!is_whole(entries, n)) {
		free(without);
		return true;
	}

	for (size_t i = 0; good && i < n; i++)
		for (size_t k = i; good && k < n; k++) {
			struct judgement less;

			without[i] = without[k] = true;
			less = judged(entries, n, without);
			good = is_no_better(&less, &all);
			without[i] = without[k] = false;
		}
	for (unsigned t = 0; good && t < more; t++) {
		struct judgement less;

		for (size_t i = 0; i < n; i++) {
			seed = seed * 1103515245 + 12345;
			without[i] = (seed >> 16) % 8 == 0;
		}
		less = judged(entries, n, without);
		good = is_no_better(&less, &all);
	}
	free(without);
	return good;
}

#endif
