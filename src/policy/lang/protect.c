#include "lang/protect.h"

#include "base/banned.h"

/* clang-format off */
const struct protect_name protect_names[] = {
	{ ".git/hooks",            PROTECT_DEPTH, "git runs these" },
	{ ".git/config",           PROTECT_DEPTH, "can name programs git runs" },
	{ ".git/config.worktree",  PROTECT_DEPTH, "can name programs git runs" },
	{ ".git/commondir",        PROTECT_DEPTH, "leads git to the settings of another repository" },
	{ ".git/info/attributes",  PROTECT_DEPTH, "can attach filters that git runs" },
	{ ".git/remotes/*",        PROTECT_DEPTH, "can name programs git runs to reach a remote" },
	{ ".git/branches/*",       PROTECT_DEPTH, "can name programs git runs to reach a remote" },
	{ ".git/modules/**/hooks", PROTECT_DEPTH, "git runs these in a submodule" },
	{ ".git/modules/**/config", PROTECT_DEPTH, "can name programs git runs in a submodule" },
	{ ".git/modules/**/config.worktree", PROTECT_DEPTH, "can name programs git runs in a submodule" },
	{ ".git/modules/**/info/attributes", PROTECT_DEPTH, "can attach filters that git runs" },
	{ ".git/worktrees/*/hooks", PROTECT_DEPTH, "hooks of a linked worktree" },
	{ ".git/worktrees/*/config", PROTECT_DEPTH, "can name programs git runs in a worktree" },
	{ ".git/worktrees/*/config.worktree", PROTECT_DEPTH, "can name programs git runs in a worktree" },
	{ ".git/worktrees/*/info/attributes", PROTECT_DEPTH, "can attach filters that git runs" },
	{ ".gitmodules",           PROTECT_DEPTH, "where submodules are fetched from" },
	{ ".gitattributes",        PROTECT_DEPTH, "can attach filters that git runs" },
	{ ".githooks",             PROTECT_DEPTH, "common core.hooksPath" },
	{ ".husky",                PROTECT_DEPTH, "git hooks of node projects" },
	{ ".pre-commit-config.yaml", PROTECT_DEPTH, "programs run at commit" },
	{ ".claude",               PROTECT_DEPTH, "settings, hooks and skills of Claude Code" },
	{ ".codex",                PROTECT_DEPTH, "settings of Codex" },
	{ ".agents",               PROTECT_DEPTH, "settings of agents" },
	{ ".gemini",               PROTECT_DEPTH, "settings of Gemini CLI" },
	{ ".cursor",               PROTECT_DEPTH, "settings and rules of Cursor" },
	{ ".opencode",             PROTECT_DEPTH, "settings of OpenCode" },
	{ ".continue",             PROTECT_DEPTH, "settings of Continue" },
	{ ".aider.conf.yml",       PROTECT_DEPTH, "settings of aider" },
	{ ".mcp.json",             PROTECT_DEPTH, "programs an MCP client starts" },
	{ ".vscode",               PROTECT_DEPTH, "tasks and settings an editor runs" },
	{ ".idea",                 PROTECT_DEPTH, "run configurations an editor obeys" },
	{ ".zed",                  PROTECT_DEPTH, "tasks and settings an editor runs" },
	{ ".devcontainer",         PROTECT_DEPTH, "commands run when a container is made" },
	{ ".devcontainer.json",    PROTECT_DEPTH, "commands run when a container is made" },
	{ ".envrc",                PROTECT_DEPTH, "direnv runs it" },
	{ ".mise.toml",            PROTECT_DEPTH, "mise runs tasks and sets variables" },
	{ ".tool-versions",        PROTECT_DEPTH, "version managers obey it" },
	{ ".bashrc",               PROTECT_DEPTH, "a shell runs it" },
	{ ".bash_profile",         PROTECT_DEPTH, "a shell runs it" },
	{ ".bash_login",           PROTECT_DEPTH, "a shell runs it" },
	{ ".bash_logout",          PROTECT_DEPTH, "a shell runs it" },
	{ ".profile",              PROTECT_DEPTH, "a shell runs it" },
	{ ".zshrc",                PROTECT_DEPTH, "a shell runs it" },
	{ ".zshenv",               PROTECT_DEPTH, "a shell runs it" },
	{ ".zprofile",             PROTECT_DEPTH, "a shell runs it" },
	{ ".zlogin",               PROTECT_DEPTH, "a shell runs it" },
	{ ".config/fish",          PROTECT_DEPTH, "a shell runs it" },
	{ ".inputrc",              PROTECT_DEPTH, "can bind keys to commands" },
	{ ".vimrc",                PROTECT_DEPTH, "an editor runs it" },
	{ ".exrc",                 PROTECT_DEPTH, "an editor runs it" },
	{ ".nvim.lua",             PROTECT_DEPTH, "an editor runs it" },
	{ ".gdbinit",              PROTECT_DEPTH, "a debugger runs it" },
	{ ".lldbinit",             PROTECT_DEPTH, "a debugger runs it" },
	{ ".npmrc",                PROTECT_DEPTH, "can name programs and registries" },
	{ ".yarnrc.yml",           PROTECT_DEPTH, "can name the yarn that runs" },
	{ ".gitconfig",            PROTECT_DEPTH, "can name programs git runs" },
	{ ".config/git",           PROTECT_DEPTH, "can name programs git runs" },
	{ ".config/systemd",       PROTECT_DEPTH, "units started at login" },
	{ ".config/autostart",     PROTECT_DEPTH, "programs started at login" },
	{ ".config/writ",          PROTECT_DEPTH, "policies of writ itself" },
	{ ".local/state/writ",     PROTECT_DEPTH, "state of writ itself" },
	{ ".ssh",                  PROTECT_DEPTH, "keys, and who may log in" },
	{ ".vim",                  PROTECT_DEPTH, "an editor runs it" },
	{ ".nvimrc",               PROTECT_DEPTH, "an editor runs it" },
	{ ".gvimrc",               PROTECT_DEPTH, "an editor runs it" },
	{ ".emacs",                PROTECT_DEPTH, "an editor runs it" },
	{ ".dir-locals.el",        PROTECT_DEPTH, "an editor evaluates it" },
	{ ".config/nvim",          PROTECT_DEPTH, "an editor runs it" },
	{ ".config/mise",          PROTECT_DEPTH, "mise runs tasks and sets variables" },
	{ ".cargo/config.toml",    PROTECT_DEPTH, "can name programs cargo runs" },
	{ ".cargo/config",         PROTECT_DEPTH, "can name programs cargo runs" },
	{ ".hg/hgrc",              PROTECT_DEPTH, "can name programs hg runs" },
	{ ".hg/sharedpath",        PROTECT_DEPTH, "leads hg to the settings of another repository" },
	{ ".hg/requires",          PROTECT_DEPTH, "leads hg to the settings of another repository" },
	{ ".bash_aliases",         PROTECT_DEPTH, "a shell runs it" },
	{ ".zlogout",              PROTECT_DEPTH, "a shell runs it" },
	{ ".yarnrc",               PROTECT_DEPTH, "can name the yarn that runs" },
	{ ".tmux.conf",            PROTECT_DEPTH, "tmux runs it" },
	{ ".ghci",                 PROTECT_DEPTH, "an interpreter runs it" },
	{ ".pdbrc",                PROTECT_DEPTH, "a debugger runs it" },
	{ ".lesskey",              PROTECT_DEPTH, "can bind keys to commands" },
	{ "mise.toml",             PROTECT_TOP,   "mise runs tasks and sets variables" },
	{ "opencode.json",         PROTECT_TOP,   "settings of OpenCode" },
	{ ".emacs.d",              PROTECT_DEPTH, "an editor runs it" },
	{ ".sl/config",            PROTECT_DEPTH, "can name programs sl runs" },
	{ ".sl/sharedpath",        PROTECT_DEPTH, "leads sl to the settings of another repository" },
	{ ".sl/requires",          PROTECT_DEPTH, "leads sl to the settings of another repository" },
	{ ".jj/repo/config.toml",  PROTECT_DEPTH, "can name programs jj runs" },
	{ ".jj/workspace-config.toml", PROTECT_DEPTH, "can name programs jj runs" },
	{ ".git/lazygit.yml",      PROTECT_DEPTH, "commands lazygit runs" },
	{ ".lazygit.yml",          PROTECT_DEPTH, "commands lazygit runs" },
	{ ".lefthook.yml",         PROTECT_DEPTH, "programs run at commit" },
	{ ".lefthook-local.yml",   PROTECT_DEPTH, "programs run at commit" },
	{ "lefthook.yml",          PROTECT_TOP,   "programs run at commit" },
	{ "lefthook-local.yml",    PROTECT_TOP,   "programs run at commit" },
	{ ".overcommit.yml",       PROTECT_DEPTH, "programs run at commit" },
	{ ".windsurf",             PROTECT_DEPTH, "settings and hooks of Windsurf" },
	{ ".roo",                  PROTECT_DEPTH, "settings of Roo Code" },
	{ ".clinerules",           PROTECT_DEPTH, "rules and hooks of Cline" },
	{ ".kiro",                 PROTECT_DEPTH, "settings and hooks of Kiro" },
	{ ".amazonq",              PROTECT_DEPTH, "settings of Amazon Q" },
	{ ".qwen",                 PROTECT_DEPTH, "settings of Qwen Code" },
	{ ".factory",              PROTECT_DEPTH, "settings and hooks of Factory" },
	{ ".crush.json",           PROTECT_DEPTH, "settings of Crush" },
	{ "crush.json",            PROTECT_TOP,   "settings of Crush" },
	{ "opencode.jsonc",        PROTECT_TOP,   "settings of OpenCode" },
	{ ".github/hooks",         PROTECT_DEPTH, "hooks of Copilot" },
	{ ".mise",                 PROTECT_DEPTH, "mise runs tasks and sets variables" },
	{ ".mise.local.toml",      PROTECT_DEPTH, "mise runs tasks and sets variables" },
	{ ".config/mise.toml",     PROTECT_DEPTH, "mise runs tasks and sets variables" },
	{ "mise.local.toml",       PROTECT_TOP,   "mise runs tasks and sets variables" },
	{ ".config/direnv",        PROTECT_DEPTH, "direnv runs it" },
	{ ".dir-locals-2.el",      PROTECT_DEPTH, "an editor evaluates it" },
	{ ".helix",                PROTECT_DEPTH, "names programs an editor runs" },
	{ ".config/helix",         PROTECT_DEPTH, "names programs an editor runs" },
	{ ".config/zed",           PROTECT_DEPTH, "tasks and settings an editor runs" },
	{ ".lvimrc",               PROTECT_DEPTH, "an editor runs it" },
	{ ".Rprofile",             PROTECT_DEPTH, "an interpreter runs it" },
	{ ".ocamlinit",            PROTECT_DEPTH, "an interpreter runs it" },
	{ ".iex.exs",              PROTECT_DEPTH, "an interpreter runs it" },
	{ ".irbrc",                PROTECT_DEPTH, "an interpreter runs it" },
	{ ".pryrc",                PROTECT_DEPTH, "an interpreter runs it" },
	{ ".octaverc",             PROTECT_DEPTH, "an interpreter runs it" },
	{ ".erlang",               PROTECT_DEPTH, "an interpreter runs it" },
	{ ".cshrc",                PROTECT_DEPTH, "a shell runs it" },
	{ ".tcshrc",               PROTECT_DEPTH, "a shell runs it" },
	{ ".kshrc",                PROTECT_DEPTH, "a shell runs it" },
	{ ".login",                PROTECT_DEPTH, "a shell runs it" },
	{ ".config/nushell",       PROTECT_DEPTH, "a shell runs it" },
	{ ".screenrc",             PROTECT_DEPTH, "screen runs it" },
	{ ".config/tmux",          PROTECT_DEPTH, "tmux runs it" },
	{ ".xprofile",             PROTECT_DEPTH, "run at login" },
	{ ".pam_environment",      PROTECT_DEPTH, "sets variables at login" },
	{ ".config/environment.d", PROTECT_DEPTH, "sets variables at login" },
	{ ".config/hypr",          PROTECT_DEPTH, "programs a desktop starts" },
	{ ".config/sway",          PROTECT_DEPTH, "programs a desktop starts" },
	{ ".config/i3",            PROTECT_DEPTH, "programs a desktop starts" },
	{ ".local/share/applications", PROTECT_DEPTH, "programs a desktop starts" },
	{ ".local/bin",            PROTECT_DEPTH, "programs found by their name" },
	{ ".bazelrc",              PROTECT_TOP,   "can name programs bazel runs" },
	{ ".mvn/extensions.xml",   PROTECT_TOP,   "code that mvn loads" },
	{ ".mvn/jvm.config",       PROTECT_TOP,   "can name code that mvn loads" },
	{ "rust-toolchain.toml",   PROTECT_TOP,   "can name the cargo that runs" },
	{ "rust-toolchain",        PROTECT_TOP,   "can name the cargo that runs" },
	{ ".pylintrc",             PROTECT_TOP,   "pylint runs its init-hook" },
	{ "agent.writ",            PROTECT_TOP,   "the workspace's own policy" },
	{ NULL, PROTECT_DEPTH, NULL },
};

