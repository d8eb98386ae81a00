#include <string.h>

#include "lint/host_path_priv.h"

#include "base/banned.h"

enum { PATH_BYTES = 1024 };

/* Spellings of the home directory in the supported formats. */
static const char *const homes[] = {
	"${localEnv:HOME}",	   "${env:HOME}",   "${userHome}",    "${HOME}", "$(HOME)", "$HOME",
	"${localEnv:USERPROFILE}", "%USERPROFILE%", "${USERPROFILE}", NULL,
};

static const struct {
	const char *var;
	enum host_path place;
} vars[] = {
	{ "SSH_AUTH_SOCK", HOST_PATH_SESSION },	  { "XAUTHORITY", HOST_PATH_SESSION },
	{ "XDG_RUNTIME_DIR", HOST_PATH_SESSION }, { "DBUS_SESSION_BUS_ADDRESS", HOST_PATH_SESSION },
	{ "WAYLAND_DISPLAY", HOST_PATH_SESSION }, { "GPG_AGENT_INFO", HOST_PATH_SESSION },
	{ "DOCKER_SOCK", HOST_PATH_ENGINE },	  { "DOCKER_HOST", HOST_PATH_ENGINE },
};

/* Directories whose exposure compromises the host. */
static const char *const system_dirs[] = {
	"/etc", "/proc", "/sys", "/dev", "/run", "/var/run", "/var", "/var/lib", "/var/log",
	"/boot", "/usr", "/usr/bin", "/usr/lib", "/usr/local/bin", "/lib", "/lib64", "/bin",
	"/sbin", "/proc/sys", "/proc/1", "/sys/fs", "/sys/kernel", "/sys/kernel/debug",
	"/sys/firmware", "/var/lib/docker", "/var/lib/containerd", "/var/lib/containers",
	"/var/lib/kubelet", "/var/spool/cron", "/etc/kubernetes", "/etc/cron.d", "/etc/systemd",
	"/etc/shadow", "/etc/sudoers", "/etc/sudoers.d", "/etc/ld.so.preload", "/etc/pam.d",
	"/run/systemd", "/private/etc", "/private/var", "/Library", "/System", "C:", "c:", NULL,
};

static const char *const engine_names[] = {
	"docker.sock", "docker_engine", "containerd.sock", "podman.sock", "crio.sock",
	"buildkitd.sock", "cri-dockerd.sock", "dockershim.sock", "libvirt-sock",
	"containerd.sock.ttrpc", NULL,
};

static const char *const engine_paths[] = {
	"/var/run/docker", "/run/docker", "/run/containerd", "/var/run/containerd", "/run/podman",
	"/run/crio", "/var/run/crio", "/run/libvirt", "/var/run/libvirt",
	"/var/lib/lxd/unix.socket", "/var/snap/lxd/common/lxd/unix.socket",
	"/var/lib/incus/unix.socket", "/run/buildkit", NULL,
};

static const char *const session_names[] = {
	"system_bus_socket", "session_bus_socket", ".X11-unix",	  ".Xauthority",
	"ssh-auth.sock",     "ssh-agent.sock",	   "S.gpg-agent", "S.gpg-agent.ssh",
	"wayland-0",	     "wayland-1",	   "keyring",	  NULL,
};

static const char *const session_paths[] = {
	"/run/dbus", "/var/run/dbus", "/run/user", "/run/systemd/private", "/tmp/.X11-unix", NULL,
};

/*
 * Names of credential files, below a home or any other directory; has_credential() compares whole
 * segments.
 */
static const char *const credentials[] = {
	".env", ".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".netrc",
	".git-credentials", ".npmrc", ".pypirc", ".vault-token", ".password-store",
	".config/gcloud", ".config/gh", ".config/op", ".config/hub", ".cargo/credentials",
	".cargo/credentials.toml", ".config/git/credentials", ".gem/credentials",
	".m2/settings.xml", ".oci", ".mozilla", ".terraform.d/credentials.tfrc.json",
	".config/google-chrome", ".config/chromium", ".local/share/keyrings", "Library/Keychains",
	".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", "id_rsa",
	"id_ed25519", ".bitcoin", ".ethereum", ".pgpass", ".my.cnf", ".boto", ".s3cfg",
	".dockercfg", NULL,
};

