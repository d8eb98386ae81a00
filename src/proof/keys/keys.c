#include "keys/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

enum { PEM_MAX = 512, NAME_MAX_BYTES = 32 };

static const char *const names[KEY_ROLES] = {
	[KEY_LOG] = "log", [KEY_ISSUE] = "issue", [KEY_WITNESS] = "witness"
};

const char *keys_role_name(enum key_role role)
{
	return role > KEY_NONE && role < KEY_ROLES ? names[role] : "none";
}

/*
 * SECURITY: refuse a key file that other users can read or write, or that belongs to another user.
 * Signatures of such a key would prove nothing.
 */
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

/*
 * Makes a key file. Two processes may make the same key at once: link() fails for the second
 * process, and both then read the file that the first process linked.
 */
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

static void name_of(enum key_role role, const char *kind, char ret[static NAME_MAX_BYTES])
{
	(void)snprintf(ret, NAME_MAX_BYTES, "%s%s.pem", keys_role_name(role), kind);
}

static int open_dir(const char *dir, bool make, int *ret, struct writ_err *err)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT && make) {
		const int r = fd_make_dirs(dir, err);

		if (r < 0)
			return r;
		fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", dir);
	*ret = fd;
	return 0;
}

static int load(const char *dir, const char *name, bool make, struct key_pair *ret,
		struct writ_err *err)
{
	struct writ_err none = { 0 };
	scoped_fd fd = -1;
	uint8_t seed[32];
	int r = open_dir(dir, make, &fd, err);

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

int keys_load(const char *dir, enum key_role role, bool make, struct key_pair *ret,
	      struct writ_err *err)
{
	char name[NAME_MAX_BYTES];

	name_of(role, "", name);
	return load(dir, name, make, ret, err);
}

int keys_load_file(const char *path, struct key_pair *ret, struct writ_err *err)
{
	uint8_t seed[32];
	const int r = read_key(AT_FDCWD, path, seed, err);

	if (r == 0)
		sign_keypair(seed, &ret->pub, &ret->sec);
	crypto_wipe(seed, sizeof(seed));
	return r;
}

bool keys_have(const char *dir, enum key_role role)
{
	scoped_fd fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_MAX_BYTES];

	name_of(role, "", name);
	return fd >= 0 && faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int keys_next_make(const char *dir, enum key_role role, struct key_pair *ret, struct writ_err *err)
{
	char name[NAME_MAX_BYTES];

	keys_next_drop(dir, role);
	name_of(role, ".next", name);
	return load(dir, name, true, ret, err);
}

int keys_next_load(const char *dir, enum key_role role, struct key_pair *ret, struct writ_err *err)
{
	char name[NAME_MAX_BYTES];

	name_of(role, ".next", name);
	return load(dir, name, false, ret, err);
}

/* Appends the old public key to ROLE.old.pem, after the keys of earlier rotations. */
static int keep_old(int dir, enum key_role role, const struct sign_public *pub,
		    struct writ_err *err)
{
	char name[NAME_MAX_BYTES];
	scoped_buf b = BUF_INIT(PEM_MAX);
	scoped_fd fd = -1;
	int r;

	name_of(role, ".old", name);
	keys_print_public(pub, &b);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", name);
	r = buf_check(&b, err);
	if (r == 0)
		r = fd_write_all(fd, buf_view(&b), err);
	return r == 0 && fsync(fd) < 0 ? writ_fail(err, WRIT_E_SYS, errno, "%s", name) : r;
}

int keys_next_take(const char *dir, enum key_role role, struct writ_err *err)
{
	char name[NAME_MAX_BYTES], next[NAME_MAX_BYTES];
	struct key_pair old;
	scoped_fd fd = -1;
	int r = keys_load(dir, role, false, &old, err);

	name_of(role, "", name);
	name_of(role, ".next", next);
	if (r == 0)
		r = open_dir(dir, false, &fd, err);
	/* Store the old public key before the rename: after a crash in between the key is listed
	 * once too often, which is harmless, whereas a missing key would make old signatures
	 * unverifiable. */
	if (r == 0)
		r = keep_old(fd, role, &old.pub, err);
	if (r == 0 && (renameat(fd, next, fd, name) < 0 || fsync(fd) < 0))
		r = writ_fail(err, WRIT_E_SYS, errno, "the key %s", name);
	crypto_wipe(&old, sizeof(old));
	return r;
}

void keys_next_drop(const char *dir, enum key_role role)
{
	scoped_fd fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_MAX_BYTES];

	name_of(role, ".next", name);
	if (fd >= 0)
		(void)unlinkat(fd, name, 0);
}
