#include "compile/compile_priv.h"

#include <limits.h>
#include <unistd.h>

#include "base/banned.h"

/*
 * Paths at which the session has files of its own, whatever the policy grants: @ours in both tiers,
 * @ours_in_a only in tier A, where the session has its own root. In tier A some files of /etc come
 * from writ and the others from the host.
 */
static const char *const ours[] = { "/dev", "/proc", "/sys", NULL };
static const char *const ours_in_a[] = { "/run/user",  "/run/writ", "/tmp",
					 "/var/agent", "/var/tmp",  NULL };

enum { OURS = ARRAY_LEN(ours) - 1, OURS_IN_A = ARRAY_LEN(ours_in_a) - 1 };

static bool any_below(const char *const *list, struct sv path)
{
	for (; *list; list++)
		if (compile_path_below(sv_from(*list), path))
			return true;
	return false;
}

bool skeleton_holds(const struct compile *c, struct sv path)
{
	return any_below(ours, path) ||
	       (c->a_tier && (any_below(ours_in_a, path) || compile_path_below(SV("/etc"), path)));
}

bool skeleton_is(const struct compile *c, struct sv path)
{
	return sv_index(path, ours, OURS) < OURS ||
	       (c->a_tier && sv_index(path, ours_in_a, OURS_IN_A) < OURS_IN_A);
}

static int put(struct compile *c, enum jail_op op, const char *src, const char *dst, uint64_t arg,
	       unsigned flags)
{
	return jail_put_mount(&c->w, op, sv_from(src), sv_from(dst), arg, flags)
		       ? 0
		       : writ_nomem(c->err);
}

static bool is_made(const struct compile *c, struct sv path)
{
	for (size_t i = 0; i < c->made.n; i++)
		if (sv_eq(c->made.v[i], path))
			return true;
	return false;
}

static int make_dir(struct compile *c, struct sv path, unsigned mode)
{
	struct sv *m;

	if (is_made(c, path))
		return 0;
	m = vec_push(c->a, &c->made);
	if (!m || !jail_put_mount(&c->w, JAIL_OP_DIR, SV(""), path, mode, 0))
		return writ_nomem(c->err);
	*m = path;
	return 0;
}

int skeleton_dirs(struct compile *c, struct sv path)
{
	int r = 0;

	for (size_t i = 1; r == 0 && i < path.n; i++)
		if (path.p[i] == '/')
			r = make_dir(c, sv_sub(path, 0, i), 0755);
	return r;
}

/* --- tables --- */

/* clang-format off */
static const struct { const char *path; unsigned mode; } dirs[] = {
	{ "/dev", 0755 }, { "/etc", 0755 }, { "/etc/ssh", 0755 }, { "/home", 0755 }, { "/proc", 0555 },
	{ "/run", 0755 }, { "/run/user", 0755 }, { "/run/writ", 0755 }, { "/var", 0755 }, { "/var/agent", 0755 },
	{ "/var/agent/state", 0755 }, { "/var/agent/tmp", 0755 },
};

/*
 * Names that are links on most machines. A name that is a link on this machine is the same link in
 * the jail.
 */
static const char *const links[] = {
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/localtime", "/etc/os-release",
	"/etc/mtab", "/etc/pki/tls/certs", "/etc/ssl/certs", "/var/run", NULL
};

static const char *const devices[] = { "/dev/null", "/dev/zero", "/dev/full", "/dev/random",
				       "/dev/urandom", "/dev/tty", NULL };

static const struct { const char *target, *path; } dev_links[] = {
	{ "/proc/self/fd", "/dev/fd" }, { "/proc/self/fd/0", "/dev/stdin" },
	{ "/proc/self/fd/1", "/dev/stdout" }, { "/proc/self/fd/2", "/dev/stderr" },
	{ "pts/ptmx", "/dev/ptmx" }, { "/var/agent/tmp/shm", "/dev/shm" },
};

/*
 * Entries of /proc through which a process can change or inspect the machine. A process of the real
 * uid 0 passes the file modes of these entries without any capability; /proc/sys/net belongs to the
 * creator of the network namespace. @root: only a session of root needs the row, because the file
 * modes keep all others out. @mask: the jail hides the entry; otherwise it mounts the entry
 * read-only.
 */
