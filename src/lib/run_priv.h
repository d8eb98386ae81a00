/*
 * run_priv.h - one command on its way: its descriptors, and how it ended
 *
 * Reads:  what the caller gave
 * Writes: pipes
 * Next:   run.c and session.c
 */
#ifndef WRIT_LIB_RUN_PRIV_H
#define WRIT_LIB_RUN_PRIV_H

#include "lib/lib_priv.h"

/* The command's standard descriptors: those of the caller, /dev/null, or pipes to us. */
struct run_io {
	int given[3]; /* to be handed over */
	bool ours[3]; /* and closed by us then */
	int in;	      /* where input goes; -1: none */
	int out[3];   /* where output comes from, by stream; -1: none */
	size_t sent;  /* of the input */
};
#define RUN_IO_INIT                                                                                \
	{                                                                                          \
		.given = { -1, -1, -1 }, .in = -1, .out = { -1, -1, -1 }                           \
	}

must_check int run_io_open(struct run_io *io, const struct writ_run_options *opt,
			   struct writ_err *err);
void run_io_sent(struct run_io *io); /* closes what was handed over */
void run_io_close(struct run_io *io);
/*
 * Carries bytes until @socket has something to say; if that is -1, until output has
 * ended. 1: it is @until (of monotonic_ms()).
 */
must_check int run_io_carry(struct run_io *io, const struct writ_run_options *opt, int socket,
			    int64_t until, struct writ_err *err);

/* What a supervisor has said so far. */
struct run_news {
	char id[16];
	bool ended;
	struct super_answer answer;
	uint32_t denials;
	char ended_by[64];
};
/* One message; as super_hear() returns. */
must_check int run_hear(const struct super *s, int timeout_ms, struct run_news *news,
			struct writ_err *err);
/* Fills what the caller's struct has room for. */
void run_exit(const struct run_news *news, struct writ_exit *ret);

must_check int run_options(const struct writ_run_options *from, struct writ_run_options *ret,
			   struct writ_error *err);
must_check int run_command(struct writ *w, const struct writ_run_options *opt,
			   struct lib_command *c, struct arena *a, struct buf *b,
			   struct writ_err *err);

#endif
