/*
 * test_filter.c - the compiled filters do what this file says, call by call
 *
 * The expectation below is written by hand, from headers and from libseccomp's
 * numbers, not from the table the filters are made of. A small BPF interpreter runs
 * every program of both architectures over every number and many arguments.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "bpf.h"
#include "filter/set_priv.h"
#include "tap.h"

#ifndef IPV6_FLOWINFO_SEND
#define IPV6_FLOWINFO_SEND 33
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif
#ifndef TCP_ULP
#define TCP_ULP 31
#endif

enum { NUMBERS = 601, X32 = 0x40000000 };
#define NO(e) (SECCOMP_RET_ERRNO | (uint32_t)(e))
#define GO SECCOMP_RET_ALLOW

/* --- the expectation --- */

/*
 * Names are resolved by libseccomp; "name=N" gives the number of calls newer than
 * the oldest libseccomp we build with. Those have one number on both architectures.
 */
static const char *const allowed =
	"read write close fstat newfstatat readv writev pread64 pwrite64 preadv pwritev preadv2 "
	"pwritev2 lseek dup dup2 dup3 fcntl flock pipe pipe2 fsync fdatasync sync_file_range "
	"ftruncate fallocate fadvise64 readahead copy_file_range sendfile splice tee vmsplice "
	"close_range sync syncfs statx stat lstat statfs fstatfs getdents getdents64 "
	"mkdir mkdirat rmdir "
	"link "
	"linkat symlink symlinkat rename renameat renameat2 unlink unlinkat truncate access "
	"faccessat faccessat2 readlink readlinkat getcwd chdir fchdir umask inotify_init "
	"inotify_init1 inotify_add_watch inotify_rm_watch chown fchown lchown fchownat utime "
	"utimes "
	"futimesat utimensat setxattr lsetxattr fsetxattr setxattrat=463 removexattr lremovexattr "
	"fremovexattr removexattrat=466 file_setattr=469 getxattr lgetxattr fgetxattr "
	"getxattrat=464 listxattr llistxattr flistxattr listxattrat=465 file_getattr=468 mmap "
	"mprotect munmap brk mremap msync mincore madvise mlock mlock2 munlock mlockall munlockall "
	"remap_file_pages pkey_mprotect pkey_alloc pkey_free map_shadow_stack=453 mseal=462 "
	"membarrier fork vfork exit exit_group wait4 waitid gettid set_tid_address set_robust_list "
	"get_robust_list rt_sigprocmask rt_sigreturn restart_syscall execve getpid getppid getpgid "
	"getpgrp setpgid getsid setsid pidfd_open getrlimit setrlimit getrusage times "
	"uname sysinfo getcpu getrandom rseq rseq_slice_yield=471 arch_prctl tkill tgkill kill "
	"rt_sigaction rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_tgsigqueueinfo "
	"rt_sigsuspend sigaltstack signalfd signalfd4 pidfd_send_signal pause time gettimeofday "
	"clock_gettime clock_getres nanosleep clock_nanosleep alarm getitimer setitimer "
	"timer_create timer_settime timer_gettime timer_getoverrun timer_delete timerfd_create "
	"timerfd_settime timerfd_gettime poll ppoll select pselect6 epoll_create epoll_create1 "
	"epoll_ctl epoll_wait epoll_pwait epoll_pwait2=441 eventfd eventfd2 futex futex_waitv=449 "
	"futex_wake=454 futex_wait=455 futex_requeue=456 sched_yield "
	"sched_getparam sched_getscheduler sched_getattr "
	"sched_get_priority_max sched_get_priority_min sched_rr_get_interval "
	"sched_getaffinity getpriority ioprio_get getuid geteuid getgid "
	"getegid getresuid getresgid getgroups capget setuid setgid setreuid setregid setresuid "
	"setresgid setfsuid setfsgid setgroups capset bind connect listen recvmsg accept accept4 "
	"recvfrom recvmmsg shutdown getsockname getpeername getsockopt "
	"landlock_create_ruleset=444 landlock_add_rule=445 landlock_restrict_self=446";

static const char *const eperm =
	"name_to_handle_at open_by_handle_at fanotify_init fanotify_mark userfaultfd pidfd_getfd "
	"perf_event_open settimeofday clock_settime adjtimex clock_adjtime reboot kexec_load "
	"kexec_file_load init_module finit_module delete_module swapon swapoff acct quotactl "
	"quotactl_fd=443 syslog iopl ioperm vhangup bpf";

