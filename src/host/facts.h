/*
 * facts.h - what this kernel and machine can enforce, for this user, now
 *
 * Reads:  nothing (host/probe.h fills it by trying things in a child)
 * Writes: nothing
 * Next:   plan/ decides from facts and capabilities alone
 *
 * A plain value: printable, recordable, replayable. The table in facts.c lists every
 * member but `shaky` once; printer, parser, JSON and documentation read that table.
 * Zero means "cannot", so an empty record promises nothing.
 */
#ifndef WRIT_HOST_FACTS_H
#define WRIT_HOST_FACTS_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum { FACT_STR = 64 };

enum fact_cgroup { CGROUP_NONE = 0, CGROUP_V1, CGROUP_HYBRID, CGROUP_V2 };
enum fact_where { WHERE_HOST = 0, WHERE_CONTAINER, WHERE_VM, WHERE_WSL1, WHERE_WSL2 };

struct host_facts {
	/* Who and where */
	char kernel[FACT_STR];	/* release: "6.18.44-generic" */
	char kernel_base[FACT_STR]; /* upstream version it was built from: "6.18.44" */
	char arch[FACT_STR];	/* "x86_64" */
	char distro[FACT_STR];	/* "debian 12" */
	uint64_t uid;
	bool root;		/* effective uid 0 */
	bool caps_sys_admin;	/* has CAP_SYS_ADMIN in its own user namespace */
	bool groups_extra;	/* supplementary groups besides the primary one */
	bool shaky;		/* no fact: something failed that may work the next time */
	uint64_t where;		/* enum fact_where */
	char container[FACT_STR]; /* docker podman lxc nspawn k8s ... or "" */
	bool sandboxed;		/* already in a sandbox (seccomp filter or Landlock domain) */

	/* Namespaces: each tried in a child as this user */
	bool ns_user;
	bool ns_user_nested;	/* a second level, with its id map written */
	bool ns_mount, ns_pid, ns_net, ns_ipc, ns_uts, ns_cgroup, ns_time;
	bool proc_mount;	/* a fresh /proc mounts in a new pid namespace */
	bool pivot_root;
	bool anyip;		/* local route for a pool of addresses on lo, and a bind to one */
	bool new_mount_api;	/* fsopen, open_tree, mount_setattr */
	char userns_limit[FACT_STR]; /* why ns_user is false: apparmor sysctl seccomp max ... */
	bool subids;		/* newuidmap and a range for this user */

	/* Landlock */
	uint64_t landlock_abi;	/* 0: none */
	uint64_t landlock_errata;

	/* seccomp */
	bool seccomp_filter;
	bool seccomp_notify;	/* a listener can be made */
	bool seccomp_addfd, seccomp_addfd_send, seccomp_wait_killable, seccomp_sync_wake;
	bool seccomp_listener_exists; /* someone already listens on our filter chain */
	bool pidfd_getfd;

	/* Files */
	bool overlay;		/* in a user namespace with userxattr, upper on disk */
	bool overlay_tmpfs;	/* same, upper on tmpfs */
	bool reflink;		/* FICLONE in the state directory */
	bool fuse;		/* /dev/fuse can be opened by this user */
	bool openat2;

	/* Resources */
	uint64_t cgroup;	/* enum fact_cgroup */
	bool cgroup_memory, cgroup_cpu, cgroup_pids; /* can limit a child with it, tried */
	bool cgroup_kill, cgroup_freeze;
	bool systemd_user;	/* a user manager that answers us */
	bool scope_memory, scope_cpu, scope_pids; /* its scopes hold this limit, tried */
	bool rlimit_nproc_userns; /* RLIMIT_NPROC counts per user namespace */

	/* LSMs and sysctls */
	char lsm[FACT_STR];	/* "lockdown,capability,landlock" */
	bool apparmor_userns;	/* restricts unprivileged user namespaces */
	bool selinux_enforcing;
	uint64_t yama;		/* ptrace_scope 0..3; 0 also without Yama */
	bool io_uring;		/* not disabled by sysctl */
	bool memfd_noexec;	/* vm.memfd_noexec >= 1 */
	bool tiocsti;		/* dev.tty.legacy_tiocsti is on */
	bool compat32;		/* 32-bit system calls answer */

	/* Other engines; versions, "" if absent */
	bool kvm;		/* /dev/kvm can be opened by this user */
	char crun[FACT_STR], runc[FACT_STR], runsc[FACT_STR];
	char podman[FACT_STR], docker[FACT_STR];
	char qemu[FACT_STR], firecracker[FACT_STR], wasmtime[FACT_STR];
	char bwrap[FACT_STR];
};

/* How a member is stored and written. */
enum fact_type { FACT_BOOL = 0, FACT_NUM, FACT_WORD, FACT_TEXT };

/* One row per member; the table in facts.c is the only list of them. */
struct fact {
	const char *name;
	enum fact_type type;
	size_t offset, size;
	uint64_t max;		   /* of a number or a word's index */
	const char *const *words;  /* FACT_WORD: max + 1 of them */
	const char *group, *about; /* heading and one line for people */
};

/*
 * Where no cgroup is ours to divide, the user's systemd makes one for us. Only then: a
 * process is in one cgroup, so its limits cannot come from two.
 */
static inline bool facts_scope(const struct host_facts *f)
{
	return f->cgroup == CGROUP_V2 && !f->cgroup_memory && !f->cgroup_cpu && !f->cgroup_pids;
}

size_t facts_count(void);
/* Tied to the program; NULL past the end. */
const struct fact *facts_at(size_t i);
/* NULL if there is no such fact. */
const struct fact *facts_find(struct sv name);
/* Appends the value as facts_print() writes it; an empty text is "-". */
void facts_value(const struct host_facts *f, const struct fact *row, struct buf *b);

/*
 * Sets a text member: cut to fit, and bytes a record cannot hold (control,
 * non-ASCII, quote, backslash) become '?'. Blanks at both ends go.
 */
void facts_set_text(char ret_text[static FACT_STR], struct sv from);

/* "writ-facts 1", then one line per fact, "name value"; facts_parse() reads it back. */
void facts_print(const struct host_facts *f, struct buf *b);
/*
 * Unknown, repeated or missing names are errors: a record is whole or refused.
 * Lines that begin with '#' and empty lines are skipped; the order is free.
 */
must_check int facts_parse(struct sv text, struct host_facts *ret_f, struct writ_err *err);
/* The same as one JSON object: true and false, numbers, strings. */
void facts_json(const struct host_facts *f, struct buf *b);

/* "6.18.44-x" -> 6, 18, 44; missing parts are 0. */
must_check bool facts_kernel(const struct host_facts *f, unsigned ret_v[static 3]);

#endif
