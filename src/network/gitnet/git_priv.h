/* git_priv.h - the state of the git helper, and the functions its files share */
#ifndef WRIT_GITNET_GIT_PRIV_H
#define WRIT_GITNET_GIT_PRIV_H

#include <sys/types.h>

#include "base/buf.h"
#include "gitnet/git.h"

enum { UPDATES_MAX = 64, SAID_MAX = 8192 };

struct helper {
	struct arena *a;
	const struct git_options *opt;
	git_repos repos;
	int supervisor;
	const char *git;     /* path of the operator's git */
	const char *git_dir; /* directory of @git */
	const char *hooks;   /* directory with the helper's pre-receive hook */
	/* environment for the operator's git: the operator's environment, filtered */
	char **env;
};

/* run.c */
must_check int gitnet_run_prepare(struct helper *h, struct writ_err *err);
struct run {
	const char *const *argv; /* arguments after "git"; ends with NULL */
	const char *more_env;	 /* an additional environment variable; NULL: none */
	struct buf *out, *said;	 /* buffers for standard output and error; NULL: discard */
	int64_t timeout_ms;
};
/*
 * Runs git with the operator's rights. Returns the exit status of git, or -1 if git could not be
 * started, was killed by a signal or timed out.
 */
int gitnet_run_git(const struct helper *h, const struct run *r);
/*
 * A confined git process, which parses bytes of the agent. Its standard
 * input and output is @socket.
 */
struct confined {
	const char *const *argv;
	const char *protocol; /* environment entry, such as "GIT_PROTOCOL=version=2" */
	/* directories that git may read [@reads] and write [@writes]; @writes may be NULL */
	const char *reads, *writes;
	int socket, hook; /* @hook becomes descriptor 5; -1: none */
};
pid_t gitnet_run_confined(const struct helper *h, const struct confined *c);
int gitnet_run_wait(pid_t pid);

/* mirror.c */
must_check int mirror_update(const struct helper *h, struct arena *a, const struct git_repo *repo,
			     const char **ret_dir, struct buf *said, struct writ_err *err);
must_check int gitnet_quarantine_make(const struct helper *h, struct arena *a, const char *mirror,
				      const char **ret_dir, struct writ_err *err);
void gitnet_quarantine_remove(const char *dir);

/* meter.c: counts bytes of sessions with a limit */
bool gitnet_meter_is_spent(const struct helper *h);
/*
 * Starts a meter, a process that relays *@socket_fd and counts the bytes, and replaces *@socket_fd
 * by a socket to the meter. When a limit is reached, the meter calls @spent and exits. Returns the
 * pid of the meter; 0: the policy has no limit on bytes, so no meter runs; -1: the start failed.
 */
pid_t gitnet_meter_start(const struct helper *h, void (*spent)(void *ctx), void *ctx,
			 int *socket_fd);

/* serve.c */
_Noreturn void gitnet_serve(const struct helper *h, int socket);

#endif
