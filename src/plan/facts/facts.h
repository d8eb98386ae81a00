/*
 * facts.h - what this kernel and machine can enforce, for this user, now
 *
 * Theory of operation
 *
 * A plan must never promise what the machine cannot enforce. Version numbers and sysctls do not
 * answer that: a container, a security module, a filter or a missing delegation can forbid a
 * feature that the kernel has. The facts module therefore tries each feature the way a jail uses
 * it, in a child process, and records the results in struct host_facts. plan/ decides from that
 * record alone.
 *
 * Files:
 *   facts         the record: one table lists every member; printer, parser and JSON use it
 *   probe         runs the trials (probe_child: one trial in a child with a time limit;
 *                 probe_ns, _landlock, _seccomp, _fs, _cgroup, _scope, _env: the trials;
 *                 probe_host, _subid, _tools: facts that are read, not tried;
 *                 probe_tmp: the temporary directory for trials, and its removal)
 *   cgroup        finds the cgroup directories of this process
 *   dbus, scope   ask the user's systemd for a scope with limits
 *   advisory      known vulnerabilities, compared with the facts
 *
 * The record is a plain value. It can be printed, stored, compared and replayed: `writ explain
 * --facts FILE` plans for another machine.
 *
 * Invariants
 *   - Zero means "cannot". An empty record promises nothing, and a trial that fails, crashes, hangs
 *     or is killed leaves a zero.
 *   - A trial leaves nothing behind: namespaces, temporary files and cgroups are gone when probing
 *     returns, and soon after the prober is killed.
 *   - A failure that may be temporary (memory, descriptors, a timeout) sets .transient_failure, and
 *     such a record is not cached.
 *
 * Common mistakes
 *   - Probing after the process restricted itself: the record then describes the restrictions.
 *   - Adding a member without a row in the table in facts.c. It would not be printed or parsed.
 *
 * Reads:  nothing (probe.h fills the record by trying)
 * Writes: nothing
 * Next:   plan/ decides from facts and capabilities alone
 */
#ifndef WRIT_FACTS_FACTS_H
#define WRIT_FACTS_FACTS_H

#include "base/buf.h"

enum { FACT_STR = 64 };

enum fact_cgroup { CGROUP_NONE = 0, CGROUP_V1, CGROUP_HYBRID, CGROUP_V2 };
enum fact_where { WHERE_HOST = 0, WHERE_CONTAINER, WHERE_VM, WHERE_WSL1, WHERE_WSL2 };

struct host_facts {
	/* Identity and environment */
	char kernel[FACT_STR];	/* kernel release, such as "6.18.44-generic" */
	char kernel_base[FACT_STR]; /* upstream version that the kernel was built from: "6.18.44" */
	char arch[FACT_STR];	    /* machine, such as "x86_64" */
	char distro[FACT_STR];	    /* distribution, such as "debian 12" */
	uint64_t uid;
	bool root;		/* the effective uid is 0 */
	bool caps_sys_admin;	/* this process has CAP_SYS_ADMIN in its own user namespace */
	bool groups_extra;	/* this process has supplementary groups besides the primary one */
	bool transient_failure; /* not a fact: a trial failed for a reason that may be temporary */
	uint64_t where;		/* enum fact_where */
	char container[FACT_STR]; /* kind of container: docker podman lxc nspawn k8s ... or "" */
	/* A seccomp filter or Landlock domain applied to this process before probing. */
	bool sandboxed;

	/* Namespaces: each tried in a child as this user */
	bool ns_user;
	bool ns_user_nested; /* a second level of user namespaces works, with its id map written */
	bool ns_mount, ns_pid, ns_net, ns_ipc, ns_uts, ns_cgroup, ns_time;
	bool proc_mount; /* a fresh /proc can be mounted in a new pid namespace */
	bool pivot_root;
	/*
	 * A local route for 198.18.0.0/15 on lo works, and connections to an address in that range.
	 */
	bool anyip;
	bool new_mount_api;	/* fsopen, open_tree and mount_setattr work */
	/* Reason why ns_user is false: apparmor sysctl seccomp max ... */
	char userns_limit[FACT_STR];
	/* newuidmap and newgidmap can write id maps, and this user has ranges of ids */
	bool subids;

	/* Landlock */
	uint64_t landlock_abi; /* ABI version of Landlock; 0: not available */
	uint64_t landlock_errata;

	/* Seccomp */
	bool seccomp_filter;
	bool seccomp_notify; /* a listener can be created, and receives and answers calls */
	bool seccomp_addfd, seccomp_addfd_send, seccomp_wait_killable, seccomp_sync_wake;
	/* Another process already holds a listener of this process's filters. */
	bool seccomp_listener_exists;
	bool pidfd_getfd;

