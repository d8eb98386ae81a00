#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "audit/entry.h"
#include "audit/slog.h"
#include "base/fd.h"
#include "crypto/crypto.h"

static char arg0[] = "sh", arg1[] = "-c", arg2[] = "echo \"50%\" \\ \xc3\xa9\n";
static char *const args[] = { arg0, arg1, arg2, NULL };

static void make(struct entry *e, const char *secret)
{
	entry_begin_at(e, "exec", 1794805769388123);
	entry_str(e, "program", SV("sh"));
	entry_str(e, "object", sv_from(secret));
	entry_hide(e);
	entry_list(e, "args", args, 4096);
	entry_hide(e);
	entry_num(e, "pid", 17);
	entry_bool(e, "named", false);
}

static bool has(const struct buf *b, const char *text)
{
	return b->n && memmem(b->p, b->n, text, strlen(text));
}

static void test_forms(void)
{
	scoped_entry e = { 0 };
	scoped_buf line = BUF_INIT(ENTRY_LINE_MAX), open = BUF_INIT(ENTRY_LINE_MAX),
		   again = BUF_INIT(ENTRY_LINE_MAX);
	struct writ_err err = { 0 };
	struct digest leaf, read;

	make(&e, "/home/me/.ssh/id");
	ok(entry_finish(&e, &line, &leaf, &err) == 0, "an entry is made: %s", err.what);
	ok(has(&line, "\"args\":[\"sh\",\"-c\",\"echo \\\"50%25\\\" \\\\ "
		      "%C3%A9%0A\"],\"event\":\"exec\","),
	   "its members are sorted, its strings encoded");
	ok(has(&line, "\"_salt\":{\"args\":\"") && has(&line, "/home/me/.ssh/id"),
	   "what is private has a salt");
	ok(entry_leaf(buf_view(&line), &read, &err) == 0 && digest_eq(&leaf, &read),
	   "the line alone gives the same hash: %s", err.what);
	ok(entry_public(buf_view(&line), &open, &err) == 0 && !has(&open, "ssh") &&
		   !has(&open, "args") && !has(&open, "_salt") && has(&open, "\"_sd\":[\""),
	   "the public form shows nothing private");
	ok(entry_leaf(buf_view(&open), &read, &err) == 0 && digest_eq(&leaf, &read),
	   "and has the same hash");
	ok(entry_public(buf_view(&open), &again, &err) == 0 &&
		   sv_eq(buf_view(&open), buf_view(&again)),
	   "it is its own public form");
	if (getenv("SHOW"))
		printf("# %s\n# %s\n", line.p, open.p);
}

/* The same private member in two entries must not look the same. */
static void test_salts(void)
{
	scoped_entry e = { 0 };
	struct writ_err err = { 0 };
	struct digest a, b;
	scoped_buf one = BUF_INIT(ENTRY_LINE_MAX), two = BUF_INIT(ENTRY_LINE_MAX);

	make(&e, "x");
	ok(entry_finish(&e, &one, &a, &err) == 0 && entry_finish(&e, &two, &b, &err) == 0 &&
		   !digest_eq(&a, &b),
	   "two salts, two hashes");
}

/* Every bit of a line counts, or makes it no entry. */
static void test_flips(void)
{
	scoped_entry e = { 0 };
	scoped_buf line = BUF_INIT(ENTRY_LINE_MAX);
	struct writ_err err = { 0 };
	struct digest leaf, other;
	size_t same = 0;

	make(&e, "/secret");
	if (entry_finish(&e, &line, &leaf, &err) < 0) {
		ok(false, "an entry is made");
		return;
	}
	for (size_t i = 0; i < line.n * 8; i++) {
		line.p[i / 8] = (char)(line.p[i / 8] ^ 1 << i % 8);
		same += entry_leaf(buf_view(&line), &other, &err) == 0 && digest_eq(&leaf, &other);
		line.p[i / 8] = (char)(line.p[i / 8] ^ 1 << i % 8);
	}
	ok(same == 0, "no bit can be flipped: %zu could", same);
}

