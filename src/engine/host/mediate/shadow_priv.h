/*
 * shadow_priv.h - a memory file that a caller writes instead of a file of kind GUARD_POINTER
 *
 * The caller opens a .git file, commondir or .gitattributes for writing and receives a memfd. When
 * the caller closes the memfd, the mediator checks the content and installs a file with this
 * content at the name that the caller had opened.
 */
#ifndef WRIT_MEDIATE_SHADOW_PRIV_H
#define WRIT_MEDIATE_SHADOW_PRIV_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct call;
struct mediator;
struct place;

enum { SHADOWS = 8 };

struct shadow {
	bool used;
	int watch;     /* inotify watch on @bytes, which reports that the caller closed the memfd */
	int bytes;     /* descriptor of the memfd that the caller writes */
	/* @dir: directory in which the content is installed; @root: root directory of the caller */
	int dir, root;
	char name[NAME_MAX + 1];
	mode_t mode;
	pid_t pid;
	uid_t uid;
	gid_t gid;
};

/* Creates a shadow for @p and makes its memfd call.fd. Returns ANSWER_FD or -errno. */
int shadow_open(struct call *c, const struct place *p, unsigned mode, unsigned flags);
/*
 * Handles shadows (memfds that callers write instead of guarded files) that their callers have
 * closed: checks the content of each, and installs it at the name that the caller had opened.
 */
void shadow_handle_closed(struct mediator *m);
void shadow_clear(struct mediator *m, struct shadow *s);

#endif
