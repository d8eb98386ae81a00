#include "cap/component.h"

#include "base/banned.h"

/* Is every item of the list @sub in the list @all? Both lists are in strictly increasing order. */
static bool list_within(const struct sv *sub, size_t sub_n, const struct sv *all, size_t all_n)
{
	size_t j = 0;

	for (size_t i = 0; i < sub_n; i++) {
		while (j < all_n && sv_cmp(all[j], sub[i]) < 0)
			j++;
		if (j == all_n || !same_bytes(all[j], sub[i]))
			return false;
	}
	return true;
}

/* Is the limit of the child grant at most the limit of the parent grant? 0 means no limit. */
static bool number_within(uint64_t child, uint64_t parent)
{
	return parent == 0 || (child != 0 && child <= parent);
}

static bool path_within(const struct cap *child, const struct cap *parent)
{
	return cap_seq_within(&child->path, &parent->path);
}

static bool peer_within(const struct cap *child, const struct cap *parent)
{
	const struct cap_peer c = cap_peer(child), p = cap_peer(parent);

	return p.lo <= c.lo && c.hi <= p.hi && cap_host_within(c.host, p.host);
}

static bool url_within(const struct cap *child, const struct cap *parent)
{
	return cap_url_within(&child->url, &parent->url);
}

static bool repo_within(const struct cap *child, const struct cap *parent)
{
	return same_bytes(child->repo, parent->repo);
}

/* The child grant must require at least the approvers of the parent grant. */
static bool approve_within(const struct cap *child, const struct cap *parent)
{
	return list_within(parent->approve, parent->approve_n, child->approve, child->approve_n);
}

static bool args_within(const struct cap *child, const struct cap *parent)
{
	return !parent->has_args ||
	       (child->has_args && cap_seq_within(&child->args, &parent->args));
}

/*
 * The child grant must present a secret in the same form as the parent grant: the form "env" would
 * hand the secret to the agent.
 */
static bool as_within(const struct cap *child, const struct cap *parent)
{
	return same_bytes(child->as, parent->as);
}

static bool danger_within(const struct cap *child, const struct cap *parent)
{
	return !child->danger || parent->danger;
}

static bool m_within(const struct cap *child, const struct cap *parent)
{
	if (parent->any_method || child->any_method)
		return parent->any_method;
	return list_within(child->methods, child->methods_n, parent->methods, parent->methods_n);
}

static bool counts_within(const struct cap *child, const struct cap *parent)
{
	return number_within(child->n, parent->n) && number_within(child->max_in, parent->max_in) &&
	       number_within(child->max_out, parent->max_out);
}

static bool o_within(const struct cap *child, const struct cap *parent)
{
	return !child->dev_write || parent->dev_write;
}

/* Refs limit pushes only, so compare refs only if the child grant may push. */
static bool op_within(const struct cap *child, const struct cap *parent)
{
	if ((child->op_fetch && !parent->op_fetch) || (child->op_push && !parent->op_push))
		return false;
	return !child->op_push || cap_seq_within(&child->ref, &parent->ref);
}

static bool addr_covered(const struct cap_net_addr *a, const struct cap *parent)
{
	for (size_t i = 0; i < parent->priv_n; i++)
		if (cap_addr_within(a, &parent->priv[i]))
			return true;
	return false;
}

static bool priv_within(const struct cap *child, const struct cap *parent)
{
	for (size_t i = 0; i < child->priv_n; i++)
		if (!addr_covered(&child->priv[i], parent))
			return false;
	return true;
}

static bool q_within(const struct cap *child, const struct cap *parent)
{
	return child->no_query || !parent->no_query;
}

/*
 * Compares the worst case of two rates: @windows time windows of the child cover one window of the
 * parent, and the child may use up its count in each of its windows.
 */
static bool rate_within(const struct cap *child, const struct cap *parent)
{
	uint64_t windows, uses;

	if (parent->rate_n == 0)
		return true;
	if (child->rate_n == 0)
		return false;
	windows = parent->rate_s / child->rate_s + (parent->rate_s % child->rate_s != 0);
	return !__builtin_mul_overflow(child->rate_n, windows, &uses) && uses <= parent->rate_n;
}

static bool sha256_within(const struct cap *child, const struct cap *parent)
{
	return parent->sha256_n == 0 ||
	       (child->sha256_n &&
		list_within(child->sha256, child->sha256_n, parent->sha256, parent->sha256_n));
}

static bool tls_within(const struct cap *child, const struct cap *parent)
{
	return !child->tls_pass || parent->tls_pass;
}

static bool to_within(const struct cap *child, const struct cap *parent)
{
	return cap_url_within(&child->to, &parent->to);
}

#define ON(action) CAP_BIT(CAP_##action)
#define ANY_ACTION UINT32_MAX
#define PATHS                                                                                      \
	(ON(FS_READ) | ON(FS_WRITE) | ON(FS_PUT) | ON(PROC_EXEC) | ON(UNIX_CONNECT) |              \
	 ON(ENV_PASS) | ON(SECRET_USE) | ON(DEV_USE) | ON(TOOL_CALL) | ON(AGENT_SPAWN) |           \
	 ON(KERNEL_USE) | ON(STATE_USE))

/*
 * Components to compare (docs/capabilities.md, section 4). Every function whose @parents include
 * the parent's action must return true. An http.request under a net.connect is compared by the
 * components of a connection.
 */
/* clang-format off */
static const struct {
	uint32_t parents;
	bool (*within)(const struct cap *child, const struct cap *parent);
} parts[] = {
	{ PATHS,                             path_within },
	{ ON(NET_CONNECT) | ON(NET_BIND),    peer_within },
	{ ON(HTTP_REQUEST),                  url_within },
	{ ON(GIT_USE),                       repo_within },
	{ ANY_ACTION,                        approve_within },
	{ ANY_ACTION,                        counts_within },
	{ ANY_ACTION,                        rate_within },
	{ ON(PROC_EXEC),                     args_within },
	{ ON(PROC_EXEC),                     sha256_within },
	{ ON(SECRET_USE),                    as_within },
	{ ON(SECRET_USE),                    to_within },
	{ ON(UNIX_CONNECT),                  danger_within },
	{ ON(HTTP_REQUEST),                  m_within },
	{ ON(HTTP_REQUEST),                  q_within },
	{ ON(HTTP_REQUEST),                  tls_within },
	{ ON(NET_CONNECT) | ON(HTTP_REQUEST), priv_within },
	{ ON(DEV_USE),                       o_within },
	{ ON(GIT_USE),                       op_within },
};
/* clang-format on */

bool cap_action_within(enum cap_action child, enum cap_action parent)
{
	return child == parent || (child == CAP_FS_PUT && parent == CAP_FS_WRITE) ||
	       (child == CAP_HTTP_REQUEST && parent == CAP_NET_CONNECT);
}

bool cap_within(const struct cap *child, const struct cap *parent)
{
	if (child->kind != CAP_GRANT || parent->kind != CAP_GRANT ||
	    !cap_action_within(child->action, parent->action) ||
	    !same_bytes(child->realm, parent->realm))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if ((parts[i].parents & CAP_BIT(parent->action)) && !parts[i].within(child, parent))
			return false;
	return true;
}
