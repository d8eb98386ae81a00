#include "attest/judge.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

const char *boundary_name(enum boundary b)
{
	static const char *const names[BOUNDARIES] = {
		[BOUNDARY_FILESYSTEM] = "filesystem",	[BOUNDARY_NETWORK] = "network",
		[BOUNDARY_PROCESS] = "process",		[BOUNDARY_RESOURCES] = "resources",
		[BOUNDARY_CREDENTIALS] = "credentials",
	};

	return names[b];
}

const char *verdict_name(enum verdict v)
{
	switch (v) {
	case VERDICT_UNKNOWN:
		return "unknown";
	case VERDICT_HELD:
		return "held";
	case VERDICT_VIOLATED:
		return "violated";
	case VERDICT_NOT_ENFORCED:
		return "not enforced";
	}
	return "unknown";
}

void judge_entry(struct judgement *j, const json_t *entry)
{
	const char *event = json_string_value(json_object_get(entry, "event"));

	j->entries++;
	j->ended = event && strcmp(event, "end") == 0;
	if (j->entries == 1)
		j->started = event && strcmp(event, "start") == 0;
}

void judge_end(struct judgement *j)
{
	for (int i = 0; i < BOUNDARIES; i++)
		snprintf(j->of[i].why, sizeof(j->of[i].why), "nothing was tried");
}
