/* Who we are inside, what came along with us, and what could raise us again. */
#include "escape.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int capabilities(struct ctx *c)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2] = { 0 };
	uint64_t v = 0;

	if (syscall(SYS_capget, &h, d) < 0)
		return -errno;
	switch (c->row->num) {
	case 'e':
		v = d[0].effective | (uint64_t)d[1].effective << 32;
		break;
	case 'p':
		v = d[0].permitted | (uint64_t)d[1].permitted << 32;
		break;
	case 'i':
		v = d[0].inheritable | (uint64_t)d[1].inheritable << 32;
		break;
	default:
		for (unsigned long i = 0; i < 64; i++)
			if (prctl(c->row->num == 'b' ? PR_CAPBSET_READ : PR_CAP_AMBIENT,
				  c->row->num == 'b' ? i : PR_CAP_AMBIENT_IS_SET,
				  c->row->num == 'b' ? 0 : i, 0, 0) == 1)
				v |= 1ull << i;
	}
	say(c, "set %016llx", (unsigned long long)v);
	return v ? 0 : -EPERM;
}

static int privileges_allowed(struct ctx *c)
{
	(void)c;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ? 0 : -EPERM;
}

static int no_filter(struct ctx *c)
{
	char status[4096];

	(void)c;
	(void)read_text("/proc/self/status", status, sizeof(status));
	return strstr(status, "Seccomp:\t2") ? -EPERM : 0;
}

static int keep_caps(struct ctx *c)
{
	(void)c;
	/* Who is root already becomes nobody else by it. */
	return geteuid() == 0			 ? -EALREADY
	       : prctl(PR_GET_SECUREBITS) < 0	 ? -errno
	       : rc(setresuid(0, 0, 0))		 ? -EPERM
	       : geteuid() == 0 && getuid() == 0 ? 0
						 : -EPERM;
}

/* Groups other than our own open doors that no rule named. */
static int groups(struct ctx *c)
{
	gid_t list[256];
	const int n = getgroups(LENGTH(list), list);

	for (int i = 0; i < n; i++) {
		say(c, "group %u", list[i]);
		if (list[i] != getegid() && list[i] != 65534)
			return 0;
	}
	return -ENOENT;
}

static int run_raised(struct ctx *c, const char *name)
{
	int ends[2];

	if (pipe(ends) < 0)
		return -errno;
	const pid_t pid = fork();
	if (pid == 0) {
		(void)dup2(ends[1], 1);
		(void)execl(name, name, "whoami", (char *)NULL);
		_exit(errno & 0xff);
	}
	close(ends[1]);
	(void)say_fd(c, ends[0]);
	return wait_for(pid);
}

static int set_uid_program(struct ctx *c)
{
	return run_raised(c, path("%s/suid", c->root));
}

/* As writ-signer is: what only its group may read stays closed to who runs it inside. */
static int set_gid_program(struct ctx *c)
{
	return run_raised(c, path("%s/sgid", c->root));
}

static int file_capabilities(struct ctx *c)
{
	return run_raised(c, path("%s/filecap", c->root));
}

/* A copy of ourselves with the bit set by ourselves: matters when uid 0 is mapped. */
static int own_set_uid(struct ctx *c)
{
	const char *name = path("%s/mine", c->work);
	const pid_t pid = fork();

	if (pid == 0) {
		(void)execl("/bin/cp", "cp", path("%s/writ-escape", c->root), name, (char *)NULL);
		_exit(127);
	}
	(void)wait_for(pid);
	if (chmod(name, 06755) < 0)
		return -errno;
	const int r = run_raised(c, name);
	return r;
}

/* A set-id program of the system; while it waits, its effective user can be read. */
static int system_set_uid(struct ctx *c)
{
	int ends[2];
	int r = -EPERM;

	if (getuid() == 0 || pipe(ends) < 0)
		return -EINVAL;
	const pid_t pid = fork();
	if (pid == 0) {
		const int null = open("/dev/null", O_RDWR);

		(void)dup2(ends[0], 0);
		(void)dup2(null, 1);
		(void)dup2(null, 2);
		(void)execl(c->row->arg, c->row->arg, (char *)NULL);
		_exit(127);
	}
	for (int i = 0; i < 50 && r; i++) {
		char status[4096];

		nap(4);
		(void)read_text(path("/proc/%d/status", (int)pid), status, sizeof(status));
		/* Uid: real, effective, ... */
		const char *p = strstr(status, "Uid:\t");
		p = p ? strchr(p + 5, '\t') : NULL;
		if (p && strtoul(p, NULL, 10) == 0)
			r = 0;
	}
	(void)kill(pid, 9);
	close(ends[1]);
	(void)waitpid(pid, NULL, 0);
	return r;
}

/* --- what the starter left open or told us --- */

static int say_environment(struct ctx *c)
{
	for (char **e = environ; *e; e++)
		say(c, "%s", *e);
	return 0;
}

static int each_fd(struct ctx *c, int (*fn)(struct ctx *c, int fd, const struct stat *st))
{
	int worked = 0;

	for (int fd = 3; fd < 4096; fd++) {
		struct stat st;

		if (fstat(fd, &st) == 0 && fn(c, fd, &st) == 0)
			worked++;
	}
	return worked ? 0 : -ENOENT;
}

