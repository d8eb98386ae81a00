/*
 * Who waits outside: listeners, a victim, a terminal, shared memory. One process
 * per scene, which notes in state/events whatever reaches it, and ends by itself.
 */
#include "escape.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { WATCHED = 2000, LIFE_SECONDS = 3600 };

enum post_kind { POST_NONE = 0, POST_STREAM, POST_DGRAM, POST_PASSER, POST_TERMINAL };

struct post {
	int fd;
	enum post_kind kind;
	const struct row *row;
};

struct keep {
	const char *dir;
	FILE *targets;
	struct post posts[WATCHED];
	size_t n;
	const struct row *const *rows;
	size_t rows_n;
	const struct row *dialler;
	int dial_port;
	pid_t runner; /* without it nobody would end us */
	bool count_tasks;
	long tasks_most;
};

static volatile sig_atomic_t told_to_end;

static void on_end(int sig)
{
	(void)sig;
	told_to_end = 1;
}

static void event(const struct keep *k, const struct row *row, const char *what)
{
	char line[256];
	const int n = snprintf(line, sizeof(line), "%s %s\n", row->id, what);
	const int fd = open(path("%s/state/events", k->dir), O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, line, (size_t)n);
	close(fd);
}

static void post(struct keep *k, int fd, enum post_kind kind, const struct row *row)
{
	if (fd < 0 || k->n >= WATCHED)
		return;
	k->posts[k->n++] = (struct post){ fd, kind, row };
}

static void tell(struct keep *k, const struct row *row, const char *key, const char *value)
{
	(void)fprintf(k->targets, "%s %s %s\n", row->id, key, value);
}

static int unix_listener(const char *name, bool abstract, int type)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const size_t n = strlen(name);

	if (n + 2 > sizeof(un.sun_path))
		return -1;
	memcpy(un.sun_path + abstract, name, n + !abstract);
	const socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
	const int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (void *)&un, len) < 0)
		return -1;
	if (type != SOCK_DGRAM && listen(fd, 16) < 0)
		return -1;
	return fd;
}

static void unix_posts(struct keep *k, const struct row *row, bool abstract)
{
	static const struct {
		const char *kind;
		int type;
	} kinds[] = { { "stream", SOCK_STREAM },
		      { "dgram", SOCK_DGRAM },
		      { "seq", SOCK_SEQPACKET } };

	for (size_t i = 0; i < LENGTH(kinds); i++) {
		const char *name = abstract ? abstract_name(k->dir, row->id, kinds[i].kind)
					    : path("%s/out/%s/%s", k->dir, row->id, kinds[i].kind);
		post(k, unix_listener(name, abstract, kinds[i].type),
		     kinds[i].type == SOCK_DGRAM ? POST_DGRAM : POST_STREAM, row);
	}
}

