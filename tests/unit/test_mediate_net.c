#include "tap.h"

#include "mediated.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/xattr.h>

/* Metadata and sockets, which Landlock does not know, and a root that is not ours. */

static char base[64], ws[96], priv[96], out[96], jail[96];
static struct cap_set set;
static struct sv private_dirs[2];
static int port, other_port;

#define ERR(call) ((call) < 0 ? errno : 0)

__attribute__((format(printf, 1, 2))) static void run_host(const char *fmt, ...)
{
	char cmd[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	if (system(cmd) != 0)
		ok(false, "%s", cmd);
}

static bool there(const char *dir, const char *name)
{
	struct stat st;
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return lstat(path, &st) == 0;
}

static struct stat stat_of(const char *dir, const char *name)
{
	struct stat st = { 0 };
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	(void)lstat(path, &st);
	return st;
}

static struct box make_box(unsigned traps)
{
	return (struct box){ .traps = traps,
			     .opt = { .set = &set,
				      .realm = SV("r"),
				      .workspace = sv_from(ws),
				      .private_dirs = private_dirs,
				      .private_dirs_n = 1 } };
}

/* --- Metadata --- */

static int meta(void)
{
	struct timespec ts[2] = { { 1000, 0 }, { 2000, 0 } };
	char path[256], value[8];
	int fd, p[2];

	if (chdir(ws) < 0)
		return 1;
	snprintf(path, sizeof(path), "%s/f", out);
	results[0] = ERR(chmod("f", 0640));
	results[1] = ERR(chmod(path, 0640));
	fd = open("f", O_RDONLY);
	results[2] = ERR(fchmod(fd, 0600));
	results[3] = ERR(utimensat(AT_FDCWD, "f", ts, 0));
	results[4] = ERR(utimensat(AT_FDCWD, path, ts, 0));
	results[5] = ERR(futimens(fd, ts));
	results[6] = ERR(setxattr("f", "user.a", "v", 1, 0));
	results[7] = ERR(setxattr(path, "user.a", "v", 1, 0));
	results[8] = ERR(chmod("f", 04755));
	results[9] = ERR(lchown("l", getuid(), getgid()));
	results[10] = ERR(chown("l", getuid(), getgid()));
	fd = open(path, O_RDONLY);
	results[11] = ERR(fchmod(fd, 0666));
	results[12] = ERR(chmod(".git/hooks/x", 0755));
	results[13] = ERR(chmod(".git/config", 0600));
	results[14] = pipe(p) || ERR(fchmod(p[0], 0600));
	results[15] = getxattr("f", "user.a", value, sizeof(value)) == 1 ? 0 : errno;
	results[16] = ERR(removexattr("f", "user.a"));
	results[17] = ERR(setxattr("f", "security.x", "v", 1, 0));
	results[18] = ERR(chmod("none", 0600));
	snprintf(path, sizeof(path), "%s/p", priv);
	results[19] = ERR(chmod(path, 0600));
	return 0;
}

/* Opens are not trapped here: what was opened before is what counts. */
static int times_of_open(void)
{
	const struct timespec ts[2] = { { 1000, 0 }, { 3000, 0 } };
	char path[256];

	if (chdir(ws) < 0)
		return 1;
	snprintf(path, sizeof(path), "%s/f", out);
	results[0] = ERR(futimens(open("f", O_WRONLY), ts));
	results[1] = ERR(futimens(open(path, O_RDONLY), ts));
	results[2] = ERR(futimens(open(".git/hooks/x", O_RDONLY), ts));
	results[3] = ERR(futimens(open(path, O_PATH), ts));
	results[4] = ERR(futimens(open("f", O_PATH), ts));
	results[5] = ERR(futimens(-1, ts));
	results[6] = ERR(futimens(99, ts));
	results[7] = ERR((int)syscall(SYS_utimensat, open("f", O_WRONLY), NULL, ts, 1));
	snprintf(path, sizeof(path), "%s/written", out);
	results[8] = ERR(futimens(open(path, O_WRONLY), ts));
	return 0;
}

static void test_times_of_open(void)
{
	struct box b = make_box(BOX_META);

	run_host("echo x >%s/written", out);
	ok(box_run(&b, times_of_open) == 0, "the program runs");
	ok(results[0] == 0 && stat_of(ws, "f").st_mtime == 3000, "who may write says when");
	ok(results[1] == EACCES && results[2] == EACCES, "who may read does not (%d %d)",
	   results[1], results[2]);
	ok(results[3] == EBADF && results[4] == EBADF, "nor who only has a path (%d %d)",
	   results[3], results[4]);
	ok(results[5] == EBADF && results[6] == EBADF && results[7] == EINVAL,
	   "errors as the kernel has them (%d %d %d)", results[5], results[6], results[7]);
	ok(stat_of(out, "f").st_mtime != 3000 && stat_of(ws, ".git/hooks/x").st_mtime != 3000,
	   "nothing was changed there");
	ok(results[8] == 0, "a file that was given open to write to is one (%d)", results[8]);
}

static void test_meta(void)
{
	static const int inside[] = { 0, 2, 3, 5, 6, 9, 13, 14, 15, 16, 19 };
	static const int outside[] = { 1, 4, 7, 8, 10, 11, 12 };
	struct box b = make_box(BOX_META);
	const mode_t before = stat_of(out, "f").st_mode;

	ok(box_run(&b, meta) == 0, "the program runs");
	for (size_t i = 0; i < ARRAY_LEN(inside); i++)
		ok(results[inside[i]] == 0, "step %d inside: %d", inside[i], results[inside[i]]);
	for (size_t i = 0; i < ARRAY_LEN(outside); i++)
		ok(results[outside[i]] == EACCES, "step %d refused: %d", outside[i],
		   results[outside[i]]);
	ok(results[17] == EOPNOTSUPP && results[18] == ENOENT, "other errors (%d %d)", results[17],
	   results[18]);
	ok(stat_of(ws, "f").st_mtime == 2000 && (stat_of(ws, "f").st_mode & 07777) == 0600,
	   "done inside");
	ok(stat_of(out, "f").st_mode == before && stat_of(out, "f").st_mtime != 2000,
	   "nothing outside");
}

/* --- Sockets --- */

static struct sockaddr_un unix_addr(const char *dir, const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	(void)!snprintf(a.sun_path, sizeof(a.sun_path), "%.50s/%.40s", dir, name);
	return a;
}

static int listen_unix(const char *dir, const char *name, int type)
{
	const struct sockaddr_un a = unix_addr(dir, name);
	const int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	if (type == SOCK_STREAM)
		(void)listen(fd, 8);
	return fd;
}

static int listen_tcp(int *ret_port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(a);

	if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 8) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &n) < 0)
		return -1;
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static int try_unix(const char *dir, const char *name)
{
	const struct sockaddr_un a = unix_addr(dir, name);
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	const int r = ERR(connect(fd, (const struct sockaddr *)&a, sizeof(a)));

	close(fd);
	return r;
}

