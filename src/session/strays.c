#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "session/session_priv.h"

#include "base/banned.h"

/*
 * Without a pid namespace nothing ends with writ-init: its children are the host's. They come
 * to us instead, and we end what it could not, or did not live to.
 */

enum { STRAYS_MS = 10000, LIST_MAX = 64 << 10 };

void strays_expect(const struct session *s)
{
	if (s->opt->plan->tier == TIER_B)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static bool is_helper(const struct session *s, pid_t pid)
{
	const pid_t own[] = { s->mediator_pid, s->egress_pid, s->resolver_pid, s->reader_pid,
			      s->git_pid };

	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (own[i] == pid)
			return true;
	for (size_t i = 0; i < SUBS_MAX; i++)
		if (s->subs[i].pid == pid)
			return true;
	return false;
}

struct strays {
	int64_t living, dead;
	bool full; /* there may be more */
};

static void kill_stray(pid_t pid, bool reap, struct strays *found)
{
	siginfo_t ended = { 0 };

	/* SECURITY: nothing in a jail becomes another user. This one was never there. */
	if (kill(pid, SIGKILL) < 0 && errno == EPERM)
		return;
	if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | (reap ? 0 : WNOWAIT)) < 0)
		return;
	if (ended.si_pid != pid)
		found->living++;
	else
		found->dead++;
}

/* All children of ours but helpers, the newest first. False: they cannot be told. */
static bool kill_strays(const struct session *s, bool reap, struct strays *ret)
{
	scoped_fd fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
	char list[LIST_MAX];
	struct strays found = { 0 };
	size_t n = 0;
	ssize_t got;

	if (fd < 0)
		return false;
	while (n < sizeof(list) && (got = read(fd, list + n, sizeof(list) - n)) > 0)
		n += (size_t)got;
	found.full = n == sizeof(list);
	/* The last may have been cut. */
	while (n && list[n - 1] != ' ')
		n--;
	for (struct sv rest = { list, n ? n - 1 : 0 }; rest.n;) {
		const size_t space = sv_rfind(rest, ' ');
		const struct sv last = space == SIZE_MAX ? rest : sv_skip(rest, space + 1);
		uint64_t pid;

		if (sv_to_u64(last, INT_MAX, &pid) && pid > 1 && !is_helper(s, (pid_t)pid))
			kill_stray((pid_t)pid, reap, &found);
		rest.n = space == SIZE_MAX ? 0 : space;
	}
	*ret = found;
	return true;
}

/*
 * SECURITY: as in writ-init, the dead are not reaped while somebody lives, up to a number:
 * they count for the limit of processes, and who forks faster than we look cannot any more.
 */
static int64_t end_strays(const struct session *s)
{
	const uint64_t end = clock_ms() + STRAYS_MS;
	const struct timespec pause = { 0, 100000 };
	struct strays now = { 0 };
	bool reap = false;

	do {
		if (!kill_strays(s, reap, &now))
			return -1;
		/* Nobody new came from those that were dead, either. */
		if (!now.living && !now.dead)
			return 0;
		reap = !now.living || now.full;
		if (now.living)
			(void)nanosleep(&pause, NULL);
	} while (clock_ms() < end);
	return now.living ? now.living : -1;
}

void strays_end(struct session *s)
{
	if (s->opt->plan->tier != TIER_B || s->emptied)
		return;
	cgroup_kill(&s->cgroup);
	/* From here on we are the parent of all. */
	jail_kill(&s->jail);
	s->strays = end_strays(s);
	if (!s->strays)
		return;
	if (s->strays > 0)
		say(s, "%lld processes could not be ended: they go on, as confined as before",
		    (long long)s->strays);
	else
		say(s, "processes may go on: it cannot be told which are left");
	if (s->has_exit && s->exit_code == 0)
		s->exit_code = SESSION_FAILED;
}