static int inet_listener(const char *address, int port, int type, int proto)
{
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	const bool six = strchr(address, ':');
	const int fd = socket(six ? AF_INET6 : AF_INET, type | SOCK_CLOEXEC, proto);
	const int one = 1;

	(void)inet_pton(AF_INET6, address, &a6.sin6_addr);
	(void)inet_pton(AF_INET, address, &a4.sin_addr);
	if (fd < 0)
		return -1;
	/* TCP fast open is on, so that a first packet with data is seen as such. */
	if (type == SOCK_STREAM)
		(void)setsockopt(fd, IPPROTO_TCP, 23 /* TCP_FASTOPEN */, &one, sizeof(one));
	if (bind(fd, six ? (void *)&a6 : (void *)&a4, six ? sizeof(a6) : sizeof(a4)) < 0 ||
	    (type == SOCK_STREAM && listen(fd, 16) < 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int port_of(int fd)
{
	struct sockaddr_in a = { 0 };
	socklen_t n = sizeof(a);

	return getsockname(fd, (void *)&a, &n) < 0 ? 0 : ntohs(a.sin_port);
}

static void inet_posts(struct keep *k, const struct row *row)
{
	const int first = inet_listener("127.0.0.1", 0, SOCK_STREAM, 0);
	const int port = port_of(first);

	post(k, first, POST_STREAM, row);
	post(k, inet_listener("127.0.0.2", port, SOCK_STREAM, 0), POST_STREAM, row);
	post(k, inet_listener("::1", port, SOCK_STREAM, 0), POST_STREAM, row);
	post(k, inet_listener("127.0.0.1", port, SOCK_DGRAM, 0), POST_DGRAM, row);
	post(k, inet_listener("::1", port, SOCK_DGRAM, 0), POST_DGRAM, row);
	if (row->need & NEED_LITE)
		post(k, inet_listener("127.0.0.1", port, SOCK_DGRAM, IPPROTO_UDPLITE), POST_DGRAM,
		     row);
	tell(k, row, "port", path("%d", port));
}

char victim_memory[64];

/* argv: NAME victim - SECRET; stands in for any other process of the same user. */
int victim_main(char **argv)
{
	(void)prctl(PR_SET_NAME, "escape-victim");
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The worst case: even where Yama would object, everybody may trace it. */
	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	fmt(victim_memory, sizeof(victim_memory), "%s", argv[3]);
	char line[64];
	const int n = snprintf(line, sizeof(line), "%p\n", (void *)victim_memory);
	(void)!write(1, line, (size_t)n);
	close(1);
	for (;;)
		(void)pause();
}

static void victim_post(struct keep *k, const struct row *row)
{
	char secret[SECRET_SIZE];
	char line[64] = "";
	int ends[2];

	secret_of(k->dir, row, secret);
	if (pipe(ends) < 0)
		return;
	const pid_t pid = fork();
	if (pid == 0) {
		char *const argv[] = { (char[]){ "writ-escape" }, (char[]){ "victim" },
				       (char[]){ "-" }, secret, NULL };
		char *const env[] = { (char *)(uintptr_t)path("VICTIM_SECRET=%s", secret), NULL };
		const char *base = path("%s/out/%s", k->dir, row->id);

		(void)setpgid(0, 0);
		(void)signal(SIGTERM, SIG_DFL);
		(void)!dup2(open(path("%s/f", base), O_RDWR | O_CLOEXEC), VICTIM_FD);
		(void)dup2(ends[1], 1);
		if (chdir(base) == 0)
			(void)execve("/proc/self/exe", argv, env);
		_exit(99);
	}
	close(ends[1]);
	(void)!read(ends[0], line, sizeof(line) - 1);
	close(ends[0]);
	line[strcspn(line, "\n")] = 0;
	tell(k, row, "victim", path("%d", (int)pid));
	tell(k, row, "memory", line);
	nap(2);
	struct text t = { 0 };
	victim_state(&t, pid, strtoul(line, NULL, 0));
	(void)write_file(path("%s/state/%s.victim", k->dir, row->id), t.v);
	free(t.v);
}

static void sysv_post(struct keep *k, const struct row *row)
{
	char secret[SECRET_SIZE];
	struct {
		long type;
		char text[SECRET_SIZE];
	} msg = { 1, "" };

	secret_of(k->dir, row, secret);
	const int key = (int)strtol(path("%.7s", secret), NULL, 16) | 1;
	const int shm = shmget(key, 4096, IPC_CREAT | 0600);
	char *p = shm < 0 ? (char *)-1 : shmat(shm, NULL, 0);
	if (p != (char *)-1)
		memcpy(p, secret, sizeof(secret));
	const int sem = semget(key, 1, IPC_CREAT | 0600);
	if (sem >= 0)
		(void)semctl(sem, 0, SETVAL, 7);
	const int queue = msgget(key, IPC_CREAT | 0600);
	memcpy(msg.text, secret, sizeof(secret));
	if (queue >= 0)
		(void)msgsnd(queue, &msg, sizeof(msg.text), IPC_NOWAIT);
	tell(k, row, "key", path("%d", key));
	tell(k, row, "shmid", path("%d", shm));
}

static void mq_post(struct keep *k, const struct row *row)
{
	char secret[SECRET_SIZE];
	struct mq_attr attr = { .mq_maxmsg = 4, .mq_msgsize = 64 };

	secret_of(k->dir, row, secret);
	const long fd = syscall(SYS_mq_open, abstract_name(k->dir, row->id, "mq"),
				O_CREAT | O_RDWR | O_CLOEXEC, 0600, &attr);
	if (fd >= 0)
		(void)syscall(SYS_mq_timedsend, fd, secret, strlen(secret), 0, NULL);
}

static void key_post(struct keep *k, const struct row *row)
{
	char secret[SECRET_SIZE];

	secret_of(k->dir, row, secret);
	const long key = syscall(SYS_add_key, "user", abstract_name(k->dir, row->id, "key"), secret,
				 strlen(secret), KEY_SPEC_USER_KEYRING);
	if (key > 0) {
		(void)syscall(SYS_keyctl, KEYCTL_SETPERM, key, 0x3f3f0000);
		(void)syscall(SYS_keyctl, KEYCTL_SET_TIMEOUT, key, LIFE_SECONDS);
		tell(k, row, "keyid", path("%ld", key));
	}
}

static void pty_post(struct keep *k, const struct row *row)
{
	char secret[SECRET_SIZE];
	struct termios t;
	const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
		return;
	const char *name = path("%s", ptsname(master));
	const int slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0 || tcgetattr(slave, &t) < 0)
		return;
	cfmakeraw(&t);
	(void)tcsetattr(slave, TCSANOW, &t);
	secret_of(k->dir, row, secret);
	(void)!write(master, secret, strlen(secret));
	post(k, master, POST_TERMINAL, row);
	tell(k, row, "tty", name);
}

static void tmp_post(struct keep *k, const struct row *row)
{
	static const char *const dirs[] = { "/tmp", "/dev/shm" };
	char secret[SECRET_SIZE];

	secret_of(k->dir, row, secret);
	for (size_t i = 0; i < LENGTH(dirs); i++) {
		const char *name = path("%s/%s", dirs[i], abstract_name(k->dir, row->id, "tmp"));

		(void)write_file(name, secret);
	}
}

static void row_posts(struct keep *k, const struct row *row)
{
	const char *work = path("%s/work/%s", k->dir, row->id);

	if (row->need & NEED_UNIX)
		unix_posts(k, row, false);
	if (row->need & NEED_ABSTRACT)
		unix_posts(k, row, true);
	if (row->need & NEED_INET)
		inet_posts(k, row);
	if (row->need & NEED_WORK_SOCKET) {
		post(k, unix_listener(path("%s/host", work), false, SOCK_STREAM), POST_STREAM, row);
		post(k, unix_listener(path("%s/host-dgram", work), false, SOCK_DGRAM), POST_DGRAM,
		     row);
		post(k, unix_listener(path("%s/host-seq", work), false, SOCK_SEQPACKET),
		     POST_STREAM, row);
	}
	if (row->need & NEED_FD_PASSER)
		post(k, unix_listener(path("%s/host", work), false, SOCK_STREAM), POST_PASSER, row);
	if (row->need & NEED_VICTIM)
		victim_post(k, row);
	if (row->need & NEED_SYSV)
		sysv_post(k, row);
	if (row->need & NEED_MQ)
		mq_post(k, row);
	if (row->need & NEED_KEY)
		key_post(k, row);
	if (row->need & NEED_PTY)
		pty_post(k, row);
	if (row->need & NEED_TMP)
		tmp_post(k, row);
	if (row->need & NEED_DIAL) {
		const int fd = inet_listener("127.0.0.1", 0, SOCK_STREAM, 0);

		k->dial_port = port_of(fd);
		k->dialler = row;
		close(fd);
		tell(k, row, "dial", path("%d", k->dial_port));
	}
	k->count_tasks |= (row->by & BY_TASKS) != 0;
}

static void pass_canary(const struct keep *k, const struct row *row, int to)
{
	char space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { (char[]){ "x" }, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = space,
			      .msg_controllen = sizeof(space) };
	struct cmsghdr *cm = CMSG_FIRSTHDR(&msg);
	const int fd = open(path("%s/out/%s/f", k->dir, row->id), O_RDWR | O_CLOEXEC);

	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cm), &fd, sizeof(fd));
	(void)sendmsg(to, &msg, MSG_NOSIGNAL);
	close(fd);
}

