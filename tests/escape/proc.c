/* Other processes of the same user: hurting them, and looking into them. */
#include "escape.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* The host's victim; in a control a child of our own, which must be reachable. */
pid_t victim(struct ctx *c)
{
	static pid_t own;

	if (!c->control) {
		const long pid = target_num(c, "victim");

		return pid > 1 ? (pid_t)pid : 0x3ffffff;
	}
	if (!own) {
		own = fork();
		if (own == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
			(void)setpgid(0, 0);
			for (;;)
				(void)pause();
		}
		nap(20);
	}
	return own;
}

static uintptr_t memory_of(struct ctx *c)
{
	return c->control ? (uintptr_t)victim_memory : (uintptr_t)target_num(c, "memory");
}

static int by_kill(struct ctx *c)
{
	return rc(kill(victim(c), (int)c->row->num));
}

static int by_tkill(struct ctx *c)
{
	return rc(syscall(SYS_tkill, victim(c), SIGTERM));
}

static int by_tgkill(struct ctx *c)
{
	return rc(syscall(SYS_tgkill, victim(c), victim(c), SIGTERM));
}

static int by_group(struct ctx *c)
{
	return rc(kill(-victim(c), SIGTERM)); /* it leads a group of its own */
}

static int by_pidfd(struct ctx *c)
{
	const int fd = (int)syscall(SYS_pidfd_open, victim(c), 0);

	return fd < 0 ? -errno : rc(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0));
}

static int by_proc_pidfd(struct ctx *c)
{
	const int fd = open(path("/proc/%d", (int)victim(c)), O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : rc(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0));
}

static int by_sigqueue(struct ctx *c)
{
	siginfo_t info = { .si_code = SI_QUEUE, .si_signo = SIGTERM };

	return rc(syscall(SYS_rt_sigqueueinfo, victim(c), SIGTERM, &info));
}

static int by_tgsigqueue(struct ctx *c)
{
	siginfo_t info = { .si_code = SI_QUEUE, .si_signo = SIGTERM };

	return rc(syscall(SYS_rt_tgsigqueueinfo, victim(c), victim(c), SIGTERM, &info));
}

/* The kernel sends the signal for us when the pipe becomes readable. */
static int by_owner(struct ctx *c)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 ||
	    fcntl(pair[0], F_SETOWN, victim(c)) < 0 || fcntl(pair[0], F_SETSIG, SIGTERM) < 0 ||
	    fcntl(pair[0], F_SETFL, O_ASYNC) < 0 || write(pair[1], "x", 1) < 0)
		return -errno;
	nap(30);
	return c->control ? 0 : -EAGAIN; /* only the victim knows */
}

static int by_int80(struct ctx *c)
{
	return (int)int80(37, victim(c), SIGTERM, 0, 0, 0);
}

static bool own_pids(struct ctx *c)
{
	struct stat st = { 0 };

	return stat("/proc/self/ns/pid", &st) == 0 && (long)st.st_ino != target_num(c, "pidns");
}

/*
 * Only where we are in a pid namespace of our own is it really done. Elsewhere
 * asking (signal 0) shows the same and leaves the machine alive.
 */
static int everybody(struct ctx *c)
{
	if (!own_pids(c))
		return rc(kill(victim(c), 0)); /* all others are among everybody */
	say(c, "sends SIGKILL to everybody");
	(void)kill(-1, SIGKILL);
	return -ESRCH; /* the victim outside knows better than we do */
}

static int by_ptrace_kill(struct ctx *c)
{
	if (ptrace(PTRACE_SEIZE, victim(c), NULL, NULL) < 0)
		return -errno;
	return rc(kill(victim(c), SIGKILL));
}

/* Leaves the victim stopped: visible from outside. */
static int by_ptrace_attach(struct ctx *c)
{
	int status = 0;

	if (ptrace(PTRACE_ATTACH, victim(c), NULL, NULL) < 0)
		return -errno;
	(void)waitpid(victim(c), &status, 0);
	const long r = ptrace(PTRACE_POKEDATA, victim(c), (void *)memory_of(c), (void *)0x6465u);
	const int e = rc(r);
	(void)ptrace(PTRACE_DETACH, victim(c), NULL, NULL);
	return e;
}

