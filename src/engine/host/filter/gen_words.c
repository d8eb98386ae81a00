/*
 * gen_words.c - the decision graph behind each word of filter/syscalls.tbl
 *
 * Most of the arguments that a filter compares have the type int in the kernel. The kernel ignores
 * the high half of such a register. So a filter compares only the low half: otherwise a caller
 * could hide a value by setting upper bits. The constants are those of x86-64 and arm64, which
 * agree. They are repeated here because headers of the build machine may differ.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>

#include "filter/filter.h"
#include "filter/gen_priv.h"

#include "base/banned.h"

enum {
	/* CLONE_NEWTIME, for unshare() only: in clone() this bit is part of the exit signal. */
	NEW_TIME = 0x80,
	NEW_NS = 0x00020000,
	/* CLONE_NEW* for mount, cgroup, uts, ipc, user, pid and net namespaces */
	NEW_ANY = 0x7e020000,
	OPEN_CREAT = 0100,
	OPEN_TRUNC = 01000,
	OPEN_ACCMODE = 3,
	OPEN_PATH = 010000000,
	OPEN_TMPFILE = 020000000, /* the bit of O_TMPFILE itself, without O_DIRECTORY */
	MODE_TYPE = 0170000,
	MODE_CHR = 0020000,
	MODE_BLK = 0060000,
	MODE_SET_ID = 06000,
	MEMFD_NOEXEC_SEAL = 8,
	EMPTY_PATH = 0x1000,
	SEND_OOB = 1,
	SEND_FASTOPEN = 0x20000000,
	SOCK_FLAGS = 02004000, /* SOCK_CLOEXEC, SOCK_NONBLOCK */
	SOCK_TYPE_BITS = 0xf,
	UNIX_FAMILY = 1,
	DATAGRAM_TYPE = 2,
	RAW_TYPE = 3, /* SOCK_RAW, which for AF_UNIX means the same as a datagram socket */
	LEVEL_TCP = 6,
	OPTION_TCP_ULP = 31,
	DUMPABLE_SET = 4,
	MM_SET = 35,
	PTRACER_SET = 0x59616d61,
};

/* Direction bits of an ioctl command; IOCTL_READ: the kernel only writes to the caller. */
#define IOCTL_DIRECTION 0xc0000000u
#define IOCTL_READ 0x80000000u

static uint32_t eperm(struct gen_pool *p)
{
	return gen_errno(p, EPERM);
}

/* Continues at @yes if any of @bits is set in argument @arg, else at @no. */
static uint32_t any_bit(struct gen_pool *p, unsigned int arg, uint32_t bits, uint32_t yes,
			uint32_t no)
{
	return gen_low(p, arg, gen_jump(p, BPF_JSET, bits, yes, no));
}

/* Continues at @yes if the loaded value is one of the @n sorted values @v, else at @no. */
static uint32_t one_of(struct gen_pool *p, const uint32_t *v, size_t n, uint32_t yes, uint32_t no)
{
	struct gen_span span[32];
	size_t m = 0;

	if (v[0])
		span[m++] = (struct gen_span){ 0, no, 1 };
	for (size_t i = 0; i < n; i++) {
		span[m++] = (struct gen_span){ v[i], yes, 0 };
		if (v[i] != UINT32_MAX && (i + 1 == n || v[i + 1] != v[i] + 1))
			span[m++] = (struct gen_span){ v[i] + 1, no, 1 };
	}
	return gen_switch(p, span, m);
}

/*
 * Like one_of(), but compares one value after the other, with fewer instructions in all and more
 * executed. For calls that are not frequent: all programs together have a limit of size.
 */
static uint32_t any_of(struct gen_pool *p, const uint32_t *v, size_t n, uint32_t yes, uint32_t no)
{
	for (size_t i = 0; i < n; i++)
		no = gen_jump(p, BPF_JEQ, v[i], yes, no);
	return no;
}

/* --- Base: decided without arguments --- */

static uint32_t base_allow(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	(void)bits, (void)arg;
	return gen_allow(p);
}

static uint32_t base_eperm(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	(void)bits, (void)arg;
	return eperm(p);
}

static uint32_t base_enosys(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	(void)bits, (void)arg;
	return gen_errno(p, ENOSYS);
}

