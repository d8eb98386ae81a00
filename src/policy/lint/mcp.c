#include "lint/container_priv.h"
#include "lint/host_path_priv.h"

#include "base/banned.h"

/* MCP servers whose tool executes arbitrary commands. */
static const char *const exec_servers[] = {
	"desktop-commander", "mcp-shell", "shell-mcp", "mcp-server-shell", "server-commands",
	"mcp-server-commands", "terminal-controller", "iterm-mcp", "super-shell", "code-runner",
	"mcp-terminal", "terminal-mcp", "ssh-mcp", "mcp-ssh", "cli-mcp", "execute-command",
	"shell-exec", "shell-server", "mcp-run-command", "windows-cli", NULL,
};

static const char *const exec_names[] = { "shell",    "bash",	     "terminal", "exec",
					  "commands", "run-command", "ssh",	 NULL };

static const char *const confiners[] = { "writ",	 "srt",	    "bwrap",  "firejail",
					 "nsjail",	 "landrun", "nono",   "sandlock",
					 "sandbox-exec", "docker",  "podman", "nerdctl",
					 "runsc",	 NULL };

struct server {
	const struct node *node, *command, *args;
	struct node_list argv;
};

static bool collect(struct check *c, struct server *s)
{
	if (!s->command || s->command->kind != NODE_SCALAR)
		return true;
	return lint_collect(c, &s->argv, s->command) && lint_collect(c, &s->argv, s->args);
}

static void check_exec(struct check *c, const struct server *s)
{
	const struct node *env = lint_get(s->node, "env");

	for (size_t i = 0; i < s->argv.n; i++)
		if (lint_any(s->argv.v[i]->text, exec_servers, lint_has)) {
			lint_found(c, R_UNRESTRICTED_EXEC, s->argv.v[i], s->argv.v[i]->text);
			return;
		}
	if (lint_in(s->node->key, exec_names) && s->argv.n)
		lint_found(c, R_UNRESTRICTED_EXEC, lint_key(c, s->node), s->node->key);
	for (const struct node *i = lint_members(env); i; i = i->next)
		if (lint_has(i->key, "allow") && lint_has(i->key, "command") &&
		    (lint_is(i, "*") || lint_is(i, "all") || lint_is(i, ".*")))
			lint_found(c, R_UNRESTRICTED_EXEC, i, i->key);
}

/* Does the package @pkg (name, @scope/name, name==1 or name@1) have a fixed version? */
static bool is_pinned(struct sv pkg)
{
	const size_t at = sv_rfind(pkg, '@');

	for (size_t i = 0; i + 1 < pkg.n; i++)
		if (pkg.p[i] == '=' && pkg.p[i + 1] == '=')
			return true;
	if (pkg.p[0] == '.' || pkg.p[0] == '/')
		return true; /* a package in a local directory cannot change upstream */
	if (at == SIZE_MAX || at == 0)
		return false;
	return !sv_is(sv_skip(pkg, at + 1), "latest") && at + 1 < pkg.n;
}

/* Returns the package that a launcher such as npx downloads and runs, or NULL. */
static const struct node *fetched_package(const struct server *s)
{
	static const char *const launchers[] = { "npx", "bunx", "pnpx", "uvx", NULL };
	static const char *const two_words[] = { "dlx", "run", "x", NULL };
	static const char *const managers[] = { "pnpm", "yarn", "pipx", "bun", NULL };
	static const char *const valued[] = { "-p",	  "--package", "--from",     "--with",
					      "--python", "-c",	       "--registry", NULL };
	struct sv base;
	size_t i = 1;

	if (!s->argv.n)
		return NULL;
	base = lint_base(s->argv.v[0]->text);
	if (lint_in(base, managers) && s->argv.n > 1 && lint_in(s->argv.v[1]->text, two_words))
		i = 2;
	else if (!lint_in(base, launchers))
		return NULL;
	for (; i < s->argv.n; i++) {
		const struct sv w = s->argv.v[i]->text;

		if ((sv_is(w, "-p") || sv_is(w, "--package") || sv_is(w, "--from")) &&
		    i + 1 < s->argv.n)
			return s->argv.v[i + 1];
		if (lint_in(w, valued))
			i++;
		else if (w.n && w.p[0] != '-')
			return s->argv.v[i];
	}
	return NULL;
}

