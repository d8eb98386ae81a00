#include "parts/grants.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "parts/engine.h"
#include "parts/mediation.h"
#include "parts/network.h"
#include "parts/record.h"

#include "base/banned.h"

struct grants {
	VEC(struct grant) grants;
};

static struct grants *grants_of(const struct session *s)
{
	return session_state(s, &grants_initial);
}

const struct session_initial grants_initial = SESSION_INITIAL(struct grants, .grants = { .n = 0 });

/*
 * SECURITY: computes the scope of a grant once, when it is granted: at the time of revocation the
 * path may be another kind of file, and its scope would differ.
 */
static int scope_of(struct session *s, struct grant *g, struct writ_err *err)
{
	scoped_arena a = ARENA_INIT(1 << 16);
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
	struct cap cap;
	struct stat st;
	size_t n;
	int r;

	buf_str(&b, "fs.write:");
	n = b.n;
	buf_fmt(&b, SV_FMT ":", SV_ARG(s->opt->realm));
	r = cap_put_path(&b, sv_from(g->path), err);
	if (stat(g->path, &st) == 0 && S_ISDIR(st.st_mode))
		buf_str(&b, "/**");
	if (b.failed || b.n >= CAP_TEXT_MAX)
		r = writ_fail(err, WRIT_E_LIMIT, 0, "that path is too long for a rule");
	if (r == 0)
		r = cap_parse(&a, CAP_GRANT, buf_view(&b), &cap, err);
	if (r == 0)
		memcpy(g->scope, b.p + n, b.n - n + 1);
	return r;
}

static int tell_mediator(struct session *s, const struct grant *g, bool on, struct writ_err *err)
{
	static const char *const actions[] = { "fs.read", "fs.write" };
	char cap[CAP_TEXT_MAX + 16];
	int r = 0;

	for (int i = 0; r == 0 && i < (g->write ? 2 : 1); i++) {
		snprintf(cap, sizeof(cap), "%s:%s", actions[i], g->scope);
		r = mediation_rule(s, on, cap, err);
	}
	return r;
}

static void record_grant(struct session *s, const struct grant *g, const char *event)
{
	struct entry entry = record_begin(event);

	record_num(&entry, "number", g->number);
	record_str(&entry, "rule", sv_from(g->rule));
	record_end(s, &entry);
}

/* Returns why a path can never be granted, or NULL. */
static const char *cannot_grant(const struct session *s, struct sv path)
{
	static const char *const never[] = { "/proc", "/sys", "/dev", NULL };

	for (size_t i = 0; never[i]; i++)
		if (sv_below(path, sv_from(never[i])))
			return "that is the kernel's: it is not granted";
	if (sv_below(path, s->opt->state) || sv_below(s->opt->state, path) ||
	    sv_below(path, s->opt->config) || sv_below(s->opt->config, path))
		return "writ keeps its own files there: grant something below it";
	return NULL;
}

/*
 * True if a rule that denies reading can apply at, below or above @path. Compares only the part of
 * the rule before its first wildcard, so the answer may be true where no file matches.
 */
static bool may_be_hidden(const struct cap_seq *rule, struct sv path)
{
	struct sv rest = sv_skip(path, 1);

	for (size_t i = 0; rest.n && i < rule->n && i != rule->hole && !rule->segs[i].star; i++)
		if (!sv_eq(sv_cut(&rest, '/'), rule->segs[i].pre))
			return false;
	return true;
}

/*
 * SECURITY: a mount shows everything below it. The rules that deny reading hold there only if the
 * mediator decides every open. Else the session hides paths by masks, which were mounted at its
 * start, and which a new mount does not have or covers.
 */
static bool shows_hidden(const struct session *s, struct sv path)
{
	const struct cap_set *set = &s->opt->policy->set;

	for (size_t i = 0; !engine_view(s)->read_all && i < set->nots.n; i++)
		if (set->nots.v[i].cap.action == CAP_FS_READ &&
		    may_be_hidden(&set->nots.v[i].cap.path, path))
			return true;
	return false;
}

/*
 * Returns a directory of the session's own that a mount at @path would cover, or an empty string.
 * SECURITY: such a mount would replace the files that writ made for this session, for example its
 * users and name servers in /etc, by those of the host.
 */
static struct sv covered_by_mount(const struct session *s, struct sv path)
{
	static const char *const own[] = { "/etc", "/run", "/var/agent", NULL };
	const struct engine_view *v = engine_view(s);

	for (size_t i = 0; own[i]; i++)
		if (sv_below(sv_from(own[i]), path))
			return sv_from(own[i]);
	for (size_t i = 0; i < v->private_dirs.n; i++)
		if (sv_below(v->private_dirs.v[i], path))
			return v->private_dirs.v[i];
	for (size_t i = 0; i < v->shared_dirs.n; i++)
		if (sv_below(v->shared_dirs.v[i], path))
			return v->shared_dirs.v[i];
	return SV("");
}

