#include "audit/entry.h"
#include "base/attr.h"
#include "lib/events_priv.h"

#include "base/banned.h"

enum writ_event_kind events_kind(struct sv line)
{
	static const struct {
		const char *name;
		enum writ_event_kind kind;
	} table[] = {
		{ "start", WRIT_EVENT_START },	 { "sealed", WRIT_EVENT_SEALED },
		{ "exec", WRIT_EVENT_EXEC },	 { "denied", WRIT_EVENT_DENIED },
		{ "allow", WRIT_EVENT_ALLOW },	 { "revoke", WRIT_EVENT_REVOKE },
		{ "limit", WRIT_EVENT_LIMIT },	 { "exited", WRIT_EVENT_EXITED },
		{ "failed", WRIT_EVENT_FAILED }, { "end", WRIT_EVENT_END },
	};
	const struct sv name = entry_event(line);

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (sv_is(name, table[i].name))
			return table[i].kind;
	return WRIT_EVENT_OTHER;
}
