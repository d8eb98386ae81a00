#include "lint/container_priv.h"
#include "lint/host_path_priv.h"

#include "base/banned.h"

/* Path of the pod template in each kind of object. */
static const struct {
	const char *kind, *pod;
} kinds[] = {
	{ "Pod", "spec" },
	{ "Deployment", "spec.template.spec" },
	{ "StatefulSet", "spec.template.spec" },
	{ "DaemonSet", "spec.template.spec" },
	{ "ReplicaSet", "spec.template.spec" },
	{ "ReplicationController", "spec.template.spec" },
	{ "Job", "spec.template.spec" },
	{ "CronJob", "spec.jobTemplate.spec.template.spec" },
	{ "Sandbox", "spec.podTemplate.spec" },
	{ "SandboxTemplate", "spec.podTemplate.spec" },
};

static const char *const container_lists[] = { "initContainers", "containers",
					       "ephemeralContainers" };

static bool kind_is(const struct node *doc, const char *kind)
{
	return sv_is(lint_text(lint_get(doc, "kind")), kind);
}

static const struct node *pod_of(const struct node *doc)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (kind_is(doc, kinds[i].kind))
			return lint_at(doc, kinds[i].pod);
	return NULL;
}

/* Returns the container's security setting, or the pod's setting if the container has none. */
static const struct node *context(const struct node *pod, const struct node *container,
				  const char *dotted)
{
	const struct node *n = lint_at(lint_get(container, "securityContext"), dotted);

	return n ? n : lint_at(lint_get(pod, "securityContext"), dotted);
}

static void add_secopt(struct check *c, struct container *b, const struct node *at, bool is,
		       const char *word)
{
	if (at && is)
		lint_container_add(c, &b->secopts, at, sv_from(word));
}

/* Fills in the security settings of a container, with security options in docker's notation. */
static void fill_context(struct check *c, struct container *b, const struct node *pod,
			 const struct node *container)
{
	const struct node *sc = lint_get(container, "securityContext");
	const struct node *n = context(pod, container, "seccompProfile.type");

	add_secopt(c, b, n, lint_is(n, "unconfined"), "seccomp=unconfined");
	if (!n)
		lint_found(c, R_NO_SECCOMP_PROFILE, b->at, SV(""));
	n = context(pod, container, "appArmorProfile.type");
	add_secopt(c, b, n, lint_is(n, "unconfined"), "apparmor=unconfined");
	n = context(pod, container, "seLinuxOptions.type");
	add_secopt(c, b, n, lint_is(n, "spc_t"), "label=type:spc_t");
	n = lint_get(sc, "procMount");
	add_secopt(c, b, n, lint_is(n, "unmasked"), "systempaths=unconfined");
	n = lint_get(sc, "allowPrivilegeEscalation");
	add_secopt(c, b, n, lint_false(n), "no-new-privileges");
	n = lint_get(sc, "privileged");
	b->privileged = lint_true(n) ? n : NULL;
	n = lint_at(sc, "capabilities.add");
	for (const struct node *i = lint_first(n); i; i = lint_next(n, i))
		lint_container_add(c, &b->caps, i, lint_text(i));
	n = context(pod, container, "runAsUser");
	b->user = (struct container_item){ n, lint_text(n) };
	b->nonroot = lint_true(context(pod, container, "runAsNonRoot"));
}

static void fill_env(struct check *c, struct container *b, const struct node *container)
{
	const struct node *env = lint_get(container, "env"), *from = lint_get(container, "envFrom");

	for (const struct node *e = lint_first(env); e; e = lint_next(env, e)) {
		const struct node *name = lint_get(e, "name"), *value = lint_get(e, "value");
		const struct node *ref = lint_at(e, "valueFrom.secretKeyRef");

		if (value)
			lint_container_env(c, b,
					   (struct container_env){ .at = value,
								   .name = lint_text(name),
								   .value = lint_text(value) });
		else if (ref && name)
			lint_found(c, R_SECRET_IN_SANDBOX, name, lint_text(name));
	}
	for (const struct node *e = lint_first(from); e; e = lint_next(from, e))
		if (lint_get(e, "secretRef"))
			lint_found(c, R_SECRET_IN_SANDBOX, lint_key(c, lint_get(e, "secretRef")),
				   SV("every key of a secret"));
}

