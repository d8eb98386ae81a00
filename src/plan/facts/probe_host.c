#include "facts/probe_priv.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include "base/fd.h"

#include "base/banned.h"

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

/* Finds NAME=value in @text and returns the value without quotes; "" if @text has no such line. */
static struct sv assigned(struct sv text, struct sv name)
{
	while (text.n) {
		struct sv line = sv_cut(&text, '\n');

		if (!sv_eq(sv_cut(&line, '='), name))
			continue;
		if (line.n >= 2 && (line.p[0] == '"' || line.p[0] == '\'') &&
		    line.p[line.n - 1] == line.p[0])
			line = sv_sub(line, 1, line.n - 2);
		return line;
	}
	return SV("");
}

static void set_distro(struct host_facts *f)
{
	scoped_buf b = BUF_INIT(16 * 1024);
	struct writ_err err;
	char text[FACT_STR];

	if (fd_read_file("/etc/os-release", &b, &err) < 0 &&
	    fd_read_file("/usr/lib/os-release", &b, &err) < 0)
		return;
	(void)snprintf(text, sizeof(text), SV_FMT " " SV_FMT,
		       SV_ARG(assigned(buf_view(&b), SV("ID"))),
		       SV_ARG(assigned(buf_view(&b), SV("VERSION_ID"))));
	facts_set_text(f->distro, sv_from(text));
}

/* Returns the leading dotted number of @s, such as "1.2.3". */
static struct sv dotted(struct sv s)
{
	size_t n = 0;

	while (n < s.n && ((s.p[n] >= '0' && s.p[n] <= '9') || s.p[n] == '.'))
		n++;
	while (n && s.p[n - 1] == '.')
		n--;
	return sv_sub(s, 0, n);
}

/*
 * Determines the upstream version. The release of Debian and Ubuntu contains the ABI
 * ("6.1.0-18-amd64"), not the stable version; Debian reports the stable version in uname -v, Ubuntu
 * in a file.
 */
static void set_kernel_base(const struct utsname *u, struct host_facts *f)
{
	const char *debian = strstr(u->version, "Debian ");
	char text[256];
	ssize_t n;

	n = facts_read_small("/proc/version_signature", text, sizeof(text));
	if (n > 0) {
		const struct sv all = { text, (size_t)n };
		const size_t last = sv_rfind(all, ' ');

		facts_set_text(f->kernel_base,
			       dotted(last == SIZE_MAX ? all : sv_skip(all, last + 1)));
	} else if (debian) {
		facts_set_text(f->kernel_base, dotted(sv_from(debian + strlen("Debian "))));
	}
	if (!f->kernel_base[0])
		facts_set_text(f->kernel_base, dotted(sv_from(u->release)));
}

static bool has_sys_admin(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { 0 };

	return syscall(SYS_capget, &h, d) == 0 && d[0].effective & 1u << CAP_SYS_ADMIN;
}

/*
 * Checks for supplementary groups besides @primary. If the process has more groups than fit into
 * the array, some of them are extra.
 */
static bool has_extra_groups(gid_t primary)
{
	gid_t groups[256];
	const int n = getgroups(256, groups);

	for (int i = 0; i < n; i++)
		if (groups[i] != primary)
			return true;
	return n < 0;
}

/* Finds the number after "Name:" in /proc/self/status; returns 0 if there is no such line. */
static uint64_t status_number(struct sv status, struct sv name)
{
	uint64_t v = 0;

	while (status.n) {
		struct sv line = sv_cut(&status, '\n');

		if (sv_eq(sv_cut(&line, ':'), name) && sv_to_u64(sv_trim(line), UINT64_MAX, &v))
			return v;
	}
	return 0;
}

static bool has_filter(void)
{
	scoped_buf b = BUF_INIT(64 * 1024);
	struct writ_err err;

	if (fd_read_file("/proc/self/status", &b, &err) < 0)
		return false;
	return status_number(buf_view(&b), SV("Seccomp")) == 2;
}

/*
 * Checks whether the link @path names the initial namespace of its kind. The kernel gives initial
 * namespaces fixed inode numbers.
 */
static bool first_ns(const char *path, const char *link)
{
	char text[64];
	const ssize_t n = readlink(path, text, sizeof(text));

	return n >= 0 && sv_is((struct sv){ text, (size_t)n }, link);
}

static bool in_first_machine(void)
{
	return first_ns("/proc/self/ns/pid", "pid:[4026531836]") &&
	       first_ns("/proc/self/ns/uts", "uts:[4026531838]") &&
	       first_ns("/proc/self/ns/ipc", "ipc:[4026531839]");
}

