#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine/confine_priv.h"

#include "base/banned.h"

/*
 * Confinement for programs that are not part of writ but parse bytes of the agent, such as git:
 * these programs get named file trees, no network and no access to other processes.
 */

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
		r = confine_trees(trees, n, CONFINE_BIND | CONFINE_CONNECT, err);
	return r < 0 ? r : filter_command(err);
}

int confine_within(const struct confine_tree *trees, size_t trees_n, const int *calls, size_t n,
		   struct writ_err *err)
{
	int r = confine_privileges(err);

	if (r == 0)
		r = confine_trees(trees, trees_n, CONFINE_BIND | CONFINE_CONNECT, err);
	return r == 0 || r == WRIT_E_UNENFORCEABLE ? confine_filter(calls, n, 0, err) : r;
}
