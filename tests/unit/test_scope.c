/*
 * test_scope - what we say to systemd, and whatever may be said back
 *
 * The manager is a child of ours that listens where we are told to connect. What it
 * answers is written out here byte by byte, so that a mistake cannot cancel itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "limit/limit_priv.h"
#include "facts/dbus.h"
#include "facts/scope.h"
#include "tap.h"

static char dir[64], path[96];

static void must(bool yes, const char *what)
{
	if (yes)
		return;
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

/* --- messages of a manager --- */

enum { RETURN = 2, ERROR = 3, SIGNAL = 4 };

struct field {
	uint8_t code;
	const char *type, *text;
	uint32_t number;
};

static void put32(struct buf *b, uint32_t v)
{
	while (b->n % 4)
		buf_ch(b, 0);
	buf_add(b, (const char[]){ (char)v, (char)(v >> 8), (char)(v >> 16), (char)(v >> 24) }, 4);
}

static void put_text(struct buf *b, const char *s)
{
	put32(b, (uint32_t)strlen(s));
	buf_add(b, s, strlen(s) + 1);
}

static void message(struct buf *b, char type, const struct field *f, struct sv body)
{
	struct buf head = BUF_INIT(4096);

	for (; f->code; f++) {
		while (head.n % 8)
			buf_ch(&head, 0);
		buf_ch(&head, (char)f->code);
		buf_ch(&head, 1);
		buf_str(&head, f->type);
		buf_ch(&head, 0);
		if (f->type[0] == 'u') {
			put32(&head, f->number);
		} else if (f->type[0] == 'g') {
			buf_ch(&head, (char)strlen(f->text));
			buf_add(&head, f->text, strlen(f->text) + 1);
		} else {
			put_text(&head, f->text);
		}
	}
	buf_add(b, (const char[]){ 'l', type, 1, 1 }, 4);
	put32(b, (uint32_t)body.n);
	put32(b, 77);
	put32(b, (uint32_t)head.n);
	buf_sv(b, buf_view(&head));
	while (b->n % 8)
		buf_ch(b, 0);
	buf_sv(b, body);
	buf_clear(&head);
}

static void put_return(struct buf *b, uint32_t to)
{
	const struct field f[] = { { 5, "u", NULL, to }, { 8, "g", "o", 0 }, { 0 } };
	struct buf body = BUF_INIT(256), one = BUF_INIT(1024);

	put_text(&body, "/org/freedesktop/systemd1/job/9");
	message(&one, RETURN, f, buf_view(&body));
	buf_sv(b, buf_view(&one));
	buf_clear(&body);
	buf_clear(&one);
}

static void put_error(struct buf *b, const char *text)
{
	const struct field f[] = { { 5, "u", NULL, 1 },
				   { 4, "s", "org.freedesktop.systemd1.UnitExists", 0 },
				   { 8, "g", "s", 0 },
				   { 0 } };
	struct buf body = BUF_INIT(1024), one = BUF_INIT(2048);

	put_text(&body, text);
	message(&one, ERROR, f, buf_view(&body));
	buf_sv(b, buf_view(&one));
	buf_clear(&body);
	buf_clear(&one);
}

static void put_removed(struct buf *b, const char *unit, const char *result)
{
	const struct field f[] = { { 1, "o", "/org/freedesktop/systemd1", 0 },
				   { 2, "s", "org.freedesktop.systemd1.Manager", 0 },
				   { 3, "s", "JobRemoved", 0 },
				   { 8, "g", "uoss", 0 },
				   { 7, "s", "org.freedesktop.systemd1", 0 },
				   { 0 } };
	struct buf body = BUF_INIT(1024), one = BUF_INIT(2048);

	put32(&body, 9);
	put_text(&body, "/org/freedesktop/systemd1/job/9");
	put_text(&body, unit);
	put_text(&body, result);
	message(&one, SIGNAL, f, buf_view(&body));
	buf_sv(b, buf_view(&one));
	buf_clear(&body);
	buf_clear(&one);
}

/* --- the manager --- */

struct manager {
	pid_t pid;
	int told[2]; /* what it heard */
};

struct say {
	const char *auth; /* NULL: "OK" */
	struct sv text;
	bool dribble, stay; /* one byte at a time; do not hang up */
};

static size_t get_until(int fd, char *p, size_t room, const char *end)
{
	size_t n = 0;

	while (n < room && read(fd, p + n, 1) == 1) {
		n++;
		if (n >= strlen(end) && memcmp(p + n - strlen(end), end, strlen(end)) == 0)
			break;
	}
	return n;
}

