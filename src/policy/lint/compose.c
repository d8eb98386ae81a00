#include "lint/container_priv.h"

#include "base/banned.h"

enum { EXTENDS_MAX = 16, WORKSPACES_MAX = 4000 };

/* A service, followed by the services of this file that it extends. */
struct service {
	const struct node *chain[EXTENDS_MAX];
	size_t n;
	struct container container;
};

struct project {
	const struct node *services, *volumes, *networks;
	struct service *v;
	size_t n, room;
};

static const struct node *find(const struct service *s, const char *dotted)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct node *n = lint_at(s->chain[i], dotted);

		if (n && n->kind != NODE_NULL)
			return n;
	}
	return NULL;
}

/*
 * Follows `extends: base` or `extends: {service: base}` inside this file; lint does not open other
 * files.
 */
static void resolve(struct service *s, const struct project *p, const struct node *node)
{
	while (node && node->kind == NODE_MAP && s->n < EXTENDS_MAX) {
		const struct node *ext = lint_get(node, "extends");

		s->chain[s->n++] = node;
		if (ext && ext->kind == NODE_MAP)
			ext = lint_get(ext, "file") ? NULL : lint_get(ext, "service");
		node = ext ? lint_child(p->services, lint_text(ext)) : NULL;
	}
}

/*
 * Returns the host path of a named volume that is in fact a bind mount (driver_opts with a device),
 * or NULL.
 */
static const struct node *bind_mount_device(const struct project *p, struct sv name)
{
	const struct node *opts = lint_get(lint_child(p->volumes, name), "driver_opts");

	return lint_has(lint_text(lint_get(opts, "o")), "bind") ? lint_get(opts, "device") : NULL;
}

static void add_volume(struct check *c, const struct project *p, struct container *b,
		       const struct node *v)
{
	const size_t before = b->mounts.n;
	struct container_mount *m;
	const struct node *device;

	if (v->kind == NODE_SCALAR) {
		lint_container_volume(c, b, v, v->text);
	} else if (v->kind == NODE_MAP && lint_get(v, "source")) {
		const struct node *source = lint_get(v, "source");

		lint_container_mount(c, b,
				     (struct container_mount){
					     .at = source,
					     .source = lint_text(source),
					     .target = lint_text(lint_get(v, "target")),
					     .readonly = lint_true(lint_get(v, "read_only")),
					     .volume = lint_is(lint_get(v, "type"), "volume"),
				     });
	}
	if (b->mounts.n == before)
		return;
	m = &b->mounts.v[before];
	device = m->volume ? bind_mount_device(p, m->source) : NULL;
	if (device) {
		m->at = device;
		m->source = lint_text(device);
		m->volume = false;
	}
}

static void add_env(struct check *c, struct container *b, const struct node *env)
{
	for (const struct node *i = lint_first(env); i; i = lint_next(env, i)) {
		if (env->kind == NODE_MAP)
			lint_container_env(
				c, b,
				(struct container_env){ .at = i,
							.name = i->key,
							.value = lint_text(i),
							.passed = i->kind == NODE_NULL });
		else if (i->kind == NODE_SCALAR)
			lint_container_env_spec(c, b, i, i->text);
	}
}

static void add_list(struct check *c, struct container_items *items, const struct node *list)
{
	for (const struct node *i = lint_first(list); i; i = lint_next(list, i)) {
		const struct node *n = i->kind == NODE_MAP ? lint_get(i, "source") : i;

		if (n && n->kind == NODE_SCALAR)
			lint_container_add(c, items, n, lint_default(n->text));
	}
}

/*
 * Fills the lists of a container. Lists of extended services accumulate, so read every service of
 * the chain.
 */
static void fill_lists(struct check *c, const struct project *p, struct service *s)
{
	struct container *b = &s->container;

	for (size_t i = 0; i < s->n; i++) {
		const struct node *svc = s->chain[i], *list;

		add_list(c, &b->caps, lint_get(svc, "cap_add"));
		add_list(c, &b->secopts, lint_get(svc, "security_opt"));
		add_list(c, &b->devices, lint_get(svc, "devices"));
		add_env(c, b, lint_get(svc, "environment"));
		list = lint_get(svc, "cap_drop");
		for (const struct node *d = lint_first(list); d; d = lint_next(list, d))
			b->caps_dropped = b->caps_dropped || lint_is(d, "all");
		list = lint_get(svc, "volumes");
		for (const struct node *v = lint_first(list); v; v = lint_next(list, v))
			add_volume(c, p, b, v);
	}
}

