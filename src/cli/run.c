#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/attest.h"
#include "cli/token.h"

#include "base/banned.h"

static int parse_status_fd(const struct args *a, int *ret)
{
	uint64_t n;

	*ret = -1;
	if (!a->given[OPT_STATUS_FD])
		return 0;
	if (!sv_to_u64(sv_from(a->value[OPT_STATUS_FD]), 1 << 20, &n) ||
	    fcntl((int)n, F_GETFD) < 0) {
		note("--status-fd wants the number of an open descriptor");
		return EXIT_FAILED;
	}
	*ret = (int)n;
	(void)fcntl((int)n, F_SETFD, FD_CLOEXEC);
	return 0;
}

/* One line that says what holds, when a person is looking. */
static void banner(const struct args *a, const struct loaded *l, const struct plan *p)
{
	size_t weak = 0;

	if (a->given[OPT_QUIET] || !isatty(STDERR_FILENO))
		return;
	for (unsigned i = 0; i < G_COUNT; i++)
		weak += p->guarantees[i].level < LEVEL_STRICTER && !p->guarantees[i].unasked;
	if (l->in.where.workspace.n == 0)
		note("no workspace: %s; it starts in a private home", l->in.where.no_workspace);
	note("tier %s, %s%s%s%s%s", plan_tier_name(p->tier),
	     weak ? "some guarantees are weaker here (writ explain -v)" : "all exact",
	     l->in.agent.n ? " · profile " : "",
	     l->in.agent.n ? arena_str(a->arena, l->in.agent) : "",
	     l->in.where.workspace.n ? " · workspace " : "",
	     l->in.where.workspace.n ? arena_str(a->arena, l->in.where.workspace) : "");
}

/* What a verb wants of the session it starts. */
struct wish {
	int status_fd, ready_fd;
	int job; /* session_options.job */
	bool durable;
	bool detach;
	char *ret_id; /* NULL, or where its id goes */
};

static int parse_durability(const struct args *a, bool *ret)
{
	const struct sv kind =
		sv_from(a->given[OPT_DURABILITY] ? a->value[OPT_DURABILITY] : "process");

	if (!sv_eq(kind, SV("process")) && !sv_eq(kind, SV("power"))) {
		note("--durability is process or power, not \"%s\"", a->value[OPT_DURABILITY]);
		return EXIT_FAILED;
	}
	*ret = sv_eq(kind, SV("power"));
	return 0;
}

static char **command_of(struct args *a, size_t from)
{
	char **argv = arena_array(a->arena, char *, a->operands.n + 1);

	for (size_t i = from; argv && i < a->operands.n; i++) {
		argv[i - from] = arena_str(a->arena, sv_from(a->operands.v[i]));
		if (!argv[i - from])
			return NULL;
	}
	return argv;
}

/* The commonest failure of a first start, and what to do about it. */
static int fail_start(const struct writ_err *err, const char *what)
{
	const int code = fail(err, what);
	const bool closed = err->sys == EACCES || err->sys == EPERM || err->sys == EROFS;

	if ((err->sys && sv_starts(sv_from(err->what), SV("mkdir "))) ||
	    (closed && strstr(err->what, "/writ")))
		note("writ keeps records and private homes there; set XDG_STATE_HOME to a "
		     "directory "
		     "that you can write");
	return code;
}

/* Root is nobody special inside: without capabilities its rights are those of any user. */
static void warn_foreign(struct sv workspace)
{
	struct stat st;

	if (geteuid() == 0 && workspace.n && stat(workspace.p, &st) == 0 && st.st_uid != 0 &&
	    !(st.st_mode & S_IWOTH) && !(st.st_gid == 0 && st.st_mode & S_IWGRP))
		note("this directory belongs to user %u: inside, root can write only what is "
		     "root's own; run writ as that user",
		     (unsigned)st.st_uid);
}

