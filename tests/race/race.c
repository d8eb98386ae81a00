#include "tap.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "mediated.h"

/*
 * One thread makes calls, another changes what they mean while they are under way:
 * the path in memory, the directory behind a descriptor, a link, an ancestor. What
 * lands outside the workspace, or at a protected name, is counted from outside.
 * A mediator that looks at the path and lets the kernel read it again is hit, which
 * shows that the harness can hit.
 */

static char base[64], ws[96], out[96];
static struct cap_set set;
static struct sv private_dirs[1];
static long want_flips = 100000;

/* Shared with the children. */
struct score {
	atomic_long flips, calls;
	atomic_int stop;
};
static struct score *score;

static char path[256], good[256], evil[256];

__attribute__((format(printf, 1, 2))) static void run_host(const char *fmt, ...)
{
	char cmd[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	if (system(cmd) != 0)
		ok(false, "%s", cmd);
}

static void fresh(void)
{
	run_host("rm -rf %s/ws %s/out && mkdir -p %s/ws/sub/deep/er %s/ws/other %s/out && printf "
		 "secret > "
		 "%s/out/secret && printf f > %s/ws/sub/secret",
		 base, base, base, base, base, base, base);
	atomic_store(&score->flips, 0);
	atomic_store(&score->calls, 0);
	atomic_store(&score->stop, 0);
}

/* Anything new in out/, anything changed, or a protected name. */
static int hits(void)
{
	char cmd[512];

	snprintf(cmd, sizeof(cmd),
		 "test \"$(ls -A %s)\" = secret && test \"$(cat %s/secret)\" = secret && test ! -e "
		 "%s/.envrc && "
		 "test ! -e %s/.git/hooks/x",
		 out, out, ws, ws);
	return system(cmd) == 0 ? 0 : 1;
}

static bool enough(void)
{
	return atomic_load(&score->stop) || (atomic_load(&score->flips) >= want_flips &&
					     atomic_load(&score->calls) >= want_flips / 50);
}

/* --- Who changes things --- */

/* The first byte that differs is enough to make it another path. */
static void *flip_path(void *arg)
{
	size_t at = 0;

	(void)arg;
	while (good[at] == evil[at])
		at++;
	while (!enough()) {
		memcpy(path + at, evil + at, strlen(evil + at) + 1);
		atomic_fetch_add(&score->flips, 1);
		memcpy(path + at, good + at, strlen(good + at) + 1);
	}
	return NULL;
}

static void *flip_fd(void *arg)
{
	const int a = open(good, O_PATH | O_DIRECTORY), b = open(evil, O_PATH | O_DIRECTORY);

	(void)arg;
	while (!enough()) {
		dup2(b, 50);
		atomic_fetch_add(&score->flips, 1);
		dup2(a, 50);
	}
	return NULL;
}

/* Moves two ancestors of where the caller stands, through the mediator. */
static void *flip_ancestor(void *arg)
{
	(void)arg;
	while (!enough()) {
		(void)rename(good, evil);
		(void)rename(evil, good);
		atomic_fetch_add(&score->flips, 2);
	}
	return NULL;
}

/* A process of the host: exchanges a directory and a link to out. */
static pid_t host_flips(const char *a, const char *b)
{
	const pid_t pid = fork();

	if (pid)
		return pid;
	while (!enough()) {
		if (syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 2) == 0)
			atomic_fetch_add(&score->flips, 1);
	}
	_exit(0);
}

/* --- Who calls --- */

enum act {
	ACT_OPEN,
	ACT_MKDIR,
	ACT_UNLINK,
	ACT_RENAME,
	ACT_LINK,
	ACT_SYMLINK,
	ACT_TRUNCATE,
	ACT_COUNT
};
static enum act act;

static void call_at(int dir, const char *name)
{
	int fd;

	switch (act) {
	case ACT_OPEN:
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		if (fd >= 0)
			close(fd);
		break;
	case ACT_MKDIR:
		(void)mkdirat(dir, name, 0755);
		break;
	case ACT_UNLINK:
		(void)unlinkat(dir, name, 0);
		break;
	case ACT_RENAME:
		(void)renameat(AT_FDCWD, "sub/secret", dir, name);
		(void)renameat(dir, name, AT_FDCWD, "sub/secret");
		break;
	case ACT_LINK:
		(void)!linkat(AT_FDCWD, "sub/secret", dir, name, 0);
		break;
	case ACT_SYMLINK:
		(void)!symlinkat("x", dir, name);
		break;
	case ACT_TRUNCATE:
		(void)!truncate(name, 0);
		break;
	case ACT_COUNT:
		break;
	}
	atomic_fetch_add(&score->calls, 1);
}

