/*
 * test_probe.c - the probe says what is so, under restrictions we put on it
 *
 * usage: test_probe [--facts | --facts-tools]
 *
 * With an option it prints the facts and ends; tests/hosts/record.sh uses that.
 */
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "facts/probe.h"
#include "facts/probe_priv.h"

static char work[64]; /* a directory of our own, $TMPDIR for every probe here */

static int print_facts(bool tools, int fd)
{
	struct host_facts f;
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(1 << 16);

	if (facts_probe(&f, &err) < 0 || (tools && facts_probe_tools(&f, &err) < 0))
		return 1;
	facts_print(&f, &b);
	return fd_write_all(fd, buf_view(&b), &err) == 0 ? 0 : 1;
}

/* Runs @before, then the probe, in a child; its facts, or false. */
static bool probe_after(int (*before)(void), struct host_facts *ret_f)
{
	scoped_buf b = BUF_INIT(1 << 16);
	struct writ_err err = { 0 };
	int fds[2], status = -1;
	pid_t pid;

	(void)fflush(stdout);
	if (pipe(fds) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		(void)close(fds[0]);
		_exit(before() == 0 ? print_facts(false, fds[1]) : 2);
	}
	(void)close(fds[1]);
	if (fd_read_all(fds[0], &b, &err) < 0)
		b.failed = true;
	(void)close(fds[0]);
	if (waitpid(pid, &status, 0) != pid || status != 0) {
		tap_note("the probing child ended with %#x", (unsigned)status);
		return false;
	}
	if (facts_parse(buf_view(&b), ret_f, &err) == 0)
		return true;
	tap_note("%s", err.what);
	return false;
}

static int nothing(void)
{
	return 0;
}

/* ---- leaving nothing behind ---- */

static int entries(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	if (d)
		(void)closedir(d);
	return n;
}

static bool mentioned(const char *path, const char *word)
{
	scoped_buf b = BUF_INIT(4 << 20);
	struct writ_err err;

	return fd_read_file(path, &b, &err) == 0 && b.n && strstr(b.p, word);
}

/* A cgroup named after this process, anywhere in the hierarchies. */
static bool cgroup_left(const char *dir, int depth)
{
	char name[32], path[1024];
	DIR *d = opendir(dir);
	struct dirent *e;
	bool found = false;

	(void)snprintf(name, sizeof(name), "writ-probe-%d", (int)getpid());
	while (d && !found && (e = readdir(d))) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		found = strcmp(e->d_name, name) == 0;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (!found && depth < 6)
			found = cgroup_left(path, depth + 1);
	}
	if (d)
		(void)closedir(d);
	return found;
}

static void test_clean(void)
{
	struct host_facts f, g;
	struct writ_err err = { 0 };
	scoped_buf a = BUF_INIT(1 << 16);
	scoped_buf b = BUF_INIT(1 << 16);
	const int fds = entries("/proc/self/fd");
	int64_t start, took;

	start = clock_monotonic_ms();
	ok(facts_probe(&f, &err) == 0, "the probe works (%s)", err.what);
	took = clock_monotonic_ms() - start;
	tap_note("the probe took %d ms", (int)took);
	ok(took < 3000, "in reasonable time");
	ok(entries(work) == 0, "no file left in the temporary directory");
	ok(!mentioned("/proc/self/mountinfo", work), "no mount left");
	ok(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "no child left");
	ok(!cgroup_left("/sys/fs/cgroup", 0), "no cgroup left");
	ok(entries("/proc/self/fd") == fds, "no descriptor left");
	ok(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ||
		   !mentioned("/proc/self/status", "NoNewPrivs:\t0"),
	   "we are as we were");
	ok(facts_probe(&g, &err) == 0, "a second time");
	facts_print(&f, &a);
	facts_print(&g, &b);
	is_sv(buf_view(&b), buf_view(&a), "the same facts again");
}

static bool comes_to(bool full)
{
	const int64_t end = clock_monotonic_ms() + 10000;

	while ((entries(work) != 0) != full && clock_monotonic_ms() < end)
		clock_sleep_ms(1);
	return (entries(work) != 0) == full;
}

