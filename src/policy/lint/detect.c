#include <string.h>

#include "lint/check_priv.h"

#include "base/banned.h"

/* Returns the position after the string or comment at @i, or @i if neither starts at @i. */
static size_t skip_string_or_comment(struct sv t, size_t i)
{
	const size_t n = t.p[i] == '"' ? lint_json_string(t, i) : lint_json_comment(t, i);

	return n == SIZE_MAX ? t.n : i + n;
}

/*
 * Does the outermost JSON object in @t have the key @key? An approximation that suffices for
 * detection.
 */
static bool has_member(struct sv t, const char *key)
{
	const size_t n = strlen(key);
	size_t depth = 0, i = 0;

	while (i < t.n) {
		const size_t end = skip_string_or_comment(t, i);
		size_t j = end;

		if (end == i) {
			depth += t.p[i] == '{' || t.p[i] == '[';
			depth -= depth && (t.p[i] == '}' || t.p[i] == ']');
			i++;
			continue;
		}
		while (j < t.n && strchr(" \t\r\n", t.p[j]))
			j++;
		if (depth == 1 && t.p[i] == '"' && j < t.n && t.p[j] == ':' && end - i == n + 2 &&
		    !memcmp(t.p + i + 1, key, n))
			return true;
		i = end;
	}
	return false;
}

/* Does an unindented line of @t start with the key @key? */
static bool has_line(struct sv t, const char *key)
{
	while (t.n) {
		struct sv line = sv_cut(&t, '\n');

		if (lint_starts(line, key) && line.n > strlen(key) && line.p[strlen(key)] == ':')
			return true;
	}
	return false;
}

static enum lint_format detect_json(struct sv t)
{
	static const char *const mcp[] = { "mcpServers", "servers", "context_servers", NULL };
	static const char *const claude[] = {
		"permissions", "sandbox", "hooks", "statusLine", "env",
		"enableAllProjectMcpServers", "apiKeyHelper", "enabledMcpjsonServers", NULL,
	};
	static const char *const dev[] = {
		"image", "build", "dockerComposeFile", "features", "runArgs", "remoteUser",
		"postCreateCommand", "workspaceMount", "initializeCommand", "containerEnv",
		"mounts", NULL,
	};
	static const char *const srt[] = { "network", "filesystem", NULL };

	if (has_member(t, "apiVersion") && has_member(t, "kind"))
		return LINT_KUBE;
	if (lint_any(t, claude, has_member) && !lint_any(t, dev, has_member) &&
	    !has_member(t, "mcpServers"))
		return LINT_CLAUDE;
	if (lint_any(t, mcp, has_member))
		return LINT_MCP;
	if (has_member(t, "services"))
		return LINT_COMPOSE;
	if (lint_any(t, dev, has_member))
		return LINT_DEVCONTAINER;
	return lint_any(t, srt, has_member) ? LINT_SRT : LINT_UNKNOWN;
}

static enum lint_format detect_yaml(struct sv t)
{
	if (has_line(t, "apiVersion") || has_line(t, "kind"))
		return LINT_KUBE;
	return has_line(t, "services") ? LINT_COMPOSE : LINT_UNKNOWN;
}

static enum lint_format detect_name(struct sv base)
{
	static const char *const mcp[] = {
		".mcp.json", "mcp.json", "claude_desktop_config.json", "mcp_config.json",
		"managed-mcp.json", ".claude.json", NULL,
	};

	if (lint_eq(base, "dockerfile") || lint_eq(base, "containerfile") ||
	    lint_eq(sv_sub(base, 0, 11), "dockerfile.") || lint_ends(base, ".dockerfile") ||
	    lint_ends(base, ".Dockerfile"))
		return LINT_DOCKERFILE;
	if (lint_eq(base, "devcontainer.json") || lint_eq(base, ".devcontainer.json"))
		return LINT_DEVCONTAINER;
	if (lint_in(base, mcp) || lint_ends(base, "mcp_settings.json"))
		return LINT_MCP;
	if (lint_has(base, "srt-settings") || lint_has(base, "srt.settings"))
		return LINT_SRT;
	if (lint_eq(base, "settings.local.json") || lint_eq(base, "managed-settings.json"))
		return LINT_CLAUDE;
	if ((lint_starts(base, "docker-compose") || lint_starts(base, "compose") ||
	     lint_starts(base, "podman-compose")) &&
	    (lint_ends(base, ".yml") || lint_ends(base, ".yaml")))
		return LINT_COMPOSE;
	return LINT_UNKNOWN;
}

/*
 * Is @base the file name of a shell script, makefile, unit file or prose, which may contain command
 * lines?
 */
static bool is_text_name(struct sv base)
{
	static const char *const ends[] = { ".sh", ".bash",    ".zsh",	".txt",	    ".md",
					    ".mk", ".service", ".make", ".command", NULL };
	static const char *const names[] = { "makefile", "gnumakefile", "justfile", NULL };

	return lint_any(base, ends, lint_ends) || lint_any(base, names, lint_eq);
}

enum lint_format lint_detect(struct sv name, struct sv text)
{
	const struct sv base = lint_base(name), start = sv_trim(text);
	enum lint_format f = detect_name(base);
	size_t i = 0;

	if (f != LINT_UNKNOWN)
		return f;
	if (is_text_name(base))
		return LINT_DOCKER;
	while (i < start.n && strchr(" \t\r\n", start.p[i]))
		i++;
	if (i < start.n && (start.p[i] == '{' || start.p[i] == '/' || lint_ends(base, ".json") ||
			    lint_ends(base, ".jsonc")))
		f = detect_json(text);
	if (f == LINT_UNKNOWN)
		f = detect_yaml(text);
	if (f == LINT_UNKNOWN && lint_starts(start, "#!"))
		f = LINT_DOCKER;
	return f;
}
