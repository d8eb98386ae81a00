#include "facts/probe_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

/* Constants that older headers do not define; the numbers are the same on all architectures. */
enum {
	NR_MOUNT_SETATTR = 442,
	NS_TIME = 0x80,
	FSCONFIG_CREATE = 6,
	MOUNT_RDONLY = 1,
	TREE_CLONE = 1,
	MOVE_EMPTY_PATH = 4,
	TRANSIENT = 2, /* exit status of a grandchild that failed for a temporary reason */
};

struct mount_attr_v0 {
	uint64_t attr_set, attr_clr, propagation, userns_fd;
};

/*
 * SECURITY: a successful unshare(CLONE_NEWUSER) is not enough. A security module may permit the
 * call and then deny every capability inside. Write an id map as well, which the kernel permits
 * only with CAP_SYS_ADMIN in the new namespace.
 */
int try_user(const struct probe *p, int arg, struct report *r)
{
	(void)arg;
	if (unshare(CLONE_NEWUSER) < 0)
		return errno;
	r->v[0] = 1; /* the namespace was created, even if writing the map fails */
	return facts_write_maps(0, p->uid, 0, p->gid);
}

int try_user_nested(const struct probe *p, int arg, struct report *r)
{
	const int e = try_user(p, arg, r);

	if (e != 0)
		return e;
	if (unshare(CLONE_NEWUSER) < 0)
		return errno;
	return facts_write_maps(p->uid, 0, p->gid, 0);
}

/* Checks that this process can really use its new namespaces of the kinds @flags. */
static int use_ns(int flags)
{
	pid_t pid;

	if (flags & CLONE_NEWUTS && sethostname("writ", 4) < 0)
		return errno;
	if (!(flags & CLONE_NEWPID))
		return 0;
	pid = facts_grandchild_fork();
	if (pid == 0)
		_exit(getpid() == 1 ? 0 : 1);
	if (pid < 0)
		return errno;
	return facts_grandchild_wait(pid) == 0 ? 0 : EPERM;
}

static int try_ns(const struct probe *p, int flags, struct report *r)
{
	const int e = facts_enter_ns(p, flags);

	(void)r;
	return e == 0 ? use_ns(flags) : e;
}

/* Tries the namespaces without a user namespace around them, which needs CAP_SYS_ADMIN. */
static int try_ns_direct(const struct probe *p, int flags, struct report *r)
{
	const struct probe direct = { .uid = p->uid, .gid = p->gid };

	return try_ns(&direct, flags, r);
}

int try_proc(const struct probe *p, int arg, struct report *r)
{
	char link[16] = { 0 };
	pid_t pid;
	int e;

	(void)arg;
	e = facts_enter_ns(p, CLONE_NEWNS | CLONE_NEWPID);
	if (e != 0)
		return e;
	pid = facts_grandchild_fork();
	if (pid < 0)
		return errno;
	if (pid == 0) {
		if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
			_exit(facts_is_transient(errno) ? TRANSIENT : 1);
		/*
		 * In a new pid namespace the old /proc would show a different pid for this process.
		 */
		if (readlink("/proc/self", link, sizeof(link) - 1) < 0)
			_exit(1);
		_exit(strcmp(link, "1") == 0 ? 0 : 1);
	}
	e = facts_grandchild_wait(pid);
	r->transient = e == TRANSIENT;
	return e == 0 ? 0 : EPERM;
}

/* Returns an existing directory, which a trial uses as mount point in its new mount namespace. */
static const char *mount_point(const struct probe *p)
{
	return p->dir[0] ? p->dir : "/proc";
}

int try_pivot(const struct probe *p, int arg, struct report *r)
{
	const int e = facts_enter_ns(p, CLONE_NEWNS);

	(void)arg, (void)r;
	if (e != 0)
		return e;
	if (mount("tmpfs", mount_point(p), "tmpfs", MS_NOSUID | MS_NODEV, "size=64k") < 0 ||
	    chdir(mount_point(p)) < 0 || mkdir("inside", 0700) < 0 ||
	    syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
	    chdir("/") < 0)
		return errno;
	return access("/inside", F_OK) == 0 && access("/proc", F_OK) < 0 ? 0 : EPERM;
}