static int try_tcp(int to, int family)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons((uint16_t)to) };
	struct sockaddr_in6 b = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)to) };
	const int fd = socket(family, SOCK_STREAM, 0);
	int r;

	(void)inet_pton(AF_INET6, "::ffff:127.0.0.1", &b.sin6_addr);
	r = family == AF_INET ? ERR(connect(fd, (const struct sockaddr *)&a, sizeof(a)))
			      : ERR(connect(fd, (const struct sockaddr *)&b, sizeof(b)));
	close(fd);
	return r;
}

/* Passes a descriptor over a pair of sockets and reads through it. */
static int try_rights(void)
{
	union {
		char raw[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u;
	char byte = 'x', got[8] = "";
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = u.raw,
			    .msg_controllen = sizeof(u.raw) };
	int s[2], p[2], fd;

	memset(&u, 0, sizeof(u));
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, s) < 0 || pipe(p) < 0)
		return 1;
	u.align.cmsg_level = SOL_SOCKET;
	u.align.cmsg_type = SCM_RIGHTS;
	u.align.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&u.align), &p[0], sizeof(int));
	if (sendmsg(s[0], &m, 0) != 1)
		return errno;
	m.msg_controllen = sizeof(u.raw);
	if (recvmsg(s[1], &m, 0) != 1 || !CMSG_FIRSTHDR(&m))
		return 2;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	if (write(p[1], "hello", 5) != 5 || read(fd, got, 5) != 5)
		return 3;
	return strcmp(got, "hello") == 0 ? 0 : 4;
}

