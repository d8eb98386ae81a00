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

/*
 * Parses the message "NAME\0CWD\0WORD\0WORD\0". False: the message is malformed, or memory is
 * short.
 */
must_check bool spawn_read(struct arena *a, struct sv text, struct spawn_request *ret);

/*
 * SECURITY: the supervisor reads and writes the received descriptors for the agent. Allowed are
 * files, pipes, sockets and devices that are the same for every process; not descriptors that wait,
 * count or control when they are used. Returns NULL, or the kind of the refused descriptor for
 * people.
 */
const char *spawn_refuses(int fd);

#endif
