#include "parts/probe_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attest/judge.h"
#include "base/fd.h"
#include "parts/engine.h"
#include "parts/notice.h"
#include "parts/record.h"
#include "parts/tokens.h"

#include "base/banned.h"

/*
 * Compares results of probes with the state of the host, and records them together with the state
 * that the kernel reports. attest/judge.h decides from the record which boundary held. This file
 * makes one decision: no command runs behind a boundary that a probe has just found open.
 */

/* Returns the name of a boundary, as in attest/judge.h. */
static const char *name_of(enum engine_boundary b)
{
	_Static_assert((int)ENGINE_FILESYSTEM == (int)BOUNDARY_FILESYSTEM &&
			       (int)ENGINE_NETWORK == (int)BOUNDARY_NETWORK &&
			       (int)ENGINE_PROCESS == (int)BOUNDARY_PROCESS &&
			       (int)ENGINE_RESOURCES == (int)BOUNDARY_RESOURCES &&
			       (int)ENGINE_CREDENTIALS == (int)BOUNDARY_CREDENTIALS &&
			       (int)ENGINE_BOUNDARIES == (int)BOUNDARIES,
		       "both name the same boundaries");
	return attest_boundary_name((enum boundary)(int)b);
}

/* The guarantees of the plan that make up each boundary. */
static const uint32_t boundary_of[ENGINE_BOUNDARIES] = {
	[ENGINE_FILESYSTEM] = 1u << G_FS_READ | 1u << G_FS_WRITE | 1u << G_FS_METADATA,
	[ENGINE_NETWORK] = 1u << G_NET | 1u << G_DNS,
	[ENGINE_PROCESS] = 1u << G_IPC | 1u << G_PROC_SEE | 1u << G_PROC_SIGNAL | 1u << G_EXEC |
			   1u << G_SYSCALL,
	[ENGINE_RESOURCES] = 1u << G_RES_MEMORY | 1u << G_RES_CPU | 1u << G_RES_PIDS |
			     1u << G_RES_DISK | 1u << G_RES_TIME | 1u << G_RES_OUTPUT,
	[ENGINE_CREDENTIALS] = 1u << G_CRED,
};

enum { TEXT_MAX = 16384, NONCE = 16 };

/* --- the conditions under which the session begins --- */

static void describe_boot(struct entry *e)
{
	scoped_buf b = BUF_INIT(64);
	struct writ_err err = { 0 };

	if (fd_read_file("/proc/sys/kernel/random/boot_id", &b, &err) == 0 && b.n)
		record_str(e, "boot", sv_sub(buf_view(&b), 0, b.n - 1));
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

/* --- the bait: a listener on the host that probes try to reach --- */

static int bait_listener(struct session *s)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t n = sizeof(at);
	scoped_fd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	/*
	 * The bait gets a port of its own, but listens only once the first command is made: until
	 * then no process can connect.
	 */
	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, n) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &n) < 0)
		return -1;
	probing_of(s)->bait.port = ntohs(at.sin_port);
	return fd_take(&fd);
}

const struct session_initial probes_initial = SESSION_INITIAL(struct probing, .listener = -1);

const struct engine_bait *probes_bait(const struct session *s)
{
	return &probing_of(s)->bait;
}

bool probes_released(const struct session *s)
{
	return probing_of(s)->released;
}

void probes_set_names(struct session *s, const struct digest *names)
{
	probing_of(s)->names = *names;
}

void probes_sealed(struct session *s)
{
	s->opt->plan->engine->readback(engine_run(s), 0, NULL, &probing_of(s)->read);
}

int probes_start(struct session *s, struct writ_err *err)
{
	struct engine_bait *b = &probing_of(s)->bait;
	const char *record =
		arena_fmt(s->a, SV_FMT "/sessions/%s.jsonl", SV_ARG(s->opt->state), s->id);
	int r = record ? crypto_random(b->nonce, sizeof(b->nonce), err) : writ_nomem(err);

	if (r < 0)
		return r;
	b->record = sv_from(record);
	b->person = s->opt->home;
	b->pid = getpid();
	/* If the bait cannot be bound, one probe fewer runs, and the record says so. */
	probing_of(s)->listener = bait_listener(s);
	return 0;
}

static void bait_away(struct session *s)
{
	fd_close(&probing_of(s)->listener);
}

/*
 * Returns whether a probe has reached the bait. Other processes may connect to the bait, but do not
 * send the nonce of the session.
 */
