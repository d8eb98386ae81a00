#include "facts/probe_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "facts/scope.h"

#include "base/banned.h"

enum { SCOPE_MS = 1200, SCOPE_MEMORY = 1 << 28, SCOPE_PIDS = 16, SCOPE_CPU = 500 };

enum { CAN_MEMORY = 1 << 0, CAN_CPU = 1 << 1, CAN_PIDS = 1 << 2 };

/* Opens the cgroup directory of @pid; -1 on failure. */
static int cgroup_of(pid_t pid)
{
	struct cgroup_places c = { 0 };
	struct writ_err err;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (facts_cgroup_places_of(path, &c, &err) < 0 || c.version != CGROUP_V2 || !c.own[0])
		return -1;
	return open(c.own, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool file_contains(int dir, const char *file, const char *text)
{
	char is[64];
	scoped_fd fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, is, sizeof(is) - 1);

	return n > 0 && (size_t)n == strlen(text) && memcmp(is, text, (size_t)n) == 0;
}

/*
 * Moves @pid into a scope with limits. systemd silently omits limits that it cannot apply, so this
 * function reads the limits back from the cgroup and returns the bits CAN_* of those that hold.
 */
static uint64_t try_scope(const char *socket, pid_t pid)
{
	char name[64];
	const struct scope_ask ask = { .socket = socket,
				       .name = name,
				       .pid = pid,
				       .memory = SCOPE_MEMORY,
				       .pids = SCOPE_PIDS,
				       .cpu = SCOPE_CPU,
				       .timeout_ms = SCOPE_MS };
	struct writ_err err;
	scoped_fd dir = -1;

	(void)snprintf(name, sizeof(name), "writ-probe-%d.scope", (int)getpid());
	if (scope_start(&ask, &err) < 0)
		return 0;
	dir = cgroup_of(pid);
	if (dir < 0)
		return 0;
	return (uint64_t)((file_contains(dir, "memory.max", "268435456\n") ? CAN_MEMORY : 0) |
			  (file_contains(dir, "cpu.max", "50000 100000\n") ? CAN_CPU : 0) |
			  (file_contains(dir, "pids.max", "16\n") ? CAN_PIDS : 0));
}

int try_systemd(const struct probe *p, int arg, struct report *r)
{
	char socket[SCOPE_PATH];
	struct writ_err err = { 0 };
	struct stat st;
	scoped_fd fd = -1;
	pid_t pid;

	(void)arg;
	if (stat("/run/systemd/system", &st) < 0 || !S_ISDIR(st.st_mode) ||
	    !scope_socket(p->uid, socket))
		return ENOENT;
	if (scope_connect(socket, SCOPE_MS, &fd, &err) < 0)
		return err.sys ? err.sys : ENOENT;
	pid = facts_grandchild_idle();
	if (pid < 0)
		return errno;
	r->v[0] = try_scope(socket, pid);
	facts_grandchild_end(pid);
	return 0;
}

void facts_take_systemd(const struct report *r, struct host_facts *f)
{
	f->systemd_user = r->sys == 0;
	f->scope_memory = r->sys == 0 && r->v[0] & CAN_MEMORY;
	f->scope_cpu = r->sys == 0 && r->v[0] & CAN_CPU;
	f->scope_pids = r->sys == 0 && r->v[0] & CAN_PIDS;
}
