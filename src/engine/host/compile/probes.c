#include "compile/compile_priv.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

/*
 * The policy and the tier decide which probes writ-init runs: only attempts that the plan says must
 * fail, and controls that must succeed. Probes run before the mediator answers its first call, so
 * the list leaves out an attempt that only the mediator would refuse. The report counts such an
 * attempt as known and not tried.
 */

/* Highest pid that a process of the session may have when the probes run. */
enum { PIDS_INSIDE = 16 };

struct row {
	enum engine_boundary boundary;
	const char *name;
	bool works, identity, outside, canary, once;
	bool here; /* this session runs the probe */
	struct sv path;
	struct jail_probe try;
};

static int put(struct compile *c, const struct row *r)
{
	struct engine_probe *p;

	c->view->probes_known[r->boundary] += !r->works;
	if (!r->here || c->view->probes.n >= JAIL_PROBES_MAX)
		return 0;
	p = vec_push(c->a, &c->view->probes);
	if (!p || !jail_put_probe(&c->w, &r->try, r->path))
		return writ_nomem(c->err);
	*p = (struct engine_probe){ .boundary = r->boundary,
				    .name = r->name,
				    .works = r->works,
				    .identity = r->identity,
				    .outside = r->outside,
				    .canary = r->canary,
				    .once = r->once,
				    .path = r->path };
	return 0;
}

static int put_rows(struct compile *c, const struct row *v, size_t n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = put(c, &v[i]);
	return r;
}

/* --- files --- */

/* Does a grant of the policy cover @path? */
static bool granted(const struct compile *c, struct sv path)
{
	for (size_t i = 0; i < c->roots.n; i++)
		if (compile_path_below(path, c->roots.v[i].path))
			return true;
	return false;
}

/* Does a grant of the policy allow writing @path or anything below @path? */
static bool grants_write(const struct compile *c, struct sv path)
{
	for (size_t i = 0; i < c->roots.n; i++)
		if (c->roots.v[i].write && (compile_path_below(path, c->roots.v[i].path) ||
					    compile_path_below(c->roots.v[i].path, path)))
			return true;
	return false;
}

/*
 * Does a mount namespace or Landlock close @path? The mediator does not count, because the mediator
 * answers no call while the probes run.
 */
static bool is_shut(const struct compile *c, const struct jail_head *head, struct sv path)
{
	return c->a_tier || (head->flags & JAIL_LANDLOCK && !granted(c, path));
}

static struct sv parent_of(struct sv path)
{
	size_t n = path.n;

	while (n > 1 && path.p[n - 1] != '/')
		n--;
	return sv_sub(path, 0, n > 1 ? n - 1 : 1);
}

/*
 * Finds the nearest directory above the workspace that no rule grants; *@ret is empty if there is
 * none.
 */
static int neighbour(struct compile *c, struct sv *ret)
{
	struct sv at = c->place->workspace;

	*ret = SV("");
	while (at.n > 1) {
		at = parent_of(at);
		if (!granted(c, at))
			return arena_sv(c->a, at, ret) ? 0 : writ_nomem(c->err);
	}
	return 0;
}

static bool is_there(const char *path)
{
	struct stat st;

	return path && lstat(path, &st) == 0 && (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode));
}

/*
 * Finds the first existing file or directory in a granted tree that a rule without a pattern denies
 * reading; *@ret is empty if there is none.
 */
static int denied_path(struct compile *c, struct sv *ret)
{
	*ret = SV("");
	for (size_t i = 0; i < c->set->nots.n && ret->n == 0; i++) {
		scoped_buf b = BUF_INIT(JAIL_PATH);

		if (compile_denied_path(&c->set->nots.v[i].cap, &b) &&
		    compile_shows(c, buf_view(&b)) && is_there(b.p) &&
		    !arena_sv(c->a, buf_view(&b), ret))
			return writ_nomem(c->err);
	}
	return 0;
}

