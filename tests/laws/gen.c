#include "gen.h"

#include <stdio.h>
#include <stdlib.h>

#include "cap/component.h"

uint64_t gen_next(struct gen *g)
{
	uint64_t z = g->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

size_t gen_below(struct gen *g, size_t n)
{
	return gen_next(g) % n;
}

bool gen_chance(struct gen *g, size_t percent)
{
	return gen_below(g, 100) < percent;
}

#define PICK(g, list) ((list)[gen_below((g), ARRAY_LEN(list))])

static void *need(void *p)
{
	if (!p) {
		(void)fprintf(stderr, "out of memory\n");
		exit(2);
	}
	return p;
}

/* --- Sequences --- */

static const struct sv names[] = {
	SV_INIT("a"),	SV_INIT("b"),	     SV_INIT("ab"), SV_INIT("abb"),
	SV_INIT("aab"), SV_INIT("ba"),	     SV_INIT(".a"), SV_INIT("a b"),
	SV_INIT("*"),	SV_INIT("\xc3\xa9"), SV_INIT("-"),
};
static const struct sv ends[] = {
	SV_INIT(""), SV_INIT(""), SV_INIT("a"), SV_INIT("b"), SV_INIT("ab"), SV_INIT("b "),
};

static struct sv join(struct gen *g, struct sv x, struct sv y)
{
	char *p = need(arena_alloc(g->a, x.n + y.n + 1, 1));

	memcpy(p, x.p, x.n);
	memcpy(p + x.n, y.p, y.n);
	return (struct sv){ p, x.n + y.n };
}

static struct cap_seg some_seg(struct gen *g, unsigned flags)
{
	static const struct sv odd[] = { SV_INIT("."), SV_INIT(".."), SV_INIT("/a"),
					 SV_INIT("a/b") };

	if ((flags & SEQ_STAR) && gen_chance(g, 30))
		return (struct cap_seg){ PICK(g, ends), PICK(g, ends), true };
	if ((flags & SEQ_ARGS) && gen_chance(g, 20))
		return (struct cap_seg){ PICK(g, odd), SV(""), false };
	return (struct cap_seg){ PICK(g, names), SV(""), false };
}

/* Some bytes that @seg matches. */
static struct sv literal_of(struct gen *g, const struct cap_seg *seg)
{
	struct sv mid = gen_chance(g, 30) ? SV("") : PICK(g, names);

	if (!seg->star)
		return seg->pre;
	if (seg->pre.n + seg->suf.n == 0 && mid.n == 0)
		mid = SV("a");
	return join(g, join(g, seg->pre, mid), seg->suf);
}

static struct cap_seq some_seq(struct gen *g, unsigned flags, size_t min, size_t max)
{
	struct cap_seq s = { .hole = SIZE_MAX };
	struct cap_seg *segs = need(arena_array(g->a, struct cap_seg, max + 1));

	s.n = min + gen_below(g, max - min + 1);
	for (size_t i = 0; i < s.n; i++)
		segs[i] = some_seg(g, flags);
	s.tail = (flags & SEQ_TAIL) && gen_chance(g, 45);
	if ((flags & SEQ_SLASH) && !s.tail && (s.n == 0 || gen_chance(g, 30)))
		segs[s.n++] = (struct cap_seg){ SV(""), SV(""), false };
	s.segs = segs;
	return s;
}

static struct cap_seg narrow_seg(struct gen *g, const struct cap_seg *seg)
{
	if (!seg->star || gen_chance(g, 40))
		return *seg;
	if (gen_chance(g, 60))
		return (struct cap_seg){ literal_of(g, seg), SV(""), false };
	return (struct cap_seg){ join(g, seg->pre, PICK(g, ends)), join(g, PICK(g, ends), seg->suf),
				 true };
}

/* @flags as for some_seq; @concrete leaves no star and no tail. */
static struct cap_seq narrow_seq(struct gen *g, const struct cap_seq *s, unsigned flags,
				 bool concrete)
{
	struct cap_seg *segs = need(arena_array(g->a, struct cap_seg, s->n + 4));
	struct cap_seq out = { .segs = segs, .n = s->n, .hole = SIZE_MAX };
	const bool shut = s->n && s->segs[s->n - 1].pre.n == 0 && !s->segs[s->n - 1].star;

	for (size_t i = 0; i < s->n; i++) {
		segs[i] = narrow_seg(g, &s->segs[i]);
		if (concrete)
			segs[i] = (struct cap_seg){ literal_of(g, &s->segs[i]), SV(""), false };
	}
	if (s->tail && !shut)
		for (size_t more = gen_below(g, 3); more; more--)
			segs[out.n++] = some_seg(g, concrete ? flags & ~(unsigned)SEQ_STAR : flags);
	out.tail = s->tail && !concrete && gen_chance(g, 60);
	if ((flags & SEQ_SLASH) && s->tail && !out.tail && !shut &&
	    (out.n == 0 || gen_chance(g, 30)))
		segs[out.n++] = (struct cap_seg){ SV(""), SV(""), false };
	return out;
}

/* --- Hosts --- */

static const struct sv host_names[] = {
	SV_INIT("a.b"),	     SV_INIT("x.a.b"), SV_INIT("y.x.a.b"),
	SV_INIT("b.c"),	     SV_INIT("xa.b"),  SV_INIT("localhost"),
	SV_INIT("intranet"), SV_INIT("z.b.c"), SV_INIT("yxa.b"),
};
static const struct sv domains[] = { SV_INIT("a.b"), SV_INIT("x.a.b"), SV_INIT("b.c") };
static const struct sv networks[] = {
	SV_INIT("10.0.0.0/8"),	    SV_INIT("10.0.0.0/9"),	    SV_INIT("10.1.0.0/16"),
	SV_INIT("10.1.2.3"),	    SV_INIT("10.1.2.2/31"),	    SV_INIT("192.168.0.0/16"),
	SV_INIT("192.168.7.1"),	    SV_INIT("128.0.0.0/1"),	    SV_INIT("[fd00::]/8"),
	SV_INIT("[fd00::1]"),	    SV_INIT("[fe80::]/10"),	    SV_INIT("[fe80::1:0:0:2]"),
	SV_INIT("[2001:db8::]/32"), SV_INIT("[2001:db8:0:1::]/64"),
};

/* A network or address inside @n; @single asks for one address. */
static struct cap_net_addr inside(struct gen *g, struct cap_net_addr n, bool single)
{
	const size_t bits = n.v6 ? 128 : 32;
	size_t len = n.len + gen_below(g, bits - n.len + 1);

	if (single)
		len = bits;
	for (size_t i = n.len; i < len; i++)
		if (gen_chance(g, 20))
			n.b[i / 8] |= (uint8_t)(0x80 >> i % 8);
	n.len = (uint8_t)len;
	return n;
}

static struct cap_net_addr some_addr(struct gen *g)
{
	struct cap_net_addr a = { 0 };

	if (!cap_addr_parse(PICK(g, networks), &a))
		exit(2);
	return gen_chance(g, 20) ? inside(g, a, false) : a;
}

static struct cap_host some_host(struct gen *g)
{
	struct cap_host h = { .kind = CAP_HOST_NAME, .name = PICK(g, host_names) };
	const size_t dice = gen_below(g, 10);

	if (dice < 2) {
		h.addr = some_addr(g);
		h.kind = h.addr.v6 ? CAP_HOST_V6 : CAP_HOST_V4;
		h.name = SV("");
	} else if (dice < 7) {
		h.kind = dice < 4 ? CAP_HOST_ONE : CAP_HOST_MANY;
		h.name = PICK(g, domains);
	} else if (dice == 7) {
		h.kind = CAP_HOST_ANY;
		h.name = SV("");
	}
	return h;
}

static struct cap_host narrow_host(struct gen *g, const struct cap_host *h, bool concrete)
{
	struct cap_host out = *h;
	const struct sv label = gen_chance(g, 50) ? SV("x.") : SV("y.");

	if (!concrete && gen_chance(g, 40))
		return out;
	switch (h->kind) {
	case CAP_HOST_NONE:
	case CAP_HOST_NAME:
		break;
	case CAP_HOST_ANY:
		out.name = PICK(g, domains);
		out.kind = concrete || gen_chance(g, 50) ? CAP_HOST_NAME : CAP_HOST_MANY;
		break;
	case CAP_HOST_MANY:
		out.kind = concrete || gen_chance(g, 30) ? CAP_HOST_NAME : CAP_HOST_ONE;
		if (out.kind == CAP_HOST_NAME || gen_chance(g, 50))
			out.name = join(g, label, h->name);
		break;
	case CAP_HOST_ONE:
		out.kind = CAP_HOST_NAME;
		out.name = join(g, label, h->name);
		break;
	case CAP_HOST_V4:
	case CAP_HOST_V6:
		out.addr = inside(g, h->addr, concrete);
		break;
	}
	return out;
}

static struct cap_url some_url(struct gen *g)
{
	struct cap_url u = { .tls = gen_chance(g, 70), .host = some_host(g) };

	u.port = gen_chance(g, 80) ? 443 : 80;
	u.path = some_seq(g, SEQ_STAR | SEQ_TAIL | SEQ_SLASH, 0, 3);
	return u;
}

static struct cap_url narrow_url(struct gen *g, const struct cap_url *u, bool concrete)
{
	struct cap_url out = *u;

	out.host = narrow_host(g, &u->host, concrete);
	out.path = narrow_seq(g, &u->path, SEQ_STAR | SEQ_TAIL | SEQ_SLASH, concrete);
	return out;
}

/* --- Lists and numbers --- */

static const struct sv ids[] = { SV_INIT("ann"), SV_INIT("bob"), SV_INIT("cy") };
static const struct sv methods[] = { SV_INIT("GET"), SV_INIT("POST"), SV_INIT("PUT") };
static const struct sv hashes[] = {
	SV_INIT("0000000000000000000000000000000000000000000000000000000000000000"),
	SV_INIT("00000000000000000000000000000000000000000000000000000000000000ff"),
	SV_INIT("f000000000000000000000000000000000000000000000000000000000000000"),
};
static const struct sv repos[] = {
	SV_INIT("https://a.b:443/x"),
	SV_INIT("ssh://git@a.b:22/x/y"),
	SV_INIT("https://a.b:443/y"),
};

/* Some of the three of @all, in order, chosen by the bits of @mask. */
static size_t subset(struct gen *g, const struct sv all[3], size_t mask, const struct sv **ret)
{
	struct sv *list = need(arena_array(g->a, struct sv, 3));
	size_t n = 0;

	for (size_t i = 0; i < 3; i++)
		if (mask >> i & 1)
			list[n++] = all[i];
	*ret = list;
	return n;
}

static size_t mask_of(const struct sv *list, size_t n, const struct sv all[3])
{
	size_t mask = 0;

	for (size_t i = 0; i < 3; i++)
		for (size_t j = 0; j < n; j++)
			mask |= (size_t)sv_eq(all[i], list[j]) << i;
	return mask;
}

static uint64_t some_number(struct gen *g)
{
	return gen_chance(g, 5) ? CAP_NUMBER_MAX - gen_below(g, 3) : 1 + gen_below(g, 9);
}

static uint64_t lower(struct gen *g, uint64_t n)
{
	if (n == 0)
		return gen_chance(g, 25) ? some_number(g) : 0;
	return gen_chance(g, 50) ? n : 1 + gen_next(g) % n;
}

static int compare_texts(const void *a, const void *b)
{
	return sv_cmp(*(const struct sv *)a, *(const struct sv *)b);
}

/* Prints and orders up to three entries; parsing refuses what is not minimal. */
static void set_priv(struct gen *g, struct cap *c, const struct cap_net_addr *from, size_t n)
{
	struct cap_net_addr *list = need(arena_array(g->a, struct cap_net_addr, n + 1));
	struct sv texts[8] = { 0 };

	for (size_t i = 0; i < n; i++) {
		scoped_buf b = BUF_INIT(64);

		cap_addr_print(&from[i], &b);
		if (!arena_sv(g->a, buf_view(&b), &texts[i]))
			exit(2);
	}
	qsort(texts, n, sizeof(texts[0]), compare_texts);
	for (size_t i = 0; i < n; i++)
		if (!cap_addr_parse(texts[i], &list[i]))
			exit(2);
	c->priv = list;
	c->priv_n = n;
}

/* --- Whole ones --- */

enum { TRIES = 1000 };

/* Prints the draft @c and parses it; false if it is not one. */
static bool settle(struct gen *g, const struct cap *c, struct cap *ret_cap)
{
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);

	cap_print(c, &b);
	return cap_parse(g->a, c->kind, buf_view(&b), ret_cap, &err) == 0;
}

