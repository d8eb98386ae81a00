#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session/session_priv.h"

#include "base/banned.h"

static const char default_path[] = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

struct sv environ_get(char *const *envp, struct sv name)
{
	for (; *envp; envp++) {
		struct sv rest = sv_from(*envp);

		if (sv_eq(sv_cut(&rest, '='), name))
			return rest;
	}
	return (struct sv){ NULL, 0 };
}

/* --- the environment, built from nothing --- */

struct names {
	VEC(struct sv) v;
};

/* Each name once, and whoever comes first wins. */
static bool put_env(struct session *s, struct jail_writer *w, struct names *seen, struct sv name,
		    struct sv value)
{
	struct sv *n;

	for (size_t i = 0; i < seen->v.n; i++)
		if (sv_eq(seen->v.v[i], name))
			return true;
	n = vec_push(s->a, &seen->v);
	if (!n)
		return false;
	*n = name;
	return jail_put_env(w, name, value);
}

static bool name_matches(struct sv pattern, struct sv name)
{
	const size_t star = sv_find(pattern, '*');

	if (star == SIZE_MAX)
		return sv_eq(pattern, name);
	return name.n + 1 >= pattern.n && sv_starts(name, sv_sub(pattern, 0, star)) &&
	       sv_ends(name, sv_skip(pattern, star + 1));
}

static bool put_passed(struct session *s, struct jail_writer *w, struct names *seen,
		       char *const *envp, struct sv pattern)
{
	for (char *const *e = envp; *e; e++) {
		struct sv rest = sv_from(*e);
		const struct sv name = sv_cut(&rest, '=');

		if (name_matches(pattern, name) && !put_env(s, w, seen, name, rest))
			return false;
	}
	return true;
}

/* Profiles name state directories by where they are in tier A. */
static bool put_set(struct session *s, struct jail_writer *w, struct names *seen, struct sv name,
		    struct sv value)
{
	const struct sv usual = SV("/var/agent/state");
	const char *here;

	if (s->view.own_mounts || !sv_starts(value, usual))
		return put_env(s, w, seen, name, value);
	here = arena_fmt(s->a, SV_FMT SV_FMT, SV_ARG(s->view.state),
			 SV_ARG(sv_skip(value, usual.n)));
	return here && put_env(s, w, seen, name, sv_from(here));
}

/* Programs are told whom to trust in as many ways as there are programs. */
static bool put_trust(struct session *s, struct jail_writer *w, struct names *seen)
{
	struct sv name, value;
	bool ok = true;

	for (size_t i = 0; ok && read_trust_name(s, i, &name, &value); i++)
		ok = put_env(s, w, seen, name, value);
	return ok;
}

static bool put_git(struct session *s, struct jail_writer *w, struct names *seen)
{
	struct sv name, value;
	bool ok = true;

	for (size_t i = 0; ok && gitnet_name(s, i, &name, &value); i++)
		ok = put_env(s, w, seen, name, value);
	return ok;
}

/* Where git has no settings of the system: who commits. */
static bool put_identity(struct session *s, struct jail_writer *w, struct names *seen)
{
	const struct sv name = sv_from(s->identity.name), email = sv_from(s->identity.email);

	return (name.n == 0 || (put_env(s, w, seen, SV("GIT_AUTHOR_NAME"), name) &&
				put_env(s, w, seen, SV("GIT_COMMITTER_NAME"), name))) &&
	       (email.n == 0 || (put_env(s, w, seen, SV("GIT_AUTHOR_EMAIL"), email) &&
				 put_env(s, w, seen, SV("GIT_COMMITTER_EMAIL"), email)));
}

/* For the record: what there was, not what it said. */
static void note_names(struct session *s, const struct names *seen)
{
	struct buf b = BUF_INIT(1 << 20);

	for (size_t i = 0; i < seen->v.n; i++) {
		buf_sv(&b, seen->v.v[i]);
		buf_ch(&b, '\n');
	}
	s->probing.names = crypto_sha256(buf_view(&b));
	buf_clear(&b);
}