static void grant_answer(const struct caller *who, uint32_t number)
{
	rpc_result(who->conn, who->call, json_pack("{s:i}", "grant", (int)number), NULL, 0);
}

/*
 * Adds a grant. Call only for a request that has passed every check, because a session may have at
 * most GRANTS_MAX grants.
 */
static struct grant *add_grant(struct session *s, const struct caller *who,
			       const struct grant *like)
{
	struct grant *g =
		grants_of(s)->grants.n < GRANTS_MAX ? vec_push(s->a, &grants_of(s)->grants) : NULL;

	if (!g) {
		control_refuse(who, RPC_E_DENIED, "this session has had %d grants: start it again",
			       GRANTS_MAX);
		return NULL;
	}
	*g = *like;
	g->number = (uint32_t)grants_of(s)->grants.n;
	return g;
}

static void hold(struct session *s, struct grant *g)
{
	g->state = GRANT_HELD;
	record_grant(s, g, "allow");
}

/*
 * Grants network access. Egress decides by the capabilities that the client derived from the rule.
 */
static void grant_net(struct session *s, const struct caller *who, const struct grant_request *req)
{
	struct grant like = { .net = true }, *g;

	if (req->object.n + 4 >= sizeof(like.rule) || req->caps.n == 0 ||
	    req->caps.n >= sizeof(like.path)) {
		control_refuse(who, RPC_E_DENIED, "that rule cannot be granted");
		return;
	}
	memcpy(like.path, req->caps.p, req->caps.n);
	snprintf(like.rule, sizeof(like.rule), "net " SV_FMT, SV_ARG(req->object));
	g = add_grant(s, who, &like);
	if (!g)
		return;
	if (!network_grant(s, g)) {
		grants_of(s)->grants.n--;
		control_refuse(who, RPC_E_DENIED, "this session cannot be given that: %s",
			       engine_view(s)->listeners.n ? "its requests would have to be read"
							   : "it has no network of its own");
		return;
	}
	hold(s, g);
	grant_answer(who, g->number);
}

/*
 * Grants a path in tier B, without a mount. Landlock still refuses access that it refused before.
 */
static void grant_unmounted(struct session *s, const struct caller *who, const struct grant *like)
{
	struct writ_err err = { 0 };
	struct grant *g;

	if (!like->write) {
		control_refuse(who, RPC_E_DENIED,
			       "this session cannot be widened for reading: tier B sees no "
			       "reads; start it again with --allow");
		return;
	}
	g = add_grant(s, who, like);
	if (!g)
		return;
	if (tell_mediator(s, g, true, &err) < 0) {
		grants_of(s)->grants.n--;
		control_refuse(who, RPC_E_DENIED, "this session cannot be widened: %s", err.what);
		return;
	}
	hold(s, g);
	grant_answer(who, g->number);
}

static void grant_mounted(struct session *s, const struct caller *who, const struct grant *like,
			  const struct engine_object *expected)
{
	struct writ_err err = { 0 };
	struct grant *g = add_grant(s, who, like);

	if (!g)
		return;
	if (s->opt->plan->engine->attach(engine_run(s), g->number, g->path, expected, g->write,
					  &err) < 0) {
		grants_of(s)->grants.n--;
		control_refuse(who, RPC_E_DENIED, "%s", err.what);
		return;
	}
	g->state = GRANT_ATTACHING;
	who->call->kind = CALL_GRANT;
	who->call->number = g->number;
}

/* Returns whether the mount of one grant lies on or below the mount of the other. */
static bool is_entangled(const struct grant *g, const struct grant *other)
{
	const struct sv a = sv_from(g->path), b = sv_from(other->path);

	return !g->net && !other->net && (sv_below(a, b) || sv_below(b, a));
}

/* Returns a grant that prevents the mount of @g, or NULL. */
static const struct grant *find_obstacle(const struct session *s, const struct grant *g)
{
	for (size_t i = 0; i < grants_of(s)->grants.n; i++) {
		const struct grant *other = &grants_of(s)->grants.v[i];
		const bool going = other->state == GRANT_UNWANTED;
		const bool there = other->state == GRANT_ATTACHING || other->state == GRANT_HELD;

		/* A stacked mount must not grant less than the mount below it. */
		if ((going || (there && other->write && !g->write)) && is_entangled(g, other))
			return other;
	}
	return NULL;
}

