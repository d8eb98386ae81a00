/* gen_bpf.c - decision graphs: share equal nodes, search a value, write a graph as BPF */
#include <linux/seccomp.h>
#include <stdbool.h>

#include "filter/gen_priv.h"

#include "base/banned.h"

/* --- Nodes --- */

/* Returns the index of the node in the pool that equals @n; adds @n if there is none. */
static uint32_t intern(struct gen_pool *p, struct gen_node n)
{
	uint32_t h = n.op * 31u + n.k;

	h = (h * 2654435761u ^ n.yes * 40503u ^ n.no * 9973u) * 2246822519u;
	h = (h >> 16) % GEN_BUCKETS;
	for (uint32_t i = p->bucket[h]; i; i = p->next_in_bucket[i - 1]) {
		const struct gen_node *o = &p->v[i - 1];

		if (o->op == n.op && o->k == n.k && o->yes == n.yes && o->no == n.no)
			return i - 1;
	}
	if (p->n == GEN_NODES)
		gen_die("too many nodes");
	p->v[p->n] = n;
	p->next_in_bucket[p->n] = p->bucket[h];
	p->bucket[h] = p->n + 1;
	return p->n++;
}

uint32_t gen_ret(struct gen_pool *p, uint32_t action)
{
	return intern(p, (struct gen_node){ BPF_RET | BPF_K, action, 0, 0 });
}

uint32_t gen_errno(struct gen_pool *p, int err)
{
	return gen_ret(p, SECCOMP_RET_ERRNO | ((uint32_t)err & SECCOMP_RET_DATA));
}

uint32_t gen_allow(struct gen_pool *p)
{
	return gen_ret(p, SECCOMP_RET_ALLOW);
}

uint32_t gen_load(struct gen_pool *p, uint32_t offset, uint32_t next)
{
	return intern(p, (struct gen_node){ BPF_LD | BPF_W | BPF_ABS, offset, next, 0 });
}

uint32_t gen_mask(struct gen_pool *p, uint32_t mask, uint32_t next)
{
	return intern(p, (struct gen_node){ BPF_ALU | BPF_AND | BPF_K, mask, next, 0 });
}

uint32_t gen_jump(struct gen_pool *p, uint16_t op, uint32_t k, uint32_t yes, uint32_t no)
{
	if (yes == no)
		return yes;
	return intern(p, (struct gen_node){ (uint16_t)(BPF_JMP | op | BPF_K), k, yes, no });
}

/* Both architectures are little endian: the low half of an argument comes first. */
uint32_t gen_low(struct gen_pool *p, unsigned int arg, uint32_t next)
{
	return gen_load(p, (uint32_t)offsetof(struct seccomp_data, args) + 8 * arg, next);
}

uint32_t gen_high(struct gen_pool *p, unsigned int arg, uint32_t next)
{
	return gen_load(p, (uint32_t)offsetof(struct seccomp_data, args) + 8 * arg + 4, next);
}

/* --- Search for a value --- */

/*
 * Balances the size of a program against its speed: one more instruction costs as much as one more
 * executed step for calls of the total weight SIZE_COST.
 */
enum { SIZE_COST = 4, CHAIN_MAX = 12 };

static bool is_single(const struct gen_span *v, size_t n, size_t i)
{
	return i + 1 < n && v[i].first + 1 == v[i + 1].first;
}

/*
 * Plans a chain of equality tests that distinguishes the spans @i to @j. A chain is possible if all
 * spans wider than one value lead to the same node, *@ret_rest, and if CHAIN_MAX tests suffice.
 * *@ret_v receives the indexes of the spans to test, the most frequent first. Returns the number of
 * tests, or CHAIN_MAX + 1 if no chain is possible.
 */
static size_t chain(const struct gen_span *v, size_t n, size_t i, size_t j, size_t *ret_v,
		    uint32_t *ret_rest)
{
	uint32_t rest = v[j].then;
	size_t tests = 0;

	for (size_t x = i; x <= j; x++)
		if (!is_single(v, n, x))
			rest = v[x].then;
	for (size_t x = i; x <= j; x++) {
		size_t at = tests;

		if (v[x].then == rest)
			continue;
		if (!is_single(v, n, x) || tests == CHAIN_MAX)
			return CHAIN_MAX + 1;
		for (; at > 0 && v[ret_v[at - 1]].weight < v[x].weight; at--)
			ret_v[at] = ret_v[at - 1];
		ret_v[at] = x;
		tests++;
	}
	*ret_rest = rest;
	return tests;
}

static uint64_t weight_of(const struct gen_span *v, size_t i, size_t j)
{
	uint64_t sum = 0;

	for (; i <= j; i++)
		sum += v[i].weight;
	return sum;
}

static uint64_t chain_cost(const struct gen_span *v, size_t n, size_t i, size_t j)
{
	size_t test[CHAIN_MAX];
	uint32_t rest = 0;
	size_t tests = chain(v, n, i, j, test, &rest);
	uint64_t left = weight_of(v, i, j), cost = tests * SIZE_COST;

	if (tests > CHAIN_MAX)
		return UINT64_MAX;
	for (size_t t = 0; t < tests; t++) {
		cost += left;
		left -= v[test[t]].weight;
	}
	return cost;
}

