#include "init/init.h"

#include <asm/stat.h>
#include <linux/mount.h>
#include <linux/sched.h>

#include "base/banned.h"

/*
 * A granted tree of the host may have kernel file systems mounted in it: the /proc of a chroot
 * shows the processes of the host with their memory. SECURITY: a person who grants a tree means its
 * files, so the keeper masks these mounts in its copy of the host's mounts before it clones the
 * tree.
 */

enum { LINE_MAX = 16384, MASKS_MAX = 1024, PRIVATE = 1 << 18 }; /* MS_PRIVATE */
enum { TYPE_MASK = 0170000, TYPE_DIR = 0040000 };

/* Types of file systems that show or control the kernel, its devices or its processes. */
static const char *const kernel_types[] = {
	"proc",	      "sysfs",	    "cgroup",	  "cgroup2",  "debugfs",  "tracefs",
	"securityfs", "configfs",   "bpf",	  "pstore",   "efivarfs", "binfmt_misc",
	"fusectl",    "mqueue",	    "devpts",	  "devtmpfs", "nsfs",	  "nfsd",
	"rpc_pipefs", "selinuxfs",  "smackfs",	  "resctrl",  "xenfs",	  "functionfs",
	NULL
};

/* Fields of a line of /proc/self/mountinfo. */
struct mount_line {
	uint64_t dev; /* as st_dev */
	const char *point, *type;
};

/* Reads a file line by line. */
struct lines {
	int fd;
	size_t at, n; /* the bytes of @text that were read and not yet returned */
	char text[LINE_MAX];
};

static bool is_same(const char *a, const char *b)
{
	const size_t n = strlen(a);

	return n == strlen(b) && memcmp(a, b, n) == 0;
}

/*
 * Returns 1 with the next line as a string, 0 at the end, or a negative errno; a line that does not
 * fit is -E2BIG.
 */
static long next_line(struct lines *l, char **ret)
{
	size_t seen = 0;

	for (;;) {
		long r;

		for (; l->at + seen < l->n; seen++)
			if (l->text[l->at + seen] == '\n') {
				*ret = l->text + l->at;
				(*ret)[seen] = 0;
				l->at += seen + 1;
				return 1;
			}
		if (l->at) {
			memmove(l->text, l->text + l->at, seen);
			l->at = 0;
			l->n = seen;
		}
		if (l->n == sizeof(l->text))
			return -E2BIG;
		r = sys(read, l->fd, l->text + l->n, sizeof(l->text) - l->n);
		if (r <= 0)
			return r < 0 ? r : l->n ? -EIO : 0;
		l->n += (size_t)r;
	}
}

/* Cuts the next field, which ends at a blank, off *@s. */
static char *cut_field(char **s)
{
	char *field = *s, *p = field;

	while (*p && *p != ' ')
		p++;
	*s = *p ? p + 1 : p;
	*p = 0;
	return field;
}

static uint64_t cut_number(const char **s)
{
	uint64_t n = 0;

	for (; **s >= '0' && **s <= '9'; (*s)++)
		n = n * 10 + (uint64_t)(**s - '0');
	return n;
}

/* Replaces the escapes of a path ("\040" is a blank) by their bytes. */
static void unescape(char *s)
{
	char *to = s;

	while (*s) {
		if (s[0] == '\\' && s[1] && s[2] && s[3]) {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = 0;
}

/* Parses "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS TAGS... - TYPE SOURCE OPTIONS". */
static bool parse_line(char *s, struct mount_line *ret)
{
	const char *dev;
	uint64_t major, minor;
	char *point;

	(void)cut_field(&s);
	(void)cut_field(&s);
	dev = cut_field(&s);
	major = cut_number(&dev);
	if (*dev++ != ':')
		return false;
	minor = cut_number(&dev);
	(void)cut_field(&s);
	point = cut_field(&s);
	while (*s && !is_same(cut_field(&s), "-"))
		;
	if (point[0] != '/' || !*s)
		return false;
	unescape(point);
	*ret = (struct mount_line){
		/* The encoding of st_dev: 12 bits of the major number between the minor's. */
		.dev = (minor & 0xff) | (major << 8) | ((minor & ~(uint64_t)0xff) << 12),
		.point = point,
		.type = cut_field(&s),
	};
	return true;
}

static bool is_kernel(const struct mount_line *m)
{
	for (size_t i = 0; kernel_types[i]; i++)
		if (is_same(m->type, kernel_types[i]))
			return true;
	return false;
}

static bool is_below(const char *path, const char *top)
{
	const size_t n = strlen(top);

	return strlen(path) >= n && memcmp(path, top, n) == 0 &&
	       (path[n] == '/' || path[n] == 0 || n == 1);
}

/* Clones a mask of the jail, an empty directory or file that nobody can change. */
static long open_mask(int jail, bool dir)
{
	const long own = sys(openat, AT_FDCWD, "/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC, 0);
	long mask, r = own < 0 ? own : sys(setns, jail, CLONE_NEWNS);

	if (r < 0)
		return r;
	mask = sys(open_tree, AT_FDCWD, dir ? "/.mask/dir" : "/.mask/file",
		   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	r = sys(setns, own, CLONE_NEWNS);
	(void)sys(close, own);
	return r < 0 ? r : mask;
}

/* Masks the mount @m. Returns 1, or 0 if the mount cannot be reached: another mount covers it. */
static long mask_mount(int jail, const struct mount_line *m)
{
	const long fd = init_open_name(AT_FDCWD, m->point);
	struct stat st;
	long mask, r;

	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR ? 0 : fd;
	r = sys(fstat, fd, &st);
	if (r == 0 && st.st_dev == m->dev) {
		mask = open_mask(jail, (st.st_mode & TYPE_MASK) == TYPE_DIR);
		r = mask < 0 ? mask
			     : sys(move_mount, mask, "", fd, "",
				   MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
		if (mask >= 0)
			(void)sys(close, mask);
		r = r < 0 ? r : 1;
	}
	(void)sys(close, fd);
	return r;
}

/*
 * Masks the first reachable kernel mount below @path. Returns 1, or 0 if there is none. Fails with
 * -EOPNOTSUPP if the file system @dev, on which @path lies, is a kernel file system itself.
 */
static long mask_one(int jail, const char *path, uint64_t dev)
{
	struct lines l = { .fd = -1 };
	struct mount_line m;
	char *line;
	long r = sys(openat, AT_FDCWD, "/proc/self/mountinfo", O_RDONLY | O_CLOEXEC, 0);

	if (r < 0)
		return r;
	l.fd = (int)r;
	while ((r = next_line(&l, &line)) > 0) {
		r = parse_line(line, &m) ? 0 : -EBADMSG;
		if (r == 0 && is_kernel(&m))
			r = m.dev == dev ? -EOPNOTSUPP
			    : is_below(m.point, path) ? mask_mount(jail, &m)
						      : 0;
		if (r != 0)
			break;
	}
	(void)sys(close, l.fd);
	return r;
}

long init_mask_kernel_mounts(int jail, const char *path, uint64_t dev)
{
	const struct mount_attr alone = { .propagation = PRIVATE };
	/* No mount of the host may arrive here after the search. */
	long r = sys(mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &alone, sizeof(alone));

	/*
	 * Search from the start after each mask, because a mask changes the list. A masked mount
	 * cannot be reached any more, so each search finds another.
	 */
	for (int i = 0; r == 0 && i < MASKS_MAX; i++) {
		r = mask_one(jail, path, dev);
		if (r <= 0)
			return r;
		r = 0;
	}
	return r < 0 ? r : -E2BIG;
}
