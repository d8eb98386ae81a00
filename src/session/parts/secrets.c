#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "l7/placeholder.h"
#include "l7/settings.h"
#include "parts/commands.h"
#include "parts/inspection_priv.h"

#include "base/banned.h"

/*
 * Values of secrets. The supervisor fetches the values once, on the host, and sends them to
 * writ-l7, which puts them into requests. A value enters the agent's environment only if the policy
 * says so.
 */

enum { ARGS_MAX = 64, KEYRING_USER_SESSION = -5, KEY_READ = 11, KEY_SEARCH = 10 };

static int from_command(struct arena *a, struct sv text, struct buf *b, struct writ_err *err)
{
	char *argv[ARGS_MAX + 1] = { NULL };
	size_t n = 0;
	int p[2], status = 0, r;
	pid_t pid;

	while (text.n && n < ARGS_MAX) {
		const struct sv word = sv_cut(&text, ' ');

		if (word.n && !(argv[n++] = arena_str(a, word)))
			return writ_nomem(err);
	}
	if (n == 0 || pipe2(p, O_CLOEXEC) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "run a command for a secret");
	pid = fork();
	if (pid == 0) {
		sigset_t none;

		sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		if (dup2(p[1], STDOUT_FILENO) >= 0)
			execvp(argv[0], argv);
		_exit(127);
	}
	close(p[1]);
	r = pid < 0 ? writ_fail(err, WRIT_E_SYS, errno, "fork") : fd_read_all(p[0], b, err);
	close(p[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r == 0 && status != 0)
		r = writ_fail(err, WRIT_E_SYS, 0, "%s did not give the secret (status %d)", argv[0],
			      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return r;
}

static int from_keyring(struct arena *a, struct sv name, struct buf *b, struct writ_err *err)
{
	char bytes[L7_VALUE_MAX];
	const char *text = arena_str(a, name);
	long key, n;

	if (!text)
		return writ_nomem(err);
	key = syscall(SYS_keyctl, KEY_SEARCH, KEYRING_USER_SESSION, "user", text, 0);
	n = key < 0 ? key : syscall(SYS_keyctl, KEY_READ, key, bytes, sizeof(bytes));
	if (n < 0 || (size_t)n > sizeof(bytes))
		return writ_fail(err, WRIT_E_SYS, errno, "key %s of the kernel's keyring", text);
	buf_add(b, bytes, (size_t)n);
	explicit_bzero(bytes, sizeof(bytes));
	return 0;
}

static int from_file(struct arena *a, const struct session *s, struct sv name, struct buf *b,
		     struct writ_err *err)
{
	const bool home = sv_starts(name, SV("~/")) && s->opt->home.n;
	const char *path = home ? arena_fmt(a, SV_FMT "/" SV_FMT, SV_ARG(s->opt->home),
					    SV_ARG(sv_skip(name, 2)))
				: arena_str(a, name);

	return path ? fd_read_file(path, b, err) : writ_nomem(err);
}

static int fetch(struct session *s, const struct policy_secret *p, struct buf *b,
		 struct writ_err *err)
{
	struct sv v;

	switch (p->kind) {
	case SECRET_ENV:
		v = environ_get(s->opt->environ, p->source);
		if (!v.p)
			return writ_fail(err, WRIT_E_SYNTAX, 0,
					 "secret " SV_FMT ": $" SV_FMT " is not set here",
					 SV_ARG(p->name), SV_ARG(p->source));
		buf_sv(b, v);
		return 0;
	case SECRET_FILE:
		return from_file(s->a, s, p->source, b, err);
	case SECRET_CMD:
		return from_command(s->a, p->source, b, err);
	case SECRET_KEYRING:
		return from_keyring(s->a, p->source, b, err);
	}
	return writ_fail(err, WRIT_E_BUG, 0, "a secret from nowhere");
}

/*
 * SECURITY: a secret is sent in a header, which is one line, so it has no control characters; and
 * writ-l7 cannot recognise a short secret in responses.
 */
static int check(const struct policy_secret *p, struct sv value, struct writ_err *err)
{
	const char *why = value.n < L7_VALUE_MIN   ? "it is too short to be recognised"
			  : value.n > L7_VALUE_MAX ? "it is too long"
						   : NULL;

	for (size_t i = 0; !why && i < value.n; i++)
		if ((unsigned char)value.p[i] < 0x20 || value.p[i] == 0x7f)
			why = "it has control characters";
	return why ? writ_fail(err, WRIT_E_SYNTAX, 0, "secret " SV_FMT ": %s", SV_ARG(p->name), why)
		   : 0;
}

/*
 * SECURITY: allocates memory for secrets that no child inherits, no core dump contains and no swap
 * receives. The supervisor forks all helpers, and only writ-l7 may know the secrets.
 */
static char *make_room(size_t n, struct writ_err *err)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		(void)!writ_nomem(err);
		return NULL;
	}
	(void)mlock(p, n);
	if (madvise(p, n, MADV_DONTDUMP) == 0 && madvise(p, n, MADV_WIPEONFORK) == 0)
		return p;
	(void)!writ_fail(err, WRIT_E_SYS, errno, "memory for secrets");
	(void)munmap(p, n);
	return NULL;
}

