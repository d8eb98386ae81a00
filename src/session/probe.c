#include "session/session_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attest/judge.h"

#include "base/banned.h"

/*
 * What was tried inside is compared with what stands outside and written down, and so is
 * what the kernel says. Which boundary held is not decided here but by whoever reads it
 * (attest/judge.h). The one decision made here: nothing runs behind a boundary that was
 * just seen open.
 */

/* What is tried is named as whoever judges it names it. */
static const char *name_of(enum host_boundary b)
{
	_Static_assert((int)HOST_FILESYSTEM == (int)BOUNDARY_FILESYSTEM &&
			       (int)HOST_NETWORK == (int)BOUNDARY_NETWORK &&
			       (int)HOST_PROCESS == (int)BOUNDARY_PROCESS &&
			       (int)HOST_RESOURCES == (int)BOUNDARY_RESOURCES &&
			       (int)HOST_CREDENTIALS == (int)BOUNDARY_CREDENTIALS &&
			       (int)HOST_BOUNDARIES == (int)BOUNDARIES,
		       "both name the same boundaries");
	return boundary_name((enum boundary)(int)b);
}

/* What of the plan a boundary is made of. */
static const uint32_t boundary_of[HOST_BOUNDARIES] = {
	[HOST_FILESYSTEM] = 1u << G_FS_READ | 1u << G_FS_WRITE | 1u << G_FS_METADATA,
	[HOST_NETWORK] = 1u << G_NET | 1u << G_DNS,
	[HOST_PROCESS] = 1u << G_IPC | 1u << G_PROC_SEE | 1u << G_PROC_SIGNAL | 1u << G_EXEC |
			 1u << G_SYSCALL,
	[HOST_RESOURCES] = 1u << G_RES_MEMORY | 1u << G_RES_CPU | 1u << G_RES_PIDS |
			   1u << G_RES_DISK | 1u << G_RES_TIME | 1u << G_RES_OUTPUT,
	[HOST_CREDENTIALS] = 1u << G_CRED,
};

enum { TEXT_MAX = 16384, NONCE = 16 };

/* --- bait --- */

static int bait_listener(struct session *s)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t n = sizeof(at);
	scoped_fd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	/* A port of its own; nobody can come in until the first command is made. */
	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, n) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &n) < 0)
		return -1;
	s->probing.bait.port = ntohs(at.sin_port);
	return take_fd(&fd);
}

int probe_open(struct session *s, struct writ_err *err)
{
	struct host_bait *b = &s->probing.bait;
	const char *record =
		arena_fmt(s->a, SV_FMT "/sessions/%s.jsonl", SV_ARG(s->opt->state), s->id);
	int r = record ? crypto_random(b->nonce, sizeof(b->nonce), err) : writ_nomem(err);

	if (r < 0)
		return r;
	b->record = sv_from(record);
	b->person = s->opt->home;
	b->cgroup = s->cgroup.n ? sv_from(s->cgroup.dir[0].path) : SV("");
	b->pid = getpid();
	/* Where nobody can listen there is one probe less, and that is on record. */
	s->probing.listener = bait_listener(s);
	return 0;
}

static void bait_away(struct session *s)
{
	scope_close(&s->probing.listener);
	s->probing.listener = -1;
}

/* Did a probe arrive? Others may knock there, and say nothing that we know. */
static bool bait_taken(const struct session *s)
{
	struct pollfd p = { .fd = s->probing.listener, .events = POLLIN };
	bool taken = false;

	/* Mostly nobody is there: to accept nobody takes longer than to ask. */
	for (int i = 0; i < 8 && p.fd >= 0 && poll(&p, 1, 0) != 0; i++) {
		scoped_fd fd = accept4(s->probing.listener, NULL, NULL, SOCK_CLOEXEC);
		char said[NONCE];

		if (fd < 0)
			break;
		taken |= recv(fd, said, sizeof(said), MSG_DONTWAIT | MSG_WAITALL) == NONCE &&
			 memcmp(said, s->probing.bait.nonce, NONCE) == 0;
	}
	return taken;
}

/* --- one probe, as a line for the record --- */

/* Errors that say nothing about the boundary get no name of their own. */
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

/* The kernel looked at what it was given: the call was not refused as such. */
static bool is_reached(int error)
{
	return error == 0 || error == EINVAL || error == EFAULT || error == EBADF;
}

struct seen {
	const char *got, *outside;
	bool open;
};