static const char *const nested =
	"mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig fsmount fspick "
	"mount_setattr=442 open_tree_attr=467 setns sethostname setdomainname";

static const char *const traced = "ptrace process_vm_readv process_vm_writev kcmp";

static const char *const uring = "io_uring_setup io_uring_enter io_uring_register";

static const char *const ipc =
	"shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl "
	"mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr";

/* Decided by arguments, in by_argument() below. */
static const char *const judged =
	"open openat creat chmod fchmod fchmodat fchmodat2=452 mknod mknodat ioctl clone unshare "
	"setpriority ioprio_set prlimit64 sched_setparam sched_setscheduler sched_setattr "
	"sched_setaffinity memfd_create execveat prctl personality seccomp socket socketpair "
	"setsockopt sendto "
	"sendmsg sendmmsg";

static const char *const trap_write =
	"creat umask mkdir mkdirat rmdir link linkat symlink symlinkat rename renameat renameat2 "
	"unlink unlinkat truncate mknod mknodat bind";
static const char *const trap_read = "creat";
static const char *const trap_meta =
	"chmod fchmod fchmodat fchmodat2=452 chown fchown lchown fchownat utime utimes futimesat "
	"utimensat setxattr lsetxattr fsetxattr setxattrat=463 removexattr lremovexattr "
	"fremovexattr removexattrat=466 file_setattr=469";
static const char *const trap_net = "connect bind listen sendmsg sendmmsg";
static const char *const trap_exec = "execve execveat";

static const char *const keeper =
	"read write close fstat newfstatat openat openat2 mkdirat symlinkat umount2 open_tree "
	"move_mount "
	"mount_setattr=442 setns fchdir fork exit exit_group wait4 gettid set_tid_address "
	"set_robust_list rt_sigprocmask rt_sigreturn restart_syscall prctl poll ppoll bind listen "
	"recvmsg";

enum list {
	ALLOWED,
	EPERMS,
	NESTED,
	TRACED,
	URING,
	IPC,
	JUDGED,
	T_WRITE,
	T_READ,
	T_META,
	T_NET,
	T_EXEC,
	KEEPER,
	LISTS
};

static const char *const *const lists[LISTS] = {
	&allowed,    &eperm,	 &nested,    &traced,	&uring,	    &ipc,    &judged,
	&trap_write, &trap_read, &trap_meta, &trap_net, &trap_exec, &keeper,
};

struct arch {
	const char *name;
	uint32_t audit, scmp;
	const struct filter_set *set;
	uint32_t in[NUMBERS]; /* bit per list */
	const char *call[NUMBERS];
	char text[LISTS][6000];
};

static int resolve(const struct arch *a, char *word)
{
	char *eq = strchr(word, '=');

	if (!eq)
		return seccomp_syscall_resolve_name_arch(a->scmp, word);
	*eq = '\0';
	return (int)strtol(eq + 1, NULL, 10);
}

static void fill(struct arch *a)
{
	for (size_t l = 0; l < LISTS; l++) {
		char *save = NULL, *text = a->text[l];
		size_t unknown = 0;

		(void)snprintf(text, sizeof(a->text[l]), "%s", *lists[l]);
		for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
			int nr = resolve(a, w);

			unknown += nr == __NR_SCMP_ERROR;
			if (nr < 0 || nr >= NUMBERS)
				continue; /* not on this architecture */
			a->in[nr] |= 1u << l;
			a->call[nr] = w;
		}
		ok(!unknown, "%s: libseccomp knows every name of list %zu", a->name, l);
	}
	if (a->audit == AUDIT_ARCH_X86_64) /* entered by the kernel's own trampolines */
		a->in[335] = a->in[336] = 1u << ALLOWED;
}

static bool is(const struct arch *a, const struct seccomp_data *d, const char *name)
{
	const char *call = a->call[d->nr];

	return call && !strcmp(call, name);
}

