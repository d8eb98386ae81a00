#include "repo/repo.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "mediate/gitconfig.h"

#include "base/banned.h"

/* What ends up in commits, terminals and environments: plain text in one line. */
static bool is_fit(const char *s)
{
	const struct sv v = sv_from(s);

	for (size_t i = 0; i < v.n; i++)
		if ((unsigned char)v.p[i] < 0x20 || v.p[i] == 0x7f || v.p[i] == '<' || v.p[i] == '>')
			return false;
	return v.n > 0 && v.n < REPO_TEXT && sv_is_utf8(v);
}

static void take(struct sv text, const char *name, char to[REPO_TEXT])
{
	char value[GITCONFIG_VALUE];

	if (gitconfig_get(text, "user", name, value) && is_fit(value))
		(void)snprintf(to, REPO_TEXT, "%s", value);
}

static void read_from(const char *path, struct repo_identity *ret)
{
	scoped_buf b = BUF_INIT(GITCONFIG_MAX);
	struct writ_err err = { 0 };

	if (fd_read_file(path, &b, &err) < 0)
		return;
	take(buf_view(&b), "name", ret->name);
	take(buf_view(&b), "email", ret->email);
}

/* As git reads them: the second one wins. */
void repo_identity(struct sv home, const char *xdg_config, struct repo_identity *ret)
{
	char path[PATH_MAX];
	int n;

	*ret = (struct repo_identity){ 0 };
	n = xdg_config && xdg_config[0] == '/'
		    ? snprintf(path, sizeof(path), "%s/git/config", xdg_config)
		    : snprintf(path, sizeof(path), SV_FMT "/.config/git/config", SV_ARG(home));
	if (n > 0 && (size_t)n < sizeof(path))
		read_from(path, ret);
	n = snprintf(path, sizeof(path), SV_FMT "/.gitconfig", SV_ARG(home));
	if (home.n && n > 0 && (size_t)n < sizeof(path))
		read_from(path, ret);
}
