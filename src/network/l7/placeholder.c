#include "l7/placeholder.h"

#include "base/banned.h"

bool placeholder_id_check(struct sv id)
{
	for (size_t i = 0; i < id.n; i++)
		if (sv_hex(id.p[i]) < 0 || (id.p[i] >= 'A' && id.p[i] <= 'F'))
			return false;
	return id.n == PLACEHOLDER_ID;
}

void placeholder_put(struct buf *b, struct sv name, struct sv id)
{
	buf_fmt(b, "writ-placeholder-" SV_FMT "-" SV_FMT, SV_ARG(name), SV_ARG(id));
}
