#include "facts/facts.h"

#include <string.h>

#include "base/banned.h"

static const char *const cgroup_words[] = {
	[CGROUP_NONE] = "none", [CGROUP_V1] = "v1",
	[CGROUP_HYBRID] = "hybrid", [CGROUP_V2] = "v2",
};
static const char *const where_words[] = {
	[WHERE_HOST] = "host", [WHERE_CONTAINER] = "container", [WHERE_VM] = "vm",
	[WHERE_WSL1] = "wsl1", [WHERE_WSL2] = "wsl2",
};

static const char header[] = "writ-facts 1";
enum { RECORD_MAX = 64 * 1024 };

#define AT(member) offsetof(struct host_facts, member), sizeof(((struct host_facts *)0)->member)
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a bool is the low byte of a number");
#define B(member, group, about) { #member, FACT_BOOL, AT(member), 1, NULL, group, about }
#define N(member, max, group, about) { #member, FACT_NUM, AT(member), max, NULL, group, about }
#define W(member, words, group, about) \
	{ #member, FACT_WORD, AT(member), ARRAY_LEN(words) - 1, words, group, about }
#define T(member, group, about) { #member, FACT_TEXT, AT(member), 0, NULL, group, about }

#define WHO "who and where"
#define NS "namespaces"
#define LL "landlock"
#define SC "seccomp"
#define FS "files"
#define RES "resources"
#define LSM "security modules and sysctls"
#define ENG "other engines"

/* clang-format off */
static const struct fact facts[] = {
	T(kernel, WHO, "kernel release, as uname -r says it"),
	T(kernel_base, WHO, "upstream version the kernel was built from, where the vendor says it"),
	T(arch, WHO, "machine, as uname -m says it"),
	T(distro, WHO, "ID and VERSION_ID of /etc/os-release"),
	N(uid, UINT32_MAX, WHO, "effective user id"),
	B(root, WHO, "the effective user id is 0"),
	B(caps_sys_admin, WHO, "has CAP_SYS_ADMIN in its own user namespace"),
	B(groups_extra, WHO, "has supplementary groups besides the primary one"),
	W(where, where_words, WHO, "on a host, in a container, in a virtual machine or in WSL"),
	T(container, WHO, "container engine, if one can be named"),
	B(sandboxed, WHO, "a seccomp filter or a Landlock domain was on us before we did anything"),

	B(ns_user, NS, "user namespace, with its id map written and capabilities inside"),
	B(ns_user_nested, NS, "a second level of user namespace, with its id map written"),
	B(ns_mount, NS, "mount namespace whose mounts can be made private"),
	B(ns_pid, NS, "pid namespace"),
	B(ns_net, NS, "network namespace"),
	B(ns_ipc, NS, "ipc namespace"),
	B(ns_uts, NS, "uts namespace"),
	B(ns_cgroup, NS, "cgroup namespace"),
	B(ns_time, NS, "time namespace"),
	B(proc_mount, NS, "a fresh /proc mounts in a new pid namespace"),
	B(pivot_root, NS, "pivot_root into a tmpfs, old root detached"),
	B(anyip, NS, "local route 198.18.0.0/15 on lo, bind and connect to an address of it"),
	B(new_mount_api, NS, "fsopen, fsmount, open_tree, mount_setattr and move_mount"),
	T(userns_limit, NS, "why not: kernel max sysctl apparmor seccomp chroot lsm other"),
	B(subids, NS, "newuidmap and newgidmap work and a range stands in subuid and subgid"),

	N(landlock_abi, 1000, LL, "Landlock ABI, restrict_self tried; 0 is none"),
	N(landlock_errata, UINT32_MAX, LL, "bit mask of fixed Landlock errata"),

	B(seccomp_filter, SC, "a filter can be installed"),
	B(seccomp_notify, SC, "a listener can be made, and receives and answers"),
	B(seccomp_addfd, SC, "a descriptor can be added to the target"),
	B(seccomp_addfd_send, SC, "a descriptor can be added and the call answered in one step"),
	B(seccomp_wait_killable, SC, "the target waits killable once its call was received"),
	B(seccomp_sync_wake, SC, "synchronous wake-up between target and supervisor"),
	B(seccomp_listener_exists, SC, "someone already listens on our filter chain"),
	B(pidfd_getfd, SC, "a parent can take a descriptor from its child"),

	B(overlay, FS, "overlayfs with userxattr, upper on disk: copy up and whiteout tried"),
	B(overlay_tmpfs, FS, "the same with the upper on tmpfs"),
	B(reflink, FS, "FICLONE in the probed directory"),
	B(fuse, FS, "/dev/fuse can be opened by this user"),
	B(openat2, FS, "openat2 with RESOLVE_BENEATH"),

	W(cgroup, cgroup_words, RES, "which cgroup hierarchies are mounted"),
	B(cgroup_memory, RES, "a child can be limited in memory by cgroup"),
	B(cgroup_cpu, RES, "a child can be limited in CPU time by cgroup"),
	B(cgroup_pids, RES, "a child's processes can be limited by cgroup; a fork was refused"),
	B(cgroup_kill, RES, "cgroup.kill killed a child"),
	B(cgroup_freeze, RES, "cgroup.freeze froze a child"),
	B(systemd_user, RES, "the user's systemd answers on its private socket"),
	B(scope_memory, RES, "it made a scope that limits a child in memory"),
	B(scope_cpu, RES, "the same for CPU time"),
	B(scope_pids, RES, "the same for processes"),
	B(rlimit_nproc_userns, RES, "RLIMIT_NPROC counts per user namespace and binds this user"),

	T(lsm, LSM, "active security modules"),
	B(apparmor_userns, LSM, "AppArmor restricts unprivileged user namespaces"),
	B(selinux_enforcing, LSM, "SELinux is enforcing"),
	N(yama, 3, LSM, "Yama ptrace_scope; 0 also without Yama"),
	B(io_uring, LSM, "io_uring can be set up by this user"),
	B(memfd_noexec, LSM, "vm.memfd_noexec is 1 or 2"),
	B(tiocsti, LSM, "TIOCSTI is not switched off by dev.tty.legacy_tiocsti"),
	B(compat32, LSM, "32-bit system calls answer (x86-64)"),

	B(kvm, ENG, "/dev/kvm can be opened by this user and answers"),
	T(crun, ENG, "version of crun"),
	T(runc, ENG, "version of runc"),
	T(runsc, ENG, "version of runsc (gVisor)"),
	T(podman, ENG, "version of podman"),
	T(docker, ENG, "version of the docker client"),
	T(qemu, ENG, "version of qemu-system for this machine"),
	T(firecracker, ENG, "version of firecracker"),
	T(wasmtime, ENG, "version of wasmtime"),
	T(bwrap, ENG, "version of bwrap (bubblewrap)"),
};
/* clang-format on */

size_t facts_count(void)
{
	return ARRAY_LEN(facts);
}

const struct fact *facts_at(size_t i)
{
	return i < ARRAY_LEN(facts) ? &facts[i] : NULL;
}

const struct fact *facts_find(struct sv name)
{
	for (size_t i = 0; i < ARRAY_LEN(facts); i++)
		if (sv_is(name, facts[i].name))
			return &facts[i];
	return NULL;
}

/* Returns the value of a bool or a number. */
static uint64_t get_num(const struct host_facts *f, const struct fact *row)
{
	uint64_t v = 0;

	memcpy(&v, (const char *)f + row->offset, row->size);
	return v;
}

struct sv facts_text(const struct host_facts *f, const struct fact *row)
{
	const char *p = (const char *)f + row->offset;

	return (struct sv){ p, strnlen(p, row->size) };
}

/*
 * Returns the word for a value of the type FACT_WORD. A value outside the table is a bug of the
 * caller; it gets the word for zero.
 */
static const char *get_word(const struct host_facts *f, const struct fact *row)
{
	const uint64_t v = get_num(f, row);

	return row->words[v <= row->max ? v : 0];
}

void facts_value(const struct host_facts *f, const struct fact *row, struct buf *b)
{
	switch (row->type) {
	case FACT_BOOL:
		buf_str(b, get_num(f, row) ? "yes" : "no");
		return;
	case FACT_NUM:
		buf_fmt(b, "%llu", (unsigned long long)get_num(f, row));
		return;
	case FACT_WORD:
		buf_str(b, get_word(f, row));
		return;
	case FACT_TEXT:
		buf_sv(b, facts_text(f, row).n ? facts_text(f, row) : SV("-"));
		return;
	}
}

void facts_print(const struct host_facts *f, struct buf *b)
{
	buf_fmt(b, "%s\n", header);
	for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
		buf_fmt(b, "%s ", facts[i].name);
		facts_value(f, &facts[i], b);
		buf_ch(b, '\n');
	}
}

