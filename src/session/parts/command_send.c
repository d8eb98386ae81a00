#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "parts/commands.h"
#include "parts/engine.h"
#include "parts/git_transport.h"
#include "parts/inspection.h"
#include "parts/probe.h"

#include "base/banned.h"

static const char default_path[] = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/* --- the environment, built from nothing --- */

struct env_list {
	VEC(struct engine_env) v;
};

/* Adds a variable unless the list has its name: the first value of a name counts. */
static bool put_env(struct session *s, struct env_list *env, struct sv name, struct sv value)
{
	struct engine_env *e;

	for (size_t i = 0; i < env->v.n; i++)
		if (sv_eq(env->v.v[i].name, name))
			return true;
	e = vec_push(s->a, &env->v);
	if (!e)
		return false;
	*e = (struct engine_env){ name, value };
	return true;
}

static bool name_matches(struct sv pattern, struct sv name)
{
	const size_t star = sv_find(pattern, '*');

	if (star == SIZE_MAX)
		return sv_eq(pattern, name);
	return name.n + 1 >= pattern.n && sv_starts(name, sv_sub(pattern, 0, star)) &&
	       sv_ends(name, sv_skip(pattern, star + 1));
}

static bool put_passed(struct session *s, struct env_list *env, char *const *envp,
		       struct sv pattern)
{
	for (char *const *e = envp; *e; e++) {
		struct sv rest = sv_from(*e);
		const struct sv name = sv_cut(&rest, '=');

		if (name_matches(pattern, name) && !put_env(s, env, name, rest))
			return false;
	}
	return true;
}

/* Profiles name state directories by their paths in tier A: tier B replaces the path. */
static bool put_set(struct session *s, struct env_list *env, struct sv name, struct sv value)
{
	const struct sv usual = SV("/var/agent/state");
	const char *here;

	if (engine_view(s)->own_mounts || !sv_starts(value, usual))
		return put_env(s, env, name, value);
	here = arena_fmt(s->a, SV_FMT SV_FMT, SV_ARG(engine_view(s)->state),
			 SV_ARG(sv_skip(value, usual.n)));
	return here && put_env(s, env, name, sv_from(here));
}

/*
 * Sets the variables that tell programs which certificate authorities to trust; different programs
 * read different variables.
 */
static bool put_trust(struct session *s, struct env_list *env)
{
	struct sv name, value;
	bool ok = true;

	for (size_t i = 0; ok && inspection_trust_name(s, i, &name, &value); i++)
		ok = put_env(s, env, name, value);
	return ok;
}

static bool put_git(struct session *s, struct env_list *env)
{
	struct sv name, value;
	bool ok = true;

	for (size_t i = 0; ok && git_transport_name(s, i, &name, &value); i++)
		ok = put_env(s, env, name, value);
	return ok;
}

/* Names the author of commits where git reads no system configuration. */
static bool put_identity(struct session *s, struct env_list *env)
{
	const struct sv name = engine_git_name(s), email = engine_git_email(s);

	return (name.n == 0 || (put_env(s, env, SV("GIT_AUTHOR_NAME"), name) &&
				put_env(s, env, SV("GIT_COMMITTER_NAME"), name))) &&
	       (email.n == 0 || (put_env(s, env, SV("GIT_AUTHOR_EMAIL"), email) &&
				 put_env(s, env, SV("GIT_COMMITTER_EMAIL"), email)));
}

/* Keeps a digest of the names of the environment's variables for the record, not their values. */
static void note_names(struct session *s, const struct env_list *env)
{
	struct buf b = BUF_INIT(1 << 20);
	struct digest names;

	for (size_t i = 0; i < env->v.n; i++) {
		buf_sv(&b, env->v.v[i].name);
		buf_ch(&b, '\n');
	}
	names = crypto_sha256(buf_view(&b));
	probes_set_names(s, &names);
	buf_clear(&b);
}

/*
 * Adds variables of the session first, then those of the user's policy, then those of shipped
 * profiles.
 */