static int fd_write(struct ctx *c, int fd, const struct stat *st)
{
	(void)c;
	return S_ISREG(st->st_mode) ? rc(pwrite(fd, "escaped", 7, 0)) : -EINVAL;
}

static int fd_high_write(struct ctx *c, int fd, const struct stat *st)
{
	return fd < 1000 ? -EINVAL : fd_write(c, fd, st);
}

static int fd_read(struct ctx *c, int fd, const struct stat *st)
{
	char buf[64] = "";
	const ssize_t n = S_ISREG(st->st_mode) ? pread(fd, buf, sizeof(buf), 0) : -1;

	if (n <= 0)
		return -EINVAL;
	say_bytes(c, buf, (size_t)n);
	return 0;
}

static int fd_directory(struct ctx *c, int fd, const struct stat *st)
{
	if (!S_ISDIR(st->st_mode))
		return -EINVAL;
	(void)say_fd(c, openat(fd, path("%s/f", c->out + 1), O_RDONLY | O_CLOEXEC));
	return say_fd(c, openat(fd, "f", O_RDONLY | O_CLOEXEC));
}

static int fd_send(struct ctx *c, int fd, const struct stat *st)
{
	(void)c;
	return S_ISSOCK(st->st_mode) ? rc(send(fd, "escaped", 7, MSG_NOSIGNAL)) : -EINVAL;
}

static int inherited_write(struct ctx *c)
{
	return each_fd(c, fd_write);
}

static int inherited_high(struct ctx *c)
{
	return each_fd(c, fd_high_write);
}

static int inherited_read(struct ctx *c)
{
	return each_fd(c, fd_read);
}

static int inherited_directory(struct ctx *c)
{
	return each_fd(c, fd_directory);
}

static int inherited_socket(struct ctx *c)
{
	return each_fd(c, fd_send);
}

