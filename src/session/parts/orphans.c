#include "parts/orphans.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "parts/agents.h"
#include "parts/engine.h"
#include "parts/git_transport.h"
#include "parts/mediation.h"
#include "parts/network.h"
#include "parts/notice.h"

#include "base/banned.h"

/*
 * Without a pid namespace, processes do not end with writ-init, and the host's pid 1 would adopt
 * them. The supervisor adopts them instead, and kills the processes that writ-init could not kill
 * or did not live to kill.
 */

enum { ORPHANS_MS = 10000, LIST_MAX = 64 << 10 };

struct orphans {
	int64_t left; /* number of processes that could not be killed; -1: not known */
};

static struct orphans *orphans_of(const struct session *s)
{
	return session_state(s, &orphans_initial);
}

const struct session_initial orphans_initial = SESSION_INITIAL(struct orphans, .left = 0);

int64_t orphans_left(const struct session *s)
{
	return orphans_of(s)->left;
}

int orphans_start(struct session *s, struct writ_err *err)
{
	(void)err;
	if (s->opt->plan->tier == TIER_B)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	return 0;
}

static bool is_helper(const struct session *s, pid_t pid)
{
	return pid == mediation_pid(s) || network_owns(s, pid) || git_transport_owns(s, pid) ||
	       spawn_owns(s, pid);
}

struct found {
	int64_t living, dead;
	bool full; /* the list was cut: there may be more processes */
};

static void kill_orphan(pid_t pid, bool reap, struct found *found)
{
	siginfo_t ended = { 0 };

	/*
	 * SECURITY: EPERM means another user. No process in a jail changes its user, so this
	 * process was never in the jail.
	 */
	if (kill(pid, SIGKILL) < 0 && errno == EPERM)
		return;
	if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | (reap ? 0 : WNOWAIT)) < 0)
		return;
	if (ended.si_pid != pid)
		found->living++;
	else
		found->dead++;
}

/* Kills all children of the supervisor but helpers, newest first. False: they cannot be listed. */
static bool kill_orphans(const struct session *s, bool reap, struct found *ret)
{
	scoped_fd fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
	char list[LIST_MAX];
	struct found found = { 0 };
	size_t n = 0;
	ssize_t got;

	if (fd < 0)
		return false;
	while (n < sizeof(list) && (got = read(fd, list + n, sizeof(list) - n)) > 0)
		n += (size_t)got;
	found.full = n == sizeof(list);
	/* The last number in the list may have been cut. */
	while (n && list[n - 1] != ' ')
		n--;
	for (struct sv rest = { list, n ? n - 1 : 0 }; rest.n;) {
		const size_t space = sv_rfind(rest, ' ');
		const struct sv last = space == SIZE_MAX ? rest : sv_skip(rest, space + 1);
		uint64_t pid;

		if (sv_to_u64(last, INT_MAX, &pid) && pid > 1 && !is_helper(s, (pid_t)pid))
			kill_orphan((pid_t)pid, reap, &found);
		rest.n = space == SIZE_MAX ? 0 : space;
	}
	*ret = found;
	return true;
}

/*
 * SECURITY: as in writ-init, dead processes are not reaped while others live, unless there are too
 * many to list. Dead processes count against the limit of processes, so that a process that forks
 * faster than the supervisor kills soon cannot fork any more.
 */
static int64_t end_orphans(const struct session *s)
{
	const uint64_t end = clock_boot_ms() + ORPHANS_MS;
	const struct timespec pause = { 0, 100000 };
	struct found now = { 0 };
	bool reap = false;

	do {
		if (!kill_orphans(s, reap, &now))
			return -1;
		/* This round found no child, living or dead: all have ended and were reaped. */
		if (!now.living && !now.dead)
			return 0;
		reap = !now.living || now.full;
		if (now.living)
			(void)nanosleep(&pause, NULL);
	} while (clock_boot_ms() < end);
	return now.living ? now.living : -1;
}

void orphans_finish(struct session *s)
{
	if (s->opt->plan->tier != TIER_B || session_status(s)->emptied)
		return;
	/*
	 * After the death of writ-init, the processes that are left are children of the supervisor.
	 */
	s->opt->plan->engine->kill(engine_run(s));
	orphans_of(s)->left = end_orphans(s);
	if (!orphans_of(s)->left)
		return;
	if (orphans_of(s)->left > 0)
		notice_print(s,
			     "%lld processes could not be ended: they go on, as confined as before",
			     (long long)orphans_of(s)->left);
	else
		notice_print(s, "processes may go on: it cannot be told which are left");
	if (session_status(s)->has_exit)
		session_exit_spoil(s);
}
