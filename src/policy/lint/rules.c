#include "lint/check_priv.h"

#include "base/banned.h"

/* Ids of the rules in this file are W1xx; the rules for policies in policy.c are W2xx. */
#define G(x) (1u << G_##x)
#define G_FILES (G(FS_READ) | G(FS_WRITE))
#define G_HOST ((1u << G_COUNT) - 1) /* all guarantees: access equals control over the host */
#define G_LIMITS (G(RES_MEMORY) | G(RES_CPU) | G(RES_PIDS))

/* clang-format off */
/*
 * Each row begins with the formats in which its rule can occur: one x or dot for docker, compose,
 * devcontainer, dockerfile, kube, claude, srt and mcp, in the order of enum lint_format.
 */
static const struct {
	char applies[LINT_FORMAT_COUNT];
	struct lint_rule rule;
} rules[] = {
[R_PRIVILEGED] = { "xxxxx..x", { "W101", "privileged", LINT_ERROR, G_HOST,
	"The container runs privileged",
	"A privileged container has every capability, every device and no seccomp or AppArmor filter; root inside can mount the host's disk.",
	"Remove `privileged` and grant the one device or capability that is missing; for builds inside, use a rootless builder." } },
[R_HOST_ROOT_MOUNT] = { "xxx.x..x", { "W102", "host-root-mount", LINT_ERROR, G_FILES | G(CRED),
	"The host's root directory is mounted",
	"Everything on the host is readable, and writable unless mounted read-only: keys, cron jobs, the engine's own configuration.",
	"Mount only the project directory, for example `-v \"$PWD\":/workspace`." } },
[R_HOST_SYSTEM_MOUNT] = { "xxx.x..x", { "W103", "host-system-mount", LINT_ERROR, G_FILES | G(PROC_SEE) | G(CRED),
	"A system directory of the host is mounted whole",
	"/etc, /proc, /sys, /dev, /run and engine state hold credentials, control sockets and kernel switches that lead out of the container.",
	"Mount the single file that is needed, read-only, or copy it into the image." } },
[R_DOCKER_SOCKET] = { "xxx.xxxx", { "W104", "docker-socket", LINT_ERROR, G_HOST,
	"The container engine's control socket is reachable",
	"Whoever can talk to the engine can start a privileged container that mounts the "
	"host's root: this is root on the host, also when the socket is mounted read-only.",
	"Remove the socket. For tests that need containers use a rootless engine inside a VM, or a filtering proxy that allows only the calls you need." } },
[R_SESSION_SOCKET] = { "xxx.xxx.", { "W105", "session-socket", LINT_WARNING, G(IPC) | G(CRED),
	"A socket of the login session is reachable",
	"ssh-agent signs with your keys, D-Bus starts programs outside the sandbox, and X11 reads every keystroke.",
	"Remove the socket; use a deploy key for one repository, or a headless display inside the container." } },
[R_ANY_UNIX_SOCKET] = { ".....xx.", { "W106", "any-unix-socket", LINT_WARNING, G(IPC) | G(CRED),
	"The sandbox may connect to every Unix socket",
	"The list of sockets includes the container engine, D-Bus and ssh-agent, each of which acts outside the sandbox.",
	"Set `allowAllUnixSockets` to false and name the sockets that are needed." } },
[R_HOST_NETWORK] = { "xxxxx..x", { "W107", "host-network", LINT_ERROR, G(NET) | G(DNS) | G(IPC),
	"The host's network namespace is shared",
	"The container reaches every service on the host's loopback and every abstract Unix socket, and no egress rule on the container network applies.",
	"Use the default or an internal network and publish the ports that are needed." } },
[R_HOST_PID] = { "xxx.x..x", { "W108", "host-pid", LINT_ERROR, G(PROC_SEE) | G(PROC_SIGNAL) | G(CRED),
	"The host's process namespace is shared",
	"Host processes can be seen and signalled; their environment, open files and root directory are under /proc/PID.",
	"Remove the setting; a container has its own process namespace by default." } },
[R_HOST_IPC] = { "xxx.x...", { "W109", "host-ipc", LINT_WARNING, G(IPC),
	"The host's IPC namespace is shared",
	"Shared memory and semaphores of host programs, such as databases and browsers, can be read and changed.",
	"Remove the setting; raise `shm_size` if shared memory is too small." } },
[R_HOST_UTS] = { "xxx.....", { "W110", "host-uts", LINT_WARNING, G(SYSCALL),
	"The host's UTS namespace is shared",
	"The container can rename the host, and needs it for nothing else.",
	"Remove the setting and use `hostname` to name the container." } },
[R_HOST_USERNS] = { "xxx.x...", { "W111", "host-userns", LINT_WARNING, G_FILES,
	"User namespace remapping is switched off",
	"Root in the container is then root on the host for every file and kernel interface it reaches.",
	"Remove the setting (`userns=host`, `hostUsers: true`), or set `hostUsers: false`." } },
[R_HOST_CGROUP] = { "xxx.....", { "W112", "host-cgroup", LINT_WARNING, G_LIMITS,
	"The host's cgroup namespace is shared",
	"The container sees the host's cgroup tree; with a writable mount it can lift its own limits.",
	"Use a private cgroup namespace, the default on cgroup v2." } },
[R_ESCAPE_CAPABILITY] = { "xxx.x..x", { "W113", "escape-capability", LINT_ERROR, G_HOST,
	"A capability that leads out of the container is added",
	"With one of these root inside can mount filesystems, load modules, read any file or trace processes: a documented way out.",
	"Drop it (`cap_drop: [ALL]`) and add back only what fails without it." } },
[R_RISKY_CAPABILITY] = { "xxx.x...", { "W114", "risky-capability", LINT_WARNING, G(NET) | G(SYSCALL),
	"A capability that widens the attack surface is added",
	"It lets code inside change the network, forge packets, make device nodes or reach rarely tested kernel code, including the firewall meant to confine it.",
	"Set up the network from outside (a sidecar or init step that exits) and drop the capability for the agent." } },
[R_SECCOMP_UNCONFINED] = { "xxx.x..x", { "W115", "seccomp-unconfined", LINT_ERROR, G(SYSCALL),
	"The system call filter is switched off",
	"The default filter keeps out the calls behind many kernel escapes, among them mount, keyctl and unprivileged user namespaces.",
	"Remove the option, or pass a profile that adds only the calls you need." } },
[R_MAC_UNCONFINED] = { "xxx.x...", { "W116", "mac-unconfined", LINT_WARNING, G_FILES | G(SYSCALL),
	"AppArmor or SELinux confinement is switched off",
	"The default profile stops writes to /proc and /sys and access to files of other containers, a second line behind namespaces.",
	"Remove the option; relabel the one mount that needs it (`:z`) instead." } },
[R_UNMASKED_PATHS] = { "xxx.x...", { "W117", "unmasked-paths", LINT_ERROR, G_FILES | G(SYSCALL),
	"Masked kernel paths are uncovered",
	"/proc/sys, /proc/sysrq-trigger, /proc/kcore and parts of /sys change or leak host state and are hidden for that reason.",
	"Remove `systempaths=unconfined`, `unmask` or `procMount: Unmasked`." } },
[R_NEW_PRIVILEGES] = { "xxx.x...", { "W118", "new-privileges", LINT_WARNING, G(EXEC) | G(SYSCALL),
	"Programs may gain privileges",
	"A set-user-ID program in the image turns an unprivileged agent into root of the container.",
	"docker: `--security-opt no-new-privileges`; Compose: `security_opt: [no-new-privileges:true]`; Kubernetes: `allowPrivilegeEscalation: false`." } },
[R_HOST_DEVICE] = { "xxx.....", { "W119", "host-device", LINT_WARNING, G_FILES | G(SYSCALL),
	"A powerful device of the host is passed through",
	"Disks, memory, loop and control devices reach past every file rule of the container.",
	"Pass the one harmless device that is needed, or mount the data instead of the disk." } },
[R_HOST_PATH] = { "....x...", { "W120", "host-path", LINT_WARNING, G_FILES,
	"A path of the node is mounted",
	"A hostPath ties the pod to the node's files, survives it, and is shared with every other pod that names it.",
	"Use an emptyDir, a claim per agent, or a projected volume." } },
[R_NO_SECCOMP_PROFILE] = { "....x...", { "W121", "no-seccomp-profile", LINT_WARNING, G(SYSCALL),
	"No system call filter is asked for",
	"Kubernetes runs containers without seccomp unless the pod or the kubelet says otherwise.",
	"Add `securityContext: {seccompProfile: {type: RuntimeDefault}}` to the pod." } },
[R_RUNS_AS_ROOT] = { "xxxxx...", { "W131", "runs-as-root", LINT_INFO, G_FILES | G(SYSCALL),
	"The container may run as root",
	"Root inside owns every file of the image and is where most escapes start.",
	"Set a numeric user: `USER 1000`, `user: \"1000:1000\"`, `runAsNonRoot: true`." } },
[R_SHARED_CONTAINER] = { "xx......", { "W132", "shared-container", LINT_WARNING, G_FILES | G(CRED),
	"One long-lived container with a writable workspace serves everyone",
	"What one session writes, caches or logs in to is there for the next user's agent.",
	"Start a container per session (`--rm`, no fixed name) with its own workspace." } },
[R_SHARED_WORKSPACE] = { ".x..x...", { "W133", "shared-workspace", LINT_WARNING, G_FILES | G(AUDIT),
	"Several agents write the same workspace",
	"An agent that was taken over plants files that the others read and run; no record can tell who wrote what.",
	"Give each agent its own volume (a claim template, ReadWriteOnce) and hand results over read-only." } },
[R_SHARED_PROCESSES] = { "xxx.x...", { "W134", "shared-processes", LINT_WARNING,
	G(PROC_SEE) | G(PROC_SIGNAL) | G(CRED),
	"Containers share one process namespace",
	"The agent sees the other container's processes, their environment and, as the same user, their memory and files.",
	"Remove the shared namespace; talk over a socket or a volume." } },
[R_SERVICE_ACCOUNT_TOKEN] = { "....x...", { "W135", "service-account-token", LINT_WARNING, G(CRED) | G(NET),
	"A service account token is mounted into the pod",
	"Code in the pod can use the cluster's API with that identity.",
	"Set `automountServiceAccountToken: false` in the pod spec." } },
[R_EXFILTRATION_HOST] = { "xxxxxxxx", { "W141", "exfiltration-host", LINT_WARNING, G(NET) | G(CRED),
	"The allowlist includes a host where anyone can publish",
	"Paste sites, webhooks, tunnels, wikis and shared storage accept data from anybody, so allowing one is allowing exfiltration.",
	"Remove the host, or allow one path or one bucket through a proxy that checks method and path." } },
[R_WILDCARD_EGRESS] = { "xxxxxxx.", { "W142", "wildcard-egress", LINT_ERROR, G(NET) | G(DNS) | G(CRED),
	"Egress is allowed to everywhere",
	"An agent that reads untrusted text can be told to send what it sees to any host.",
	"List the hosts that are needed, one by one." } },
[R_OPEN_EGRESS] = { "xxx.x...", { "W143", "open-egress", LINT_INFO, G(NET) | G(DNS),
	"Nothing here limits egress",
	"The default container network reaches the whole internet and the local network.",
	"Use no network or an internal one with an allowlisting proxy; in Kubernetes add a NetworkPolicy with egress rules." } },
[R_UNRESTRICTED_EXEC] = { ".....x.x", { "W151", "unrestricted-exec", LINT_ERROR,
	G(EXEC) | G_FILES | G(NET) | G(CRED),
	"Any command may run without a sandbox",
	"An unrestricted shell tool does whatever the text in front of the model says, with your files and your network.",
	"Allow single commands, or run the tool in a sandbox that fails closed." } },
[R_APPROVALS_BYPASSED] = { "xxxxxx.x", { "W152", "approvals-bypassed", LINT_WARNING, G(EXEC) | G(AUDIT),
	"Approvals are switched off",
	"Nobody sees a dangerous command before it runs; what is left is the sandbox around it, if there is one.",
	"Remove the flag, or keep it only inside a boundary without credentials and with an egress allowlist." } },
[R_TOOLS_OUTSIDE_SANDBOX] = { ".xx..x..", { "W153", "tools-outside-sandbox", LINT_WARNING,
	G_HOST & ~(G(AUDIT) | G(RES_OUTPUT)),
	"The agent is confined but something it uses is not",
	"Whatever runs outside the boundary at the agent's request is the way around it.",
	"Confine the tool as well: no excluded commands, `allowUnsandboxedCommands: false`, hooks and tool services under their own policy." } },
[R_SANDBOX_OFF] = { ".....x..", { "W154", "sandbox-off", LINT_WARNING, G_FILES | G(NET) | G(EXEC),
	"The sandbox is not switched on",
	"Without it permission rules are matched against command text only, which a script or an interpreter gets around.",
	"Set `sandbox.enabled` and `sandbox.failIfUnavailable` to true." } },
[R_SANDBOX_WEAKENED] = { ".....xx.", { "W155", "sandbox-weakened", LINT_WARNING, G_FILES | G(NET) | G(SYSCALL),
	"A setting makes the sandbox weaker than it looks",
	"The sandbox starts with less than its name says, or not at all, and the agent runs all the same.",
	"Remove the weaker mode; set `failIfUnavailable` to true so that a missing sandbox stops the run." } },
[R_AUTO_TRUSTED_MCP] = { ".....x..", { "W156", "auto-trusted-mcp", LINT_WARNING, G(EXEC) | G(CRED),
	"Servers named by the project are started without asking",
	"A cloned repository, or an agent that edits .mcp.json, decides which programs run on your machine.",
	"Set `enableAllProjectMcpServers` to false and list trusted servers in `enabledMcpjsonServers`." } },
[R_CONFIG_WRITABLE] = { "xxx..xx.", { "W157", "config-writable", LINT_ERROR, G(FS_WRITE) | G(EXEC) | G(AUDIT),
	"The agent may write files that decide what runs next time",
	"Hooks, shell start-up files, editor tasks and agent settings are executed outside the sandbox on the next run.",
	"Allow writing the workspace only, deny or leave out these files; mount what must be seen read-only." } },
[R_UNCONFINED_MCP_SERVER] = { ".......x", { "W158", "unconfined-mcp-server", LINT_INFO,
	G_FILES | G(NET) | G(CRED),
	"A tool server runs with all your rights",
	"The program reads your home, uses your network and sees every prompt that reaches it.",
	"Start it under a policy: `\"command\": \"writ\", \"args\": [\"run\", \"--policy\", \"server.writ\", \"--\", ...]`." } },
[R_HOME_READABLE] = { "xxx.xx.x", { "W161", "home-readable", LINT_ERROR, G_FILES | G(CRED),
	"The home directory is handed over",
	"A home holds keys, tokens, browser profiles and shell start-up files.",
	"Hand over the project directory only." } },
[R_OPEN_READS] = { ".....xx.", { "W162", "open-reads", LINT_WARNING, G(FS_READ) | G(CRED),
	"Credentials in the home directory stay readable",
	"This sandbox allows every read unless told otherwise, so keys can be read and sent to any allowed host.",
	"Deny the home and open the workspace: `\"denyRead\": [\"~/\"], \"allowRead\": [\".\"]`." } },
[R_CREDENTIAL_READABLE] = { "xxxxxxxx", { "W163", "credential-readable", LINT_ERROR, G(CRED),
	"A credential store is handed over",
	"Whoever can read it can act as you elsewhere, long after the session; read-only does not help.",
	"Leave it outside; use a token for one purpose, added to requests by a proxy." } },
[R_SECRET_LITERAL] = { "xxxxxx.x", { "W164", "secret-literal", LINT_ERROR, G(CRED),
	"A secret is written into the file",
	"It is in the repository, in image layers and process listings, and the agent can read it.",
	"Revoke it and refer to it by name: a secret store, `--mount=type=secret`, or a value set outside by a proxy." } },
[R_SECRET_BUILD_ARG] = { ".xxx....", { "W165", "secret-build-arg", LINT_WARNING, G(CRED),
	"A secret is passed as a build argument",
	"Build arguments are kept in the image's history for everybody who can pull it.",
	"Use `RUN --mount=type=secret,id=NAME` and build with `--secret`." } },
[R_SECRET_IN_SANDBOX] = { "xxx.x...", { "W166", "secret-in-sandbox", LINT_INFO, G(CRED),
	"A secret is handed to the agent",
	"The agent can print it, store it or send it to any host it reaches.",
	"Keep the value outside and let a proxy add it to requests for one host." } },
[R_MISSING_LIMITS] = { "xxx.x...", { "W171", "missing-limits", LINT_WARNING, G_LIMITS,
	"Resource limits are missing",
	"A runaway loop or a fork bomb takes the host down with it.",
	"docker: `--memory 2g --cpus 2 --pids-limit 256`; Compose: `mem_limit`, `cpus`, `pids_limit`; Kubernetes: `resources.limits`." } },
[R_UNPINNED_IMAGE] = { "xxxxx..x", { "W181", "unpinned-image", LINT_INFO, G(EXEC),
	"The image is not pinned",
	"The same name can be another program tomorrow.",
	"Name a version, better a digest: `image@sha256:...`." } },
[R_UNPINNED_SERVER] = { ".......x", { "W182", "unpinned-server", LINT_INFO, G(EXEC) | G(CRED),
	"The server's package is fetched without a version",
	"Each start runs whatever was published last under that name.",
	"Name the version, `package@1.2.3`, and install it ahead of time." } },
[R_FETCH_AND_RUN] = { "xxxxxx.x", { "W183", "fetch-and-run", LINT_WARNING, G(EXEC),
	"A script is downloaded and run at once",
	"Whoever controls the server or the name decides what runs, and nothing records what it was.",
	"Download, check a digest or signature, then run; or use a package." } },
};
_Static_assert(ARRAY_LEN(rules) == R_COUNT, "one row per rule");
/* clang-format on */

