#include "parts/git_transport.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/packet.h"
#include "gitnet/git.h"
#include "parts/denials.h"
#include "parts/directories.h"
#include "parts/engine.h"
#include "parts/helper.h"
#include "parts/network.h"
#include "parts/notice.h"
#include "parts/record.h"
#include "parts/terminal.h"
#include "parts/tokens.h"

#include "base/banned.h"

/*
 * The supervisor's side of `allow git`: starts the git helper, a process on the host that fetches
 * and pushes; records its events; and tells git in the jail how to reach the helper.
 */

enum { GIT_DEATHS = 16 };

struct git_transport {
	pid_t git_pid;
	/* @git: socket to the git helper; @git_listener: where the helper accepts connections. */
	int git, git_listener;
	int git_hand; /* socket over which the supervisor sends connections of egress; -1: none */
	uint32_t git_deaths;
	git_repos repos;
};

static struct git_transport *git_of(const struct session *s)
{
	return session_state(s, &git_transport_initial);
}

const struct session_initial git_transport_initial =
	SESSION_INITIAL(struct git_transport, .git = -1, .git_listener = -1, .git_hand = -1);

bool git_transport_owns(const struct session *s, pid_t pid)
{
	return pid == git_of(s)->git_pid;
}

_Noreturn static void git_child(struct session *s, int socket)
{
	const struct git_options opt = { .set = &s->opt->policy->set,
					 .realm = s->opt->realm,
					 .state = s->opt->state,
					 .run = directories_get(s)->run,
					 .workspace = s->opt->workspace,
					 .environ = s->opt->environ,
					 .totals = network_totals_get(s),
					 .shared = *meter_shared(s),
					 .handed = git_transport_is_handed(s) };
	int listener = git_of(s)->git_listener;

	socket = fcntl(socket, F_DUPFD_CLOEXEC, 16);
	listener = fcntl(listener, F_DUPFD_CLOEXEC, 16);
	/* Descriptors 0, 1 and 2 become /dev/null, so that no other file gets these numbers. */
	for (int i = 0; i < 3; i++)
		close(i);
	if (open("/dev/null", O_RDWR) != 0 || dup2(0, 1) != 1 || dup2(0, 2) != 2 ||
	    dup3(socket, 3, O_CLOEXEC) != 3 || dup3(listener, 4, O_CLOEXEC) != 4 ||
	    close_range(5, ~0u, 0) < 0)
		_exit(1);
	gitnet_main(&opt, 3, 4);
}

static int start_helper(struct session *s, struct writ_err *err)
{
	return helper_start(s, git_child, "the git helper", &git_of(s)->git_pid, &git_of(s)->git,
			    err);
}

int git_transport_start(struct session *s, int listener, struct writ_err *err)
{
	int r = directories_run(s, err);

	if (r == 0)
		r = network_totals(s, err);
	fd_scope_close(&git_of(s)->git_listener);
	git_of(s)->git_listener = listener;
	if (r == 0 && listener < 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "the git helper's listener");
	return r < 0 ? r : start_helper(s, err);
}

bool git_transport_is_handed(const struct session *s)
{
	return engine_view(s)->git && s->opt->plan->tier != TIER_A;
}

int git_transport_start_handed(struct session *s, struct writ_err *err)
{
	int p[2], r;

	if (!git_transport_is_handed(s))
		return 0;
	r = helper_pair(p, err);
	if (r < 0)
		return r;
	git_of(s)->git_hand = p[0];
	return git_transport_start(s, p[1], err);
}

/*
 * Sends a connection to the git helper. If the helper's queue is full, the connection is closed, so
 * that the client sees that no server answers.
 */
void git_transport_hand(struct session *s, int fd)
{
	struct writ_err err = { 0 };
	size_t n;

	if (git_of(s)->git_hand >= 0 && git_of(s)->git_listener >= 0)
		(void)!packet_send_some(git_of(s)->git_hand, SV("\0"), &fd, 1, &n, &err);
}

/* --- messages of the git helper --- */

static void record_git(struct session *s, const struct git_event *e)
{
	struct entry entry = record_begin("git");

	record_str(&entry, "what", e->push ? SV("push") : SV("fetch"));
	record_str(&entry, "answer", e->answer == CAP_ALLOW ? SV("allow") : SV("deny"));
	record_str(&entry, "repository", sv_from(e->repo));
	if (e->ref[0]) {
		record_str(&entry, "ref", sv_from(e->ref));
		record_str(&entry, "old", sv_from(e->old));
		record_str(&entry, "new", sv_from(e->new));
	}
	entry_bool(&entry, "done", e->done);
	record_num(&entry, "us", (int64_t)e->us);
	record_why(&entry, &e->why);
	if (e->said[0])
		record_str(&entry, "said", sv_from(e->said));
	if (e->rule < s->opt->policy->set.rules.n)
		record_str(&entry, "rule", s->opt->policy->set.rules.v[e->rule].text);
	record_end(s, &entry);
}

/*
 * Records a denied repository. The reason names the rule to add: a live grant cannot open a
 * repository.
 */
