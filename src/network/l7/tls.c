#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "l7/l7_priv.h"

#include "base/banned.h"

static const unsigned char alpn_h1[] = "\x08http/1.1", alpn_h2[] = "\x02h2",
			   alpn_both[] = "\x02h2\x08http/1.1";

/* --- the agent's side --- */

/*
 * Reads the name of a server_name extension. Returns false unless the
 * extension holds exactly one name.
 */
static bool sni_read(const unsigned char *p, size_t n, struct sv *ret)
{
	const size_t list = n >= 2 ? (size_t)p[0] << 8 | p[1] : 0;
	const size_t name = n >= 5 ? (size_t)p[3] << 8 | p[4] : 0;

	if (n < 5 || list != n - 2 || p[2] != 0 || name != n - 5)
		return false;
	*ret = (struct sv){ (const char *)p + 5, name };
	return true;
}

/*
 * Tests whether the server name of a client's hello, if it has one, is the destination. SECURITY:
 * refuse a client whose server name differs from the destination that was decided about.
 */
static bool sni_fits(SSL *ssl, const struct client *c)
{
	const unsigned char *p;
	struct wire_host name;
	struct writ_err err;
	struct sv text;
	size_t n;

	if (!SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &p, &n))
		return true;
	return sni_read(p, n, &text) && wire_name_parse(text, &name, &err) == 0 &&
	       sv_eq(wire_host_name(&name), c->host);
}

static void alpn_note(SSL *ssl, struct client *c)
{
	const unsigned char *p;
	size_t n;

	c->hello_h1 = !SSL_client_hello_get0_ext(
		ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &p, &n);
	c->hello_h2 = false;
	if (c->hello_h1 || n < 2)
		return;
	for (size_t i = 2; i < n; i += (size_t)p[i] + 1) {
		const struct sv proto = { (const char *)p + i + 1, p[i] };

		if (i + 1 + p[i] > n)
			return;
		c->hello_h2 |= sv_is(proto, "h2");
		c->hello_h1 |= sv_is(proto, "http/1.1");
	}
}

static int on_hello(SSL *ssl, int *alert, void *unused)
{
	struct client *c = SSL_get_app_data(ssl);
	struct origin *o = c->origin;

	(void)unused;
	if (!sni_fits(ssl, c)) {
		*alert = SSL_AD_UNRECOGNIZED_NAME;
		client_close(c, CAUSE_SNI, NULL);
		return SSL_CLIENT_HELLO_ERROR;
	}
	if (c->why.cause != CAUSE_NONE) {
		*alert = SSL_AD_INTERNAL_ERROR;
		return SSL_CLIENT_HELLO_ERROR;
	}
	alpn_note(ssl, c);
	if (!o->leaf) {
		/*
		 * SECURITY: show the agent no certificate before the server
		 * has proved its identity.
		 */
		origin_verify(o, c);
		return SSL_CLIENT_HELLO_RETRY;
	}
	if (SSL_use_certificate(ssl, o->leaf) != 1 ||
	    SSL_use_PrivateKey(ssl, c->link.l7->ca.leaf_key) != 1) {
		*alert = SSL_AD_INTERNAL_ERROR;
		return SSL_CLIENT_HELLO_ERROR;
	}
	return SSL_CLIENT_HELLO_SUCCESS;
}

static int on_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_n,
		   const unsigned char *in, unsigned in_n, void *unused)
{
	const struct client *c = SSL_get_app_data(ssl);

	(void)unused;
	(void)in;
	(void)in_n;
	if (c->hello_h2 && (!c->hello_h1 || !c->origin->no_h2)) {
		*ret = alpn_h2 + 1;
		*ret_n = 2;
	} else if (c->hello_h1) {
		*ret = alpn_h1 + 1;
		*ret_n = 8;
	} else {
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	}
	return SSL_TLSEXT_ERR_OK;
}

/* --- both sides --- */

static SSL_CTX *new_ctx(const SSL_METHOD *method)
{
	SSL_CTX *ctx = SSL_CTX_new(method);

	if (!ctx)
		return NULL;
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
					    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					    SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_read_ahead(ctx, 1);
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	return ctx;
}

