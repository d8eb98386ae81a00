/*
 * place_priv.h - a path of the caller, resolved to an open directory and one name in it
 *
 * The mediator decides about a place and operates on the same place: it holds the directory open
 * with O_PATH, so renaming a parent cannot redirect the operation. If the name is a symbolic link,
 * the place is the link itself.
 */
#ifndef WRIT_MEDIATE_PLACE_PRIV_H
#define WRIT_MEDIATE_PLACE_PRIV_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/sv.h"

struct call;
struct mediator;

struct place {
	int dir;		 /* O_PATH descriptor of the directory, owned; -1: none */
	char name[NAME_MAX + 2]; /* name in @dir; empty: the directory itself */
	/* the caller's path ended in "/", "." or "..": only a directory is accepted */
	bool slash;
	bool dotdot;	     /* the caller's path ended in ".." */
	char path[PATH_MAX]; /* physical path of the name in @dir */
	size_t n;	     /* length of @path */
};
#define PLACE_NONE                                                                                 \
	{                                                                                          \
		.dir = -1                                                                          \
	}
#define scoped_place __attribute__((cleanup(place_clear))) struct place

static inline struct sv place_sv(const struct place *p)
{
	return (struct sv){ p->path, p->n };
}

void place_clear(struct place *p);
/* Resolves @path, relative to the caller's descriptor @dirfd or AT_FDCWD. Returns 0 or -errno. */
int place_find(struct call *c, int dirfd, const char *path, struct place *ret);
/*
 * Resolves the path in call.text[@buf]. "/dev/fd/N/..." starts at the caller's descriptor N, and
 * "/dev/shm/NAME" is rewritten if mediate_options.shm replaces /dev/shm. Returns 0, -errno, or
 * ANSWER_CONTINUE for paths in /proc, which the mediator must not resolve.
 */
int place_from_text(struct call *c, int dirfd, unsigned buf, struct place *ret);
/* Copies the path at call.arg[@i] to call.text[@buf] and resolves it as place_from_text(). */
int place_from_arg(struct call *c, unsigned i, unsigned buf, struct place *ret);
/* Fills @ret with the place @name in @dir, which stays the caller's. Returns 0 or -errno. */
int place_child(struct call *c, int dir, const char *name, struct place *ret);
bool place_exists(const struct place *p);
const char *place_syscall_name(
	struct place *p); /* returns @p->name, with a trailing slash if the caller's path had one */
/* Returns the path of the directory that contains @p. */
struct sv place_parent(const struct place *p);
/*
 * Follows the symbolic link at @p and makes @p the place that the link points to. *@links counts
 * the links of one lookup. Returns 0 or -errno; -EINVAL if @p is no link.
 */
int place_follow(struct call *c, struct place *p, int *links);
/*
 * Opens the object at @p with O_PATH. Follows links if @follow, or if the path ended in a slash,
 * and makes @p the place of the object. Returns a descriptor, -errno, or ANSWER_CONTINUE if a link
 * led to a place that the mediator leaves to the kernel.
 */
int place_open(struct call *c, struct place *p, bool follow, struct stat *ret_st);

/*
 * True if a live grant is in force or was revoked. From then on the mediator does not trust the
 * path that a directory's descriptor reports, but looks the path up again: a directory of a
 * detached mount still reports a path.
 */
bool mediate_mounts_changed(const struct mediator *m);
bool mediate_same_file(int a, int b); /* true if both descriptors have the same device and inode */
/*
 * Stores the path of @fd. Returns false with errno set if the object has none, or one that says
 * nothing because the object is outside its mount.
 */
bool mediate_path_of_fd(struct mediator *m, int fd, char to[PATH_MAX], size_t *ret_n);
/*
 * Calls openat2() with O_CLOEXEC and the RESOLVE_* flags @resolve. Returns a descriptor or -errno.
 */
int mediate_openat2(int dir, const char *path, int flags, uint64_t resolve);
/* Opens the file behind the O_PATH descriptor @fd with @flags. */
int mediate_reopen(struct mediator *m, int fd, int flags);
/* Returns the descriptor number that "/dev/stdout" or "/proc/self/fd/7" names, or -1. */
int mediate_parse_own_fd(const char *path);

#endif
