#include "compile/compile_priv.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "filter/filter.h"
#include "gitnet/git.h"
#include "limit/rlimit.h"
#include "lang/protect.h"

#include "base/banned.h"

enum { COPY_MAX = 16 << 10 };

/* --- rules that the host engine cannot carry out --- */

static int refuse(struct compile *c, uint32_t rule, const char *why)
{
	if (rule == RULE_NONE)
		return writ_fail(c->err, WRIT_E_UNENFORCEABLE, 0, "%s", why);
	return writ_fail(c->err, WRIT_E_UNENFORCEABLE, 0, SV_FMT ": %s",
			 SV_ARG(sv_sub(c->set->rules.v[rule].text, 0, 60)), why);
}

static int check_entries(struct compile *c, const struct cap_entry *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *why = plan_lacks_for(&v[i].cap);

		if (why && !c->set->rules.v[v[i].rule].built_in)
			return refuse(c, v[i].rule, why);
	}
	return 0;
}

/*
 * SECURITY: the plan has refused rules that cannot be enforced. Check the rules again here, so that
 * no caller can skip the check.
 */
static int check(struct compile *c)
{
	int r;

	if (c->plan->lacks)
		return refuse(c, RULE_NONE, c->plan->lacks);
	if (c->set->workspace == WORKSPACE_COW && plan_lacks(FEATURE_COW))
		return refuse(c, c->set->workspace_rule, plan_lacks(FEATURE_COW));
	r = check_entries(c, c->set->caps.v, c->set->caps.n);
	return r < 0 ? r : check_entries(c, c->set->prices.v, c->set->prices.n);
}

/* --- switches --- */

bool compile_has_exec_list(const struct cap_set *set)
{
	for (size_t i = 0; i < set->caps.n; i++) {
		const struct cap *c = &set->caps.v[i].cap;

		if (c->action == CAP_PROC_EXEC && c->path.n == 0 && c->path.tail)
			return false;
	}
	return true;
}

bool compile_denied_path(const struct cap *d, struct buf *b)
{
	bool plain = d->action == CAP_FS_READ && d->path.hole == SIZE_MAX && d->path.n;

	for (size_t i = 0; plain && i < d->path.n; i++) {
		plain = !d->path.segs[i].star;
		buf_ch(b, '/');
		buf_sv(b, d->path.segs[i].pre);
	}
	return plain && !b->failed;
}

int compile_add_path(struct compile *c, engine_paths *to, struct sv path)
{
	struct sv *p = vec_push(c->a, to);

	if (!p)
		return writ_nomem(c->err);
	*p = path;
	return 0;
}

static uint32_t switches(const struct compile *c)
{
	return (c->a_tier ? 0 : FILTER_TIER_B) |
	       (cap_set_kernel(c->set, "nested-userns") ? FILTER_NESTED_USERNS : 0) |
	       (cap_set_kernel(c->set, "ptrace-own") ? FILTER_PTRACE_OWN : 0) |
	       (cap_set_kernel(c->set, "io_uring") ? FILTER_IO_URING : 0) |
	       (compile_has_exec_list(c->set) ? FILTER_EXEC_LIST : 0);
}

/*
 * The policy may let the session write a file in a directory that the session may only read. If the
 * rule is optional, the file may not exist yet, or a program may replace the file by a rename. So
 * the mount of the directory is writable. Only the mediator writes there, and the mediator refuses
 * to change any other file of the directory.
 */
static void open_around_files(struct compile *c)
{
	for (size_t i = 0; i < c->roots.n; i++) {
		const struct root *file = &c->roots.v[i];

		if (file->whole || !file->write || file->device || file->socket || !file->optional)
			continue;
		for (size_t k = 0; k < c->roots.n; k++)
			if (c->roots.v[k].whole && !c->roots.v[k].device &&
			    !c->roots.v[k].of_base &&
			    compile_path_below(file->path, c->roots.v[k].path))
				c->roots.v[k].write = true;
	}
}

