#include "keys/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

enum { PEM_MAX = 512 };

static const char *const names[KEY_ROLES] = { [KEY_LOG] = "log", [KEY_ISSUE] = "issue" };

const char *key_role_name(enum key_role role)
{
	return role > KEY_NONE && role < KEY_ROLES ? names[role] : "none";
}

/* SECURITY: a key that others can read or write is no key. */
static int check_file(int fd, const char *name, struct writ_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", name);
	if (!S_ISREG(st.st_mode) || (st.st_mode & 077) || st.st_uid != geteuid())
		return writ_fail(err, WRIT_E_DENIED, 0,
				 "the key %s can be read or written by others: it is not used",
				 name);
	return 0;
}

static int read_key(int dir, const char *name, uint8_t ret[static 32], struct writ_err *err)
{
	scoped_fd fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct buf b = BUF_INIT(PEM_MAX);
	int r;

	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "the key %s", name);
	r = check_file(fd, name, err);
	if (r == 0)
		r = fd_read_all(fd, &b, err);
	if (r == 0)
		r = keys_parse_secret(buf_view(&b), ret, err);
	if (b.n)
		crypto_wipe(b.p, b.n);
	buf_clear(&b);
	return r;
}

static int write_key(int dir, const char *fresh, const uint8_t seed[static 32],
		     struct writ_err *err)
{
	scoped_fd fd =
		openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct buf b = BUF_INIT(PEM_MAX);
	int r;

	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", fresh);
	keys_print_secret(seed, &b);
	r = buf_check(&b, err);
	if (r == 0)
		r = fd_write_all(fd, buf_view(&b), err);
	if (r == 0 && fsync(fd) < 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "%s", fresh);
	if (b.n)
		crypto_wipe(b.p, b.n);
	buf_clear(&b);
	return r;
}

/* Two may do this at once: the one who links first has made the key of both. */
static int make_key(int dir, const char *name, uint8_t ret[static 32], struct writ_err *err)
{
	char fresh[64];
	int r = crypto_random(ret, 32, err);

	(void)snprintf(fresh, sizeof(fresh), "%s.new.%ld", name, (long)getpid());
	(void)unlinkat(dir, fresh, 0);
	if (r == 0)
		r = write_key(dir, fresh, ret, err);
	if (r == 0 && linkat(dir, fresh, dir, name, 0) < 0 && errno != EEXIST)
		r = writ_fail(err, WRIT_E_SYS, errno, "the key %s", name);
	(void)unlinkat(dir, fresh, 0);
	if (r == 0 && fsync(dir) < 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "the key %s", name);
	return r == 0 ? read_key(dir, name, ret, err) : r;
}

int keys_load(const char *dir, enum key_role role, bool make, struct key_pair *ret,
	      struct writ_err *err)
{
	scoped_fd fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct writ_err none = { 0 };
	uint8_t seed[32];
	char name[32];
	int r = 0;

	(void)snprintf(name, sizeof(name), "%s.pem", key_role_name(role));
	if (fd < 0 && errno == ENOENT && make) {
		r = fd_make_dirs(dir, err);
		fd = r < 0 ? -1 : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (r == 0 && fd < 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "%s", dir);
	if (r < 0)
		return r;
	r = read_key(fd, name, seed, &none);
	if (r < 0 && none.sys == ENOENT && make)
		r = make_key(fd, name, seed, err);
	else if (r < 0)
		*err = none;
	if (r == 0)
		sign_keypair(seed, &ret->pub, &ret->sec);
	crypto_wipe(seed, sizeof(seed));
	return r;
}