static void check_argv(struct check *c, const struct server *s)
{
	const struct node *pkg = fetched_package(s);
	size_t skip;

	if (lint_docker_is_run(s->argv.v, s->argv.n, &skip)) {
		lint_docker_run(c, s->command, s->argv.v + skip, s->argv.n - skip);
		return;
	}
	lint_argv(c, s->argv.v, s->argv.n);
	if (s->argv.n && !lint_in(lint_base(s->command->text), confiners))
		lint_found(c, R_UNCONFINED_MCP_SERVER, s->command, lint_base(s->command->text));
	if (pkg && !is_pinned(pkg->text))
		lint_found(c, R_UNPINNED_SERVER, pkg, pkg->text);
	for (size_t i = 1; i < s->argv.n; i++) {
		const struct sv w = s->argv.v[i]->text;
		const size_t eq = sv_find(w, '=');
		const struct sv path =
			lint_starts(w, "--") && eq != SIZE_MAX ? sv_skip(w, eq + 1) : w;

		(void)lint_host_path_check(c, s->argv.v[i], path);
	}
}

/* Checks the parameters of a URL: ?key=value&token=value. */
static void check_query(struct check *c, const struct node *at, struct sv url)
{
	(void)sv_cut(&url, '?');
	while (url.n) {
		struct sv value = sv_cut(&url, '&');
		const struct sv name = sv_cut(&value, '=');

		lint_env(c, at, name, value);
	}
}

static void check_remote(struct check *c, const struct node *server)
{
	static const char *const keys[] = { "url", "serverUrl", "httpUrl", "endpoint" };
	const struct node *headers = lint_get(server, "headers");

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const struct node *url = lint_get(server, keys[i]);

		if (!url)
			continue;
		lint_host_check(c, url, lint_text(url));
		lint_secret_word(c, url, SV(""), lint_text(url));
		check_query(c, url, lint_text(url));
	}
	for (const struct node *h = lint_members(headers); h; h = h->next) {
		struct sv value = lint_text(h);

		if (lint_eq(sv_sub(value, 0, 7), "bearer "))
			value = sv_skip(value, 7);
		else if (lint_eq(sv_sub(value, 0, 6), "basic ") ||
			 lint_eq(sv_sub(value, 0, 6), "token "))
			value = sv_skip(value, 6);
		lint_env(c, h, h->key, value);
	}
}

static void check_approvals(struct check *c, const struct node *server)
{
	static const char *const lists[] = { "autoApprove", "alwaysAllow" };

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		const struct node *list = lint_get(server, lists[i]);

		for (const struct node *n = lint_first(list); n; n = lint_next(list, n))
			if (lint_is(n, "*") || (n == list && lint_true(n)))
				lint_found(c, R_APPROVALS_BYPASSED, n, list->key);
	}
	if (lint_true(lint_get(server, "trust")))
		lint_found(c, R_APPROVALS_BYPASSED, lint_get(server, "trust"), SV("trust"));
}

static void check_servers(struct check *c, const struct node *servers)
{
	if (!servers || servers->kind != NODE_MAP)
		return;
	if (servers->count > LINT_BOXES_MAX)
		lint_fail(c, WRIT_E_LIMIT, "too many servers");
	for (const struct node *n = servers->first; n && !c->failed; n = n->next) {
		struct server s = { .node = n,
				    .command = lint_get(n, "command"),
				    .args = lint_get(n, "args") };
		const struct node *env = lint_get(n, "env");

		if (n->kind != NODE_MAP || !collect(c, &s))
			continue;
		check_exec(c, &s);
		check_argv(c, &s);
		check_remote(c, n);
		check_approvals(c, n);
		for (const struct node *e = lint_members(env); e; e = e->next)
			lint_env(c, e, e->key, lint_text(e));
	}
}

void lint_mcp(struct check *c, const struct node *root)
{
	const struct node *projects = lint_get(root, "projects");

	check_servers(c, lint_get(root, "mcpServers"));
	check_servers(c, lint_get(root, "servers"));
	check_servers(c, lint_at(root, "mcp.servers"));
	check_servers(c, lint_get(root, "context_servers"));
	for (const struct node *p = lint_members(projects); p && !c->failed; p = p->next)
		check_servers(c, lint_get(p, "mcpServers"));
}
