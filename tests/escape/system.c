/* The machine's own files: /proc, /sys, devices. Opened, never used. */
#include "escape.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* To be able to open it for writing is enough; nothing is written. */
static int open_for_write(struct ctx *c)
{
	const int fd = open(c->row->arg, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	return fd < 0 ? -errno : close(fd);
}

static int find_and_open(struct ctx *c)
{
	glob_t g = { 0 };
	int r = -ENOENT;

	if (glob(c->row->arg, 0, NULL, &g) == 0) {
		for (size_t i = 0; i < g.gl_pathc && r; i++) {
			const int fd = open(g.gl_pathv[i], O_WRONLY | O_CLOEXEC | O_NONBLOCK);

			r = fd < 0 ? -errno : close(fd);
		}
	}
	globfree(&g);
	return r;
}

/* Writes the value that is there already: proves more than opening. */
static int write_back(struct ctx *c)
{
	char value[1024];
	const int n = read_text(c->row->arg, value, sizeof(value));

	if (n < 0)
		return n;
	const int fd = open(c->row->arg, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	const int r = rc(write(fd, value, (size_t)n));
	close(fd);
	return r;
}

static int read_some(struct ctx *c)
{
	char buf[64];
	const int fd = open(c->row->arg, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof(buf));

	return n < 0 ? -errno : n == 0 ? -ENODATA : 0;
}

/* Many systems show these files with every address as zero: that leaks nothing. */
static int read_addresses(struct ctx *c)
{
	FILE *f = fopen(c->row->arg, "re");
	char line[512];
	int r = -EACCES;

	if (!f)
		return -errno;
	while (r && fgets(line, sizeof(line), f)) {
		const char *p = strstr(line, "0x");
		const unsigned long long v = strtoull(p ? p : line, NULL, 16);

		if (v)
			r = 0;
	}
	(void)fclose(f);
	return r;
}

static int open_device(struct ctx *c)
{
	glob_t g = { 0 };
	int r = -ENOENT;

	if (glob(c->row->arg, 0, NULL, &g) == 0) {
		for (size_t i = 0; i < g.gl_pathc && r; i++) {
			const int fd =
				open(g.gl_pathv[i], O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

			r = fd < 0 ? -errno : close(fd);
		}
	}
	globfree(&g);
	return r;
}

/* The disk the workspace lies on, by number. */
static int make_disk(struct ctx *c)
{
	struct stat st;
	const char *name = path("%s/disk", c->work);

	if (stat(c->work, &st) < 0)
		return -errno;
	if (mknod(name, S_IFBLK | 0600, st.st_dev) < 0)
		return -errno;
	const int fd = open(name, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : close(fd);
}

static int make_char(struct ctx *c)
{
	const char *name = path("%s/kmem", c->work);

	if (mknod(name, S_IFCHR | 0600, makedev(1, 1)) < 0)
		return -errno;
	const int fd = open(name, O_RDONLY | O_CLOEXEC);
	return fd < 0 && errno != EPERM ? -errno : 0;
}

static int make_char_nested(struct ctx *c)
{
	const int r = enter_userns(0);

	return r < 0 ? r : make_char(c);
}

/* clang-format off */
#define WR(id, file) { id, "system", "syscall", "open for writing " file, open_for_write, NULL, BY_REPORT, 0, 0, file, 0, NULL }
#define WB(id, file) { id, "system", "syscall", "write " file " (its own value)", write_back, NULL, BY_REPORT, 0, 0, file, 0, NULL }
#define GL(id, file) { id, "system", "syscall", "open for writing " file, find_and_open, NULL, BY_REPORT, 0, 0, file, 0, NULL }
#define RD(id, file) { id, "system", "proc.see", "read " file, read_some, NULL, BY_REPORT, 0, 0, file, 0, NULL }
#define AD(id, file) { id, "system", "proc.see", "kernel addresses in " file, read_addresses, NULL, BY_REPORT, 0, 0, file, 0, NULL }
#define DV(id, file) { id, "device", "fs.read", "open " file, open_device, NULL, BY_REPORT, 0, 0, file, 0, NULL }

static const struct row rows[] = {
	WB("SY-001", "/proc/sys/kernel/core_pattern"), WB("SY-002", "/proc/sys/kernel/modprobe"),
	WR("SY-003", "/proc/sys/kernel/hostname"), WR("SY-004", "/proc/sys/fs/binfmt_misc/register"),
	WR("SY-005", "/proc/sysrq-trigger"), WR("SY-006", "/sys/kernel/uevent_helper"),
	WR("SY-007", "/sys/power/state"), GL("SY-008", "/sys/fs/cgroup/*/release_agent"),
	GL("SY-009", "/sys/fs/cgroup/cgroup.procs"), GL("SY-010", "/sys/fs/cgroup/*/cgroup.procs"),
	WR("SY-011", "/proc/irq/default_smp_affinity"), WR("SY-012", "/proc/sys/vm/overcommit_memory"),
	WB("SY-013", "/proc/sys/kernel/randomize_va_space"), WR("SY-014", "/proc/sys/vm/drop_caches"),
	GL("SY-015", "/sys/module/*/parameters/*"), WR("SY-016", "/sys/kernel/mm/ksm/run"),
	WR("SY-017", "/proc/sys/kernel/poweroff_cmd"), WR("SY-018", "/proc/sys/kernel/usermodehelper/bset"),
	WR("SY-019", "/sys/kernel/mm/transparent_hugepage/enabled"),
	WR("SY-021", "/proc/mtrr"), GL("SY-022", "/sys/class/net/*/ifalias"), GL("SY-023", "/sys/block/*/queue/scheduler"),
	WR("SY-025", "/proc/sys/kernel/sysrq"),
	WR("SY-026", "/proc/sys/kernel/yama/ptrace_scope"), WR("SY-027", "/sys/kernel/debug/tracing/trace_on"),
	GL("SY-028", "/proc/bus/pci/*/*"), WR("SY-029", "/proc/sys/user/max_user_namespaces"), WR("SY-030", "/proc/sys/fs/suid_dumpable"),
	RD("SY-040", "/proc/kcore"), RD("SY-041", "/proc/keys"), AD("SY-042", "/proc/kallsyms"),
	AD("SY-043", "/proc/modules"), AD("SY-044", "/proc/vmallocinfo"), RD("SY-045", "/proc/slabinfo"),
	AD("SY-046", "/proc/iomem"), RD("SY-047", "/proc/kpagecount"), RD("SY-048", "/proc/timer_list"),
	RD("SY-049", "/proc/sched_debug"), RD("SY-050", "/proc/kmsg"), RD("SY-051", "/proc/pagetypeinfo"),
	RD("SY-052", "/sys/kernel/debug/sched/debug"), RD("SY-053", "/sys/firmware/acpi/tables/DSDT"), RD("SY-054", "/sys/kernel/vmcoreinfo"),
	RD("SY-056", "/proc/key-users"),
	RD("SY-058", "/sys/class/dmi/id/product_uuid"), RD("SY-059", "/proc/latency_stats"),
	DV("DV-001", "/dev/mem"), DV("DV-002", "/dev/kmsg"), DV("DV-003", "/dev/kvm"), DV("DV-004", "/dev/fuse"),
	DV("DV-005", "/dev/net/tun"), DV("DV-006", "/dev/[vshx]d[a-z]"), DV("DV-007", "/dev/nvme*"), DV("DV-008", "/dev/loop-control"),
	DV("DV-009", "/dev/loop0"), DV("DV-010", "/dev/uinput"), DV("DV-011", "/dev/input/*"), DV("DV-012", "/dev/vhost-*"),
	DV("DV-014", "/dev/port"), DV("DV-015", "/dev/autofs"), DV("DV-016", "/dev/btrfs-control"),
	DV("DV-017", "/dev/tty0"), DV("DV-018", "/dev/tty1"), DV("DV-019", "/dev/console"), DV("DV-020", "/dev/mapper/control"),
	DV("DV-021", "/dev/nvram"), DV("DV-022", "/dev/rtc0"), DV("DV-023", "/dev/ptp0"), DV("DV-024", "/dev/dri/*"),
	DV("DV-025", "/dev/userfaultfd"), DV("DV-026", "/dev/cpu/0/msr"), DV("DV-027", "/dev/udmabuf"), DV("DV-028", "/dev/cuse"),
	DV("DV-029", "/dev/nvidia*"), DV("DV-030", "/dev/snd/control*"), DV("DV-032", "/dev/vsock"),
	DV("DV-034", "/dev/hwrng"), DV("DV-035", "/dev/tpm*"), DV("DV-036", "/dev/ppp"),
	DV("DV-037", "/dev/vcs"), DV("DV-038", "/dev/cpu_dma_latency"), DV("DV-039", "/dev/bus/usb/*/*"), DV("DV-040", "/dev/rfkill"),
	{ "DV-050", "device", "fs.read", "make a node of the workspace's disk", make_disk, NULL, BY_REPORT, 0, 0, NULL, 0, NULL },
	{ "DV-051", "device", "fs.read", "make a node of kernel memory", make_char, NULL, BY_REPORT, 0, 0, NULL, 0, NULL },
	{ "DV-052", "device", "fs.read", "make a device node in a new user namespace", make_char_nested, NULL, BY_REPORT, 0, ROW_INHERENT, NULL, 0, NULL },
};
/* clang-format on */

const struct table system_rows = { rows, LENGTH(rows) };
