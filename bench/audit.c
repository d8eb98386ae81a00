/*
 * audit.c - cost of a logged event, and of a realm's log with ten million entries
 *
 * Prints lines of name, measured, unit and budget for bench/run.py.
 *
 *     audit_bench [DIR]
 *
 * DIR (/dev/shm) is the directory for files; the default excludes the cost of a disk. The
 * log of ten million entries consists only of the tiles that appending and proving read.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audit/realm.h"
#include "audit/slog.h"
#include "base/fd.h"
#include "crypto/crypto.h"

enum { EVENTS = 20000, PROOFS = 200, APPENDS = 2000 };

static char top[128];

/* CPU time of this process, so that other load does not count. */
static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void die(const struct writ_err *err)
{
	fprintf(stderr, "audit_bench: %s\n", err->what);
	exit(1);
}

/* Fills an event like that of a started program. */
static void event_of(struct entry *e, unsigned i)
{
	entry_begin_at(e, "exec", 1794805769388123 + i);
	entry_str(e, "op", SV("exec"));
	entry_str(e, "object", SV("/usr/bin/cc"));
	entry_hide(e);
	entry_str(e, "program", SV("make"));
	entry_hide(e);
	entry_num(e, "pid", 4711 + i);
	entry_str(e, "args", SV("cc -O2 -c -o main.o main.c"));
	entry_hide(e);
}

/* Returns microseconds per event. @held: events are written in batches, as in a burst. */
static double events(bool held)
{
	struct slog l = SLOG_INIT;
	struct writ_err err = { 0 };
	char path[160];
	double start;

	(void)snprintf(path, sizeof(path), "%s/%d.jsonl", top, held);
	if (slog_open(&l, path, false, &err) < 0)
		die(&err);
	start = now_us();
	for (unsigned i = 0; i < EVENTS; i++) {
		scoped_entry e = { 0 };

		if (held && i % 64 == 0)
			slog_hold(&l);
		event_of(&e, i);
		if (slog_append(&l, &e, &err) < 0)
			die(&err);
		if (held && i % 64 == 63 && slog_flush(&l, &err) < 0)
			die(&err);
	}
	if (slog_flush(&l, &err) < 0)
		die(&err);
	start = now_us() - start;
	slog_close(&l);
	return start / EVENTS;
}

/* Measures batched events without private members: the cost of the log itself. */
static double plain(void)
{
	struct slog l = SLOG_INIT;
	struct writ_err err = { 0 };
	char path[160];
	double start;

	(void)snprintf(path, sizeof(path), "%s/plain.jsonl", top);
	if (slog_open(&l, path, false, &err) < 0)
		die(&err);
	start = now_us();
	slog_hold(&l);
	for (unsigned i = 0; i < EVENTS; i++) {
		scoped_entry e = { 0 };

		entry_begin_at(&e, "exec", 1794805769388123 + i);
		entry_str(&e, "object", SV("/usr/bin/cc"));
		entry_num(&e, "pid", 4711 + i);
		if (slog_append(&l, &e, &err) < 0)
			die(&err);
	}
	if (slog_flush(&l, &err) < 0)
		die(&err);
	start = now_us() - start;
	slog_close(&l);
	return start / EVENTS;
}

