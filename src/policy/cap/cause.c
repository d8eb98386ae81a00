#include "cap/cause.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

static const char *const texts[CAUSES] = {
	[CAUSE_NONE] = "",
#define CAUSE(name, text) [CAUSE_##name] = (text),
#include "cap/cause.def"
#undef CAUSE
};

struct cap_why cap_why(enum cap_cause cause, const char *detail)
{
	struct cap_why w = { .cause = (uint16_t)cause };

	if (detail)
		memcpy(w.detail, detail, strnlen(detail, sizeof(w.detail) - 1));
	return w;
}

bool cap_why_receive(struct cap_why *w)
{
	w->detail[sizeof(w->detail) - 1] = 0;
	return w->cause < CAUSES;
}

const char *cap_why_print(enum cap_cause cause, const char *detail, char *to, size_t room)
{
	const char *text = cause < CAUSES ? texts[cause] : "";
	const char *at = strstr(text, "%s");
	const int head = at ? (int)(at - text) : (int)strlen(text);

	(void)snprintf(to, room, "%.*s%s%s", head, text, at && detail ? detail : "",
		       at ? at + 2 : "");
	return to;
}