static void fill_namespaces(struct service *s)
{
	static const char *const keys[] = {
		[NS_NETWORK] = "network_mode",
		[NS_PID] = "pid",
		[NS_IPC] = "ipc",
		[NS_UTS] = "uts",
		[NS_USER] = "userns_mode",
		[NS_CGROUP] = "cgroup",
	};

	for (size_t i = 0; i < NS_COUNT; i++) {
		const struct node *n = find(s, keys[i]);

		if (n)
			s->container.ns[i] = (struct container_item){ n, lint_text(n) };
	}
}

static void fill_limits(struct service *s)
{
	struct container *b = &s->container;
	const struct node *pids = find(s, "pids_limit");

	b->memory = find(s, "mem_limit") || find(s, "deploy.resources.limits.memory");
	b->cpu = find(s, "cpus") || find(s, "cpu_quota") || find(s, "cpuset") ||
		 find(s, "deploy.resources.limits.cpus");
	b->pids = (pids && !lint_is(pids, "-1") && !lint_is(pids, "0")) ||
		  find(s, "deploy.resources.limits.pids") || find(s, "ulimits.nproc");
}

static bool network_is_closed(const struct project *p, struct sv name)
{
	const struct node *net = lint_child(p->networks, name);

	/*
	 * Assume that an external network is restricted: the linted file does not describe the
	 * network.
	 */
	return lint_true(lint_get(net, "internal")) || lint_true(lint_get(net, "external"));
}

static bool egress_is_limited(const struct project *p, const struct service *s)
{
	const struct node *mode = find(s, "network_mode"), *nets = find(s, "networks");

	if (mode)
		return !lint_is(mode, "host") && !lint_is(mode, "bridge");
	if (!nets)
		return network_is_closed(p, SV("default"));
	for (const struct node *i = lint_first(nets); i; i = lint_next(nets, i))
		if (!network_is_closed(p, nets->kind == NODE_MAP ? i->key : lint_text(i)))
			return false;
	return true;
}

static struct container_item item(const struct node *n)
{
	return (struct container_item){ n, lint_text(n) };
}

static void fill(struct check *c, const struct project *p, struct service *s)
{
	const struct node *privileged = find(s, "privileged"), *restart = find(s, "restart");
	struct container *b = &s->container;

	b->at = lint_key(c, s->chain[0]);
	b->privileged = lint_true(privileged) ? privileged : NULL;
	b->image = item(find(s, "image"));
	b->user = item(find(s, "user"));
	b->name = item(find(s, "container_name"));
	b->root_readonly = lint_true(find(s, "read_only"));
	b->keeps_running = lint_is(restart, "always") || lint_is(restart, "unless-stopped");
	b->egress_limited = egress_is_limited(p, s);
	fill_namespaces(s);
	fill_limits(s);
	fill_lists(c, p, s);
	b->entrypoint = find(s, "entrypoint");
	b->command = find(s, "command");
	b->agent = lint_agent_name(s->chain[0]->key);
}

/* Checks build.args, whose values stay in the history of the image. */
static void check_build(struct check *c, const struct service *s)
{
	const struct node *args = find(s, "build.args");

	for (const struct node *i = lint_first(args); i; i = lint_next(args, i)) {
		struct sv value = lint_text(i);
		const struct sv name = args->kind == NODE_MAP ? i->key : sv_cut(&value, '=');

		if (lint_secret_name(name) && (!value.n || lint_is_reference(value)))
			lint_found(c, R_SECRET_BUILD_ARG, i, name);
		else if (value.n)
			lint_env(c, i, name, value);
	}
}

