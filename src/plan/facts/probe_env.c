#include "facts/probe_priv.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

/* Constants that older headers do not define. */
enum { NR_IO_URING_SETUP = 425, NR_LSM_LIST_MODULES = 461, LSM_MAX = 32 };

/* Names of security modules by the kernel's LSM_ID_* numbers, which start at 100. */
static const char *const lsm_names[] = {
	"capability", "selinux", "smack", "tomoyo", "apparmor", "yama", "loadpin",
	"safesetid", "lockdown", "bpf", "landlock", "ima", "evm", "ipe",
};

/*
 * Determines the active security modules. The file needs a mounted securityfs; the system call
 * lsm_list_modules() (Linux 6.8) does not.
 */
static void set_lsm(struct host_facts *f)
{
	char text[256];
	uint64_t ids[LSM_MAX];
	uint32_t size = sizeof(ids);
	long n;

	if (facts_read_small("/sys/kernel/security/lsm", text, sizeof(text)) > 0) {
		facts_set_text(f->lsm, sv_from(text));
		return;
	}
	n = syscall(NR_LSM_LIST_MODULES, ids, &size, 0);
	text[0] = 0;
	for (long i = 0; i < n && i < LSM_MAX; i++) {
		const size_t used = strlen(text);
		const bool known = ids[i] >= 100 && ids[i] < 100 + ARRAY_LEN(lsm_names);

		(void)snprintf(text + used, sizeof(text) - used, "%s%s", used ? "," : "",
			       known ? lsm_names[ids[i] - 100] : "?");
	}
	facts_set_text(f->lsm, sv_from(text));
}

int try_io_uring(const struct probe *p, int arg, struct report *r)
{
	unsigned char params[120] = { 0 };

	(void)p, (void)arg, (void)r;
	if (syscall(NR_IO_URING_SETUP, 1, params) >= 0)
		return 0;
	/*
	 * Only ENOSYS, EPERM and EACCES mean that io_uring is disabled. After another error, such
	 * as ENOMEM, io_uring may still work for an attacker.
	 */
	return errno == ENOSYS || errno == EPERM || errno == EACCES ? errno : 0;
}

#if defined(__x86_64__)
int try_compat32(const struct probe *p, int arg, struct report *r)
{
	long pid = 20; /* number of getpid in the 32-bit table of system calls */

	(void)p, (void)arg, (void)r;
	__asm__ volatile("int $0x80" : "+a"(pid) : : "memory", "r8", "r9", "r10", "r11");
	return pid == getpid() ? 0 : ENOSYS;
}
#else
int try_compat32(const struct probe *p, int arg, struct report *r)
{
	(void)p, (void)arg, (void)r;
	return ENOSYS;
}
#endif

enum { OUTSIDE = 3, INSIDE_MAX = 3 };

/* Tries whether RLIMIT_NPROC counts per user namespace. With three idle processes of this user
 * outside, a limit of three must permit two more processes inside a new user namespace and refuse
 * the third. */
int try_nproc(const struct probe *p, int arg, struct report *r)
{
	const struct rlimit lim = { INSIDE_MAX, INSIDE_MAX };
	pid_t pids[OUTSIDE + INSIDE_MAX];
	int n = 0, e = 0;

	(void)arg, (void)r;
	if (!p->userns)
		return EPERM;
	while (n < OUTSIDE && (pids[n] = facts_grandchild_idle()) > 0)
		n++;
	if (n < OUTSIDE || facts_enter_ns(p, 0) != 0 || setrlimit(RLIMIT_NPROC, &lim) < 0)
		e = EPERM;
	while (e == 0 && n < OUTSIDE + INSIDE_MAX && (pids[n] = facts_grandchild_idle()) > 0)
		n++;
	if (e == 0 && (n != OUTSIDE + INSIDE_MAX - 1 || errno != EAGAIN))
		e = EDOM;
	while (n > 0)
		facts_grandchild_end(pids[--n]);
	return e;
}

void probe_sysctls(struct host_facts *f)
{
	f->apparmor_userns =
		facts_read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) == 1;
	f->selinux_enforcing = facts_read_number("/sys/fs/selinux/enforce", 0) == 1;
	f->yama = facts_read_number("/proc/sys/kernel/yama/ptrace_scope", 0);
	if (f->yama > 3)
		f->yama = 0;
	f->memfd_noexec = facts_read_number("/proc/sys/vm/memfd_noexec", 0) >= 1;
	/* Kernels before 6.2 have no sysctl legacy_tiocsti, and TIOCSTI works on such kernels. */
	f->tiocsti = facts_read_number("/proc/sys/dev/tty/legacy_tiocsti", 1) != 0;
	set_lsm(f);
}
