#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "facts/probe.h"
#include "locate/locate.h"

#include "base/banned.h"

/*
 * Cache of facts. Probing takes longer than starting a sandbox, so writ stores the facts with a
 * fingerprint of the state they depend on: the boot, the identity, namespaces, privileges and
 * limits of this process, the relevant sysctls, and this program. A stale record is not a risk:
 * facts only select a plan, and a jail that cannot be built as planned does not start.
 */
static const char *const depends[] = {
	"/proc/sys/kernel/random/boot_id",
	"/proc/sys/kernel/unprivileged_userns_clone",
	"/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
	"/proc/sys/user/max_user_namespaces",
	"/proc/sys/kernel/yama/ptrace_scope",
	"/proc/sys/kernel/io_uring_disabled",
	"/proc/sys/vm/memfd_noexec",
	"/proc/sys/dev/tty/legacy_tiocsti",
	"/proc/self/cgroup",
	"/proc/self/attr/current",
};

static void add_file(struct buf *b, const char *path)
{
	char text[1024];
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	buf_fmt(b, "%s=", path);
	if (n > 0)
		buf_add(b, text, (size_t)n);
	buf_ch(b, '\n');
}

/* Adds the lines of /proc/self/status that describe the privileges of this process. */
static void add_status(struct buf *b)
{
	static const char *const keys[] = {
		"Uid:",	       "Gid:",	   "Groups:",	       "CapEff:", "CapBnd:",
		"NoNewPrivs:", "Seccomp:", "Seccomp_filters:", NULL
	};
	char text[4096];
	scoped_fd fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	struct sv rest = { text, n > 0 ? (size_t)n : 0 };

	while (rest.n) {
		const struct sv line = sv_cut(&rest, '\n');

		for (size_t i = 0; keys[i]; i++)
			if (sv_starts(line, sv_from(keys[i])))
				buf_fmt(b, SV_FMT "\n", SV_ARG(line));
	}
}

/*
 * Adds resource limits to the fingerprint: under a tight limit trials fail because of the limit
 * alone.
 */
static void add_limits(struct buf *b)
{
	static const int kinds[] = { RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_AS, RLIMIT_FSIZE };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct rlimit l = { 0 };

		(void)!getrlimit((__rlimit_resource_t)kinds[i], &l);
		buf_fmt(b, "limit %d=%llu\n", kinds[i], (unsigned long long)l.rlim_cur);
	}
}

static void fingerprint(struct buf *b)
{
	static const char *const spaces[] = { "user", "mnt", "pid", "net", "cgroup" };
	struct stat st;
	char path[64], name[64];

	for (size_t i = 0; i < ARRAY_LEN(depends); i++)
		add_file(b, depends[i]);
	add_status(b);
	add_limits(b);
	for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
		ssize_t n;

		/* For /proc/self/ns, readlink() costs a tenth of stat(). */
		snprintf(path, sizeof(path), "/proc/self/ns/%s", spaces[i]);
		n = readlink(path, name, sizeof(name));
		if (n > 0)
			buf_add(b, name, (size_t)n);
		buf_ch(b, '\n');
	}
	buf_str(b, "version=" WRIT_VERSION "\n");
	/*
	 * Skip a program without a file: the library runs writ from a memfd, whose inode differs
	 * each time.
	 */
	if (stat("/proc/self/exe", &st) == 0 && st.st_nlink)
		buf_fmt(b, "exe=%llu.%llu.%lld.%ld\n", (unsigned long long)st.st_ino,
			(unsigned long long)st.st_size, (long long)st.st_mtim.tv_sec,
			st.st_mtim.tv_nsec);
}

/* Compares the fingerprint in the first line, "# HEX", which facts_parse() treats as a comment. */
static bool fingerprint_matches(struct sv text, struct sv want)
{
	struct sv rest = text;
	const struct sv line = sv_cut(&rest, '\n');

	return sv_starts(line, SV("# ")) && sv_eq(sv_skip(line, 2), want);
}

int locate_facts(struct arena *a, struct sv state, const char *name, struct host_facts *ret,
		 struct writ_err *err)
{
	scoped_buf b = BUF_INIT(1 << 20);
	scoped_buf hex = BUF_INIT(128);
	const char *path = arena_fmt(a, SV_FMT "/%s", SV_ARG(state), name);
	struct writ_err none = { 0 };
	struct digest d;
	struct source src;
	int r;

	if (state.n == 0)
		return facts_probe(ret, err);
	fingerprint(&b);
	r = path ? buf_check(&b, err) : writ_nomem(err);
	if (r < 0)
		return r;
	d = crypto_sha256(buf_view(&b));
	digest_hex(&d, &hex);
	buf_clear(&b);
	r = buf_check(&hex, err);
	if (r < 0 || (locate_text(a, path, &src, &none) == 0 &&
		      fingerprint_matches(src.text, buf_view(&hex)) &&
		      facts_parse(src.text, ret, &none) == 0))
		return r;
	r = facts_probe(ret, err);
	/* Do not cache a record of failures that may be temporary. */
	if (r == 0 && !ret->transient_failure) {
		buf_fmt(&b, "# " SV_FMT "\n", SV_ARG(buf_view(&hex)));
		facts_print(ret, &b);
		/* A failure to write the cache only costs time later. */
		(void)!fd_replace_deep(AT_FDCWD, path, buf_view(&b), 0600, &none);
	}
	return r;
}

int locate_advisories(struct arena *a, struct sv state, struct advisory_db *ret,
		      const char **ret_damaged, struct writ_err *err)
{
	const char *path = state.n ? arena_fmt(a, SV_FMT "/advisories.txt", SV_ARG(state)) : NULL;
	struct advisory_db own, db;
	struct writ_err why = { 0 };
	struct source src;
	const int r = advisory_parse(advisory_builtin(), a, &own, err);

	if (r < 0)
		return r;
	*ret = own;
	*ret_damaged = NULL;
	if (!path || locate_text(a, path, &src, &why) < 0)
		return 0;
	if (advisory_parse(src.text, a, &db, &why) < 0)
		*ret_damaged =
			arena_fmt(a, "%s is damaged, using the built-in table: %s", path, why.what);
	else if (db.day > own.day)
		*ret = db;
	return 0;
}
