/*
 * screen.h - terminals of commands, held by the supervisor
 *
 * Reads:  a terminal, keys of a client
 * Writes: the client
 * Next:   commands.c opens and joins screens
 *
 * A command with a terminal runs whether or not a client watches it. One client at a time watches
 * and types, over a socket. The screen of an ended command stays until its place is needed.
 */
#ifndef WRIT_PARTS_SCREEN_H
#define WRIT_PARTS_SCREEN_H

#include "parts/commands.h"

/*
 * SCREENS_MAX: most terminals of a session; SCREEN_BACK: bytes of output that are replayed to a
 * client that joins.
 */
enum { SCREENS_MAX = 16, SCREEN_BACK = 64 << 10 };

struct screen {
	uint32_t command; /* number of the command; 0: an empty place */
	int pty;	  /* master of the terminal; -1: not opened yet, or ended */
	int link;	  /* socket to the client that is attached; -1: none */
	size_t client;	  /* index of the attached client, if any */
	bool keep;	  /* the command keeps running without a client */
	bool hung;	  /* no process has the terminal open any more */
	bool ended, full;
	int status;	 /* exit status, once the command has ended */
	uint64_t output; /* bytes of output so far */
	char *back; /* ring of the last SCREEN_BACK bytes of output; NULL until the first byte */
	/*
	 * @in: keys that the terminal did not accept yet; @out: output that the client did not
	 * accept yet.
	 */
	struct buf in, out;
	size_t in_at, out_at;
	char name[64];
};

/* A command that is running. */
struct running {
	uint32_t id;
	size_t client;	/* connection whose end kills the command; CLIENTS_MAX: none */
	bool pty, late; /* the command has a terminal; the command was killed by its time limit */
	uint64_t started_ms;
};

struct commands {
	uint32_t commands; /* number of command ids given so far */
	struct running running[COMMANDS_MAX];
	size_t running_n;
	struct ended { /* ring of the commands that ended last */
		uint32_t id;
		int status;
	} ended[COMMANDS_MAX];
	uint32_t ended_n;
	struct screen screens[SCREENS_MAX];
};

static inline struct commands *commands_of(const struct session *s)
{
	return session_state(s, &commands_initial);
}

void screen_init(struct commands *c);
void screen_clear(struct session *s);
struct screen *screen_get(struct session *s, uint32_t command);
/* Takes a place for @command. NULL: running commands use all places. */
struct screen *screen_take(struct session *s, uint32_t command, struct sv name, bool keep);
void screen_free(struct screen *c);		     /* closes the screen; its place is free */
void screen_open(struct screen *c, int pty);	     /* takes ownership of @pty, the master */
void screen_say(struct screen *c, const char *text); /* shows a line of writ on the terminal */
/*
 * Joins the client of @who to the screen in place of the current client, and answers @who. @joined:
 * the client did not start the command itself; the command then keeps running without a client.
 */
must_check int screen_attach(struct session *s, struct screen *c, const struct caller *who,
			     bool joined, struct writ_err *err);
void screen_leave(struct screen *c); /* removes the client from the screen */
void screen_end(struct session *s, struct screen *c, int status);
void screen_poll(const struct screen *c, struct pollfd ret[static 2]);
void screen_step(struct session *s, struct screen *c, short pty, short link);

#endif
