/*
 * network_priv.h - state of the network part
 */
#ifndef WRIT_PARTS_NETWORK_PRIV_H
#define WRIT_PARTS_NETWORK_PRIV_H

#include "parts/network.h"

/* EARLY_MAX: listeners that always exist, two for names and one for the proxy. */
enum { EARLY_MAX = 3, PORTS_MAX = 64, BURSTS_MAX = 64 };

/* A name that was refused, and the number of further refusals. */
struct burst {
	char host[256];
	struct cap_why why;
	uint32_t rule;
	uint64_t since_ms, more;
};

struct network {
	pid_t egress_pid, resolver_pid, reader_pid;
	int egress; /* socket of egress; -1: egress is not running */
	int reader; /* socket of the process that reads requests; -1: none */
	uint32_t reader_deaths;
	bool egress_finished, reader_finished;
	uint64_t finish_ms; /* time by which egress and the reader must have delivered */
	int totals_fd;
	struct quota_total *totals;
	uint64_t heard_ms, rest_ms; /* start of count @heard; end of a pause */
	uint32_t heard;
	bool rests; /* the sockets of egress and the reader are not polled in this round */
	struct egress_port ports[PORTS_MAX]; /* ports of `listen`, until egress has them */
	size_t ports_n;
	int route[2]; /* socket pair for egress and the mediator, until both have it; 0: none */
	int early[EARLY_MAX]; /* listeners that wait for egress to start; -1: none */
	struct burst bursts[BURSTS_MAX], others;
	size_t bursts_n;
};

static inline struct network *network_of(const struct session *s)
{
	return session_state(s, &network_initial);
}

/* Records an event. @count: number of times, or 0 for a single event. */
void network_record(struct session *s, const struct egress_event *e, uint64_t count);
/* Reads a bounded number of messages of egress or the reader. False: the peer is gone. */
must_check bool network_hear(struct session *s, const int *from);

/* denied_names.c: counts the refusal of a name; returns true if the caller is to record it. */
bool denied_names_is_first(struct session *s, const struct egress_event *e);
int denied_names_deadline(struct session *s, int least);

#endif
