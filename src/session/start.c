#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/session_priv.h"

#include "base/banned.h"

enum { COMMAND_KEPT = 64 << 10 }; /* bytes of a command line that are kept on record */

static int open_cgroup(struct session *s, struct writ_err *err)
{
	const struct plan *p = s->opt->plan;
	const struct host_facts *f = p->facts;
	const uint64_t *l = s->opt->policy->set.limits;
	const bool memory = f->cgroup_memory || plan_scope(p, LIMIT_MEMORY);
	const bool cpu = f->cgroup_cpu || plan_scope(p, LIMIT_CPU);
	const bool pids = f->cgroup_pids || plan_scope(p, LIMIT_PIDS);
	const struct cgroup_limits limits = { .memory = memory ? l[LIMIT_MEMORY] : 0,
					      .cpu = cpu ? l[LIMIT_CPU] : 0,
					      .pids = pids ? l[LIMIT_PIDS] : 0 };

	if (s->opt->begun) {
		s->cgroup = s->opt->begun->cgroup;
		s->opt->begun->cgroup = (struct cgroup){ 0 };
	}
	return cgroup_go_on(f, &limits, s->id, &s->cgroup, err);
}

static void record_start(struct session *s)
{
	struct entry entry = { 0 };
	int64_t n = 0;

	record_begin(s, &entry, "start");
	record_str(&entry, "session", sv_from(s->id));
	record_num(&entry, "supervisor", getpid());
	record_str(&entry, "workspace", s->opt->workspace);
	operator_record(s, &entry);
	while (s->opt->argv[n])
		n++;
	/* The beginning of a long one; how long it is, always. */
	record_num(&entry, "arguments", n);
	entry_list(&entry, "command", s->opt->argv, COMMAND_KEPT);
	entry_hide(&entry);
	record_str(&entry, "guarantees", s->guarantees);
	probe_describe(s, &entry);
	executable_record(s, &entry);
	record_end(s, &entry);
	token_record(s);
	spawn_record(s);
}

/* A session that stays has a terminal for it, which people may join. */
static int kept_command(struct session *s, struct command_ask *ask, struct writ_err *err)
{
	int none[3] = { -1, -1, -1 };

	ask->pty = 7;
	ask->rows = 24;
	ask->cols = 80;
	return more_send(s, ask, true, none, err);
}

/* As text, before there is a command to wait for it. */
static int make_guarantees(struct session *s, struct writ_err *err)
{
	struct buf b = BUF_INIT(1 << 20);
	int r;

	plan_json(s->opt->plan, &b);
	r = buf_check(&b, err);
	if (r == 0 && !arena_sv(s->a, buf_view(&b), &s->guarantees))
		r = writ_nomem(err);
	buf_clear(&b);
	s->plan = crypto_sha256(s->guarantees);
	return r < 0 ? r : cap_set_digest(&s->opt->policy->set, &s->policy, err);
}

/* The command that the session was made for; a kept session may have none. */
static int first_command(struct session *s, struct writ_err *err)
{
	const mode_t mask = umask(022);
	struct command_ask ask = { .id = 1,
				   .last = !s->opt->detach,
				   .argv = s->opt->argv,
				   .environ = s->opt->environ,
				   .cwd = s->opt->cwd,
				   .program = s->opt->program,
				   .umask = mask };
	int r;

	(void)umask(mask);
	s->commands = 1;
	if (!s->opt->argv[0])
		return 0;
	if (s->opt->detach)
		return kept_command(s, &ask, err);
	r = front_open(&s->front, s->opt->stdio, !s->view.own_mounts, err);
	if (r < 0)
		return r;
	s->front.relay.output_max = s->opt->policy->set.limits[LIMIT_OUTPUT];
	s->front.relay.neutral = s->opt->neutral;
	s->interactive = s->front.relay.on_pty[0];
	ask.pty = s->front.pty;
	ask.given = s->front.given;
	ask.fds = s->front.inside;
	ask.rows = s->front.rows;
	ask.cols = s->front.cols;
	/* A terminal of the jail's own is still to come, and the relay with it. */
	if (!s->front.pty || s->front.relay.pty >= 0)
		r = front_relay(&s->front, &s->relay, err);
	if (r == 0)
		r = command_send(s, &ask, err);
	front_sent(&s->front);
	return r;
}

