#include "l7/l7.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "codec/json.h"
#include "confine/confine.h"
#include "l7/l7_priv.h"

#include "base/banned.h"

enum { EVENTS = 128, ROOTS_MAX = 16 << 20 };

/*
 * The system calls that the reader may make. SECURITY: no socket(), connect() or open(): an
 * attacker who takes over the process can only use the descriptors that the process holds.
 */
static const int calls[] = {
	SYS_brk,
	SYS_clock_gettime,
	SYS_close,
	SYS_epoll_ctl,
	SYS_epoll_pwait,
	SYS_exit,
	SYS_exit_group,
	SYS_fcntl,
	SYS_futex,
	SYS_getpid,
	SYS_getrandom,
	SYS_getsockopt,
	SYS_madvise,
	SYS_mmap,
	SYS_mremap,
	SYS_msync,
	SYS_munmap,
	SYS_recvfrom,
	SYS_recvmsg,
	SYS_restart_syscall,
	SYS_rt_sigreturn,
	SYS_sendmsg,
	SYS_sendto,
	SYS_setsockopt,
	SYS_shutdown,
	SYS_write,
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
};

/*
 * --- an allocator for the JSON parser ---
 *
 * The parser may hold secret values, so the allocator wipes memory when it frees it.
 */

static void *guarded_malloc(size_t n)
{
	size_t *p = malloc(sizeof(size_t) * 2 + n);

	if (!p)
		return NULL;
	p[0] = n;
	return p + 2;
}

static void guarded_free(void *v)
{
	size_t *p = v;

	if (!p)
		return;
	p -= 2;
	explicit_bzero(v, p[0]);
	free(p);
}

/* --- the loop --- */

static bool watch(const struct l7 *l, int fd, void *what)
{
	struct epoll_event ev = { .events = EPOLLIN, .data = { .ptr = what } };

	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &ev) == 0;
}