/* The line of /proc/PID/status: may a signal end it now? */
static bool holds(pid_t pid, int number)
{
	scoped_buf b = BUF_INIT(1 << 16);
	struct writ_err err;
	char path[64];
	const char *at;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	at = fd_read_file(path, &b, &err) == 0 && b.n ? strstr(b.p, "SigBlk:") : NULL;
	return !at || strtoull(at + 7, NULL, 16) >> (number - 1) & 1;
}

/* Whoever probes may be ended at any moment, and leaves nothing. */
static void test_ended(void)
{
	static const int numbers[] = { SIGKILL, SIGTERM, SIGINT };

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		struct host_facts f;
		struct writ_err err;
		int status = 0;
		pid_t pid;

		(void)fflush(stdout);
		pid = fork();
		while (pid == 0)
			if (facts_probe(&f, &err) < 0)
				_exit(1);
		ok(comes_to(true), "a directory is made");
		ok(!holds(pid, numbers[i]), "signal %d is not held meanwhile", numbers[i]);
		ok(kill(pid, numbers[i]) == 0 && waitpid(pid, &status, 0) == pid &&
			   WIFSIGNALED(status) && WTERMSIG(status) == numbers[i],
		   "it ends the probe");
		ok(comes_to(false), "and nothing is left in the temporary directory");
	}
}

static void test_self(const struct host_facts *f)
{
	ok(f->uid == geteuid() && f->root == (geteuid() == 0), "uid and root");
	ok(f->kernel[0] && f->kernel_base[0] && f->arch[0], "kernel %s, base %s, %s", f->kernel,
	   f->kernel_base, f->arch);
	ok(f->ns_user == !f->userns_limit[0], "userns_limit says why, and only then");
	ok(!f->ns_user_nested || f->ns_user, "no nested namespace without one");
	ok(!f->seccomp_addfd_send || f->seccomp_addfd, "addfd_send implies addfd");
	ok(!f->seccomp_notify || !f->seccomp_listener_exists, "a listener can be made or exists");
}

/* A second opinion, where another program can give one: 1 yes, 0 no, -1 it cannot say. */
static int unshare_says(const char *options)
{
	char command[256];
	int status;

	(void)snprintf(command, sizeof(command), "exec unshare %s true >/dev/null 2>&1", options);
	status = system(command);
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 125)
		return -1;
	return WEXITSTATUS(status) == 0;
}

/* unshare(1) comes to the same answer; this is what catches a trial that always says no. */
static void test_second_opinion(const struct host_facts *f)
{
	const struct {
		const char *options;
		bool fact;
	} cases[] = {
		{ "-Ur", f->ns_user },
		{ "-Urm", f->ns_mount },
		{ "-Urpf", f->ns_pid },
		{ "-Urn", f->ns_net },
		{ "-Uri", f->ns_ipc },
		{ "-Uru", f->ns_uts },
		{ "-UrC", f->ns_cgroup },
		{ "-UrT", f->ns_time },
		{ "-Urmpf --mount-proc", f->proc_mount },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const int says = unshare_says(cases[i].options);

		if (says < 0 || (!f->ns_user && f->caps_sys_admin))
			ok(true, "unshare %s # SKIP it cannot say", cases[i].options);
		else
			ok(says == cases[i].fact, "unshare %s says %d", cases[i].options, says);
	}
}

/* ---- as an ordinary user ---- */

static bool copy_self(const char *to)
{
	scoped_buf b = BUF_INIT(64 << 20);
	struct writ_err err;

	return fd_read_file("/proc/self/exe", &b, &err) == 0 &&
	       fd_replace_file(to, buf_view(&b), 0755, &err) == 0 && chmod(to, 0755) == 0;
}

