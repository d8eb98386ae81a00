#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "host/host_priv.h"

#include "base/banned.h"

/*
 * Reads the state of pid 1 of the jail and of a process that is about to become a command, as the
 * kernel reports it on the host.
 */

enum { PROC_MAX = 256 << 10 };

static bool read_at(int dir, const char *path, struct buf *b)
{
	struct writ_err err = { 0 };
	scoped_fd fd = openat(dir, path, O_RDONLY | O_CLOEXEC);

	b->n = 0;
	return fd >= 0 && fd_read_all(fd, b, &err) == 0;
}

static bool read_proc(pid_t pid, const char *name, struct buf *b)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return read_at(AT_FDCWD, path, b);
}

static void row(struct engine_readback *r, enum engine_boundary b, const char *name,
		const char *want, struct sv found)
{
	struct engine_readback_row *to;

	if (r->n == ENGINE_READBACK_MAX)
		return;
	to = &r->rows[r->n++];
	*to = (struct engine_readback_row){ .boundary = b };
	snprintf(to->name, sizeof(to->name), "%s", name);
	snprintf(to->want, sizeof(to->want), "%s", want);
	snprintf(to->found, sizeof(to->found), SV_FMT, SV_ARG(sv_sub(found, 0, 40)));
}

static void row_number(struct engine_readback *r, enum engine_boundary b, const char *name,
		       uint64_t want, bool known, uint64_t found)
{
	char wanted[24], got[24];

	snprintf(wanted, sizeof(wanted), "%llu", (unsigned long long)want);
	snprintf(got, sizeof(got), "%llu", (unsigned long long)found);
	row(r, b, name, wanted, known ? sv_from(got) : SV("?"));
}

/* Returns the value of the line "KEY:\t..." in @text. */
static struct sv status_of(struct sv text, const char *key)
{
	while (text.n) {
		struct sv line = sv_cut(&text, '\n');

		if (sv_eq(sv_cut(&line, ':'), sv_from(key)))
			return sv_trim(line);
	}
	return SV("?");
}

/* Returns "none" if every capability set is empty, else the name of the first set that is not. */
static struct sv caps_left(const struct host_run *h, struct sv text)
{
	static const char *const sets[] = { "CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd" };

	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		const struct sv v = status_of(text, sets[i]);

		/* An ordinary user in the host's namespaces cannot empty the bounding set. */
		if (i == 4 && !h->run.view.own_mounts && geteuid() != 0)
			continue;
		if (!sv_is(v, "0000000000000000"))
			return sv_is(v, "?") ? v : sv_from(sets[i]);
	}
	return SV("none");
}

static void read_status(const struct host_run *h, pid_t pid, struct buf *b,
			struct engine_readback *r)
{
	const struct sv text = read_proc(pid, "status", b) ? buf_view(b) : SV("");
	struct sv nested = status_of(text, "NSpid");
	uint64_t levels = 0;

	row(r, ENGINE_PROCESS, "no-new-privs", "1", status_of(text, "NoNewPrivs"));
	row(r, ENGINE_PROCESS, "seccomp", "2", status_of(text, "Seccomp"));
	row(r, ENGINE_NETWORK, "seccomp", "2", status_of(text, "Seccomp"));
	if (h->run.view.traps && !h->plan->facts->sandboxed) {
		/*
		 * Two filters: the base filter (allowed calls) and the trap filter (mediated
		 * calls).
		 */
		row(r, ENGINE_PROCESS, "seccomp-filters", "2", status_of(text, "Seccomp_filters"));
		row(r, ENGINE_FILESYSTEM, "seccomp-filters", "2",
		    status_of(text, "Seccomp_filters"));
	}
	row(r, ENGINE_PROCESS, "capabilities", "none", caps_left(h, text));
	row(r, ENGINE_CREDENTIALS, "capabilities", "none", caps_left(h, text));
	while (nested.n && !sv_is(nested, "?"))
		levels += sv_cut(&nested, '\t').n != 0;
	if (h->run.view.own_mounts)
		row(r, ENGINE_PROCESS, "pid-namespace", "own",
		    levels >= 2	  ? SV("own")
		    : levels == 1 ? SV("shared")
				  : SV("?"));
}

/*
 * Reads the uid map. Expected: one id in the jail maps to the uid of the supervisor, and no other
 * id is mapped.
 */
static void read_ids(const struct host_run *h, pid_t pid, struct buf *b, struct engine_readback *r)
{
	unsigned long inside, outside, n;
	char *end;

	if (!h->run.view.own_mounts)
		return;
	if (!read_proc(pid, "uid_map", b)) {
		row_number(r, ENGINE_CREDENTIALS, "ids-mapped", 1, false, 0);
		return;
	}
	buf_ch(b, 0);
	inside = strtoul(b->p, &end, 10);
	outside = strtoul(end, &end, 10);
	n = strtoul(end, &end, 10);
	(void)inside;
	row_number(r, ENGINE_CREDENTIALS, "ids-mapped", 1, true, n);
	row_number(r, ENGINE_CREDENTIALS, "id-outside", geteuid(), true, outside);
}

/* Returns the mount id at the beginning of a mount list. */
static struct sv first_mount(struct sv list)
{
	return sv_cut(&list, ' ');
}

static void read_mounts(const struct host_run *h, pid_t pid, struct buf *b,
			struct engine_readback *r)
{
	char own[32];
	scoped_fd fd = -1;
	ssize_t n;

