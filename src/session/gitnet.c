#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session_priv.h"

#include "base/banned.h"

/*
 * The supervisor's side of `allow git`: it starts the process outside that fetches and
 * pushes, keeps the record of it, and tells git inside where to find it.
 */

enum { GIT_DEATHS = 16 };

_Noreturn static void git_child(struct session *s, int socket)
{
	const struct git_options opt = { .set = &s->opt->policy->set,
					 .realm = s->opt->realm,
					 .state = s->opt->state,
					 .run = s->paths.run,
					 .workspace = s->opt->workspace,
					 .environ = s->opt->environ,
					 .totals = s->totals,
					 .shared = s->shared,
					 .handed = gitnet_is_handed(s) };
	int listener = s->git_listener;

	socket = fcntl(socket, F_DUPFD_CLOEXEC, 16);
	listener = fcntl(listener, F_DUPFD_CLOEXEC, 16);
	/* The first three are nobody's, so that nothing else gets their numbers. */
	for (int i = 0; i < 3; i++)
		close(i);
	if (open("/dev/null", O_RDWR) != 0 || dup2(0, 1) != 1 || dup2(0, 2) != 2 ||
	    dup3(socket, 3, O_CLOEXEC) != 3 || dup3(listener, 4, O_CLOEXEC) != 4 ||
	    close_range(5, ~0u, 0) < 0)
		_exit(1);
	git_main(&opt, 3, 4);
}

static int start_helper(struct session *s, struct writ_err *err)
{
	return helper_start(s, git_child, "the git helper", &s->git_pid, &s->git, err);
}

int gitnet_start(struct session *s, int listener, struct writ_err *err)
{
	int r = session_place_run(s, err);

	if (r == 0)
		r = net_totals(s, err);
	scope_close(&s->git_listener);
	s->git_listener = listener;
	if (r == 0 && listener < 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "the git helper's listener");
	return r < 0 ? r : start_helper(s, err);
}

bool gitnet_is_handed(const struct session *s)
{
	return s->view.git && s->opt->plan->tier != TIER_A;
}

int gitnet_start_handed(struct session *s, struct writ_err *err)
{
	int p[2], r = helper_pair(p, err);

	if (r < 0)
		return r;
	s->git_hand = p[0];
	return gitnet_start(s, p[1], err);
}

/* A connection for it; who is not waited for is closed, and so sees that nobody is there. */
void gitnet_hand(struct session *s, int fd)
{
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	const struct msghdr m = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	if (s->git_hand >= 0 && s->git_listener >= 0)
		(void)!sendmsg(s->git_hand, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* --- what it says --- */

static void record_git(struct session *s, const struct git_event *e)
{
	struct entry entry = { 0 };

	record_begin(s, &entry, "git");
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
	if (e->why[0])
		record_str(&entry, "why", sv_from(e->why));
	if (e->said[0])
		record_str(&entry, "said", sv_from(e->said));
	if (e->rule < s->opt->policy->set.rules.n)
		record_str(&entry, "rule", s->opt->policy->set.rules.v[e->rule].text);
	record_end(s, &entry);
}

/* Only a rule of the policy opens a repository, so the reason says which. */
static void note_denial(struct session *s, const struct git_event *e)
{
	struct mediate_event d = { .op = MEDIATE_GIT, .denied = true, .rule = e->rule };

	(void)snprintf(d.object, sizeof(d.object), "%s %s%s", e->repo,
		       !e->push	   ? "fetch"
		       : e->ref[0] ? "push="
				   : "push",
		       e->ref);
	(void)snprintf(d.comm, sizeof(d.comm), "git");
	(void)snprintf(d.extra, sizeof(d.extra), "%s; a rule of the policy can: allow git URL %s",
		       e->why, e->push ? "push=REF" : "fetch");
	denial_note(s, &d);
}

/* SECURITY: what a process of ours says may be wrong once somebody took it over. */
static void end_texts(struct git_event *e)
{
	e->repo[sizeof(e->repo) - 1] = 0;
	e->ref[sizeof(e->ref) - 1] = 0;
	e->old[sizeof(e->old) - 1] = 0;
	e->new[sizeof(e->new) - 1] = 0;
	e->why[sizeof(e->why) - 1] = 0;
	e->said[sizeof(e->said) - 1] = 0;
}

static void restart(struct session *s)
{
	struct writ_err err = { 0 };
	struct entry entry = { 0 };
	int status = 0;

	scope_close(&s->git);
	s->git = -1;
	if (s->git_pid > 0)
		(void)waitpid(s->git_pid, &status, 0);
	s->git_pid = 0;
	if (s->state >= SESSION_ENDING)
		return;
	record_begin(s, &entry, "git");
	record_str(&entry, "what", SV("the process that fetches and pushes ended"));
	record_end(s, &entry);
	if ((!WIFEXITED(status) || WEXITSTATUS(status) != GIT_HOPELESS) &&
	    ++s->git_deaths <= GIT_DEATHS && start_helper(s, &err) == 0)
		return;
	say(s, "allow git does not work any more: its helper ended");
	/* Who connects is told so at once. */
	scope_close(&s->git_listener);
	s->git_listener = -1;
}

void gitnet_event(struct session *s)
{
	struct git_event e;
	const ssize_t n = recv(s->git, &e, sizeof(e), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != (ssize_t)sizeof(e)) {
		restart(s);
		return;
	}
	end_texts(&e);
	s->active_ms = clock_ms();
	record_git(s, &e);
	if (e.answer != CAP_ALLOW)
		note_denial(s, &e);
	else if (!e.done && e.said[0] && !s->opt->quiet && !s->interactive)
		say(s, "git %s %s: %s: %s", e.push ? "push" : "fetch", e.repo, e.why, e.said);
}

/* --- what git inside is told --- */

/* One spelling of one repository, counted through all of them. */
static struct sv spelling(const struct session *s, size_t i)
{
	for (size_t k = 0; k < s->repos.n; k++) {
		if (i < s->repos.v[k].spell_n)
			return s->repos.v[k].spell[i];
		i -= s->repos.v[k].spell_n;
	}
	return SV("");
}

static size_t spellings(const struct session *s)
{
	size_t n = 0;

	for (size_t k = 0; k < s->repos.n; k++)
		n += s->repos.v[k].spell_n;
	return n;
}

bool gitnet_name(struct session *s, size_t i, struct sv *ret_name, struct sv *ret_value)
{
	struct writ_err err = { 0 };
	const char *name, *value;
	size_t n, at;

	if (s->repos.n == 0 && git_repos_find(s->a, &s->opt->policy->set, &s->repos, &err) < 0)
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

void gitnet_clear(struct session *s)
{
	scope_close(&s->git);
	scope_close(&s->git_listener);
	scope_close(&s->git_hand);
	s->git = s->git_listener = s->git_hand = -1;
	if (s->git_pid <= 0)
		return;
	kill(s->git_pid, SIGKILL);
	while (waitpid(s->git_pid, NULL, 0) < 0 && errno == EINTR)
		;
	s->git_pid = 0;
}