const struct protect_socket protect_sockets[] = {
	{ "/run/docker.sock",                 "a container engine is root on this machine" },
	{ "/var/run/docker.sock",             "a container engine is root on this machine" },
	{ "/run/user/*/docker.sock",          "a container engine runs anything as you" },
	{ "/run/podman/podman.sock",          "a container engine is root on this machine" },
	{ "/run/user/*/podman/podman.sock",   "a container engine runs anything as you" },
	{ "/run/containerd/containerd.sock",  "a container engine is root on this machine" },
	{ "/run/crio/crio.sock",              "a container engine is root on this machine" },
	{ "/run/buildkit/buildkitd.sock",     "a container builder is root on this machine" },
	{ "/run/k3s/containerd/containerd.sock", "a container engine is root on this machine" },
	{ "/run/libvirt/libvirt-sock",        "a virtual machine manager opens any disk" },
	{ "/run/dbus/system_bus_socket",      "services on the bus act for their callers" },
	{ "/var/run/dbus/system_bus_socket",  "services on the bus act for their callers" },
	{ "/run/user/*/bus",                  "systemd on the bus starts programs as you" },
	{ "/run/user/*/systemd/private",      "systemd starts programs as you" },
	{ "/run/systemd/private",             "systemd starts programs as root" },
	{ "/run/user/*/wayland-*",            "the display shows and types everything" },
	{ "/tmp/.X11-unix/*",                 "the display shows and types everything" },
	{ "/tmp/ssh-*/agent.*",               "signs with your keys" },
	{ "/run/user/*/ssh-agent.socket",     "signs with your keys" },
	{ "/run/user/*/openssh_agent",        "signs with your keys" },
	{ "/tmp/tmux-*/*",                    "types into your terminals" },
	{ "/run/user/*/gnupg/*",              "signs and decrypts with your keys" },
	{ "/run/user/*/keyring/*",            "holds your passwords and keys" },
	{ "/run/WSL/*",                       "starts programs on Windows" },
	{ NULL, NULL },
};
/* clang-format on */