static int by_vm_write(struct ctx *c)
{
	struct iovec from = { (char[]){ "escaped" }, 7 };
	struct iovec to = { (void *)memory_of(c), 7 };

	return rc(process_vm_writev(victim(c), &from, 1, &to, 1, 0));
}

static int by_mem_write(struct ctx *c)
{
	const int fd = open(path("/proc/%d/mem", (int)victim(c)), O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : rc(pwrite(fd, "escaped", 7, (off_t)memory_of(c)));
}

static int by_nice(struct ctx *c)
{
	return rc(setpriority(PRIO_PROCESS, (id_t)victim(c), 15));
}

static int by_scheduler(struct ctx *c)
{
	const struct sched_param p = { 0 };

	return rc(sched_setscheduler(victim(c), SCHED_IDLE, &p));
}

static int by_affinity(struct ctx *c)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	return rc(sched_setaffinity(victim(c), sizeof(one), &one));
}

static int by_ioprio(struct ctx *c)
{
	return rc(syscall(SYS_ioprio_set, 1, victim(c), 3 << 13));
}

static int by_prlimit(struct ctx *c)
{
	const struct rlimit low = { 16, 64 };

	return rc(prlimit(victim(c), RLIMIT_NOFILE, &low, NULL));
}

static int proc_write(struct ctx *c)
{
	const int fd = open(path("/proc/%d/%s", (int)victim(c), c->row->arg), O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : rc(write(fd, "777", 3));
}

/* --- looking --- */

static int see_mem(struct ctx *c)
{
	char buf[33] = "";
	const int fd = open(path("/proc/%d/mem", (int)victim(c)), O_RDONLY | O_CLOEXEC);

	if (fd < 0 || pread(fd, buf, 32, (off_t)memory_of(c)) < 0)
		return -errno;
	say_bytes(c, buf, 32);
	return 0;
}

static int see_vm(struct ctx *c)
{
	char buf[33] = "";
	struct iovec to = { buf, 32 };
	struct iovec from = { (void *)memory_of(c), 32 };

	if (process_vm_readv(victim(c), &to, 1, &from, 1, 0) < 0)
		return -errno;
	say_bytes(c, buf, 32);
	return 0;
}

static int see_ptrace(struct ctx *c)
{
	char buf[33] = "";
	int status = 0;

	if (ptrace(PTRACE_SEIZE, victim(c), NULL, NULL) < 0 ||
	    ptrace(PTRACE_INTERRUPT, victim(c), NULL, NULL) < 0)
		return -errno;
	(void)waitpid(victim(c), &status, __WALL);
	for (size_t i = 0; i < 32; i += sizeof(long)) {
		const long word =
			ptrace(PTRACE_PEEKDATA, victim(c), (void *)(memory_of(c) + i), NULL);

		memcpy(buf + i, &word, sizeof(word));
	}
	(void)ptrace(PTRACE_DETACH, victim(c), NULL, NULL);
	say_bytes(c, buf, 32);
	return 0;
}

static int see_file(struct ctx *c)
{
	char buf[8192];
	const int n = read_text(path("/proc/%d/%s", (int)victim(c), c->row->arg), buf, sizeof(buf));

	if (n < 0)
		return n;
	say_bytes(c, buf, (size_t)n);
	return n ? 0 : -ENODATA;
}

/* A process number may mean somebody else in here: the name must be right as well. */
static int is_victim(struct ctx *c)
{
	char name[64] = "";
	const int n = read_text(path("/proc/%d/comm", (int)victim(c)), name, sizeof(name));

	if (n < 0)
		return n;
	return !strcmp(name, "escape-victim\n") ? 0 : -ESRCH;
}

static int see_private(struct ctx *c)
{
	char word[8]; /* some files only give whole entries */
	const int fd = open(path("/proc/%d/%s", (int)victim(c), c->row->arg), O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (!c->control && is_victim(c) < 0)
		return -ESRCH;
	return read(fd, word, sizeof(word)) < 0 && errno != EISDIR ? -errno : 0;
}

static int see_link(struct ctx *c)
{
	char buf[PATH_SIZE];
	const ssize_t n =
		readlink(path("/proc/%d/%s", (int)victim(c), c->row->arg), buf, sizeof(buf));

	return n < 0 ? -errno : c->control ? 0 : is_victim(c);
}

static int see_kill_zero(struct ctx *c)
{
	const int r = rc(kill(victim(c), 0));

	return r == -EPERM ? 0 : r; /* a different answer is an answer */
}

static int see_getpgid(struct ctx *c)
{
	return rc(getpgid(victim(c)));
}

static int see_scheduler(struct ctx *c)
{
	return rc(sched_getscheduler(victim(c)));
}

static int see_prlimit(struct ctx *c)
{
	struct rlimit lim;

	return rc(prlimit(victim(c), RLIMIT_NOFILE, NULL, &lim));
}

static int see_getfd(struct ctx *c)
{
	const int pidfd = (int)syscall(SYS_pidfd_open, victim(c), 0);
	const int fd =
		pidfd < 0 ? -1
			  : (int)syscall(SYS_pidfd_getfd, pidfd, c->control ? 0 : VICTIM_FD, 0);

	if (fd < 0)
		return -errno;
	return c->control ? 0 : say_fd(c, fd);
}

static int see_kcmp(struct ctx *c)
{
	return rc(syscall(SYS_kcmp, getpid(), victim(c), KCMP_VM, 0, 0));
}

static int see_madvise(struct ctx *c)
{
	struct iovec iov = { (void *)(memory_of(c) & ~4095ul), 4096 };
	const int pidfd = (int)syscall(SYS_pidfd_open, victim(c), 0);

	return pidfd < 0 ? -errno : rc(syscall(SYS_process_madvise, pidfd, &iov, 1, MADV_COLD, 0));
}

static int see_robust_list(struct ctx *c)
{
	void *head = NULL;
	size_t n = 0;

	return rc(syscall(SYS_get_robust_list, victim(c), &head, &n));
}

static int see_move_pages(struct ctx *c)
{
	void *page = (void *)(memory_of(c) & ~4095ul);
	int status = 0;

	return rc(syscall(SYS_move_pages, victim(c), 1, &page, NULL, &status, 0));
}

/* Anything in anybody's environment or arguments; only the marked value is printed. */
static int scan_all(struct ctx *c)
{
	static char buf[65536];
	DIR *d = opendir("/proc");
	const struct dirent *e = NULL;
	int seen = 0;

	if (!d)
		return -errno;
	while ((e = readdir(d))) {
		const int n =
			read_text(path("/proc/%s/%s", e->d_name, c->row->arg), buf, sizeof(buf));
		const char *p = n > 0 ? memmem(buf, (size_t)n, "VICTIM_SECRET=", 14) : NULL;

		if (n > 0 && !p && !strcmp(c->row->arg, "cmdline") &&
		    memmem(buf, (size_t)n, "writ-escape\0victim", 18))
			p = buf;
		if (!p)
			continue;
		say_bytes(c, p, (size_t)(buf + n - p));
		seen++;
	}
	(void)closedir(d);
	return seen ? 0 : -ENOENT;
}

static int count_strangers(struct ctx *c)
{
	DIR *d = opendir("/proc");
	const struct dirent *e = NULL;
	bool found = false;

	(void)c;
	if (!d)
		return -errno;
	while ((e = readdir(d))) {
		char name[64] = "";

		if (read_text(path("/proc/%s/comm", e->d_name), name, sizeof(name)) > 0 &&
		    !strcmp(name, "escape-victim\n"))
			found = true;
	}
	(void)closedir(d);
	return found ? 0 : -ENOENT;
}

/* The process that started us may hold what we should not see. */
static int trace_parent(struct ctx *c)
{
	const pid_t pid = (pid_t)target_num(c, "daemon");

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
		return -errno;
	return rc(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL));
}

static int parent_fds(struct ctx *c)
{
	DIR *d = opendir(path("/proc/%ld/fd", target_num(c, "daemon")));

	return d ? closedir(d) : -errno;
}

/* Sandboxes have a first process of their own; it must not be an open door. */
static int trace_init(struct ctx *c)
{
	if (getpid() == 1 || !own_pids(c))
		return -ESRCH;
	if (ptrace(PTRACE_SEIZE, 1, NULL, NULL) < 0)
		return -errno;
	(void)ptrace(PTRACE_INTERRUPT, 1, NULL, NULL);
	int status = 0;
	(void)waitpid(1, &status, __WALL);
	return rc(ptrace(PTRACE_DETACH, 1, NULL, NULL));
}

static int init_file(struct ctx *c)
{
	char byte = 0;
	const int fd = open(c->row->arg, O_RDONLY | O_CLOEXEC);

	/* Without a sandbox process 1 is nobody's victim: only root gets there. */
	return fd < 0 ? -errno : rc(read(fd, &byte, 1));
}

/* clang-format off */
#define S(id, fn, arg, num, what) { id, "signal", "proc.signal", what, fn, fn, BY_VICTIM, NEED_VICTIM, 0, arg, num, NULL }
#define P(id, fn, arg, what) { id, "see", "proc.see", what, fn, fn, BY_REPORT, NEED_VICTIM, 0, arg, 0, NULL }
/* Alone: they print what other rows keep secret. */
#define A(id, fn, arg, what) { id, "see", "proc.see", what, fn, NULL, BY_SECRET, NEED_VICTIM, ROW_OWN, arg, 0, NULL }
#define L(id, fn, arg, what) { id, "see", "proc.see", what, fn, NULL, BY_SECRET, NEED_VICTIM, 0, arg, 0, NULL }

static const struct row signals[] = {
	S("SG-001", by_kill, NULL, SIGKILL, "kill() with SIGKILL"), S("SG-002", by_kill, NULL, SIGTERM, "kill() with SIGTERM"),
	S("SG-003", by_kill, NULL, SIGSTOP, "kill() with SIGSTOP"), S("SG-004", by_tkill, NULL, 0, "tkill()"), S("SG-005", by_tgkill, NULL, 0, "tgkill()"),
	S("SG-006", by_group, NULL, 0, "kill() of a process group"), S("SG-007", by_pidfd, NULL, 0, "pidfd_send_signal()"),
	S("SG-008", by_proc_pidfd, NULL, 0, "pidfd_send_signal() through /proc/PID"), S("SG-009", by_sigqueue, NULL, 0, "rt_sigqueueinfo()"),
	S("SG-010", by_tgsigqueue, NULL, 0, "rt_tgsigqueueinfo()"), S("SG-011", by_owner, NULL, 0, "F_SETOWN and F_SETSIG"),
	S("SG-012", by_int80, NULL, 0, "kill through the 32-bit gate"),
	{ "SG-013", "signal", "proc.signal", "kill(-1, SIGKILL)", everybody, NULL, BY_VICTIM | BY_REPORT, NEED_VICTIM, ROW_OWN, NULL, 0, NULL },
	S("SG-014", by_ptrace_kill, NULL, 0, "trace and kill"), S("SG-015", by_ptrace_attach, NULL, 0, "PTRACE_ATTACH and poke"),
	S("SG-016", by_vm_write, NULL, 0, "process_vm_writev()"), S("SG-017", by_mem_write, NULL, 0, "write /proc/PID/mem"),
	S("SG-018", by_nice, NULL, 0, "setpriority()"), S("SG-019", by_scheduler, NULL, 0, "sched_setscheduler()"),
	S("SG-020", by_affinity, NULL, 0, "sched_setaffinity()"),
	S("SG-021", by_ioprio, NULL, 0, "ioprio_set()"), S("SG-022", by_prlimit, NULL, 0, "prlimit()"),
	S("SG-023", proc_write, "oom_score_adj", 0, "write /proc/PID/oom_score_adj"), S("SG-024", proc_write, "timerslack_ns", 0, "write /proc/PID/timerslack_ns"),
	S("SG-025", proc_write, "coredump_filter", 0, "write /proc/PID/coredump_filter"),
};

static const struct row sees[] = {
	L("SE-001", see_mem, NULL, "read /proc/PID/mem"), L("SE-002", see_vm, NULL, "process_vm_readv()"), L("SE-003", see_ptrace, NULL, "read memory by ptrace()"),
	L("SE-004", see_file, "environ", "read /proc/PID/environ"), A("SE-005", see_file, "cmdline", "read /proc/PID/cmdline"),
	L("SE-006", see_getfd, NULL, "take a descriptor by pidfd_getfd()"), A("SE-007", scan_all, "environ", "scan /proc/*/environ"),
	A("SE-008", scan_all, "cmdline", "scan /proc/*/cmdline"),
	P("SE-009", see_private, "maps", "read /proc/PID/maps"), P("SE-010", see_private, "auxv", "read /proc/PID/auxv"),
	P("SE-011", see_private, "stat", "read /proc/PID/stat"),
	P("SE-012", see_private, "status", "read /proc/PID/status"), P("SE-013", see_private, "stack", "read /proc/PID/stack"),
	P("SE-014", see_private, "syscall", "read /proc/PID/syscall"),
	P("SE-015", see_private, "task", "open /proc/PID/task"), P("SE-016", see_private, "io", "read /proc/PID/io"),
	P("SE-017", see_private, "mountinfo", "read /proc/PID/mountinfo"),
	P("SE-018", see_link, "cwd", "readlink /proc/PID/cwd"), P("SE-019", see_link, "root", "readlink /proc/PID/root"),
	P("SE-020", see_link, "exe", "readlink /proc/PID/exe"),
	P("SE-021", see_link, "fd/0", "readlink /proc/PID/fd/0"), P("SE-022", see_link, "ns/net", "readlink /proc/PID/ns/net"),
	P("SE-023", see_private, "pagemap", "read /proc/PID/pagemap"),
	P("SE-024", see_kill_zero, NULL, "kill() with signal 0"), P("SE-025", see_getpgid, NULL, "getpgid()"), P("SE-026", see_scheduler, NULL, "sched_getscheduler()"),
	P("SE-027", see_prlimit, NULL, "prlimit() to read"), P("SE-028", see_kcmp, NULL, "kcmp()"), P("SE-029", see_madvise, NULL, "process_madvise()"),
	P("SE-030", see_robust_list, NULL, "get_robust_list()"), P("SE-031", see_move_pages, NULL, "move_pages()"),
	{ "SE-032", "see", "proc.see", "find host processes in /proc", count_strangers, NULL, BY_REPORT, NEED_VICTIM, 0, NULL, 0, NULL },
	{ "SE-033", "see", "proc.see", "trace a host process that never allowed it", trace_parent, NULL, BY_REPORT, 0, ROW_OWN, NULL, 0, NULL },
	{ "SE-034", "see", "proc.see", "list descriptors of a host process", parent_fds, NULL, BY_REPORT, 0, 0, NULL, 0, NULL },
	{ "SE-035", "see", "proc.see", "trace the sandbox's first process", trace_init, NULL, BY_REPORT, 0, ROW_OWN | ROW_NEVER_BARE, NULL, 0, NULL },
	{ "SE-036", "see", "proc.see", "memory of the sandbox's first process", init_file, NULL, BY_REPORT, 0, ROW_NEVER_BARE, "/proc/1/maps", 0, NULL },
	{ "SE-037", "see", "proc.see", "environment of the sandbox's first process", init_file, NULL, BY_REPORT, 0, ROW_NEVER_BARE, "/proc/1/environ", 0, NULL },
};
/* clang-format on */

const struct table signal_rows = { signals, LENGTH(signals) };
const struct table see_rows = { sees, LENGTH(sees) };
