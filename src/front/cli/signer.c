#include "signer/signer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"

#include "base/banned.h"

/*
 * Owners and modes of the signer's directory DIR:
 *
 * DIR			owned by root, readable by all users
 * DIR/bin/writ-signer	owned by root, set-group-id to the signer's group
 * DIR/data		owned by the signer's user and group, closed to all other users
 */

enum { ACCOUNTS_MAX = 4 << 20, PROGRAM_MAX = 64 << 20 };

static const char *conf_path(void)
{
	const char *named = getenv("WRIT_SIGNER");

	return named && *named ? named : SIGNER_CONF;
}

static int need_root(void)
{
	if (geteuid() == 0)
		return 0;
	return cli_end(EXIT_FAILED, "only root can do that: sudo writ signer install");
}

/* --- the account --- */

/*
 * Reads the number in the third field of the line of @name in an account file: the uid in passwd,
 * the gid in group. Fails if the number is 0.
 */
static bool find_account(const char *file, struct sv name, uint32_t *ret)
{
	scoped_buf b = BUF_INIT(ACCOUNTS_MAX);
	struct writ_err ignored = { 0 };
	struct sv rest;
	uint64_t n;

	if (fd_read_file(file, &b, &ignored) < 0)
		return false;
	rest = buf_view(&b);
	while (rest.n) {
		struct sv line = sv_cut(&rest, '\n');

		if (!sv_eq(sv_cut(&line, ':'), name))
			continue;
		(void)sv_cut(&line, ':');
		if (!sv_to_u64(sv_cut(&line, ':'), UINT32_MAX - 1, &n) || n == 0)
			return false;
		*ret = (uint32_t)n;
		return true;
	}
	return false;
}

static bool is_account_name(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!(s.p[i] >= 'a' && s.p[i] <= 'z') && !(s.p[i] >= '0' && s.p[i] <= '9') &&
		    s.p[i] != '-' && s.p[i] != '_')
			return false;
	return s.n > 0 && s.n <= 31 && s.p[0] >= 'a';
}

static int add_account(const char *name, struct writ_err *err)
{
	char *copy = strdup(name);
	char *const argv[] = { (char[]){ "useradd" },
			       (char[]){ "--system" },
			       (char[]){ "--user-group" },
			       (char[]){ "--no-create-home" },
			       (char[]){ "--home-dir" },
			       (char[]){ "/nonexistent" },
			       (char[]){ "--shell" },
			       (char[]){ "/usr/sbin/nologin" },
			       copy,
			       NULL };
	char *const env[] = { (char[]){ "PATH=/usr/sbin:/usr/bin:/sbin:/bin" }, NULL };
	int status = -1;
	pid_t pid = copy ? fork() : -1;

	if (pid == 0) {
		execve("/usr/sbin/useradd", argv, env);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	free(copy);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return writ_fail(err, WRIT_E_SYS, 0,
				 "useradd does not make %s: make a user and a group of that name",
				 name);
	return 0;
}

static int account(const char *name, uid_t *ret_uid, gid_t *ret_gid, struct writ_err *err)
{
	const struct sv s = sv_from(name);
	uint32_t uid = 0, gid = 0;

	if (!is_account_name(s))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "--user wants the name of an account");
	if ((!find_account("/etc/group", s, &gid) || !find_account("/etc/passwd", s, &uid)) &&
	    add_account(name, err) < 0)
		return err->code;
	if (!find_account("/etc/group", s, &gid) || !find_account("/etc/passwd", s, &uid))
		return writ_fail(err, WRIT_E_SYS, 0, "there is no user and group %s", name);
	*ret_uid = uid;
	*ret_gid = gid;
	return 0;
}

/* --- the directory --- */

/*
 * SECURITY: @dir and every directory above it must belong to root, and only root may write to them;
 * otherwise another user could replace @dir. A directory with the sticky bit may be writable by
 * all.
 */
static int check_above(const char *dir, struct writ_err *err)
{
	char path[2 * PATH_MAX];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s", dir);
	for (;;) {
		char *slash = strrchr(path, '/');

		if (lstat(path, &st) < 0)
			return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
		if (!S_ISDIR(st.st_mode) || st.st_uid != 0 ||
		    ((st.st_mode & 022) && !(st.st_mode & S_ISVTX)))
			return writ_fail(err, WRIT_E_DENIED, 0,
					 "%.80s is not root's alone: choose another --dir", path);
		if (slash == path && path[1] == 0)
			return 0;
		slash[slash == path] = 0;
	}
}

/*
 * Creates a directory and sets its owner, group and mode. SECURITY: a directory that exists already
 * must belong to @uid and must not be a symbolic link.
 */
static int make_dir(const char *path, uid_t uid, gid_t gid, mode_t mode, struct writ_err *err)
{
	const bool made = mkdir(path, 0700) == 0;
	struct stat st;

	if (!made && errno != EEXIST)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || (!made && st.st_uid != uid))
		return writ_fail(err, WRIT_E_DENIED, 0, "%.80s is there, and somebody else's",
				 path);
	if (lchown(path, uid, gid) < 0 || chmod(path, mode) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	return 0;
}