static int net(void)
{
	struct sockaddr_un a = unix_addr(ws, "dgram"), b = unix_addr(out, "dgram"),
			   c = unix_addr(ws, "mine"), d = unix_addr(out, "mine"),
			   abstract = { .sun_family = AF_UNIX, .sun_path = "\0writ-test" };
	struct sockaddr_in udp = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				   .sin_port = htons(53) };
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct sockaddr_in any = { .sin_family = AF_INET };
	const struct sockaddr *sa = (const struct sockaddr *)&a, *sb = (const struct sockaddr *)&b;
	char text[] = "msg";
	struct iovec iov = { text, 3 };
	struct msghdr m = {
		.msg_name = &a, .msg_namelen = sizeof(a), .msg_iov = &iov, .msg_iovlen = 1
	};
	struct mmsghdr mm[2] = { { .msg_hdr = m }, { .msg_hdr = m } };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0), s = socket(AF_UNIX, SOCK_STREAM, 0), p[2];

	if (chdir(ws) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, p) < 0)
		return 1;
	results[0] = try_unix(ws, "server");
	results[1] = try_unix(out, "server");
	results[2] = try_unix(out, "granted");
	results[3] = try_unix(ws, "link");
	results[4] = try_unix(ws, "none");
	results[5] = ERR(connect(s, (const struct sockaddr *)&abstract, 20));
	results[6] = try_tcp(port, AF_INET);
	results[7] = try_tcp(other_port, AF_INET);
	results[8] = try_tcp(port, AF_INET6);
	results[9] = ERR(sendto(fd, "one", 3, 0, sa, sizeof(a)));
	results[10] = ERR(sendto(fd, "one", 3, 0, sb, sizeof(b)));
	results[11] = ERR(sendmsg(fd, &m, 0));
	m.msg_name = &b;
	results[12] = ERR(sendmsg(fd, &m, 0));
	results[13] = sendmmsg(fd, mm, 2, 0);
	results[14] = (int)mm[1].msg_len;
	results[15] = try_rights();
	results[16] = ERR(sendto(socket(AF_INET, SOCK_DGRAM, 0), "x", 1, 0,
				 (const struct sockaddr *)&udp, sizeof(udp)));
	results[17] =
		ERR(bind(socket(AF_UNIX, SOCK_STREAM, 0), (const struct sockaddr *)&c, sizeof(c)));
	results[18] =
		ERR(bind(socket(AF_UNIX, SOCK_STREAM, 0), (const struct sockaddr *)&d, sizeof(d)));
	results[19] = ERR(
		bind(socket(AF_INET, SOCK_STREAM, 0), (const struct sockaddr *)&any, sizeof(any)));
	results[20] = ERR(connect(fd, &none, sizeof(none)));
	m.msg_name = &b;
	results[21] = ERR(sendmsg(p[0], &m, 0));
	results[22] = send(p[0], "y", 1, 0) == 1 ? 0 : errno;
	results[23] = ERR(sendto(p[0], "z", 1, MSG_FASTOPEN, sb, sizeof(b)));
	(void)bind(s = socket(AF_INET, SOCK_STREAM, 0), (const struct sockaddr *)&udp, sizeof(udp));
	results[24] = errno;
	return 0;
}