static const struct { const char *path; bool root, mask; } procs[] = {
	{ "/proc/sys", false, false },        { "/proc/keys", false, true },
	{ "/proc/key-users", false, true },   { "/proc/timer_list", true, true },
	{ "/proc/acpi", true, true },         { "/proc/asound", true, true },
	{ "/proc/bus", true, false },         { "/proc/fs", true, false },
	{ "/proc/irq", true, false },         { "/proc/kcore", true, true },
	{ "/proc/kallsyms", false, true },     { "/proc/kmsg", true, true },
	{ "/proc/kpagecgroup", true, true },  { "/proc/kpagecount", true, true },
	{ "/proc/kpageflags", true, true },   { "/proc/latency_stats", true, true },
	{ "/proc/mtrr", true, true },         { "/proc/sched_debug", true, true },
	{ "/proc/scsi", true, true },         { "/proc/slabinfo", true, true },
	{ "/proc/sysrq-trigger", true, true }, { "/proc/vmallocinfo", true, true },
	{ "/proc/dynamic_debug", true, true }, { "/proc/pressure", true, false },
	{ "/proc/pagetypeinfo", true, true }, { "/proc/swaps", false, true },
	{ "/proc/iomem", true, true },        { "/proc/ioports", true, true },
};
/* clang-format on */

