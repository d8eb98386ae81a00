#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "lib/lib_priv.h"

#include "base/banned.h"

extern char **environ;

/*
 * Check here and below that the public error codes (WRIT_ERROR_*) equal the internal ones
 * (WRIT_E_*).
 */
_Static_assert((int)WRIT_ERROR_SYSTEM == (int)WRIT_E_SYS, "codes differ");
_Static_assert((int)WRIT_ERROR_MEMORY == (int)WRIT_E_NOMEM, "codes differ");
_Static_assert((int)WRIT_ERROR_SYNTAX == (int)WRIT_E_SYNTAX, "codes differ");
_Static_assert((int)WRIT_ERROR_LIMIT == (int)WRIT_E_LIMIT, "codes differ");
_Static_assert((int)WRIT_ERROR_DENIED == (int)WRIT_E_DENIED, "codes differ");
_Static_assert((int)WRIT_ERROR_UNENFORCEABLE == (int)WRIT_E_UNENFORCEABLE, "codes differ");
_Static_assert((int)WRIT_ERROR_BUG == (int)WRIT_E_BUG, "codes differ");

const char *writ_version(void)
{
	return WRIT_VERSION;
}

void writ_text_free(char *text)
{
	free(text);
}

int lib_error(struct writ_error *to, const struct writ_err *from)
{
	const int code = from->code ? from->code : WRIT_E_BUG;
	char text[64] = "";

	if (!to)
		return code;
	*to = (struct writ_error){ .code = code, .sys = from->sys };
	if (from->sys)
		snprintf(text, sizeof(text), ": %s", strerrordesc_np(from->sys));
	snprintf(to->text, sizeof(to->text), "%s%s", from->what, text);
	return code;
}

void *lib_new(size_t size, struct writ_error *err)
{
	void *p = calloc(1, size);
	struct writ_err why = { 0 };

	if (!p) {
		(void)!writ_nomem(&why);
		(void)lib_error(err, &why);
	}
	return p;
}

int lib_argument(struct writ_error *to, const char *what)
{
	if (to) {
		*to = (struct writ_error){ .code = WRIT_ERROR_ARGUMENT };
		snprintf(to->text, sizeof(to->text), "%s", what);
	}
	return WRIT_ERROR_ARGUMENT;
}

/*
 * Copies the options struct of a program. A program compiled with an older header passes a shorter
 * struct, and one compiled with a newer header a longer struct. The longer struct is accepted if
 * all members that this library does not know are zero.
 */
bool lib_options(void *to, size_t room, size_t least, const void *from)
{
	size_t size;

	memset(to, 0, room);
	if (!from)
		return true;
	memcpy(&size, from, sizeof(size));
	if (size < least || size > 65536)
		return false;
	for (size_t i = room; i < size; i++)
		if (((const char *)from)[i])
			return false;
	memcpy(to, from, size < room ? size : room);
	return true;
}

/* Copies the text of @b to memory from malloc(), which the caller frees, and clears @b. */
int lib_text(struct buf *b, char **ret, struct writ_err *err)
{
	int r = buf_check(b, err);
	char *text = r < 0 ? NULL : malloc(b->n + 1);

	if (r == 0 && !text)
		r = writ_nomem(err);
	if (text) {
		if (b->n)
			memcpy(text, b->p, b->n);
		text[b->n] = 0;
		*ret = text;
	}
	buf_clear(b);
	return r;
}

static char **copy_environ(struct arena *a, char *const *from)
{
	size_t n = 0;
	char **v;

	while (from && from[n])
		n++;
	v = arena_array(a, char *, n + 1);
	for (size_t i = 0; v && i < n; i++) {
		v[i] = arena_str(a, sv_from(from[i]));
		if (!v[i])
			return NULL;
	}
	return v;
}

static int fill(struct writ *w, const struct writ_options *opt, struct writ_err *err)
{
	/*
	 * The public struct declares the environment const for the caller; this function does not
	 * write to the environment.
	 */
	char *const *env = opt->environ ? (char *const *)(uintptr_t)opt->environ : environ;
	struct find_options where = { .home = opt->home,
				      .config = opt->config_dir,
				      .state = opt->state_dir,
				      .make_realm = true };
	int r = crypto_start(err);

	if (r < 0)
		return r;
	w->environ = copy_environ(&w->arena, env);
	if (!w->environ)
		return writ_nomem(err);
	where.environ = w->environ;
	if ((r = locate_where(&w->arena, &where, &w->where, err)) < 0)
		return r;
	if (w->where.state.n == 0)
		return writ_fail(err, WRIT_E_SYS, ENOENT,
				 "there is no place for state: give state_dir or set HOME");
	/*
	 * Ignore that no writ program is installed: the handle can still check policies and confine
	 * this process. A program that the caller names must exist.
	 */
	r = lib_program_open(opt->program, &w->program, &w->no_program);
	if (r < 0 && opt->program)
		*err = w->no_program;
	return opt->program ? r : 0;
}

int writ_new(const struct writ_options *options, struct writ **ret, struct writ_error *err)
{
	struct writ_options opt;
	struct writ_err why = { 0 };
	struct writ *w;

	if (!ret || !lib_options(&opt, sizeof(opt), sizeof(size_t), options))
		return lib_argument(err,
				    "writ_new: options of an unknown size, or no place for it");
	w = lib_new(sizeof(*w), err);
	if (!w)
		return WRIT_ERROR_MEMORY;
	w->arena = (struct arena)ARENA_INIT(64 << 20);
	w->program = -1;
	pthread_mutex_init(&w->lock, NULL);
	if (fill(w, &opt, &why) < 0) {
		writ_free(w);
		return lib_error(err, &why);
	}
	*ret = w;
	return 0;
}

void writ_free(struct writ *w)
{
	if (!w)
		return;
	fd_scope_close(&w->program);
	pthread_mutex_destroy(&w->lock);
	arena_clear(&w->arena);
	free(w);
}
