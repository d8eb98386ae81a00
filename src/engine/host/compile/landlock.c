#include "compile/compile_priv.h"

#include <string.h>

#include "base/landlock.h"

#include "base/banned.h"

enum {
	L_READ = LL_EXECUTE | LL_READ_FILE | LL_READ_DIR,
	L_WRITE =
		(LL_ABI1 | LL_REFER | LL_TRUNCATE | LL_IOCTL_DEV) & ~(LL_MAKE_CHAR | LL_MAKE_BLOCK),
	L_DEVICE = LL_READ_FILE | LL_WRITE_FILE | LL_TRUNCATE | LL_IOCTL_DEV,
};

static int rule(struct compile *c, struct sv path, uint64_t access, bool optional)
{
	if (c->no_exec)
		access &= ~(uint64_t)LL_EXECUTE;
	if (!jail_put_rule(&c->w, path, access, optional || c->layer ? JAIL_OPTIONAL : 0))
		return writ_nomem(c->err);
	c->w.rules.v[c->w.rules.n - 1].layer = c->layer;
	return 0;
}

/*
 * Grants reading and executing the programs that the policy lists, and the dynamic loader, without
 * which no listed program starts.
 */
static int rules_for_exec(struct compile *c)
{
	static const char *const loaders[] = { "/lib64/ld-linux-x86-64.so.2",
					       "/lib/ld-linux-aarch64.so.1",
					       "/lib/ld-musl-x86_64.so.1",
					       "/lib/ld-musl-aarch64.so.1", NULL };
	int r = 0;

	for (size_t i = 0; r == 0 && loaders[i]; i++)
		r = rule(c, sv_from(loaders[i]), LL_EXECUTE | LL_READ_FILE, true);
	for (size_t i = 0; r == 0 && i < c->set->caps.n; i++) {
		const struct cap *cap = &c->set->caps.v[i].cap;
		scoped_buf b = BUF_INIT(JAIL_PATH);

		if (cap->action != CAP_PROC_EXEC || c->set->rules.v[c->set->caps.v[i].rule].missing)
			continue;
		for (size_t k = 0; k < cap->path.n && !cap->path.segs[k].star; k++) {
			buf_ch(&b, '/');
			buf_sv(&b, cap->path.segs[k].pre);
		}
		if (b.n && !b.failed)
			r = rule(c, buf_view(&b), LL_EXECUTE | LL_READ_FILE, true);
	}
	return r;
}

/*
 * A jail with its own root shows only what writ-init mounted. So one rule grants reading in the
 * whole root, which also covers mounts that the keeper attaches later. If the mediator decides some
 * opens for reading (read_traps), that rule is left out, and each root gets its own. These rules
 * grant no writing to files except in /dev and /proc; landlock_put() adds the session's private
 * directories.
 */
static int rules_for_a(struct compile *c)
{
	/* clang-format off */
	static const struct { const char *path; uint32_t access; } fixed[] = {
		{ "/dev", L_DEVICE | LL_READ_DIR }, { "/proc", LL_READ_FILE | LL_READ_DIR },
		{ "/etc", L_READ }, { "/run", LL_READ_FILE | LL_READ_DIR }, { "/var", LL_READ_DIR },
	};
	/* clang-format on */
	int r = 0;

	if (!c->read_traps)
		r = rule(c, SV("/"), L_READ, false);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(fixed); i++)
		r = rule(c, sv_from(fixed[i].path), fixed[i].access, false);
	/*
	 * A process may write settings of its own processes in /proc. A session of root gets no
	 * such rule: root could also write the settings of pid 1.
	 */
	if (r == 0 && !c->plan->facts->root)
		r = rule(c, SV("/proc"), LL_WRITE_FILE, false);
	return r;
}

static int rules_for_b(struct compile *c)
{
	/* clang-format off */
	static const struct { const char *path; uint32_t access; } fixed[] = {
		{ "/dev/null", L_DEVICE }, { "/dev/zero", L_DEVICE }, { "/dev/full", L_DEVICE },
		{ "/dev/random", L_DEVICE }, { "/dev/urandom", L_DEVICE }, { "/dev/tty", L_DEVICE },
		{ "/proc", LL_READ_FILE | LL_READ_DIR }, { "/etc/passwd", LL_READ_FILE },
		{ "/etc/group", LL_READ_FILE }, { "/etc/nsswitch.conf", LL_READ_FILE },
		{ "/etc/hosts", LL_READ_FILE }, { "/etc/resolv.conf", LL_READ_FILE },
	};
	/* clang-format on */
	int r = compile_add_path(c, &c->view->read_fixed, c->view->info);

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(fixed); i++) {
		r = compile_add_path(c, &c->view->read_fixed, sv_from(fixed[i].path));
		if (r == 0)
			r = rule(c, sv_from(fixed[i].path), fixed[i].access, true);
	}
	return r < 0 ? r : rule(c, c->view->info, LL_READ_FILE | LL_READ_DIR, false);
}

/*
 * Adds the rules that every hop's ruleset needs besides its grants. Does not change c->view, which
 * is the same for every ruleset.
 */