static const struct {
	const char *what, *line;
} bad_lines[] = {
	{ "no event", "{\"time\":1}" },
	{ "no time", "{\"event\":\"x\"}" },
	{ "a time that is text", "{\"event\":\"x\",\"time\":\"1\"}" },
	{ "not an object", "[1]" },
	{ "a blank", "{\"event\":\"x\", \"time\":1}" },
	{ "keys in disorder", "{\"time\":1,\"event\":\"x\"}" },
	{ "a salt of nothing",
	  "{\"_salt\":{\"a\":\"AAAAAAAAAAAAAAAAAAAAAA\"},\"event\":\"x\",\"time\":1}" },
	{ "a short salt", "{\"_salt\":{\"a\":\"AAAA\"},\"a\":1,\"event\":\"x\",\"time\":1}" },
	{ "a salt of the digests", "{\"_salt\":{\"_sd\":\"AAAAAAAAAAAAAAAAAAAAAA\"},\"_sd\":[\""
				   "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
				   "\"],\"event\":\"x\",\"time\":1}" },
	{ "no salts", "{\"_salt\":{},\"event\":\"x\",\"time\":1}" },
	{ "salts that are a list", "{\"_salt\":[],\"event\":\"x\",\"time\":1}" },
	{ "no digests", "{\"_sd\":[],\"event\":\"x\",\"time\":1}" },
	{ "digests that are text", "{\"_sd\":\"x\",\"event\":\"x\",\"time\":1}" },
	{ "a digest that is none", "{\"_sd\":[\"x\"],\"event\":\"x\",\"time\":1}" },
	{ "a digest twice",
	  "{\"_sd\":[\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\","
	  "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"],\"event\":\"x\",\"time\":1}" },
	{ "digests in disorder",
	  "{\"_sd\":[\"BAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\","
	  "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"],\"event\":\"x\",\"time\":1}" },
};

static void test_bad(void)
{
	struct digest d;

	for (size_t i = 0; i < ARRAY_LEN(bad_lines); i++) {
		struct writ_err err = { 0 };

		ok(entry_leaf(sv_from(bad_lines[i].line), &d, &err) < 0 && err.what[0],
		   "refused: %s", bad_lines[i].what);
	}
}

static void test_limits(void)
{
	scoped_entry e = { 0 };
	scoped_buf line = BUF_INIT(ENTRY_LINE_MAX), big = BUF_INIT(ENTRY_LINE_MAX);
	struct writ_err err = { 0 };
	struct digest d;

	buf_fill(&big, 'x', ENTRY_PUBLIC_MAX);
	entry_begin_at(&e, "x", 1);
	entry_str(&e, "a", buf_view(&big));
	ok(entry_finish(&e, &line, &d, &err) < 0, "too much that is public");
	entry_hide(&e);
	buf_clear(&line);
	ok(entry_finish(&e, &line, &d, &err) == 0, "the same, private");
	entry_begin_at(&e, "x", 1);
	entry_num(&e, "a", 1);
	entry_num(&e, "a", 2);
	ok(entry_finish(&e, &line, &d, &err) < 0, "one name twice");
	entry_begin_at(&e, "x", 1);
	entry_num(&e, "_sd", 1);
	ok(entry_finish(&e, &line, &d, &err) < 0, "a name that is not for members");
	entry_begin_at(&e, "x", 1);
	entry_num(&e, "a", UINT64_MAX);
	buf_clear(&line);
	ok(entry_finish(&e, &line, &d, &err) == 0 && has(&line, "\"a\":9007199254740991"),
	   "the largest number");
}

static void test_text(void)
{
	scoped_buf coded = BUF_INIT(4096), back = BUF_INIT(4096);
	struct writ_err err = { 0 };
	char all[256];

	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (char)i;
	entry_encode(&coded, (struct sv){ all, sizeof(all) });
	ok(entry_decode(buf_view(&coded), &back, &err) == 0 && back.n == 256 &&
		   memcmp(back.p, all, 256) == 0,
	   "every byte comes back");
	ok(entry_decode(SV("%41"), &back, &err) < 0 && entry_decode(SV("%0a"), &back, &err) < 0 &&
		   entry_decode(SV("%"), &back, &err) < 0 &&
		   entry_decode(SV("%0"), &back, &err) < 0 &&
		   entry_decode(SV("\n"), &back, &err) < 0,
	   "there is one text per bytes");
}

