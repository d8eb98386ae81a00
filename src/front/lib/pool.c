#include <stdlib.h>

#include "base/clock.h"
#include "lib/lib_priv.h"

#include "base/banned.h"

enum { POOL_MAX = 64, LOOK_MS = 1 };

struct writ_pool {
	struct writ_policy *policy;
	pthread_mutex_t lock; /* protects .v; .n is constant after writ_pool_new() */
	uint32_t n;
	struct warm {
		struct lib_peer peer;
		int64_t id; /* id of the session.open request */
		bool ready; /* the process has answered session.open: its sandbox is ready */
	} v[POOL_MAX];
};

/*
 * Starts a process of writ and sends it session.open, so that it builds a sandbox for the policy.
 */
static int start(struct writ_policy *p, struct lib_peer *ret, int64_t *ret_id, struct writ_err *err)
{
	struct lib_peer peer = { 0 };
	json_t *params = NULL;
	int r = lib_peer_open(p->w, &peer, err);

	if (r == 0)
		r = json_decode(buf_view(&p->open), RPC_FILE_MAX, &params, err);
	if (r == 0)
		r = rpc_request(peer.conn, "session.open", params, NULL, 0, ret_id, err);
	if (r < 0)
		lib_peer_close(&peer);
	else
		*ret = peer;
	return r;
}

/*
 * Checks a process of the pool. Returns 1 if its sandbox is ready, 0 if the sandbox is still under
 * construction, or an error if the sandbox cannot be built.
 */
static int look(struct warm *w, struct writ_err *err)
{
	struct rpc_message m = { 0 };
	int r;

	if (w->ready)
		return 1;
	r = rpc_wait(w->peer.conn, 0, &m, err);
	if (r > 0 && m.kind == RPC_ERROR)
		r = rpc_failure(&m, err);
	w->ready = r > 0 && rpc_answers(&m, w->id);
	rpc_message_clear(&m);
	return r < 0 ? r : w->ready;
}

/* Returns the index of a process, if possible with a ready sandbox; SIZE_MAX: the pool is empty. */
static size_t choose(struct writ_pool *pool)
{
	size_t any = SIZE_MAX;

	for (size_t i = 0; i < pool->n; i++) {
		struct writ_err none = { 0 };

		if (pool->v[i].peer.pid <= 0)
			continue;
		if (look(&pool->v[i], &none) > 0)
			return i;
		if (none.code) {
			lib_peer_close(&pool->v[i].peer);
			continue;
		}
		any = i;
	}
	return any;
}

int lib_pool_take(struct writ_policy *p, struct writ_pool *pool, struct lib_peer *ret,
		  int64_t *ret_id, struct writ_err *err)
{
	size_t at = SIZE_MAX;

	if (!pool)
		return start(p, ret, ret_id, err);
	if (pool->policy != p)
		return writ_fail(err, WRIT_E_DENIED, 0, "this pool is for another policy");
	pthread_mutex_lock(&pool->lock);
	at = choose(pool);
	if (at != SIZE_MAX) {
		*ret = pool->v[at].peer;
		*ret_id = pool->v[at].ready ? 0 : pool->v[at].id;
		pool->v[at] = (struct warm){ 0 };
	}
	pthread_mutex_unlock(&pool->lock);
	return at == SIZE_MAX ? start(p, ret, ret_id, err) : 0;
}

static int fill(struct writ_pool *pool, struct writ_err *err)
{
	int r = 0;

	pthread_mutex_lock(&pool->lock);
	for (size_t i = 0; r == 0 && i < pool->n; i++)
		if (pool->v[i].peer.pid <= 0) {
			pool->v[i] = (struct warm){ 0 };
			r = start(pool->policy, &pool->v[i].peer, &pool->v[i].id, err);
		}
	pthread_mutex_unlock(&pool->lock);
	return r;
}

/*
 * Refills the pool. Ignores a failed start, because the next call of lib_pool_refill() tries again.
 */
void lib_pool_refill(struct writ_pool *pool)
{
	struct writ_err none = { 0 };

	if (pool)
		(void)!fill(pool, &none);
}

int writ_pool_new(struct writ_policy *p, uint32_t n, struct writ_pool **ret, struct writ_error *err)
{
	struct writ_pool *pool;
	struct writ_err why = { 0 };
	int r = 0;

	if (!p || !ret || n == 0 || n > POOL_MAX)
		return lib_argument(err, "writ_pool_new: a pool has 1 to 64 sandboxes");
	pool = lib_new(sizeof(*pool), err);
	if (!pool)
		return WRIT_ERROR_MEMORY;
	pool->policy = p;
	pthread_mutex_init(&pool->lock, NULL);
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		r = start(p, &pool->v[i].peer, &pool->v[i].id, &why);
		pool->n = i + 1;
	}
	if (r < 0) {
		writ_pool_free(pool);
		return lib_error(err, &why);
	}
	*ret = pool;
	return 0;
}

static int count_ready(struct writ_pool *pool, struct writ_err *err)
{
	int ready = 0, r = 0;

	pthread_mutex_lock(&pool->lock);
	for (size_t i = 0; r >= 0 && i < pool->n; i++) {
		if (pool->v[i].peer.pid <= 0)
			continue;
		r = look(&pool->v[i], err);
		ready += r > 0;
	}
	pthread_mutex_unlock(&pool->lock);
	return r < 0 ? r : ready;
}

/*
 * Waits until @n sandboxes of the pool are ready. Polls without holding the lock between checks, so
 * that other threads can take ready sandboxes.
 */
int writ_pool_wait(struct writ_pool *pool, uint32_t n, int timeout_ms, struct writ_error *err)
{
	const int64_t end = timeout_ms < 0 ? INT64_MAX : clock_monotonic_ms() + timeout_ms;
	struct writ_err why = { 0 };
	int ready;

	if (!pool)
		return lib_argument(err, "writ_pool_wait: wait for which pool?");
	if (n > pool->n)
		n = pool->n;
	for (;;) {
		ready = fill(pool, &why);
		if (ready == 0)
			ready = count_ready(pool, &why);
		if (ready < 0)
			return lib_error(err, &why);
		if ((uint32_t)ready >= n || clock_ms_until(end) == 0)
			return ready;
		clock_sleep_ms(LOOK_MS);
	}
}

void writ_pool_free(struct writ_pool *pool)
{
	if (!pool)
		return;
	for (size_t i = 0; i < pool->n; i++)
		lib_peer_close(&pool->v[i].peer);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}