static uint32_t expect_socket(const uint32_t *v, uint32_t sw)
{
	uint32_t type = v[1] & ~(uint32_t)(SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (v[0] == AF_UNIX)
		return GO;
	if (v[0] == AF_NETLINK && !(sw & FILTER_TIER_B))
		return v[2] == NETLINK_ROUTE ? GO : NO(EPROTONOSUPPORT);
	if (v[0] != AF_INET && v[0] != AF_INET6)
		return NO(EAFNOSUPPORT);
	if (type != SOCK_STREAM && type != SOCK_DGRAM)
		return NO(EPERM);
	if (v[2] != IPPROTO_IP && v[2] != IPPROTO_TCP && v[2] != IPPROTO_UDP)
		return NO(EPROTONOSUPPORT);
	return GO;
}

/* What would say something to the wire, or by which way. */
static uint32_t expect_option(const uint32_t *v, uint32_t sw)
{
	static const struct {
		uint32_t level, option;
	} no[] = { { SOL_SOCKET, SO_BINDTODEVICE },
		   { SOL_SOCKET, SO_BINDTOIFINDEX },
		   { IPPROTO_IP, IP_OPTIONS },
		   { IPPROTO_IP, IP_ADD_MEMBERSHIP },
		   { IPPROTO_IP, IP_ADD_SOURCE_MEMBERSHIP },
		   { IPPROTO_IP, IP_MSFILTER },
		   { IPPROTO_IP, MCAST_JOIN_GROUP },
		   { IPPROTO_IP, MCAST_JOIN_SOURCE_GROUP },
		   { IPPROTO_IP, MCAST_MSFILTER },
		   { IPPROTO_IPV6, IPV6_2292PKTOPTIONS },
		   { IPPROTO_IPV6, IPV6_JOIN_GROUP },
		   { IPPROTO_IPV6, IPV6_JOIN_ANYCAST },
		   { IPPROTO_IPV6, MCAST_JOIN_GROUP },
		   { IPPROTO_IPV6, MCAST_JOIN_SOURCE_GROUP },
		   { IPPROTO_IPV6, MCAST_MSFILTER },
		   { IPPROTO_IPV6, IPV6_PKTINFO },
		   { IPPROTO_IPV6, IPV6_RTHDR },
		   { IPPROTO_IP, IP_UNICAST_IF },
		   { IPPROTO_IP, IP_MULTICAST_IF },
		   { IPPROTO_IPV6, IPV6_UNICAST_IF },
		   { IPPROTO_IPV6, IPV6_MULTICAST_IF } };
	static const uint32_t ip[] = { IP_TOS,	    IP_TTL,	IP_PKTINFO,
				       IP_MTU_DISCOVER, IP_RECVERR, IP_RECVTTL,
				       IP_RECVTOS,  IP_BIND_ADDRESS_NO_PORT, IP_MULTICAST_ALL };
	static const uint32_t ip6[] = { IPV6_UNICAST_HOPS,  IPV6_MTU_DISCOVER, IPV6_RECVERR,
					IPV6_V6ONLY,	    IPV6_MULTICAST_ALL,
					IPV6_RECVPKTINFO,   IPV6_DONTFRAG,
					IPV6_RECVTCLASS,    IPV6_TCLASS };

	if (v[1] == IPPROTO_TCP && v[2] == TCP_ULP)
		return NO(ENOENT);
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		if ((sw & FILTER_TIER_B) && v[1] == no[i].level && v[2] == no[i].option)
			return NO(EPERM);
	if (!(sw & FILTER_TIER_B) || (v[1] != IPPROTO_IP && v[1] != IPPROTO_IPV6))
		return GO;
	for (size_t i = 0; v[1] == IPPROTO_IP && i < ARRAY_LEN(ip); i++)
		if (v[2] == ip[i])
			return GO;
	for (size_t i = 0; v[1] == IPPROTO_IPV6 && i < ARRAY_LEN(ip6); i++)
		if (v[2] == ip6[i])
			return GO;
	return NO(EPERM);
}

static uint32_t expect_send(uint32_t flags, uint32_t sw)
{
	if (flags & MSG_OOB || ((sw & FILTER_TIER_B) && flags & MSG_FASTOPEN))
		return NO(EOPNOTSUPP);
	return GO;
}

static uint32_t expect_new_file(uint32_t flags, uint32_t mode)
{
	bool makes = flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY));

	return makes && mode & (S_ISUID | S_ISGID) ? NO(EPERM) : GO;
}

static uint32_t expect_node(uint32_t mode)
{
	return mode & (S_ISUID | S_ISGID) || S_ISCHR(mode) || S_ISBLK(mode) ? NO(EPERM) : GO;
}