static int find_traps(struct compile *c)
{
	const struct host_facts *f = c->plan->facts;

	c->mediate = f->seccomp_notify && !f->seccomp_listener_exists && f->seccomp_addfd &&
		     f->landlock_abi && !cap_set_kernel(c->set, "io_uring") &&
		     !cap_set_kernel(c->set, "nested-userns");
	if (!c->mediate && c->shows_ours)
		return writ_fail(c->err, WRIT_E_UNENFORCEABLE, 0,
				 "writ's own files could be read and cannot be hidden here: name "
				 "directories beside " SV_FMT,
				 SV_ARG(c->place->own[0]));
	if (!c->mediate)
		return 0;
	for (size_t i = 0; i < c->roots.n; i++) {
		if (!c->roots.v[i].by_name)
			continue;
		if (compile_add_path(c, &c->view->read_roots, c->roots.v[i].path) < 0)
			return c->err->code;
		c->read_traps = true;
		c->view->read_all |= c->roots.v[i].hides;
	}
	c->view->traps = TRAP_EXEC | TRAP_WRITE | TRAP_META;
	if (c->read_traps)
		c->view->traps |= TRAP_READ;
	/*
	 * Mediating each message of a UNIX socket is slow. In tier A the filter traps messages only
	 * if the policy names a UNIX socket; otherwise the filter traps connect() and datagram
	 * sockets only.
	 */
	c->view->traps |=
		!c->a_tier || cap_set_has(c->set, CAP_UNIX_CONNECT) ? TRAP_NET : TRAP_UNIX;
	open_around_files(c);
	return 0;
}

/* --- parts --- */

/*
 * Adds @path to the directories that belong to the session. SECURITY: a Landlock rule on a
 * directory also covers mounts below the directory. So a directory with a granted path at or below
 * it becomes a shared directory, where Landlock grants no writing.
 */
static int add_private(struct compile *c, struct sv path)
{
	bool shared = false;

	for (size_t i = 0; i < c->roots.n; i++)
		shared |= compile_path_below(c->roots.v[i].path, path);
	return compile_add_path(c, shared ? &c->view->shared_dirs : &c->view->private_dirs, path);
}

/*
 * No Landlock rule grants access to a shared directory, because host files are mounted below it. So
 * if the mediator decides any opens for reading, it also decides those in shared directories.
 */
static int read_shared(struct compile *c)
{
	int r = 0;

	for (size_t i = 0; r == 0 && c->read_traps && i < c->view->shared_dirs.n; i++)
		r = compile_add_path(c, &c->view->read_roots, c->view->shared_dirs.v[i]);
	return r;
}

static int set_view(struct compile *c)
{
	static const char *const own[] = { "/tmp", "/var/agent/tmp", "/var/agent/home", NULL };
	struct engine_view *v = c->view;
	int r = 0;

	v->own_mounts = c->a_tier;
	if (c->a_tier) {
		v->home = SV("/var/agent/home");
		v->tmp = SV("/tmp");
		v->info = SV("/run/writ");
		v->state = SV("/var/agent/state");
		for (size_t i = 0; r == 0 && own[i]; i++)
			r = add_private(c, sv_from(own[i]));
		/*
		 * In the jail, /var/tmp is a link to /tmp. If a granted path lies below /var/tmp,
		 * then /var/tmp is a private directory of the session instead.
		 */
		for (size_t i = 0; r == 0 && i < c->roots.n; i++)
			if (compile_path_below(c->roots.v[i].path, SV("/var/tmp"))) {
				r = add_private(c, SV("/var/tmp"));
				break;
			}
		return r < 0 ? r : read_shared(c);
	}
	v->home = c->place->home;
	v->tmp = c->place->tmp;
	v->info = c->place->info;
	v->state = c->place->state;
	/*
	 * Names in the host's /dev/shm would be visible to every user. The mediator redirects
	 * /dev/shm to a directory of the session.
	 */
	if (c->mediate && c->place->shm.n) {
		v->shm = c->place->shm;
		r = compile_add_path(c, &v->shared_dirs, v->shm);
	}
	if (r == 0)
		r = add_private(c, v->home);
	return r < 0 ? r : add_private(c, v->tmp);
}

