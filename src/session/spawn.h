/*
 * spawn.h - what comes from inside when an agent is asked for
 *
 * Reads:  a message of whoever asks, and three descriptors
 * Writes: the caller's arena
 * Next:   spawn.c starts the agent
 */
#ifndef WRIT_SESSION_SPAWN_H
#define WRIT_SESSION_SPAWN_H

#include "base/arena.h"

enum { SPAWN_TEXT_MAX = 64 << 10, SPAWN_WORDS_MAX = 4096, SPAWN_NAME_MAX = 64 };

struct spawn_request {
	struct sv name, cwd; /* views of the message */
	char **argv;	     /* at least one; ends with NULL */
};

/* "NAME\0CWD\0WORD\0WORD\0". False: it is none, or there is no memory. */
must_check bool spawn_read(struct arena *a, struct sv text, struct spawn_request *ret);

/*
 * SECURITY: what it reads and writes is read and written by its supervisor. Files, pipes,
 * sockets and the devices that are the same for everybody; nothing that waits, counts or
 * controls when it is used. NULL, or what it is instead, for people.
 */
const char *spawn_refuses(int fd);

#endif
