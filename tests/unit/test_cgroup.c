/*
 * test_cgroup.c - limits that really stop processes, and nothing left behind
 *
 * What acts runs as whoever starts the test. As root, a user without rights is
 * tried too, and with cgroup version 2 a user to whom a part was delegated.
 */
#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "facts/probe.h"
#include "limit/cgroup.h"
#include "limit/limit_priv.h"

enum { MIB = 1 << 20 };

static char id[32]; /* of every session here: "PID-N" */

static const char *new_id(void)
{
	static int n;

	(void)snprintf(id, sizeof(id), "t%d-%d", (int)getpid(), n++);
	return id;
}

/* A directory whose name begins with @prefix, anywhere in the hierarchies. */
static int dirs_named(const char *dir, const char *prefix, int depth)
{
	char path[1024];
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d))) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
		(void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (depth < 6)
			n += dirs_named(path, prefix, depth + 1);
	}
	if (d)
		(void)closedir(d);
	return n;
}

static int left(void)
{
	char prefix[32];

	(void)snprintf(prefix, sizeof(prefix), "writ-t%d-", (int)getpid());
	return dirs_named("/sys/fs/cgroup", prefix, 0);
}

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		(void)closedir(d);
	return n;
}

/* ---- a process to be limited: it waits until it is let go ---- */

struct subject {
	pid_t pid;
	int go, said; /* write a byte to start it; it may say one byte */
};

static bool subject_start(struct subject *ret_s, void (*fn)(int say))
{
	int go[2], said[2];
	pid_t pid;
	char c;

	(void)fflush(stdout);
	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(said, O_CLOEXEC) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		(void)close(go[1]);
		(void)close(said[0]);
		if (read(go[0], &c, 1) == 1)
			fn(said[1]);
		_exit(0);
	}
	(void)close(go[0]);
	(void)close(said[1]);
	*ret_s = (struct subject){ pid, go[1], said[0] };
	return pid > 0;
}

static bool subject_go(const struct subject *s)
{
	return write(s->go, "!", 1) == 1;
}

static int subject_hear(const struct subject *s)
{
	unsigned char c;

	return read(s->said, &c, 1) == 1 ? c : -1;
}

/* Its wait status. */
static int subject_end(const struct subject *s, bool force, struct rusage *ret_used)
{
	struct rusage used;
	int status = -1;

	if (force)
		(void)kill(s->pid, SIGKILL);
	(void)wait4(s->pid, &status, 0, ret_used ? ret_used : &used);
	(void)close(s->go);
	(void)close(s->said);
	return status;
}

static void say(int fd, int what)
{
	const unsigned char c = (unsigned char)what;

	if (write(fd, &c, 1) != 1)
		_exit(9);
}

static void touch(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(8);
	for (size_t i = 0; i < size; i += 4096)
		p[i] = 1;
	(void)munmap(p, size);
}

static void touch_little(int out)
{
	touch((size_t)4 * MIB);
	say(out, 'l');
}

static void touch_much(int out)
{
	touch((size_t)256 * MIB);
	say(out, 'm');
}

static void wait_forever(int out)
{
	say(out, 'w');
	for (;;)
		(void)pause();
}

/* Forks until refused, at most 40; says how many it got. All stay. */
static void fork_many(int out)
{
	int n = 0;

	while (n < 40) {
		const pid_t pid = fork();

		if (pid < 0)
			break;
		if (pid == 0)
			for (;;)
				(void)pause();
		n++;
	}
	say(out, n);
	for (;;)
		(void)pause();
}

static void burn_second(int out)
{
	const int64_t end = clock_monotonic_ms() + 1000;
	volatile unsigned x = 0;

	while (clock_monotonic_ms() < end)
		for (int i = 0; i < 10000; i++)
			x = x + 1;
	say(out, 'b');
}

static volatile unsigned *counter;

static void count_on(int out)
{
	say(out, 'c');
	for (;;)
		++*counter;
}

/* ---- text ---- */

