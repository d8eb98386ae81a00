#include "able/able_priv.h"

#include "base/banned.h"

static const char no_notify[] = "needs seccomp notification, which this place does not give";

static bool has_star(const struct cap_seq *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->segs[i].star)
			return true;
	return false;
}

/* Is all of @c's path inside a copy-on-write workspace? Only tier A has such workspaces. */
static bool in_cow(const struct ground *g, const struct cap *c)
{
	const struct cap_seq *root = &g->set->root.path;

	if (!g->cow || g->tier != TIER_A || g->set->root.action == CAP_NONE || c->path.n < root->n)
		return false;
	for (size_t i = 0; i < root->n; i++)
		if (i >= c->path.hole || c->path.segs[i].star ||
		    !sv_eq(c->path.segs[i].pre, root->segs[i].pre))
			return false;
	return true;
}

/*
 * Does @c grant a whole tree in which sockets that delegate authority usually are: /, /run, /var,
 * /var/run or /tmp?
 */
static bool holds_sockets(const struct cap *c)
{
	const struct sv first = c->path.n ? c->path.segs[0].pre : SV("");

	if (!c->path.tail)
		return false;
	return c->path.n == 0 || sv_is(first, "run") ||
	       (sv_is(first, "var") && (c->path.n == 1 || sv_is(c->path.segs[1].pre, "run"))) ||
	       (sv_is(first, "tmp") && c->path.n == 1);
}

/*
 * A rule that asks a person or counts uses needs a control that sees each use. For files, only the
 * mediator sees each open.
 */
static struct hold hold_priced_file(const struct ground *g)
{
	if (g->mediate)
		return HOLD_FOR(EXACT, "opens mediated, held while a person decides",
				"opens there ~6x", NULL);
	return HOLD_FOR(NONE, no_notify, "none", "allow it or leave it out");
}

/*
 * A path with a star means some names in a directory. Neither a mount nor a Landlock rule can
 * express such a set of names.
 */
static struct hold hold_glob(const struct ground *g, const struct cap *c, bool write)
{
	if (g->mediate && g->tier == TIER_A)
		return HOLD_FOR(EXACT,
				write ? "bind + Landlock, opens and creates mediated"
				      : "bind + Landlock, opens mediated",
				"opens there ~6x", NULL);
	if (g->mediate)
		return HOLD_FOR(EXACT,
				write ? "Landlock, opens and creates mediated"
				      : "Landlock, opens mediated",
				"opens there ~6x", NULL);
	if (in_cow(g, c) && write)
		return HOLD_FOR(EXACT, "commit gate of the copy-on-write workspace",
				"checked at apply", NULL);
	return HOLD_FOR(PARTIAL, no_notify, "none",
			able_cow_fix(g, "grant the whole directory, or --workspace cow",
				     "grant the whole directory"));
}

static struct hold hold_read(const struct ground *g, const struct cap *c)
{
	if (has_star(&c->path))
		return hold_glob(g, c, false);
	if (holds_sockets(c) && !g->mediate)
		return HOLD_FOR(PARTIAL, "sockets below it could be spoken to", "none",
				"grant less of it");
	if (g->tier == TIER_A)
		return HOLD(EXACT, g->landlock_fs ? "read-only bind + Landlock" : "read-only bind");
	return g->landlock_fs ? HOLD(EXACT, "Landlock")
			      : HOLD(NONE, "nothing without Landlock");
}

/*
 * A writable tree contains names that stay protected, so the mediator must see each creation in the
 * tree.
 */
static struct hold hold_write(const struct ground *g, const struct cap *c)
{
	if (has_star(&c->path))
		return hold_glob(g, c, true);
	if (!g->landlock_fs && g->tier == TIER_B)
		return HOLD(NONE, "nothing without Landlock");
	if (in_cow(g, c))
		return HOLD_FOR(EXACT, "copy-on-write workspace, commit gate", "checked at apply",
				NULL);
	if (!c->path.tail)
		return HOLD(EXACT, g->tier == TIER_A ? "bind + Landlock" : "Landlock");
	if (g->mediate)
		return HOLD_FOR(EXACT,
				g->tier == TIER_A ? "bind + Landlock, create trap"
						  : "Landlock, create and attribute traps",
				"creates ~2x", NULL);
	return HOLD_FOR(PARTIAL, "protected names that do not exist yet could be created", "none",
			g->tier == TIER_A
				? able_cow_fix(g, "--workspace cow checks them before they land",
					       NULL)
				: NULL);
}