static int with_thread(void *(*flip)(void *), int dir, const char *name)
{
	pthread_t t;

	if (chdir(ws) < 0 || pthread_create(&t, NULL, flip, NULL) != 0)
		return 1;
	while (!enough())
		call_at(dir, name);
	pthread_join(t, NULL);
	return 0;
}

static int child_path(void)
{
	memcpy(path, good, sizeof(path));
	return with_thread(flip_path, AT_FDCWD, path);
}

static int child_fd(void)
{
	const int fd = open(good, O_PATH | O_DIRECTORY);

	if (dup2(fd, 50) != 50)
		return 1;
	return with_thread(flip_fd, 50, "hit");
}

static int child_links(void)
{
	if (chdir(ws) < 0)
		return 1;
	while (!enough())
		call_at(AT_FDCWD, path);
	return 0;
}

/* Stands deep and climbs, while its ancestors move. */
static int child_ancestor(void)
{
	pthread_t t;

	if (chdir(ws) < 0 || chdir("sub/deep/er") < 0 ||
	    pthread_create(&t, NULL, flip_ancestor, NULL) != 0)
		return 1;
	while (!enough()) {
		call_at(AT_FDCWD, "../../../../out/hit");
		call_at(AT_FDCWD, "../../../out/hit");
		call_at(AT_FDCWD, "../../ok");
	}
	pthread_join(t, NULL);
	return 0;
}

/* --- The honest mediator --- */

static struct box make_box(void)
{
	return (struct box){ .traps = BOX_WRITE,
			     .opt = { .set = &set,
				      .realm = SV("r"),
				      .workspace = sv_from(ws),
				      .private_dirs = private_dirs,
				      .private_dirs_n = 1 } };
}

static void judge(const char *name, struct box *b, int (*child)(void), pid_t host)
{
	const int r = box_run(b, child);

	atomic_store(&score->stop, 1);
	if (host > 0)
		(void)waitpid(host, NULL, 0);
	ok(r == 0 && hits() == 0 && atomic_load(&score->flips) >= want_flips,
	   "%s: %ld flips, %ld calls, %d hits", name, atomic_load(&score->flips),
	   atomic_load(&score->calls), hits());
}

static const char *act_name(enum act a)
{
	static const char *const names[] = { "open", "mkdir",	"unlink",  "rename",
					     "link", "symlink", "truncate" };

	return names[a];
}

static void race_path(void)
{
	struct box b = make_box();
	char name[64];

	for (act = 0; act < ACT_COUNT; act++) {
		fresh();
		snprintf(good, sizeof(good), "%s/hit", ws);
		snprintf(evil, sizeof(evil), "%s/%s", out,
			 act == ACT_UNLINK || act == ACT_TRUNCATE ? "secret" : "hit");
		snprintf(name, sizeof(name), "path in memory, %s", act_name(act));
		judge(name, &b, child_path, 0);
	}
	act = ACT_OPEN;
	fresh();
	snprintf(good, sizeof(good), "%s/xenvrc", ws);
	snprintf(evil, sizeof(evil), "%s/.envrc", ws);
	judge("path in memory, a protected name", &b, child_path, 0);
}

static void race_fd(void)
{
	struct box b = make_box();

	for (act = 0; act < ACT_TRUNCATE; act++) {
		char name[64];

		fresh();
		memcpy(good, ws, sizeof(ws));
		memcpy(evil, out, sizeof(out));
		snprintf(name, sizeof(name), "directory behind a descriptor, %s", act_name(act));
		judge(name, &b, child_fd, 0);
	}
}

