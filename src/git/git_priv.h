/*
 * git_priv.h - what the files of the helper share
 *
 * Reads:  git/git.h
 * Writes: nothing
 * Next:   main.c accepts, serve.c has one connection, mirror.c the repositories
 */
#ifndef WRIT_GIT_GIT_PRIV_H
#define WRIT_GIT_GIT_PRIV_H

#include <sys/types.h>

#include "base/buf.h"
#include "git/git.h"

enum { UPDATES_MAX = 64, SAID_MAX = 8192 };

struct helper {
	struct arena *a;
	const struct git_options *opt;
	git_repos repos;
	int boss;
	const char *git;     /* the program */
	const char *git_dir; /* where it lies */
	const char *hooks;   /* a directory with our pre-receive */
	char **env;	     /* for git that speaks to others: the operator's, sifted */
};

/* run.c */
must_check int run_prepare(struct helper *h, struct writ_err *err);
struct run {
	const char *const *argv; /* behind "git"; ends with NULL */
	const char *more_env;	 /* one more variable, or NULL */
	struct buf *out, *said;	 /* standard output and error; NULL: thrown away */
	int64_t timeout_ms;
};
/* As the operator. The exit status, or -1: it did not run, or not in time. */
int run_git(const struct helper *h, const struct run *r);
/* Over bytes of the agent, as nobody much: @socket is input and output. */
struct confined {
	const char *const *argv;
	const char *protocol;	    /* "version=2" */
	const char *reads, *writes; /* directories; @writes may be NULL */
	int socket, hook;	    /* @hook: becomes descriptor 5; -1: none */
};
pid_t run_confined(const struct helper *h, const struct confined *c);
int run_wait(pid_t pid);

/* mirror.c */
must_check int mirror_update(const struct helper *h, struct arena *a, const struct git_repo *repo,
			     const char **ret_dir, struct buf *said, struct writ_err *err);
must_check int quarantine_make(const struct helper *h, struct arena *a, const char *mirror,
			       const char **ret_dir, struct writ_err *err);
void quarantine_remove(const char *dir);

/* meter.c: bytes of the session, where they are limited */
bool meter_is_spent(const struct helper *h);
/*
 * Puts somebody who counts in front of *@socket_fd, who calls @spent if there is too much,
 * and ends. Its process; 0: nothing is limited, or *@ret_fine is false.
 */
pid_t meter_start(const struct helper *h, void (*spent)(void *ctx), void *ctx, int *socket_fd,
		  bool *ret_fine);

/* serve.c */
_Noreturn void serve(const struct helper *h, int socket);

#endif