static struct seen look(const struct session *s, const struct host_probe *p,
			const struct jail_probe_result *r, bool taken)
{
	struct seen v = { .got = r->error ? error_name(r->error) : "ok", .outside = "-" };
	struct stat st;
	bool same = true;

	if (p->canary) {
		v.outside = taken ? "touched" : s->probing.listener >= 0 ? "there" : "gone";
	} else if (p->outside) {
		const bool there = stat(p->path.p, &st) == 0;

		v.outside = there ? "there" : "gone";
		/* In a root of its own, what was opened need not be what was there. */
		same = there ? st.st_dev == r->dev && st.st_ino == r->ino : !s->view.own_mounts;
	}
	if (p->identity && r->error == 0 && !same)
		v.got = "other";
	v.open = !p->works &&
		 ((p->canary && taken) || (is_reached(r->error) && strcmp(v.got, "other") != 0));
	return v;
}

static void note_hole(struct session *s, enum host_boundary b, const char *name, const char *how)
{
	if (s->probing.open)
		return;
	s->probing.open = true;
	(void)!writ_fail(&s->probing.err, WRIT_E_SYS, 0, "the %s boundary does not hold: %s %s",
			 name_of(b), name, how);
}

/* A list for entry_list(), its strings behind each other in @room. */
struct lines {
	char *v[JAIL_PROBES_MAX + 1];
	char room[JAIL_PROBES_MAX][80];
	size_t n;
};

printf_like(2, 3) static void line(struct lines *l, const char *fmt, ...)
{
	va_list args;

	if (l->n == JAIL_PROBES_MAX)
		return;
	va_start(args, fmt);
	(void)vsnprintf(l->room[l->n], sizeof(l->room[0]), fmt, args);
	va_end(args);
	l->v[l->n] = l->room[l->n];
	l->v[++l->n] = NULL;
}

static void record_probed(struct session *s, enum host_boundary b, bool end,
			  const struct jail_probed *p, bool taken)
{
	struct lines tried = { .n = 0 };
	struct entry e = { 0 };

	for (size_t i = 0; i < s->view.probes.n && i < p->n; i++) {
		const struct host_probe *probe = &s->view.probes.v[i];
		struct seen seen;

		if (probe->boundary != b || (end && probe->once))
			continue;
		seen = look(s, probe, &p->of[i], taken);
		line(&tried, "%s %s %s %s", probe->name, probe->works ? "works" : "refused",
		     seen.got, seen.outside);
		if (seen.open)
			note_hole(s, b, probe->name, "worked inside");
	}
	record_begin(s, &e, "probed");
	record_str(&e, "boundary", sv_from(name_of(b)));
	record_str(&e, "phase", end ? SV("end") : SV("start"));
	entry_list(&e, "probes", tried.v, TEXT_MAX);
	record_num(&e, "known", s->view.probes_known[b]);
	record_end(s, &e);
}

/* --- what was applied --- */

