#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "term/term_priv.h"

#include "base/banned.h"

/*
 * Is writ in the foreground of terminal @fd? Without job control on the terminal (tcgetpgrp fails)
 * no other process group competes for it.
 */
static bool in_front(int fd)
{
	const pid_t group = tcgetpgrp(fd);

	return group < 0 || group == getpgrp();
}

/*
 * Sets the modes of a terminal and blocks SIGTTOU during the change. The shell may move writ to the
 * background between the foreground check and tcsetattr(); a stop at that point would leave the
 * modes half changed.
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

/*
 * Sets raw mode on the outer terminal: keys pass unchanged, and the line discipline of the inner
 * terminal interprets the keys.
 */
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

		/* The outer terminal is raw now, so the inner terminal must turn \n into \r\n. */
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

/*
 * Restores the modes of the outer terminal. In the background leaves the modes alone: the
 * foreground program has set its own.
 */
void tty_restore(struct tty *t)
{
	if (t->raw && in_front(t->fd))
		(void)set_modes(t->fd, &t->found);
	t->raw = false;
}

/*
 * The inner terminal starts with the modes and special keys of the outer terminal, but only if
 * these are the user's own settings. In the background or in a pipeline the modes may be those of a
 * line editor or a pager; the kernel's defaults are a better guess then. As long as the outer
 * terminal is not raw, it turns \n into \r\n, so the inner terminal must not.
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
		/* Keep OPOST off until the outer terminal is raw: in the background, too. */
		inner.c_oflag &= ~(tcflag_t)OPOST;
		t->plain = t->input;
	}
	(void)tcsetattr(t->pty, TCSANOW, &inner);
	if (!t->lazy)
		tty_take(t);
}

static bool is_prompting(int fd)
{
	struct termios m;

	return tcgetattr(fd, &m) < 0 || (m.c_lflag & (ICANON | ECHO)) != (ICANON | ECHO);
}

/*
 * May the relay read a key now? Never in the background. In a pipeline (`x | less`) the keys belong
 * to the other program if that program has switched line mode off. The keys belong to the session
 * from the moment the command inside leaves line mode on its own terminal.
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
		/*
		 * SECURITY: do not read keys while a program outside the session prompts for a
		 * password: the session would receive the password.
		 */
		if (t->shows && is_prompting(t->fd))
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
