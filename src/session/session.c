#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session_priv.h"

#include "base/banned.h"

/* --- ending --- */

void session_end(struct session *s, const char *why, int exit_code)
{
	const struct jail_message m = { .type = JAIL_END };
	struct writ_err err = { 0 };

	s->hurried = true;
	if (s->state >= SESSION_ENDING)
		return;
	s->state = SESSION_ENDING;
	s->killed_ms = clock_ms();
	s->ended_by = why;
	if (!s->has_exit) {
		s->exit_code = exit_code;
		s->has_exit = true;
	}
	if (jail_send(s->jail.session, &m, NULL, 0, SV(""), &err) < 0)
		s->state = SESSION_ENDED;
}

/* --- the loop --- */

enum { COMMAND_KEPT = 64 << 10 }; /* bytes of a command line that are kept on record */

enum {
	POLL_SIGNALS = 0,
	POLL_JAIL,
	POLL_KEEPER,
	POLL_MEDIATOR,
	POLL_EGRESS,
	POLL_READER,
	POLL_GIT,
	POLL_ASK,
	POLL_CONTROL,
	POLL_SIGNER,
	POLL_JOB,
	POLL_EARLY, /* until there is egress */
	POLL_LISTENER = POLL_EARLY + EARLY_MAX,
	POLL_MOUNTS,
	POLL_RELAY,
	POLL_COUNT = POLL_RELAY + RELAY_POLLS + CLIENTS_MAX + 2 * SCREENS_MAX + 2 * SUBS_MAX + 1
};

static void on_relay(struct session *s, const struct pollfd *p, size_t n)
{
	enum relay_event e = RELAY_NOTHING;
	struct writ_err err = { 0 };
	struct entry entry = { 0 };

	if (relay_step(s->relay, p, n, &e, &err) < 0) {
		say(s, "%s", err.what);
		session_end(s, "input or output failed", SESSION_FAILED);
		return;
	}
	if (e == RELAY_OUTPUT_FULL) {
		record_begin(s, &entry, "limit");
		record_str(&entry, "limit", SV("output"));
		record_end(s, &entry);
	}
}

/* Only what is there, one behind the other: their number may be bounded tightly. */
struct polled {
	struct pollfd p[POLL_COUNT];
	size_t n, relay_n;
	size_t client[CLIENTS_MAX], screen[SCREENS_MAX][2]; /* where; 0: not at all */
	size_t spawn;					    /* from there on */
};

static size_t add(struct polled *w, struct pollfd p)
{
	if (p.fd < 0)
		return 0;
	w->p[w->n] = p;
	return w->n++;
}

static void fill(struct session *s, struct polled *w, bool rest, bool quiet)
{
	const int fixed[] = { s->signals,
			      s->jail.session,
			      s->jail.keeper,
			      quiet ? -1 : s->mediator,
			      rest ? -1 : s->egress,
			      rest ? -1 : s->reader,
			      s->git,
			      ask_terminal(s),
			      s->control,
			      s->signer,
			      s->opt->job > 0 && s->state <= SESSION_RUNNING ? s->opt->job : -1,
			      s->early[0],
			      s->early[1],
			      s->early[2],
			      s->state == SESSION_RUNNING ? s->listener : -1 };
	struct pollfd agents[1 + 2 * SUBS_MAX];
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		w->p[i] = (struct pollfd){ .fd = fixed[i], .events = POLLIN };
	w->p[POLL_MOUNTS] = (struct pollfd){ .fd = s->mounts, .events = POLLPRI };
	w->relay_n = s->relay && !s->stopped ? relay_poll(s->relay, w->p + POLL_RELAY) : 0;
	w->n = POLL_RELAY + w->relay_n;
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		w->client[i] = add(w, (struct pollfd){ .fd = s->clients[i].fd, .events = POLLIN });
	for (size_t i = 0; i < SCREENS_MAX; i++) {
		struct pollfd two[2];

		screen_poll(&s->screens[i], two);
		for (size_t j = 0; j < 2; j++)
			w->screen[i][j] = add(w, two[j]);
	}
	w->spawn = w->n;
	n = spawn_poll(s, agents);
	for (size_t i = 0; i < n; i++)
		(void)add(w, agents[i]);
}