static int put_program(const char *path, gid_t gid, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(PROGRAM_MAX);
	scoped_fd from = -1, to = -1;
	char fresh[PATH_MAX + 64];
	int r = signer_open_plain(&from, err);

	if (r < 0 || (r = fd_read_all(from, &b, err)) < 0)
		return r;
	(void)snprintf(fresh, sizeof(fresh), "%s.new", path);
	(void)unlink(fresh);
	to = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0700);
	if (to < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", fresh);
	r = fd_write_all(to, buf_view(&b), err);
	/* Set the set-group-id bit last: writing the file and changing its group clear the bit. */
	if (r == 0 && (fchown(to, 0, gid) < 0 || fchmod(to, 02755) < 0 || fsync(to) < 0 ||
		       rename(fresh, path) < 0))
		r = writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	if (r < 0)
		(void)unlink(fresh);
	return r;
}

static int put_conf(const char *dir, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(2 * PATH_MAX);
	const char *path = conf_path();
	char above[2 * PATH_MAX];
	char *slash;

	(void)snprintf(above, sizeof(above), "%s", path);
	slash = strrchr(above, '/');
	if (slash && slash != above) {
		*slash = 0;
		if (mkdir(above, 0755) < 0 && errno != EEXIST)
			return writ_fail(err, WRIT_E_SYS, errno, "%s", above);
	}
	buf_fmt(&b, "writ-signer 1\ndir %s\n", dir);
	return fd_replace_file(path, buf_view(&b), 0644, err);
}

static int make_place(struct arena *a, const char *dir, uid_t uid, gid_t gid, struct writ_err *err)
{
	const char *bin = arena_fmt(a, "%s/bin", dir), *data = arena_fmt(a, "%s/data", dir);
	const char *program = arena_fmt(a, "%s/bin/writ-signer", dir);
	struct statvfs fs;
	int r;

	if (!bin || !data || !program)
		return writ_nomem(err);
	if ((r = make_dir(dir, 0, 0, 0755, err)) < 0 || (r = check_above(dir, err)) < 0 ||
	    (r = make_dir(bin, 0, 0, 0755, err)) < 0)
		return r;
	if (statvfs(bin, &fs) == 0 && (fs.f_flag & ST_NOSUID))
		return writ_fail(err, WRIT_E_UNENFORCEABLE, 0,
				 "%.80s lies on a nosuid mount: choose another --dir", dir);
	if ((r = make_dir(data, uid, gid, 02770, err)) < 0)
		return r;
	return put_program(program, gid, err);
}

/* --- the verbs of `writ signer` --- */

static int install(struct args *a)
{
	const char *dir = a->given[OPT_DIR] ? a->value[OPT_DIR] : SIGNER_DIR;
	const char *name = a->given[OPT_USER] ? a->value[OPT_USER] : SIGNER_USER;
	struct writ_err err = { 0 };
	uid_t uid = 0;
	gid_t gid = 0;
	int r = need_root();

	if (r)
		return r;
	if (dir[0] != '/' || strlen(dir) >= PATH_MAX - 64 || strpbrk(dir, "\n") || !dir[1] ||
	    dir[strlen(dir) - 1] == '/')
		return cli_end(EXIT_FAILED, "--dir wants a whole path");
	if (account(name, &uid, &gid, &err) < 0 || make_place(a->arena, dir, uid, gid, &err) < 0 ||
	    put_conf(dir, &err) < 0)
		return cli_fail(&err, NULL);
	return cli_end(EXIT_DONE, "installed in %s, group %s; every session of this machine is "
		       "kept there from now on", dir, name);
}

static int status(struct args *a)
{
	struct buf b = BUF_INIT(8192);
	struct signer_install in;
	struct writ_err err = { 0 };

	(void)a;
	if (signer_find(conf_path(), &in, &err) < 0)
		return cli_fail(&err, NULL);
	if (!in.there) {
		buf_str(&b,
			"not installed: sessions are self-attested (same user holds the key)\n");
		return cli_out(&b, EXIT_NO);
	}
	if (signer_usable(&in, &err) < 0)
		return cli_fail(&err, NULL);
	buf_fmt(&b, "installed in %s; this user can start it\n", in.dir);
	return cli_out(&b, EXIT_DONE);
}

static int remove_it(struct args *a)
{
	struct signer_install in;
	struct writ_err err = { 0 };
	const char *program;
	int r = need_root();

	if (r)
		return r;
	if (signer_find(conf_path(), &in, &err) < 0)
		return cli_fail(&err, NULL);
	if (!in.there)
		return cli_end(EXIT_DONE, "it is not installed");
	program = arena_fmt(a->arena, "%s/bin/writ-signer", in.dir);
	if (!program || (unlink(program) < 0 && errno != ENOENT) || unlink(conf_path()) < 0)
		return cli_end(EXIT_FAILED, "%s: %s", in.dir, strerror(errno));
	return cli_end(EXIT_DONE, "removed; its logs and keys stay in %s/data", in.dir);
}

int cmd_signer(struct args *a)
{
	const struct sv what = a->operands.n == 1 ? sv_from(a->operands.v[0]) : SV("");

	if (sv_is(what, "install"))
		return install(a);
	if (sv_is(what, "status"))
		return status(a);
	if (sv_is(what, "remove"))
		return remove_it(a);
	return cli_end(EXIT_FAILED, "signer install, status or remove; see writ help signer");
}
