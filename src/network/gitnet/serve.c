#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "gitnet/git_priv.h"

#include "base/banned.h"

/*
 * Serve one connection of a git client, in a process of its own. This process parses only the first
 * packet; confined git processes (gitnet_run_confined()) read all later bytes of the client.
 */

enum { REQUEST_S = 30, PUSH_MS = 30 * 60 * 1000, UPDATES_BYTES = UPDATES_MAX * 512 };

struct use {
	const struct helper *h;
	struct arena a;
	int socket;
	struct git_request req;
	const struct git_repo *repo; /* NULL: the requested repository is not granted */
	uint32_t rule;
	int64_t began;
	struct buf said;
};

/* --- decisions --- */

static struct cap_verdict decide(struct use *u, struct sv ref)
{
	struct cap_verdict v = { .answer = CAP_DENY, .rule = RULE_NONE, .entry = SIZE_MAX };
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
	struct cap req;

	buf_fmt(&b, "git.use:" SV_FMT ":" SV_FMT ";op=%s", SV_ARG(u->h->opt->realm),
		SV_ARG(u->repo->name), ref.n ? "push;ref=" : "fetch");
	for (bool first = true; ref.n; first = false) {
		if (!first)
			buf_ch(&b, '/');
		cap_put_seg(&b, sv_cut(&ref, '/'));
	}
	if (!b.failed && cap_parse(&u->a, CAP_REQUEST, buf_view(&b), &req, &err) == 0)
		v = cap_set_decide(u->h->opt->set, &req);
	return v;
}

/*
 * Tests whether the policy allows any push to the repository. The helper decides about each ref
 * later, when the refs are known.
 */
static bool may_push(struct use *u)
{
	const struct cap_set *set = u->h->opt->set;

	for (size_t i = 0; i < set->nots.n; i++)
		if (set->nots.v[i].cap.action == CAP_GIT_USE &&
		    sv_eq(set->nots.v[i].cap.repo, u->repo->name)) {
			u->rule = set->nots.v[i].rule;
			return false;
		}
	for (size_t i = 0; i < set->caps.n; i++)
		if (set->caps.v[i].cap.action == CAP_GIT_USE && set->caps.v[i].cap.op_push &&
		    sv_eq(set->caps.v[i].cap.repo, u->repo->name)) {
			u->rule = set->caps.v[i].rule;
			return true;
		}
	return false;
}

/* --- events and refusals --- */

static void put(char *to, size_t room, struct sv text)
{
	(void)snprintf(to, room, SV_FMT, SV_ARG(sv_sub(text, 0, room - 1)));
}

static void report(struct use *u, enum cap_answer answer, bool done, const struct git_update *up,
		   struct cap_why why)
{
	struct git_event e = { .push = u->req.push,
			       .answer = answer,
			       .rule = u->rule,
			       .done = done,
			       .why = why,
			       .us = (uint64_t)(clock_monotonic_ms() - u->began) * 1000 };

	put(e.repo, sizeof(e.repo), u->repo ? u->repo->name : u->req.path);
	if (up) {
		put(e.ref, sizeof(e.ref), up->ref);
		put(e.old, sizeof(e.old), up->old);
		put(e.new, sizeof(e.new), up->new);
	}
	if (!done)
		put(e.said, sizeof(e.said), buf_view(&u->said));
	/* SECURITY: without a supervisor no event is recorded. Exit rather than act unrecorded. */
	if (send(u->h->supervisor, &e, sizeof(e), MSG_NOSIGNAL) != (ssize_t)sizeof(e))
		_exit(1);
}

/* Sends an error packet, which git shows to the user as "remote error: ...". */
static void refuse(struct use *u, struct cap_why why)
{
	char reason[CAP_WHY_TEXT], text[GIT_REQUEST_MAX], packet[GIT_REQUEST_MAX + 8];
	struct writ_err err = { 0 };
	const int n =
		snprintf(text, sizeof(text), "ERR writ: %.*s: %s\n",
			 (int)(u->req.path.n < 1024 ? u->req.path.n : 1024), u->req.path.p,
			 cap_why_print(why.cause, why.detail, reason, sizeof(reason)));

	(void)snprintf(packet, sizeof(packet), "%04x%s", (unsigned)n + 4, text);
	(void)!fd_write_all(u->socket, sv_from(packet), &err);
	/*
	 * Drain the input: close() with unread bytes would send a reset, and the
	 * client could lose the answer.
	 */
	(void)shutdown(u->socket, SHUT_WR);
	for (int i = 0; i < 64 && recv(u->socket, text, sizeof(text), 0) > 0; i++)
		;
}

