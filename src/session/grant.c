#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <linux/mount.h>

#include "session/session_priv.h"

#include "base/banned.h"

/* SECURITY: written down once: what is there may be something else when it is taken back. */
static int scope_of(struct session *s, struct grant *g, struct writ_err *err)
{
	scoped_arena a = ARENA_INIT(1 << 16);
	struct buf b = BUF_INIT(CAP_TEXT_MAX);
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
	buf_clear(&b);
	return r;
}

static int tell_mediator(struct session *s, const struct grant *g, bool on, struct writ_err *err)
{
	static const char *const actions[] = { "fs.read", "fs.write" };
	char cap[CAP_TEXT_MAX + 16];
	int r = 0;

	for (int i = 0; r == 0 && i < (g->write ? 2 : 1); i++) {
		snprintf(cap, sizeof(cap), "%s:%s", actions[i], g->scope);
		r = watch_rule(s, on, cap, err);
	}
	return r;
}

static void record_grant(struct session *s, const struct grant *g, const char *event)
{
	struct entry entry = { 0 };

	record_begin(s, &entry, event);
	record_num(&entry, "number", g->number);
	record_str(&entry, "rule", sv_from(g->rule));
	record_end(s, &entry);
}

/* Why a path is not granted to anybody, or NULL. */
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

/* Only for what has passed every check: there are few places. */
static struct grant *add_grant(struct session *s, size_t client, const struct grant *like)
{
	struct grant *g = s->grants.n < GRANTS_MAX ? vec_push(s->a, &s->grants) : NULL;

	if (!g) {
		control_answer(s, client, "error this session has had %d grants: start it again",
			       GRANTS_MAX);
		return NULL;
	}
	*g = *like;
	g->number = (uint32_t)s->grants.n;
	return g;
}

static void hold(struct session *s, struct grant *g)
{
	g->state = GRANT_HELD;
	record_grant(s, g, "allow");
}

/* The rule, and below it the capabilities: all of them are what egress decides by. */
static void grant_net(struct session *s, size_t client, struct sv rule)
{
	struct grant like = { .net = true }, *g;
	struct sv caps = rule;
	const struct sv text = sv_cut(&caps, '\n');

	if (text.n >= sizeof(like.rule) || caps.n == 0 || caps.n >= sizeof(like.path)) {
		control_answer(s, client, "error that rule cannot be granted");
		return;
	}
	memcpy(like.path, caps.p, caps.n);
	memcpy(like.rule, text.p, text.n);
	g = add_grant(s, client, &like);
	if (!g)
		return;
	if (!net_grant(s, g)) {
		s->grants.n--;
		control_answer(s, client, "error this session cannot be given that: %s",
			       s->view.listeners.n ? "its requests would have to be read"
						   : "it has no network of its own");
		return;
	}
	hold(s, g);
	control_answer(s, client, "ok %u", g->number);
}

/* Host namespaces: what Landlock closed stays closed for the kernel. */
static void grant_unmounted(struct session *s, size_t client, const struct grant *like)
{
	struct writ_err err = { 0 };
	struct grant *g;

	if (!like->write) {
		control_answer(s, client,
			       "error this session cannot be widened for reading: tier B sees no "
			       "reads; start it again with --allow");
		return;
	}
	g = add_grant(s, client, like);
	if (!g)
		return;
	if (tell_mediator(s, g, true, &err) < 0) {
		s->grants.n--;
		control_answer(s, client, "error this session cannot be widened: %s", err.what);
		return;
	}
	hold(s, g);
	control_answer(s, client, "ok %u", g->number);
}

static void grant_mounted(struct session *s, size_t client, const struct grant *like)
{
	struct jail_message m = { .type = JAIL_ATTACH };
	struct writ_err err = { 0 };
	struct grant *g = add_grant(s, client, like);

	if (!g)
		return;
	m.id = g->number;
	m.value = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (g->write ? 0 : MOUNT_ATTR_RDONLY);
	if (jail_send(s->jail.keeper, &m, NULL, 0, (struct sv){ g->path, strlen(g->path) + 1 },
		      &err) < 0) {
		s->grants.n--;
		control_answer(s, client, "error %s", err.what);
		return;
	}
	g->state = GRANT_ATTACHING;
	s->clients[client].grant = g->number;
	s->clients[client].revokes = false;
}

