/* tls_priv.h - the CA of the session, and TLS towards the agent and towards servers */
#ifndef WRIT_L7_TLS_PRIV_H
#define WRIT_L7_TLS_PRIV_H

#include <openssl/ssl.h>

#include "base/buf.h"

struct l7;
struct origin;

/* The CA of the session. All certificates that the CA issues share one leaf key. */
struct ca {
	EVP_PKEY *key, *leaf_key;
	X509 *cert;
};

must_check int ca_new(struct ca *ret, int64_t now_s, uint64_t session_s, struct writ_err *err);
void ca_clear(struct ca *ca);
must_check int ca_pem(const struct ca *ca, struct buf *b, struct writ_err *err);
must_check X509 *ca_mint(const struct ca *ca, const char *host);

must_check int tls_start(struct l7 *l, struct writ_err *err);
void tls_clear(struct l7 *l);
must_check SSL *tls_accept(struct l7 *l);
enum tls_offer { TLS_OFFER_H1 = 0, TLS_OFFER_BOTH, TLS_OFFER_H2 };
must_check SSL *tls_connect(struct l7 *l, const struct origin *o, enum tls_offer offer);
bool tls_is_h2(const SSL *ssl);
/* Returns the reason why the handshake with a server failed, and its detail. */
enum cap_cause tls_why(const SSL *ssl, const char **ret_detail);
/* Tests whether the last handshake failed because the server refused all offered protocols. */
bool tls_no_protocol(void);

#endif