static void some_params(struct gen *g, struct cap *c)
{
	struct cap_net_addr special[3];
	size_t n = 0;

	if (gen_chance(g, 20))
		c->approve_n = subset(g, ids, 1 + gen_below(g, 7), &c->approve);
	c->n = gen_chance(g, 20) ? some_number(g) : 0;
	c->max_in = gen_chance(g, 20) ? some_number(g) : 0;
	c->max_out = gen_chance(g, 20) ? some_number(g) : 0;
	c->rate_n = gen_chance(g, 20) ? some_number(g) : 0;
	c->rate_s = some_number(g);
	c->any_method = gen_chance(g, 50);
	c->methods_n = subset(g, methods, 1 + gen_below(g, 7), &c->methods);
	c->no_query = gen_chance(g, 30);
	c->has_args = gen_chance(g, 40);
	c->args = some_seq(g, SEQ_STAR | SEQ_TAIL | SEQ_ARGS, 0, 3);
	c->sha256_n = gen_chance(g, 60) ? 0 : subset(g, hashes, 1 + gen_below(g, 7), &c->sha256);
	c->dev_write = gen_chance(g, 50);
	c->danger = gen_chance(g, 50);
	c->op_fetch = gen_chance(g, 50);
	c->op_push = c->has_ref = !c->op_fetch || gen_chance(g, 60);
	c->ref = some_seq(g, SEQ_STAR | SEQ_TAIL, 1, 3);
	c->as = gen_chance(g, 50) ? SV("bearer") : SV("header:x-key");
	c->to = some_url(g);
	if (gen_chance(g, 40) && !cap_host_is_addr(cap_peer(c).host))
		while (n < 3 && gen_chance(g, 70))
			special[n++] = some_addr(g);
	set_priv(g, c, special, n);
	if (c->action == CAP_HTTP_REQUEST && gen_chance(g, 15)) {
		c->url.path = (struct cap_seq){ .tail = true, .hole = SIZE_MAX };
		c->any_method = true;
		c->no_query = false;
		c->tls_pass = gen_chance(g, 50) && c->url.tls;
		c->n = c->rate_n = 0;
	}
}

