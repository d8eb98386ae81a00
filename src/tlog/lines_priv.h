/*
 * lines_priv.h - what the text formats of this room share: lines, and hashes on them
 */
#ifndef WRIT_TLOG_LINES_PRIV_H
#define WRIT_TLOG_LINES_PRIV_H

#include "base/buf.h"
#include "tlog/tree.h"

/* Takes a line off the front of *@in, without its newline; false if it has none. */
must_check bool line_take(struct sv *in, struct sv *ret_line);

/* "WORD NUMBER": takes it off the front of *@in. */
must_check bool line_take_number(struct sv *in, struct sv word, uint64_t max, uint64_t *ret_v);

must_check bool line_hash(struct sv line, struct digest *ret_hash);
void line_put_hash(const struct digest *hash, struct buf *b); /* with a newline */

/* Hashes up to an empty line, which is taken too. */
must_check int lines_take_proof(struct sv *in, struct tree_proof *ret_proof, struct writ_err *err);
void lines_put_proof(const struct tree_proof *proof, struct buf *b);

#endif
