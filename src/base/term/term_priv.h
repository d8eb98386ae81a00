/*
 * term_priv.h - internals of the relay: streams of bytes, and the outer terminal
 *
 * Reads:  nothing by itself
 * Writes: nothing by itself
 * Next:   relay.c, stream.c, tty.c
 */
#ifndef WRIT_TERM_TERM_PRIV_H
#define WRIT_TERM_TERM_PRIV_H

#include <termios.h>

#include "term/relay.h"

enum {
	CHUNK = 65536, /* bytes of one read */
	/* Held bytes: neutralised text grows at most 4 times; the rest is for the limit marker. */
	HELD_MAX = 4 * CHUNK + 4096,
	PIPE_WANTED = 1 << 20,
	/* once the command has read this many bytes of piped input, stop peeking */
	PEEK_MAX = 65536,
};

/*
 * Kinds of descriptors, by the way to write to each without blocking. Other programs share the
 * outer descriptors, so the relay must not change their flags.
 */
enum end_kind {
	END_NONE = 0, /* no descriptor: bytes are discarded */
	END_PLAIN,    /* regular file or device: never waits for another program */
	END_PIPE,     /* shared pipe: splice, or write at most PIPE_BUF after POLLOUT */
	END_SOCKET,   /* socket: send and receive with MSG_DONTWAIT */
	/* shared terminal that could not be reopened: write a few bytes after POLLOUT */
	END_TTY,
	END_OWN, /* O_NONBLOCK is set; the relay alone uses this open file */
};

struct end {
	int fd;
	enum end_kind kind;
	bool tty;
};

enum flow {
	FLOW_EMPTY = 0, /* the source has no bytes now */
	FLOW_MORE,	/* bytes were moved */
	FLOW_FULL,	/* the sink accepts no bytes now */
	FLOW_END,	/* the source has ended */
	FLOW_BROKEN,	/* the sink is gone; errno has the reason */
};

struct stream {
	struct end src, dst;
	bool waits_dst; /* poll dst for space instead of src for bytes */
	bool ended;	/* src has ended; held bytes may remain */
	bool spliced;	/* move pages with splice() instead of copying */
	bool neutral;	/* dst is a terminal: remove dangerous escape sequences */
	bool drop;	/* the output limit is reached: read from src, but discard */
	bool escape;	/* src is the user's keyboard: watch for the detach sequence */
	bool escaped;	/* RELAY_ESCAPE was typed, and the next key decides */
	bool detach;	/* the user typed the detach sequence */
	bool peek;	/* src is a pipe: its bytes stay there until the command has read them */
	size_t peeked;	/* bytes in the inner pipe that are still in src too */
	uint64_t taken; /* bytes removed from src while peeking */
	struct neutral state;
	struct buf held; /* bytes that the relay has read and dst has not accepted yet */
	size_t at;	 /* bytes of @held already written */
	char *chunk;	 /* buffer of CHUNK bytes, shared by all streams */
};

/*
 * Describes an outer descriptor. Opens a terminal a second time if possible, to set O_NONBLOCK
 * without changing the shared open file.
 */
struct end relay_end_outer(int fd);
/* Describes the inner descriptor @fd and sets O_NONBLOCK on it. */
must_check int relay_end_inner(int fd, struct end *ret_e, struct writ_err *err);
void relay_end_close(struct end *e);
/* Closes the descriptor of an outer end only if relay_end_outer() opened that descriptor. */
void relay_end_release(struct end *e);

/* Moves at most @max bytes from the source to the sink of @s with about one system call. */
enum flow stream_move(struct stream *s, uint64_t max, uint64_t *ret_moved);
enum flow stream_flush(struct stream *s);
void stream_append(struct stream *s, struct sv text); /* appends @text after the held bytes */
/*
 * Functions for input streams. stream_end_input() signals end of file to the command;
 * stream_settle() returns unread input when the command has ended.
 */
void stream_end_input(struct stream *s);
void stream_settle(struct stream *s);

/* The user's terminal: its modes, its size, and whether writ may use the terminal now. */
struct tty {
	int fd, pty;	      /* outer terminal, and master of the inner terminal; -1: none */
	bool input;	      /* the relay reads keys from this terminal */
	bool lazy;	      /* writ is part of a pipeline: another program may read the keys */
	/* the terminal shows output of the pty and gives keys, but is not standard input */
	bool shows;
	bool raw;	      /* the modes of the outer terminal were changed; restore @found */
	bool plain;	      /* OPOST is off in the inner terminal for now */
	/* the pty was in use before: do not set modes of the inner terminal */
	bool joined;
	bool away;	      /* the relay is between relay_suspend() and relay_resume() */
	/* the user's modes of the outer terminal, to be restored; valid while raw */
	struct termios found;
};

void tty_start(struct tty *t);
void tty_take(struct tty *t);
/* Sets the modes of the outer terminal again, also after a stop without relay_suspend(). */
void tty_retake(struct tty *t);
void tty_restore(struct tty *t);
void tty_size(const struct tty *t);
bool tty_may_read(struct tty *t);
unsigned char tty_eof_key(const struct tty *t);

#endif
