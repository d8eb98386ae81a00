#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "signer/signer.h"

#include "base/banned.h"

/*
 * SECURITY: the configuration file selects the program whose signatures are trusted, so only root
 * may be able to write the file.
 */
static int check_root(int fd, const char *path, struct writ_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	if (!S_ISREG(st.st_mode) || st.st_uid != 0 || (st.st_mode & 022))
		return writ_fail(err, WRIT_E_DENIED, 0, "%s can be written by others than root",
				 path);
	return 0;
}

static int parse(struct sv text, struct signer_install *ret, struct writ_err *err)
{
	struct sv dir;

	if (!sv_is(sv_cut(&text, '\n'), "writ-signer 1"))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "it does not begin with writ-signer 1");
	dir = sv_cut(&text, '\n');
	if (text.n || !sv_starts(dir, SV("dir /")) || dir.n - 4 >= PATH_MAX - 32)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "it does not name a directory");
	dir = sv_skip(dir, 4);
	memcpy(ret->dir, dir.p, dir.n);
	ret->dir[dir.n] = 0;
	ret->there = true;
	return 0;
}

int signer_find(const char *conf, struct signer_install *ret, struct writ_err *err)
{
	const char *path = conf && *conf ? conf : SIGNER_CONF;
	struct signer_install in = { 0 };
	scoped_buf b = BUF_INIT(PATH_MAX);
	scoped_fd fd = -1;
	int r;

	if (strcmp(path, "none") != 0)
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (strcmp(path, "none") == 0 || (fd < 0 && errno == ENOENT)) {
		*ret = in;
		return 0;
	}
	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	r = check_root(fd, path, err);
	if (r == 0)
		r = fd_read_all(fd, &b, err);
	if (r == 0 && parse(buf_view(&b), &in, err) < 0) {
		const struct writ_err why = *err;

		r = writ_fail(err, WRIT_E_SYNTAX, 0, "%.40s: %.70s", path, why.what);
	}
	if (r == 0)
		*ret = in;
	return r;
}

int signer_open_program(const struct signer_install *in, int *ret_fd, gid_t *ret_gid,
			struct writ_err *err)
{
	char path[PATH_MAX + 32];
	struct stat st;
	scoped_fd fd = -1;

	(void)snprintf(path, sizeof(path), "%s/bin/writ-signer", in->dir);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return writ_fail(err, WRIT_E_UNENFORCEABLE, errno,
				 "writ-signer is gone; as root: writ signer install, or remove");
	if (!S_ISREG(st.st_mode) || st.st_uid != 0 || (st.st_mode & 022) ||
	    !(st.st_mode & S_ISGID) || !(st.st_mode & S_IXGRP))
		return writ_fail(err, WRIT_E_UNENFORCEABLE, 0,
				 "writ-signer is not setgid, or not root's; as root: writ signer "
				 "install");
	*ret_gid = st.st_gid;
	*ret_fd = fd_take(&fd);
	return 0;
}

bool signer_in_group(gid_t gid)
{
	gid_t v[1024];
	const int n = getgroups((int)ARRAY_LEN(v), v);

	for (int i = 0; i < n; i++)
		if (v[i] == gid)
			return true;
	return n < 0 || getgid() == gid;
}

int signer_usable(const struct signer_install *in, struct writ_err *err)
{
	struct statvfs fs;
	scoped_fd fd = -1;
	gid_t gid = 0;
	int r = signer_open_program(in, &fd, &gid, err);

	if (r < 0)
		return r;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return writ_fail(err, WRIT_E_UNENFORCEABLE, 0,
				 "writ-signer cannot start: no_new_privs is set here; set "
				 "WRIT_SIGNER=none to do without");
	if (fstatvfs(fd, &fs) == 0 && (fs.f_flag & ST_NOSUID))
		return writ_fail(err, WRIT_E_UNENFORCEABLE, 0,
				 "writ-signer cannot start: it lies on a nosuid mount; install it "
				 "with another --dir");
	/*
	 * SECURITY: a member of the signer's group could read the keys and edit the log directly,
	 * so the signatures would prove nothing.
	 */
	if (geteuid() != 0 && signer_in_group(gid))
		return writ_fail(err, WRIT_E_UNENFORCEABLE, 0,
				 "this user is in the group of writ-signer, and must not be");
	return 0;
}