void facts_json(const struct host_facts *f, struct buf *b)
{
	for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
		const struct fact *row = &facts[i];

		buf_fmt(b, "%s\"%s\":", i ? "," : "{", row->name);
		switch (row->type) {
		case FACT_BOOL:
			buf_str(b, get_num(f, row) ? "true" : "false");
			break;
		case FACT_NUM:
			facts_value(f, row, b);
			break;
		case FACT_WORD:
			buf_fmt(b, "\"%s\"", get_word(f, row));
			break;
		/*
		 * text_ok() and facts_set_text() let no byte into a record that would need
		 * escaping.
		 */
		case FACT_TEXT:
			buf_fmt(b, "\"" SV_FMT "\"", SV_ARG(facts_text(f, row)));
			break;
		}
	}
	buf_ch(b, '}');
}

static bool text_byte_ok(char c)
{
	return c >= 0x20 && c <= 0x7e && c != '"' && c != '\\';
}

static bool text_ok(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!text_byte_ok(s.p[i]))
			return false;
	return s.n > 0 && s.n < FACT_STR && sv_eq(s, sv_trim(s));
}

void facts_set_text(char ret_text[static FACT_STR], struct sv from)
{
	char text[FACT_STR] = { 0 };

	from = sv_trim(sv_sub(sv_trim(from), 0, FACT_STR - 1));
	for (size_t i = 0; i < from.n; i++)
		text[i] = text_byte_ok(from.p[i]) ? from.p[i] : '?';
	if (from.n == 1 && text[0] == '-') /* "-" is the notation for an empty text */
		text[0] = 0;
	memcpy(ret_text, text, sizeof(text));
}