static bool workspace_is(const struct compile *c, bool writable)
{
	const struct sv top = c->place->workspace;

	for (size_t i = 0; i < c->roots.n && top.n; i++)
		if (c->roots.v[i].whole && sv_eq(c->roots.v[i].path, top) && !c->roots.v[i].by_name)
			return !writable || c->roots.v[i].write;
	return false;
}

/*
 * Finds a file in the workspace that the user can write and the agent can write only through the
 * mediator; *@ret is empty if there is none. Looks at the first names in the workspace only,
 * because the workspace may be large.
 */
static int writable_file(struct compile *c, struct sv *ret)
{
	scoped_list *d = c->mediate && workspace_is(c, true) ? opendir(c->place->workspace.p)
								 : NULL;
	const struct dirent *e;
	const char *path = "";

	for (int i = 0; d && i < 32 && (e = readdir(d)); i++)
		if (e->d_type == DT_REG && faccessat(dirfd(d), e->d_name, W_OK, AT_EACCESS) == 0) {
			path = arena_fmt(c->a, SV_FMT "/%s", SV_ARG(c->place->workspace),
					 e->d_name);
			break;
		}
	*ret = sv_from(path ? path : "");
	return path ? 0 : writ_nomem(c->err);
}

#define OPEN(flags)                                                                                \
	{                                                                                          \
		.op = JAIL_PROBE_OPEN, .arg = {(flags) | O_NOCTTY | O_NONBLOCK }                   \
	}

static int put_files(struct compile *c, const struct jail_head *head)
{
	const struct engine_bait *bait = c->place->bait;
	const bool locked = (head->flags & JAIL_LANDLOCK) != 0;
	struct sv above, denied, writable;
	int r = neighbour(c, &above);

	if (r == 0)
		r = denied_path(c, &denied);
	if (r == 0)
		r = writable_file(c, &writable);
	if (r < 0)
		return r;
	/* clang-format off */
	const struct row rows[] = {
		{ ENGINE_FILESYSTEM, "outside.read",  .outside = true, .identity = true, .here = is_shut(c, head, bait->record),
		  .path = bait->record, .try = OPEN(O_RDONLY) },
		{ ENGINE_FILESYSTEM, "outside.write", .outside = true, .identity = true, .here = is_shut(c, head, bait->record),
		  .path = bait->record, .try = OPEN(O_WRONLY | O_APPEND) },
		{ ENGINE_FILESYSTEM, "root.read",     .outside = true, .identity = true,
		  .here = is_shut(c, head, SV("/")) && !granted(c, SV("/")), .path = SV("/"), .try = OPEN(O_RDONLY | O_DIRECTORY) },
		{ ENGINE_FILESYSTEM, "neighbour.read", .outside = true, .identity = true,
		  .here = above.n > 1 && is_shut(c, head, above), .path = above, .try = OPEN(O_RDONLY | O_DIRECTORY) },
		/*
		 * With mediation only the mediator writes to the workspace. Landlock must refuse a
		 * write that does not go through the mediator.
		 */
		{ ENGINE_FILESYSTEM, "write.unmediated", .outside = true, .once = true, .here = locked && writable.n,
		  .path = writable, .try = OPEN(O_WRONLY) },
		{ ENGINE_FILESYSTEM, "denied.read",   .outside = true, .identity = true, .here = c->a_tier && denied.n,
		  .path = denied, .try = OPEN(O_RDONLY) },
		{ ENGINE_FILESYSTEM, "base.write",    .here = c->a_tier && !grants_write(c, SV("/usr")) && access("/usr", W_OK) == 0,
		  .path = SV("/usr"), .try = OPEN(O_WRONLY | O_TMPFILE) },
		{ ENGINE_FILESYSTEM, "tmp.read",      .works = true, .here = true,
		  .path = c->view->tmp, .try = OPEN(O_RDONLY | O_DIRECTORY) },
		{ ENGINE_FILESYSTEM, "workspace.read", .works = true, .here = workspace_is(c, false),
		  .path = c->place->workspace, .try = OPEN(O_RDONLY | O_DIRECTORY) },
	};
	/* clang-format on */
	return put_rows(c, rows, ARRAY_LEN(rows));
}

