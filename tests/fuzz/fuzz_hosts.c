#include <string.h>

#include "fuzz.h"
#include "resolve/resolve.h"

/* The name, a NUL byte, and the file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sv file = { (const char *)data, size };
	const struct sv name = sv_cut(&file, '\0');
	struct cap_net_addr v[8], again[8];
	const size_t n = hosts_find(file, name, v, ARRAY_LEN(v));

	if (n > ARRAY_LEN(v) || (n && name.n == 0))
		__builtin_trap();
	for (size_t i = 0; i < n; i++)
		if (v[i].len != (v[i].v6 ? 128 : 32))
			__builtin_trap(); /* a network is not an address */
	/* With less room it finds the same, only less of it. */
	if (hosts_find(file, name, again, 1) != (n > 0) ||
	    (n && memcmp(again[0].b, v[0].b, sizeof(v[0].b)) != 0))
		__builtin_trap();
	return 0;
}