/* Records why the helper does not serve a request, and sends the reason to the client. */
static void turn_away(struct use *u, enum cap_answer answer, enum cap_cause cause,
		      const char *detail)
{
	const struct cap_why why = cap_why(cause, detail);

	report(u, answer, false, NULL, why);
	refuse(u, why);
}

/* --- fetch --- */

static const char *protocol(unsigned version)
{
	return version == 2   ? "GIT_PROTOCOL=version=2"
	       : version == 1 ? "GIT_PROTOCOL=version=1"
			      : "GIT_PROTOCOL=version=0";
}

static void serve_fetch(struct use *u, const char *mirror)
{
	const char *argv[] = { "-c",
			       "core.hooksPath=/dev/null",
			       "-c",
			       "uploadpack.allowFilter=true",
			       "upload-pack",
			       "--strict",
			       "--timeout=600",
			       mirror,
			       NULL };
	const struct confined c = { .argv = argv,
				    .protocol = protocol(u->req.version),
				    .reads = mirror,
				    .socket = u->socket,
				    .hook = -1 };
	const pid_t pid = gitnet_run_confined(u->h, &c);
	const int status = pid < 0 ? -1 : gitnet_run_wait(pid);

	report(u, CAP_ALLOW, status == 0, NULL,
	       cap_why(status == 0     ? CAUSE_NONE
		       : status == 126 ? CAUSE_GIT_CONFINE
				       : CAUSE_GIT_ENDED,
		       NULL));
}

/* --- push --- */

struct push {
	struct git_update v[UPDATES_MAX];
	size_t n;
	/* directory with the pushed objects; NULL: the push has no new objects */
	const char *objects;
};

/*
 * Parses the hook's report. SECURITY: the report passed through git in the quarantine, which the
 * agent may control, so no part of the report is trusted.
 */
static enum cap_cause read_push(struct use *u, struct sv text, const char *dir, struct push *ret)
{
	const struct sv at = sv_cut(&text, '\n');
	const struct sv name = sv_skip(at, sv_rfind(at, '/') + 1);
	const char *path = arena_fmt(&u->a, "%s/objects/" SV_FMT, dir, SV_ARG(name));
	struct stat st;

	if (!path)
		return CAUSE_MEMORY;
	/* A push without new objects has no object directory. */
	if (at.n == 0)
		path = NULL;
	/* Refuse a colon: it separates entries of GIT_ALTERNATE_OBJECT_DIRECTORIES. */
	if (path && (!sv_starts(name, SV("tmp_objdir-")) || sv_find(name, ':') != SIZE_MAX ||
		     lstat(path, &st) < 0 || !S_ISDIR(st.st_mode)))
		return CAUSE_GIT_OBJECTS;
	ret->objects = path;
	while (text.n) {
		const struct sv line = sv_cut(&text, '\n');

		if (sv_is(line, "."))
			return ret->n ? CAUSE_NONE : CAUSE_GIT_NOTHING;
		if (ret->n == UPDATES_MAX)
			return CAUSE_GIT_REFS;
		if (!gitnet_update_parse(line, &ret->v[ret->n++]))
			return CAUSE_GIT_REF_NAME;
	}
	return CAUSE_GIT_BROKE_OFF;
}

/* Sends a line to the hook. "ok" and "no" end the hook; any other line is shown to the client. */
static void answer(int hook, const char *line)
{
	struct writ_err err = { 0 };

	(void)!fd_write_all(hook, sv_from(line), &err);
}

static void explain_one(int hook, struct sv what, const char *why)
{
	char line[1024];

	(void)snprintf(line, sizeof(line), "writ: " SV_FMT ": %s\n", SV_ARG(what), why);
	answer(hook, line);
}

static void explain_cause(int hook, struct sv what, enum cap_cause cause)
{
	char text[CAP_WHY_TEXT];

	explain_one(hook, what, cap_why_print(cause, NULL, text, sizeof(text)));
}

/* Decides about each ref of a push. Returns false if one is denied; nothing is pushed then. */
static bool check_push(struct use *u, const struct push *p, int hook)
{
	bool fine = true;

	for (size_t i = 0; i < p->n; i++) {
		const struct cap_verdict v = decide(u, p->v[i].ref);
		const enum cap_cause why = v.answer == CAP_ALLOW ? p->v[i].remove ? CAUSE_GIT_DELETE
										  : CAUSE_NONE
					   : v.rule == RULE_NONE ? CAUSE_NO_PUSH
								 : CAUSE_RULE;

		if (why == CAUSE_NONE)
			continue;
		fine = false;
		u->rule = v.rule;
		report(u, CAP_DENY, false, &p->v[i], cap_why(why, NULL));
		explain_cause(hook, p->v[i].ref, why);
	}
	return fine;
}

