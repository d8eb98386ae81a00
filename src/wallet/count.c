#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "wallet/wallet.h"

#include "base/banned.h"

/*
 * Counters of tokens: one file, which every session that counts has mapped. A counter
 * is known by the signing input of its token and the text of its capability, so nobody
 * gets a new one by deriving anew, and all who derive share it.
 */

enum { GROW = 64, COUNTERS_MAX = 1 << 16 };

static bool is_counted(const struct cap *c)
{
	return c->n || c->max_in || c->max_out;
}

static struct digest key_of(const struct token *t, const struct cap *c)
{
	const struct sv parts[] = { { (const char *)t->hash.b, sizeof(t->hash.b) }, c->text };

	return crypto_sha256_parts(parts, ARRAY_LEN(parts));
}

static int open_file(const struct wallet *w, bool write, int *ret_fd, size_t *ret_n,
		     struct writ_err *err)
{
	const char *path = wallet_path(w, w->a, "counters");
	scoped_fd fd = -1;
	struct stat st;

	if (!path)
		return writ_nomem(err);
	fd = open(path, (write ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	*ret_n = (size_t)st.st_size / sizeof(struct quota_counter);
	*ret_fd = take_fd(&fd);
	return 0;
}

static int map(int fd, bool write, size_t n, struct quota_counter **ret, struct writ_err *err)
{
	void *p = mmap(NULL, n * sizeof(**ret), PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED,
		       fd, 0);

	if (p == MAP_FAILED)
		return writ_fail(err, WRIT_E_SYS, errno, "map counters");
	*ret = p;
	return 0;
}

/* Its own, or one that nobody uses any more; @n: there is none. */
static size_t find_slot(const struct wallet *w, struct quota_counter *v, size_t n,
			const struct digest *key, uint64_t exp)
{
	size_t spare = n;

	for (size_t i = 0; v && i < n; i++) {
		if (memcmp(v[i].key, key->b, sizeof(v[i].key)) == 0)
			return i;
		if (spare == n && v[i].exp + 2 * TOKEN_SKEW < w->now)
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

typedef VEC(struct quota_cell) cell_list;

static int add_cells(const struct wallet *w, const struct chain *c, const struct cap_set *set,
		     struct quota_counter *v, size_t n, cell_list *cells, struct writ_err *err)
{
	for (size_t i = 0; i < c->n; i++)
		for (size_t k = 0; k < c->token[i].set.caps.n; k++) {
			const struct cap *cap = &c->token[i].set.caps.v[k].cap;
			const struct digest key = key_of(&c->token[i], cap);
			const size_t price = price_of(set, cap->text);
			struct quota_cell *cell;
			size_t slot;

			if (!is_counted(cap))
				continue;
			slot = find_slot(w, v, n, &key, c->token[i].exp);
			cell = vec_push(w->a, cells);
			if (!cell)
				return writ_nomem(err);
			/* SECURITY: what cannot be counted is not allowed. */
			if (slot == n || price == set->prices.n)
				return writ_fail(err, WRIT_E_LIMIT, 0, "no counter for it");
			*cell = (struct quota_cell){ (uint32_t)price, (uint32_t)slot };
		}
	return 0;
}

static size_t count_all(const struct chain *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		for (size_t k = 0; k < c->token[i].set.caps.n; k++)
			n += is_counted(&c->token[i].set.caps.v[k].cap);
	return n;
}

int wallet_count(const struct wallet *w, const struct chain *c, const struct cap_set *set,
		 struct quota_shared *ret, int *ret_fd, struct writ_err *err)
{
	const size_t more = count_all(c);
	struct quota_shared s = { 0 };
	scoped_fd lock = -1, fd = -1;
	cell_list cells = { 0 };
	size_t used = 0;
	int r;

	*ret = s;
	*ret_fd = -1;
	if (more == 0)
		return 0;
	r = wallet_lock(w, &lock, err);
	if (r == 0)
		r = open_file(w, true, &fd, &used, err);
	if (r < 0)
		return r;
	/* Room for all of them, whether or not old ones can be had. */
	s.n = (used + more + GROW - 1) / GROW * GROW;
	if (used + more > COUNTERS_MAX)
		s.n = used;
	else if (ftruncate(fd, (off_t)(s.n * sizeof(*s.v))) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "counters");
	r = map(fd, true, s.n, &s.v, err);
	if (r == 0)
		r = add_cells(w, c, set, s.v, s.n, &cells, err);
	if (r == 0 && msync(s.v, s.n * sizeof(*s.v), MS_SYNC) < 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "counters");
	if (r < 0)
		return r;
	s.cells = cells.v;
	s.cells_n = cells.n;
	*ret = s;
	*ret_fd = take_fd(&fd);
	return 0;
}

bool wallet_used(const struct wallet *w, const struct token *t, const struct cap *c,
		 struct wallet_use *ret)
{
	const struct digest key = key_of(t, c);
	struct writ_err err = { 0 };
	struct quota_counter *v;
	scoped_fd fd = -1;
	size_t n;

	*ret = (struct wallet_use){ 0 };
	if (!is_counted(c))
		return false;
	if (open_file(w, false, &fd, &n, &err) < 0 || n == 0 || map(fd, false, n, &v, &err) < 0)
		return true;
	for (size_t i = 0; i < n; i++)
		if (memcmp(v[i].key, key.b, sizeof(v[i].key)) == 0)
			*ret = (struct wallet_use){ v[i].uses, v[i].up, v[i].down };
	(void)munmap(v, n * sizeof(*v));
	return true;
}
