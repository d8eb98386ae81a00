/*
 * term_priv.h - inside the room: one stream of bytes, and the outer terminal
 *
 * Reads:  nothing by itself
 * Writes: nothing by itself
 * Next:   relay.c, stream.c, tty.c
 */
#ifndef WRIT_TERM_TERM_PRIV_H
#define WRIT_TERM_TERM_PRIV_H

#include <termios.h>

#include "base/buf.h"
#include "term/relay.h"

enum {
	CHUNK = 65536,		     /* one copy */
	HELD_MAX = 4 * CHUNK + 4096, /* neutralised text is at most 4 times as long; the marker */
	PIPE_WANTED = 1 << 20,
	PEEK_MAX = 65536, /* bytes of a piped input taken only as the command reads them */
};

/*
 * How an end may be written without waiting. Outer descriptors are shared with other
 * programs, so their flags stay as they are.
 */
enum end_kind {
	END_NONE = 0, /* bytes vanish */
	END_PLAIN,    /* files and most devices: never wait for another program */
	END_PIPE,     /* shared: splice, or at most PIPE_BUF after POLLOUT */
	END_SOCKET,   /* MSG_DONTWAIT */
	END_TTY,      /* shared and not to be reopened: a few bytes after POLLOUT */
	END_OWN,      /* O_NONBLOCK, nobody else has this open file */
};

struct end {
	int fd;
	enum end_kind kind;
	bool tty;
};

enum flow {
	FLOW_EMPTY = 0, /* the source has nothing now */
	FLOW_MORE,	/* something moved */
	FLOW_FULL,	/* the sink takes nothing now */
	FLOW_END,	/* the source has ended */
	FLOW_BROKEN,	/* the sink is gone, errno says why */
};

struct stream {
	struct end src, dst;
	bool waits_dst; /* what to poll for: room in dst, or bytes in src */
	bool ended;	/* src is done; held bytes may be left */
	bool spliced;	/* both ends are kernel buffers: move pages instead of bytes */
	bool neutral;	/* dst is a terminal that must not be talked to */
	bool drop;	/* read on, but throw away */
	bool escape;	/* src is a person's keys, and one of them is for us */
	bool escaped;	/* that one was typed, */
	bool detach;	/* and the one behind it */
	bool peek;	/* src keeps the bytes until the command has read them */
	size_t peeked;	/* in the inner pipe and still in src */
	uint64_t taken; /* bytes that left src in peek mode */
	struct neutral state;
	struct buf held; /* what dst did not take yet */
	size_t at;	 /* how far it did */
	char *chunk;	 /* CHUNK bytes, shared by all streams */
};

/* An outer descriptor; a terminal is opened a second time if that is possible. */
struct end end_outer(int fd);
/* An inner one: becomes O_NONBLOCK. */
must_check int end_inner(int fd, struct end *ret_e, struct writ_err *err);
void end_close(struct end *e);
/* For an outer end: closes only what end_outer() opened. */
void end_release(struct end *e);

/* One system call's worth from src to dst, at most @max bytes. */
enum flow stream_move(struct stream *s, uint64_t max, uint64_t *ret_moved);
enum flow stream_flush(struct stream *s);
void stream_say(struct stream *s, struct sv text); /* behind what is held */
/* For input: no more comes; and, at the very end, what was not read is given back. */
void stream_end_input(struct stream *s);
void stream_settle(struct stream *s);

/* The outer terminal of a person: its modes, its size, and whether it is ours to use. */
struct tty {
	int fd, pty;	      /* -1: no such terminal */
	bool input;	      /* outer standard input is this terminal */
	bool lazy;	      /* in a pipeline: another program may want the keys */
	bool shows;	      /* it is not standard input, but shows what the command writes */
	bool raw;	      /* we changed the modes and owe @found back */
	bool plain;	      /* the inner terminal leaves line ends alone, for now */
	bool joined;	      /* the inner terminal's modes are not ours to set */
	bool away;	      /* between suspend and resume */
	struct termios found; /* valid while raw */
};

void tty_start(struct tty *t);
void tty_take(struct tty *t);
void tty_retake(struct tty *t); /* after a stop that nobody announced, too */
void tty_give(struct tty *t);
void tty_size(const struct tty *t);
bool tty_may_read(struct tty *t);
unsigned char tty_eof_key(const struct tty *t);

#endif
