/*
 * test_filter_live.c - the filters as the kernel runs them
 *
 * Each case runs in a child that loads a program and makes a real call. What is
 * refused has a control: the same kind of call that must still work.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "filter/filter.h"
#include "tap.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

enum { SIGNALLED = 1000, NOT_LOADED = 250, NOT_STARTED = 251 };

static int load(struct filter f, unsigned int flags)
{
	struct sock_fprog prog = { f.n, NULL };

	/* The interface asks for a pointer it does not write through. */
	memcpy(&prog.filter, &f.v, sizeof(prog.filter));
	if (!f.n || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}

/* Runs @act in a child under @f; returns what it returned, or SIGNALLED + signal. */
static int under(struct filter f, int (*act)(const void *arg), const void *arg)
{
	int status = 0;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (load(f, 0))
			_exit(NOT_LOADED);
		_exit(act(arg));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFSIGNALED(status) ? SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}

/* --- single calls --- */

struct call {
	const char *name;
	long nr;
	uint64_t arg[6];
	uint32_t switches;
	int want; /* errno, or 0 if it must work */
};

static int make(const void *arg)
{
	const struct call *c = arg;
	long r;

	errno = 0;
	r = syscall(c->nr, c->arg[0], c->arg[1], c->arg[2], c->arg[3], c->arg[4], c->arg[5]);
	return r < 0 ? errno : 0;
}

#define HIGH (1ull << 32)
#define STR(s) ((uint64_t)(uintptr_t)(s))

