#include "term/relay.h"

#include "base/banned.h"

bool escape_step(bool *held, struct sv in, struct buf *out)
{
	for (size_t i = 0; i < in.n; i++) {
		const char c = in.p[i];

		if (!*held && c == RELAY_ESCAPE) {
			*held = true;
			continue;
		}
		if (*held && (c == 'd' || c == 'D'))
			return true;
		if (*held && c != RELAY_ESCAPE)
			buf_ch(out, RELAY_ESCAPE);
		*held = false;
		buf_ch(out, c);
	}
	return false;
}
