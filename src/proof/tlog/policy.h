/*
 * policy.h - which logs and witnesses a verifier trusts: C2SP tlog-policy
 *
 * Reads:  the text of a policy
 * Writes: nothing
 * Next:   proof.h
 *
 * A policy lists logs, witnesses, groups of witnesses, and the quorum: the witness or group that
 * must have cosigned. A line can refer only to names defined above it, and each name is a member
 * of at most one group. Unrelated to the policy of a sandbox (src/policy/lang).
 */
#ifndef WRIT_TLOG_POLICY_H
#define WRIT_TLOG_POLICY_H

#include "tlog/note.h"

enum {
	TLOG_POLICY_MAX = 64 << 10,
	TLOG_LOGS_MAX = 32,
	TLOG_WITNESSES_MAX = 32,
	TLOG_GROUPS_MAX = 32,
};

struct tlog_log {
	struct note_key key; /* key of the log, type Ed25519; its name is the origin */
	struct sv url;	     /* URL of the log; may be empty */
};

struct tlog_witness {
	struct sv name;	     /* name of the witness, used inside this policy only */
	struct note_key key; /* key of the witness, type cosignature */
	struct sv url;	     /* URL of the witness; may be empty */
};

struct tlog_group {
	struct sv name;
	uint32_t k;		    /* number of members that must have cosigned */
	uint32_t witnesses, groups; /* members of the group: bit i is witness[i] or group[i] */
};

enum tlog_quorum {
	TLOG_QUORUM_UNSET = 0, /* the policy has no quorum line yet; the quorum is never met */
	TLOG_QUORUM_NONE,      /* no witness is required: the log's own signature is enough */
	TLOG_QUORUM_WITNESS,
	TLOG_QUORUM_GROUP,
};

/* A parsed tlog policy: views of the text that was parsed. */
struct tlog_policy {
	struct tlog_log log[TLOG_LOGS_MAX];
	struct tlog_witness witness[TLOG_WITNESSES_MAX];
	struct tlog_group group[TLOG_GROUPS_MAX];
	size_t logs_n, witnesses_n, groups_n;
	enum tlog_quorum quorum;
	uint32_t quorum_at; /* index of the witness or group that is the quorum */
};

/* Has a witness or group of @p the name @name? */
bool tlog_policy_has_name(const struct tlog_policy *p, struct sv name);
must_check int tlog_policy_parse(struct sv text, struct tlog_policy *ret_p, struct writ_err *err);

/* Checks whether the witnesses in @cosigned meet the quorum of @p. Bit i stands for witness[i]. */
bool tlog_policy_met(const struct tlog_policy *p, uint32_t cosigned);

#endif