/*
 * Finds the cheapest way to distinguish the spans @i to @j: a chain of equality tests (split 0), or
 * a >= test at a boundary between two spans (split: index of the upper span). The caller has solved
 * all shorter ranges before.
 */
static void solve(struct gen_pool *p, const struct gen_span *v, size_t n, size_t i, size_t j)
{
	uint64_t best = chain_cost(v, n, i, j), all = weight_of(v, i, j) + SIZE_COST;
	size_t split = 0;

	for (size_t m = i + 1; m <= j; m++) {
		uint64_t cost = p->cost[i][m - 1] + p->cost[m][j] + all;

		if (cost < best) {
			best = cost;
			split = m;
		}
	}
	p->cost[i][j] = best;
	p->split[i][j] = (uint16_t)split;
}

static uint32_t build(struct gen_pool *p, const struct gen_span *v, size_t n, size_t i, size_t j)
{
	size_t test[CHAIN_MAX], m = p->split[i][j];
	uint32_t at = 0;

	if (m)
		return gen_jump(p, BPF_JGE, v[m].first, build(p, v, n, m, j),
				build(p, v, n, i, m - 1));
	for (size_t t = chain(v, n, i, j, test, &at); t > 0; t--)
		at = gen_jump(p, BPF_JEQ, v[test[t - 1]].first, v[test[t - 1]].then, at);
	return at;
}

/* Merges neighbouring spans with the same target, then solves all ranges by dynamic programming. */
uint32_t gen_switch(struct gen_pool *p, const struct gen_span *v, size_t n)
{
	struct gen_span merged[GEN_SPANS];
	size_t m = 0;

	if (!n || v[0].first)
		gen_die("spans must start at 0");
	for (size_t i = 0; i < n; i++) {
		if (i && v[i].first <= v[i - 1].first)
			gen_die("spans must be sorted");
		if (m && merged[m - 1].then == v[i].then) {
			merged[m - 1].weight += v[i].weight;
			continue;
		}
		if (m == GEN_SPANS)
			gen_die("too many spans");
		merged[m++] = v[i];
	}
	for (size_t len = 1; len <= m; len++)
		for (size_t i = 0; i + len <= m; i++)
			solve(p, merged, m, i, i + len - 1);
	return build(p, merged, m, 0, m - 1);
}

/* --- Layout --- */

/*
 * BPF jumps only go forward, so the layout writes the program from its end: the successors of a
 * node are written before the node. @at: position of each node, counted from the end of the
 * program, plus 1; 0: not written yet.
 */
struct layout {
	const struct gen_pool *p;
	struct sock_filter *v;
	size_t n, max;
	uint16_t at[GEN_NODES];
};

enum { REACH = 255 };

static void push(struct layout *l, uint16_t op, uint32_t k, size_t yes, size_t no)
{
	if (l->n == l->max)
		gen_die("program too long");
	if (yes > REACH || no > REACH)
		gen_die("jump too far");
	l->v[l->n++] = (struct sock_filter){ op, (uint8_t)yes, (uint8_t)no, k };
}

/* Returns the jump offset to @node from the instruction that is written next. */
static size_t distance(const struct layout *l, uint32_t node)
{
	return l->n - l->at[node];
}

/*
 * Writes an unconditional jump to the node, or a copy of the node if it is a return. Needed if the
 * node is too far away for a conditional jump (more than 255 instructions), or if it must be the
 * next instruction and is not.
 */
static void add_trampoline(struct layout *l, uint32_t node)
{
	const struct gen_node *g = &l->p->v[node];

	if (g->op == (BPF_RET | BPF_K))
		push(l, g->op, g->k, 0, 0);
	else
		push(l, BPF_JMP | BPF_JA, (uint32_t)distance(l, node), 0, 0);
	l->at[node] = (uint16_t)l->n;
}

static void place(struct layout *l, uint32_t node)
{
	const struct gen_node *g = &l->p->v[node];

	if (l->at[node])
		return;
	if (g->op == (BPF_RET | BPF_K)) {
		push(l, g->op, g->k, 0, 0);
	} else if (BPF_CLASS(g->op) == BPF_JMP) {
		place(l, g->no);
		place(l, g->yes);
		while (distance(l, g->no) > REACH || distance(l, g->yes) > REACH)
			add_trampoline(l, distance(l, g->no) > REACH ? g->no : g->yes);
		push(l, g->op, g->k, distance(l, g->yes), distance(l, g->no));
	} else {
		place(l, g->yes);
		if (distance(l, g->yes))
			add_trampoline(l, g->yes);
		push(l, g->op, g->k, 0, 0);
	}
	l->at[node] = (uint16_t)l->n;
}

size_t gen_place(const struct gen_pool *p, uint32_t start, struct sock_filter *ret_v, size_t max)
{
	struct layout l = { p, ret_v, 0, max, { 0 } };

	place(&l, start);
	for (size_t i = 0; i < l.n / 2; i++) {
		struct sock_filter x = ret_v[i];

		ret_v[i] = ret_v[l.n - 1 - i];
		ret_v[l.n - 1 - i] = x;
	}
	return l.n;
}
