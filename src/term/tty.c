#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "term/term_priv.h"

#include "base/banned.h"

/* Without job control for us on this terminal nobody else can be in front either. */
static bool in_front(int fd)
{
	const pid_t group = tcgetpgrp(fd);

	return group < 0 || group == getpgrp();
}

/*
 * Between the check for the foreground and the change the shell may move us to the
 * background; a stop there would leave the modes half way, so the signal waits.
 */
static bool set_modes(int fd, const struct termios *modes)
{
	sigset_t ttou, old;
	bool done;

	(void)sigemptyset(&ttou);
	(void)sigaddset(&ttou, SIGTTOU);
	if (sigprocmask(SIG_BLOCK, &ttou, &old) < 0)
		return false;
	done = tcsetattr(fd, TCSANOW, modes) == 0;
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	return done;
}

void tty_size(const struct tty *t)
{
	struct winsize size;

	if (t->fd >= 0 && t->pty >= 0 && ioctl(t->fd, TIOCGWINSZ, &size) == 0)
		(void)ioctl(t->pty, TIOCSWINSZ, &size);
}

/* Keys go through untouched: the line discipline inside is the one that interprets them. */
static bool set_raw(const struct tty *t)
{
	struct termios raw = t->found;

	cfmakeraw(&raw);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	return set_modes(t->fd, &raw);
}

void tty_take(struct tty *t)
{
	if (!t->input || t->raw || t->away || !in_front(t->fd) || tcgetattr(t->fd, &t->found) < 0)
		return;
	t->raw = set_raw(t);
	if (t->raw && t->plain) {
		struct termios inner;

		/* Now nobody else turns \n into \r\n. */
		if (tcgetattr(t->pty, &inner) == 0) {
			inner.c_oflag |= OPOST;
			(void)tcsetattr(t->pty, TCSANOW, &inner);
		}
		t->plain = false;
	}
}

void tty_retake(struct tty *t)
{
	t->away = false;
	if (t->raw && in_front(t->fd))
		(void)set_raw(t);
	else if (!t->lazy)
		tty_take(t);
	tty_size(t);
}

/* In the background the terminal is another's, and it has set the modes it wants. */
void tty_give(struct tty *t)
{
	if (t->raw && in_front(t->fd))
		(void)set_modes(t->fd, &t->found);
	t->raw = false;
}

/*
 * The inner terminal starts with the person's own keys and modes, but only where they
 * are the person's: in the background or in a pipeline they may be those of a line
 * editor or a pager, and the kernel's defaults are the better guess. Where we never take
 * the outer terminal, it goes on turning \n into \r\n, so the inner one must not.
 */
void tty_start(struct tty *t)
{
	struct termios inner;

	tty_size(t);
	if (t->joined)
		tty_take(t);
	if (t->joined || t->pty < 0 || tcgetattr(t->pty, &inner) < 0)
		return;
	inner.c_iflag |= IUTF8;
	if (!t->lazy && t->input && in_front(t->fd)) {
		(void)tcgetattr(t->fd, &inner);
	} else if (!t->input || !t->lazy || t->shows) {
		/* In the background too, until we are fetched to the front. */
		inner.c_oflag &= ~(tcflag_t)OPOST;
		t->plain = t->input;
	}
	(void)tcsetattr(t->pty, TCSANOW, &inner);
	if (!t->lazy)
		tty_take(t);
}

static bool is_asking(int fd)
{
	struct termios m;

	return tcgetattr(fd, &m) < 0 || (m.c_lflag & (ICANON | ECHO)) != (ICANON | ECHO);
}

/*
 * May a key be read now? Not in the background. In a pipeline (`x | less`) the keys are
 * another program's if it has switched line mode off, and ours alone from the moment the
 * command inside reads its terminal in a way of its own.
 */
bool tty_may_read(struct tty *t)
{
	struct termios m;

	if (t->away || !in_front(t->fd))
		return false;
	if (!t->lazy)
		tty_take(t);
	if (!t->lazy || t->raw)
		return true;
	if (tcgetattr(t->pty, &m) == 0 && (m.c_lflag & (ICANON | ECHO)) != (ICANON | ECHO)) {
		/* SECURITY: somebody outside may be asking for a password just now. */
		if (t->shows && is_asking(t->fd))
			return false;
		tty_take(t);
		return true;
	}
	return !t->shows && tcgetattr(t->fd, &m) == 0 && (m.c_lflag & ICANON);
}

unsigned char tty_eof_key(const struct tty *t)
{
	struct termios m;

	return tcgetattr(t->pty, &m) == 0 ? m.c_cc[VEOF] : 4;
}
