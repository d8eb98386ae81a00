/*
 * lines_priv.h - lines, and hashes on lines, shared by the text formats of this module
 */
#ifndef WRIT_TLOG_LINES_PRIV_H
#define WRIT_TLOG_LINES_PRIV_H

#include "base/buf.h"
#include "tlog/note.h"
#include "tlog/tree.h"

/* Takes a line of the form "WORD NUMBER" off the front of *@in. */
must_check bool tlog_line_take_number(struct sv *in, struct sv word, uint64_t max, uint64_t *ret_v);

must_check bool tlog_line_hash(struct sv line, struct digest *ret_hash);
/* Appends the line of a hash, with a newline. */
void tlog_line_put_hash(const struct digest *hash, struct buf *b);

/*
 * Takes the hashes of a proof, one per line, off the front of *@in, up to and including an empty
 * line.
 */
must_check int tlog_lines_take_proof(struct sv *in, struct tree_proof *ret_proof,
				     struct writ_err *err);
void tlog_lines_put_proof(const struct tree_proof *proof, struct buf *b);

#endif
