#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/packet.h"
#include "gitnet/git_priv.h"

#include "base/banned.h"

enum { AT_ONCE = 16, LOOK_MS = 50 };

/*
 * The pre-receive hook. The hook sends the refs to the helper, shows the helper's lines to the
 * client, and ends with the helper's answer. The hook runs in the quarantine, so the helper checks
 * the hook's output as if the agent had sent it.
 */
static const char hook_text[] = "#!/bin/sh\n"
				"{ printf '%s\\n' \"$GIT_QUARANTINE_PATH\"; cat; echo .; } >&5\n"
				"while IFS= read -r line <&5; do\n"
				"\t[ \"$line\" = ok ] && exit 0\n"
				"\t[ \"$line\" = no ] && exit 1\n"
				"\tprintf '%s\\n' \"$line\" >&2\n"
				"done\n"
				"exit 1\n";

static int make_places(struct helper *h, struct writ_err *err)
{
	const char *mirrors = arena_fmt(h->a, SV_FMT "/git", SV_ARG(h->opt->state));
	const char *hooks = arena_fmt(h->a, SV_FMT "/hooks", SV_ARG(h->opt->run));
	const char *file = arena_fmt(h->a, SV_FMT "/hooks/pre-receive", SV_ARG(h->opt->run));

	h->hooks = hooks;
	if (!mirrors || !hooks || !file)
		return writ_nomem(err);
	if (fd_make_dirs(mirrors, err) < 0 || fd_make_dirs(hooks, err) < 0)
		return err->code;
	return fd_replace_file(file, sv_from(hook_text), 0700, err);
}

/*
 * Receives a connection that egress has accepted. Returns -1 if the packet does not have exactly
 * one descriptor. Exits at the end of the stream and after an error.
 */
static int take_handed(int from)
{
	char byte;
	int fds[PACKET_FDS], flags;
	size_t n, fds_n;
	struct writ_err err;

	if (packet_receive(from, &byte, 1, &n, fds, &fds_n, &err) <= 0)
		_exit(0);
	if (fds_n != 1)
		return -1;
	flags = fcntl(fds[0], F_GETFL);
	(void)fcntl(fds[0], F_SETFL, flags & ~O_NONBLOCK);
	return fds[0];
}

static void accept_one(const struct helper *h, int listener, unsigned *running)
{
	const pid_t parent = getpid();
	const int fd = h->opt->handed ? take_handed(listener)
				      : accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	pid_t pid;

	if (fd < 0)
		return;
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		close(listener);
		gitnet_serve(h, fd);
	}
	*running += pid > 0;
	close(fd);
}

/*
 * Reports that the helper cannot start, and exits with a status that tells the supervisor not to
 * start the helper again.
 */
_Noreturn static void give_up(int supervisor, const struct writ_err *err)
{
	struct git_event e = { .answer = CAP_ALLOW,
			       .rule = RULE_NONE,
			       .why = cap_why(CAUSE_GIT_START, err->what) };

	(void)snprintf(e.said, sizeof(e.said), "%s", err->sys ? strerror(err->sys) : "");
	(void)!send(supervisor, &e, sizeof(e), MSG_NOSIGNAL);
	_exit(GIT_HOPELESS);
}

_Noreturn void gitnet_main(const struct git_options *opt, int supervisor, int listener)
{
	struct arena a = ARENA_INIT(16 << 20);
	struct helper h = { .a = &a, .opt = opt, .supervisor = supervisor };
	struct writ_err err = { 0 };
	unsigned running = 0;

	(void)umask(077);
	(void)signal(SIGPIPE, SIG_IGN);
	if (gitnet_repos_find(&a, opt->set, &h.repos, &err) < 0 ||
	    gitnet_run_prepare(&h, &err) < 0 || make_places(&h, &err) < 0)
		give_up(supervisor, &err);
	for (;;) {
		struct pollfd p[2] = { { supervisor, POLLIN, 0 },
				       { running < AT_ONCE ? listener : -1, POLLIN, 0 } };

		if (poll(p, 2, running ? LOOK_MS : -1) < 0 && errno != EINTR)
			_exit(1);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			running--;
		if (p[0].revents)
			_exit(0);
		if (p[1].revents)
			accept_one(&h, listener, &running);
	}
}
