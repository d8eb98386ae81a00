/* fuzz_spawn - what is asked for from inside a session: all of it is taken, or nothing */
#include <string.h>

#include "fuzz.h"
#include "parts/spawn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_arena a = ARENA_INIT(4 << 20);
	struct spawn_request q;
	size_t bytes;

	if (!spawn_read(&a, fuzz_bytes(data, size), &q))
		return 0;
	bytes = q.name.n + 1 + q.cwd.n + 1;
	must(q.name.n && q.cwd.p[0] == '/' && q.argv[0]);
	for (size_t i = 0; q.argv[i]; i++)
		bytes += strlen(q.argv[i]) + 1;
	must(bytes == size);
	return 0;
}
