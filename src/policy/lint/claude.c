#include "lint/check_priv.h"

#include "base/banned.h"

/*
 * Programs that run other programs: a wildcard permission for one of these programs allows every
 * command.
 */
static const char *const gateways[] = {
	"sh",	   "bash", "zsh",  "dash", "eval", "sudo",   "env",    "xargs", "python",
	"python3", "node", "perl", "ruby", "ssh",  "docker", "podman", NULL,
};

static const char *const confiners[] = { "writ",    "srt",  "bwrap",	    "firejail", "nsjail",
					 "landrun", "nono", "sandbox-exec", NULL };

struct permission {
	struct sv tool, arg;
	bool has_arg;
};

/* Parses a permission such as "Bash(npm test:*)". */
static struct permission parse(struct sv rule)
{
	struct permission p = { .tool = sv_trim(rule), .arg = SV("") };
	const size_t open = sv_find(p.tool, '(');

	if (open == SIZE_MAX || !lint_ends(p.tool, ")"))
		return p;
	p.arg = sv_sub(p.tool, open + 1, p.tool.n - open - 2);
	p.tool = sv_sub(p.tool, 0, open);
	p.has_arg = true;
	return p;
}

static bool is_any_command(struct permission p)
{
	struct sv first = p.arg;
	size_t n = 0;

	if (sv_is(p.tool, "*"))
		return true;
	if (!sv_is(p.tool, "Bash") && !sv_is(p.tool, "PowerShell"))
		return false;
	if (!p.has_arg || !p.arg.n || sv_is(p.arg, "*") || sv_is(p.arg, ":*") || sv_is(p.arg, "**"))
		return true;
	while (n < first.n && first.p[n] != ' ' && first.p[n] != ':' && first.p[n] != '*')
		n++;
	first.n = n;
	return p.arg.p[p.arg.n - 1] == '*' && lint_in(lint_base(first), gateways) &&
	       /*
	        * the wildcard follows the program, as in `bash:*`, unlike in `python -m pytest:*`
	        */
	       p.arg.n <= first.n + 2;
}

static bool lists(const struct node *list, struct sv rule)
{
	for (const struct node *i = lint_first(list); i; i = lint_next(list, i))
		if (sv_eq(lint_text(i), rule))
			return true;
	return false;
}

/*
 * Returns the path in a permission rule, where //x is an absolute path and /x is relative to the
 * project.
 */
static struct sv rule_path(struct sv arg)
{
	if (lint_starts(arg, "//"))
		return sv_skip(arg, 1);
	return lint_starts(arg, "/") ? sv_skip(arg, 1) : arg;
}

static void check_path_rule(struct check *c, const struct node *at, struct permission p)
{
	const struct sv path = rule_path(p.arg);

	if ((sv_is(p.tool, "Edit") || sv_is(p.tool, "Write") || sv_is(p.tool, "MultiEdit")) &&
	    p.has_arg && lint_config_path(path))
		lint_found(c, R_CONFIG_WRITABLE, at, path);
	if (sv_is(p.tool, "Read") && p.has_arg)
		lint_readable(c, at, path, R_HOME_READABLE);
}

static void check_allow(struct check *c, const struct node *permissions, bool confined)
{
	const struct node *allow = lint_get(permissions, "allow");
	const struct node *deny = lint_get(permissions, "deny");

	for (const struct node *i = lint_first(allow); i; i = lint_next(allow, i)) {
		const struct permission p = parse(lint_text(i));

		if (is_any_command(p) && !confined && !lists(deny, lint_text(i)) &&
		    !lists(deny, SV("Bash")))
			lint_found(c, R_UNRESTRICTED_EXEC, i, lint_text(i));
		if (sv_is(p.tool, "WebFetch") && !p.has_arg)
			lint_found(c, R_WILDCARD_EGRESS, i, SV("WebFetch"));
		else if (sv_is(p.tool, "WebFetch") && lint_starts(p.arg, "domain:"))
			lint_host_check(c, i, sv_skip(p.arg, 7));
		check_path_rule(c, i, p);
	}
}