_Noreturn static void manager_main(int listener, int told, const struct say *say)
{
	char text[8192];
	const int fd = accept(listener, NULL, NULL);
	const char *auth = say->auth ? say->auth : "OK 0123456789abcdef0123456789abcdef\r\n";
	size_t n = get_until(fd, text, sizeof(text), "\r\n");

	(void)!write(told, text, n);
	(void)!write(fd, auth, strlen(auth));
	n = get_until(fd, text, sizeof(text), "BEGIN\r\n");
	if (n) {
		const ssize_t got = read(fd, text, sizeof(text));

		(void)!write(told, text, got > 0 ? (size_t)got : 0);
	}
	for (size_t i = 0; say->dribble && i < say->text.n; i++)
		(void)!write(fd, say->text.p + i, 1);
	if (!say->dribble)
		(void)!write(fd, say->text.p, say->text.n);
	if (say->stay)
		(void)pause();
	_exit(0);
}

static void manager_start(struct manager *m, const struct say *say)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)unlink(path);
	memcpy(at.sun_path, path, strlen(path) + 1);
	must(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 1) == 0,
	     "listen");
	must(pipe2(m->told, O_CLOEXEC) == 0, "pipe");
	(void)fflush(stdout);
	m->pid = fork();
	if (m->pid == 0)
		manager_main(fd, m->told[1], say);
	must(m->pid > 0, "fork");
	close(fd);
	close(m->told[1]);
}

static size_t manager_end(struct manager *m, char *ret, size_t room)
{
	size_t n = 0;
	ssize_t got;

	(void)kill(m->pid, SIGTERM);
	must(waitpid(m->pid, NULL, 0) == m->pid, "waitpid");
	while (ret && (got = read(m->told[0], ret + n, room - n)) > 0)
		n += (size_t)got;
	close(m->told[0]);
	return n;
}

static long now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* What became of a call that was answered like that. */
static int call(const struct say *say, struct writ_err *err)
{
	const struct scope_ask ask = { .socket = path,
				       .name = "writ-abc.scope",
				       .pid = 4711,
				       .memory = 1 << 20,
				       .timeout_ms = 700 };
	struct manager m;
	int r;

	manager_start(&m, say);
	r = scope_start(&ask, err);
	(void)manager_end(&m, NULL, 0);
	return r;
}

static void expect(struct buf *b, int want, const char *what, const char *name)
{
	for (int dribble = 0; dribble < 2; dribble++) {
		struct writ_err err = { 0 };
		const int r = call(&(struct say){ .text = buf_view(b), .dribble = dribble }, &err);

		ok(r == want && (!what || strstr(err.what, what)), "%s%s (%d %s)", name,
		   dribble ? ", byte by byte" : "", r, err.what);
	}
	b->n = 0;
}

/* --- tests --- */

static void test_answers(void)
{
	struct buf b = BUF_INIT(1 << 20);
	struct writ_err err = { 0 };

	put_return(&b, 1);
	put_removed(&b, "writ-abc.scope", "done");
	expect(&b, 0, NULL, "answered and done");
	put_removed(&b, "writ-abc.scope", "done");
	put_return(&b, 1);
	expect(&b, 0, NULL, "done and then answered");
	for (int i = 0; i < 50; i++)
		put_removed(&b, "other.service", "failed");
	put_return(&b, 1);
	put_removed(&b, "writ-abc.scope", "done");
	expect(&b, 0, NULL, "behind news of other units");
	put_error(&b, "Unit writ-abc.scope already exists.");
	expect(&b, WRIT_E_UNENFORCEABLE, "already exists", "refused");
	put_return(&b, 1);
	put_removed(&b, "writ-abc.scope", "failed");
	expect(&b, WRIT_E_UNENFORCEABLE, "failed", "the job failed");
	put_return(&b, 2);
	put_removed(&b, "writ-abc.scope", "done");
	expect(&b, WRIT_E_SYS, "hung up", "an answer to another call is none");
	put_return(&b, 1);
	expect(&b, WRIT_E_SYS, "hung up", "no word that the job is done");
	expect(&b, WRIT_E_SYS, "hung up", "no word at all");
	for (int i = 0; i < 1100; i++)
		put_removed(&b, "other.service", "done");
	ok(call(&(struct say){ .text = buf_view(&b) }, &err) == WRIT_E_LIMIT &&
		   strstr(err.what, "too much"),
	   "words without end");
	buf_clear(&b);
}