static const char *const credential_paths[] = {
	"/etc/ssl/private", "/etc/kubernetes/pki", "/run/secrets", "/var/run/secrets",
	"/etc/rancher/k3s/k3s.yaml", "/etc/kubernetes/admin.conf", NULL,
};

/* Is @path a file without secrets in a credential directory: known_hosts or a public key? */
static bool is_public(struct sv path)
{
	return sv_is(lint_base(path), "known_hosts") || lint_ends(path, ".pub");
}

static bool below_any(struct sv path, const char *const *dirs)
{
	for (; *dirs; dirs++)
		if (sv_below(path, sv_from(*dirs)))
			return true;
	return false;
}

bool lint_path_names(struct sv path, const char *const *names)
{
	for (size_t i = 0; i < path.n; i++)
		if ((!i || path.p[i - 1] == '/') && below_any(sv_skip(path, i), names))
			return true;
	return false;
}

static bool has_credential(struct sv path)
{
	return lint_path_names(path, credentials) && !is_public(path);
}

static void put_segment(char out[PATH_BYTES], size_t *n, struct sv seg)
{
	if (!seg.n || sv_is(seg, "."))
		return;
	if (sv_is(seg, "..")) {
		while (*n && out[*n - 1] != '/')
			(*n)--;
		if (*n)
			(*n)--;
		return;
	}
	if (*n + seg.n + 1 >= PATH_BYTES)
		return;
	out[(*n)++] = '/';
	memcpy(out + *n, seg.p, seg.n);
	*n += seg.n;
}

/*
 * Does @path begin with a home directory, such as /home/x, /Users/x or /root? *@ret_rest is the
 * rest of @path.
 */
static bool fold_home(struct sv path, struct sv *ret_rest)
{
	static const char *const parents[] = { "/home", "/Users", "/export/home", NULL };

	if (sv_below(path, sv_from("/root"))) {
		*ret_rest = sv_skip(path, 5);
		return true;
	}
	for (const char *const *p = parents; *p; p++) {
		struct sv rest;
		size_t slash;

		if (!sv_below(path, sv_from(*p)))
			continue;
		rest = sv_skip(path, strlen(*p) + 1);
		slash = sv_find(rest, '/');
		*ret_rest = slash == SIZE_MAX ? SV("") : sv_skip(rest, slash);
		return true;
	}
	return false;
}

static enum host_path classify_home(struct sv rest)
{
	static const char *const broad[] = { "",	 "/.config", "/.local", "/.local/share",
					     "/Library", "/.cache",  NULL };

	if (has_credential(rest))
		return HOST_PATH_CREDENTIAL;
	if (lint_in(lint_base(rest), engine_names))
		return HOST_PATH_ENGINE;
	if (lint_in(lint_base(rest), session_names))
		return HOST_PATH_SESSION;
	return lint_in(rest, broad) ? HOST_PATH_HOME : HOST_PATH_OTHER;
}

static enum host_path classify_absolute(struct sv path)
{
	struct sv home;

	if (!path.n || sv_is(path, "/proc/1/root"))
		return HOST_PATH_ROOT;
	if (lint_in(lint_base(path), engine_names) || below_any(path, engine_paths) ||
	    (sv_below(path, sv_from("/run/user")) && sv_is(lint_base(path), "podman")))
		return HOST_PATH_ENGINE;
	if (lint_in(lint_base(path), session_names) || below_any(path, session_paths))
		return HOST_PATH_SESSION;
	if (below_any(path, credential_paths))
		return HOST_PATH_CREDENTIAL;
	if (fold_home(path, &home))
		return classify_home(home);
	if (lint_in(path, system_dirs) || sv_below(path, sv_from("/var/lib/kubelet")))
		return HOST_PATH_SYSTEM;
	return has_credential(path) ? HOST_PATH_CREDENTIAL : HOST_PATH_OTHER;
}

