#include "audit/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "audit/realm_priv.h"
#include "audit/verify_priv.h"
#include "base/fd.h"

#include "base/banned.h"

const char *verify_state_name(enum verify_state s)
{
	switch (s) {
	case VERIFY_UNCHECKED:
		return "unchecked";
	case VERIFY_SEALED:
		return "sealed";
	case VERIFY_UNSIGNED:
		return "unsigned";
	case VERIFY_OPEN:
		return "open";
	case VERIFY_CUT:
		return "cut";
	case VERIFY_GONE:
		return "gone";
	case VERIFY_UNKNOWN:
		return "unknown";
	case VERIFY_BROKEN:
		return "broken";
	}
	return "unchecked";
}

printf_like(2, 0) static const char *text_of(struct arena *a, const char *fmt, va_list ap)
{
	scoped_buf b = BUF_INIT(1024);

	buf_vfmt(&b, fmt, ap);
	return arena_str(a, buf_view(&b));
}

void verify_failed(struct verify_report *v, const char *place, const char *fmt, ...)
{
	struct verify_finding *f =
		v->failures.n < VERIFY_FINDINGS ? vec_push(v->a, &v->failures) : NULL;
	va_list ap;

	v->failures_n++;
	if (!f)
		return;
	va_start(ap, fmt);
	f->what = text_of(v->a, fmt, ap);
	va_end(ap);
	f->place = arena_str(v->a, sv_from(place));
}

void verify_remark(struct verify_report *v, const char *place, const char *fmt, ...)
{
	struct verify_finding *f =
		v->remarks.n < VERIFY_FINDINGS ? vec_push(v->a, &v->remarks) : NULL;
	va_list ap;

	if (!f)
		return;
	va_start(ap, fmt);
	f->what = text_of(v->a, fmt, ap);
	va_end(ap);
	f->place = arena_str(v->a, sv_from(place));
}

static int lock(struct verify *s, struct writ_err *err)
{
	s->log.dir = open(s->opt->log, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->log.dir < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", s->opt->log);
	/*
	 * Continue without the lock file: every writer creates the lock file, so no writ process
	 * can be writing to this log.
	 */
	s->log.lock = openat(s->log.dir, "lock", O_RDONLY | O_CLOEXEC);
	if (s->log.lock < 0 && errno == ENOENT)
		verify_failed(s->v, "lock", "is not there");
	else if (s->log.lock < 0 || flock(s->log.lock, LOCK_SH) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "lock %s", s->opt->log);
	return 0;
}

static void unlock(struct verify *s)
{
	fd_scope_close(&s->log.lock);
	fd_scope_close(&s->log.dir);
	s->log.lock = s->log.dir = -1;
}

static int check_all(struct verify *s, struct writ_err *err)
{
	int r = lock(s, err);

	if (r == 0)
		r = verify_load_marks(s, err);
	if (r == 0)
		r = verify_tree(s, err);
	if (r == 0)
		r = verify_keys(s, err);
	if (r == 0)
		r = verify_find_running(s, err);
	/*
	 * Release the lock of the realm's log before reading the session files, which takes long.
	 * Sessions may start and end after the release.
	 */
	unlock(s);
	return r == 0 ? verify_sessions(s, err) : r;
}

int realm_verify(const struct verify_options *opt, struct arena *a, struct verify_report *ret,
		 struct writ_err *err)
{
	struct verify s = { .opt = opt, .v = ret, .log = REALM_INIT };
	int r;

	*ret = (struct verify_report){ .a = a };
	r = check_all(&s, err);
	for (size_t i = 0; i < s.marks.n; i++)
		buf_clear(&s.marks.v[i].bytes);
	ret->size = s.tree.size;
	ret->root = tree_frontier_root(&s.tree);
	return r;
}
