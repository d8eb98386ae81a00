#include "plan/plan_priv.h"

#include "base/banned.h"

/*
 * What this version cannot do on any machine. Explain says it, run refuses it, init
 * leaves it out, all from here: whoever makes one of these work deletes its line.
 */
static const char *const lacks[FEATURE_END] = {
	[FEATURE_TOOL] = "not in this version: no tools are called",
	[FEATURE_ASK] = "not in this version: nobody is asked but for net",
	[FEATURE_TALLY] = "not in this version: uses are not counted but for net",
	[FEATURE_COW] = "not in this version: no copy-on-write workspaces",
	[FEATURE_ENGINE] = "not in this version: only the host adapter runs commands",
};

const char *plan_lacks(enum plan_feature f)
{
	return lacks[f];
}

/* What an action needs of the version; FEATURE_END: nothing that might lack. */
static enum plan_feature feature_of(enum cap_action action)
{
	switch (action) {
	case CAP_NET_CONNECT:
	case CAP_HTTP_REQUEST:
		return FEATURE_NET;
	case CAP_NET_BIND:
		return FEATURE_LISTEN;
	case CAP_GIT_USE:
		return FEATURE_GIT;
	case CAP_SECRET_USE:
		return FEATURE_SECRET;
	case CAP_TOOL_CALL:
		return FEATURE_TOOL;
	case CAP_AGENT_SPAWN:
		return FEATURE_AGENT;
	case CAP_NONE:
	case CAP_FS_READ:
	case CAP_FS_WRITE:
	case CAP_FS_PUT:
	case CAP_PROC_EXEC:
	case CAP_UNIX_CONNECT:
	case CAP_ENV_PASS:
	case CAP_DEV_USE:
	case CAP_KERNEL_USE:
	case CAP_STATE_USE:
	case CAP_ACTION_COUNT:
		break;
	}
	return FEATURE_END;
}

/* SECURITY: what is to be asked or counted first is never simply granted, whatever it is. */
const char *plan_lacks_for(const struct cap *c)
{
	const enum plan_feature f = feature_of(c->action);

	if (f != FEATURE_END && lacks[f])
		return lacks[f];
	if (c->action == CAP_NET_CONNECT || c->action == CAP_HTTP_REQUEST)
		return NULL;
	if (c->approve_n && lacks[FEATURE_ASK])
		return lacks[FEATURE_ASK];
	return c->n || c->rate_n ? lacks[FEATURE_TALLY] : NULL;
}

const char *ground_lacks(const struct ground *g, enum plan_feature f)
{
	return g->opt->whole ? NULL : plan_lacks(f);
}

const char *ground_lacks_for(const struct ground *g, const struct cap *c)
{
	return g->opt->whole ? NULL : plan_lacks_for(c);
}

const char *cow_fix(const struct ground *g, const char *fix, const char *without)
{
	return ground_lacks(g, FEATURE_COW) ? without : fix;
}
