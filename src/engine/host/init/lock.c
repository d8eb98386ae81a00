#include "init/init.h"

#include <asm/resource.h>
#include <linux/capability.h>
#include <linux/prctl.h>
#include <linux/securebits.h>

#include "base/landlock.h"

#include "base/banned.h"

/*
 * Landlock refuses a rule on a file that grants rights about directories. Returns @access, without
 * such rights if @fd is a file.
 */
static uint64_t rights_for(int fd, uint64_t access)
{
	return init_is_dir(fd) ? access : access & LL_FILE;
}

/* Sets one limit on this process. A lower hard limit that the supervisor inherited stays. */
static long set_limit(const struct jail_rlimit *l)
{
	const uint64_t both[2] = { l->value, l->value };
	uint64_t now[2];
	const long r = sys(prlimit64, 0, l->resource, 0, now);

	return r == 0 && now[1] >= both[1] ? sys(prlimit64, 0, l->resource, both, 0) : r;
}

int lock_limits(struct init *in, struct writ_err *err)
{
	const struct jail_rlimit *v = span_at(in->p, in->p->rlimits);

	for (uint32_t i = 0; i < in->p->rlimits.n; i++) {
		const long r = v[i].resource == RLIMIT_NOFILE ? 0 : set_limit(&v[i]);

		if (r < 0)
			return init_fail(err, r, "resource limit", NULL);
	}
	return 0;
}

/*
 * The kernel compares the descriptors that a user has in flight in messages with the sender's limit
 * of open files. SECURITY: pid 1 does not take this limit with the others: a session that has as
 * many in flight as it may must not keep pid 1 and the commands that it starts, in this session or
 * another, from passing descriptors.
 */
long lock_files(const struct jail_head *p)
{
	const struct jail_rlimit *v = span_at(p, p->rlimits);
	uint64_t now[2];
	long r = 0;

	for (uint32_t i = 0; r == 0 && i < p->rlimits.n; i++)
		if (v[i].resource == RLIMIT_NOFILE)
			r = set_limit(&v[i]);
	if (r == 0 && p->files)
		r = sys(prlimit64, 0, RLIMIT_NOFILE, 0, now);
	if (r < 0 || p->files == 0 || now[1] <= p->files)
		return r;
	now[1] = p->files;
	now[0] = now[0] < now[1] ? now[0] : now[1];
	return sys(prlimit64, 0, RLIMIT_NOFILE, now, 0);
}

/*
 * Replaces the standard descriptors 0 to 2 by /dev/null and closes every other descriptor except
 * the session's socket and the feed.
 */
int lock_fds(struct init *in, struct writ_err *err)
{
	long r = sys(openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);

	if (r < 0)
		return init_fail(err, r, "open /dev/null", NULL);
	for (int fd = 0; fd < 3; fd++)
		if (sys(dup3, r, fd, O_CLOEXEC) < 0)
			return init_fail(err, -EBADF, "standard descriptors", NULL);
	r = 0;
	if (in->feed >= 0 && in->feed != JAIL_FD_SESSION + 1) {
		r = sys(dup3, in->feed, JAIL_FD_SESSION + 1, O_CLOEXEC);
		in->feed = JAIL_FD_SESSION + 1;
	}
	if (r >= 0)
		r = sys(close_range, JAIL_FD_SESSION + (in->feed >= 0 ? 2 : 1), ~0u, 0);
	return r < 0 ? init_fail(err, r, "close descriptors", NULL) : 0;
}

/*
 * Drops all capabilities and, where the process may, empties the bounding set and locks the
 * securebits, so that neither a change of uid nor an exec can restore a capability.
 */
