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
	struct session *s;
	VEC(struct engine_env) v;
	bool failed; /* a variable did not fit into memory */
};

/* Adds a variable unless the list has its name: the first value of a name counts. */
static void put_env(struct env_list *env, struct sv name, struct sv value)
{
	struct engine_env *e;

	for (size_t i = 0; i < env->v.n; i++)
		if (sv_eq(env->v.v[i].name, name))
			return;
	e = vec_push(env->s->a, &env->v);
	if (e)
		*e = (struct engine_env){ name, value };
	env->failed |= !e;
}

/* Adds a variable with a value from arena_fmt(). */
static void put_text(struct env_list *env, struct sv name, const char *value)
{
	env->failed |= !value;
	put_env(env, name, sv_from(value));
}

static bool name_matches(struct sv pattern, struct sv name)
{
	const size_t star = sv_find(pattern, '*');

	if (star == SIZE_MAX)
		return sv_eq(pattern, name);
	return name.n + 1 >= pattern.n && sv_starts(name, sv_sub(pattern, 0, star)) &&
	       sv_ends(name, sv_skip(pattern, star + 1));
}

static void put_passed(struct env_list *env, char *const *envp, struct sv pattern)
{
	for (char *const *e = envp; *e; e++) {
		struct sv rest = sv_from(*e);
		const struct sv name = sv_cut(&rest, '=');

		if (name_matches(pattern, name))
			put_env(env, name, rest);
	}
}

/*
 * Profiles name state directories by their paths in tier A. Tier B replaces the beginning of such a
 * path by the state directory on the host.
 */
static void put_set(struct env_list *env, struct sv name, struct sv value)
{
	const struct engine_view *view = engine_view(env->s);
	const struct sv usual = SV("/var/agent/state");

	if (view->own_mounts || !sv_below(value, usual))
		put_env(env, name, value);
	else
		put_text(env, name,
			 arena_fmt(env->s->a, SV_FMT SV_FMT, SV_ARG(view->state),
				   SV_ARG(sv_skip(value, usual.n))));
}

/* Adds the variables that @get returns for 0, 1, 2 and so on, until @get returns false. */
static void put_all(struct env_list *env,
		    bool (*get)(struct session *s, size_t i, struct sv *ret_name,
				struct sv *ret_value))
{
	struct sv name, value;

	for (size_t i = 0; get(env->s, i, &name, &value); i++)
		put_env(env, name, value);
}

/* Names the author of commits in tier B, where git reads no system configuration. */
static void put_identity(struct env_list *env)
{
	const struct sv name = sv_from(engine_identity(env->s)->name);
	const struct sv email = sv_from(engine_identity(env->s)->email);

	if (name.n) {
		put_env(env, SV("GIT_AUTHOR_NAME"), name);
		put_env(env, SV("GIT_COMMITTER_NAME"), name);
	}
	if (email.n) {
		put_env(env, SV("GIT_AUTHOR_EMAIL"), email);
		put_env(env, SV("GIT_COMMITTER_EMAIL"), email);
	}
}

/* Keeps a digest of the names of the environment's variables for the record, not their values. */
static void note_names(const struct env_list *env)
{
	scoped_buf b = BUF_INIT(1 << 20);
	struct digest names;

	for (size_t i = 0; i < env->v.n; i++) {
		buf_sv(&b, env->v.v[i].name);
		buf_ch(&b, '\n');
	}
	names = crypto_sha256(buf_view(&b));
	probes_set_names(env->s, &names);
}

/*
 * Adds variables of the session first, then those of the user's policy, then those of shipped
 * profiles.
 */
static void put_environment(struct env_list *env, char *const *envp)
{
	struct session *s = env->s;
	const struct policy *p = s->opt->policy;
	const struct engine_view *view = engine_view(s);

	put_env(env, SV("HOME"), view->home);
	put_env(env, SV("TMPDIR"), view->tmp);
	put_env(env, SV("WRIT_SESSION"), sv_from(s->id));
	put_text(env, SV("WRIT_POLICY"), arena_fmt(s->a, SV_FMT "/policy", SV_ARG(view->info)));
	put_env(env, SV("GIT_TEMPLATE_DIR"), SV(""));
	for (size_t i = 0; i < p->secrets.n; i++) {
		struct sv value = SV("");

		env->failed |= !secrets_shown(s, i, &value);
		put_env(env, p->secrets.v[i].name, value);
	}
	/* Programs read different variables to learn which certificate authorities to trust. */
	if (inspection_reads(s))
		put_all(env, inspection_trust_name);
	if (view->git)
		put_all(env, git_transport_name);
	if (view->own_mounts)
		put_text(env, SV("XDG_RUNTIME_DIR"),
			 arena_fmt(s->a, "/run/user/%u", (unsigned)geteuid()));
	/* git fails if its system configuration exists and cannot be read. */
	else
		put_env(env, SV("GIT_CONFIG_NOSYSTEM"), SV("1"));
	for (int shipped = 0; shipped < 2; shipped++)
		for (size_t i = 0; i < p->envs.n; i++) {
			const struct policy_setenv *e = &p->envs.v[i];

			if (e->shipped != (bool)shipped)
				continue;
			if (e->pass)
				put_passed(env, envp, e->name);
			else
				put_set(env, e->name, e->value);
		}
	if (!view->own_mounts)
		put_identity(env);
	put_env(env, SV("PATH"), sv_from(default_path));
	if (!env->failed && !probes_released(s))
		note_names(env);
}

/* --- the working directory of a command --- */

/*
 * Is the directory @cwd of the workspace visible in the jail? Without a token, and in tier B, every
 * directory is. Under a token in tier A, a directory is visible only at, above or below a mount.
 */
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
	struct env_list env = { .s = s };
	scoped_fd gate = -1;
	int r = probes_gate(s, ask->id, &gate, err);

	c.gate = gate;
	if (r == 0)
		put_environment(&env, ask->environ);
	if (env.failed)
		r = writ_nomem(err);
	c.env = env.v.v;
	c.env_n = env.v.n;
	if (r == 0)
		r = s->opt->plan->engine->exec(engine_run(s), s->a, &c, err);
	if (r < 0)
		probes_shut(s, ask->id);
	return r;
}
