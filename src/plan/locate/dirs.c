#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "locate/locate.h"

#include "base/banned.h"

/* Returns the home directory of this process's uid in /etc/passwd. */
static struct sv passwd_home(struct arena *a)
{
	struct writ_err err = { 0 };
	struct source src;
	const uid_t own = geteuid();
	struct sv rest;

	if (locate_text(a, "/etc/passwd", &src, &err) < 0)
		return SV("");
	rest = src.text;
	while (rest.n) {
		struct sv line = sv_cut(&rest, '\n');
		struct sv field[7];
		uint64_t uid;

		for (size_t i = 0; i < ARRAY_LEN(field); i++)
			field[i] = sv_cut(&line, ':');
		/* Ignore "/", the home of many daemon accounts: every path is below "/". */
		if (sv_to_u64(field[2], UINT32_MAX, &uid) && uid == own)
			return field[5].n > 1 ? field[5] : SV("");
	}
	return SV("");
}

/*
 * Returns the directory @given, or else the subdirectory writ of @xdg, or else HOME/FALLBACK/writ;
 * "" if none is known.
 */
static struct sv own_dir(struct arena *a, const char *given, struct sv xdg, struct sv home,
			 const char *fallback)
{
	struct sv top = given ? sv_from(given) : xdg;

	while (top.n > 1 && top.p[top.n - 1] == '/')
		top.n--;
	if (given)
		return sv_from(arena_str(a, top));
	if (top.n && top.p[0] == '/')
		return sv_from(
			arena_fmt(a, SV_FMT "/writ", SV_ARG(sv_is(top, "/") ? SV("") : top)));
	return home.n ? sv_from(arena_fmt(a, SV_FMT "/%s/writ", SV_ARG(home), fallback)) : SV("");
}

/*
 * Resolves links in the part of @path that exists, because inside the sandbox a link could lead to
 * another file.
 */
static struct sv physical(struct arena *a, struct sv path)
{
	size_t cut = path.n;
	char real[PATH_MAX];

	while (cut > 1) {
		const char *head = arena_str(a, sv_sub(path, 0, cut));

		if (!head || realpath(head, real))
			return head ? sv_from(arena_fmt(a, "%s" SV_FMT, real[1] ? real : "",
							SV_ARG(sv_skip(path, cut))))
				    : SV("");
		while (--cut && path.p[cut] != '/')
			;
	}
	return path;
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

/*
 * Creates the realm, the name of this installation. The name is random and not the machine id,
 * which machines cloned from one image share. Several processes may create the realm at once, for
 * example in a pipeline; the first link() determines the realm for all.
 */
static int new_realm(struct arena *a, const char *file, struct writ_err *err)
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
	const char *fresh = arena_fmt(a, "%s.%ld", file, (long)getpid());
	char text[30] = "l-";
	uint8_t bytes[26];
	int r;

	if (!fresh)
		return writ_nomem(err);
	r = crypto_random(bytes, sizeof(bytes), err);
	for (size_t i = 0; r == 0 && i < sizeof(bytes); i++)
		text[2 + i] = digits[bytes[i] & 31];
	text[28] = '\n';
	if (r == 0)
		r = fd_replace_deep(AT_FDCWD, fresh, (struct sv){ text, 29 }, 0600, err);
	if (r < 0)
		return r;
	if (link(fresh, file) < 0 && errno != EEXIST)
		r = writ_fail(err, WRIT_E_SYS, errno, "%s", file);
	(void)unlink(fresh);
	return r;
}

static int find_realm(struct arena *a, bool make, struct find_where *w, struct writ_err *err)
{
	const char *file = arena_fmt(a, SV_FMT "/realm", SV_ARG(w->state));
	struct writ_err none = { 0 };
	struct source src;
	struct sv rest;
	int r;

	w->realm = SV("l-unset");
	if (!file)
		return writ_nomem(err);
	if (w->state.n == 0)
		return 0;
	r = locate_text(a, file, &src, &none);
	if (r < 0 && !make)
		return 0;
	if (r < 0) {
		r = new_realm(a, file, err);
		if (r == 0)
			r = locate_text(a, file, &src, err);
	}
	if (r < 0)
		return r;
	rest = src.text;
	w->realm = sv_cut(&rest, '\n');
	return realm_check(w->realm) ? 0
				     : writ_fail(err, WRIT_E_SYNTAX, 0,
						 "%s is damaged; remove it to make a new one",
						 file);
}

static int find_home(struct arena *a, const struct find_options *opt, struct find_where *w,
		     struct writ_err *err)
{
	const struct sv said =
		opt->home ? sv_from(opt->home) : environ_get(opt->environ, SV("HOME"));
	const char *home = arena_str(a, said);
	char real[PATH_MAX];

	w->home = SV("");
	w->real_home = passwd_home(a);
	if (!home)
		return writ_nomem(err);
	if (said.n && said.p[0] == '/' && realpath(home, real)) {
		if (!arena_sv(a, sv_from(real), &w->home))
			return writ_nomem(err);
	} else if (opt->home) {
		return writ_fail(err, WRIT_E_SYS, home[0] == '/' ? errno : EINVAL, "%s", home);
	}
	if (w->home.n == 0)
		w->home = w->real_home;
	return 0;
}

int locate_where(struct arena *a, const struct find_options *opt, struct find_where *ret,
		 struct writ_err *err)
{
	struct find_where w = { .cwd = SV(""), .workspace = SV("") };
	int r = find_home(a, opt, &w, err);

	if (r < 0)
		return r;
	w.config = own_dir(a, opt->config, environ_get(opt->environ, SV("XDG_CONFIG_HOME")), w.home,
			   ".config");
	w.state = own_dir(a, opt->state, environ_get(opt->environ, SV("XDG_STATE_HOME")), w.home,
			  ".local/state");
	if ((w.config.n && w.config.p[0] != '/') || (w.state.n && w.state.p[0] != '/'))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "directories of writ are named from /");
	w.config = physical(a, w.config);
	w.state = physical(a, w.state);
	r = find_realm(a, opt->make_realm, &w, err);
	*ret = w;
	return r;
}

/*
 * Makes names such as "app-1f2e3d4c5b6a7988.writ": the first part is for people, the hash makes the
 * name unique.
 */
const char *locate_project_file(struct arena *a, const struct find_where *w, const char *folder)
{
	const struct digest d = crypto_sha256(w->workspace);
	const struct sv name = sv_skip(w->workspace, sv_rfind(w->workspace, '/') + 1);
	scoped_buf b = BUF_INIT(PATH_MAX), hex = BUF_INIT(128);

	buf_fmt(&b, SV_FMT "/%s/", SV_ARG(w->config), folder);
	for (size_t i = 0; i < name.n && i < 40; i++) {
		const bool plain = sv_is_alnum(sv_sub(name, i, 1), "-_");

		buf_ch(&b, plain ? name.p[i] : '_');
	}
	digest_hex(&d, &hex);
	buf_fmt(&b, "-" SV_FMT ".writ", SV_ARG(sv_sub(buf_view(&hex), 0, 16)));
	return b.failed || hex.failed ? NULL : arena_str(a, buf_view(&b));
}
