#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/landlock.h"
#include "filter/filter.h"
#include "lib/restrict_priv.h"

#include "base/banned.h"

static const void *at(const struct jail_head *p, struct jail_span s)
{
	return (const char *)p + s.at;
}

static int add_rule(const struct restrict_work *w, int set, const struct jail_rule *v,
		    struct writ_err *err)
{
	const char *path = at(w->program, v->path);
	struct ll_beneath rule = { .access = v->access & w->program->landlock_fs };
	scoped_fd fd = -1;
	struct stat st;

	/*
	 * An empty path stands for a private place of a session. A process that restricts itself
	 * has no session, so skip the rule.
	 */
	if (v->path.n == 0)
		return 0;
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && (v->flags & JAIL_OPTIONAL))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	rule.fd = fd;
	if (!S_ISDIR(st.st_mode))
		rule.access &= LL_FILE;
	if (rule.access && syscall(SYS_landlock_add_rule, set, LL_RULE_BENEATH, &rule, 0) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "Landlock rule for %s", path);
	return 0;
}

int apply_prepare(struct restrict_work *w, struct writ_err *err)
{
	const struct jail_head *p = w->program;
	const struct ll_ruleset handled = { p->landlock_fs, p->landlock_net, p->landlock_scope };
	const size_t size = ll_size(p->landlock_abi);
	const struct jail_rule *rules = at(p, p->rules);
	scoped_fd set = (int)syscall(SYS_landlock_create_ruleset, &handled, size, 0);
	int r = set < 0 ? writ_fail(err, WRIT_E_SYS, errno, "Landlock") : 0;

	for (uint32_t i = 0; r == 0 && i < p->rules.n; i++)
		r = add_rule(w, set, &rules[i], err);
	if (r == 0)
		w->ruleset = fd_take(&set);
	return r;
}

/* --- filters --- */

enum { PROGRAM_MAX = 4096 };

static int load_filter(const struct sock_filter *v, size_t n, const char *what,
		       struct writ_err *err)
{
	const struct sock_fprog prog = { .len = (unsigned short)n,
					 .filter = (struct sock_filter *)(uintptr_t)v };

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0
		       ? writ_fail(err, WRIT_E_SYS, errno, "%s", what)
		       : 0;
}

/*
 * Loads the mediator's filter with EPERM in place of every notification. A process that restricts
 * itself has no mediator, so each system call that the mediator would decide about fails.
 */
static int refuse_mediated(const struct restrict_work *w, struct writ_err *err)
{
	const uint32_t no = SECCOMP_RET_ERRNO | EPERM;
	const struct filter f = filter_traps(TRAP_NET | (w->attributes ? 0 : TRAP_META));
	struct sock_filter v[PROGRAM_MAX];
	size_t questions = 0;

	if (f.n == 0 || f.n > PROGRAM_MAX)
		return writ_fail(err, WRIT_E_UNENFORCEABLE, 0,
				 "no seccomp program for this machine");
	memcpy(v, f.v, f.n * sizeof(v[0]));
	for (size_t i = 0; i < f.n; i++)
		if (v[i].code == (BPF_RET | BPF_K) && v[i].k == SECCOMP_RET_USER_NOTIF) {
			v[i].k = no;
			questions++;
		}
	if (questions == 0)
		return writ_fail(err, WRIT_E_BUG, 0, "a program without questions");
	return load_filter(v, f.n, "refuse what would be mediated", err);
}

#if defined(__x86_64__)
#define ARCH_HERE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH_HERE AUDIT_ARCH_AARCH64
#else
#define ARCH_HERE 0
#endif

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define IF(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, (value))

/*
 * Refuses socket(), and socketpair() except for stream and seqpacket pairs. An end of a datagram
 * pair could be connected to another address. The base filter judges all other system calls.
 */