/* Adds one persistent directory, which the session may write, for each `state NAME` line. */
static int put_states(struct compile *c)
{
	for (size_t i = 0; i < c->set->caps.n; i++) {
		const struct cap *cap = &c->set->caps.v[i].cap;
		const char *host, *inside;
		bool ok;

		if (cap->action != CAP_STATE_USE || cap->path.n != 1)
			continue;
		host = arena_fmt(c->a, SV_FMT "/" SV_FMT, SV_ARG(c->place->state),
				 SV_ARG(cap->path.segs[0].pre));
		inside = arena_fmt(c->a, SV_FMT "/" SV_FMT, SV_ARG(c->view->state),
				   SV_ARG(cap->path.segs[0].pre));
		ok = host && inside && add_private(c, sv_from(inside)) == 0;
		if (ok && c->a_tier)
			ok = jail_put_mount(&c->w, JAIL_OP_BIND, sv_from(host), sv_from(inside),
					    READ_WRITE, JAIL_TARGET);
		if (!ok)
			return writ_nomem(c->err);
	}
	return 0;
}

/*
 * Returns the granted tree that contains the root number @at and is mounted before that root; NULL
 * if there is none.
 */
static const struct root *covered_by(const struct compile *c, size_t at)
{
	const struct root *best = NULL;

	for (size_t i = 0; i < at; i++)
		if (c->roots.v[i].whole &&
		    compile_path_below(c->roots.v[at].path, c->roots.v[i].path))
			best = &c->roots.v[i];
	return best;
}

/*
 * Copies a small file of /etc into the jail instead of mounting the file: a copy costs a third of a
 * mount, and a file in /etc does not need to change while a session runs. Returns true if the file
 * was copied.
 */
static bool put_copy(struct compile *c, const struct root *root)
{
	scoped_buf b = BUF_INIT(COPY_MAX);
	struct writ_err err = { 0 };
	struct stat st;

	if (root->whole || root->write || root->device || root->socket || root->by_name ||
	    !compile_path_below(root->path, SV("/etc")) || lstat(root->path.p, &st) < 0 ||
	    !S_ISREG(st.st_mode) || st.st_size >= COPY_MAX || compile_makes(root->path))
		return false;
	return skeleton_dirs(c, root->path) == 0 && fd_read_file(root->path.p, &b, &err) == 0 &&
	       jail_put_mount(&c->w, JAIL_OP_FILE, buf_view(&b), root->path, 0444, 0);
}

