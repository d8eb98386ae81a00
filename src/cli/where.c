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

/*
 * A run from one of these has no workspace: granting it would grant the machine.
 * Directories that are one themselves, and trees in which everything is.
 */
static const char *const system_dirs[] = { "/",	       "/home",	   "/media",   "/mnt",	   "/nix",
					   "/opt",     "/root",	   "/srv",     "/tmp",	   "/var",
					   "/var/lib", "/var/opt", "/var/tmp", "/var/www", NULL };
static const char *const system_trees[] = { "/bin",	"/boot",      "/dev",	      "/efi",
					    "/etc",	"/gnu",	      "/lib",	      "/lib32",
					    "/lib64",	"/libx32",    "/lost+found",  "/proc",
					    "/run",	"/sbin",      "/snap",	      "/sys",
					    "/usr",	"/nix/store", "/var/backups", "/var/cache",
					    "/var/log", "/var/mail",  "/var/run",     "/var/spool",
					    NULL };
/* Sources that people do work on, inside those trees. */
static const char *const work_trees[] = { "/usr/src", "/usr/local/src", NULL };

static bool below(struct sv path, struct sv dir)
{
	return dir.n && sv_starts(path, dir) && (path.n == dir.n || path.p[dir.n] == '/');
}

static bool in_list(struct sv path, const char *const *list, bool tree)
{
	for (size_t i = 0; list[i]; i++)
		if (tree ? below(path, sv_from(list[i])) : sv_is(path, list[i]))
			return true;
	return false;
}

static bool is_system(struct sv path)
{
	struct sv rest = sv_skip(path, 9);

	if (in_list(path, system_dirs, false))
		return true;
	/* /var/lib/dpkg is the system's; /var/lib/builds/app may be somebody's work. */
	if (sv_starts(path, SV("/var/lib/")) && sv_find(rest, '/') == SIZE_MAX)
		return true;
	return in_list(path, system_trees, true) &&
	       !(in_list(path, work_trees, true) && !in_list(path, work_trees, false));
}

/*
 * SECURITY: a .git of somebody else above us must not widen the workspace. It
 * counts if it and its directory are ours and it looks like a repository.
 */
static bool is_our_repository(struct arena *a, struct sv dir)
{
	const char *top = arena_str(a, dir);
	const char *git = arena_fmt(a, SV_FMT "/.git", SV_ARG(dir));
	const char *head = arena_fmt(a, SV_FMT "/.git/HEAD", SV_ARG(dir));
	struct stat st;

	if (!top || !git || !head || stat(top, &st) < 0 || st.st_uid != geteuid() ||
	    lstat(git, &st) < 0 || st.st_uid != geteuid())
		return false;
	return S_ISREG(st.st_mode) || (S_ISDIR(st.st_mode) && access(head, F_OK) == 0);
}

/* The nearest directory at or above @cwd that is a repository of ours, or empty. */
static struct sv git_top(struct arena *a, struct sv cwd)
{
	for (struct sv dir = cwd; dir.n > 1;) {
		const size_t slash = sv_rfind(dir, '/');

		if (is_our_repository(a, dir))
			return dir;
		dir = sv_sub(dir, 0, slash == SIZE_MAX ? 0 : slash);
	}
	return SV("");
}

/* Field @n of the line of /etc/passwd whose third field is our uid. */
static struct sv passwd_home(struct arena *a)
{
	struct writ_err err = { 0 };
	struct source src;
	struct sv rest;

	if (read_text(a, "/etc/passwd", &src, &err) < 0)
		return SV("");
	rest = src.text;
	while (rest.n) {
		struct sv line = sv_cut(&rest, '\n');
		struct sv field[7];
		uint64_t uid;

		for (size_t i = 0; i < ARRAY_LEN(field); i++)
			field[i] = sv_cut(&line, ':');
		if (sv_to_u64(field[2], UINT32_MAX, &uid) && uid == geteuid())
			return field[5];
	}
	return SV("");
}

/* Is @path a home, or does it hold one? */
static bool holds_home(const struct place_info *w, struct sv path)
{
	return (w->home.n && below(w->home, path)) || (w->real_home.n && below(w->real_home, path));
}

static void find_workspace(struct arena *a, struct place_info *w)
{
	const struct sv top = git_top(a, w->cwd);

	w->workspace = top.n && !holds_home(w, top) && !is_system(top) ? top : w->cwd;
	if (holds_home(w, w->workspace))
		w->no_workspace = "your home directory is never a workspace, nor is what holds it";
	else if (is_system(w->workspace))
		w->no_workspace = "a system directory is never a workspace";
	if (w->no_workspace)
		w->workspace = SV("");
}

/* $NAME/writ, or HOME/fallback/writ. */
static struct sv xdg(struct arena *a, const char *name, struct sv home, const char *fallback)
{
	const char *dir = getenv(name);

	if (dir && dir[0] == '/') {
		struct sv top = sv_from(dir);

		while (top.n && top.p[top.n - 1] == '/')
			top.n--;
		return sv_from(arena_fmt(a, SV_FMT "/writ", SV_ARG(top)));
	}
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
	w.real_home = passwd_home(a);
	/* Accounts of daemons live in places that hold everything. */
	if (w.real_home.n <= 1)
		w.real_home = SV("");
	if (w.home.n == 0)
		w.home = w.real_home;
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
