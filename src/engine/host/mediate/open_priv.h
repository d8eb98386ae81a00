/*
 * open_priv.h - opens that the mediator performs, and checks of new links and of moved directories
 */
#ifndef WRIT_MEDIATE_OPEN_PRIV_H
#define WRIT_MEDIATE_OPEN_PRIV_H

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/sv.h"

struct call;
struct place;

/*
 * Flags of the caller that the mediator drops when it opens an object that it has already found or
 * created. The mediator adds such flags where it needs them.
 */
enum { NOT_HANDED = O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY };

/*
 * Decides about reading the object @obj with the path @path and opens it. Returns ANSWER_FD,
 * ANSWER_LATER or -errno.
 */
int mediate_open_for_read(struct call *c, int obj, const struct stat *st, struct sv path,
			  int flags);
/*
 * Opens the object @obj with the caller's @flags, without a decision. Returns ANSWER_FD or -errno.
 */
int mediate_open_object(struct call *c, int obj, int flags);
/*
 * Makes @fd the descriptor that the caller receives and returns ANSWER_FD; returns an -errno @fd.
 */
int mediate_hand_out(struct call *c, int fd, int flags);
/*
 * Opens the named pipe @obj. If open() would wait for the other end of the pipe, a job waits.
 * Returns ANSWER_FD, ANSWER_LATER or -errno.
 */
int mediate_pipe_open(struct call *c, int obj, int flags);
/*
 * Opens @text, a path in /proc, for reading. Returns ANSWER_FD, -errno, or ANSWER_CONTINUE for
 * /proc/self/exe, which the caller of this function must open.
 */
int mediate_proc_open(struct call *c, const char *text, int flags);
/* Copies a field, counted from 1, of the file /proc/TID/stat that is open as @fd. */
bool mediate_stat_field(int fd, unsigned field, char to[32]);
/*
 * Decides about the program that call.text[0] names, relative to call.dir, or if it is empty, the
 * descriptor call.dir; and about its interpreters. Overwrites call.text[0]. Returns 0 or -errno; if
 * a rule hides the program, records a denial and returns -EACCES.
 */
int mediate_check_exec(struct call *c);

/*
 * True if @text, an absolute path or a path relative to @dir, leads to a closed directory
 * (mediate_options.closed_dirs), into one, or to a directory above one. Follows links only where
 * the session sees the same files as the host, and limits the number of steps.
 */
bool mediate_reaches_writ(struct call *c, struct sv dir, const char *text);
/* Checks a symbolic link at @p with the target @text before its creation. Returns 0 or -errno. */
int mediate_check_link(struct call *c, const struct place *p, const char *text);
bool mediate_is_mount_point(const struct place *p);
/* Checks everything in the directory @from before it moves to @to. Returns 0 or -errno. */
int mediate_check_moved_tree(struct call *c, const struct place *from, const struct place *to);

#endif
