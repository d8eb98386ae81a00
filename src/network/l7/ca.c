#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "l7/l7_priv.h"

#include "base/banned.h"

enum { HOUR = 3600, BEFORE_S = 24 * HOUR, AFTER_S = 30 * 24 * HOUR, SERIAL_BITS = 127 };

static bool set_serial(X509 *x)
{
	BIGNUM *n = BN_new();
	const bool good = n && BN_rand(n, SERIAL_BITS, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) &&
			  BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x));

	BN_free(n);
	return good;
}

static bool set_name(X509_NAME *n, const char *text)
{
	return X509_NAME_add_entry_by_txt(n, "CN", MBSTRING_ASC, (const unsigned char *)text, -1,
					  -1, 0);
}

/*
 * Sets the validity of a certificate: from a day ago, for clients whose clocks are behind, until an
 * hour after the session's time limit, or for 30 days if the session has no limit.
 */
static bool set_times(X509 *x, int64_t now_s, uint64_t session_s)
{
	const int64_t after = session_s ? (int64_t)session_s + HOUR : AFTER_S;

	return ASN1_TIME_set(X509_getm_notBefore(x), now_s - BEFORE_S) &&
	       ASN1_TIME_set(X509_getm_notAfter(x), now_s + after);
}

static bool add_ext(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;
	bool good;

	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	good = e && X509_add_ext(x, e, -1);
	X509_EXTENSION_free(e);
	return good;
}

static X509 *ca_cert(EVP_PKEY *key, int64_t now_s, uint64_t session_s)
{
	X509 *x = X509_new();
	X509_NAME *name = x ? X509_get_subject_name(x) : NULL;

	if (name && X509_set_version(x, 2) && set_serial(x) && set_times(x, now_s, session_s) &&
	    set_name(name, "writ session CA") && X509_set_issuer_name(x, name) &&
	    X509_set_pubkey(x, key) &&
	    add_ext(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	    add_ext(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") &&
	    add_ext(x, x, NID_subject_key_identifier, "hash") && X509_sign(x, key, EVP_sha256()))
		return x;
	X509_free(x);
	return NULL;
}

int ca_new(struct ca *ret, int64_t now_s, uint64_t session_s, struct writ_err *err)
{
	struct ca ca = { .key = EVP_EC_gen("P-256"), .leaf_key = EVP_EC_gen("P-256") };

	if (ca.key && ca.leaf_key)
		ca.cert = ca_cert(ca.key, now_s, session_s);
	if (!ca.cert) {
		ca_clear(&ca);
		return writ_fail(err, WRIT_E_BUG, 0, "make the authority of the session");
	}
	*ret = ca;
	return 0;
}

void ca_clear(struct ca *ca)
{
	X509_free(ca->cert);
	EVP_PKEY_free(ca->key);
	EVP_PKEY_free(ca->leaf_key);
	*ca = (struct ca){ 0 };
}

int ca_pem(const struct ca *ca, struct buf *b, struct writ_err *err)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *p = NULL;
	long n = 0;

	if (bio && PEM_write_bio_X509(bio, ca->cert))
		n = BIO_get_mem_data(bio, &p);
	if (n > 0)
		buf_add(b, p, (size_t)n);
	BIO_free(bio);
	return n > 0 ? buf_check(b, err) : writ_fail(err, WRIT_E_BUG, 0, "print a certificate");
}

/*
 * Adds the alternative name of a certificate: a host name, or an address as in a capability,
 * where IPv6 has brackets.
 */
static bool add_subject(X509 *x, const struct ca *ca, const char *host)
{
	struct cap_net_addr addr;
	const bool is_addr = cap_addr_parse(sv_from(host), &addr);
	scoped_buf b = BUF_INIT(512);
	const size_t n = strlen(host);

	if (is_addr && addr.v6 && n > 2)
		buf_fmt(&b, "IP:%.*s", (int)(n - 2), host + 1);
	else
		buf_fmt(&b, "%s:%s", is_addr ? "IP" : "DNS", host);
	return !b.failed && add_ext(x, ca->cert, NID_subject_alt_name, b.p);
}

X509 *ca_mint(const struct ca *ca, const char *host)
{
	X509 *x = X509_new();

	/*
	 * A common name holds at most 64 bytes, so a longer host gets the common name "writ".
	 * Clients compare the alternative name, not the common name.
	 */
	if (x && X509_set_version(x, 2) && set_serial(x) &&
	    X509_set1_notBefore(x, X509_get0_notBefore(ca->cert)) &&
	    X509_set1_notAfter(x, X509_get0_notAfter(ca->cert)) &&
	    set_name(X509_get_subject_name(x), strlen(host) <= 64 ? host : "writ") &&
	    X509_set_issuer_name(x, X509_get_subject_name(ca->cert)) &&
	    X509_set_pubkey(x, ca->leaf_key) &&
	    add_ext(x, ca->cert, NID_basic_constraints, "critical,CA:FALSE") &&
	    add_ext(x, ca->cert, NID_key_usage, "critical,digitalSignature") &&
	    add_ext(x, ca->cert, NID_ext_key_usage, "serverAuth") &&
	    add_ext(x, ca->cert, NID_authority_key_identifier, "keyid") &&
	    add_subject(x, ca, host) && X509_sign(x, ca->key, EVP_sha256()))
		return x;
	X509_free(x);
	return NULL;
}