int lock_caps(struct init *in, struct writ_err *err)
{
	const long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
			  SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
			  SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	const struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	const struct __user_cap_data_struct none[2] = { { 0 } };
	long r = 0;

	/*
	 * An ordinary user in tier B has no capabilities. So the kernel refuses to set the
	 * securebits, and would refuse to shrink the bounding set.
	 */
	if (sys(prctl, PR_SET_SECUREBITS, bits, 0, 0, 0) == 0)
		for (long cap = 0; r == 0 && cap < 64; cap++)
			r = sys(prctl, PR_CAPBSET_DROP, cap, 0, 0, 0);
	if (r < 0 && r != -EINVAL)
		return init_fail(err, r, "drop the bounding set", NULL);
	(void)sys(prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	r = sys(capset, &head, none);
	if (r == 0)
		r = sys(prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)in;
	return r < 0 ? init_fail(err, r, "drop capabilities", NULL) : 0;
}

int lock_privs(struct init *in, struct writ_err *err)
{
	const long r = sys(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);

	(void)in;
	return r < 0 ? init_fail(err, r, "no_new_privs", NULL) : 0;
}

/*
 * Creates the Landlock ruleset number @layer; 0 is the jail's own. Each command restricts itself
 * with every ruleset before its exec. pid 1 does not restrict itself: processes of the same
 * Landlock domain may signal each other, so commands could then kill pid 1.
 */
static int make_ruleset(const struct init *in, uint32_t layer, int *ret, struct writ_err *err)
{
	const struct ll_ruleset handled = { layer ? in->p->landlock_fs & ~(uint64_t)LL_READ_DIR
						  : in->p->landlock_fs,
					    layer ? 0 : in->p->landlock_net,
					    layer ? 0 : in->p->landlock_scope };
	const size_t size = ll_size(in->p->landlock_abi);
	const struct jail_rule *v = span_at(in->p, in->p->rules);
	long set = sys(landlock_create_ruleset, &handled, size, 0);

	if (set < 0)
		return init_fail(err, set, "Landlock", NULL);
	for (uint32_t i = 0; i < in->p->rules.n; i++) {
		struct ll_beneath rule = { .access = v[i].access & handled.fs };
		const char *path = span_at(in->p, v[i].path);
		long fd, r;

		if (v[i].layer != layer)
			continue;
		r = fd = sys(openat, AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
		if (fd == -ENOENT && (v[i].flags & JAIL_OPTIONAL))
			continue;
		rule.fd = (int)fd;
		if (fd >= 0) {
			rule.access = rights_for((int)fd, rule.access);
			r = sys(landlock_add_rule, set, LL_RULE_BENEATH, &rule, 0);
			(void)sys(close, fd);
		}
		if (r < 0)
			return init_fail(err, r, "Landlock rule for", path);
	}
	*ret = (int)set;
	return 0;
}

int lock_ruleset(struct init *in, struct writ_err *err)
{
	int r = make_ruleset(in, 0, &in->ruleset, err);

	for (uint32_t i = 0; r == 0 && i < in->p->layers; i++)
		r = make_ruleset(in, i + 1, &in->layers[i], err);
	return r;
}

int lock_seccomp(struct init *in, struct writ_err *err)
{
	const long r = init_seccomp(in->p, in->p->base, 0);

	return r < 0 ? init_fail(err, r, "seccomp filter", NULL) : 0;
}

/* Returns the part of @text, which is from /proc/self/status, after "@key:\t"; or NULL. */
static const char *status_find(const char *text, const char *key)
{
	const size_t n = strlen(key);

	while (*text) {
		if (memcmp(text, key, n) == 0 && text[n] == ':')
			return text + n + 2;
		while (*text && *text != '\n')
			text++;
		text += *text != 0;
	}
	return NULL;
}

static bool all_zero(const char *hex)
{
	if (!hex)
		return false;
	while (*hex == '0')
		hex++;
	return *hex == '\n';
}

/*
 * Verifies the state of pid 1 as the kernel reports it in /proc/self/status, instead of trusting
 * the results of the calls above.
 */
int lock_verify(struct init *in, struct writ_err *err)
{
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
	char text[4096];
	const char *v;
	const long fd = sys(openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC, 0);
	long n = fd;

	if (fd >= 0) {
		/*
		 * Fill the buffer with zeros, so that comparing a key cannot read past the end of
		 * the text.
		 */
		memset(text, 0, sizeof(text));
		n = sys(read, fd, text, sizeof(text) - 64);
		(void)sys(close, fd);
	}
	if (n <= 0)
		return init_fail(err, n < 0 ? n : -EIO, "read /proc/self/status", NULL);
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		/* In the host's user namespace an ordinary user cannot empty the bounding set. */
		if (i == 3 && !(in->p->flags & JAIL_OWN_NAMESPACES) && sys(geteuid) != 0)
			continue;
		if (!all_zero(status_find(text, sets[i])))
			return init_fail(err, -EPERM, "capabilities are left:", sets[i]);
	}
	v = status_find(text, "NoNewPrivs");
	if (!v || *v != '1')
		return init_fail(err, -EPERM, "no_new_privs is not set", NULL);
	v = status_find(text, "Seccomp");
	if (!v || *v != '2')
		return init_fail(err, -EPERM, "no seccomp filter is set", NULL);
	return 0;
}
