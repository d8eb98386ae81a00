#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mediate/creds_priv.h"
#include "mediate/open_priv.h"
#include "mediate/place_priv.h"

#include "base/banned.h"

/*
 * Opens for reading in /proc, where the mediator may let none through. "/proc/self" depends on the
 * process that resolves it, so the mediator rewrites a path to name the caller's own entry.
 * SECURITY: the mediator may see more than the caller. It opens files about the caller's own
 * process except through magic links, and about other processes only files that every process may
 * read. It opens no sysctls of the network, because it would read those of its own network
 * namespace.
 */

enum { START_TIME = 22 }; /* number of the field of /proc/TID/stat with the start time */

struct inner_ids {
	unsigned tgid, tid; /* ids of the caller in its own pid namespace */
};

/* Parses the last number after @key in its line of @text: the id in the innermost namespace. */
static bool last_number(const char *text, const char *key, unsigned *ret)
{
	const char *p = strstr(text, key);
	bool any = false;

	if (!p)
		return false;
	for (p += strlen(key); *p && *p != '\n'; p++) {
		const bool digit = *p >= '0' && *p <= '9';

		if (digit && (p[-1] < '0' || p[-1] > '9'))
			*ret = 0;
		if (digit)
			*ret = *ret * 10 + (unsigned)(*p - '0');
		any = any || digit;
	}
	return any;
}

static bool read_small(int fd, char *to, size_t room)
{
	const ssize_t n = fd < 0 ? -1 : read(fd, to, room - 1);

	if (n <= 0)
		return false;
	to[n] = 0;
	return true;
}

/*
 * Counts the fields after the last ")", because the program's name in field 2 may contain anything.
 */
bool mediate_stat_field(int fd, unsigned field, char to[32])
{
	char text[1024];
	const char *p;

	if (!read_small(fd, text, sizeof(text)))
		return false;
	p = strrchr(text, ')');
	for (unsigned i = 2; p && i < field; i++)
		p = strchr(p + 1, ' ');
	if (!p)
		return false;
	(void)snprintf(to, 32, "%.*s", (int)strcspn(p + 1, " "), p + 1);
	return true;
}

static int open_in(int root, const char *path, int flags)
{
	return mediate_openat2(root, path, flags | O_NOCTTY,
			       RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

/*
 * Finds the caller's ids in its own pid namespace, which its /proc shows. SECURITY: the directory
 * in this /proc with these ids belongs to the caller only if its process and the caller started at
 * the same time.
 */
static int inner_ids(struct call *c, int root, struct inner_ids *ret)
{
	scoped_fd status = -1, mine = -1, its = -1;
	char text[2048], name[64], a[32], b[32];
	int r = task_status(c);

	if (r < 0)
		return r;
	status = openat(c->task->proc, "status", O_RDONLY | O_CLOEXEC);
	if (!read_small(status, text, sizeof(text)) ||
	    !last_number(text, "\nNStgid:", &ret->tgid) ||
	    !last_number(text, "\nNSpid:", &ret->tid))
		return -EACCES;
	(void)snprintf(name, sizeof(name), "proc/%u/task/%u/stat", ret->tgid, ret->tid);
	its = open_in(root, name, O_RDONLY);
	mine = openat(c->task->proc, "stat", O_RDONLY | O_CLOEXEC);
	return mediate_stat_field(mine, START_TIME, a) && mediate_stat_field(its, START_TIME, b) &&
			       strcmp(a, b) == 0
		       ? 0
		       : -EACCES;
}

/* True if @rest, a path below /proc/PID, is a file or directory that every user may read. */
static bool is_plain_entry(struct sv rest)
{
	static const char *const names[] = { "",     "stat",   "statm",	    "status", "cmdline",
					     "comm", "cgroup", "oom_score", "task" };

	if (sv_starts(rest, SV("task/"))) {
		rest = sv_skip(rest, 5);
		(void)sv_cut(&rest, '/');
	}
	return sv_index(rest, names, ARRAY_LEN(names)) < ARRAY_LEN(names);
}

static bool is_number(struct sv s)
{
	uint64_t n;

	return sv_to_u64(s, UINT32_MAX, &n);
}

/*
 * Rewrites @path, the part of a path after "/proc/", to a path from the caller's root that contains
 * the caller's ids instead of "self". Returns 0 or -errno.
 */
static int inner_path(struct sv path, const struct inner_ids *own, char to[PATH_MAX])
{
	struct sv rest = path;
	const struct sv head = sv_cut(&rest, '/');
	char self[16];
	int n;

	(void)snprintf(self, sizeof(self), "%u", own->tgid);
	if (sv_is(head, "thread-self"))
		n = snprintf(to, PATH_MAX, "proc/%u/task/%u/" SV_FMT, own->tgid, own->tid,
			     SV_ARG(rest));
	else if (sv_is(head, "mounts") || sv_is(head, "net"))
		n = snprintf(to, PATH_MAX, "proc/%u/" SV_FMT, own->tgid, SV_ARG(path));
	else if (sv_is(head, "self") || sv_is(head, self))
		n = snprintf(to, PATH_MAX, "proc/%u/" SV_FMT, own->tgid, SV_ARG(rest));
	else if (is_number(head) && !is_plain_entry(rest))
		return -EACCES;
	/* sysctls of the network: the mediator would read those of its own network namespace */
	else if (sv_is(head, "sys") && sv_starts(rest, SV("net")))
		return -EACCES;
	else
		n = snprintf(to, PATH_MAX, "proc/" SV_FMT, SV_ARG(path));
	return n > 0 && n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int mediate_proc_open(struct call *c, const char *text, int flags)
{
	const int keep = flags & (O_DIRECTORY | O_NONBLOCK | O_NOFOLLOW);
	struct sv path = sv_skip(sv_from(text), strlen("/proc"));
	const int root = task_root(c);
	struct inner_ids own = { 0 };
	scoped_creds creds = { 0 };
	char real[PATH_MAX];
	int r;

	while (sv_starts(path, SV("/")))
		path = sv_skip(path, 1);
	if (root < 0 || !sv_is_straight(path))
		return -EACCES;
	r = inner_ids(c, root, &own);
	if (r == 0)
		r = inner_path(path, &own, real);
	if (r < 0)
		return r;
	if (!notify_valid(c->listener, c->id))
		return ANSWER_GONE;
	/*
	 * SECURITY: some files of /proc show more if the process that opened them had a capability.
	 */
	r = creds_enter(c, &creds);
	if (r == 0)
		r = open_in(root, real, keep & ~O_NOFOLLOW);
	/*
	 * ELOOP: the path leads through a magic link. The only magic link that the mediator opens
	 * is the caller's own program; see open_exe().
	 */
	if (r == -ELOOP)
		return sv_is(path, "self/exe") ? ANSWER_CONTINUE : -EACCES;
	return mediate_hand_out(c, r, flags);
}