static uint32_t expect_prctl(const uint32_t *v, uint32_t sw)
{
	if (v[0] == PR_SET_MM || ((sw & FILTER_TIER_B) && v[0] == PR_SET_PTRACER))
		return NO(EPERM);
	return (sw & FILTER_TIER_B) && v[0] == PR_SET_DUMPABLE && !v[1] ? NO(0) : GO;
}

static uint32_t expect_personality(uint32_t v)
{
	return v == PER_LINUX || v == PER_LINUX32 || v == UNAME26 || v == (PER_LINUX32 | UNAME26) ||
			       v == ADDR_NO_RANDOMIZE || v == UINT32_MAX
		       ? GO
		       : NO(EPERM);
}

/* Types of commands that file systems have; devices and sockets use others. */
static const uint8_t fs_types[] = { 'f', 'r', 'v', 0x94 };

static uint32_t expect_ioctl(uint32_t cmd)
{
	static const uint32_t fs[] = { FICLONE, FICLONERANGE, FS_IOC_FIEMAP, FS_IOC_SETFLAGS };

	if (memchr(fs_types, (int)(cmd >> 8 & 0xff), sizeof(fs_types))) {
		for (size_t i = 0; i < ARRAY_LEN(fs); i++)
			if (cmd == fs[i])
				return GO;
		return _IOC_DIR(cmd) == _IOC_READ ? GO : NO(EPERM);
	}
	return cmd == TIOCSTI || cmd == TIOCLINUX || cmd == TIOCCONS || cmd == TIOCSETD ? NO(EPERM)
											 : GO;
}

static uint32_t expect_namespace(uint32_t flags, uint32_t others, uint32_t sw)
{
	uint32_t any = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
		       CLONE_NEWPID | CLONE_NEWNET | others;

	return flags & any && !(sw & FILTER_NESTED_USERNS) ? NO(EPERM) : GO;
}

/* @v: the low halves of the arguments, all the kernel looks at. */
static uint32_t by_argument(const struct arch *a, const struct seccomp_data *d, const uint32_t *v,
			    uint32_t sw)
{
	bool exec_list = sw & FILTER_EXEC_LIST;

	if (is(a, d, "open"))
		return expect_new_file(v[1], v[2]);
	if (is(a, d, "openat"))
		return expect_new_file(v[2], v[3]);
	if (is(a, d, "creat") || is(a, d, "chmod") || is(a, d, "fchmod"))
		return v[1] & (S_ISUID | S_ISGID) ? NO(EPERM) : GO;
	if (is(a, d, "fchmodat") || is(a, d, "fchmodat2"))
		return v[2] & (S_ISUID | S_ISGID) ? NO(EPERM) : GO;
	if (is(a, d, "mknod") || is(a, d, "mknodat"))
		return expect_node(v[is(a, d, "mknod") ? 1 : 2]);
	if (is(a, d, "ioctl"))
		return expect_ioctl(v[1]);
	if (is(a, d, "clone"))
		return expect_namespace(v[0], 0, sw);
	if (is(a, d, "unshare"))
		return expect_namespace(v[0], CLONE_NEWTIME, sw);
	if (is(a, d, "memfd_create"))
		return exec_list && !(v[1] & MFD_NOEXEC_SEAL) ? NO(EACCES) : GO;
	if (is(a, d, "execveat"))
		return exec_list && v[4] & AT_EMPTY_PATH ? NO(EACCES) : GO;
	if (is(a, d, "prctl"))
		return expect_prctl(v, sw);
	if (is(a, d, "personality"))
		return expect_personality(v[0]);
	if (is(a, d, "prlimit64") || is(a, d, "sched_setparam") || is(a, d, "sched_setscheduler") ||
	    is(a, d, "sched_setattr") || is(a, d, "sched_setaffinity"))
		return (sw & FILTER_TIER_B) && v[0] != 0 ? NO(EPERM) : GO;
	if (is(a, d, "setpriority"))
		return (sw & FILTER_TIER_B) && (v[0] != 0 || v[1] != 0) ? NO(EPERM) : GO;
	if (is(a, d, "ioprio_set"))
		return (sw & FILTER_TIER_B) && (v[0] != 1 || v[1] != 0) ? NO(EPERM) : GO;
	if (is(a, d, "seccomp"))
		return GO;
	if (is(a, d, "socket"))
		return expect_socket(v, sw);
	if (is(a, d, "socketpair"))
		return v[0] == AF_UNIX ? GO : NO(EAFNOSUPPORT);
	if (is(a, d, "setsockopt"))
		return expect_option(v, sw);
	if (is(a, d, "sendmsg"))
		return expect_send(v[2], sw);
	if (is(a, d, "sendto") || is(a, d, "sendmmsg"))
		return expect_send(v[3], sw);
	return 0xdead0003;
}

