#include "host/host_priv.h"

#include <linux/mount.h>
#include <stdio.h>
#include <string.h>

#include "able/able.h"
#include "base/fd.h"
#include "compile/compile.h"
#include "mediate/mediate.h"

#include "base/banned.h"

_Static_assert((int)ENGINE_COMMAND_MAX == (int)JAIL_MAX && (int)ENGINE_PATH == (int)JAIL_PATH &&
		       (int)ENGINE_FDS_MAX == (int)JAIL_SOCKETS_MAX &&
		       (int)ENGINE_PROBES_MAX == (int)JAIL_PROBES_MAX &&
		       (int)ENGINE_GRANTS_MAX == (int)JAIL_GRANTS_MAX &&
		       (int)ENGINE_KILL_LED == (int)JAIL_KILL_LED,
	       "the interface has the limits of the protocol");

/* Updates the members of the handle that the session reads, from the jail and the cgroup. */
static void publish(struct host_run *h)
{
	h->run.started = h->jail.pid > 0;
	h->run.waits = h->jail.waits;
	h->run.limited = cgroup_used(&h->cgroup);
	h->run.scoped = h->cgroup.unit[0] != 0;
	h->run.init = h->jail.init;
	h->run.fd = h->jail.session;
	h->run.helper_fd = h->jail.keeper;
}

static int host_open(struct arena *a, struct engine_run **ret, struct writ_err *err)
{
	struct host_run *h = arena_new(a, struct host_run);

	if (!h)
		return writ_nomem(err);
	*h = (struct host_run){ .jail = JAIL_INIT, .program = -1 };
	publish(h);
	*ret = &h->run;
	return 0;
}

/* Lets a writ-init that waits start pid 1 in the cgroup. */
static void join(struct host_run *h)
{
	int dirs[CGROUP_DIRS];
	size_t unified;
	const size_t n = cgroup_doors(&h->cgroup, dirs, &unified);

	jail_join(&h->jail, dirs, n, unified);
}

static int host_prepare(struct engine_run *run, const struct engine_prepare *how,
			struct writ_err *err)
{
	struct host_run *h = host_of(run);
	const int r = jail_start(how->own_namespaces, how->fail_at, &h->jail, err);

	if (r == 0 && h->plan)
		join(h);
	publish(h);
	return r;
}

static int host_furnish(struct engine_run *run, struct arena *a, const struct host_facts *facts,
			struct sv user, const char *id, struct writ_err *err)
{
	const struct jail_message m = { .type = JAIL_PREPARE };
	struct host_run *h = host_of(run);
	scoped_fd program = -1;
	int r;

	if (h->jail.waits) {
		cgroup_begin(facts, id, &h->cgroup);
		/*
		 * The cgroup has no directory yet if systemd is to make it; then host_limit() calls
		 * join().
		 */
		if (h->cgroup.n)
			join(h);
		publish(h);
	}
	r = compile_early(a, facts, user, &program, err);
	/*
	 * Ignore a failure to send: if writ-init has failed, writ-init reports the reason when the
	 * session starts.
	 */
	if (r == 0 && jail_send(h->jail.session, &m, &program, 1, SV(""), err) == 0)
		h->jail.prepared = true;
	return r;
}

static int host_limit(struct engine_run *run, const struct plan *plan,
		      const uint64_t limits[LIMIT_COUNT], const char *id, struct writ_err *err)
{
	const struct host_facts *f = plan->facts;
	struct host_run *h = host_of(run);
	int r;

	if (f->cgroup_memory || plan_scope(plan, LIMIT_MEMORY))
		h->limits.memory = limits[LIMIT_MEMORY];
	if (f->cgroup_cpu || plan_scope(plan, LIMIT_CPU))
		h->limits.cpu = limits[LIMIT_CPU];
	if (f->cgroup_pids || plan_scope(plan, LIMIT_PIDS))
		h->limits.pids = limits[LIMIT_PIDS];
	snprintf(h->name, sizeof(h->name), "writ-%s", id);
	h->plan = plan;
	r = cgroup_go_on(f, &h->limits, id, &h->cgroup, err);
	if (r == 0)
		join(h);
	publish(h);
	return r;
}

