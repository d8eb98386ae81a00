/*
 * policy.h - whose word is enough: C2SP tlog-policy
 *
 * Reads:  the text of a policy
 * Writes: nothing
 * Next:   proof.h
 *
 * Logs, witnesses, groups of them, and which group must have cosigned. A line can
 * name only what stands above it, and each name is a member of one group at most.
 * Not to be confused with the policy of a sandbox (src/policy).
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
	struct note_key key; /* type Ed25519; its name is the origin */
	struct sv url;	     /* may be empty */
};

struct tlog_witness {
	struct sv name; /* in this policy only */
	struct note_key key; /* type cosignature */
	struct sv url;	     /* may be empty */
};

struct tlog_group {
	struct sv name;
	uint32_t k;		    /* so many members must have cosigned */
	uint32_t witnesses, groups; /* members: bit i is that of this index */
};

enum tlog_quorum {
	TLOG_QUORUM_UNSET = 0, /* met by nobody */
	TLOG_QUORUM_NONE,      /* the log's own signature is enough */
	TLOG_QUORUM_WITNESS,
	TLOG_QUORUM_GROUP,
};

/* Views of the text it was parsed from. */
struct tlog_policy {
	struct tlog_log log[TLOG_LOGS_MAX];
	struct tlog_witness witness[TLOG_WITNESSES_MAX];
	struct tlog_group group[TLOG_GROUPS_MAX];
	size_t logs_n, witnesses_n, groups_n;
	enum tlog_quorum quorum;
	uint32_t quorum_at; /* which witness or group */
};

must_check int tlog_policy_parse(struct sv text, struct tlog_policy *ret_p, struct writ_err *err);
void tlog_policy_print(const struct tlog_policy *p, struct buf *b);

/*
 * The policy "@k of these": without text, for whoever has keys. @k of 0 asks for no
 * witness. Keys of witnesses and logs must be of the right type and differ.
 */
must_check int tlog_policy_of(const struct note_key *log, const struct note_key *witnesses,
			      size_t witnesses_n, uint32_t k, struct tlog_policy *ret_p,
			      struct writ_err *err);

/* Is it enough if these witnesses have cosigned? Bit i is that of witness[i]. */
bool tlog_policy_met(const struct tlog_policy *p, uint32_t cosigned);

#endif
