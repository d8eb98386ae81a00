#include "facts/scope.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "facts/dbus.h"

#include "base/banned.h"

enum {
	SCOPE_SERIAL = 1, /* number of the one call that scope.c makes */
	CALL_MAX = 4096,
	LINE_MAX_BYTES = 256,
	/*
	 * Maximum number of messages to read: systemd also reports changes of all its other units.
	 */
	MESSAGES_MAX = 1000,
};

static const char manager[] = "org.freedesktop.systemd1";

bool scope_socket(unsigned uid, char ret_path[static SCOPE_PATH])
{
	const char *dir = getenv("XDG_RUNTIME_DIR");
	const int n = dir && dir[0] == '/'
			      ? snprintf(ret_path, SCOPE_PATH, "%s/systemd/private", dir)
			      : snprintf(ret_path, SCOPE_PATH, "/run/user/%u/systemd/private", uid);

	return n > 0 && n < SCOPE_PATH;
}

/* --- sending and receiving, with a deadline --- */

static int wait_for(int fd, short events, int64_t end, struct writ_err *err)
{
	for (;;) {
		struct pollfd p = { fd, events, 0 };
		const int64_t left = end - clock_monotonic_ms();
		const int n = left > 0 ? poll(&p, 1, (int)left) : 0;

		if (n > 0)
			return 0;
		if (n == 0)
			return writ_fail_lit(err, WRIT_E_SYS, ETIMEDOUT, "systemd does not answer");
		if (errno != EINTR)
			return writ_fail_lit(err, WRIT_E_SYS, errno, "wait for systemd");
	}
}