static void halves(const struct seccomp_data *d, uint32_t *ret_v)
{
	for (size_t i = 0; i < 6; i++)
		ret_v[i] = (uint32_t)d->args[i];
}

static uint32_t expect_base(const struct arch *a, const struct seccomp_data *d, uint32_t sw)
{
	uint32_t in = d->nr >= 0 && d->nr < NUMBERS ? a->in[d->nr] : 0, v[6];

	if (d->arch != a->audit)
		return SECCOMP_RET_KILL_PROCESS;
	halves(d, v);
	if (in & 1u << ALLOWED)
		return GO;
	if (in & 1u << EPERMS)
		return NO(EPERM);
	if (in & 1u << NESTED)
		return sw & FILTER_NESTED_USERNS ? GO : NO(EPERM);
	if (in & 1u << TRACED)
		return sw & FILTER_PTRACE_OWN ? GO : NO(EPERM);
	if (in & 1u << URING)
		return sw & FILTER_IO_URING ? GO : NO(ENOSYS);
	if (in & 1u << IPC)
		return sw & FILTER_TIER_B ? NO(EPERM) : GO;
	return in & 1u << JUDGED ? by_argument(a, d, v, sw) : NO(ENOSYS);
}

static bool traps_open(uint32_t flags, uint32_t t)
{
	bool makes = flags & (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY));

	return !(flags & O_PATH) && (t & TRAP_READ || (t & TRAP_WRITE && makes));
}

static uint32_t expect_traps(const struct arch *a, const struct seccomp_data *d, uint32_t t)
{
	uint32_t in = d->nr >= 0 && d->nr < NUMBERS ? a->in[d->nr] : 0, v[6];
	bool yes = (in & 1u << T_WRITE && t & TRAP_WRITE) || (in & 1u << T_READ && t & TRAP_READ) ||
		   (in & 1u << T_META && t & TRAP_META) || (in & 1u << T_NET && t & TRAP_NET) ||
		   (in & 1u << T_EXEC && t & TRAP_EXEC);

	if (d->arch != a->audit)
		return NO(ENOSYS);
	halves(d, v);
	if (in && is(a, d, "open"))
		yes = traps_open(v[1], t);
	if (in && is(a, d, "openat"))
		yes = traps_open(v[2], t);
	if (in && is(a, d, "sendto"))
		yes = t & TRAP_NET && d->args[4];
	if (in && is(a, d, "connect"))
		yes = t & (TRAP_NET | TRAP_UNIX);
	if (in && (is(a, d, "socket") || is(a, d, "socketpair")))
		yes = (t & (TRAP_NET | TRAP_UNIX)) == TRAP_UNIX && v[0] == AF_UNIX &&
		      ((v[1] & 0xf) == SOCK_DGRAM || (v[1] & 0xf) == SOCK_RAW);
	if (in && is(a, d, "ioctl"))
		yes = t & TRAP_META && (v[1] == FS_IOC_SETFLAGS || v[1] == FS_IOC_FSSETXATTR);
	return yes ? SECCOMP_RET_USER_NOTIF : GO;
}

static uint32_t expect_keeper(const struct arch *a, const struct seccomp_data *d, uint32_t unused)
{
	uint32_t in = d->nr >= 0 && d->nr < NUMBERS ? a->in[d->nr] : 0, v[6];

	(void)unused;
	if (d->arch != a->audit)
		return SECCOMP_RET_KILL_PROCESS;
	halves(d, v);
	if (in & 1u << KEEPER)
		return GO;
	if (in && is(a, d, "clone"))
		return expect_namespace(v[0], 0, 0);
	if (in && is(a, d, "unshare"))
		return v[0] == CLONE_NEWNS ? GO : NO(EPERM);
	if (in && is(a, d, "kill"))
		return v[1] == SIGKILL ? GO : NO(EPERM);
	if (in && is(a, d, "socket"))
		return expect_socket(v, FILTER_TIER_B);
	if (in && is(a, d, "sendmsg"))
		return expect_send(v[2], FILTER_TIER_B);
	return NO(EPERM);
}

