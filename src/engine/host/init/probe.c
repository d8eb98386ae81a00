#include "init/init.h"

#include <asm/stat.h>
#include <linux/in.h>
#include <linux/socket.h>

#include "base/banned.h"

/*
 * Probes try to break the jail from inside. The sealed program lists the probes; this file performs
 * each probe and reports the kernel's answer. The supervisor decides whether the answer is right. A
 * probe leaves nothing behind in the file system even if it succeeds: probes open files, but write
 * no file and create no name.
 */

enum { FDS_PROBED = 66, FAMILY_INET = 2, NO_SIGNAL = 0x4000, CLOSE_ON_EXEC = 1 };

static long probe_open(const struct jail_head *p, const struct jail_probe *t,
		       struct jail_probe_result *ret)
{
	struct stat st;
	const long fd = sys(openat, AT_FDCWD, span_at(p, t->path), t->arg[0] | O_CLOEXEC, 0);
	long r;

	if (fd < 0)
		return fd;
	r = sys(fstat, fd, &st);
	ret->dev = st.st_dev;
	ret->ino = st.st_ino;
	(void)sys(close, fd);
	return r;
}

static long probe_socket(const struct jail_probe *t)
{
	const long fd = sys(socket, t->arg[0], t->arg[1] | O_CLOEXEC, t->arg[2]);

	if (fd >= 0)
		(void)sys(close, fd);
	return fd;
}

/*
 * Connects and sends two numbers, if @t has them, by which a listener outside the jail recognises
 * this probe.
 */
static long probe_connect(const struct jail_probe *t)
{
	const uint32_t at = (uint32_t)t->arg[0];
	struct sockaddr_in to = { .sin_family = FAMILY_INET,
				  .sin_port = (uint16_t)(t->arg[1] >> 8 | t->arg[1] << 8),
				  .sin_addr = { __builtin_bswap32(at) } };
	const long fd = sys(socket, FAMILY_INET, t->number | O_CLOEXEC, 0);
	long r;

	if (fd < 0)
		return fd;
	r = sys(connect, fd, &to, sizeof(to));
	if (r == 0 && t->arg[2])
		(void)sys(sendto, fd, &t->arg[2], 2 * sizeof(t->arg[2]), NO_SIGNAL, 0, 0);
	(void)sys(close, fd);
	return r;
}

/* Tries to set a resource limit to one more than the limit in @t. */
static long probe_rlimit(const struct jail_probe *t)
{
	const uint64_t more[2] = { t->arg[1] + 1, t->arg[1] + 1 };

	return sys(prlimit64, 0, t->arg[0], more, 0);
}

/*
 * Succeeds if a command would inherit a descriptor, that is, if a descriptor from 3 to FDS_PROBED -
 * 1 without the close-on-exec flag is open.
 */
static long probe_inherited(void)
{
	for (long fd = 3; fd < FDS_PROBED; fd++) {
		const long flags = sys(fcntl, fd, F_GETFD, 0);

		if (flags >= 0 && !(flags & CLOSE_ON_EXEC))
			return 0;
	}
	return -ENOENT;
}

static long try_one(const struct jail_head *p, const struct jail_probe *t,
		    struct jail_probe_result *ret)
{
	switch ((enum jail_probe_op)t->op) {
	case JAIL_PROBE_OPEN:
		return probe_open(p, t, ret);
	case JAIL_PROBE_CALL:
		return sys_any(t->number, t->arg[0], t->arg[1], t->arg[2], t->arg[3]);
	case JAIL_PROBE_SOCKET:
		return probe_socket(t);
	case JAIL_PROBE_CONNECT:
		return probe_connect(t);
	case JAIL_PROBE_RLIMIT:
		return probe_rlimit(t);
	case JAIL_PROBE_INHERITED:
		return probe_inherited();
	case JAIL_PROBE_NONE:
	case JAIL_PROBE_COUNT:
		break;
	}
	return -EPROTO;
}

/* Parses the number between brackets in @name; 0 if @name contains no such number. */
static uint64_t bracketed_number(const char *name, long n)
{
	uint64_t v = 0;
	long at = 0;

	while (at < n && name[at] != '[')
		at++;
	for (at++; at < n && name[at] >= '0' && name[at] <= '9'; at++)
		v = v * 10 + (uint64_t)(name[at] - '0');
	return v;
}

static void read_namespaces(uint64_t *ret)
{
	static const char names[JAIL_SPACES][8] = {
		[JAIL_SPACE_MNT] = "mnt",
		[JAIL_SPACE_NET] = "net",
		[JAIL_SPACE_PID] = "pid",
		[JAIL_SPACE_USER] = "user",
	};
	const long dir =
		sys(openat, AT_FDCWD, "/proc/self/ns", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);

	for (size_t i = 0; dir >= 0 && i < JAIL_SPACES; i++) {
		char name[64]; /* text such as "mnt:[4026531841]" */
		const long n = sys(readlinkat, dir, names[i], name, sizeof(name));

		ret[i] = bracketed_number(name, n);
	}
	if (dir >= 0)
		(void)sys(close, dir);
}

int init_probe_run(const struct jail_head *p, enum jail_phase phase, uint32_t id, bool landlock)
{
	const struct jail_probe *v = span_at(p, p->probes);
	struct {
		struct jail_message m;
		struct jail_probed p;
	} report;
	long r;

	memset(&report, 0, sizeof(report));
	report.m.type = JAIL_PROBED;
	report.m.id = id;
	report.m.value = phase;
	report.p.n = p->probes.n;
	report.p.landlock = landlock;
	if (phase == JAIL_PHASE_START)
		read_namespaces(report.p.spaces);
	for (uint32_t i = 0; i < p->probes.n; i++) {
		r = try_one(p, &v[i], &report.p.of[i]);
		report.p.of[i].error = r < 0 ? (int32_t)-r : 0;
	}
	r = sys(write, JAIL_FD_SESSION, &report, sizeof(report));
	return r == (long)sizeof(report) ? 0 : r < 0 ? (int)r : -EIO;
}