/* Allows the call if any of the switches in @arg is on. */
static uint32_t base_switched(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	return bits & arg ? gen_allow(p) : eperm(p);
}

static uint32_t base_uring(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	(void)arg;
	return bits & FILTER_IO_URING ? gen_allow(p) : gen_errno(p, ENOSYS);
}

static uint32_t base_ipc(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	(void)arg;
	return bits & FILTER_TIER_B ? eperm(p) : gen_allow(p);
}

/* --- Base: decided by arguments --- */

/*
 * Refuses clone() and unshare() if argument 0 has any of the flags @arg, which make namespaces;
 * allows all flags with `kernel nested-userns`.
 */
static uint32_t base_spaces(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	if (bits & FILTER_NESTED_USERNS)
		return gen_allow(p);
	return any_bit(p, 0, arg, eperm(p), gen_allow(p));
}

static uint32_t base_open(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	uint32_t mode = any_bit(p, arg + 1, MODE_SET_ID, eperm(p), gen_allow(p));

	(void)bits;
	/* Without these flags the kernel ignores the mode argument, which may hold anything. */
	return any_bit(p, arg, OPEN_CREAT | OPEN_TMPFILE, mode, gen_allow(p));
}

static uint32_t base_mode(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	(void)bits;
	return any_bit(p, arg, MODE_SET_ID, eperm(p), gen_allow(p));
}

static uint32_t base_mknod(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	static const uint32_t devices[] = { MODE_CHR, MODE_BLK };
	uint32_t type = one_of(p, devices, ARRAY_LEN(devices), eperm(p), gen_allow(p));

	(void)bits;
	return any_bit(p, arg, MODE_SET_ID, eperm(p), gen_mask(p, MODE_TYPE, type));
}

/*
 * Decides commands of file systems, which have type bytes of their own. SECURITY: the owner of a
 * file may change what others see through a descriptor for reading, past Landlock and the mediator:
 * make a subvolume read-only, a name in a directory, another version of a file. New commands come
 * with new kernels. So only those are allowed that read (direction _IOC_READ alone, and FIEMAP),
 * that need a descriptor for writing, or that the trap filter traps.
 */
static uint32_t file_command(struct gen_pool *p, unsigned int arg)
{
	static const uint32_t allowed[] = {
		0xc020660b, /* FS_IOC_FIEMAP */
		0x4020940d, /* FICLONERANGE */
		0x40049409, /* FICLONE */
		0x40086602, /* FS_IOC_SETFLAGS: trapped */
	};
	const uint32_t reads = gen_jump(p, BPF_JEQ, IOCTL_READ, gen_allow(p), eperm(p));

	return gen_low(p, arg, any_of(p, allowed, ARRAY_LEN(allowed), gen_allow(p),
				      gen_mask(p, IOCTL_DIRECTION, reads)));
}

static uint32_t base_ioctl(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	static const uint32_t refused[] = {
		0x5412, /* TIOCSTI: inserts input into the terminal */
		0x541c, /* TIOCLINUX: pastes into the console */
		0x541d, /* TIOCCONS: redirects the console */
		0x5423, /* TIOCSETD: selects a line discipline, which may load a module */
	};
	static const uint32_t types[] = {
		0x6600, /* ext4, FS_IOC_SETFLAGS, encryption, verity */
		0x7200, /* FAT */
		0x7600, /* FS_IOC_SETVERSION */
		0x9400, /* Btrfs, clones */
	};
	const uint32_t tty = gen_low(
		p, arg, any_of(p, refused, ARRAY_LEN(refused), eperm(p), gen_allow(p)));
	const uint32_t file = file_command(p, arg);

	(void)bits;
	return gen_low(p, arg, gen_mask(p, 0xff00, one_of(p, types, ARRAY_LEN(types), file, tty)));
}

static uint32_t base_memfd(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	if (!(bits & FILTER_EXEC_LIST))
		return gen_allow(p);
	/* EACCES is the kernel's own answer without MFD_NOEXEC_SEAL if vm.memfd_noexec is 2. */
	return any_bit(p, arg, MEMFD_NOEXEC_SEAL, gen_allow(p), gen_errno(p, EACCES));
}

