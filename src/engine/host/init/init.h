/*
 * init.h - writ-init: build the jail, then run commands in it
 *
 * Theory of operation
 *
 * writ-init is a static program without a C library. The supervisor starts it with two sockets. It
 * receives one jail program (jail/program.h) as a sealed memfd, carries out its steps in the order
 * of the table in steps.c, and reports JAIL_SEALED or the step that failed. It makes no decisions:
 * paths, rules, filters and limits all come from the program.
 *
 * Processes. In tier A writ-init enters an outer user namespace and clones pid 1 into new mount,
 * pid, ipc, uts and cgroup namespaces. The parent becomes the keeper (keeper.c), which attaches
 * mounts and binds listeners later. pid 1 builds the root (root.c), joins the network (net.c),
 * enters the inner user namespace, and gives up its rights (lock.c). In tier B there are no
 * namespaces and no keeper; pid 1 is a child subreaper instead.
 *
 * States of pid 1:  hello -> (prepared) -> sealed -> serving -> ending
 *   hello     waits for the program; end of file means that the supervisor gave up
 *   prepared  optional: the first mounts are made while the supervisor computes the rest
 *   sealed    all steps are done and were verified through /proc/self/status
 *   serving   starts commands (spawn.c), forwards signals, reaps children
 *   ending    kills everything, runs the final probes (probe.c), sends JAIL_EMPTY
 *
 * Inputs: messages and descriptors on JAIL_FD_SESSION and JAIL_FD_KEEPER. Outputs: messages of
 * jail/program.h, listeners of trapped commands, masters of terminals.
 *
 * Invariants
 *   - No heap, stdio, environment, locale or threads. Every offset in a program is checked
 *     (program.c) before it is used, and a program is sealed before it is checked.
 *   - Nothing is created in a tree of the user, only on file systems made for this jail.
 *   - No command runs before the jail is sealed. Each restricts itself with Landlock and the trap
 *     filter before its exec, and holds no listener afterwards.
 *   - A step that fails ends the session. There is no partial jail.
 *   - Nothing of the session survives pid 1. In tier A the kernel ends the pid namespace with pid
 *     1. In tier B pid 1 kills all processes before it exits; if pid 1 itself is killed, its
 *     processes become children of the supervisor, which kills them.
 *
 * Common mistakes
 *   - Putting pid 1 into the Landlock domain of commands: the commands could then signal pid 1.
 *   - Reaping zombies early while ending in tier B. Zombies count towards the limit of processes,
 *     so they keep a fork bomb from creating more processes.
 *   - Detaching a mount and moving a process between cgroups make the kernel wait for all
 *     processors. Do it once, or not at all, on the way to the first command.
 *   - Relying on PR_SET_PDEATHSIG after a change of ids, which clears it. Set it again afterwards.
 *
 * Reads:  jail/program.h
 * Writes: nothing
 * Next:   main.c starts; steps.c builds; spawn.c runs commands; keeper.c is the keeper
 */
#ifndef WRIT_INIT_INIT_H
#define WRIT_INIT_INIT_H

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "init/sys.h"
#include "jail/program.h"

enum { COMMANDS_MAX = 256 };
enum { FAMILY_UNIX = 1, TYPE_SEQPACKET = 5 }; /* AF_UNIX, SOCK_SEQPACKET */

/* The complete state of pid 1. */
struct init {
	bool own_namespaces;
	uint32_t fail_at;	   /* the step that must fail, for tests */
	uint32_t done;		   /* steps that were completed: bits of 1 << enum jail_step */
	const struct jail_head *p; /* the jail program, mapped and checked */
	/* O_PATH descriptor of the host's root while pid 1 builds the new root; else -1. */
	int old_root;
	/*
	 * Devices of the file systems made for this jail; mount targets are created only on these.
	 */
	uint64_t made_dev[4];
	uint32_t made_n;
	int network; /* socket on which the keeper sends the network namespace; else -1 */
	int parent;  /* O_PATH descriptor of the directory of the last mount target; else -1 */
	char parent_path[JAIL_PATH];
	/*
	 * Descriptor of the feed, the file of denials to which only the supervisor can append; -1
	 * before pid 1 has created the feed and after pid 1 has sent the descriptor.
	 */
	int feed;
	/*
	 * Mount through which pid 1 opened @feed; -1 before, and after the host's root was
	 * detached.
	 */
	int feed_tree;
	int ruleset;		     /* the jail's own Landlock ruleset; -1: none */
	/*
	 * Further Landlock rulesets, with which each command restricts itself after @ruleset. The
	 * program @p has their number in p->layers.
	 */
	int layers[JAIL_LAYERS_MAX];
	int children; /* signalfd for SIGCHLD */
	bool ending;
	bool ran;      /* pid 1 has started a command */
	uint32_t last; /* id of the command that ends the session; 0: none */
	uint32_t commands_n;
	struct {
		int pid;
		uint32_t id;
	} commands[COMMANDS_MAX];
};