	if (!h->run.view.own_mounts)
		return;
	/*
	 * Mount ids are unique: if the first mount of the supervisor and of the jail have the same
	 * id, they share a mount namespace.
	 */
	fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, own, sizeof(own));
	r->mounts_known = read_proc(pid, "mountinfo", b) && b->n && n > 0;
	if (r->mounts_known)
		r->mounts = crypto_sha256(buf_view(b));
	row(r, ENGINE_FILESYSTEM, "mounts", "own",
	    !r->mounts_known ? SV("?")
	    : sv_eq(first_mount(buf_view(b)), first_mount((struct sv){ own, (size_t)n }))
		    ? SV("shared")
		    : SV("own"));
}

/* --- limits --- */

static bool read_limit(const struct host_run *h, const char *v2, const char *v1, struct buf *b)
{
	for (uint32_t i = 0; i < h->cgroup.n; i++)
		if (read_at(h->cgroup.dir[i].fd, h->cgroup.v2 ? v2 : v1, b))
			return true;
	return false;
}

static uint64_t to_number(struct sv s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++)
		n = n * 10 + (uint64_t)(s.p[i] - '0');
	return n;
}

static void read_cgroup(const struct host_run *h, pid_t pid, struct buf *b,
			struct engine_readback *r)
{
	const struct cgroup_limits *l = &h->limits;

	if (!h->cgroup.n)
		return;
	row(r, ENGINE_RESOURCES, "cgroup", "own",
	    !read_proc(pid, "cgroup", b) ? SV("?")
	    : h->cgroup.unit[0] || memmem(b->p, b->n, h->name, strlen(h->name)) ? SV("own")
										: SV("shared"));
	if (l->pids) {
		const bool ok = read_limit(h, "pids.max", "pids.max", b);

		row_number(r, ENGINE_RESOURCES, "pids-max", l->pids, ok,
			   to_number(buf_view(b)));
	}
	if (l->memory) {
		const bool ok = read_limit(h, "memory.max", "memory.limit_in_bytes", b);
		const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

		row_number(r, ENGINE_RESOURCES, "memory-max", l->memory / page * page, ok,
			   to_number(buf_view(b)) / page * page);
	}
}

static void read_rlimits(const struct host_run *h, pid_t pid, struct engine_readback *r)
{
	for (size_t i = 0; i < h->run.view.rlimits.n; i++) {
		const struct engine_rlimit *l = &h->run.view.rlimits.v[i];
		struct rlimit now = { 0 };
		const bool ok = prlimit(pid, (__rlimit_resource_t)l->resource, NULL, &now) == 0;
		char name[24];

		snprintf(name, sizeof(name), "rlimit-%u", l->resource);
		/* A limit of the host that is lower than the wanted limit also counts as wanted. */
		row_number(r, ENGINE_RESOURCES, name, l->value, ok,
			   now.rlim_max < l->value ? l->value : now.rlim_max);
	}
}

/* --- namespaces, as the process that ran the probes reported them --- */

static const char *const space_names[ENGINE_SPACES] = {
	[ENGINE_SPACE_MNT] = "mnt",
	[ENGINE_SPACE_NET] = "net",
	[ENGINE_SPACE_PID] = "pid",
	[ENGINE_SPACE_USER] = "user",
};

static const enum engine_boundary space_of[ENGINE_SPACES] = {
	[ENGINE_SPACE_MNT] = ENGINE_FILESYSTEM,
	[ENGINE_SPACE_NET] = ENGINE_NETWORK,
	[ENGINE_SPACE_PID] = ENGINE_PROCESS,
	[ENGINE_SPACE_USER] = ENGINE_CREDENTIALS,
};

static uint64_t own_space(const char *kind)
{
	char path[32], name[64]; /* for example "mnt:[4026531841]" */
	const char *number;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	n = readlink(path, name, sizeof(name));
	number = n > 0 ? memchr(name, '[', (size_t)n) : NULL;
	return number ? to_number((struct sv){ number + 1, (size_t)(name + n - number - 1) }) : 0;
}

static void compare_spaces(const struct host_run *h, const struct engine_probed *p,
			   struct engine_readback *r)
{
	for (size_t i = 0; i < ENGINE_SPACES && h->run.view.own_mounts; i++) {
		const uint64_t own = own_space(space_names[i]);
		char name[16];

		snprintf(name, sizeof(name), "ns-%s", space_names[i]);
		row(r, space_of[i], name, "own",
		    !p->spaces[i] || !own ? SV("?")
		    : p->spaces[i] == own ? SV("shared")
					  : SV("own"));
		snprintf(r->spaces[i], sizeof(r->spaces[i]), "%s %llu", space_names[i],
			 (unsigned long long)p->spaces[i]);
	}
}

void host_readback(struct engine_run *run, pid_t pid, const struct engine_probed *probed,
		   struct engine_readback *ret)
{
	const struct host_run *h = host_of(run);
	struct buf b = BUF_INIT(PROC_MAX);

	if (!probed) {
		read_ids(h, run->init, &b, ret);
		read_mounts(h, run->init, &b, ret);
		read_cgroup(h, run->init, &b, ret);
	} else {
		compare_spaces(h, probed, ret);
		if (run->view.landlock) {
			row(ret, ENGINE_FILESYSTEM, "landlock", "restricted",
			    probed->landlock ? SV("restricted") : SV("no"));
			/*
			 * The kernel does not report Landlock, so the process reported this value.
			 * row() has just added the row: fewer than ENGINE_READBACK_MAX rows exist
			 * in total.
			 */
			ret->rows[ret->n - 1].said = true;
		}
		read_status(h, pid, &b, ret);
		read_rlimits(h, pid, ret);
	}
	buf_clear(&b);
}
