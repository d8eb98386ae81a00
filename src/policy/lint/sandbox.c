#include "lint/host_path_priv.h"

#include "base/banned.h"

/* Credential stores below the home directory that a sandbox must not let the agent read. */
static const char *const must_deny[] = { "/.ssh",  "/.aws",    "/.gnupg",
					 "/.kube", "/.docker", "/.netrc" };

/*
 * Files that programs outside the sandbox read and obey; lint_config_path() compares whole
 * segments.
 */
static const char *const config_names[] = {
	".claude", ".claude.json", ".codex", ".cursor", ".gemini", ".mcp.json", ".vscode", ".idea",
	".devcontainer", ".git", ".gitconfig", ".gitmodules", ".envrc", ".bashrc", ".bash_profile",
	".bash_login", ".profile", ".zshrc", ".zshenv", ".zprofile", ".ssh", ".npmrc", ".local/bin",
	".config/git", ".config/fish", ".config/autostart", ".config/systemd", ".config/writ", NULL,
};

/* Returns the path of a list entry, which is a string or an object with a path. */
static const struct node *path_of(const struct node *i)
{
	return i->kind == NODE_MAP ? lint_get(i, "path") : i;
}

static void check_socket(struct check *c, const struct node *at)
{
	const struct sv path = lint_unglob(lint_text(at));
	const enum host_path p = lint_host_path(path);

	if (p == HOST_PATH_ROOT || p == HOST_PATH_SYSTEM || p == HOST_PATH_HOME)
		lint_found(c, R_ANY_UNIX_SOCKET, at, path);
	else
		(void)lint_host_path_check(c, at, path);
}

void lint_sandbox_network(struct check *c, const struct node *network)
{
	const struct node *hosts = lint_get(network, "allowedDomains");
	const struct node *sockets = lint_get(network, "allowUnixSockets");
	const struct node *all = lint_get(network, "allowAllUnixSockets");

	for (const struct node *i = lint_first(hosts); i; i = lint_next(hosts, i))
		lint_host_check(c, i, lint_text(i));
	for (const struct node *i = lint_first(sockets); i; i = lint_next(sockets, i))
		if (path_of(i))
			check_socket(c, path_of(i));
	if (lint_true(all))
		lint_found(c, R_ANY_UNIX_SOCKET, all, all->key);
}

bool lint_config_path(struct sv path)
{
	const struct sv p = lint_unglob(path);
	const enum host_path place = lint_host_path(p);

	if (sv_is(p, "*") || !p.n) /* the path is relative, so inside the workspace */
		return false;
	return place == HOST_PATH_ROOT || place == HOST_PATH_HOME || place == HOST_PATH_SYSTEM ||
	       lint_path_names(p, config_names);
}

void lint_sandbox_writes(struct check *c, const struct node *paths)
{
	for (const struct node *i = lint_first(paths); i; i = lint_next(paths, i)) {
		const struct node *path = path_of(i);

		if (path && lint_config_path(lint_text(path)))
			lint_found(c, R_CONFIG_WRITABLE, path, lint_text(path));
	}
}

/* Returns the path in the permission rule "Read(~/.ssh)", or an empty view. */
static struct sv read_rule(struct sv rule)
{
	if (!lint_starts(rule, "Read(") || !lint_ends(rule, ")"))
		return SV("");
	rule = sv_sub(rule, 5, rule.n - 6);
	return lint_starts(rule, "//") ? sv_skip(rule, 1) : rule;
}

static bool is_denied(const char *store, const struct node *filesystem,
		      const struct node *credentials, const struct node *denied)
{
	const struct node *const lists[] = { lint_get(filesystem, "denyRead"),
					     lint_get(credentials, "files") };

	for (size_t k = 0; k < ARRAY_LEN(lists); k++)
		for (const struct node *i = lint_first(lists[k]); i; i = lint_next(lists[k], i))
			if (path_of(i) && lint_host_path_covers(lint_text(path_of(i)), store))
				return true;
	for (const struct node *i = lint_first(denied); i; i = lint_next(denied, i))
		if (lint_host_path_covers(read_rule(lint_text(i)), store))
			return true;
	return false;
}

void lint_readable(struct check *c, const struct node *at, struct sv path, enum rule_id home)
{
	const enum host_path p = lint_host_path(lint_unglob(path));

	if (p == HOST_PATH_CREDENTIAL)
		lint_found(c, R_CREDENTIAL_READABLE, at, path);
	else if (p == HOST_PATH_HOME || p == HOST_PATH_ROOT)
		lint_found(c, home, at, path);
}

void lint_sandbox_weakened(struct check *c, const struct node *settings)
{
	static const char *const keys[] = { "enableWeakerNestedSandbox",
					    "enableWeakerNetworkIsolation",
					    "allowNestedUserNamespaces", "allowAppleEvents",
					    "filesystem.disabled" };

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (lint_true(lint_at(settings, keys[i])))
			lint_found(c, R_SANDBOX_WEAKENED, lint_at(settings, keys[i]),
				   sv_from(keys[i]));
}

void lint_sandbox_reads(struct check *c, const struct node *at, const struct node *filesystem,
			const struct node *credentials, const struct node *denied)
{
	const struct node *allow = lint_get(filesystem, "allowRead");
	scoped_buf open = BUF_INIT(256);

	for (size_t i = 0; i < ARRAY_LEN(must_deny); i++)
		if (!is_denied(must_deny[i], filesystem, credentials, denied))
			buf_fmt(&open, "%s~%s", open.n ? ", " : "", must_deny[i]);
	if (open.n)
		lint_found(c, R_OPEN_READS, at, buf_view(&open));
	for (const struct node *i = lint_first(allow); i; i = lint_next(allow, i))
		if (path_of(i))
			lint_readable(c, path_of(i), lint_text(path_of(i)), R_OPEN_READS);
}

void lint_srt(struct check *c, const struct node *root)
{
	const struct node *fs = lint_get(root, "filesystem");

	lint_sandbox_network(c, lint_get(root, "network"));
	lint_sandbox_writes(c, lint_get(fs, "allowWrite"));
	lint_sandbox_reads(c, fs ? lint_key(c, fs) : root, fs, lint_get(root, "credentials"), NULL);
	lint_sandbox_weakened(c, root);
}