/* --- the sweeps --- */

/* Values that mean something to one call or another, alone, combined, and half hidden. */
static uint64_t an_argument(uint64_t *state)
{
	/* clang-format off */
	static const uint32_t known[] = {
		0, 1, 2, 3, 4, 6, 8, 10, 16, 17, 31, 35, 38, 0x80, 0x1000, 0xffffffff, PR_SET_PTRACER,
		TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD, TIOCSCTTY, FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR,
		0x50009401, 0x5000940e, 0x5000940f, 0x50009417, 0x50009418, 0x5000943f, 0x40049409,
		S_IFCHR, S_IFBLK, S_IFIFO, S_IFREG, S_ISUID, S_ISGID, 0755, O_CREAT, O_TRUNC, O_PATH,
		O_TMPFILE, O_RDWR, O_CLOEXEC, MSG_OOB, MSG_FASTOPEN, MSG_NOSIGNAL, SOCK_NONBLOCK,
		CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWTIME, CLONE_NEWNET, CLONE_FILES, UNAME26,
		ADDR_NO_RANDOMIZE, IPPROTO_MPTCP, IPPROTO_ICMP, SIGKILL,
	};
	/* clang-format on */
	uint64_t r = bpf_random(state), n = ARRAY_LEN(known), v = known[r % n];

	switch (r >> 32 & 7) {
	case 0:
		return bpf_random(state);
	case 1:
		return v | known[(r >> 40) % n];
	case 2:
		return v | (bpf_random(state) << 32);
	case 3:
		return v + 1;
	case 4:
		return 1ull << (r >> 48 & 63);
	default:
		return v;
	}
}

struct law {
	const struct arch *a;
	struct filter f;
	uint32_t bits;
	uint32_t (*expect)(const struct arch *a, const struct seccomp_data *d, uint32_t bits);
	size_t calls, wrong;
};

static void judge(struct law *l, const struct seccomp_data *d)
{
	uint32_t got = bpf_run(l->f, d, NULL), want = l->expect(l->a, d, l->bits);

	l->calls++;
	if (got == want)
		return;
	if (!l->wrong++)
		tap_note("%s bits %u nr %d (%s) arch %x args %llx %llx %llx %llx %llx: got %x want "
			 "%x",
			 l->a->name, l->bits, d->nr,
			 d->nr >= 0 && d->nr < NUMBERS && l->a->call[d->nr] ? l->a->call[d->nr]
									    : "?",
			 d->arch, (unsigned long long)d->args[0], (unsigned long long)d->args[1],
			 (unsigned long long)d->args[2], (unsigned long long)d->args[3],
			 (unsigned long long)d->args[4], got, want);
}

static void sweep(struct law *l)
{
	static const uint32_t foreign[] = {
		AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64, 0,
		0xffffffff
	};
	static const uint32_t above[] = { X32, 0x3fffffff, 0x7fffffff, 0x80000000, 0xffffffff };
	uint64_t state = 88172645463325252ull;

	for (int nr = 0; nr < NUMBERS; nr++) {
		bool looks = l->expect == expect_keeper || l->a->in[nr] & ~(1u << ALLOWED);
		struct seccomp_data d = { .nr = nr, .arch = l->a->audit };

		judge(l, &d);
		for (size_t i = 0; i < ARRAY_LEN(foreign); i++) {
			d.arch = foreign[i];
			judge(l, &d);
		}
		d.arch = l->a->audit;
		for (int i = 0; i < (looks ? 400 : 4); i++) {
			for (size_t x = 0; x < 6; x++)
				d.args[x] = an_argument(&state);
			judge(l, &d);
		}
		for (size_t i = 0; i < ARRAY_LEN(above); i++) {
			d.nr = (int)(above[i] == X32 ? above[i] | (uint32_t)nr
						     : above[i] - (uint32_t)nr);
			if (d.nr < 0 || d.nr >= NUMBERS)
				judge(l, &d);
		}
	}
}

static int number_of(const struct arch *a, const char *name)
{
	for (int nr = 0; nr < NUMBERS; nr++)
		if (a->call[nr] && !strcmp(a->call[nr], name))
			return nr;
	return -1;
}