static void on_event(struct l7 *l, const struct epoll_event *ev)
{
	struct link *k = ev->data.ptr;

	if (ev->data.ptr == &l->supervisor) {
		l7_supervisor_receive(l);
	} else if (ev->data.ptr == &l->egress) {
		l7_egress_receive(l);
	} else {
		if (ev->events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
			k->readable = true;
			k->drained = false;
		}
		if (ev->events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
			k->blocked = false;
		/* Unwatch a link that hung up: epoll would report the hang-up for ever. */
		if ((ev->events & (EPOLLHUP | EPOLLERR)) && !k->hung_up) {
			k->hung_up = true;
			(void)epoll_ctl(l->epoll, EPOLL_CTL_DEL, k->fd, NULL);
		}
		l7_link_wake(k);
	}
}

static void run(struct l7 *l)
{
	uint64_t next_tick = 0;

	while (!l->stop) {
		struct epoll_event ev[EVENTS];
		const int n = epoll_wait(l->epoll, ev, EVENTS,
					 l->finish.begun ? FINISH_LOOK_MS
					 : l->links	 ? L7_TICK_MS
							 : -1);

		if (n < 0 && errno != EINTR)
			return;
		l->now_us = clock_monotonic_us();
		for (int i = 0; i < n; i++)
			on_event(l, &ev[i]);
		if (l7_now_ms(l) >= next_tick) {
			l7_check_deadlines(l);
			next_tick = l7_now_ms(l) + L7_TICK_MS;
		}
		while (l->woken || l->dead) {
			l7_run_woken(l);
			l7_free_dead(l);
		}
		l7_finish_check(l);
	}
}

/* --- start --- */

/*
 * Maps the session's totals, in which egress and the git helper count too. If the descriptor is
 * missing, the policy has no limit on the session's bytes or requests.
 */
static int share_totals(struct l7 *l, struct writ_err *err)
{
	struct stat st;
	void *p;

	if (fstat(L7_TOTALS, &st) < 0)
		return 0;
	if (!S_ISREG(st.st_mode) || st.st_size != (off_t)sizeof(struct quota_total))
		return writ_fail(err, WRIT_E_SYNTAX, 0, "totals of the session");
	p = mmap(NULL, sizeof(struct quota_total), PROT_READ | PROT_WRITE, MAP_SHARED, L7_TOTALS,
		 0);
	close(L7_TOTALS);
	if (p == MAP_FAILED)
		return writ_fail(err, WRIT_E_SYS, errno, "mmap");
	l->quota.total = p;
	return 0;
}

/*
 * Maps the counters that this session shares with other sessions, for example with sessions of the
 * same tokens or with agents of this session.
 */
static int share_counters(struct l7 *l, struct writ_err *err)
{
	struct quota_shared to = l->settings.shared;
	struct stat st;
	void *p;

	if (!quota_shares(&to))
		return 0;
	if (fstat(L7_COUNTERS, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "counters of the session");
	to.n = (size_t)st.st_size / sizeof(*to.v);
	for (size_t i = 0; i < to.cells_n; i++)
		if (to.cells[i].slot >= to.n || to.cells[i].price >= l->settings.set.prices.n)
			return writ_fail(err, WRIT_E_SYNTAX, 0, "counters of the session");
	for (size_t i = 0; i < to.pools_n; i++)
		if (to.pools[i].slot >= to.n)
			return writ_fail(err, WRIT_E_SYNTAX, 0, "counters of the session");
	p = mmap(NULL, to.n * sizeof(*to.v), PROT_READ | PROT_WRITE, MAP_SHARED, L7_COUNTERS, 0);
	close(L7_COUNTERS);
	if (p == MAP_FAILED)
		return writ_fail(err, WRIT_E_SYS, errno, "mmap");
	to.v = p;
	l->quota.shared = to;
	return 0;
}

static int load(struct l7 *l, struct writ_err *err)
{
	scoped_buf settings = BUF_INIT(L7_SETTINGS_MAX), roots = BUF_INIT(ROOTS_MAX);
	int r = 0;

	if (lseek(L7_SETTINGS, 0, SEEK_SET) != 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "settings of the reader");
	else if (fd_read_all(L7_SETTINGS, &settings, err) < 0 ||
		 fd_read_all(L7_ROOTS, &roots, err) < 0 ||
		 l7_init(l, buf_view(&settings), buf_view(&roots), err) < 0 ||
		 share_totals(l, err) < 0 || share_counters(l, err) < 0)
		r = err->code;
	if (settings.p)
		explicit_bzero(settings.p, settings.room);
	close(L7_SETTINGS);
	close(L7_ROOTS);
	return r;
}

/* Makes OpenSSL open its files and request its resources once, before the process is confined. */
static bool warm_up(const struct l7 *l)
{
	SSL *a = SSL_new(l->accept), *b = SSL_new(l->connect);
	X509 *x = ca_mint(&l->ca, "localhost");
	const bool good = a && b && x;

	(void)ERR_reason_error_string(0);
	SSL_free(a);
	SSL_free(b);
	X509_free(x);
	return good;
}

static int start(struct l7 *l, struct writ_err *err)
{
	scoped_buf pem = BUF_INIT(EGRESS_TEXT);

	l->supervisor = L7_SUPERVISOR;
	l->egress = L7_EGRESS;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->now_us = clock_monotonic_us();
	if (l->epoll < 0 || !watch(l, l->supervisor, &l->supervisor) ||
	    !watch(l, l->egress, &l->egress))
		return writ_fail(err, WRIT_E_SYS, errno, "epoll");
	if (!warm_up(l))
		return writ_fail(err, WRIT_E_BUG, 0, "set up TLS");
	if (ca_pem(&l->ca, &pem, err) < 0 || confine_self(calls, ARRAY_LEN(calls), 0, err) < 0)
		return err->code;
	l7_event_ready(l, buf_view(&pem));
	return 0;
}

int l7_main(struct writ_err *err)
{
	struct l7 *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return writ_nomem(err);
	json_set_alloc_funcs(guarded_malloc, guarded_free);
	if (!OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_LOAD_SSL_STRINGS |
				      OPENSSL_INIT_LOAD_CRYPTO_STRINGS,
			      NULL)) {
		free(l);
		return writ_fail(err, WRIT_E_BUG, 0, "set up TLS");
	}
	r = load(l, err);
	if (r == 0)
		r = start(l, err);
	if (r == 0)
		run(l);
	l7_clear(l);
	free(l);
	return r;
}
