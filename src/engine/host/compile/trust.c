#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "compile/compile_priv.h"

#include "base/banned.h"

/*
 * A session whose HTTPS requests egress reads has a certificate authority of its own.
 * compile_trust_put() mounts the files of this authority in /run/writ, and also over the files in
 * which programs look for authorities by default. All of these mounts are read-only.
 */

enum { JDKS_MAX = 64 };

enum trust_file { TRUST_CA, TRUST_BUNDLE, TRUST_JAVA, TRUST_BROWSER };
static const char *const files[] = {
	[TRUST_CA] = "ca.pem",
	[TRUST_BUNDLE] = "ca-bundle.pem",
	[TRUST_JAVA] = "cacerts",
	[TRUST_BROWSER] = "browser.json",
};

/* Files in which distributions keep all authorities they trust. */
static const struct {
	enum trust_file ours;
	const char *path;
} covered[] = {
	{ TRUST_BUNDLE, "/etc/ssl/certs/ca-certificates.crt" },
	{ TRUST_BUNDLE, "/etc/pki/tls/certs/ca-bundle.crt" },
	{ TRUST_BUNDLE, "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem" },
	{ TRUST_BUNDLE, "/etc/ssl/ca-bundle.pem" },
	{ TRUST_BUNDLE, "/etc/ssl/cert.pem" },
	{ TRUST_JAVA, "/etc/ssl/certs/java/cacerts" },
	{ TRUST_JAVA, "/etc/pki/ca-trust/extracted/java/cacerts" },
};

/*
 * A JDK that does not come from the distribution has a list of authorities of its own. Each of
 * these directories may contain such JDKs.
 */
static const char *const jdk_dirs[] = { "/usr/lib/jvm", "/usr/lib64/jvm", "/usr/java",
					"/usr/local",	"/opt",		  NULL };
static const char *const jdk_lists[] = { "lib/security/cacerts", "jre/lib/security/cacerts" };

/*
 * Browsers with authorities of their own also accept the authorities that a machine-wide policy
 * file names. These directories hold such policy files.
 */
static const char *const browser_dirs[] = { "/etc/brave/policies/managed",
					    "/etc/chromium/policies/managed",
					    "/etc/opt/chrome/policies/managed",
					    "/etc/opt/chrome_for_testing/policies/managed",
					    "/etc/opt/edge/policies/managed" };

bool compile_trust_holds(const struct compile *c, struct sv path)
{
	if (!c->a_tier || c->place->trust.n == 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(browser_dirs); i++)
		if (compile_path_below(sv_from(browser_dirs[i]), path))
			return true;
	return false;
}

static bool put_own(struct compile *c, enum trust_file file, const char *to, unsigned flags)
{
	const char *ours = arena_fmt(c->a, SV_FMT "/%s", SV_ARG(c->place->trust), files[file]);

	return ours &&
	       jail_put_mount(&c->w, JAIL_OP_BIND, sv_from(ours), sv_from(to), READ_ONLY, flags);
}

/*
 * Mounts the trust file @file over @path if @path is a regular file that the jail shows. Does
 * nothing if a component of @path is a link: a link is no mount target. False only if out of
 * memory.
 */
static bool cover(struct compile *c, enum trust_file file, const char *path)
{
	char real[PATH_MAX];
	struct stat st;

	return !compile_shows(c, sv_from(path)) || lstat(path, &st) < 0 || !S_ISREG(st.st_mode) ||
	       !realpath(path, real) || !sv_is(sv_from(path), real) ||
	       put_own(c, file, path, JAIL_OPTIONAL);
}

static bool cover_jdk(struct compile *c, const char *home)
{
	bool ok = true;

	for (size_t i = 0; ok && i < ARRAY_LEN(jdk_lists); i++) {
		const char *path = arena_fmt(c->a, "%s/%s", home, jdk_lists[i]);

		ok = path && cover(c, TRUST_JAVA, path);
	}
	return ok;
}

static bool cover_jdks(struct compile *c, const char *dir)
{
	scoped_list *d = compile_shows(c, sv_from(dir)) ? opendir(dir) : NULL;
	const struct dirent *e;
	bool ok = true;

	/*
	 * Skip links: a link is no mount target, and a JDK in this directory is found under its own
	 * name.
	 */
	for (int n = 0; d && ok && n < JDKS_MAX && (e = readdir(d));) {
		const char *home;

		if (e->d_type == DT_LNK || e->d_name[0] == '.')
			continue;
		home = arena_fmt(c->a, "%s/%s", dir, e->d_name);
		ok = home && cover_jdk(c, home);
		n++;
	}
	return ok;
}

/*
 * Creates a link to /run/writ/browser.json in each policy directory of browsers. A link is enough,
 * because writ creates these directories of /etc itself.
 */
static int put_browsers(struct compile *c)
{
	for (size_t i = 0; i < ARRAY_LEN(browser_dirs); i++) {
		const char *path = arena_fmt(c->a, "%s/writ-session.json", browser_dirs[i]);
		int r = path ? skeleton_dirs(c, sv_from(path)) : writ_nomem(c->err);

		if (r == 0 && !jail_put_mount(&c->w, JAIL_OP_LINK, SV("/run/writ/browser.json"),
					      sv_from(path), 0, 0))
			r = writ_nomem(c->err);
		if (r < 0)
			return r;
	}
	return 0;
}

int compile_trust_put(struct compile *c)
{
	bool ok = true;

	if (c->place->trust.n == 0)
		return 0;
	for (size_t i = 0; ok && i < ARRAY_LEN(files); i++) {
		const char *to = arena_fmt(c->a, "/run/writ/%s", files[i]);

		ok = to && put_own(c, (enum trust_file)i, to, JAIL_TARGET);
	}
	for (size_t i = 0; ok && i < ARRAY_LEN(covered); i++)
		ok = cover(c, covered[i].ours, covered[i].path);
	for (size_t i = 0; ok && jdk_dirs[i]; i++)
		ok = cover_jdks(c, jdk_dirs[i]);
	if (ok && c->place->java.n)
		ok = cover_jdk(c, c->place->java.p);
	return ok ? put_browsers(c) : writ_nomem(c->err);
}