/* clang-format off */
static const struct {
	const char *part, *name;
} cgroup_marks[] = {
	{ "kubepods", "k8s" }, { "/docker", "docker" }, { "docker-", "docker" },
	{ "libpod", "podman" }, { "/lxc", "lxc" }, { "lxc.payload", "lxc" },
	{ "/garden", "garden" }, { "machine.slice/machine-", "nspawn" },
	{ "buildkit", "buildkit" }, { "containerd", "containerd" },
};
/* clang-format on */

/* Reads container= from the environment of process 1, and nothing else. */
static bool container_from_init(char ret_name[static FACT_STR])
{
	scoped_buf b = BUF_INIT(128 * 1024);
	struct writ_err err;
	struct sv all;

	if (fd_read_file("/proc/1/environ", &b, &err) < 0)
		return false;
	for (all = buf_view(&b); all.n;) {
		struct sv word = sv_cut(&all, 0);

		if (!sv_starts(word, SV("container=")))
			continue;
		facts_set_text(ret_name, sv_skip(word, strlen("container=")));
		return true;
	}
	return false;
}

static bool container_from_cgroup(char ret_name[static FACT_STR])
{
	scoped_buf b = BUF_INIT(64 * 1024);
	struct writ_err err;

	if (fd_read_file("/proc/self/cgroup", &b, &err) < 0 || b.n == 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(cgroup_marks); i++)
		if (strstr(b.p, cgroup_marks[i].part)) {
			facts_set_text(ret_name, sv_from(cgroup_marks[i].name));
			return true;
		}
	return false;
}

static bool named_container(char ret_name[static FACT_STR])
{
	char text[FACT_STR];

	if (facts_read_small("/run/systemd/container", text, sizeof(text)) > 0)
		facts_set_text(ret_name, sv_from(text));
	else if (exists("/run/.containerenv"))
		facts_set_text(ret_name, SV("podman"));
	else if (getenv("KUBERNETES_SERVICE_HOST"))
		facts_set_text(ret_name, SV("k8s"));
	else if (exists("/.dockerenv"))
		facts_set_text(ret_name, SV("docker"));
	else
		return container_from_init(ret_name) || container_from_cgroup(ret_name);
	return true;
}

static bool in_vm(void)
{
	char vendor[64];
#if defined(__x86_64__) || defined(__i386__)
	unsigned a, b, c, d;

	if (__get_cpuid(1, &a, &b, &c, &d) && c >> 31 & 1)
		return true;
#endif
	if (exists("/sys/hypervisor/type") || exists("/proc/device-tree/hypervisor"))
		return true;
	return facts_read_small("/sys/class/dmi/id/sys_vendor", vendor, sizeof(vendor)) > 0 &&
	       (strstr(vendor, "QEMU") || strstr(vendor, "KVM") || strstr(vendor, "VMware"));
}

static uint64_t wsl(const char *release)
{
	if (strstr(release, "WSL2") || strstr(release, "microsoft"))
		return WHERE_WSL2;
	return strstr(release, "Microsoft") ? WHERE_WSL1 : WHERE_HOST;
}

/*
 * Determines whether this machine is a container. SECURITY: a marker file alone proves nothing,
 * since an image unpacked to a disk keeps the file. So marker files are ignored in the initial pid,
 * uts and ipc namespaces: no container engine leaves all three unchanged.
 */
static void set_where(const char *release, struct host_facts *f)
{
	char name[FACT_STR] = { 0 };
	const bool named = !in_first_machine() && named_container(name);
	const bool first = in_first_machine() &&
			   first_ns("/proc/self/ns/user", "user:[4026531837]");

	f->where = wsl(release);
	if (f->where == WHERE_WSL1)
		return;
	/*
	 * Each WSL 2 distribution has its own namespaces, so there a foreign pid namespace does not
	 * prove a container; only a marker file of a container runtime does.
	 */
	if (named || (!first && f->where != WHERE_WSL2)) {
		f->where = WHERE_CONTAINER;
		facts_set_text(f->container, named ? sv_from(name) : SV("other"));
		return;
	}
	if (f->where == WHERE_HOST && in_vm())
		f->where = WHERE_VM;
}

void probe_host(struct probe *p, struct host_facts *f)
{
	struct utsname u;

	if (uname(&u) == 0) {
		facts_set_text(f->kernel, sv_from(u.release));
		facts_set_text(f->arch, sv_from(u.machine));
		set_kernel_base(&u, f);
		set_where(u.release, f);
	}
	set_distro(f);
	p->uid = geteuid();
	p->gid = getegid();
	f->uid = p->uid;
	f->root = p->uid == 0;
	f->caps_sys_admin = has_sys_admin();
	f->groups_extra = has_extra_groups(p->gid);
	f->sandboxed = has_filter();
}