static struct hold hold_put(const struct ground *g)
{
	if (!g->landlock_fs)
		return HOLD(NONE, "a drop box needs Landlock");
	if (g->f->landlock_abi < 2)
		return HOLD(STRICTER, "Landlock, and no moving between directories");
	return HOLD(EXACT,
		    g->tier == TIER_A ? "bind + Landlock without read and remove"
				      : "Landlock without read and remove");
}

/*
 * Rules about programs: either every readable program may run, or only the listed programs may run.
 * The dynamic loader can run any other readable program, so the list holds only partly.
 */
static struct hold hold_exec(const struct cap *c)
{
	if (c->approve_n || c->n || c->rate_n)
		return HOLD_FOR(NONE, "nobody can run a program on behalf of another", "none",
				"allow it or leave it out");
	if (c->path.n == 0 && c->path.tail && !c->has_args && !c->sha256_n)
		return HOLD(EXACT, "what is readable may run");
	return HOLD_FOR(PARTIAL, "Landlock; the loader it needs runs anything readable", "none",
			"accept exec=partial, or hide programs by granting less to read");
}

static bool is_open_https(const struct cap *c)
{
	return c->url.tls && c->url.path.n == 0 && c->url.path.tail && c->any_method &&
	       !c->no_query && !c->n && !c->rate_n;
}

/*
 * Does a `secret` line of the policy require egress to read the requests that the rule @c allows?
 */
static bool needs_secret(const struct ground *g, const struct cap *c)
{
	for (size_t i = 0; i < g->set->caps.n; i++) {
		const struct cap *s = &g->set->caps.v[i].cap;

		if (s->action == CAP_SECRET_USE && !sv_is(s->as, "env") &&
		    s->to.port == c->url.port && sv_eq(s->to.host.name, c->url.host.name) &&
		    s->to.host.kind == c->url.host.kind)
			return true;
	}
	return false;
}

static struct hold hold_net(const struct ground *g, const struct cap *c)
{
	const bool open = c->action == CAP_NET_CONNECT || is_open_https(c);
	const bool signed_level = g->set->net_level == NET_LEVEL_SIGNED;
	const bool inspected = !c->tls_pass && c->action == CAP_HTTP_REQUEST &&
			       (!open || needs_secret(g, c) || signed_level);
	const char *cost =
		inspected ? (c->url.tls ? "TLS intercepted" : "HTTP read") : "none, not inspected";

	if (signed_level && (c->action == CAP_NET_CONNECT || c->tls_pass))
		return HOLD_FOR(NONE, "net level signed lets nothing through unread", "none",
				"use https:// rules, or a lower net level");
	if (g->own_net)
		return HOLD_FOR(EXACT,
				inspected ? "per-name listener, inspected" : "per-name listener",
				cost, NULL);
	if (g->mediate)
		return HOLD_FOR(EXACT,
				inspected ? "connect mediated, inspected" : "connect mediated",
				inspected ? cost : "connects ~6x", NULL);
	if (g->tier == TIER_B && g->f->landlock_abi >= 4)
		return HOLD(PARTIAL, "Landlock limits TCP ports, not hosts, and not UDP");
	return HOLD(NONE, no_notify);
}

static struct hold hold_bind(const struct ground *g)
{
	if (g->own_net)
		return HOLD(EXACT, "published on host loopback from its own network");
	if (g->mediate)
		return HOLD(EXACT, "bind mediated");
	return HOLD(PARTIAL, "nothing keeps it on loopback here");
}

static struct hold hold_unix(const struct ground *g, const struct cap *c)
{
	if (c->danger)
		return HOLD(EXACT, "the socket is let in: other boundaries end there");
	if (g->tier == TIER_A)
		return HOLD_FOR(EXACT, "only this socket is visible",
				g->mediate ? "UNIX messages ~6x" : "none", NULL);
	if (g->mediate)
		return HOLD_FOR(EXACT, "connect mediated", "connects ~6x", NULL);
	return HOLD(NONE, "Landlock here does not see UNIX sockets");
}

static struct hold hold_dev(const struct ground *g)
{
	if (g->tier == TIER_A)
		return HOLD(EXACT, "the device alone is bound");
	if (g->f->landlock_abi >= 5)
		return HOLD(EXACT, "Landlock");
	return HOLD(PARTIAL, "Landlock here does not see ioctl on devices");
}

static struct hold hold_kernel(const struct ground *g, const struct cap *c)
{
	const struct sv name = c->path.segs[0].pre;

	if (sv_is(name, "nested-userns")) {
		if (g->tier != TIER_A)
			return HOLD(NONE, "user namespaces are not to be had here");
		return HOLD(EXACT,
			    "seccomp switch; files are held by mounts alone, without Landlock");
	}
	if (sv_is(name, "io_uring")) {
		if (!g->f->io_uring)
			return HOLD(NONE, "the kernel has io_uring switched off");
		return HOLD(EXACT, "seccomp switch; nothing can be mediated any more");
	}
	if (g->f->yama >= 3)
		return HOLD(NONE, "Yama forbids all tracing here");
	return HOLD(EXACT, "seccomp switch; only its own children");
}