static int host_compile(struct engine_run *run, struct arena *a, const struct plan *plan,
			const struct policy *policy, const struct engine_place *place,
			uint32_t fail_at, struct writ_err *err)
{
	struct host_run *h = host_of(run);
	struct engine_place with = *place;

	with.furnished = h->jail.prepared;
	with.cgroup = h->cgroup.n ? sv_from(h->cgroup.dir[0].path) : SV("");
	return compile_program(a, plan, policy, &with, fail_at, &run->view, &h->program, err);
}

static int wait_for_keeper(struct host_run *h, struct writ_err *err)
{
	struct jail_message m;
	scoped_fd fd = -1;
	pid_t pid;
	const int r = jail_receive(h->jail.keeper, &m, &fd, &pid, err);

	if (r > 0 && m.type == JAIL_KEEPER)
		return 0;
	return r < 0 ? r : writ_fail(err, WRIT_E_SYS, 0, "writ-init ended without a word");
}

static void close_program(struct host_run *h)
{
	fd_scope_close(&h->program);
	h->program = -1;
}

static int host_start(struct engine_run *run, struct writ_err *err)
{
	const struct jail_message m = { .type = JAIL_BUILD };
	struct host_run *h = host_of(run);
	/*
	 * Wait until the keeper has opened the jail's mount namespace. The keeper can do so only
	 * before pid 1 gives up its rights.
	 */
	int r = h->jail.keeper >= 0 ? wait_for_keeper(h, err) : 0;

	if (r == 0)
		r = jail_send(h->jail.session, &m, &h->program, 1, SV(""), err);
	if (r == 0 && h->jail.keeper >= 0)
		r = jail_send(h->jail.keeper, &m, &h->program, 1, SV(""), err);
	close_program(h);
	return r;
}

static int seal_command(struct arena *a, const struct engine_command *c, int *ret_fd,
			struct writ_err *err)
{
	struct jail_writer w = JAIL_WRITER_INIT(a);
	struct jail_command to = { .flags = (c->probe ? JAIL_COMMAND_PROBE : 0u) |
					    (c->gate >= 0 ? JAIL_COMMAND_GATE : 0u),
				   .umask = c->umask,
				   .pty = c->pty,
				   .given = c->given,
				   .rows = c->rows,
				   .cols = c->cols };
	bool ok = true;
	int r;

	to.path = jail_put(&w, c->path);
	to.cwd = jail_put(&w, c->cwd);
	to.program = jail_put(&w, c->program.n ? c->program : SV(""));
	for (char *const *arg = c->argv; ok && *arg; arg++)
		ok = jail_put_arg(&w, sv_from(*arg));
	for (size_t i = 0; ok && i < c->env_n; i++)
		ok = jail_put_env(&w, c->env[i].name, c->env[i].value);
	r = ok ? jail_seal_command(&w, &to, ret_fd, err) : writ_nomem(err);
	jail_writer_clear(&w);
	return r;
}

static int host_exec(struct engine_run *run, struct arena *a, const struct engine_command *c,
		     struct writ_err *err)
{
	const struct jail_message m = { .type = JAIL_SPAWN, .id = c->id, .value = c->last };
	scoped_fd fd = -1;
	int fds[5];
	size_t n = 1;
	const int r = seal_command(a, c, &fd, err);

	if (r < 0)
		return r;
	fds[0] = fd;
	for (int i = 0; i < 3; i++)
		if (c->given & 1u << i)
			fds[n++] = c->fds[i];
	if (c->gate >= 0)
		fds[n++] = c->gate;
	return jail_send(host_of(run)->jail.session, &m, fds, n, SV(""), err);
}