/* --- network --- */

/*
 * Returns a port that no rule opens, and an address that stands for an allowed name; 0 if there is
 * none.
 */
static uint16_t next_port(const struct compile *c, uint32_t *ret_address)
{
	for (size_t i = 0; c->a_tier && i < c->view->listeners.n; i++) {
		const struct reach_listener *l = &c->view->listeners.v[i];
		bool taken = l->v6 || l->what != REACH_HOST || l->port == UINT16_MAX;

		for (size_t k = 0; k < c->view->listeners.n && !taken; k++)
			taken = c->view->listeners.v[k].port == l->port + 1;
		if (taken)
			continue;
		*ret_address = (uint32_t)l->addr[0] << 24 | (uint32_t)l->addr[1] << 16 |
			       (uint32_t)l->addr[2] << 8 | l->addr[3];
		return (uint16_t)(l->port + 1);
	}
	return 0;
}

/*
 * Does the jail listen on @port? A rule may open a port of the host by name; then the jail has a
 * listener for that port.
 */
static bool is_opened(const struct compile *c, uint16_t port)
{
	for (size_t i = 0; i < c->view->listeners.n; i++)
		if (c->view->listeners.v[i].port == port)
			return true;
	return false;
}

static int put_net(struct compile *c, const struct jail_head *head)
{
	const struct engine_bait *bait = c->place->bait;
	const bool tcp = c->a_tier || (head->landlock_net & 2 && head->flags & JAIL_LANDLOCK);
	uint32_t address = 0;
	const uint16_t next = next_port(c, &address);
	/* clang-format off */
	const struct row rows[] = {
		{ ENGINE_NETWORK, "loopback.connect", .outside = true, .canary = true, .once = true, .here = tcp && bait->port && !is_opened(c, bait->port),
		  .try = { JAIL_PROBE_CONNECT, .number = SOCK_STREAM,
			   .arg = { INADDR_LOOPBACK, bait->port, bait->nonce[0], bait->nonce[1] } } },
		{ ENGINE_NETWORK, "namespace.net", .outside = true, .identity = true, .here = c->a_tier,
		  .path = SV("/proc/self/ns/net"), .try = OPEN(O_RDONLY) },
		/*
		 * A datagram connect to a documentation address (192.0.2.1): the probe sends no
		 * packet.
		 */
		{ ENGINE_NETWORK, "route.outside", .here = c->a_tier,
		  .try = { JAIL_PROBE_CONNECT, .number = SOCK_DGRAM, .arg = { 0xc0000201, 9 } } },
		{ ENGINE_NETWORK, "port.next", .here = next != 0,
		  .try = { JAIL_PROBE_CONNECT, .number = SOCK_STREAM, .arg = { address, next } } },
		{ ENGINE_NETWORK, "family.packet", .here = true, .try = { JAIL_PROBE_SOCKET, .arg = { AF_PACKET, SOCK_DGRAM } } },
		{ ENGINE_NETWORK, "family.vsock", .here = true, .try = { JAIL_PROBE_SOCKET, .arg = { AF_VSOCK, SOCK_STREAM } } },
		{ ENGINE_NETWORK, "raw", .here = true, .try = { JAIL_PROBE_SOCKET, .arg = { AF_INET, SOCK_RAW, IPPROTO_ICMP } } },
		{ ENGINE_NETWORK, "socket", .works = true, .here = true, .try = { JAIL_PROBE_SOCKET, .arg = { AF_INET, SOCK_STREAM } } },
		{ ENGINE_NETWORK, "loopback.own", .works = true, .here = c->a_tier,
		  .try = { JAIL_PROBE_CONNECT, .number = SOCK_DGRAM, .arg = { INADDR_LOOPBACK, 9 } } },
	};
	/* clang-format on */
	return put_rows(c, rows, ARRAY_LEN(rows));
}

/* --- processes and the kernel --- */