static bool bait_taken(const struct session *s)
{
	struct pollfd p = { .fd = probing_of(s)->listener, .events = POLLIN };
	bool taken = false;

	/* poll() before accept4(): mostly no connection is pending, and poll() is cheaper. */
	for (int i = 0; i < 8 && p.fd >= 0 && poll(&p, 1, 0) != 0; i++) {
		scoped_fd fd = accept4(probing_of(s)->listener, NULL, NULL, SOCK_CLOEXEC);
		char said[NONCE];

		if (fd < 0)
			break;
		taken |= recv(fd, said, sizeof(said), MSG_DONTWAIT | MSG_WAITALL) == NONCE &&
			 memcmp(said, probing_of(s)->bait.nonce, NONCE) == 0;
	}
	return taken;
}

/* --- one probe, as a line for the record --- */

/*
 * Returns the name of an error. Errors that tell nothing about a boundary are all named "failed".
 */
static const char *error_name(int error)
{
	/* clang-format off */
	static const struct { int error; const char *name; } names[] = {
		{ EPERM, "EPERM" }, { EACCES, "EACCES" }, { ENOENT, "ENOENT" }, { ENOSYS, "ENOSYS" },
		{ EROFS, "EROFS" }, { ESRCH, "ESRCH" }, { ENOTDIR, "ENOTDIR" }, { ENXIO, "ENXIO" },
		{ ECONNREFUSED, "ECONNREFUSED" }, { ENETUNREACH, "ENETUNREACH" },
		{ EHOSTUNREACH, "EHOSTUNREACH" }, { EAFNOSUPPORT, "EAFNOSUPPORT" },
		{ EPROTONOSUPPORT, "EPROTONOSUPPORT" }, { ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT" },
		{ EINVAL, "EINVAL" }, { EFAULT, "EFAULT" }, { EBADF, "EBADF" }, { EIO, "EIO" },
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i].error == error)
			return names[i].name;
	return "failed";
}

/*
 * Returns whether @error shows that the kernel looked at the arguments of the call, and so did not
 * refuse the call itself.
 */
static bool is_reached(int error)
{
	return error == 0 || error == EINVAL || error == EFAULT || error == EBADF;
}

struct seen {
	const char *got, *outside;
	bool open;
};

static struct seen look(const struct session *s, const struct engine_probe *p,
			const struct engine_probe_result *r, bool taken)
{
	struct seen v = { .got = r->error ? error_name(r->error) : "ok", .outside = "-" };
	struct stat st;
	bool same = true;

	if (p->canary) {
		v.outside = taken ? "touched" : probing_of(s)->listener >= 0 ? "there" : "gone";
	} else if (p->outside) {
		const bool there = stat(p->path.p, &st) == 0;

		v.outside = there ? "there" : "gone";
		/*
		 * A jail with its own root may have another file of the same name: compare device
		 * and inode.
		 */
		same = there ? st.st_dev == r->dev && st.st_ino == r->ino
			     : !engine_view(s)->own_mounts;
	}
	if (p->identity && r->error == 0 && !same)
		v.got = "other";
	v.open = !p->works &&
		 ((p->canary && taken) || (is_reached(r->error) && strcmp(v.got, "other") != 0));
	return v;
}

static void note_hole(struct session *s, enum engine_boundary b, const char *name, const char *how)
{
	if (probing_of(s)->open)
		return;
	probing_of(s)->open = true;
	(void)!writ_fail(&probing_of(s)->err, WRIT_E_SYS, 0, "the %s boundary does not hold: %s %s",
			 name_of(b), name, how);
}

/* A list for entry_list(), with its strings one after the other in @room. */
struct lines {
	char *v[ENGINE_PROBES_MAX + 1];
	char room[ENGINE_PROBES_MAX][80];
	size_t n;
};

printf_like(2, 3) static void line(struct lines *l, const char *fmt, ...)
{
	va_list args;

	if (l->n == ENGINE_PROBES_MAX)
		return;
	va_start(args, fmt);
	(void)vsnprintf(l->room[l->n], sizeof(l->room[0]), fmt, args);
	va_end(args);
	l->v[l->n] = l->room[l->n];
	l->v[++l->n] = NULL;
}

