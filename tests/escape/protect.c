/*
 * Names inside the workspace that other programs obey: hooks, settings of agents
 * and editors, start-up files. They are not the agent's to write, missing or not.
 */
#include "escape.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char evil[] = "#!/bin/sh\n: planted\n";

/* The name under attack; in a control a name next to it that nobody obeys. */
static const char *name_of(const struct ctx *c)
{
	const char *arg = c->row->arg;
	const char *slash = strrchr(arg, '/');

	if (!c->control)
		return path("%s/%s", c->root, arg);
	return path("%s/ok/plain%s", c->base, slash ? slash + 1 : arg);
}

static const char *dir_of(const struct ctx *c)
{
	char buf[PATH_SIZE];

	fmt(buf, sizeof(buf), "%s", name_of(c));
	*strrchr(buf, '/') = 0;
	return path("%s", buf);
}

static void make_parents(const struct ctx *c)
{
	char buf[PATH_SIZE];

	fmt(buf, sizeof(buf), "%s", name_of(c));
	for (char *p = buf + strlen(c->root) + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = 0;
		(void)mkdir(buf, 0755);
	}
}

static const char *bait(struct ctx *c)
{
	const char *name = path("%s/bait", c->work);

	(void)write_file(name, evil);
	(void)chmod(name, 0755);
	return name;
}

/* --- one file that is not there, or that is --- */

static int by_create(struct ctx *c)
{
	make_parents(c);
	return write_file(name_of(c), evil);
}

static int by_overwrite(struct ctx *c)
{
	if (c->control)
		return by_create(c);
	return put(open(name_of(c), O_WRONLY | O_APPEND | O_CLOEXEC));
}

static int by_rename(struct ctx *c)
{
	make_parents(c);
	return rc(rename(bait(c), name_of(c)));
}

static int by_exchange(struct ctx *c)
{
	make_parents(c);
	if (c->control)
		(void)write_file(name_of(c), "");
	return rc(syscall(SYS_renameat2, AT_FDCWD, bait(c), AT_FDCWD, name_of(c), RENAME_EXCHANGE));
}

static int by_link(struct ctx *c)
{
	make_parents(c);
	if (link(bait(c), name_of(c)) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	return unlink(name_of(c)) < 0 ? -errno : rc(link(bait(c), name_of(c)));
}

static int by_symlink(struct ctx *c)
{
	make_parents(c);
	(void)unlink(name_of(c));
	return rc(symlink(bait(c), name_of(c)));
}

/*
 * Removing a repository's settings is what removing a clone does, and runs nothing;
 * so here the link has to take the place of what is there.
 */
static int by_symlink_over(struct ctx *c)
{
	const char *link = path("%s/link", c->work);

	make_parents(c);
	(void)symlink(bait(c), link);
	return rc(rename(link, name_of(c)));
}

/* mkdir elsewhere, fill it, then let one rename bring the whole tree. */
static int by_dir_rename(struct ctx *c)
{
	const char *dir = path("%s/tree", c->work);

	(void)mkdir(dir, 0755);
	(void)write_file(path("%s/%s", dir, strrchr(name_of(c), '/') + 1), evil);
	if (c->control)
		(void)mkdir(dir_of(c), 0755);
	return rc(rename(dir, dir_of(c)));
}

static int by_dir_symlink(struct ctx *c)
{
	const char *dir = path("%s/tree", c->work);

	(void)mkdir(dir, 0755);
	(void)write_file(path("%s/%s", dir, strrchr(name_of(c), '/') + 1), evil);
	return rc(symlink(dir, dir_of(c)));
}

static int by_alias_dir(struct ctx *c)
{
	(void)!symlink(c->control ? c->base : c->root, path("%s/alias", c->work));
	make_parents(c);
	return write_file(
		path("%s/alias%s", c->work, name_of(c) + strlen(c->control ? c->base : c->root)),
		evil);
}

static int by_tmpfile(struct ctx *c)
{
	make_parents(c);
	const int fd = open(c->work, O_TMPFILE | O_RDWR | O_CLOEXEC, 0755);
	if (fd < 0 || write(fd, evil, sizeof(evil) - 1) < 0)
		return -errno;
	return rc(linkat(AT_FDCWD, path("/proc/self/fd/%d", fd), AT_FDCWD, name_of(c),
			 AT_SYMLINK_FOLLOW));
}

static int by_mknod(struct ctx *c)
{
	make_parents(c);
	return rc(mknod(name_of(c), S_IFREG | 0644, 0));
}

static int by_fifo(struct ctx *c)
{
	make_parents(c);
	(void)unlink(name_of(c));
	return rc(mkfifo(name_of(c), 0644));
}

static int by_socket(struct ctx *c)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	make_parents(c);
	if (chdir(dir_of(c)) < 0)
		return -errno;
	fmt(un.sun_path, sizeof(un.sun_path), "%s", strrchr(name_of(c), '/') + 1);
	return rc(bind(fd, (void *)&un, sizeof(un)));
}