static void test_net(void)
{
	struct box b = make_box(BOX_NET);
	const int fds[] = { listen_unix(ws, "server", SOCK_STREAM),
			    listen_unix(out, "server", SOCK_STREAM),
			    listen_unix(out, "granted", SOCK_STREAM),
			    listen_unix(ws, "dgram", SOCK_DGRAM),
			    listen_unix(out, "dgram", SOCK_DGRAM),
			    listen_tcp(&port),
			    listen_tcp(&other_port) };
	char text[128];

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		if (fds[i] < 0)
			ok(false, "listener %zu: %d", i, errno);
	run_host("ln -s %s/server %s/link", out, ws);
	snprintf(text, sizeof(text), "net.connect:r:tcp/localhost:%d", port);
	box_cap(&set, CAP_GRANT, text);
	snprintf(text, sizeof(text), "unix.connect:r:%s/granted", out);
	box_cap(&set, CAP_GRANT, text);
	snprintf(text, sizeof(text), "unix.connect:r:%s/dgram", ws);
	box_cap(&set, CAP_GRANT, text);
	ok(box_run(&b, net) == 0, "the program runs");
	ok(results[0] == EACCES && results[1] == EACCES && results[2] == 0 && results[3] == EACCES,
	   "UNIX sockets of others by rule only, wherever they are (%d %d %d %d)", results[0],
	   results[1], results[2], results[3]);
	ok(results[4] == ENOENT && results[5] == EACCES, "none, abstract (%d %d)", results[4],
	   results[5]);
	ok(results[6] == 0 && results[7] == EACCES && results[8] == 0, "TCP by address (%d %d %d)",
	   results[6], results[7], results[8]);
	ok(results[9] == 0 && results[10] == EACCES && results[11] == 0 && results[12] == EACCES,
	   "messages (%d %d %d %d)", results[9], results[10], results[11], results[12]);
	ok(results[13] == 2 && results[14] == 3, "many messages (%d %d)", results[13], results[14]);
	ok(results[15] == 0, "descriptors go along (%d)", results[15]);
	ok(results[16] == EACCES, "no UDP (%d)", results[16]);
	ok(results[17] == 0 && there(ws, "mine") && results[18] == EACCES && !there(out, "mine"),
	   "bind makes its file inside only (%d %d)", results[17], results[18]);
	ok(results[19] == EACCES && results[24] == EACCES, "no listening (%d %d)", results[19],
	   results[24]);
	ok(results[20] == 0, "letting go (%d)", results[20]);
	ok(results[21] == 0 && results[22] == 0, "a stream goes where it is connected (%d %d)",
	   results[21], results[22]);
	ok(results[23] == EOPNOTSUPP, "no connecting by sending (%d)", results[23]);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
}

/* --- Whose socket it is --- */

enum { SPRAYED = 200 };

/* Somebody outside: when told, listens at many names, then says so. */
static pid_t start_neighbour(int go[2], int done[2])
{
	char name[16], byte;
	pid_t pid;

	if (pipe(go) < 0 || pipe(done) < 0)
		return -1;
	(void)fflush(stdout);
	pid = fork();
	if (pid != 0)
		return pid;
	if (read(go[0], &byte, 1) != 1)
		_exit(1);
	for (int i = 0; i < SPRAYED; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		(void)listen_unix(ws, name, SOCK_STREAM);
	}
	if (write(done[1], "d", 1) != 1)
		_exit(2);
	(void)!read(go[0], &byte, 1);
	_exit(0);
}

static int go_pipe[2], done_pipe[2];

static int whose(void)
{
	struct sockaddr_un none = { .sun_family = AF_UNIX };
	char name[32], byte;
	int reached = 0, dir, fd = listen_unix(ws, "own", SOCK_STREAM);

	if (chdir(ws) < 0 || fd < 0)
		return 1;
	results[0] = try_unix(ws, "own");
	results[1] = ERR(rename("own", "moved"));
	results[2] = try_unix(ws, "moved");
	results[3] = ERR(symlink("moved", "to-moved"));
	results[4] = try_unix(ws, "to-moved");
	dir = open(ws, O_PATH | O_DIRECTORY);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", dir);
	results[5] = try_unix(name, "moved");
	results[6] = listen_unix(name, "by-fd", SOCK_STREAM) < 0 ? errno : 0;
	results[7] = try_unix(ws, "by-fd");
	results[8] = ERR(unlink("moved"));
	results[9] = try_unix(ws, "moved");
	results[10] = ERR(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&none, 2));
	for (int i = 0; i < SPRAYED; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		close(listen_unix(ws, name, SOCK_STREAM));
		(void)unlink(name);
	}
	if (write(go_pipe[1], "g", 1) != 1 || read(done_pipe[0], &byte, 1) != 1)
		return 2;
	for (int i = 0; i < SPRAYED; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		reached += try_unix(ws, name) == 0;
	}
	results[11] = reached;
	/* More than are remembered: the last ones are. */
	for (int i = 0; i < SPRAYED; i++) {
		snprintf(name, sizeof(name), "k%d", i);
		(void)listen_unix(ws, name, SOCK_STREAM);
	}
	results[12] = try_unix(ws, "k199");
	results[13] = try_unix(ws, "k0");
	return 0;
}