/*
 * Under a list of allowed programs, every program must be started by its path: Landlock, which
 * enforces the list, does not restrict a file without a path. So the filter refuses AT_EMPTY_PATH.
 * This also binds writ-init when it starts the first program.
 */
static uint32_t base_execveat(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	if (!(bits & FILTER_EXEC_LIST))
		return gen_allow(p);
	return any_bit(p, arg, EMPTY_PATH, gen_errno(p, EACCES), gen_allow(p));
}

static uint32_t base_prctl(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	uint32_t no = eperm(p), go = gen_allow(p);
	uint32_t at = gen_jump(p, BPF_JEQ, MM_SET, no, go), zero = 0;

	if (bits & FILTER_TIER_B) {
		/*
		 * Report success for PR_SET_DUMPABLE 0, but do not make the process undumpable: the
		 * mediator could not read the memory of such a process.
		 */
		zero = gen_jump(p, BPF_JEQ, 0, gen_errno(p, 0), go);
		at = gen_jump(p, BPF_JEQ, DUMPABLE_SET, gen_low(p, arg + 1, zero), at);
		at = gen_jump(p, BPF_JEQ, PTRACER_SET, no, at);
	}
	return gen_low(p, arg, at);
}

static uint32_t base_personality(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	static const uint32_t harmless[] = {
		0,		     /* PER_LINUX */
		0x8,		     /* PER_LINUX32: uname reports 32 bit */
		0x20000,	     /* UNAME26 */
		0x20008,    0x40000, /* ADDR_NO_RANDOMIZE: used by debuggers and Lisp images */
		0xffffffff,	     /* query only */
	};

	(void)bits;
	return gen_low(p, arg, one_of(p, harmless, ARRAY_LEN(harmless), gen_allow(p), eperm(p)));
}

/*
 * Decides calls that change scheduling or resource limits of a process, whose pid is argument @arg.
 * In the host's pid namespace (tier B) these calls reach every process of the same user, and
 * Landlock does not restrict them. So in tier B the filter allows them only for the calling process
 * itself (pid 0).
 */
static uint32_t base_own(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	if (!(bits & FILTER_TIER_B))
		return gen_allow(p);
	return gen_low(p, arg, gen_jump(p, BPF_JEQ, 0, gen_allow(p), eperm(p)));
}

/* Like base_own(), but for an id in argument 1 whose kind argument 0 gives; allows only @kind. */
static uint32_t base_own_kind(struct gen_pool *p, uint32_t bits, unsigned int kind)
{
	if (!(bits & FILTER_TIER_B))
		return gen_allow(p);
	return gen_low(p, 0, gen_jump(p, BPF_JEQ, kind, base_own(p, bits, 1), eperm(p)));
}

static uint32_t base_socket(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	static const uint32_t inet_protocols[] = { 0, 6, 17 }; /* any, TCP, UDP */
	static const uint32_t inet_types[] = { 1, 2 };	       /* STREAM, DGRAM */
	uint32_t no = gen_errno(p, EAFNOSUPPORT), go = gen_allow(p);
	uint32_t proto = gen_errno(p, EPROTONOSUPPORT);
	uint32_t route = gen_low(p, arg + 2, gen_jump(p, BPF_JEQ, 0, go, proto));
	uint32_t inet = one_of(p, inet_protocols, ARRAY_LEN(inet_protocols), go, proto);

	inet = one_of(p, inet_types, ARRAY_LEN(inet_types), gen_low(p, arg + 2, inet), eperm(p));
	inet = gen_low(p, arg + 1, gen_mask(p, ~(uint32_t)SOCK_FLAGS, inet));
	return gen_low(p, arg,
		       gen_switch(p,
				  (struct gen_span[]){
					  { 0, no, 1 },
					  { 1, go, 10 },   /* AF_UNIX */
					  { 2, inet, 10 }, /* AF_INET */
					  { 3, no, 1 },
					  { 10, inet, 10 }, /* AF_INET6 */
					  { 11, no, 1 },
					  { 16, bits & FILTER_TIER_B ? no : route, 2 },
					  { 17, no, 1 },
				  },
				  8));
}

static uint32_t base_socketpair(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	(void)bits;
	return gen_low(p, arg, gen_jump(p, BPF_JEQ, 1, gen_allow(p), gen_errno(p, EAFNOSUPPORT)));
}

