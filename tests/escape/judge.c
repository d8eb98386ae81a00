/* Outside again: what can be seen of an attempt. */
#include "escape.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Everything about a process that another process could change. */
void victim_state(struct text *t, pid_t pid, uintptr_t memory_at)
{
	char buf[4096];
	char memory[sizeof(victim_memory)] = "";
	struct rlimit lim = { 0 };
	cpu_set_t cpus;
	struct iovec to = { memory, sizeof(memory) };
	struct iovec from = { (void *)memory_at, sizeof(memory) };

	CPU_ZERO(&cpus);
	(void)read_text(path("/proc/%d/status", (int)pid), buf, sizeof(buf));
	const char *state = strstr(buf, "State:\t");
	const char *tracer = strstr(buf, "TracerPid:");
	/* Running or waiting is chance; stopped, dead or gone is somebody's doing. */
	const bool lives = state && strchr("RSDI", state[7]);
	text_add(t, "%s tracer=%ld",
		 lives	 ? "lives"
		 : state ? "stopped or dead"
			 : "gone",
		 tracer ? number_of(tracer + strlen("TracerPid:")) : 0);
	(void)read_text(path("/proc/%d/oom_score_adj", (int)pid), buf, sizeof(buf));
	(void)prlimit(pid, RLIMIT_NOFILE, NULL, &lim);
	(void)sched_getaffinity(pid, sizeof(cpus), &cpus);
	text_add(t, " oom=%ld files=%lu nice=%d sched=%d cpus=%d io=%ld", number_of(buf),
		 (unsigned long)lim.rlim_cur, getpriority(PRIO_PROCESS, (id_t)pid),
		 sched_getscheduler(pid), CPU_COUNT(&cpus), syscall(SYS_ioprio_get, 1, (int)pid));
	(void)read_text(path("/proc/%d/timerslack_ns", (int)pid), buf, sizeof(buf));
	text_add(t, " slack=%ld", number_of(buf));
	(void)read_text(path("/proc/%d/coredump_filter", (int)pid), buf, sizeof(buf));
	text_add(t, " filter=%.8s", buf);
	(void)process_vm_readv(pid, &to, 1, &from, 1, 0);
	text_add(t, " memory=%.40s\n", memory);
}

static char *load(const char *name)
{
	static char buf[1 << 20];

	(void)read_text(name, buf, sizeof(buf));
	return buf;
}

/* The first line of @now that is not in @before, for people. */
static void explain(struct text *why, const char *dir, const char *before, const char *now)
{
	while (*now) {
		const size_t n = strcspn(now, "\n");
		char line[1200];

		fmt(line, sizeof(line), "%.*s", (int)(n < 1100 ? n : 1100), now);
		if (!strstr(before, line)) {
			line[strcspn(line, " ")] = 0;
			const size_t skip = strncmp(line, dir, strlen(dir)) ? 0 : strlen(dir) + 1;
			text_add(why, "changed: %.120s", line + skip);
			return;
		}
		now += n + (now[n] == '\n');
	}
	text_add(why, "something is missing");
}

static bool changed(const char *dir, const char *saved, struct text *now, struct text *why)
{
	const char *before = load(saved);
	const bool differs = strcmp(before, now->v ? now->v : "") != 0;

	if (differs)
		explain(why, dir, before, now->v ? now->v : "");
	free(now->v);
	*now = (struct text){ 0 };
	return differs;
}

static bool by_canary(const struct row *row, const char *dir, struct text *why)
{
	struct text now = { 0 };

	canary_state(&now, dir, row);
	return changed(dir, path("%s/state/%s.snap", dir, row->id), &now, why);
}

static bool by_watch(const struct row *row, const char *dir, struct text *why)
{
	struct text now = { 0 };

	snapshot(&now, watch_path(dir, row), true, false);
	return changed(dir, path("%s/state/%s.watch", dir, row->id), &now, why);
}

static bool by_secret(const struct row *row, const char *dir, const struct text *out,
		      struct text *why)
{
	char secret[SECRET_SIZE];

	secret_of(dir, row, secret);
	if (!secret[0] || !memmem(out->v, out->n, secret, strlen(secret)))
		return false;
	text_add(why, "the secret is in the output");
	return true;
}

static bool by_mtime(const struct row *row, const char *dir, const struct text *out,
		     struct text *why)
{
	struct stat st = { 0 };

	if (lstat(path("%s/out/%s/f", dir, row->id), &st) < 0)
		return false;
	const char *stamp = path("ns=%ld ", st.st_mtim.tv_nsec);
	if (!memmem(out->v, out->n, stamp, strlen(stamp)))
		return false;
	text_add(why, "the canary's time is in the output");
	return true;
}

