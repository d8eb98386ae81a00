/*
 * remove.h - directories, removed with all that is in them
 *
 * Reads:  what the caller names
 * Writes: the same
 * Next:   session/, signer/, conform/
 *
 * SECURITY: what lies there may have any shape, and somebody may be changing it: no link
 * is followed. What cannot be removed stays.
 */
#ifndef WRIT_BASE_REMOVE_H
#define WRIT_BASE_REMOVE_H

void remove_tree(int dir, const char *name); /* a file as well */
void remove_below(int fd);		     /* the directory itself stays */

#endif