static int refuse_sockets(const struct restrict_work *w, struct writ_err *err)
{
	const struct sock_filter v[] = {
		LOAD(arch),
		IF(ARCH_HERE, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		IF(SYS_socket, 6, 0),
		IF(SYS_socketpair, 0, 4),
		/*
		 * Load the lower half of the socket type: all supported architectures are
		 * little-endian.
		 */
		LOAD(args[1]),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf),
		IF(SOCK_STREAM, 1, 0),
		IF(SOCK_SEQPACKET, 0, 1),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(SECCOMP_RET_ERRNO | EPERM),
	};

	(void)w;
	return load_filter(v, ARRAY_LEN(v), "refuse sockets", err);
}

static int load_base(const struct restrict_work *w, struct writ_err *err)
{
	return load_filter(at(w->program, w->program->base), w->program->base.n, "seccomp filter",
			   err);
}

/* --- the rest --- */

static int limit(const struct restrict_work *w, struct writ_err *err)
{
	const struct jail_rlimit *v = at(w->program, w->program->rlimits);

	for (uint32_t i = 0; i < w->program->rlimits.n; i++) {
		const struct rlimit both = { v[i].value, v[i].value };
		struct rlimit now;
		int r = prlimit(0, v[i].resource, NULL, &now);

		/*
		 * Never raise a limit: keep a hard limit that is already lower than the policy's.
		 */
		if (r == 0 && now.rlim_max >= both.rlim_max)
			r = prlimit(0, v[i].resource, &both, NULL);
		if (r < 0)
			return writ_fail(err, WRIT_E_SYS, errno, "resource limit");
	}
	return 0;
}

static int drop_caps(const struct restrict_work *w, struct writ_err *err)
{
	const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
				   SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
				   SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	(void)w;
	/* An unprivileged process may not set the securebits, and has no capability to drop. */
	if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) == 0)
		for (unsigned long cap = 0; cap < 64; cap++)
			if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
				return writ_fail(err, WRIT_E_SYS, errno, "drop the bounding set");
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &head, none) < 0
		       ? writ_fail(err, WRIT_E_SYS, errno, "drop capabilities")
		       : 0;
}

static int no_new_privs(const struct restrict_work *w, struct writ_err *err)
{
	(void)w;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
		       ? writ_fail(err, WRIT_E_SYS, errno, "no_new_privs")
		       : 0;
}

static int landlock(const struct restrict_work *w, struct writ_err *err)
{
	return syscall(SYS_landlock_restrict_self, w->ruleset, 0) < 0
		       ? writ_fail(err, WRIT_E_SYS, errno, "Landlock")
		       : 0;
}

/*
 * Reads no_new_privs, the seccomp mode and the capabilities back from the kernel, and checks them.
 */
static int verify(const struct restrict_work *w, struct writ_err *err)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct caps[2] = { { 0 } };

	(void)w;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2 ||
	    syscall(SYS_capget, &head, caps) < 0 || caps[0].permitted || caps[1].permitted ||
	    caps[0].effective || caps[1].effective)
		return writ_fail(err, WRIT_E_BUG, 0, "read back, it does not hold");
	return 0;
}

/* Refuses every exec: `shell none` leaves only the program that already runs. */
static int refuse_exec(const struct restrict_work *w, struct writ_err *err)
{
	const struct sock_filter v[] = {
		LOAD(arch),
		IF(ARCH_HERE, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		IF(SYS_execve, 2, 0),
		IF(SYS_execveat, 1, 0),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(SECCOMP_RET_ERRNO | EPERM),
	};

	return w->no_exec ? load_filter(v, ARRAY_LEN(v), "refuse programs", err) : 0;
}

/*
 * The steps in the order of execution. The base filter is loaded last of all filters, because it
 * refuses system calls that earlier steps make.
 */
static int (*const steps[])(const struct restrict_work *w, struct writ_err *err) = {
	limit,		drop_caps,   no_new_privs, landlock, refuse_mediated,
	refuse_sockets, refuse_exec, load_base,	   verify,
};

int apply_steps(const struct restrict_work *w, int *ret_done, struct writ_err *err)
{
	int r = 0;

	*ret_done = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(steps); i++) {
		r = steps[i](w, err);
		/* Report a failed step as done: it may have changed part of the process already. */
		*ret_done = (int)i + 1;
	}
	return r;
}