static const enum cap_action common[] = {
	CAP_FS_READ,	 CAP_FS_WRITE,	   CAP_FS_PUT,	     CAP_PROC_EXEC, CAP_NET_CONNECT,
	CAP_NET_CONNECT, CAP_HTTP_REQUEST, CAP_HTTP_REQUEST, CAP_GIT_USE,   CAP_SECRET_USE,
};

static void some_resource(struct gen *g, struct cap *c)
{
	const bool below = c->kind == CAP_DENIAL && c->action <= CAP_PROC_EXEC;
	const unsigned wild = SEQ_STAR | SEQ_TAIL;

	c->host = some_host(g);
	c->port_lo = (uint16_t)(gen_chance(g, 70) ? 443 : 79 + gen_below(g, 3));
	c->port_hi = (uint16_t)(c->port_lo + (gen_chance(g, 50) ? gen_below(g, 400) : 0));
	c->url = some_url(g);
	c->repo = PICK(g, repos);
	c->path = some_seq(g, wild, 0, gen_chance(g, 50) ? 1 : 4);
	if (below) {
		c->path.tail = true;
		if (c->path.n && gen_chance(g, 50))
			c->path.hole = gen_below(g, c->path.n);
	}
	if (c->action == CAP_NET_BIND)
		c->host = (struct cap_host){ .kind = CAP_HOST_NAME, .name = SV("localhost") };
	if (c->action == CAP_DEV_USE || c->action == CAP_KERNEL_USE) {
		static const struct sv parts[] = { SV_INIT("io_uring"), SV_INIT("ptrace-own") };
		struct cap_seg *segs = need(arena_array(g->a, struct cap_seg, 2));

		segs[0] = (struct cap_seg){ SV("dev"), SV(""), false };
		segs[1] = some_seg(g, SEQ_STAR);
		c->path = (struct cap_seq){ .segs = segs, .n = 2, .hole = SIZE_MAX };
		if (c->action == CAP_KERNEL_USE) {
			segs[0].pre = PICK(g, parts);
			c->path.n = 1;
		}
	}
}