static void race_links(void)
{
	struct box b = make_box();
	char a[256], l[256], name[64];
	pid_t host;

	for (act = 0; act < ACT_COUNT; act++) {
		fresh();
		run_host("ln -s %s %s/l", out, ws);
		snprintf(a, sizeof(a), "%s/sub", ws);
		snprintf(l, sizeof(l), "%s/l", ws);
		snprintf(path, sizeof(path), "sub/%s",
			 act == ACT_UNLINK || act == ACT_TRUNCATE ? "secret" : "hit");
		host = host_flips(a, l);
		snprintf(name, sizeof(name), "directory and link exchanged, %s", act_name(act));
		judge(name, &b, child_links, host);
	}
	fresh();
	act = ACT_OPEN;
	run_host("ln -s %s/secret %s/l && printf x > %s/f", out, ws, ws);
	snprintf(a, sizeof(a), "%s/f", ws);
	snprintf(path, sizeof(path), "f");
	host = host_flips(a, l);
	judge("file and link exchanged, open", &b, child_links, host);
}

static void race_ancestors(void)
{
	struct box b = make_box();

	act = ACT_OPEN;
	fresh();
	snprintf(good, sizeof(good), "%s/sub/deep", ws);
	snprintf(evil, sizeof(evil), "%s/other/deep", ws);
	judge("ancestors moved", &b, child_ancestor, 0);
}

/* --- The naive one --- */

/* Waits until the path has changed a few times, so that a busy machine cannot hide the race. */
static void wait_for_flips(void)
{
	const long start = atomic_load(&score->flips);

	for (int i = 0; i < 1000 && atomic_load(&score->flips) < start + 3; i++)
		usleep(10);
}

/* Reads the path, checks it, and lets the kernel read it again. */
static void naive(int listener, pid_t pid)
{
	for (;;) {
		struct seccomp_notif req = { 0 };
		struct seccomp_notif_resp resp = { 0 };
		char text[256] = "";
		struct iovec mine = { text, sizeof(text) - 1 }, its = { 0, sizeof(text) - 1 };
		struct pollfd p = { .fd = listener, .events = POLLIN };

		if (poll(&p, 1, 100) == 0) {
			if (waitpid(pid, NULL, WNOHANG) == pid)
				return;
			continue;
		}
		if (!(p.revents & POLLIN) || ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &req) < 0) {
			(void)waitpid(pid, NULL, 0);
			return;
		}
		its.iov_base = (void *)(uintptr_t)req.data.args[1];
		(void)!process_vm_readv((pid_t)req.pid, &mine, 1, &its, 1, 0);
		resp.id = req.id;
		if (sv_starts(sv_from(text), sv_from(ws)))
			resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		else
			resp.error = -EACCES;
		wait_for_flips();
		(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	}
}

static void race_control(void)
{
	int up[2], fd, pidfd;
	pid_t pid;

	act = ACT_OPEN;
	fresh();
	snprintf(good, sizeof(good), "%s/hit", ws);
	snprintf(evil, sizeof(evil), "%s/hit", out);
	if (pipe(up) < 0)
		return;
	pid = fork();
	if (pid == 0) {
		fd = box_filter(BOX_WRITE);
		if (write(up[1], &fd, sizeof(fd)) != sizeof(fd))
			_exit(1);
		usleep(50000);
		close(fd);
		_exit(child_path());
	}
	if (read(up[0], &fd, sizeof(fd)) != sizeof(fd))
		return;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	naive(fd, pid);
	ok(hits() != 0, "a mediator that trusts the pointer is hit: %ld flips, %ld calls",
	   atomic_load(&score->flips), atomic_load(&score->calls));
	close(fd);
	close(pidfd);
	close(up[0]);
	close(up[1]);
}

int main(int argc, char **argv)
{
	char text[128];

	if (getenv("WRIT_TEST_LONG") || (argc > 1 && strcmp(argv[1], "--long") == 0))
		want_flips = 1000000;
	score = mmap(NULL, sizeof(*score), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	snprintf(base, sizeof(base), "/tmp/writ-race-XXXXXX");
	if (score == MAP_FAILED || !mkdtemp(base))
		return 1;
	snprintf(ws, sizeof(ws), "%s/ws", base);
	snprintf(out, sizeof(out), "%s/out", base);
	private_dirs[0] = SV("/nowhere");
	box_cap(&set, CAP_GRANT, "fs.read:r:/**");
	snprintf(text, sizeof(text), "fs.write:r:%s/**", ws);
	box_cap(&set, CAP_GRANT, text);
	race_control();
	race_path();
	race_fd();
	race_links();
	race_ancestors();
	run_host("rm -rf %s", base);
	arena_clear(&box_arena);
	return tap_done();
}