static int run_session(struct args *a, const struct loaded *l, struct plan *p, struct jail *early,
		       struct session_begun *begun, const struct wish *wish)
{
	char **argv = command_of(a, wish->detach ? 1 : 0);
	struct session_options opt = { .policy = l->policy,
				       .plan = p,
				       .realm = l->in.where.realm,
				       .state = l->in.where.state,
				       .config = l->in.where.config,
				       .workspace = l->in.where.workspace,
				       .cwd = l->in.where.cwd,
				       .home = l->in.where.home,
				       .resolver = sv_from(getenv("WRIT_RESOLVER")),
				       .program = l->in.program,
				       .profile = l->in.agent,
				       .argv = argv,
				       .environ = environ,
				       .early = early,
				       .begun = begun,
				       .status_fd = wish->status_fd,
				       .ready_fd = wish->ready_fd,
				       .job = wish->job,
				       .named = wish->detach,
				       .detach = wish->detach,
				       .ret_id = wish->ret_id,
				       .quiet = a->given[OPT_QUIET],
				       .verbose = a->given[OPT_VERBOSE],
				       .neutral = a->given[OPT_NEUTRAL],
				       .durable = wish->durable,
				       .explain = a->given[OPT_EXPLAIN_DENIALS],
				       .leaves = true };
	struct token_why why = { .hop = TOKEN_HOP_NONE };
	struct session_token token;
	struct writ_err err = { 0 };
	int code = EXIT_FAILED, r;

	if (!argv)
		return EXIT_FAILED;
	if (l->token) {
		token = (struct session_token){ .wallet = &l->token->wallet,
						.chain = &l->token->chain,
						.text = l->token->text,
						.text_n = l->token->text_n,
						.why = &why };
		opt.token = &token;
	}
	if (!opt.quiet)
		warn_foreign(opt.workspace);
	r = session_run(a->arena, &opt, &code, &err);
	if (r < 0 && why.code != TOKEN_E_NONE)
		return token_refused(&why, EXIT_POLICY);
	if (r == WRIT_E_UNENFORCEABLE) {
		(void)!fail(&err, NULL);
		return EXIT_GUARANTEE;
	}
	if (r < 0)
		return fail_start(&err, "cannot start");
	if (err.what[0])
		(void)!fail(&err, NULL);
	return code;
}

/* Loads, plans, and runs what the operands say. */
static int start(struct args *a, const struct wish *wish)
{
	struct session_begun begun = { .cgroup = { 0 } };
	struct jail early = JAIL_INIT;
	struct host_facts facts;
	struct find_where where;
	struct writ_err err = { 0 };
	struct loaded l;
	struct plan *p;
	const size_t first = wish->detach ? 1 : 0;
	int r;

	/* Namespaces take as long as reading the policy: both at once. */
	if (!a->given[OPT_TIER] && !a->given[OPT_TOKEN] && jail_start(true, 0, &early, &err) < 0)
		return fail(&err, NULL);
	r = crypto_start(&err) < 0 ||
			    where_find(a->arena, a->value[OPT_CWD], true, &where, &err) < 0
		    ? fail_start(&err, NULL)
		    : 0;
	/* We are there now, and need not go again. */
	a->value[OPT_CWD] = NULL;
	a->where = r == 0 ? &where : NULL;
	if (r == 0)
		r = load_facts_kept(a, where.state, &facts);
	if (r == 0 && early.pid > 0 &&
	    session_early(a->arena, &facts, environ, &early, &begun, &err) < 0)
		r = fail(&err, NULL);
	if (r) {
		session_early_close(&early, &begun);
		return r;
	}
	r = load_policy_for(a, NULL, false, first < a->operands.n ? a->operands.v[first] : NULL,
			    &l);
	if (r == 0 && session_open_spawn(a->arena, l.policy, l.in.where.realm, &err) < 0)
		r = fail(&err, NULL);
	if (r == 0)
		r = load_plan(a, &l, &l.policy->set, &facts, &p);
	if (r == 0 && !plan_runs(p)) {
		show_refused(p);
		note("nothing was started; writ explain says more");
		r = EXIT_GUARANTEE;
	}
	if (r == 0 && p->tier != TIER_A)
		session_early_close(&early, &begun);
	if (r == 0) {
		banner(a, &l, p);
		r = run_session(a, &l, p, &early, &begun, wish);
	}
	session_early_close(&early, &begun);
	a->where = NULL;
	return r;
}

