#include "parts/questions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "parts/network.h"
#include "parts/record.h"
#include "parts/terminal.h"

#include "base/banned.h"

/*
 * Questions to the person at the terminal that started the session, one after the other. While a
 * question is shown, keys answer the question and do not go to the agent. The answer is no if no
 * person is at the terminal, if no key comes in time, or if too many questions wait.
 */

enum { ASK_MS = 120000, QUIET_MS = 700 };

enum { QUESTIONS_MAX = 64 };

struct question {
	uint32_t id;
	bool reader; /* the reader of requests asks the question, not egress */
	char object[MEDIATE_TEXT];
};

struct questions {
	/* Pending questions; the first one is being asked. */
	struct question questions[QUESTIONS_MAX];
	size_t questions_n;
	uint64_t question_ms; /* when the first question was shown; 0: not yet */
	uint64_t key_ms;      /* when the question was shown, or the last key came */
	int asking_tty;	      /* terminal that shows the question; -1: none */
};

static struct questions *questions_of(const struct session *s)
{
	return session_state(s, &questions_initial);
}

const struct session_initial questions_initial = { sizeof(struct questions), NULL };

int questions_init(struct session *s, struct writ_err *err)
{
	(void)err;
	questions_of(s)->asking_tty = -1;
	return 0;
}

/* Opens the terminal at which a person could answer; -1: none. */
static int open_terminal(const struct session *s)
{
	if (s->opt->detach || s->opt->stdio)
		return -1;
	return open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

/*
 * Returns whether writ is the foreground job of the terminal. In the background, keys go to another
 * program, and the question would appear in the output of that program.
 */
static bool in_front(const struct session *s)
{
	return questions_of(s)->asking_tty >= 0 && !terminal_is_stopped(s) &&
	       tcgetpgrp(questions_of(s)->asking_tty) == getpgrp();
}

static void show_next(struct session *s);

static void answer(struct session *s, uint32_t answer, const char *how)
{
	const struct question q = questions_of(s)->questions[0];
	const bool held = record_gathers(s);
	struct entry entry = record_begin("approval");

	memmove(questions_of(s)->questions, questions_of(s)->questions + 1,
		--questions_of(s)->questions_n * sizeof(q));
	record_str(&entry, "object", sv_from(q.object));
	record_str(&entry, "answer", answer ? SV("allow") : SV("deny"));
	record_str(&entry, "how", sv_from(how));
	if (questions_of(s)->question_ms)
		record_num(&entry, "ms", (int64_t)(clock_boot_ms() - questions_of(s)->question_ms));
	record_end(s, &entry);
	/*
	 * Write the entry of the answer before egress or the reader acts on the answer, even while
	 * entries are gathered.
	 */
	record_flush(s);
	if (held)
		record_gather(s);
	network_answer(s, q.reader, q.id, answer);
	questions_of(s)->question_ms = 0;
	if (questions_of(s)->asking_tty >= 0 && questions_of(s)->questions_n == 0) {
		fd_close(&questions_of(s)->asking_tty);
		terminal_hold(s, false);
	}
	show_next(s);
}

/* Shows the first question, if one is pending and not yet shown. */
static void show_next(struct session *s)
{
	char text[MEDIATE_TEXT + 128];
	scoped_buf safe = BUF_INIT(65536);
	struct writ_err err = { 0 };

	if (questions_of(s)->questions_n == 0 || questions_of(s)->question_ms)
		return;
	if (questions_of(s)->asking_tty < 0)
		questions_of(s)->asking_tty = open_terminal(s);
	if (!in_front(s)) {
		answer(s, 0, "nobody is there to ask");
		return;
	}
	terminal_hold(s, true);
	questions_of(s)->question_ms = questions_of(s)->key_ms = clock_boot_ms();
	(void)snprintf(text, sizeof(text),
		       "writ: may it reach %s?  y once, s for this session, n no: ",
		       questions_of(s)->questions[0].object);
	/*
	 * SECURITY: end an escape sequence that the agent left open, which would swallow the
	 * question, and reset a style that could hide the question.
	 */
	(void)!fd_write_all(questions_of(s)->asking_tty, SV("\x18\x1b\\\x1b[0m\x1b(B\x0f\r\n"),
			    &err);
	/* Drop keys from before the question: they do not answer it. */
	(void)tcflush(questions_of(s)->asking_tty, TCIFLUSH);
	diag_put_safe(&safe, sv_from(text));
	(void)!fd_write_all(questions_of(s)->asking_tty, buf_view(&safe), &err);
}

void questions_add(struct session *s, uint32_t id, bool reader, const char *object)
{
	struct question *q;

	if (questions_of(s)->questions_n == QUESTIONS_MAX) {
		network_answer(s, reader, id, 0);
		return;
	}
	q = &questions_of(s)->questions[questions_of(s)->questions_n++];
	*q = (struct question){ .id = id, .reader = reader };
	(void)snprintf(q->object, sizeof(q->object), "%s", object);
	show_next(s);
}

/*
 * SECURITY: the agent chooses when to cause a question, and sees the keys that a person types to
 * it: the next letter of a word must not become the answer. A key counts only if no other key came
 * shortly before it.
 */
static bool is_typing(struct session *s)
{
	const uint64_t before = questions_of(s)->key_ms;

	questions_of(s)->key_ms = clock_boot_ms();
	return questions_of(s)->key_ms - before < QUIET_MS;
}

/*
 * Handles a key: y allows once, s allows for this session, Enter and the space bar are ignored, and
 * any other key refuses.
 */
static void recv_key(struct session *s)
{
	char c = 0;

	ssize_t n;

	if (questions_of(s)->questions_n == 0)
		return;
	n = read(questions_of(s)->asking_tty, &c, 1);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* poll() would report a terminal that hung up for ever: answer no. */
	if (n != 1) {
		answer(s, 0, "the terminal is gone");
		return;
	}
	if (is_typing(s) || c == '\r' || c == '\n' || c == ' ')
		return;
	(void)!write(questions_of(s)->asking_tty,
		     c == 'y'	? "yes\r\n"
		     : c == 's' ? "session\r\n"
				: "no\r\n",
		     c == 'y'	? 5
		     : c == 's' ? 9
				: 4);
	answer(s, c == 'y' ? 1 : c == 's' ? 2 : 0, "a person");
}

/* Returns the milliseconds until the question expires, at most @least. */
int questions_deadline(struct session *s, int least)
{
	const uint64_t now = clock_boot_ms();

	if (questions_of(s)->questions_n == 0 || !questions_of(s)->question_ms ||
	    session_phase(s) >= SESSION_ENDING)
		return least;
	/*
	 * SECURITY: a person who returns to the terminal does not see the question, and types for
	 * another program: answer no.
	 */
	if (!in_front(s)) {
		answer(s, 0, "nobody is there to ask");
		return 0;
	}
	if (now >= questions_of(s)->question_ms + ASK_MS) {
		(void)!write(questions_of(s)->asking_tty, "no answer\r\n", 11);
		answer(s, 0, "no answer in time");
		return 0;
	}
	return questions_of(s)->question_ms + ASK_MS - now < (uint64_t)least
		       ? (int)(questions_of(s)->question_ms + ASK_MS - now)
		       : least;
}

void questions_poll(struct session *s, struct session_poll *set)
{
	session_poll_add(set, in_front(s) ? questions_of(s)->asking_tty : -1, POLLIN);
}

void questions_on_event(struct session *s, const struct pollfd *p, size_t n)
{
	(void)n;
	if (p[0].revents)
		recv_key(s);
}
