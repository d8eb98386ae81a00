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

void pulse_go_on(struct session *s)
{
	const bool stopped = s->stopped;

	s->stopped = false;
	if (s->relay)
		relay_resume(s->relay);
	if (stopped)
		forward(s, SIGCONT);
}

/*
 * The command has stopped. Gives the terminal back and has the shell's process stop, as any
 * program would; we go on without what a person sees and types.
 */
void pulse_stop(struct session *s)
{
	if (s->stopped)
		return;
	if (s->relay)
		relay_suspend(s->relay);
	s->stopped = true;
	if (!job_stop(s))
		pulse_go_on(s);
}

/* Somebody wants it stopped. Without a shell, until there is a SIGCONT. */
static void stop_command(struct session *s, const struct signalfd_siginfo *i)
{
	const bool own =
		s->opt->job > 0 && i->ssi_code == SI_USER && i->ssi_pid == (uint32_t)getppid();

	if (own || s->stopped)
		return;
	forward(s, SIGSTOP);
	if (s->opt->job > 0) {
		pulse_stop(s);
		return;
	}
	if (s->relay)
		relay_suspend(s->relay);
	s->stopped = true;
}

/*
 * One to the whole group comes to us, and again from who passes on what is sent to it. And
 * some send both to the process and to the group, who mean to ask once.
 */
static bool is_double(struct session *s, const struct signalfd_siginfo *i)
{
	const bool passed =
		s->opt->job > 0 && i->ssi_code == SI_QUEUE && i->ssi_pid == (uint32_t)getppid();
	const bool asks = i->ssi_signo == SIGTERM || i->ssi_signo == SIGHUP;
	const struct signalled now = { .number = i->ssi_signo,
				       .from = passed ? (uint32_t)i->ssi_int : i->ssi_pid,
				       .passed = passed,
				       .ms = clock_ms() };
	const struct signalled last = s->signalled;

	if (last.number != now.number || now.ms - last.ms >= DOUBLE_MS ||
	    (!asks && (last.from != now.from || last.passed == passed))) {
		s->signalled = now;
		return false;
	}
	if (!asks)
		s->signalled = (struct signalled){ 0 };
	return true;
}

void pulse_signal(struct session *s)
{
	struct signalfd_siginfo i;

	if (read(s->signals, &i, sizeof(i)) != (ssize_t)sizeof(i) || is_double(s, &i))
		return;
	/* Before there is a command, the signal is for us. */
	if (s->state == SESSION_STARTING && i.ssi_signo != SIGWINCH && i.ssi_signo != SIGTSTP &&
	    i.ssi_signo != SIGCONT) {
		session_end(s, NULL, SESSION_SIGNALLED + (int)i.ssi_signo);
		return;
	}
	switch ((int)i.ssi_signo) {
	case SIGWINCH:
		if (s->relay)
			relay_resize(s->relay);
		break;
	case SIGTSTP:
		stop_command(s, &i);
		break;
	case SIGCONT:
		/* Otherwise who was stopped says so. */
		if (s->opt->job <= 0)
			pulse_go_on(s);
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

void pulse_signals(sigset_t *ret)
{
	static const int wanted[] = { SIGWINCH, SIGTSTP, SIGCONT, SIGHUP, SIGTERM,
				      SIGINT,	SIGQUIT, SIGUSR1, SIGUSR2 };

	sigemptyset(ret);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		struct sigaction now;

		/* Who started us wants these ignored: nohup. */
		if (sigaction(wanted[i], NULL, &now) == 0 && now.sa_handler == SIG_IGN)
			continue;
		sigaddset(ret, wanted[i]);
	}
}

int pulse_open(struct session *s, struct writ_err *err)
{
	sigset_t set, behind;

	pulse_signals(&set);
	/* SECURITY: nor does a terminal that we read or write from behind stop us. */
	sigemptyset(&behind);
	sigaddset(&behind, SIGTTIN);
	sigaddset(&behind, SIGTTOU);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || sigprocmask(SIG_BLOCK, &behind, NULL) < 0)
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

/*
 * We may have been kept from looking for as long as that. What has come meanwhile counts, so
 * it is looked at first.
 */
static int until_idle(struct session *s, int least)
{
	const uint64_t length = s->opt->policy->set.limits[LIMIT_IDLE] * 1000;

	if (length && clock_ms() >= s->active_ms + length && s->idle_ms != s->active_ms) {
		s->idle_ms = s->active_ms;
		return 0;
	}
	return until(s, LIMIT_IDLE, s->active_ms, least, "idle");
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
	return until_idle(s, t);
}
