#include <string.h>

#include "fuzz.h"
#include "lib/events_priv.h"
#include "lib/lib_priv.h"

static bool same(struct sv a, struct sv b)
{
	return sv_eq(a, b);
}

/* What was decoded and encoded again decodes to the same. */
static void input(struct sv bytes)
{
	scoped_arena a = ARENA_INIT(64 << 20);
	scoped_buf b = BUF_INIT(64 << 20);
	scoped_buf c = BUF_INIT(64 << 20);
	struct lib_input in, again;
	struct writ_err err = { 0 };

	if (lib_input_decode(&a, bytes, &in, &err) < 0)
		return;
	if (lib_input_encode(&in, &b, &err) < 0)
		return;
	if (lib_input_decode(&a, buf_view(&b), &again, &err) < 0 ||
	    lib_input_encode(&again, &c, &err) < 0 || !same(buf_view(&b), buf_view(&c)))
		abort();
	if (again.find.files.n != in.find.files.n || again.find.args.n != in.find.args.n ||
	    again.find.used.n != in.find.used.n || again.find.vars.n != in.find.vars.n ||
	    again.find.has_narrow != in.find.has_narrow)
		abort();
}

static void command(struct sv bytes)
{
	scoped_arena a = ARENA_INIT(64 << 20);
	struct lib_command c;
	struct writ_err err = { 0 };

	if (lib_command_decode(&a, bytes, &c, &err) < 0)
		return;
	if (c.argv.v[c.argv.n] || c.environ.v[c.environ.n])
		abort();
	for (size_t i = 0; i < c.argv.n; i++)
		if (!c.argv.v[i])
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv bytes = fuzz_bytes(data, size);
	const enum writ_event_kind kind = events_kind(bytes);

	if (kind > WRIT_EVENT_END)
		abort();
	input(bytes);
	command(bytes);
	return 0;
}
