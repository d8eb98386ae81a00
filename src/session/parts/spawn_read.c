#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "parts/spawn.h"

#include "base/banned.h"

bool spawn_read(struct arena *a, struct sv text, struct spawn_request *ret)
{
	struct spawn_request q = { .argv = arena_array(a, char *, SPAWN_WORDS_MAX + 1) };
	size_t n = 0;

	if (!q.argv || text.n == 0 || text.n > SPAWN_TEXT_MAX || text.p[text.n - 1] != 0)
		return false;
	q.name = sv_cut(&text, 0);
	q.cwd = sv_cut(&text, 0);
	while (text.n && n < SPAWN_WORDS_MAX) {
		q.argv[n] = arena_str(a, sv_cut(&text, 0));
		if (!q.argv[n++])
			return false;
	}
	if (n == 0 || text.n || q.name.n == 0 || q.name.n > SPAWN_NAME_MAX || q.cwd.n == 0 ||
	    q.cwd.p[0] != '/')
		return false;
	*ret = q;
	return true;
}

/* Accepts the devices null, zero, full, random and urandom. */
static bool is_plain_device(dev_t dev)
{
	const unsigned n = minor(dev);

	return major(dev) == 1 && (n == 3 || n == 5 || n == 7 || n == 8 || n == 9);
}

const char *spawn_refuses(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return "something that cannot be looked at";
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
	case S_IFIFO:
	case S_IFSOCK:
		return NULL;
	case S_IFCHR:
		return is_plain_device(st.st_rdev) ? NULL : "a terminal or another device";
	case S_IFDIR:
		return "a directory";
	default:
		return "neither a file nor a pipe nor a socket";
	}
}
