#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"

#include "base/banned.h"

/* A run from one of these has no workspace: granting it would grant the machine. */
static const char *const system_dirs[] = { "/",	    "/bin",   "/boot", "/dev", "/etc", "/home",
					   "/lib",  "/media", "/mnt",  "/nix", "/opt", "/proc",
					   "/root", "/run",   "/sbin", "/srv", "/sys", "/tmp",
					   "/usr",  "/var",   NULL };
static const char *const system_trees[] = { "/bin/", "/boot/",	  "/dev/",     "/etc/",
					    "/lib/", "/proc/",	  "/run/",     "/sbin/",
					    "/sys/", "/usr/bin/", "/usr/lib/", NULL };

static bool is_system(struct sv path)
{
	for (size_t i = 0; system_dirs[i]; i++)
		if (sv_is(path, system_dirs[i]))
			return true;
	for (size_t i = 0; system_trees[i]; i++)
		if (sv_starts(path, sv_from(system_trees[i])))
			return true;
	return false;
}

/* The nearest directory above @cwd that holds .git, or an empty view. */
static struct sv git_top(struct arena *a, struct sv cwd)
{
	for (struct sv dir = cwd; dir.n > 1;) {
		const char *git = arena_fmt(a, SV_FMT "/.git", SV_ARG(dir));
		const size_t slash = sv_rfind(dir, '/');

		if (git && access(git, F_OK) == 0)
			return dir;
		dir = sv_sub(dir, 0, slash == SIZE_MAX ? 0 : slash);
	}
	return SV("");
}

static void find_workspace(struct arena *a, struct place_info *w)
{
	const struct sv top = git_top(a, w->cwd);

	w->workspace = top.n && !sv_eq(top, w->home) && !is_system(top) ? top : w->cwd;
	if (sv_eq(w->workspace, w->home))
		w->no_workspace = "your home directory is never a workspace";
	else if (is_system(w->workspace))
		w->no_workspace = "a system directory is never a workspace";
	if (w->no_workspace)
		w->workspace = SV("");
}

/* $NAME/writ, or HOME/fallback/writ. */
static struct sv xdg(struct arena *a, const char *name, struct sv home, const char *fallback)
{
	const char *dir = getenv(name);

	if (dir && dir[0] == '/')
		return sv_from(arena_fmt(a, "%s/writ", dir));
	return home.n ? sv_from(arena_fmt(a, SV_FMT "/%s/writ", SV_ARG(home), fallback)) : SV("");
}

static bool realm_check(struct sv s)
{
	if (s.n != 28 || !sv_starts(s, SV("l-")))
		return false;
	for (size_t i = 2; i < s.n; i++)
		if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '2' && s.p[i] <= '7')))
			return false;
	return true;
}

static int make_dirs(const char *path, struct writ_err *err)
{
	char p[PATH_MAX];
	const size_t n = strlen(path);

	if (n >= sizeof(p))
		return writ_fail(err, WRIT_E_SYS, ENAMETOOLONG, "mkdir %s", path);
	memcpy(p, path, n + 1);
	for (size_t i = 1; i <= n; i++) {
		if (p[i] != '/' && p[i] != 0)
			continue;
		p[i] = 0;
		if (mkdir(p, 0700) < 0 && errno != EEXIST)
			return writ_fail(err, WRIT_E_SYS, errno, "mkdir %s", p);
		p[i] = i == n ? 0 : '/';
	}
	return 0;
}

int keep_file(struct arena *a, const char *path, struct sv text, struct writ_err *err)
{
	const size_t slash = sv_rfind(sv_from(path), '/');
	const char *dir = arena_str(a, sv_sub(sv_from(path), 0, slash));
	int r;

	if (!dir)
		return writ_nomem(err);
	r = make_dirs(dir, err);
	return r < 0 ? r : fd_replace_file(path, text, 0600, err);
}

/* 26 random characters, so that cloned machines do not share tokens. */
static int new_realm(struct arena *a, const char *file, struct sv *ret, struct writ_err *err)
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
	char text[29] = "l-";
	uint8_t bytes[26];
	int r = crypto_random(bytes, sizeof(bytes), err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof(bytes); i++)
		text[2 + i] = digits[bytes[i] & 31];
	text[28] = 0;
	r = keep_file(a, file, sv_from(arena_fmt(a, "%s\n", text)), err);
	if (r == 0 && !arena_sv(a, sv_from(text), ret))
		return writ_nomem(err);
	return r;
}

static int find_realm(struct arena *a, struct place_info *w, bool make, struct writ_err *err)
{
	const char *file = arena_fmt(a, SV_FMT "/realm", SV_ARG(w->state));
	struct writ_err ignored = { 0 };
	struct source src;

	w->realm = SV("l-unset");
	if (!file)
		return writ_nomem(err);
	if (w->state.n && read_text(a, file, &src, &ignored) == 0) {
		struct sv rest = src.text;
		const struct sv line = sv_cut(&rest, '\n');

		if (!realm_check(line))
			return writ_fail(err, WRIT_E_SYNTAX, 0,
					 "%s is damaged; remove it to make a new one", file);
		w->realm = line;
		return 0;
	}
	if (!make || w->state.n == 0)
		return 0;
	return new_realm(a, file, &w->realm, err);
}

int where_find(struct arena *a, const char *cwd, bool make_realm, struct place_info *ret,
	       struct writ_err *err)
{
	struct place_info w = { 0 };
	const char *home = getenv("HOME");
	char real[PATH_MAX];

	if (cwd && chdir(cwd) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "cd %s", cwd);
	if (!realpath(".", real))
		return writ_fail(err, WRIT_E_SYS, errno, "the current directory");
	if (!arena_sv(a, sv_from(real), &w.cwd))
		return writ_nomem(err);
	w.home = w.workspace = SV("");
	if (home && home[0] == '/' && realpath(home, real) && !arena_sv(a, sv_from(real), &w.home))
		return writ_nomem(err);
	w.config = xdg(a, "XDG_CONFIG_HOME", w.home, ".config");
	w.state = xdg(a, "XDG_STATE_HOME", w.home, ".local/state");
	find_workspace(a, &w);
	if (find_realm(a, &w, make_realm, err) < 0)
		return err->code;
	*ret = w;
	return 0;
}

/* "app-1f2e3d4c5b6a7988": the name for people, the hash for machines. */
bool project_file(struct arena *a, const struct place_info *w, const char *folder,
		  const char *suffix, const char **ret)
{
	const struct digest d = crypto_sha256(w->workspace);
	const size_t slash = sv_rfind(w->workspace, '/');
	struct sv name = sv_skip(w->workspace, slash == SIZE_MAX ? 0 : slash + 1);
	struct buf b = BUF_INIT(PATH_MAX);
	struct buf hex = BUF_INIT(128);

	buf_fmt(&b, SV_FMT "/%s/", SV_ARG(w->config), folder);
	for (size_t i = 0; i < name.n && i < 40; i++) {
		const char c = name.p[i];
		const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
				   (c >= '0' && c <= '9') || c == '-' || c == '_';

		buf_ch(&b, plain ? c : '_');
	}
	digest_hex(&d, &hex);
	buf_fmt(&b, "-" SV_FMT "%s", SV_ARG(sv_sub(buf_view(&hex), 0, 16)), suffix);
	*ret = b.failed || hex.failed ? NULL : arena_str(a, buf_view(&b));
	buf_clear(&b);
	buf_clear(&hex);
	return *ret != NULL;
}