static void test_whose(bool inside)
{
	struct box b = make_box(BOX_NET | BOX_WRITE);
	const pid_t neighbour = start_neighbour(go_pipe, done_pipe);
	const char *where = inside ? "own mounts" : "host mounts";

	b.opt.own_mounts = inside;
	ok(box_run(&b, whose) == 0, "%s: the program runs (%d)", where, b.status);
	ok(results[0] == 0 && results[1] == 0 && results[2] == 0, "%s: a socket of ours (%d %d %d)",
	   where, results[0], results[1], results[2]);
	ok(results[3] == 0 && results[4] == 0, "%s: through a link (%d %d)", where, results[3],
	   results[4]);
	ok(results[5] == 0 && results[6] == 0 && results[7] == 0,
	   "%s: by a descriptor of its directory (%d %d %d)", where, results[5], results[6],
	   results[7]);
	ok(results[8] == 0 && results[9] == ENOENT, "%s: gone is gone (%d %d)", where, results[8],
	   results[9]);
	ok(results[10] == (inside ? EINVAL : EACCES), "%s: no address (%d)", where, results[10]);
	ok(results[11] == 0, "%s: none of somebody else's, whatever its number (%d)", where,
	   results[11]);
	ok(results[12] == 0 && results[13] == EACCES, "%s: the oldest is forgotten (%d %d)", where,
	   results[12], results[13]);
	if (neighbour > 0) {
		close(go_pipe[1]);
		close(go_pipe[0]);
		(void)kill(neighbour, SIGKILL);
		(void)waitpid(neighbour, NULL, 0);
	}
	close(done_pipe[0]);
	close(done_pipe[1]);
	run_host("cd %s && rm -f n* s* k* by-fd to-moved", ws);
}

/* --- A root of its own --- */

static bool put(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY);
	const bool fine = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return fine;
}

