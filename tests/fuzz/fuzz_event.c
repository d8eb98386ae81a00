#include <stdint.h>
#include <string.h>

#include "mediate/mediate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is taken for an event is one: no value but those there are, and the same bytes again. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mediate_event e;
	char bytes[sizeof(e)];

	if (!event_decode((const char *)data, size, &e))
		return 0;
	if (e.op > MEDIATE_META || strnlen(e.object, sizeof(e.object)) == sizeof(e.object) ||
	    strnlen(e.extra, sizeof(e.extra)) == sizeof(e.extra) ||
	    strnlen(e.comm, sizeof(e.comm)) == sizeof(e.comm))
		__builtin_trap();
	if (event_encode(&e, bytes) != size || memcmp(bytes, data, size) != 0)
		__builtin_trap();
	return 0;
}