static int put_roots(struct compile *c)
{
	for (size_t i = 0; i < c->roots.n; i++) {
		const struct root *root = &c->roots.v[i];
		const struct root *above = covered_by(c, i);
		uint64_t attr = root->write ? READ_WRITE : READ_ONLY;
		unsigned flags = root->optional ? JAIL_OPTIONAL : 0;
		int r = 0;

		if (above && above->write >= root->write && !root->device)
			continue;
		if (!above && put_copy(c, root))
			continue;
		if (root->device)
			attr = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
		if (!above) {
			r = skeleton_dirs(c, root->path);
			flags |= JAIL_TARGET;
		}
		if (r == 0 &&
		    !jail_put_mount(&c->w, JAIL_OP_BIND, root->path, root->path, attr, flags))
			r = writ_nomem(c->err);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool put_mask(struct compile *c, struct sv path)
{
	return jail_put_mount(&c->w, JAIL_OP_MASK, SV(""), path, 0, JAIL_OPTIONAL);
}

/*
 * Mounts an empty file or directory over each fixed path that a rule denies reading and that
 * exists, in addition to the mediator's denial.
 */
static int put_masks(struct compile *c)
{
	for (size_t i = 0; i < c->set->nots.n; i++) {
		scoped_buf b = BUF_INIT(JAIL_PATH);

		if (compile_denied_path(&c->set->nots.v[i].cap, &b) && !put_mask(c, buf_view(&b)))
			return writ_nomem(c->err);
	}
	return 0;
}

bool compile_shows(const struct compile *c, struct sv path)
{
	for (size_t i = 0; i < c->roots.n; i++)
		if (c->roots.v[i].whole && compile_path_below(path, c->roots.v[i].path))
			return true;
	return false;
}

static bool is_granted_socket(const struct compile *c, struct sv path)
{
	for (size_t i = 0; i < c->roots.n; i++)
		if (c->roots.v[i].socket && sv_eq(c->roots.v[i].path, path))
			return true;
	return false;
}

/*
 * A readable directory also shows its sockets. Mask the known sockets that give control over the
 * machine, unless a rule grants the socket.
 */
static int mask_sockets(struct compile *c)
{
	for (const struct protect_socket *s = protect_sockets; s->pattern; s++) {
		struct sv rest = sv_from(s->pattern);
		scoped_buf b = BUF_INIT(JAIL_PATH);
		bool plain = true;

		(void)sv_cut(&rest, '/');
		while (rest.n) {
			const struct sv seg = sv_cut(&rest, '/');

			buf_ch(&b, '/');
			if (sv_is(seg, "*") && sv_is(buf_view(&b), "/run/user/"))
				buf_fmt(&b, "%u", (unsigned)geteuid());
			else
				buf_sv(&b, seg);
			plain &= sv_find(seg, '*') == SIZE_MAX || sv_is(seg, "*");
		}
		plain = plain && !b.failed && sv_find(buf_view(&b), '*') == SIZE_MAX;
		if (plain && compile_shows(c, buf_view(&b)) &&
		    !is_granted_socket(c, buf_view(&b)) && !put_mask(c, buf_view(&b)))
			return writ_nomem(c->err);
	}
	return 0;
}

/* Masks the directories where writ keeps its own files, if a granted tree would show them. */
static int mask_ours(struct compile *c)
{
	for (size_t i = 0; i < ARRAY_LEN(c->place->own); i++)
		if (c->place->own[i].n && compile_shows(c, c->place->own[i]) &&
		    !put_mask(c, c->place->own[i]))
			return writ_nomem(c->err);
	return 0;
}

/*
 * Mounts the existing .git/hooks directory read-only, unless the policy opens it, so that not even
 * the modes and times of hooks can change.
 */
static int pin_hooks(struct compile *c)
{
	const char *hooks;

	if (c->place->workspace.n == 0 || !compile_shows(c, c->place->workspace))
		return 0;
	for (size_t i = 0; i < c->policy->opens.n; i++)
		if (sv_is(c->policy->opens.v[i].path, ".git/hooks"))
			return 0;
	hooks = arena_fmt(c->a, SV_FMT "/.git/hooks", SV_ARG(c->place->workspace));
	return hooks && jail_put_mount(&c->w, JAIL_OP_SELF, sv_from(hooks), sv_from(hooks),
				       READ_ONLY, JAIL_OPTIONAL)
		       ? 0
		       : writ_nomem(c->err);
}

/*
 * Adds the listener for git after all other listeners, if the policy allows git. A program inside
 * that speaks git's protocol to this address reaches the git helper outside.
 */
static int put_git(struct compile *c)
{
	const struct jail_listen to = { .port = GIT_PORT,
					.addr = { JAIL_POOL_A, JAIL_POOL_B, 0, 1 },
					.kind = JAIL_STREAM };

	if (!cap_set_has(c->set, CAP_GIT_USE))
		return 0;
	c->view->git = true;
	/*
	 * In tier B the session has no network of its own: the mediator redirects connections for
	 * git to the helper.
	 */
	if (!c->a_tier)
		return 0;
	return jail_put_listen(&c->w, &to) ? 0 : writ_nomem(c->err);
}

/* Lists the sockets that must listen in the jail before any command runs. */
static int put_network(struct compile *c)
{
	struct reach *names = arena_new(c->a, struct reach);
	struct engine_view *v = c->view;
	reach_listeners listeners = { 0 };
	int r;

	if (!names)
		return writ_nomem(c->err);
	v->reach = names;
	r = reach_init(c->a, c->set, c->place->realm, names, c->err);
	if (r == 0 && c->a_tier)
		r = reach_start(names, &listeners, c->err);
	v->listeners.v = listeners.v;
	v->listeners.n = listeners.n;
	for (size_t i = 0; r == 0 && i < v->listeners.n; i++) {
		const struct reach_listener *l = &v->listeners.v[i];
		struct jail_listen to = { .port = l->port,
					  .v6 = l->v6,
					  .kind = l->what == REACH_DNS_UDP ? JAIL_DATAGRAM
									   : JAIL_STREAM };

		memcpy(to.addr, l->addr, sizeof(to.addr));
		if (!jail_put_listen(&c->w, &to))
			r = writ_nomem(c->err);
	}
	return r < 0 ? r : put_git(c);
}

/* Returns the hard limit of this process, or 0 on failure. */
static uint64_t hard_limit(__rlimit_resource_t resource)
{
	struct rlimit l;

	return getrlimit(resource, &l) < 0 ? 0 : l.rlim_max;
}

static int put_rlimits(struct compile *c)
{
	const struct host_facts *f = c->plan->facts;
	const bool pids_held = f->cgroup_pids || plan_scope(c->plan, LIMIT_PIDS);
	const struct rlimit_ask ask = {
		.memory = c->set->limits[LIMIT_MEMORY],
		.files = c->set->limits[LIMIT_FILES],
		.pids = c->set->limits[LIMIT_PIDS],
		.memory_held = f->cgroup_memory || plan_scope(c->plan, LIMIT_MEMORY),
		.pids_held = pids_held,
		.own_userns = c->a_tier,
		.others = c->a_tier || pids_held ? 0 : rlimit_count(getuid()),
		.own_signals = hard_limit(RLIMIT_SIGPENDING),
	};
	struct rlimit_row rows[RLIMIT_ROWS];
	const size_t n = rlimit_make(f, &ask, rows);

	for (size_t i = 0; i < n; i++) {
		struct engine_rlimit *kept = vec_push(c->a, &c->view->rlimits);

		if (!kept || !jail_put_rlimit(&c->w, (unsigned)rows[i].resource, rows[i].value))
			return writ_nomem(c->err);
		*kept = (struct engine_rlimit){ .resource = (uint32_t)rows[i].resource,
						.value = rows[i].value };
	}
	return 0;
}

/*
 * Lists the workspace and the host paths that the single hops of a token grant, because another hop
 * may drop such a path. The mediator must refuse a write to a dropped path visibly: the write must
 * not land in a private directory of the session that only has the same name.
 */
static int list_dropped(struct compile *c)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->set->hops_n; i++) {
		struct compile h = *c;

		h.set = &c->set->hops[i];
		memset(&h.roots, 0, sizeof(h.roots));
		r = compile_roots_find(&h);
		for (size_t k = 0; r == 0 && k < h.roots.n; k++)
			r = compile_add_path(c, &c->view->host_roots, h.roots.v[k].path);
	}
	if (r == 0 && c->set->hops_n && c->place->workspace.n)
		r = compile_add_path(c, &c->view->host_roots, c->place->workspace);
	return r;
}

