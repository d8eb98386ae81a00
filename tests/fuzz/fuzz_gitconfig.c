#include <string.h>

#include "fuzz.h"
#include "vcs/gitattributes.h"
#include "vcs/gitconfig.h"

static bool any(void *arg, struct sv place)
{
	(void)arg;
	return place.n < GITCONFIG_VALUE;
}

/* A text is the old one, a NUL byte, and the new one. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv all = { (const char *)data, size };
	struct sv rest = all;
	const struct sv was = sv_cut(&rest, '\0');
	struct gitconfig_answer a;
	struct sv place;
	char value[GITCONFIG_VALUE], why[GITATTRIBUTES_WHY];

	if (gitconfig_get(all, "user", "name", value) && value[0] == 0)
		__builtin_trap();
	if (gitconfig_check(was, rest, false, &a)) {
		/* What is whole can be looked through. */
		if (!gitconfig_remotes(rest, any, NULL))
			__builtin_trap();
		/* What passed is readable, and no change of it is refused. */
		if (!gitconfig_check(rest, rest, false, &a) || a.has_worktree)
			__builtin_trap();
		/* A submodule may have more, never less. */
		if (!gitconfig_check(was, rest, true, &a))
			__builtin_trap();
	} else if (a.why[0] == 0) {
		__builtin_trap();
	}
	if (gitconfig_check(rest, rest, true, &a) && gitconfig_check(SV(""), rest, false, &a) &&
	    !gitconfig_check(rest, SV(""), false, &a))
		__builtin_trap(); /* what may be added may be removed */
	/* Attributes: who is refused is told why, and no line gets better by another. */
	memset(why, 0, sizeof(why));
	if (!gitattributes_check(rest, why) && why[0] == 0)
		__builtin_trap();
	if (gitattributes_check(all, why) && !gitattributes_check(was, why))
		__builtin_trap();
	if (gitfile_parse(all, &place) && (place.n == 0 || memchr(place.p, '\n', place.n)))
		__builtin_trap();
	return 0;
}
