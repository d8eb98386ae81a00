#include "tap.h"

#include "mediated.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lang/protect.h"

/*
 * base/ws is the workspace, base/priv belongs to the session, base/out to nobody.
 */
static char base[64], ws[96], priv[96], out[96];
static struct cap_set set;
static struct sv private_dirs[1];

static void put_file(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		ok(false, "write %s", path);
	if (fd >= 0)
		close(fd);
}

/* From outside: what the file says, or "-" if there is none. */
static const char *text_of(const char *dir, const char *name)
{
	static char text[4][4096];
	static int turn;
	char *t = text[turn++ % 4], path[512];
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return "-";
	n = read(fd, t, 4095);
	close(fd);
	t[n < 0 ? 0 : n] = 0;
	return t;
}

static bool there(const char *dir, const char *name)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return lstat(path, &st) == 0;
}

static struct stat stat_of(const char *dir, const char *name)
{
	struct stat st = { 0 };
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	(void)lstat(path, &st);
	return st;
}

static void fresh(void)
{
	char cmd[512];

	snprintf(cmd, sizeof(cmd),
		 "rm -rf %s/ws %s/priv %s/out && mkdir -p %s/ws/sub %s/ws/.git/info %s/priv %s/out",
		 base, base, base, base, base, base, base);
	if (system(cmd) != 0)
		ok(false, "cannot make %s", base);
	snprintf(cmd, sizeof(cmd), "%s/secret", out);
	put_file(cmd, "secret");
	snprintf(cmd, sizeof(cmd), "%s/old", ws);
	put_file(cmd, "old");
	snprintf(cmd, sizeof(cmd), "%s/.git/config", ws);
	put_file(cmd, "[core]\n\tbare = false\n");
	snprintf(cmd, sizeof(cmd), "%s/.git/HEAD", ws);
	put_file(cmd, "ref: refs/heads/main\n");
}

static void cap(struct cap_set *s, enum cap_kind kind, const char *action, const char *dir,
		const char *rest)
{
	char text[512];

	snprintf(text, sizeof(text), "%s:r:%s%s", action, dir, rest);
	box_cap(s, kind, text);
}

static struct box make_box(unsigned traps)
{
	struct box b = { .traps = traps,
			 .opt = { .set = &set,
				  .realm = SV("r"),
				  .workspace = sv_from(ws),
				  .private_dirs = private_dirs,
				  .private_dirs_n = 1 } };
	return b;
}

#define ERR(call) ((call) < 0 ? errno : 0)

/* --- Opens --- */