static const struct {
	const char *mountinfo, *self, *own, *parent, *memory, *cpu;
} places[] = {
	{ "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n",
	  "0::/user.slice/user-1000.slice/t.scope\n",
	  "/sys/fs/cgroup/user.slice/user-1000.slice/t.scope",
	  "/sys/fs/cgroup/user.slice/user-1000.slice", "", "" },
	{ "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/a\n", "/sys/fs/cgroup/a",
	  "/sys/fs/cgroup", "", "" },
	{ "30 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n", "0::/\n", "/sys/fs/cgroup", "",
	  "", "" },
	{ "30 23 0:26 /../.. /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n", "0::/x\n", "", "", "", "" },
	{ "30 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n", "0::/../other\n", "", "", "",
	  "" },
	{ "30 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n", "0::/a/../b\n", "", "", "", "" },
	{ "35 31 0:32 /docker/ab /cg/memory ro - cgroup cgroup rw,memory\n",
	  "4:memory:/docker/ab/c\n", "", "", "/cg/memory/c", "" },
	{ "35 31 0:32 /docker/ab /cg/memory ro - cgroup cgroup rw,memory\n",
	  "4:memory:/docker/abc\n", "", "", "", "" },
	{ "35 31 0:32 /docker/x /cg/first rw - cgroup cgroup rw,memory\n"
	  "36 31 0:32 / /cg/second rw - cgroup cgroup rw,memory\n"
	  "37 31 0:33 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
	  "41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n",
	  "4:memory:/a\n1:cpu,cpuacct:/b\n0::/\n", "/cg/unified", "", "/cg/second/a",
	  "/cg/cpu,cpuacct/b" },
	{ "30 23 0:26 / /a\\040b rw - cgroup2 cgroup2 rw\n", "0::/\n", "", "", "", "" },
	{ "30 23 0:26 / relative rw - cgroup2 cgroup2 rw\n", "0::/\n", "", "", "", "" },
	{ "\n- -\n30 23\n", "0\n::\n\n", "", "", "", "" },
	{ "", "", "", "", "", "" },
};

static void test_places(void)
{
	char longest[700], self[800];
	struct cgroup_places p;

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		facts_cgroup_places_parse(sv_from(places[i].mountinfo), sv_from(places[i].self),
					  &p);
		is_str(p.own, places[i].own, "our own");
		is_str(p.parent, places[i].parent, "its parent");
		is_str(p.v1[V1_MEMORY], places[i].memory, "that of the memory controller");
		is_str(p.v1[V1_CPU], places[i].cpu, "that of the cpu controller");
	}
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	(void)snprintf(self, sizeof(self), "0::/%s\n", longest);
	facts_cgroup_places_parse(SV("1 1 0:1 / /cg rw - cgroup2 cgroup2 rw\n"), sv_from(self), &p);
	is_str(p.own, "", "a path that is too long is none");
}