int try_mount_api(const struct probe *p, int arg, struct report *r)
{
	const struct mount_attr_v0 ro = { .attr_set = MOUNT_RDONLY };
	const char *at = mount_point(p);
	/* These descriptors are not closed: the process exits right after. */
	int fs, mnt, tree;
	const int e = facts_enter_ns(p, CLONE_NEWNS);

	(void)arg, (void)r;
	if (e != 0)
		return e;
	fs = (int)syscall(SYS_fsopen, "tmpfs", 1);
	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CREATE, NULL, NULL, 0) < 0)
		return errno;
	mnt = (int)syscall(SYS_fsmount, fs, 1, 0);
	if (mnt < 0 || syscall(NR_MOUNT_SETATTR, mnt, "", AT_EMPTY_PATH, &ro, sizeof(ro)) < 0 ||
	    syscall(SYS_move_mount, mnt, "", AT_FDCWD, at, MOVE_EMPTY_PATH) < 0)
		return errno;
	tree = (int)syscall(SYS_open_tree, AT_FDCWD, at, TREE_CLONE);
	if (tree < 0)
		return errno;
	/* Any other result means that the read-only attribute had no effect. */
	return mkdirat(tree, "x", 0700) < 0 && errno == EROFS ? 0 : EPERM;
}

/* Sends one netlink request and receives its acknowledgement. Returns 0 or an errno. */
static int netlink_ask(int fd, struct nlmsghdr *h)
{
	char answer[512] __attribute__((aligned(8)));
	const struct nlmsghdr *a = (const void *)answer;
	ssize_t n;
	int code;

	if (send(fd, h, h->nlmsg_len, 0) < 0)
		return errno;
	n = recv(fd, answer, sizeof(answer), 0);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(code)) || a->nlmsg_type != NLMSG_ERROR)
		return EPROTO;
	memcpy(&code, answer + NLMSG_HDRLEN, sizeof(code));
	return -code;
}

static int lo_up(int fd, int lo)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg i;
	} m = {
		.h = { sizeof(m), RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, 1, 0 },
		.i = { .ifi_index = lo, .ifi_flags = IFF_UP, .ifi_change = IFF_UP },
	};

	return netlink_ask(fd, &m.h);
}

/* Equivalent to: ip route add local 198.18.0.0/15 dev lo. */
static int add_local_route(int fd, int lo)
{
	struct {
		struct nlmsghdr h;
		struct rtmsg r;
		struct rtattr dst_h;
		uint32_t dst;
		struct rtattr oif_h;
		int32_t oif;
	} m = {
		.h = { sizeof(m), RTM_NEWROUTE,
		       NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, 2, 0 },
		.r = { .rtm_family = AF_INET, .rtm_dst_len = 15, .rtm_table = RT_TABLE_LOCAL,
		       .rtm_protocol = RTPROT_BOOT, .rtm_scope = RT_SCOPE_HOST,
		       .rtm_type = RTN_LOCAL },
		.dst_h = { RTA_LENGTH(sizeof(uint32_t)), RTA_DST },
		.dst = htonl(0xc6120000),
		.oif_h = { RTA_LENGTH(sizeof(int32_t)), RTA_OIF },
		.oif = lo,
	};

	return netlink_ask(fd, &m.h);
}

int try_anyip(const struct probe *p, int arg, struct report *r)
{
	const struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(443),
					.sin_addr = { htonl(0xc6120005) } };
	struct sockaddr_in peer = { 0 };
	socklen_t len = sizeof(peer);
	int e = facts_enter_ns(p, CLONE_NEWNET);
	int lo, nl, in, out;

	(void)arg, (void)r;
	if (e != 0)
		return e;
	lo = (int)if_nametoindex("lo");
	nl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (lo == 0 || nl < 0)
		return errno;
	e = lo_up(nl, lo);
	if (e == 0)
		e = add_local_route(nl, lo);
	if (e != 0)
		return e;
	in = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (in < 0 || out < 0 || bind(in, (const void *)&to, sizeof(to)) < 0 ||
	    listen(in, 1) < 0 || connect(out, (const void *)&to, sizeof(to)) < 0 ||
	    getpeername(out, (void *)&peer, &len) < 0)
		return errno;
	return peer.sin_addr.s_addr == to.sin_addr.s_addr ? 0 : EPROTO;
}

