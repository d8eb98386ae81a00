#include "resolve/resolve.h"

#include <ares.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "confine/confine.h"

#include "base/banned.h"

enum {
	CACHE = 256,
	TTL_MAX = 300,
	TTL_NONE = 5,
	PENDING_MAX = 512,
	TIMEOUT_MS = 2000,
	TRIES = 3,
	OTHER_MS = 300 /* time that the resolver waits for the second address family */
};

struct cached {
	struct resolve_answer answer;
	char name[256];
	/* when the cache entry expires, in seconds of the monotonic clock; 0: the entry is free */
	int64_t until;
};

struct resolver {
	int socket;
	ares_channel channel;
	struct buf hosts;
	struct pending *waiting;
	size_t pending, next;
	struct cached cache[CACHE];
};

struct pending {
	struct resolver *r;
	struct resolve_answer answer;
	char name[256];
	int64_t ttl;
	/* when to answer without the second address family; 0: no address yet, or answered */
	int64_t due_ms;
	int open; /* number of DNS queries of this lookup without a reply */
	bool answered;
	struct pending *next;
};

static const int calls[] = {
	SYS_bind,	SYS_brk,	 SYS_clock_gettime, SYS_close,	      SYS_connect,
	SYS_exit,	SYS_exit_group,	 SYS_fcntl,	    SYS_futex,	      SYS_getpeername,
	SYS_getrandom,	SYS_getsockname, SYS_getsockopt,    SYS_gettimeofday, SYS_madvise,
	SYS_mmap,	SYS_mprotect,	 SYS_mremap,	    SYS_munmap,	      SYS_ppoll,
	SYS_read,	SYS_recvfrom,	 SYS_recvmsg,	    SYS_rt_sigreturn, SYS_sendto,
	SYS_setsockopt, SYS_write,	 SYS_writev,	    SYS_ioctl,	      SYS_restart_syscall,
#ifdef SYS_poll
	SYS_poll,
#endif
};

static int64_t monotonic_s(void)
{
	return clock_monotonic_ms() / 1000 + 1;
}

static void send_answer(const struct resolver *r, const struct resolve_answer *a)
{
	if (send(r->socket, a, sizeof(*a), MSG_NOSIGNAL) != (ssize_t)sizeof(*a))
		_exit(0);
}

static void cache_add(struct resolver *r, const char *name, const struct resolve_answer *a,
		      int64_t ttl)
{
	struct cached *c = &r->cache[r->next++ % CACHE];

	c->answer = *a;
	memcpy(c->name, name, sizeof(c->name));
	c->until = monotonic_s() + (ttl < 1 ? 1 : ttl > TTL_MAX ? TTL_MAX : ttl);
}

static void answer_lookup(struct pending *p)
{
	if (p->answered)
		return;
	p->answered = true;
	p->due_ms = 0;
	p->answer.ttl =
		p->answer.n && p->ttl > 0 ? (uint32_t)(p->ttl < TTL_MAX ? p->ttl : TTL_MAX) : 0;
	cache_add(p->r, p->name, &p->answer, p->answer.n ? p->ttl : TTL_NONE);
	send_answer(p->r, &p->answer);
}

/*
 * Answers each lookup whose second address family is overdue with the addresses of the first.
 * Returns the milliseconds until the next lookup is overdue, or -1.
 */
static int64_t answer_due(const struct resolver *r)
{
	const int64_t now = clock_monotonic_ms();
	int64_t wait = -1;

	for (struct pending *p = r->waiting; p; p = p->next) {
		if (p->due_ms && p->due_ms <= now)
			answer_lookup(p);
		else if (p->due_ms && (wait < 0 || p->due_ms - now < wait))
			wait = p->due_ms - now;
	}
	return wait;
}

static void unlink_pending(struct resolver *r, const struct pending *p)
{
	struct pending **at = &r->waiting;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	r->pending--;
}

/* Handles the result of one of the two DNS queries (A and AAAA) of a lookup. */
static void on_answer(struct pending *p, int status)
{
	struct resolver *r = p->r;

	if (--p->open) {
		p->due_ms = p->answer.n ? clock_monotonic_ms() + OTHER_MS : 0;
		return;
	}
	unlink_pending(r, p);
	if (status != ARES_EDESTRUCTION)
		answer_lookup(p);
	free(p);
}

static void add_address(struct pending *p, const void *bytes, bool v6, int ttl)
{
	struct cap_net_addr *to = &p->answer.addr[p->answer.n];

	if (p->answer.n >= RESOLVE_MAX)
		return;
	*to = (struct cap_net_addr){ .v6 = v6, .len = v6 ? 128 : 32 };
	memcpy(to->b, bytes, v6 ? 16 : 4);
	p->ttl = p->answer.n == 0 || ttl < p->ttl ? ttl : p->ttl;
	p->answer.n++;
}

static void on_v4(void *arg, int status, int timeouts, unsigned char *bytes, int n)
{
	struct ares_addrttl v[RESOLVE_MAX];
	int count = RESOLVE_MAX;

	(void)timeouts;
	if (status == ARES_SUCCESS)
		status = ares_parse_a_reply(bytes, n, NULL, v, &count);
	for (int i = 0; status == ARES_SUCCESS && i < count; i++)
		add_address(arg, &v[i].ipaddr, false, v[i].ttl);
	on_answer(arg, status);
}

