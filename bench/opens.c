/*
 * opens.c - cost of opening a file for writing or reading, and of creating one
 *
 * usage: opens open|create|read ROUNDS
 *
 * Prints the median time in nanoseconds of open() and close() of a name in the current
 * directory. Linked statically, so that it runs in any sandbox.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS_MAX = 1000000 };

static uint64_t now_ns(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
		abort();
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	static const char name[] = "opens.tmp";
	const long rounds = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
	const int create = argc == 3 && strcmp(argv[1], "create") == 0;
	const int read_only = argc == 3 && strcmp(argv[1], "read") == 0;
	const int flags =
		O_CLOEXEC | (read_only ? O_RDONLY : O_WRONLY | O_CREAT) | (create ? O_EXCL : 0);
	uint64_t *times;

	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: opens open|create|read ROUNDS\n");
		return 2;
	}
	times = calloc((size_t)rounds, sizeof(*times));
	(void)unlink(name);
	if (read_only)
		close(open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	for (long i = 0; times && i < rounds; i++) {
		const uint64_t start = now_ns();
		const int fd = open(name, flags, 0644);

		if (fd < 0) {
			perror(name);
			return 1;
		}
		close(fd);
		times[i] = now_ns() - start;
		if (create)
			(void)unlink(name);
	}
	(void)unlink(name);
	if (!times)
		return 1;
	qsort(times, (size_t)rounds, sizeof(times[0]), by_value);
	printf("%ju\n", (uintmax_t)times[rounds / 2]);
	free(times);
	return 0;
}
