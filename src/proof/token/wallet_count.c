#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "token/wallet.h"

#include "base/banned.h"

/*
 * Counters that several sessions share. Counters of tokens are in one file, which every counting
 * session maps. A counter is identified by the signing input of its token and the text of its
 * capability. Deriving a token again therefore yields no fresh counter, and all derived tokens
 * share the counter of their parent. Counters of a session and its agents without tokens are in
 * memory.
 */

enum { GROW = 64, COUNTERS_MAX = 1 << 16 };

static bool is_counted(const struct cap *c)
{
	return c->n || c->max_in || c->max_out;
}

static struct digest key_of(const struct digest *level, struct sv text)
{
	const struct sv parts[] = { { (const char *)level->b, sizeof(level->b) }, text };

	return crypto_sha256_parts(parts, ARRAY_LEN(parts));
}

/* Key text for the limits of a token; no capability has this text. */
static const char limits_text[] = "limits";

static bool has_limits(const uint64_t *limits)
{
	return limits[LIMIT_REQUESTS] || limits[LIMIT_UP] || limits[LIMIT_DOWN];
}

static int open_file(const struct wallet *w, int flags, int *ret_fd, struct writ_err *err)
{
	const char *path = wallet_path(w, w->a, "counters");
	int fd;

	if (!path)
		return writ_nomem(err);
	fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	*ret_fd = fd;
	return 0;
}

/* Maps the counters of the file @fd. Maps nothing, and leaves *@ret as it is, if there are none. */
static int map(int fd, int protection, struct quota_counter **ret, size_t *ret_n,
	       struct writ_err *err)
{
	struct stat st;
	void *p;

	if (fstat(fd, &st) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "counters");
	*ret_n = (size_t)st.st_size / sizeof(**ret);
	if (*ret_n == 0)
		return 0;
	p = mmap(NULL, *ret_n * sizeof(**ret), protection, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return writ_fail(err, WRIT_E_SYS, errno, "map counters");
	*ret = p;
	return 0;
}

/*
 * Finds the counter of @key, or takes over a counter whose token has expired. Returns @n if neither
 * exists.
 */
static size_t find_slot(struct quota_counter *v, size_t n, uint64_t now, const struct digest *key,
			uint64_t exp)
{
	size_t spare = n;

	for (size_t i = 0; v && i < n; i++) {
		if (memcmp(v[i].key, key->b, sizeof(v[i].key)) == 0)
			return i;
		if (spare == n && v[i].exp + 2 * TOKEN_SKEW < now)
			spare = i;
	}
	if (!v || spare == n)
		return n;
	memset(&v[spare], 0, sizeof(v[spare]));
	memcpy(v[spare].key, key->b, sizeof(v[spare].key));
	v[spare].exp = exp;
	return spare;
}

static size_t price_of(const struct cap_set *set, struct sv text)
{
	size_t i = 0;

	while (i < set->prices.n && !sv_eq(set->prices.v[i].cap.text, text))
		i++;
	return i;
}

struct joining {
	struct arena *a;
	const struct cap_set *set;
	uint64_t now;
	struct quota_counter *v;
	size_t n;
	VEC(struct quota_cell) cells;
	VEC(struct quota_pool) pools;
};

static bool has_slot(const struct joining *j, size_t slot)
{
	for (size_t i = 0; i < j->cells.n; i++)
		if (j->cells.v[i].slot == slot)
			return true;
	return false;
}

static int join_level(struct joining *j, const struct wallet_level *l, struct writ_err *err)
{
	for (size_t k = 0; k < l->n; k++) {
		const struct cap *cap = &l->caps[k].cap;
		const struct digest key = key_of(&l->key, cap->text);
		const size_t price = price_of(j->set, cap->text);
		struct quota_cell *cell;
		size_t slot;

		if (!is_counted(cap))
			continue;
		slot = find_slot(j->v, j->n, j->now, &key, l->exp);
		/* SECURITY: refuse if no counter is free: each allowed use must be counted. */
		if (slot == j->n || price == j->set->prices.n)
			return writ_fail(err, WRIT_E_LIMIT, 0, "no counter for it");
		if (has_slot(j, slot))
			continue;
		cell = vec_push(j->a, &j->cells);
		if (!cell)
			return writ_nomem(err);
		*cell = (struct quota_cell){ (uint32_t)price, (uint32_t)slot };
	}
	return 0;
}

static int join_limits(struct joining *j, const struct wallet_level *l, struct writ_err *err)
{
	const struct digest key = key_of(&l->key, sv_from(limits_text));
	struct quota_pool *pool;
	size_t slot;

	if (!has_limits(l->limits))
		return 0;
	slot = find_slot(j->v, j->n, j->now, &key, l->exp);
	pool = vec_push(j->a, &j->pools);
	if (!pool)
		return writ_nomem(err);
	if (slot == j->n)
		return writ_fail(err, WRIT_E_LIMIT, 0, "no counter for its limits");
	*pool = (struct quota_pool){ .slot = (uint32_t)slot,
				     .requests = l->limits[LIMIT_REQUESTS],
				     .up = l->limits[LIMIT_UP],
				     .down = l->limits[LIMIT_DOWN] };
	return 0;
}

static size_t count_all(const struct wallet_level *v, size_t n)
{
	size_t all = 0;

	for (size_t i = 0; i < n; i++) {
		all += has_limits(v[i].limits);
		for (size_t k = 0; k < v[i].n; k++)
			all += is_counted(&v[i].caps[k].cap);
	}
	return all;
}

static size_t spares(const struct joining *j)
{
	size_t n = 0;

	for (size_t i = 0; j->v && i < j->n; i++)
		n += j->v[i].exp + 2 * TOKEN_SKEW < j->now;
	return n;
}

int wallet_count_in(struct arena *a, int fd, const struct wallet_level *v, size_t n,
		    const struct cap_set *set, uint64_t now, struct quota_shared *ret,
		    struct writ_err *err)
{
	struct joining j = { .a = a, .set = set, .now = now };
	const size_t more = count_all(v, n);
	int r;

