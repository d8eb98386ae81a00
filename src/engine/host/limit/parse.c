#include "limit/limit_priv.h"

#include "base/banned.h"

bool cgroup_name_ok(struct sv name)
{
	if (!sv_starts(name, SV("writ-")) || sv_starts(name, SV("writ-probe")) || name.n > 64)
		return false;
	for (size_t i = 5; i < name.n; i++) {
		const char c = name.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '-' || c == '_'))
			return false;
	}
	return name.n > 5;
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
