#include "mediate/mediate_priv.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "mediate/open_priv.h"

#include "base/banned.h"

/*
 * Where would a text lead programs of the host that follow it, such as the target of a new link or
 * the location of a remote? The answer must not depend on anything that the session cannot see:
 * a refusal that depends on names of the host tells the session which of them exist. So the walk
 * looks only below the caller's root, and what does not exist there is only text.
 */

/* SECURITY: limits the time of one walk, during which calls of other sessions wait for the lock. */
enum { STEPS_MAX = 1024 };

struct trail {
	struct call *c;
	int root;
	int at; /* descriptor of the directory @path, owned; -1: the walk goes on as text */
	char path[PATH_MAX];
	size_t n; /* length of @path; 0: the root */
	char rest[2 * PATH_MAX];
	size_t from; /* start of the remaining text in @rest, which ends at the end of the buffer */
	unsigned steps, links;
};

static void trail_move(struct trail *t, int fd)
{
	fd_scope_close(&t->at);
	t->at = fd;
}

/* Puts @text and a slash in front of the remaining text. Returns false if there is no room. */
static bool trail_push(struct trail *t, struct sv text)
{
	if (text.n + 1 > t->from)
		return false;
	t->rest[--t->from] = '/';
	t->from -= text.n;
	memcpy(t->rest + t->from, text.p, text.n);
	return true;
}

static bool trail_up(struct trail *t)
{
	if (t->at < 0)
		return false;
	if (t->n == 0)
		return true;
	t->n = sv_rfind((struct sv){ t->path, t->n }, '/');
	trail_move(t, openat(t->at, "..", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	return t->at >= 0;
}

static bool trail_link(struct trail *t, int link)
{
	char text[PATH_MAX];
	const ssize_t n = readlinkat(link, "", text, sizeof(text));

	if (n <= 0 || ++t->links > LINKS_MAX || !trail_push(t, (struct sv){ text, (size_t)n }))
		return false;
	if (text[0] != '/')
		return true;
	t->n = 0;
	trail_move(t, fcntl(t->root, F_DUPFD_CLOEXEC, 3));
	return t->at >= 0;
}

/*
 * SECURITY: the host has other files at the paths of private and shared directories, and other
 * processes in /proc. The session could make a link there that seems to lead elsewhere.
 */
static bool is_own_name(const struct mediator *m, struct sv path)
{
	return mediate_is_private(m, path) || mediate_is_shared(m, path) ||
	       mediate_is_below(path, SV("/proc"));
}

static bool trail_down(struct trail *t, struct sv name)
{
	struct mediator *m = t->c->m;
	const size_t before = t->n;
	scoped_fd fd = -1;
	struct stat st;

	if (t->n + name.n + 2 > sizeof(t->path))
		return false;
	t->path[t->n] = '/';
	memcpy(t->path + t->n + 1, name.p, name.n);
	t->n += name.n + 1;
	t->path[t->n] = 0;
	if (t->at < 0)
		return true;
	fd = openat(t->at, t->path + before + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &st) < 0)
		return false;
	if (fd >= 0 && S_ISLNK(st.st_mode) && mediate_device_is_plain(m, fd, st.st_dev) &&
	    !is_own_name(m, (struct sv){ t->path, t->n })) {
		t->n = before;
		return trail_link(t, fd);
	}
	trail_move(t, fd >= 0 && S_ISDIR(st.st_mode) ? fd_take(&fd) : -1);
	return true;
}

/* Walks to the end of the text. Returns false if the path cannot be told. */
static bool trail_walk(struct trail *t)
{
	while (t->from < sizeof(t->rest)) {
		struct sv rest = { t->rest + t->from, sizeof(t->rest) - t->from };
		const struct sv name = sv_cut(&rest, '/');
		bool good = ++t->steps <= STEPS_MAX;

		t->from = sizeof(t->rest) - rest.n;
		if (good && sv_is(name, ".."))
			good = trail_up(t);
		else if (good && name.n && !sv_is(name, "."))
			good = trail_down(t, name);
		if (!good)
			return false;
	}
	return true;
}

/* True for a path of procfs that leads to the directory or the root of some process. */
static bool is_magic(struct sv path)
{
	return mediate_is_below(path, SV("/proc")) &&
	       (sv_has_word(path, '/', SV("cwd")) || sv_has_word(path, '/', SV("root")));
}

/*
 * SECURITY: the agent's private home is an ordinary directory on the host, and writ does not check
 * its content. A link in a granted tree that leads to the private home, or to a directory above it,
 * would let the user's own programs read or run files that the agent prepared. A link to another
 * place is harmless by itself: each access of the session through the link is decided by its
 * physical path. A text whose end cannot be told counts as one that leads there.
 */
bool mediate_reaches_writ(struct call *c, struct sv dir, const char *text)
{
	const struct mediate_options *opt = &c->m->opt;
	struct trail t = { .c = c, .at = -1, .root = task_root(c), .from = sizeof(t.rest) };
	struct sv path;
	bool told;

	if (opt->closed_dirs_n == 0)
		return false;
	t.at = t.root < 0 ? -1 : fcntl(t.root, F_DUPFD_CLOEXEC, 3);
	told = t.at >= 0 && trail_push(&t, sv_from(text)) &&
	       (text[0] == '/' || trail_push(&t, dir)) && trail_walk(&t);
	fd_scope_close(&t.at);
	path = t.n ? (struct sv){ t.path, t.n } : SV("/");
	if (!told || is_magic(path))
		return true;
	for (size_t i = 0; i < opt->closed_dirs_n; i++)
		if (mediate_is_below(path, opt->closed_dirs[i]) ||
		    mediate_is_below(opt->closed_dirs[i], path))
			return true;
	return false;
}
