/*
 * ask.h - what witnesses say of a realm's log
 *
 * Reads:  the log, its pins, answers of witnesses
 * Writes: STATE/log: a checkpoint that is synced, and `cosigned`
 * Next:   session/ (at the end of each session), cli/ (audit witness, audit verify)
 *
 * A witness keeps the size and root that it cosigned last. If it knows more than the log
 * has, or another root, then somebody has cut off or rewritten the log, or put an older
 * copy in its place: that cannot be seen in the copy itself.
 */
#ifndef WRIT_WITNESS_ASK_H
#define WRIT_WITNESS_ASK_H

#include "audit/logkey.h"
#include "audit/pin.h"

enum witnessed {
	WITNESSED_NOT = 0, /* it could not be asked, or did not want to */
	WITNESSED_COSIGNED,
	WITNESSED_SHORTER,   /* it has seen more than the log has */
	WITNESSED_DIFFERENT, /* it has seen another log */
};

struct witnessed_one {
	enum witnessed what;
	uint64_t size;	     /* that it said it knows; if it did */
	uint64_t time;	     /* of its cosignature, by its own clock */
	struct writ_err err; /* why not */
	char line[1024];     /* of signature, NUL at its end; empty: none */
};

struct witnessed_all {
	uint64_t size; /* of the checkpoint that was asked about */
	size_t n;
	bool enough;				      /* the quorum of the policy has cosigned */
	struct witnessed_one one[TLOG_WITNESSES_MAX]; /* as in the policy */
};

/* The log that is asked about. */
struct witness_log {
	struct log_place place;
	/* If somebody else keeps it: @place is of a copy, which this brings up to date. Or NULL. */
	int (*fetch)(void *ctx, struct writ_err *err);
	int (*keep)(void *ctx, struct sv note, struct writ_err *err); /* what they said */
	void *ctx;
};

/* Is there anybody to ask? */
bool witness_configured(const struct tlog_policy *p);

/*
 * Asks all witnesses of @pins about the log's checkpoint, in @ms milliseconds together.
 * With @sign the log as it is now is signed before, and what they say is kept beside it;
 * without, nothing is written. Fails if there is nothing to ask about.
 */
must_check int witness_ask(const struct witness_log *l, const struct tlog_policy *pins, bool sign,
			   unsigned ms, struct witnessed_all *ret, struct writ_err *err);

#endif
