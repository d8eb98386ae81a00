/*
 * confine.h - our own helpers give up what they do not need
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   egress/, resolve/ and l7/ call it before they read a byte from outside, git/
 *         for the git that reads what is pushed; signer/ keeps its own directory
 */
#ifndef WRIT_CONFINE_CONFINE_H
#define WRIT_CONFINE_CONFINE_H

#include <stddef.h>

#include "base/err.h"

enum { CONFINE_CALLS_MAX = 96 };

/* Sockets it may still make; 0: none. */
enum confine_socket {
	CONFINE_TCP = 1u << 0, /* AF_INET and AF_INET6, streams */
	CONFINE_UDP = 1u << 1, /* and datagrams */
};

/*
 * No files, no new privileges, no core, nobody looks into us; of all system
 * calls only @calls, and socket() only as @sockets says. Anything else ends the
 * process: a helper that does something new is not ours any more.
 */
must_check int confine_self(const int *calls, size_t n, unsigned sockets, struct writ_err *err);

/* What a program may do with a directory and all below it, or with one file. */
enum confine_access {
	CONFINE_READ = 0,
	CONFINE_RUN,   /* and read */
	CONFINE_WRITE, /* and read */
};

struct confine_tree {
	const char *path; /* NULL, or nothing there: no right */
	enum confine_access access;
};

/*
 * For a helper of ours that keeps files: of these only @trees, of system calls only
 * @calls, no socket. Where there is no Landlock the calls alone bound it.
 */
must_check int confine_within(const struct confine_tree *trees, size_t trees_n, const int *calls,
			      size_t n, struct writ_err *err);

/*
 * For a program that is about to be run: only @trees, no network, no other process, no
 * new namespace. Fails with WRIT_E_UNENFORCEABLE where there is no Landlock.
 */
must_check int confine_command(const struct confine_tree *trees, size_t n, struct writ_err *err);

#endif
