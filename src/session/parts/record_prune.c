#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "codec/json.h"
#include "parts/client.h"
#include "parts/hints.h"
#include "parts/records.h"

#include "base/banned.h"

/* Finds, reads and removes records of sessions that run or have ended. */

enum { LINE_MAX_BYTES = 4 << 20 };

static bool is_record(const char *name)
{
	const struct sv s = sv_from(name);

	return s.n == SESSION_ID + 6 && sv_ends(s, SV(".jsonl"));
}

static bool is_later(int dir, const char *name, struct timespec *last)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_mtim.tv_sec < last->tv_sec ||
	    (st.st_mtim.tv_sec == last->tv_sec && st.st_mtim.tv_nsec < last->tv_nsec))
		return false;
	*last = st.st_mtim;
	return true;
}

/*
 * Opens the only record whose name begins with @id, or with @newest the newest such record. Returns
 * the descriptor of the record, and its id in @ret_id.
 */
static int open_record(struct sv state, struct sv id, bool newest,
		       char ret_id[static SESSION_ID + 1], struct writ_err *err)
{
	scoped_arena a = ARENA_INIT(1 << 16);
	const char *path = arena_fmt(&a, SV_FMT "/sessions", SV_ARG(state));
	scoped_list *d = path ? opendir(path) : NULL;
	const struct dirent *e;
	struct timespec last = { 0 };
	size_t found = 0;
	int fd = -1;

	while (d && (e = readdir(d)))
		if (is_record(e->d_name) && sv_starts(sv_from(e->d_name), id) &&
		    (!newest || is_later(dirfd(d), e->d_name, &last))) {
			memcpy(ret_id, e->d_name, SESSION_ID);
			ret_id[SESSION_ID] = 0;
			found = newest ? 1 : found + 1;
		}
	path = found == 1 ? arena_fmt(&a, "%s.jsonl", ret_id) : NULL;
	if (d && path)
		fd = openat(dirfd(d), path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (found != 1)
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 found	  ? "more than one session begins with \"" SV_FMT "\""
				 : newest ? "there is no record of a session yet" SV_FMT
					  : "there is no record of a session \"" SV_FMT "\"",
				 SV_ARG(id));
	return fd < 0 ? writ_fail(err, WRIT_E_SYS, errno, "the record of session %s", ret_id) : fd;
}

int session_record(struct sv state, struct sv id, char ret_id[static SESSION_ID + 1],
		   struct writ_err *err)
{
	return open_record(state, id, id.n == 0, ret_id, err);
}

static uint32_t number_of(const json_t *o, const char *key)
{
	const json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 && v <= DENIALS_MAX ? (uint32_t)v : 0;
}

struct reading {
	struct sv id;
	bool hints; /* the lines are from the file of hints, not from the record */
	bool running;
	bool (*each)(void *ctx, const struct session_denial *d);
	void *ctx;
};

/*
 * Passes the denial or hint in @line to the callback, and skips any other line. Returns false if
 * the callback wants no more.
 */
static bool read_line(void *ctx, struct sv line)
{
	const struct reading *r = ctx;
	scoped_arena a = ARENA_INIT(LINE_MAX_BYTES);
	struct writ_err ignored = { 0 };
	scoped_json *o = NULL;
	struct session_denial d;

	/* Almost all lines are of another kind. Skip a damaged line. */
	if (!sv_is(entry_event(line), r->hints ? "hint" : "denied") ||
	    json_decode(line, LINE_MAX_BYTES, &o, &ignored) < 0)
		return true;
	d = (struct session_denial){
		.session = r->id,
		.running = r->running,
		.number = number_of(o, "number"),
		.guessed = r->hints,
		.defaults = json_is_true(json_object_get(o, "defaults")),
		.profile = entry_text(o, "profile", &a),
		.op = entry_text(o, "op", &a),
		.object = entry_text(o, "object", &a),
		.program = entry_text(o, "program", &a),
		.why = entry_text(o, "why", &a),
		.reason = cap_reason_parse(entry_text(o, "reason", &a)),
		.protect = protect_find(entry_text(o, "protected", &a)),
		.rule = entry_text(o, "rule", &a),
		.where = entry_text(o, "where", &a),
		.guarantee = entry_text(o, "guarantee", &a),
		.level = entry_text(o, "level", &a),
		.by = entry_text(o, "by", &a),
	};
	return r->each(r->ctx, &d);
}

/* Returns whether the session @id is running and may still write its record. */
static bool is_running(struct sv state, struct sv id)
{
	struct writ_err gone = { 0 };

	return session_call(state, id, "session.get", json_object(), NULL, &gone) == 0;
}

