#include "lint/check_priv.h"

#include "base/banned.h"

bool lint_agent_name(struct sv s)
{
	static const char *const words[] = {
		"agent", "claude", "codex", "gemini", "aider", "opencode", "goose", "openhands",
		"copilot", "cursor", "devin", "swe-", "gpt", "langchain", "crewai", "assistant",
		"code-interpreter", "sandbox", "llm", "mcp", NULL,
	};

	return lint_any(s, words, lint_has);
}

static bool has_digit(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] >= '0' && s.p[i] <= '9')
			return true;
	return false;
}

/*
 * Reports images without a fixed version. A tag with a digit counts as a version; "latest" and
 * "stable" move.
 */
void lint_image(struct check *c, const struct node *at, struct sv ref)
{
	const size_t slash = sv_rfind(ref, '/');
	struct sv name, tag;

	ref = sv_trim(ref);
	if (!ref.n || ref.p[0] == '$' || sv_find(ref, '@') != SIZE_MAX)
		return;
	name = slash == SIZE_MAX ? ref : sv_skip(ref, slash + 1);
	(void)sv_cut(&name, ':');
	tag = name;
	if (tag.n && (has_digit(tag) || tag.p[0] == '$'))
		return;
	lint_found(c, R_UNPINNED_IMAGE, at, ref);
}
