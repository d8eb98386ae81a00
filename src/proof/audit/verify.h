/*
 * verify.h - check a realm's log and the logs of its sessions against signatures
 *
 * Reads:  the log's directory and those of the sessions
 * Writes: nothing
 * Next:   cli/ (audit verify), attest/, witness/
 *
 * Verification trusts nothing but the keys of the caller. It decodes and hashes each entry anew,
 * compares each tile with these hashes, each checkpoint with the root at its size and with the
 * trusted keys, and each session file with the root in the realm's log. It continues after a
 * failure, so that the report names all of them.
 */
#ifndef WRIT_AUDIT_VERIFY_H
#define WRIT_AUDIT_VERIFY_H

#include "audit/realm.h"
#include "tlog/policy.h"

enum verify_state {
	VERIFY_UNCHECKED = 0,
	VERIFY_SEALED,	 /* the session ended, and its file is unchanged */
	/* like VERIFY_SEALED, but no signature covers the session's end entry yet */
	VERIFY_UNSIGNED,
	VERIFY_OPEN,	 /* the session is running */
	/* The session was interrupted: how it ended is unknown, and its file may miss entries. */
	VERIFY_CUT,
	/* the session's file was removed; the realm's log still has its size and root */
	VERIFY_GONE,
	VERIFY_UNKNOWN, /* the file belongs to a session that the realm's log does not contain */
	/* the session's file is damaged, or differs from the root in the realm's log */
	VERIFY_BROKEN,
};

const char *verify_state_name(enum verify_state s);

#define VERIFY_NONE UINT64_MAX

struct verify_session {
	struct sv id;
	enum verify_state state;
	/* indices of the session's entries in the realm's log, or VERIFY_NONE */
	uint64_t start, end;
	bool cut;	     /* the session was interrupted: its last entry is session.cut */
	/*
	 * number of entries according to the realm's log; without an end entry, the number in the
	 * session's file
	 */
	uint64_t entries;
	struct digest root;
	uint32_t next; /* index of the next session in its hash bucket */
};

/* A failure or a remark, and the file that the finding concerns. */
struct verify_finding {
	const char *place, *what;
};

struct verify_options {
	const char *log, *sessions; /* paths of the log and session directories */
	struct sv origin;
	const struct tlog_policy *pins; /* trusted keys; only keys named @origin count */
	struct sv only;			/* check only the file of this session; empty: check all */
};

enum { VERIFY_BUCKETS = 4096, VERIFY_FINDINGS = 100 };

struct verify_report {
	struct arena *a;
	uint64_t size;	  /* entries in the realm's log */
	uint64_t covered; /* entries covered by the newest signature */
	uint64_t synced;  /* size of the last checkpoint whose entries were synced */
	uint64_t keys;	  /* number of log keys that signed the log, in succession */
	bool pinned;	  /* at least one of the keys that signed the log is pinned */
	struct digest root;
	VEC(struct verify_session) sessions;
	uint32_t bucket[VERIFY_BUCKETS]; /* index + 1 of the first session in each hash bucket */
	VEC(struct verify_finding) failures, remarks;
	size_t failures_n; /* number of failures, including those beyond VERIFY_FINDINGS */
};

/*
 * Verifies a realm's log. An error means that the log could not be read at all; all findings are in
 * *@ret, whose texts are in @a.
 */
must_check int realm_verify(const struct verify_options *opt, struct arena *a,
			    struct verify_report *ret, struct writ_err *err);

struct verify_session *verify_find(struct verify_report *v, struct sv id);

printf_like(3, 4) void verify_failed(struct verify_report *v, const char *place, const char *fmt,
				     ...);
printf_like(3, 4) void verify_remark(struct verify_report *v, const char *place, const char *fmt,
				     ...);

#endif
