#include "plan/plan.h"

#include "base/banned.h"

/*
 * Features that this version of writ lacks on every machine. `explain` shows these texts, `run`
 * refuses with them. A change that implements a feature deletes the row of the feature.
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

/* Returns the feature that an action needs; FEATURE_END: every version of writ has the feature. */
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

/*
 * SECURITY: a rule that asks a person or counts uses is refused if this version of writ cannot ask
 * or count for its action. Asking and counting work for net rules.
 */
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