int tls_start(struct l7 *l, struct writ_err *err)
{
	l->bio = l7_link_bio();
	l->accept = new_ctx(TLS_server_method());
	l->connect = new_ctx(TLS_client_method());
	if (!l->bio || !l->accept || !l->connect || SSL_CTX_set_max_early_data(l->accept, 0) != 1 ||
	    SSL_CTX_set_num_tickets(l->accept, 1) != 1 ||
	    SSL_CTX_set_session_id_context(l->accept, (const unsigned char *)"writ", 4) != 1)
		return writ_fail(err, WRIT_E_BUG, 0, "set up TLS");
	SSL_CTX_set_client_hello_cb(l->accept, on_hello, NULL);
	SSL_CTX_set_alpn_select_cb(l->accept, on_alpn, NULL);
	SSL_CTX_set_verify(l->connect, SSL_VERIFY_PEER, NULL);
	return 0;
}

void tls_clear(struct l7 *l)
{
	SSL_CTX_free(l->accept);
	SSL_CTX_free(l->connect);
	BIO_meth_free(l->bio);
	l->accept = l->connect = NULL;
	l->bio = NULL;
}

SSL *tls_accept(struct l7 *l)
{
	SSL *ssl = SSL_new(l->accept);

	if (ssl)
		SSL_set_accept_state(ssl);
	return ssl;
}

/* --- the servers' side --- */

/*
 * Loads the root certificates. Called for the first TLS connection to a server: many sessions make
 * none, and parsing the certificates takes time.
 */
static bool roots_load(struct l7 *l)
{
	X509_STORE *store = SSL_CTX_get_cert_store(l->connect);
	BIO *b = l->roots.n <= INT32_MAX ? BIO_new_mem_buf(l->roots.p, (int)l->roots.n) : NULL;
	X509 *x;

	if (!b)
		return false;
	while ((x = PEM_read_bio_X509_AUX(b, NULL, NULL, NULL))) {
		(void)X509_STORE_add_cert(store, x);
		X509_free(x);
	}
	ERR_clear_error();
	BIO_free(b);
	buf_clear(&l->roots);
	return true;
}

static bool set_peer(SSL *ssl, struct sv host)
{
	struct cap_net_addr addr;
	char text[256];

	l7_copy_safe(text, sizeof(text), host);
	if (!cap_addr_parse(host, &addr)) {
		SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
		return SSL_set_tlsext_host_name(ssl, text) == 1 && SSL_set1_host(ssl, text) == 1;
	}
	return X509_VERIFY_PARAM_set1_ip(SSL_get0_param(ssl), addr.b, addr.v6 ? 16 : 4) == 1;
}

SSL *tls_connect(struct l7 *l, const struct origin *o, enum tls_offer offer)
{
	static const struct {
		const unsigned char *p;
		unsigned n;
	} offers[] = {
		[TLS_OFFER_H1] = { alpn_h1, sizeof(alpn_h1) - 1 },
		[TLS_OFFER_BOTH] = { alpn_both, sizeof(alpn_both) - 1 },
		[TLS_OFFER_H2] = { alpn_h2, sizeof(alpn_h2) - 1 },
	};
	SSL *ssl;

	if (l->roots.n && !roots_load(l))
		return NULL;
	ssl = SSL_new(l->connect);
	if (!ssl)
		return NULL;
	if (!set_peer(ssl, o->host) || SSL_set_alpn_protos(ssl, offers[offer].p, offers[offer].n)) {
		SSL_free(ssl);
		return NULL;
	}
	SSL_set_connect_state(ssl);
	return ssl;
}

bool tls_is_h2(const SSL *ssl)
{
	const unsigned char *p = NULL;
	unsigned n = 0;

	SSL_get0_alpn_selected(ssl, &p, &n);
	return n == 2 && memcmp(p, "h2", 2) == 0;
}

bool tls_no_protocol(void)
{
	const unsigned long e = ERR_peek_error();

	return ERR_GET_LIB(e) == ERR_LIB_SSL &&
	       ERR_GET_REASON(e) == SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL;
}

enum cap_cause tls_why(const SSL *ssl, const char **ret_detail)
{
	const long v = SSL_get_verify_result(ssl);
	const char *e = ERR_reason_error_string(ERR_peek_error());

	*ret_detail = v != X509_V_OK ? X509_verify_cert_error_string(v) : e ? e : "it hung up";
	return v != X509_V_OK ? CAUSE_SERVER_CERTIFICATE : CAUSE_SERVER_TLS;
}
