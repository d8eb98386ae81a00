#include "init/init.h"

#include <asm/resource.h>
#include <asm/signal.h>
#include <asm/stat.h>
#include <linux/mount.h>
#include <linux/prctl.h>
#include <linux/sched.h>

#include "base/banned.h"

/*
 * The keeper is a process in the outer user namespace, outside the pid namespace of the agent. It
 * has the rights over the jail's mounts and network. The supervisor asks it for three things:
 * attach a mount, detach a mount, and open another socket in the jail's network.
 */

enum { DETACH = 2, NO_FOLLOW = 8, PRIVATE = 1 << 18 }; /* MNT_DETACH, UMOUNT_NOFOLLOW, MS_PRIVATE */
enum { TYPE_MASK = 0170000, TYPE_DIR = 0040000 };

/*
 * Creates the components of @path below @root that do not exist yet: directories, and as last
 * component a directory if @dir, else a file.
 */
static long make_rest(int root, char *path, bool dir)
{
	long r = 0;

	for (char *p = path; r == 0 && *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		r = sys(mkdirat, root, path, 0755);
		*p = '/';
		r = r == -EEXIST ? 0 : r;
	}
	if (r == 0 && dir)
		r = sys(mkdirat, root, path, 0755);
	else if (r == 0)
		r = sys(openat, root, path, O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0);
	if (r > 0)
		(void)sys(close, r);
	return r == -EEXIST || r > 0 ? 0 : r;
}

/*
 * True if @fd is on a file system that writ-init created for this jail: the root, or the tmpfs at
 * /var/agent/tmp.
 */
static bool is_own(int fd)
{
	struct stat here, st;

	return sys(fstat, fd, &here) == 0 &&
	       ((sys(newfstatat, AT_FDCWD, "/", &st, 0) == 0 && st.st_dev == here.st_dev) ||
		(sys(newfstatat, AT_FDCWD, "/var/agent/tmp", &st, 0) == 0 &&
		 st.st_dev == here.st_dev));
}

/*
 * Opens the deepest parent directory of @path that exists; *@ret_rest is the part of @path after
 * this directory.
 */
static long open_ancestor(char *path, char **ret_rest)
{
	size_t n = strlen(path);

	while (n > 1) {
		long fd;
		char kept;

		do
			n--;
		while (n && path[n] != '/');
		kept = path[n ? n : 1];
		path[n ? n : 1] = 0;
		fd = init_open_name(AT_FDCWD, path);
		path[n ? n : 1] = kept;
		if (fd != -ENOENT) {
			*ret_rest = path + n + 1;
			return fd;
		}
	}
	return -ENOENT;
}

/*
 * Creates @path as a mount target. SECURITY: the keeper creates names only on file systems that
 * were made for this jail, never in a tree of the user. The agent's mount of such a file system may
 * be read-only, so the keeper works on a writable clone of the mount.
 */
static long make_target(char *path, bool dir)
{
	const struct mount_attr writable = { .attr_clr = MOUNT_ATTR_RDONLY };
	char *rest;
	const long above = open_ancestor(path, &rest);
	long clone, r;

	if (above < 0)
		return above;
	clone = is_own((int)above) ? sys(open_tree, above, "",
					 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH)
				   : -EXDEV;
	(void)sys(close, above);
	if (clone < 0)
		return clone;
	r = sys(mount_setattr, clone, "", AT_EMPTY_PATH, &writable, sizeof(writable));
	if (r == 0)
		r = make_rest((int)clone, rest, dir);
	(void)sys(close, clone);
	return r;
}

/*
 * Attaches @path of the host at the same path in the jail. Runs in a child process, because it
 * changes namespaces and cannot return. The unshare() gives the child a private copy of the host's
 * mounts, from which the child clones the tree at @path.
 */