/* Grants a path, which the client has resolved to a physical path. */
static void grant_path(struct session *s, const struct caller *who, const struct grant_request *req)
{
	const struct sv path = req->object;
	struct grant like = { .write = req->action == GRANT_WRITE };
	const struct grant *other;
	struct writ_err err = { 0 };
	const char *why;
	struct sv own;

	if (path.n == 0 || path.n >= sizeof(like.path) || path.p[0] != '/' ||
	    sv_find(path, 0) != SIZE_MAX) {
		control_refuse(who, RPC_E_DENIED,
			       "only read and write of a path can be granted live");
		return;
	}
	memcpy(like.path, path.p, path.n);
	snprintf(like.rule, sizeof(like.rule), "%s " SV_FMT, like.write ? "write" : "read",
		 SV_ARG(path));
	/*
	 * SECURITY: refuse paths in private directories: Landlock lets the session write in them,
	 * whatever is mounted there.
	 */
	for (size_t i = 0; i < engine_view(s)->private_dirs.n; i++) {
		own = engine_view(s)->private_dirs.v[i];
		if (sv_below(path, own)) {
			control_refuse(who, RPC_E_DENIED,
				       SV_FMT
				       " is the session's own: nothing can be granted below it",
				       SV_ARG(own));
			return;
		}
	}
	why = cannot_grant(s, path);
	own = engine_attaches(s) ? covered_by_mount(s, path) : SV("");
	other = find_obstacle(s, &like);
	if (why)
		control_refuse(who, RPC_E_DENIED, "%s", why);
	else if (own.n)
		control_refuse(who, RPC_E_DENIED,
			       "that would cover " SV_FMT
			       ", which is the session's own: grant something below it",
			       SV_ARG(own));
	else if (other && other->state == GRANT_UNWANTED)
		control_refuse(who, RPC_E_DENIED, "grant %u is being taken back there: try again",
			       other->number);
	else if (other)
		control_refuse(who, RPC_E_DENIED,
			       "grant %u lets it write there: to grant less, first writ "
			       "revoke %s %u",
			       other->number, s->id, other->number);
	else if (scope_of(s, &like, &err) < 0)
		control_refuse(who, RPC_E_DENIED, "%s", err.what);
	else if (!engine_attaches(s))
		grant_unmounted(s, who, &like);
	else if (shows_hidden(s, path))
		control_refuse(who, RPC_E_DENIED,
			       "the policy denies reading something there, which a live grant "
			       "would show: start it again with --allow");
	else
		grant_mounted(s, who, &like, &req->expected);
}

void grants_allow(struct session *s, const struct caller *who, const struct grant_request *req)
{
	if (s->opt->agent)
		control_refuse(who, RPC_E_DENIED,
			       "its block is its policy: change that, and start it again");
	else if (s->opt->token)
		control_refuse(who, RPC_E_DENIED,
			       "its token is its policy: start another session with one "
			       "that allows this");
	else if (req->action == GRANT_NET)
		grant_net(s, who, req);
	else
		grant_path(s, who, req);
}

/* Answers the clients that wait for @g to be attached (CALL_GRANT) or detached (CALL_REVOKE). */
static void answer_waiting(struct session *s, const struct grant *g, enum call_kind kind)
{
	struct caller who;

	while (control_find_call(s, kind, g->number, &who)) {
		if (kind == CALL_GRANT)
			grant_answer(&who, g->number);
		else
			rpc_result(who.conn, who.call, NULL, NULL, 0);
	}
}

static void answer_failed(struct session *s, const struct grant *g, enum call_kind kind,
			  const struct writ_err *err)
{
	struct caller who;

	while (control_find_call(s, kind, g->number, &who))
		rpc_refuse_err(who.conn, who.call, err);
}

/* SECURITY: a grant that cannot be revoked ends the session. */
static void cannot_revoke(struct session *s, const struct grant *g, const struct writ_err *err)
{
	session_end(s, "a grant could not be taken back", SESSION_FAILED);
	answer_failed(s, g, CALL_REVOKE, err);
}

static void detach(struct session *s, struct grant *g)
{
	struct writ_err err = { 0 };

	g->state = GRANT_DETACHING;
	if (s->opt->plan->engine->detach(engine_run(s), g->number, g->path, &err) < 0)
		cannot_revoke(s, g, &err);
}

/* Revokes a held grant. If the grant has a mount, the client waits for the keeper. */
static void let_go(struct session *s, struct grant *g)
{
	struct writ_err err = { 0 };

	record_grant(s, g, "revoke");
	if (g->net)
		network_revoke(s, g);
	else if (engine_view(s)->traps && tell_mediator(s, g, false, &err) < 0)
		cannot_revoke(s, g, &err);
	if (!g->net && engine_attaches(s)) {
		detach(s, g);
		return;
	}
	g->state = GRANT_NONE;
	answer_waiting(s, g, CALL_REVOKE);
}