static void sweep_sockets(struct law *l)
{
	static const uint64_t flags[] = {
		0,	    SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_CLOEXEC | SOCK_NONBLOCK,
		1ull << 32, 0x10,	  0x80000000
	};
	struct seccomp_data d = { .nr = number_of(l->a, "socket"), .arch = l->a->audit };

	for (uint64_t family = 0; family < 64; family++)
		for (uint64_t type = 0; type < 16 * ARRAY_LEN(flags); type++)
			for (uint64_t proto = 0; proto < 300; proto += type < 16 ? 1 : 17) {
				d.args[0] = family;
				d.args[1] = type % 16 | flags[type / 16];
				d.args[2] = proto;
				judge(l, &d);
			}
}

static void sweep_options(struct law *l)
{
	struct seccomp_data d = { .nr = number_of(l->a, "setsockopt"), .arch = l->a->audit };

	for (uint64_t level = 0; level < 300; level++)
		for (uint64_t option = 0; option < 256; option++) {
			d.args[1] = level | option << 40;
			d.args[2] = option | level << 32;
			judge(l, &d);
		}
}

/* Every single bit and every pair of bits of a register that holds flags. */
static void sweep_bits(struct law *l, const char *call, size_t arg)
{
	struct seccomp_data d = { .nr = number_of(l->a, call), .arch = l->a->audit };

	if (d.nr < 0)
		return;
	for (unsigned int i = 0; i < 64; i++)
		for (unsigned int j = 0; j < 64; j++) {
			d.args[arg] = 1ull << i | 1ull << j;
			judge(l, &d);
			d.args[arg + 1] = 06755;
			judge(l, &d);
			d.args[arg + 1] = 0;
		}
}

static void sweep_ioctl(struct law *l)
{
	static const uint64_t heads[] = { 0x4004, 0x4008, 0x401c, 0x4020, 0x4030, 0x4080, 0x8004,
					  0x8008, 0x801c, 0x8100, 0x8400, 0xc004, 0xc009, 0xc018,
					  0xc020, 0x15000, 0x14004 };
	struct seccomp_data d = { .nr = number_of(l->a, "ioctl"), .arch = l->a->audit };

	for (uint64_t cmd = 0; cmd < 0x10000; cmd++)
		for (uint64_t high = 0; high < 3; high++) {
			d.args[1] = cmd | high << 32;
			judge(l, &d);
			d.args[1] |= 0x50000000;
			judge(l, &d);
		}
	/* Each number of a file system, with the sizes and directions of allowed commands. */
	for (size_t t = 0; t < sizeof(fs_types); t++)
		for (uint64_t nr = 0; nr < 256; nr++)
			for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
				const uint64_t type = fs_types[t];

				d.args[1] = heads[i] << 16 | type << 8 | nr;
				judge(l, &d);
			}
}

static struct filter slice(const struct arch *a, struct filter_slot s)
{
	return (struct filter){ a->set->code + s.first, s.n };
}

static void test_base(const struct arch *a)
{
	for (uint32_t sw = 0; sw < FILTER_SWITCHES; sw++) {
		struct law l = { a, slice(a, a->set->base[sw]), sw, expect_base, 0, 0 };

		ok(bpf_is_sound(l.f), "%s: base program %u is sound", a->name, sw);
		sweep(&l);
		if (sw < 2)
			sweep_sockets(&l);
		if (sw == 0 || sw == FILTER_SWITCHES - 1)
			sweep_ioctl(&l);
		sweep_bits(&l, "open", 1);
		sweep_bits(&l, "openat", 2);
		sweep_options(&l);
		sweep_bits(&l, "clone", 0);
		sweep_bits(&l, "unshare", 0);
		sweep_bits(&l, "mknodat", 2);
		sweep_bits(&l, "fchmodat", 2);
		ok(!l.wrong, "%s: base program %u: %zu calls, %zu wrong", a->name, sw, l.calls,
		   l.wrong);
	}
}

static void test_traps(const struct arch *a)
{
	ok(!a->set->traps[0].n, "%s: nothing to trap, no program", a->name);
	for (uint32_t t = 1; t < TRAP_COMBINATIONS; t++) {
		struct law l = { a, slice(a, a->set->traps[t]), t, expect_traps, 0, 0 };

		ok(bpf_is_sound(l.f), "%s: trap program %u is sound", a->name, t);
		sweep(&l);
		sweep_bits(&l, "open", 1);
		sweep_bits(&l, "openat", 2);
		sweep_bits(&l, "sendto", 4);
		sweep_bits(&l, "socketpair", 1);
		if (t == TRAP_UNIX || t == (TRAP_UNIX | TRAP_NET))
			sweep_sockets(&l);
		if (t == TRAP_META || t == TRAP_COMBINATIONS - 1)
			sweep_ioctl(&l);
		ok(!l.wrong, "%s: trap program %u: %zu calls, %zu wrong", a->name, t, l.calls,
		   l.wrong);
	}
}