static enum host_path classify_variable(struct sv path)
{
	for (size_t i = 0; i < ARRAY_LEN(vars); i++) {
		const struct sv v = sv_from(vars[i].var);

		for (size_t j = 1; j + v.n <= path.n && j < 16; j++)
			if (!memcmp(path.p + j, v.p, v.n))
				return vars[i].place;
	}
	return has_credential(path) ? HOST_PATH_CREDENTIAL : HOST_PATH_OTHER;
}

/* Normalises //, . and .. without accessing the file system. */
static struct sv clean(struct sv path, char out[PATH_BYTES])
{
	size_t n = 0;

	while (path.n)
		put_segment(out, &n, sv_cut(&path, '/'));
	return (struct sv){ out, n };
}

/*
 * Returns the normalised part of @path after the home directory. Returns false if @path is not
 * below a home.
 */
static bool home_rest(struct sv path, char room[PATH_BYTES], struct sv *ret_rest)
{
	if (path.n >= PATH_BYTES)
		return false;
	if (path.p[0] == '~' && (path.n == 1 || path.p[1] == '/')) {
		*ret_rest = clean(sv_skip(path, 1), room);
		return true;
	}
	for (const char *const *h = homes; *h; h++)
		if (lint_starts(path, *h) && (path.n == strlen(*h) || path.p[strlen(*h)] == '/')) {
			*ret_rest = clean(sv_skip(path, strlen(*h)), room);
			return true;
		}
	return path.p[0] == '/' && fold_home(clean(path, room), ret_rest);
}

enum host_path lint_host_path(struct sv path)
{
	char room[PATH_BYTES];
	struct sv rest;

	path = sv_trim(path);
	while (lint_starts(path, "${") && lint_default(path).n != path.n)
		path = lint_default(path);
	if (!path.n || path.n >= PATH_BYTES)
		return HOST_PATH_OTHER;
	if (path.p[0] == '/')
		return classify_absolute(clean(path, room));
	if (home_rest(path, room, &rest))
		return classify_home(rest);
	if (path.p[0] == '$')
		return classify_variable(path);
	if (lint_in(path, system_dirs))
		return HOST_PATH_SYSTEM;
	return has_credential(clean(path, room)) ? HOST_PATH_CREDENTIAL : HOST_PATH_OTHER;
}

bool lint_in_home(struct sv path)
{
	char room[PATH_BYTES];
	struct sv rest;

	path = sv_trim(path);
	return path.n && home_rest(path, room, &rest);
}

struct sv lint_unglob(struct sv path)
{
	path = sv_trim(path);
	while (path.n > 1 && (path.p[path.n - 1] == '*' || path.p[path.n - 1] == '/'))
		path.n--;
	return path;
}

bool lint_host_path_covers(struct sv entry, const char *want)
{
	char room[PATH_BYTES];
	struct sv rest, w = sv_from(want);

	entry = lint_unglob(entry);
	if (!entry.n || lint_host_path(entry) == HOST_PATH_ROOT)
		return entry.n > 0;
	if (!home_rest(entry, room, &rest))
		return false;
	if (!rest.n)
		return true;
	return sv_starts(w, rest) && (w.n == rest.n || w.p[rest.n] == '/');
}

bool lint_host_path_check(struct check *c, const struct node *at, struct sv path)
{
	static const enum rule_id by_place[] = {
		[HOST_PATH_ROOT] = R_HOST_ROOT_MOUNT,
		[HOST_PATH_SYSTEM] = R_HOST_SYSTEM_MOUNT,
		[HOST_PATH_ENGINE] = R_DOCKER_SOCKET,
		[HOST_PATH_SESSION] = R_SESSION_SOCKET,
		[HOST_PATH_HOME] = R_HOME_READABLE,
		[HOST_PATH_CREDENTIAL] = R_CREDENTIAL_READABLE,
	};
	const enum host_path p = lint_host_path(path);

	if (p == HOST_PATH_OTHER)
		return false;
	lint_found(c, by_place[p], at, path);
	return true;
}
