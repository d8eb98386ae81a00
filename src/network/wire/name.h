/*
 * name.h - parse a host name or an IP address into one canonical spelling
 *
 * Reads:  the text of CONNECT, Host, SNI, SOCKS requests and DNS questions
 * Writes: the caller's struct
 * Next:   cap/ decides about the name; address.h classifies the addresses it resolves to
 *
 * A name is folded to lower case and loses one trailing dot. A label has 1 to 63 letters,
 * digits, underscores and inner hyphens; a name has at most 253 bytes. Everything else is
 * refused: NUL, %, blanks, non-ASCII bytes, empty labels.
 *
 * SECURITY: an IPv4 address is accepted only as a plain dotted quad. Some resolvers also
 * accept 127.1, 0x7f.1, 2130706433 or 0177.0.0.1; a name that passed a rule could then reach
 * an address that no rule saw, so all of these are refused. IPv6 must be RFC 5952 text in
 * brackets, without a zone. IPv4-mapped forms (::ffff:a.b.c.d) are refused.
 *
 * This parser accepts slightly more than a rule can name: cap_name_check() accepts no
 * underscore, and "--" only in xn--. Such names reach the decision and are denied there,
 * rather than being reported as malformed. A name that cap_name_check() accepts is returned
 * unchanged.
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
	uint8_t n;		      /* length of @name; 0 for an address */
	char name[WIRE_NAME_MAX + 1]; /* the canonical name, NUL-terminated */
	struct cap_net_addr addr;     /* the address, for kinds V4 and V6; never a network */
};

struct wire_authority {
	struct wire_host host;
	uint16_t port;
	bool has_port; /* the text contained a port */
};

/* Parses a host: NAME, 1.2.3.4 or [v6]. */
must_check int wire_host_parse(struct sv text, struct wire_host *ret_host, struct writ_err *err);

/* Parses a host name; refuses addresses. */
must_check int wire_name_parse(struct sv text, struct wire_host *ret_host, struct writ_err *err);

/* Parses HOST or HOST:PORT. @port is the default port; 0: the text must contain a port. */
must_check int wire_authority_parse(struct sv text, uint16_t port,
				    struct wire_authority *ret_authority, struct writ_err *err);

/* Build a host from the 4 or 16 bytes of an address. */
struct wire_host wire_host_v4(const uint8_t b[static 4]);
struct wire_host wire_host_v6(const uint8_t b[static 16]);

/* Returns the name as a view into @h; empty for an address. */
struct sv wire_host_name(const struct wire_host *h);
bool wire_host_eq(const struct wire_host *a, const struct wire_host *b);
/* Appends the text of @h, which wire_host_parse() can parse again. */
void wire_host_print(const struct wire_host *h, struct buf *b);

#endif
