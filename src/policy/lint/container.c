#include "lint/container_priv.h"
#include "lint/host_path_priv.h"

#include "base/banned.h"

static const char *const escape_caps[] = {
	"all",	    "sys_admin", "sys_module", "sys_rawio",    "sys_ptrace", "dac_read_search",
	"sys_boot", "bpf",	 "mac_admin",  "mac_override", "perfmon",    NULL,
};

static const char *const risky_caps[] = {
	"net_admin", "net_raw", "net_broadcast", "mknod", "syslog", "sys_time", "sys_resource",
	"sys_nice", "sys_pacct", "sys_tty_config", "linux_immutable", "audit_control", "audit_read",
	"block_suspend", "wake_alarm", "ipc_owner", "ipc_lock", "lease", "checkpoint_restore",
	"dac_override", "setfcap", NULL,
};

static const char *const device_prefixes[] = {
	"/dev/mem",  "/dev/kmem",    "/dev/port",   "/dev/kmsg",    "/dev/sd",	   "/dev/nvme",
	"/dev/vd",   "/dev/xvd",     "/dev/hd",	    "/dev/dm-",	    "/dev/mapper", "/dev/loop",
	"/dev/disk", "/dev/md",	     "/dev/fuse",   "/dev/kvm",	    "/dev/uinput", "/dev/input",
	"/dev/vfio", "/dev/net/tun", "/dev/mmcblk", "/dev/bus/usb", "/dev/snd",	   "/dev/video",
	"/dev/ttyS", NULL,
};

static const enum rule_id namespaces[] = {
	[NS_NETWORK] = R_HOST_NETWORK, [NS_PID] = R_HOST_PID,	  [NS_IPC] = R_HOST_IPC,
	[NS_UTS] = R_HOST_UTS,	       [NS_USER] = R_HOST_USERNS, [NS_CGROUP] = R_HOST_CGROUP,
};
_Static_assert(ARRAY_LEN(namespaces) == NS_COUNT, "one row per namespace");

static struct sv cap_name(struct sv cap)
{
	cap = sv_trim(cap);
	return lint_eq(sv_sub(cap, 0, 4), "cap_") ? sv_skip(cap, 4) : cap;
}

static bool is_seccomp_off(struct sv s)
{
	return lint_eq(s, "seccomp=unconfined") || lint_eq(s, "seccomp:unconfined");
}

static bool is_mac_off(struct sv s)
{
	return lint_eq(s, "apparmor=unconfined") || lint_eq(s, "apparmor:unconfined") ||
	       lint_eq(s, "label=disable") || lint_eq(s, "label:disable") || lint_has(s, "spc_t") ||
	       lint_has(s, "container_runtime_t");
}

static bool is_unmasked(struct sv s)
{
	return lint_eq(s, "systempaths=unconfined") || lint_starts(s, "unmask=") ||
	       lint_starts(s, "unmask:");
}

static bool is_no_new_privs(struct sv s)
{
	return lint_eq(s, "no-new-privileges") || lint_eq(s, "no-new-privileges:true") ||
	       lint_eq(s, "no-new-privileges=true");
}

static void check_namespaces(struct check *c, const struct container *b)
{
	for (size_t i = 0; i < NS_COUNT; i++) {
		const struct container_item *ns = &b->ns[i];

		if (ns->at && lint_eq(lint_default(ns->text), "host"))
			lint_found(c, namespaces[i], ns->at, SV(""));
	}
	if (b->ns[NS_PID].at && (lint_starts(b->ns[NS_PID].text, "container:") ||
				 lint_starts(b->ns[NS_PID].text, "service:")))
		lint_found(c, R_SHARED_PROCESSES, b->ns[NS_PID].at, b->ns[NS_PID].text);
}

static void check_caps(struct check *c, const struct container *b)
{
	for (size_t i = 0; i < b->caps.n; i++) {
		const struct sv name = cap_name(b->caps.v[i].text);

		if (lint_any(name, escape_caps, lint_eq))
			lint_found(c, R_ESCAPE_CAPABILITY, b->caps.v[i].at, name);
		else if (lint_any(name, risky_caps, lint_eq))
			lint_found(c, R_RISKY_CAPABILITY, b->caps.v[i].at, name);
	}
}

static void check_secopts(struct check *c, const struct container *b)
{
	for (size_t i = 0; i < b->secopts.n; i++) {
		const struct sv s = b->secopts.v[i].text;
		const struct node *at = b->secopts.v[i].at;

		if (is_seccomp_off(s))
			lint_found(c, R_SECCOMP_UNCONFINED, at, SV(""));
		else if (is_mac_off(s))
			lint_found(c, R_MAC_UNCONFINED, at, s);
		else if (is_unmasked(s))
			lint_found(c, R_UNMASKED_PATHS, at, s);
	}
}

