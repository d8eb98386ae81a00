#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "policy/diag.h"
#include "session/session_priv.h"

#include "base/banned.h"

/*
 * Questions to the person at the terminal that started the session, one after the
 * other. While one stands there, keys are the answer and not the agent's. Nobody
 * there, no answer in time, too many at once: no.
 */

enum { ASK_MS = 120000, QUIET_MS = 700 };

/* Where a person could answer. */
static int open_terminal(const struct session *s)
{
	if (s->opt->detach || s->opt->stdio)
		return -1;
	return open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

/* Behind, keys are another's, and what is shown there nobody may have asked for. */
static bool in_front(const struct session *s)
{
	return s->asking_tty >= 0 && !s->stopped && tcgetpgrp(s->asking_tty) == getpgrp();
}

int ask_terminal(const struct session *s)
{
	return in_front(s) ? s->asking_tty : -1;
}

static void put(const struct session *s, const char *text)
{
	struct buf b = BUF_INIT(16384), safe = BUF_INIT(65536);
	struct writ_err err = { 0 };

	buf_str(&b, text);
	diag_put_safe(&safe, buf_view(&b));
	(void)!fd_write_all(s->asking_tty, buf_view(&safe), &err);
	buf_clear(&b);
	buf_clear(&safe);
}

static void answer(struct session *s, uint32_t answer, const char *how)
{
	const struct question q = s->questions[0];
	struct egress_message m = { .type = EGRESS_ANSWER, .id = q.id, .count = answer };
	const int to = q.reader ? s->reader : s->egress;
	const bool held = s->log.holds;
	struct entry entry = { 0 };

	memmove(s->questions, s->questions + 1, --s->questions_n * sizeof(q));
	record_begin(s, &entry, "approval");
	record_str(&entry, "object", sv_from(q.object));
	record_str(&entry, "answer", answer ? SV("allow") : SV("deny"));
	record_str(&entry, "how", sv_from(how));
	if (s->question_ms)
		record_num(&entry, "ms", (int64_t)(clock_ms() - s->question_ms));
	record_end(s, &entry);
	/* In the middle of a burst, too, it is written before anybody acts on it. */
	record_flush(s);
	if (held)
		record_gather(s);
	if (to >= 0)
		(void)!egress_send(to, &m, NULL, 0);
	s->question_ms = 0;
	if (s->asking_tty >= 0 && s->questions_n == 0) {
		close(s->asking_tty);
		s->asking_tty = -1;
		if (s->relay)
			relay_hold(s->relay, false);
	}
	ask_next(s);
}

/* Shows the first question, if there is one that nobody has seen. */
void ask_next(struct session *s)
{
	char text[MEDIATE_TEXT + 128];
	struct writ_err err = { 0 };

	if (s->questions_n == 0 || s->question_ms)
		return;
	if (s->asking_tty < 0)
		s->asking_tty = open_terminal(s);
	if (!in_front(s)) {
		answer(s, 0, "nobody is there to ask");
		return;
	}
	if (s->relay)
		relay_hold(s->relay, true);
	s->question_ms = s->key_ms = clock_ms();
	(void)snprintf(text, sizeof(text),
		       "writ: may it reach %s?  y once, s for this session, n no: ",
		       s->questions[0].object);
	/* SECURITY: a sequence that the agent left open would swallow it, a style hide it. */
	(void)!fd_write_all(s->asking_tty, SV("\x18\x1b\\\x1b[0m\x1b(B\x0f\r\n"), &err);
	/* What was typed before is not an answer to this. */
	(void)tcflush(s->asking_tty, TCIFLUSH);
	put(s, text);
}

void ask_add(struct session *s, uint32_t id, bool reader, const char *object)
{
	struct question *q;
	struct egress_message m = { .type = EGRESS_ANSWER, .id = id };
	const int to = reader ? s->reader : s->egress;

	if (s->questions_n == QUESTIONS_MAX) {
		if (to >= 0)
			(void)!egress_send(to, &m, NULL, 0);
		return;
	}
	q = &s->questions[s->questions_n++];
	*q = (struct question){ .id = id, .reader = reader };
	(void)snprintf(q->object, sizeof(q->object), "%s", object);
	ask_next(s);
}

/*
 * SECURITY: the agent chooses when it asks, and sees what is typed to it: the next letter of
 * a word must not be an answer. A key counts only when no other came shortly before it.
 */
static bool is_typing(struct session *s)
{
	const uint64_t before = s->key_ms;

	s->key_ms = clock_ms();
	return s->key_ms - before < QUIET_MS;
}

/* A key was pressed. */
void ask_key(struct session *s)
{
	char c = 0;

	ssize_t n;

	if (s->questions_n == 0)
		return;
	n = read(s->asking_tty, &c, 1);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* A terminal that hung up would be reported for ever. */
	if (n != 1) {
		answer(s, 0, "the terminal is gone");
		return;
	}
	if (is_typing(s) || c == '\r' || c == '\n' || c == ' ')
		return;
	(void)!write(s->asking_tty,
		     c == 'y'	? "yes\r\n"
		     : c == 's' ? "session\r\n"
				: "no\r\n",
		     c == 'y'	? 5
		     : c == 's' ? 9
				: 4);
	answer(s, c == 'y' ? 1 : c == 's' ? 2 : 0, "a person");
}

/* Milliseconds until the question is too old, if that is less than @least. */
int ask_timeout(struct session *s, int least)
{
	const uint64_t now = clock_ms();

	if (s->questions_n == 0 || !s->question_ms)
		return least;
	/* SECURITY: who comes back does not see it; the next key is meant for something else. */
	if (!in_front(s)) {
		answer(s, 0, "nobody is there to ask");
		return 0;
	}
	if (now >= s->question_ms + ASK_MS) {
		(void)!write(s->asking_tty, "no answer\r\n", 11);
		answer(s, 0, "no answer in time");
		return 0;
	}
	return s->question_ms + ASK_MS - now < (uint64_t)least
		       ? (int)(s->question_ms + ASK_MS - now)
		       : least;
}
