/* UNIX sockets of host processes, and what else is shared without a file. */
#include "escape.h"

#include <fcntl.h>
#include <glob.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static int type_of(const char *kind)
{
	return strstr(kind, "dgram") ? SOCK_DGRAM
	       : strstr(kind, "seq") ? SOCK_SEQPACKET
				     : SOCK_STREAM;
}

static socklen_t unix_address(const char *name, bool abstract, struct sockaddr_storage *ret)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const size_t n = strlen(name);

	if (n + 2 > sizeof(un.sun_path))
		_exit(98);
	memcpy(un.sun_path + abstract, name, n + !abstract);
	memcpy(ret, &un, sizeof(un));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
}

/* A client socket and where to go: "stream" by path, "@stream" without, "host" in the workspace. */
int dial(struct ctx *c, const char *kind, struct sockaddr_storage *ret, socklen_t *ret_n)
{
	const bool abstract = kind[0] == '@';
	const char *name = NULL;

	if (abstract)
		name = abstract_name(c->dir, c->row->id, c->control ? "own" : kind + 1);
	else if (!strcmp(kind, "host") && !c->control)
		name = path("%s/host", c->work);
	else
		name = path("%s/%s", c->base, kind);
	*ret_n = unix_address(name, abstract, ret);
	if (c->control) {
		const int fd = socket(AF_UNIX, type_of(kind) | SOCK_CLOEXEC, 0);

		if (fd < 0 || bind(fd, (void *)ret, *ret_n) < 0)
			return -1;
		if (type_of(kind) != SOCK_DGRAM && listen(fd, 4) < 0)
			return -1;
	}
	return socket(AF_UNIX, type_of(kind) | SOCK_CLOEXEC, 0);
}

static int plain(struct ctx *c)
{
	struct sockaddr_storage sa;
	socklen_t n = 0;
	const int fd = dial(c, c->row->arg, &sa, &n);

	if (fd < 0 || connect(fd, (void *)&sa, n) < 0)
		return -errno;
	return rc(send(fd, "escaped", 7, MSG_NOSIGNAL));
}

static int by_sendto(struct ctx *c)
{
	struct sockaddr_storage sa;
	socklen_t n = 0;
	const int fd = dial(c, c->row->arg, &sa, &n);

	return fd < 0 ? -errno : rc(sendto(fd, "escaped", 7, 0, (void *)&sa, n));
}

static int by_sendmsg(struct ctx *c)
{
	struct sockaddr_storage sa;
	socklen_t n = 0;
	const int fd = dial(c, c->row->arg, &sa, &n);
	struct iovec iov = { (char[]){ "escaped" }, 7 };
	const struct msghdr m = {
		.msg_name = &sa, .msg_namelen = n, .msg_iov = &iov, .msg_iovlen = 1
	};

	return fd < 0 ? -errno : rc(sendmsg(fd, &m, 0));
}

