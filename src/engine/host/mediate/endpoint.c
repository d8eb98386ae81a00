#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/banned.h"

/*
 * Remembers the sockets that the mediator bound and the named pipes that it created for this
 * session. Connecting to such a socket needs no rule, and such a pipe may be opened like a regular
 * file. Connecting to a socket of a program outside needs a rule, and the mediator does not open
 * pipes of programs outside for writing. SECURITY: the mediator keeps each file open. If the
 * session removed a file that is not open, the file system could give the inode number to a socket
 * of a program outside, which would then pass for the session's own.
 */

static void drop(struct mediator *m, size_t i)
{
	fd_scope_close(&m->endpoints[i].pin);
	memmove(m->endpoints + i, m->endpoints + i + 1,
		(m->endpoints_n - i - 1) * sizeof(m->endpoints[0]));
	m->endpoints_n--;
}

/*
 * Drops the entries of files that were removed, since no process can reach such a file by name any
 * more. If all files still exist, drops the oldest entry: connecting to that socket then needs a
 * rule, which is the safe direction.
 */
static void make_room(struct mediator *m)
{
	struct stat st;

	for (size_t i = m->endpoints_n; i-- > 0;)
		if (fstat(m->endpoints[i].pin, &st) < 0 || st.st_nlink == 0)
			drop(m, i);
	if (m->endpoints_n == ENDPOINTS_MAX)
		drop(m, 0);
}

int endpoint_add(struct mediator *m, int dir, const char *name)
{
	scoped_fd pin = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (pin < 0)
		return -errno;
	if (fstat(pin, &st) < 0 || (!S_ISSOCK(st.st_mode) && !S_ISFIFO(st.st_mode)))
		return -EACCES;
	if (m->endpoints_n == ENDPOINTS_MAX)
		make_room(m);
	m->endpoints[m->endpoints_n++] = (struct endpoint){ fd_take(&pin), st.st_dev, st.st_ino };
	return 0;
}

bool endpoint_is_own(const struct mediator *m, const struct stat *st)
{
	for (size_t i = 0; i < m->endpoints_n; i++)
		if (m->endpoints[i].dev == st->st_dev && m->endpoints[i].ino == st->st_ino)
			return true;
	return false;
}

void endpoint_clear(struct mediator *m)
{
	while (m->endpoints_n)
		drop(m, m->endpoints_n - 1);
}