static void on_v6(void *arg, int status, int timeouts, unsigned char *bytes, int n)
{
	struct ares_addr6ttl v[RESOLVE_MAX];
	int count = RESOLVE_MAX;

	(void)timeouts;
	if (status == ARES_SUCCESS)
		status = ares_parse_aaaa_reply(bytes, n, NULL, v, &count);
	for (int i = 0; status == ARES_SUCCESS && i < count; i++)
		add_address(arg, &v[i].ip6addr, true, v[i].ttl);
	on_answer(arg, status);
}

static bool from_cache(const struct resolver *r, const struct resolve_ask *ask)
{
	const int64_t now = monotonic_s();

	for (size_t i = 0; i < CACHE; i++) {
		struct resolve_answer a;

		if (r->cache[i].until <= now || strcmp(r->cache[i].name, ask->name) != 0)
			continue;
		a = r->cache[i].answer;
		a.id = ask->id;
		if (a.ttl)
			a.ttl = (uint32_t)(r->cache[i].until - now);
		send_answer(r, &a);
		return true;
	}
	return false;
}

static void serve(struct resolver *r)
{
	enum { CLASS_IN = 1, TYPE_A = 1, TYPE_AAAA = 28 };
	struct resolve_ask ask;
	struct resolve_answer a = { 0 };
	struct pending *p;
	const ssize_t got = recv(r->socket, &ask, sizeof(ask), 0);

	if (got < 0 && errno == EINTR)
		return;
	if (got != (ssize_t)sizeof(ask))
		_exit(0);
	ask.name[sizeof(ask.name) - 1] = 0;
	a.id = ask.id;
	a.n = (uint32_t)hosts_find(buf_view(&r->hosts), sv_from(ask.name), a.addr, RESOLVE_MAX);
	if (a.n) {
		/*
		 * The resolver reads the hosts file only once, so its addresses stay
		 * valid as long as possible.
		 */
		a.ttl = TTL_MAX;
		send_answer(r, &a);
		return;
	}
	if (from_cache(r, &ask))
		return;
	p = r->pending < PENDING_MAX ? calloc(1, sizeof(*p)) : NULL;
	if (!p) {
		send_answer(r, &a);
		return;
	}
	p->r = r;
	p->answer.id = ask.id;
	p->open = 2;
	memcpy(p->name, ask.name, strlen(ask.name));
	p->next = r->waiting;
	r->waiting = p;
	r->pending++;
	/*
	 * SECURITY: ares_query() asks for exactly the given name. ares_search() would append the
	 * host's search domains to a name that the agent chose.
	 */
	ares_query(r->channel, p->name, CLASS_IN, TYPE_AAAA, on_v6, p);
	ares_query(r->channel, ask.name, CLASS_IN, TYPE_A, on_v4, p);
}

static void loop(struct resolver *r)
{
	for (;;) {
		ares_socket_t s[ARES_GETSOCK_MAXNUM];
		struct pollfd p[ARES_GETSOCK_MAXNUM + 1] = { { r->socket, POLLIN, 0 } };
		/*
		 * ares_getsock() returns a read bit and a write bit per socket. Test the bits
		 * directly, because the macros of c-ares shift a signed value too far.
		 */
		const unsigned bits = (unsigned)ares_getsock(r->channel, s, ARES_GETSOCK_MAXNUM);
		const int64_t due = answer_due(r);
		struct timeval tv, most = { due / 1000, due % 1000 * 1000 }, *t;
		nfds_t n = 1;

		for (int i = 0; i < ARES_GETSOCK_MAXNUM; i++) {
			const short events =
				(short)((bits >> i & 1 ? POLLIN : 0) |
					(bits >> (i + ARES_GETSOCK_MAXNUM) & 1 ? POLLOUT : 0));

			if (events)
				p[n++] = (struct pollfd){ s[i], events, 0 };
		}
		t = ares_timeout(r->channel, due < 0 ? NULL : &most, &tv);
		if (poll(p, n, t ? (int)(t->tv_sec * 1000 + t->tv_usec / 1000 + 1) : -1) < 0 &&
		    errno != EINTR)
			_exit(1);
		for (nfds_t i = 1; i < n; i++)
			if (p[i].revents)
				ares_process_fd(r->channel,
						p[i].revents & ~POLLOUT ? p[i].fd : ARES_SOCKET_BAD,
						p[i].revents & POLLOUT ? p[i].fd : ARES_SOCKET_BAD);
		ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
		if (p[0].revents)
			serve(r);
	}
}

_Noreturn void resolve_main(const struct resolve_options *opt, int socket)
{
	struct resolver *r = calloc(1, sizeof(*r));
	char only_dns[] = "b";
	struct ares_options o = { .timeout = TIMEOUT_MS, .tries = TRIES, .lookups = only_dns };
	struct writ_err err = { 0 };

	if (!r)
		_exit(1);
	r->socket = socket;
	r->hosts = (struct buf)BUF_INIT(1 << 20);
	if (opt->hosts)
		(void)!fd_read_file(opt->hosts, &r->hosts, &err);
	if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS ||
	    ares_init_options(&r->channel, &o,
			      ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS) !=
		    ARES_SUCCESS ||
	    (opt->servers && ares_set_servers_ports_csv(r->channel, opt->servers) != ARES_SUCCESS))
		_exit(1);
	/* SECURITY: confine the process before it receives the first byte from outside. */
	if (confine_self(calls, ARRAY_LEN(calls), CONFINE_TCP | CONFINE_UDP, &err) < 0)
		_exit(1);
	loop(r);
	_exit(0);
}