/* What the session itself decides, then what a person wrote, then what profiles bring. */
static bool put_environment(struct session *s, struct jail_writer *w, char *const *envp)
{
	const struct policy *p = s->opt->policy;
	const struct sv info = s->view.info;
	const char *policy = arena_fmt(s->a, SV_FMT "/policy", SV_ARG(info));
	const char *runtime = arena_fmt(s->a, "/run/user/%u", (unsigned)geteuid());
	struct names seen = { 0 };
	bool ok = policy && runtime && put_env(s, w, &seen, SV("HOME"), s->view.home) &&
		  put_env(s, w, &seen, SV("TMPDIR"), s->view.tmp) &&
		  put_env(s, w, &seen, SV("WRIT_SESSION"), sv_from(s->id)) &&
		  put_env(s, w, &seen, SV("WRIT_POLICY"), sv_from(policy)) &&
		  put_env(s, w, &seen, SV("GIT_TEMPLATE_DIR"), SV(""));

	for (size_t i = 0; ok && i < p->secrets.n; i++) {
		struct sv value;

		ok = secret_shown(s, i, &value) &&
		     put_env(s, w, &seen, p->secrets.v[i].name, value);
	}
	if (ok && s->reads)
		ok = put_trust(s, w, &seen);
	if (ok && s->view.git)
		ok = put_git(s, w, &seen);
	if (ok && s->view.own_mounts)
		ok = put_env(s, w, &seen, SV("XDG_RUNTIME_DIR"), sv_from(runtime));
	/* git gives up on a file that is there and cannot be read. */
	if (ok && !s->view.own_mounts)
		ok = put_env(s, w, &seen, SV("GIT_CONFIG_NOSYSTEM"), SV("1"));
	for (int shipped = 0; ok && shipped < 2; shipped++)
		for (size_t i = 0; ok && i < p->envs.n; i++) {
			const struct policy_setenv *e = &p->envs.v[i];

			if (e->shipped != (bool)shipped)
				continue;
			ok = e->pass ? put_passed(s, w, &seen, envp, e->name)
				     : put_set(s, w, &seen, e->name, e->value);
		}
	if (ok && !s->view.own_mounts)
		ok = put_identity(s, w, &seen);
	ok = ok && put_env(s, w, &seen, SV("PATH"), sv_from(default_path));
	if (ok && !s->probing.released)
		note_names(s, &seen);
	return ok;
}

/* --- where it starts --- */

/* A token may leave nothing of the workspace to stand in. */
static bool is_shown(const struct session *s, struct sv cwd)
{
	for (size_t i = 0; i < s->view.mounted; i++)
		if (sv_below(s->view.host_roots.v[i], cwd) ||
		    sv_below(cwd, s->view.host_roots.v[i]))
			return true;
	return !s->opt->token || !s->view.own_mounts;
}

static struct sv find_cwd(const struct session *s, struct sv cwd)
{
	const struct sv top = s->opt->workspace;

	if (top.n && is_shown(s, cwd) && sv_starts(cwd, top) &&
	    (cwd.n == top.n || cwd.p[top.n] == '/'))
		return cwd;
	return s->view.home;
}

/* Is there something of that name inside? */
static bool is_inside(const struct session *s, struct sv path)
{
	char at[PATH_MAX];
	const int n = snprintf(at, sizeof(at), "/proc/%d/root" SV_FMT, s->jail.init, SV_ARG(path));

	return s->jail.init > 0 && n > 0 && (size_t)n < sizeof(at) &&
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

/* Puts the command together and asks pid 1 for it. */
int command_send(struct session *s, const struct command_ask *ask, struct writ_err *err)
{
	struct jail_writer w = JAIL_WRITER_INIT(s->a);
	struct jail_command c = { .umask = ask->umask,
				  .pty = ask->pty,
				  .given = ask->given,
				  .rows = ask->rows,
				  .cols = ask->cols };
	const struct jail_message m = { .type = JAIL_SPAWN, .id = ask->id, .value = ask->last };
	const struct sv path = environ_get(ask->environ, SV("PATH"));
	int fds[5] = { -1 };
	size_t n = 1;
	scoped_fd fd = -1, gate = -1;
	int r = probe_gate(s, ask->id, &gate, err);

	c.flags = (s->probing.released ? 0 : JAIL_COMMAND_PROBE) |
		  (gate >= 0 ? JAIL_COMMAND_GATE : 0);
	c.path = jail_put(&w, path.n ? path : sv_from(default_path));
	c.cwd = jail_put(&w, find_cwd(s, ask->cwd));
	c.program = jail_put(&w, ask->program.n ? ask->program : SV(""));
	for (char *const *arg = ask->argv; r == 0 && *arg; arg++)
		if (!jail_put_arg(&w, sv_from(*arg)))
			r = writ_nomem(err);
	if (r == 0 && !put_environment(s, &w, ask->environ))
		r = writ_nomem(err);
	if (r == 0)
		r = jail_seal_command(&w, &c, &fd, err);
	jail_writer_clear(&w);
	fds[0] = fd;
	for (int i = 0; i < 3; i++)
		if (ask->given & 1u << i)
			fds[n++] = ask->fds[i];
	if (gate >= 0)
		fds[n++] = gate;
	if (r == 0)
		r = jail_send(s->jail.session, &m, fds, n, SV(""), err);
	if (r < 0)
		probe_shut(s, ask->id);
	return r;
}
