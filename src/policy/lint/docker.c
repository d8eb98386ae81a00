#include <string.h>

#include "lint/container_priv.h"
#include "lint/shell_priv.h"

#include "base/banned.h"

/* Length limit of a docker command: a longer text is not a command line that a user typed. */
enum { COMMAND_BYTES = 16 * 1024 };

/* Kinds of options. Options of the kinds before O_FLAG take a value. */
enum option_kind {
	O_OTHER = 0, /* the option takes a value that no rule uses */
	O_NAMESPACE,
	O_CAP_ADD,
	O_CAP_DROP,
	O_SECURITY_OPT,
	O_VOLUME,
	O_MOUNT,
	O_DEVICE,
	O_ENV,
	O_USER,
	O_MEMORY,
	O_CPU,
	O_PIDS,
	O_ULIMIT,
	O_NAME,
	O_RESTART,
	O_ENTRYPOINT,
	O_FLAG, /* the option takes no value, and no rule uses it */
	O_PRIVILEGED,
	O_ENV_HOST,
	O_API_SOCKET,
	O_DETACH,
	O_RM,
	O_READ_ONLY,
};

/*
 * Options of `docker run` that a rule uses or that take no value. Options that are not listed take
 * a value, as most options do.
 */
static const struct option {
	const char *name;
	char letter;
	enum option_kind what;
	enum container_ns ns; /* namespace that an O_NAMESPACE option sets */
} options[] = {
	{ "privileged", 0, O_PRIVILEGED }, { "network", 0, O_NAMESPACE, NS_NETWORK },
	{ "net", 0, O_NAMESPACE, NS_NETWORK }, { "pid", 0, O_NAMESPACE, NS_PID },
	{ "ipc", 0, O_NAMESPACE, NS_IPC }, { "uts", 0, O_NAMESPACE, NS_UTS },
	{ "userns", 0, O_NAMESPACE, NS_USER }, { "cgroupns", 0, O_NAMESPACE, NS_CGROUP },
	{ "cap-add", 0, O_CAP_ADD }, { "cap-drop", 0, O_CAP_DROP },
	{ "security-opt", 0, O_SECURITY_OPT }, { "volume", 'v', O_VOLUME }, { "mount", 0, O_MOUNT },
	{ "device", 0, O_DEVICE }, { "env", 'e', O_ENV }, { "env-host", 0, O_ENV_HOST },
	{ "use-api-socket", 0, O_API_SOCKET }, { "user", 'u', O_USER }, { "memory", 'm', O_MEMORY },
	{ "cpus", 0, O_CPU }, { "cpu-quota", 0, O_CPU }, { "cpuset-cpus", 0, O_CPU },
	{ "pids-limit", 0, O_PIDS }, { "ulimit", 0, O_ULIMIT }, { "name", 0, O_NAME },
	{ "restart", 0, O_RESTART }, { "detach", 'd', O_DETACH }, { "rm", 0, O_RM },
	{ "read-only", 0, O_READ_ONLY }, { "entrypoint", 0, O_ENTRYPOINT },
	{ "interactive", 'i', O_FLAG }, { "tty", 't', O_FLAG }, { "init", 0, O_FLAG },
	{ "help", 0, O_FLAG }, { "quiet", 'q', O_FLAG }, { "publish-all", 'P', O_FLAG },
	{ "sig-proxy", 0, O_FLAG }, { "oom-kill-disable", 0, O_FLAG },
	{ "no-healthcheck", 0, O_FLAG }, { "disable-content-trust", 0, O_FLAG },
	{ "http-proxy", 0, O_FLAG }, { "no-hosts", 0, O_FLAG }, { "no-hostname", 0, O_FLAG },
	{ "passwd", 0, O_FLAG }, { "replace", 0, O_FLAG }, { "rmi", 0, O_FLAG },
	{ "rootfs", 0, O_FLAG }, { "read-only-tmpfs", 0, O_FLAG }, { "tls-verify", 0, O_FLAG },
};

static bool takes_value(enum option_kind w)
{
	return w < O_FLAG;
}

static const struct option unknown = { .what = O_OTHER };

/* Finds an option by its @letter, or by its @name if @letter is 0. */
static const struct option *find_option(struct sv name, char letter)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (letter ? options[i].letter == letter : sv_is(name, options[i].name))
			return &options[i];
	return &unknown;
}

static void set_namespace(struct container *b, enum container_ns ns, const struct node *at,
			  struct sv value)
{
	b->ns[ns] = (struct container_item){ at, value };
	if (ns != NS_NETWORK)
		return;
	/* A user-defined network may be internal; the default networks never are. */
	b->egress_limited = value.n && !sv_is(value, "bridge") && !sv_is(value, "host") &&
			    !sv_is(value, "default") && !lint_starts(value, "slirp4netns") &&
			    !lint_starts(value, "pasta") && !lint_starts(value, "container:");
}

