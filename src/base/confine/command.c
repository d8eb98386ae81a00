#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/landlock.h"
#include "confine/confine.h"
#include "confine/confine_priv.h"

#include "base/banned.h"

/*
 * Confinement for programs that are not part of writ but parse bytes of the agent, such as git:
 * these programs get named file trees, no network and no access to other processes.
 */

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
	/*
	 * Retry with the rights of a file: Landlock refuses directory rights on a path that is not
	 * a directory.
	 */
	rule.access &= LL_FILE;
	if (errno == EINVAL && syscall(SYS_landlock_add_rule, set, LL_RULE_BENEATH, &rule, 0) == 0)
		return 0;
	return writ_fail(err, WRIT_E_SYS, errno, "Landlock: %s", t->path);
}

static int restrict_to_trees(const struct confine_tree *v, size_t n, struct writ_err *err)
{
	struct ll_ruleset handled = { 0 };
	const long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LL_VERSION);
	scoped_fd set = -1;
	int r = 0;

	if (abi < 1)
		return writ_fail(err, WRIT_E_UNENFORCEABLE, 0, "this kernel has no Landlock");
	handled.fs = ll_known((uint64_t)abi);
	handled.net = abi >= 4 ? 3 : 0;
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

/*
 * System calls that a program working on files does not need. The list has no clone3(): the flags
 * of clone3() are in memory that seccomp cannot read, so the filter answers ENOSYS and libc falls
 * back to clone().
 */
static const int refused[] = {
	SYS_socket,
	SYS_socketpair,
	SYS_connect,
	SYS_bind,
	SYS_listen,
	SYS_ptrace,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_kill,
	SYS_tkill,
	SYS_pidfd_open,
	SYS_pidfd_send_signal,
	SYS_pidfd_getfd,
	SYS_unshare,
	SYS_setns,
	SYS_mount,
	SYS_umount2,
	SYS_pivot_root,
	SYS_chroot,
	SYS_bpf,
	SYS_perf_event_open,
	SYS_userfaultfd,
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
	SYS_keyctl,
	SYS_add_key,
	SYS_request_key,
	SYS_open_by_handle_at,
	SYS_init_module,
	SYS_finit_module,
	SYS_kexec_load,
	SYS_open_tree,
	SYS_move_mount,
	SYS_fsopen,
	SYS_fsmount,
	SYS_mknodat,
	SYS_personality,
	SYS_quotactl,
	SYS_swapon,
};

static int filter_command(struct writ_err *err)
{
	struct sock_filter v[2 * ARRAY_LEN(refused) + 24];
	struct sock_fprog prog = { .filter = v };
	unsigned short n = 0;
	const uint32_t spaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID |
				CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

	v[n++] = (struct sock_filter)LOAD(arch);
	v[n++] = (struct sock_filter)IS(ARCH, 1, 0);
	v[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_KILL_PROCESS);
	v[n++] = (struct sock_filter)LOAD(nr);
	v[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1);
	v[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_KILL_PROCESS);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		v[n++] = (struct sock_filter)IS(refused[i], 0, 1);
		v[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_ERRNO | EPERM);
	}
	v[n++] = (struct sock_filter)IS(SYS_clone3, 0, 1);
	v[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_ERRNO | ENOSYS);
	v[n++] = (struct sock_filter)IS(SYS_clone, 0, 3);
	v[n++] = (struct sock_filter)LOAD(args[0]);
	v[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, spaces, 0, 1);
	v[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_ERRNO | EPERM);
	v[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW);
	prog.len = n;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) != 0)
		return writ_fail(err, WRIT_E_SYS, errno, "seccomp");
	return 0;
}

int confine_command(const struct confine_tree *trees, size_t n, struct writ_err *err)
{
	int r = confine_privileges(err);

	if (r == 0)
		r = restrict_to_trees(trees, n, err);
	return r < 0 ? r : filter_command(err);
}

int confine_within(const struct confine_tree *trees, size_t trees_n, const int *calls, size_t n,
		   struct writ_err *err)
{
	int r = confine_privileges(err);

	if (r == 0)
		r = restrict_to_trees(trees, trees_n, err);
	return r == 0 || r == WRIT_E_UNENFORCEABLE ? confine_filter(calls, n, 0, err) : r;
}