/* Returns the newest grant with a mount on that of @g, which must be removed before that of @g. */
static const struct grant *find_above(const struct session *s, const struct grant *g)
{
	for (size_t i = grants_of(s)->grants.n; engine_attaches(s) && i > g->number; i--) {
		const struct grant *other = &grants_of(s)->grants.v[i - 1];

		if (other->state != GRANT_NONE && other->state != GRANT_DETACHING &&
		    is_entangled(g, other))
			return other;
	}
	return NULL;
}

void grants_revoke(struct session *s, const struct caller *who, uint32_t n)
{
	const struct grant *above;
	struct grant *g;

	if (n == 0 || n > grants_of(s)->grants.n ||
	    grants_of(s)->grants.v[n - 1].state == GRANT_NONE) {
		control_refuse(who, RPC_E_NOT_FOUND, "there is no grant %u", n);
		return;
	}
	g = &grants_of(s)->grants.v[n - 1];
	above = find_above(s, g);
	if (above) {
		control_refuse(who, RPC_E_DENIED,
			       "grant %u was made over it: first writ revoke %s %u", above->number,
			       s->id, above->number);
		return;
	}
	who->call->kind = CALL_REVOKE;
	who->call->number = g->number;
	switch (g->state) {
	case GRANT_ATTACHING:
		g->state = GRANT_UNWANTED;
		break;
	case GRANT_HELD:
		let_go(s, g);
		break;
	case GRANT_NONE:
	case GRANT_UNWANTED:
	case GRANT_DETACHING:
		break;
	}
}

/* Replaces errors of the keeper that have a meaning for people. */
static void explain_refusal(const struct grant *g, struct writ_err *err)
{
	if (err->sys == ESTALE)
		(void)!writ_fail(err, WRIT_E_DENIED, 0,
				"another object is at %s now: it was not granted", g->path);
	else if (err->sys == EOPNOTSUPP)
		(void)!writ_fail(err, WRIT_E_DENIED, 0,
				"%s is the kernel's: it is not granted", g->path);
}

/* Handles the answer of the keeper about a mount: it is attached, or @err says why it is not. */
static void on_attached(struct session *s, struct grant *g, struct writ_err *err)
{
	static const struct writ_err revoked = { .code = WRIT_E_DENIED,
						 .what = "it was revoked before it was there" };

	if (err->code) {
		g->state = GRANT_NONE;
		explain_refusal(g, err);
		answer_failed(s, g, CALL_GRANT, err);
		answer_waiting(s, g, CALL_REVOKE);
		/* The grant never took effect: reuse its place for the next grant. */
		if (g->number == grants_of(s)->grants.n)
			grants_of(s)->grants.n--;
	} else if (g->state == GRANT_UNWANTED) {
		record_grant(s, g, "allow");
		record_grant(s, g, "revoke");
		answer_failed(s, g, CALL_GRANT, &revoked);
		detach(s, g);
	} else if (engine_view(s)->traps && tell_mediator(s, g, true, err) < 0) {
		answer_failed(s, g, CALL_GRANT, err);
		detach(s, g);
	} else {
		hold(s, g);
		answer_waiting(s, g, CALL_GRANT);
	}
}

/* Handles the answer of the keeper to a request to attach or detach the mount of a grant. */
void grants_done(struct session *s, uint32_t number, struct writ_err *err)
{
	struct grant *g = number > 0 && number <= grants_of(s)->grants.n
				  ? &grants_of(s)->grants.v[number - 1]
				  : NULL;

	/*
	 * The keeper changes mounts before it answers: read the change while the supervisor still
	 * knows which grant caused it.
	 */
	engine_check_mounts(s);
	if (!g)
		return;
	switch (g->state) {
	case GRANT_ATTACHING:
	case GRANT_UNWANTED:
		on_attached(s, g, err);
		break;
	case GRANT_DETACHING:
		if (err->code) {
			cannot_revoke(s, g, err);
			break;
		}
		g->state = GRANT_NONE;
		answer_waiting(s, g, CALL_REVOKE);
		break;
	case GRANT_NONE:
	case GRANT_HELD:
		session_end(s, "the keeper spoke out of turn", SESSION_FAILED);
		break;
	}
}

bool grants_are_moving(const struct session *s)
{
	for (size_t i = 0; i < grants_of(s)->grants.n; i++) {
		const enum grant_state state = grants_of(s)->grants.v[i].state;

		if (state != GRANT_NONE && state != GRANT_HELD)
			return true;
	}
	return false;
}

void grants_each_net(const struct session *s, void (*each)(void *ctx, const struct grant *g),
		     void *ctx)
{
	const struct grants *g = grants_of(s);

	for (size_t i = 0; i < g->grants.n; i++)
		if (g->grants.v[i].net && g->grants.v[i].state == GRANT_HELD)
			each(ctx, &g->grants.v[i]);
}