static const char *const formats[] = {
	[LINT_UNKNOWN] = "unknown",
	[LINT_DOCKER] = "docker",
	[LINT_COMPOSE] = "compose",
	[LINT_DEVCONTAINER] = "devcontainer",
	[LINT_DOCKERFILE] = "dockerfile",
	[LINT_KUBE] = "kube",
	[LINT_CLAUDE] = "claude",
	[LINT_SRT] = "srt",
	[LINT_MCP] = "mcp",
};
_Static_assert(ARRAY_LEN(formats) == LINT_FORMAT_COUNT, "one name per format");

const struct lint_rule *lint_rule_row(enum rule_id r)
{
	return &rules[r].rule;
}

const struct lint_rule *lint_rule_at(size_t i)
{
	return i < R_COUNT ? &rules[i].rule : NULL;
}

bool lint_applies(const struct lint_rule *rule, enum lint_format format)
{
	if (format == LINT_UNKNOWN || format >= LINT_FORMAT_COUNT)
		return false;
	for (size_t i = 0; i < R_COUNT; i++)
		if (rule == &rules[i].rule)
			return rules[i].applies[format - 1] == 'x';
	return false; /* rules of policy.c apply to none of these formats */
}

const char *lint_format_name(enum lint_format f)
{
	return f < LINT_FORMAT_COUNT ? formats[f] : formats[LINT_UNKNOWN];
}

bool lint_format_parse(struct sv s, enum lint_format *ret_f)
{
	const size_t i = sv_index(s, formats, LINT_FORMAT_COUNT);

	if (i > LINT_UNKNOWN && i < LINT_FORMAT_COUNT)
		*ret_f = (enum lint_format)i;
	return i > LINT_UNKNOWN && i < LINT_FORMAT_COUNT;
}

const char *lint_severity_name(enum lint_severity s)
{
	return s == LINT_ERROR ? "error" : s == LINT_WARNING ? "warning" : "info";
}
