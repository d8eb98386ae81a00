/*
 * name.h - who a connection is for: a host name or an address, in one spelling
 *
 * Reads:  the text of CONNECT, Host, SNI, SOCKS and DNS questions
 * Writes: nothing but the caller's struct
 * Next:   cap/ decides about the name; address.h about what it leads to
 *
 * A name is folded to lower case and loses one dot at its end; labels are
 * letters, digits, hyphens inside and underscores, 1 to 63 of them, together at
 * most 253. Nothing else is forgiven: no NUL, %, blank, non-ASCII byte, empty
 * label. Every spelling of an IPv4 address that some resolver knows (127.1,
 * 0x7f.1, 2130706433, 0177.0.0.1) is refused; addresses are a plain dotted quad,
 * or RFC 5952 text in brackets without a zone. The forms that hide an IPv4
 * address behind ::ffff: are refused too.
 *
 * This is a little more than a rule can name (cap_name_check() has no underscore,
 * and "--" only in xn--), so that the question can be answered with no. What
 * cap_name_check() takes comes out as it went in.
 */
#ifndef WRIT_WIRE_NAME_H
#define WRIT_WIRE_NAME_H

#include "base/buf.h"
#include "cap/cap.h"
#include "wire/wire.h"

enum { WIRE_NAME_MAX = 253 };

enum wire_host_kind { WIRE_HOST_NONE = 0, WIRE_HOST_NAME, WIRE_HOST_V4, WIRE_HOST_V6 };

struct wire_host {
	enum wire_host_kind kind;
	uint8_t n;		      /* of the name; 0 for an address */
	char name[WIRE_NAME_MAX + 1]; /* NUL-terminated */
	struct cap_net_addr addr;     /* V4 and V6 only, always one address */
};

struct wire_authority {
	struct wire_host host;
	uint16_t port;
	bool has_port; /* it was written */
};

/* NAME, 1.2.3.4 or [v6]. */
must_check int wire_host_parse(struct sv text, struct wire_host *ret_host, struct writ_err *err);

/* The same without addresses. */
must_check int wire_name_parse(struct sv text, struct wire_host *ret_host, struct writ_err *err);

/* HOST or HOST:PORT; @port where none is written, 0: one must be. */
must_check int wire_authority_parse(struct sv text, uint16_t port,
				    struct wire_authority *ret_authority, struct writ_err *err);

/* One address, from its 4 or 16 bytes. */
struct wire_host wire_host_v4(const uint8_t b[static 4]);
struct wire_host wire_host_v6(const uint8_t b[static 16]);

struct sv wire_host_name(const struct wire_host *h); /* tied to @h */
bool wire_host_eq(const struct wire_host *a, const struct wire_host *b);
void wire_host_print(const struct wire_host *h, struct buf *b); /* as it is parsed */

#endif
