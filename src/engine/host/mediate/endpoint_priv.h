/*
 * endpoint_priv.h - sockets and named pipes that were created in this session
 *
 * A session may connect to its own sockets without a rule. A socket in a shared tree that a program
 * outside created is not the session's own.
 */
#ifndef WRIT_MEDIATE_ENDPOINT_PRIV_H
#define WRIT_MEDIATE_ENDPOINT_PRIV_H

#include <stdbool.h>
#include <sys/stat.h>

struct mediator;

enum { ENDPOINTS_MAX = 128 };

/*
 * A socket or named pipe of the session. @pin holds the file open, so that the file system does not
 * reuse @ino.
 */
struct endpoint {
	int pin;
	dev_t dev;
	ino_t ino;
};

/* Records the file @name in @dir; returns 0 or -errno. */
int endpoint_add(struct mediator *m, int dir, const char *name);
bool endpoint_is_own(const struct mediator *m, const struct stat *st);
void endpoint_clear(struct mediator *m);

#endif