#define CALL(n, ...)                                                                               \
	{                                                                                          \
		JAIL_PROBE_CALL, .number = SYS_##n, .arg = { __VA_ARGS__ }                         \
	}

static int put_process(struct compile *c, const struct jail_head *head)
{
	const bool nested = cap_set_kernel(c->set, "nested-userns");
	const bool traces = cap_set_kernel(c->set, "ptrace-own");
	const int64_t pid = c->place->bait->pid;
	/* clang-format off */
	const struct row rows[] = {
		{ ENGINE_PROCESS, "signal.outside", .here = c->a_tier ? pid > PIDS_INSIDE : (head->landlock_scope & 2) != 0,
		  .try = CALL(kill, (uint64_t)pid, 0) },
		{ ENGINE_PROCESS, "unshare", .here = !nested, .try = CALL(unshare, CLONE_NEWUSER) },
		/*
		 * Capability 63 does not exist. The kernel reports that only to a process with the
		 * right to drop capabilities.
		 */
		{ ENGINE_PROCESS, "capability", .here = !nested, .try = CALL(prctl, 24 /* PR_CAPBSET_DROP */, 63) },
		{ ENGINE_PROCESS, "mount", .here = !nested, .try = CALL(mount, 0, 0, 0, 0) },
		{ ENGINE_PROCESS, "setns", .here = !nested, .try = CALL(setns, (uint64_t)-1, 0) },
		/*
		 * The ptrace options are invalid, so the kernel would attach to no process even if
		 * the filter allowed the call.
		 */
		{ ENGINE_PROCESS, "ptrace", .here = !traces, .try = CALL(ptrace, 0x4206 /* PTRACE_SEIZE */, 1, 0, (uint64_t)-1) },
		{ ENGINE_PROCESS, "memory.read", .here = !traces, .try = CALL(process_vm_readv, 1, 0, 0, 0) },
		{ ENGINE_PROCESS, "bpf", .here = true, .try = CALL(bpf, 0x7fff, 0, 0) },
		{ ENGINE_PROCESS, "perf", .here = true, .try = CALL(perf_event_open, 0, 0, (uint64_t)-1, (uint64_t)-1) },
		{ ENGINE_PROCESS, "keyring", .here = true, .try = CALL(keyctl, 0 /* GET_KEYRING_ID */, (uint64_t)-3, 0) },
		{ ENGINE_PROCESS, "userfaultfd", .here = true, .try = CALL(userfaultfd, 0x7fff) },
		{ ENGINE_PROCESS, "io_uring", .here = !cap_set_kernel(c->set, "io_uring"), .try = CALL(io_uring_setup, 1, 0) },
		{ ENGINE_PROCESS, "module", .here = true, .try = CALL(init_module, 0, 0, 0) },
		{ ENGINE_PROCESS, "sysctl.write", .here = c->a_tier || (head->flags & JAIL_LANDLOCK) != 0,
		  .path = SV("/proc/sys/kernel/core_pattern"), .try = OPEN(O_WRONLY) },
		{ ENGINE_PROCESS, "signal.own", .works = true, .here = true, .try = CALL(kill, 0, 0) },
	};
	/* clang-format on */
	return put_rows(c, rows, ARRAY_LEN(rows));
}

/* --- resources --- */

static const char *rlimit_name(uint32_t resource)
{
	return resource == RLIMIT_CORE	       ? "rlimit.core"
	       : resource == RLIMIT_NOFILE     ? "rlimit.files"
	       : resource == RLIMIT_DATA       ? "rlimit.data"
	       : resource == RLIMIT_NPROC      ? "rlimit.processes"
	       : resource == RLIMIT_SIGPENDING ? "rlimit.signals"
					       : "rlimit.other";
}

