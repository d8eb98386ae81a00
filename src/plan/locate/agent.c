#include "locate/locate.h"

#include "base/banned.h"

/*
 * Agents whose shipped profile applies without any policy of the user. Toolchains also have
 * profiles named after their programs, but those profiles grant no workspace.
 */
static const struct agent {
	const char *name; /* name of the program and of the profile */
	const char *keys[2];
	const char *host, *form;
} agents[] = {
	{ "claude", { "ANTHROPIC_API_KEY" }, "https://api.anthropic.com", "header:x-api-key" },
	{ "codex", { "CODEX_API_KEY", "OPENAI_API_KEY" }, "https://api.openai.com", "bearer" },
};

static const struct agent *agent_of(struct sv program)
{
	const struct sv name = sv_skip(program, sv_rfind(program, '/') + 1);

	for (size_t i = 0; i < ARRAY_LEN(agents); i++)
		if (sv_is(name, agents[i].name))
			return &agents[i];
	return NULL;
}

/*
 * Returns the first API key variable of the agent that is set. A request has one place for a
 * secret, so only one key can be used.
 */
static const char *key_of(const struct agent *g, char *const *environ)
{
	for (size_t i = 0; i < ARRAY_LEN(g->keys) && g->keys[i]; i++)
		if (environ_get(environ, sv_from(g->keys[i])).n)
			return g->keys[i];
	return NULL;
}

int locate_agent_text(struct arena *a, struct sv program, char *const *environ, struct sv *ret,
		      struct writ_err *err)
{
	const struct agent *g = agent_of(program);
	const char *key = g ? key_of(g, environ) : NULL;
	const char *text;

	*ret = SV("");
	if (!g)
		return 0;
	text = key ? arena_fmt(a, "version 1\nuse %s\nsecret %s from env:%s to %s as %s\n", g->name,
			       key, key, g->host, g->form)
		   : arena_fmt(a, "version 1\nuse %s\n", g->name);
	if (!text)
		return writ_nomem(err);
	*ret = sv_from(text);
	return 0;
}

int locate_agent(struct arena *a, const char *program, char *const *environ, struct find_input *in,
		 struct writ_err *err)
{
	struct source src = { .name = SV("agent"), .dir = SV("") };
	int r;

	/* Without a workspace the profile of an agent has nothing to grant. */
	if (!in->default_write || in->where.workspace.n == 0)
		return 0;
	r = locate_agent_text(a, sv_from(program), environ, &src.text, err);
	if (r < 0 || src.text.n == 0)
		return r;
	r = locate_add_source(a, in, &src, err);
	if (r < 0)
		return r;
	in->default_write = false;
	in->agent = sv_from(agent_of(sv_from(program))->name);
	return 0;
}
