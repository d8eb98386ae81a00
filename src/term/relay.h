/*
 * relay.h - carries bytes between a person's descriptors and a session's
 *
 * Reads:  our standard input; the session's pseudo terminals and pipes
 * Writes: our standard output and error; the session's
 * Next:   session/ polls it beside everything else
 *
 * One stream per standard descriptor. A descriptor that is a terminal outside is
 * joined to a pseudo terminal inside; anything else to a pipe, byte for byte.
 * No blocking call, no thread: the owner polls the descriptors this asks for.
 *
 * The owner ignores SIGPIPE. Where outer 1 and 2 are one file (`2>&1`), it gives the
 * session one pipe for both and sets inner[2] to -1, so that the order is kept.
 *
 * What a person can tell from a command run without us: input that was piped in is
 * taken ahead of the command once that has read 64 KiB, and keys typed ahead are
 * lost when it ends. A file as input (`< list`) is put back to where the command
 * stopped reading.
 */
#ifndef WRIT_TERM_RELAY_H
#define WRIT_TERM_RELAY_H

#include <poll.h>

#include "base/buf.h"
#include "base/err.h"

struct relay_options {
	int outer[3];	     /* ours: 0, 1, 2; -1 if closed */
	int inner[3];	     /* the session's side: pipe ends we write to and read from */
	int pty;	     /* master of the session's terminal, or -1 */
	bool on_pty[3];	     /* this outer descriptor is joined to the pty */
	uint64_t output_max; /* bytes of output, all streams together; 0: no limit */
	bool neutral;	     /* make escape sequences of agents harmless */
	/*
	 * 0, or a stream socket with the bytes of the pty, which somebody else reads and
	 * writes: then we only ask the pty for its modes and tell it its size.
	 */
	int link;
	bool joined; /* the pty has been in use before: its modes stay as they are */
	bool escape; /* RELAY_ESCAPE and d typed at a terminal: RELAY_DETACH */
};

enum { RELAY_ESCAPE = 0x1d }; /* Ctrl-]; typed twice it is sent once */

enum relay_event {
	RELAY_NOTHING = 0,
	RELAY_RESIZED,	   /* nothing to do, told for the record */
	RELAY_OUTPUT_FULL, /* the limit was reached: the marker has been written */
	RELAY_CLOSED,	   /* all output streams have ended */
	RELAY_DETACH,	   /* the person typed the escape: nothing behind it is sent */
};

enum { RELAY_POLLS = 8 };

struct relay;

/*
 * inner and pty or link become O_NONBLOCK and, with pty, are closed by relay_free(), some earlier;
 * on failure they stay the caller's. Flags of outer descriptors are never changed. All
 * that comes out of the pty goes to the first of outer 1, 2, 0 that is joined to it.
 */
must_check int relay_new(const struct relay_options *opt, struct relay **ret_r,
			 struct writ_err *err);
/* Puts the outer terminal back as it was, whatever happened inside. */
void relay_free(struct relay *r);

/* Fills at most RELAY_POLLS entries and returns how many. */
size_t relay_poll(struct relay *r, struct pollfd *ret_fds);
/* What poll() said about them. Bytes beyond the limit are read and dropped. */
must_check int relay_step(struct relay *r, const struct pollfd *fds, size_t n,
			  enum relay_event *ret_event, struct writ_err *err);

/*
 * SIGWINCH, SIGTSTP and SIGCONT of ours. In the background the terminal is left alone and
 * no key is read; relay_poll() and relay_resume() look again whether we are in front.
 */
void relay_resize(struct relay *r);
void relay_suspend(struct relay *r); /* terminal back, before we stop ourselves */
void relay_resume(struct relay *r);

/*
 * Somebody else has the terminal for a while: no key is read, and nothing written to it,
 * since that could make what stands there look like something else.
 */
void relay_hold(struct relay *r, bool hold);

/*
 * The command has ended: gives back unread input, then delivers what is left inside. It
 * does not wait for more from there, but it does for whoever reads our output; an owner
 * that must not wait polls until RELAY_CLOSED first. Fails if output was lost for
 * another reason than a closed pipe (a full disk).
 */
/* @waits, if there is one, is asked again and again whether to wait for who does not read. */
must_check int relay_finish(struct relay *r, bool (*waits)(void *ctx), void *ctx,
			    struct writ_err *err);
uint64_t relay_output(const struct relay *r);	/* bytes so far, the dropped ones too */
uint64_t relay_activity(const struct relay *r); /* counts up with every byte either way */

/* --- escape.c: pure --- */

/*
 * Keys without the escape. *@held: one is waiting for the key behind it. True: it was
 * the one to detach, and the rest of @in is dropped.
 */
must_check bool escape_step(bool *held, struct sv in, struct buf *out);

/* --- neutral.c: pure --- */

/*
 * Makes terminal output of an untrusted program harmless in a stream: colours,
 * cursor movement and erasing stay; what reports, writes the clipboard, sets
 * titles, hides links, changes modes or wipes the scrollback is dropped; other control
 * characters and direction overrides become visible. For terminals that speak UTF-8.
 * State carries over chunk borders and starts as all zero.
 */
struct neutral {
	uint8_t state;
	bool styled;   /* a sequence went through: finish with NEUTRAL_RESET */
	uint16_t held; /* bytes of an unfinished sequence in seq */
	uint32_t gone; /* bytes dropped of an unfinished sequence */
	char seq[64];
};
#define NEUTRAL_RESET "\033[m\033[?25h"

/* @out grows by at most four times @in and 64 bytes. */
void neutral_step(struct neutral *n, struct sv in, struct buf *out);

#endif
