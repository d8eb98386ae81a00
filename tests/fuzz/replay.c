/*
 * replay.c - run a fuzz target once on every file of its corpus, and say so in TAP
 *
 * usage: replay_NAME CORPUS-DIRECTORY
 *
 * Linked in place of libFuzzer's main. A crash ends the program before its plan
 * is printed, so it cannot pass unnoticed; the last line names the file.
 */
#include <dirent.h>
#include <string.h>

#include "base/fd.h"
#include "fuzz.h"
#include "tap.h"

enum { SEED_MAX = 4 << 20 };

static int is_seed(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static void replay(const char *dir, const char *name)
{
	struct writ_err err = { 0 };
	scoped_buf path = BUF_INIT(4096);
	scoped_buf bytes = BUF_INIT(SEED_MAX);
	uint8_t *exact;

	printf("# %s\n", name);
	(void)fflush(stdout);
	buf_fmt(&path, "%s/%s", dir, name);
	if (buf_check(&path, &err) < 0 || fd_read_file(path.p, &bytes, &err) < 0) {
		ok(false, "read %s: %s", name, err.what);
		return;
	}
	/* A copy of just this size, so that reading one byte too far is seen. */
	exact = malloc(bytes.n ? bytes.n : 1);
	if (!exact)
		abort();
	if (bytes.n)
		memcpy(exact, bytes.p, bytes.n);
	ok(LLVMFuzzerTestOneInput(exact, bytes.n) == 0, "%s", name);
	free(exact);
}

int main(int argc, char **argv)
{
	struct dirent **seeds = NULL;
	const int n = argc == 2 ? scandir(argv[1], &seeds, is_seed, alphasort) : -1;

	ok(n > 0, "the corpus has seeds");
	for (int i = 0; i < n; i++) {
		replay(argv[1], seeds[i]->d_name);
		free(seeds[i]);
	}
	free(seeds);
	return tap_done();
}