static int list_roots(struct compile *c)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->roots.n; i++)
		r = compile_add_path(c, &c->view->host_roots, c->roots.v[i].path);
	c->view->mounted = c->roots.n;
	return r < 0 ? r : list_dropped(c);
}

static int put_skeleton(struct compile *c)
{
	return c->place->furnished ? skeleton_known(c) : skeleton_put(c);
}

/* The parts of a jail program, in order: a part uses the results of the parts above it. */
static const struct {
	int (*put)(struct compile *c);
	bool only_a;
} parts[] = {
	{ check, false },	     { compile_roots_find, false },
	{ list_roots, false },	     { find_traps, false },
	{ set_view, false },	     { put_network, false },
	{ put_skeleton, true },	     { skeleton_own, true },
	{ put_states, false },	     { put_roots, true },
	{ compile_trust_put, true }, { put_masks, true },
	{ mask_sockets, true },	     { mask_ours, true },
	{ pin_hooks, true },	     { put_rlimits, false },
};

static int put_all(struct compile *c)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(parts); i++)
		if (c->a_tier || !parts[i].only_a)
			r = parts[i].put(c);
	return r;
}

int compile_early(struct arena *a, const struct host_facts *facts, struct sv user, int *ret_program,
		  struct writ_err *err)
{
	const struct engine_place place = { .user = user };
	const struct filter base = filter_base(0);
	/*
	 * compile_early() needs a filter because a jail program is invalid without one. writ-init
	 * does not enforce this filter; the filter of the complete program replaces it.
	 */
	const struct jail_filters filters = { .base = { base.v, base.n } };
	struct jail_head head = { .flags = JAIL_OWN_NAMESPACES };
	struct compile c = { .a = a,
			     .facts = facts,
			     .place = &place,
			     .err = err,
			     .w = JAIL_WRITER_INIT(a),
			     .a_tier = true };
	int r = skeleton_put(&c);

