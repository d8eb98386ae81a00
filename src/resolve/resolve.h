/*
 * resolve.h - names to addresses, in a process of its own
 *
 * Reads:  the host's resolv.conf and hosts file, answers of name servers
 * Writes: questions to them, but only for connections that are already allowed
 * Next:   egress/dial.c asks, checks what comes, and dials
 */
#ifndef WRIT_RESOLVE_RESOLVE_H
#define WRIT_RESOLVE_RESOLVE_H

#include "base/buf.h"
#include "cap/cap.h"

enum { RESOLVE_MAX = 32 };

struct resolve_ask {
	uint32_t id;
	char name[256]; /* canonical */
};

struct resolve_answer {
	uint32_t id;
	uint32_t n;   /* 0: there are none, and @why says why */
	uint32_t ttl; /* seconds that it may be kept; 0: not at all */
	struct cap_net_addr addr[RESOLVE_MAX];
	char why[64];
};

struct resolve_options {
	const char *servers; /* "192.0.2.1:53,..." instead of the host's own; NULL */
	const char *hosts;   /* the hosts file */
};

/* Serves packets of struct resolve_ask on @socket until it is closed. */
_Noreturn void resolve_main(const struct resolve_options *opt, int socket);

/* --- hosts.c --- */

/* Addresses that a hosts file has for @name; lines it does not understand are skipped. */
size_t hosts_find(struct sv file, struct sv name, struct cap_net_addr *ret, size_t room);

#endif