static void test_user(const struct host_facts *root)
{
	struct host_facts f = { 0 };
	scoped_buf b = BUF_INIT(1 << 16);
	struct writ_err err = { 0 };
	char exe[128];
	int fds[2], status = -1;
	pid_t pid;

	if (geteuid() != 0) {
		ok(true, "root and user differ # SKIP not root");
		return;
	}
	(void)snprintf(exe, sizeof(exe), "%s/self", work);
	(void)fflush(stdout);
	if (!ok(copy_self(exe) && chmod(work, 01777) == 0 && pipe(fds) == 0, "a copy to run"))
		return;
	pid = fork();
	if (pid == 0) {
		if (setgroups(0, NULL) < 0 || setresgid(65534, 65534, 65534) < 0 ||
		    setresuid(65534, 65534, 65534) < 0 || dup2(fds[1], 1) < 0)
			_exit(3);
		(void)execl(exe, exe, "--facts", NULL);
		_exit(4);
	}
	(void)close(fds[1]);
	if (fd_read_all(fds[0], &b, &err) < 0)
		tap_note("%s", err.what);
	(void)close(fds[0]);
	(void)waitpid(pid, &status, 0);
	(void)unlink(exe);
	if (!ok(status == 0 && facts_parse(buf_view(&b), &f, &err) == 0, "as uid 65534: %#x %s",
		(unsigned)status, err.what))
		return;
	ok(f.uid == 65534 && !f.root && root->root, "uid and root flag");
	ok(!f.caps_sys_admin, "no CAP_SYS_ADMIN");
	is_str(f.kernel, root->kernel, "the same kernel");
	ok(f.landlock_abi == root->landlock_abi, "the same Landlock");
	ok(!root->cgroup_pids || !f.cgroup_pids, "no cgroup limits without delegation");
	ok(!root->rlimit_nproc_userns, "RLIMIT_NPROC does not bind uid 0");
	if (f.ns_user)
		ok(f.rlimit_nproc_userns, "but binds a user in a user namespace");
	ok(entries(work) == 0, "nothing left behind by another user either");
}

/* ---- restrictions the probe must see ---- */

static long filter(struct sock_filter *code, unsigned short n, unsigned flags)
{
	const struct sock_fprog prog = { n, code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}

#define LOAD(what) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, what))
#define RET(what) BPF_STMT(BPF_RET | BPF_K, what)

/* unshare() and clone() with CLONE_NEWUSER: EPERM, as container engines do it. */
static int refuse_userns(void)
{
	struct sock_filter code[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
		LOAD(args[0]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWUSER, 0, 1),
		RET(SECCOMP_RET_ERRNO | EPERM),
		RET(SECCOMP_RET_ALLOW),
	};

	return filter(code, ARRAY_LEN(code), 0) < 0 ? -1 : 0;
}

static void test_no_userns(const struct host_facts *free)
{
	struct host_facts f;

	if (!free->ns_user) {
		ok(true, "a filter against user namespaces # SKIP there are none here");
		return;
	}
	if (!ok(probe_after(refuse_userns, &f), "probe behind a filter"))
		return;
	ok(!f.ns_user && !f.ns_user_nested, "no user namespace");
	is_str(f.userns_limit, "seccomp", "and the reason");
	ok(f.sandboxed, "a filter is a sandbox");
	ok(f.ns_mount == (free->root && free->caps_sys_admin),
	   "a mount namespace only for root, without a user namespace");
	ok(f.seccomp_notify == free->seccomp_notify, "what was not refused still works");
}

/* SIGSYS instead of an error: only the trial may die of it. */
static int kill_unshare(void)
{
	struct sock_filter code[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 1),
		RET(SECCOMP_RET_KILL_PROCESS),
		RET(SECCOMP_RET_ALLOW),
	};

	return filter(code, ARRAY_LEN(code), 0) < 0 ? -1 : 0;
}

static void test_killed(void)
{
	struct host_facts f;

	if (!ok(probe_after(kill_unshare, &f), "probe behind a filter that kills"))
		return;
	ok(!f.ns_user && !f.ns_mount && !f.proc_mount, "a killed trial is a no");
	is_str(f.userns_limit, "seccomp", "and the reason");
}

static int listen_above(void)
{
	struct sock_filter code[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_rr_get_interval, 0, 1),
		RET(SECCOMP_RET_USER_NOTIF),
		RET(SECCOMP_RET_ALLOW),
	};

	return filter(code, ARRAY_LEN(code), SECCOMP_FILTER_FLAG_NEW_LISTENER) < 0 ? -1 : 0;
}

static void test_listener(const struct host_facts *free)
{
	struct host_facts f;

	if (!free->seccomp_notify) {
		ok(true, "a listener above us # SKIP none can be made here");
		return;
	}
	ok(!free->seccomp_listener_exists, "no listener to begin with");
	if (!ok(probe_after(listen_above, &f), "probe below a listener"))
		return;
	ok(f.seccomp_listener_exists && !f.seccomp_notify && !f.seccomp_addfd,
	   "the listener above us is seen, and none can be made");
	ok(f.seccomp_filter, "filters can still be added");
}