static void test_texts(void)
{
	static const char *const good[] = { "writ-a", "writ-0-9_Z" };
	static const char *const bad[] = { "",	       "writ",	   "writ-",   "writ-probe-7",
					   "writ-a/b", "writ-a.b", "xwrit-a", "writ-..",
					   "writ-a b", "writ-\n" };
	uint64_t v = 7;

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		ok(cgroup_name_ok(sv_from(good[i])), "%s is a name", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(!cgroup_name_ok(sv_from(bad[i])), "bad name %zu", i);
	ok(limit_keyed_number(SV("low 0\noom 1\noom_kill 12\n"), SV("oom_kill"), &v) && v == 12,
	   "a count");
	ok(!limit_keyed_number(SV("oom_killer 3\nx oom_kill 4\n"), SV("oom_kill"), &v) && v == 12,
	   "a key is a whole first word");
	ok(!limit_keyed_number(SV("max x\n"), SV("max"), &v), "not a number");
}

/* ---- limits ---- */

static int open_cgroup(const struct host_facts *f, const struct cgroup_limits *l, const char *name,
		       struct cgroup *ret, struct writ_err *err)
{
	struct cgroup c = { 0 };

	return cgroup_go_on(f, l, name, &c, err) < 0 ? err->code : (*ret = c, 0);
}

/* Opens, moves, lets go; false with a failed test. */
static bool limited(const struct host_facts *f, struct cgroup_limits l, void (*fn)(int),
		    struct cgroup *ret_c, struct subject *ret_s)
{
	struct writ_err err = { 0 };
	const int opened = open_cgroup(f, &l, new_id(), ret_c, &err);
	bool moved;

	if (!ok(opened == 0 && err.code == 0, "open %s: %s", err.what,
		err.sys ? strerror(err.sys) : ""))
		return false;
	moved = subject_start(ret_s, fn) && cgroup_add(ret_c, ret_s->pid, &err) == 0 &&
		subject_go(ret_s);
	return ok(moved, "move a process %s: %s", err.what, err.sys ? strerror(err.sys) : "");
}

static void test_memory(const struct host_facts *f)
{
	struct cgroup_hits hits = { 0 };
	struct writ_err err = { 0 };
	struct subject s;
	struct cgroup c;
	int status;

	if (!f->cgroup_memory) {
		ok(true, "memory # SKIP no cgroup for it here");
		return;
	}
	if (limited(f, (struct cgroup_limits){ .memory = 32 * MIB }, touch_little, &c, &s)) {
		ok(subject_hear(&s) == 'l' && subject_end(&s, false, NULL) == 0,
		   "less memory than the limit is fine");
		ok(cgroup_hits(&c, &hits, &err) == 0 && hits.oom == 0, "and hits nothing");
	}
	if (ok(subject_start(&s, touch_much) && cgroup_add(&c, s.pid, &err) == 0 && subject_go(&s),
	       "another process in the same")) {
		status = subject_end(&s, false, NULL);
		ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "too much is killed (%#x)",
		   (unsigned)status);
		ok(cgroup_hits(&c, &hits, &err) == 0 && hits.oom > 0 && hits.pids == 0,
		   "and counted %s", err.what);
	}
	cgroup_close(&c);
	ok(c.n == 0 && left() == 0, "no cgroup left");
}

static void test_pids(const struct host_facts *f)
{
	struct cgroup_hits hits = { 0 };
	struct writ_err err = { 0 };
	struct subject s;
	struct cgroup c;

	if (!f->cgroup_pids) {
		ok(true, "processes # SKIP no cgroup for it here");
		return;
	}
	if (limited(f, (struct cgroup_limits){ .pids = 100 }, fork_many, &c, &s)) {
		ok(subject_hear(&s) == 40, "fewer processes than the limit is fine");
		ok(cgroup_hits(&c, &hits, &err) == 0 && hits.pids == 0, "and hits nothing");
		cgroup_kill(&c);
		ok(WTERMSIG(subject_end(&s, false, NULL)) == SIGKILL, "killed");
	}
	cgroup_close(&c);
	if (limited(f, (struct cgroup_limits){ .pids = 10 }, fork_many, &c, &s)) {
		ok(subject_hear(&s) == 9, "ten processes and no more");
		ok(cgroup_hits(&c, &hits, &err) == 0 && hits.pids > 0 && hits.oom == 0,
		   "the refusal is counted %s", err.what);
	}
	cgroup_close(&c);
	ok(WTERMSIG(subject_end(&s, false, NULL)) == SIGKILL && left() == 0,
	   "closing kills, and leaves no cgroup");
}

/* In two steps: who is in it after the first is still there after the second. */
static void test_begun(const struct host_facts *f)
{
	const struct cgroup_limits ten = { .pids = 10 }, none = { 0 };
	struct writ_err err = { 0 };
	struct cgroup c, kept;
	struct subject s;
	int doors[CGROUP_DIRS];
	char name[32];
	size_t unified;

	(void)snprintf(name, sizeof(name), "%s", new_id());
	cgroup_begin(f, name, &c);
	if (c.n == 0) {
		ok(true, "two steps # SKIP no directory is made before the limits are known here");
		return;
	}
	ok(cgroup_doors(&c, doors, &unified) == c.n && unified <= 1 &&
		   (unified == 0 ||
		    (c.dir[c.n - 1].controls & CTL_V2 && doors[0] == c.dir[c.n - 1].fd)),
	   "the unified one comes first");
	if (!ok(subject_start(&s, fork_many) && cgroup_add(&c, s.pid, &err) == 0, "a process: %s",
		err.what)) {
		cgroup_close(&c);
		return;
	}
	kept = c;
	ok(cgroup_go_on(f, &none, name, &c, &err) == 0 && c.n == kept.n,
	   "no limit changes nothing");
	ok(cgroup_go_on(f, &ten, name, &c, &err) == 0 && c.n >= kept.n &&
		   strcmp(c.dir[0].path, kept.dir[0].path) == 0,
	   "the second step keeps the first: %s", err.what);
	ok(cgroup_add(&c, s.pid, &err) == 0 && cgroup_add(&c, s.pid, &err) == 0,
	   "adding who is there: %s", err.what);
	ok(subject_go(&s) && subject_hear(&s) == 9, "and it has its limit");
	cgroup_close(&c);
	ok(WTERMSIG(subject_end(&s, false, NULL)) == SIGKILL && left() == 0, "nothing is left");

	struct host_facts without = *f;

	without.cgroup_pids = false;
	cgroup_begin(&without, new_id(), &c);
	ok(c.n == 0 && left() == 0, "where processes cannot be limited nothing is begun");
	cgroup_begin(f, name, &c);
	ok(cgroup_go_on(&without, &ten, name, &c, &err) == WRIT_E_UNENFORCEABLE && c.n == 0 &&
		   left() == 0,
	   "a second step that fails leaves nothing: %s", err.what);
}