static void record_probed(struct session *s, enum engine_boundary b, bool end,
			  const struct engine_probed *p, bool taken)
{
	struct lines tried = { .n = 0 };
	struct entry e = record_begin("probed");

	for (size_t i = 0; i < engine_view(s)->probes.n && i < p->n; i++) {
		const struct engine_probe *probe = &engine_view(s)->probes.v[i];
		struct seen seen;

		if (probe->boundary != b || (end && probe->once))
			continue;
		seen = look(s, probe, &p->of[i], taken);
		line(&tried, "%s %s %s %s", probe->name, probe->works ? "works" : "refused",
		     seen.got, seen.outside);
		if (seen.open)
			note_hole(s, b, probe->name, "worked inside");
	}
	record_str(&e, "boundary", sv_from(name_of(b)));
	record_str(&e, "phase", end ? SV("end") : SV("start"));
	entry_list(&e, "probes", tried.v, TEXT_MAX);
	record_num(&e, "known", engine_view(s)->probes_known[b]);
	record_end(s, &e);
}

/* --- the state that the kernel reports --- */

static void list_guarantees(const struct session *s, enum engine_boundary b, struct lines ret[3],
			    enum level *ret_level)
{
	enum { NONE, PARTIAL, UNASKED };

	*ret_level = LEVEL_EXACT;
	for (enum guarantee g = 0; g < G_COUNT; g++) {
		const struct plan_guarantee *at = &s->opt->plan->guarantees[g];

		if (!(boundary_of[b] & 1u << g))
			continue;
		if (at->unasked) {
			line(&ret[UNASKED], "%s", guarantee_name(g));
			continue;
		}
		if (at->level <= LEVEL_PARTIAL)
			line(&ret[at->level == LEVEL_NONE ? NONE : PARTIAL], "%s",
			     guarantee_name(g));
		if (at->level < *ret_level)
			*ret_level = at->level;
	}
}

static void record_applied(struct session *s, enum engine_boundary b,
			   const struct engine_readback *r)
{
	struct lines of[3] = { { .n = 0 } }, read = { .n = 0 }, said = { .n = 0 };
	struct entry e = record_begin("applied");
	enum level level;

	list_guarantees(s, b, of, &level);
	for (size_t i = 0; i < r->n; i++) {
		const struct engine_readback_row *row = &r->rows[i];
		struct lines *to = row->said ? &said : &read;

		if (row->boundary != b)
			continue;
		line(to, "%s %s %s", row->name, row->want, row->found[0] ? row->found : "?");
		if (strcmp(row->found, "?") != 0 && strcmp(row->found, row->want) != 0)
			note_hole(s, b, to->v[to->n - 1], "(wanted and found)");
	}
	record_str(&e, "boundary", sv_from(name_of(b)));
	record_str(&e, "level", sv_from(level_name(level)));
	entry_list(&e, "none", of[0].v, TEXT_MAX);
	entry_list(&e, "partial", of[1].v, TEXT_MAX);
	entry_list(&e, "unasked", of[2].v, TEXT_MAX);
	entry_list(&e, "read_back", read.v, TEXT_MAX);
	entry_list(&e, "said", said.v, TEXT_MAX);
	if (b == ENGINE_FILESYSTEM && r->mounts_known)
		entry_digest(&e, "mounts", &r->mounts);
	if (b == ENGINE_CREDENTIALS)
		entry_digest(&e, "environment", &probing_of(s)->names);
	record_end(s, &e);
}

static void record_release(struct session *s, uint32_t id, const struct engine_readback *r)
{
	char *spaces[ENGINE_SPACES + 1] = { NULL }, *where[ENGINE_PROBES_MAX + 1] = { NULL };
	struct entry e = record_begin("release");
	size_t n = 0, k = 0;

	for (size_t i = 0; i < ENGINE_SPACES; i++)
		if (r->spaces[i][0])
			spaces[n++] = (char *)(uintptr_t)r->spaces[i];
	record_num(&e, "command", id);
	entry_list(&e, "namespaces", spaces, TEXT_MAX);
	/* Paths that the probes of files tried, in the order of the probes. */
	for (size_t i = 0; i < engine_view(s)->probes.n; i++)
		if (engine_view(s)->probes.v[i].path.n)
			where[k++] = (char *)(uintptr_t)engine_view(s)->probes.v[i].path.p;
	entry_list(&e, "objects", where, TEXT_MAX);
	entry_hide(&e);
	record_end(s, &e);
}

/* --- the first command waits for the supervisor --- */

int probes_gate(struct session *s, uint32_t id, int *ret_fd, struct writ_err *err)
{
	struct probing *p = probing_of(s);
	int ends[2];

	if (p->released)
		return 0;
	if (p->listener >= 0 && listen(p->listener, 4) < 0)
		bait_away(s);
	if (p->gates_n == GATES_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "too many commands before the first runs");
	/*
	 * If calls are mediated, no pipe is needed: the command waits in its exec until the
	 * supervisor or the mediator answers that call.
	 */
	if (engine_view(s)->traps) {
		p->gates[p->gates_n++] = (struct probes_gate){ .id = id, .fd = -1 };
		return 0;
	}
	if (pipe2(ends, O_CLOEXEC) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "pipe");
	p->gates[p->gates_n++] = (struct probes_gate){ .id = id, .fd = ends[1] };
	*ret_fd = ends[0];
	return 0;
}