/* Would the mount of one hide or carry that of the other? */
static bool is_entangled(const struct grant *g, const struct grant *other)
{
	const struct sv a = sv_from(g->path), b = sv_from(other->path);

	return !g->net && !other->net && (sv_below(a, b) || sv_below(b, a));
}

/* A grant that leaves no room for this one, or NULL. */
static const struct grant *find_obstacle(const struct session *s, const struct grant *g)
{
	for (size_t i = 0; i < s->grants.n; i++) {
		const struct grant *other = &s->grants.v[i];
		const bool going = other->state == GRANT_UNWANTED;
		const bool there = other->state == GRANT_ATTACHING || other->state == GRANT_HELD;

		/* What lies upon something must not be less than that. */
		if ((going || (there && other->write && !g->write)) && is_entangled(g, other))
			return other;
	}
	return NULL;
}

/* "read /x" or "write /x", with a physical path: the client made sure of that. */
static void grant_path(struct session *s, size_t client, struct sv rule)
{
	struct sv rest = rule;
	const struct sv verb = sv_cut(&rest, ' ');
	struct grant like = { .write = sv_is(verb, "write") };
	const struct grant *other;
	struct writ_err err = { 0 };
	const char *why;

	if ((!like.write && !sv_is(verb, "read")) || rest.n == 0 || rest.n >= sizeof(like.path) ||
	    rest.p[0] != '/' || rule.n >= sizeof(like.rule) || sv_find(rule, 0) != SIZE_MAX) {
		control_answer(s, client,
			       "error only read and write of a path can be granted live");
		return;
	}
	memcpy(like.path, rest.p, rest.n);
	memcpy(like.rule, rule.p, rule.n);
	/* SECURITY: Landlock lets the session write there by itself, whatever is mounted below. */
	for (size_t i = 0; i < s->view.private_dirs.n; i++) {
		const struct sv own = s->view.private_dirs.v[i];

		if (sv_below(rest, own)) {
			control_answer(s, client,
				       "error " SV_FMT
				       " is the session's own: nothing can be granted below it",
				       SV_ARG(own));
			return;
		}
	}
	why = cannot_grant(s, rest);
	other = find_obstacle(s, &like);
	if (why)
		control_answer(s, client, "error %s", why);
	else if (other && other->state == GRANT_UNWANTED)
		control_answer(s, client, "error grant %u is being taken back there: try again",
			       other->number);
	else if (other)
		control_answer(s, client,
			       "error grant %u lets it write there: to grant less, first writ "
			       "revoke %s %u",
			       other->number, s->id, other->number);
	else if (scope_of(s, &like, &err) < 0)
		control_answer(s, client, "error %s", err.what);
	else if (s->jail.keeper < 0)
		grant_unmounted(s, client, &like);
	else
		grant_mounted(s, client, &like);
}

void grant_more(struct session *s, size_t client, struct sv rule)
{
	if (s->opt->parent.n)
		control_answer(s, client,
			       "error its block is its policy: change that, and start it again");
	else if (s->opt->token)
		control_answer(s, client,
			       "error its token is its policy: start another session with one "
			       "that allows this");
	else if (sv_starts(rule, SV("net ")))
		grant_net(s, client, rule);
	else
		grant_path(s, client, rule);
}

/* Those who wait for @g to come, or for it to go. */
static void answer_waiting(struct session *s, const struct grant *g, bool revokes, const char *text)
{
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		if (s->clients[i].fd >= 0 && s->clients[i].grant == g->number &&
		    s->clients[i].revokes == revokes)
			control_answer(s, i, "%s", text);
}

static void answer_failed(struct session *s, const struct grant *g, bool revokes,
			  const struct writ_err *err)
{
	char text[256];

	snprintf(text, sizeof(text), "error %s%s%s", err->what, err->sys ? ": " : "",
		 err->sys ? strerror(err->sys) : "");
	answer_waiting(s, g, revokes, text);
}

/* SECURITY: a grant that cannot be taken back ends the session. */
static void cannot_revoke(struct session *s, const struct grant *g, const struct writ_err *err)
{
	session_end(s, "a grant could not be taken back", SESSION_FAILED);
	answer_failed(s, g, true, err);
}

