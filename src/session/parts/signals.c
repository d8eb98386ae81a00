#include "parts/signals.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "parts/engine.h"
#include "parts/terminal.h"

#include "base/banned.h"

enum { DOUBLE_MS = 100 }; /* two equal signals within this time may be one request */

struct signals {
	int signals; /* signalfd; -1: not open */
	/* The last signal, its sender, and whether the job process forwarded it. */
	struct signalled {
		uint32_t number, from;
		bool passed;
		uint64_t ms;
	} signalled;
	uint64_t asked_ms; /* when SIGTERM or SIGHUP first came; 0: never */
};

static struct signals *signals_of(const struct session *s)
{
	return session_state(s, &signals_initial);
}

const struct session_initial signals_initial = SESSION_INITIAL(struct signals, .signals = -1);

void signals_clear(struct session *s)
{
	fd_scope_close(&signals_of(s)->signals);
}

uint64_t signals_asked_ms(const struct session *s)
{
	return signals_of(s)->asked_ms;
}

void signals_send(struct session *s, int number)
{
	engine_signal(s, 1, number);
}

/* Stops the command. Without job control, the command stays stopped until writ receives SIGCONT. */
static void stop_command(struct session *s, const struct signalfd_siginfo *i)
{
	const bool own =
		s->opt->job > 0 && i->ssi_code == SI_USER && i->ssi_pid == (uint32_t)getppid();

	if (own || terminal_is_stopped(s))
		return;
	signals_send(s, SIGSTOP);
	if (s->opt->job > 0) {
		terminal_stop(s);
		return;
	}
	terminal_suspend(s);
}

/*
 * Returns whether a signal repeats the last one. A signal to the whole process group arrives twice:
 * directly, and forwarded by the job process. Some programs also signal a process and its group to
 * ask once.
 */
static bool is_double(struct session *s, const struct signalfd_siginfo *i)
{
	const bool passed =
		s->opt->job > 0 && i->ssi_code == SI_QUEUE && i->ssi_pid == (uint32_t)getppid();
	const bool asks = i->ssi_signo == SIGTERM || i->ssi_signo == SIGHUP;
	const struct signalled now = { .number = i->ssi_signo,
				       .from = passed ? (uint32_t)i->ssi_int : i->ssi_pid,
				       .passed = passed,
				       .ms = clock_boot_ms() };
	const struct signalled last = signals_of(s)->signalled;

	if (last.number != now.number || now.ms - last.ms >= DOUBLE_MS ||
	    (!asks && (last.from != now.from || last.passed == passed))) {
		signals_of(s)->signalled = now;
		return false;
	}
	if (!asks)
		signals_of(s)->signalled = (struct signalled){ 0 };
	return true;
}

static void recv_signal(struct session *s)
{
	struct signalfd_siginfo i;

	if (read(signals_of(s)->signals, &i, sizeof(i)) != (ssize_t)sizeof(i) || is_double(s, &i))
		return;
	/* Before there is a command, the signal ends writ itself. */
	if (session_phase(s) == SESSION_STARTING && i.ssi_signo != SIGWINCH &&
	    i.ssi_signo != SIGTSTP && i.ssi_signo != SIGCONT) {
		session_end(s, NULL, SESSION_SIGNALLED + (int)i.ssi_signo);
		return;
	}
	switch ((int)i.ssi_signo) {
	case SIGWINCH:
		terminal_resize(s);
		break;
	case SIGTSTP:
		stop_command(s, &i);
		break;
	case SIGCONT:
		/* Under job control the job process reports that it was continued. */
		if (s->opt->job <= 0)
			terminal_resume(s);
		break;
	case SIGHUP:
	case SIGTERM:
		/*
		 * Let the command clean up. signals_deadline() ends the session after the grace
		 * period, a second signal at once.
		 */
		signals_send(s, (int)i.ssi_signo);
		if (!signals_of(s)->asked_ms)
			signals_of(s)->asked_ms = clock_boot_ms();
		else
			session_end(s, NULL, SESSION_SIGNALLED + (int)i.ssi_signo);
		break;
	case SIGINT:
	case SIGQUIT:
	case SIGUSR1:
	case SIGUSR2:
		signals_send(s, (int)i.ssi_signo);
		break;
	}
}

/* After the session has ended, a signal ends the supervisor's wait for deliveries and readers. */
static void recv_late_signal(struct session *s)
{
	struct signalfd_siginfo i;

	if (read(signals_of(s)->signals, &i, sizeof(i)) == (ssize_t)sizeof(i) &&
	    (i.ssi_signo == SIGHUP || i.ssi_signo == SIGTERM || i.ssi_signo == SIGINT ||
	     i.ssi_signo == SIGQUIT))
		session_stop_request(s);
}

void signals_forwarded(sigset_t *ret)
{
	static const int wanted[] = { SIGWINCH, SIGTSTP, SIGCONT, SIGHUP, SIGTERM,
				      SIGINT,	SIGQUIT, SIGUSR1, SIGUSR2 };

	sigemptyset(ret);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		struct sigaction now;

		/* Skip signals that the parent of writ has set to be ignored, as nohup does. */
		if (sigaction(wanted[i], NULL, &now) == 0 && now.sa_handler == SIG_IGN)
			continue;
		sigaddset(ret, wanted[i]);
	}
}

int signals_start(struct session *s, struct writ_err *err)
{
	sigset_t set, behind;

	signals_forwarded(&set);
	/* SECURITY: the supervisor must not stop when it uses the terminal in the background. */
	sigemptyset(&behind);
	sigaddset(&behind, SIGTTIN);
	sigaddset(&behind, SIGTTOU);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || sigprocmask(SIG_BLOCK, &behind, NULL) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "block signals");
	signals_of(s)->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return signals_of(s)->signals < 0 ? writ_fail(err, WRIT_E_SYS, errno, "signalfd") : 0;
}

/*
 * Handles a message of the job process. SECURITY: ends the session if the job process has ended,
 * because the shell can no longer reach the supervisor.
 */
static void recv_job(struct session *s)
{
	const int r = job_recv(s);

	if (r > 0)
		terminal_resume(s);
	else if (r < 0)
		session_end(s, "the job is gone", SESSION_SIGNALLED + SIGHUP);
}

void signals_poll(struct session *s, struct session_poll *set)
{
	const bool runs = session_phase(s) <= SESSION_RUNNING;

	session_poll_add(set, signals_of(s)->signals, POLLIN);
	session_poll_add(set, s->opt->job > 0 && runs ? s->opt->job : -1, POLLIN);
}

void signals_on_event(struct session *s, const struct pollfd *p, size_t n)
{
	(void)n;
	if (p[0].revents && session_phase(s) == SESSION_ENDED)
		recv_late_signal(s);
	else if (p[0].revents)
		recv_signal(s);
	if (p[1].revents)
		recv_job(s);
}

int signals_deadline(struct session *s, int least)
{
	const uint64_t asked = signals_of(s)->asked_ms, now = clock_boot_ms();

	if (!asked || session_phase(s) >= SESSION_ENDING)
		return least;
	if (now >= asked + SESSION_GRACE_MS) {
		session_end(s, NULL, SESSION_SIGNALLED + SIGTERM);
		return 0;
	}
	return asked + SESSION_GRACE_MS - now < (uint64_t)least
		       ? (int)(asked + SESSION_GRACE_MS - now)
		       : least;
}