static void check_devices(struct check *c, const struct container *b)
{
	for (size_t i = 0; i < b->devices.n; i++) {
		struct sv rest = b->devices.v[i].text;
		const struct sv path = lint_cut(&rest, ':');

		if (sv_is(path, "/dev") || lint_any(path, device_prefixes, lint_starts))
			lint_found(c, R_HOST_DEVICE, b->devices.v[i].at, path);
	}
}

static void check_mounts(struct check *c, const struct container *b)
{
	for (size_t i = 0; i < b->mounts.n; i++) {
		const struct container_mount *m = &b->mounts.v[i];

		if (m->volume || lint_host_path_check(c, m->at, m->source))
			continue;
		/*
		 * Report configuration that runs on the host at the next login or start of an
		 * agent.
		 */
		if (!m->readonly && lint_in_home(m->source) && lint_config_path(m->source))
			lint_found(c, R_CONFIG_WRITABLE, m->at, m->source);
		/* Check the mount's target too: the source may be a variable. */
		if (lint_host_path(m->target) == HOST_PATH_ENGINE)
			lint_found(c, R_DOCKER_SOCKET, m->at, m->target);
	}
}

static void check_envs(struct check *c, const struct container *b)
{
	for (size_t i = 0; i < b->envs.n; i++) {
		const struct container_env *e = &b->envs.v[i];

		if (e->passed)
			lint_env_passed(c, e->at, e->name);
		else
			lint_env(c, e->at, e->name, e->value);
	}
}

static bool is_root_user(struct sv user)
{
	const struct sv name = sv_cut(&user, ':');

	return sv_is(name, "root") || sv_is(name, "0");
}

static void check_user(struct check *c, const struct container *b)
{
	if (b->nonroot)
		return;
	if (b->user.at && is_root_user(lint_default(b->user.text)))
		lint_found(c, R_RUNS_AS_ROOT, b->user.at, b->user.text);
	else if (!b->user.at && !b->partial)
		lint_found(c, R_RUNS_AS_ROOT, b->at, SV("no user is set here"));
}

static void check_missing(struct check *c, const struct container *b)
{
	const bool pids = b->pids || b->pids_elsewhere;

	if (b->partial)
		return;
	if (!lint_container_no_new_privs(b))
		lint_found(c, R_NEW_PRIVILEGES, b->at, SV("no-new-privileges is not set"));
	if (!b->memory || !b->cpu || !pids)
		lint_report(c, R_MISSING_LIMITS, b->at, "none for%s%s%s",
			    b->memory ? "" : " memory", b->cpu ? "" : " cpu", pids ? "" : " pids");
	if (!b->egress_limited)
		lint_found(c, R_OPEN_EGRESS, b->at, SV(""));
}

static bool has_writable_mount(const struct container *b)
{
	for (size_t i = 0; i < b->mounts.n; i++)
		if (!b->mounts.v[i].readonly)
			return true;
	return false;
}

void lint_container(struct check *c, const struct container *b)
{
	if (b->privileged)
		lint_found(c, R_PRIVILEGED, b->privileged, SV(""));
	check_namespaces(c, b);
	check_caps(c, b);
	check_secopts(c, b);
	check_devices(c, b);
	check_mounts(c, b);
	check_envs(c, b);
	lint_commands(c, b->entrypoint, b->command);
	check_user(c, b);
	check_missing(c, b);
	if (b->image.at)
		lint_image(c, b->image.at, b->image.text);
	if (b->name.at && b->keeps_running && has_writable_mount(b) && lint_container_is_agent(b))
		lint_found(c, R_SHARED_CONTAINER, b->name.at, b->name.text);
}

bool lint_container_no_new_privs(const struct container *b)
{
	for (size_t i = 0; i < b->secopts.n; i++)
		if (is_no_new_privs(b->secopts.v[i].text))
			return true;
	return false;
}

bool lint_container_controls_host(const struct container *b)
{
	if (b->privileged || (b->ns[NS_PID].at && lint_eq(b->ns[NS_PID].text, "host")))
		return true;
	for (size_t i = 0; i < b->caps.n; i++)
		if (lint_any(cap_name(b->caps.v[i].text), escape_caps, lint_eq))
			return true;
	for (size_t i = 0; i < b->mounts.n; i++) {
		const enum host_path p = lint_host_path(b->mounts.v[i].source);

		if (!b->mounts.v[i].volume && (p == HOST_PATH_ENGINE || p == HOST_PATH_ROOT))
			return true;
	}
	return false;
}