static int host_signal(struct engine_run *run, uint32_t id, int number, struct writ_err *err)
{
	const struct jail_message m = { .type = JAIL_SIGNAL, .id = id, .value = number };

	return jail_send(host_of(run)->jail.session, &m, NULL, 0, SV(""), err);
}

static int host_end(struct engine_run *run, struct writ_err *err)
{
	const struct jail_message m = { .type = JAIL_END };

	return jail_send(host_of(run)->jail.session, &m, NULL, 0, SV(""), err);
}

/* --- the keeper --- */

static struct sv with_nul(const char *path)
{
	return (struct sv){ path, strlen(path) + 1 };
}

static int host_attach(struct engine_run *run, uint32_t id, const char *path,
		       const struct engine_object *expected, bool write, struct writ_err *err)
{
	const struct jail_object object = { expected->dev, expected->ino };
	char text[sizeof(object) + JAIL_PATH];
	const size_t n = strlen(path) + 1;

	const struct jail_message m = { .type = JAIL_ATTACH,
					.id = id,
					.value = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
						 (write ? 0 : MOUNT_ATTR_RDONLY) };

	if (n > JAIL_PATH)
		return writ_fail(err, WRIT_E_LIMIT, 0, "that path is too long");
	memcpy(text, &object, sizeof(object));
	memcpy(text + sizeof(object), path, n);
	return jail_send(host_of(run)->jail.keeper, &m, NULL, 0,
			 (struct sv){ text, sizeof(object) + n }, err);
}

static int host_detach(struct engine_run *run, uint32_t id, const char *path, struct writ_err *err)
{
	const struct jail_message m = { .type = JAIL_DETACH, .id = id };

	return jail_send(host_of(run)->jail.keeper, &m, NULL, 0, with_nul(path), err);
}

static int host_listen(struct engine_run *run, const struct engine_listen *l, struct writ_err *err)
{
	const struct jail_message m = { .type = JAIL_LISTEN, .id = l->id };
	struct jail_listen to = { .port = l->port,
				  .v6 = l->v6,
				  .kind = l->dial ? JAIL_DIALLER : JAIL_STREAM };

	memcpy(to.addr, l->addr, sizeof(to.addr));
	return jail_send(host_of(run)->jail.keeper, &m, NULL, 0,
			 (struct sv){ (const char *)&to, sizeof(to) }, err);
}

/* --- events --- */

static struct engine_probed probed_of(const struct jail_probed *p)
{
	struct engine_probed ret = { .n = p->n, .landlock = p->landlock != 0 };

	_Static_assert((int)ENGINE_SPACES == (int)JAIL_SPACES &&
			       (int)ENGINE_SPACE_USER == (int)JAIL_SPACE_USER,
		       "one order of namespaces");
	memcpy(ret.spaces, p->spaces, sizeof(ret.spaces));
	for (size_t i = 0; i < JAIL_PROBES_MAX; i++)
		ret.of[i] = (struct engine_probe_result){ .dev = p->of[i].dev,
							  .ino = p->of[i].ino,
							  .error = p->of[i].error };
	return ret;
}

/*
 * SECURITY: accept only messages that pid 1 may send. A message that belongs to the keeper or to
 * the supervisor becomes ENGINE_UNKNOWN.
 */
static enum engine_event_type event_type(uint32_t type)
{
	_Static_assert((int)JAIL_EMPTY - (int)JAIL_HELLO == (int)ENGINE_EMPTY - (int)ENGINE_HELLO &&
			       (int)JAIL_EXITED - (int)JAIL_HELLO ==
				       (int)ENGINE_EXITED - (int)ENGINE_HELLO,
		       "one order of messages");
	return type >= JAIL_HELLO && type <= JAIL_EMPTY
		       ? (enum engine_event_type)(type - JAIL_HELLO + ENGINE_HELLO)
		       : ENGINE_UNKNOWN;
}