static struct cap make(struct gen *g, enum cap_kind kind)
{
	for (int i = 0; i < TRIES; i++) {
		struct cap c = { .kind = kind, .realm = gen_chance(g, 95) ? SV("r") : SV("s") };
		struct cap out;

		c.action = 1 + (enum cap_action)gen_below(g, CAP_ACTION_COUNT - 1);
		if (gen_chance(g, 60))
			c.action = PICK(g, common);
		some_resource(g, &c);
		some_params(g, &c);
		if (settle(g, &c, &out))
			return out;
	}
	(void)fprintf(stderr, "the generator makes nothing that parses\n");
	exit(2);
}

struct cap gen_grant(struct gen *g)
{
	return make(g, CAP_GRANT);
}

struct cap gen_denial(struct gen *g)
{
	return make(g, CAP_DENIAL);
}

/* An http.request that fits through the connection @c. */
static void into_http(struct gen *g, struct cap *c, bool concrete)
{
	c->action = CAP_HTTP_REQUEST;
	c->url = some_url(g);
	c->url.host = c->host;
	c->url.port = c->port_lo;
	if (concrete)
		c->url.path = narrow_seq(g, &c->url.path, SEQ_SLASH, true);
	c->any_method = !concrete && gen_chance(g, 30);
	c->methods_n = subset(g, methods, concrete ? 2 : 1 + gen_below(g, 7), &c->methods);
	c->no_query = gen_chance(g, 50);
}