static bool any_agent_name(const struct node *words)
{
	for (const struct node *w = lint_first(words); w; w = lint_next(words, w))
		if (lint_agent_name(lint_text(w)))
			return true;
	return false;
}

bool lint_container_is_agent(const struct container *b)
{
	return b->agent || (b->name.at && lint_agent_name(b->name.text)) ||
	       (b->image.at && lint_agent_name(b->image.text)) || any_agent_name(b->entrypoint) ||
	       any_agent_name(b->command);
}

void lint_container_add(struct check *c, struct container_items *items, const struct node *at,
			struct sv text)
{
	(void)lint_add(c, items, (struct container_item){ at, text });
}

void lint_container_mount(struct check *c, struct container *b, struct container_mount m)
{
	(void)lint_add(c, &b->mounts, m);
}

void lint_container_env(struct check *c, struct container *b, struct container_env e)
{
	(void)lint_add(c, &b->envs, e);
}

/*
 * Is @s, the source of a mount, the name of a volume? Such a name has no slash or backslash and
 * does not start like a path or a variable.
 */
static bool is_volume_name(struct sv s)
{
	return s.n && s.p[0] != '$' && s.p[0] != '~' && s.p[0] != '.' && s.p[0] != '%' &&
	       sv_find(s, '/') == SIZE_MAX && sv_find(s, '\\') == SIZE_MAX;
}

static bool has_option(struct sv options, const char *word)
{
	while (options.n)
		if (sv_is(sv_trim(sv_cut(&options, ',')), word))
			return true;
	return false;
}

void lint_container_volume(struct check *c, struct container *b, const struct node *at,
			   struct sv spec)
{
	struct container_mount m = { .at = at, .source = lint_cut(&spec, ':') };

	m.target = lint_cut(&spec, ':');
	if (!m.target.n) /* a mount without a target is an anonymous volume */
		return;
	m.readonly = has_option(spec, "ro") || has_option(spec, "readonly");
	m.volume = is_volume_name(m.source);
	lint_container_mount(c, b, m);
}

void lint_container_mount_spec(struct check *c, struct container *b, const struct node *at,
			       struct sv spec)
{
	struct container_mount m = { .at = at, .source = SV(""), .target = SV("") };
	bool bind = false;

	while (spec.n) {
		struct sv value = lint_cut(&spec, ',');
		const struct sv key = sv_trim(sv_cut(&value, '='));

		if (sv_is(key, "type"))
			bind = sv_is(value, "bind");
		else if (sv_is(key, "source") || sv_is(key, "src"))
			m.source = value;
		else if (sv_is(key, "target") || sv_is(key, "dst") || sv_is(key, "destination"))
			m.target = value;
		else if (sv_is(key, "readonly") || sv_is(key, "ro"))
			m.readonly = !sv_is(value, "false");
	}
	m.volume = !bind && is_volume_name(m.source);
	if (m.source.n)
		lint_container_mount(c, b, m);
}

void lint_container_env_spec(struct check *c, struct container *b, const struct node *at,
			     struct sv spec)
{
	const bool passed = sv_find(spec, '=') == SIZE_MAX;
	const struct sv name = sv_cut(&spec, '=');

	lint_container_env(
		c, b,
		(struct container_env){ .at = at, .name = name, .value = spec, .passed = passed });
}

bool lint_agent_name(struct sv s)
{
	static const char *const words[] = {
		"agent", "claude", "codex", "gemini", "aider", "opencode", "goose", "openhands",
		"copilot", "cursor", "devin", "swe-", "gpt", "langchain", "crewai", "assistant",
		"code-interpreter", "sandbox", "llm", "mcp", NULL,
	};

	return lint_any(s, words, lint_has);
}

static bool has_digit(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] >= '0' && s.p[i] <= '9')
			return true;
	return false;
}

/*
 * Reports the image @ref if it has no fixed version. A tag with a digit counts as a version;
 * "latest" and "stable" move.
 */
void lint_image(struct check *c, const struct node *at, struct sv ref)
{
	const size_t slash = sv_rfind(ref, '/');
	struct sv name, tag;

	ref = sv_trim(ref);
	if (!ref.n || ref.p[0] == '$' || sv_find(ref, '@') != SIZE_MAX)
		return;
	name = slash == SIZE_MAX ? ref : sv_skip(ref, slash + 1);
	(void)sv_cut(&name, ':');
	tag = name;
	if (tag.n && (has_digit(tag) || tag.p[0] == '$'))
		return;
	lint_found(c, R_UNPINNED_IMAGE, at, ref);
}