const struct protect_name *protect_find(struct sv name)
{
	for (const struct protect_name *n = protect_names; n->name; n++)
		if (sv_is(name, n->name))
			return n;
	return NULL;
}

bool protect_star(struct sv pattern, struct sv seg)
{
	const size_t star = sv_find(pattern, '*');

	if (star == SIZE_MAX)
		return sv_eq(pattern, seg);
	return seg.n + 1 >= pattern.n && sv_starts(seg, sv_sub(pattern, 0, star)) &&
	       sv_ends(seg, sv_skip(pattern, star + 1));
}

/* --- Protected names in a path --- */

/*
 * Could a case-insensitive directory treat the name @s as @p?
 * SECURITY: answers yes in doubt. Some characters beyond ASCII fold to ASCII and others are
 * ignored, so each such character may represent one byte of @p or none.
 */
static bool folds_to(struct sv p, struct sv s)
{
	/*
	 * Bit i of @at is set if the part of @s read so far may represent the first i bytes of @p.
	 */
	uint64_t at = 1;

	if (p.n >= 64)
		return true;
	while (s.n && at) {
		if ((unsigned char)s.p[0] >= 0x80) {
			do
				s = sv_skip(s, 1);
			while (s.n && ((unsigned char)s.p[0] & 0xc0) == 0x80);
			at |= at << 1;
		} else {
			uint64_t next = 0;

			for (size_t i = 0; i < p.n; i++)
				if (at >> i & 1 && sv_lower(p.p[i]) == sv_lower(s.p[0]))
					next |= UINT64_C(2) << i;
			at = next;
			s = sv_skip(s, 1);
		}
		at &= (UINT64_C(2) << p.n) - 1;
	}
	return at >> p.n & 1;
}

