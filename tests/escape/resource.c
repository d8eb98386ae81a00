/* Taking more than was given, staying longer than allowed; and what must keep working. */
#include "escape.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1 << 20, LIFE_MS = 9000 };

/* Told to the outside as we go: we may not live to say it at the end. */
static void amount(const struct ctx *c, long n)
{
	(void)write_file(path("%s/amount", c->work), path("%ld", n));
}

/* More processes at once than the limit, each with the mark that is counted outside. */
static int fork_bomb(struct ctx *c)
{
	const long want = c->row->num + 400;
	int gate[2];
	long made = 0;

	say(c, "starts");
	if (prctl(PR_SET_NAME, mark_of(c->dir)) < 0 || pipe2(gate, O_CLOEXEC) < 0)
		return -errno;
	for (; made < want; made++) {
		const pid_t pid = fork();

		if (pid == 0) {
			char byte = 0;

			close(gate[1]);
			(void)!read(gate[0], &byte, 1); /* ends when the maker does */
			_exit(0);
		}
		if (pid < 0)
			break;
	}
	const int err = errno;
	say(c, "%ld processes at once", made);
	nap(400); /* time to be counted */
	close(gate[1]);
	for (long i = 0; i < made; i++)
		(void)wait(NULL);
	return made < want ? -err : 0;
}

static int hog(struct ctx *c, char *(*get)(size_t n))
{
	say(c, "starts");
	for (long n = 0; n < c->row->num + 64 * MIB; n += 16 * MIB) {
		char *p = get(16 * MIB);

		if (!p)
			return -ENOMEM;
		for (long i = 0; i < 16 * MIB; i += 4096)
			p[i] = 1;
		amount(c, n + 16 * MIB);
	}
	return 0;
}

