#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "parts/engine.h"
#include "parts/probe_priv.h"
#include "parts/record.h"
#include "parts/resource_limits.h"

#include "base/banned.h"

/*
 * Reads the state of the process that is about to become the command, as the kernel reports it on
 * the host. Rows are "NAME WANTED FOUND"; FOUND is `?` if the state cannot be read.
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

static void row(struct readback *r, enum engine_boundary b, const char *name, const char *want,
		struct sv found)
{
	struct readback_row *to;

	if (r->n == READBACK_MAX)
		return;
	to = &r->rows[r->n++];
	to->boundary = b;
	to->agrees = sv_is(found, want);
	to->said = strcmp(name, "landlock") == 0;
	to->read = !sv_is(found, "?");
	snprintf(to->text, sizeof(to->text), "%s %s " SV_FMT, name, want,
		 SV_ARG(found.n ? sv_sub(found, 0, 40) : SV("?")));
}

static void row_number(struct readback *r, enum engine_boundary b, const char *name, uint64_t want,
		       bool known, uint64_t found)
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
static struct sv caps_left(const struct session *s, struct sv text)
{
	static const char *const sets[] = { "CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd" };

	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		const struct sv v = status_of(text, sets[i]);

		/* An ordinary user in the host's namespaces cannot empty the bounding set. */
		if (i == 4 && !engine_view(s)->own_mounts && geteuid() != 0)
			continue;
		if (!sv_is(v, "0000000000000000"))
			return sv_is(v, "?") ? v : sv_from(sets[i]);
	}
	return SV("none");
}

static void read_status(const struct session *s, pid_t pid, struct buf *b, struct readback *r)
{
	const struct sv text = read_proc(pid, "status", b) ? buf_view(b) : SV("");
	struct sv nested = status_of(text, "NSpid");
	uint64_t levels = 0;

	row(r, ENGINE_PROCESS, "no-new-privs", "1", status_of(text, "NoNewPrivs"));
	row(r, ENGINE_PROCESS, "seccomp", "2", status_of(text, "Seccomp"));
	row(r, ENGINE_NETWORK, "seccomp", "2", status_of(text, "Seccomp"));
	if (engine_view(s)->traps && !s->opt->plan->facts->sandboxed) {
		/* Two filters: the list of allowed calls, and the calls that go to the mediator. */
		row(r, ENGINE_PROCESS, "seccomp-filters", "2", status_of(text, "Seccomp_filters"));
		row(r, ENGINE_FILESYSTEM, "seccomp-filters", "2",
		    status_of(text, "Seccomp_filters"));
	}
	row(r, ENGINE_PROCESS, "capabilities", "none", caps_left(s, text));
	row(r, ENGINE_CREDENTIALS, "capabilities", "none", caps_left(s, text));
	while (nested.n && !sv_is(nested, "?"))
		levels += sv_cut(&nested, '\t').n != 0;
	if (engine_view(s)->own_mounts)
		row(r, ENGINE_PROCESS, "pid-namespace", "own",
		    levels >= 2	  ? SV("own")
		    : levels == 1 ? SV("shared")
				  : SV("?"));
}

/*
 * Checks the id map: one id in the jail maps to the id of the supervisor, and no other id is
 * mapped.
 */
