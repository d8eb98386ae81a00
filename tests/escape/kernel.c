/* System calls that have no business in a sandbox. Arguments are such that nothing happens. */
#include "escape.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- namespaces --- */

static int by_unshare(struct ctx *c)
{
	return rc(unshare((int)c->row->num));
}

static int by_clone(struct ctx *c)
{
	const long pid =
		syscall(SYS_clone, (unsigned long)c->row->num | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		_exit(0);
	return wait_for((pid_t)pid);
}

static int by_clone3(struct ctx *c)
{
	struct clone_args args = { .flags = (uint64_t)c->row->num, .exit_signal = SIGCHLD };
	const long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		_exit(0);
	return wait_for((pid_t)pid);
}

static int by_setns(struct ctx *c)
{
	const int fd =
		open(path("/proc/%d/ns/%s", (int)victim(c), c->row->arg), O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : rc(setns(fd, 0));
}

static int by_setns_pidfd(struct ctx *c)
{
	const int fd = (int)syscall(SYS_pidfd_open, victim(c), 0);

	return fd < 0 ? -errno : rc(setns(fd, CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC));
}

/* clang-format off */
#define NS(n, flag, name) \
	{ "NS-1" #n, "namespace", "syscall", "unshare(" name ")", by_unshare, NULL, BY_REPORT, 0, 0, NULL, flag, NULL }, \
	{ "NS-2" #n, "namespace", "syscall", "clone(" name ")", by_clone, NULL, BY_REPORT, 0, 0, NULL, flag, NULL }, \
	{ "NS-3" #n, "namespace", "syscall", "clone3(" name ")", by_clone3, NULL, BY_REPORT, 0, 0, NULL, flag, NULL }
#define IN(n, name) { "NS-4" #n, "namespace", "syscall", "setns() to the host's " name, by_setns, NULL, BY_REPORT, NEED_VICTIM, 0, name, 0, NULL }

static const struct row namespaces[] = {
	NS(01, CLONE_NEWUSER, "NEWUSER"), NS(02, CLONE_NEWUSER | CLONE_NEWNS, "NEWUSER|NEWNS"), NS(03, CLONE_NEWUSER | CLONE_NEWPID, "NEWUSER|NEWPID"),
	NS(04, CLONE_NEWUSER | CLONE_NEWNET, "NEWUSER|NEWNET"), NS(05, CLONE_NEWUSER | CLONE_NEWIPC, "NEWUSER|NEWIPC"),
	NS(06, CLONE_NEWUSER | CLONE_NEWUTS, "NEWUSER|NEWUTS"),
	NS(07, CLONE_NEWUSER | CLONE_NEWCGROUP, "NEWUSER|NEWCGROUP"), NS(11, CLONE_NEWNS, "NEWNS"), NS(12, CLONE_NEWPID, "NEWPID"),
	NS(13, CLONE_NEWNET, "NEWNET"), NS(14, CLONE_NEWIPC, "NEWIPC"), NS(15, CLONE_NEWUTS, "NEWUTS"), NS(16, CLONE_NEWCGROUP, "NEWCGROUP"),
	{ "NS-117", "namespace", "syscall", "unshare(NEWUSER|NEWTIME)", by_unshare, NULL, BY_REPORT, 0, 0, NULL, CLONE_NEWUSER | 0x80, NULL },
	IN(01, "mnt"), IN(02, "net"), IN(03, "pid"), IN(04, "ipc"), IN(05, "uts"), IN(06, "user"), IN(07, "cgroup"), IN(08, "time"),
	{ "NS-409", "namespace", "syscall", "setns() by process descriptor", by_setns_pidfd, NULL, BY_REPORT, NEED_VICTIM, 0, NULL, 0, NULL },
};
/* clang-format on */

const struct table namespace_rows = { namespaces, LENGTH(namespaces) };

/* --- the sweep --- */

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
#ifndef SYS_process_mrelease
#define SYS_process_mrelease 448
#endif
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif

/* Refused means: never got as far as looking at the arguments. */
static int reached(long r)
{
	if (r >= 0 || (errno != EPERM && errno != ENOSYS && errno != EACCES))
		return 0;
	return -errno;
}

struct call {
	const char *name;
	long nr;
	long a[6];
};

static const char junk[4096];
#define JUNK ((long)(uintptr_t)junk)

/*
 * Bad on purpose: descriptors of -1, sizes of zero, magic numbers that are not.
 * What checks privileges first answers EPERM to those who have none, and then
 * the row says nothing about the sandbox for that user.
 */
static int by_number(struct ctx *c)
{
	static const struct call calls[] = {
		{ "bpf", SYS_bpf, { 0, JUNK, 32 } },
		{ "perf_event_open", SYS_perf_event_open, { JUNK, 0, -1, -1, 0 } },
		{ "userfaultfd", SYS_userfaultfd, { 1 } },
		{ "add_key", SYS_add_key, { JUNK, JUNK, 0, 0, 0 } },
		{ "request_key", SYS_request_key, { JUNK, JUNK, 0, 0 } },
		{ "keyctl", SYS_keyctl, { 6, -1, 0 } },
		{ "kexec_load", SYS_kexec_load, { 0, 17, 0, 0xff } },
		{ "kexec_file_load", SYS_kexec_file_load, { -1, -1, 0, 0, 0xff } },
		{ "init_module", SYS_init_module, { JUNK, 0, JUNK } },
		{ "finit_module", SYS_finit_module, { -1, JUNK, 0 } },
		{ "delete_module", SYS_delete_module, { 0, 0 } },
		{ "reboot", SYS_reboot, { 0, 0, 0, 0 } },
		{ "swapon", SYS_swapon, { 0, 0 } },
		{ "swapoff", SYS_swapoff, { 0 } },
		{ "quotactl", SYS_quotactl, { 0x80000100, 0, 0, 0 } },
		{ "quotactl_fd", SYS_quotactl_fd, { -1, 0x80000100, 0, 0 } },
		{ "syslog", SYS_syslog, { 3, JUNK, 0 } },
		{ "settimeofday", SYS_settimeofday, { 0, 0 } },
		{ "clock_settime", SYS_clock_settime, { 1, JUNK } },
		{ "sethostname", SYS_sethostname, { JUNK, -1 } },
		{ "setdomainname", SYS_setdomainname, { JUNK, -1 } },
		{ "acct", SYS_acct, { -1 } },
		{ "fanotify_init", SYS_fanotify_init, { 0, 0 } },
		{ "open_by_handle_at", SYS_open_by_handle_at, { -1, JUNK, 0 } },
		{ "name_to_handle_at", SYS_name_to_handle_at, { -1, JUNK, 0, 0, 0 } },
		{ "move_pages", SYS_move_pages, { 0, 0, 0, 0, 0, 0 } },
		{ "migrate_pages", SYS_migrate_pages, { 0, 0, JUNK, JUNK } },
		{ "process_mrelease", SYS_process_mrelease, { -1, 0 } },
		{ "memfd_secret", SYS_memfd_secret, { 0 } },
		{ "pidfd_getfd", SYS_pidfd_getfd, { -1, 0, 0 } },
		{ "io_uring_setup", SYS_io_uring_setup, { 0, JUNK } },
		{ "io_uring_enter", SYS_io_uring_enter, { -1, 0, 0, 0, 0, 0 } },
		{ "io_uring_register", SYS_io_uring_register, { -1, 0, 0, 0 } },
		{ "nfsservctl", SYS_nfsservctl, { 0 } },
		{ "lookup_dcookie", SYS_lookup_dcookie, { 0, 0, 0 } },
		{ "ptrace", SYS_ptrace, { 0x4206, -1, 0, 0 } },
		{ "process_vm_readv", SYS_process_vm_readv, { -1, 0, 0, 0, 0, 0 } },
		{ "process_vm_writev", SYS_process_vm_writev, { -1, 0, 0, 0, 0, 0 } },
		{ "pivot_root", SYS_pivot_root, { 0, 0 } },
#if defined(__x86_64__)
		{ "iopl", SYS_iopl, { 0 } },
		{ "ioperm", SYS_ioperm, { 0, 1, 0 } },
		{ "modify_ldt", SYS_modify_ldt, { 0, JUNK, 0 } },
		{ "uselib", SYS_uselib, { 0 } },
		{ "_sysctl", SYS__sysctl, { 0 } },
		{ "ustat", SYS_ustat, { 0, 0 } },
		{ "sysfs", SYS_sysfs, { 3 } },
		{ "create_module", SYS_create_module, { 0, 0 } },
#endif
		{ "lsm_set_self_attr", 460, { 0, 0, 0, 0 } },
		{ "open_tree_attr", 467, { -1, JUNK, 0, 0, 0 } },
		{ "fsopen", SYS_fsopen, { 0, 0 } },
		{ "mount_setattr", SYS_mount_setattr, { -1, JUNK, 0, 0, 0 } },
		{ "setns", SYS_setns, { -1, 0 } },
	};
	const char *name = c->row->what + strlen("call ");

	for (size_t i = 0; i < LENGTH(calls); i++) {
		const long *a = calls[i].a;

		if (!strcmp(calls[i].name, name))
			return reached(syscall(calls[i].nr, a[0], a[1], a[2], a[3], a[4], a[5]));
	}
	return -ENOENT;
}

static int int80_getpid(struct ctx *c)
{
	(void)c;
	const long r = int80(20, 0, 0, 0, 0, 0);

	return r < 0 ? (int)r : 0;
}

static int x32_getpid(struct ctx *c)
{
	(void)c;
#if defined(__x86_64__)
	return rc(syscall(0x40000000 + SYS_getpid));
#else
	return -ENOSYS;
#endif
}

/* Numbers are compared by the kernel as 32 bits: a filter must do the same. */
static int wide_number(struct ctx *c)
{
	(void)c;
	return rc(syscall((long)(1ul << 32 | SYS_unshare), CLONE_NEWUSER));
}

static int own_filter(bool listener)
{
	const struct sock_filter code[] = {
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = { LENGTH(code), (struct sock_filter *)(uintptr_t)code };

	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    listener ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0, &prog);
}

static int allow_filter_then_write(struct ctx *c)
{
	(void)own_filter(false);
	(void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL);
	(void)prctl(PR_SET_SECCOMP, 0, NULL);
	return put(open_canary(c, "f", O_WRONLY | O_APPEND));
}

/* A listener of our own that says "go on" must not outvote the one above it. */
static int listener_continue(struct ctx *c)
{
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = { LENGTH(code), (struct sock_filter *)(uintptr_t)code };
	const char *name = path("%s/f", c->base);
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return -errno;
	const pid_t pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		const int fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
					    SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
		const int n = fd < 0 ? -errno : fd;
		(void)!write(pair[1], &n, sizeof(n));
		_exit(-put((int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_APPEND, 0)) &
		      0xff);
	}
	int n = 0;
	(void)!read(pair[0], &n, sizeof(n));
	const int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	const int fd = n < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, n, 0);
	struct seccomp_notif req = { 0 };
	if (fd >= 0 && syscall(SYS_ioctl, fd, SECCOMP_IOCTL_NOTIF_RECV, &req) == 0) {
		struct seccomp_notif_resp resp = { .id = req.id,
						   .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
		(void)syscall(SYS_ioctl, fd, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	}
	return n < 0 ? (wait_for(pid), n) : wait_for(pid);
}

static int read_implies_exec(struct ctx *c)
{
	(void)c;
	return rc(personality(READ_IMPLIES_EXEC));
}

static int set_mm(struct ctx *c)
{
	(void)c;
	return reached(prctl(PR_SET_MM, PR_SET_MM_BRK, 0, 0, 0));
}

static int real_time(struct ctx *c)
{
	const struct sched_param p = { .sched_priority = 1 };

	(void)c;
	return rc(sched_setscheduler(0, SCHED_FIFO, &p));
}

static int less_nice(struct ctx *c)
{
	(void)c;
	return rc(setpriority(PRIO_PROCESS, 0, -5));
}

static int raise_limit(struct ctx *c)
{
	struct rlimit lim;

	(void)c;
	if (getrlimit(RLIMIT_NOFILE, &lim) < 0)
		return -errno;
	lim.rlim_max += 1;
	return rc(setrlimit(RLIMIT_NOFILE, &lim));
}

/* No file of the host, but its memory image on a disk or in a crash handler's hands. */
static int dump_core(struct ctx *c)
{
	int status = 0;
	struct rlimit lim;

	(void)getrlimit(RLIMIT_CORE, &lim);
	lim.rlim_cur = lim.rlim_max;
	(void)setrlimit(RLIMIT_CORE, &lim);
	const pid_t pid = fork();
	if (pid == 0) {
		(void)signal(SIGABRT, SIG_DFL);
		(void)kill(getpid(), SIGABRT);
		_exit(1);
	}
	(void)waitpid(pid, &status, 0);
	(void)unlink(path("%s/core", c->work));
	return WIFSIGNALED(status) && WCOREDUMP(status) ? 0 : -EPERM;
}

/* clang-format off */
#define Y(id, name) { id, "syscall", "syscall", "call " name, by_number, NULL, BY_REPORT, 0, 0, NULL, 0, NULL }
#define Z(id, fn, what) { id, "syscall", "syscall", what, fn, NULL, BY_REPORT, 0, 0, NULL, 0, NULL }

static const struct row sweep[] = {
	Y("SC-001", "bpf"), Y("SC-002", "perf_event_open"), Y("SC-003", "userfaultfd"), Y("SC-004", "add_key"), Y("SC-005", "request_key"), Y("SC-006", "keyctl"),
	Y("SC-007", "kexec_load"), Y("SC-008", "kexec_file_load"), Y("SC-009", "init_module"), Y("SC-010", "finit_module"), Y("SC-011", "delete_module"),
	Y("SC-012", "reboot"),
	Y("SC-013", "swapon"), Y("SC-014", "swapoff"), Y("SC-015", "quotactl"), Y("SC-016", "quotactl_fd"), Y("SC-017", "syslog"), Y("SC-018", "settimeofday"),
	Y("SC-019", "clock_settime"), Y("SC-020", "sethostname"), Y("SC-021", "setdomainname"), Y("SC-022", "acct"), Y("SC-023", "fanotify_init"),
	Y("SC-024", "open_by_handle_at"),
	Y("SC-025", "name_to_handle_at"), Y("SC-026", "move_pages"), Y("SC-027", "migrate_pages"), Y("SC-028", "process_mrelease"), Y("SC-029", "memfd_secret"),
	Y("SC-030", "pidfd_getfd"),
	Y("SC-031", "io_uring_setup"), Y("SC-032", "io_uring_enter"), Y("SC-033", "io_uring_register"), Y("SC-035", "nfsservctl"), Y("SC-036", "lookup_dcookie"),
	Y("SC-037", "ptrace"), Y("SC-038", "process_vm_readv"), Y("SC-039", "process_vm_writev"), Y("SC-040", "pivot_root"), Y("SC-041", "iopl"), Y("SC-042", "ioperm"),
	Y("SC-043", "modify_ldt"), Y("SC-044", "uselib"), Y("SC-045", "_sysctl"), Y("SC-046", "ustat"), Y("SC-047", "sysfs"), Y("SC-048", "create_module"),
	Y("SC-051", "lsm_set_self_attr"), Y("SC-052", "open_tree_attr"), Y("SC-053", "fsopen"), Y("SC-054", "mount_setattr"),
	Y("SC-055", "setns"),
	Z("SC-070", int80_getpid, "32-bit system call gate"), Z("SC-071", x32_getpid, "x32 system call"), Z("SC-072", wide_number, "system call number with bit 32 set"),
	{ "SC-073", "syscall", "fs.write", "own seccomp filter that allows all, then write outside", allow_filter_then_write, NULL, BY_CANARY, 0, 0, NULL, 0, NULL },
	{ "SC-074", "syscall", "fs.write", "own seccomp listener that answers: continue", listener_continue, NULL, BY_CANARY, 0, 0, NULL, 0, NULL },
	Z("SC-075", read_implies_exec, "personality(READ_IMPLIES_EXEC)"), Z("SC-076", set_mm, "prctl(PR_SET_MM)"), Z("SC-077", real_time, "real-time scheduling"),
	Z("SC-078", less_nice, "negative nice value"), Z("SC-079", raise_limit, "raise a hard limit"), Z("SC-080", dump_core, "dump core"),
};
/* clang-format on */

const struct table sweep_rows = { sweep, LENGTH(sweep) };
