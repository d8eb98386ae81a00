#include "tap.h"

#include "mediated.h"

#include <stddef.h>
#include <sys/mman.h>

/* What is noted of programs that are run, and how it gets from one process to another. */

enum { PAGE = 4096, MANY = 80, LONG = 300 };

static struct cap_set set;

static struct box make_box(void)
{
	struct box b = { .traps = BOX_EXEC, .opt = { .set = &set, .realm = SV("r") } };

	return b;
}

/* Two pages, and nothing behind them. */
static char *two_pages(void)
{
	char *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || munmap(p + (ptrdiff_t)2 * PAGE, PAGE) < 0)
		_exit(9);
	return p;
}

static void run(const char *const *argv)
{
	(void)syscall(SYS_execve, "/dev/null", argv, NULL);
}

static int plain(void)
{
	char text[LONG + 1];
	const char *many[MANY + 1], *longer[] = { text, "b", text, "c", NULL };

	memset(text, 'x', LONG);
	text[LONG] = 0;
	run((const char *[]){ "a", "", "c", NULL });
	run((const char *[]){ NULL });
	run(NULL);
	run(longer);
	for (int i = 0; i < MANY; i++)
		many[i] = i % 10 ? "y" : "z";
	many[MANY] = NULL;
	run(many);
	for (int i = 0; i < MANY; i++)
		many[i] = text;
	run(many);
	return 0;
}

/* Where pages end, and where there is nothing. */
static int borders(void)
{
	char *p = two_pages(), *end = p + (ptrdiff_t)2 * PAGE;
	const char *at[4] = { "one", "two", NULL, NULL };

	/* The last string ends with the memory; another lies across a border. */
	memcpy(end - 5, "last", 5);
	memcpy(p + PAGE - 3, "across", 7);
	run((const char *[]){ end - 5, p + PAGE - 3, "on", NULL });
	/* So do the addresses, whole and in two. */
	memcpy(p + PAGE - 8, at, sizeof(at));
	run((const char **)(void *)(p + PAGE - 8));
	memcpy(p + PAGE - 12, at, sizeof(at));
	run((const char **)(void *)(p + PAGE - 12));
	/* Nobody can read what comes behind: what was before it is noted. */
	at[2] = end;
	at[3] = "four";
	run(at);
	memcpy(end - 16, at, 16);
	run((const char **)(void *)(end - 16));
	return 0;
}

static void test_plain(void)
{
	struct box b = make_box();
	char want[1100] = "";

	ok(box_run(&b, plain) == 0, "programs are run");
	ok(b.events_n == 6, "and seen (%zu)", b.events_n);
	is_str(b.events[0].object, "/dev/null", "which");
	is_str(b.events[0].extra, "a  c", "an empty argument is one");
	is_str(b.events[1].extra, "", "none");
	is_str(b.events[2].extra, "", "nor a list of them");
	ok(strlen(b.events[3].extra) == 2 * LONG + 5 && b.events[3].extra[LONG + 1] == 'b' &&
		   b.events[3].extra[2 * LONG + 4] == 'c',
	   "long ones are whole");
	for (int i = 0; i < 64; i++)
		strcat(want, i == 0 ? "z" : i % 10 ? " y" : " z");
	is_str(b.events[4].extra, want, "of many the first");
	ok(strlen(b.events[5].extra) == MEDIATE_TEXT - 1 && b.events[5].extra[LONG] == ' ' &&
		   b.events[5].extra[MEDIATE_TEXT - 2] == 'x',
	   "and as much as there is room for (%zu)", strlen(b.events[5].extra));
	ok(b.events[5].comm[0] != 0, "by whom");
}

static void test_borders(void)
{
	struct box b = make_box();

	ok(box_run(&b, borders) == 0, "programs are run");
	ok(b.events_n == 5, "and seen (%zu)", b.events_n);
	is_str(b.events[0].extra, "last across on", "strings at borders");
	is_str(b.events[1].extra, "one two", "addresses on both sides");
	is_str(b.events[2].extra, "one two", "an address in two parts");
	is_str(b.events[3].extra, "one two ", "up to what cannot be read");
	is_str(b.events[4].extra, "one two", "up to where the list cannot");
}