/*
 * Tier B uses the host's network. Joining a multicast group there announces a number of the agent's
 * choice to the local network, which leaks data. Other options choose the interface, the source or
 * the route of packets: with route_localnet on the host, IP_UNICAST_IF sends a datagram that was
 * redirected to the loopback out on the wire. SECURITY: so of the options of the IP levels tier B
 * allows only those that programs need and that choose nothing of this, and no option that a later
 * kernel adds. TCP_ULP is refused in both tiers.
 */
static uint32_t base_setsockopt(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	static const uint32_t sock[] = { 25, 62 }; /* BINDTODEVICE, BINDTOIFINDEX */
	/*
	 * IP_TOS, IP_TTL, IP_PKTINFO (for received packets), IP_MTU_DISCOVER, IP_RECVERR,
	 * IP_RECVTTL, IP_RECVTOS, IP_BIND_ADDRESS_NO_PORT, IP_MULTICAST_ALL
	 */
	static const uint32_t ip[] = { 1, 2, 8, 10, 11, 12, 13, 24, 49 };
	/*
	 * IPV6_UNICAST_HOPS, IPV6_MTU_DISCOVER, IPV6_RECVERR, IPV6_V6ONLY, IPV6_MULTICAST_ALL,
	 * IPV6_RECVPKTINFO, IPV6_DONTFRAG, IPV6_RECVTCLASS, IPV6_TCLASS
	 */
	static const uint32_t ip6[] = { 16, 23, 25, 26, 29, 49, 62, 66, 67 };
	uint32_t go = gen_allow(p), no = eperm(p);
	/*
	 * Refuse TCP_ULP with ENOENT, the errno of a kernel that lacks the requested ULP module.
	 */
	uint32_t tcp =
		gen_low(p, arg + 1, gen_jump(p, BPF_JEQ, OPTION_TCP_ULP, gen_errno(p, ENOENT), go));
	uint32_t at[3] = { go, go, go };

	if (bits & FILTER_TIER_B) {
		at[0] = gen_low(p, arg + 1, one_of(p, ip, ARRAY_LEN(ip), go, no));
		at[1] = gen_low(p, arg + 1, one_of(p, sock, ARRAY_LEN(sock), no, go));
		at[2] = gen_low(p, arg + 1, one_of(p, ip6, ARRAY_LEN(ip6), go, no));
	}
	return gen_low(p, arg,
		       gen_switch(p,
				  (struct gen_span[]){
					  { 0, at[0], 1 }, /* IPPROTO_IP */
					  { 1, at[1], 1 }, /* SOL_SOCKET */
					  { 2, go, 1 },
					  { LEVEL_TCP, tcp, 10 },
					  { LEVEL_TCP + 1, go, 1 },
					  { 41, at[2], 1 }, /* IPPROTO_IPV6 */
					  { 42, go, 1 },
				  },
				  7));
}

static uint32_t base_send(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	uint32_t flags = SEND_OOB | (bits & FILTER_TIER_B ? (uint32_t)SEND_FASTOPEN : 0);

	return any_bit(p, arg, flags, gen_errno(p, EOPNOTSUPP), gen_allow(p));
}

/* --- Traps --- */

static uint32_t trap_if(struct gen_pool *p, uint32_t bits, uint32_t which)
{
	return bits & which ? gen_ret(p, SECCOMP_RET_USER_NOTIF) : gen_allow(p);
}

/* Traps the call if any of the traps in @arg is on. */
static uint32_t trap_any(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	return trap_if(p, bits, arg);
}

static uint32_t trap_open(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	uint32_t go = gen_allow(p), notify = gen_ret(p, SECCOMP_RET_USER_NOTIF);
	uint32_t then = notify;

	if (!(bits & (TRAP_READ | TRAP_WRITE)))
		return go;
	if (!(bits & TRAP_READ))
		then = gen_jump(p, BPF_JSET, OPEN_ACCMODE | OPEN_CREAT | OPEN_TRUNC | OPEN_TMPFILE,
				notify, go);
	/* With O_PATH the kernel ignores the other flags and gives no access to content. */
	return gen_low(p, arg, gen_jump(p, BPF_JSET, OPEN_PATH, go, then));
}

