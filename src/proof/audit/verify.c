#include "audit/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "audit/realm_priv.h"
#include "audit/verify_priv.h"
#include "base/fd.h"

#include "base/banned.h"

const char *verify_state_name(enum verify_state s)
{
	static const char *const names[] = { [VERIFY_UNCHECKED] = "unchecked",
					     [VERIFY_SEALED] = "sealed",
					     [VERIFY_UNSIGNED] = "unsigned",
					     [VERIFY_OPEN] = "open",
					     [VERIFY_CUT] = "cut",
					     [VERIFY_GONE] = "gone",
					     [VERIFY_UNKNOWN] = "unknown",
					     [VERIFY_BROKEN] = "broken" };

	return names[s];
}

/* Fills the finding @f, which is NULL if the report has too many. */
printf_like(4, 0) static void put_finding(struct verify_report *v, struct verify_finding *f,
					  const char *place, const char *fmt, va_list ap)
{
	scoped_buf b = BUF_INIT(1024);

	if (!f)
		return;
	buf_vfmt(&b, fmt, ap);
	f->what = arena_str(v->a, buf_view(&b));
	f->place = arena_str(v->a, sv_from(place));
}

void verify_failed(struct verify_report *v, const char *place, const char *fmt, ...)
{
	const bool room = v->failures.n < VERIFY_FINDINGS;
	va_list ap;

	v->failures_n++;
	va_start(ap, fmt);
	put_finding(v, room ? vec_push(v->a, &v->failures) : NULL, place, fmt, ap);
	va_end(ap);
}

void verify_remark(struct verify_report *v, const char *place, const char *fmt, ...)
{
	const bool room = v->remarks.n < VERIFY_FINDINGS;
	va_list ap;

	va_start(ap, fmt);
	put_finding(v, room ? vec_push(v->a, &v->remarks) : NULL, place, fmt, ap);
	va_end(ap);
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

static int check_log(struct verify *s, struct writ_err *err)
{
	int r;

	if ((r = lock(s, err)) < 0 || (r = verify_load_marks(s, err)) < 0 ||
	    (r = verify_tree(s, err)) < 0 || (r = verify_keys(s, err)) < 0)
		return r;
	return verify_find_running(s, err);
}

int realm_verify(const struct verify_options *opt, struct arena *a, struct verify_report *ret,
		 struct writ_err *err)
{
	struct verify s = { .opt = opt, .v = ret, .log = REALM_INIT };
	int r;

	*ret = (struct verify_report){ .a = a };
	r = check_log(&s, err);
	/*
	 * Release the lock of the realm's log before reading the session files, which takes long.
	 * Sessions may start and end after the release.
	 */
	fd_scope_close(&s.log.lock);
	fd_scope_close(&s.log.dir);
	if (r == 0)
		verify_sessions(&s);
	ret->size = s.tree.size;
	ret->root = tree_frontier_root(&s.tree);
	return r;
}