/* One layer that forbids making block devices: enough to be a domain. */
static int landlocked(void)
{
	const uint64_t attr = 1 << 11;
	const long set = syscall(444, &attr, sizeof(attr), 0);

	if (set < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return syscall(446, (int)set, 0) < 0 ? -1 : 0;
}

static void test_landlocked(const struct host_facts *free)
{
	struct host_facts f;

	if (!free->landlock_abi || free->sandboxed) {
		ok(true, "inside a Landlock domain # SKIP no Landlock, or already in a sandbox");
		return;
	}
	if (!ok(probe_after(landlocked, &f), "probe inside a Landlock domain"))
		return;
	ok(f.sandboxed, "the domain is seen");
	ok(f.landlock_abi == free->landlock_abi, "another layer is possible");
	ok(!f.ns_mount && !f.pivot_root && !f.proc_mount && !f.overlay,
	   "Landlock refuses mounts, so nothing that mounts is promised");
}

/* ---- what says more about the moment than about the machine ---- */

static uint32_t failing_call;
static int failing_errno;

static int fail_call(void)
{
	struct sock_filter code[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, failing_call, 0, 1),
		RET(SECCOMP_RET_ERRNO | (uint32_t)failing_errno),
		RET(SECCOMP_RET_ALLOW),
	};

	return filter(code, ARRAY_LEN(code), 0) < 0 ? -1 : 0;
}

static bool is_shaky(int (*before)(void))
{
	struct writ_err err = { 0 };
	struct host_facts f;
	int status = -1;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(before() < 0 || facts_probe(&f, &err) < 0 ? 2 : f.transient_failure);
	return waitpid(pid, &status, 0) == pid && status == 1 << 8;
}

static void test_shaky(const struct host_facts *free)
{
	static const struct {
		uint32_t call;
		int sys;
		bool shaky;
	} rows[] = {
		{ SYS_unshare, ENOMEM, true },	 { SYS_unshare, ENOSPC, true },
		{ SYS_unshare, EPERM, false },	 { 444, EMFILE, true },
		{ 444, ENOSYS, false },		 { SYS_seccomp, ENOMEM, true },
		{ SYS_mount, EAGAIN, true },
	};

	ok(!free->transient_failure && !is_shaky(nothing), "nothing fails for want of memory here");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		failing_call = rows[i].call;
		failing_errno = rows[i].sys;
		if (rows[i].call == SYS_mount && !free->ns_mount)
			continue;
		ok(is_shaky(fail_call) == rows[i].shaky, "call %u fails with %s: %s",
		   rows[i].call, strerrorname_np(rows[i].sys),
		   rows[i].shaky ? "may be otherwise the next time" : "it is so");
	}
}

static int no_more_userns(void)
{
	const struct probe p = { .uid = geteuid(), .gid = getegid(), .userns = true };

	if (facts_enter_ns(&p, 0) != 0)
		return -1;
	return fd_put_at(AT_FDCWD, "/proc/sys/user/max_user_namespaces", "0") == 0 ? 0 : -1;
}

static int masked_proc(void)
{
	const struct probe p = { .uid = geteuid(), .gid = getegid(), .userns = true };

	if (facts_enter_ns(&p, CLONE_NEWNS) != 0)
		return -1;
	return mount("tmpfs", "/proc/fs", "tmpfs", MS_RDONLY, "size=4k");
}

/* A plain directory as root, with /proc in it: the kernel refuses user namespaces there. */
static int chrooted(void)
{
	const struct probe p = { .uid = geteuid(), .gid = getegid(), .userns = true };

	if (facts_enter_ns(&p, CLONE_NEWNS) != 0 ||
	    chdir(work) < 0 || mkdir("root", 0755) < 0 || mkdir("root/proc", 0755) < 0 ||
	    mount("/proc", "root/proc", NULL, MS_BIND | MS_REC, NULL) < 0 || chroot("root") < 0)
		return -1;
	return chdir("/");
}

