#include <string.h>

#include "fuzz.h"
#include "limit/limit_priv.h"

static void check(const char *dir)
{
	if (dir[0] && (dir[0] != '/' || strlen(dir) >= CGROUP_PATH))
		__builtin_trap();
}

/* Two texts with a NUL between them: mountinfo, whose paths others choose, and our cgroups. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sv self = { (const char *)data, size };
	const struct sv mountinfo = sv_cut(&self, 0);
	struct cgroup_places p;
	uint64_t v;

	facts_cgroup_places_parse(mountinfo, self, &p);
	check(p.own);
	check(p.parent);
	for (size_t i = 0; i < V1_COUNT; i++)
		check(p.v1[i]);
	/* The parent is a folder above our own. */
	if (p.parent[0] && strncmp(p.own, p.parent, strlen(p.parent)) != 0)
		__builtin_trap();
	if (cgroup_name_ok(self) && sv_find(self, '/') != SIZE_MAX)
		__builtin_trap();
	(void)limit_keyed_number(self, SV("oom_kill"), &v);
	return 0;
}