static void narrow_priv(struct gen *g, struct cap *c)
{
	struct cap_net_addr list[8];
	size_t n = 0;

	for (size_t i = 0; i < c->priv_n && i < 8; i++)
		if (gen_chance(g, 70))
			list[n++] = gen_chance(g, 60) ? c->priv[i] : inside(g, c->priv[i], false);
	set_priv(g, c, list, n);
}

static void narrow_params(struct gen *g, struct cap *c)
{
	const size_t who = mask_of(c->approve, c->approve_n, ids);
	const size_t how = c->any_method ? 7 : mask_of(c->methods, c->methods_n, methods);
	const size_t what = c->sha256_n ? mask_of(c->sha256, c->sha256_n, hashes) : 7;

	if (gen_chance(g, 20))
		c->approve_n = subset(g, ids, who | gen_below(g, 8), &c->approve);
	c->n = lower(g, c->n);
	c->max_in = lower(g, c->max_in);
	c->max_out = lower(g, c->max_out);
	if (gen_chance(g, 40)) {
		c->rate_n = lower(g, c->rate_n);
		c->rate_s = c->rate_s ? c->rate_s + gen_below(g, 3) : some_number(g);
	}
	if (gen_chance(g, 40)) {
		const size_t less = how & gen_below(g, 8);

		c->any_method = c->any_method && gen_chance(g, 30);
		c->methods_n = subset(g, methods, less ? less : how, &c->methods);
	}
	c->no_query = c->no_query || gen_chance(g, 30);
	if (c->sha256_n ? gen_chance(g, 50) : gen_chance(g, 20))
		c->sha256_n = subset(g, hashes, what & gen_below(g, 8), &c->sha256);
	if (c->has_args)
		c->args = narrow_seq(g, &c->args, SEQ_STAR | SEQ_TAIL | SEQ_ARGS, false);
	else if (gen_chance(g, 30))
		c->args = some_seq(g, SEQ_STAR | SEQ_TAIL | SEQ_ARGS, 0, 3), c->has_args = true;
	c->dev_write = c->dev_write && gen_chance(g, 60);
	c->danger = c->danger && gen_chance(g, 60);
	c->tls_pass = c->tls_pass && gen_chance(g, 60);
	c->op_push = c->has_ref = c->op_push && (!c->op_fetch || gen_chance(g, 60));
	c->op_fetch = c->op_fetch && (!c->op_push || gen_chance(g, 60));
	if (c->has_ref)
		c->ref = narrow_seq(g, &c->ref, SEQ_STAR | SEQ_TAIL, false);
	if (c->priv_n)
		narrow_priv(g, c);
}