/*
 * Fills @err with the failed action @what, its @object and the error @r. Returns a negative errno.
 */
int init_fail(struct writ_err *err, long r, const char *what, const char *object);

/* Functions of steps.c. */
int init_step_enter(
	struct init *in,
	struct writ_err *err); /* enters the outer user namespace and writes its id map */
int init_steps_run(struct init *in, struct writ_err *err, uint32_t *ret_step);
void init_put_number(char *to, size_t *at, uint64_t n);
int init_write_text(int dir, const char *path, const char *text);

/* Functions of program.c: map a sealed program or command, and check every offset in it. */
int init_program_map(int fd, uint32_t least, const void **ret, uint32_t *ret_size);
int init_program_check(const struct jail_head *p, uint32_t size);
int init_command_check(const struct jail_command *c, uint32_t size);
static inline const void *span_at(const void *base, struct jail_span s)
{
	return (const char *)base + s.at;
}
/* Makes seccomp() install the program @filter of the jail program @p. */
static inline long init_seccomp(const struct jail_head *p, struct jail_span filter,
				unsigned long flags)
{
	const struct sock_fprog prog = { .len = (unsigned short)filter.n,
					 .filter = (struct sock_filter *)(uintptr_t)span_at(
						 p, filter) };

	return sys(seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}

/* Functions of root.c. */
/* Opens @path with O_PATH and without following links; below @dir unless @dir is AT_FDCWD. */
long init_open_name(int dir, const char *path);
bool init_is_dir(int fd);
int init_root_begin(struct init *in, const struct jail_head *p, struct writ_err *err);
int init_root_build(struct init *in, struct writ_err *err);

/* Functions of net.c. */
int init_net_build(struct init *in, struct writ_err *err);
/* Brings up the interface lo of the network namespace of this process, which is the keeper. */
int init_net_bring_up(struct writ_err *err);
/* Opens the socket that @l describes. Returns its descriptor, or a negative errno. */
long init_net_listen(const struct jail_listen *l);

/* Functions of lock.c. */
int lock_limits(struct init *in, struct writ_err *err);
/* Sets the limit of open files on this process. Returns 0 or a negative errno. */
long lock_files(const struct jail_head *p);
int lock_fds(struct init *in, struct writ_err *err);
int lock_caps(struct init *in, struct writ_err *err);
int lock_privs(struct init *in, struct writ_err *err);
int lock_ruleset(struct init *in, struct writ_err *err);
int lock_seccomp(struct init *in, struct writ_err *err);
int lock_verify(struct init *in, struct writ_err *err);

/*
 * spawn.c: starts a command. Returns the pid of the new child of pid 1, which is the command or,
 * with a new terminal, the process that leads the terminal; or a negative errno.
 */
int init_spawn(struct init *in, uint32_t id, int command, const int *fds, uint32_t fds_n);

/* probe.c: runs the probes of the program @p and sends the results to the supervisor. */
int init_probe_run(const struct jail_head *p, enum jail_phase phase, uint32_t id, bool landlock);

/* Functions of message.c. */
int init_message_send(int socket, const struct jail_message *m, int fd);
int init_message_send_many(int socket, const struct jail_message *m, const int *fds, uint32_t n);
/* Receives a message. Returns the number of bytes, 0 at end of file, or a negative errno. */
long init_message_receive(int socket, struct jail_message *ret, char *ret_text, size_t text_room,
			  int *ret_fds, uint32_t room, uint32_t *ret_fds_n);

/* Functions of kernel_mounts.c. */
/*
 * Masks all kernel file systems that are mounted below @path in the mount namespace of this
 * process, with masks of the mount namespace @jail. Fails with -EOPNOTSUPP if @dev, the device of
 * @path, is that of a kernel file system.
 */
long init_mask_kernel_mounts(int jail, const char *path, uint64_t dev);

/* Functions of keeper.c. */
/* Creates the network namespace, sends it or the error through @socket, and closes @socket. */
void keeper_network(int socket);
/*
 * Runs the keeper. @network: the socket to pass to keeper_network(); -1: the caller has called
 * keeper_network() already.
 */
_Noreturn void keeper_main(int pid1, int network);

#endif