static int by_mkdir(struct ctx *c)
{
	make_parents(c);
	(void)unlink(name_of(c));
	return rc(mkdir(name_of(c), 0755));
}

static int by_dirfd(struct ctx *c)
{
	make_parents(c);
	const int dir = open(c->control ? c->base : c->root, O_PATH | O_CLOEXEC);
	const char *rest = name_of(c) + strlen(c->control ? c->base : c->root) + 1;

	return put(openat(dir, rest, O_WRONLY | O_CREAT | O_CLOEXEC, 0755));
}

static int by_chdir(struct ctx *c)
{
	make_parents(c);
	if (chdir(dir_of(c)) < 0)
		return -errno;
	return put(open(strrchr(name_of(c), '/') + 1, O_WRONLY | O_CREAT | O_CLOEXEC, 0755));
}

static int by_openat2(struct ctx *c)
{
	const struct open_how how = { .flags = O_WRONLY | O_CREAT | O_CLOEXEC, .mode = 0755 };

	make_parents(c);
	return put((int)syscall(SYS_openat2, AT_FDCWD, name_of(c), &how, sizeof(how)));
}

static int by_rdonly_creat(struct ctx *c)
{
	make_parents(c);
	return rc(open(name_of(c), O_RDONLY | O_CREAT | O_CLOEXEC, 0755));
}

static int by_noise(struct ctx *c)
{
	make_parents(c);
	return put(open(path("%s/./..//%s/%s", dir_of(c), strrchr(dir_of(c), '/') + 1,
			     strrchr(name_of(c), '/') + 1),
			O_WRONLY | O_CREAT | O_CLOEXEC, 0755));
}

static int by_proc_cwd(struct ctx *c)
{
	make_parents(c);
	return put(
		open(path("/proc/self/root%s", name_of(c)), O_WRONLY | O_CREAT | O_CLOEXEC, 0755));
}

static int by_int80(struct ctx *c)
{
	char *low = low_memory();

	if (!low)
		return -ENOSYS;
	make_parents(c);
	fmt(low, PATH_SIZE, "%s", name_of(c));
	const long fd = int80(8, (long)low, 0755, 0, 0, 0); /* creat */
	return fd < 0 ? (int)fd : put((int)fd);
}

static int by_uring(struct ctx *c)
{
	make_parents(c);
	const char *name = name_of(c);
	const struct io_uring_sqe sqe = { .opcode = IORING_OP_OPENAT,
					  .fd = AT_FDCWD,
					  .addr = (uintptr_t)name,
					  .len = 0755,
					  .open_flags = O_WRONLY | O_CREAT | O_CLOEXEC };
	const int fd = uring_one(&sqe);

	return fd < 0 ? fd : put(fd);
}

static int by_shell(struct ctx *c)
{
	make_parents(c);
	const pid_t pid = fork();
	if (pid == 0) {
		(void)execl("/bin/sh", "sh", "-c", "echo planted > \"$0\"", name_of(c),
			    (char *)NULL);
		_exit(EACCES);
	}
	return wait_for(pid);
}

/* --- things that exist and matter --- */

static int by_unlink(struct ctx *c)
{
	if (c->control)
		(void)by_create(c);
	return rc(unlink(name_of(c)));
}

static int by_truncate(struct ctx *c)
{
	if (c->control)
		(void)by_create(c);
	return rc(truncate(name_of(c), 0));
}

static int by_hard_link_alias(struct ctx *c)
{
	if (c->control)
		(void)by_create(c);
	if (link(name_of(c), path("%s/alias", c->work)) < 0)
		return -errno;
	return put(open(path("%s/alias", c->work), O_WRONLY | O_APPEND | O_CLOEXEC));
}