static void test_calls(void)
{
	/* clang-format off */
	const struct call calls[] = {
		{ "getpid", SYS_getpid, { 0 }, 0, 0 },
		{ "a number nobody has", 599, { 0 }, 0, ENOSYS },
		{ "clone3", 435, { 0, 88 }, 0, ENOSYS },
		{ "unshare a user namespace", SYS_unshare, { CLONE_NEWUSER }, 0, EPERM },
		{ "unshare a time namespace", SYS_unshare, { 0x80 }, 0, EPERM },
		{ "unshare descriptors", SYS_unshare, { CLONE_FILES | CLONE_FS }, 0, 0 },
		{ "setns", SYS_setns, { (uint64_t)-1, 0 }, 0, EPERM },
		{ "setns, nested", SYS_setns, { (uint64_t)-1, 0 }, FILTER_NESTED_USERNS, EBADF },
		{ "clone a user namespace", SYS_clone, { CLONE_NEWUSER | SIGCHLD }, 0, EPERM },
		{ "umount2", SYS_umount2, { STR("/nonexistent"), 0 }, 0, EPERM },
		{ "open_tree", 428, { (uint64_t)AT_FDCWD, STR("/"), 0 }, 0, EPERM },
		{ "open_tree, nested", 428, { (uint64_t)AT_FDCWD, STR("/"), 0 }, FILTER_NESTED_USERNS, 0 },
		{ "io_uring_setup", 425, { 8, 0 }, 0, ENOSYS },
		{ "io_setup", SYS_io_setup, { 8, STR("\0\0\0\0\0\0\0") }, 0, ENOSYS },
		{ "io_destroy", SYS_io_destroy, { 0 }, 0, ENOSYS },
		{ "keyctl", SYS_keyctl, { 0, (uint64_t)-3, 1 }, 0, ENOSYS },
		{ "add_key", SYS_add_key, { 0 }, 0, ENOSYS },
		{ "bpf", SYS_bpf, { 0, 0, 0 }, 0, EPERM },
		{ "perf_event_open", SYS_perf_event_open, { 0 }, 0, EPERM },
		{ "userfaultfd", SYS_userfaultfd, { 1 }, 0, EPERM },
		{ "ptrace", SYS_ptrace, { PTRACE_TRACEME }, 0, EPERM },
		{ "ptrace, own", SYS_ptrace, { PTRACE_TRACEME }, FILTER_PTRACE_OWN, 0 },
		{ "process_vm_readv", SYS_process_vm_readv, { 1 }, 0, EPERM },
		{ "pidfd_getfd", 438, { (uint64_t)-1, 0, 0 }, 0, EPERM },
		{ "pidfd_open", 434, { (uint64_t)getpid(), 0 }, 0, 0 },
		{ "open_by_handle_at", SYS_open_by_handle_at, { 0 }, 0, EPERM },
		{ "mbind", SYS_mbind, { 0 }, 0, ENOSYS },
		{ "TIOCSTI", SYS_ioctl, { 0, TIOCSTI, STR("x") }, 0, EPERM },
		{ "TIOCSTI, half hidden", SYS_ioctl, { 0, TIOCSTI | HIGH, STR("x") }, 0, EPERM },
		{ "TIOCLINUX", SYS_ioctl, { 0, TIOCLINUX, STR("\2") }, 0, EPERM },
		{ "TIOCSETD, half hidden", SYS_ioctl, { 0, TIOCSETD | HIGH << 3, 0 }, 0, EPERM },
		{ "BTRFS_IOC_SUBVOL_SETFLAGS", SYS_ioctl, { 0, 0x4008941a, STR("\2\0\0\0\0\0\0\0") }, 0, EPERM },
		{ "BTRFS_IOC_SUBVOL_SETFLAGS, half hidden", SYS_ioctl, { 0, 0x4008941a | HIGH, STR("\2\0\0\0\0\0\0\0") }, 0, EPERM },
		{ "FS_IOC_ENABLE_VERITY", SYS_ioctl, { (uint64_t)-1, 0x40806685, 0 }, 0, EPERM },
		{ "FICLONE", SYS_ioctl, { (uint64_t)-1, 0x40049409, 0 }, 0, EBADF },
		{ "FS_IOC_FIEMAP", SYS_ioctl, { (uint64_t)-1, 0xc020660b, 0 }, 0, EBADF },
		{ "FIOCLEX", SYS_ioctl, { 0, FIOCLEX, 0 }, 0, 0 },
		{ "personality, asking", SYS_personality, { 0xffffffff }, 0, 0 },
		{ "personality READ_IMPLIES_EXEC", SYS_personality, { READ_IMPLIES_EXEC }, 0, EPERM },
		{ "socket unix", SYS_socket, { AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0 }, 0, 0 },
		{ "socket inet", SYS_socket, { AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0 }, 0, 0 },
		{ "socket inet udp", SYS_socket, { AF_INET, SOCK_DGRAM, IPPROTO_UDP }, FILTER_TIER_B, 0 },
		{ "socket mptcp", SYS_socket, { AF_INET, SOCK_STREAM, 262 }, 0, EPROTONOSUPPORT },
		{ "socket mptcp, half hidden", SYS_socket, { AF_INET, SOCK_STREAM, 262 | HIGH }, 0, EPROTONOSUPPORT },
		{ "socket icmp", SYS_socket, { AF_INET, SOCK_DGRAM, IPPROTO_ICMP }, 0, EPROTONOSUPPORT },
		{ "socket raw", SYS_socket, { AF_INET, SOCK_RAW, IPPROTO_TCP }, 0, EPERM },
		{ "socket alg", SYS_socket, { AF_ALG, SOCK_SEQPACKET, 0 }, 0, EAFNOSUPPORT },
		{ "socket vsock", SYS_socket, { AF_VSOCK, SOCK_STREAM, 0 }, 0, EAFNOSUPPORT },
		{ "socket packet, half hidden", SYS_socket, { AF_PACKET | HIGH, SOCK_RAW, 0 }, 0, EAFNOSUPPORT },
		{ "netlink route", SYS_socket, { AF_NETLINK, SOCK_RAW, NETLINK_ROUTE }, 0, 0 },
		{ "netlink route, tier B", SYS_socket, { AF_NETLINK, SOCK_RAW, 0 }, FILTER_TIER_B, EAFNOSUPPORT },
		{ "netlink netfilter", SYS_socket, { AF_NETLINK, SOCK_RAW, 12 }, 0, EPROTONOSUPPORT },
		{ "shmget", SYS_shmget, { 0, 1, 0600 }, FILTER_TIER_B, EPERM },
		{ "send with MSG_OOB", SYS_sendto, { (uint64_t)-1, 0, 0, MSG_OOB, 0, 0 }, 0, EOPNOTSUPP },
		{ "send", SYS_sendto, { (uint64_t)-1, 0, 0, MSG_NOSIGNAL, 0, 0 }, 0, EBADF },
		{ "send with MSG_FASTOPEN", SYS_sendto, { (uint64_t)-1, 0, 0, MSG_FASTOPEN, 0, 0 }, FILTER_TIER_B, EOPNOTSUPP },
		{ "mknod of a device", SYS_mknodat, { (uint64_t)AT_FDCWD, STR("/nonexistent/x"), S_IFCHR | 0600, 0 }, 0, EPERM },
		{ "mknod of a pipe", SYS_mknodat, { (uint64_t)AT_FDCWD, STR("/nonexistent/x"), S_IFIFO | 0600, 0 }, 0, ENOENT },
		{ "chmod set-user-id", SYS_fchmodat, { (uint64_t)AT_FDCWD, STR("/nonexistent/x"), 04755 }, 0, EPERM },
		{ "chmod set-user-id, half hidden", SYS_fchmodat, { (uint64_t)AT_FDCWD, STR("/nonexistent/x"), 04755 | HIGH }, 0, EPERM },
		{ "chmod", SYS_fchmodat, { (uint64_t)AT_FDCWD, STR("/nonexistent/x"), 0755 }, 0, ENOENT },
		{ "creating set-group-id", SYS_openat, { (uint64_t)AT_FDCWD, STR("/nonexistent/x"), O_CREAT | O_WRONLY, 02755 }, 0, EPERM },
		{ "opening with an idle mode", SYS_openat, { (uint64_t)AT_FDCWD, STR("/"), O_RDONLY, 06755 }, 0, 0 },
		{ "openat2", 437, { (uint64_t)AT_FDCWD, STR("/"), STR("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), 24 }, 0, ENOSYS },
		{ "memfd", SYS_memfd_create, { STR("x"), MFD_CLOEXEC }, 0, 0 },
		{ "memfd under an exec list", SYS_memfd_create, { STR("x"), MFD_CLOEXEC }, FILTER_EXEC_LIST, EACCES },
		{ "execveat by descriptor under an exec list", SYS_execveat, { (uint64_t)-1, STR(""), 0, 0, AT_EMPTY_PATH }, FILTER_EXEC_LIST, EACCES },
		{ "a listener of one's own", SYS_seccomp, { SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, 0 }, 0, EFAULT },
		{ "a filter of one's own", SYS_seccomp, { SECCOMP_SET_MODE_FILTER, 0, 0 }, 0, EFAULT },
		{ "PR_SET_MM", SYS_prctl, { PR_SET_MM, PR_SET_MM_MAP, 0, 0, 0 }, 0, EPERM },
		{ "landlock", 444, { 0, 0, 1 }, 0, 0 },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int got = under(filter_base(calls[i].switches), make, &calls[i]);

		/* A kernel without Landlock says so; that is no refusal of ours. */
		if (calls[i].nr == 444 && got == EOPNOTSUPP)
			got = 0;
		ok(got == calls[i].want, "%s: %s", calls[i].name,
		   calls[i].want ? strerrorname_np(calls[i].want) : "works");
		if (got != calls[i].want)
			tap_note("got %d", got);
	}
}

/* --- other ways into the kernel --- */

#if defined(__x86_64__)
static int int80(const void *arg)
{
	long r = 20; /* getpid in the 32-bit table */

	(void)arg;
	__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
	return r > 0 ? 0 : 1;
}

static int x32(const void *arg)
{
	(void)arg;
	errno = 0;
	return syscall(0x40000000 | SYS_getpid) < 0 ? errno : 0;
}
#endif

static void test_ways(void)
{
#if defined(__x86_64__)
	ok(under(filter_base(0), int80, NULL) == SIGNALLED + SIGSYS, "int 0x80 is killed");
	ok(under(filter_base(0), x32, NULL) == ENOSYS, "an x32 call does not exist");
	ok(under(filter_keeper(), int80, NULL) == SIGNALLED + SIGSYS, "int 0x80 kills the keeper");
#endif
}

/* --- what must go on working --- */

static void *nothing(void *arg)
{
	return arg;
}

static int threads(const void *arg)
{
	pthread_t t[4];
	int bad = 0;

	(void)arg;
	for (size_t i = 0; i < 4; i++)
		bad |= pthread_create(&t[i], NULL, nothing, NULL);
	for (size_t i = 0; i < 4 && !bad; i++)
		bad |= pthread_join(t[i], NULL);
	return bad;
}

static int everyday(const void *arg)
{
	int p[2], status = 0, fd;
	struct stat st;
	pid_t pid;
	char c;

	(void)arg;
	if (pipe(p) || (pid = fork()) < 0)
		return 1;
	if (pid == 0)
		_exit(write(p[1], "x", 1) != 1);
	if (read(p[0], &c, 1) != 1 || waitpid(pid, &status, 0) != pid || status)
		return 2;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, p) || send(p[0], "x", 1, MSG_NOSIGNAL) != 1)
		return 3;
	fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || read(fd, &c, 1) != 1 || close(fd))
		return 4;
	fd = memfd_create("x", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 4096) ||
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
		return 5;
	return 0;
}

