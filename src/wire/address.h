/*
 * address.h - may this address be dialled? The filter between resolver and connect
 *
 * Reads:  one IPv4 or IPv6 address
 * Writes: nothing
 * Next:   only what was judged here is dialled, byte for byte
 *
 * One table with every range of IANA's special-purpose registries, the addresses
 * where clouds keep credentials, and the IPv6 forms that carry an IPv4 address.
 * Such a form is judged by what it carries; if that is public, it is EMBEDDED.
 * IPv6 outside 2000::/3 is never public. Only ADDRESS_PUBLIC may be dialled
 * without being asked for; a policy's `private=` may open what is @openable.
 */
#ifndef WRIT_WIRE_ADDRESS_H
#define WRIT_WIRE_ADDRESS_H

#include "cap/cap.h"

enum address_class {
	ADDRESS_RESERVED = 0,
	ADDRESS_UNSPECIFIED,
	ADDRESS_LOOPBACK,
	ADDRESS_LINK_LOCAL,
	ADDRESS_METADATA,
	ADDRESS_PRIVATE,
	ADDRESS_CGNAT,
	ADDRESS_MULTICAST,
	ADDRESS_DOCUMENTATION,
	ADDRESS_BENCHMARK,
	ADDRESS_EMBEDDED,
	ADDRESS_PUBLIC,
	/* keep last */
	ADDRESS_CLASS_COUNT
};

enum address_form {
	ADDRESS_PLAIN = 0,
	ADDRESS_MAPPED,	     /* ::ffff:a.b.c.d */
	ADDRESS_COMPATIBLE,  /* ::a.b.c.d */
	ADDRESS_TRANSLATED,  /* ::ffff:0:a.b.c.d */
	ADDRESS_NAT64,	     /* 64:ff9b::a.b.c.d */
	ADDRESS_NAT64_LOCAL, /* 64:ff9b:1::/48 */
	ADDRESS_6TO4,	     /* 2002:a.b.c.d:: */
	ADDRESS_TEREDO,	     /* 2001:0:server:...:client */
	ADDRESS_ISATAP,	     /* any prefix, then [02]00:5efe:a.b.c.d */
	/* keep last */
	ADDRESS_FORM_COUNT
};

struct address_verdict {
	enum address_class class;
	enum address_form form;
	bool openable;		   /* `private=` may name it: never loopback, metadata, embedded */
	const char *range;	   /* "10.0.0.0/8" of the row that matched, or "" */
	struct cap_net_addr inner; /* the IPv4 address, if the form carries one */
};

/* @a is one address (len 32 or 128); a network is RESERVED. */
struct address_verdict address_judge(const struct cap_net_addr *a);

const char *address_class_name(enum address_class class); /* "link-local" */

/* --- The table, for tests and for the documents. --- */

struct address_range {
	struct cap_net_addr net;
	enum address_class class;
	const char *text;
};

const struct address_range *address_ranges(size_t *ret_n);

#endif