static int host_receive(struct engine_run *run, struct engine_event *ret, struct writ_err *err)
{
	struct host_run *h = host_of(run);
	struct jail_probed probed = { 0 };
	struct engine_event e = { .type = ENGINE_UNKNOWN };
	struct jail_message m = { 0 };
	const int r = jail_receive_many(h->jail.session, &m, e.fds, &e.fds_n, &e.pid, &probed, err);

	if (r <= 0)
		return r;
	e.type = event_type(m.type);
	e.id = m.id;
	e.value = m.value;
	e.stage = m.step == STEP_EXEC	? ENGINE_STAGE_EXEC
		  : m.step == STEP_NONE ? ENGINE_STAGE_NONE
					: ENGINE_STAGE_STEP;
	e.step = jail_step_name((enum jail_step)m.step);
	e.err = m.err;
	e.probed = probed_of(&probed);
	if (e.type == ENGINE_HELLO && h->jail.init == 0) {
		h->jail.init = e.pid;
		e.err = (struct writ_err){ 0 };
		if (cgroup_used(&h->cgroup))
			(void)!cgroup_add(&h->cgroup, e.pid, &e.err);
	}
	publish(h);
	*ret = e;
	return r;
}

static int host_receive_helper(struct engine_run *run, struct engine_event *ret,
			       struct writ_err *err)
{
	struct host_run *h = host_of(run);
	struct jail_message m;
	pid_t pid;
	int fd = -1;
	const int r = jail_receive(h->jail.keeper, &m, &fd, &pid, err);

	if (r <= 0) {
		fd_scope_close(&h->jail.keeper);
		h->jail.keeper = -1;
		publish(h);
		return r;
	}
	*ret = (struct engine_event){ .type = m.type == JAIL_BOUND  ? ENGINE_BOUND
					      : m.type == JAIL_DONE ? ENGINE_DONE
								    : ENGINE_UNKNOWN,
				      .id = m.id,
				      .err = m.err,
				      .fds = { fd },
				      .fds_n = fd >= 0 };
	return r;
}

/* --- the end --- */

static int host_hits(const struct engine_run *run, struct engine_hits *ret, struct writ_err *err)
{
	struct cgroup_hits hits = { 0 };
	const int r = cgroup_hits(&((const struct host_run *)run)->cgroup, &hits, err);

	*ret = (struct engine_hits){ .oom = hits.oom, .pids = hits.pids };
	return r;
}

static void host_sweep(const struct host_facts *facts)
{
	if (facts->cgroup_pids || facts->cgroup_memory)
		cgroup_sweep(facts);
}

static void host_kill(struct engine_run *run)
{
	cgroup_kill(&host_of(run)->cgroup);
	jail_kill(&host_of(run)->jail);
	publish(host_of(run));
}

static void host_leave(struct engine_run *run)
{
	close_program(host_of(run));
	jail_leave(&host_of(run)->jail);
	publish(host_of(run));
}

static void host_close(struct engine_run *run)
{
	close_program(host_of(run));
	jail_close(&host_of(run)->jail);
	publish(host_of(run));
}

static void host_release(struct engine_run *run)
{
	cgroup_close(&host_of(run)->cgroup);
	publish(host_of(run));
}

const struct engine host_engine = {
	.name = "host",
	.prober = jail_init_program_sha256,
	.able = able_host,
	.provides = compile_makes,
	.open = host_open,
	.prepare = host_prepare,
	.furnish = host_furnish,
	.limit = host_limit,
	.compile = host_compile,
	.start = host_start,
	.exec = host_exec,
	.signal = host_signal,
	.end = host_end,
	.attach = host_attach,
	.detach = host_detach,
	.listen = host_listen,
	.receive = host_receive,
	.receive_helper = host_receive_helper,
	.mediate_first = mediate_first,
	.mediate = host_mediate,
	.readback = host_readback,
	.hits = host_hits,
	.sweep = host_sweep,
	.kill = host_kill,
	.leave = host_leave,
	.close = host_close,
	.release = host_release,
};