/* In tier B the call claims success and the process stays readable. */
static int dumpable(const void *arg)
{
	(void)arg;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return 100;
	return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
}

static int program(const void *arg)
{
	char *const *v = (char *const *)arg;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
		return NOT_STARTED;
	(void)execvp(v[0], v);
	return errno == ENOENT || errno == EACCES ? NOT_STARTED : 1;
}

static void test_programs(uint32_t switches, const char *where)
{
	/* clang-format off */
	static const char *const programs[][6] = {
		{ "true" },
		{ "sh", "-c", "echo a | tr a b | grep -q b && (exit 0) && : >/dev/null && [ $(echo $(echo 3)) = 3 ]" },
		{ "ls", "-la", "/" },
		{ "git", "--version" },
		{ "sh", "-c", "d=$(mktemp -d) && cd $d && git init -q . && "
			"git -c user.name=x -c user.email=x@example.com commit -q --allow-empty -m x && "
			"git log -1 --oneline >/dev/null; r=$?; rm -rf $d; exit $r" },
		{ "python3", "-c", "import threading, subprocess, socket, mmap, selectors\n"
			"t = threading.Thread(target=lambda: None); t.start(); t.join()\n"
			"assert subprocess.run(['true']).returncode == 0\n"
			"a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'\n"
			"s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); c = socket.create_connection(s.getsockname())\n"
			"mmap.mmap(-1, 4096)\n" },
		{ "node", "-e", "const t = require('worker_threads'), c = require('child_process'), f = require('fs');"
			"new t.Worker('1', { eval: true }).on('exit', e => {"
			"c.execFileSync('true'); f.readdirSync('/'); f.readFile('/etc/passwd', x => process.exit(x ? 1 : e)) })" },
		{ "perl", "-e", "fork or exit 0; wait; exit $?" },
		{ "sh", "-c", "command -v gcc >/dev/null || exit 251; d=$(mktemp -d) && cd $d && "
			"echo 'int main(void) { return 0; }' >x.c && gcc -pipe -o x x.c && ./x; "
			"r=$?; rm -rf $d; exit $r" },
		{ "java", "--version" },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		struct filter f = filter_base(switches);
		int got = under(f, program, programs[i]);
		const char *name = programs[i][0];

		if (!strcmp(name, "sh"))
			name = strstr(programs[i][2], "gcc")   ? "gcc"
			       : strstr(programs[i][2], "git") ? "git commit"
							       : "sh";
		if (got == NOT_STARTED)
			ok(true, "%s: %s # skip not here", where, name);
		else
			ok(got == 0, "%s: %s runs (%d)", where, name, got);
	}
}

