/*
 * witness.h - messages between a log and its witness: C2SP tlog-witness
 *
 * Reads:  bodies of requests and responses
 * Writes: nothing; HTTP and the witness's stored state belong to the caller
 * Next:   witness/, which speaks HTTP and stores the state
 */
#ifndef WRIT_TLOG_WITNESS_H
#define WRIT_TLOG_WITNESS_H

#include "tlog/checkpoint.h"

enum { WITNESS_REQUEST_MAX = NOTE_MAX + TREE_PROOF_MAX * 45 + 64 };

/* Body of an add-checkpoint request. */
struct witness_request {
	uint64_t old_size;
	struct tree_proof proof; /* consistency proof from old_size to the size of the checkpoint */
	struct sv checkpoint;	 /* signed checkpoint, as a note */
};

must_check int tlog_witness_request_parse(struct sv bytes, struct witness_request *ret_req,
					  struct writ_err *err);
/*
 * Prints a witness request; refuses a request that tlog_witness_request_parse() would not accept.
 */
must_check int tlog_witness_request_print(const struct witness_request *req, struct buf *b,
					  struct writ_err *err);

/* State that a witness stores per log; all zeros for a log that the witness has never seen. */
struct witness_state {
	uint64_t size;
	struct digest root; /* root of the tree of that size; valid if size is not 0 */
};

/* Response of a witness, by its HTTP status. */
enum witness_answer {
	WITNESS_UNDECIDED = 0,
	WITNESS_COSIGN = 200, /* the witness cosigned; sent only after the new state is on disk */
	WITNESS_BAD_REQUEST = 400,
	WITNESS_NOT_SIGNED = 403,
	WITNESS_UNKNOWN_LOG = 404,
	/*
	 * The request starts from another size; the body of the response contains the size that the
	 * witness knows.
	 */
	WITNESS_CONFLICT = 409,
	WITNESS_INCONSISTENT = 422,
};

/*
 * Decides the response of a witness that trusts @logs and has stored @known for the log in the
 * request. For WITNESS_COSIGN, *@ret_next is the state to store and *@ret_text the text to sign
 * with cosign_sign(); otherwise @err explains the refusal.
 * SECURITY: the caller must compare with @known and store *@ret_next under one lock, and store
 * *@ret_next before sending the signature. Otherwise two concurrent requests, or a crash, could
 * make the witness cosign two histories of one log.
 */
must_check enum witness_answer tlog_witness_decide(const struct witness_request *req,
						   const struct note_key *logs, size_t logs_n,
						   const struct witness_state *known,
						   struct witness_state *ret_next,
						   struct sv *ret_text, struct writ_err *err);

/* Parse and print the body of a conflict response: a size and a newline. */
must_check int tlog_witness_size_parse(struct sv body, uint64_t *ret_size, struct writ_err *err);
void tlog_witness_size_print(uint64_t size, struct buf *b);

/*
 * Finds the latest signature line of @witness for the checkpoint @note in the @body of a response
 * and ignores the other lines. The caller can append the line to the note.
 */
must_check int tlog_witness_answer_read(struct sv body, struct sv note,
					const struct note_key *witness, struct sv *ret_line,
					uint64_t *ret_time, struct writ_err *err);

#endif
