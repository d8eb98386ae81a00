/* A process that confines itself, judged by what it can do and by what the kernel says of it. */
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "scene.h"

/* What one child found: names with 'y' or 'n'. */
struct found {
	int partial, code;
	char text[256];
	char did[4096];
};

static struct found *found;

static void tell(const char *what, bool did)
{
	const size_t n = strlen(found->did);

	snprintf(found->did + n, sizeof(found->did) - n, "%s=%c ", what, did ? 'y' : 'n');
}

static bool did(const char *what, char answer)
{
	char want[128];

	snprintf(want, sizeof(want), " %s=%c ", what, answer);
	return strstr(found->did, want) != NULL;
}

static bool can_open(const char *dir, const char *name, int flags)
{
	char path[SCENE_PATH + 64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, flags | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void try_files(const struct scene *s)
{
	char a[SCENE_PATH + 64], b[SCENE_PATH + 64];

	tell("read-inside", can_open(s->work, "file", O_RDONLY));
	tell("read-outside", can_open(s->other, "secret", O_RDONLY));
	tell("write-inside", can_open(s->work, "new", O_WRONLY | O_CREAT));
	tell("write-outside", can_open(s->other, "new", O_WRONLY | O_CREAT));
	tell("read-usr", can_open("/usr", ".", O_RDONLY | O_DIRECTORY));
	tell("write-usr", can_open("/usr/lib", "os-release", O_WRONLY));
	snprintf(a, sizeof(a), "%s/secret", s->other);
	snprintf(b, sizeof(b), "%s/stolen", s->work);
	tell("link-in", link(a, b) == 0);
	tell("chmod-outside", chmod(a, 0600) == 0);
}

static void try_sockets(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = "/run/nobody" };
	int p[2];

	tell("inet", socket(AF_INET, SOCK_STREAM, 0) >= 0);
	tell("udp", socket(AF_INET, SOCK_DGRAM, 0) >= 0);
	tell("netlink", socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
	tell("unix", socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
	tell("dgram-pair", socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, p) == 0);
	tell("pair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p) == 0 &&
			     send(p[0], "x", 1, MSG_NOSIGNAL) == 1);
	tell("connect", connect(p[0], (struct sockaddr *)&un, sizeof(un)) == 0 || errno != EPERM);
	tell("bind", bind(p[0], (struct sockaddr *)&in, sizeof(in)) == 0 || errno != EPERM);
}

static int sh(const char *script)
{
	int status = -1;
	const pid_t pid = fork();

	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", script, (char *)NULL);
		_exit(126);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void try_undoing(const struct scene *s, struct writ_policy *wide)
{
	struct {
		uint64_t fs, net, scope;
	} all = { 1, 0, 0 };
	const int nothing = (int)syscall(SYS_landlock_create_ruleset, &all, 8, 0);
	char script[SCENE_PATH + 64];

	tell("privs-back", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0);
	tell("rules-again", nothing >= 0);
	/* A wider policy on top: it may load, and it opens nothing. */
	(void)writ_restrict_self(wide, 0, NULL, NULL);
	tell("read-after-wider", can_open(s->other, "secret", O_RDONLY));
	tell("file-still", can_open(s->work, "file", O_RDONLY));
	snprintf(script, sizeof(script), "cat %s/secret >/dev/null 2>&1", s->other);
	tell("child-reads", sh(script) == 0);
	snprintf(script, sizeof(script), "cat %s/file >/dev/null 2>&1", s->work);
	tell("child-works", sh(script) == 0);
	tell("mount", syscall(SYS_mount, "none", s->work, "tmpfs", 0, NULL) == 0);
	tell("unshare", syscall(SYS_unshare, 0x10000000 /* CLONE_NEWUSER */) == 0);
	tell("signal-parent", kill(getppid(), 0) == 0);
}

static bool status_is(const char *key, const char *value)
{
	char *text = scene_read("/proc/self/status");
	char want[64];
	bool yes;

	snprintf(want, sizeof(want), "\n%s:\t%s\n", key, value);
	yes = text && strstr(text, want);
	free(text);
	return yes;
}

/* Everything in a child: it does not come back. */
static void confined(const struct scene *s, struct writ_policy *p, struct writ_policy *wide,
		     uint32_t flags, int open_socket)
{
	struct writ_error err = { 0 };
	pid_t pid;

	memset(found, 0, sizeof(*found));
	found->did[0] = ' ';
	pid = fork();
	if (pid == 0) {
		if (open_socket)
			(void)socket(AF_INET, open_socket, 0);
		found->code = writ_restrict_self(p, flags, &found->partial, &err);
		snprintf(found->text, sizeof(found->text), "%s", err.text);
		if (found->code == 0) {
			tell("nnp", status_is("NoNewPrivs", "1"));
			tell("seccomp", status_is("Seccomp", "2"));
			tell("no-caps", status_is("CapEff", "0000000000000000"));
		}
		try_files(s);
		try_sockets();
		if (wide && found->code == 0)
			try_undoing(s, wide);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void test_confined(struct scene *s)
{
	struct writ_policy *p = scene_policy(s, "accept fs.write=partial\nallow write .");
	struct writ_policy *wide =
		scene_policy(s, "accept fs.write=partial\nallow read /\nallow write .");

	confined(s, p, wide, 0, 0);
	ok(found->code == 0 && found->partial == 0, "confined: %s", found->text);
	ok(did("nnp", 'y') && did("seccomp", 'y') && did("no-caps", 'y'), "the kernel says so");
	ok(did("read-inside", 'y') && did("write-inside", 'y'), "inside is open");
	ok(did("read-outside", 'n') && did("write-outside", 'n'), "outside is closed");
	ok(did("read-usr", 'y') && did("write-usr", 'n'), "the system can be read and not written");
	ok(did("link-in", 'n'), "nothing comes in by a link");
	ok(did("inet", 'n') && did("udp", 'n') && did("netlink", 'n') && did("unix", 'n'),
	   "no sockets");
	ok(did("dgram-pair", 'n') && did("pair", 'y'), "but pairs that stay");
	ok(did("connect", 'n') && did("bind", 'n'), "which cannot be turned elsewhere");
	ok(did("privs-back", 'n') && did("read-after-wider", 'n') && did("child-reads", 'n'),
	   "none of it can be undone");
	ok(did("file-still", 'y') && did("child-works", 'y'), "while what is allowed still works");
	ok(did("mount", 'n') && did("unshare", 'n'), "and no way around it");
	printf("#%s\n", found->did);
	writ_policy_free(p);
	writ_policy_free(wide);
}

/* What the parent sees: the control for all the refusals above. */
static void test_control(struct scene *s)
{
	struct writ_policy *p = scene_policy(s, "allow write .");

	confined(s, p, NULL, 0, 0);
	ok(found->code == WRIT_ERROR_UNENFORCEABLE && found->partial == 0,
	   "a directory is not held without a mediator: %s", found->text);
	ok(strstr(found->text, "fs.write=partial"), "and the text says what to accept");
	ok(did("read-outside", 'y') && did("write-outside", 'y') && did("inet", 'y') &&
		   did("unix", 'y') && did("chmod-outside", 'y') && did("connect", 'y') &&
		   did("dgram-pair", 'y'),
	   "refused, it has changed nothing");
	printf("#%s\n", found->did);
	writ_policy_free(p);
}

static void test_attributes(struct scene *s)
{
	struct writ_policy *p = scene_policy(s, "allow read .\nallow write ./file");

	confined(s, p, NULL, 0, 0);
	ok(found->code == 0, "a single file is held: %s", found->text);
	ok(did("write-inside", 'n') && did("read-inside", 'y'), "that file and no other");
	ok(did("chmod-outside", 'n'), "and no modes are changed where Landlock does not see it");
	writ_policy_free(p);
}

static void test_refusals(struct scene *s)
{
	static const char *const rules[] = {
		"allow net https://example.com",
		"allow read .\ndeny read ./file",
		"limit session 1m",
		"require audit=exact",
		"require fs.metadata=exact",
		"require cred=exact",
		"env TOKEN",
		"allow read ./*.txt",
		"isolation >= vm",
		"allow put .",
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		struct writ_policy *p = scene_policy(s, rules[i]);

		if (!p) {
			ok(false, "%s: not even loaded", rules[i]);
			continue;
		}
		confined(s, p, NULL, 0, 0);
		ok(found->code == WRIT_ERROR_UNENFORCEABLE && found->partial == 0 &&
			   did("inet", 'y'),
		   "refused, and nothing done: %s", found->text);
		writ_policy_free(p);
	}
}

/* Neither the files of writ nor what holds them may be written. */
static void test_own(struct scene *s)
{
	char rules[SCENE_PATH + 64];
	struct writ_policy *p;

	snprintf(rules, sizeof(rules), "accept fs.write=partial\nallow write %s", s->home);
	p = scene_policy(s, rules);
	confined(s, p, NULL, 0, 0);
	ok(p && found->code == WRIT_ERROR_UNENFORCEABLE && strstr(found->text, "files of writ"),
	   "what holds the files of writ is not writable: %s", found->text);
	writ_policy_free(p);
}

static void test_exec(struct scene *s)
{
	struct writ_policy *p = scene_policy(s, "allow read .\nallow shell none");
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		if (sh("exit 3") != 3 || writ_restrict_self(p, 0, NULL, NULL) < 0)
			_exit(1);
		_exit(sh("exit 3") == 126 ? 0 : 2);
	}
	waitpid(pid, &status, 0);
	ok(p && WIFEXITED(status) && WEXITSTATUS(status) == 0, "shell none: nothing is run: %d",
	   status);
	writ_policy_free(p);
}

static void *wait_here(void *arg)
{
	pause();
	return arg;
}

static void test_process(struct scene *s)
{
	struct writ_policy *p = scene_policy(s, "allow read .");
	struct writ_error err = { 0 };
	pthread_t thread;
	pid_t pid;

	confined(s, p, NULL, 0, SOCK_STREAM);
	ok(found->code == WRIT_ERROR_UNENFORCEABLE, "an open socket to the network is refused: %s",
	   found->text);
	confined(s, p, NULL, WRIT_RESTRICT_KEEP_SOCKETS, SOCK_STREAM);
	ok(found->code == 0, "unless it is meant to stay");
	ok(writ_restrict_self(p, 1u << 30, NULL, &err) == WRIT_ERROR_ARGUMENT,
	   "unknown flags are refused");
	pid = fork();
	if (pid == 0) {
		pthread_create(&thread, NULL, wait_here, NULL);
		found->code = writ_restrict_self(p, 0, &found->partial, &err);
		snprintf(found->text, sizeof(found->text), "%s", err.text);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	ok(found->code == WRIT_ERROR_DENIED && found->partial == 0,
	   "two threads are one too many: %s", found->text);
	writ_policy_free(p);
}

/* A library call inside: what needs a sandbox of its own fails, and does not hang. */
static void test_inside(struct scene *s)
{
	struct writ_policy *p = scene_policy(s, "allow read .");
	struct scene_output *out = calloc(1, sizeof(*out));
	struct writ_exit how;
	struct writ_error err = { 0 };
	pid_t pid = fork();

	if (pid == 0) {
		alarm(20);
		if (writ_restrict_self(p, 0, NULL, &err) < 0)
			_exit(1);
		_exit(scene_sh(p, "true", out, &how, &err) < 0 ? 7 : 8);
	}
	int status = 0;

	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 7, "no sandbox can be made inside: %d",
	   status);
	free(out);
	writ_policy_free(p);
}

int main(void)
{
	struct scene s = { 0 };

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	found = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (found == MAP_FAILED)
		return 1;
	scene_make(&s);
	test_control(&s);
	test_confined(&s);
	test_attributes(&s);
	test_refusals(&s);
	test_own(&s);
	test_exec(&s);
	test_process(&s);
	test_inside(&s);
	scene_clear(&s);
	return tap_done();
}
