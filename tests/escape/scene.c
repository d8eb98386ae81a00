/* The scene: a workspace, what lies outside of it, and who waits there. */
#include "escape.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static void make_dirs(const char *name)
{
	char buf[PATH_SIZE];

	fmt(buf, sizeof(buf), "%s", name);
	for (char *p = buf + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		(void)mkdir(buf, 0755);
		*p = '/';
	}
}

static void plant(const char *name, const char *text, mode_t mode)
{
	make_dirs(name);
	if (write_file(name, text) < 0 || chmod(name, mode) < 0) {
		perror(name);
		exit(99);
	}
}

static void random_secret(char buf[SECRET_SIZE])
{
	unsigned char raw[16];

	if (getrandom(raw, sizeof(raw), 0) != sizeof(raw))
		abort();
	for (size_t i = 0; i < sizeof(raw); i++)
		fmt(buf + 2 * i, 3, "%02x", raw[i]);
}

/* What every attempt finds: one secret, behind each kind of file system object. */
void make_tree(const char *base, const char *secret)
{
	plant(path("%s/f", base), path("%s and more bytes behind it\n", secret), 0644);
	plant(path("%s/d/g", base), path("%s\n", secret), 0644);
	plant(path("%s/x", base), path("#!/bin/sh\necho %s\n", secret), 0755);
	plant(path("%s/n/%s", base, secret), "", 0644);
	(void)mkdir(path("%s/e", base), 0755);
	(void)!symlink("f", path("%s/l", base));
	(void)!symlink(secret, path("%s/k", base));
	(void)setxattr(path("%s/f", base), "user.k", secret, strlen(secret), 0);
}

static void make_home(const char *base, const char *secret)
{
	static const char *const files[] = {
		".ssh/id_ed25519",
		".ssh/authorized_keys",
		".aws/credentials",
		".netrc",
		".git-credentials",
		".docker/config.json",
		".npmrc",
		".pypirc",
		".kube/config",
		".config/gh/hosts.yml",
		".config/gcloud/credentials.db",
		".gnupg/secring.gpg",
		".bash_history",
		".claude/.credentials.json",
		".codex/auth.json",
		".bashrc",
		".profile",
		".gitconfig",
		".cargo/credentials.toml",
		".mozilla/firefox/key4.db",
		".local/share/keyrings/login.keyring",
		".config/rclone/rclone.conf",
	};

	for (size_t i = 0; i < LENGTH(files); i++)
		plant(path("%s/%s", base, files[i]), path("%s\n", secret), 0600);
	(void)mkdir(path("%s/.local/bin", base), 0755);
}

/* The top of the workspace is a repository with a submodule and a linked worktree. */
static void make_repository(const char *work)
{
	static const char config[] = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n";
	static const char *const dirs[] = {
		".git/objects/info/.",
		".git/objects/pack/.",
		".git/refs/heads/.",
		".git/refs/tags/.",
		"src/.",
		"nested/.git/objects/.",
		"nested/.git/refs/heads/.",
	};
	static const char *const files[][2] = {
		{ ".git/HEAD", "ref: refs/heads/main\n" },
		{ ".git/config", config },
		{ ".git/info/exclude", "# nothing\n" },
		{ ".git/hooks/pre-commit", "#!/bin/sh\nexit 0\n" },
		{ ".git/hooks/post-merge.sample", "#!/bin/sh\nexit 0\n" },
		{ ".git/modules/sub/HEAD", "ref: refs/heads/main\n" },
		{ ".git/modules/sub/config", config },
		{ ".git/modules/sub/hooks/pre-push.sample", "#!/bin/sh\n" },
		{ ".git/worktrees/w/HEAD", "ref: refs/heads/w\n" },
		{ ".git/worktrees/w/commondir", "../..\n" },
		{ ".git/worktrees/w/gitdir", "/nowhere/.git\n" },
		{ "sub/.git", "gitdir: ../.git/modules/sub\n" },
		{ "nested/.git/HEAD", "ref: refs/heads/main\n" },
		{ "nested/.git/config", config },
		{ "nested/.git/hooks/pre-commit.sample", "#!/bin/sh\n" },
		{ "src/main.c", "int main(void)\n{\n\treturn 0;\n}\n" },
	};

	for (size_t i = 0; i < LENGTH(dirs); i++)
		make_dirs(path("%s/%s", work, dirs[i]));
	for (size_t i = 0; i < LENGTH(files); i++)
		plant(path("%s/%s", work, files[i][0]), files[i][1],
		      strstr(files[i][0], "hooks/") ? 0755 : 0644);
}

/* Into a new file: root copies where another user could have put a link. Returns it open. */
static int copy_self(const char *to)
{
	char buf[65536];
	ssize_t n = 0;
	const int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0755);

	while (in >= 0 && fd >= 0 && (n = read(in, buf, sizeof(buf))) > 0)
		if (write(fd, buf, (size_t)n) != n)
			break;
	const int r = in < 0 || fd < 0 || n ? -errno : fd;
	close(in);
	if (r < 0)
		close(fd);
	return r;
}

void secret_of(const char *dir, const struct row *row, char buf[SECRET_SIZE])
{
	char text[256] = "";

	(void)read_text(path("%s/state/%s.secret", dir, row->id), text, sizeof(text));
	fmt(buf, SECRET_SIZE, "%.32s", text);
}

const char *mark_of(const char *dir)
{
	char nonce[64] = "";

	(void)read_text(path("%s/work/nonce", dir), nonce, sizeof(nonce));
	return path("we-%s", nonce);
}