static void test_hostile(void)
{
	struct buf b = BUF_INIT(1 << 20);
	struct writ_err err = { 0 };
	long begin;

	buf_fill(&b, 'x', 100);
	expect(&b, WRIT_E_SYNTAX, NULL, "noise");
	buf_add(&b, "l\2\1\1\xff\xff\xff\xff\1\0\0\0\xff\xff\xff\xff", 16);
	expect(&b, WRIT_E_LIMIT, NULL, "lengths that wrap around");
	buf_add(&b, "l\2\1\1\0\0\0\0\1\0\0\0\0\0\1\0", 16);
	expect(&b, WRIT_E_SYS, "hung up", "a message that is cut off");
	buf_add(&b, "l\2\1\1\0\0\0\0\1\0\0\0\4\0\0\0\5\1u\0\0\0\0\0", 24);
	expect(&b, WRIT_E_SYNTAX, NULL, "a field without its value");
	put_error(&b, "\033]0;x\007 \n two lines");
	ok(call(&(struct say){ .text = buf_view(&b) }, &err) == WRIT_E_UNENFORCEABLE &&
		   !strchr(err.what, '\n'),
	   "a reason with control characters is one line");
	b.n = 0;
	for (size_t cut = 1; cut < 200; cut += 7) {
		put_return(&b, 1);
		put_removed(&b, "writ-abc.scope", "done");
		b.n = cut < b.n ? b.n - cut : 0;
		err = (struct writ_err){ 0 };
		ok(call(&(struct say){ .text = buf_view(&b) }, &err) < 0, "cut off %zu bytes early",
		   cut);
		b.n = 0;
	}
	begin = now_ms();
	ok(call(&(struct say){ .text = SV(""), .stay = true }, &err) == WRIT_E_SYS &&
		   err.sys == ETIMEDOUT && now_ms() - begin < 3000,
	   "one who says nothing is not waited for");
	begin = now_ms();
	ok(call(&(struct say){ .auth = "O", .text = SV(""), .stay = true }, &err) == WRIT_E_SYS &&
		   now_ms() - begin < 3000,
	   "nor one who stops in a word");
	ok(call(&(struct say){ .auth = "REJECTED EXTERNAL\r\n", .text = SV("") }, &err) ==
		   WRIT_E_DENIED,
	   "not taken for the user");
	for (int i = 0; i < 400; i++)
		buf_ch(&b, 'O');
	buf_ch(&b, 0);
	ok(call(&(struct say){ .auth = b.p, .text = SV("") }, &err) == WRIT_E_LIMIT,
	   "a line without end");
	buf_clear(&b);
}

/* The bytes we send, found by reading them in the order of the specification. */
static void test_call(void)
{
	const struct scope_ask ask = { .socket = path,
				       .name = "writ-abc.scope",
				       .pid = 4711,
				       .memory = 0x123456789a,
				       .cpu = 1500,
				       .pids = 99,
				       .timeout_ms = 700 };
	struct manager m;
	struct writ_err err = { 0 };
	struct dbus_message got;
	struct dbus_reader r;
	struct sv s, auth, all;
	char heard[8192], uid[32] = "", want[64];
	uint32_t n = 0;

	manager_start(&m, &(struct say){ .text = SV("") });
	(void)!scope_start(&ask, &err);
	all = (struct sv){ heard, manager_end(&m, heard, sizeof(heard)) };
	(void)snprintf(uid, sizeof(uid), "%u", (unsigned)geteuid());
	auth = sv_cut(&all, '\n');
	(void)snprintf(want, sizeof(want), "AUTH EXTERNAL ");
	for (const char *c = uid; *c; c++)
		(void)snprintf(want + strlen(want), sizeof(want) - strlen(want), "%02x", *c);
	ok(auth.n > 1 && auth.p[0] == 0 && sv_starts(sv_skip(auth, 1), sv_from(want)) &&
		   sv_ends(auth, SV("\r")),
	   "who we are");
	ok(dbus_decode(all, &got, &err) == 0 && got.type == DBUS_CALL && got.serial == 1,
	   "one whole message (%s)", err.what);
	ok(sv_is(got.member, "StartTransientUnit") &&
		   sv_is(got.interface, "org.freedesktop.systemd1.Manager") &&
		   sv_is(got.path, "/org/freedesktop/systemd1") &&
		   sv_is(got.signature, "ssa(sv)a(sa(sv))"),
	   "the call");
	r = (struct dbus_reader){ .bytes = got.body };
	ok(dbus_get_str(&r, &s) && sv_is(s, "writ-abc.scope") && dbus_get_str(&r, &s) &&
		   sv_is(s, "fail"),
	   "the unit and the mode");
	ok(dbus_get_u32(&r, &n) && n > 0, "the array of properties");
	/* name, signature "t", padding to eight, value */
	ok(memmem(got.body.p, got.body.n, "MemoryMax\0\1t\0", 13) &&
		   memmem(got.body.p, got.body.n, "\x9a\x78\x56\x34\x12\0\0\0", 8),
	   "memory");
	ok(memmem(got.body.p, got.body.n, "MemorySwapMax\0\1t\0", 17) != NULL, "no swap");
	ok(memmem(got.body.p, got.body.n, "TasksMax\0\1t\0", 12) &&
		   memmem(got.body.p, got.body.n, "\x63\0\0\0\0\0\0\0", 8),
	   "processes");
	ok(memmem(got.body.p, got.body.n, "CPUQuotaPerSecUSec\0\1t\0", 22) &&
		   memmem(got.body.p, got.body.n, "\x60\xe3\x16\0\0\0\0\0", 8),
	   "cpu: 1.5 seconds in one");
	ok(memmem(got.body.p, got.body.n, "PIDs\0\2au\0", 9) &&
		   memmem(got.body.p, got.body.n, "\4\0\0\0\x67\x12\0\0", 8),
	   "the process");
	ok(got.body.n > 4 && memcmp(got.body.p + got.body.n - 4, "\0\0\0\0", 4) == 0,
	   "no auxiliary units");
}

