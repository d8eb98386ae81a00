/*
 * verify.h - is a realm's log what was signed, and are the logs of its sessions?
 *
 * Reads:  the log's directory and those of the sessions
 * Writes: nothing
 * Next:   cli/ (audit verify), attest/, witness/
 *
 * Nothing is believed: each entry is decoded and hashed anew, each tile is compared with
 * what these hashes give, each checkpoint with the root at its size and with keys that the
 * caller believes, each file of a session with the root that was sealed. It goes on after a
 * failure, so that all of them are named.
 */
#ifndef WRIT_AUDIT_VERIFY_H
#define WRIT_AUDIT_VERIFY_H

#include "audit/realm.h"
#include "base/arena.h"
#include "tlog/policy.h"

enum verify_state {
	VERIFY_UNCHECKED = 0,
	VERIFY_SEALED,	 /* it has ended, and its file is what was sealed */
	VERIFY_UNSIGNED, /* as sealed, but the entry that ends it was not signed yet */
	VERIFY_OPEN,	 /* it runs */
	VERIFY_CUT,	 /* nobody said how it ended: what its file has is all there is */
	VERIFY_GONE,	 /* its file was removed; the log still has its size and root */
	VERIFY_UNKNOWN,	 /* a file of a session that the log does not know */
	VERIFY_BROKEN,	 /* its file is not what was sealed */
};

const char *verify_state_name(enum verify_state s);

#define VERIFY_NONE UINT64_MAX

struct verify_session {
	struct sv id;
	enum verify_state state;
	uint64_t start, end; /* indices of its entries, or VERIFY_NONE */
	bool cut;	     /* what ended it is session.cut */
	uint64_t entries;    /* sealed; if it has no end, those in its file */
	struct digest root;
	uint32_t next; /* of its bucket */
};

/* Something that is wrong (or only worth saying), and where. */
struct verify_finding {
	const char *place, *what;
};

struct verify_options {
	const char *log, *sessions; /* directories */
	struct sv origin;
	const struct tlog_policy *pins; /* the keys that count are those of @origin */
	struct sv only;			/* a session: the files of others are not read */
};

enum { VERIFY_BUCKETS = 4096, VERIFY_FINDINGS = 100 };

struct verify_report {
	struct arena *a;
	uint64_t size;	  /* entries of the realm's log */
	uint64_t covered; /* of them by the last signature */
	uint64_t synced;  /* size of the last checkpoint that reached the disk */
	uint64_t keys;	  /* that have signed it, one after the other */
	bool pinned;	  /* the key that signs is believed */
	struct digest root;
	VEC(struct verify_session) sessions;
	uint32_t bucket[VERIFY_BUCKETS]; /* index + 1 of the first */
	VEC(struct verify_finding) failures, remarks;
	size_t failures_n; /* also those that were too many to keep */
};

/* Fails only if it could not look; what it found is in *@ret, whose texts are in @a. */
must_check int realm_verify(const struct verify_options *opt, struct arena *a,
			    struct verify_report *ret, struct writ_err *err);

struct verify_session *verify_find(struct verify_report *v, struct sv id);

printf_like(3, 4) void verify_failed(struct verify_report *v, const char *place, const char *fmt,
				     ...);
printf_like(3, 4) void verify_remark(struct verify_report *v, const char *place, const char *fmt,
				     ...);

#endif