static void test_chroot(const struct host_facts *free)
{
	struct host_facts f;
	char path[128];

	if (!free->ns_user || !free->ns_mount) {
		ok(true, "below a chroot # SKIP no namespaces here");
		return;
	}
	if (ok(probe_after(chrooted, &f), "probe below a chroot without /tmp")) {
		ok(!f.ns_user, "no user namespace");
		is_str(f.userns_limit, "chroot", "and the reason");
		ok(!f.overlay && !f.reflink, "nothing is promised that needs a directory");
	}
	(void)snprintf(path, sizeof(path), "%s/root/proc", work);
	(void)rmdir(path);
	(void)snprintf(path, sizeof(path), "%s/root", work);
	(void)rmdir(path);
}

static void test_inside_userns(const struct host_facts *free)
{
	struct host_facts f;

	if (!free->ns_user || !free->ns_mount) {
		ok(true, "inside a user namespace # SKIP there are none here");
		return;
	}
	if (ok(probe_after(no_more_userns, &f), "probe where no user namespace is left")) {
		ok(!f.ns_user, "none is made");
		is_str(f.userns_limit, "max", "and the reason");
		ok(f.root && f.caps_sys_admin && f.ns_mount, "this root needs none for the rest");
		is_str(f.container, "other", "a foreign user namespace is somebody's container");
		ok(f.where == WHERE_CONTAINER || f.where == WHERE_WSL2, "and we are in it");
	}
	ok(!is_shaky(no_more_userns), "and that will be so the next time");
	if (free->proc_mount && ok(probe_after(masked_proc, &f), "probe where /proc is masked"))
		ok(f.ns_user && f.ns_pid && f.pivot_root && !f.proc_mount,
		   "namespaces work, a fresh /proc does not");
}

/* ---- odd callers ---- */

static int close_stdio(void)
{
	for (int fd = 0; fd < 3; fd++)
		(void)close(fd);
	return 0;
}

static int ignore_children(void)
{
	return signal(SIGCHLD, SIG_IGN) == SIG_ERR ? -1 : 0;
}

static void same_facts(int (*before)(void), const struct host_facts *free, const char *name)
{
	struct host_facts f;
	scoped_buf a = BUF_INIT(1 << 16);
	scoped_buf b = BUF_INIT(1 << 16);

	if (!ok(probe_after(before, &f), "probe %s", name))
		return;
	facts_print(free, &a);
	facts_print(&f, &b);
	is_sv(buf_view(&b), buf_view(&a), name);
}

static void test_callers(const struct host_facts *free)
{
	struct sigaction now = { .sa_handler = SIG_IGN }, old;
	struct writ_err err = { 0 };
	struct host_facts f;

	same_facts(nothing, free, "in a child");
	same_facts(close_stdio, free, "with 0, 1 and 2 closed");
	same_facts(ignore_children, free, "with SIGCHLD ignored");
	(void)sigaction(SIGCHLD, &now, NULL);
	ok(facts_probe(&f, &err) == 0 && sigaction(SIGCHLD, NULL, &old) == 0 &&
		   old.sa_handler == SIG_IGN,
	   "the caller's SIGCHLD is given back");
	(void)signal(SIGCHLD, SIG_DFL);
}

/* ---- the trial itself ---- */

static int hang(const struct probe *p, int arg, struct report *r)
{
	(void)p, (void)arg, (void)r;
	for (;;)
		(void)pause();
	return 0;
}

static int crash(const struct probe *p, int arg, struct report *r)
{
	(void)p, (void)arg, (void)r;
	(void)signal(SIGABRT, SIG_DFL);
	(void)kill(getpid(), SIGABRT);
	return 0;
}

static int leave_one(const struct probe *p, int arg, struct report *r)
{
	const pid_t pid = fork();

	(void)p, (void)arg;
	if (pid == 0)
		for (;;)
			(void)pause();
	r->v[0] = (uint64_t)pid;
	return pid > 0 ? 0 : EAGAIN;
}

/* Dead counts: whose orphan it is then is a matter between it and process 1. */
static bool gone(pid_t pid)
{
	char path[64], text[512];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	for (int i = 0; i < 500; i++) {
		if (facts_read_small(path, text, sizeof(text)) <= 0 || strstr(text, ") Z "))
			return true;
		(void)usleep(1000);
	}
	return false;
}

