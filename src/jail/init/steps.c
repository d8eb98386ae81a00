#include "jail/init/init.h"

#include <linux/sched.h>

#include "base/banned.h"

void put_number(char *to, size_t *at, uint64_t n)
{
	char digits[20];
	size_t k = 0;

	do {
		digits[k++] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	while (k)
		to[(*at)++] = digits[--k];
}

int write_text(int dir, const char *path, const char *text)
{
	const long fd = sys(openat, dir, path, O_WRONLY | O_CLOEXEC, 0);
	const long n = (long)strlen(text);
	long r;

	if (fd < 0)
		return (int)fd;
	r = sys(write, fd, text, n);
	(void)sys(close, fd);
	return r == n ? 0 : r < 0 ? (int)r : -EIO;
}

/* One line of an id map: one id, @inside seen inside for @outside. */
static int map_one(const char *path, uint32_t inside, uint32_t outside)
{
	char line[48];
	size_t n = 0;

	put_number(line, &n, inside);
	line[n++] = ' ';
	put_number(line, &n, outside);
	memcpy(line + n, " 1", 3);
	return write_text(AT_FDCWD, path, line);
}

static int map_ids(uint32_t uid, uint32_t gid, uint32_t outer_uid, uint32_t outer_gid,
		   struct writ_err *err)
{
	int r = write_text(AT_FDCWD, "/proc/self/setgroups", "deny");

	if (r < 0)
		return init_fail(err, r, "write /proc/self/setgroups", NULL);
	r = map_one("/proc/self/uid_map", uid, outer_uid);
	if (r < 0)
		return init_fail(err, r, "write /proc/self/uid_map", NULL);
	r = map_one("/proc/self/gid_map", gid, outer_gid);
	return r < 0 ? init_fail(err, r, "write /proc/self/gid_map", NULL) : 0;
}

/*
 * The outer user namespace: it owns the mounts and the network, the agent will
 * not live in it. We are uid 0 of it and nobody else is there.
 */
int step_enter(struct init *in, struct writ_err *err)
{
	const uint32_t uid = (uint32_t)sys(geteuid), gid = (uint32_t)sys(getegid);
	long r;

	/* Only root can; for others the plan says that groups stay. */
	if (uid == 0)
		(void)sys(setgroups, 0, 0);
	r = in->fail_at == STEP_NAMESPACES ? -ECANCELED : sys(unshare, CLONE_NEWUSER);
	if (r < 0)
		return init_fail(err, r, "new user namespace", NULL);
	if (in->fail_at == STEP_ID_MAP)
		return init_fail(err, -ECANCELED, "id map", NULL);
	return map_ids(0, 0, uid, gid, err);
}

/* SECURITY: the map is written while we still hold the outer namespace's rights. */
static int step_inner(struct init *in, struct writ_err *err)
{
	const struct jail_span host = in->p->hostname;
	long r = 0;

	if (host.n)
		r = sys(sethostname, span_at(in->p, host), host.n);
	if (r < 0)
		return init_fail(err, r, "host name", NULL);
	r = sys(unshare, CLONE_NEWUSER);
	if (r < 0)
		return init_fail(err, r, "inner user namespace", NULL);
	return map_ids(in->p->uid, in->p->gid, 0, 0, err);
}

/* What holds inside so far. Bits are only ever added. */
enum {
	HAS_PROGRAM = 1u << 0,
	HAS_ROOT = 1u << 1,
	HAS_NET = 1u << 2,
	HAS_INNER = 1u << 3,
	HAS_LIMITS = 1u << 4,
	FDS_CLOSED = 1u << 5,
	CAPS_GONE = 1u << 6,
	NO_NEW_PRIVS = 1u << 7,
	RULES_READY = 1u << 8,
	FILTERED = 1u << 9,
};

/* Read top to bottom: this is the order, and there is no other one. */
/* clang-format off */
static const struct {
	enum jail_step step;
	uint32_t only; /* flags of the program it needs; 0: always */
	uint32_t needs, gives;
	int (*run)(struct init *in, struct writ_err *err);
} steps[] = {
	{ STEP_ROOT,         JAIL_OWN_NAMESPACES, HAS_PROGRAM,              HAS_ROOT,     root_build },
	{ STEP_NETWORK,      JAIL_OWN_NAMESPACES, HAS_ROOT,                 HAS_NET,      net_build  },
	{ STEP_INNER_USERNS, JAIL_OWN_NAMESPACES, HAS_ROOT | HAS_NET,       HAS_INNER,    step_inner },
	{ STEP_LIMITS,       0,                   HAS_PROGRAM,              HAS_LIMITS,   lock_limits },
	{ STEP_CLOSE_FDS,    0,                   HAS_PROGRAM,              FDS_CLOSED,   lock_fds },
	{ STEP_DROP_CAPS,    0,                   HAS_PROGRAM,              CAPS_GONE,    lock_caps },
	{ STEP_NO_NEW_PRIVS, 0,                   CAPS_GONE,                NO_NEW_PRIVS, lock_privs },
	{ STEP_LANDLOCK,     JAIL_LANDLOCK,       NO_NEW_PRIVS,             RULES_READY,  lock_ruleset },
	{ STEP_SECCOMP,      0,                   NO_NEW_PRIVS | FDS_CLOSED, FILTERED,    lock_seccomp },
	{ STEP_SEALED,       0,                   FILTERED | HAS_LIMITS,    0,            lock_verify },
};
/* clang-format on */

int steps_run(struct init *in, struct writ_err *err, uint32_t *ret_step)
{
	uint32_t have = HAS_PROGRAM;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		int r;

		if ((in->p->flags & steps[i].only) != steps[i].only)
			continue;
		*ret_step = steps[i].step;
		if (PLANTED(in->p->fail_at, steps[i].step)) {
			have |= steps[i].gives;
			continue;
		}
		if ((have & steps[i].needs) != steps[i].needs)
			return init_fail(err, -EPROTO, "a step before its time", NULL);
		r = in->p->fail_at == (uint32_t)steps[i].step
			    ? init_fail(err, -ECANCELED, "failed on purpose", NULL)
			    : steps[i].run(in, err);
		if (r < 0)
			return r;
		have |= steps[i].gives;
		in->done |= 1u << steps[i].step;
	}
	return 0;
}