static void put_tile(const char *dir, bool entries, unsigned level, uint64_t index, uint64_t size)
{
	static const uint8_t zero[TILE_BYTES_MAX];
	scoped_buf name = BUF_INIT(TILE_NAME_MAX);
	struct writ_err err = { 0 };
	scoped_fd to = -1;
	struct tile t;
	scoped_fd fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (!tile_find(entries, level, index, size, &t))
		return;
	tile_name_print(&t, &name);
	if (fd < 0 || faccessat(fd, name.p, F_OK, 0) == 0)
		return;
	/* Not fd_replace_deep(): syncing each of them would take minutes. */
	if (fd_make_above(fd, name.p, &err) < 0)
		die(&err);
	to = openat(fd, name.p, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (to < 0 || fd_write_all(to, (struct sv){ (const char *)zero, (size_t)t.width * 32 },
				   &err) < 0)
		die(&err);
}

/* Creates the tiles of a log with @size entries (a multiple of 256) that the benchmark reads. */
static void make_log(const char *dir, uint64_t size, const uint64_t *index, size_t n)
{
	struct writ_err err = { 0 };
	char path[200];

	(void)snprintf(path, sizeof(path), "%s/wal", dir);
	if (fd_make_dirs(path, &err) < 0)
		die(&err);
	for (unsigned l = 0; l < TILE_LEVELS; l++) {
		const unsigned bits = 8 * l;

		if (size >> bits == 0)
			break;
		/* The right edge, and the tiles on the paths to the proved leaves. */
		put_tile(dir, false, l, (size >> bits) / TILE_WIDTH, size);
		if ((size >> bits) / TILE_WIDTH)
			put_tile(dir, false, l, (size >> bits) / TILE_WIDTH - 1, size);
		for (size_t i = 0; i < n; i++)
			put_tile(dir, false, l, (index[i] >> bits) / TILE_WIDTH, size);
	}
	(void)snprintf(path, sizeof(path), "%s/wal/%016llx", dir, (unsigned long long)size);
	scoped_fd fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		exit(1);
}

/* Opens a log of @size entries, appends and proves; returns microseconds of each. */
static void realm_costs(uint64_t size, double *ret_append, double *ret_prove)
{
	uint64_t index[PROOFS], seed = 1;
	struct writ_err err = { 0 };
	char dir[160];
	struct realm r;
	double start;

	size &= ~(uint64_t)255;
	for (size_t i = 0; i < PROOFS; i++) {
		seed = seed * 6364136223846793005 + 1442695040888963407;
		index[i] = (seed >> 16) % size;
	}
	(void)snprintf(dir, sizeof(dir), "%s/log-%llu", top, (unsigned long long)size);
	make_log(dir, size, index, PROOFS);
	if (realm_open(&r, dir, true, &err) < 0)
		die(&err);
	start = now_us();
	for (size_t i = 0; i < PROOFS; i++) {
		struct tree_proof p;

		if (tree_prove_inclusion(&r.nodes.nodes, index[i], size, &p, &err) < 0)
			die(&err);
	}
	*ret_prove = (now_us() - start) / PROOFS;
	start = now_us();
	for (unsigned i = 0; i < APPENDS; i++) {
		scoped_entry e = { 0 };

		entry_begin_at(&e, "session.start", 1794805769388123 + i);
		entry_str(&e, "session", SV("abcdefgh"));
		if (realm_append(&r, &e, false, NULL, &err) < 0)
			die(&err);
	}
	*ret_append = (now_us() - start) / APPENDS;
	realm_close(&r);
}

/* Measures the share of the log in a session: two entries and a signature, in microseconds. */
static double session(void)
{
	static const uint8_t seed[32] = { 1 };
	struct writ_err err = { 0 };
	struct sign_public pub;
	struct sign_secret sec;
	struct note_key key;
	char dir[160];
	double start;

	(void)snprintf(dir, sizeof(dir), "%s/log", top);
	sign_keypair(seed, &pub, &sec);
	if (note_key_init(&key, NOTE_KEY_ED25519, SV("writ/log/l-test"), &pub, &err) < 0)
		die(&err);
	start = now_us();
	/* Covers a file of wal/ from empty to full. */
	for (unsigned i = 0; i < 254; i++) {
		scoped_entry e = { 0 };
		struct realm r;

		entry_begin_at(&e, "session.end", 1794805769388123 + i);
		entry_str(&e, "session", SV("abcdefgh"));
		entry_str(&e, "root", SV("ZjumvNm1PqDNbBaMIMCu7Kk_a5V3OfAMuseg1jjgbGk"));
		if (realm_open(&r, dir, true, &err) < 0 ||
		    realm_append(&r, &e, false, NULL, &err) < 0 ||
		    (i % 2 && realm_sign(&r, &key, &sec, false, &err) < 0))
			die(&err);
		realm_close(&r);
	}
	return (now_us() - start) / 127;
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

int main(int argc, char **argv)
{
	struct writ_err err = { 0 };
	double small, large, prove, ignored;

	(void)snprintf(top, sizeof(top), "%s/audit-bench-XXXXXX", argc > 1 ? argv[1] : "/dev/shm");
	if (crypto_start(&err) < 0 || !mkdtemp(top))
		return 1;
	printf("event with three private members, written at once\t%.2f\tus\t20.0\n",
	       events(false));
	printf("the same in a burst\t%.2f\tus\t20.0\n", events(true));
	/* Hashing dominates; programs inside the session never wait for the log. */
	small = plain();
	printf("event without, in a burst: 100 thousand a second\t%.2f\tus\t10.0\n", small);
	printf("start and end of a session in the realm's log\t%.0f\tus\t1000\n", session());
	realm_costs(1024, &small, &ignored);
	realm_costs(10000000, &large, &prove);
	printf("append to a realm's log of 10^3 entries\t%.2f\tus\t100\n", small);
	printf("append to a realm's log of 10^7 entries\t%.2f\tus\t100\n", large);
	printf("inclusion proof from files, 10^7 entries\t%.3f\tms\t1.0\n", prove / 1e3);
	(void)nftw(top, drop, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}
