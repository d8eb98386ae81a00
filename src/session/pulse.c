#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "session/session_priv.h"

#include "base/banned.h"

static void forward(struct session *s, int number)
{
	const struct jail_message m = { .type = JAIL_SIGNAL, .id = 1, .value = number };
	struct writ_err err = { 0 };

	(void)!jail_send(s->jail.session, &m, NULL, 0, SV(""), &err);
}

/*
 * Gives the terminal back and stops as any program would, with everything in our
 * pipeline. Where no shell could let us go on, the kernel ignores this.
 */
void pulse_stop(struct session *s)
{
	sigset_t set;

	if (s->relay)
		relay_suspend(s->relay);
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)kill(0, SIGTSTP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	if (s->relay)
		relay_resume(s->relay);
	forward(s, SIGCONT);
}

void pulse_signal(struct session *s)
{
	struct signalfd_siginfo i;

	if (read(s->signals, &i, sizeof(i)) != (ssize_t)sizeof(i))
		return;
	/* Before there is a command, the signal is for us. */
	if (s->state == SESSION_STARTING && i.ssi_signo != SIGWINCH && i.ssi_signo != SIGTSTP) {
		session_end(s, NULL, SESSION_SIGNALLED + (int)i.ssi_signo);
		return;
	}
	switch ((int)i.ssi_signo) {
	case SIGWINCH:
		if (s->relay)
			relay_resize(s->relay);
		break;
	case SIGTSTP:
		forward(s, SIGSTOP);
		pulse_stop(s);
		break;
	case SIGHUP:
	case SIGTERM:
		/* The command may tidy up; after the grace everything ends. */
		forward(s, (int)i.ssi_signo);
		if (!s->asked_ms)
			s->asked_ms = clock_ms();
		else
			session_end(s, NULL, SESSION_SIGNALLED + (int)i.ssi_signo);
		break;
	case SIGINT:
	case SIGQUIT:
	case SIGUSR1:
	case SIGUSR2:
		forward(s, (int)i.ssi_signo);
		break;
	}
}

/* Nobody is left to have a signal: it is for what still goes on here. */
void pulse_hurry(struct session *s)
{
	struct signalfd_siginfo i;

	if (read(s->signals, &i, sizeof(i)) == (ssize_t)sizeof(i) &&
	    (i.ssi_signo == SIGHUP || i.ssi_signo == SIGTERM || i.ssi_signo == SIGINT ||
	     i.ssi_signo == SIGQUIT))
		s->hurried = true;
}

int pulse_open(struct session *s, struct writ_err *err)
{
	static const int wanted[] = { SIGWINCH, SIGTSTP, SIGHUP,  SIGTERM,
				      SIGINT,	SIGQUIT, SIGUSR1, SIGUSR2 };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		struct sigaction now;

		/* Who started us wants these ignored: nohup. */
		if (sigaction(wanted[i], NULL, &now) == 0 && now.sa_handler == SIG_IGN)
			continue;
		sigaddset(&set, wanted[i]);
	}
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "block signals");
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signals < 0 ? writ_fail(err, WRIT_E_SYS, errno, "signalfd") : 0;
}

static void time_is_up(struct session *s, const char *limit)
{
	struct entry entry = { 0 };

	record_begin(s, &entry, "limit");
	record_str(&entry, "limit", sv_from(limit));
	record_end(s, &entry);
	if (s->has_exit)
		return;
	session_end(s, limit, SESSION_TIMEOUT);
}

/* Milliseconds until @limit seconds after @since are over; acts if they are. */
static int until(struct session *s, enum cap_limit limit, uint64_t since, int least,
		 const char *name)
{
	const uint64_t length = s->opt->policy->set.limits[limit] * 1000;
	const uint64_t now = clock_ms();

	if (!length || s->state != SESSION_RUNNING)
		return least;
	if (now >= since + length) {
		time_is_up(s, name);
		return 0;
	}
	return since + length - now < (uint64_t)least ? (int)(since + length - now) : least;
}

void session_reach(struct session *s)
{
	struct writ_err err = { 0 };

	if (s->state != SESSION_RUNNING || s->control >= 0)
		return;
	if (control_open(s, &err) == 0) {
		session_rest();
		return;
	}
	say(s, "%s: %s", err.what, strerror(err.sys));
	session_end(s, "it could not be spoken to", SESSION_FAILED);
}

int pulse_timeout(struct session *s)
{
	const uint64_t now = clock_ms();
	/* A job that was sent to the background and fetched back is noticed by looking. */
	int t = s->interactive ? 1000 : 3600000;

	if (s->relay && relay_activity(s->relay) != s->activity) {
		s->activity = relay_activity(s->relay);
		s->active_ms = now;
	}
	if (s->state == SESSION_ENDING) {
		/* pid 1 is killing; if it cannot finish, the kernel does. */
		if (now >= s->killed_ms + GRACE_MS) {
			s->state = SESSION_ENDED;
			return 0;
		}
		return (int)(s->killed_ms + GRACE_MS - now);
	}
	if (s->control < 0 && s->state == SESSION_RUNNING) {
		if (now >= s->started_ms + ALONE_MS) {
			session_reach(s);
			return 0;
		}
		t = (int)(s->started_ms + ALONE_MS - now);
	}
	if (s->asked_ms && now >= s->asked_ms + GRACE_MS)
		session_end(s, NULL, SESSION_SIGNALLED + SIGTERM);
	else if (s->asked_ms)
		t = (int)(s->asked_ms + GRACE_MS - now);
	t = token_timeout(s, until(s, LIMIT_SESSION, s->started_ms, t, "session"));
	/* The command of a run is the session; others end alone. */
	if (!s->opt->detach)
		t = until(s, LIMIT_COMMAND, s->started_ms, t, "command");
	t = burst_timeout(s, ask_timeout(s, more_timeout(s, t)));
	return until(s, LIMIT_IDLE, s->active_ms, t, "idle");
}
