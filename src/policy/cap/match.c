#include "cap/component.h"

#include "base/banned.h"

static bool list_has(const struct sv *list, size_t n, struct sv item)
{
	for (size_t i = 0; i < n; i++)
		if (same_bytes(list[i], item))
			return true;
	return false;
}

static bool peer_matches(const struct cap *c, const struct cap *req)
{
	const struct cap_peer p = cap_peer(c), x = cap_peer(req);

	return p.lo <= x.lo && x.hi <= p.hi && cap_host_matches(p.host, x.host);
}

/*
 * Checks a request whose host name resolved to a non-public address: the grant must list that
 * address as private.
 */
static bool priv_matches(const struct cap *c, const struct cap *req)
{
	if (req->priv_n == 0)
		return true;
	for (size_t i = 0; i < c->priv_n; i++)
		if (cap_addr_within(&req->priv[0], &c->priv[i]))
			return true;
	return false;
}

static bool connect_matches(const struct cap *c, const struct cap *req)
{
	return peer_matches(c, req) && priv_matches(c, req);
}

static bool exec_matches(const struct cap *c, const struct cap *req)
{
	if (!cap_seq_matches(&c->path, &req->path))
		return false;
	if (c->has_args && (!req->has_args || !cap_seq_matches(&c->args, &req->args)))
		return false;
	return c->sha256_n == 0 ||
	       (req->sha256_n && list_has(c->sha256, c->sha256_n, req->sha256[0]));
}

/*
 * Does the grant apply to a TLS tunnel? A tunnel hides its requests, so only a grant that does not
 * restrict requests inside the tunnel applies.
 */
static bool tunnel_matches(const struct cap *c, const struct cap *req)
{
	return req->tls_pass && c->url.tls && c->url.path.n == 0 && c->url.path.tail &&
	       c->any_method && !c->no_query && !c->n && !c->rate_n && connect_matches(c, req);
}

static bool http_matches(const struct cap *c, const struct cap *req)
{
	if (req->action == CAP_NET_CONNECT)
		return tunnel_matches(c, req);
	return cap_url_matches(&c->url, &req->url) && priv_matches(c, req) &&
	       (c->any_method || list_has(c->methods, c->methods_n, req->methods[0])) &&
	       (!c->no_query || req->no_query);
}

/*
 * Does the grant match a git request? A push must match the grant's ref pattern; a fetch reads the
 * whole repository, so refs do not matter.
 */
static bool git_matches(const struct cap *c, const struct cap *req)
{
	if (!same_bytes(c->repo, req->repo))
		return false;
	if (req->op_push)
		return c->op_push && cap_seq_matches(&c->ref, &req->ref);
	return c->op_fetch;
}

/*
 * Compares the components of a grant and a request whose actions are compatible and whose realms
 * are equal.
 */
static bool parts_match(const struct cap *c, const struct cap *req)
{
	switch (c->action) {
	case CAP_NONE:
	case CAP_ACTION_COUNT:
		return false;
	case CAP_PROC_EXEC:
		return exec_matches(c, req);
	case CAP_NET_CONNECT:
		return connect_matches(c, req);
	case CAP_NET_BIND:
		return peer_matches(c, req);
	case CAP_HTTP_REQUEST:
		return http_matches(c, req);
	case CAP_SECRET_USE:
		return cap_seq_matches(&c->path, &req->path) && same_bytes(c->as, req->as) &&
		       cap_url_matches(&c->to, &req->to);
	case CAP_DEV_USE:
		return cap_seq_matches(&c->path, &req->path) && (c->dev_write || !req->dev_write);
	case CAP_GIT_USE:
		return git_matches(c, req);
	case CAP_FS_READ:
	case CAP_FS_WRITE:
	case CAP_FS_PUT:
	case CAP_UNIX_CONNECT:
	case CAP_ENV_PASS:
	case CAP_TOOL_CALL:
	case CAP_AGENT_SPAWN:
	case CAP_KERNEL_USE:
	case CAP_STATE_USE:
		return cap_seq_matches(&c->path, &req->path);
	}
	return false;
}

static bool can_meet(const struct cap *c, const struct cap *req)
{
	return (cap_reached_by(req->action) & CAP_BIT(c->action)) &&
	       same_bytes(c->realm, req->realm);
}

bool cap_matches(const struct cap *c, const struct cap *req)
{
	return c->kind == CAP_GRANT && req->kind == CAP_REQUEST && can_meet(c, req) &&
	       parts_match(c, req);
}

static bool peer_denied(const struct cap *d, const struct cap *req)
{
	const struct cap_peer p = cap_peer(d), x = cap_peer(req);

	if (x.lo < p.lo || x.hi > p.hi)
		return false;
	/* In a denial, "**" includes addresses and names without a dot, unlike in a grant. */
	if (d->action == CAP_NET_CONNECT && p.host->kind == CAP_HOST_ANY)
		return true;
	/* Also deny a name that resolved to an address in a denied network. */
	if (d->action == CAP_NET_CONNECT && req->priv_n &&
	    (p.host->kind == CAP_HOST_V4 || p.host->kind == CAP_HOST_V6) &&
	    cap_addr_within(&req->priv[0], &p.host->addr))
		return true;
	return cap_host_matches(p.host, x.host);
}

bool cap_denies(const struct cap *d, const struct cap *req)
{
	/*
	 * SECURITY: a caller that mixes up kinds of capabilities has a bug; answer "denied" so that
	 * the bug opens nothing.
	 */
	if (d->kind != CAP_DENIAL || req->kind != CAP_REQUEST)
		return true;
	if (!can_meet(d, req))
		return false;
	switch (d->action) {
	case CAP_NONE:
	case CAP_ACTION_COUNT:
		return true;
	case CAP_NET_CONNECT:
	case CAP_NET_BIND:
		return peer_denied(d, req);
	case CAP_HTTP_REQUEST:
		if (req->action == CAP_NET_CONNECT)
			return peer_denied(d, req);
		return cap_url_matches(&d->url, &req->url);
	case CAP_GIT_USE:
		return same_bytes(d->repo, req->repo);
	case CAP_FS_READ:
	case CAP_FS_WRITE:
	case CAP_FS_PUT:
	case CAP_PROC_EXEC:
	case CAP_UNIX_CONNECT:
	case CAP_ENV_PASS:
	case CAP_SECRET_USE:
	case CAP_DEV_USE:
	case CAP_TOOL_CALL:
	case CAP_AGENT_SPAWN:
	case CAP_KERNEL_USE:
	case CAP_STATE_USE:
		return cap_seq_matches(&d->path, &req->path);
	}
	return true;
}

const struct cap_host *cap_host_of(const struct cap *c)
{
	return c->action == CAP_NET_CONNECT || c->action == CAP_HTTP_REQUEST ? cap_peer(c).host
									     : NULL;
}

bool cap_opens(const struct cap *c, struct sv host, uint16_t *ret_lo, uint16_t *ret_hi)
{
	struct cap_host x;

	if (!cap_host_of(c) || !cap_host_parse_for(host, CAP_REQUEST, &x) ||
	    !cap_host_matches(cap_peer(c).host, &x))
		return false;
	*ret_lo = cap_peer(c).lo;
	*ret_hi = cap_peer(c).hi;
	return true;
}

bool cap_url_opens(const struct cap_url *u, struct sv host, uint16_t *ret_lo, uint16_t *ret_hi)
{
	struct cap_host x;

	if (!cap_host_parse_for(host, CAP_REQUEST, &x) || !cap_host_matches(&u->host, &x))
		return false;
	*ret_lo = *ret_hi = u->port;
	return true;
}
