#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/attest.h"
#include "cli/cli.h"

#include "base/banned.h"

static int parse_status_fd(const struct args *a, int *ret)
{
	uint64_t n;

	*ret = -1;
	if (!a->given[OPT_STATUS_FD])
		return 0;
	if (!sv_to_u64(sv_from(a->value[OPT_STATUS_FD]), 1 << 20, &n) ||
	    fcntl((int)n, F_GETFD) < 0)
		return cli_end(EXIT_FAILED, "--status-fd wants the number of an open descriptor");
	*ret = (int)n;
	(void)fcntl((int)n, F_SETFD, FD_CLOEXEC);
	return 0;
}

static int parse_durability(const struct args *a, bool *ret)
{
	const struct sv kind =
		sv_from(a->given[OPT_DURABILITY] ? a->value[OPT_DURABILITY] : "process");

	if (!sv_eq(kind, SV("process")) && !sv_eq(kind, SV("power")))
		return cli_end(EXIT_FAILED, "--durability is process or power, not \"%s\"",
			       a->value[OPT_DURABILITY]);
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

/*
 * Warns if root starts a session in a workspace of another user. Inside the session root has no
 * capabilities, so file permissions apply to root as to any other user.
 */
static void warn_foreign(struct sv workspace)
{
	struct stat st;

	if (geteuid() == 0 && workspace.n && stat(workspace.p, &st) == 0 && st.st_uid != 0 &&
	    !(st.st_mode & S_IWOTH) && !(st.st_gid == 0 && st.st_mode & S_IWGRP))
		cli_note("this directory belongs to user %u: inside, root can write only what is "
			 "root's own; run writ as that user",
			 (unsigned)st.st_uid);
}

/*
 * Prints the session's tier, workspace and weak guarantees if standard error is a terminal and
 * --quiet is not given.
 */
static void banner(struct args *a, const struct launch_loaded *l, const struct plan *p)
{
	size_t weak = 0;

	if (a->given[OPT_QUIET] || !isatty(STDERR_FILENO))
		return;
	for (unsigned i = 0; i < G_COUNT; i++)
		weak += p->guarantees[i].level < LEVEL_STRICTER && !p->guarantees[i].unasked;
	if (l->in.where.workspace.n == 0)
		cli_note("no workspace: %s; it starts in a private home", l->in.where.no_workspace);
	cli_note("tier %s, %s%s%s%s%s", plan_tier_name(p->tier),
		 weak ? "some guarantees are weaker here (writ explain -v)" : "all exact",
		 l->in.agent.n ? " · profile " : "",
		 l->in.agent.n ? arena_str(a->arena, l->in.agent) : "",
		 l->in.where.workspace.n ? " · workspace " : "",
		 l->in.where.workspace.n ? arena_str(a->arena, l->in.where.workspace) : "");
}

static void show_planned(void *ctx, const struct launch_loaded *l, const struct plan *p)
{
	struct args *a = ctx;

	if (!plan_runs(p)) {
		cli_show_refused(p);
		return;
	}
	banner(a, l, p);
	if (!a->given[OPT_QUIET])
		warn_foreign(l->in.where.workspace);
}

/*
 * Fills the parts of a launch request that `run` and `session start` share; the operands from
 * @first on are the command.
 */
static int make_request(struct args *a, size_t first, struct launch_request *ret)
{
	int code;

	cli_request(a, ret);
	if ((code = cli_plan_options(a, &ret->host)) ||
	    (code = parse_durability(a, &ret->opt.durable)))
		return code;
	ret->command.argv = command_of(a, first);
	if (!ret->command.argv)
		return EXIT_FAILED;
	ret->command.neutral = a->given[OPT_NEUTRAL];
	ret->opt.quiet = a->given[OPT_QUIET];
	ret->opt.verbose = a->given[OPT_VERBOSE];
	ret->opt.explain = a->given[OPT_EXPLAIN_DENIALS];
	ret->events.planned = show_planned;
	return 0;
}

static int start(struct args *a, struct launch_request *req, char ret_id[static SESSION_ID + 1])
{
	struct launch_result result;
	struct writ_err err = { 0 };
	struct host_facts facts;
	int r;

	if (a->given[OPT_FACTS]) {
		r = cli_load_facts(a, false, &facts);
		if (r)
			return r;
		req->host.facts = &facts;
	}
	r = launch_run(a->arena, req, &result, &err);
	req->host.facts = NULL;
	memcpy(ret_id, result.id, sizeof(result.id));
	if (r < 0)
		return cli_launch_failed(&result, &err);
	if (err.what[0])
		(void)!cli_fail(&err, NULL);
	return result.exit;
}

/*
 * Runs a session and writes its evidence. Opens the --attest-out directory before the agent starts,
 * because the agent could replace the directory.
 */
static int run_attested(struct args *a, struct launch_request *req)
{
	char id[SESSION_ID + 1] = "";
	struct writ_err err = { 0 };
	scoped_fd dir = -1;
	int r;

	if (cli_attest_out_open(a->value[OPT_ATTEST_OUT], &dir, &err) < 0)
		return cli_fail(&err, "--attest-out");
	r = start(a, req, id);
	if (!id[0] || cli_attest_out(a, sv_from(id), dir, &err) == 0)
		return r;
	(void)!cli_fail(&err, "--attest-out");
	return r == EXIT_DONE ? EXIT_FAILED : r;
}

int cmd_run(struct args *a)
{
	struct launch_request req;
	char id[SESSION_ID + 1];
	struct writ_err err = { 0 };
	int r, code = EXIT_FAILED;

	if (a->operands.n == 0)
		return cli_end(EXIT_FAILED, "run what? as in: %s", a->verb->example);
	if ((r = make_request(a, 0, &req)) || (r = parse_status_fd(a, &req.opt.status_fd)))
		return r;
	r = session_job(&req.opt.job, &code, &err);
	if (r)
		return r < 0 ? cli_fail(&err, NULL) : code;
	return a->given[OPT_ATTEST_OUT] ? run_attested(a, &req) : start(a, &req, id);
}

int cmd_spawn(struct args *a)
{
	char cwd[PATH_MAX];
	struct writ_err err = { 0 };
	/*
	 * Option parsing stopped at the agent's name, so a "--" after the name is still an operand.
	 */
	const bool dashes = a->operands.n > 1 && sv_is(sv_from(a->operands.v[1]), "--");
	char **argv = command_of(a, dashes ? 2 : 1);
	int code = EXIT_FAILED;

	if (!argv || !argv[0])
		return cli_end(EXIT_FAILED, "spawn what? as in: %s", a->verb->example);
	if (session_spawn(sv_from(a->operands.v[0]), argv,
			  sv_from(getcwd(cwd, sizeof(cwd)) ? cwd : "/"), &code, &err) < 0)
		return cli_fail(&err, NULL);
	return code;
}

/* --- session start, exec, stop --- */

static int session_start(struct args *a)
{
	struct launch_request req;
	char id[SESSION_ID + 1];
	struct buf b = BUF_INIT(64);
	struct writ_err err = { 0 };
	int code = EXIT_FAILED, r = make_request(a, 1, &req);

	if (r)
		return r;
	req.command.detach = req.command.named = true;
	r = launch_background(&req.opt.ready_fd, id, &code, &err);
	if (r == 0)
		_exit(start(a, &req, id));
	if (r < 0)
		return cli_fail(&err, NULL);
	if (!id[0])
		return code;
	buf_fmt(&b, "%s\n", id);
	return cli_out(&b, EXIT_DONE);
}

/*
 * Reports that a command keeps running after the user detached from it, or after another terminal
 * attached to it.
 */
static void note_left(const struct args *a, const struct session_look *look)
{
	if (look->left && !a->given[OPT_QUIET])
		cli_note("%s; it goes on: writ session attach %s %u",
			 look->taken ? "somebody else has attached" : "left", look->id,
			 look->number);
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

	if (a->operands.n < 3 || !argv)
		return cli_end(EXIT_FAILED,
			       "exec what? as in: writ session exec 7f3a -- make test");
	if (cli_where_find(a->arena, a->value[OPT_CWD], false, &w, &err) < 0 ||
	    session_exec(w.state, sv_from(a->operands.v[1]), argv, environ, w.cwd, &look, &code,
			 &err) < 0)
		return cli_fail(&err, NULL);
	if (err.what[0])
		(void)!cli_fail(&err, NULL);
	/* Print the command's number even if the command has already ended. */
	else if (look.detach && look.number) {
		buf_fmt(&b, "%u\n", look.number);
		return cli_out(&b, EXIT_DONE);
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
	    (a->operands.n == 3 && !sv_to_u64(sv_from(a->operands.v[2]), UINT32_MAX, &number)))
		return cli_end(EXIT_FAILED, "attach to what? as in: writ session attach 7f3a, or "
			       "writ session attach 7f3a 2");
	look.number = (uint32_t)number;
	if (cli_where_find(a->arena, NULL, false, &w, &err) < 0 ||
	    session_attach(w.state, sv_from(a->operands.v[1]), &look, &code, &err) < 0)
		return cli_fail(&err, NULL);
	note_left(a, &look);
	return code;
}

bool cli_denial_put(void *ctx, const struct session_denial *d)
{
	struct cli_denials *l = ctx;

	if (l->number && (d->number != l->number || d->guessed != l->hint))
		return true;
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
	scoped_buf b = BUF_INIT(OUT_MAX);
	struct cli_denials l = { .b = &b, .json = a->given[OPT_JSON] };
	struct find_where w;
	struct writ_err err = { 0 };

	if (a->operands.n != 2)
		return cli_end(EXIT_FAILED,
			       "denials of which session? as in: writ session denials 7f3a");
	if (l.json)
		buf_ch(&b, '[');
	if (cli_where_find(a->arena, NULL, false, &w, &err) < 0 ||
	    session_denials(w.state, sv_from(a->operands.v[1]), cli_denial_put, &l, &err) < 0)
		return cli_fail(&err, NULL);
	if (l.json)
		buf_str(&b, "]\n");
	else if (l.n == 0 && !a->given[OPT_QUIET])
		cli_note("nothing was refused that could be seen");
	return cli_out(&b, EXIT_DONE);
}

static int session_prune_verb(struct args *a)
{
	uint64_t seconds = (uint64_t)SESSION_KEEP_DAYS * 86400;
	struct find_where w;
	struct writ_err err = { 0 };
	size_t n = 0;

	if (a->operands.n != 1 || (a->given[OPT_OLDER_THAN] &&
				   !policy_duration(sv_from(a->value[OPT_OLDER_THAN]), &seconds)))
		return cli_end(EXIT_FAILED,
			       "prune what? as in: writ session prune --older-than 7d");
	if (cli_where_find(a->arena, NULL, false, &w, &err) < 0 ||
	    session_prune(w.state, seconds, a->given[OPT_OLDER_THAN] ? SIZE_MAX : SESSION_KEEP, &n,
			  &err) < 0)
		return cli_fail(&err, NULL);
	if (!a->given[OPT_QUIET])
		cli_note("%zu record%s removed", n, n == 1 ? "" : "s");
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
	return cli_end(EXIT_FAILED, "session start, exec, attach, denials, prune, or stop; see "
		       "writ help session");
}