/* A pair needs no socket() call; a datagram one can be pointed elsewhere later. */
static int by_pair(struct ctx *c)
{
	struct sockaddr_storage sa;
	socklen_t n = 0;
	int pair[2];

	if (dial(c, c->row->arg, &sa, &n) < 0 ||
	    socketpair(AF_UNIX, type_of(c->row->arg) | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	if (connect(pair[0], (void *)&sa, n) < 0)
		return -errno;
	return rc(send(pair[0], "escaped", 7, MSG_NOSIGNAL));
}

static int by_pair_sendto(struct ctx *c)
{
	struct sockaddr_storage sa;
	socklen_t n = 0;
	int pair[2];

	if (dial(c, c->row->arg, &sa, &n) < 0 ||
	    socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	return rc(sendto(pair[0], "escaped", 7, 0, (void *)&sa, n));
}

static int connect_to(const char *name)
{
	struct sockaddr_storage sa;
	const socklen_t n = unix_address(name, false, &sa);
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : rc(connect(fd, (void *)&sa, n));
}

static int by_symlink(struct ctx *c)
{
	struct sockaddr_storage sa;
	socklen_t n = 0;

	if (dial(c, "stream", &sa, &n) < 0)
		return -errno;
	(void)!symlink(path("%s/stream", c->base), path("%s/ln", c->work));
	return connect_to("ln");
}

static int by_proc_fd(struct ctx *c)
{
	struct sockaddr_storage sa;
	socklen_t n = 0;

	if (dial(c, "stream", &sa, &n) < 0)
		return -errno;
	const int fd = open(path("%s/stream", c->base), O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : connect_to(path("/proc/self/fd/%d", fd));
}

static int by_hard_link(struct ctx *c)
{
	struct sockaddr_storage sa;
	socklen_t n = 0;

	if (dial(c, "stream", &sa, &n) < 0)
		return -errno;
	if (link(path("%s/stream", c->base), path("%s/ln", c->work)) < 0)
		return -errno;
	return connect_to("ln");
}

static int by_int80(struct ctx *c)
{
	struct sockaddr_storage sa;
	socklen_t n = 0;
	char *low = low_memory();
	const int fd = dial(c, "stream", &sa, &n);

	if (!low || fd < 0)
		return low ? -errno : -ENOSYS;
	memcpy(low, &sa, n);
	return (int)int80(362, fd, (long)low, n, 0, 0); /* connect */
}

static int by_uring(struct ctx *c)
{
	struct sockaddr_storage sa;
	socklen_t n = 0;
	const int fd = dial(c, "stream", &sa, &n);
	const struct io_uring_sqe sqe = {
		.opcode = IORING_OP_CONNECT, .fd = fd, .addr = (uintptr_t)&sa, .off = n
	};

	return fd < 0 ? -errno : uring_one(&sqe);
}

/* Doors that lead to root or to the user's other programs, where this host has them. */
static int well_known(struct ctx *c)
{
	glob_t g = { 0 };
	int r = -ENOENT;

	if (glob(c->row->arg, 0, NULL, &g) == 0)
		for (size_t i = 0; i < g.gl_pathc && r; i++)
			r = strlen(g.gl_pathv[i]) < 100 ? connect_to(g.gl_pathv[i]) : -ENAMETOOLONG;
	globfree(&g);
	return r;
}

/* --- System V, POSIX queues, keys --- */

static int own_key(struct ctx *c)
{
	return c->control ? IPC_PRIVATE : (int)target_num(c, "key");
}

static int shm_read(struct ctx *c)
{
	const int id = shmget(own_key(c), c->control ? 4096 : 0, c->control ? IPC_CREAT | 0600 : 0);
	const char *p = id < 0 ? (char *)-1 : shmat(id, NULL, SHM_RDONLY);

	if (p == (char *)-1)
		return -errno;
	say_bytes(c, p, 32);
	if (c->control)
		(void)shmctl(id, IPC_RMID, NULL);
	return 0;
}

static int shm_by_id(struct ctx *c)
{
	const char *p = shmat((int)target_num(c, "shmid"), NULL, SHM_RDONLY);

	if (p == (char *)-1)
		return -errno;
	say_bytes(c, p, 32);
	return 0;
}

static int shm_write(struct ctx *c)
{
	const int id = shmget(own_key(c), 0, 0);
	char *p = id < 0 ? (char *)-1 : shmat(id, NULL, 0);

	if (p == (char *)-1)
		return -errno;
	memcpy(p, "escaped", 7);
	return 0;
}

static int shm_remove(struct ctx *c)
{
	return rc(shmctl(shmget(own_key(c), 0, 0), IPC_RMID, NULL));
}

static int sem_change(struct ctx *c)
{
	return rc(semctl(semget(own_key(c), 0, 0), 0, SETVAL, 1));
}

static int msg_take(struct ctx *c)
{
	struct {
		long type;
		char text[64];
	} m = { 0 };
	const int id = msgget(own_key(c), 0);
	const ssize_t n = id < 0 ? -1 : msgrcv(id, &m, sizeof(m.text), 0, IPC_NOWAIT);

	if (n < 0)
		return -errno;
	say_bytes(c, m.text, (size_t)n);
	return 0;
}

static int mq_take(struct ctx *c)
{
	char buf[128];
	const long fd = syscall(SYS_mq_open, abstract_name(c->dir, c->row->id, "mq"),
				O_RDWR | O_NONBLOCK | O_CLOEXEC, 0, NULL);
	const long n = fd < 0 ? -1 : syscall(SYS_mq_timedreceive, fd, buf, sizeof(buf), NULL, NULL);

	if (n < 0)
		return -errno;
	say_bytes(c, buf, (size_t)n);
	return 0;
}

static int say_key(struct ctx *c, long key)
{
	char buf[64] = "";
	const long n = key < 0 ? -1 : syscall(SYS_keyctl, KEYCTL_READ, key, buf, sizeof(buf));

	if (n < 0)
		return -errno;
	say_bytes(c, buf, (size_t)n < sizeof(buf) ? (size_t)n : sizeof(buf));
	return 0;
}

static int key_search(struct ctx *c)
{
	return say_key(c, syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, "user",
				  abstract_name(c->dir, c->row->id, "key"), 0));
}

static int key_request(struct ctx *c)
{
	return say_key(c, syscall(SYS_request_key, "user", abstract_name(c->dir, c->row->id, "key"),
				  NULL, 0));
}

static int key_by_id(struct ctx *c)
{
	return say_key(c, target_num(c, "keyid"));
}

static int key_session(struct ctx *c)
{
	return say_key(c, syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user",
				  abstract_name(c->dir, c->row->id, "session"), 0));
}

/* Credentials handed to the parent once dropped a restriction on the way. */
static int session_to_parent(struct ctx *c)
{
	const pid_t pid = fork();

	if (pid == 0) {
		(void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
		_exit(syscall(SYS_keyctl, KEYCTL_SESSION_TO_PARENT) < 0 ? errno & 0xff : 0);
	}
	(void)wait_for(pid);
	return put(open_canary(c, "f", O_WRONLY | O_APPEND));
}

/* clang-format off */
#define U(id, fn, arg, what) { id, "unix", "ipc", what, fn, fn, BY_EVENT, NEED_UNIX, 0, arg, 0, NULL }
#define A(id, fn, arg, what) { id, "unix", "ipc", what, fn, fn, BY_EVENT, NEED_ABSTRACT, 0, arg, 0, NULL }
#define K(id, file) { id, "unix", "ipc", "connect to " file, well_known, NULL, BY_REPORT, 0, 0, file, 0, NULL }

static const struct row rows[] = {
	U("UX-001", plain, "stream", "connect() to a host stream socket"),
	U("UX-002", plain, "dgram", "connect() to a host datagram socket"),
	U("UX-003", plain, "seq", "connect() to a host seqpacket socket"),
	U("UX-004", by_sendto, "dgram", "sendto() a host datagram socket"),
	U("UX-005", by_sendmsg, "dgram", "sendmsg() to a host datagram socket"),
	U("UX-006", by_pair, "dgram", "re-connect one end of a datagram socketpair"),
	U("UX-007", by_pair_sendto, "dgram", "sendto() from a datagram socketpair"),
	U("UX-008", by_symlink, NULL, "connect() through a symlink in the workspace"),
	U("UX-009", by_proc_fd, NULL, "connect() through /proc/self/fd of an O_PATH descriptor"),
	U("UX-010", by_hard_link, NULL, "connect() through a hard link in the workspace"),
	U("UX-011", by_int80, NULL, "connect() through the 32-bit gate"),
	U("UX-012", by_uring, NULL, "connect() by io_uring"),
	{ "UX-013", "unix", "ipc", "re-connect one end of a seqpacket socketpair", by_pair, NULL, BY_EVENT, NEED_UNIX, ROW_INHERENT, "seq", 0, NULL },
	{ "UX-014", "unix", "ipc", "connect() to a host socket that lies in the workspace", plain, plain, BY_EVENT, NEED_WORK_SOCKET, 0, "host", 0, NULL, "sockets" },
	A("UX-020", plain, "@stream", "connect() to an abstract stream socket"),
	A("UX-021", plain, "@dgram", "connect() to an abstract datagram socket"),
	A("UX-022", plain, "@seq", "connect() to an abstract seqpacket socket"),
	A("UX-023", by_sendto, "@dgram", "sendto() an abstract datagram socket"),
	A("UX-024", by_sendmsg, "@dgram", "sendmsg() to an abstract datagram socket"),
	A("UX-025", by_pair, "@dgram", "socketpair end to an abstract datagram socket"),
	A("UX-026", by_pair_sendto, "@dgram", "sendto() from a socketpair to an abstract datagram socket"),
	K("UX-040", "/run/docker.sock"), K("UX-041", "/run/containerd/containerd.sock"), K("UX-042", "/run/podman/podman.sock"),
	K("UX-043", "/run/crio/crio.sock"), K("UX-044", "/run/buildkit/buildkitd.sock"), K("UX-045", "/run/libvirt/libvirt-sock"),
	K("UX-046", "/run/dbus/system_bus_socket"), K("UX-047", "/run/user/*/bus"), K("UX-048", "/run/systemd/private"),
	K("UX-049", "/run/systemd/journal/stdout"), K("UX-050", "/run/user/*/wayland-*"), K("UX-051", "/tmp/.X11-unix/*"),
	K("UX-052", "/tmp/ssh-*/agent.*"), K("UX-053", "/tmp/tmux-*/*"), K("UX-054", "/run/snapd.socket"), K("UX-055", "/run/pcscd/pcscd.comm"),
	K("UX-056", "/run/cups/cups.sock"), K("UX-057", "/nix/var/nix/daemon-socket/socket"), K("UX-058", "/run/WSL/*_interop"),
	K("UX-059", "/run/user/*/gnupg/S.gpg-agent"), K("UX-060", "/run/user/*/keyring/*"), K("UX-061", "/run/nscd/socket"),
};

#define V(id, fn, by, what) { id, "ipc", "ipc", what, fn, NULL, by, NEED_SYSV, 0, NULL, 0, NULL }
static const struct row ipc[] = {
	{ "IPC-001", "ipc", "ipc", "read System V shared memory by key", shm_read, shm_read, BY_SECRET, NEED_SYSV, 0, NULL, 0, NULL },
	V("IPC-002", shm_by_id, BY_SECRET, "read System V shared memory by number"),
	V("IPC-003", shm_write, BY_IPC, "write System V shared memory"), V("IPC-004", shm_remove, BY_IPC, "remove System V shared memory"),
	V("IPC-005", sem_change, BY_IPC, "set a System V semaphore"), V("IPC-006", msg_take, BY_SECRET, "take a System V message"),
	{ "IPC-007", "ipc", "ipc", "take a message of a POSIX queue", mq_take, NULL, BY_SECRET, NEED_MQ, 0, NULL, 0, NULL },
	{ "IPC-008", "ipc", "cred", "find a secret in the user's keyring", key_search, NULL, BY_SECRET, NEED_KEY, 0, NULL, 0, NULL },
	{ "IPC-009", "ipc", "cred", "request_key() of a secret", key_request, NULL, BY_SECRET, NEED_KEY, 0, NULL, 0, NULL },
	{ "IPC-010", "ipc", "cred", "read a key by number", key_by_id, NULL, BY_SECRET, NEED_KEY, 0, NULL, 0, NULL },
	{ "IPC-011", "ipc", "cred", "read the starter's session keyring", key_session, NULL, BY_SECRET, 0, ROW_OWN | ROW_LAUNCH, "keyring", 0, NULL },
	{ "IPC-012", "ipc", "fs.write", "KEYCTL_SESSION_TO_PARENT, then write outside", session_to_parent, NULL, BY_CANARY, 0, 0, NULL, 0, NULL },
};
/* clang-format on */

const struct table unix_rows = { rows, LENGTH(rows) };
const struct table ipc_rows = { ipc, LENGTH(ipc) };