static int wait_for_keeper(struct session *s, struct writ_err *err)
{
	struct jail_message m;
	pid_t pid;
	int fd = -1;
	const int r = jail_receive(s->jail.keeper, &m, &fd, &pid, err);

	scope_close(&fd);
	if (r > 0 && m.type == JAIL_KEEPER)
		return 0;
	return r < 0 ? r : writ_fail(err, WRIT_E_SYS, 0, "writ-init ended without a word");
}

/* What writ-init said before it could not be spoken to any more is the reason. */
void session_hear_why(struct session *s, struct writ_err *err)
{
	struct writ_err none = { 0 };

	if (s->log.fd < 0 && (s->guarantees.n || make_guarantees(s, &none) == 0) &&
	    session_place_record(s, &none) == 0)
		record_start(s);
	for (int i = 0; i < 16 && !s->failed && s->state != SESSION_ENDED; i++) {
		struct pollfd p = { s->jail.session, POLLIN, 0 };

		if (poll(&p, 1, 100) <= 0)
			return;
		hear_message(s);
	}
	if (s->failed && s->failed_step != STEP_NONE)
		*err = s->err;
}

/* Nobody says what to run any more: nothing was, and there is nothing to record. */
static void await(struct session *s, struct writ_err *err)
{
	s->late = *s->opt;
	if (s->opt->await(s->opt->await_ctx, &s->late, err) < 0) {
		s->err = *err;
		s->failed = true;
	}
	s->opt = &s->late;
}

/* The login name to show inside. */
static struct sv user_of(char *const *envp)
{
	const struct sv user = environ_get(envp, SV("USER"));

	if (user.n && sv_is_graph(user) && sv_find(user, ':') == SIZE_MAX)
		return user;
	return geteuid() ? SV("agent") : SV("root");
}

/* A jail that waits to be told where its pid 1 is to begin. */
static void join_cgroup(const struct cgroup *c, struct jail *j)
{
	int dirs[CGROUP_DIRS];
	size_t unified;
	const size_t n = cgroup_doors(c, dirs, &unified);

	jail_join(j, dirs, n, unified);
}

int session_early(struct arena *a, const struct host_facts *facts, char *const *envp,
		  struct jail *j, struct session_begun *ret_begun, struct writ_err *err)
{
	const struct jail_message m = { .type = JAIL_PREPARE };
	scoped_fd program = -1;
	int r = 0;

	if (j->waits) {
		r = session_make_id(ret_begun->id, err);
		if (r == 0)
			cgroup_begin(facts, ret_begun->id, &ret_begun->cgroup);
		/* One that has to be in another directory is not there yet. */
		if (r == 0 && ret_begun->cgroup.n)
			join_cgroup(&ret_begun->cgroup, j);
	}
	if (r == 0)
		r = host_prepare(a, facts, user_of(envp), &program, err);
	/* One that cannot be spoken to says why itself, when it is needed. */
	if (r == 0 && jail_send(j->session, &m, &program, 1, SV(""), err) == 0)
		j->prepared = true;
	return r;
}

/* Where the person's JAVA_HOME really is; it may be a link. */
static struct sv real_java(struct session *s)
{
	const struct sv home = environ_get(s->opt->environ, SV("JAVA_HOME"));
	const char *name = s->reads && home.n && home.p[0] == '/' ? arena_str(s->a, home) : NULL;
	char real[PATH_MAX];

	return name && realpath(name, real) ? sv_from(arena_str(s->a, sv_from(real))) : SV("");
}

void session_early_close(struct jail *j, struct session_begun *begun)
{
	jail_close(j);
	cgroup_close(&begun->cgroup);
}

/* SECURITY: no command before pid 1 is where its limits are. */
static void hear_hello(struct session *s)
{
	while (cgroup_used(&s->cgroup) && s->jail.init == 0 && s->state == SESSION_STARTING &&
	       !s->failed)
		hear_message(s);
}

/* What others could not clear away themselves. */
static void sweep(const struct session *s)
{
	session_sweep(s->opt->state);
	past_tidy(s->opt->state);
	if (s->opt->plan->facts->cgroup_pids || s->opt->plan->facts->cgroup_memory)
		cgroup_sweep(s->opt->plan->facts);
}