static void serve(struct keep *k, const struct post *p)
{
	char buf[512];
	int fd = -1;

	switch (p->kind) {
	case POST_NONE:
		return;
	case POST_STREAM:
	case POST_PASSER:
		fd = accept4(p->fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			return;
		if (p->kind == POST_PASSER)
			pass_canary(k, p->row, fd);
		else
			event(k, p->row, "a connection came in");
		close(fd);
		return;
	case POST_DGRAM:
		if (recv(p->fd, buf, sizeof(buf), MSG_DONTWAIT) >= 0)
			event(k, p->row, "a datagram came in");
		return;
	case POST_TERMINAL:
		if (read(p->fd, buf, sizeof(buf)) > 0)
			event(k, p->row, "the other terminal was written to");
		return;
	}
}

static void dial_in(struct keep *k)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)k->dial_port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (void *)&a, sizeof(a)) == 0) {
		event(k, k->dialler, "a port opened inside can be reached from the host");
		k->dialler = NULL;
	}
	if (fd >= 0)
		close(fd);
}

/* By the name that an attempt gives itself and its children: those of this scene only. */
static void count_tasks(struct keep *k)
{
	DIR *d = opendir("/proc");
	char mark[64];
	long n = 0;

	fmt(mark, sizeof(mark), "%s\n", mark_of(k->dir));
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		char name[64];

		if (number_of(e->d_name) > 0 &&
		    read_text(path("/proc/%.20s/comm", e->d_name), name, sizeof(name)) > 0)
			n += !strcmp(name, mark);
	}
	if (d)
		(void)closedir(d);
	if (n <= k->tasks_most)
		return;
	k->tasks_most = n;
	(void)write_file(path("%s/state/tasks", k->dir), path("%ld", n));
}