static void check_modes(struct check *c, const struct node *root)
{
	const struct node *mode = lint_at(root, "permissions.defaultMode");
	const struct node *skip = lint_get(root, "skipDangerousModePermissionPrompt");
	const struct node *dirs = lint_at(root, "permissions.additionalDirectories");
	const struct node *trust = lint_get(root, "enableAllProjectMcpServers");

	if (lint_is(mode, "bypasspermissions"))
		lint_found(c, R_APPROVALS_BYPASSED, mode, SV("bypassPermissions"));
	if (lint_true(skip))
		lint_found(c, R_APPROVALS_BYPASSED, skip, skip->key);
	if (lint_true(trust))
		lint_found(c, R_AUTO_TRUSTED_MCP, trust, trust->key);
	for (const struct node *i = lint_first(dirs); i; i = lint_next(dirs, i))
		lint_readable(c, i, lint_text(i), R_HOME_READABLE);
}

static bool is_confined(const struct node *command)
{
	struct sv rest = sv_trim(lint_text(command));

	return lint_in(lint_base(sv_cut(&rest, ' ')), confiners);
}

/* Checks the hooks of Claude Code: { EVENT: [ { matcher, hooks: [ { type, command } ] } ] }. */
static void check_hooks(struct check *c, const struct node *hooks, bool sandboxed)
{
	for (const struct node *event = lint_members(hooks); event; event = event->next)
		for (const struct node *m = lint_first(event); m; m = lint_next(event, m)) {
			const struct node *list = lint_get(m, "hooks");

			for (const struct node *h = lint_first(list); h; h = lint_next(list, h)) {
				const struct node *cmd = lint_get(h, "command");

				lint_command(c, cmd);
				if (cmd && sandboxed && !is_confined(cmd))
					lint_found(c, R_TOOLS_OUTSIDE_SANDBOX, cmd, SV("a hook"));
			}
		}
}

static void check_sandbox(struct check *c, const struct node *sandbox)
{
	const struct node *excluded = lint_get(sandbox, "excludedCommands");
	const struct node *unsandboxed = lint_get(sandbox, "allowUnsandboxedCommands");
	const struct node *fail = lint_get(sandbox, "failIfUnavailable");
	const struct node *at = lint_key(c, sandbox);

	for (const struct node *i = lint_first(excluded); i; i = lint_next(excluded, i))
		lint_report(c, R_TOOLS_OUTSIDE_SANDBOX, i, "excluded command " SV_FMT,
			    SV_ARG(lint_text(i)));
	if (!lint_false(unsandboxed))
		lint_report(c, R_TOOLS_OUTSIDE_SANDBOX, unsandboxed ? unsandboxed : at,
			    "the agent may ask to run a command outside%s",
			    unsandboxed ? "" : " (the default)");
	if (!lint_true(fail))
		lint_report(c, R_SANDBOX_WEAKENED, fail ? fail : at,
			    "commands run all the same when it cannot start%s",
			    fail ? "" : " (the default)");
	lint_sandbox_weakened(c, sandbox);
}

void lint_claude(struct check *c, const struct node *root)
{
	const struct node *sandbox = lint_get(root, "sandbox"), *env = lint_get(root, "env");
	const struct node *fs = lint_get(sandbox, "filesystem");
	const struct node *enabled = lint_get(sandbox, "enabled");
	const bool on = lint_true(enabled);
	const bool confined = on && lint_false(lint_get(sandbox, "allowUnsandboxedCommands")) &&
			      !lint_first(lint_get(sandbox, "excludedCommands"));

	if (!on)
		lint_found(c, R_SANDBOX_OFF,
			   enabled   ? enabled
			   : sandbox ? lint_key(c, sandbox)
				     : root,
			   SV(""));
	else
		check_sandbox(c, sandbox);
	lint_sandbox_network(c, lint_get(sandbox, "network"));
	lint_sandbox_writes(c, lint_get(fs, "allowWrite"));
	lint_sandbox_reads(c,
			   fs	     ? lint_key(c, fs)
			   : sandbox ? lint_key(c, sandbox)
				     : root,
			   fs, lint_get(sandbox, "credentials"), lint_at(root, "permissions.deny"));
	check_allow(c, lint_get(root, "permissions"), confined);
	check_modes(c, root);
	check_hooks(c, lint_get(root, "hooks"), on);
	lint_command(c, lint_at(root, "statusLine.command"));
	lint_command(c, lint_get(root, "apiKeyHelper"));
	for (const struct node *i = lint_members(env); i; i = i->next)
		lint_env(c, i, i->key, lint_text(i));
}
