/*
 * witness.h - what a log and its witness say to each other: C2SP tlog-witness
 *
 * Reads:  bodies of requests and answers
 * Writes: nothing; HTTP and the witness's memory are somebody else's
 * Next:   whoever speaks HTTP
 */
#ifndef WRIT_TLOG_WITNESS_H
#define WRIT_TLOG_WITNESS_H

#include "tlog/checkpoint.h"
#include "tlog/tree.h"

enum { WITNESS_REQUEST_MAX = NOTE_MAX + TREE_PROOF_MAX * 45 + 64 };

/* The body of add-checkpoint. */
struct witness_request {
	uint64_t old_size;
	struct tree_proof proof; /* from old_size to that of the checkpoint */
	struct sv checkpoint;	 /* the signed note */
};

must_check int witness_request_parse(struct sv bytes, struct witness_request *ret_req,
				     struct writ_err *err);
/* Refuses what witness_request_parse() would not read. */
must_check int witness_request_print(const struct witness_request *req, struct buf *b,
				     struct writ_err *err);

/* What a witness remembers of a log; zero is a log it never saw. */
struct witness_state {
	uint64_t size;
	struct digest root; /* counts if size is not 0 */
};

/* The answer, by its HTTP status. */
enum witness_answer {
	WITNESS_UNDECIDED = 0,
	WITNESS_COSIGN = 200,	     /* once the new state is on disk */
	WITNESS_BAD_REQUEST = 400,
	WITNESS_NOT_SIGNED = 403,
	WITNESS_UNKNOWN_LOG = 404,
	WITNESS_CONFLICT = 409,	     /* the body says which size it knows */
	WITNESS_INCONSISTENT = 422,
};

/*
 * What a witness answers that trusts @logs and saw @known last of the one that the
 * request is about. If the answer is WITNESS_COSIGN, *@ret_next is what it must
 * remember and *@ret_text what it signs with cosign_sign(); else @err says why not.
 * SECURITY: comparing with @known and keeping *@ret_next must be one step, and done
 * before the signature leaves the house.
 */
must_check enum witness_answer witness_decide(const struct witness_request *req,
					      const struct note_key *logs, size_t logs_n,
					      const struct witness_state *known,
					      struct witness_state *ret_next, struct sv *ret_text,
					      struct writ_err *err);

/* The body of a conflict: a size and a newline. */
must_check int witness_size_parse(struct sv body, uint64_t *ret_size, struct writ_err *err);
void witness_size_print(uint64_t size, struct buf *b);

/*
 * Finds in an answer (lines of signature) the latest that @witness made under the
 * checkpoint @note; the others are ignored. The line can be appended to the note.
 */
must_check int witness_answer_read(struct sv body, struct sv note, const struct note_key *witness,
				   struct sv *ret_line, uint64_t *ret_time, struct writ_err *err);

#endif
