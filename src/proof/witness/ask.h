/*
 * ask.h - ask witnesses to cosign a realm's log
 *
 * Theory of operation
 *
 * A log cannot prove on its own that it is the only, and the newest, version of itself: its owner
 * could cut entries off, rewrite them, or restore an older copy, and sign the result. A witness
 * prevents this. It is another party that stores, per log, the size and root it cosigned last, and
 * cosigns only a checkpoint that extends them. This module contains both sides:
 *   ask     the log's side: send the checkpoint with a consistency proof, collect cosignatures
 *   serve   the witness's side: an HTTP server
 *   store   the witness's memory: the last checkpoint of each log
 *   http    the small part of HTTP that both sides speak
 * tlog/witness.h defines the messages and decides; this module moves and stores bytes.
 *
 * Exchange: the log sends the checkpoint and the size it believes the witness knows. On a conflict
 * the witness answers with the size it really knows; the log proves the growth from there and asks
 * again. The result per witness is cosigned, shorter (the witness knows a longer log: entries are
 * missing here), different (the witness knows another history), or not (no usable answer).
 *
 * Invariants
 *   - The witness stores a checkpoint on disk before it sends the signature.
 *   - One process owns the store, and one thread serves, so comparing and storing are atomic.
 *   - The log syncs its entries before a witness sees their checkpoint.
 *   - A silent witness costs its share of the time limit, not that of the others.
 *
 * Common mistakes
 *   - Treating WITNESSED_NOT as an attack. It only means that no cosignature was obtained.
 *   - Judging "shorter" from an old copy. Another process may have extended the log meanwhile, so
 *     witness_ask() reads the log again before it reports that.
 *
 * Reads:  the log, its pins, responses of witnesses
 * Writes: STATE/log: a checkpoint that is synced, and `cosigned`
 * Next:   session/ (at the end of each session), cli/ (audit witness, audit verify)
 */
#ifndef WRIT_WITNESS_ASK_H
#define WRIT_WITNESS_ASK_H

#include "audit/logkey.h"
#include "audit/pin.h"

enum witnessed {
	WITNESSED_NOT = 0, /* the witness gave no usable answer */
	WITNESSED_COSIGNED,
	WITNESSED_SHORTER,   /* the witness knows more entries than the log has */
	WITNESSED_DIFFERENT, /* the witness knows another history of the log */
};

struct witnessed_one {
	enum witnessed what;
	/* log size that the witness cosigned or reported; 0 if the witness gave no size */
	uint64_t size;
	uint64_t time;	     /* time of the cosignature, by the clock of the witness */
	struct writ_err err; /* reason for WITNESSED_NOT */
	/* signature line of the witness, NUL-terminated; empty if there is none */
	char line[1024];
};

struct witnessed_all {
	uint64_t size; /* size of the checkpoint that witnesses were asked about */
	size_t n;
	bool enough;				      /* the quorum of the policy has cosigned */
	/* results, in the order of witnesses in the policy */
	struct witnessed_one one[TLOG_WITNESSES_MAX];
};

/* The log that witnesses are asked about. */
struct witness_log {
	struct log_place place;
	/*
	 * Updates the local copy of a log that writ-signer keeps; @place then refers to the copy.
	 * NULL if the log is the user's own.
	 */
	int (*fetch)(void *ctx, struct writ_err *err);
	/*
	 * Stores the cosigned checkpoint with writ-signer. NULL: store the checkpoint in the log
	 * directory.
	 */
	int (*store)(void *ctx, struct sv note, struct writ_err *err);
	void *ctx;
};

/* Checks whether any witness of @p has a URL. */
bool witness_configured(const struct tlog_policy *p);

/*
 * Asks all witnesses of @pins about the log's checkpoint, within @ms milliseconds in total. With
 * @sign the current log is signed first, and the cosignatures are stored next to the log; without
 * @sign nothing is written. Fails if the log has no checkpoint to ask about.
 */
must_check int witness_ask(const struct witness_log *l, const struct tlog_policy *pins, bool sign,
			   unsigned ms, struct witnessed_all *ret, struct writ_err *err);

#endif
