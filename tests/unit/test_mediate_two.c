#include "tap.h"

#include "mediated.h"

#include <sched.h>
#include <stdatomic.h>

/*
 * Two sandboxes that write to one tree, each with a mediator of its own. One of them
 * is about to complete a repository while the other puts a hook into it: each sees
 * nothing wrong as long as the other has not acted.
 */

enum { ROUNDS = 400 };

struct table {
	atomic_int arrived[2]; /* rounds begun, by sandbox */
	atomic_int done[2];
	atomic_int both;   /* a repository with a hook nobody checked */
	atomic_int one[2]; /* how often each of them was let through */
};

static char base[64], ws[96], order[96];
static struct cap_set set;
static struct table *table;

/* Waits for the other one; false if it is gone. */
static bool meet(atomic_int *mine, const atomic_int *its, int round)
{
	atomic_store(mine, round);
	for (long i = 0; atomic_load(its) < round; i++) {
		if (i > 20000000L)
			return false;
		(void)sched_yield();
	}
	return true;
}

static bool is_there(const char *name)
{
	struct stat st;

	return lstat(name, &st) == 0;
}

static int complete(void)
{
	char dir[32];

	for (int i = 1; i <= ROUNDS; i++) {
		snprintf(dir, sizeof(dir), "%d", i);
		if (chdir(ws) < 0 || mkdir(dir, 0755) < 0 || chdir(dir) < 0 ||
		    mkdir("hooks", 0755) < 0 || mkdir("objects", 0755) < 0)
			return 1;
		if (!meet(&table->arrived[0], &table->arrived[1], i))
			return 2;
		atomic_fetch_add(&table->one[0], mkdir("refs", 0755) == 0);
		if (!meet(&table->done[0], &table->done[1], i))
			return 3;
		atomic_fetch_add(&table->both, is_there("refs") && is_there("hooks/pre-receive"));
	}
	return 0;
}

static int plant(void)
{
	char name[128];

	for (int i = 1; i <= ROUNDS; i++) {
		snprintf(name, sizeof(name), "%s/%d/hooks/pre-receive", ws, i);
		if (!meet(&table->arrived[1], &table->arrived[0], i))
			return 2;
		/* Neither of them is always the first. */
		for (volatile int k = 0; k < i % 40 * 100; k++)
			;
		atomic_fetch_add(&table->one[1], mknod(name, S_IFREG | 0755, 0) == 0);
		if (!meet(&table->done[1], &table->done[0], i))
			return 3;
	}
	return 0;
}

static int serve(int (*fn)(void), const char *lock)
{
	struct box b = {
		.traps = BOX_WRITE,
		.opt = { .set = &set, .realm = SV("r"), .workspace = sv_from(ws), .order = lock }
	};

	return box_run(&b, fn);
}

static void race(const char *lock)
{
	int status = -1;
	pid_t pid;

	memset(table, 0, sizeof(*table));
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		/* What the two sandboxes say of themselves is not shared. */
		results = NULL;
		_exit(serve(plant, lock) == 0 ? 0 : 1);
	}
	ok(serve(complete, lock) == 0, "one ran to its end");
	if (pid > 0)
		(void)waitpid(pid, &status, 0);
	ok(status == 0, "and so did the other (%d)", status);
}

int main(void)
{
	char cmd[160];

	snprintf(base, sizeof(base), "/tmp/writ-two-XXXXXX");
	if (!mkdtemp(base))
		return 1;
	snprintf(ws, sizeof(ws), "%s/ws", base);
	snprintf(order, sizeof(order), "%s/order", base);
	table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (mkdir(ws, 0755) < 0 || table == MAP_FAILED)
		return 1;
	snprintf(cmd, sizeof(cmd), "fs.write:r:%s/**", ws);
	box_cap(&set, CAP_GRANT, "fs.read:r:/**");
	box_cap(&set, CAP_GRANT, cmd);
	race(order);
	ok(atomic_load(&table->both) == 0, "no hook in a repository, in %d rounds (%d)", ROUNDS,
	   atomic_load(&table->both));
	ok(atomic_load(&table->one[0]) + atomic_load(&table->one[1]) == ROUNDS,
	   "in each round one of them was let through (%d, %d)", atomic_load(&table->one[0]),
	   atomic_load(&table->one[1]));
	snprintf(cmd, sizeof(cmd), "rm -rf %s/*", ws);
	(void)!system(cmd);
	race(NULL);
	tap_note("without taking turns: %d of %d", atomic_load(&table->both), ROUNDS);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", base);
	(void)!system(cmd);
	arena_clear(&box_arena);
	return tap_done();
}