/* The directory is opened before anything runs that could put another in its place. */
static int run_attested(struct args *a, struct wish wish)
{
	char id[SESSION_ID + 1] = "";
	struct writ_err err = { 0 };
	scoped_fd dir = -1;
	int r;

	if (attest_out_open(a->value[OPT_ATTEST_OUT], &dir, &err) < 0)
		return fail(&err, "--attest-out");
	wish.ret_id = id;
	r = start(a, &wish);
	if (!id[0] || attest_out(a, sv_from(id), dir, &err) == 0)
		return r;
	(void)!fail(&err, "--attest-out");
	return r == EXIT_DONE ? EXIT_FAILED : r;
}

int cmd_run(struct args *a)
{
	struct wish wish = { 0 };
	struct writ_err err = { 0 };
	int r, code = EXIT_FAILED;

	if (a->operands.n == 0) {
		note("run what? as in: %s", a->verb->example);
		return EXIT_FAILED;
	}
	r = parse_status_fd(a, &wish.status_fd);
	if (r == 0)
		r = parse_durability(a, &wish.durable);
	if (r)
		return r;
	r = session_job(&wish.job, &code, &err);
	if (r)
		return r < 0 ? fail(&err, NULL) : code;
	return a->given[OPT_ATTEST_OUT] ? run_attested(a, wish) : start(a, &wish);
}

int cmd_spawn(struct args *a)
{
	char cwd[PATH_MAX];
	struct writ_err err = { 0 };
	/* Options ended at the agent's name, so these dashes are still there. */
	const bool dashes = a->operands.n > 1 && sv_is(sv_from(a->operands.v[1]), "--");
	char **argv = command_of(a, dashes ? 2 : 1);
	int code = EXIT_FAILED;

	if (!argv || !argv[0]) {
		note("spawn what? as in: %s", a->verb->example);
		return EXIT_FAILED;
	}
	if (session_spawn(sv_from(a->operands.v[0]), argv,
			  sv_from(getcwd(cwd, sizeof(cwd)) ? cwd : "/"), &code, &err) < 0)
		return fail(&err, NULL);
	return code;
}

/* --- session start, exec, stop --- */

/*
 * The supervisor goes on by itself. Errors of starting are still seen: it keeps
 * our standard error until the session runs.
 */