static void test_trial(void)
{
	struct probe p = { .deadline_ms = clock_monotonic_ms() + 150 };
	struct report r;
	struct trial t;

	ok(trial_start(&p, hang, 0, &t) == 0, "start a trial that hangs");
	ok(trial_finish(&t, &r) != 0 && clock_monotonic_ms() - p.deadline_ms < 1000,
	   "it ends in time, as a no");
	ok(gone(t.pid), "and is gone");
	ok(trial_start(&p, hang, 0, &t) == ETIMEDOUT, "after the deadline nothing starts");
	p.deadline_ms = clock_monotonic_ms() + 5000;
	ok(!trial_ok(&p, crash, 0), "a crash is a no");
	ok(trial_start(&p, leave_one, 0, &t) == 0 && trial_finish(&t, &r) == 0 && r.v[0] > 1 &&
		   gone((pid_t)r.v[0]),
	   "what a trial started is ended with it");
}

/* ---- text ---- */

static void test_texts(void)
{
	static const char passwd[] = "root:x:0:0::/root:/bin/sh\nbad\n:x:7::::\n"
				     "ann:x:1000:1000::/:/\n";
	static const char subid[] = "root:100000:65536\nann:165536:65536\n1001:231072:65536\n"
				    "zero:5:0\nbad:x:9\n";
	static const struct {
		const char *text, *want;
	} versions[] = {
		{ "runc version 1.1.5+ds1\ncommit: 1.1.5", "1.1.5+ds1" },
		{ "runc version 1.4.0-rc.3", "1.4.0-rc.3" },
		{ "QEMU emulator version 7.2.17 (Debian 1:7.2+dfsg-7)", "7.2.17" },
		{ "bubblewrap 0.8.0\n", "0.8.0" },
		{ "Docker version 28.2.2, build e6534b4", "28.2.2" },
		{ "Firecracker v1.7.0\n\nSupported", "1.7.0" },
		{ "runsc version release-20221219.0\nspec: 1.0", "20221219.0" },
		{ "version 12", "" },
		{ "", "" },
		{ ".", "" },
		{ "1.", "" },
		{ "a1.b", "" },
		{ "x 10 20 3.4.", "3.4" },
	};

	is_sv(facts_passwd_name(sv_from(passwd), 1000), SV("ann"), "a name from passwd");
	is_sv(facts_passwd_name(sv_from(passwd), 7), SV(""), "not an empty one");
	is_sv(facts_passwd_name(sv_from(passwd), 5), SV(""), "nobody");
	ok(facts_subid_has_range(sv_from(subid), 1000, SV("ann")), "a range by name");
	ok(facts_subid_has_range(sv_from(subid), 1001, SV("")), "a range by number");
	ok(!facts_subid_has_range(sv_from(subid), 1002, SV("bob")), "none for others");
	ok(!facts_subid_has_range(sv_from(subid), 5, SV("zero")), "an empty range is none");
	ok(!facts_subid_has_range(sv_from(subid), 5, SV("bad")), "a broken line is none");
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		const struct sv got = facts_tool_version(sv_from(versions[i].text));

		ok(sv_is(got, versions[i].want), "version %zu: '" SV_FMT "'", i, SV_ARG(got));
	}
}

/* mountinfo, cgroup, what they mean, and our directories: version 2, its parent, memory */
static const struct {
	const char *mountinfo, *self;
	uint64_t version;
	const char *own, *parent, *memory;
} places[] = {
	{ "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n",
	  "0::/user.slice/user-1000.slice/user@1000.service/app.slice/t.scope\n", CGROUP_V2,
	  "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/t.scope",
	  "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice", "" },
	{ "30 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n", "0::/\n", CGROUP_V2,
	  "/sys/fs/cgroup", "", "" },
	{ "30 23 0:26 /../../.. /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n", "0::/x\n", CGROUP_V2, "",
	  "", "" },
	{ "30 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n", "0::/../other\n", CGROUP_V2, "",
	  "", "" },
	{ "35 31 0:32 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
	  "4:memory:/docker/ab\n", CGROUP_V1, "", "", "/sys/fs/cgroup/memory" },
	{ "35 31 0:32 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
	  "4:memory:/docker/abc\n", CGROUP_V1, "", "", "" },
	{ "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	  "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
	  "4:memory:/a\n1:cpu,cpuacct:/\n0::/\n", CGROUP_HYBRID, "/sys/fs/cgroup/unified", "",
	  "/sys/fs/cgroup/memory/a" },
	{ "22 27 0:21 / /proc rw - proc proc rw\n", "", CGROUP_NONE, "", "", "" },
	{ "\n- -\n30 23\n", "0\n::\n\n", CGROUP_NONE, "", "", "" },
};