static void clean_up(const struct keep *k)
{
	for (size_t i = 0; i < k->rows_n; i++) {
		const struct row *row = k->rows[i];

		if (row->need & NEED_SYSV) {
			char secret[SECRET_SIZE];

			secret_of(k->dir, row, secret);
			const int key = (int)strtol(path("%.7s", secret), NULL, 16) | 1;
			(void)shmctl(shmget(key, 0, 0), IPC_RMID, NULL);
			(void)semctl(semget(key, 0, 0), 0, IPC_RMID);
			(void)msgctl(msgget(key, 0), IPC_RMID, NULL);
		}
		if (row->need & NEED_MQ)
			(void)syscall(SYS_mq_unlink, abstract_name(k->dir, row->id, "mq"));
		if (row->need & NEED_KEY) {
			const long key = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING,
						 "user", abstract_name(k->dir, row->id, "key"), 0);
			(void)syscall(SYS_keyctl, KEYCTL_UNLINK, key, KEY_SPEC_USER_KEYRING);
		}
		if (row->need & NEED_TMP) {
			(void)unlink(path("/tmp/%s", abstract_name(k->dir, row->id, "tmp")));
			(void)unlink(path("/dev/shm/%s", abstract_name(k->dir, row->id, "tmp")));
		}
	}
}

static void run(struct keep *k)
{
	static struct pollfd fds[WATCHED];
	const time_t end = time(NULL) + LIFE_SECONDS;

	for (size_t i = 0; i < k->n; i++)
		fds[i] = (struct pollfd){ .fd = k->posts[i].fd, .events = POLLIN };
	while (!told_to_end && time(NULL) < end && (kill(k->runner, 0) == 0 || errno != ESRCH)) {
		const int n = poll(fds, k->n, k->dialler || k->count_tasks ? 15 : 1000);

		for (size_t i = 0; n > 0 && i < k->n; i++)
			if (fds[i].revents)
				serve(k, &k->posts[i]);
		if (k->dialler)
			dial_in(k);
		if (k->count_tasks)
			count_tasks(k);
	}
	clean_up(k);
	_exit(0);
}

int daemon_start(const char *dir, const struct row *const *rows, size_t n)
{
	static struct keep k;
	struct stat ns = { 0 };
	const pid_t runner = getppid();
	char byte = 0;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	const pid_t pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		const struct sigaction sa = { .sa_handler = on_end };

		const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		/* Whoever reads our output must not wait for those who stay. */
		for (int fd = 0; fd < 3; fd++)
			(void)dup2(null, fd);
		(void)setsid();
		(void)sigaction(SIGTERM, &sa, NULL);
		(void)signal(SIGCHLD, SIG_DFL);
		k = (struct keep){ .dir = dir, .rows = rows, .rows_n = n, .runner = runner };
		k.targets = fopen(path("%s/work/targets", dir), "we");
		if (!k.targets)
			_exit(99);
		(void)stat("/proc/self/ns/pid", &ns);
		(void)fprintf(k.targets, "* runner %d\n* daemon %d\n* pidns %lu\n", (int)runner,
			      (int)getpid(), (unsigned long)ns.st_ino);
		for (size_t i = 0; i < n; i++)
			row_posts(&k, rows[i]);
		(void)fclose(k.targets);
		(void)!write(ends[1], "x", 1);
		close(ends[1]);
		run(&k);
	}
	close(ends[1]);
	const ssize_t got = read(ends[0], &byte, 1);
	close(ends[0]);
	(void)write_file(path("%s/state/daemon", dir), path("%d", (int)pid));
	return got == 1 ? 0 : -EIO;
}