static int session_start(struct args *a)
{
	struct wish wish = { .status_fd = -1, .detach = true };
	char id[SESSION_ID + 1] = "";
	int ready[2], status = 0;
	pid_t pid;
	const int r = parse_durability(a, &wish.durable);

	if (r)
		return r;
	if (pipe2(ready, O_CLOEXEC) < 0)
		return EXIT_FAILED;
	pid = fork();
	if (pid == 0) {
		const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		close(ready[0]);
		(void)setsid();
		/* Nothing of whoever called us but standard error, until it runs. */
		if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(ready[1], 3) < 0 ||
		    close_range(4, ~0u, 0) < 0 || fcntl(3, F_SETFD, FD_CLOEXEC) < 0)
			_exit(EXIT_FAILED);
		wish.ready_fd = 3;
		_exit(start(a, &wish));
	}
	close(ready[1]);
	if (pid > 0 && read(ready[0], id, SESSION_ID) == SESSION_ID) {
		struct buf b = BUF_INIT(64);

		close(ready[0]);
		buf_fmt(&b, "%s\n", id);
		return out(&b, EXIT_DONE);
	}
	close(ready[0]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return EXIT_FAILED;
	return WEXITSTATUS(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}

/* What became of a command that somebody looked at. */
static void note_left(const struct args *a, const struct session_look *look)
{
	if (look->left && !a->given[OPT_QUIET])
		note("%s; it goes on: writ session attach %s %u",
		     look->taken ? "somebody else has attached" : "left", look->id, look->number);
}

static int session_exec_verb(struct args *a)
{
	struct session_look look = { .neutral = a->given[OPT_NEUTRAL],
				     .detach = a->given[OPT_DETACH] };
	struct find_where w;
	struct writ_err err = { 0 };
	char **argv = command_of(a, 2);
	struct buf b = BUF_INIT(64);
	int code = EXIT_FAILED;

	if (a->operands.n < 3 || !argv) {
		note("exec what? as in: writ session exec 7f3a -- make test");
		return EXIT_FAILED;
	}
	if (where_find(a->arena, a->value[OPT_CWD], false, &w, &err) < 0 ||
	    session_exec(w.state, sv_from(a->operands.v[1]), argv, environ, w.cwd, &look, &code,
			 &err) < 0)
		return fail(&err, NULL);
	if (err.what[0])
		(void)!fail(&err, NULL);
	/* One that has ended already has a number, too. */
	else if (look.detach && look.number) {
		buf_fmt(&b, "%u\n", look.number);
		return out(&b, EXIT_DONE);
	}
	note_left(a, &look);
	return code;
}

static int session_attach_verb(struct args *a)
{
	struct session_look look = { .neutral = a->given[OPT_NEUTRAL] };
	struct find_where w;
	struct writ_err err = { 0 };
	uint64_t number = 0;
	int code = EXIT_FAILED;

	if (a->operands.n < 2 || a->operands.n > 3 ||
	    (a->operands.n == 3 && !sv_to_u64(sv_from(a->operands.v[2]), UINT32_MAX, &number))) {
		note("attach to what? as in: writ session attach 7f3a, or writ session attach 7f3a "
		     "2");
		return EXIT_FAILED;
	}
	look.number = (uint32_t)number;
	if (where_find(a->arena, NULL, false, &w, &err) < 0 ||
	    session_attach(w.state, sv_from(a->operands.v[1]), &look, &code, &err) < 0)
		return fail(&err, NULL);
	note_left(a, &look);
	return code;
}

struct denial_list {
	struct buf *b;
	bool json;
	size_t n;
};

static bool list_denial(void *ctx, const struct session_denial *d)
{
	struct denial_list *l = ctx;

	if (l->json && l->n)
		buf_str(l->b, ",\n");
	if (l->json)
		session_denial_json(d, l->b);
	else
		session_denial_text(d, l->b);
	l->n++;
	return !l->b->failed;
}

static int session_denials_verb(struct args *a)
{
	struct buf b = BUF_INIT(OUT_MAX);
	struct denial_list l = { .b = &b, .json = a->given[OPT_JSON] };
	struct find_where w;
	struct writ_err err = { 0 };

	if (a->operands.n != 2) {
		note("denials of which session? as in: writ session denials 7f3a");
		return EXIT_FAILED;
	}
	if (l.json)
		buf_ch(&b, '[');
	if (where_find(a->arena, NULL, false, &w, &err) < 0 ||
	    session_denials(w.state, sv_from(a->operands.v[1]), list_denial, &l, &err) < 0) {
		buf_clear(&b);
		return fail(&err, NULL);
	}
	if (l.json)
		buf_str(&b, "]\n");
	else if (l.n == 0 && !a->given[OPT_QUIET])
		note("nothing was refused that could be seen");
	return out(&b, EXIT_DONE);
}

static int session_prune_verb(struct args *a)
{
	uint64_t seconds = (uint64_t)SESSION_KEEP_DAYS * 86400;
	struct find_where w;
	struct writ_err err = { 0 };
	size_t n = 0;

	if (a->operands.n != 1 || (a->given[OPT_OLDER_THAN] &&
				   !policy_duration(sv_from(a->value[OPT_OLDER_THAN]), &seconds))) {
		note("prune what? as in: writ session prune --older-than 7d");
		return EXIT_FAILED;
	}
	if (where_find(a->arena, NULL, false, &w, &err) < 0 ||
	    session_prune(w.state, seconds, a->given[OPT_OLDER_THAN] ? SIZE_MAX : SESSION_KEEP, &n,
			  &err) < 0)
		return fail(&err, NULL);
	if (!a->given[OPT_QUIET])
		note("%zu record%s removed", n, n == 1 ? "" : "s");
	return EXIT_DONE;
}

int cmd_session(struct args *a)
{
	const struct sv what = a->operands.n ? sv_from(a->operands.v[0]) : SV("");
	struct args stop = *a;

	if (sv_is(what, "start"))
		return session_start(a);
	if (sv_is(what, "exec"))
		return session_exec_verb(a);
	if (sv_is(what, "attach"))
		return session_attach_verb(a);
	if (sv_is(what, "denials"))
		return session_denials_verb(a);
	if (sv_is(what, "prune"))
		return session_prune_verb(a);
	if (sv_is(what, "stop") && a->operands.n == 2) {
		stop.operands.v = a->operands.v + 1;
		stop.operands.n = 1;
		return cmd_stop(&stop);
	}
	note("session start, exec, attach, denials, prune, or stop; see writ help session");
	return EXIT_FAILED;
}