static void test_places(void)
{
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		struct cgroup_places p;

		facts_cgroup_places_parse(sv_from(places[i].mountinfo), sv_from(places[i].self),
					  &p);
		ok(p.version == places[i].version, "cgroups %zu: which", i);
		is_str(p.own, places[i].own, "our own");
		is_str(p.parent, places[i].parent, "its parent");
		is_str(p.v1[V1_MEMORY], places[i].memory, "that of the memory controller");
	}
}

static void script(const char *name, const char *body)
{
	scoped_buf b = BUF_INIT(4096);
	struct writ_err err;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", work, name);
	buf_fmt(&b, "#!/bin/sh\n%s\n", body);
	if (fd_replace_file(path, buf_view(&b), 0755, &err) < 0 || chmod(path, 0755) < 0)
		ok(false, "write %s", path);
}

static void test_tools(void)
{
	static const char *const names[] = {
		"crun", "runc", "podman", "docker", "bwrap", "wasmtime"
	};
	struct host_facts f = { .qemu = "9.9" };
	struct writ_err err = { 0 };
	char path[256], *keep = strdup(getenv("PATH") ? getenv("PATH") : "");
	int64_t start;

	script("crun", "echo crun version 1.14.3; echo commit: 2.2.2");
	script("runc", "exec /bin/sleep 30");
	script("podman", "[ -z \"$HOME$SECRET\" ] && ! read x && echo podman version 4.3.1");
	script("docker", "echo no number here");
	script("bwrap", "i=0; while [ $i -lt 3000 ]; do echo blah; i=$((i+1)); done; echo 1.2.3");
	script("wasmtime", "/bin/sleep 30 & echo wasmtime 19.0.2");
	(void)snprintf(path, sizeof(path), ".:relative:%s", work);
	(void)setenv("PATH", path, 1);
	(void)setenv("SECRET", "x", 1);
	start = clock_monotonic_ms();
	ok(facts_probe_tools(&f, &err) == 0, "tools");
	ok(clock_monotonic_ms() - start < 4000, "one that hangs does not hold us");
	(void)setenv("PATH", keep, 1);
	free(keep);
	is_str(f.crun, "1.14.3", "a version");
	is_str(f.runc, "unknown", "no answer in time");
	is_str(f.podman, "4.3.1", "no environment but PATH, and an empty standard input");
	is_str(f.docker, "unknown", "no number");
	is_str(f.bwrap, "unknown", "only the beginning is read");
	is_str(f.wasmtime, "19.0.2", "a version in spite of a child that stays");
	is_str(f.qemu, "", "what is absent is empty");
	ok(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "no child left");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", work, names[i]);
		(void)unlink(path);
	}
}

int main(int argc, char **argv)
{
	struct host_facts f = { 0 };
	struct writ_err err = { 0 };

	if (argc == 2 && strcmp(argv[1], "--facts") == 0)
		return print_facts(false, 1);
	if (argc == 2 && strcmp(argv[1], "--facts-tools") == 0)
		return print_facts(true, 1);
	(void)snprintf(work, sizeof(work), "/tmp/writ-test-probe-XXXXXX");
	if (!mkdtemp(work) || setenv("TMPDIR", work, 1) < 0)
		return 1;
	if (ok(facts_probe(&f, &err) == 0, "probe: %s", err.what)) {
		test_self(&f);
		test_second_opinion(&f);
		test_clean();
		test_ended();
		test_callers(&f);
		test_shaky(&f);
		test_no_userns(&f);
		test_killed();
		test_listener(&f);
		test_landlocked(&f);
		test_inside_userns(&f);
		test_chroot(&f);
		test_user(&f);
	}
	test_trial();
	test_texts();
	test_places();
	test_tools();
	ok(rmdir(work) == 0, "the test's own directory is empty at the end");
	return tap_done();
}