static void list_guarantees(const struct session *s, enum host_boundary b, struct lines ret[3],
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

static void record_applied(struct session *s, enum host_boundary b, const struct readback *r)
{
	struct lines of[3] = { { .n = 0 } }, read = { .n = 0 }, said = { .n = 0 };
	struct entry e = { 0 };
	enum level level;

	list_guarantees(s, b, of, &level);
	for (size_t i = 0; i < r->n; i++) {
		const struct readback_row *row = &r->rows[i];

		if (row->boundary != b)
			continue;
		line(row->said ? &said : &read, "%s", row->text);
		if (row->read && !row->agrees)
			note_hole(s, b, row->text, "(wanted and found)");
	}
	record_begin(s, &e, "applied");
	record_str(&e, "boundary", sv_from(name_of(b)));
	record_str(&e, "level", sv_from(level_name(level)));
	entry_list(&e, "none", of[0].v, TEXT_MAX);
	entry_list(&e, "partial", of[1].v, TEXT_MAX);
	entry_list(&e, "unasked", of[2].v, TEXT_MAX);
	entry_list(&e, "read_back", read.v, TEXT_MAX);
	entry_list(&e, "said", said.v, TEXT_MAX);
	if (b == HOST_FILESYSTEM && r->mounts_known)
		entry_digest(&e, "mounts", &r->mounts);
	if (b == HOST_CREDENTIALS)
		entry_digest(&e, "environment", &s->probing.names);
	record_end(s, &e);
}

static void record_release(struct session *s, uint32_t id, const struct readback *r)
{
	char *spaces[JAIL_SPACES + 1] = { NULL }, *where[JAIL_PROBES_MAX + 1] = { NULL };
	struct entry e = { 0 };
	size_t n = 0, k = 0;

	for (size_t i = 0; i < JAIL_SPACES; i++)
		if (r->spaces[i][0])
			spaces[n++] = (char *)(uintptr_t)r->spaces[i];
	record_begin(s, &e, "release");
	record_num(&e, "command", id);
	entry_list(&e, "namespaces", spaces, TEXT_MAX);
	/* What the probes of files were about, in their order. */
	for (size_t i = 0; i < s->view.probes.n; i++)
		if (s->view.probes.v[i].path.n)
			where[k++] = (char *)(uintptr_t)s->view.probes.v[i].path.p;
	entry_list(&e, "objects", where, TEXT_MAX);
	entry_hide(&e);
	record_end(s, &e);
}

/* --- the first command waits for us --- */

int probe_gate(struct session *s, uint32_t id, int *ret_fd, struct writ_err *err)
{
	struct probing *p = &s->probing;
	int ends[2];

	if (p->released)
		return 0;
	if (p->listener >= 0 && listen(p->listener, 4) < 0)
		bait_away(s);
	if (p->gates_n == GATES_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "too many commands before the first runs");
	/* Who answers its exec lets it go; that is us, or whom we give that to. */
	if (s->view.traps) {
		p->gates[p->gates_n++] = (struct probe_gate){ .id = id, .fd = -1 };
		return 0;
	}
	if (pipe2(ends, O_CLOEXEC) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "pipe");
	p->gates[p->gates_n++] = (struct probe_gate){ .id = id, .fd = ends[1] };
	*ret_fd = ends[0];
	return 0;
}

static struct probe_gate *gate_of(struct session *s, uint32_t id)
{
	for (size_t i = 0; i < s->probing.gates_n; i++)
		if (s->probing.gates[i].id == id)
			return &s->probing.gates[i];
	return NULL;
}

void probe_shut(struct session *s, uint32_t id)
{
	struct probe_gate *g = gate_of(s, id);

	if (!g)
		return;
	scope_close(&g->fd);
	*g = s->probing.gates[--s->probing.gates_n];
	/* What it tried may have waited to be written with what was still to come. */
	record_flush(s);
}

static void let_go(struct session *s, const struct probe_gate *g)
{
	if (g->fd >= 0 && !s->log_failed)
		(void)!write(g->fd, "g", 1);
	probe_shut(s, g->id);
}

/* It does not go on, and nothing else does. */
static void refuse(struct session *s, uint32_t id, const struct writ_err *why)
{
	record_flush(s);
	s->err = *why;
	s->failed = true;
	s->failed_step = STEP_SEALED;
	probe_shut(s, id);
	session_end(s, NULL, SESSION_FAILED);
}

/* SECURITY: it hears that it may go on when the record says what it goes on under. */
static void release(struct session *s, struct probe_gate *g)
{
	const struct jail_probed *p = &s->probing.start;
	const uint32_t id = g->id;
	struct readback *r = &s->probing.read;
	struct writ_err err = { 0 };

	if (s->probing.released) {
		let_go(s, g);
		return;
	}
	readback_take(s, g->pid, p, r);
	for (enum host_boundary b = 0; b < HOST_BOUNDARIES; b++)
		record_applied(s, b, r);
	if (s->probing.open && probe_refuses()) {
		refuse(s, id, &s->probing.err);
		return;
	}
	if (token_spend(s, &err) < 0) {
		refuse(s, id, &err);
		return;
	}
	record_release(s, id, r);
	/* Before it goes on: what was gathered is written. */
	record_flush(s);
	s->probing.released = true;
	/* A session listens on nothing of the host. */
	bait_away(s);
	let_go(s, g);
}

static void hear_end(struct session *s, const struct jail_probed *p)
{
	const bool taken = bait_taken(s), before = s->probing.open;

	/* Nothing but pid 1 is alive; what is still to come is how it ended. */
	if (s->state < SESSION_ENDING) {
		s->state = SESSION_ENDING;
		s->killed_ms = clock_ms();
	}
	record_gather(s);
	for (enum host_boundary b = 0; b < HOST_BOUNDARIES; b++)
		record_probed(s, b, true, p, taken);
	record_flush(s);
	if (s->probing.open && !before)
		say(s, "%s (tried at the end)", s->probing.err.what);
}

void probe_heard(struct session *s, const struct jail_message *m, const struct jail_probed *p,
		 pid_t pid)
{
	struct probe_gate *g = gate_of(s, m->id);

	if (m->value == JAIL_PHASE_END) {
		hear_end(s, p);
		return;
	}
	if (!g || s->state != SESSION_RUNNING)
		return;
	g->pid = pid;
	/* Others that come before that is known wait as well; it is on record once. */
	if (!s->probing.tried) {
		const bool taken = bait_taken(s);

		s->probing.tried = true;
		s->probing.start = *p;
		record_gather(s);
		for (enum host_boundary b = 0; b < HOST_BOUNDARIES; b++)
			record_probed(s, b, false, p, taken);
	}
	if (!s->view.traps)
		release(s, g);
}

void probe_listener(struct session *s, uint32_t id)
{
	struct probe_gate *g = gate_of(s, id);

	if (g && g->pid > 0 && s->state == SESSION_RUNNING)
		release(s, g);
}

void probe_clear(struct session *s)
{
	while (s->probing.gates_n)
		probe_shut(s, s->probing.gates[0].id);
	bait_away(s);
}