static long attach(int jail, char *path, uint64_t attr)
{
	struct mount_attr set = { .attr_set = attr, .propagation = PRIVATE };
	struct stat st;
	long fd, tree, target, r;

	r = sys(unshare, CLONE_NEWNS);
	if (r < 0)
		return r;
	/* This open resolves @path in the child's copy of the host's mounts. */
	fd = init_open_name(AT_FDCWD, path);
	if (fd < 0)
		return fd;
	r = sys(fstat, fd, &st);
	tree = r < 0 ? r
		     : sys(open_tree, fd, "",
			   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
	if (tree < 0)
		return tree;
	r = sys(mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &set, sizeof(set));
	if (r == 0)
		r = sys(setns, jail, CLONE_NEWNS);
	if (r < 0)
		return r;
	/*
	 * The child is in the jail's mount namespace now, so this open resolves @path to the mount
	 * target in the jail.
	 */
	target = init_open_name(AT_FDCWD, path);
	if (target == -ENOENT) {
		r = make_target(path, (st.st_mode & TYPE_MASK) == TYPE_DIR);
		target = r < 0 ? r : init_open_name(AT_FDCWD, path);
	}
	return target < 0 ? target
			  : sys(move_mount, tree, "", target, "",
				MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

static long detach(int jail, const char *path)
{
	const long r = sys(setns, jail, CLONE_NEWNS);

	return r < 0 ? r : sys(umount2, path, DETACH | NO_FOLLOW);
}

/*
 * Opens another socket (struct jail_listen) for the supervisor. The keeper is in the network
 * namespace of the jail already.
 */
static void serve_listen(const struct jail_message *ask, const struct jail_listen *l)
{
	struct jail_message m = { .type = JAIL_BOUND, .id = ask->id };
	const long fd = init_net_listen(l);

	if (fd < 0)
		(void)init_fail(&m.err, fd, "listen for a name", NULL);
	(void)init_message_send(JAIL_FD_KEEPER, &m, fd < 0 ? -1 : (int)fd);
	if (fd >= 0)
		(void)sys(close, fd);
}

static void serve_mount(int jail, const struct jail_message *ask, char *path)
{
	struct jail_message m = { .type = JAIL_DONE, .id = ask->id };
	const long pid = sys(clone, SIGCHLD, 0, 0, 0, 0);
	int status = 0;
	long r;

	if (pid == 0) {
		r = ask->type == JAIL_ATTACH ? attach(jail, path, (uint64_t)ask->value)
					     : detach(jail, path);
		if (r < 0)
			(void)init_fail(&m.err, r, ask->type == JAIL_ATTACH ? "attach" : "detach",
					path);
		sys_exit(init_message_send(JAIL_FD_KEEPER, &m, -1) < 0);
	}
	if (pid < 0) {
		(void)init_fail(&m.err, pid, "live grant", path);
		(void)init_message_send(JAIL_FD_KEEPER, &m, -1);
		return;
	}
	/*
	 * SECURITY: the child died, or could not send its answer, so the mount may be attached or
	 * not. Exit: the supervisor ends a session whose keeper is gone.
	 */
	if (sys(wait4, pid, &status, 0, 0) < 0 || status != 0)
		sys_exit(1);
}

/*
 * Installs the keeper's own seccomp filter, which is part of the same sealed program as the jail's
 * filters. SECURITY: after this call the keeper can only make the system calls that live grants
 * need.
 */
static void restrict_keeper(void)
{
	struct jail_message m;
	const struct jail_head *p;
	const void *map;
	uint32_t n, size;
	int fd;
	const long r = init_message_receive(JAIL_FD_KEEPER, &m, NULL, 0, &fd, 1, &n);

	if (r == 0)
		sys_exit(0);
	if (r < 0 || m.type != JAIL_BUILD || n != 1 ||
	    init_program_map(fd, sizeof(struct jail_head), &map, &size) < 0 ||
	    init_program_check(map, size) < 0)
		sys_exit(1);
	p = map;
	(void)sys(close, fd);
	if (sys(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || init_seccomp(p, p->keeper, 0) < 0)
		sys_exit(1);
}

/*
 * Creates the network namespace and sends it, or the error, to pid 1. If the keeper dies first, pid
 * 1 reads an end of file. Without the namespace pid 1 reports a failure and the session does not
 * start.
 */
void keeper_network(int socket)
{
	struct jail_message m = { .type = JAIL_KEEPER };
	long fd;

	fd = sys(unshare, CLONE_NEWNET);
	if (fd < 0)
		(void)init_fail(&m.err, fd, "new network namespace", NULL);
	else
		fd = init_net_bring_up(&m.err);
	if (fd == 0) {
		fd = sys(openat, AT_FDCWD, "/proc/self/ns/net", O_RDONLY | O_CLOEXEC, 0);
		if (fd < 0)
			(void)init_fail(&m.err, fd, "open the network namespace", NULL);
	}
	(void)init_message_send(socket, &m, fd < 0 ? -1 : (int)fd);
	if (fd >= 0)
		(void)sys(close, fd);
	(void)sys(close, socket);
}

/*
 * Raises the soft limit of open files to the hard one. The keeper's filter allows no prlimit64(),
 * so the keeper cannot do this later, as init_message_send_many() does in other processes.
 */
static void raise_files(void)
{
	uint64_t now[2];

	if (sys(prlimit64, 0, RLIMIT_NOFILE, 0, now) < 0)
		return;
	now[0] = now[1];
	(void)sys(prlimit64, 0, RLIMIT_NOFILE, now, 0);
}

_Noreturn void keeper_main(int pid1, int network)
{
	struct jail_message m = { .type = JAIL_KEEPER };
	struct jail_listen l;
	char path[JAIL_PATH], proc[64] = "/proc/";
	size_t n = 6;
	uint32_t fds_n;
	int fds[1];
	long jail;

	(void)sys(prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	init_put_number(proc, &n, (uint64_t)pid1);
	memcpy(proc + n, "/ns/mnt", 8);
	jail = sys(openat, AT_FDCWD, proc, O_RDONLY | O_CLOEXEC, 0);
	if (jail < 0)
		sys_exit(1);
	(void)sys(prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (init_message_send(JAIL_FD_KEEPER, &m, -1) < 0)
		sys_exit(1);
	if (network >= 0) {
		/*
		 * Creating the network namespace takes long, and pid 1 needs it only after building
		 * the root. On a machine with few processors, let pid 1 run first.
		 */
		(void)sys(sched_yield);
		keeper_network(network);
	}
	raise_files();
	restrict_keeper();
	for (;;) {
		const long r = init_message_receive(JAIL_FD_KEEPER, &m, path, sizeof(path), fds, 1,
						    &fds_n);

		if (r <= (long)sizeof(m) + 1)
			break;
		if (m.type == JAIL_LISTEN) {
			memcpy(&l, path, sizeof(l));
			if ((size_t)r == sizeof(m) + sizeof(l))
				serve_listen(&m, &l);
			continue;
		}
		path[(size_t)r - sizeof(m) - 1] = 0;
		if (path[0] == '/' && (m.type == JAIL_ATTACH || m.type == JAIL_DETACH))
			serve_mount((int)jail, &m, path);
	}
	/* End of file: the supervisor has exited. Kill pid 1, which ends the jail. */
	(void)sys(kill, pid1, SIGKILL);
	sys_exit(0);
}