static void test_everyday(void)
{
	for (uint32_t sw = 0; sw < FILTER_SWITCHES; sw++) {
		int want = sw & FILTER_EXEC_LIST ? 5 : 0; /* that is the memfd */

		ok(under(filter_base(sw), everyday, NULL) == want,
		   "everyday calls under program %u", sw);
	}
	ok(under(filter_base(0), threads, NULL) == 0, "threads");
	ok(under(filter_base(FILTER_TIER_B), threads, NULL) == 0, "threads in tier B");
	ok(under(filter_base(0), dumpable, NULL) == 0, "dumpable can be given up");
	ok(under(filter_base(FILTER_TIER_B), dumpable, NULL) == 1, "in tier B it only seems so");
}

/* --- traps --- */

static int answer_one(int listener)
{
	struct seccomp_notif req = { 0 };
	struct seccomp_notif_resp resp = { 0 };

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &req))
		return -1;
	resp.id = req.id;
	resp.error = -EXDEV;
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp) ? -1 : req.data.nr;
}

/* A program of its own answers with EXDEV, which nothing else would say. */
static int trapped(const void *arg)
{
	int listener = -1, status = 0;
	pid_t pid;

	(void)arg;
	/* As in a jail: pid 1 has the base program, each command adds its own traps. */
	if (load(filter_base(0), 0) == 0)
		listener = load(filter_traps(TRAP_WRITE), SECCOMP_FILTER_FLAG_NEW_LISTENER);
	if (listener < 0)
		return NOT_LOADED;
	pid = fork();
	if (pid == 0) {
		if (open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0)
			_exit(1);
		if (open("/nonexistent", O_PATH | O_RDWR | O_CLOEXEC) >= 0 || errno != ENOENT)
			_exit(2);
		if (open("/etc/passwd", O_WRONLY | O_CLOEXEC) >= 0 || errno != EXDEV)
			_exit(3);
		_exit(0);
	}
	if (pid < 0 || answer_one(listener) != SYS_openat || waitpid(pid, &status, 0) != pid)
		return 10;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 11;
}

