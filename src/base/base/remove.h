/*
 * remove.h - remove directory trees
 *
 * Reads:  directories named by the caller
 * Writes: the same directories
 * Next:   session/, signer/, conform/
 *
 * SECURITY: an agent may have made the tree, in any shape, and may still be changing it.
 * Symbolic links are never followed. Entries that cannot be removed are left in place
 * without an error.
 */
#ifndef WRIT_BASE_REMOVE_H
#define WRIT_BASE_REMOVE_H

void remove_tree(int dir, const char *name); /* removes @name, a directory tree or a plain file */
/* removes everything below the directory @fd, but keeps the directory */
void remove_below(int fd);

#endif
