#include "vcs/repo.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "vcs/gitconfig.h"

#include "base/banned.h"

/*
 * Checks that a value is one line of text without control characters, '<' and '>', since git and
 * writ put the value into commits, terminals and environments.
 */
static bool is_fit(const char *s)
{
	const struct sv v = sv_from(s);

	for (size_t i = 0; i < v.n; i++)
		if ((unsigned char)v.p[i] < 0x20 || v.p[i] == 0x7f || v.p[i] == '<' ||
		    v.p[i] == '>')
			return false;
	return v.n > 0 && v.n < REPO_TEXT && sv_is_utf8(v);
}

static void take(struct sv text, const char *name, char to[REPO_TEXT])
{
	char value[GITCONFIG_VALUE];

	if (gitconfig_get(text, "user", name, value) && is_fit(value))
		memcpy(to, value, strlen(value) + 1);
}

static void read_from(struct sv dir, const char *name, struct repo_identity *ret)
{
	scoped_buf b = BUF_INIT(GITCONFIG_MAX);
	struct writ_err err = { 0 };
	char path[PATH_MAX];
	const int n = snprintf(path, sizeof(path), SV_FMT "/%s", SV_ARG(dir), name);

	if (dir.n == 0 || n < 0 || (size_t)n >= sizeof(path) || fd_read_file(path, &b, &err) < 0)
		return;
	take(buf_view(&b), "name", ret->name);
	take(buf_view(&b), "email", ret->email);
}

/* Reads the configuration files in git's order: the last value wins. */
void vcs_repo_identity(struct sv home, struct sv xdg_config, struct sv workspace,
		       struct repo_identity *ret)
{
	*ret = (struct repo_identity){ 0 };
	if (sv_starts(xdg_config, SV("/")))
		read_from(xdg_config, "git/config", ret);
	else
		read_from(home, ".config/git/config", ret);
	read_from(home, ".gitconfig", ret);
	read_from(workspace, ".git/config", ret);
}