static int pass(const void *arg)
{
	(void)arg;
	return 0;
}

static void test_traps(void)
{
	int status = 0;
	pid_t pid;

	for (uint32_t t = 1; t < TRAP_COMBINATIONS; t++)
		ok(under(filter_traps(t), pass, NULL) == 0, "the kernel takes trap program %u", t);
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(trapped(NULL));
	ok(pid > 0 && waitpid(pid, &status, 0) == pid && !status,
	   "an open for writing is trapped, one for reading is not (%d)", status);
}

/* --- the keeper --- */

static int keeps(const void *arg)
{
	int status = 0, fd = openat(AT_FDCWD, "/", O_PATH | O_CLOEXEC);
	pid_t pid;

	(void)arg;
	if (fd < 0 || close(fd))
		return 1;
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		for (syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);;)
			(void)syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
	if (pid < 0 || syscall(SYS_kill, pid, SIGTERM) == 0 || syscall(SYS_kill, pid, SIGKILL))
		return 2;
	if (syscall(SYS_wait4, pid, &status, 0, NULL) != pid || !WIFSIGNALED(status))
		return 3;
	if (syscall(SYS_socket, AF_PACKET, SOCK_RAW, 0) >= 0 || errno != EAFNOSUPPORT)
		return 4;
	if (syscall(SYS_execve, "/bin/true", NULL, NULL) == 0 || errno != EPERM)
		return 5;
	/* No _exit(): the sanitizer's goes through calls a keeper has not. */
	return (int)syscall(SYS_exit_group,
			    syscall(SYS_getdents64, 0, NULL, 0) >= 0 || errno != EPERM);
}

int main(void)
{
	if (!filter_base(0).n) {
		printf("1..0 # skip no filter for this architecture\n");
		return 0;
	}
	test_calls();
	test_ways();
	test_everyday();
	test_programs(0, "tier A");
	test_programs(FILTER_TIER_B, "tier B");
	test_traps();
	ok(under(filter_keeper(), keeps, NULL) == 0, "the keeper can do its work and nothing else");
	return tap_done();
}
