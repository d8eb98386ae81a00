/*
 * ab.c - run two commands alternately, many times, and print their times
 *
 * usage: ab ROUNDS COMMAND-A... -- COMMAND-B...
 *
 * Prints two lines, "median p10 p90" in nanoseconds, for A and for B. The commands
 * alternate, so that load on the machine affects both. Both write to /dev/null. A
 * failing command ends the run, because the time of a failure is meaningless. vfork()
 * excludes the cost of copying this process.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS_MAX = 100000, WARM_UP = 20 };

static uint64_t now_ns(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
		abort();
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t run_ns(char **argv, int null)
{
	const uint64_t start = now_ns();
	const pid_t pid = vfork();
	int status;

	if (pid == 0) {
		if (dup2(null, STDOUT_FILENO) >= 0)
			execvp(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		perror("ab");
		exit(1);
	}
	if (status != 0) {
		fprintf(stderr, "ab: %s failed with status %d\n", argv[0], status);
		exit(1);
	}
	return now_ns() - start;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void print_times(uint64_t *times, size_t n)
{
	qsort(times, n, sizeof(times[0]), by_value);
	printf("%ju %ju %ju\n", (uintmax_t)times[n / 2], (uintmax_t)times[n / 10],
	       (uintmax_t)times[n - 1 - n / 10]);
}

int main(int argc, char **argv)
{
	const long rounds = argc > 4 ? strtol(argv[1], NULL, 10) : 0;
	int split = 2;

	while (split < argc && strcmp(argv[split], "--") != 0)
		split++;
	if (rounds < 1 || rounds > ROUNDS_MAX || split == 2 || split + 1 >= argc) {
		fprintf(stderr, "usage: ab ROUNDS COMMAND-A... -- COMMAND-B...\n");
		return 2;
	}
	argv[split] = NULL;

	const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	uint64_t *a = calloc((size_t)rounds, sizeof(*a));
	uint64_t *b = calloc((size_t)rounds, sizeof(*b));

	if (null < 0 || !a || !b) {
		perror("ab");
		return 1;
	}
	for (long i = -WARM_UP; i < rounds; i++) {
		const uint64_t ta = run_ns(&argv[2], null);
		const uint64_t tb = run_ns(&argv[split + 1], null);

		if (i >= 0) {
			a[i] = ta;
			b[i] = tb;
		}
	}
	print_times(a, (size_t)rounds);
	print_times(b, (size_t)rounds);
	free(a);
	free(b);
	return 0;
}