static char *get_private(size_t n)
{
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static char *get_memfd(size_t n)
{
	const int fd = (int)syscall(SYS_memfd_create, "hog", 1u);

	if (fd < 0 || ftruncate(fd, (off_t)n) < 0)
		return NULL;
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

static int hog_heap(struct ctx *c)
{
	return hog(c, get_private);
}

static int hog_memfd(struct ctx *c)
{
	return hog(c, get_memfd);
}

enum { FAMILY = 16, MEMBER_MS = 5000 };

/* Takes its part, says so, and keeps it until nobody holds the gate any more. */
static void hog_member(long size, int told, int gate)
{
	char *p = get_private((size_t)size);
	char byte = 1;

	for (long k = 0; p && k < size; k += 4096)
		p[k] = 1;
	if (p && write(told, &byte, 1) == 1)
		(void)!read(gate, &byte, 1);
	_exit(0);
}

/* One more member; 0 unless it has taken all of its part. */
static pid_t hog_start(long size, const int gate[2])
{
	struct pollfd p = { .events = POLLIN };
	char byte = 0;
	int told[2];

	if (pipe2(told, O_CLOEXEC) < 0)
		return 0;
	const pid_t pid = fork();
	if (pid == 0) {
		close(gate[1]);
		hog_member(size, told[1], gate[0]);
	}
	close(told[1]);
	p.fd = told[0];
	const bool full = poll(&p, 1, MEMBER_MS) == 1 && read(told[0], &byte, 1) == 1;
	close(told[0]);
	return full ? pid : 0;
}

/* Several processes: what is limited per process only is not limited. */
static int hog_family(struct ctx *c)
{
	const long each = 48 * MIB;
	pid_t pids[FAMILY] = { 0 };
	int gate[2];

	say(c, "starts");
	if (pipe2(gate, O_CLOEXEC) < 0)
		return -errno;
	for (size_t i = 0; i < LENGTH(pids); i++) {
		long holds = 0;

		pids[i] = hog_start(each, gate);
		/* Those count who still hold theirs: others may have been killed for it. */
		for (size_t k = 0; k <= i; k++) {
			if (pids[k] > 0 && waitpid(pids[k], NULL, WNOHANG) != 0)
				pids[k] = 0;
			holds += pids[k] > 0;
		}
		amount(c, holds * each);
	}
	close(gate[1]);
	while (wait(NULL) > 0)
		;
	return 0;
}

static int fill(struct ctx *c, const char *where)
{
	static char block[MIB];
	char name[PATH_SIZE];

	fmt(name, sizeof(name), "%s", where);
	const int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	long n = 0;

	if (fd < 0)
		return -errno;
	say(c, "starts");
	while (n < c->row->num + 16 * MIB) {
		const ssize_t w = write(fd, block, sizeof(block));

		if (w <= 0)
			break;
		n += w;
		amount(c, n);
	}
	const int r = n < c->row->num ? -errno : 0;
	(void)unlink(name);
	return r;
}

static int fill_tmp(struct ctx *c)
{
	return fill(c, path("/tmp/fill-%d", (int)getpid()));
}

static int fill_shm(struct ctx *c)
{
	return fill(c, path("/dev/shm/fill-%d", (int)getpid()));
}

static int fill_work(struct ctx *c)
{
	return fill(c, path("%s/fill", c->work));
}

static int many_files(struct ctx *c)
{
	struct rlimit lim;
	long n = 0;

	(void)getrlimit(RLIMIT_NOFILE, &lim);
	lim.rlim_cur = lim.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &lim);
	say(c, "starts");
	while (n <= c->row->num + 100 && dup(0) >= 0)
		n++;
	amount(c, n);
	return n > c->row->num ? 0 : -EMFILE;
}

static int flood(struct ctx *c)
{
	static char line[65536];

	memset(line, 'y', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\n';
	say(c, "starts");
	for (long n = 0; n < c->row->num * 3; n += (long)sizeof(line))
		if (write(1, line, sizeof(line)) < 0)
			return -errno;
	return 0;
}

static void beat(const struct ctx *c)
{
	const char *name = path("%s/beat", c->work);
	const char *stop = path("%s/stop", c->work);

	for (int ms = 0; ms < LIFE_MS && access(stop, F_OK) < 0; ms += 40) {
		const int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

		(void)!write(fd, ".", 1);
		close(fd);
		nap(40);
	}
}

static void leave_streams(void)
{
	const int null = open("/dev/null", O_RDWR);

	for (int fd = 0; fd < 3; fd++)
		(void)dup2(null, fd);
}

static void ignore_all(void)
{
	for (int sig = 1; sig < 32; sig++)
		(void)signal(sig, SIG_IGN);
}

/* Forks twice, leaves the session, ignores everything that can be ignored. */
static int survivor(struct ctx *c)
{
	const pid_t pid = fork();

	if (pid == 0) {
		(void)setsid();
		if (fork() == 0) {
			ignore_all();
			leave_streams();
			beat(c);
			_exit(0);
		}
		_exit(0);
	}
	(void)wait_for(pid);
	nap(100);
	return 0;
}

static int survivor_reaper(struct ctx *c)
{
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	return survivor(c);
}

/* Stopped processes do not see SIGTERM; a stopped child of a stopped child ... */
static int survivor_stopped(struct ctx *c)
{
	const pid_t pid = fork();

	if (pid == 0) {
		(void)setsid();
		ignore_all();
		leave_streams();
		if (fork() == 0) {
			beat(c);
			(void)kill(getppid(), SIGKILL); /* nobody else would end it */
			_exit(0);
		}
		nap(50);
		(void)kill(getpid(), SIGSTOP);
		_exit(0);
	}
	nap(100);
	return 0;
}

static int survivor_vfork_storm(struct ctx *c)
{
	/* Always one step ahead of whoever kills one by one. */
	const pid_t pid = fork();

	if (pid == 0) {
		(void)setsid();
		leave_streams();
		for (int i = 0; i < 400 && access(path("%s/stop", c->work), F_OK) < 0; i++) {
			if (fork() > 0)
				_exit(0);
			const int fd =
				open(path("%s/beat", c->work), O_WRONLY | O_CREAT | O_APPEND, 0644);
			(void)!write(fd, ".", 1);
			close(fd);
			nap(10);
		}
		_exit(0);
	}
	(void)wait_for(pid);
	nap(60);
	return 0;
}

/* Runs on for ever; the runner kills what started it, or a time limit does. */
static int stay(struct ctx *c)
{
	say(c, "starts");
	ignore_all();
	const pid_t pid = fork();
	if (pid == 0) {
		leave_streams();
		beat(c);
		_exit(0);
	}
	leave_streams();
	beat(c);
	return 0;
}

static int zombies(struct ctx *c)
{
	int made = 0;

	say(c, "starts");
	for (int i = 0; i < 300; i++) {
		const pid_t pid = fork();

		if (pid == 0) {
			if (fork() == 0)
				_exit(0); /* orphaned at once: somebody else must reap it */
			_exit(0);
		}
		if (pid > 0)
			made += waitpid(pid, NULL, 0) == pid;
	}
	nap(100);
	return made == 300 ? 0 : -EAGAIN;
}

/* --- must work --- */

static int shell(struct ctx *c, const char *script)
{
	const pid_t pid = fork();

	if (pid == 0) {
		(void)dup2(1, 2);
		(void)execl("/bin/sh", "sh", "-ec", script, c->work, (char *)NULL);
		_exit(127);
	}
	return wait_for(pid);
}

static int use_files(struct ctx *c)
{
	return shell(
		c,
		"cd \"$0\"; mkdir -p u/v; echo a > u/a; echo b >> u/a; mv u/a u/v/b; ln u/v/b u/h; "
		"ln -s h u/s; cat u/s > u/t; cp -r u w; chmod 700 w; touch -d @1 w/t; rm -r u w");
}

static int use_pipes(struct ctx *c)
{
	return shell(c, "test \"$(seq 1 100 | sort -rn | head -1)\" = 100; echo $(uname) $(id -u) "
			">/dev/null; "
			": > /dev/null; head -c 10 /dev/urandom | wc -c | grep -q 10");
}

static int use_temp(struct ctx *c)
{
	return shell(c, "t=${TMPDIR:-/tmp}/u$$; echo x > $t; test \"$(cat $t)\" = x; rm $t");
}

static int use_git(struct ctx *c)
{
	return shell(c, "cd \"$0\"; cd ../..; cd work; export GIT_CONFIG_GLOBAL=/dev/null; "
			"g='git -c user.name=a -c user.email=a@b -c core.hooksPath=/dev/null'; "
			"echo c > src/new; "
			"$g add src/new; $g commit -qm one; echo d >> src/new; $g stash -q; $g "
			"stash pop -q; "
			"$g commit -qam two; $g checkout -qb side; $g log --oneline | grep -q two");
}

static int use_clone(struct ctx *c)
{
	return shell(
		c,
		"cd \"$0\"; export GIT_CONFIG_GLOBAL=/dev/null; git -C ../.. --version >/dev/null; "
		"cd ..; git status --short >/dev/null");
}

static int use_threads(struct ctx *c)
{
	return shell(c, "for i in 1 2 3 4 5 6 7 8; do sleep 0.05 & done; wait");
}

static int use_signals(struct ctx *c)
{
	return shell(c, "sleep 30 & p=$!; kill -STOP $p; kill -CONT $p; kill $p; wait $p || test "
			"$? -gt 128");
}

static int use_tools(struct ctx *c)
{
	return shell(c, "cd \"$0\"; printf 'all:\\n\\techo built > done\\n' > Makefile; "
			"if command -v make >/dev/null; then make -s; test -f done; fi; tar cf "
			"a.tar Makefile; tar tf a.tar >/dev/null");
}

static int use_memory(struct ctx *c)
{
	(void)c;
	char *p = get_private(64 * MIB);
	for (long i = 0; p && i < 64 * MIB; i += 4096)
		p[i] = 1;
	return p ? 0 : -ENOMEM;
}

/* clang-format off */
#define RES(id, fn, g, by, n, pol, what) { id, "resource", g, what, fn, NULL, by, 0, ROW_OWN | ROW_SERIAL, NULL, n, pol }
#define USE(id, fn, what) { id, "use", "fs.write", what, fn, NULL, BY_REPORT, 0, ROW_POSITIVE, NULL, 0, NULL }

static const struct row rows[] = {
	RES("RS-001", fork_bomb, "res.pids", BY_TASKS, 512, "limit pids 512", "more processes than the limit"),
	RES("RS-002", hog_heap, "res.memory", BY_AMOUNT, 320l * MIB, "limit memory 256M", "more memory than the limit: private"),
	RES("RS-003", hog_memfd, "res.memory", BY_AMOUNT, 320l * MIB, "limit memory 256M", "more memory than the limit: memfd"),
	RES("RS-004", hog_family, "res.memory", BY_AMOUNT, 480l * MIB, "limit memory 256M", "more memory than the limit: many processes"),
	RES("RS-005", fill_tmp, "res.disk", BY_AMOUNT, 48l * MIB, "limit disk 32M", "fill /tmp"),
	RES("RS-006", fill_shm, "res.disk", BY_AMOUNT, 48l * MIB, "limit disk 32M", "fill /dev/shm"),
	RES("RS-007", fill_work, "res.disk", BY_AMOUNT, 48l * MIB, "limit disk 32M", "fill the workspace"),
	RES("RS-008", many_files, "res.pids", BY_AMOUNT, 400, "limit files 400", "more open files than the limit"),
	RES("RS-009", flood, "res.output", BY_OUTPUT, 2l * MIB, "limit output 1M", "more output than the limit"),
	{ "RS-010", "resource", "res.time", "stay longer than the limit, ignoring signals", stay, NULL, BY_BEAT, 0, ROW_OWN | ROW_TIMED, NULL, 0, "limit session 1s" },
	{ "RS-020", "resource", "proc.signal", "a daemon survives the end of the session", survivor, NULL, BY_BEAT, 0, ROW_OWN, NULL, 0, NULL },
	{ "RS-021", "resource", "proc.signal", "a subreaper's daemon survives", survivor_reaper, NULL, BY_BEAT, 0, ROW_OWN, NULL, 0, NULL },
	{ "RS-022", "resource", "proc.signal", "a stopped parent's child survives", survivor_stopped, NULL, BY_BEAT, 0, ROW_OWN, NULL, 0, NULL },
	{ "RS-023", "resource", "proc.signal", "a chain of forks survives", survivor_vfork_storm, NULL, BY_BEAT, 0, ROW_OWN, NULL, 0, NULL },
	{ "RS-024", "resource", "proc.signal", "it runs on when the supervisor is killed", stay, NULL, BY_BEAT, 0, ROW_OWN | ROW_KILL_SUPERVISOR, NULL, 0, NULL },
};

static const struct row uses[] = {
	USE("OK-001", use_files, "make, move, link and remove files in the workspace"), USE("OK-002", use_pipes, "pipes, devices, substitution"),
	USE("OK-003", use_temp, "temporary files"),
	{ "OK-004", "use", "fs.write", "git add, commit, stash, branch", use_git, NULL, BY_REPORT, 0, ROW_POSITIVE | ROW_OWN, NULL, 0, NULL },
	USE("OK-005", use_clone, "git status below the top"), USE("OK-006", use_threads, "background jobs"), USE("OK-007", use_signals, "signals among own processes"),
	USE("OK-008", use_tools, "make and tar"), USE("OK-009", use_memory, "64 MiB of memory"), USE("OK-010", zombies, "300 orphans are reaped"),
};
/* clang-format on */

const struct table resource_rows = { rows, LENGTH(rows) };
const struct table use_rows = { uses, LENGTH(uses) };