/* What git itself does: write a lock file beside it and rename. */
static int by_lock_rename(struct ctx *c)
{
	make_parents(c);
	const char *lock = path("%s.lock", name_of(c));
	const int r = write_file(lock, "[core]\n\tfsmonitor = ./evil\n\thooksPath = /tmp/h\n");

	return r < 0 ? r : rc(rename(lock, name_of(c)));
}

static int rename_away(struct ctx *c)
{
	if (c->control)
		(void)by_create(c);
	return rc(rename(name_of(c), path("%s/gone", c->work)));
}

/* A repository of one's own in the place of the real one. */
static int replace_git(struct ctx *c)
{
	if (rename(path("%s/.git", c->root), path("%s/gone", c->work)) < 0)
		return -errno;
	(void)mkdir(path("%s/.git", c->root), 0755);
	return write_file(path("%s/.git/config", c->root), "[core]\n\tfsmonitor = ./evil\n");
}

static int exchange_git(struct ctx *c)
{
	const char *mine = path("%s/mine", c->work);

	(void)mkdir(mine, 0755);
	(void)write_file(path("%s/config", mine), "[core]\n\tfsmonitor = ./evil\n");
	return rc(syscall(SYS_renameat2, AT_FDCWD, mine, AT_FDCWD, path("%s/.git", c->root),
			  RENAME_EXCHANGE));
}

/* An ancestor is moved away, changed where the name is no longer known, moved back. */
static int move_ancestor(struct ctx *c)
{
	const char *away = path("%s/moved", c->work);
	const char *nested = path("%s/nested", c->root);

	if (rename(nested, away) < 0)
		return -errno;
	(void)rename(path("%s/.git", away), path("%s/plain", away));
	(void)put(open(path("%s/plain/config", away), O_WRONLY | O_APPEND | O_CLOEXEC));
	(void)rename(path("%s/plain", away), path("%s/.git", away));
	return rc(rename(away, nested));
}

/* Filled under an innocent name, then the parent gets the name that counts. */
static int grow_into_name(struct ctx *c)
{
	const char *top = path("%s/fresh", c->work);

	(void)mkdir(top, 0755);
	(void)mkdir(path("%s/plain", top), 0755);
	(void)mkdir(path("%s/plain/hooks", top), 0755);
	(void)write_file(path("%s/plain/hooks/pre-commit", top), evil);
	if (c->control)
		return 0;
	if (rename(path("%s/plain", top), path("%s/.git", top)) < 0)
		return -errno;
	return rc(rename(top, path("%s/%s", c->root, "fresh")));
}

static int unsample_hook(struct ctx *c)
{
	return rc(rename(path("%s/.git/hooks/post-merge.sample", c->root),
			 path("%s/.git/hooks/post-merge", c->root)));
}

static int git_command(struct ctx *c, const char *const *args)
{
	char *argv[10] = { (char[]){ "git" }, (char[]){ "-C" }, c->control ? c->base : c->root };
	int n = 3;

	while (*args)
		argv[n++] = (char *)(uintptr_t)*args++;
	const pid_t pid = fork();
	if (pid == 0) {
		(void)setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
		(void)dup2(open("/dev/null", O_WRONLY), 2);
		(void)execvp("git", argv);
		_exit(127);
	}
	return wait_for(pid);
}

static int git_config(struct ctx *c)
{
	const char *key = c->row->what + strlen("git config ");
	const char *const args[] = { "config", "--local", key, "./evil", NULL };

	return git_command(c, args);
}

static int append_config(struct ctx *c)
{
	const char *name = name_of(c);

	if (c->control)
		(void)by_create(c);
	const int fd = open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	const int r = rc(write(fd, "[core]\n\tfsmonitor = ./evil\n", 27));
	close(fd);
	return r;
}

/* In a control there is no such file yet. */
static const char *existing(struct ctx *c)
{
	if (c->control)
		(void)by_create(c);
	return name_of(c);
}

static int by_chmod(struct ctx *c)
{
	return rc(chmod(existing(c), 0711));
}

