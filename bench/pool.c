/*
 * pool.c - compare /bin/true from a warm pool of the library with a command
 *
 * usage: pool ROUNDS COMMAND...
 *
 * Prints two lines, the nanoseconds of each round: for the pool, then for the command.
 * Before every start, of both, the pool is full, and nothing else of it is at work. Fails if the
 * library leaves a descriptor open. $WRIT is the program that runs the sandboxes, if not the
 * installed one.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <writ/writ.h>

enum { ROUNDS_MAX = 100000, WARM_UP = 3, POOL = 2, READY_MS = 10000, SETTLE_US = 20000 };

static uint64_t now_ns(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
		abort();
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what, const struct writ_error *err)
{
	fprintf(stderr, "pool: %s: %s\n", what, err ? err->text : "failed");
	exit(1);
}

static uint64_t command_ns(char **argv, int null)
{
	const uint64_t start = now_ns();
	const pid_t pid = vfork();
	int status;

	if (pid == 0) {
		if (dup2(null, STDOUT_FILENO) >= 0)
			execvp(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		die(argv[0], NULL);
	return now_ns() - start;
}

/*
 * Waits until the pool is full and idle. A sandbox reports "ready" slightly before the kernel has
 * finished its setup, hence the sleep.
 */
static void settle(struct writ_pool *pool)
{
	struct writ_error err = { 0 };

	if (writ_pool_wait(pool, POOL, READY_MS, &err) != POOL)
		die("a pool that does not fill", &err);
	usleep(SETTLE_US);
}

static uint64_t pool_ns(struct writ_policy *p, struct writ_pool *pool)
{
	static const char *const argv[] = { "/bin/true", NULL };
	struct writ_run_options opt = WRIT_INIT(struct writ_run_options);
	struct writ_exit end = WRIT_INIT(struct writ_exit);
	struct writ_error err = { 0 };
	uint64_t start;

	settle(pool);
	opt.argv = argv;
	opt.pool = pool;
	start = now_ns();
	if (writ_run(p, &opt, &end, &err) < 0 || end.code != 0)
		die("writ_run", &err);
	return now_ns() - start;
}

static void print_times(const uint64_t *times, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf("%ju%c", (uintmax_t)times[i], i + 1 < n ? ' ' : '\n');
}

static int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

int main(int argc, char **argv)
{
	const long rounds = argc > 2 ? strtol(argv[1], NULL, 10) : 0;
	const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct writ_options where = WRIT_INIT(struct writ_options);
	struct writ_policy_options opt = WRIT_INIT(struct writ_policy_options);
	struct writ_error err = { 0 };
	struct writ_policy *policy;
	struct writ_pool *pool;
	struct writ *w;
	uint64_t *a, *b;
	int fds;

	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: pool ROUNDS COMMAND...\n");
		return 2;
	}
	a = calloc((size_t)rounds, sizeof(*a));
	b = calloc((size_t)rounds, sizeof(*b));
	opt.flags = WRIT_POLICY_DISCOVER;
	where.program = getenv("WRIT");
	if (!a || !b || null < 0)
		die("start", NULL);
	fds = open_fds();
	if (writ_new(&where, &w, &err) < 0 || writ_policy_load(w, &opt, &policy, NULL, &err) < 0 ||
	    writ_pool_new(policy, POOL, &pool, &err) < 0)
		die("a pool", &err);
	for (long i = -WARM_UP; i < rounds; i++) {
		const uint64_t ta = pool_ns(policy, pool);
		uint64_t tb;

		settle(pool);
		tb = command_ns(argv + 2, null);
		if (i >= 0) {
			a[i] = ta;
			b[i] = tb;
		}
	}
	print_times(a, (size_t)rounds);
	print_times(b, (size_t)rounds);
	writ_pool_free(pool);
	writ_policy_free(policy);
	writ_free(w);
	free(a);
	free(b);
	if (open_fds() != fds)
		die("descriptors are left open", NULL);
	return 0;
}