static void test_where(void)
{
	struct writ_err err = { 0 };
	char long_path[200], at[SCOPE_PATH];
	int fd = -1;

	(void)unlink(path);
	ok(scope_connect(path, 100, &fd, &err) == WRIT_E_UNENFORCEABLE, "nobody is there");
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	must(fd >= 0, "open");
	close(fd);
	ok(scope_connect(path, 100, &fd, &err) == WRIT_E_UNENFORCEABLE, "no socket");
	memset(long_path, 'x', sizeof(long_path));
	long_path[sizeof(long_path) - 1] = 0;
	ok(scope_connect(long_path, 100, &fd, &err) == WRIT_E_SYS, "too long a name");
	(void)setenv("XDG_RUNTIME_DIR", "/x", 1);
	ok(scope_socket(5, at) && strcmp(at, "/x/systemd/private") == 0, "where it listens");
	(void)unsetenv("XDG_RUNTIME_DIR");
	ok(scope_socket(5, at) && strcmp(at, "/run/user/5/systemd/private") == 0,
	   "and without a word about that");
	long_path[0] = '/';
	(void)setenv("XDG_RUNTIME_DIR", long_path, 1);
	ok(!scope_socket(5, at), "or not at all");
	(void)unsetenv("XDG_RUNTIME_DIR");
}

static void put_file(int at, const char *name, const char *text)
{
	scoped_fd fd = openat(at, name, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

	must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), name);
}

/* SECURITY: what holds is read back; everything less than what was asked for is an error. */
static void test_verify(void)
{
	const struct cgroup_limits l = { .memory = 1 << 20, .pids = 9, .cpu = 500 };
	const struct cgroup_limits none = { 0 };
	struct writ_err err = { 0 };
	const int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	static const struct {
		const char *file, *good, *bad[4];
	} rows[] = {
		{ "memory.max", "1048576\n", { "max\n", "1048577\n", "", NULL } },
		{ "memory.swap.max", "0\n", { "max\n", "4096\n", NULL } },
		{ "pids.max", "9\n", { "max\n", "10\n", NULL } },
		{ "cpu.max",
		  "50000 100000\n",
		  { "max 100000\n", "50001 100000\n", "9 0\n", NULL } },
	};

	must(at >= 0, "open");
	ok(unit_verify(at, &none, &err) == 0, "nothing asked");
	ok(unit_verify(at, &l, &err) == WRIT_E_UNENFORCEABLE, "nothing there");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		put_file(at, rows[i].file, rows[i].good);
	ok(unit_verify(at, &l, &err) == 0, "all of it (%s)", err.what);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (size_t j = 0; rows[i].bad[j]; j++) {
			put_file(at, rows[i].file, rows[i].bad[j]);
			ok(unit_verify(at, &l, &err) == WRIT_E_UNENFORCEABLE, "%s %zu",
			   rows[i].file, j);
		}
		put_file(at, rows[i].file, rows[i].good);
	}
	put_file(at, "memory.max", "4096\n");
	ok(unit_verify(at, &l, &err) == 0, "less than was asked for is fine");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		(void)unlinkat(at, rows[i].file, 0);
	close(at);
}

int main(void)
{
	(void)signal(SIGPIPE, SIG_IGN);
	(void)snprintf(dir, sizeof(dir), "/tmp/writ-scope-XXXXXX");
	must(mkdtemp(dir) != NULL, "mkdtemp");
	(void)snprintf(path, sizeof(path), "%s/private", dir);
	test_call();
	test_answers();
	test_hostile();
	test_where();
	test_verify();
	(void)unlink(path);
	(void)rmdir(dir);
	return tap_done();
}