/* Everything that the jail is made of; @ret_program is what it is told. */
static int compile(struct session *s, int *ret_program, struct writ_err *err)
{
	struct host_place place;
	int r = pulse_open(s, err);

	if (r == 0)
		r = operator_load(s, err);
	if (r == 0)
		r = token_begin(s, err);
	if (r == 0)
		r = session_place_make(s, err);
	if (r == 0)
		r = meter_open(s, err);
	if (r == 0)
		r = spawn_open(s, err);
	if (r == 0)
		r = open_cgroup(s, err);
	if (r == 0 && s->opt->early)
		join_cgroup(&s->cgroup, s->opt->early);
	if (r == 0)
		r = probe_open(s, err);
	s->reads = read_needed(s);
	if (r == 0 && s->reads)
		r = read_prepare(s, err);
	repo_identity(s->opt->home, environ_get(s->opt->environ, SV("XDG_CONFIG_HOME")),
		      s->opt->plan->tier == TIER_A ? SV("") : s->opt->workspace, &s->identity);
	place = (struct host_place){ .home = s->paths.home,
				     .tmp = s->paths.tmp,
				     .shm = s->paths.shm,
				     .info = s->paths.info,
				     .rules = s->paths.rules,
				     .spawn = s->paths.spawn,
				     .state = s->paths.state,
				     .user = user_of(s->opt->environ),
				     .prepared = s->opt->early && s->opt->early->prepared,
				     .workspace = s->opt->workspace,
				     .realm = s->opt->realm,
				     .trust = s->paths.trust,
				     .java = real_java(s),
				     .git_name = sv_from(s->identity.name),
				     .git_email = sv_from(s->identity.email),
				     .own = { s->opt->state, s->opt->config },
				     .bait = &s->probing.bait };
	if (r == 0)
		r = host_compile(s->a, s->opt->plan, s->opt->policy, &place, s->opt->fail_at,
				 &s->view, ret_program, err);
	return r;
}

/* The jail and what stands around it, until it is being built. */
static int build(struct session *s, const int *program, struct writ_err *err)
{
	struct jail_message m = { .type = JAIL_BUILD };
	int r = 0;

	if (s->opt->early && s->opt->early->pid > 0) {
		s->jail = *s->opt->early;
		*s->opt->early = (struct jail)JAIL_INIT;
	} else {
		r = jail_start(s->view.own_mounts, s->opt->fail_at, &s->jail, err);
		if (r == 0)
			join_cgroup(&s->cgroup, &s->jail);
	}
	/* It must be there before its listeners are. */
	if (r == 0 && net_wanted(s))
		r = net_start(s, err);
	if (r == 0 && gitnet_is_handed(s))
		r = gitnet_start_handed(s, err);
	if (r == 0)
		r = secrets_fetch(s, err);
	if (r == 0 && s->reads)
		r = read_start(s, err);
	/* The keeper takes hold of the jail's mounts while it still can. */
	if (r == 0 && s->jail.keeper >= 0)
		r = wait_for_keeper(s, err);
	if (r == 0)
		r = jail_send(s->jail.session, &m, program, 1, SV(""), err);
	if (r == 0 && s->jail.keeper >= 0)
		r = jail_send(s->jail.keeper, &m, program, 1, SV(""), err);
	return r;
}

int session_begin(struct session *s, struct writ_err *err)
{
	scoped_fd program = -1;
	int r = compile(s, &program, err);

	if (r == 0)
		r = build(s, &program, err);
	if (r < 0)
		return r;
	/* It is being built meanwhile. */
	sweep(s);
	r = make_guarantees(s, err);
	/* Nothing of it is left to do when somebody asks. */
	if (r == 0 && s->opt->await)
		hear_hello(s);
	if (r == 0 && s->opt->await && !s->failed)
		await(s, err);
	if (r == 0 && s->failed)
		return 0;
	if (r == 0)
		r = session_place_record(s, err);
	if (r == 0)
		r = seal_start(s, err);
	/* Also of one that does not get any further. */
	if (s->log.fd >= 0)
		record_start(s);
	/* SECURITY: nothing runs that is not on record. */
	if (r == 0 && s->log_failed)
		r = writ_fail(err, WRIT_E_SYS, 0, "the record cannot be written");
	if (r == 0)
		hear_hello(s);
	if (r == 0 && s->failed)
		return 0;
	/* Whoever keeps the log is running by now, and nobody's child. */
	strays_expect(s);
	if (r == 0 && s->reads)
		r = read_wait(s, err);
	if (r == 0)
		r = first_command(s, err);
	/* Who is told its name may use it at once. */
	return r < 0 || !s->opt->named ? r : control_open(s, err);
}