/*
 * Detects a seccomp filter on unshare(); succeeds if there is none. The kernel answers EINVAL to an
 * unknown flag before any other check, so another error comes from a filter.
 */
static int try_filter_in_front(const struct probe *p, int arg, struct report *r)
{
	(void)p, (void)arg, (void)r;
	if (unshare(CLONE_NEWUSER | 1) == 0)
		return EPERM;
	return errno == EINVAL ? 0 : errno;
}

/*
 * Detects a chroot(), in which the kernel refuses user namespaces. In a chroot no mount point is
 * "/".
 */
static bool in_chroot(void)
{
	scoped_buf b = BUF_INIT(1024 * 1024);
	struct writ_err err;
	struct sv all;

	if (fd_read_file("/proc/self/mountinfo", &b, &err) < 0)
		return false;
	for (all = buf_view(&b); all.n;) {
		struct sv line = sv_cut(&all, '\n');

		for (int i = 0; i < 4; i++) /* skip id, parent, device, root */
			(void)sv_cut(&line, ' ');
		if (sv_is(sv_cut(&line, ' '), "/"))
			return false;
	}
	return true;
}

const char *facts_why_no_userns(const struct probe *p, const struct host_facts *f,
				const struct report *r)
{
	const bool made = r->v[0] == 1;
	const int e = r->sys;

	if (e == ENOSYS || e == EINVAL)
		return "kernel";
	if (e == ENOSPC || e == EUSERS ||
	    facts_read_number("/proc/sys/user/max_user_namespaces", 1) == 0)
		return "max";
	if (!trial_ok(p, try_filter_in_front, 0))
		return "seccomp";
	if (!f->root && facts_read_number("/proc/sys/kernel/unprivileged_userns_clone", 1) == 0)
		return "sysctl";
	if (f->apparmor_userns && !f->root)
		return "apparmor";
	if (e == EACCES || (made && e == EPERM))
		return "lsm";
	if (in_chroot())
		return "chroot";
	return f->sandboxed ? "seccomp" : "other";
}

/* clang-format off */
static const struct {
	size_t offset;
	int flag;
} kinds[] = {
	{ offsetof(struct host_facts, ns_mount),  CLONE_NEWNS },
	{ offsetof(struct host_facts, ns_pid),	  CLONE_NEWPID },
	{ offsetof(struct host_facts, ns_net),	  CLONE_NEWNET },
	{ offsetof(struct host_facts, ns_ipc),	  CLONE_NEWIPC },
	{ offsetof(struct host_facts, ns_uts),	  CLONE_NEWUTS },
	{ offsetof(struct host_facts, ns_cgroup), CLONE_NEWCGROUP },
	{ offsetof(struct host_facts, ns_time),	  NS_TIME },
};
/* clang-format on */

/* Tries all kinds of namespaces at once, as a jail does. */
int try_all_ns(const struct probe *p, int arg, struct report *r)
{
	int all = 0;

	(void)arg;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		all |= kinds[i].flag;
	return try_ns(p, all, r);
}

static void set_kind(struct host_facts *f, size_t i, bool can)
{
	memcpy((char *)f + kinds[i].offset, &can, sizeof(can));
}

void facts_take_all_ns(const struct report *r, struct host_facts *f)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		set_kind(f, i, r->sys == 0);
}

void probe_each_ns(const struct probe *p, struct host_facts *f)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		bool can = trial_ok(p, try_ns, kinds[i].flag);

		if (!can && p->userns && f->caps_sys_admin)
			can = trial_ok(p, try_ns_direct, kinds[i].flag);
		set_kind(f, i, can);
	}
}