static struct hold hold_secret(const struct ground *g, const struct cap *c)
{
	if (sv_is(c->as, "env"))
		return HOLD_FOR(EXACT, "in the agent's environment: the agent holds it", "none",
				"use bearer, basic, header: or query: and it stays outside");
	if (g->own_net || g->mediate)
		return HOLD_FOR(EXACT, "set outside, on verified TLS to its host only",
				"TLS intercepted", NULL);
	return HOLD(NONE, "no way to look into connections here");
}

struct hold able_hold_cap(const struct ground *g, const struct cap *c)
{
	if (g->tier == TIER_NONE)
		return HOLD(NONE, "nothing here can hold a process");
	if ((c->action == CAP_FS_READ || c->action == CAP_FS_WRITE || c->action == CAP_FS_PUT) &&
	    (c->approve_n || c->n || c->rate_n))
		return hold_priced_file(g);
	switch (c->action) {
	case CAP_FS_READ:
		return hold_read(g, c);
	case CAP_FS_WRITE:
		return hold_write(g, c);
	case CAP_FS_PUT:
		return has_star(&c->path) ? hold_glob(g, c, true) : hold_put(g);
	case CAP_PROC_EXEC:
		return hold_exec(c);
	case CAP_NET_CONNECT:
	case CAP_HTTP_REQUEST:
		return hold_net(g, c);
	case CAP_NET_BIND:
		return hold_bind(g);
	case CAP_UNIX_CONNECT:
		return hold_unix(g, c);
	case CAP_ENV_PASS:
		return HOLD(EXACT, "environment built from nothing");
	case CAP_SECRET_USE:
		return hold_secret(g, c);
	case CAP_DEV_USE:
		return hold_dev(g);
	case CAP_GIT_USE:
		return g->own_net || g->mediate
			       ? HOLD(EXACT, "a helper outside speaks to that repository")
			       : HOLD(NONE, "nothing leads to the helper here");
	case CAP_TOOL_CALL:
		return HOLD(EXACT, "the broker calls the tool");
	case CAP_AGENT_SPAWN:
		return g->tier == TIER_A || g->ask->whole
			       ? HOLD(EXACT, "started outside, under its own policy")
			       : HOLD(NONE, "only tier A has a way to ask for one");
	case CAP_KERNEL_USE:
		return hold_kernel(g, c);
	case CAP_STATE_USE:
		return HOLD(EXACT, "a directory outside the workspace");
	case CAP_NONE:
	case CAP_ACTION_COUNT:
		break;
	}
	return HOLD(NONE, "unknown action");
}

/*
 * Could any grant of the policy allow an access that the denial @d denies? @but_base: leave out the
 * grants of base's system trees.
 */
static bool takes_from_a_grant(const struct ground *g, const struct cap *d, bool but_base)
{
	for (size_t i = 0; i < g->set->caps.n; i++) {
		const struct cap *c = &g->set->caps.v[i].cap;
		const size_t n = c->path.n < d->path.n ? c->path.n : d->path.n;
		bool apart = false;

		if (c->action != d->action &&
		    !(d->action == CAP_FS_WRITE && c->action == CAP_FS_PUT))
			continue;
		if (but_base && cap_set_is_base_tree(g->set, &g->set->caps.v[i]))
			continue;
		/*
		 * A grant and a denial whose literal leading components differ cannot overlap.
		 * Every other pair may overlap.
		 */
		for (size_t k = 0; k < n && !apart && k < d->path.hole; k++)
			apart = !c->path.segs[k].star && !d->path.segs[k].star &&
				!sv_eq(c->path.segs[k].pre, d->path.segs[k].pre);
		if (!apart && (c->path.n >= d->path.n || c->path.tail || d->path.hole != SIZE_MAX))
			return true;
	}
	return false;
}

/*
 * Is everything that the denial @d denies inside a copy-on-write workspace? A denial by name alone
 * applies to every grant, so every grant that a person wrote must then be inside the workspace.
 */
static bool denial_in_cow(const struct ground *g, const struct cap *d)
{
	if (d->path.hole == SIZE_MAX)
		return in_cow(g, d);
	for (size_t i = 0; i < g->set->caps.n; i++) {
		const struct cap_entry *e = &g->set->caps.v[i];

		if ((e->cap.action == CAP_FS_READ || e->cap.action == CAP_FS_WRITE ||
		     e->cap.action == CAP_FS_PUT) &&
		    !g->set->rules.v[e->rule].built_in && !in_cow(g, &e->cap))
			return false;
	}
	return g->cow && g->tier == TIER_A;
}

