/*
 * endpoint_priv.h - sockets and named pipes that this session created
 *
 * A session may connect to its own sockets without a rule, and may open its own named pipes like
 * regular files. A socket or pipe that a program outside the session created is not the session's
 * own, even if it is in a tree that the session may write.
 */
#ifndef WRIT_MEDIATE_ENDPOINT_PRIV_H
#define WRIT_MEDIATE_ENDPOINT_PRIV_H

#include <stdbool.h>
#include <sys/stat.h>

struct mediator;

enum { ENDPOINTS_MAX = 128 };

/* A socket or named pipe of the session. The file system cannot reuse @ino while @pin is open. */
struct endpoint {
	int pin;
	dev_t dev;
	ino_t ino;
};

/* Records the socket or named pipe @name in @dir as the session's own. Returns 0 or -errno. */
int endpoint_add(struct mediator *m, int dir, const char *name);
/* True if @st describes a recorded socket or pipe. */
bool endpoint_is_own(const struct mediator *m, const struct stat *st);
void endpoint_clear(struct mediator *m);

#endif