	head.hostname = jail_put(&c.w, SV(""));
	if (r == 0)
		r = jail_seal_program(&c.w, &head, &filters, ret_program, err);
	jail_writer_clear(&c.w);
	return r;
}

int compile_program(struct arena *a, const struct plan *plan, const struct policy *policy,
		    const struct engine_place *place, uint32_t fail_at,
		    struct engine_view *ret_view, int *ret_program, struct writ_err *err)
{
	struct engine_view view = { 0 };
	struct compile c = { .a = a,
			     .plan = plan,
			     .facts = plan->facts,
			     .policy = policy,
			     .set = &policy->set,
			     .place = place,
			     .err = err,
			     .w = JAIL_WRITER_INIT(a),
			     .view = &view,
			     .a_tier = plan->tier == TIER_A };
	struct jail_head head = { .uid = geteuid(), .gid = getegid(), .fail_at = fail_at };
	struct filter base, traps = { 0 };
	const struct filter keeper = filter_keeper();
	struct jail_filters filters;
	int r;

	r = put_all(&c);
	/*
	 * SECURITY: if the policy allows no program, the first program of the session still runs.
	 * With mediation, the mediator refuses every later program. A Landlock list without
	 * programs would stop the first program too, so Landlock gets no list in this case.
	 */
	c.exec_list =
		compile_has_exec_list(c.set) && !(c.mediate && !cap_set_has(c.set, CAP_PROC_EXEC));
	head.flags = (view.listeners.n ? JAIL_POOL : 0) |
		     (c.a_tier ? JAIL_OWN_NAMESPACES : JAIL_TTY_HOST) |
		     (view.traps ? JAIL_TRAPS : 0) |
		     (view.traps & TRAP_NET ? JAIL_SEND_TRAPPED : 0) |
		     (compile_has_exec_list(c.set) ? JAIL_EXEC_BY_PATH : 0);
	if (r == 0 && plan->facts->landlock_abi && !cap_set_kernel(c.set, "nested-userns")) {
		head.flags |= JAIL_LANDLOCK;
		r = landlock_put(&c, &head);
		if (r == 0)
			r = landlock_hops(&c, &head);
	}
	view.landlock = (head.flags & JAIL_LANDLOCK) != 0;
	if (r == 0 && place->bait)
		r = compile_probes_put(&c, &head);
	head.files = rlimit_files_of(hard_limit(RLIMIT_NOFILE));
	head.hostname = jail_put(&c.w, c.a_tier ? SV("agent") : SV(""));
	base = filter_base(switches(&c));
	if (view.traps)
		traps = filter_traps(view.traps);
	if (r == 0 && (base.n == 0 || keeper.n == 0 || (view.traps && traps.n == 0)))
		r = writ_fail(err, WRIT_E_UNENFORCEABLE, 0, "no seccomp program for this machine");
	filters = (struct jail_filters){ { base.v, base.n },
					 { traps.v, traps.n },
					 { keeper.v, keeper.n } };
	if (r == 0)
		r = jail_seal_program(&c.w, &head, &filters, ret_program, err);
	jail_writer_clear(&c.w);
	if (r == 0)
		*ret_view = view;
	return r;
}