static int missing(void)
{
	static const char *const none[] = { NULL };
	char longer[MEDIATE_TEXT + 64];
	struct stat st;

	/* Who looked is remembered. */
	(void)stat("/nowhere", &st);
	results[0] = syscall(SYS_execve, "/nowhere", none, NULL) < 0 ? errno : 0;
	results[1] = syscall(SYS_execve, "nowhere", none, NULL) < 0 ? errno : 0;
	results[2] = syscall(SYS_execve, "/dev/null/x", none, NULL) < 0 ? errno : 0;
	results[3] = syscall(SYS_execve, "/proc/self/fd/99", none, NULL) < 0 ? errno : 0;
	memset(longer, 'x', sizeof(longer));
	longer[0] = longer[8] = '/';
	memcpy(longer + 1, "nowhere", 7);
	for (size_t i = 200; i < sizeof(longer); i += 200)
		longer[i] = '/';
	longer[sizeof(longer) - 1] = 0;
	results[4] = syscall(SYS_execve, longer, none, NULL) < 0 ? errno : 0;
	return 0;
}

static void test_missing(void)
{
	struct box b = make_box();

	ok(box_run(&b, missing) == 0, "programs are looked for");
	ok(results[0] == ENOENT && results[1] == ENOENT && results[2] == ENOTDIR &&
		   results[3] == ENOENT && results[4] == ENOENT,
	   "errors like the kernel's (%d %d %d %d %d)", results[0], results[1], results[2],
	   results[3], results[4]);
	ok(b.events_n == 4, "what is known not to be there is no start (%zu)", b.events_n);
	is_str(b.events[0].object, "nowhere", "anything else is seen");
}

static void test_bytes(void)
{
	struct mediate_event e = { .op = MEDIATE_WRITE,
				   .denied = true,
				   .sys = 13,
				   .rule = 4,
				   .pid = 7,
				   .dev = UINT64_MAX,
				   .ino = 9,
				   .comm = "cp",
				   .object = "/a",
				   .extra = "why" },
			     got;
	char bytes[sizeof(e) + 1];
	size_t n = event_encode(&e, bytes);

	ok(n == offsetof(struct mediate_event, object) + 7, "as short as it is");
	ok(event_decode(bytes, n, &got) && got.op == e.op && got.denied && got.sys == 13 &&
		   got.rule == 4 && got.pid == 7 && got.dev == e.dev &&
		   got.ino == e.ino && !strcmp(got.comm, "cp") &&
		   !strcmp(got.object, "/a") && !strcmp(got.extra, "why"),
	   "there and back");
	for (size_t i = 0; i < n; i++)
		if (event_decode(bytes, i, &got))
			ok(false, "%zu of %zu bytes are no event", i, n);
	bytes[n] = 0;
	ok(!event_decode(bytes, n + 1, &got), "nor is more than one");
	bytes[offsetof(struct mediate_event, denied)] = 2;
	ok(!event_decode(bytes, n, &got), "yes and no are all there is");
	bytes[offsetof(struct mediate_event, denied)] = 1;
	bytes[offsetof(struct mediate_event, reason)] = CAP_REASONS;
	ok(!event_decode(bytes, n, &got), "an unknown reason is none");
	bytes[offsetof(struct mediate_event, reason)] = CAP_REASONS - 1;
	ok(event_decode(bytes, n, &got) && got.reason == CAP_REASON_SOCKET, "the last one is");
	memset(bytes + offsetof(struct mediate_event, comm), 'x', sizeof(e.comm));
	ok(!event_decode(bytes, n, &got), "a name has an end");
	memset(e.object, 'o', sizeof(e.object) - 1);
	memset(e.extra, 'e', sizeof(e.extra) - 1);
	n = event_encode(&e, bytes);
	ok(n == sizeof(e) - (sizeof(e) - offsetof(struct mediate_event, extra) - MEDIATE_TEXT) &&
		   event_decode(bytes, n, &got) && !strcmp(got.extra, e.extra),
	   "as long as it can be");
}

int main(void)
{
	test_plain();
	test_borders();
	test_missing();
	test_bytes();
	return tap_done();
}