static void note_denial(struct session *s, const struct git_event *e)
{
	const bool no_rule = e->why.cause == CAUSE_NO_RULE || e->why.cause == CAUSE_NO_PUSH;
	struct mediate_event d = { .op = MEDIATE_GIT,
				   .denied = true,
				   .cause = !no_rule  ? e->why.cause
					    : e->push ? CAUSE_NO_PUSH_RULE
						      : CAUSE_NO_FETCH_RULE,
				   .rule = e->rule };

	(void)snprintf(d.object, sizeof(d.object), "%s %s%s", e->repo,
		       !e->push	   ? "fetch"
		       : e->ref[0] ? "push="
				   : "push",
		       e->ref);
	(void)snprintf(d.comm, sizeof(d.comm), "git");
	memcpy(d.extra, e->why.detail, sizeof(e->why.detail));
	denials_note(s, &d);
}

/* SECURITY: the git helper may have been taken over: check its reasons, terminate its texts. */
static void end_texts(struct git_event *e)
{
	e->repo[sizeof(e->repo) - 1] = 0;
	e->ref[sizeof(e->ref) - 1] = 0;
	e->old[sizeof(e->old) - 1] = 0;
	e->new[sizeof(e->new) - 1] = 0;
	if (!cap_why_receive(&e->why))
		e->why.cause = CAUSE_NONE;
	e->said[sizeof(e->said) - 1] = 0;
}

static void restart(struct session *s)
{
	struct writ_err err = { 0 };
	int status = 0;

	fd_close(&git_of(s)->git);
	if (git_of(s)->git_pid > 0)
		(void)waitpid(git_of(s)->git_pid, &status, 0);
	git_of(s)->git_pid = 0;
	if (session_phase(s) >= SESSION_ENDING)
		return;
	record_what(s, "git", "the process that fetches and pushes ended");
	if ((!WIFEXITED(status) || WEXITSTATUS(status) != GIT_HOPELESS) &&
	    ++git_of(s)->git_deaths <= GIT_DEATHS && start_helper(s, &err) == 0)
		return;
	notice_print(s, "allow git does not work any more: its helper ended");
	/* No git helper runs any more: close its listener, so that connections fail at once. */
	fd_close(&git_of(s)->git_listener);
}

static void recv_event(struct session *s)
{
	struct git_event e;
	char why[CAP_WHY_TEXT];
	const ssize_t n = recv(git_of(s)->git, &e, sizeof(e), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != (ssize_t)sizeof(e)) {
		restart(s);
		return;
	}
	end_texts(&e);
	session_touch(s);
	record_git(s, &e);
	if (e.answer != CAP_ALLOW)
		note_denial(s, &e);
	else if (!e.done && e.said[0] && !s->opt->quiet && !terminal_is_interactive(s))
		notice_print(s, "git %s %s: %s: %s", e.push ? "push" : "fetch", e.repo,
			     cap_why_print(e.why.cause, e.why.detail, why, sizeof(why)), e.said);
}

/* --- variables for git in the jail --- */

/* Returns the @i-th spelling of a repository's URL, counted through all repositories. */
static struct sv spelling(const struct session *s, size_t i)
{
	for (size_t k = 0; k < git_of(s)->repos.n; k++) {
		if (i < git_of(s)->repos.v[k].spell_n)
			return git_of(s)->repos.v[k].spell[i];
		i -= git_of(s)->repos.v[k].spell_n;
	}
	return SV("");
}

static size_t spellings(const struct session *s)
{
	size_t n = 0;

	for (size_t k = 0; k < git_of(s)->repos.n; k++)
		n += git_of(s)->repos.v[k].spell_n;
	return n;
}

bool git_transport_name(struct session *s, size_t i, struct sv *ret_name, struct sv *ret_value)
{
	struct writ_err err = { 0 };
	const char *name, *value;
	size_t n, at;

	if (git_of(s)->repos.n == 0 &&
	    gitnet_repos_find(s->a, &s->opt->policy->set, &git_of(s)->repos, &err) < 0)
		return false;
	n = spellings(s);
	at = i ? (i - 1) / 2 : 0;
	if (i > 2 * n)
		return false;
	if (i == 0) {
		name = "GIT_CONFIG_COUNT";
		value = arena_fmt(s->a, "%zu", n);
	} else if (i % 2) {
		name = arena_fmt(s->a, "GIT_CONFIG_KEY_%zu", at);
		value = arena_fmt(s->a, "url.git://" GIT_ADDRESS "/" SV_FMT ".insteadOf",
				  SV_ARG(spelling(s, at)));
	} else {
		name = arena_fmt(s->a, "GIT_CONFIG_VALUE_%zu", at);
		value = arena_fmt(s->a, SV_FMT, SV_ARG(spelling(s, at)));
	}
	*ret_name = sv_from(name);
	*ret_value = sv_from(value);
	return name && value;
}

void git_transport_clear(struct session *s)
{
	fd_close(&git_of(s)->git);
	fd_close(&git_of(s)->git_listener);
	fd_close(&git_of(s)->git_hand);
	helper_kill(&git_of(s)->git_pid);
}

void git_transport_poll(struct session *s, struct session_poll *set)
{
	session_poll_add(set, git_of(s)->git, POLLIN);
}

void git_transport_on_event(struct session *s, const struct pollfd *p, size_t n)
{
	(void)n;
	if (p[0].revents)
		recv_event(s);
}