static bool is_hex(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if (sv_hex(s.p[i]) < 0)
			return false;
	return true;
}

/* Is @s an 8.3 name for @p? FAT volumes store ".git" as "GIT~1". */
static bool is_short_for(struct sv p, struct sv s)
{
	const size_t tilde = sv_find(s, '~');
	const struct sv head = sv_sub(s, 0, tilde);

	if (tilde == SIZE_MAX || tilde + 1 >= s.n || s.p[tilde + 1] < '0' || s.p[tilde + 1] > '9')
		return false;
	while (p.n && p.p[0] == '.')
		p = sv_skip(p, 1);
	/* After several similar names, FAT uses two letters and a hash: "GI1A2B~1". */
	return (head.n > 0 && folds_to(sv_sub(p, 0, head.n), head)) ||
	       (head.n == 6 && is_hex(sv_skip(head, 2)) &&
		folds_to(sv_sub(p, 0, 2), sv_sub(head, 0, 2)));
}

static bool name_matches(struct sv p, struct sv s, bool fold)
{
	if (sv_is(p, "*") || sv_eq(p, s))
		return true;
	if (!fold)
		return false;
	if (is_short_for(p, s))
		return true;
	while (s.n > 1 && (s.p[s.n - 1] == '.' || s.p[s.n - 1] == ' '))
		s = sv_sub(s, 0, s.n - 1);
	return folds_to(p, s);
}