struct cap gen_narrow(struct gen *g, const struct cap *parent)
{
	for (int i = 0; i < TRIES; i++) {
		struct cap c = *parent, out;

		if (c.action == CAP_FS_WRITE && gen_chance(g, 30))
			c.action = CAP_FS_PUT;
		c.path = narrow_seq(g, &c.path, SEQ_STAR | SEQ_TAIL, false);
		c.host = narrow_host(g, &c.host, false);
		c.port_hi =
			(uint16_t)(c.port_hi - gen_below(g, (size_t)(c.port_hi - c.port_lo) + 1));
		c.url = narrow_url(g, &c.url, false);
		c.to = narrow_url(g, &c.to, false);
		narrow_params(g, &c);
		if (c.action == CAP_NET_CONNECT && gen_chance(g, 40))
			into_http(g, &c, false);
		if (settle(g, &c, &out))
			return out;
	}
	return *parent;
}

/* Is this one of the grants that a tunnel may use? */
static bool is_open(const struct cap *c)
{
	return c->action == CAP_HTTP_REQUEST && c->url.tls && c->url.path.tail &&
	       c->url.path.n == 0 && c->any_method && !c->no_query;
}

static void pick_params(struct gen *g, struct cap *r, const struct cap *c)
{
	const size_t how = gen_below(g, c->methods_n ? c->methods_n : 3);

	r->any_method = false;
	r->methods_n = 1;
	r->methods = c->any_method || !c->methods_n ? &methods[how] : &c->methods[how];
	r->no_query = c->no_query || gen_chance(g, 30);
	r->has_args = c->has_args || gen_chance(g, 30);
	r->args =
		c->has_args ? narrow_seq(g, &c->args, SEQ_ARGS, true) : some_seq(g, SEQ_ARGS, 0, 2);
	if (r->sha256_n) {
		r->sha256 = &c->sha256[gen_below(g, c->sha256_n)];
		r->sha256_n = 1;
	}
	r->dev_write = c->dev_write && gen_chance(g, 60);
	if (c->op_fetch && c->op_push)
		r->op_fetch = gen_chance(g, 40), r->op_push = !r->op_fetch;
	r->has_ref = r->op_push;
	if (r->has_ref)
		r->ref = narrow_seq(g, &c->ref, 0, true);
	r->priv_n = 0;
	if (c->priv_n && gen_chance(g, 60)) {
		const struct cap_net_addr one = inside(g, c->priv[gen_below(g, c->priv_n)], true);

		set_priv(g, r, &one, 1);
	}
}