static void set_limit(struct container *b, enum option_kind w, struct sv value)
{
	const bool none = sv_is(value, "-1") || sv_is(value, "0");

	if (w == O_MEMORY)
		b->memory = !none;
	else if (w == O_CPU)
		b->cpu = !none;
	else if (w == O_PIDS || lint_starts(value, "nproc="))
		b->pids = !none;
}

static void set_flag(struct check *c, struct container *b, enum option_kind w,
		     const struct node *at, bool on)
{
	if (w == O_PRIVILEGED)
		b->privileged = on ? at : NULL;
	else if (w == O_DETACH)
		b->keeps_running = b->keeps_running || on;
	else if (w == O_READ_ONLY)
		b->root_readonly = on;
	else if (w == O_ENV_HOST && on)
		lint_found(c, R_SECRET_IN_SANDBOX, at, SV("the whole environment"));
	else if (w == O_API_SOCKET && on)
		lint_found(c, R_DOCKER_SOCKET, at, SV("--use-api-socket"));
}

static void set_option(struct check *c, struct container *b, const struct option *o,
		       const struct node *at, struct sv value)
{
	switch (o->what) {
	case O_OTHER:
		break;
	case O_FLAG:
	case O_PRIVILEGED:
	case O_ENV_HOST:
	case O_API_SOCKET:
	case O_DETACH:
	case O_RM:
	case O_READ_ONLY:
		set_flag(c, b, o->what, at,
			 !value.n || lint_eq(value, "true") || sv_is(value, "1"));
		break;
	case O_NAMESPACE:
		set_namespace(b, o->ns, at, value);
		break;
	case O_CAP_ADD:
		while (value.n) /* podman accepts a list of values */
			lint_container_add(c, &b->caps, at, sv_cut(&value, ','));
		break;
	case O_CAP_DROP:
		b->caps_dropped = b->caps_dropped || lint_eq(value, "all");
		break;
	case O_SECURITY_OPT:
		lint_container_add(c, &b->secopts, at, value);
		break;
	case O_VOLUME:
		lint_container_volume(c, b, at, value);
		break;
	case O_MOUNT:
		lint_container_mount_spec(c, b, at, value);
		break;
	case O_DEVICE:
		lint_container_add(c, &b->devices, at, value);
		break;
	case O_ENV:
		lint_container_env_spec(c, b, at, value);
		break;
	case O_USER:
		b->user = (struct container_item){ at, value };
		break;
	case O_MEMORY:
	case O_CPU:
	case O_PIDS:
	case O_ULIMIT:
		set_limit(b, o->what, value);
		break;
	case O_NAME:
		b->name = (struct container_item){ at, value };
		break;
	case O_RESTART:
		b->keeps_running = b->keeps_running || sv_is(value, "always") ||
				   sv_is(value, "unless-stopped");
		break;
	case O_ENTRYPOINT:
		b->agent = b->agent || lint_agent_name(value);
		break;
	}
}

/*
 * Parses short options such as -it, -itv SRC:DST or -eNAME=x. Returns the number of words consumed.
 */
static size_t short_options(struct check *c, struct container *b, const struct node *const *argv,
			    size_t n)
{
	const struct sv w = argv[0]->text;

	for (size_t i = 1; i < w.n; i++) {
		const struct option *o = find_option(SV(""), w.p[i]);
		struct sv value = sv_skip(w, i + 1);

		if (!takes_value(o->what)) {
			set_option(c, b, o, argv[0], SV(""));
			continue;
		}
		if (value.n && value.p[0] == '=')
			value = sv_skip(value, 1);
		if (value.n || n < 2) {
			set_option(c, b, o, argv[0], value);
			return 1;
		}
		set_option(c, b, o, argv[1], argv[1]->text);
		return 2;
	}
	return 1;
}

static size_t long_option(struct check *c, struct container *b, const struct node *const *argv,
			  size_t n)
{
	struct sv value = sv_skip(argv[0]->text, 2);
	const bool joined = sv_find(value, '=') != SIZE_MAX;
	const struct option *o = find_option(sv_cut(&value, '='), 0);

	if (joined || !takes_value(o->what)) {
		set_option(c, b, o, argv[0], value);
		return 1;
	}
	if (n < 2)
		return 1;
	set_option(c, b, o, argv[1], argv[1]->text);
	return 2;
}

/* Is the first word a variable that holds options, as in `docker run $OPTS -v x img`? */
static bool is_option_variable(const struct node *const *argv, size_t n)
{
	static const char *const hints[] = { "opt", "arg", "flag", "param", "@", "[*]", NULL };
	const struct sv w = argv[0]->text;

	if (w.n < 2 || w.p[0] != '$' || n < 2)
		return false;
	if (lint_has(w, "image") || lint_has(w, "img") || lint_has(w, "tag"))
		return false;
	return lint_any(w, hints, lint_has) || lint_starts(argv[1]->text, "-");
}