static enum protect_rel match_here(struct sv pat, struct sv path, bool fold)
{
	while (pat.n) {
		const struct sv p = sv_cut(&pat, '/');
		enum protect_rel best = PROTECT_ABOVE;

		if (path.n == 0)
			return PROTECT_ABOVE;
		if (!sv_is(p, "**")) {
			if (!name_matches(p, sv_cut(&path, '/'), fold))
				return PROTECT_CLEAR;
			continue;
		}
		while (path.n) {
			enum protect_rel rel;

			(void)sv_cut(&path, '/');
			rel = match_here(pat, path, fold);
			if (rel > best)
				best = rel;
		}
		return best;
	}
	return path.n ? PROTECT_BELOW : PROTECT_AT;
}

static bool is_lifted(const struct protect_name *n, const struct sv *opens, size_t opens_n)
{
	for (size_t i = 0; i < opens_n; i++)
		if (sv_is(opens[i], n->name))
			return true;
	return false;
}

static void match_at(struct sv path, bool top, bool fold, const struct protect_open *open,
		     struct protect_hit *hit)
{
	struct sv rest = path;
	const struct sv name = sv_cut(&rest, '/');
	/* A short name or a non-ASCII first character may represent any name. */
	const bool any =
		fold && ((unsigned char)path.p[0] >= 0x80 || sv_find(name, '~') != SIZE_MAX);

	/* All names of PROTECT_DEPTH begin with a dot. */
	if (!top && !any && path.p[0] != '.')
		return;
	for (const struct protect_name *n = protect_names; n->name; n++) {
		enum protect_rel rel;

		if ((n->where == PROTECT_TOP && !top) ||
		    (!any && sv_lower(n->name[0]) != sv_lower(path.p[0])))
			continue;
		rel = match_here(sv_from(n->name), path, fold);
		if (rel > hit->rel && !is_lifted(n, open->v, open->n))
			*hit = (struct protect_hit){ rel, n };
	}
}

struct protect_hit protect_match(struct sv path, bool fold, const struct protect_open *open)
{
	struct protect_hit hit = { PROTECT_CLEAR, NULL };
	bool top = true;

	while (path.n) {
		match_at(path, top, fold, open, &hit);
		(void)sv_cut(&path, '/');
		top = false;
	}
	return hit;
}

bool protect_may_fold(struct sv path)
{
	for (size_t i = 0; i < path.n; i++) {
		const unsigned char c = (unsigned char)path.p[i];
		const bool end = i + 1 == path.n || path.p[i + 1] == '/';

		if ((c >= 'A' && c <= 'Z') || c >= 0x80 || c == '~' ||
		    (end && (c == '.' || c == ' ')))
			return true;
	}
	return false;
}

const struct protect_socket *protect_socket_find(struct sv path)
{
	for (const struct protect_socket *s = protect_sockets; s->pattern; s++) {
		struct sv pattern = sv_from(s->pattern);
		struct sv rest = path;
		bool same = true;

		while (same && (pattern.n || rest.n))
			same = protect_star(sv_cut(&pattern, '/'), sv_cut(&rest, '/'));
		if (same)
			return s;
	}
	return NULL;
}