static int count(void *ctx, uint64_t index, struct sv line, struct writ_err *err)
{
	(void)line, (void)err;
	*(uint64_t *)ctx += index;
	return 0;
}

static void test_log(void)
{
	char path[] = "/tmp/test-slog-XXXXXX";
	scoped_entry e = { 0 };
	struct slog l = SLOG_INIT;
	struct slog_read read = { 0 };
	struct writ_err err = { 0 };
	struct digest root;
	uint64_t sum = 0;
	int fd = mkstemp(path);

	(void)unlink(path);
	close(fd);
	ok(slog_open(&l, path, false, &err) == 0, "a log is made: %s", err.what);
	for (unsigned i = 0; i < 300; i++) {
		make(&e, "/a");
		entry_num(&e, "i", i);
		if (slog_append(&l, &e, &err) < 0)
			ok(false, "append: %s", err.what);
	}
	root = tree_frontier_root(&l.tree);
	fd = open(path, O_RDWR);
	ok(slog_read(fd, count, &sum, &read, &err) == 0 && read.size == 300 && sum == 44850 &&
		   digest_eq(&read.root, &root) && read.torn == 0,
	   "it reads as it was written: %s", err.what);
	ok(write(l.fd, "{\"ev", 4) == 4 && lseek(fd, 0, SEEK_SET) == 0 &&
		   slog_read(fd, NULL, NULL, &read, &err) == 0 && read.size == 300 &&
		   read.torn == 4,
	   "half a line is none");
	ok(pwrite(fd, "X", 1, 5000) == 1 && lseek(fd, 0, SEEK_SET) == 0 &&
		   (slog_read(fd, NULL, NULL, &read, &err) < 0 || !digest_eq(&read.root, &root)),
	   "an edited line is found");
	close(fd);
	slog_close(&l);
	(void)unlink(path);
	fd = open("/dev/full", O_WRONLY);
	l = (struct slog)SLOG_INIT;
	l.fd = fd;
	make(&e, "/a");
	ok(slog_append(&l, &e, &err) < 0 && slog_append(&l, &e, &err) < 0 && l.broken,
	   "a full disk ends it: %s", err.what);
	slog_close(&l);
}

/* While lines are gathered, salts come from a store. */
static void test_gathered(void)
{
	enum { LINES = 40 };
	char path[] = "/tmp/test-slog-XXXXXX";
	static const struct entry_salts none;
	scoped_buf all = BUF_INIT(1 << 20);
	struct sv rest, salt[LINES] = { { "", 0 } };
	struct slog l = SLOG_INIT;
	struct writ_err err = { 0 };
	unsigned twice = 0, n = 0;
	int r;

	close(mkstemp(path));
	(void)unlink(path);
	r = slog_open(&l, path, false, &err);
	slog_hold(&l);
	for (unsigned i = 0; r == 0 && i < LINES; i++) {
		scoped_entry e = { 0 };

		entry_begin_at(&e, "test", 1);
		entry_str(&e, "path", SV("/a"));
		entry_hide(&e);
		r = slog_append(&l, &e, &err);
	}
	ok(r == 0 && l.salts.left && memcmp(l.salts.b, none.b, sizeof(none.b)) != 0,
	   "lines are gathered, with salts to spare: %s", err.what);
	ok(slog_flush(&l, &err) == 0 && memcmp(&l.salts, &none, sizeof(none)) == 0,
	   "nothing is left of those when the lines are written");
	slog_close(&l);
	r = fd_read_file(path, &all, &err);
	rest = buf_view(&all);
	for (; r == 0 && rest.n && n < LINES; n++) {
		struct sv line = sv_cut(&rest, '\n');

		salt[n] = sv_sub(line, 0, sv_find(line, '}'));
		for (unsigned i = 0; i < n; i++)
			twice += sv_eq(salt[i], salt[n]);
	}
	ok(n == LINES && twice == 0 && sv_starts(salt[0], SV("{\"_salt\":{\"path\":\"")),
	   "%u lines, each with a salt of its own", n);
	(void)unlink(path);
}

int main(void)
{
	struct writ_err err = { 0 };

	if (crypto_start(&err) < 0)
		return 1;
	test_forms();
	test_salts();
	test_flips();
	test_bad();
	test_limits();
	test_text();
	test_log();
	test_gathered();
	return tap_done();
}
