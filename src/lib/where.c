#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "lib/lib_priv.h"

#include "base/banned.h"

/*
 * Never a workspace: granting it would grant the machine. Directories that are one
 * themselves, and trees in which everything is.
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
	const struct sv rest = sv_skip(path, 9);

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

/* The home of the line of /etc/passwd whose third field is our uid. */
static struct sv passwd_home(struct arena *a)
{
	struct writ_err err = { 0 };
	struct source src;
	struct sv rest;

	if (lib_read_text(a, "/etc/passwd", &src, &err) < 0)
		return SV("");
	rest = src.text;
	while (rest.n) {
		struct sv line = sv_cut(&rest, '\n');
		struct sv field[7];
		uint64_t uid;

		for (size_t i = 0; i < ARRAY_LEN(field); i++)
			field[i] = sv_cut(&line, ':');
		/* Accounts of daemons live in places that hold everything. */
		if (sv_to_u64(field[2], UINT32_MAX, &uid) && uid == geteuid())
			return field[5].n > 1 ? field[5] : SV("");
	}
	return SV("");
}

/* Is @path a home, or does it hold one? */
static bool holds_home(const struct lib_where *w, struct sv path)
{
	return (w->home.n && below(w->home, path)) || (w->real_home.n && below(w->real_home, path));
}

static int physical(struct arena *a, const char *path, struct sv *ret, struct writ_err *err)
{
	char real[PATH_MAX];

	if (!realpath(path, real))
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	return arena_sv(a, sv_from(real), ret) ? 0 : writ_nomem(err);
}

int lib_workspace_find(struct arena *a, struct lib_where *w, const char *cwd, const char *workspace,
		       bool discover, struct writ_err *err)
{
	struct sv top;
	int r = physical(a, cwd ? cwd : ".", &w->cwd, err);

	w->workspace = SV("");
	if (r < 0)
		return r;
	if (workspace) {
		r = physical(a, workspace, &w->workspace, err);
		if (r < 0)
			return r;
		if (holds_home(w, w->workspace) || is_system(w->workspace))
			return writ_fail(err, WRIT_E_DENIED, 0,
					 "a home or a system directory is never a workspace: %s",
					 workspace);
		return 0;
	}
	if (!discover)
		return 0;
	top = git_top(a, w->cwd);
	w->workspace = top.n && !holds_home(w, top) && !is_system(top) ? top : w->cwd;
	if (holds_home(w, w->workspace) || is_system(w->workspace))
		w->workspace = SV("");
	return 0;
}

/* @given, or $NAME/writ, or HOME/fallback/writ. */
static struct sv own_dir(struct arena *a, const char *given, struct sv xdg, struct sv home,
			 const char *fallback)
{
	struct sv top = given ? sv_from(given) : xdg;

	while (top.n > 1 && top.p[top.n - 1] == '/')
		top.n--;
	if (given)
		return sv_from(arena_str(a, top));
	if (top.n && top.p[0] == '/')
		return sv_from(arena_fmt(a, SV_FMT "/writ", SV_ARG(top)));
	return home.n ? sv_from(arena_fmt(a, SV_FMT "/%s/writ", SV_ARG(home), fallback)) : SV("");
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

int lib_keep_file(struct arena *a, const char *path, struct sv text, struct writ_err *err)
{
	const size_t slash = sv_rfind(sv_from(path), '/');
	const char *dir = arena_str(a, sv_sub(sv_from(path), 0, slash));
	int r = dir ? make_dirs(dir, err) : writ_nomem(err);

	return r < 0 ? r : fd_replace_file(path, text, 0600, err);
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

/* 26 random characters, so that cloned machines do not share tokens. */
static int new_realm(struct arena *a, const char *file, struct sv *ret, struct writ_err *err)
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
	char text[30] = "l-";
	uint8_t bytes[26];
	int r = crypto_random(bytes, sizeof(bytes), err);

	for (size_t i = 0; r == 0 && i < sizeof(bytes); i++)
		text[2 + i] = digits[bytes[i] & 31];
	text[28] = '\n';
	if (r == 0)
		r = lib_keep_file(a, file, (struct sv){ text, 29 }, err);
	return r < 0 ? r : arena_sv(a, (struct sv){ text, 28 }, ret) ? 0 : writ_nomem(err);
}

static int find_realm(struct arena *a, struct lib_where *w, struct writ_err *err)
{
	const char *file = arena_fmt(a, SV_FMT "/realm", SV_ARG(w->state));
	struct writ_err none = { 0 };
	struct source src;

	if (!file)
		return writ_nomem(err);
	if (w->state.n == 0)
		return writ_fail(err, WRIT_E_SYS, ENOENT,
				 "there is no place for state: give state_dir or set HOME");
	if (lib_read_text(a, file, &src, &none) == 0) {
		struct sv rest = src.text;

		w->realm = sv_cut(&rest, '\n');
		return realm_check(w->realm)
			       ? 0
			       : writ_fail(err, WRIT_E_SYNTAX, 0,
					   "%s is damaged; remove it to make a new one", file);
	}
	return new_realm(a, file, &w->realm, err);
}

int lib_where_find(struct arena *a, const struct writ_options *opt, char *const *env,
		   struct lib_where *ret, struct writ_err *err)
{
	struct lib_where w = { .home = SV(""), .cwd = SV(""), .workspace = SV("") };
	const struct sv said = opt->home ? sv_from(opt->home) : lib_env_get(env, "HOME");
	const char *home = arena_str(a, said);
	struct writ_err none = { 0 };
	int r;

	if (!home)
		return writ_nomem(err);
	if (said.n && said.p[0] == '/' && physical(a, home, &w.home, &none) < 0 && opt->home) {
		*err = none;
		return none.code;
	}
	w.real_home = passwd_home(a);
	if (w.home.n == 0)
		w.home = w.real_home;
	w.config =
		own_dir(a, opt->config_dir, lib_env_get(env, "XDG_CONFIG_HOME"), w.home, ".config");
	w.state = own_dir(a, opt->state_dir, lib_env_get(env, "XDG_STATE_HOME"), w.home,
			  ".local/state");
	if ((w.config.n && w.config.p[0] != '/') || (w.state.n && w.state.p[0] != '/'))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "directories of writ are named from /");
	r = find_realm(a, &w, err);
	if (r == 0)
		*ret = w;
	return r;
}

/* "app-1f2e3d4c5b6a7988": the name for people, the hash for machines. */
const char *lib_project_file(struct arena *a, const struct lib_where *w, const char *folder)
{
	const struct digest d = crypto_sha256(w->workspace);
	const size_t slash = sv_rfind(w->workspace, '/');
	const struct sv name = sv_skip(w->workspace, slash == SIZE_MAX ? 0 : slash + 1);
	struct buf b = BUF_INIT(PATH_MAX);
	struct buf hex = BUF_INIT(128);
	const char *path;

	buf_fmt(&b, SV_FMT "/%s/", SV_ARG(w->config), folder);
	for (size_t i = 0; i < name.n && i < 40; i++) {
		const char c = name.p[i];
		const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
				   (c >= '0' && c <= '9') || c == '-' || c == '_';

		buf_ch(&b, plain ? c : '_');
	}
	digest_hex(&d, &hex);
	buf_fmt(&b, "-" SV_FMT ".writ", SV_ARG(sv_sub(buf_view(&hex), 0, 16)));
	path = b.failed || hex.failed ? NULL : arena_str(a, buf_view(&b));
	buf_clear(&b);
	buf_clear(&hex);
	return path;
}