static bool set_value(struct host_facts *f, const struct fact *row, struct sv v)
{
	uint64_t n = 0;

	switch (row->type) {
	case FACT_BOOL:
		n = sv_is(v, "yes");
		if (n == 0 && !sv_is(v, "no"))
			return false;
		break;
	case FACT_NUM:
		if (!sv_to_u64(v, row->max, &n))
			return false;
		break;
	case FACT_WORD:
		n = sv_index(v, row->words, row->max + 1);
		if (n > row->max)
			return false;
		break;
	case FACT_TEXT:
		if (sv_is(v, "-"))
			return true; /* an empty text: the record was initialised to zero */
		if (!text_ok(v))
			return false;
		memcpy((char *)f + row->offset, v.p, v.n);
		return true;
	}
	memcpy((char *)f + row->offset, &n, row->size);
	return true;
}

/* Parser state: the record, and which rows have occurred. */
struct reading {
	struct host_facts f;
	bool seen[ARRAY_LEN(facts)];
};

static bool has_control(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
			return true;
	return false;
}

must_check
static int parse_line(struct sv line, size_t at, struct reading *r, struct writ_err *err)
{
	const struct sv name = sv_cut(&line, ' ');
	const struct fact *row = facts_find(name);
	size_t i;

	if (!row)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "line %zu: unknown fact '" SV_FMT "'", at,
				 SV_ARG(sv_sub(name, 0, 40)));
	i = (size_t)(row - facts);
	if (r->seen[i])
		return writ_fail(err, WRIT_E_SYNTAX, 0, "line %zu: %s again", at, row->name);
	if (!set_value(&r->f, row, line))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "line %zu: bad value for %s: '" SV_FMT "'",
				 at, row->name, SV_ARG(sv_sub(line, 0, 40)));
	r->seen[i] = true;
	return 0;
}

int facts_parse(struct sv text, struct host_facts *ret_f, struct writ_err *err)
{
	struct reading r = { 0 };
	bool headed = false;
	int ret;

	if (text.n > RECORD_MAX)
		return writ_fail(err, WRIT_E_LIMIT, 0, "more than %d bytes", (int)RECORD_MAX);
	if (text.n && text.p[text.n - 1] != '\n')
		return writ_fail(err, WRIT_E_SYNTAX, 0, "the last line has no end");
	for (size_t at = 1; text.n; at++) {
		const struct sv line = sv_cut(&text, '\n');

		if (has_control(line))
			return writ_fail(err, WRIT_E_SYNTAX, 0, "line %zu: control character", at);
		if (line.n == 0 || line.p[0] == '#')
			continue;
		if (!headed) {
			if (!sv_is(line, header))
				return writ_fail(err, WRIT_E_SYNTAX, 0, "line %zu: expected '%s'",
						 at, header);
			headed = true;
			continue;
		}
		ret = parse_line(line, at, &r, err);
		if (ret < 0)
			return ret;
	}
	if (!headed)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "expected '%s'", header);
	for (size_t i = 0; i < ARRAY_LEN(facts); i++)
		if (!r.seen[i])
			return writ_fail(err, WRIT_E_SYNTAX, 0, "no value for %s", facts[i].name);
	*ret_f = r.f;
	return 0;
}
