#include "tap.h"

#include "mediated.h"

#include <pthread.h>
#include <sched.h>

/* Where threads run that are given files, and the mediator that gives them. */

#define ERR(call) ((call) < 0 ? errno : 0)

static char ws[64];
static struct cap_set set;

static struct box make_box(unsigned traps)
{
	return (struct box){ .traps = traps,
			     .opt = { .set = &set, .realm = SV("r"), .workspace = sv_from(ws) } };
}

static int open_close(const char *path, int flags)
{
	const int fd = open(path, flags | O_CLOEXEC, 0644);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static bool runs_on(const cpu_set_t *want)
{
	cpu_set_t is;

	return sched_getaffinity(0, sizeof(is), &is) == 0 && CPU_EQUAL(&is, want);
}

static void *other_thread(void *arg)
{
	for (int i = 0; i < 200; i++)
		*(int *)arg |= open_close("old", O_RDWR);
	return NULL;
}

/* While a descriptor is handed over, who waits for it is kept on one processor. */
static int processors(void)
{
	cpu_set_t all, one;
	pthread_t t;
	int found = 0;

	if (chdir(ws) < 0 || sched_getaffinity(0, sizeof(all), &all) < 0)
		return 1;
	results[0] = open_close("old", O_RDWR);
	results[1] = runs_on(&all);
	results[2] = pthread_create(&t, NULL, other_thread, &found);
	results[3] = 0;
	for (int i = 0; i < 200; i++)
		results[3] |= open_close("old", O_RDWR);
	results[2] |= pthread_join(t, NULL);
	results[4] = found;
	results[5] = runs_on(&all);
	CPU_ZERO(&one);
	for (size_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all)) {
			CPU_SET(i, &one);
			break;
		}
	if (sched_setaffinity(0, sizeof(one), &one) < 0)
		return 2;
	results[6] = open_close("old", O_RDWR);
	results[7] = runs_on(&one);
	return 0;
}

static void test_processors(void)
{
	struct box b = make_box(BOX_WRITE);

	ok(box_run(&b, processors) == 0, "the program runs");
	ok(results[0] == 0 && results[1] == 1, "who was given a file runs where it could before");
	ok(results[2] == 0 && results[3] == 0 && results[4] == 0 && results[5] == 1,
	   "so may threads that ask in turn (%d %d %d)", results[2], results[3], results[4]);
	ok(results[6] == 0 && results[7] == 1, "or who chose one processor itself");
}

/* --- Numbers that are used again --- */

static int last_pid = -1; /* decides what the next process is called */

/* A process of that number, which was another's before: 0 in it, and -1 if there is none. */
static pid_t fork_as(pid_t want)
{
	for (int i = 0; i < 100; i++) {
		pid_t pid;

		if (lseek(last_pid, 0, SEEK_SET) < 0 || dprintf(last_pid, "%d", want - 1) < 0)
			return -1;
		pid = fork();
		if (pid == 0 && getpid() != want)
			_exit(0);
		if (pid == 0 || pid == want)
			return pid;
		(void)waitpid(pid, NULL, 0);
	}
	return -1;
}

/* The first opens by its directory, the second by a descriptor, and has another umask. */
static int reused(void)
{
	int dir, status = 1;
	pid_t first, second;

	if (chdir(ws) < 0)
		return 1;
	dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	first = fork();
	if (first == 0)
		_exit(open_close("old", O_RDWR) | open_close("old", O_RDWR | O_CREAT));
	if (first < 0 || waitpid(first, &status, 0) < 0 || status)
		return 2;
	second = fork_as(first);
	if (second < 0)
		return 3;
	if (second == 0) {
		umask(077);
		results[0] = ERR(openat(dir, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
		_exit(0);
	}
	return waitpid(second, &status, 0) < 0 || status ? 4 : 0;
}

static void test_reused(void)
{
	struct box b = make_box(BOX_WRITE);
	struct stat st = { 0 };
	char file[96];

	snprintf(file, sizeof(file), "%s/new", ws);
	last_pid = geteuid() ? -1 : open("/proc/sys/kernel/ns_last_pid", O_RDWR | O_CLOEXEC);
	if (last_pid < 0) {
		ok(true, "a number is used again # SKIP only root chooses them");
		return;
	}
	ok(box_run(&b, reused) == 0, "a number is used again (%d)", b.status);
	ok(results[0] == 0 && stat(file, &st) == 0 && (st.st_mode & 0777) == 0600,
	   "and who has it now is itself (%d %o)", results[0], st.st_mode & 0777);
	(void)unlink(file);
	close(last_pid);
}

/* From outside: whoever served such calls may run where it could before, too. */
static void test_mediator(void)
{
	struct box b = make_box(BOX_WRITE);
	cpu_set_t all;

	ok(sched_getaffinity(0, sizeof(all), &all) == 0 && box_run(&b, processors) == 0 &&
		   runs_on(&all),
	   "and so does the mediator");
}

int main(void)
{
	char text[128], file[96];

	snprintf(ws, sizeof(ws), "/tmp/writ-mediate-XXXXXX");
	if (!mkdtemp(ws))
		return 1;
	snprintf(text, sizeof(text), "fs.write:r:%s/**", ws);
	box_cap(&set, CAP_GRANT, text);
	box_cap(&set, CAP_GRANT, "fs.read:r:/**");
	snprintf(file, sizeof(file), "%s/old", ws);
	ok(mknod(file, S_IFREG | 0644, 0) == 0, "a file");
	test_processors();
	test_mediator();
	test_reused();
	(void)unlink(file);
	(void)rmdir(ws);
	arena_clear(&box_arena);
	return tap_done();
}