static uint32_t trap_ioctl(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	static const uint32_t sets[] = {
		0x40086602, /* FS_IOC_SETFLAGS */
		0x401c5820, /* FS_IOC_FSSETXATTR */
	};
	uint32_t notify = trap_if(p, bits, TRAP_META);

	if (!(bits & TRAP_META))
		return gen_allow(p);
	return gen_low(p, arg, one_of(p, sets, ARRAY_LEN(sets), notify, gen_allow(p)));
}

/*
 * Traps sendto() with an address. A send without an address uses the connection of the socket,
 * about which the mediator decided when the caller made it. A pointer is null only if both halves
 * of the register are 0.
 */
static uint32_t trap_sendto(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	uint32_t notify = trap_if(p, bits, TRAP_NET), go = gen_allow(p);

	if (notify == go)
		return go;
	return gen_low(p, arg,
		       gen_jump(p, BPF_JEQ, 0,
				gen_high(p, arg, gen_jump(p, BPF_JEQ, 0, go, notify)), notify));
}

/*
 * Traps the creation of a UNIX datagram socket where the filter does not trap all sends. The
 * address of a message is in memory, which a filter cannot read. Only datagram sockets use such an
 * address, and the type of a new socket is in a register.
 */
static uint32_t trap_datagram(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	static const uint32_t types[] = { DATAGRAM_TYPE, RAW_TYPE };
	uint32_t notify = trap_if(p, bits & TRAP_NET ? 0 : bits, TRAP_UNIX), go = gen_allow(p);
	uint32_t type;

	if (notify == go)
		return go;
	type = gen_mask(p, SOCK_TYPE_BITS, one_of(p, types, ARRAY_LEN(types), notify, go));
	return gen_low(p, arg, gen_jump(p, BPF_JEQ, UNIX_FAMILY, gen_low(p, arg + 1, type), go));
}

/* --- Keeper --- */

static uint32_t keeper_newns(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	(void)bits;
	return gen_low(p, arg, gen_jump(p, BPF_JEQ, NEW_NS, gen_allow(p), eperm(p)));
}

static uint32_t keeper_sigkill(struct gen_pool *p, uint32_t bits, unsigned int arg)
{
	(void)bits;
	return gen_low(p, arg, gen_jump(p, BPF_JEQ, SIGKILL, gen_allow(p), eperm(p)));
}

/* clang-format off */
static const struct gen_word base_words[] = {
	{ "allow", base_allow, 0, "allowed" },
	{ "eperm", base_eperm, 0, "refused with EPERM" },
	{ "enosys", base_enosys, 0, "refused with ENOSYS" },
	{ "nested", base_switched, FILTER_NESTED_USERNS, "EPERM; allowed with `kernel nested-userns`" },
	{ "traced", base_switched, FILTER_PTRACE_OWN, "EPERM; allowed with `kernel ptrace-own`" },
	{ "uring", base_uring, 0, "ENOSYS; allowed with `kernel io_uring`" },
	{ "ipc", base_ipc, 0, "allowed in tier A, where the namespace is the sandbox's own; EPERM in tier B" },
	{ "clone", base_spaces, NEW_ANY, "any CLONE_NEW flag: EPERM; allowed with `kernel nested-userns`" },
	{ "unshare", base_spaces, NEW_ANY | NEW_TIME, "any CLONE_NEW flag: EPERM; allowed with `kernel nested-userns`" },
	{ "open1", base_open, 1, "creating with a set-user-id or set-group-id mode: EPERM" },
	{ "open2", base_open, 2, "creating with a set-user-id or set-group-id mode: EPERM" },
	{ "mode1", base_mode, 1, "a set-user-id or set-group-id mode: EPERM" },
	{ "mode2", base_mode, 2, "a set-user-id or set-group-id mode: EPERM" },
	{ "mknod1", base_mknod, 1, "devices, and set-user-id or set-group-id modes: EPERM" },
	{ "mknod2", base_mknod, 2, "devices, and set-user-id or set-group-id modes: EPERM" },
	{ "ioctl", base_ioctl, 1, "TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD, and commands of file systems but those that only read, clone or set flags: EPERM" },
	{ "memfd", base_memfd, 1, "allowed; under an exec list EACCES without MFD_NOEXEC_SEAL" },
	{ "execveat", base_execveat, 4, "allowed; under an exec list EACCES with AT_EMPTY_PATH" },
	{ "prctl", base_prctl, 0, "PR_SET_MM: EPERM; in tier B also PR_SET_PTRACER, and PR_SET_DUMPABLE 0 is answered but not done" },
	{ "personality", base_personality, 0, "PER_LINUX, PER_LINUX32, UNAME26, ADDR_NO_RANDOMIZE, and asking; else EPERM" },
	{ "own0", base_own, 0, "in tier B only for oneself; else EPERM" },
	{ "priority", base_own_kind, 0 /* PRIO_PROCESS */, "in tier B only for oneself; else EPERM" },
	{ "ioprio", base_own_kind, 1 /* IOPRIO_WHO_PROCESS */, "in tier B only for oneself; else EPERM" },
	{ "socket", base_socket, 0, "AF_UNIX; AF_INET, AF_INET6: TCP, UDP (other types EPERM, protocols EPROTONOSUPPORT); NETLINK_ROUTE in tier A; else EAFNOSUPPORT" },
	{ "socketpair", base_socketpair, 0, "AF_UNIX; else EAFNOSUPPORT" },
	{ "setsockopt", base_setsockopt, 1, "TCP_ULP: ENOENT; in tier B choosing an interface, and options of IP and IPv6 that are not known as harmless: EPERM" },
	{ "send2", base_send, 2, "MSG_OOB, and MSG_FASTOPEN in tier B: EOPNOTSUPP" },
	{ "send3", base_send, 3, "MSG_OOB, and MSG_FASTOPEN in tier B: EOPNOTSUPP" },
	{ NULL, NULL, 0, NULL },
};