	if (more == 0)
		return 0;
	r = map(fd, PROT_READ | PROT_WRITE, &j.v, &j.n, err);
	/* Make room for all counters of the session, as if none of these counters existed yet. */
	if (r == 0 && spares(&j) < more && j.n + more <= COUNTERS_MAX) {
		if (j.v)
			(void)munmap(j.v, j.n * sizeof(*j.v));
		j.n = (j.n + more + GROW - 1) / GROW * GROW;
		r = ftruncate(fd, (off_t)(j.n * sizeof(*j.v))) < 0
			    ? writ_fail(err, WRIT_E_SYS, errno, "counters")
			    : map(fd, PROT_READ | PROT_WRITE, &j.v, &j.n, err);
	}
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = join_level(&j, &v[i], err);
		if (r == 0)
			r = join_limits(&j, &v[i], err);
	}
	if (r == 0 && msync(j.v, j.n * sizeof(*j.v), MS_SYNC) < 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "counters");
	if (r == 0)
		*ret = (struct quota_shared){ .v = j.v,
					      .n = j.n,
					      .cells = j.cells.v,
					      .cells_n = j.cells.n,
					      .pools = j.pools.v,
					      .pools_n = j.pools.n };
	return r;
}

int wallet_count(const struct wallet *w, const struct wallet_level *v, size_t n,
		 const struct cap_set *set, struct quota_shared *ret, int *ret_fd,
		 struct writ_err *err)
{
	scoped_fd lock = -1, fd = -1;
	int r;

	if (count_all(v, n) == 0)
		return 0;
	if ((r = wallet_lock(w, &lock, err)) < 0 ||
	    (r = open_file(w, O_RDWR | O_CREAT, &fd, err)) < 0 ||
	    (r = wallet_count_in(w->a, fd, v, n, set, w->now, ret, err)) < 0)
		return r;
	*ret_fd = fd_take(&fd);
	return 0;
}

struct wallet_level wallet_level_of(const struct token *t)
{
	return (struct wallet_level){ .key = t->hash,
				      .caps = t->set.caps.v,
				      .n = t->set.caps.n,
				      .limits = t->set.limits,
				      .exp = t->exp };
}

/*
 * Reads the counter of token @t for @text, the text of a capability or limits_text. Leaves *@ret
 * unchanged if the counter does not exist yet.
 */
static void read_counter(const struct wallet *w, const struct token *t, struct sv text,
			 struct wallet_use *ret)
{
	const struct digest key = key_of(&t->hash, text);
	struct quota_counter *v = NULL;
	struct writ_err err = { 0 };
	scoped_fd fd = -1;
	size_t n = 0;

	if (open_file(w, O_RDONLY, &fd, &err) < 0 || map(fd, PROT_READ, &v, &n, &err) < 0 || n == 0)
		return;
	for (size_t i = 0; v && i < n; i++)
		if (memcmp(v[i].key, key.b, sizeof(v[i].key)) == 0) {
			*ret = (struct wallet_use){ v[i].uses, v[i].up, v[i].down };
			break;
		}
	(void)munmap(v, n * sizeof(*v));
}

bool wallet_used(const struct wallet *w, const struct token *t, const struct cap *c,
		 struct wallet_use *ret)
{
	*ret = (struct wallet_use){ 0 };
	if (is_counted(c))
		read_counter(w, t, c->text, ret);
	return is_counted(c);
}

bool wallet_used_limits(const struct wallet *w, const struct token *t, struct wallet_use *ret)
{
	*ret = (struct wallet_use){ 0 };
	if (has_limits(t->set.limits))
		read_counter(w, t, sv_from(limits_text), ret);
	return has_limits(t->set.limits);
}
