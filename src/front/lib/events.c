#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "lib/events_priv.h"
#include "lib/lib_priv.h"
#include "parts/session.h"

#include "base/banned.h"

enum { LINE_MAX_BYTES = 4 << 20 };

struct writ_events {
	struct writ *w;
	char id[SESSION_ID + 1];
	int fd;	      /* the record file of the session */
	int watch;    /* inotify descriptor that reports growth of the record */
	struct buf b; /* bytes of the record; the caller has received those before .at */
	size_t at;
	bool ended;
};

static bool is_id(const char *id)
{
	for (size_t i = 0; i < SESSION_ID; i++)
		if (!((id[i] >= 'a' && id[i] <= 'z') || (id[i] >= '0' && id[i] <= '9')))
			return false;
	return id[SESSION_ID] == 0;
}

static int open_record(struct writ *w, const char *id, struct writ_events *e, struct writ_err *err)
{
	scoped_arena a = ARENA_INIT(1 << 16);
	const char *path = arena_fmt(&a, SV_FMT "/sessions/%s.jsonl", SV_ARG(w->where.state), id);

	if (!path)
		return writ_nomem(err);
	e->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (e->fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "the record of session %s", id);
	e->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (e->watch < 0 || inotify_add_watch(e->watch, path, IN_MODIFY | IN_CLOSE_WRITE) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "watch the record of session %s", id);
	return 0;
}

int writ_events_open(struct writ *w, const char *id, struct writ_events **ret,
		     struct writ_error *err)
{
	struct writ_events *e;
	struct writ_err why = { 0 };

	if (!w || !ret || !id || !is_id(id))
		return lib_argument(err, "writ_events_open: an id has eight letters and digits");
	e = lib_new(sizeof(*e), err);
	if (!e)
		return WRIT_ERROR_MEMORY;
	e->w = w;
	memcpy(e->id, id, sizeof(e->id));
	e->fd = e->watch = -1;
	e->b = (struct buf)BUF_INIT(LINE_MAX_BYTES);
	if (open_record(w, id, e, &why) < 0) {
		writ_events_close(e);
		return lib_error(err, &why);
	}
	*ret = e;
	return 0;
}

void writ_events_close(struct writ_events *e)
{
	if (!e)
		return;
	fd_scope_close(&e->fd);
	fd_scope_close(&e->watch);
	buf_clear(&e->b);
	free(e);
}

/* Appends more bytes of the record to @e->b. Returns the number of bytes read, or an error. */
static ssize_t read_more(struct writ_events *e, struct writ_err *err)
{
	char bytes[16384];
	ssize_t n;

	if (e->at) {
		memmove(e->b.p, e->b.p + e->at, e->b.n - e->at);
		e->b.n -= e->at;
		e->at = 0;
	}
	do {
		n = read(e->fd, bytes, sizeof(bytes));
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "read the record");
	buf_add(&e->b, bytes, (size_t)n);
	return buf_check(&e->b, err) < 0 ? err->code : n;
}

/*
 * Tests whether the supervisor of the session still answers. A supervisor that was killed wrote no
 * end event to the record.
 */
static bool is_alive(const struct writ_events *e)
{
	struct writ_err none = { 0 };

	return session_call(e->w->where.state, sv_from(e->id), "session.get", json_object(), NULL,
			    &none) == 0;
}

enum { LOOK_MS = 1000 };

/*
 * Waits until the record grows, at most LOOK_MS or @timeout_ms. Returns false if the session's
 * supervisor is gone and the record holds no unread bytes.
 */
static bool wait_for_more(struct writ_events *e, int timeout_ms)
{
	_Alignas(struct inotify_event) char news[4096];
	struct pollfd p = { .fd = e->watch, .events = POLLIN };
	const int most = timeout_ms < 0 || timeout_ms > LOOK_MS ? LOOK_MS : timeout_ms;
	struct stat st;

	if (poll(&p, 1, most) != 0) {
		while (read(e->watch, news, sizeof(news)) > 0)
			;
		return true;
	}
	return most < LOOK_MS || is_alive(e) ||
	       (fstat(e->fd, &st) == 0 && lseek(e->fd, 0, SEEK_CUR) < st.st_size);
}

static bool take_line(struct writ_events *e, struct sv *ret)
{
	const struct sv all = sv_skip(buf_view(&e->b), e->at);
	const size_t end = sv_find(all, '\n');

	if (end == SIZE_MAX)
		return false;
	*ret = sv_sub(all, 0, end);
	e->b.p[e->at + end] = 0;
	e->at += end + 1;
	return true;
}

static void give(struct writ_events *e, struct sv line, struct writ_event *ret)
{
	const struct writ_event all = { .size = ret->size,
					.kind = (int32_t)events_kind(line),
					.json = line.p,
					.json_n = line.n };

	e->ended = all.kind == (int32_t)WRIT_EVENT_END;
	memcpy(ret, &all, ret->size < sizeof(all) ? ret->size : sizeof(all));
}

int writ_events_next(struct writ_events *e, int timeout_ms, struct writ_event *ret,
		     struct writ_error *err)
{
	const int64_t end = clock_monotonic_ms() + timeout_ms;
	struct writ_err why = { 0 };
	struct sv line;

	if (!e || !ret || ret->size < offsetof(struct writ_event, json_n))
		return lib_argument(err, "writ_events_next: which events, and where to?");
	while (!e->ended) {
		ssize_t n;

		if (take_line(e, &line)) {
			give(e, line, ret);
			return 1;
		}
		n = read_more(e, &why);
		if (n < 0)
			return lib_error(err, &why);
		if (n == 0) {
			const int64_t left = timeout_ms < 0 ? -1 : end - clock_monotonic_ms();

			if (timeout_ms >= 0 && left <= 0)
				return 0;
			e->ended = !wait_for_more(e, (int)left);
		}
	}
	return 0;
}
