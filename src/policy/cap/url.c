#include "cap/component.h"

#include "base/banned.h"

static bool port_parse(struct sv s, uint16_t *ret_port)
{
	uint64_t v;

	if (!sv_to_u64(s, UINT16_MAX, &v) || v == 0)
		return false;
	*ret_port = (uint16_t)v;
	return true;
}

bool cap_ports_parse(struct sv s, uint16_t *ret_lo, uint16_t *ret_hi)
{
	const bool range = sv_find(s, '-') != SIZE_MAX;
	const struct sv first = sv_cut(&s, '-');
	uint16_t lo, hi;

	if (!port_parse(first, &lo))
		return false;
	hi = lo;
	if (range && (!port_parse(s, &hi) || hi <= lo))
		return false;
	*ret_lo = lo;
	*ret_hi = hi;
	return true;
}

/* Splits "HOST:PORT/PATH" into its parts; the path keeps its leading slash. */
static bool split(struct sv s, struct sv *ret_host, uint16_t *ret_port, struct sv *ret_path)
{
	const size_t slash = sv_find(s, '/');
	const struct sv authority = sv_sub(s, 0, slash);
	const size_t colon = sv_rfind(authority, ':');

	if (slash == SIZE_MAX || colon == SIZE_MAX)
		return false;
	*ret_host = sv_sub(authority, 0, colon);
	*ret_path = sv_skip(s, slash);
	return port_parse(sv_skip(authority, colon + 1), ret_port);
}

struct cap_peer cap_peer(const struct cap *c)
{
	if (c->action == CAP_HTTP_REQUEST)
		return (struct cap_peer){ &c->url.host, c->url.port, c->url.port };
	return (struct cap_peer){ &c->host, c->port_lo, c->port_hi };
}

static bool cut_prefix(struct sv *s, struct sv prefix)
{
	if (!sv_starts(*s, prefix))
		return false;
	*s = sv_skip(*s, prefix.n);
	return true;
}

int cap_url_parse(struct arena *a, struct sv text, enum cap_kind kind, struct cap_url *ret_url)
{
	const unsigned wild = kind == CAP_REQUEST ? 0 : SEQ_STAR | SEQ_TAIL;
	struct cap_url u = { .tls = cut_prefix(&text, SV("https://")) };
	struct sv host, path;
	int r;

	if ((!u.tls && !cut_prefix(&text, SV("http://"))) || !split(text, &host, &u.port, &path))
		return WRIT_E_SYNTAX;
	/* Only denials of net.connect may name addresses that no grant can name. */
	if (kind == CAP_DENIAL)
		kind = CAP_GRANT;
	if (!cap_host_parse_for(host, kind, &u.host))
		return WRIT_E_SYNTAX;
	r = cap_seq_parse(a, path, SEQ_SLASH | SEQ_LONG | wild, &u.path);
	if (r == 0)
		*ret_url = u;
	return r;
}

void cap_url_print(const struct cap_url *u, struct buf *b)
{
	buf_str(b, u->tls ? "https://" : "http://");
	cap_host_print(&u->host, b);
	buf_fmt(b, ":%u", u->port);
	cap_seq_print(&u->path, b);
}

bool cap_url_matches(const struct cap_url *p, const struct cap_url *x)
{
	return p->port == x->port && p->tls == x->tls && cap_host_matches(&p->host, &x->host) &&
	       cap_seq_matches(&p->path, &x->path);
}

bool cap_url_within(const struct cap_url *child, const struct cap_url *parent)
{
	return child->port == parent->port && child->tls == parent->tls &&
	       cap_host_within(&child->host, &parent->host) &&
	       cap_seq_within(&child->path, &parent->path);
}

int cap_url_meet(struct arena *a, const struct cap_url *x, const struct cap_url *y,
		 struct cap_url *ret_url, bool *ret_any)
{
	struct cap_url u = *x;
	int r;

	*ret_any = false;
	if (x->port != y->port || x->tls != y->tls)
		return 0;
	if (cap_host_within(&y->host, &x->host))
		u.host = y->host;
	else if (!cap_host_within(&x->host, &y->host))
		return 0;
	r = cap_seq_meet(a, &x->path, &y->path, &u.path, ret_any);
	if (r == 0 && *ret_any)
		*ret_url = u;
	return r;
}

static bool is_user(struct sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!cap_is_lit(s.p[i]) || s.p[i] == '@' || s.p[i] == '=')
			return false;
	return s.n > 0;
}

int cap_repo_check(struct arena *a, struct sv text)
{
	const bool ssh = cut_prefix(&text, SV("ssh://"));
	struct cap_seq path;
	struct sv host, rest;
	uint16_t port;
	int r;

	if (!ssh && !cut_prefix(&text, SV("https://")))
		return WRIT_E_SYNTAX;
	if (!split(text, &host, &port, &rest))
		return WRIT_E_SYNTAX;
	if (ssh && sv_find(host, '@') != SIZE_MAX && !is_user(sv_cut(&host, '@')))
		return WRIT_E_SYNTAX;
	if (!cap_name_check(host))
		return WRIT_E_SYNTAX;
	r = cap_seq_parse(a, rest, SEQ_LONG, &path);
	if (r == 0 && path.n == 0)
		return WRIT_E_SYNTAX;
	return r;
}
