/*
 * open_priv.h - opening for reading where no open may be let through, and checks of links and moves
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
 * Flags that only the mediator may add to an open. The caller cannot see these flags on the
 * descriptor.
 */
enum { NOT_HANDED = O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY };

/*
 * Opens the object @obj, whose path is @path, for reading. Returns ANSWER_FD, ANSWER_LATER or
 * -errno.
 */
int mediate_open_for_read(struct call *c, int obj, const struct stat *st, struct sv path,
			  int flags);
/* Opens the object @obj with the caller's @flags. */
int mediate_open_object(struct call *c, int obj, int flags);
/*
 * Makes @fd the descriptor for the caller, or returns @fd if it is an -errno. Returns ANSWER_FD or
 * -errno.
 */
int mediate_hand_out(struct call *c, int fd, int flags);
/*
 * Opens a named pipe for reading or writing. If the other end of the pipe is not open, a job waits
 * for the other end.
 */
int mediate_pipe_open(struct call *c, int obj, int flags);
/*
 * Opens @text, a path in /proc, for reading. Returns ANSWER_CONTINUE for the caller's own program.
 */
int mediate_proc_open(struct call *c, const char *text, int flags);
/* Copies a field, counted from 1, of the file /proc/TID/stat behind @fd. */
bool mediate_stat_field(int fd, unsigned field, char to[32]);
/* Returns -errno if a rule hides the program at @path from reading, else 0. */
int mediate_check_exec(struct call *c, const char *path);

/* True if @text, a path relative to @dir, leads to files of writ or to a directory above them. */
bool mediate_reaches_writ(const struct call *c, struct sv dir, const char *text);
/*
 * Checks a symbolic link with the target @text before the mediator creates the link at @p. Returns
 * 0 or -errno.
 */
int mediate_check_link(struct call *c, const struct place *p, const char *text);
bool mediate_is_mount_point(const struct place *p);
/* Checks everything in the directory @name in @dir before the directory moves from @from to @to. */
int mediate_check_moved_tree(struct call *c, int dir, const char *name, struct sv from,
			     struct sv to);

#endif
