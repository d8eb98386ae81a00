#include "init/init.h"

#include <linux/sched.h>

#include "base/banned.h"

void init_put_number(char *to, size_t *at, uint64_t n)
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

int init_write_text(int dir, const char *path, const char *text)
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

/* Writes one line of an id map: the id @inside the namespace stands for the id @outside. */
static int map_one(const char *path, uint32_t inside, uint32_t outside)
{
	char line[48];
	size_t n = 0;

	init_put_number(line, &n, inside);
	line[n++] = ' ';
	init_put_number(line, &n, outside);
	memcpy(line + n, " 1", 3);
	return init_write_text(AT_FDCWD, path, line);
}

static int map_ids(uint32_t uid, uint32_t gid, uint32_t outer_uid, uint32_t outer_gid,
		   struct writ_err *err)
{
	int r = init_write_text(AT_FDCWD, "/proc/self/setgroups", "deny");

	if (r < 0)
		return init_fail(err, r, "write /proc/self/setgroups", NULL);
	r = map_one("/proc/self/uid_map", uid, outer_uid);
	if (r < 0)
		return init_fail(err, r, "write /proc/self/uid_map", NULL);
	r = map_one("/proc/self/gid_map", gid, outer_gid);
	return r < 0 ? init_fail(err, r, "write /proc/self/gid_map", NULL) : 0;
}

/* Parses a number of a file of /proc/sys. Returns 0 if there is none. */
static uint64_t read_number(const char *path)
{
	const long fd = sys(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	char text[24] = { 0 };
	uint64_t v = 0;

	if (fd < 0)
		return 0;
	(void)sys(read, fd, text, sizeof(text) - 1);
	(void)sys(close, fd);
	for (size_t i = 0; text[i] >= '0' && text[i] <= '9'; i++)
		v = v * 10 + (uint64_t)(text[i] - '0');
	return v;
}

/*
 * Counts that the kernel keeps per user through all user namespaces, and limits in each of them.
 * The jail gets the part 1 / @share of the limit outside, but at most @most.
 */
static const struct shared {
	const char *path;
	uint64_t share, most;
} shared[] = {
	{ "/proc/sys/user/max_inotify_instances", 4, 4096 },
	{ "/proc/sys/user/max_inotify_watches", 2, 1u << 20 },
};
enum { SHARED = sizeof(shared) / sizeof(shared[0]) };

/*
 * Limits the user namespace that was just entered, and with it all namespaces below. SECURITY: a
 * session that used up the inotify instances or watches of its user would stop the user's editors,
 * build tools and other sessions. A kernel or a container where these files are missing or cannot
 * be written does not stop the start: the counts protect other programs, not the jail.
 */
static void limit_shared(const uint64_t outside[SHARED])
{
	for (size_t i = 0; i < SHARED; i++) {
		uint64_t v = outside[i] / shared[i].share;
		char text[24] = { 0 };
		size_t n = 0;

		if (outside[i] == 0)
			continue;
		init_put_number(text, &n, v > shared[i].most ? shared[i].most : v);
		(void)init_write_text(AT_FDCWD, shared[i].path, text);
	}
}

/*
 * Enters the outer user namespace, which owns the jail's mounts and network. The agent never runs
 * in this namespace, but in an inner one. In the outer namespace writ-init has uid 0, and no other
 * id is mapped.
 */
int init_step_enter(struct init *in, struct writ_err *err)
{
	const uint32_t uid = (uint32_t)sys(geteuid), gid = (uint32_t)sys(getegid);
	uint64_t outside[SHARED];
	long r;

	for (size_t i = 0; i < SHARED; i++)
		outside[i] = read_number(shared[i].path);
	/*
	 * Drop supplementary groups. Only root may do so; for other users the plan reports that the
	 * groups stay.
	 */
	if (uid == 0)
		(void)sys(setgroups, 0, 0);
	r = in->fail_at == STEP_NAMESPACES ? -ECANCELED : sys(unshare, CLONE_NEWUSER);
	if (r < 0)
		return init_fail(err, r, "new user namespace", NULL);
	if (in->fail_at == STEP_ID_MAP)
		return init_fail(err, -ECANCELED, "id map", NULL);
	r = map_ids(0, 0, uid, gid, err);
	if (r == 0)
		limit_shared(outside);
	return (int)r;
}

/*
 * Sets the host name, then enters the inner user namespace, in which the agent runs. SECURITY: pid
 * 1 writes the id map at once. The kernel accepts only one map per namespace, so no process in the
 * jail can change it afterwards.
 */
static int init_inner_userns(struct init *in, struct writ_err *err)
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

static const struct {
	enum jail_step step;
	uint32_t only; /* flags that the program must have for this step; 0: the step always runs */
	uint32_t needs; /* steps that must be completed before: bits of 1 << enum jail_step */
	/* Function of the step; NULL: another file carries out the step. */
	int (*run)(struct init *in, struct writ_err *err);
} steps[] = {
#define STEP(id) (1u << STEP_##id)
#define ROW(id, name, only, needs, run, what, why) { STEP_##id, (only), (needs), (run) },
	JAIL_STEPS(ROW)
#undef ROW
#undef STEP
};

int init_steps_run(struct init *in, struct writ_err *err, uint32_t *ret_step)
{
	uint32_t have = in->done;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const uint32_t bit = 1u << steps[i].step;
		int r;

		if (!steps[i].run || (in->p->flags & steps[i].only) != steps[i].only)
			continue;
		*ret_step = steps[i].step;
		if (PLANTED(in->p->fail_at, steps[i].step)) {
			have |= bit;
			continue;
		}
		if ((have & steps[i].needs) != steps[i].needs)
			return init_fail(err, -EPROTO, "a step before its time", NULL);
		r = in->p->fail_at == (uint32_t)steps[i].step
			    ? init_fail(err, -ECANCELED, "failed on purpose", NULL)
			    : steps[i].run(in, err);
		if (r < 0)
			return r;
		have |= bit;
		in->done |= bit;
	}
	return 0;
}