static int send_all(int fd, struct sv s, int64_t end, struct writ_err *err)
{
	while (s.n) {
		const ssize_t n = send(fd, s.p, s.n, MSG_NOSIGNAL | MSG_DONTWAIT);
		int r;

		if (n > 0) {
			s = sv_skip(s, (size_t)n);
			continue;
		}
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return writ_fail_lit(err, WRIT_E_SYS, errno, "speak to systemd");
		r = wait_for(fd, POLLOUT, end, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int recv_all(int fd, char *p, size_t n, int64_t end, struct writ_err *err)
{
	while (n) {
		const ssize_t got = recv(fd, p, n, MSG_DONTWAIT);
		int r;

		if (got > 0) {
			p += got;
			n -= (size_t)got;
			continue;
		}
		if (got == 0)
			return writ_fail_lit(err, WRIT_E_SYS, 0, "systemd hung up");
		if (errno != EAGAIN && errno != EINTR)
			return writ_fail_lit(err, WRIT_E_SYS, errno, "hear from systemd");
		r = wait_for(fd, POLLIN, end, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- authentication --- */

/* Reads one line without its CRLF, byte by byte, because D-Bus messages follow the line. */
static int recv_line(int fd, char ret[static LINE_MAX_BYTES], int64_t end, struct writ_err *err)
{
	size_t n = 0;

	while (n < 2 || ret[n - 2] != '\r' || ret[n - 1] != '\n') {
		int r;

		if (n == LINE_MAX_BYTES)
			return writ_fail_lit(err, WRIT_E_LIMIT, 0, "systemd says too much");
		r = recv_all(fd, &ret[n++], 1, end, err);
		if (r < 0)
			return r;
	}
	ret[n - 2] = 0;
	return 0;
}

static int authenticate(int fd, int64_t end, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(128);
	char uid[16], line[LINE_MAX_BYTES];
	int r;

	snprintf(uid, sizeof(uid), "%u", (unsigned)geteuid());
	buf_ch(&b, 0);
	buf_str(&b, "AUTH EXTERNAL ");
	for (const char *c = uid; *c; c++)
		buf_fmt(&b, "%02x", (unsigned char)*c);
	buf_str(&b, "\r\n");
	if ((r = send_all(fd, buf_view(&b), end, err)) < 0 ||
	    (r = recv_line(fd, line, end, err)) < 0)
		return r;
	if (!sv_starts(sv_from(line), SV("OK")))
		return writ_fail_lit(err, WRIT_E_DENIED, 0,
				     "systemd does not take us for its user");
	return send_all(fd, SV("BEGIN\r\n"), end, err);
}

int scope_connect(const char *path, int timeout_ms, int *ret_fd, struct writ_err *err)
{
	const int64_t end = clock_monotonic_ms() + timeout_ms;
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	scoped_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const size_t n = strlen(path);
	struct ucred who;
	socklen_t size = sizeof(who);
	struct stat st;
	int r;

	if (n >= sizeof(to.sun_path))
		return writ_fail_lit(err, WRIT_E_SYS, ENAMETOOLONG, "systemd's socket");
	memcpy(to.sun_path, path, n + 1);
	/*
	 * SECURITY: the socket and the process behind it must belong to this user. Another user who
	 * listens on the socket could claim that limits apply.
	 */
	if (fd < 0 || lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode) || st.st_uid != geteuid() ||
	    connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0 || who.uid != geteuid())
		return writ_fail_lit(err, WRIT_E_UNENFORCEABLE, 0,
				     "no systemd of this user listens");
	r = authenticate(fd, end, err);
	if (r == 0)
		*ret_fd = fd_take(&fd);
	return r;
}

/* --- the call --- */

static void put_u64(struct buf *b, const char *name, uint64_t v)
{
	dbus_put_align(b, 8);
	dbus_put_str(b, sv_from(name));
	dbus_put_sig(b, "t");
	dbus_put_u64(b, v);
}

static void put_text(struct buf *b, const char *name, const char *text)
{
	dbus_put_align(b, 8);
	dbus_put_str(b, sv_from(name));
	dbus_put_sig(b, "s");
	dbus_put_str(b, sv_from(text));
}

/* Appends the properties of the unit, an array of the D-Bus type a(sv). */
static void put_properties(struct buf *b, const struct scope_ask *ask)
{
	const size_t all = dbus_array_begin(b, 8);
	size_t pids;

	put_text(b, "Description", "a session of writ");
	/* Let systemd remove the unit in any case, even after a failure. */
	put_text(b, "CollectMode", "inactive-or-failed");
	dbus_put_align(b, 8);
	dbus_put_str(b, SV("PIDs"));
	dbus_put_sig(b, "au");
	pids = dbus_array_begin(b, 4);
	dbus_put_u32(b, (uint32_t)ask->pid);
	dbus_array_end(b, pids, 4);
	if (ask->memory) {
		put_u64(b, "MemoryMax", ask->memory);
		put_u64(b, "MemorySwapMax", 0);
	}
	if (ask->pids)
		put_u64(b, "TasksMax", ask->pids);
	if (ask->cpu)
		put_u64(b, "CPUQuotaPerSecUSec", ask->cpu * 1000);
	dbus_array_end(b, all, 8);
}

static void put_call(struct buf *b, const struct scope_ask *ask)
{
	const struct dbus_call c = { .serial = SCOPE_SERIAL,
				     .destination = manager,
				     .path = "/org/freedesktop/systemd1",
				     .interface = "org.freedesktop.systemd1.Manager",
				     .member = "StartTransientUnit",
				     .signature = "ssa(sv)a(sa(sv))" };
	scoped_buf body = BUF_INIT(CALL_MAX);

	dbus_put_str(&body, sv_from(ask->name));
	dbus_put_str(&body, SV("fail"));
	put_properties(&body, ask);
	dbus_array_end(&body, dbus_array_begin(&body, 8), 8);
	dbus_put_call(b, &c, buf_view(&body));
	b->failed |= body.failed;
}

/* --- replies --- */

static int recv_message(int fd, struct buf *room, struct dbus_message *ret, int64_t end,
			struct writ_err *err)
{
	char head[DBUS_HEAD];
	size_t n = 0;
	int r = recv_all(fd, head, sizeof(head), end, err);

	if (r == 0)
		r = dbus_length((struct sv){ head, sizeof(head) }, &n, err);
	if (r < 0)
		return r;
	room->n = 0;
	buf_add(room, head, sizeof(head));
	buf_fill(room, 0, n - sizeof(head));
	r = buf_check(room, err);
	if (r == 0)
		r = recv_all(fd, room->p + sizeof(head), n - sizeof(head), end, err);
	return r < 0 ? r : dbus_decode(buf_view(room), ret, err);
}

static int refused(const struct dbus_message *m, struct writ_err *err)
{
	struct dbus_reader r = { .bytes = m->body };
	struct sv text = m->error;

	if (sv_starts(m->signature, SV("s")))
		(void)!dbus_get_str(&r, &text);
	return writ_fail(err, WRIT_E_UNENFORCEABLE, 0, "systemd makes no scope: " SV_FMT,
			 SV_ARG(sv_sub(text, 0, 80)));
}

/*
 * Returns 1 if @m reports that the job has made the requested unit, 0 if @m is about something
 * else, and an error if the job failed.
 */
static int is_done(const struct dbus_message *m, const char *name, struct writ_err *err)
{
	struct dbus_reader r = { .bytes = m->body };
	struct sv job, unit, result;
	uint32_t id;

	if (m->type != DBUS_SIGNAL || !sv_is(m->member, "JobRemoved") ||
	    !sv_is(m->signature, "uoss") || !dbus_get_u32(&r, &id) || !dbus_get_str(&r, &job) ||
	    !dbus_get_str(&r, &unit) || !dbus_get_str(&r, &result) || !sv_is(unit, name))
		return 0;
	return sv_is(result, "done")
		       ? 1
		       : writ_fail(err, WRIT_E_UNENFORCEABLE, 0, "systemd made no scope: " SV_FMT,
				   SV_ARG(sv_sub(result, 0, 40)));
}

/* Waits until systemd has answered the call and the job that the call started has ended. */
static int wait_for_job(int fd, const char *name, int64_t end, struct writ_err *err)
{
	scoped_buf room = BUF_INIT(DBUS_MAX);
	bool answered = false, done = false;
	int r = 0;

	for (int i = 0; r == 0 && !(answered && done) && i < MESSAGES_MAX; i++) {
		struct dbus_message m;

		r = recv_message(fd, &room, &m, end, err);
		if (r < 0)
			break;
		if (m.reply_to == SCOPE_SERIAL && m.type == DBUS_ERROR)
			r = refused(&m, err);
		answered |= m.reply_to == SCOPE_SERIAL && m.type == DBUS_RETURN;
		if (r == 0)
			r = is_done(&m, name, err);
		done |= r > 0;
		r = r > 0 ? 0 : r;
	}
	if (r == 0 && !(answered && done))
		return writ_fail_lit(err, WRIT_E_LIMIT, 0, "systemd says too much");
	return r;
}

int scope_start(const struct scope_ask *ask, struct writ_err *err)
{
	const int64_t end = clock_monotonic_ms() + ask->timeout_ms;
	scoped_buf call = BUF_INIT(CALL_MAX);
	scoped_fd fd = -1;
	int r;

	if (ask->pid <= 0)
		return writ_fail_lit(err, WRIT_E_BUG, 0, "no process to move");
	put_call(&call, ask);
	if ((r = scope_connect(ask->socket, ask->timeout_ms, &fd, err)) < 0 ||
	    (r = buf_check(&call, err)) < 0 ||
	    (r = send_all(fd, buf_view(&call), end, err)) < 0)
		return r;
	return wait_for_job(fd, ask->name, end, err);
}