/*
 * Explains a failed push from git's output, lines such as "!\tID:REF\t[rejected] (fetch first)".
 * Only fixed texts enter the session: git's own words may reveal the operator's configuration.
 */
static void explain(struct sv out, int hook)
{
	while (out.n) {
		struct sv line = sv_cut(&out, '\n');
		struct sv ref;

		if (!sv_starts(line, SV("!\t")))
			continue;
		line = sv_skip(line, 2);
		ref = sv_cut(&line, '\t');
		(void)sv_cut(&ref, ':');
		explain_one(hook, ref,
			    sv_starts(line, SV("[rejected]"))
				    ? "it is not a fast-forward: fetch first"
				    : "the repository refused it");
	}
}

/*
 * Pushes to the real repository with the operator's git: never forced, no deletions, all refs or
 * none. Records the result of each ref and sends the hook its answer.
 */
static void push_on(struct use *u, const struct push *p, const char *mirror, int hook)
{
	const char *argv[UPDATES_MAX + 24] = { arena_fmt(&u->a, "--git-dir=%s", mirror),
					       "-c",
					       "core.hooksPath=/dev/null",
					       "-c",
					       "push.gpgSign=false",
					       "-c",
					       "push.useForceIfIncludes=false",
					       "push",
					       "--porcelain",
					       "--no-verify",
					       "--no-follow-tags",
					       "--recurse-submodules=no" };
	const char *more = arena_fmt(&u->a, "GIT_ALTERNATE_OBJECT_DIRECTORIES=%s",
				     p->objects ? p->objects : "");
	scoped_buf out = BUF_INIT(1 << 16);
	const struct run r = {
		.argv = argv, .more_env = more, .out = &out, .said = &u->said, .timeout_ms = PUSH_MS
	};
	size_t n = 12;
	bool ok = argv[0] && more;
	int status;

	if (p->n > 1)
		argv[n++] = "--atomic";
	argv[n++] = "--";
	argv[n++] = u->repo->dial.p;
	for (size_t i = 0; ok && i < p->n; i++) {
		argv[n] = arena_fmt(&u->a, SV_FMT ":" SV_FMT, SV_ARG(p->v[i].new),
				    SV_ARG(p->v[i].ref));
		ok = argv[n++] != NULL;
	}
	status = ok ? gitnet_run_git(u->h, &r) : -1;
	buf_sv(&u->said, buf_view(&out));
	for (size_t i = 0; i < p->n; i++) {
		u->rule = decide(u, p->v[i].ref).rule;
		report(u, CAP_ALLOW, status == 0, &p->v[i],
		       cap_why(status == 0  ? CAUSE_NONE
			       : status < 0 ? CAUSE_GIT_TIME
					    : CAUSE_GIT_REFUSED,
			       NULL));
	}
	if (status != 0) {
		explain(buf_view(&out), hook);
		explain_one(hook, u->repo->dial, "nothing was pushed");
		answer(hook, "no\n");
	} else {
		answer(hook, "ok\n");
	}
}

/* Reads the hook's report up to its last line, which is ".". */
static void receive_hook(int hook, struct buf *b)
{
	char bytes[4096];
	ssize_t n;

	while (!b->failed && !sv_ends(buf_view(b), SV("\n.\n")) &&
	       ((n = read(hook, bytes, sizeof(bytes))) > 0 || (n < 0 && errno == EINTR)))
		if (n > 0)
			buf_add(b, bytes, (size_t)n);
}

static void after_receive(struct use *u, const char *mirror, const char *dir, int hook)
{
	scoped_buf b = BUF_INIT(UPDATES_BYTES);
	struct push p = { 0 };
	enum cap_cause why;

	receive_hook(hook, &b);
	/* The hook did not run: git itself refused the push, or the push changed no ref. */
	if (b.n == 0)
		return;
	why = b.failed ? CAUSE_GIT_REFS : read_push(u, buf_view(&b), dir, &p);
	if (why != CAUSE_NONE) {
		report(u, CAP_DENY, false, NULL, cap_why(why, NULL));
		explain_cause(hook, SV("this push"), why);
		answer(hook, "no\n");
	} else if (!check_push(u, &p, hook)) {
		answer(hook, "no\n");
	} else {
		push_on(u, &p, mirror, hook);
	}
}

