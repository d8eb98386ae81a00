#include <errno.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "signer/signer_priv.h"

#include "base/banned.h"

enum { PEM_BYTES_MAX = 4096 };

static int failed(struct writ_err *err, const char *what)
{
	return writ_fail(err, WRIT_E_SYS, 0, "%s: the library of keys refuses", what);
}

int p256_start(struct writ_err *err)
{
	unsigned char once[16];

	/* Load no OpenSSL configuration file: the file could name modules to load. */
	if (OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_ADD_ALL_CIPHERS |
					OPENSSL_INIT_ADD_ALL_DIGESTS,
				NULL) != 1 ||
	    RAND_bytes(once, sizeof(once)) != 1)
		return failed(err, "start");
	return 0;
}

void p256_free(EVP_PKEY **k)
{
	EVP_PKEY_free(*k); /* also wipes the private number */
}

static bool is_p256(const EVP_PKEY *key)
{
	char name[64] = "";
	size_t n = 0;

	return EVP_PKEY_is_a(key, "EC") &&
	       EVP_PKEY_get_utf8_string_param(key, "group", name, sizeof(name), &n) == 1 &&
	       sv_is(sv_from(name), "prime256v1");
}

static int take(EVP_PKEY *key, EVP_PKEY **ret, struct writ_err *err)
{
	if (!key || !is_p256(key)) {
		EVP_PKEY_free(key);
		return writ_fail(err, WRIT_E_SYNTAX, 0, "the key attest.pem is no P-256 key");
	}
	*ret = key;
	return 0;
}

static int read_key(int dir, EVP_PKEY **ret, struct writ_err *err)
{
	scoped_fd fd = openat(dir, "attest.pem", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	scoped_secret b = BUF_INIT(PEM_BYTES_MAX);
	BIO *bio;
	int r;

	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "the key attest.pem");
	if ((r = keys_check_file(fd, "attest.pem", err)) < 0 || (r = fd_read_all(fd, &b, err)) < 0)
		return r;
	bio = BIO_new_mem_buf(b.p, (int)b.n);
	r = take(bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL, ret, err);
	BIO_free(bio);
	return r;
}

static int write_key(int dir, const char *fresh, EVP_PKEY *key, struct writ_err *err)
{
	scoped_fd fd =
		openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	BIO *bio = BIO_new(BIO_s_secmem());
	char *p = NULL;
	long n;
	int r = 0;

	if (fd < 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "%s", fresh);
	else if (!bio || PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) != 1)
		r = failed(err, "write a key");
	n = r == 0 ? BIO_get_mem_data(bio, &p) : 0;
	if (r == 0)
		r = fd_write_all(fd, (struct sv){ p, (size_t)n }, err);
	if (r == 0 && fsync(fd) < 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "%s", fresh);
	if (n > 0)
		OPENSSL_cleanse(p, (size_t)n);
	BIO_free(bio);
	return r;
}

/*
 * Makes the key file. Two processes may make the key at once: link() fails for the second process,
 * and both then read the file that the first process linked.
 */
static int make_key(int dir, struct writ_err *err)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	char fresh[64];
	int r = key ? 0 : failed(err, "make a key");

	(void)snprintf(fresh, sizeof(fresh), "attest.pem.new.%ld", (long)getpid());
	if (r == 0) {
		(void)unlinkat(dir, fresh, 0);
		r = write_key(dir, fresh, key, err);
	}
	if (r == 0 && linkat(dir, fresh, dir, "attest.pem", 0) < 0 && errno != EEXIST)
		r = writ_fail(err, WRIT_E_SYS, errno, "the key attest.pem");
	(void)unlinkat(dir, fresh, 0);
	if (r == 0 && fsync(dir) < 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "the key attest.pem");
	EVP_PKEY_free(key);
	return r;
}

int p256_load(int dir, EVP_PKEY **ret, struct writ_err *err)
{
	struct writ_err first = { 0 };
	int r = read_key(dir, ret, &first);

	if (r == 0 || first.sys != ENOENT) {
		if (r < 0)
			*err = first;
		return r;
	}
	r = make_key(dir, err);
	return r == 0 ? read_key(dir, ret, err) : r;
}

int p256_public(const EVP_PKEY *k, struct attest_key *ret, struct writ_err *err)
{
	unsigned char *der = NULL;
	const int n = i2d_PUBKEY(k, &der);
	const int r = n <= 0 ? failed(err, "the public key")
			     : attest_key_init(ret, (struct sv){ (char *)der, (size_t)n }, err);

	OPENSSL_free(der);
	return r;
}

int p256_sign(EVP_PKEY *k, struct sv bytes, struct buf *sig, struct writ_err *err)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	unsigned char out[ATTEST_SIG_MAX];
	size_t n = sizeof(out);
	const bool ok = c && EVP_DigestSignInit(c, NULL, EVP_sha256(), NULL, k) == 1 &&
			EVP_DigestSign(c, out, &n, (const unsigned char *)bytes.p, bytes.n) == 1;

	EVP_MD_CTX_free(c);
	if (!ok)
		return failed(err, "sign");
	buf_add(sig, out, n);
	return buf_check(sig, err);
}

int p256_verify(const struct attest_key *key, struct sv bytes, struct sv sig, struct writ_err *err)
{
	const unsigned char *der = key->der;
	EVP_PKEY *pub = d2i_PUBKEY(NULL, &der, ATTEST_SPKI);
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	const bool ok = pub && c && is_p256(pub) &&
			EVP_DigestVerifyInit(c, NULL, EVP_sha256(), NULL, pub) == 1 &&
			EVP_DigestVerify(c, (const unsigned char *)sig.p, sig.n,
					 (const unsigned char *)bytes.p, bytes.n) == 1;

	EVP_MD_CTX_free(c);
	EVP_PKEY_free(pub);
	return ok ? 0 : writ_fail(err, WRIT_E_DENIED, 0, "the signature is not of this key");
}