/* A tmpfs with the workspace at its true path and an /own; nothing else of the host. */
static int enter(void)
{
	const unsigned uid = getuid(), gid = getgid();
	char text[512];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return 1;
	snprintf(text, sizeof(text), "%u %u 1", uid, uid);
	(void)put("/proc/self/setgroups", "deny");
	if (!put("/proc/self/uid_map", text))
		return 2;
	snprintf(text, sizeof(text), "%u %u 1", gid, gid);
	if (!put("/proc/self/gid_map", text) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", jail, "tmpfs", 0, "mode=755") < 0)
		return 3;
	snprintf(text, sizeof(text), "mkdir -p %s%s %s/own %s/proc", jail, ws, jail, jail);
	if (system(text) != 0)
		return 4;
	snprintf(text, sizeof(text), "%s%s", jail, ws);
	if (mount(ws, text, NULL, MS_BIND | MS_REC, NULL) < 0 || chdir(jail) < 0 ||
	    syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return 5;
	return 0;
}

static int open_close(const char *path, int flags)
{
	const int fd = open(path, flags, 0644);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int jailed(void)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/in-jail", ws);
	results[0] = open_close(path, O_WRONLY | O_CREAT);
	results[1] = open_close("/own/in-jail", O_WRONLY | O_CREAT);
	results[2] = open_close("/in-root", O_WRONLY | O_CREAT);
	if (chdir(ws) < 0)
		return 1;
	results[3] = open_close("rel/x", O_WRONLY | O_CREAT);
	results[4] = ERR(symlink(out, "esc"));
	results[5] = open_close("esc/hit", O_WRONLY | O_CREAT);
	snprintf(path, sizeof(path), "%s/rel", ws);
	results[6] = ERR(symlink(path, "abs"));
	results[7] = open_close("abs/y", O_WRONLY | O_CREAT);
	results[8] = open_close("rel/../abs/../z", O_WRONLY | O_CREAT);
	results[9] = open_close("../../../../../../../../own/up", O_WRONLY | O_CREAT);
	snprintf(path, sizeof(path), "../../../../../../..%s/hit", out);
	results[10] = open_close(path, O_WRONLY | O_CREAT);
	results[11] = ERR(symlink("/../../../../../..", "root"));
	snprintf(path, sizeof(path), "root%s/hit", out);
	results[12] = open_close(path, O_WRONLY | O_CREAT);
	results[13] = open_close("abs/.envrc", O_WRONLY | O_CREAT);
	results[14] = ERR(rename("rel/x", "/own/x"));
	results[15] = ERR(mkdir("/own/d", 0755));
	results[16] = open_close("/proc/self/comm", O_WRONLY);
	results[17] = ERR(rmdir(ws));
	snprintf(path, sizeof(path), "%s2", ws);
	results[18] = ERR(rename(ws, path));
	results[19] = open_close("after", O_WRONLY | O_CREAT);
	return 0;
}

static void test_jail(void)
{
	struct box b = make_box(BOX_WRITE);

	private_dirs[0] = SV("/own");
	b.opt.own_mounts = true;
	b.inside = enter;
	run_host("mkdir -p %s/rel", ws);
	ok(box_run(&b, jailed) == 0, "the program runs (%d)", WEXITSTATUS(b.status));
	ok(results[0] == 0 && there(ws, "in-jail"), "the workspace at its true path (%d)",
	   results[0]);
	ok(results[1] == 0 && !there("/own", "in-jail"), "its own directory (%d)", results[1]);
	ok(results[2] == EACCES, "not its root (%d)", results[2]);
	ok(results[3] == 0 && there(ws, "rel/x"), "relative (%d)", results[3]);
	ok(results[4] == 0 && results[5] == ENOENT && !there(out, "hit"),
	   "a link means what it means inside (%d)", results[5]);
	ok(results[6] == 0 && results[7] == 0 && there(ws, "rel/y"), "an absolute link (%d)",
	   results[7]);
	ok(results[8] == 0 && there(ws, "z"), "dots behind a link (%d)", results[8]);
	ok(results[9] == 0 && !there("/own", "up"), "dots end at its root (%d)", results[9]);
	ok(results[10] == ENOENT && results[11] == 0 && results[12] == ENOENT && !there(out, "hit"),
	   "in every way (%d %d)", results[10], results[12]);
	ok(results[13] == EACCES && !there(ws, "rel/.envrc"), "protected names hold (%d)",
	   results[13]);
	ok(results[14] == EXDEV && results[15] == 0, "two worlds (%d %d)", results[14],
	   results[15]);
	ok(results[17] == EBUSY && results[18] != 0 && results[19] == 0 && there(ws, "after"),
	   "what is mounted stays mounted (%d %d %d)", results[17], results[18], results[19]);
}

int main(void)
{
	char text[128];

	snprintf(base, sizeof(base), "/tmp/writ-net-XXXXXX");
	if (!mkdtemp(base))
		return 1;
	snprintf(ws, sizeof(ws), "%s/ws", base);
	snprintf(priv, sizeof(priv), "%s/priv", base);
	snprintf(out, sizeof(out), "%s/out", base);
	snprintf(jail, sizeof(jail), "%s/jail", base);
	run_host("cd %s && mkdir -p ws/.git/hooks priv out jail && touch ws/f out/f priv/p "
		 "ws/.git/hooks/x "
		 "ws/.git/config && ln -s ../out/f ws/l",
		 base);
	private_dirs[0] = sv_from(priv);
	box_cap(&set, CAP_GRANT, "fs.read:r:/**");
	snprintf(text, sizeof(text), "fs.write:r:%s/**", ws);
	box_cap(&set, CAP_GRANT, text);
	test_meta();
	test_times_of_open();
	test_net();
	test_whose(false);
	test_whose(true);
	test_jail();
	run_host("rm -rf %s", base);
	arena_clear(&box_arena);
	return tap_done();
}