static bool put_environment(struct session *s, struct env_list *env, char *const *envp)
{
	const struct policy *p = s->opt->policy;
	const struct sv info = engine_view(s)->info;
	const char *policy = arena_fmt(s->a, SV_FMT "/policy", SV_ARG(info));
	const char *runtime = arena_fmt(s->a, "/run/user/%u", (unsigned)geteuid());
	bool ok = policy && runtime && put_env(s, env, SV("HOME"), engine_view(s)->home) &&
		  put_env(s, env, SV("TMPDIR"), engine_view(s)->tmp) &&
		  put_env(s, env, SV("WRIT_SESSION"), sv_from(s->id)) &&
		  put_env(s, env, SV("WRIT_POLICY"), sv_from(policy)) &&
		  put_env(s, env, SV("GIT_TEMPLATE_DIR"), SV(""));

	for (size_t i = 0; ok && i < p->secrets.n; i++) {
		struct sv value;

		ok = secrets_shown(s, i, &value) && put_env(s, env, p->secrets.v[i].name, value);
	}
	if (ok && inspection_reads(s))
		ok = put_trust(s, env);
	if (ok && engine_view(s)->git)
		ok = put_git(s, env);
	if (ok && engine_view(s)->own_mounts)
		ok = put_env(s, env, SV("XDG_RUNTIME_DIR"), sv_from(runtime));
	/* git fails if its system configuration exists and cannot be read. */
	if (ok && !engine_view(s)->own_mounts)
		ok = put_env(s, env, SV("GIT_CONFIG_NOSYSTEM"), SV("1"));
	for (int shipped = 0; ok && shipped < 2; shipped++)
		for (size_t i = 0; ok && i < p->envs.n; i++) {
			const struct policy_setenv *e = &p->envs.v[i];

			if (e->shipped != (bool)shipped)
				continue;
			ok = e->pass ? put_passed(s, env, envp, e->name)
				     : put_set(s, env, e->name, e->value);
		}
	if (ok && !engine_view(s)->own_mounts)
		ok = put_identity(s, env);
	ok = ok && put_env(s, env, SV("PATH"), sv_from(default_path));
	if (ok && !probes_released(s))
		note_names(s, env);
	return ok;
}

/* --- the working directory of a command --- */

/* Under a token, no part of the workspace may be visible in the jail as a working directory. */
static bool is_shown(const struct session *s, struct sv cwd)
{
	for (size_t i = 0; i < engine_view(s)->mounted; i++)
		if (sv_below(engine_view(s)->host_roots.v[i], cwd) ||
		    sv_below(cwd, engine_view(s)->host_roots.v[i]))
			return true;
	return !s->opt->token || !engine_view(s)->own_mounts;
}

static struct sv find_cwd(const struct session *s, struct sv cwd)
{
	const struct sv top = s->opt->workspace;

	if (top.n && is_shown(s, cwd) && sv_starts(cwd, top) &&
	    (cwd.n == top.n || cwd.p[top.n] == '/'))
		return cwd;
	return engine_view(s)->home;
}

/* Returns whether @path exists in the jail. */
static bool is_inside(const struct session *s, struct sv path)
{
	char at[PATH_MAX];
	const int n =
		snprintf(at, sizeof(at), "/proc/%d/root" SV_FMT, engine_init_pid(s), SV_ARG(path));

	return engine_init_pid(s) > 0 && n > 0 && (size_t)n < sizeof(at) &&
	       faccessat(AT_FDCWD, at, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void command_why(const struct session *s, const struct writ_err *err, struct writ_err *ret)
{
	struct sv name = sv_from(err->what);
	const bool missing = err->sys == ENOENT || err->sys == ENOTDIR;

	*ret = *err;
	if (!sv_starts(name, SV("run ")))
		return;
	name = sv_skip(name, 4);
	(void)!writ_fail(ret, err->code, 0, "cannot run " SV_FMT ": %s",
			 SV_ARG(sv_sub(name, 0, 60)),
			 !missing	      ? strerror(err->sys)
			 : is_inside(s, name) ? "its interpreter is not found inside"
					      : "not found inside; is its directory granted?");
}

/* Assembles the command and has the engine send it to writ-init. */
int command_send(struct session *s, const struct command_ask *ask, struct writ_err *err)
{
	const struct sv path = environ_get(ask->environ, SV("PATH"));
	struct engine_command c = { .id = ask->id,
				    .last = ask->last,
				    .probe = !probes_released(s),
				    .argv = ask->argv,
				    .path = path.n ? path : sv_from(default_path),
				    .cwd = find_cwd(s, ask->cwd),
				    .program = ask->program,
				    .umask = ask->umask,
				    .pty = ask->pty,
				    .given = ask->given,
				    .fds = ask->fds,
				    .rows = ask->rows,
				    .cols = ask->cols };
	struct env_list env = { 0 };
	scoped_fd gate = -1;
	int r = probes_gate(s, ask->id, &gate, err);

	c.gate = gate;
	if (r == 0 && !put_environment(s, &env, ask->environ))
		r = writ_nomem(err);
	c.env = env.v.v;
	c.env_n = env.v.n;
	if (r == 0)
		r = engine_exec(s, &c, err);
	if (r < 0)
		probes_shut(s, ask->id);
	return r;
}
