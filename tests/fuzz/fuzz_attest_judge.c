/* fuzz_attest_judge - entries of a session's log, one per line */
#include <string.h>

#include "fuzz.h"
#include "judged.h"

enum { ENTRIES_MAX = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *entries[ENTRIES_MAX];
	const uint8_t *at = data, *end = data + size;
	struct judgement j;
	size_t n = 0;

	while (at < end && n < ENTRIES_MAX) {
		const uint8_t *stop = memchr(at, '\n', (size_t)(end - at));
		const size_t len = (size_t)((stop ? stop : end) - at);

		entries[n] = json_loadb((const char *)at, len, 0, NULL);
		n += entries[n] != NULL;
		at += len + 1;
	}
	j = judged(entries, n, NULL);
	for (int i = 0; i < BOUNDARIES; i++)
		must(memchr(j.of[i].why, 0, sizeof(j.of[i].why)) != NULL && j.of[i].why[0]);
	must(removals_hold(entries, n, 4));
	for (size_t i = 0; i < n; i++)
		json_decref(entries[i]);
	return 0;
}
