#include "fuzz.h"
#include "locate/locate.h"
#include "rpc/rpc.h"

/* Parameters that were read and written again are read as the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_arena a = ARENA_INIT(64 << 20);
	scoped_json *params = NULL;
	struct find_input in, again;
	struct writ_err err = { 0 };

	if (json_decode_within(fuzz_bytes(data, size), RPC_LINE_MAX, RPC_DEPTH_MAX, &params, &err) <
		    0 ||
	    !locate_input_decode(&a, params, &in))
		return 0;
	{
		scoped_json *first = locate_input_encode(&in);
		scoped_json *second = NULL;

		must(first && locate_input_decode(&a, first, &again));
		second = locate_input_encode(&again);
		must(second && json_equal(first, second));
	}
	must(again.files.n == in.files.n && again.args.n == in.args.n &&
	     again.used.n == in.used.n && again.vars.n == in.vars.n &&
	     again.has_narrow == in.has_narrow);
	return 0;
}