static int put_resources(struct compile *c, const struct jail_head *head)
{
	const char *limit = c->place->cgroup.n ? arena_fmt(c->a, SV_FMT "/cgroup.procs",
							   SV_ARG(c->place->cgroup))
						     : "";
	const struct row fixed[] = {
		{ ENGINE_RESOURCES, "cgroup.write", .identity = true,
		  .here = limit && *limit && (c->a_tier || head->flags & JAIL_LANDLOCK),
		  .path = sv_from(limit ? limit : ""), .try = OPEN(O_WRONLY) },
		{ ENGINE_RESOURCES, "limits.read", .works = true, .here = true,
		  .try = CALL(getpriority, PRIO_PROCESS, 0) },
	};
	int r = limit ? put_rows(c, fixed, ARRAY_LEN(fixed)) : writ_nomem(c->err);

	for (size_t i = 0; r == 0 && i < c->view->rlimits.n; i++) {
		const struct engine_rlimit *l = &c->view->rlimits.v[i];
		const struct row row = { ENGINE_RESOURCES, rlimit_name(l->resource),
					 .here = l->value < UINT64_MAX / 2,
					 .try = { JAIL_PROBE_RLIMIT,
						  .arg = { l->resource, l->value } } };

		r = put(c, &row);
	}
	return r;
}

/* --- credentials --- */

/*
 * Probes the first existing file or directory in the user's HOME that holds credentials for other
 * systems and that no rule grants.
 */
static int put_persons(struct compile *c, const struct jail_head *head)
{
	static const char *const names[] = { ".ssh", ".aws", ".netrc", ".gnupg", ".config/gh" };
	const struct sv home = c->place->bait->person;
	struct row row = { ENGINE_CREDENTIALS, "person.read", .outside = true, .identity = true,
			   .try = OPEN(O_RDONLY) };

	for (size_t i = 0; i < ARRAY_LEN(names) && home.n && !row.here; i++) {
		const char *path = arena_fmt(c->a, SV_FMT "/%s", SV_ARG(home), names[i]);

		if (!path)
			return writ_nomem(c->err);
		row.path = sv_from(path);
		row.here =
			is_there(path) && !granted(c, row.path) && is_shut(c, head, row.path);
	}
	return put(c, &row);
}

static int put_credentials(struct compile *c, const struct jail_head *head)
{
	const bool closed = is_shut(c, head, c->place->own[0]);
	const char *keys = arena_fmt(c->a, SV_FMT "/keys", SV_ARG(c->place->own[0]));
	/* clang-format off */
	const struct row rows[] = {
		{ ENGINE_CREDENTIALS, "state.read", .outside = true, .identity = true, .here = closed,
		  .path = c->place->own[0], .try = OPEN(O_RDONLY | O_DIRECTORY) },
		{ ENGINE_CREDENTIALS, "keys.read", .outside = true, .identity = true, .here = closed && is_there(keys),
		  .path = sv_from(keys ? keys : ""), .try = OPEN(O_RDONLY | O_DIRECTORY) },
		{ ENGINE_CREDENTIALS, "policies.read", .outside = true, .identity = true,
		  .here = c->place->own[1].n && is_shut(c, head, c->place->own[1]) && is_there(c->place->own[1].p),
		  .path = c->place->own[1], .try = OPEN(O_RDONLY | O_DIRECTORY) },
		{ ENGINE_CREDENTIALS, "descriptors.inherited", .here = true, .try = { JAIL_PROBE_INHERITED } },
		{ ENGINE_CREDENTIALS, "home.own", .works = true, .here = true,
		  .path = c->view->home, .try = OPEN(O_RDONLY | O_DIRECTORY) },
	};
	/* clang-format on */
	const int r = keys ? put_rows(c, rows, ARRAY_LEN(rows)) : writ_nomem(c->err);

	return r < 0 ? r : put_persons(c, head);
}

int compile_probes_put(struct compile *c, const struct jail_head *head)
{
	/*
	 * Put the process probes last. If one of these attempts succeeds, the process may have
	 * changed, and no probe after it would show the state of the jail.
	 */
	static int (*const put_part[])(struct compile *, const struct jail_head *) = {
		put_files, put_net, put_resources, put_credentials, put_process
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(put_part); i++)
		r = put_part[i](c, head);
	return r;
}