const char *abstract_name(const char *dir, const char *id, const char *kind)
{
	return path("%s-%s-%s", mark_of(dir), id, kind);
}

static void scene_row(const char *dir, const struct row *row)
{
	char secret[SECRET_SIZE];
	char other[SECRET_SIZE];

	random_secret(secret);
	random_secret(other);
	plant(path("%s/state/%s.secret", dir, row->id), secret, 0600);
	make_tree(path("%s/out/%s", dir, row->id), secret);
	make_tree(path("%s/work/%s", dir, row->id), other);
	make_tree(path("%s/work/%s.c", dir, row->id), other);
	if (row->arg && !strcmp(row->arg, "neighbour"))
		make_tree(path("%s/work-evil/%s", dir, row->id), secret);
	if (row->need & NEED_HOME)
		make_home(path("%s/out/%s", dir, row->id), secret);
	if (row->need & NEED_HIDDEN) {
		plant(path("%s/work/%s/hidden.env", dir, row->id), path("SECRET: %s\n", secret),
		      0644);
		plant(path("%s/work/%s/hidden.d/%s", dir, row->id, secret), "x", 0644);
	}
	if (row->need & NEED_EXISTING)
		plant(path("%s/work/%s", dir, row->arg), "original\n", 0644);
}

const char *watch_path(const char *dir, const struct row *row)
{
	if (row->need & NEED_HOME)
		return path("%s/out/%s/%s", dir, row->id, row->arg);
	return path("%s/work/%s", dir, row->arg);
}

/* Every canary of a row, in one text that can be compared. */
void canary_state(struct text *t, const char *dir, const struct row *row)
{
	snapshot(t, path("%s/out/%s", dir, row->id), true, true);
	if (row->arg && !strcmp(row->arg, "neighbour"))
		snapshot(t, path("%s/work-evil/%s", dir, row->id), true, true);
	if (row->need & NEED_TMP) {
		snapshot(t, path("/tmp/%s", abstract_name(dir, row->id, "tmp")), true, true);
		snapshot(t, path("/dev/shm/%s", abstract_name(dir, row->id, "tmp")), true, true);
	}
}

static void save_state(const char *dir, const struct row *row)
{
	struct text t = { 0 };

	canary_state(&t, dir, row);
	plant(path("%s/state/%s.snap", dir, row->id), t.v, 0600);
	if (row->by & BY_WATCH) {
		t.n = 0;
		snapshot(&t, watch_path(dir, row), true, false);
		plant(path("%s/state/%s.watch", dir, row->id), t.v, 0600);
	}
	free(t.v);
}

static bool row_selected(const struct row *row, const char *const *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(ids[i], row->id))
			return true;
	return n == 0 && !(row->flags & ROW_OWN);
}

/* No ids: the scene of a batch, which is every row that needs no sandbox of its own. */
int scene_setup(const char *dir, const char *const *ids, size_t n)
{
	static const struct row *rows[2048];
	size_t count = 0;
	char nonce[SECRET_SIZE];

	(void)umask(022);
	make_dirs(path("%s/work/.", dir));
	make_dirs(path("%s/out/.", dir));
	make_dirs(path("%s/state/.", dir));
	random_secret(nonce);
	nonce[8] = 0;
	plant(path("%s/work/nonce", dir), nonce, 0644);
	plant(path("%s/state/events", dir), "", 0600);
	const int copy = copy_self(path("%s/work/writ-escape", dir));
	if (copy < 0)
		return 99;
	close(copy);
	make_repository(path("%s/work", dir));
	for (size_t i = 0; row_at(i) && count < LENGTH(rows); i++)
		if (row_selected(row_at(i), ids, n))
			rows[count++] = row_at(i);
	for (size_t i = 0; i < count; i++)
		scene_row(dir, rows[i]);
	if (daemon_start(dir, rows, count) < 0)
		return 99;
	for (size_t i = 0; i < count; i++)
		save_state(dir, rows[i]);
	return 0;
}

/* What only root can plant for another user: programs that raise privileges. */
int scene_setup_root(const char *dir)
{
	const struct vfs_cap_data caps = {
		.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
		.data[0].permitted = 1u << CAP_NET_RAW,
	};
	/* The scene is ours by name; what is in it may be a link by now. */
	const int top = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const int work = openat(top, "work", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (work < 0 || fchdir(work) < 0)
		return 99;
	const int suid = copy_self("suid");
	const int sgid = copy_self("sgid");
	const int filecap = copy_self("filecap");
	if (suid < 0 || fchown(suid, 0, 0) < 0 || fchmod(suid, 04755) < 0)
		return 99;
	if (sgid < 0 || fchown(sgid, 0, 1) < 0 || fchmod(sgid, 02755) < 0)
		return 99;
	if (filecap < 0 || fchown(filecap, 0, 0) < 0 ||
	    fsetxattr(filecap, "security.capability", &caps, XATTR_CAPS_SZ_2, 0) < 0)
		return 99;
	return 0;
}

/* Ends what setup started and removes what it made outside of the scene. */
int scene_teardown(const char *dir)
{
	char text[64];

	if (read_text(path("%s/state/daemon", dir), text, sizeof(text)) <= 0)
		return 0;
	const pid_t pid = (pid_t)number_of(text);
	if (pid > 1 && kill(pid, SIGTERM) == 0)
		for (int i = 0; i < 2500; i++) {
			char stat[512] = "";

			/* Gone, or a zombie that its parent has not noticed yet. */
			if (read_text(path("/proc/%d/stat", (int)pid), stat, sizeof(stat)) <= 0 ||
			    strstr(stat, ") Z "))
				break;
			nap(2);
		}
	return 0;
}