/* Can the service @a open a connection to the service @b? */
static bool share_network(const struct service *a, const struct service *b)
{
	const struct node *na = find(a, "networks"), *nb = find(b, "networks");

	if (find(a, "network_mode"))
		return lint_is(find(a, "network_mode"), "host");
	if (find(b, "network_mode"))
		return lint_is(find(b, "network_mode"), "host");
	if (!na || !nb)
		return !na && !nb;
	for (const struct node *i = lint_first(na); i; i = lint_next(na, i))
		for (const struct node *j = lint_first(nb); j; j = lint_next(nb, j))
			if (sv_eq(na->kind == NODE_MAP ? i->key : lint_text(i),
				  nb->kind == NODE_MAP ? j->key : lint_text(j)))
				return true;
	return false;
}

static bool is_confined_agent(const struct container *b)
{
	return lint_container_is_agent(b) && !lint_container_controls_host(b) &&
	       (b->caps_dropped || b->root_readonly || b->egress_limited ||
		lint_container_no_new_privs(b));
}

/* Reports a service that controls the host and that a confined agent can reach. */
static void check_tools(struct check *c, const struct project *p)
{
	for (size_t i = 0; i < p->n; i++) {
		if (!lint_container_controls_host(&p->v[i].container))
			continue;
		for (size_t j = 0; j < p->n; j++) {
			if (i == j || !is_confined_agent(&p->v[j].container) ||
			    !share_network(&p->v[j], &p->v[i]))
				continue;
			lint_report(c, R_TOOLS_OUTSIDE_SANDBOX, p->v[i].container.at,
				    "power over the host, reachable from " SV_FMT,
				    SV_ARG(p->v[j].chain[0]->key));
			break;
		}
	}
}

static void check_replicas(struct check *c, const struct service *s)
{
	const struct node *n = find(s, "deploy.replicas");
	uint64_t count = 0;

	n = n ? n : find(s, "scale");
	if (!n || !sv_to_u64(lint_text(n), UINT32_MAX, &count) || count < 2)
		return;
	for (size_t i = 0; i < s->container.mounts.n; i++)
		if (!s->container.mounts.v[i].readonly) {
			lint_report(c, R_SHARED_WORKSPACE, n, "%u copies write " SV_FMT,
				    (unsigned)count, SV_ARG(s->container.mounts.v[i].source));
			return;
		}
}

/* Reports a writable volume that two agent services share. */
static void check_workspaces(struct check *c, const struct project *p)
{
	VEC(struct container_mount) seen = { 0 };

	for (size_t i = 0; i < p->n; i++) {
		const struct container *b = &p->v[i].container;
		const size_t before = seen.n;

		if (!lint_container_is_agent(b))
			continue;
		check_replicas(c, &p->v[i]);
		for (size_t j = 0; j < b->mounts.n; j++) {
			const struct container_mount *m = &b->mounts.v[j];

			for (size_t k = 0; k < before && !m->readonly; k++)
				if (sv_eq(seen.v[k].source, m->source))
					lint_report(c, R_SHARED_WORKSPACE, m->at,
						    SV_FMT " is another agent's too",
						    SV_ARG(m->source));
			if (!m->readonly)
				(void)vec_add(c->arena, &seen, *m);
		}
		if (seen.n > WORKSPACES_MAX)
			lint_fail(c, WRIT_E_LIMIT, "too many volumes");
		if (c->failed)
			return;
	}
}

void lint_compose(struct check *c, const struct node *root)
{
	struct project p = { .services = lint_get(root, "services"),
			     .volumes = lint_get(root, "volumes"),
			     .networks = lint_get(root, "networks") };

	if (!p.services || p.services->kind != NODE_MAP)
		return;
	if (p.services->count > LINT_BOXES_MAX)
		lint_fail(c, WRIT_E_LIMIT, "too many services");
	for (const struct node *n = p.services->first; n && !c->failed; n = n->next) {
		struct service *s;

		if (n->kind != NODE_MAP)
			continue;
		s = lint_must(c, vec_push(c->arena, &p));
		if (!s)
			return;
		resolve(s, &p, n);
		fill(c, &p, s);
	}
	for (size_t i = 0; i < p.n && !c->failed; i++) {
		if (lint_true(find(&p.v[i], "use_api_socket")))
			lint_found(c, R_DOCKER_SOCKET, find(&p.v[i], "use_api_socket"),
				   SV("use_api_socket"));
		lint_container(c, &p.v[i].container);
		check_build(c, &p.v[i]);
	}
	check_tools(c, &p);
	check_workspaces(c, &p);
}