/* Anything at all beyond the first three that is not ours. */
static int inherited_any(struct ctx *c)
{
	int n = 0;

	for (int fd = 3; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			n++;
	say(c, "%d descriptors", n);
	return n ? 0 : -ENOENT;
}

static int home_read(struct ctx *c)
{
	return say_file(c, path("%s/%s", c->out, c->row->arg));
}

static int home_env_read(struct ctx *c)
{
	const char *home = getenv("HOME");

	return home ? say_file(c, path("%s/%s", home, c->row->arg)) : -ENOENT;
}

static int home_write(struct ctx *c)
{
	const char *name = path("%s/%s", c->out, c->row->arg);
	char buf[PATH_SIZE];

	fmt(buf, sizeof(buf), "%s", name);
	for (char *p = buf + strlen(c->out) + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = 0;
		(void)mkdir(buf, 0755);
	}
	return put(open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
}

/* clang-format off */
#define CAP(id, set, what) { id, "identity", "syscall", what, capabilities, NULL, BY_REPORT, 0, 0, NULL, set, NULL }
#define ENV(id, name) { id, "cred", "cred", "environment: " name, say_environment, NULL, BY_SECRET, 0, ROW_OWN | ROW_LAUNCH, "env:" name, 0, NULL }
#define FD(id, fn, g, by, what) { id, "inherit", g, what, fn, NULL, by, NEED_UNIX, ROW_OWN | ROW_LAUNCH, "fds", 0, NULL }
#define HR(id, file) { id, "cred", "fs.read", "read ~/" file, home_read, NULL, BY_SECRET, NEED_HOME, ROW_OWN | ROW_LAUNCH, file, 0, NULL }
#define HW(id, file) { id, "cred", "fs.write", "write ~/" file, home_write, NULL, BY_WATCH, NEED_HOME, ROW_OWN | ROW_LAUNCH, file, 0, NULL }

static const struct row identity[] = {
	CAP("ID-001", 'e', "effective capabilities"), CAP("ID-002", 'p', "permitted capabilities"), CAP("ID-003", 'i', "inheritable capabilities"),
	{ "ID-004", "identity", "syscall", "bounding set", capabilities, NULL, BY_REPORT, 0, 0, NULL, 'b', NULL, "bounding set" },
	CAP("ID-005", 'a', "ambient capabilities"),
	{ "ID-006", "identity", "syscall", "no_new_privs is not set", privileges_allowed, NULL, BY_REPORT, 0, 0, NULL, 0, NULL },
	{ "ID-007", "identity", "syscall", "no seccomp filter is active", no_filter, NULL, BY_REPORT, 0, 0, NULL, 0, NULL },
	{ "ID-008", "identity", "syscall", "setresuid(0, 0, 0) from another user", keep_caps, NULL, BY_REPORT, 0, ROW_INHERENT, NULL, 0, NULL },
	{ "ID-009", "identity", "fs.read", "supplementary groups", groups, NULL, BY_REPORT, 0, 0, NULL, 0, NULL },
	{ "ID-010", "identity", "syscall", "run a set-uid program of root", set_uid_program, NULL, BY_REPORT, 0, ROW_OWN | ROW_ROOT_SETUP, NULL, 0, NULL },
	{ "ID-011", "identity", "syscall", "run a program with file capabilities", file_capabilities, NULL, BY_REPORT, 0, ROW_OWN | ROW_ROOT_SETUP, NULL, 0, NULL },
	{ "ID-012", "identity", "syscall", "make and run a set-uid program", own_set_uid, NULL, BY_REPORT, 0, 0, NULL, 0, NULL },
	{ "ID-013", "identity", "syscall", "run su", system_set_uid, NULL, BY_REPORT, 0, 0, "/usr/bin/su", 0, NULL },
	{ "ID-014", "identity", "syscall", "run passwd", system_set_uid, NULL, BY_REPORT, 0, 0, "/usr/bin/passwd", 0, NULL },
	{ "ID-015", "identity", "syscall", "run sudo", system_set_uid, NULL, BY_REPORT, 0, 0, "/usr/bin/sudo", 0, NULL },
	{ "ID-016", "identity", "syscall", "run pkexec", system_set_uid, NULL, BY_REPORT, 0, 0, "/usr/bin/pkexec", 0, NULL },
	{ "ID-017", "identity", "syscall", "run a set-gid program of another group", set_gid_program, NULL, BY_REPORT, 0, ROW_OWN | ROW_ROOT_SETUP, NULL, 0, NULL },
};

static const struct row launches[] = {
	ENV("CR-001", "AWS_SECRET_ACCESS_KEY"), ENV("CR-002", "GITHUB_TOKEN"), ENV("CR-003", "OPENAI_API_KEY"), ENV("CR-004", "ANTHROPIC_API_KEY"),
	ENV("CR-005", "SSH_AUTH_SOCK"), ENV("CR-006", "DOCKER_HOST"), ENV("CR-007", "KUBECONFIG"), ENV("CR-008", "DBUS_SESSION_BUS_ADDRESS"),
	ENV("CR-009", "OP_SESSION_my"), ENV("CR-010", "VAULT_TOKEN"), ENV("CR-011", "GPG_AGENT_INFO"), ENV("CR-012", "SOME_UNKNOWN_NAME"),
	ENV("CR-013", "XAUTHORITY"), ENV("CR-014", "TMUX"), ENV("CR-015", "GIT_ASKPASS"), ENV("CR-016", "HTTPS_PROXY"),
	FD("FD-001", inherited_write, "fs.write", BY_CANARY, "write an inherited file descriptor"),
	FD("FD-002", inherited_high, "fs.write", BY_CANARY, "write an inherited descriptor above 1000"),
	FD("FD-003", inherited_read, "fs.read", BY_SECRET, "read inherited files and memory"),
	FD("FD-004", inherited_directory, "fs.read", BY_SECRET, "openat() from an inherited directory"),
	FD("FD-005", inherited_socket, "ipc", BY_EVENT, "send on an inherited socket"),
	FD("FD-006", inherited_any, "ipc", BY_REPORT, "any of 200 inherited descriptors"),
};

static const struct row homes[] = {
	HR("HM-001", ".ssh/id_ed25519"), HR("HM-002", ".aws/credentials"), HR("HM-003", ".netrc"), HR("HM-004", ".git-credentials"),
	HR("HM-005", ".docker/config.json"), HR("HM-006", ".npmrc"), HR("HM-007", ".pypirc"), HR("HM-008", ".kube/config"), HR("HM-009", ".config/gh/hosts.yml"),
	HR("HM-010", ".config/gcloud/credentials.db"), HR("HM-011", ".gnupg/secring.gpg"), HR("HM-012", ".bash_history"), HR("HM-013", ".claude/.credentials.json"),
	HR("HM-014", ".codex/auth.json"), HR("HM-015", ".cargo/credentials.toml"), HR("HM-016", ".mozilla/firefox/key4.db"),
	HR("HM-017", ".local/share/keyrings/login.keyring"),
	HR("HM-018", ".config/rclone/rclone.conf"),
	{ "HM-019", "cred", "fs.read", "read $HOME/.ssh/id_ed25519", home_env_read, NULL, BY_SECRET, NEED_HOME, ROW_OWN | ROW_LAUNCH, ".ssh/id_ed25519", 0, NULL },
	HW("HM-030", ".bashrc"), HW("HM-031", ".profile"), HW("HM-032", ".ssh/authorized_keys"), HW("HM-033", ".config/systemd/user/x.service"),
	HW("HM-034", ".config/autostart/x.desktop"), HW("HM-035", ".local/bin/ls"), HW("HM-036", ".gitconfig"), HW("HM-037", ".npmrc"),
	HW("HM-038", ".cargo/config.toml"), HW("HM-039", ".local/lib/python3/site-packages/x.pth"), HW("HM-040", ".config/git/hooks/pre-commit"),
	HW("HM-041", ".claude/settings.json"),
	HW("HM-042", ".zshenv"), HW("HM-043", ".config/writ/policy.writ"),
};
/* clang-format on */

const struct table identity_rows = { identity, LENGTH(identity) };
const struct table launch_rows = { launches, LENGTH(launches) };
const struct table home_rows = { homes, LENGTH(homes) };