static int open_close(const char *path, int flags)
{
	const int fd = open(path, flags, 0666);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int opens(void)
{
	char path[256];
	int fd, dir;

	umask(027);
	if (chdir(ws) < 0)
		return 1;
	fd = open("new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0777);
	results[0] = fd < 0 ? errno : 0;
	results[1] = fcntl(fd, F_GETFD);
	results[2] = fcntl(fd, F_GETFL) & ~0100000;
	if (write(fd, "text", 4) != 4)
		return 2;
	close(fd);
	fd = open("old", O_RDWR | O_APPEND);
	results[3] = fcntl(fd, F_GETFD);
	results[4] = fcntl(fd, F_GETFL) & ~0100000;
	if (write(fd, "er", 2) != 2)
		return 3;
	close(fd);
	results[5] = open_close("new", O_WRONLY | O_CREAT | O_EXCL);
	results[6] = open_close("none/x", O_WRONLY | O_CREAT);
	results[7] = open_close("none", O_WRONLY);
	results[8] = open_close("old/x", O_WRONLY | O_CREAT);
	results[9] = open_close("sub", O_WRONLY);
	results[10] = open_close("sub/", O_WRONLY | O_CREAT);
	results[11] = open_close("", O_WRONLY | O_CREAT);
	snprintf(path, sizeof(path), "%s/secret", out);
	results[12] = open_close(path, O_WRONLY | O_TRUNC);
	snprintf(path, sizeof(path), "%s/new", out);
	results[13] = open_close(path, O_WRONLY | O_CREAT);
	results[14] = open_close("../out/secret", O_RDWR);
	dir = open("sub", O_RDONLY | O_DIRECTORY);
	fd = openat(dir, "../sub/./at", O_WRONLY | O_CREAT, 0600);
	results[15] = fd < 0 ? errno : 0;
	close(fd);
	results[16] = ERR(openat(99, "x", O_WRONLY | O_CREAT, 0600));
	results[17] = ERR(openat(fd = open("old", O_RDONLY), "x", O_WRONLY | O_CREAT, 0600));
	close(fd);
	memset(path, 'n', 255);
	path[255] = 0;
	results[18] = open_close(path, O_WRONLY | O_CREAT);
	path[254] = 'n', path[255] = 'n', path[256 - 1] = 0;
	{
		char more[300];

		memset(more, 'n', 256);
		more[256] = 0;
		results[19] = open_close(more, O_WRONLY | O_CREAT);
	}
	results[20] = open_close("/dev/null", O_WRONLY | O_TRUNC);
	results[21] = open_close("/dev/null", O_RDWR | O_CREAT);
	results[22] = ERR(openat(AT_FDCWD, (const char *)8, O_WRONLY | O_CREAT, 0600));
	snprintf(path, sizeof(path), "%s/mine", priv);
	results[23] = open_close(path, O_WRONLY | O_CREAT);
	results[24] = ERR(truncate("old", 3));
	results[25] = ERR(truncate("../out/secret", 0));
	fd = open("sub/setid", O_WRONLY | O_CREAT, 06755);
	close(fd);
	return 0;
}

static void test_open(void)
{
	struct box b = make_box(BOX_WRITE);

	fresh();
	ok(box_run(&b, opens) == 0, "the program runs");
	ok(results[0] == 0 && results[1] == FD_CLOEXEC && results[2] == O_WRONLY,
	   "create: flags as asked (%d %d %o)", results[0], results[1], results[2]);
	is_str(text_of(ws, "new"), "text", "what it wrote is there");
	ok((stat_of(ws, "new").st_mode & 07777) == 0750, "with its umask");
	ok(results[3] == 0 && results[4] == (O_RDWR | O_APPEND), "existing: flags as asked (%o)",
	   results[4]);
	ok(results[5] == EEXIST && results[6] == ENOENT && results[7] == ENOENT &&
		   results[8] == ENOTDIR && results[9] == EISDIR && results[10] == EISDIR &&
		   results[11] == ENOENT,
	   "errors like the kernel's (%d %d %d %d %d %d %d)", results[5], results[6], results[7],
	   results[8], results[9], results[10], results[11]);
	ok(results[12] == EACCES && results[13] == EACCES && results[14] == EACCES,
	   "outside is refused (%d %d %d)", results[12], results[13], results[14]);
	is_str(text_of(out, "secret"), "secret", "and nothing happened there");
	ok(!there(out, "new"), "nothing new either");
	ok(results[15] == 0 && there(ws, "sub/at"), "relative to a directory (%d)", results[15]);
	ok(results[16] == EBADF && results[17] == ENOTDIR, "bad directories (%d %d)", results[16],
	   results[17]);
	ok(results[18] == 0 && results[19] == ENAMETOOLONG, "long names (%d %d)", results[18],
	   results[19]);
	ok(results[20] == 0 && results[21] == 0, "/dev/null (%d %d)", results[20], results[21]);
	ok(results[22] == EFAULT, "a bad pointer (%d)", results[22]);
	ok(results[23] == 0 && there(priv, "mine"), "its own directory");
	ok(results[24] == 0 && results[25] == EACCES, "truncate (%d %d)", results[24], results[25]);
	is_str(text_of(ws, "old"), "old", "appended, then cut");
	ok((stat_of(ws, "sub/setid").st_mode & 07777) == 0750, "no set-id bit is made");
	ok(box_denied(&b, "/out/secret") && box_denied(&b, "/out/new"), "denials are reported");
	ok(b.events_n && b.events[0].sys == EACCES && b.events[0].rule == RULE_NONE &&
		   b.events[0].comm[0] && b.events[0].reason == CAP_REASON_NO_RULE,
	   "with who and why");
	ok(b.events_n == 4, "and only denials (%zu)", b.events_n);
}

/* --- Links and other tricks --- */

static int tricks(void)
{
	char path[256], cmd[256];
	int fd, fd2;

	if (chdir(ws) < 0)
		return 1;
	results[0] = ERR(symlink(out, "link"));
	results[1] = open_close("link/secret", O_WRONLY);
	results[2] = open_close("link/new", O_WRONLY | O_CREAT);
	snprintf(path, sizeof(path), "%s/secret", out);
	results[3] = ERR(symlink(path, "direct"));
	results[4] = open_close("direct", O_WRONLY | O_TRUNC);
	results[5] = open_close("direct", O_WRONLY | O_NOFOLLOW);
	results[6] = ERR(symlink("a", "b")) || ERR(symlink("b", "a"));
	results[7] = open_close("a", O_WRONLY);
	results[8] = ERR(symlink("sub/made", "dangling"));
	results[9] = open_close("dangling", O_WRONLY | O_CREAT);
	results[10] = open_close("dangling", O_WRONLY | O_CREAT | O_EXCL);
	results[11] = ERR(link(path, "hard"));
	results[12] = ERR(link("old", "sub/hard"));
	results[13] = ERR(rename("old", "../out/old"));
	results[14] = ERR(rename(path, "taken"));
	results[15] = ERR(syscall(SYS_renameat2, AT_FDCWD, "old", AT_FDCWD, path, 2));
	results[16] = ERR(mkfifo("fifo", 0600));
	results[17] = open_close("theirs", O_WRONLY);
	results[18] = open_close("theirs", O_RDWR);
	results[19] = ERR(mknod("dev", S_IFCHR | 0600, 0x103));
	fd = open(".", O_RDWR | O_TMPFILE, 0644);
	results[20] = fd < 0 ? errno : 0;
	if (write(fd, "unnamed", 7) != 7)
		return 2;
	snprintf(cmd, sizeof(cmd), "/proc/self/fd/%d", fd);
	results[21] = ERR(linkat(AT_FDCWD, cmd, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
	fd2 = open(".", O_WRONLY | O_TMPFILE, 0644);
	snprintf(cmd, sizeof(cmd), "/proc/self/fd/%d", fd2);
	results[22] =
		ERR(linkat(AT_FDCWD, cmd, AT_FDCWD, ".git/info/attributes", AT_SYMLINK_FOLLOW));
	results[23] = ERR(linkat(AT_FDCWD, cmd, AT_FDCWD, ".envrc", AT_SYMLINK_FOLLOW));
	snprintf(cmd, sizeof(cmd), "/proc/self/fd/%d", fd);
	results[24] = open_close(cmd, O_WRONLY);
	results[25] = open_close("/proc/self/cwd/viacwd", O_WRONLY | O_CREAT);
	snprintf(cmd, sizeof(cmd), "/proc/self/root%s/secret", out);
	fd = open("/proc/self/root", O_PATH);
	results[26] = ERR(openat(fd, path + 1, O_WRONLY | O_TRUNC));
	results[27] = open_close("/../../../../../../../../etc/writ-test-none", O_WRONLY | O_CREAT);
	results[28] = ERR(mkdir("gone", 0700));
	if (chdir("gone") < 0 || rmdir("../gone") < 0)
		return 3;
	results[29] = open_close("x", O_WRONLY | O_CREAT);
	results[30] = open_close("../x", O_WRONLY | O_CREAT);
	return 0;
}

static void test_tricks(void)
{
	struct box b = make_box(BOX_WRITE);
	char theirs[128];

	fresh();
	snprintf(theirs, sizeof(theirs), "%s/theirs", ws);
	ok(mkfifo(theirs, 0666) == 0, "somebody outside may listen there");
	ok(box_run(&b, tricks) == 0, "the program runs");
	ok(results[0] == 0 && results[1] == EACCES && results[2] == EACCES,
	   "through a linked directory");
	ok(results[3] == 0 && results[4] == EACCES && results[5] == ELOOP, "through a linked file");
	ok(results[6] == 0 && results[7] == ELOOP, "links in a circle (%d)", results[7]);
	ok(results[9] == 0 && there(ws, "sub/made") && results[10] == EEXIST, "a dangling link");
	ok(results[11] == EACCES && !there(ws, "hard"), "no hard link to the outside (%d)",
	   results[11]);
	ok(results[12] == 0 && stat_of(ws, "old").st_nlink == 2, "but one inside");
	ok(results[13] == EACCES && results[14] == EACCES && results[15] == EACCES,
	   "no move across (%d %d %d)", results[13], results[14], results[15]);
	is_str(text_of(out, "secret"), "secret", "the outside is as it was");
	ok(results[16] == 0 && results[17] == EACCES && results[18] == EACCES,
	   "FIFOs that others made are not opened");
	ok(results[19] == EPERM, "devices are not made");
	ok(results[20] == 0 && results[21] == 0, "a file without a name gets one (%d %d)",
	   results[20], results[21]);
	is_str(text_of(ws, "named"), "unnamed", "the same file");
	ok(results[22] == EACCES && results[23] == EACCES && !there(ws, ".git/info/attributes") &&
		   !there(ws, ".envrc"),
	   "but no protected one (%d %d)", results[22], results[23]);
	ok(results[24] == 0, "a descriptor is opened again (%d)", results[24]);
	ok(results[26] == EACCES, "not through /proc/self/root (%d)", results[26]);
	ok(results[27] == EACCES, "dots end at the root (%d)", results[27]);
	ok(results[28] == 0 && results[29] == ENOENT, "a directory that is gone (%d)", results[29]);
}

/* --- Named pipes --- */

/* Another process: reads from the pipe after a while, and ends with how much it was. */
static pid_t read_later(const char *path)
{
	const pid_t pid = fork();
	char text[16];
	int fd;

	if (pid != 0)
		return pid;
	usleep(100 * 1000);
	fd = open(path, O_RDONLY);
	_exit(fd < 0 ? 99 : (int)read(fd, text, sizeof(text)));
}

static int pipes(void)
{
	int fd, status = -1;
	pid_t pid;

	if (chdir(ws) < 0)
		return 1;
	results[0] = ERR(mkfifo("p", 0600));
	results[1] = open_close("p", O_WRONLY | O_NONBLOCK);
	results[2] = open_close("p", O_RDWR);
	pid = read_later("p");
	fd = open("p", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	results[3] = fd < 0 || (fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK)) != O_WRONLY;
	results[4] = (int)write(fd, "hello", 5);
	close(fd);
	results[5] =
		waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	/* One that gives up is no writer any more: nobody is there to be read from. */
	pid = fork();
	if (pid == 0) {
		alarm(1);
		_exit(open_close("p", O_WRONLY));
	}
	results[6] = waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) ? WTERMSIG(status) : -1;
	pid = fork();
	if (pid == 0) {
		alarm(1);
		_exit(open_close("p", O_RDONLY));
	}
	results[7] = waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) ? WTERMSIG(status) : -1;
	results[8] = ERR(rename("p", "sub/q"));
	results[9] = open_close("sub/q", O_RDWR);
	return 0;
}

static void test_pipes(void)
{
	struct box b = make_box(BOX_WRITE);

	fresh();
	ok(box_run(&b, pipes) == 0, "the program runs");
	ok(results[0] == 0 && results[1] == ENXIO, "a pipe nobody reads (%d %d)", results[0],
	   results[1]);
	ok(results[2] == 0, "is opened for both");
	ok(results[3] == 0 && results[4] == 5 && results[5] == 5,
	   "a writer waits for its reader (%d %d %d)", results[3], results[4], results[5]);
	ok(results[6] == SIGALRM, "or until a signal (%d)", results[6]);
	ok(results[7] == SIGALRM, "and leaves no writer behind (%d)", results[7]);
	ok(results[8] == 0 && results[9] == 0, "by another name, too (%d)", results[9]);
	ok(b.events_n == 0, "nothing was denied (%zu)", b.events_n);
}

/* --- Names --- */

static int names(void)
{
	if (chdir(ws) < 0)
		return 1;
	umask(022);
	results[0] = ERR(mkdir("d", 0777));
	results[1] = ERR(mkdir("d", 0777));
	results[2] = ERR(mkdir("d/e/", 0777));
	results[3] = ERR(mkdir(".", 0777));
	results[4] = ERR(mkdir("../out", 0777));
	results[5] = ERR(mkdir("../out/d", 0777));
	results[6] = ERR(rmdir("d"));
	results[7] = ERR(rmdir("d/."));
	results[8] = ERR(unlink("d"));
	results[9] = ERR(unlink("none"));
	results[10] = ERR(unlink("../out/secret"));
	results[11] = ERR(unlink("../out/none"));
	results[12] = ERR(rename("d", "moved"));
	results[13] = ERR(rename("old", "moved/old"));
	results[14] = ERR(rename("moved/old", "moved/e"));
	results[15] = ERR(syscall(SYS_renameat2, AT_FDCWD, "moved/old", AT_FDCWD, "sub", 1));
	results[16] = ERR(syscall(SYS_renameat2, AT_FDCWD, "moved", AT_FDCWD, "sub", 2));
	results[17] = ERR(rename("sub", "sub/e/x"));
	results[18] = ERR(mknod("node", S_IFREG | 0666, 0));
	results[19] = ERR(rmdir("moved/"));
	results[20] = ERR(rename("none", "some"));
	results[21] = ERR(unlink("sub/old/"));
	results[22] = ERR(mkdir("/", 0777));
	results[23] = ERR(rename(".", "x"));
	return 0;
}

static void test_names(void)
{
	static const int want[] = { 0,	       EEXIST, 0,      EEXIST,	EEXIST, EACCES,
				    ENOTEMPTY, EINVAL, EISDIR, ENOENT,	EACCES, ENOENT,
				    0,	       0,      EISDIR, EEXIST,	0,	EINVAL,
				    0,	       0,      ENOENT, ENOTDIR, EEXIST, EBUSY };
	struct box b = make_box(BOX_WRITE);

	fresh();
	ok(box_run(&b, names) == 0, "the program runs");
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		ok(results[i] == want[i], "step %zu: %d, want %d", i, results[i], want[i]);
	ok(there(ws, "sub/old") && there(ws, "sub/e") && !there(ws, "moved"),
	   "all is where it belongs");
	ok((stat_of(ws, "sub").st_mode & 0777) == 0755 &&
		   (stat_of(ws, "node").st_mode & 0777) == 0644,
	   "with the umask");
	ok(b.events_n == 2, "two denials (%zu)", b.events_n);
}

/* --- Protected names --- */

static int protected(void)
{
	static const char *const shut[] = { ".git/hooks/post-checkout",
					    ".claude/settings.json",
					    ".mcp.json",
					    ".envrc",
					    ".vscode/tasks.json",
					    "sub/.bashrc",
					    ".git/info/attributes",
					    "agent.writ",
					    ".git/config" };
	int bad = 0;

	if (chdir(ws) < 0)
		return 1;
	for (size_t i = 0; i < ARRAY_LEN(shut); i++)
		if (open_close(shut[i], O_WRONLY | O_CREAT) == 0)
			bad++;
	results[0] = bad;
	results[1] = ERR(mkdir(".claude", 0700));
	results[2] = ERR(mkdir("sub/.vscode", 0700));
	results[3] = ERR(rename("old", ".envrc"));
	results[4] = ERR(rename("sub", ".git/hooks"));
	results[5] = ERR(rename(".git", "git"));
	results[6] = ERR(rename(".git/config", "config"));
	results[7] = ERR(link(".git/config", "config"));
	results[8] = ERR(symlink("sub", ".claude"));
	results[9] = ERR(symlink("sub", ".config"));
	results[10] = ERR(mkdir("x", 0700)) || ERR(mkdir("x/hooks", 0700)) ||
		      open_close("x/hooks/pre-commit", O_WRONLY | O_CREAT);
	results[11] = ERR(rename("x", "sub/.git"));
	results[12] = ERR(rename("x/hooks", ".git/hooks"));
	results[13] =
		ERR(mkdir("y", 0700)) || ERR(mkdir("y/.git", 0700)) || ERR(rename("x", "y/z"));
	results[14] = ERR(rename("y/z/hooks", "y/.git/hooks"));
	results[15] = ERR(unlink("keep/.envrc"));
	results[16] = ERR(rename("keep", "kept"));
	results[17] = ERR(rename("plain", "plainer"));
	results[18] = ERR(mkdir(".git/hooks", 0700));
	results[19] = open_close(".git/hooks/pre-commit.sample", O_WRONLY | O_CREAT);
	results[20] = ERR(rename(".git/hooks/pre-commit.sample", ".git/hooks/pre-commit"));
	results[21] = ERR(link(".git/hooks/pre-commit.sample", ".git/hooks/pre-commit"));
	results[22] = ERR(mkdir(".config", 0700));
	results[23] = ERR(rename(".config", "cfg"));
	results[24] = open_close("sub/agent.writ", O_WRONLY | O_CREAT);
	results[25] = open_close(".idea", O_WRONLY | O_CREAT);
	results[26] = ERR(truncate(".git/config", 0));
	results[27] = ERR(unlink(".git/config"));
	return 0;
}

static void test_protected(void)
{
	const struct sv opens_list = SV(".idea");
	struct box b = make_box(BOX_WRITE);
	char cmd[512];

	fresh();
	b.opt.opens = &opens_list;
	b.opt.opens_n = 1;
	snprintf(cmd, sizeof(cmd),
		 "cd %s && mkdir -p keep plain/a/b && echo > keep/.envrc && echo > plain/a/b/c",
		 ws);
	ok(system(cmd) == 0, "prepared");
	ok(box_run(&b, protected) == 0, "the program runs");
	ok(results[0] == 0, "no protected file is made (%d)", results[0]);
	for (int i = 1; i <= 9; i++)
		ok(results[i] == EACCES, "step %d: %d", i, results[i]);
	ok(results[10] == 0, "hooks that are nobody's are fine (%d)", results[10]);
	ok(results[11] == EACCES && results[12] == EACCES, "until they would become git's (%d %d)",
	   results[11], results[12]);
	ok(results[13] == 0 && results[14] == EACCES, "in any repository (%d %d)", results[13],
	   results[14]);
	ok(results[15] == EACCES && results[16] == EACCES && there(ws, "keep/.envrc"),
	   "what is there stays, also inside a directory (%d %d)", results[15], results[16]);
	ok(results[17] == 0 && there(ws, "plainer/a/b/c"), "ordinary directories move");
	ok(results[18] == 0 && results[19] == 0, "samples are fine (%d %d)", results[18],
	   results[19]);
	ok(results[20] == EACCES && results[21] == EACCES, "as long as they stay samples");
	ok(results[22] == 0 && results[23] == EACCES,
	   "a directory that may hold one does not move");
	ok(results[24] == 0, "the top only means the top (%d)", results[24]);
	ok(results[25] == 0, "open lifts one (%d)", results[25]);
	ok(results[26] == EACCES, "the configuration is not cut");
	ok(results[27] == 0, "but one with nothing special in it may go (%d)", results[27]);
	ok(strstr(box_denied(&b, "/.envrc")->extra, "direnv"), "the reason is said");
	ok(box_denied(&b, "/.envrc")->reason == CAP_REASON_PROTECTED &&
		   protect_find(SV(".envrc")) ==
			   protect_names + box_denied(&b, "/.envrc")->protect - 1,
	   "and the name to open is known");
}

/* --- Configuration and pointers --- */

static int set_file(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	int r = fd < 0 ? errno : 0;

	if (fd >= 0) {
		if (write(fd, text, strlen(text)) < 0)
			r = errno;
		close(fd);
	}
	return r;
}

static int config(void)
{
	int fd;

	if (chdir(ws) < 0)
		return 1;
	(void)set_file(".git/config.lock", "[core]\n\tbare = false\n[user]\n\tname = n\n");
	fd = open(".git/config.lock", O_WRONLY | O_APPEND);
	results[0] = ERR(rename(".git/config.lock", ".git/config"));
	/* Still open: must not reach what was installed. */
	if (write(fd, "[core]\n\thooksPath = x\n", 22) != 22)
		return 2;
	close(fd);
	(void)set_file("evil", "[core]\n\thooksPath = /tmp\n");
	results[1] = ERR(rename("evil", ".git/config"));
	(void)set_file("evil", "[core]\n\thooksPath = /tmp\n");
	results[2] = ERR(unlink(".git/config")) || ERR(link("evil", ".git/config")) != EACCES;
	results[3] = ERR(mkdir("bare", 0700)) || set_file("bare/config", "[core]\nfsmonitor=x\n") ||
		     ERR(mkdir("bare/refs", 0700));
	results[4] = ERR(mkdir("bare/objects", 0700));
	results[5] = ERR(unlink("bare/config")) || set_file("bare/config", "[core]\nbare=true\n");
	fd = open("bare/config", O_WRONLY | O_APPEND);
	results[6] = ERR(mkdir("bare/objects", 0700));
	if (write(fd, "[core]\nfsmonitor=x\n", 19) != 19)
		return 3;
	close(fd);
	results[7] = open_close("bare/config", O_WRONLY);
	results[8] = ERR(rename("evil", "bare/config"));
	results[9] = ERR(mkdir("bare/hooks", 0700));
	results[10] = open_close("bare/hooks/update", O_WRONLY | O_CREAT);
	results[11] = ERR(symlink("/tmp", "bare/hooks2"));
	results[12] = ERR(mkdir("b2", 0700)) || ERR(mkdir("b2/objects", 0700)) ||
		      ERR(mkdir("b2/hooks", 0700)) || set_file("b2/hooks/update", "x");
	results[13] = set_file("b2/HEAD", "ref: x\n");
	results[14] = ERR(mkdir("b2/refs", 0700));
	results[15] = ERR(mkdir("wt", 0700)) || ERR(mkdir(".git/worktrees", 0700)) ||
		      ERR(mkdir(".git/worktrees/wt", 0700));
	(void)set_file("wt/.git", "gitdir: /tmp/evil\n");
	results[16] = access("wt/.git", F_OK) == 0;
	{
		char text[256];

		snprintf(text, sizeof(text), "gitdir: %s/.git/worktrees/wt\n", ws);
		results[17] = set_file("wt/.git", text);
		/* Any mediated call comes after what was closed. */
		(void)set_file("wt/file", "x");
		results[18] = access("wt/.git", F_OK);
		(void)set_file("wt/evil", "gitdir: ../evil\n");
		results[19] = ERR(rename("wt/evil", "wt/.git"));
		(void)set_file("wt/good", "gitdir: ../.git/worktrees/wt\n");
		results[20] = ERR(rename("wt/good", "wt/.git"));
		results[21] = ERR(symlink("../.git", "sub/.git"));
	}
	return 0;
}

static void test_config(void)
{
	struct box b = make_box(BOX_WRITE);

	fresh();
	ok(box_run(&b, config) == 0, "the program runs");
	ok(results[0] == 0, "a harmless change passes (%d)", results[0]);
	ok(results[1] == EACCES, "another does not (%d)", results[1]);
	ok(strstr(box_denied(&b, ".git/config")->extra, "core.hookspath"),
	   "and the key is named: %s", box_denied(&b, ".git/config")->extra);
	ok(results[2] == 0 && !there(ws, ".git/config"), "nor by a link");
	ok(results[3] == 0 && results[4] == EACCES,
	   "no repository around an unchecked file (%d %d)", results[3], results[4]);
	ok(results[5] == 0 && results[6] == 0, "one around a checked file (%d %d)", results[5],
	   results[6]);
	is_str(text_of(ws, "bare/config"), "[core]\nbare=true\n",
	       "which nobody can write any more");
	ok(results[7] == EACCES && results[8] == EACCES, "in no way (%d %d)", results[7],
	   results[8]);
	ok(results[9] == 0 && results[10] == EACCES, "no hooks there (%d %d)", results[9],
	   results[10]);
	ok(results[12] == 0 && results[13] == EACCES && !there(ws, "b2/HEAD"),
	   "nor around hooks (%d %d)", results[12], results[13]);
	ok(results[15] == 0 && results[16] == 0, "a .git file that leads out is not made");
	ok(results[17] == 0 && results[18] == 0, "one that leads to a worktree is (%d %d)",
	   results[17], results[18]);
	ok(results[19] == EACCES && results[20] == 0 && results[21] == EACCES,
	   "by renaming as well, and never a link (%d %d %d)", results[19], results[20],
	   results[21]);
	is_str(text_of(ws, "wt/.git"), "gitdir: ../.git/worktrees/wt\n", "the last good one");
}

/* --- Finer rules --- */

static int fine(void)
{
	if (chdir(ws) < 0)
		return 1;
	results[0] = set_file("logs/a.log", "x");
	results[1] = set_file("logs/a.txt", "x");
	results[2] = set_file("logs/sub/a.log", "x");
	results[3] = set_file("box/new", "x");
	results[4] = ERR(unlink("box/new"));
	results[5] = open_close("box/new", O_WRONLY | O_TRUNC);
	results[6] = open_close("box/new", O_RDWR);
	results[7] = open_close("box/new", O_WRONLY | O_APPEND);
	results[8] = open_close("open/.env", O_WRONLY);
	results[9] = open_close("open/.env", O_RDWR);
	results[10] = ERR(rename("open/.env", "open/x"));
	results[11] = ERR(link("open/.env", "open/x"));
	results[12] = set_file("open/fixed", "x");
	results[13] = set_file("asked/x", "x");
	results[14] = open_close("open/.env", O_RDONLY);
	results[15] = open_close("open/seen", O_RDONLY);
	results[16] = open_close("open", O_RDONLY | O_DIRECTORY);
	results[17] = open_close("/etc/passwd", O_RDONLY);
	results[18] = ERR(symlink("../open/.env", "logs/l.log"));
	results[19] = open_close("logs/l.log", O_RDONLY);
	results[20] = open_close("open/none", O_RDONLY);
	results[21] = ERR(rename("open/d", "open/e"));
	return 0;
}

static void test_fine(void)
{
	static struct sv roots[1];
	struct cap_set s = { 0 };
	struct box b = make_box(BOX_WRITE | BOX_READ);
	char cmd[512], text[256];

	fresh();
	snprintf(cmd, sizeof(cmd),
		 "cd %s && mkdir -p logs/sub box open/d asked && echo s > open/.env && echo > "
		 "open/seen && echo "
		 "> open/fixed && cp open/.env open/d/hidden",
		 ws);
	ok(system(cmd) == 0, "prepared");
	cap(&s, CAP_GRANT, "fs.read", "", "/**");
	cap(&s, CAP_GRANT, "fs.write", ws, "/logs/*.log");
	cap(&s, CAP_GRANT, "fs.put", ws, "/box/**");
	cap(&s, CAP_GRANT, "fs.write", ws, "/open/**");
	cap(&s, CAP_GRANT, "fs.write", ws, "/asked/**;approve=human");
	snprintf(text, sizeof(text), "fs.read:r:/**/.env/**");
	box_cap(&s, CAP_DENIAL, text);
	cap(&s, CAP_DENIAL, "fs.write", ws, "/open/fixed/**");
	cap(&s, CAP_DENIAL, "fs.read", ws, "/open/d/hidden/**");
	roots[0] = sv_from(ws);
	b.opt.set = &s;
	b.opt.read_roots = roots;
	b.opt.read_roots_n = 1;
	ok(box_run(&b, fine) == 0, "the program runs");
	ok(results[0] == 0 && results[1] == EACCES && results[2] == EACCES, "a star (%d %d %d)",
	   results[0], results[1], results[2]);
	ok(results[3] == 0 && results[4] == EACCES && results[5] == EACCES &&
		   results[6] == EACCES && results[7] == 0,
	   "a drop box (%d %d %d %d %d)", results[3], results[4], results[5], results[6],
	   results[7]);
	ok(results[8] == 0 && results[9] == EACCES, "written, not read (%d %d)", results[8],
	   results[9]);
	ok(results[10] == EACCES && results[11] == EACCES, "nor under another name (%d %d)",
	   results[10], results[11]);
	ok(results[12] == EACCES && box_denied(&b, "/fixed") &&
		   box_denied(&b, "/fixed")->rule != RULE_NONE,
	   "a denial names its rule");
	ok(results[13] == EACCES && box_denied(&b, "/asked/x")->cause == CAUSE_APPROVAL,
	   "who would ask is not there");
	ok(results[14] == EACCES && results[15] == 0 && results[16] == 0 && results[17] == 0 &&
		   results[20] == ENOENT,
	   "reading (%d %d %d %d %d)", results[14], results[15], results[16], results[17],
	   results[20]);
	ok(results[18] == 0 && results[19] == EACCES, "by a link (%d %d)", results[18],
	   results[19]);
	ok(results[21] == EACCES, "nor by moving its directory (%d)", results[21]);
}

/* --- Programs, watching, endings --- */

static int programs(void)
{
	if (chdir(ws) < 0)
		return 1;
	execl("/bin/sh", "sh", "-c", "echo hi > out.txt; /bin/true a b; exit 7", (char *)NULL);
	return 99;
}

static void test_exec(void)
{
	struct box b = make_box(BOX_WRITE | BOX_EXEC);

	fresh();
	ok(box_run(&b, programs) == 7, "a shell runs");
	ok(b.events_n == 2 && b.events[0].op == MEDIATE_EXEC && !b.events[0].denied,
	   "two execs are seen");
	is_str(b.events[0].object, "/bin/sh", "which");
	is_str(b.events[1].extra, "/bin/true a b", "with what");
	is_str(text_of(ws, "out.txt"), "hi\n", "and it writes");
	b.opt.no_exec = true;
	ok(box_run(&b, programs) == 7, "the first program runs");
	ok(b.events_n == 2 && b.events[1].denied, "and no other");
}

static int watched(void)
{
	results[0] = chdir(ws) < 0 || set_file(".envrc", "x");
	results[1] = set_file("../out/x", "x");
	results[2] = ERR(rename("old", "new"));
	return 0;
}

static void test_watch(void)
{
	struct box b = make_box(BOX_WRITE);

	fresh();
	b.opt.observe_only = true;
	ok(box_run(&b, watched) == 0, "the program runs");
	ok(results[0] == 0 && results[1] == 0 && results[2] == 0, "nothing is refused");
	ok(there(ws, ".envrc") && there(out, "x") && there(ws, "new"), "and all is done");
	ok(b.events_n == 2 && b.events[0].denied && b.events[0].sys == 0, "but noted (%zu)",
	   b.events_n);
}

static int endless(void)
{
	if (chdir(ws) < 0)
		return 1;
	for (;;) {
		(void)set_file("loop", "x");
		(void)unlink("loop");
	}
}

static void test_ends(void)
{
	struct box b = make_box(BOX_WRITE);
	struct writ_err err = { 0 };
	struct mediate_event e;
	int served = 0;
	pid_t pid;

	fresh();
	for (int i = 0; i < 20; i++) {
		pid = box_start(&b, endless);
		for (int k = 0; k < 30; k++)
			if (mediate_wait(b.m, -1, 1, &e, &err) == 0)
				served++;
		kill(pid, SIGKILL);
		/* The listener hangs up, and with nobody left there is nothing to wait for. */
		if (mediate_wait(b.m, -1, 10000, &e, &err) != 0)
			ok(false, "hang up: %s", err.what);
		waitpid(pid, NULL, 0);
		mediate_free(b.m);
	}
	ok(served == 600, "targets may die at any moment");
	pid = box_start(&b, endless);
	mediate_free(b.m);
	usleep(20000);
	kill(pid, SIGKILL);
	ok(waitpid(pid, NULL, 0) == pid, "and so may we");
}

/* --- Live grants --- */

static int granted(void)
{
	char path[256], go;

	snprintf(path, sizeof(path), "%s/live", out);
	for (int i = 0; i < 4; i++) {
		results[i] = set_file(path, "x");
		results[10] = i + 1;
		while (results[11] <= i)
			usleep(1000);
	}
	(void)go;
	return 0;
}

static void test_grant(void)
{
	struct box b = make_box(BOX_WRITE);
	struct cap_set extra = { 0 };
	struct writ_err err = { 0 };
	struct mediate_event e;
	pid_t pid;

	fresh();
	cap(&extra, CAP_GRANT, "fs.write", out, "/**");
	pid = box_start(&b, granted);
	for (int i = 0; i < 4; i++) {
		results[11] = i;
		while (results[10] < i + 1)
			if (mediate_wait(b.m, -1, 5, &e, &err) < 0)
				break;
		if (i == 0)
			ok(mediate_grant(b.m, &extra.caps.v[0], &err) == 0 &&
				   mediate_grant(b.m, &extra.caps.v[0], &err) == 0,
			   "granted twice");
		else if (mediate_revoke(b.m, &extra.caps.v[0], &err) < 0)
			break;
	}
	results[11] = 4;
	box_serve(&b, pid);
	ok(results[0] == EACCES && results[1] == 0 && results[2] == 0 && results[3] == EACCES,
	   "refused, granted, and refused again with the second revoke (%d %d %d %d)", results[0],
	   results[1], results[2], results[3]);
}

/* --- Another user --- */

enum { OTHER = 65534 };

static int become_other(void)
{
	return setresgid(OTHER, OTHER, OTHER) < 0 || setresuid(OTHER, OTHER, OTHER) < 0;
}

static int other(void)
{
	if (chdir(ws) < 0)
		return 1;
	results[0] = set_file("shared/new", "x");
	results[1] = set_file("shared/roots", "x");
	results[2] = ERR(unlink("closed/f"));
	results[3] = ERR(mkdir("closed/d", 0755));
	results[4] = open_close("hidden/f", O_WRONLY);
	results[5] = ERR(mkdir("shared/d", 0755));
	return 0;
}

/* A mediator that is root acts as the user it acts for. */
static void test_other(void)
{
	struct box b = make_box(BOX_WRITE);
	char cmd[512];

	if (getuid() != 0)
		return;
	fresh();
	snprintf(cmd, sizeof(cmd),
		 "chmod 755 %s && cd %s && mkdir -m 777 shared && mkdir closed && mkdir -m 700 "
		 "hidden && echo r > "
		 "shared/roots && touch closed/f hidden/f && chmod 666 hidden/f",
		 base, ws);
	ok(system(cmd) == 0, "prepared");
	b.inside = become_other;
	ok(box_run(&b, other) == 0, "the program runs");
	ok(results[0] == 0 && stat_of(ws, "shared/new").st_uid == OTHER &&
		   stat_of(ws, "shared/new").st_gid == OTHER && results[5] == 0,
	   "what it makes is its own (%d)", results[0]);
	ok(results[1] == EACCES && results[2] == EACCES && results[3] == EACCES &&
		   results[4] == EACCES,
	   "what it may not touch stays shut (%d %d %d %d)", results[1], results[2], results[3],
	   results[4]);
	is_str(text_of(ws, "shared/roots"), "r\n", "as it was");
	ok(geteuid() == 0 && access("/root", W_OK) == 0, "and we are who we were");
}

/* --- Leases --- */

static int leased(void)
{
	int fd;

	if (chdir(ws) < 0)
		return 1;
	fd = open("old", O_RDWR);
	signal(SIGIO, SIG_IGN);
	results[0] = ERR(fcntl(fd, F_SETLEASE, F_WRLCK));
	results[1] = open_close("old", O_WRONLY);
	results[2] = set_file("other", "x");
	return 0;
}

static void test_lease(void)
{
	struct box b = make_box(BOX_WRITE);

	fresh();
	ok(box_run(&b, leased) == 0, "the program runs");
	ok(results[0] != 0 || results[1] == EAGAIN, "a lease does not stop us (%d %d)", results[0],
	   results[1]);
	ok(results[2] == 0, "and others are served");
}

int main(void)
{
	snprintf(base, sizeof(base), "/tmp/writ-mediate-XXXXXX");
	if (!mkdtemp(base))
		return 1;
	snprintf(ws, sizeof(ws), "%s/ws", base);
	snprintf(priv, sizeof(priv), "%s/priv", base);
	snprintf(out, sizeof(out), "%s/out", base);
	private_dirs[0] = sv_from(priv);
	cap(&set, CAP_GRANT, "fs.read", "", "/**");
	cap(&set, CAP_GRANT, "fs.write", ws, "/**");
	test_open();
	test_tricks();
	test_pipes();
	test_names();
	test_protected();
	test_config();
	test_fine();
	test_exec();
	test_watch();
	test_ends();
	test_grant();
	test_other();
	test_lease();
	{
		char cmd[128];

		snprintf(cmd, sizeof(cmd), "rm -rf %s", base);
		(void)!system(cmd);
	}
	arena_clear(&box_arena);
	return tap_done();
}