static void detach(struct session *s, struct grant *g)
{
	const struct jail_message m = { .type = JAIL_DETACH, .id = g->number };
	struct writ_err err = { 0 };

	g->state = GRANT_DETACHING;
	if (jail_send(s->jail.keeper, &m, NULL, 0, (struct sv){ g->path, strlen(g->path) + 1 },
		      &err) < 0)
		cannot_revoke(s, g, &err);
}

/* Of what is held. Its client waits, where there is a mount. */
static void let_go(struct session *s, struct grant *g)
{
	struct writ_err err = { 0 };

	record_grant(s, g, "revoke");
	if (g->net)
		net_revoke(s, g);
	else if (s->view.traps && tell_mediator(s, g, false, &err) < 0)
		cannot_revoke(s, g, &err);
	if (!g->net && s->jail.keeper >= 0) {
		detach(s, g);
		return;
	}
	g->state = GRANT_NONE;
	answer_waiting(s, g, true, "ok");
}

/* Mounts that lie upon each other go from the top. */
static const struct grant *find_above(const struct session *s, const struct grant *g)
{
	for (size_t i = s->grants.n; s->jail.keeper >= 0 && i > g->number; i--) {
		const struct grant *other = &s->grants.v[i - 1];

		if (other->state != GRANT_NONE && other->state != GRANT_DETACHING &&
		    is_entangled(g, other))
			return other;
	}
	return NULL;
}

void grant_take_back(struct session *s, size_t client, struct sv what)
{
	const struct grant *above;
	struct grant *g;
	uint64_t n;

	if (!sv_to_u64(what, GRANTS_MAX, &n) || n == 0 || n > s->grants.n ||
	    s->grants.v[n - 1].state == GRANT_NONE) {
		control_answer(s, client, "error there is no grant " SV_FMT, SV_ARG(what));
		return;
	}
	g = &s->grants.v[n - 1];
	above = find_above(s, g);
	if (above) {
		control_answer(s, client,
			       "error grant %u was made over it: first writ revoke %s %u",
			       above->number, s->id, above->number);
		return;
	}
	s->clients[client].grant = g->number;
	s->clients[client].revokes = true;
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

/* Its mount is there, or @err says why not. */
static void on_attached(struct session *s, struct grant *g, struct writ_err *err)
{
	char text[32];

	if (err->code) {
		g->state = GRANT_NONE;
		answer_failed(s, g, false, err);
		answer_waiting(s, g, true, "ok");
		/* Nobody ever had it: the next may have its place. */
		if (g->number == s->grants.n)
			s->grants.n--;
	} else if (g->state == GRANT_UNWANTED) {
		record_grant(s, g, "allow");
		record_grant(s, g, "revoke");
		answer_waiting(s, g, false, "error it was revoked before it was there");
		detach(s, g);
	} else if (s->view.traps && tell_mediator(s, g, true, err) < 0) {
		answer_failed(s, g, false, err);
		detach(s, g);
	} else {
		hold(s, g);
		snprintf(text, sizeof(text), "ok %u", g->number);
		answer_waiting(s, g, false, text);
	}
}

/* The keeper has done what was asked for, or could not. */
void grant_done(struct session *s, uint32_t number, struct writ_err *err)
{
	struct grant *g = number > 0 && number <= s->grants.n ? &s->grants.v[number - 1] : NULL;
	struct pollfd mounts = { .fd = s->mounts, .events = POLLPRI };

	/* Its change came before these words: heard now, it is known to be ours. */
	if (poll(&mounts, 1, 0) > 0)
		hear_mounts(s);
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
		answer_waiting(s, g, true, "ok");
		break;
	case GRANT_NONE:
	case GRANT_HELD:
		session_end(s, "the keeper spoke out of turn", SESSION_FAILED);
		break;
	}
}

bool grant_is_moving(const struct session *s)
{
	for (size_t i = 0; i < s->grants.n; i++) {
		const enum grant_state state = s->grants.v[i].state;

		if (state != GRANT_NONE && state != GRANT_HELD)
			return true;
	}
	return false;
}