static struct probes_gate *gate_of(struct session *s, uint32_t id)
{
	for (size_t i = 0; i < probing_of(s)->gates_n; i++)
		if (probing_of(s)->gates[i].id == id)
			return &probing_of(s)->gates[i];
	return NULL;
}

void probes_shut(struct session *s, uint32_t id)
{
	struct probes_gate *g = gate_of(s, id);

	if (!g)
		return;
	fd_scope_close(&g->fd);
	*g = probing_of(s)->gates[--probing_of(s)->gates_n];
	/*
	 * The results of the command's probes may be gathered with later entries: write them now.
	 */
	record_flush(s);
}

static void let_go(struct session *s, const struct probes_gate *g)
{
	if (g->fd >= 0 && !record_has_failed(s))
		(void)!write(g->fd, "g", 1);
	probes_shut(s, g->id);
}

/* Ends the session before the command runs. */
static void refuse(struct session *s, uint32_t id, const struct writ_err *why)
{
	record_flush(s);
	session_fail(s, why, ENGINE_STAGE_STEP, "verify");
	probes_shut(s, id);
	session_end(s, NULL, SESSION_FAILED);
}

/*
 * SECURITY: the first command is released only after the probe results and the state that the
 * kernel reports are on record.
 */
static void release(struct session *s, struct probes_gate *g)
{
	const struct engine_probed *p = &probing_of(s)->start;
	const uint32_t id = g->id;
	struct engine_readback *r = &probing_of(s)->read;
	struct writ_err err = { 0 };

	if (probing_of(s)->released) {
		let_go(s, g);
		return;
	}
	s->opt->plan->engine->readback(engine_run(s), g->pid, p, r);
	for (enum engine_boundary b = 0; b < ENGINE_BOUNDARIES; b++)
		record_applied(s, b, r);
	if (probing_of(s)->open && probes_refuses()) {
		refuse(s, id, &probing_of(s)->err);
		return;
	}
	if (tokens_spend(s, &err) < 0) {
		refuse(s, id, &err);
		return;
	}
	record_release(s, id, r);
	/* Write the gathered entries before the command goes on. */
	record_flush(s);
	probing_of(s)->released = true;
	/* Close the bait: a running session has no listener on the host. */
	bait_away(s);
	let_go(s, g);
}

static void hear_end(struct session *s, const struct engine_probed *p)
{
	const bool taken = bait_taken(s), before = probing_of(s)->open;

	/* Only pid 1 of the jail is alive, and has run its probes. */
	session_ending(s);
	record_gather(s);
	for (enum engine_boundary b = 0; b < ENGINE_BOUNDARIES; b++)
		record_probed(s, b, true, p, taken);
	record_flush(s);
	if (probing_of(s)->open && !before)
		notice_print(s, "%s (tried at the end)", probing_of(s)->err.what);
}

void probes_result(struct session *s, struct engine_event *e)
{
	const struct engine_probed *p = &e->probed;
	struct probes_gate *g = gate_of(s, e->id);

	if (e->value == ENGINE_PHASE_END) {
		hear_end(s, p);
		return;
	}
	if (!g || session_phase(s) != SESSION_RUNNING)
		return;
	g->pid = e->pid;
	/*
	 * Hold every command until the boundary probes of the first command have ended. Probe
	 * results are recorded once per session.
	 */
	if (!probing_of(s)->tried) {
		const bool taken = bait_taken(s);

		probing_of(s)->tried = true;
		probing_of(s)->start = *p;
		record_gather(s);
		for (enum engine_boundary b = 0; b < ENGINE_BOUNDARIES; b++)
			record_probed(s, b, false, p, taken);
	}
	if (!engine_view(s)->traps)
		release(s, g);
}

void probes_listener(struct session *s, uint32_t id)
{
	struct probes_gate *g = gate_of(s, id);

	if (g && g->pid > 0 && session_phase(s) == SESSION_RUNNING)
		release(s, g);
}

void probes_clear(struct session *s)
{
	while (probing_of(s)->gates_n)
		probes_shut(s, probing_of(s)->gates[0].id);
	bait_away(s);
}
