#include "conform/conform.h"

#include "base/banned.h"

static const struct {
	const char *name, *means;
	bool passes;
} verdicts[ROW_COUNT] = {
	[ROW_NOT_RUN] = { "NOT RUN", "the attempt left no trace of having run inside", false },
	[ROW_HELD] = { "held", "stayed inside; the same worked without a sandbox", true },
	[ROW_BLOCKED] = { "blocked",
			      "stayed inside; refused everywhere, also where it would be harmless",
			      true },
	[ROW_ESCAPED] = { "ESCAPED", "got out", false },
	[ROW_GAP] = { "gap", "got out, or was not started, as declared beforehand", true },
	[ROW_NA] = { "n.a.",
			 "does not work on this machine for this user even without a sandbox",
			 true },
	[ROW_WORKS] = { "works", "allowed work succeeds inside", true },
	[ROW_BROKEN] = { "BROKEN", "allowed work fails inside", false },
};

const char *conform_verdict_name(enum conform_verdict v)
{
	return v < ROW_COUNT ? verdicts[v].name : "unknown";
}

const char *conform_verdict_means(enum conform_verdict v)
{
	return v < ROW_COUNT ? verdicts[v].means : "unknown";
}

bool conform_passes(enum conform_verdict v)
{
	return v < ROW_COUNT && verdicts[v].passes;
}

const char *conform_seen_name(enum conform_seen s)
{
	static const char *const names[SEEN_COUNT] = {
		[SEEN_SILENT] = "SILENT",   [SEEN_HELD] = "HELD",
		[SEEN_ESCAPED] = "ESCAPED", [SEEN_SKIPPED] = "SKIPPED",
	};

	return s < SEEN_COUNT ? names[s] : "unknown";
}

const char *conform_flag_name(unsigned bit)
{
	static const char *const names[] = {
		"own",	      "launch",	  "never-bare", "inherent", "kill-supervisor",
		"root-setup", "positive", "tty",	"serial",   "timed",
	};
	_Static_assert(1u << ARRAY_LEN(names) == ROW_FLAGS_END, "every flag has a name");

	return bit < ARRAY_LEN(names) ? names[bit] : NULL;
}

/*
 * Tests whether an attempt that stayed inside is evidence for the sandbox: the attempt works
 * without a sandbox, is too harmful to try without a sandbox, or is refused by the kernel anyway
 * and must stay refused (inherent).
 */
static bool means_something(const struct conform_case *c)
{
	return c->bare == SEEN_ESCAPED || c->bare == SEEN_SKIPPED || c->flags & ROW_INHERENT;
}

enum conform_verdict conform_judge(const struct conform_case *c)
{
	if (c->flags & ROW_POSITIVE) {
		if (c->bare != SEEN_ESCAPED)
			return ROW_NA;
		return c->inside == SEEN_ESCAPED ? ROW_WORKS : ROW_BROKEN;
	}
	if (c->inside == SEEN_ESCAPED)
		return c->declared || c->refused ? ROW_GAP : ROW_ESCAPED;
	if (!means_something(c) || c->inside == SEEN_SKIPPED)
		return ROW_NA;
	if (c->inside != SEEN_HELD)
		return c->refused ? ROW_GAP : ROW_NOT_RUN;
	return c->control == CONTROL_FAILS ? ROW_BLOCKED : ROW_HELD;
}
