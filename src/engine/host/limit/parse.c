#include "limit/limit_priv.h"

#include "base/banned.h"

bool cgroup_name_ok(struct sv name)
{
	if (!sv_starts(name, SV("writ-")) || sv_starts(name, SV("writ-probe")) || name.n > 64)
		return false;
	return name.n > 5 && sv_is_alnum(sv_skip(name, 5), "-_");
}

bool limit_keyed_number(struct sv text, struct sv key, uint64_t *ret_v)
{
	while (text.n) {
		struct sv line = sv_cut(&text, '\n');

		if (sv_eq(sv_cut(&line, ' '), key))
			return sv_to_u64(line, UINT64_MAX, ret_v);
	}
	return false;
}