size_t lint_docker_options(struct check *c, struct container *b, const struct node *const *argv,
			   size_t n)
{
	bool removed = false;
	size_t i = 0;

	while (i < n && !c->failed) {
		const struct sv w = argv[i]->text;

		if (is_option_variable(argv + i, n - i)) {
			i++;
			continue;
		}
		if (w.n < 2 || w.p[0] != '-' || sv_is(w, "--"))
			break;
		removed = removed || sv_is(w, "--rm") || sv_is(w, "--rm=true");
		i += w.p[1] == '-' ? long_option(c, b, argv + i, n - i)
				   : short_options(c, b, argv + i, n - i);
	}
	if (removed)
		b->keeps_running = false;
	return i < n ? i : n;
}

static bool is_engine(struct sv w)
{
	static const char *const vars[] = { "$(DOCKER)", "${DOCKER}", "$DOCKER", "$(PODMAN)",
					    "${PODMAN}", "$PODMAN",   NULL };
	const struct sv base = lint_base(w);

	return sv_is(base, "docker") || sv_is(base, "podman") || sv_is(base, "nerdctl") ||
	       lint_in(w, vars);
}

bool lint_docker_is_run(const struct node *const *argv, size_t n, size_t *ret_skip)
{
	static const char *const valued[] = { "-H",	  "--host", "-c",	   "--context",
					      "--config", "-l",	    "--log-level", "--connection",
					      "--url",	  "--root", "--runroot",   "--namespace",
					      "-n",	  NULL };
	size_t i = 1;

	if (!n || !is_engine(argv[0]->text))
		return false;
	while (i < n && lint_starts(argv[i]->text, "-"))
		i += lint_in(argv[i]->text, valued) ? 2 : 1;
	if (i < n && sv_is(argv[i]->text, "container"))
		i++;
	if (i >= n || (!sv_is(argv[i]->text, "run") && !sv_is(argv[i]->text, "create")))
		return false;
	*ret_skip = i + 1;
	return true;
}

static bool any_agent_word(const struct node *const *argv, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (lint_agent_name(argv[i]->text))
			return true;
	return false;
}

void lint_docker_run(struct check *c, const struct node *at, const struct node *const *argv,
		     size_t n)
{
	struct container b = { .at = at };
	size_t i = lint_docker_options(c, &b, argv, n);

	if (i < n && sv_is(argv[i]->text, "--"))
		i++;
	if (i < n) {
		b.image = (struct container_item){ argv[i], argv[i]->text };
		lint_argv(c, argv + i + 1, n - i - 1);
		b.agent = b.agent || any_agent_word(argv + i + 1, n - i - 1);
	}
	lint_container(c, &b);
}

/* Does the word at offset @i of @t name a container engine? */
static bool engine_at(struct sv t, size_t i)
{
	static const char *const names[] = { "docker ",	   "podman ",	 "nerdctl ", "docker\t",
					     "$(DOCKER) ", "${DOCKER} ", "$DOCKER ", "$(PODMAN) ",
					     "${PODMAN} ", "$PODMAN ",	 NULL };
	const char prev = i ? t.p[i - 1] : '\n';

	return strchr(" \t\n\r\"'`(@;&|={/", prev) && lint_any(sv_skip(t, i), names, lint_starts);
}

static void run_at(struct check *c, size_t i, char quote)
{
	const char prev = i ? c->text.p[i - 1] : '\n';
	struct shell sh = { .c = c,
			    .text = sv_sub(c->text, i, COMMAND_BYTES),
			    .off = i,
			    .escape = '\\',
			    .closer = prev == '`' ? '`' : quote };
	struct simple s;
	size_t skip;

	if (!lint_shell_simple(&sh, &s) || !lint_docker_is_run(s.argv.v, s.argv.n, &skip))
		return;
	c->label = lint_starts(sv_skip(c->text, i), "podman") ? SV("podman run") : SV("docker run");
	lint_docker_run(c, s.argv.v[0], s.argv.v + skip, s.argv.n - skip);
}

/*
 * Searches any text for docker commands. The search starts at the engine's name, so quotes and
 * prose before that name do not matter. Skips comments of scripts.
 */
void lint_docker(struct check *c)
{
	const struct sv t = c->text;
	bool comment = false;
	char quote = 0;

	for (size_t i = 0; i < t.n && !c->failed; i++) {
		const char ch = t.p[i];

		if (ch == '\n') {
			comment = false;
			quote = 0;
			continue;
		}
		if (comment)
			continue;
		if (engine_at(t, i))
			run_at(c, i, quote);
		if (quote)
			quote = ch == quote ? 0 : quote;
		else if (ch == '"' || ch == '\'')
			quote = ch;
		else if (ch == '#' && (!i || strchr(" \t\n\r", t.p[i - 1])))
			comment = true;
	}
}