static void check_container(struct check *c, const struct node *pod, const struct node *container,
			    bool egress_limited)
{
	const struct node *limits = lint_at(container, "resources.limits");
	const struct node *image = lint_get(container, "image");
	struct container b = { .at = container,
			       .pids_elsewhere = true,
			       .egress_limited = egress_limited };

	if (container->kind != NODE_MAP)
		return;
	b.image = (struct container_item){ image, lint_text(image) };
	b.memory = lint_get(limits, "memory") != NULL;
	b.cpu = lint_get(limits, "cpu") != NULL;
	fill_context(c, &b, pod, container);
	fill_env(c, &b, container);
	b.entrypoint = lint_get(container, "command");
	b.command = lint_get(container, "args");
	lint_container(c, &b);
}

static void check_namespaces(struct check *c, const struct node *pod)
{
	static const struct {
		const char *key;
		enum rule_id rule;
	} shared[] = {
		{ "hostNetwork", R_HOST_NETWORK },
		{ "hostPID", R_HOST_PID },
		{ "hostIPC", R_HOST_IPC },
		{ "hostUsers", R_HOST_USERNS },
		{ "shareProcessNamespace", R_SHARED_PROCESSES },
	};

	for (size_t i = 0; i < ARRAY_LEN(shared); i++) {
		const struct node *n = lint_get(pod, shared[i].key);

		if (lint_true(n))
			lint_found(c, shared[i].rule, n, n->key);
	}
}

static void check_volumes(struct check *c, const struct node *pod)
{
	const struct node *volumes = lint_get(pod, "volumes");

	for (const struct node *v = lint_first(volumes); v; v = lint_next(volumes, v)) {
		const struct node *path = lint_at(v, "hostPath.path");

		if (!path)
			continue;
		lint_found(c, R_HOST_PATH, path, lint_text(path));
		(void)lint_host_path_check(c, path, lint_text(path));
	}
}

/* Checks the annotations of a pod, by which old manifests set seccomp and AppArmor profiles. */
static void check_annotations(struct check *c, const struct node *doc, const struct node *pod)
{
	const struct node *meta = lint_get(pod->parent, "metadata"), *list;

	list = lint_get(meta ? meta : lint_get(doc, "metadata"), "annotations");
	for (const struct node *i = lint_members(list); i; i = i->next) {
		if (!lint_is(i, "unconfined"))
			continue;
		if (lint_has(i->key, "apparmor.security"))
			lint_found(c, R_MAC_UNCONFINED, i, i->key);
		else if (lint_has(i->key, "seccomp.security"))
			lint_found(c, R_SECCOMP_UNCONFINED, i, i->key);
	}
}

/* Reports replicas of a pod that share a writable claim or host path. */
static void check_replicas(struct check *c, const struct node *doc, const struct node *pod)
{
	const struct node *n = lint_at(doc, "spec.replicas"), *volumes = lint_get(pod, "volumes");
	uint64_t count = 0;

	if (!n || !sv_to_u64(lint_text(n), UINT32_MAX, &count) || count < 2)
		return;
	for (const struct node *v = lint_first(volumes); v; v = lint_next(volumes, v))
		if ((lint_get(v, "persistentVolumeClaim") &&
		     !lint_true(lint_at(v, "persistentVolumeClaim.readOnly"))) ||
		    lint_get(v, "hostPath")) {
			lint_report(c, R_SHARED_WORKSPACE, n, "%u copies share volume " SV_FMT,
				    (unsigned)count, SV_ARG(lint_text(lint_get(v, "name"))));
			return;
		}
}

static void check_pod(struct check *c, const struct node *doc, const struct node *pod,
		      bool egress_limited)
{
	const struct node *token = lint_get(pod, "automountServiceAccountToken");
	unsigned n = 0;

	check_namespaces(c, pod);
	check_volumes(c, pod);
	check_annotations(c, doc, pod);
	check_replicas(c, doc, pod);
	if (!lint_false(token))
		lint_found(c, R_SERVICE_ACCOUNT_TOKEN, token ? token : lint_key(c, pod), SV(""));
	for (size_t i = 0; i < ARRAY_LEN(container_lists); i++) {
		const struct node *list = lint_get(pod, container_lists[i]);

		if (!list || list->kind != NODE_LIST)
			continue;
		for (const struct node *k = list->first; k && !c->failed; k = k->next, n++)
			check_container(c, pod, k, egress_limited);
	}
	if (n > LINT_BOXES_MAX)
		lint_fail(c, WRIT_E_LIMIT, "too many containers");
}

static void check_claim(struct check *c, const struct node *spec)
{
	const struct node *modes = lint_get(spec, "accessModes");

	for (const struct node *m = lint_first(modes); m; m = lint_next(modes, m))
		if (lint_is(m, "readwritemany"))
			lint_found(c, R_SHARED_WORKSPACE, m, lint_text(m));
}

/*
 * Checks a NetworkPolicy. An empty egress rule, or a rule without `to`, allows every destination.
 */