static struct hold hold_deny_file(const struct ground *g, const struct cap *d)
{
	const bool by_name = d->path.hole != SIZE_MAX || has_star(&d->path);
	const bool but_base = cap_set_spares_base(g->set, d);

	/*
	 * A denial by name alone applies to the granted trees except base's system trees. A denial
	 * that begins with a directory is meant for that directory; base's system trees stay
	 * readable even there, so such a denial holds only partly.
	 */
	if (but_base && d->path.hole != 0)
		return HOLD_FOR(PARTIAL, "base's system trees are left alone", "none",
				"begin the pattern inside the one that is meant");
	if (!takes_from_a_grant(g, d, but_base))
		return HOLD(EXACT,
			    but_base ? "nothing but base's system trees allows it"
				     : "nothing allows it anyway");
	if (denial_in_cow(g, d))
		return HOLD(EXACT, d->action == CAP_FS_READ
					   ? "copy-on-write snapshot"
					   : "commit gate of the copy-on-write workspace");
	if (g->mediate && d->action == CAP_FS_READ)
		return HOLD_FOR(EXACT,
				g->tier == TIER_A
					? (but_base
						   ? "mask, opens mediated; not base's system trees"
						   : "mask, opens mediated")
					: (but_base ? "opens mediated; not base's system trees"
						    : "opens mediated"),
				"opens ~6x",
				able_cow_fix(g, "--workspace cow makes it free", NULL));
	if (g->mediate)
		return HOLD_FOR(EXACT,
				g->tier == TIER_A ? "read-only bind, create trap" : "create trap",
				"creates ~2x", NULL);
	if (g->tier == TIER_A && !by_name)
		return HOLD_FOR(PARTIAL, "mask; the host's own rename would uncover it", "none",
				able_cow_fix(g, "--workspace cow", NULL));
	return HOLD_FOR(NONE, no_notify, "none",
			g->tier == TIER_A ? able_cow_fix(g, "--workspace cow", NULL) : NULL);
}

struct hold able_hold_denial(const struct ground *g, const struct cap *d)
{
	if (g->tier == TIER_NONE)
		return HOLD(NONE, "nothing here can hold a process");
	if (d->action == CAP_FS_READ || d->action == CAP_FS_WRITE || d->action == CAP_FS_PUT)
		return hold_deny_file(g, d);
	if (d->action == CAP_PROC_EXEC)
		return takes_from_a_grant(g, d, false)
			       ? HOLD_FOR(PARTIAL, "hidden on exec mounts; a copy of it still runs",
					  "none", "accept exec=partial")
			       : HOLD(EXACT, "nothing allows it anyway");
	if (d->action == CAP_HTTP_REQUEST && !(d->url.path.n == 0 && d->url.path.tail))
		return g->own_net || g->mediate
			       ? HOLD_FOR(EXACT, "that host is inspected", "TLS intercepted", NULL)
			       : HOLD(NONE, no_notify);
	if (d->action == CAP_NET_CONNECT || d->action == CAP_HTTP_REQUEST)
		return g->own_net || g->mediate ? HOLD(EXACT, "no listener for it")
						: HOLD(NONE, no_notify);
	return HOLD(EXACT, "never granted");
}

struct hold able_hold_workspace(const struct ground *g)
{
	if (g->set->workspace != WORKSPACE_COW)
		return HOLD(EXACT, "the real tree, narrowed");
	if (g->tier != TIER_A)
		return HOLD(NONE, "copy-on-write needs mounts of its own");
	if (g->f->overlay && !g->ask->overlay_advisory)
		return HOLD(EXACT, "overlayfs, the layer outside the workspace");
	if (g->f->reflink)
		return HOLD_FOR(EXACT, "reflinked copy", "copy at start", NULL);
	return HOLD_FOR(EXACT, "copy", "copies the workspace at start", NULL);
}

/*
 * Returns how well this machine enforces the policy's net level. Egress answers name lookups from
 * the policy in every case, so the net level `hosts` holds as well as `hosts+dns`.
 */
struct hold able_hold_net_level(const struct ground *g)
{
	if (!g->own_net && !g->mediate)
		return HOLD(NONE, "connections cannot be controlled here");
	if (able_lacks(g, FEATURE_NET))
		return HOLD(EXACT, "own network, no way out of it");
	if (g->set->net_level == NET_LEVEL_SIGNED)
		return HOLD_FOR(EXACT, "each request read and on record, not chained yet",
				"TLS intercepted", NULL);
	return HOLD(EXACT, "own network and DNS");
}