static int put_links(struct compile *c)
{
	char to[PATH_MAX];

	for (size_t i = 0; links[i]; i++) {
		const ssize_t n = readlink(links[i], to, sizeof(to) - 1);
		int r;

		if (n <= 0)
			continue;
		to[n] = 0;
		r = skeleton_dirs(c, sv_from(links[i]));
		if (r == 0)
			r = put(c, JAIL_OP_LINK, to, links[i], 0, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

static int put_dev(struct compile *c)
{
	int r = 0;

	for (size_t i = 0; r == 0 && devices[i]; i++)
		r = put(c, JAIL_OP_BIND, devices[i], devices[i],
			MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, JAIL_TARGET);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(dev_links); i++)
		r = put(c, JAIL_OP_LINK, dev_links[i].target, dev_links[i].path, 0, 0);
	if (r == 0)
		r = put(c, JAIL_OP_DEVPTS, "ptmxmode=0666,mode=620", "/dev/pts", 0, JAIL_TARGET);
	return r;
}

static int put_proc(struct compile *c)
{
	const bool root = c->facts->root;
	int r = 0;

	if (c->facts->proc_mount)
		r = put(c, JAIL_OP_PROC, "", "/proc", 0, 0);
	else
		r = put(c, JAIL_OP_BIND, "/proc", "/proc",
			MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, 0);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(procs); i++) {
		if (procs[i].root && !root)
			continue;
		r = procs[i].mask ? put(c, JAIL_OP_MASK, "", procs[i].path, 0,
					JAIL_OPTIONAL | JAIL_KERNEL)
				  : put(c, JAIL_OP_SELF, procs[i].path, procs[i].path,
					READ_ONLY | MOUNT_ATTR_NOEXEC, JAIL_OPTIONAL | JAIL_KERNEL);
	}
	return r;
}

/* Makes /var/tmp a link to /tmp, unless a path of the host must be mounted below /var/tmp. */
static int put_var_tmp(struct compile *c)
{
	int r = 0;

	for (size_t i = 0; i < c->view->shared_dirs.n; i++)
		if (sv_is(c->view->shared_dirs.v[i], "/var/tmp")) {
			r = put(c, JAIL_OP_DIR, "", "/var/agent/tmp/var", 01777, 0);
			return r < 0 ? r
				     : put(c, JAIL_OP_SELF, "/var/agent/tmp/var", "/var/tmp",
					   READ_WRITE, JAIL_TARGET);
		}
	return put(c, JAIL_OP_LINK, "/tmp", "/var/tmp", 0, 0);
}

static int put_file(struct compile *c, const char *path, struct buf *b, unsigned mode)
{
	int r = buf_check(b, c->err);

	if (r == 0 && !jail_put_mount(&c->w, JAIL_OP_FILE, buf_view(b), sv_from(path), mode, 0))
		r = writ_nomem(c->err);
	buf_clear(b);
	return r;
}

static void put_setting(struct buf *b, const char *name, struct sv value)
{
	if (value.n == 0)
		return;
	buf_fmt(b, "\t%s = \"", name);
	for (size_t i = 0; i < value.n; i++) {
		if (value.p[i] == '"' || value.p[i] == '\\')
			buf_ch(b, '\\');
		buf_ch(b, value.p[i]);
	}
	buf_str(b, "\"\n");
}

/*
 * Writes the user's name and email for commits to /etc/gitconfig. Settings of the agent and of the
 * repository override these values.
 */
static int put_git(struct compile *c)
{
	struct buf b = BUF_INIT(4096);

	if (c->place->git_name.n == 0 && c->place->git_email.n == 0)
		return 0;
	buf_str(&b, "[user]\n");
	put_setting(&b, "name", c->place->git_name);
	put_setting(&b, "email", c->place->git_email);
	return put_file(c, "/etc/gitconfig", &b, 0444);
}

int skeleton_own(struct compile *c)
{
	const uint64_t disk = c->set->limits[LIMIT_DISK];
	const char *options =
		disk ? arena_fmt(c->a, "mode=0755,size=%llu", (unsigned long long)disk)
		     : "mode=0755,size=50%";
	int r;

	if (!options)
		return writ_nomem(c->err);
	r = put(c, JAIL_OP_TMPFS, options, "/var/agent/tmp", 0, 0);
	if (r == 0)
		r = put(c, JAIL_OP_DIR, "", "/var/agent/tmp/tmp", 01777, 0);
	if (r == 0)
		r = put(c, JAIL_OP_DIR, "", "/var/agent/tmp/shm", 01777, 0);
	if (r == 0)
		r = put(c, JAIL_OP_DIR, "", "/var/agent/tmp/run", 0700, 0);
	if (r == 0)
		r = put(c, JAIL_OP_SELF, "/var/agent/tmp/tmp", "/tmp", READ_WRITE, JAIL_TARGET);
	if (r == 0)
		r = put_var_tmp(c);
	if (r == 0)
		r = put(c, JAIL_OP_BIND, c->place->home.p, "/var/agent/home", READ_WRITE,
			JAIL_TARGET);
	if (r == 0 &&
	    !jail_put_mount(&c->w, JAIL_OP_FILE, c->place->rules, SV("/run/writ/policy"), 0444, 0))
		r = writ_nomem(c->err);
	if (r == 0)
		r = put_git(c);
	if (r == 0 && c->place->spawn.n)
		r = put(c, JAIL_OP_BIND, c->place->spawn.p, "/run/writ/spawn", READ_WRITE,
			JAIL_TARGET);
	return r < 0 ? r : put(c, JAIL_OP_FEED, "", "/run/writ/denials.jsonl", 0, 0);
}

/* --- /etc, written for this user --- */

static int put_users(struct compile *c)
{
	const unsigned uid = geteuid(), gid = getegid();
	struct buf b = BUF_INIT(4096);
	int r;

	if (uid)
		buf_str(&b, "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n");
	buf_fmt(&b, SV_FMT ":x:%u:%u::/var/agent/home:/bin/sh\n", SV_ARG(c->place->user), uid, gid);
	/* Programs look up the name root, also where the user with id 0 has another name. */
	if (!uid && !sv_is(c->place->user, "root"))
		buf_fmt(&b, "root:x:0:%u:root:/var/agent/home:/bin/sh\n", gid);
	buf_str(&b, "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
	r = put_file(c, "/etc/passwd", &b, 0444);
	if (r < 0)
		return r;
	if (gid || !sv_is(c->place->user, "root"))
		buf_str(&b, "root:x:0:\n");
	buf_fmt(&b, SV_FMT ":x:%u:\n", SV_ARG(c->place->user), gid);
	buf_str(&b, "nogroup:x:65534:\n");
	return put_file(c, "/etc/group", &b, 0444);
}

/* clang-format off */
static const struct { const char *path, *text; } etc_files[] = {
	{ "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\nprotocols: files\nservices: files\n" },
	{ "/etc/hosts",         "127.0.0.1 localhost agent\n::1 localhost\n" },
	{ "/etc/hostname",      "agent\n" },
	{ "/etc/resolv.conf",   "nameserver 198.18.0.1\noptions timeout:5 attempts:2\n" },
	{ "/etc/ssh/ssh_config", "# No settings, and nothing included.\n" },
	{ "/etc/machine-id",    "00000000000000000000000000000001\n" },
	{ "/etc/shells",        "/bin/sh\n/bin/bash\n" },
};
/* clang-format on */

bool compile_makes(struct sv path)
{
	for (size_t i = 0; i < ARRAY_LEN(etc_files); i++)
		if (sv_is(path, etc_files[i].path))
			return true;
	return sv_index(path, links, ARRAY_LEN(links) - 1) < ARRAY_LEN(links) - 1 ||
	       sv_is(path, "/etc/passwd") || sv_is(path, "/etc/group") ||
	       sv_is(path, "/etc/gitconfig");
}

static int put_etc(struct compile *c)
{
	struct buf b = BUF_INIT(4096);
	int r = put_users(c);

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(etc_files); i++) {
		buf_str(&b, etc_files[i].text);
		r = put_file(c, etc_files[i].path, &b, 0444);
	}
	return r;
}

int skeleton_known(struct compile *c)
{
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		struct sv *m = vec_push(c->a, &c->made);

		if (!m)
			return writ_nomem(c->err);
		*m = sv_from(dirs[i].path);
	}
	return 0;
}

int skeleton_put(struct compile *c)
{
	const char *runtime;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(dirs); i++)
		r = make_dir(c, sv_from(dirs[i].path), dirs[i].mode);
	if (r == 0)
		r = put_links(c);
	if (r == 0)
		r = put_etc(c);
	if (r == 0)
		r = put_dev(c);
	if (r == 0)
		r = put_proc(c);
	runtime = arena_fmt(c->a, "/run/user/%u", (unsigned)geteuid());
	if (r == 0 && !runtime)
		r = writ_nomem(c->err);
	return r < 0 ? r : put(c, JAIL_OP_LINK, "/var/agent/tmp/run", runtime, 0, 0);
}
