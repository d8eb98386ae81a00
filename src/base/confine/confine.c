#include "confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/landlock.h"
#include "confine/confine_priv.h"

#include "base/banned.h"

enum { TYPE_MASK = 0xf, MOST = 4 * CONFINE_CALLS_MAX };

struct program {
	struct sock_filter v[MOST];
	unsigned short n;
};

static void put(struct program *p, struct sock_filter f)
{
	p->v[p->n++] = f;
}

/* Allows socket() for AF_INET and AF_INET6 if the type, without its flags, is in @sockets. */
static void put_socket(struct program *p, unsigned sockets)
{
	if (!sockets)
		return;
	put(p, (struct sock_filter)IS(SYS_socket, 0, 9));
	put(p, (struct sock_filter)LOAD(args[0]));
	put(p, (struct sock_filter)IS(AF_INET, 1, 0));
	put(p, (struct sock_filter)IS(AF_INET6, 0, 5));
	put(p, (struct sock_filter)LOAD(args[1]));
	put(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, TYPE_MASK));
	put(p, (struct sock_filter)IS(sockets & CONFINE_TCP ? SOCK_STREAM : -1, 1, 0));
	put(p, (struct sock_filter)IS(sockets & CONFINE_UDP ? SOCK_DGRAM : -1, 0, 1));
	put(p, (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW));
	put(p, (struct sock_filter)ANSWER(SECCOMP_RET_ERRNO | EAFNOSUPPORT));
}

static void put_calls(struct program *p, const int *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		put(p, (struct sock_filter)IS(calls[i], 0, 1));
		put(p, (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW));
	}
}

#if defined(__SANITIZE_ADDRESS__)
/* System calls of the sanitizer's run time. Sanitizer builds are for tests only. */
static const int extra[] = { SYS_getpid,      SYS_getrlimit,  SYS_gettid,	SYS_mprotect,
			     SYS_openat,      SYS_prctl,      SYS_prlimit64,	SYS_read,
			     SYS_readlinkat,  SYS_readlink,   SYS_rt_sigaction, SYS_rt_sigprocmask,
			     SYS_sched_yield, SYS_sigaltstack };
#endif

int confine_filter(const int *calls, size_t n, unsigned sockets, struct writ_err *err)
{
	struct program p = { .n = 0 };
	struct sock_fprog prog = { .filter = p.v };

	if (n > CONFINE_CALLS_MAX)
		return writ_fail(err, WRIT_E_BUG, 0, "too many system calls");
	put(&p, (struct sock_filter)LOAD(arch));
	put(&p, (struct sock_filter)IS(ARCH, 1, 0));
	put(&p, (struct sock_filter)ANSWER(SECCOMP_RET_KILL_PROCESS));
	put(&p, (struct sock_filter)LOAD(nr));
	put_socket(&p, sockets);
	put_calls(&p, calls, n);
#if defined(__SANITIZE_ADDRESS__)
	put_calls(&p, extra, ARRAY_LEN(extra));
#endif
	put(&p, (struct sock_filter)ANSWER(SECCOMP_RET_KILL_PROCESS));
	prog.len = p.n;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog) != 0)
		return writ_fail(err, WRIT_E_SYS, errno, "seccomp");
	return 0;
}

static uint64_t access_of(enum confine_access a, uint64_t handled)
{
	switch (a) {
	case CONFINE_READ:
		return LL_READ_FILE | LL_READ_DIR;
	case CONFINE_RUN:
		return LL_EXECUTE | LL_READ_FILE | LL_READ_DIR;
	case CONFINE_WRITE:
		return handled & ~(uint64_t)(LL_MAKE_CHAR | LL_MAKE_BLOCK | LL_EXECUTE);
	}
	return 0;
}

static int add_tree(int set, const struct confine_tree *t, uint64_t handled, struct writ_err *err)
{
	struct ll_beneath rule = { access_of(t->access, handled), -1 };
	scoped_fd fd = t->path ? open(t->path, O_PATH | O_CLOEXEC) : -1;

	/* Skip a missing path, which grants nothing. */
	if (fd < 0)
		return 0;
	rule.fd = fd;
	if (syscall(SYS_landlock_add_rule, set, LL_RULE_BENEATH, &rule, 0) == 0)
		return 0;
	/* Retry with the rights of a file: Landlock refuses directory rights on a file. */
	rule.access &= LL_FILE;
	if (errno == EINVAL && syscall(SYS_landlock_add_rule, set, LL_RULE_BENEATH, &rule, 0) == 0)
		return 0;
	return writ_fail(err, WRIT_E_SYS, errno, "Landlock: %s", t->path);
}

int confine_trees(const struct confine_tree *v, size_t n, uint64_t net, struct writ_err *err)
{
	struct ll_ruleset handled = { 0 };
	const long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LL_VERSION);
	scoped_fd set = -1;
	int r = 0;

	if (abi < 1)
		return writ_fail(err, WRIT_E_UNENFORCEABLE, 0, "this kernel has no Landlock");
	handled.fs = ll_known((uint64_t)abi);
	handled.net = abi >= 4 ? net : 0;
	handled.scope = abi >= 6 ? 3 : 0;
	set = (int)syscall(SYS_landlock_create_ruleset, &handled, ll_size((uint64_t)abi), 0);
	if (set < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "Landlock");
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_tree(set, &v[i], handled.fs, err);
	if (r == 0 && syscall(SYS_landlock_restrict_self, set, 0) < 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "Landlock");
	return r;
}

int confine_privileges(struct writ_err *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct no_caps[_LINUX_CAPABILITY_U32S_3] = { 0 };
	const struct rlimit none = { 0, 0 };

	if (setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "give up privileges");
	/*
	 * Drop root's capabilities: system calls that the filter allows, such as setsockopt(), can
	 * do more with capabilities than without.
	 */
	if (syscall(SYS_capset, &head, no_caps) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "give up capabilities");
	return 0;
}

int confine_self(const int *calls, size_t n, unsigned sockets, struct writ_err *err)
{
	int r = confine_privileges(err);

	/*
	 * Deny every file system right. Of the operations on TCP sockets, deny only bind(): a
	 * helper that may create sockets connects to addresses that it chooses itself. Accept a
	 * kernel without Landlock: the allowed system calls do not include open().
	 */
	if (r == 0)
		r = confine_trees(NULL, 0, CONFINE_BIND, err);
	return r == 0 || r == WRIT_E_UNENFORCEABLE ? confine_filter(calls, n, sockets, err) : r;
}
