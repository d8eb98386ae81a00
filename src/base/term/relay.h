/*
 * relay.h - copy bytes between the user's standard descriptors and a session
 *
 * Theory of operation
 *
 * The relay runs in the supervisor. It has one stream for input, one each for output of the pseudo
 * terminal, standard output and standard error, and one for keys from a terminal that is not
 * standard input. An outer descriptor that is a terminal is connected to a pseudo terminal inside
 * the session; anything else is connected to a pipe and copied byte for byte. The relay never
 * blocks and has no thread: its owner polls the descriptors that relay_poll() returns and calls
 * relay_step().
 *
 * The owner ignores SIGPIPE. If outer 1 and 2 are the same file (`2>&1`), the owner gives
 * the session one pipe for both and sets inner[2] to -1, which preserves the order.
 *
 * A terminal that the user shares with the agent is an attack surface. Output of the
 * session passes through neutral.c, which removes escape sequences that report back, write
 * the clipboard or change modes. Keys go to the session only while writ is in the
 * foreground and no other program outside could be waiting for them.
 *
 * Invariants
 *   - Flags of outer descriptors never change: other programs share the open files.
 *   - relay_free() restores the modes of the outer terminal.
 *   - No call waits, except relay_finish(), which waits for readers of our output.
 *   - Output above output_max is read and dropped, so that the command does not block.
 *
 * Differences a user can notice, compared with a command run without writ
 *   - Piped input is read ahead of the command once the command has read 64 KiB.
 *   - Keys typed ahead are lost when the command ends.
 *   A file as standard input (`< list`) is positioned where the command stopped reading.
 *
 * Common mistakes
 *   - EAGAIN of splice() does not tell which side would block. See stream.c.
 *   - Terminal modes may only change in the foreground; a change in the background
 *     would stop the supervisor with SIGTTOU.
 *
 * Reads:  standard input; the session's pseudo terminal and pipes
 * Writes: standard output and error; the session's pseudo terminal and pipes
 * Next:   session/ polls it together with its other descriptors
 */
#ifndef WRIT_TERM_RELAY_H
#define WRIT_TERM_RELAY_H

#include <poll.h>

#include "base/buf.h"

struct relay_options {
	int outer[3];	     /* the user's descriptors 0, 1, 2; -1 if closed */
	int inner[3];	     /* the relay's ends of the session's pipes; -1: no pipe */
	int pty;	     /* master of the session's pseudo terminal, or -1 */
	bool on_pty[3];	     /* on_pty[i]: outer[i] is connected to the pty, not to inner[i] */
	uint64_t output_max; /* limit on bytes of output, all streams together; 0: none */
	bool neutral;	     /* remove dangerous escape sequences from the session's output */
	/*
	 * 0, or a stream socket that carries the bytes of the pty, whose master another process
	 * reads and writes. The relay then uses the pty only to read its modes and set its size.
	 */
	int link;
	bool joined; /* the pty was in use before: do not set its modes */
	bool escape; /* RELAY_ESCAPE followed by d at a terminal causes RELAY_DETACH */
};

enum { RELAY_ESCAPE = 0x1d }; /* Ctrl-]; typing Ctrl-] twice sends it once */

enum relay_event {
	RELAY_NOTHING = 0,
	RELAY_OUTPUT_FULL, /* output_max was reached and the marker has been written */
	RELAY_CLOSED,	   /* all output streams have ended */
	RELAY_DETACH,	   /* the user typed the detach sequence; later keys are not sent */
};

enum { RELAY_POLLS = 8 };

struct relay;

/*
 * Makes a relay. Sets O_NONBLOCK on inner and on pty (or link) and takes ownership of inner, pty
 * and link: relay_free() closes them, some are closed earlier. On failure the caller keeps
 * ownership. Output of the pty goes to the first of outer 1, 2, 0 that is connected to the pty.
 */
must_check int relay_new(const struct relay_options *opt, struct relay **ret_r,
			 struct writ_err *err);
/* Frees the relay and restores the modes of the outer terminal. */
void relay_free(struct relay *r);

/* Fills at most RELAY_POLLS entries for poll() and returns their number. */
size_t relay_poll(struct relay *r, struct pollfd *ret_fds);
/* Handles the results of poll() for the entries that relay_poll() filled. */
must_check int relay_step(struct relay *r, const struct pollfd *fds, size_t n,
			  enum relay_event *ret_event, struct writ_err *err);

/*
 * The owner calls these functions for SIGWINCH, before the owner stops for SIGTSTP, and after
 * SIGCONT. In the background the relay neither changes the terminal nor reads keys; relay_poll()
 * and relay_resume() check again whether writ is in the foreground.
 */
void relay_resize(struct relay *r);
void relay_suspend(struct relay *r); /* restores the terminal before writ stops itself */
void relay_resume(struct relay *r);

/*
 * Pauses the relay while another part of writ asks the user a question on the terminal: the relay
 * reads no keys and writes no output, because output could change how the question looks.
 */
void relay_hold(struct relay *r, bool hold);

/*
 * Call after the command has ended: returns unread input to its file, then delivers the output
 * still buffered in the session's pipes. The function waits for readers of the relay's output, but
 * not for more output from the session; an owner that must not wait polls until RELAY_CLOSED first.
 * If @waits is not NULL, the relay calls @waits every 100 ms; @waits returns false to give up on a
 * slow reader. Fails if output was lost for any reason other than a closed pipe, for example a full
 * disk.
 */
must_check int relay_finish(struct relay *r, bool (*waits)(void *ctx), void *ctx,
			    struct writ_err *err);
/* Returns the number of bytes of output so far, including dropped bytes. */
uint64_t relay_output(const struct relay *r);
/* Returns a counter that increases with every byte moved in either direction. */
uint64_t relay_activity(const struct relay *r);

/* --- escape.c: no side effects --- */

/*
 * Copies keys from @in to @out without the detach sequence. *@held means that RELAY_ESCAPE was
 * typed and the next key decides. Returns true on the detach sequence; the keys after the sequence
 * are dropped.
 */
must_check bool escape_step(bool *held, struct sv in, struct buf *out);

/* --- neutral.c: no side effects --- */

/*
 * Makes terminal output of an untrusted program harmless. Colours, cursor movement and erasing
 * pass. Sequences that make the terminal report something, write the clipboard, set titles, hide
 * links, change modes or erase the scrollback are dropped. Other control characters and direction
 * overrides become visible text. Assumes a terminal that uses UTF-8. The state carries over between
 * chunks and starts as all zero.
 */
struct neutral {
	uint8_t state;
	bool styled;   /* an escape sequence passed to the terminal: finish with NEUTRAL_RESET */
	uint16_t held; /* bytes in seq that belong to an unfinished sequence */
	uint32_t gone; /* length of the unfinished sequence so far */
	char seq[64];
};
#define NEUTRAL_RESET "\033[m\033[?25h"

/* Filters the output @in; appends at most 4 * @in.n + 64 bytes to @out. */
void neutral_step(struct neutral *n, struct sv in, struct buf *out);

#endif
