/*
 * address.h - classify an IP address; the filter between the resolver and connect()
 *
 * Reads:  one IPv4 or IPv6 address
 * Writes: nothing
 * Next:   egress/dial.c connects to exactly the bytes that were classified here
 *
 * SECURITY: a granted host name may resolve to any address its owner chooses. Without this
 * filter, a public name could lead to the host's loopback, to the operator's network or to
 * a cloud's credential service. Only ADDRESS_PUBLIC may be dialled by default; a policy's
 * `private=` may open a class that is marked @openable.
 *
 * One table holds every range of IANA's special-purpose registries and the addresses where
 * clouds serve credentials. IPv6 outside 2000::/3 is never public. Several IPv6 forms carry
 * an IPv4 address that a translator on the way would connect to. These forms get the class
 * of the address they carry; if that one is public, they are EMBEDDED and still refused.
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
	/* number of classes; must stay the last entry */
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
};

struct address_verdict {
	enum address_class class;
	enum address_form form;
	/* `private=` may open the address; false for loopback and metadata, for example */
	bool openable;
	/* the matching row of the table, such as "10.0.0.0/8"; "": no row */
	const char *range;
	struct cap_net_addr inner; /* the carried IPv4 address, for every form but PLAIN */
};

/* Classifies the single address @a (length 32 or 128). A network is classified as RESERVED. */
struct address_verdict address_judge(const struct cap_net_addr *a);

const char *address_class_name(enum address_class class); /* returns a name such as "link-local" */

/* The table of address ranges, for tests and the generated documentation. */

struct address_range {
	struct cap_net_addr net;
	enum address_class class;
	const char *text;
};

const struct address_range *address_ranges(size_t *ret_n);

#endif
