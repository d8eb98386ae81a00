/*
 * spawn.h - the message from the jail that asks for an agent
 *
 * Reads:  a message of `writ spawn`, and three descriptors
 * Writes: the caller's arena
 * Next:   spawn.c starts the agent
 */
#ifndef WRIT_SESSION_SPAWN_H
#define WRIT_SESSION_SPAWN_H

#include "base/arena.h"

enum { SPAWN_TEXT_MAX = 64 << 10, SPAWN_WORDS_MAX = 4096, SPAWN_NAME_MAX = 64 };

struct spawn_request {
	struct sv name, cwd; /* views of the received message */
	char **argv;	     /* arguments, at least one; ended by NULL */
};

/* Parses the message "NAME\0CWD\0WORD\0WORD\0". False: it is malformed, or memory is short. */
must_check bool spawn_read(struct arena *a, struct sv text, struct spawn_request *ret);

/*
 * Returns NULL if an agent may get @fd as a standard descriptor; otherwise the kind of the
 * descriptor, as text for people. SECURITY: the agent's supervisor reads and writes these
 * descriptors. Files, pipes, sockets and devices such as /dev/null are allowed. Other descriptors
 * are refused, because reading or writing them may control something (a terminal, an eventfd).
 */
const char *spawn_refuses(int fd);

#endif