static void serve_push(struct use *u, const char *mirror)
{
	struct writ_err err = { 0 };
	const char *hooks = arena_fmt(&u->a, "core.hooksPath=%s", u->h->hooks);
	const char *dir = NULL;
	int pair[2], r = gitnet_quarantine_make(u->h, &u->a, mirror, &dir, &err);
	const char *argv[] = { "-c",
			       hooks,
			       "-c",
			       "receive.fsckObjects=true",
			       "-c",
			       "receive.maxInputSize=1g",
			       "-c",
			       "receive.unpackLimit=1",
			       "-c",
			       "receive.denyDeletes=true",
			       "-c",
			       "receive.denyNonFastForwards=true",
			       "-c",
			       "receive.autogc=false",
			       "-c",
			       "core.alternateRefsPrefixes=refs/none",
			       "receive-pack",
			       dir,
			       NULL };
	struct confined c = { .argv = argv,
			      .protocol = protocol(u->req.version == 1),
			      .reads = mirror,
			      .writes = dir,
			      .socket = u->socket };
	pid_t pid = -1;

	if (r == 0 && hooks && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0) {
		c.hook = pair[1];
		pid = gitnet_run_confined(u->h, &c);
		close(pair[1]);
		if (pid > 0)
			after_receive(u, mirror, dir, pair[0]);
		close(pair[0]);
	}
	if (pid < 0) {
		report(u, CAP_ALLOW, false, NULL, cap_why(CAUSE_GIT_QUARANTINE, NULL));
		refuse(u, cap_why(CAUSE_GIT_UNSERVED, NULL));
	} else if (gitnet_run_wait(pid) == 126) {
		report(u, CAP_ALLOW, false, NULL, cap_why(CAUSE_GIT_CONFINE, NULL));
	}
	if (dir)
		gitnet_quarantine_remove(dir);
}

/* --- the connection --- */

static bool read_exactly(int fd, char *to, size_t n)
{
	while (n) {
		const ssize_t got = recv(fd, to, n, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		to += got;
		n -= (size_t)got;
	}
	return true;
}

static bool receive_request(struct use *u, char bytes[static GIT_REQUEST_MAX])
{
	const struct timeval wait = { .tv_sec = REQUEST_S }, none = { 0 };
	size_t n;

	if (setsockopt(u->socket, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0 ||
	    !read_exactly(u->socket, bytes, 4))
		return false;
	n = gitnet_request_length(bytes);
	if (n == 0 || !read_exactly(u->socket, bytes + 4, n - 4))
		return false;
	return setsockopt(u->socket, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none)) == 0 &&
	       gitnet_request_parse((struct sv){ bytes, n }, &u->req);
}

static bool is_allowed(struct use *u)
{
	struct cap_verdict v;

	u->repo = gitnet_repo_at(&u->h->repos, u->req.path);
	if (!u->repo)
		return false;
	if (u->req.push)
		return may_push(u);
	v = decide(u, SV(""));
	u->rule = v.rule;
	return v.answer == CAP_ALLOW;
}

static void report_spent(void *ctx)
{
	report(ctx, CAP_ALLOW, false, NULL, cap_why(CAUSE_GIT_BYTES, NULL));
}

static void serve_counted(struct use *u, const char *mirror)
{
	const pid_t meter = gitnet_meter_start(u->h, report_spent, u, &u->socket);

	if (meter < 0) {
		report(u, CAP_ALLOW, false, NULL, cap_why(CAUSE_GIT_UNCOUNTED, NULL));
		refuse(u, cap_why(CAUSE_GIT_UNSERVED, NULL));
		return;
	}
	if (u->req.push)
		serve_push(u, mirror);
	else
		serve_fetch(u, mirror);
	if (meter == 0)
		return;
	/*
	 * Close the helper's end of the socket pair; the meter forwards the remaining bytes to the
	 * client and exits.
	 */
	close(u->socket);
	(void)gitnet_run_wait(meter);
}

_Noreturn void gitnet_serve(const struct helper *h, int socket)
{
	struct use u = { .h = h,
			 .a = ARENA_INIT(16 << 20),
			 .socket = socket,
			 .rule = RULE_NONE,
			 .began = clock_monotonic_ms(),
			 .said = BUF_INIT(SAID_MAX) };
	char bytes[GIT_REQUEST_MAX];
	struct writ_err err = { 0 };
	const char *mirror = NULL;

	if (!receive_request(&u, bytes))
		_exit(0);
	if (!is_allowed(&u))
		turn_away(&u, CAP_DENY, u.rule == RULE_NONE ? CAUSE_NO_RULE : CAUSE_RULE, NULL);
	else if (gitnet_meter_is_spent(h))
		turn_away(&u, CAP_ALLOW, CAUSE_GIT_BYTES, NULL);
	else if (mirror_update(h, &u.a, u.repo, &mirror, &u.said, &err) < 0)
		turn_away(&u, CAP_ALLOW, CAUSE_GIT_MIRROR, err.what);
	else
		serve_counted(&u, mirror);
	_exit(0);
}