static int by_fchmod(struct ctx *c)
{
	const int fd = open(existing(c), O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : rc(fchmod(fd, 0711));
}

static int by_times(struct ctx *c)
{
	const struct timespec t[2] = { { 1, 0 }, { 1, 0 } };

	return rc(utimensat(AT_FDCWD, existing(c), t, 0));
}

static int by_fd_times(struct ctx *c)
{
	const struct timespec t[2] = { { 1, 0 }, { 1, 0 } };
	const int fd = open(existing(c), O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : rc(futimens(fd, t));
}

static int by_attribute(struct ctx *c)
{
	return rc(setxattr(existing(c), "user.escaped", "1", 1, 0));
}

/* clang-format off */
#define M(id, fn, file, what) { id, "protect", "fs.metadata", what " " file, fn, fn, BY_REPORT, NEED_EXISTING, ROW_OWN, file, 0, NULL }
#define C(id, fn, file, what) { id, "protect", "fs.write", what " " file, fn, fn, BY_WATCH, 0, ROW_OWN, file, 0, NULL }
#define E(id, fn, file, what) { id, "protect", "fs.write", what " " file, fn, fn, BY_WATCH, 0, ROW_OWN, file, 0, NULL }
#define X(id, fn, file, what) { id, "protect", "fs.write", what " " file, fn, fn, BY_WATCH, NEED_EXISTING, ROW_OWN, file, 0, NULL }
#define G(id, key) { id, "protect", "fs.write", "git config " key, git_config, NULL, BY_WATCH, 0, ROW_OWN, ".git/config", 0, NULL }

static const struct row rows[] = {
	C("PR-001", by_rename, ".claude/settings.json", "rename a file to missing"),
	C("PR-002", by_link, ".claude/settings.json", "hard link to missing"),
	C("PR-003", by_symlink, ".claude/settings.json", "symlink as missing"),
	C("PR-004", by_dir_rename, ".claude/settings.json", "rename a directory to bring"),
	C("PR-005", by_dir_symlink, ".claude/settings.json", "symlink a directory to bring"),
	C("PR-006", by_alias_dir, ".claude/settings.json", "through a symlink to the workspace:"),
	C("PR-007", by_tmpfile, ".claude/settings.json", "O_TMPFILE and linkat() to"),
	C("PR-008", by_mknod, ".claude/settings.json", "mknod() of"),
	C("PR-009", by_fifo, ".claude/settings.json", "mkfifo() of"),
	C("PR-010", by_socket, ".claude/settings.json", "bind() a socket as"),
	C("PR-011", by_mkdir, ".claude/settings.json", "mkdir() of"),
	C("PR-012", by_dirfd, ".claude/settings.json", "by directory descriptor:"),
	C("PR-013", by_chdir, ".claude/settings.json", "by relative name after chdir:"),
	C("PR-014", by_openat2, ".claude/settings.json", "by openat2():"),
	C("PR-015", by_rdonly_creat, ".claude/settings.json", "by O_RDONLY|O_CREAT:"),
	C("PR-016", by_noise, ".claude/settings.json", "by a path with .. and //:"),
	C("PR-017", by_proc_cwd, ".claude/settings.json", "by /proc/self/root:"),
	C("PR-018", by_int80, ".claude/settings.json", "by the 32-bit creat:"),
	C("PR-019", by_uring, ".claude/settings.json", "by io_uring:"),
	C("PR-020", by_shell, ".claude/settings.json", "by a shell's redirection:"),
	C("PR-021", by_rename, ".mcp.json", "rename a file to missing"),
	C("PR-022", by_symlink, ".mcp.json", "symlink as missing"),
	C("PR-023", by_link, ".mcp.json", "hard link to missing"),
	C("PR-024", by_tmpfile, ".mcp.json", "O_TMPFILE and linkat() to"),
	C("PR-025", by_openat2, ".mcp.json", "by openat2():"),
	C("PR-026", by_rename, ".git/hooks/post-checkout", "rename a file to missing"),
	C("PR-027", by_link, ".git/hooks/post-checkout", "hard link to missing"),
	C("PR-028", by_symlink, ".git/hooks/post-checkout", "symlink as missing"),
	C("PR-029", by_tmpfile, ".git/hooks/post-checkout", "O_TMPFILE and linkat() to"),
	C("PR-030", by_dirfd, ".git/hooks/post-checkout", "by directory descriptor:"),
	E("PR-040", by_overwrite, ".git/hooks/pre-commit", "append to existing"),
	E("PR-041", by_rename, ".git/hooks/pre-commit", "rename over existing"),
	E("PR-042", by_exchange, ".git/hooks/pre-commit", "exchange with existing"),
	E("PR-043", by_unlink, ".git/hooks/pre-commit", "unlink existing"),
	E("PR-044", by_truncate, ".git/hooks/pre-commit", "truncate existing"),
	E("PR-045", by_symlink, ".git/hooks/pre-commit", "replace by a symlink existing"),
	E("PR-046", by_fifo, ".git/hooks/pre-commit", "replace by a FIFO existing"),
	E("PR-047", by_mkdir, ".git/hooks/pre-commit", "replace by a directory existing"),
	E("PR-048", by_hard_link_alias, ".git/hooks/pre-commit", "write a hard link of existing"),
	E("PR-049", rename_away, ".git/hooks", "rename away"),
	E("PR-050", rename_away, ".git", "rename away"),
	{ "PR-051", "protect", "fs.write", "put another repository in the place of .git", replace_git, NULL, BY_WATCH, 0, ROW_OWN, ".git", 0, NULL },
	{ "PR-052", "protect", "fs.write", "exchange .git with another directory", exchange_git, NULL, BY_WATCH, 0, ROW_OWN, ".git", 0, NULL },
	{ "PR-053", "protect", "fs.write", "move a repository's parent, change it, move it back",
	  move_ancestor, NULL, BY_WATCH, 0, ROW_OWN, "nested/.git/config", 0, NULL },
	{ "PR-054", "protect", "fs.write", "fill a tree under an innocent name, then rename it",
	  grow_into_name, grow_into_name, BY_WATCH, 0, ROW_OWN, "fresh/.git/hooks/pre-commit", 0, NULL },
	{ "PR-055", "protect", "fs.write", "rename a sample hook to a live one", unsample_hook, NULL, BY_WATCH, 0, ROW_OWN, ".git/hooks", 0, NULL },
	E("PR-056", append_config, ".git/config", "append a program to"),
	E("PR-057", by_lock_rename, ".git/config", "lock file and rename over"),
	E("PR-058", by_hard_link_alias, ".git/config", "write a hard link of"),
	E("PR-059", by_symlink_over, ".git/config", "replace by a symlink"),
	E("PR-060", append_config, "nested/.git/config", "append a program to"),
	E("PR-061", by_create, "nested/.git/hooks/post-commit", "create"),
	E("PR-062", by_create, ".git/modules/sub/hooks/post-checkout", "create"),
	E("PR-063", append_config, ".git/modules/sub/config", "append a program to"),
	E("PR-064", by_create, ".git/worktrees/w/config.worktree", "create"),
	E("PR-065", by_create, ".git/config.worktree", "create"),
	E("PR-066", by_create, ".git/info/attributes", "create"),
	E("PR-067", by_create, ".git/commondir", "create"),
	E("PR-068", by_overwrite, ".git/worktrees/w/commondir", "change"),
	E("PR-069", by_create, ".git/modules/new/config", "create"),
	E("PR-070", by_symlink, ".git/hooks/post-merge", "symlink a hook"),
	E("PR-071", by_dir_symlink, ".githooks/pre-push", "symlink a directory of hooks to bring"),
	X("PR-080", by_overwrite, ".claude/settings.json", "append to existing"),
	X("PR-081", by_rename, ".claude/settings.json", "rename over existing"),
	X("PR-082", by_unlink, ".claude/settings.json", "unlink existing"),
	X("PR-083", by_symlink, ".claude/settings.json", "replace by a symlink existing"),
	X("PR-084", by_hard_link_alias, ".claude/settings.json", "write a hard link of existing"),
	X("PR-085", by_create, ".claude/settings.json", "truncate and write existing"),
	X("PR-086", by_overwrite, ".mcp.json", "append to existing"),
	X("PR-087", by_rename, ".mcp.json", "rename over existing"),
	X("PR-088", by_exchange, ".mcp.json", "exchange with existing"),
	X("PR-089", by_hard_link_alias, ".mcp.json", "write a hard link of existing"),
	X("PR-090", rename_away, ".vscode/tasks.json", "rename away existing"),
	X("PR-091", by_overwrite, ".vscode/tasks.json", "append to existing"),
	X("PR-092", by_overwrite, ".envrc", "append to existing"),
	X("PR-093", by_rename, ".envrc", "rename over existing"),
	X("PR-094", by_overwrite, ".husky/pre-commit", "append to existing"),
	X("PR-095", by_overwrite, "deep/er/.claude/settings.json", "append to existing"),
	X("PR-096", by_chmod, ".envrc", "chmod() of existing"),
	X("PR-097", by_fchmod, ".vscode/tasks.json", "fchmod() of existing"),
	M("PR-098", by_times, ".envrc", "utimensat() of existing"),
	M("PR-099", by_fd_times, ".mcp.json", "futimens() of existing"),
	M("PR-100", by_attribute, ".envrc", "setxattr() of existing"),
	G("PR-110", "core.hooksPath"), G("PR-111", "core.fsmonitor"), G("PR-112", "core.sshCommand"), G("PR-113", "core.pager"),
	G("PR-114", "core.editor"), G("PR-115", "diff.external"), G("PR-116", "filter.x.clean"), G("PR-117", "filter.x.process"),
	G("PR-118", "credential.helper"), G("PR-119", "include.path"), G("PR-120", "alias.st"), G("PR-121", "merge.x.driver"),
	G("PR-122", "core.gitProxy"), G("PR-123", "gpg.program"), G("PR-124", "uploadpack.packObjectsHook"), G("PR-125", "core.attributesFile"),
	G("PR-126", "includeIf.gitdir:/.path"), G("PR-127", "difftool.x.cmd"), G("PR-128", "sequence.editor"), G("PR-129", "remote.o.uploadpack"),
	G("PR-130", "url.ext::sh.insteadOf"), G("PR-131", "core.askPass"), G("PR-132", "interactive.diffFilter"), G("PR-133", "diff.x.textconv"),
	G("PR-134", "core.worktree"), G("PR-135", "trailer.x.command"), G("PR-136", "submodule.s.update"), G("PR-137", "protocol.ext.allow"),
};
#define N(id, file) { id, "protect", "fs.write", "create " file, by_create, by_create, BY_WATCH, 0, 0, file, 0, NULL }

/* Missing names do not get in each other's way: one sandbox for all. */
static const struct row names[] = {
	N("PN-001", ".git/hooks/post-checkout"), N("PN-002", ".git/hooks/fsmonitor-watchman"), N("PN-003", ".claude/settings.json"),
	N("PN-004", ".claude/settings.local.json"), N("PN-005", ".claude/commands/x.md"), N("PN-006", ".claude/agents/x.md"),
	N("PN-007", ".codex/config.toml"), N("PN-008", ".mcp.json"), N("PN-009", ".cursor/mcp.json"), N("PN-010", ".cursor/rules/x.mdc"),
	N("PN-011", ".vscode/tasks.json"), N("PN-012", ".vscode/settings.json"), N("PN-013", ".idea/workspace.xml"), N("PN-014", ".envrc"),
	N("PN-015", ".gemini/settings.json"), N("PN-016", ".gitmodules"), N("PN-017", ".gitattributes"), N("PN-018", ".githooks/pre-commit"),
	N("PN-019", ".husky/pre-commit"), N("PN-020", ".pre-commit-config.yaml"), N("PN-021", ".opencode/config.json"), N("PN-022", ".continue/config.json"),
	N("PN-023", ".aider.conf.yml"), N("PN-024", ".zed/tasks.json"), N("PN-025", ".devcontainer/devcontainer.json"), N("PN-026", ".devcontainer.json"),
	N("PN-027", ".mise.toml"), N("PN-028", ".tool-versions"), N("PN-029", ".bashrc"), N("PN-030", ".profile"), N("PN-031", ".zshrc"),
	N("PN-032", ".zshenv"), N("PN-033", ".config/fish/config.fish"), N("PN-034", ".inputrc"), N("PN-035", ".vimrc"), N("PN-036", ".exrc"),
	N("PN-037", ".nvim.lua"), N("PN-038", ".gdbinit"), N("PN-039", ".lldbinit"), N("PN-040", ".npmrc"), N("PN-041", ".yarnrc.yml"),
	N("PN-042", ".gitconfig"), N("PN-043", ".config/git/config"), N("PN-044", ".config/systemd/user/x.service"), N("PN-045", ".config/autostart/x.desktop"),
	N("PN-046", ".ssh/authorized_keys"), N("PN-047", ".vim/plugin/x.vim"), N("PN-048", ".emacs.d/init.el"), N("PN-049", "agent.writ"),
	N("PN-050", ".bash_profile"), N("PN-051", ".agents/x.md"), N("PN-052", "src/deep/.mcp.json"), N("PN-053", "src/deep/.git/hooks/pre-commit"),
	N("PN-054", "src/deep/.claude/settings.json"), N("PN-055", "src/deep/.envrc"), N("PN-056", "src/deep/.git/config"), N("PN-057", ".config/writ/policy.writ"),
};
/* clang-format on */

const struct table protect_rows = { rows, LENGTH(rows) };
const struct table protect_name_rows = { names, LENGTH(names) };
