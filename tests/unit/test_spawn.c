#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "parts/spawn.h"

/* What is taken of whoever asks for an agent from inside. */

static bool taken(const char *text, size_t n, struct spawn_request *ret)
{
	static struct arena a = ARENA_INIT(64 << 20);

	return spawn_read(&a, (struct sv){ text, n }, ret);
}

#define TAKEN(text, q) taken((text), sizeof(text) - 1, (q))

static void test_read(void)
{
	struct spawn_request q;
	char *many = calloc(SPAWN_WORDS_MAX + 2, 2);

	ok(TAKEN("coder\0/work\0sh\0-c\0\0", &q) && sv_is(q.name, "coder") &&
		   sv_is(q.cwd, "/work") && strcmp(q.argv[1], "-c") == 0 && q.argv[2][0] == 0 &&
		   !q.argv[3],
	   "a name, a place, words; one of them empty");
	ok(!TAKEN("", &q) && !TAKEN("\0", &q), "nothing");
	ok(!TAKEN("coder\0/work\0true", &q), "it ends in the middle of a word");
	ok(!TAKEN("coder\0/work\0", &q) && !TAKEN("coder\0", &q), "no command");
	ok(!TAKEN("\0/work\0true\0", &q), "no name");
	ok(!TAKEN("coder\0work\0true\0", &q) && !TAKEN("coder\0\0true\0", &q), "no place");
	if (!many)
		return;
	memset(many, 'x', 2);
	memcpy(many, "c\0/\0", 4);
	for (size_t i = 2; i < SPAWN_WORDS_MAX + 2; i++)
		many[2 * i] = 'x';
	ok(taken(many, 2 * (SPAWN_WORDS_MAX + 2), &q), "as many words as there may be");
	ok(!taken(many, 2 * (SPAWN_WORDS_MAX + 2) - 1, &q), "the last one cut off");
	free(many);
}

static const char *refuses(int fd)
{
	const char *why = spawn_refuses(fd);

	if (fd >= 0)
		close(fd);
	return why;
}

static void test_descriptors(void)
{
	int pair[2], pipes[2];
	const int master = posix_openpt(O_RDWR | O_NOCTTY);

	if (pipe(pipes) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0) {
		ok(false, "pipe");
		return;
	}
	ok(!refuses(pipes[0]) && !refuses(pipes[1]), "both ends of a pipe");
	ok(!refuses(pair[0]) && !refuses(pair[1]), "sockets");
	ok(!refuses(open("/dev/null", O_RDWR)) && !refuses(open("/dev/zero", O_RDONLY)) &&
		   !refuses(open("/dev/urandom", O_RDONLY)),
	   "devices that are the same for everybody");
	ok(!refuses(open("/proc/self/exe", O_RDONLY)), "a file");
	ok(refuses(open("/", O_RDONLY | O_DIRECTORY)), "no directory");
	ok(refuses(eventfd(0, 0)), "no eventfd");
	ok(refuses(timerfd_create(CLOCK_MONOTONIC, 0)), "no timer");
	ok(refuses(master), "no terminal");
	ok(refuses(-1), "nothing at all");
}

int main(void)
{
	test_read();
	test_descriptors();
	return tap_done();
}