	/* Files */
	/* Overlayfs works in a user namespace with userxattr, upper directory on disk. */
	bool overlay;
	bool overlay_tmpfs; /* overlayfs works with the upper directory on tmpfs */
	bool reflink;	    /* FICLONE works in the temporary directory of the trials */
	bool fuse;	    /* this user can open /dev/fuse */
	bool openat2;

	/* Resources */
	uint64_t cgroup;	/* enum fact_cgroup */
	/* A trial applied each of these limits to a child. */
	bool cgroup_memory, cgroup_cpu, cgroup_pids;
	bool cgroup_kill, cgroup_freeze;
	bool systemd_user; /* the user's systemd accepts this user on its private socket */
	/* A trial showed that scopes of the user's systemd apply these limits. */
	bool scope_memory, scope_cpu, scope_pids;
	bool rlimit_nproc_userns; /* RLIMIT_NPROC counts per user namespace */

	/* LSMs and sysctls */
	char lsm[FACT_STR];	/* active security modules: "lockdown,capability,landlock" */
	bool apparmor_userns;	/* AppArmor restricts unprivileged user namespaces */
	bool selinux_enforcing;
	uint64_t yama;		/* value of Yama's ptrace_scope, 0 to 3; 0 also without Yama */
	bool io_uring;		/* io_uring is not disabled for this process */
	bool memfd_noexec;	/* vm.memfd_noexec is 1 or 2 */
	bool tiocsti;		/* TIOCSTI works: dev.tty.legacy_tiocsti is on or does not exist */
	bool compat32;		/* 32-bit system calls work */

	/* KVM, and versions of other engines, "" if not installed */
	bool kvm; /* this user can open /dev/kvm */
	char crun[FACT_STR], runc[FACT_STR], runsc[FACT_STR];
	char podman[FACT_STR], docker[FACT_STR];
	char qemu[FACT_STR], firecracker[FACT_STR], wasmtime[FACT_STR];
	char bwrap[FACT_STR];
};

/* Type of a member of struct host_facts, which determines how it is stored and printed. */
enum fact_type { FACT_BOOL = 0, FACT_NUM, FACT_WORD, FACT_TEXT };

/*
 * Description of one member of struct host_facts. The table in facts.c is the only list of members.
 */
struct fact {
	const char *name;
	enum fact_type type;
	size_t offset, size;
	uint64_t max;		   /* FACT_NUM: maximum; FACT_WORD: maximum index into @words */
	const char *const *words;  /* FACT_WORD: the max + 1 possible words */
	const char *group, *about; /* heading of the fact, and one line of description for people */
};

/*
 * Checks whether limits of a session can only come from a scope of the user's systemd: in the
 * unified hierarchy, if no cgroup controller was delegated to this user. A process is in one
 * cgroup, so its limits cannot come from a delegated cgroup and a scope at once.
 */
static inline bool facts_scope(const struct host_facts *f)
{
	return f->cgroup == CGROUP_V2 && !f->cgroup_memory && !f->cgroup_cpu && !f->cgroup_pids;
}

size_t facts_count(void);
/*
 * Returns row @i of the table, which lives as long as the program, or NULL if @i is past the end.
 */
const struct fact *facts_at(size_t i);
/* Finds a row of the table by name; returns NULL if there is no such row. */
const struct fact *facts_find(struct sv name);
/*
 * Returns the text of the fact @row of @f, as a view into @f. The type of @row must be FACT_TEXT.
 */
struct sv facts_text(const struct host_facts *f, const struct fact *row);
/* Appends the value of the fact @row as facts_print() prints it; an empty text is "-". */
void facts_value(const struct host_facts *f, const struct fact *row, struct buf *b);

/*
 * Sets a text member of struct host_facts to @from. The text is trimmed and cut to fit, and bytes
 * that a record cannot contain (control characters, non-ASCII, quote, backslash) become '?'.
 */
void facts_set_text(char ret_text[static FACT_STR], struct sv from);

/* Prints "writ-facts 1", then one line "name value" per fact. facts_parse() reads this format. */
void facts_print(const struct host_facts *f, struct buf *b);
/*
 * Parses the text of a record. Unknown, repeated or missing names are errors, so that a record is
 * complete or refused. Skips empty lines and lines starting with '#'; the order of the lines does
 * not matter.
 */
must_check int facts_parse(struct sv text, struct host_facts *ret_f, struct writ_err *err);
/* Prints the record as one JSON object of booleans, numbers and strings. */
void facts_json(const struct host_facts *f, struct buf *b);

#endif
