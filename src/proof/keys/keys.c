#include "keys/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "codec/base64.h"

#include "base/banned.h"

/* --- PEM --- */

/*
 * DER bytes before the 32 bytes of a key. RFC 8410 with DER leaves exactly one encoding, so a
 * comparison replaces an ASN.1 parser.
 */
static const uint8_t secret_head[] = { 0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06,
				       0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20 };
static const uint8_t public_head[] = { 0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
				       0x2b, 0x65, 0x70, 0x03, 0x21, 0x00 };

enum { DER_MAX = 64 };

struct pem {
	const char *label;
	const uint8_t *head;
	size_t head_n;
};

static const struct pem secret_pem = { "PRIVATE KEY", secret_head, sizeof(secret_head) };
static const struct pem public_pem = { "PUBLIC KEY", public_head, sizeof(public_head) };

static void print(const struct pem *p, const uint8_t bytes[static 32], struct buf *b)
{
	uint8_t der[DER_MAX];

	memcpy(der, p->head, p->head_n);
	memcpy(der + p->head_n, bytes, 32);
	buf_fmt(b, "-----BEGIN %s-----\n", p->label);
	base64_encode(BASE64_PADDED, (struct sv){ (const char *)der, p->head_n + 32 }, b);
	buf_fmt(b, "\n-----END %s-----\n", p->label);
	crypto_wipe(der, sizeof(der));
}

static bool take(struct sv *in, struct sv word)
{
	if (!sv_starts(*in, word))
		return false;
	*in = sv_skip(*in, word.n);
	return true;
}

static int parse(const struct pem *p, struct sv pem, uint8_t ret[static 32], struct writ_err *err)
{
	scoped_buf first = BUF_INIT(64), last = BUF_INIT(64);
	const size_t n = p->head_n + 32;
	uint8_t der[DER_MAX] = { 0 };
	struct sv text;
	bool good;

	buf_fmt(&first, "-----BEGIN %s-----\n", p->label);
	buf_fmt(&last, "\n-----END %s-----\n", p->label);
	good = take(&pem, buf_view(&first)) && sv_ends(pem, buf_view(&last));
	text = sv_sub(pem, 0, pem.n - (good ? last.n : pem.n));
	good = good && base64_decode(BASE64_PADDED, text, der, n) &&
	       memcmp(der, p->head, p->head_n) == 0;
	if (good)
		memcpy(ret, der + p->head_n, 32);
	crypto_wipe(der, sizeof(der));
	return good ? 0 : writ_fail(err, WRIT_E_SYNTAX, 0, "this is no Ed25519 key in PEM");
}

void keys_print_secret(const uint8_t seed[static 32], struct buf *b)
{
	print(&secret_pem, seed, b);
}

int keys_parse_secret(struct sv pem, uint8_t ret_seed[static 32], struct writ_err *err)
{
	return parse(&secret_pem, pem, ret_seed, err);
}

void keys_print_public(const struct sign_public *pub, struct buf *b)
{
	print(&public_pem, pub->b, b);
}

int keys_parse_public(struct sv pem, struct sign_public *ret, struct writ_err *err)
{
	struct sign_public pub;
	int r = parse(&public_pem, pem, pub.b, err);

	if (r == 0)
		r = sign_public_check(&pub, err);
	if (r == 0)
		*ret = pub;
	return r;
}

/* --- files --- */

enum { PEM_MAX = 512, NAME_MAX_BYTES = 32 };

static const char *const names[KEY_ROLES] = {
	[KEY_LOG] = "log", [KEY_ISSUE] = "issue", [KEY_WITNESS] = "witness"
};

const char *keys_role_name(enum key_role role)
{
	return role > KEY_NONE && role < KEY_ROLES ? names[role] : "none";
}

void keys_wipe(struct key_pair *k)
{
	crypto_wipe(k, sizeof(*k));
}

/* Wipes the text of a private key and frees the buffer. */
void keys_wipe_text(struct buf *b)
{
	if (b->n)
		crypto_wipe(b->p, b->n);
	buf_clear(b);
}

/*
 * SECURITY: refuse a key file that other users can read or write, or that belongs to another user.
 * Signatures of such a key would prove nothing.
 */
int keys_check_file(int fd, const char *name, struct writ_err *err)
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

static int read_key(int dir, const char *name, struct key_pair *ret, struct writ_err *err)
{
	scoped_fd fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	scoped_secret b = BUF_INIT(PEM_MAX);
	uint8_t seed[32];
	int r;

	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "the key %s", name);
	if ((r = keys_check_file(fd, name, err)) < 0 || (r = fd_read_all(fd, &b, err)) < 0 ||
	    (r = keys_parse_secret(buf_view(&b), seed, err)) < 0)
		return r;
	sign_keypair(seed, &ret->pub, &ret->sec);
	crypto_wipe(seed, sizeof(seed));
	return 0;
}

int keys_write(int dir, const char *name, const uint8_t seed[static 32], struct writ_err *err)
{
	scoped_fd fd =
		openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	scoped_secret b = BUF_INIT(PEM_MAX);
	int r;

	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", name);
	keys_print_secret(seed, &b);
	if ((r = buf_check(&b, err)) < 0 || (r = fd_write_all(fd, buf_view(&b), err)) < 0)
		return r;
	return fsync(fd) < 0 ? writ_fail(err, WRIT_E_SYS, errno, "%s", name) : 0;
}

/*
 * Makes a key file. Two processes may make the same key at once: link() fails for the second
 * process, and both then read the file that the first process linked.
 */
static int make_key(int dir, const char *name, struct key_pair *ret, struct writ_err *err)
{
	char fresh[64];
	uint8_t seed[32];
	int r = crypto_random(seed, sizeof(seed), err);

	(void)snprintf(fresh, sizeof(fresh), "%s.new.%ld", name, (long)getpid());
	(void)unlinkat(dir, fresh, 0);
	if (r == 0)
		r = keys_write(dir, fresh, seed, err);
	crypto_wipe(seed, sizeof(seed));
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
	const int r = make ? fd_make_dirs(dir, err) : 0;

	if (r < 0)
		return r;
	*ret = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret < 0 ? writ_fail(err, WRIT_E_SYS, errno, "%s", dir) : 0;
}

static int load(const char *dir, const char *name, bool make, struct key_pair *ret,
		struct writ_err *err)
{
	struct writ_err none = { 0 };
	scoped_fd fd = -1;
	int r = open_dir(dir, make, &fd, err);

	if (r < 0)
		return r;
	r = read_key(fd, name, ret, &none);
	if (r < 0 && none.sys == ENOENT && make)
		return make_key(fd, name, ret, err);
	if (r < 0)
		*err = none;
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
	return read_key(AT_FDCWD, path, ret, err);
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
	scoped_key_pair old = { 0 };
	scoped_fd fd = -1;
	int r;

	name_of(role, "", name);
	name_of(role, ".next", next);
	/*
	 * Store the old public key before the rename: after a crash in between the key is listed
	 * once too often, which is harmless, whereas a missing key would make old signatures
	 * unverifiable.
	 */
	if ((r = keys_load(dir, role, false, &old, err)) < 0 ||
	    (r = open_dir(dir, false, &fd, err)) < 0 ||
	    (r = keep_old(fd, role, &old.pub, err)) < 0)
		return r;
	if (renameat(fd, next, fd, name) < 0 || fsync(fd) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "the key %s", name);
	return 0;
}

void keys_next_drop(const char *dir, enum key_role role)
{
	scoped_fd fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_MAX_BYTES];

	name_of(role, ".next", name);
	if (fd >= 0)
		(void)unlinkat(fd, name, 0);
}