static const struct gen_word trap_words[] = {
	{ "-", base_allow, 0, "never" },
	{ "exec", trap_any, TRAP_EXEC, "programs are observed" },
	{ "write", trap_any, TRAP_WRITE, "writes are mediated" },
	{ "opens", trap_any, TRAP_WRITE | TRAP_READ, "reads or writes are mediated" },
	{ "open1", trap_open, 1, "reads are mediated; or writes are, and the flags write, create or truncate; never with O_PATH" },
	{ "open2", trap_open, 2, "reads are mediated; or writes are, and the flags write, create or truncate; never with O_PATH" },
	{ "meta", trap_any, TRAP_META, "metadata is mediated" },
	{ "ioctl", trap_ioctl, 1, "metadata is mediated: FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR" },
	{ "net", trap_any, TRAP_NET, "the network is mediated" },
	{ "connect", trap_any, TRAP_NET | TRAP_UNIX, "the network or UNIX sockets are mediated" },
	{ "datagram", trap_datagram, 0, "UNIX sockets are mediated and the network is not: AF_UNIX with SOCK_DGRAM or SOCK_RAW" },
	{ "name", trap_any, TRAP_NET | TRAP_WRITE, "the network or writes are mediated: it makes the names of sockets" },
	{ "sendto", trap_sendto, 4, "the network is mediated, and an address is given" },
	{ NULL, NULL, 0, NULL },
};

static const struct gen_word keeper_words[] = {
	{ "-", base_eperm, 0, "refused" },
	{ "allow", base_allow, 0, "allowed" },
	{ "clone", base_spaces, NEW_ANY, "without new namespaces" },
	{ "newns", keeper_newns, 0, "CLONE_NEWNS and nothing else" },
	{ "sigkill", keeper_sigkill, 1, "SIGKILL only" },
	{ "socket", base_socket, 0, "as a jailed program in tier B" },
	{ "send2", base_send, 2, "without MSG_OOB and MSG_FASTOPEN" },
	{ NULL, NULL, 0, NULL },
};
/* clang-format on */

const struct gen_word *gen_word_at(enum gen_column column, size_t i)
{
	static const struct gen_word *const columns[] = {
		[GEN_BASE] = base_words,
		[GEN_TRAP] = trap_words,
		[GEN_KEEPER] = keeper_words,
	};
	const struct gen_word *w = &columns[column][i];

	return w->name ? w : NULL;
}

const struct gen_word *gen_word_find(enum gen_column column, const char *name)
{
	const struct gen_word *w;

	for (size_t i = 0; (w = gen_word_at(column, i)); i++)
		if (!strcmp(w->name, name))
			return w;
	return NULL;
}