static void check_network_policy(struct check *c, const struct node *doc)
{
	const struct node *egress = lint_at(doc, "spec.egress");

	for (const struct node *rule = lint_first(egress); rule; rule = lint_next(egress, rule)) {
		const struct node *to = lint_get(rule, "to");

		if (!lint_first(to) && !lint_get(rule, "toFQDNs") &&
		    !lint_get(rule, "toEndpoints") && !lint_get(rule, "toCIDR") &&
		    !lint_get(rule, "toCIDRSet") && !lint_get(rule, "toEntities") &&
		    !lint_get(rule, "toServices"))
			lint_found(c, R_WILDCARD_EGRESS, rule, SV("a rule without a destination"));
		for (const struct node *t = lint_first(to); t; t = lint_next(to, t)) {
			const struct node *cidr = lint_at(t, "ipBlock.cidr");

			if (cidr)
				lint_host_check(c, cidr, lint_text(cidr));
		}
	}
}

/* Checks the destinations in a CiliumNetworkPolicy: host names, networks and entities. */
static void check_cilium(struct check *c, const struct node *doc)
{
	const struct node *egress = lint_at(doc, "spec.egress");

	for (const struct node *rule = lint_first(egress); rule; rule = lint_next(egress, rule)) {
		const struct node *names = lint_get(rule, "toFQDNs"),
				  *cidrs = lint_get(rule, "toCIDR");
		const struct node *entities = lint_get(rule, "toEntities");

		for (const struct node *n = lint_first(names); n; n = lint_next(names, n)) {
			const struct node *name = lint_get(n, "matchName");

			name = name ? name : lint_get(n, "matchPattern");
			if (name)
				lint_host_check(c, name, lint_text(name));
		}
		for (const struct node *n = lint_first(cidrs); n; n = lint_next(cidrs, n))
			lint_host_check(c, n, lint_text(n));
		for (const struct node *n = lint_first(entities); n; n = lint_next(entities, n))
			if (lint_is(n, "world") || lint_is(n, "all"))
				lint_found(c, R_WILDCARD_EGRESS, n, lint_text(n));
	}
}

static void check_data(struct check *c, const struct node *data)
{
	for (const struct node *i = lint_members(data); i; i = i->next)
		if (i->kind == NODE_SCALAR)
			lint_env(c, i, i->key, i->text);
}

bool lint_kube_limits_egress(const struct node *doc, unsigned depth)
{
	const struct node *types = lint_at(doc, "spec.policyTypes"),
			  *items = lint_get(doc, "items");

	if (kind_is(doc, "CiliumNetworkPolicy") || kind_is(doc, "CiliumClusterwideNetworkPolicy"))
		return lint_at(doc, "spec.egress") != NULL;
	if (kind_is(doc, "NetworkPolicy")) {
		for (const struct node *t = lint_first(types); t; t = lint_next(types, t))
			if (lint_is(t, "egress"))
				return true;
		return !types && lint_at(doc, "spec.egress");
	}
	for (const struct node *i = lint_first(items); i && depth; i = lint_next(items, i))
		if (lint_kube_limits_egress(i, depth - 1))
			return true;
	return false;
}

void lint_kube(struct check *c, const struct node *doc, bool egress_limited, unsigned depth)
{
	const struct node *pod = pod_of(doc), *items = lint_get(doc, "items"), *claims;
	const char *label;

	if (!lint_get(doc, "kind") || c->failed)
		return;
	label = arena_fmt(c->arena, SV_FMT "/" SV_FMT, SV_ARG(lint_text(lint_get(doc, "kind"))),
			  SV_ARG(lint_text(lint_at(doc, "metadata.name"))));
	c->label = label ? sv_from(label) : SV("");
	if (pod)
		check_pod(c, doc, pod, egress_limited);
	if (kind_is(doc, "PersistentVolumeClaim"))
		check_claim(c, lint_get(doc, "spec"));
	claims = lint_at(doc, "spec.volumeClaimTemplates");
	for (const struct node *i = lint_first(claims); i; i = lint_next(claims, i))
		check_claim(c, lint_get(i, "spec"));
	if (kind_is(doc, "NetworkPolicy"))
		check_network_policy(c, doc);
	if (kind_is(doc, "CiliumNetworkPolicy") || kind_is(doc, "CiliumClusterwideNetworkPolicy"))
		check_cilium(c, doc);
	if (kind_is(doc, "ConfigMap"))
		check_data(c, lint_get(doc, "data"));
	if (kind_is(doc, "Secret"))
		check_data(c, lint_get(doc, "stringData"));
	for (const struct node *i = lint_first(items); i && depth; i = lint_next(items, i))
		lint_kube(c, i, egress_limited, depth - 1);
}