/* Returns whether the record is locked: the supervisor locks it from the first line to the last. */
static bool is_held(int fd)
{
	if (flock(fd, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK;
	(void)flock(fd, LOCK_UN);
	return false;
}

/*
 * Reads the record @fd to its end and closes @fd. With @follow, also waits for further lines as
 * long as the supervisor holds the lock of the record.
 */
static int read_lines(int fd, bool follow, bool (*each)(void *ctx, struct sv line), void *ctx,
		      struct writ_err *err)
{
	FILE *f = fdopen(fd, "r");
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	bool more = follow;

	if (!f) {
		close(fd);
		return writ_nomem(err);
	}
	for (;;) {
		while ((n = getline(&line, &room, f)) > 0)
			if (n > LINE_MAX_BYTES || !each(ctx, (struct sv){ line, (size_t)n }))
				goto out;
		if (!more)
			break;
		/*
		 * The supervisor holds the lock of the record until it has written the last line.
		 * Check the lock before reading again: if it is free, the next read gets every
		 * line.
		 */
		more = is_held(fd);
		if (more)
			(void)usleep(100000);
		clearerr(f);
	}
out:
	free(line);
	(void)fclose(f);
	return 0;
}

int session_lines(struct sv state, struct sv id, bool follow,
		  bool (*each)(void *ctx, struct sv line), void *ctx, struct writ_err *err)
{
	char name[SESSION_ID + 1];
	const int fd = open_record(state, id, false, name, err);

	return fd < 0 ? fd : read_lines(fd, follow, each, ctx, err);
}

/* Reads the hints of a session from the file beside the record, if there is one. */
static int read_hints(struct sv state, struct reading *r, struct writ_err *err)
{
	scoped_arena a = ARENA_INIT(1 << 16);
	const char *path = arena_fmt(&a, SV_FMT "/sessions/" SV_FMT HINTS_SUFFIX, SV_ARG(state),
				     SV_ARG(r->id));
	const int fd = path ? open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC) : -1;

	if (!path)
		return writ_nomem(err);
	if (fd < 0)
		return errno == ENOENT ? 0
				       : writ_fail(err, WRIT_E_SYS, errno,
						   "the hints of session " SV_FMT, SV_ARG(r->id));
	r->hints = true;
	return read_lines(fd, false, read_line, r, err);
}

int session_denials(struct sv state, struct sv id,
		    bool (*each)(void *ctx, const struct session_denial *d), void *ctx,
		    struct writ_err *err)
{
	struct reading r = { .each = each, .ctx = ctx };
	char name[SESSION_ID + 1];
	int result, fd;

	if (id.n == 0)
		return writ_fail(err, WRIT_E_SYNTAX, 0,
				 "which session? an empty name is none; see writ ps");
	fd = open_record(state, id, false, name, err);
	if (fd < 0)
		return fd;
	close(fd);
	r.id = sv_from(name);
	r.running = is_running(state, r.id);
	result = session_lines(state, r.id, false, read_line, &r, err);
	return result < 0 ? result : read_hints(state, &r, err);
}

/* --- removing records --- */

enum {
	PRUNE_MAX = 100000, /* most records examined in one call */
	TIDY_SECONDS = 3600 /* time between two automatic removals */
};

struct kept {
	int64_t time;
	char name[SESSION_ID + 1];
};

static int newest_first(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return x->time > y->time ? -1 : x->time < y->time;
}

/*
 * Returns whether a session has a run directory. A session may have its record before its run
 * directory, and removes the run directory last.
 */
static bool has_place(int run, const char *name)
{
	return run >= 0 && faccessat(run, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Lists records of ended sessions, newest first. */
static size_t list_ended(DIR *d, int run, struct kept *ret)
{
	const struct dirent *e;
	size_t n = 0;

	while (n < PRUNE_MAX && (e = readdir(d))) {
		struct kept *k = &ret[n];
		struct stat st;

		if (!is_record(e->d_name) ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		memcpy(k->name, e->d_name, SESSION_ID);
		k->name[SESSION_ID] = 0;
		k->time = st.st_mtime;
		n += !has_place(run, k->name);
	}
	if (n)
		qsort(ret, n, sizeof(*ret), newest_first);
	return n;
}

static size_t remove_old(int dir, const struct kept *v, size_t n, int64_t before, size_t keep)
{
	char name[SESSION_ID + 8];
	size_t removed = 0;

	for (size_t i = 0; i < n; i++) {
		if (v[i].time >= before && i < keep)
			continue;
		(void)snprintf(name, sizeof(name), "%s.jsonl", v[i].name);
		scoped_fd fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

		if (fd < 0 || is_held(fd))
			continue;
		if (unlinkat(dir, name, 0) < 0)
			continue;
		removed++;
		(void)snprintf(name, sizeof(name), "%s" HINTS_SUFFIX, v[i].name);
		(void)unlinkat(dir, name, 0);
	}
	return removed;
}

int session_prune(struct sv state, uint64_t seconds, size_t keep, size_t *ret_n,
		  struct writ_err *err)
{
	scoped_arena a = ARENA_INIT((size_t)8 << 20);
	const char *path = arena_fmt(&a, SV_FMT "/sessions", SV_ARG(state));
	const char *run_path = arena_fmt(&a, SV_FMT "/run", SV_ARG(state));
	struct kept *v = arena_array(&a, struct kept, PRUNE_MAX);
	scoped_list *d = path ? opendir(path) : NULL;

	if (!path || !run_path || !v)
		return writ_nomem(err);
	*ret_n = 0;
	if (!d)
		return errno == ENOENT ? 0 : writ_fail(err, WRIT_E_SYS, errno, "%s", path);

	scoped_fd run = open(run_path, O_DIRECTORY | O_PATH | O_CLOEXEC);
	const size_t n = list_ended(d, run, v);

	*ret_n = remove_old(dirfd(d), v, n, (int64_t)time(NULL) - (int64_t)seconds, keep);
	return 0;
}

void record_prune_tidy(struct sv state)
{
	scoped_arena a = ARENA_INIT(1 << 16);
	const char *mark = arena_fmt(&a, SV_FMT "/tidied", SV_ARG(state));
	struct writ_err ignored = { 0 };
	struct stat st;
	size_t n;

	/* Almost always the function ends here: the mark is younger than TIDY_SECONDS. */
	if (!mark || (lstat(mark, &st) == 0 && st.st_mtime <= time(NULL) &&
		      st.st_mtime > time(NULL) - TIDY_SECONDS))
		return;
	scoped_fd fd = open(mark, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || futimens(fd, NULL) < 0)
		return;
	(void)!session_prune(state, (uint64_t)SESSION_KEEP_DAYS * 86400, SESSION_KEEP, &n,
			     &ignored);
}