static bool by_event(const struct row *row, const char *dir, struct text *why)
{
	char *line = load(path("%s/state/events", dir));
	const size_t n = strlen(row->id);

	for (; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		if (strncmp(line, row->id, n) != 0 || line[n] != ' ')
			continue;
		text_add(why, "%.*s", (int)strcspn(line + n + 1, "\n"), line + n + 1);
		return true;
	}
	return false;
}

static struct ctx outside(const struct row *row, const char *dir)
{
	struct ctx c = { .row = row };

	fmt(c.root, sizeof(c.root), "%s/work", dir);
	return c;
}

static bool by_victim(const struct row *row, const char *dir, struct text *why)
{
	struct ctx c = outside(row, dir);
	struct text now = { 0 };

	victim_state(&now, (pid_t)target_num(&c, "victim"), (uintptr_t)target_num(&c, "memory"));
	const char *before = load(path("%s/state/%s.victim", dir, row->id));
	const bool differs = strcmp(before, now.v) != 0;
	if (differs)
		text_add(why, "victim: %.150s", now.v);
	free(now.v);
	return differs;
}

static bool by_report(const struct row *row, const struct text *out, struct text *why)
{
	const char *mark = path("=%s 0\n", row->id);

	if (!memmem(out->v, out->n, mark, strlen(mark)))
		return false;
	text_add(why, "it worked, seen from inside");
	return true;
}

static bool by_beat(const struct row *row, const char *dir, struct text *why)
{
	const char *name = path("%s/work/%s/beat", dir, row->id);
	struct stat before = { 0 };
	struct stat after = { 0 };

	(void)stat(name, &before);
	nap(400);
	(void)stat(name, &after);
	(void)write_file(path("%s/work/%s/stop", dir, row->id), "");
	if (before.st_size == after.st_size)
		return false;
	text_add(why, "it still runs after the end");
	return true;
}

static bool by_mount(const char *dir, struct text *why)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096];
	bool found = false;

	while (f && fgets(line, sizeof(line), f)) {
		char where[PATH_SIZE];

		if (sscanf(line, "%*s %*s %*s %*s %1023s", where) == 1 &&
		    !strncmp(where, dir, strlen(dir))) {
			found = true;
			(void)umount2(where, MNT_DETACH);
		}
	}
	if (f)
		(void)fclose(f);
	if (found)
		text_add(why, "a mount made inside is visible outside");
	return found;
}

static bool by_ipc(const struct row *row, const char *dir, struct text *why)
{
	struct ctx c = outside(row, dir);
	char secret[SECRET_SIZE];
	const int key = (int)target_num(&c, "key");
	const char *p = shmat(shmget(key, 0, 0), NULL, SHM_RDONLY);

	secret_of(dir, row, secret);
	if (p == (char *)-1 || strcmp(p, secret) != 0 ||
	    semctl(semget(key, 0, 0), 0, GETVAL) != 7) {
		text_add(why, "shared memory or semaphore changed");
		return true;
	}
	return false;
}

static bool by_amount(const struct row *row, const char *name, bool size, struct text *why)
{
	char buf[64] = "";
	struct stat st = { 0 };
	long n = 0;

	if (size)
		n = stat(name, &st) < 0 ? 0 : (long)st.st_size;
	else if (read_text(name, buf, sizeof(buf)) > 0)
		n = number_of(buf);
	if (n <= row->num)
		return false;
	text_add(why, "%ld, the limit is %ld", n, row->num);
	return true;
}

/* Returns 1 if the attempt got out, and says how; 0 if it was held. */
int judge(const struct row *row, const char *dir, const struct text *out, struct text *ret_why)
{
	if (row->by & BY_CANARY && by_canary(row, dir, ret_why))
		return 1;
	if (row->by & BY_WATCH && by_watch(row, dir, ret_why))
		return 1;
	if (row->by & BY_SECRET && by_secret(row, dir, out, ret_why))
		return 1;
	if (row->by & BY_MTIME && by_mtime(row, dir, out, ret_why))
		return 1;
	if (row->by & BY_EVENT && by_event(row, dir, ret_why))
		return 1;
	if (row->by & BY_VICTIM && by_victim(row, dir, ret_why))
		return 1;
	if (row->by & BY_REPORT && by_report(row, out, ret_why))
		return 1;
	if (row->by & BY_BEAT && by_beat(row, dir, ret_why))
		return 1;
	if (row->by & BY_MOUNT && by_mount(dir, ret_why))
		return 1;
	if (row->by & BY_IPC && by_ipc(row, dir, ret_why))
		return 1;
	if (row->by & BY_TASKS && by_amount(row, path("%s/state/tasks", dir), false, ret_why))
		return 1;
	if (row->by & BY_AMOUNT &&
	    by_amount(row, path("%s/work/%s/amount", dir, row->id), false, ret_why))
		return 1;
	if (row->by & BY_OUTPUT && (long)out->n > row->num) {
		text_add(ret_why, "%zu bytes of output", out->n);
		return 1;
	}
	return 0;
}