struct cap gen_request(struct gen *g, const struct cap *grant)
{
	for (int i = 0; i < TRIES; i++) {
		struct cap r = *grant, out;

		r.kind = CAP_REQUEST;
		r.path = narrow_seq(g, &r.path, 0, true);
		r.host = narrow_host(g, &r.host, true);
		r.port_lo =
			(uint16_t)(r.port_lo + gen_below(g, (size_t)(r.port_hi - r.port_lo) + 1));
		r.port_hi = r.port_lo;
		r.url = narrow_url(g, &r.url, true);
		r.to = narrow_url(g, &r.to, true);
		pick_params(g, &r, grant);
		r.tls_pass = gen_chance(g, 30);
		if (r.action == CAP_FS_WRITE && gen_chance(g, 40))
			r.action = CAP_FS_PUT;
		if (r.action == CAP_NET_CONNECT && gen_chance(g, 40)) {
			into_http(g, &r, true);
		} else if (is_open(grant) && gen_chance(g, 50)) {
			r.action = CAP_NET_CONNECT;
			r.host = r.url.host;
			r.port_lo = r.port_hi = r.url.port;
			r.tls_pass = true;
		}
		if (settle(g, &r, &out))
			return out;
	}
	(void)fprintf(stderr, "no request for %s\n", grant->text.p);
	exit(2);
}

struct cap gen_denial_of(struct gen *g, const struct cap *req)
{
	struct cap d = *req, out;

	d.kind = CAP_DENIAL;
	if (d.action == CAP_FS_PUT && gen_chance(g, 40))
		d.action = CAP_FS_WRITE;
	if (d.action <= CAP_PROC_EXEC) {
		d.path.tail = true;
		d.path.n -= d.path.n ? gen_below(g, d.path.n) : 0;
		if (d.path.n && gen_chance(g, 50)) {
			const size_t from = gen_below(g, d.path.n);

			/* Drop the first few names: the hole stands for them. */
			d.path.segs += from;
			d.path.n -= from;
			d.path.hole = 0;
		}
	}
	if (d.host.kind == CAP_HOST_NAME && gen_chance(g, 20))
		d.host.kind = CAP_HOST_ANY;
	return settle(g, &d, &out) ? out : gen_denial(g);
}

struct sv gen_mutated(struct gen *g, struct sv text)
{
	static const char bytes[] = "//**..,,;;=:-%2F0019abxAZ~[]@ \x7f";
	char *p = need(arena_alloc(g->a, text.n + 2, 1));
	const size_t at = gen_below(g, text.n), dice = gen_below(g, 4);
	const char c = bytes[gen_below(g, sizeof(bytes) - 1)];

	memcpy(p, text.p, text.n);
	switch (dice) {
	case 0: /* replace */
		p[at] = c;
		return (struct sv){ p, text.n };
	case 1: /* insert */
		memmove(p + at + 1, p + at, text.n - at);
		p[at] = c;
		return (struct sv){ p, text.n + 1 };
	case 2: /* drop */
		memmove(p + at, p + at + 1, text.n - at - 1);
		return (struct sv){ p, text.n - 1 };
	default: /* double, or swap with the next */
		if (at + 1 < text.n && gen_chance(g, 50)) {
			p[at] = text.p[at + 1];
			p[at + 1] = text.p[at];
			return (struct sv){ p, text.n };
		}
		memmove(p + at + 1, p + at, text.n - at);
		return (struct sv){ p, text.n + 1 };
	}
}