static int fixed_for_hop(struct compile *c)
{
	/* clang-format off */
	static const struct { const char *path; uint32_t access; } a[] = {
		{ "/dev", L_DEVICE }, { "/proc", LL_READ_FILE }, { "/etc", L_READ }, { "/run", L_READ },
	};
	/* clang-format on */
	int r = 0;

	for (size_t i = 0; r == 0 && c->a_tier && i < ARRAY_LEN(a); i++)
		r = rule(c, sv_from(a[i].path), a[i].access, true);
	if (r == 0 && c->a_tier && !c->plan->facts->root)
		r = rule(c, SV("/proc"), LL_WRITE_FILE, true);
	for (size_t i = 0; r == 0 && !c->a_tier && i < c->view->read_fixed.n; i++)
		r = rule(c, c->view->read_fixed.v[i],
			 sv_starts(c->view->read_fixed.v[i], SV("/dev/")) ? (uint64_t)L_DEVICE
									  : (uint64_t)L_READ,
			 true);
	for (size_t i = 0; r == 0 && i < c->view->private_dirs.n; i++)
		r = rule(c, c->view->private_dirs.v[i], L_WRITE, true);
	/*
	 * Landlock cannot distinguish a shared directory from host mounts below it, so the rule
	 * grants reading only. The mediator decides writing.
	 */
	for (size_t i = 0; r == 0 && i < c->view->shared_dirs.n; i++)
		r = rule(c, c->view->shared_dirs.v[i], L_READ, true);
	return r;
}

/*
 * SECURITY: the kernel enforces the capability set of each hop by a ruleset of its own, so a
 * mistake in computing the intersection of the sets grants nothing. Where the mediator opens a
 * file, the mediator asks every set. An open that the mediator does not perform cannot exceed these
 * rulesets.
 */
static int put_hop(struct compile *c, const struct cap_set *hop, uint32_t layer)
{
	struct compile h = *c;
	int r;

	h.set = hop;
	h.layer = layer;
	memset(&h.roots, 0, sizeof(h.roots));
	h.no_exec = false;
	h.exec_list = c->exec_list && compile_has_exec_list(hop);
	r = h.exec_list ? rules_for_exec(&h) : 0;
	h.no_exec = h.exec_list;
	if (r == 0)
		r = fixed_for_hop(&h);
	if (r == 0)
		r = compile_roots_find(&h);
	for (size_t i = 0; r == 0 && i < h.roots.n; i++) {
		const struct root *root = &h.roots.v[i];
		uint64_t access = root->whole ? (uint64_t)L_READ : LL_READ_FILE | LL_EXECUTE;

		if (root->device)
			access = L_DEVICE;
		else if (root->write && !h.mediate)
			access = root->whole ? (uint64_t)L_WRITE : (uint64_t)LL_FILE;
		r = rule(&h, root->path, access, true);
	}
	c->w = h.w;
	return r;
}

int landlock_hops(struct compile *c, struct jail_head *head)
{
	int r = 0;

	if (c->set->hops_n > JAIL_LAYERS_MAX)
		return writ_fail(c->err, WRIT_E_UNENFORCEABLE, 0,
				 "a chain with more than %d hops has no ruleset for each",
				 JAIL_LAYERS_MAX);
	for (size_t i = 0; r == 0 && i < c->set->hops_n; i++)
		r = put_hop(c, &c->set->hops[i], (uint32_t)i + 1);
	head->layers = (uint32_t)c->set->hops_n;
	return r;
}

/* Returns the rights that Landlock grants for @root. The mediator may open more. */
static uint64_t root_access(const struct compile *c, const struct root *root)
{
	uint64_t access = root->whole ? (uint64_t)L_READ : LL_READ_FILE | LL_EXECUTE;

	if (root->device)
		return root->write ? (uint64_t)L_DEVICE : (uint64_t)LL_READ_FILE | LL_IOCTL_DEV;
	/*
	 * To run a program the kernel itself must be able to read the program. The mediator decides
	 * every other open in this tree.
	 */
	if (root->by_name && c->mediate)
		return root->hides ? access : 0;
	if (root->write && !c->mediate)
		access = root->whole ? (uint64_t)L_WRITE : (uint64_t)LL_FILE;
	return access;
}

int landlock_put(struct compile *c, struct jail_head *head)
{
	const uint64_t abi = c->plan->facts->landlock_abi;
	int r = c->exec_list ? rules_for_exec(c) : 0;

	/* If the policy lists programs, the rules below grant reading but not running. */
	c->no_exec = c->exec_list;
	if (r == 0)
		r = c->a_tier ? rules_for_a(c) : rules_for_b(c);
	head->landlock_abi = (uint32_t)abi;
	head->landlock_fs = ll_known(abi);
	/*
	 * Handle TCP without any rule: a session in the host's network has no TCP connection except
	 * those that the mediator makes. A session with its own network namespace needs no Landlock
	 * rules for TCP.
	 */
	head->landlock_net = abi >= 4 && !c->a_tier ? 3 : 0;
	head->landlock_scope = abi >= 6 && !c->a_tier ? 3 : 0;
	for (size_t i = 0; r == 0 && i < c->view->private_dirs.n; i++)
		r = rule(c, c->view->private_dirs.v[i], L_WRITE, false);
	for (size_t i = 0; r == 0 && i < c->roots.n; i++) {
		const uint64_t access = root_access(c, &c->roots.v[i]);

		/* Skip a root that needs reading only: the rule for the whole root covers it. */
		if (c->a_tier && !c->read_traps && (access & ~(uint64_t)L_READ) == 0)
			continue;
		if (access)
			r = rule(c, c->roots.v[i].path, access, c->roots.v[i].optional);
	}
	return r;
}