/* Wipes the environment variable that a secret came from, so that no child inherits it. */
static void forget_variable(const struct session *s, struct sv name)
{
	const struct sv v = environ_get(s->opt->environ, name);

	if (v.p)
		explicit_bzero((void *)(uintptr_t)v.p, v.n);
}

static int keep(struct session *s, size_t i, struct sv v, struct writ_err *err)
{
	const struct policy_secret *p = &s->opt->policy->secrets.v[i];
	char *to = inspection_of(s)->secret_room + i * L7_VALUE_MAX;
	int r;

	while (v.n && (v.p[v.n - 1] == '\n' || v.p[v.n - 1] == '\r'))
		v.n--;
	r = check(p, v, err);
	if (r < 0)
		return r;
	memcpy(to, v.p, v.n);
	inspection_of(s)->secrets[i] = (struct sv){ to, v.n };
	return 0;
}

int secrets_fetch(struct session *s, struct writ_err *err)
{
	const struct policy *p = s->opt->policy;
	uint8_t id[PLACEHOLDER_ID / 2];
	int r = 0;

	if (p->secrets.n == 0)
		return 0;
	r = crypto_random(id, sizeof(id), err);
	for (size_t i = 0; r == 0 && i < sizeof(id); i++) {
		inspection_of(s)->placeholder[2 * i] = "0123456789abcdef"[id[i] >> 4];
		inspection_of(s)->placeholder[2 * i + 1] = "0123456789abcdef"[id[i] & 15];
	}
	inspection_of(s)->secrets = arena_array(s->a, struct sv, p->secrets.n);
	if (!inspection_of(s)->secrets)
		return writ_nomem(err);
	inspection_of(s)->secret_room = make_room(p->secrets.n * L7_VALUE_MAX, err);
	if (!inspection_of(s)->secret_room)
		return WRIT_E_NOMEM;
	for (size_t i = 0; r == 0 && i < p->secrets.n; i++) {
		struct buf b = BUF_INIT(L7_VALUE_MAX + 2);

		r = fetch(s, &p->secrets.v[i], &b, err);
		if (r == 0)
			r = keep(s, i, buf_view(&b), err);
		if (b.p)
			explicit_bzero(b.p, b.n);
		buf_clear(&b);
	}
	for (size_t i = 0; i < p->secrets.n; i++)
		if (p->secrets.v[i].kind == SECRET_ENV && !sv_is(p->secrets.v[i].form, "env"))
			forget_variable(s, p->secrets.v[i].source);
	return r;
}

/* Returns the value of a secret's variable in the jail: a placeholder, or the secret itself. */
bool secrets_shown(struct session *s, size_t i, struct sv *ret)
{
	const struct policy_secret *p = &s->opt->policy->secrets.v[i];
	scoped_buf b = BUF_INIT(PLACEHOLDER_MAX);
	bool ok;

	if (sv_is(p->form, "env")) {
		*ret = inspection_of(s)->secrets[i];
		return true;
	}
	placeholder_put(&b, p->name, sv_from(inspection_of(s)->placeholder));
	ok = !b.failed && arena_sv(s->a, buf_view(&b), ret);
	return ok;
}

void secrets_clear(struct session *s)
{
	const size_t n = s->opt->policy->secrets.n * L7_VALUE_MAX;

	if (!inspection_of(s)->secret_room)
		return;
	explicit_bzero(inspection_of(s)->secret_room, n);
	(void)munmap(inspection_of(s)->secret_room, n);
	inspection_of(s)->secret_room = NULL;
}