static void read_ids(const struct session *s, pid_t pid, struct buf *b, struct readback *r)
{
	unsigned long inside, outside, n;
	char *end;

	if (!engine_view(s)->own_mounts)
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

static void read_mounts(const struct session *s, pid_t pid, struct buf *b, struct readback *r)
{
	char own[32];
	scoped_fd fd = -1;
	ssize_t n;

	if (!engine_view(s)->own_mounts)
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

static bool read_limit(const struct session *s, const char *v2, const char *v1, struct buf *b)
{
	for (uint32_t i = 0; i < limits_cgroup(s)->n; i++)
		if (read_at(limits_cgroup(s)->dir[i].fd, limits_cgroup(s)->v2 ? v2 : v1, b))
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

static void read_cgroup(const struct session *s, pid_t pid, struct buf *b, struct readback *r)
{
	const struct plan *p = s->opt->plan;
	const uint64_t *l = s->opt->policy->set.limits;
	const struct host_facts *f = p->facts;
	char name[SESSION_ID + 8];

	if (!limits_cgroup(s)->n)
		return;
	snprintf(name, sizeof(name), "writ-%s", s->id);
	row(r, ENGINE_RESOURCES, "cgroup", "own",
	    !read_proc(pid, "cgroup", b)					  ? SV("?")
	    : limits_cgroup(s)->unit[0] || memmem(b->p, b->n, name, strlen(name)) ? SV("own")
										  : SV("shared"));
	if (l[LIMIT_PIDS] && (f->cgroup_pids || plan_scope(p, LIMIT_PIDS))) {
		const bool ok = read_limit(s, "pids.max", "pids.max", b);

		row_number(r, ENGINE_RESOURCES, "pids-max", l[LIMIT_PIDS], ok,
			   to_number(buf_view(b)));
	}
	if (l[LIMIT_MEMORY] && (f->cgroup_memory || plan_scope(p, LIMIT_MEMORY))) {
		const bool ok = read_limit(s, "memory.max", "memory.limit_in_bytes", b);
		const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

		row_number(r, ENGINE_RESOURCES, "memory-max", l[LIMIT_MEMORY] / page * page, ok,
			   to_number(buf_view(b)) / page * page);
	}
}

static void read_rlimits(const struct session *s, pid_t pid, struct readback *r)
{
	for (size_t i = 0; i < engine_view(s)->rlimits.n; i++) {
		const struct engine_rlimit *l = &engine_view(s)->rlimits.v[i];
		struct rlimit now = { 0 };
		const bool ok = prlimit(pid, (__rlimit_resource_t)l->resource, NULL, &now) == 0;
		char name[24];

		snprintf(name, sizeof(name), "rlimit-%u", l->resource);
		/* A limit of the host that is lower than the wanted limit also counts as wanted. */
		row_number(r, ENGINE_RESOURCES, name, l->value, ok,
			   now.rlim_max < l->value ? l->value : now.rlim_max);
	}
}

/* --- namespaces, as the probing process saw them --- */

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

static void read_own_spaces(const struct session *s, struct readback *r)
{
	scoped_fd dir = -1;

	if (!engine_view(s)->own_mounts)
		return;
	dir = open("/proc/self/ns", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ENGINE_SPACES; i++) {
		char name[64]; /* for example "mnt:[4026531841]" */
		const ssize_t n = readlinkat(dir, space_names[i], name, sizeof(name));
		const char *number = n > 0 ? memchr(name, '[', (size_t)n) : NULL;

		if (number)
			r->own[i] = to_number(
				(struct sv){ number + 1, (size_t)(name + n - number - 1) });
	}
}

static void compare_spaces(const struct session *s, const struct engine_probed *p,
			   struct readback *r)
{
	for (size_t i = 0; i < ENGINE_SPACES && engine_view(s)->own_mounts; i++) {
		char name[32];

		snprintf(name, sizeof(name), "ns-%s", space_names[i]);
		row(r, space_of[i], name, "own",
		    !p->spaces[i] || !r->own[i] ? SV("?")
		    : p->spaces[i] == r->own[i] ? SV("shared")
						: SV("own"));
		snprintf(r->spaces[i], sizeof(r->spaces[i]), "%s %llu", space_names[i],
			 (unsigned long long)p->spaces[i]);
	}
}

void readback_sealed(const struct session *s, struct readback *r)
{
	struct buf b = BUF_INIT(PROC_MAX);

	*r = (struct readback){ .n = 0 };
	read_own_spaces(s, r);
	read_ids(s, engine_init_pid(s), &b, r);
	read_mounts(s, engine_init_pid(s), &b, r);
	read_cgroup(s, engine_init_pid(s), &b, r);
	buf_clear(&b);
}

void readback_take(const struct session *s, pid_t pid, const struct engine_probed *p,
		   struct readback *r)
{
	struct buf b = BUF_INIT(PROC_MAX);

	compare_spaces(s, p, r);
	if (engine_view(s)->landlock)
		row(r, ENGINE_FILESYSTEM, "landlock", "restricted",
		    p->landlock ? SV("restricted") : SV("no"));
	read_status(s, pid, &b, r);
	read_rlimits(s, pid, r);
	buf_clear(&b);
}

/* --- the conditions under which the session begins --- */

static void describe_boot(struct entry *e)
{
	struct buf b = BUF_INIT(64);

	if (read_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", &b) && b.n)
		record_str(e, "boot", sv_sub(buf_view(&b), 0, b.n - 1));
	buf_clear(&b);
}

void probes_describe(const struct session *s, struct entry *e)
{
	static const char *const where[] = { "host", "container", "vm", "wsl1", "wsl2" };
	const struct plan *p = s->opt->plan;
	const struct host_facts *f = p->facts;
	struct digest prober;

	memcpy(prober.b, p->engine->prober, sizeof(prober.b));
	record_str(e, "tier", sv_from(plan_tier_name(p->tier)));
	record_str(e, "adapter", sv_from(p->engine->name));
	record_str(e, "kernel", sv_from(f->kernel));
	record_num(e, "landlock", (int64_t)f->landlock_abi);
	record_put_digests(s, e);
	entry_digest(e, "prober", &prober);
	record_num(e, "uid", geteuid());
	record_num(e, "gid", getegid());
	record_str(e, "nesting", sv_from(f->where < ARRAY_LEN(where) ? where[f->where] : "?"));
	entry_bool(e, "sandboxed", f->sandboxed);
	record_num(e, "yama", (int64_t)f->yama);
	entry_bool(e, "userns", f->ns_user);
	record_put_durability(s, e);
	record_num(e, "uptime_ms", (int64_t)clock_boot_ms());
	/* "partial": operations that only the kernel refuses are not observed. */
	record_str(e, "observability",
		   engine_view(s)->traps && engine_view(s)->read_roots.n ? SV("full")
									 : SV("partial"));
	describe_boot(e);
}
