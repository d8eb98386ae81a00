#include "mediate/mediate_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

/*
 * Sockets that were bound in this session, where others may bind as well, and named
 * pipes that were made in it: what somebody outside listens at is not ours. Each is
 * held open, so that its number in the file system is nobody else's: one that was
 * removed, and whose number somebody outside got, is not taken for ours.
 */

static void drop(struct mediator *m, size_t i)
{
	scope_close(&m->bound[i].pin);
	memmove(m->bound + i, m->bound + i + 1, (m->bound_n - i - 1) * sizeof(m->bound[0]));
	m->bound_n--;
}

/* Those without a name cannot be reached any more; then the oldest goes. */
static void make_room(struct mediator *m)
{
	struct stat st;

	for (size_t i = m->bound_n; i-- > 0;)
		if (fstat(m->bound[i].pin, &st) < 0 || st.st_nlink == 0)
			drop(m, i);
	if (m->bound_n == BOUND)
		drop(m, 0);
}

int bound_add(struct mediator *m, int dir, const char *name)
{
	scoped_fd pin = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (pin < 0)
		return -errno;
	if (fstat(pin, &st) < 0 || (!S_ISSOCK(st.st_mode) && !S_ISFIFO(st.st_mode)))
		return -EACCES;
	if (m->bound_n == BOUND)
		make_room(m);
	m->bound[m->bound_n++] = (struct bound){ take_fd(&pin), st.st_dev, st.st_ino };
	return 0;
}

bool bound_here(const struct mediator *m, const struct stat *st)
{
	for (size_t i = 0; i < m->bound_n; i++)
		if (m->bound[i].dev == st->st_dev && m->bound[i].ino == st->st_ino)
			return true;
	return false;
}

void bound_clear(struct mediator *m)
{
	while (m->bound_n)
		drop(m, m->bound_n - 1);
}