static short happened(const struct polled *w, size_t at)
{
	return at ? w->p[at].revents : 0;
}

/* SECURITY: without the process that the shell sees nobody could reach us through it. */
static void on_job(struct session *s)
{
	const int heard = job_heard(s);

	if (heard > 0)
		pulse_go_on(s);
	else if (heard < 0)
		session_end(s, "the job is gone", SESSION_SIGNALLED + SIGHUP);
}

/* Once it was still for a while, it holds no more than somebody who waits needs. */
static int wait_for(struct session *s, struct polled *w, int ms)
{
	enum { STILL_MS = 1000 };
	const bool tired = s->stirred && (ms < 0 || ms >= STILL_MS);
	const int r = poll(w->p, (nfds_t)w->n, tired ? STILL_MS : ms);

	if (r > 0)
		s->stirred = true;
	if (r == 0 && tired) {
		session_rest();
		s->stirred = false;
	}
	return r;
}

static void step(struct session *s)
{
	const int due = pulse_timeout(s), rest = net_rest(s, due);
	const int most = rest > 0 ? rest : due, quiet = watch_quiet(s, most);
	struct polled w;

	fill(s, &w, rest > 0, quiet > 0);
	if (wait_for(s, &w, quiet > 0 ? quiet : most) < 0) {
		/* More places than this process may have open files. */
		if (errno != EINTR)
			session_end(s, "too few descriptors", SESSION_FAILED);
		return;
	}
	if (w.relay_n)
		on_relay(s, w.p + POLL_RELAY, w.relay_n);
	for (size_t i = 0; i < SCREENS_MAX; i++)
		if (happened(&w, w.screen[i][0]) || happened(&w, w.screen[i][1]))
			screen_step(s, &s->screens[i], happened(&w, w.screen[i][0]),
				    happened(&w, w.screen[i][1]));
	for (size_t i = w.spawn; i < w.n; i++)
		if (w.p[i].revents) {
			spawn_step(s);
			break;
		}
	if (w.p[POLL_SIGNER].revents)
		seal_lost(s);
	if (w.p[POLL_SIGNALS].revents)
		pulse_signal(s);
	if (w.p[POLL_JOB].revents)
		on_job(s);
	/* What came before something else is written down before it. */
	if (w.p[POLL_MEDIATOR].revents || (quiet > 0 && s->mediator >= 0))
		watch_event(s);
	if (w.p[POLL_EGRESS].revents)
		net_event(s);
	if (w.p[POLL_READER].revents)
		net_read_event(s);
	if (w.p[POLL_GIT].revents)
		gitnet_event(s);
	if (w.p[POLL_ASK].revents)
		ask_key(s);
	for (size_t i = 0; i < EARLY_MAX; i++)
		if (w.p[POLL_EARLY + i].revents)
			net_first(s);
	if (w.p[POLL_LISTENER].revents)
		watch_call(s, w.p[POLL_LISTENER].revents);
	if (w.p[POLL_KEEPER].revents)
		control_keeper(s);
	if (w.p[POLL_MOUNTS].revents & (POLLPRI | POLLERR))
		hear_mounts(s);
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		if (happened(&w, w.client[i]) && s->clients[i].fd == w.p[w.client[i]].fd)
			control_serve(s, i);
	if (w.p[POLL_CONTROL].revents)
		control_accept(s);
	if (w.p[POLL_JAIL].revents)
		hear_message(s);
}

/* --- start and end --- */

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
static void hear_why(struct session *s, struct writ_err *err)
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

	return user.n == 0 || !sv_is_graph(user) || sv_find(user, ':') != SIZE_MAX ? SV("agent")
										   : user;
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

static int start(struct session *s, struct writ_err *err)
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
	if (r == 0 && s->reads)
		r = read_wait(s, err);
	if (r == 0)
		r = first_command(s, err);
	/* Who is told its name may use it at once. */
	return r < 0 || !s->opt->named ? r : control_open(s, err);
}

