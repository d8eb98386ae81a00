#include <string.h>

#include "fuzz.h"
#include "wire/upstream.h"

/* What a proxy answers: decided at the same byte however it comes in pieces. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv all = { (const char *)data, size };
	struct writ_err err = { 0 };
	size_t used = 0, n = 0;
	unsigned status = 0, again = 0;
	const enum wire_state whole = upstream_answer(all, &used, &status, &err);
	struct upstream u;

	if (whole == WIRE_DONE && (used < 4 || used > size || status > 999))
		abort();
	for (size_t i = 0; i < size && i < 512; i++) {
		const enum wire_state part = upstream_answer(sv_sub(all, 0, i), &n, &again, &err);

		if (part == WIRE_DONE && (whole != WIRE_DONE || n != used || again != status))
			abort();
		if (part == WIRE_BAD && whole != WIRE_BAD)
			abort();
	}
	if (upstream_parse(all, &u, &err) == 0 && (u.at.port == 0 || u.login[0]))
		abort();
	u = (struct upstream){ 0 };
	if (upstream_login(&u, all, &err) == 0 && strlen(u.login) % 4)
		abort();
	return 0;
}