static uint64_t throttled(const struct cgroup *c)
{
	char text[1024];
	uint64_t v = UINT64_MAX;

	for (size_t i = 0; i < c->n; i++)
		if (c->dir[i].controls & CTL_CPU &&
		    limit_file_get(c->dir[i].fd, "cpu.stat", text, sizeof(text)) == 0)
			(void)limit_keyed_number(sv_from(text), SV("nr_throttled"), &v);
	return v;
}

static void test_cpu(const struct host_facts *f)
{
	struct subject s;
	struct cgroup c;
	struct rusage used;
	long ms;

	if (!f->cgroup_cpu) {
		ok(true, "processor time # SKIP no cgroup for it here");
		return;
	}
	if (limited(f, (struct cgroup_limits){ .cpu = 4000 }, burn_second, &c, &s)) {
		ok(subject_hear(&s) == 'b' && subject_end(&s, false, NULL) == 0,
		   "a second of work");
		ok(throttled(&c) == 0, "below the limit nobody waits");
	}
	cgroup_close(&c);
	if (limited(f, (struct cgroup_limits){ .cpu = 200 }, burn_second, &c, &s)) {
		ok(subject_hear(&s) == 'b' && subject_end(&s, false, &used) == 0,
		   "the same, limited");
		ms = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
		     (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
		ok(ms <= 330, "a fifth of a processor: %ld ms in a second", ms);
		ok(throttled(&c) > 0 && throttled(&c) != UINT64_MAX, "it had to wait");
	}
	cgroup_close(&c);
	if (limited(f, (struct cgroup_limits){ .cpu = 1 }, touch_little, &c, &s))
		(void)subject_end(&s, true, NULL);
	cgroup_close(&c);
	ok(left() == 0, "no cgroup left");
}

/* ---- stopping and killing ---- */

static bool counts(void)
{
	const unsigned before = *counter;

	for (int i = 0; i < 300 && *counter == before; i++)
		clock_sleep_ms(1);
	return *counter != before;
}

static void check_freeze(const struct cgroup *c)
{
	struct writ_err err = { 0 };

	ok(counts(), "it runs");
	ok(cgroup_freeze(c, true, &err) == 0, "freeze: %s", err.what);
	ok(!counts(), "and it stands still");
	ok(cgroup_freeze(c, false, &err) == 0, "thaw: %s", err.what);
	ok(counts(), "and it runs again");
	ok(cgroup_freeze(c, true, &err) == 0, "freeze again");
}

static struct cgroup_limits some(const struct host_facts *f)
{
	return (struct cgroup_limits){ .memory = f->cgroup_memory ? 512 * MIB : 0,
				       .cpu = f->cgroup_cpu ? 2000 : 0,
				       .pids = f->cgroup_pids ? 200 : 0 };
}

static bool can_any(const struct host_facts *f)
{
	return f->cgroup_memory || f->cgroup_cpu || f->cgroup_pids;
}

static void test_freeze(const struct host_facts *f)
{
	struct subject s;
	struct cgroup c;

	if (!can_any(f) || !f->cgroup_freeze) {
		ok(true, "freezing # SKIP not here");
		return;
	}
	if (limited(f, some(f), count_on, &c, &s) && ok(subject_hear(&s) == 'c', "it has begun"))
		check_freeze(&c);
	cgroup_kill(&c);
	ok(WTERMSIG(subject_end(&s, false, NULL)) == SIGKILL, "what is frozen can be killed");
	cgroup_close(&c);
	ok(left() == 0, "no cgroup left");
}

/* The freezer of version 1, as on a machine that has nothing newer. */
static void test_old_freezer(void)
{
	struct cgroup c = { .n = 1, .dir[0] = { .controls = CTL_FREEZER } };
	struct cgroup_places p;
	struct writ_err err = { 0 };
	struct subject s;

	if (facts_cgroup_places_read(&p, &err) < 0 || !p.v1[V1_FREEZER][0] || geteuid() != 0) {
		ok(true, "the old freezer # SKIP not here, or not for us");
		return;
	}
	(void)snprintf(c.dir[0].path, sizeof(c.dir[0].path), "%.400s/writ-%s", p.v1[V1_FREEZER],
		       new_id());
	if (!ok(mkdir(c.dir[0].path, 0755) == 0, "a freezer"))
		return;
	c.dir[0].fd = open(c.dir[0].path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ok(subject_start(&s, count_on) && cgroup_add(&c, s.pid, &err) == 0 && subject_go(&s) &&
		       subject_hear(&s) == 'c',
	       "a process in it"))
		check_freeze(&c);
	cgroup_kill(&c);
	ok(WTERMSIG(subject_end(&s, false, NULL)) == SIGKILL, "killed while frozen");
	cgroup_close(&c);
	ok(left() == 0, "no cgroup left");
}

static void test_kill(const struct host_facts *f, bool slow)
{
	struct cgroup c, k;
	struct subject s;
	char text[256] = "";
	int64_t start;

	if (!can_any(f)) {
		ok(true, "killing # SKIP no cgroups here");
		return;
	}
	if (!limited(f, some(f), fork_many, &c, &s))
		return;
	ok(subject_hear(&s) == 40, "41 processes");
	k = c;
	for (size_t i = 0; slow && i < k.n; i++)
		k.dir[i].controls = 0; /* no help from the kernel */
	start = clock_monotonic_ms();
	cgroup_kill(&k);
	ok(WTERMSIG(subject_end(&s, false, NULL)) == SIGKILL, "%s: killed",
	   slow ? "one by one" : "at once");
	for (int i = 0; i < 500; i++) {
		if (limit_file_get(c.dir[0].fd, "cgroup.procs", text, sizeof(text)) == 0 &&
		    !text[0])
			break;
		clock_sleep_ms(1);
	}
	is_str(text, "", "nobody is left");
	cgroup_kill(&k);
	ok(clock_monotonic_ms() - start < 1000, "in %d ms", (int)(clock_monotonic_ms() - start));
	cgroup_close(&c);
	ok(left() == 0, "no cgroup left");
	cgroup_kill(&c);
	cgroup_close(&c);
}

/* A session that makes cgroups below its own must not keep us from removing it. */
static void test_nested(const struct host_facts *f, bool slow)
{
	char path[CGROUP_PATH + 16], text[32];
	struct subject s;
	struct cgroup c;

	if (!can_any(f)) {
		ok(true, "cgroups below # SKIP no cgroups here");
		return;
	}
	if (!limited(f, some(f), wait_forever, &c, &s))
		return;
	ok(subject_hear(&s) == 'w', "it waits");
	for (size_t i = 0; i < c.n; i++) {
		(void)snprintf(path, sizeof(path), "%s/below", c.dir[i].path);
		ok(mkdir(path, 0755) == 0, "a cgroup below %zu", i);
	}
	(void)snprintf(path, sizeof(path), "below/cgroup.procs");
	(void)snprintf(text, sizeof(text), "%d", (int)s.pid);
	ok(fd_put_at(c.dir[0].fd, path, text) == 0, "and the process moved there");
	for (size_t i = 0; slow && i < c.n; i++)
		c.dir[i].controls = 0;
	cgroup_close(&c);
	ok(left() == 0, "removed all the same");
	ok(WTERMSIG(subject_end(&s, true, NULL)) == SIGKILL, "and the process is gone");
}

/* ---- being refused ---- */

static void test_refused(const struct host_facts *f)
{
	const struct cgroup_limits none = { 0 }, one = { .memory = MIB }, much = { .cpu = 2000000 };
	struct host_facts without = *f;
	struct cgroup c = { .n = 7 };
	struct cgroup_hits hits = { 1, 1 };
	struct writ_err err = { 0 };

	without.cgroup_memory = false;
	ok(open_cgroup(&without, &one, "x", &c, &err) == WRIT_E_UNENFORCEABLE && c.n == 7,
	   "what the facts do not promise is refused: %s", err.what);
	ok(open_cgroup(f, &one, "a/b", &c, &err) == WRIT_E_BUG && c.n == 7, "a bad name");
	ok(open_cgroup(f, &one, "probe-1", &c, &err) == WRIT_E_BUG && c.n == 7, "the probe's name");
	if (f->cgroup_cpu)
		ok(open_cgroup(f, &much, new_id(), &c, &err) == WRIT_E_LIMIT && c.n == 7 &&
			   left() == 0,
		   "too many processors, and nothing left: %s", err.what);
	ok(open_cgroup(f, &none, "x", &c, &err) == 0 && c.n == 0, "nothing asked, nothing made");
	ok(cgroup_add(&c, getpid(), &err) == 0 && cgroup_hits(&c, &hits, &err) == 0 &&
		   hits.oom == 0 && hits.pids == 0,
	   "and an empty one does nothing");
	ok(cgroup_freeze(&c, true, &err) == WRIT_E_UNENFORCEABLE, "but it cannot freeze");
	cgroup_kill(&c);
	cgroup_close(&c);
}

/* Facts that promise what is not so: 0 if each limit was refused by the kernel. */
static int refuses_all(void)
{
	static const struct cgroup_limits each[] = { { .memory = MIB },
						     { .cpu = 500 },
						     { .pids = 5 } };
	struct host_facts f = { 0 };
	struct writ_err err = { 0 };
	struct cgroup c = { 0 };

	if (facts_probe(&f, &err) < 0 || can_any(&f))
		return 2;
	f.cgroup_memory = f.cgroup_cpu = f.cgroup_pids = true;
	for (size_t i = 0; i < ARRAY_LEN(each); i++)
		if (open_cgroup(&f, &each[i], new_id(), &c, &err) == 0 || err.what[0] == 0)
			return 3;
	return left() == 0 ? 0 : 4;
}

/* Runs @fn in a child, as user @uid if it is not 0; its exit status or -1. */
static int in_child(int (*fn)(void), uid_t uid)
{
	int status = -1;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (uid && (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
			    setresuid(uid, uid, uid) < 0))
			_exit(99);
		_exit(fn());
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static void test_user(const struct host_facts *f)
{
	if (geteuid() == 0)
		ok(in_child(refuses_all, 65534) == 0, "a user without rights is refused, cleanly");
	else if (can_any(f))
		ok(true, "a user without rights # SKIP this one has some");
	else
		ok(in_child(refuses_all, 0) == 0, "without rights: refused, cleanly");
}

/* ---- owners that die ---- */

/* Owns a cgroup until it is killed; 'o' after its directory is there. */
static struct host_facts owner_facts;

static void own_until_killed(int out)
{
	const struct cgroup_limits l = some(&owner_facts);
	struct writ_err err;
	struct subject s;
	struct cgroup c;

	if (open_cgroup(&owner_facts, &l, id, &c, &err) < 0 || !subject_start(&s, wait_forever) ||
	    cgroup_add(&c, s.pid, &err) < 0 || !subject_go(&s) || subject_hear(&s) != 'w')
		_exit(1);
	say(out, 'o');
	for (;;)
		(void)pause();
}

static void reap_all(void)
{
	int status;

	while (waitpid(-1, &status, WNOHANG) > 0)
		;
}

static pid_t first_member(const char *dir, const char *name, int depth)
{
	char path[1024], text[64];
	DIR *d = opendir(dir);
	struct dirent *e;
	uint64_t pid = 0;
	struct sv rest;

	while (d && !pid && (e = readdir(d))) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s/cgroup.procs", dir, e->d_name);
		if (strcmp(e->d_name, name) == 0 &&
		    limit_file_get(AT_FDCWD, path, text, sizeof(text)) == 0) {
			rest = sv_from(text);
			if (!sv_to_u64(sv_cut(&rest, '\n'), INT32_MAX, &pid))
				pid = 0;
		}
		(void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (!pid && depth < 6)
			pid = (uint64_t)first_member(path, name, depth + 1);
	}
	if (d)
		(void)closedir(d);
	return (pid_t)pid;
}

static void test_sweep(const struct host_facts *f)
{
	const struct cgroup_limits l = some(f);
	struct writ_err err = { 0 };
	struct subject s;
	struct cgroup c;
	char name[64];
	pid_t orphan;
	int had;

	if (!can_any(f)) {
		ok(true, "sweeping # SKIP no cgroups here");
		return;
	}
	owner_facts = *f;
	(void)snprintf(name, sizeof(name), "writ-%s", new_id());
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (!ok(subject_start(&s, own_until_killed) && subject_go(&s) && subject_hear(&s) == 'o',
		"a session in another process"))
		return;
	had = left();
	cgroup_sweep(f);
	ok(had > 0 && left() == had, "a living session is not swept");
	orphan = first_member("/sys/fs/cgroup", name, 0);
	ok(subject_end(&s, true, NULL) == SIGKILL, "its owner dies hard");
	cgroup_sweep(f);
	ok(left() == had, "with a process in it nothing is swept");
	if (ok(orphan > 1 && orphan != getpid(), "the orphan is known")) {
		(void)kill(orphan, SIGKILL);
		(void)waitpid(orphan, NULL, 0);
	}
	reap_all();
	ok(open_cgroup(f, &l, new_id(), &c, &err) == 0, "a session without a process yet");
	had = (int)c.n;
	cgroup_sweep(f);
	ok(left() == had, "the dead one is swept, the new one is not");
	cgroup_close(&c);
	ok(left() == 0, "no cgroup left");
	(void)prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

/* ---- version 2, delegated ---- */

static char top[96]; /* /sys/fs/cgroup/test-PID: with controllers on, and "leaf" below it */

static bool put_in(const char *file, const char *text)
{
	char path[256];
	int e;

	(void)snprintf(path, sizeof(path), "%s/%s", top, file);
	e = fd_put_at(AT_FDCWD, path, text);
	if (e)
		tap_note("%s: %s", path, strerror(e));
	return e == 0;
}

static bool give(const char *file, uid_t uid)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", top, file);
	return chown(path, uid, uid) == 0;
}

static bool make_top(uid_t uid)
{
	static const char *const given[] = { ".", "cgroup.procs", "cgroup.subtree_control", "leaf",
					     "leaf/cgroup.procs" };
	char leaf[128];
	bool good;

	(void)snprintf(top, sizeof(top), "/sys/fs/cgroup/test-%d", (int)getpid());
	(void)snprintf(leaf, sizeof(leaf), "%s/leaf", top);
	good = fd_put_at(AT_FDCWD, "/sys/fs/cgroup/cgroup.subtree_control", "+memory +pids +cpu") ==
		       0 &&
	       mkdir(top, 0755) == 0 && put_in("cgroup.subtree_control", "+memory +pids +cpu") &&
	       mkdir(leaf, 0755) == 0;
	for (size_t i = 0; good && i < ARRAY_LEN(given); i++)
		good = give(given[i], uid);
	return good;
}

static void remove_top(void)
{
	char leaf[128];

	(void)snprintf(leaf, sizeof(leaf), "%s/leaf", top);
	ok(rmdir(leaf) == 0 && rmdir(top) == 0, "the delegated part is empty again");
}

/* In the leaf: the probe promises all, the session is beside us, with our own limits. */
static int delegated(void)
{
	const struct cgroup_limits l = { .memory = 32 * MIB, .pids = 100, .cpu = 900 };
	struct host_facts f = { 0 };
	struct writ_err err = { 0 };
	struct cgroup_hits hits;
	struct subject s;
	struct cgroup c;
	char text[64];

	if (facts_probe(&f, &err) < 0 || !f.cgroup_memory || !f.cgroup_cpu || !f.cgroup_pids)
		return 1;
	if (open_cgroup(&f, &l, new_id(), &c, &err) < 0) {
		tap_note("%s: %s", err.what, err.sys ? strerror(err.sys) : "");
		return 2;
	}
	if (!c.v2 || c.n != 1 || strncmp(c.dir[0].path, top, strlen(top)) != 0 ||
	    strstr(c.dir[0].path, "/leaf"))
		return 3;
	if (limit_file_get(c.dir[0].fd, "pids.max", text, sizeof(text)) ||
	    strcmp(text, "50\n") != 0)
		return 4;
	if (limit_file_get(c.dir[0].fd, "cpu.max", text, sizeof(text)) ||
	    strcmp(text, "50000 100000\n") != 0)
		return 5;
	if (limit_file_get(c.dir[0].fd, "memory.max", text, sizeof(text)) ||
	    strcmp(text, "33554432\n") != 0)
		return 6;
	if (!subject_start(&s, touch_much) || cgroup_add(&c, s.pid, &err) < 0 || !subject_go(&s))
		return 7;
	if (WTERMSIG(subject_end(&s, false, NULL)) != SIGKILL || cgroup_hits(&c, &hits, &err) < 0 ||
	    hits.oom == 0)
		return 8;
	cgroup_close(&c);
	return left() == 0 ? 0 : 9;
}

/* In a session's own cgroup: another session would be beside it, so there is none. */
static int within(void)
{
	const struct cgroup_limits l = { .pids = 100 };
	struct host_facts f = { .cgroup = CGROUP_V2, .cgroup_pids = true };
	struct writ_err err = { 0 };
	struct cgroup c;

	return open_cgroup(&f, &l, new_id(), &c, &err) == WRIT_E_UNENFORCEABLE ? 0 : 1;
}

static int (*then)(void);
static const char *where;

/* Moves the child there, then becomes a user. */
static int move_and_do(void)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%d", (int)getpid());
	if (!put_in(where, text))
		return 98;
	return in_child(then, 65534);
}

static void test_delegated(const struct host_facts *f)
{
	char path[128];
	int code;

	if (geteuid() != 0 || f->cgroup != CGROUP_V2 || !f->cgroup_memory ||
	    access("/sys/fs/cgroup/cgroup.type", F_OK) == 0) {
		ok(true, "a delegated part # SKIP not root, or no cgroup version 2 from its root");
		return;
	}
	if (!ok(make_top(65534), "a part for a user"))
		return;
	ok(put_in("leaf/pids.max", "50") && put_in("leaf/cpu.max", "50000 100000") &&
		   put_in("leaf/memory.max", "1073741824"),
	   "limits on the user's own cgroup");
	then = delegated;
	where = "leaf/cgroup.procs";
	code = in_child(move_and_do, 0);
	ok(code == 0, "as the user: beside our own, with our own limits too (%d)", code);
	(void)snprintf(path, sizeof(path), "%s/writ-outer", top);
	then = within;
	where = "writ-outer/cgroup.procs";
	ok(mkdir(path, 0755) == 0 && chown(path, 65534, 65534) == 0 &&
		   in_child(move_and_do, 0) == 0 && rmdir(path) == 0,
	   "a session within a session has no limits of its own to give");
	remove_top();
}

int main(void)
{
	struct host_facts f = { 0 };
	struct writ_err err = { 0 };
	int fds;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	test_places();
	test_texts();
	if (!ok(counter != MAP_FAILED && facts_probe(&f, &err) == 0, "probe: %s", err.what))
		return tap_done();
	tap_note("cgroup %d, memory %d cpu %d pids %d kill %d freeze %d", (int)f.cgroup,
		 f.cgroup_memory, f.cgroup_cpu, f.cgroup_pids, f.cgroup_kill, f.cgroup_freeze);
	fds = descriptors();
	test_refused(&f);
	test_user(&f);
	test_memory(&f);
	test_pids(&f);
	test_begun(&f);
	test_cpu(&f);
	test_freeze(&f);
	test_old_freezer();
	test_kill(&f, false);
	test_kill(&f, true);
	test_nested(&f, false);
	test_nested(&f, true);
	test_sweep(&f);
	test_delegated(&f);
	ok(descriptors() == fds, "no descriptor left");
	return tap_done();
}