/*
 * Out of memory or processes: said once, on record and on the terminal. True if
 * somebody was killed for memory.
 */
static bool note_hits(struct session *s)
{
	struct cgroup_hits hits = { 0 };
	struct writ_err err = { 0 };
	struct entry entry = { 0 };

	if (!s->cgroup.n || cgroup_hits(&s->cgroup, &hits, &err) < 0)
		return false;
	if (hits.oom) {
		record_begin(s, &entry, "limit");
		record_str(&entry, "limit", SV("memory"));
		record_num(&entry, "killed", (int64_t)hits.oom);
		record_end(s, &entry);
		say(s, "the memory limit was reached, and %llu processes were killed",
		    (unsigned long long)hits.oom);
	}
	if (hits.pids) {
		record_begin(s, &entry, "limit");
		record_str(&entry, "limit", SV("pids"));
		record_num(&entry, "refused", (int64_t)hits.pids);
		record_end(s, &entry);
		say(s, "the limit of processes was reached: %llu were not started",
		    (unsigned long long)hits.pids);
	}
	return hits.oom > 0;
}

/* Nobody inside could say how it ended: all were killed at once, or something broke. */
static void end_unheard(struct session *s, bool out_of_memory)
{
	if (s->has_exit)
		return;
	s->exit_code = out_of_memory ? 128 + SIGKILL : SESSION_FAILED;
	s->has_exit = true;
	if (out_of_memory)
		s->ended_by = "memory";
}

static void put_member(struct buf *b, const char *key, struct sv value)
{
	buf_fmt(b, ",\"%s\":", key);
	json_put_str(b, value);
}

static void report_status(const struct session *s)
{
	struct buf b = BUF_INIT(4096);
	struct writ_err err = { 0 };

	if (s->opt->status_fd < 0)
		return;
	buf_fmt(&b, "{\"session\":\"%s\",\"exit\":%d,\"started\":%s,\"denials\":%zu", s->id,
		s->exit_code, s->failed ? "false" : "true", s->denials.n);
	if (s->ended_by)
		put_member(&b, "ended_by", sv_from(s->ended_by));
	if (s->failed) {
		put_member(&b, "step", sv_from(jail_step_name(s->failed_step)));
		put_member(&b, "error", sv_from(s->err.what));
	}
	buf_str(&b, "}\n");
	(void)!fd_write_all(s->opt->status_fd, buf_view(&b), &err);
	buf_clear(&b);
}

static void finish(struct session *s)
{
	struct entry entry = { 0 };
	struct writ_err err = { 0 };
	bool out_of_memory;

	if (s->failed && s->failed_step != STEP_EXEC) {
		s->exit_code =
			s->err.code == WRIT_E_UNENFORCEABLE ? SESSION_REFUSED : SESSION_FAILED;
		s->has_exit = true;
	}
	/* Output that could not be written is not a success. */
	if (s->relay && relay_finish(s->relay, &err) < 0) {
		say(s, "%s%s%s", err.what, err.sys ? ": " : "", err.sys ? strerror(err.sys) : "");
		if (s->exit_code == 0)
			s->exit_code = SESSION_FAILED;
	}
	spawn_end(s);
	net_finish_begin(s);
	/* What the mediator still has to say: it sends that, finds us gone, and ends. */
	if (s->mediator >= 0)
		(void)shutdown(s->mediator, SHUT_WR);
	while (s->mediator >= 0) {
		struct pollfd p = { s->mediator, POLLIN, 0 };

		if (poll(&p, 1, GRACE_MS) <= 0)
			break;
		watch_event(s);
	}
	/* The terminal is given back first: its keys may end what is still to come. */
	relay_free(s->relay);
	s->relay = NULL;
	net_finish(s);
	out_of_memory = note_hits(s);
	if (s->opt->explain && !s->failed)
		denial_explain_all(s);
	else if (s->interactive)
		denial_show_all(s);
	if (s->ended_by && s->exit_code == SESSION_TIMEOUT)
		say(s, "the %s limit was reached, and everything was ended", s->ended_by);
	else if (s->ended_by)
		say(s, "%s", s->ended_by);
	burst_flush(s, true);
	end_unheard(s, out_of_memory);
	record_begin(s, &entry, "end");
	record_num(&entry, "exit", s->exit_code);
	record_num(&entry, "denials", (int64_t)s->denials.n);
	record_num(&entry, "not_recorded", (int64_t)s->dropped);
	record_num(&entry, "entries", (int64_t)s->log.tree.size);
	record_end(s, &entry);
	/* A record that nobody vouches for is not a success either. */
	if (seal_end(s) < 0 && s->exit_code == 0)
		s->exit_code = SESSION_FAILED;
	report_status(s);
}

