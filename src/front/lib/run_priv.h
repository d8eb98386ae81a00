/*
 * run_priv.h - run one command: its descriptors, requests and result
 *
 * Reads:  the options that the caller passed, messages of the process of writ
 * Writes: the input of the command
 * Next:   run.c and session.c
 */
#ifndef WRIT_LIB_RUN_PRIV_H
#define WRIT_LIB_RUN_PRIV_H

#include "lib/lib_priv.h"

/*
 * Standard descriptors of a command: descriptors of the caller, /dev/null, or sockets and pipes to
 * the library.
 */
struct run_io {
	int given[3]; /* the descriptors 0 to 2 that the command gets */
	bool ours[3]; /* the library opened given[i], and closes it after sending it */
	int in;	      /* socket for the command's input; -1: none */
	int out[3];   /* pipes for the command's output, by stream; -1: none */
	size_t sent;  /* bytes of the input that were sent */
};
#define RUN_IO_INIT                                                                                \
	{                                                                                          \
		.given = { -1, -1, -1 }, .in = -1, .out = { -1, -1, -1 }                           \
	}

must_check int run_io_open(struct run_io *io, const struct writ_run_options *opt,
			   struct writ_err *err);
void run_io_sent(struct run_io *io); /* closes those of io->given that the library opened */
void run_io_close(struct run_io *io);
/*
 * Relays input and output until @conn is readable, or, if @conn is NULL, until all output has
 * ended. Returns 1 when clock_monotonic_ms() reaches @until.
 */
must_check int run_io_carry(struct run_io *io, const struct writ_run_options *opt,
			    struct rpc_conn *conn, int64_t until, struct writ_err *err);

/* A command, or a session without a command, from session.open to its end. */
struct run {
	struct lib_peer peer;
	/* ids of the requests; 0: not sent, or (open_id) answered before */
	int64_t open_id, start_id, end_id;
	/* id of the session; empty: the session has not started yet */
	char id[16];
	bool ended;
	struct writ_exit exit; /* how the command or session ended; valid if .ended */
};

/*
 * Sends the command and its descriptors. @what is proc.start, session.keep or proc.run. For the
 * first two the function also sends session.wait, whose answer reports the end; proc.run is itself
 * answered at the end.
 */
must_check int run_send(struct run *r, const char *what, json_t *params, const int *fds,
			size_t fds_n, struct writ_err *err);
/* Receives messages of the process and handles them. Returns the error that the process reports. */
must_check int run_hear(struct run *r, struct writ_err *err);
/* Copies the result to @ret, but no more bytes than the caller's struct has by its member size. */
void run_exit(const struct run *r, struct writ_exit *ret);

must_check int run_options(const struct writ_run_options *from, struct writ_run_options *ret,
			   struct writ_error *err);
/* Returns the request parameters that describe the command; NULL on failure. */
json_t *run_params(struct writ *w, const struct writ_run_options *opt, struct writ_err *err);

#endif
