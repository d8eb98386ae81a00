#include <stdlib.h>

#include "base/clock.h"
#include "lib/lib_priv.h"

#include "base/banned.h"

enum { POOL_MAX = 64, LOOK_MS = 1 };

struct writ_pool {
	struct writ_policy *policy;
	pthread_mutex_t lock; /* for all that follows */
	uint32_t n;
	struct warm {
		struct super s;
		bool ready; /* has said so */
	} v[POOL_MAX];
};

/* A supervisor that was told the policy; it gets ready by itself. */
static int start(struct writ_policy *p, struct super *ret, struct writ_err *err)
{
	struct super s = SUPER_INIT;
	int r = super_open(p->w, &s, err);

	if (r == 0)
		r = super_ask(&s, SUPER_POLICY, buf_view(&p->bytes), NULL, 0, err);
	if (r < 0)
		super_close(&s);
	else
		*ret = s;
	return r;
}

/* Hears whether it is ready; one that could not get ready is an error. */
static int hear(struct warm *w, struct writ_err *err)
{
	struct super_answer a = { 0 };
	size_t n = 0;
	int r;

	if (w->ready)
		return 1;
	r = super_hear(&w->s, 0, &a, sizeof(a), &n, NULL, err);
	if (r <= 0)
		return r;
	if (n != sizeof(a) || a.told != SUPER_READY) {
		a.err.what[sizeof(a.err.what) - 1] = 0;
		*err = a.err;
		return a.err.code < 0 ? a.err.code
				      : writ_fail(err, WRIT_E_BUG, 0, "a strange answer");
	}
	w->ready = true;
	return 1;
}

/* The next best: one that is ready, else any. SIZE_MAX if there is none. */
static size_t choose(struct writ_pool *pool)
{
	size_t any = SIZE_MAX;

	for (size_t i = 0; i < pool->n; i++) {
		struct writ_err none = { 0 };

		if (pool->v[i].s.pid <= 0)
			continue;
		if (hear(&pool->v[i], &none) > 0)
			return i;
		if (none.code) {
			super_close(&pool->v[i].s);
			continue;
		}
		any = i;
	}
	return any;
}

int pool_take(struct writ_policy *p, struct writ_pool *pool, struct super *ret,
	      struct writ_err *err)
{
	size_t at = SIZE_MAX;
	int r = 0;

	if (!pool)
		return start(p, ret, err);
	if (pool->policy != p)
		return writ_fail(err, WRIT_E_DENIED, 0, "this pool is for another policy");
	pthread_mutex_lock(&pool->lock);
	at = choose(pool);
	if (at != SIZE_MAX) {
		*ret = pool->v[at].s;
		pool->v[at] = (struct warm){ .s = SUPER_INIT };
	}
	pthread_mutex_unlock(&pool->lock);
	if (at == SIZE_MAX)
		r = start(p, ret, err);
	return r;
}

static int fill(struct writ_pool *pool, struct writ_err *err)
{
	int r = 0;

	pthread_mutex_lock(&pool->lock);
	for (size_t i = 0; r == 0 && i < pool->n; i++)
		if (pool->v[i].s.pid <= 0) {
			pool->v[i] = (struct warm){ .s = SUPER_INIT };
			r = start(pool->policy, &pool->v[i].s, err);
		}
	pthread_mutex_unlock(&pool->lock);
	return r;
}

/* One that cannot be started now is started by the next who asks. */
void pool_refill(struct writ_pool *pool)
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
	pool = calloc(1, sizeof(*pool));
	if (!pool) {
		(void)!writ_nomem(&why);
		return lib_error(err, &why);
	}
	pool->policy = p;
	pthread_mutex_init(&pool->lock, NULL);
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		pool->v[i].s = (struct super)SUPER_INIT;
		r = start(p, &pool->v[i].s, &why);
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
		if (pool->v[i].s.pid <= 0)
			continue;
		r = hear(&pool->v[i], err);
		ready += r > 0;
	}
	pthread_mutex_unlock(&pool->lock);
	return r < 0 ? r : ready;
}

/* Not under the lock: others take what is ready meanwhile. */
int writ_pool_wait(struct writ_pool *pool, uint32_t n, int timeout_ms, struct writ_error *err)
{
	const int64_t end = timeout_ms < 0 ? INT64_MAX : monotonic_ms() + timeout_ms;
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
		if ((uint32_t)ready >= n || ms_until(end) == 0)
			return ready;
		sleep_ms(LOOK_MS);
	}
}

void writ_pool_free(struct writ_pool *pool)
{
	if (!pool)
		return;
	for (size_t i = 0; i < pool->n; i++)
		super_close(&pool->v[i].s);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}