static void clear(struct session *s)
{
	/* pid 1 said that all others are dead, and is about to end itself. */
	const bool leave = s->opt->leaves && s->emptied && !s->cgroup.unit[0];

	if (leave)
		jail_leave(&s->jail);
	jail_close(&s->jail);
	scope_close(&s->listener);
	if (s->mediator_pid > 0) {
		scope_close(&s->mediator);
		kill(s->mediator_pid, SIGKILL);
		while (!leave && waitpid(s->mediator_pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	probe_clear(s);
	seal_clear(s);
	net_clear(s);
	gitnet_clear(s);
	secrets_wipe(s);
	token_close(s);
	meter_close(s);
	if (!leave && cgroup_used(&s->cgroup))
		cgroup_close(&s->cgroup);
	relay_free(s->relay);
	s->relay = NULL;
	front_clear(&s->front);
	control_close(s);
	screen_clear(s);
	slog_close(&s->log);
	scope_close(&s->signer);
	scope_close(&s->feed);
	scope_close(&s->signals);
	scope_close(&s->mounts);
	scope_close(&s->inside);
	session_place_clear(s);
	if (s->stopped)
		job_wake(s);
	/* A cgroup has to be seen empty; by now pid 1 is gone from it, or soon. */
	if (cgroup_used(&s->cgroup))
		cgroup_close(&s->cgroup);
}

int session_run(struct arena *a, const struct session_options *opt, int *ret_exit,
		struct writ_err *err)
{
	struct session s = { .a = a,
			     .opt = opt,
			     .log = SLOG_INIT,
			     .probing = { .listener = -1 },
			     .feed = -1,
			     .jail = JAIL_INIT,
			     .mediator = -1,
			     .egress = -1,
			     .reader = -1,
			     .totals_fd = -1,
			     .git = -1,
			     .git_listener = -1,
			     .git_hand = -1,
			     .asking_tty = -1,
			     .early = { -1, -1, -1 },
			     .listener = -1,
			     .signer = -1,
			     .signals = -1,
			     .control = -1,
			     .mounts = -1,
			     .inside = -1,
			     .spawn = -1,
			     .shared_fd = -1,
			     .front = FRONT_INIT,
			     .paths = { .run_fd = -1 } };
	int r;

	for (size_t i = 0; i < CLIENTS_MAX; i++)
		s.clients[i].fd = -1;
	for (size_t i = 0; i < SUBS_MAX; i++)
		s.subs[i] = (struct sub){ .fd = -1, .pidfd = -1 };
	screen_init(&s);
	r = start(&s, err);
	if (opt->ret_id)
		memcpy(opt->ret_id, s.id, sizeof(s.id));
	if (r < 0 && s.jail.session >= 0) {
		hear_why(&s, err);
		s.failed = true;
		s.err = *err;
		s.state = SESSION_ENDED;
		r = 0;
	}
	if (r == 0 && s.failed)
		s.state = SESSION_ENDED;
	while (r == 0 && s.state != SESSION_ENDED)
		step(&s);
	if (r == 0)
		finish(&s);
	clear(&s);
	if (r == 0 && s.failed && s.failed_step != STEP_EXEC) {
		*err = s.err;
		return s.err.code == WRIT_E_UNENFORCEABLE ? WRIT_E_UNENFORCEABLE : WRIT_E_SYS;
	}
	if (r == 0 && s.failed)
		*err = s.err;
	*ret_exit = s.has_exit ? s.exit_code : SESSION_FAILED;
	return r;
}