static void test_keeper(const struct arch *a)
{
	struct law l = { a, slice(a, a->set->keeper), 0, expect_keeper, 0, 0 };

	ok(bpf_is_sound(l.f), "%s: the keeper's program is sound", a->name);
	sweep(&l);
	sweep_sockets(&l);
	sweep_bits(&l, "unshare", 0);
	ok(!l.wrong, "%s: the keeper: %zu calls, %zu wrong", a->name, l.calls, l.wrong);
}

/* --- how long the frequent calls take --- */

static void test_speed(const struct arch *a)
{
	static const char *const hot[] = { "read",  "write", "openat", "close",
					   "fstat", "mmap",  "futex" };
	unsigned int steps = 0, sum = 0, worst = 0;

	for (size_t i = 0; i < ARRAY_LEN(hot); i++) {
		struct seccomp_data d = { .nr = number_of(a, hot[i]), .arch = a->audit };

		(void)bpf_run(slice(a, a->set->base[0]), &d, &steps);
		tap_note("%s: %s takes %u instructions", a->name, hot[i], steps);
		sum += steps;
	}
	ok(sum <= 12 * ARRAY_LEN(hot), "%s: frequent calls take %u.%u instructions", a->name,
	   sum / 7, sum * 10 / 7 % 10);
	for (int nr = 0; nr < NUMBERS; nr++) {
		struct seccomp_data d = { .nr = nr, .arch = a->audit };

		(void)bpf_run(slice(a, a->set->base[0]), &d, &steps);
		worst = steps > worst ? steps : worst;
	}
	ok(worst <= 24, "%s: no call takes more than %u instructions", a->name, worst);
}

static void test_size(const struct arch *a)
{
	const struct filter_slot *k = &a->set->keeper;
	size_t bytes = (size_t)(k->first + k->n) * sizeof(struct sock_filter) + sizeof(*a->set);

	ok(bytes < 64 * 1024, "%s: %zu bytes of programs", a->name, bytes);
}

static void test_interface(const struct arch *native)
{
	ok(!filter_base(FILTER_SWITCHES).n && !filter_traps(TRAP_COMBINATIONS).n &&
		   !filter_base(UINT32_MAX).n,
	   "no program for bits nobody knows");
	ok(!native == !filter_base(0).n,
	   "a program exists exactly where the architecture is known");
	if (!native)
		return;
	for (uint32_t i = 0; i < FILTER_SWITCHES; i++)
		ok(filter_base(i).v == slice(native, native->set->base[i]).v &&
			   filter_base(i).n == native->set->base[i].n,
		   "base program %u is the one of this machine", i);
	for (uint32_t i = 1; i < TRAP_COMBINATIONS; i++)
		ok(filter_traps(i).v == slice(native, native->set->traps[i]).v &&
			   filter_traps(i).n == native->set->traps[i].n,
		   "trap program %u is the one of this machine", i);
	ok(!filter_traps(0).v && !filter_traps(0).n, "no trap, no program");
	ok(filter_keeper().v == slice(native, native->set->keeper).v, "the keeper's, too");
}

int main(void)
{
	static struct arch arches[] = {
		{ "x86_64",
		  AUDIT_ARCH_X86_64,
		  SCMP_ARCH_X86_64,
		  &filter_set_x86_64,
		  { 0 },
		  { 0 },
		  { { 0 } } },
		{ "aarch64",
		  AUDIT_ARCH_AARCH64,
		  SCMP_ARCH_AARCH64,
		  &filter_set_aarch64,
		  { 0 },
		  { 0 },
		  { { 0 } } },
	};
	int native = -1;

#if defined(__x86_64__)
	native = 0;
#elif defined(__aarch64__)
	native = 1;
#endif
	for (int i = 0; i < 2; i++) {
		fill(&arches[i]);
		test_base(&arches[i]);
		test_traps(&arches[i]);
		test_keeper(&arches[i]);
		test_speed(&arches[i]);
		test_size(&arches[i]);
	}
	test_interface(native >= 0 ? &arches[native] : NULL);
	return tap_done();
}
