#include "fuzz.h"
#include "lib/events_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	must(events_kind(fuzz_bytes(data, size)) <= WRIT_EVENT_END);
	return 0;
}
