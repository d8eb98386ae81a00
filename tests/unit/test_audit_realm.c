#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/realm.h"
#include "base/fd.h"
#include "crypto/crypto.h"

/* The log of a realm, in a directory of its own, which is looked at from outside. */

static char top[] = "/dev/shm/test-realm-XXXXXX";
static struct sign_public pub;
static struct sign_secret sec;
static struct note_key key;

static void sh(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void sh(const char *fmt, ...)
{
	char text[512];
	va_list ap;
	int status;
	pid_t pid;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pid = fork();
	if (pid == 0) {
		(void)!chdir(top);
		execl("/bin/sh", "sh", "-c", text, (char *)NULL);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) < 0 || status)
		ok(false, "sh: %s", text);
}

static const char *at(const char *name)
{
	static char path[2][128];
	static int turn;

	turn = !turn;
	(void)snprintf(path[turn], sizeof(path[turn]), "%s/%s", top, name);
	return path[turn];
}

static void entry_of(struct entry *e, unsigned long i)
{
	entry_begin_at(e, "test", 1000000 + i);
	entry_num(e, "i", i);
}

static int append(struct realm *r, unsigned long i, struct writ_err *err)
{
	scoped_entry e = { 0 };

	entry_of(&e, i);
	return realm_append(r, &e, false, NULL, err);
}

/* The root by the definition, from the leaves alone. */
static struct digest naive(const struct digest *leaf, uint64_t n)
{
	struct digest l, r;
	uint64_t half = 1;

	if (n == 0)
		return tree_empty();
	if (n == 1)
		return leaf[0];
	while (half * 2 < n)
		half *= 2;
	l = naive(leaf, half);
	r = naive(leaf + half, n - half);
	return tree_node(&l, &r);
}

static struct digest leaves[4096];

/* Everything in the log, read entry by entry; its size, or -1. */
static long read_all(const char *name, struct writ_err *err)
{
	struct realm r;
	struct digest root;
	long size = -1;

	if (realm_open(&r, at(name), false, err) < 0)
		return -1;
	for (uint64_t i = 0; i < r.tree.size && i < ARRAY_LEN(leaves); i++) {
		scoped_buf b = BUF_INIT(ENTRY_PUBLIC_MAX);

		if (realm_entry(&r, i, &b, err) < 0)
			goto out;
		leaves[i] = tree_leaf(buf_view(&b));
	}
	root = tree_frontier_root(&r.tree);
	{
		const struct digest want = naive(leaves, r.tree.size);

		size = digest_eq(&want, &root) ? (long)r.tree.size : -2;
	}
out:
	realm_close(&r);
	return size;
}

static void test_growth(void)
{
	struct writ_err err = { 0 };
	struct realm r;
	unsigned long n = 0;

	/* Opened anew at odd places, across the ends of blocks. */
	static const unsigned steps[] = { 1, 1, 100, 153, 1, 1, 300, 1000, 255, 256, 257 };

	for (size_t s = 0; s < ARRAY_LEN(steps); s++) {
		if (!ok(realm_open(&r, at("grow"), true, &err) == 0 && r.tree.size == n,
			"open at %lu: %s", n, err.what))
			return;
		for (unsigned i = 0; i < steps[s]; i++, n++)
			if (append(&r, n, &err) < 0) {
				ok(false, "append: %s", err.what);
				return;
			}
		ok(realm_sign(&r, &key, &sec, s % 2, &err) == 0, "sign: %s", err.what);
		realm_close(&r);
		ok(read_all("grow", &err) == (long)n, "%lu entries and their root: %s", n,
		   err.what);
	}
}

static void test_proofs(void)
{
	struct writ_err err = { 0 };
	struct tree_proof proof;
	struct digest root;
	struct realm r;
	size_t bad = 0;

	if (!ok(realm_open(&r, at("grow"), false, &err) == 0, "open to read"))
		return;
	root = tree_frontier_root(&r.tree);
	for (uint64_t i = 0; i < r.tree.size; i += 7)
		bad += tree_prove_inclusion(&r.nodes.nodes, i, r.tree.size, &proof, &err) < 0 ||
		       tree_check_inclusion(&proof, &leaves[i], i, r.tree.size, &root, &err) < 0;
	ok(bad == 0, "inclusion is proved: %zu are not, %s", bad, err.what);
	for (uint64_t i = 1; i < r.tree.size; i += 11) {
		const struct digest old = naive(leaves, i);

		bad += tree_prove_consistency(&r.nodes.nodes, i, r.tree.size, &proof, &err) < 0 ||
		       tree_check_consistency(&proof, i, &old, r.tree.size, &root, &err) < 0;
	}
	ok(bad == 0, "consistency is proved: %zu are not, %s", bad, err.what);
	realm_close(&r);
}

/* Many at once: nothing is lost, nothing is twice. */
static void test_many(void)
{
	enum { PROCESSES = 8, EACH = 100 };
	struct writ_err err = { 0 };
	int status;
	size_t bad = 0;

	for (int p = 0; p < PROCESSES; p++)
		if (fork() == 0) {
			for (int i = 0; i < EACH; i++) {
				struct realm r;

				if (realm_open(&r, at("many"), true, &err) < 0 ||
				    append(&r, (unsigned long)(p * EACH + i), &err) < 0 ||
				    realm_sign(&r, &key, &sec, false, &err) < 0)
					_exit(1);
				realm_close(&r);
			}
			_exit(0);
		}
	for (int p = 0; p < PROCESSES; p++)
		bad += wait(&status) < 0 || status;
	ok(bad == 0 && read_all("many", &err) == PROCESSES * EACH, "%d entries by %d processes: %s",
	   PROCESSES * EACH, PROCESSES, err.what);
}

static void refused(const char *what)
{
	struct writ_err err = { 0 };
	struct realm r;
	const int n = realm_open(&r, at("x"), true, &err);

	if (n == 0)
		realm_close(&r);
	ok(n == WRIT_E_DENIED, "refused: %s: %s", what, err.what);
}

static void fill(const char *name, unsigned long n, bool sync)
{
	struct writ_err err = { 0 };
	struct realm r;

	if (realm_open(&r, at(name), true, &err) < 0) {
		ok(false, "open %s: %s", name, err.what);
		return;
	}
	while (r.tree.size < n)
		if (append(&r, r.tree.size, &err) < 0) {
			ok(false, "append: %s", err.what);
			break;
		}
	if (realm_sign(&r, &key, &sec, sync, &err) < 0)
		ok(false, "sign: %s", err.what);
	realm_close(&r);
}

static void test_damage(void)
{
	for (int sync = 0; sync < 2; sync++) {
		const char *how = sync ? "synced" : "not synced";

		tap_note("the checkpoint is %s", how);
		sh("rm -rf y x; mkdir y");
		fill("y", 300, sync);
		sh("cp -a y x; sed -i 2d x/wal/*100");
		refused("an entry removed");
		sh("rm -r x; cp -a y x; sed -i '2{h;d};3{G}' x/wal/*100");
		refused("two entries swapped");
		sh("rm -r x; cp -a y x; sed -i '3s/\"i\":258/\"i\":259/' x/wal/*100");
		refused("an entry edited");
		sh("rm -r x; cp -a y x; truncate -s -1 x/wal/*100");
		refused("the last byte cut off");
		sh("rm -r x; cp -a y x; rm x/wal/*100");
		refused("the newest entries gone");
		sh("rm -r x; cp -a y x; rm x/tile/1/000.p/1");
		refused("a tile gone");
		sh("rm -r x; cp -a y x; printf X | dd of=x/tile/1/000.p/1 bs=1 seek=9 conv=notrunc "
		   "2>/dev/null");
		refused("a byte of an upper tile changed");
		sh("rm -r x; mkdir z; true");
		fill("z", 290, sync);
		sh("cp -a z x; cp y/checkpoint x/ 2>/dev/null || cp y/latest x/; rm -r z");
		refused("yesterday's copy");
	}
}

static void test_power(void)
{
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(ENTRY_PUBLIC_MAX);
	struct realm r;
	int n;

	sh("rm -rf x y; true");
	fill("y", 20, false);
	sh("cp -a y x; sed -i '1s/.*/another boot/' x/latest; sed -i 18,20d x/wal/*0; printf "
	   "'{\"eve' >>$(echo x/wal/*0)");
	n = realm_open(&r, at("x"), true, &err);
	ok(n == 0 && r.tree.size == 19, "after losing power it goes on, at %llu: %s",
	   (unsigned long long)r.tree.size, err.what);
	ok(realm_entry(&r, 17, &b, &err) == 0 && memmem(b.p, b.n, "log.recovered", 13),
	   "and says that a line was torn");
	buf_clear(&b);
	ok(realm_entry(&r, 18, &b, &err) == 0 && memmem(b.p, b.n, "log.lost", 8) &&
		   memmem(b.p, b.n, "\"size\":20", 9),
	   "and what it lost");
	realm_close(&r);
	sh("rm -r x; cp -a y x; sed -i '1s/.*/another boot/' x/latest; sed -i '5s/4/5/' x/wal/*0");
	refused("edited, and the machine started since");
	sh("rm -r x; cp -a y x; (head -c 300 /dev/zero; echo) >>$(echo x/wal/*0)");
	n = realm_open(&r, at("x"), true, &err);
	ok(n == 0 && r.tree.size == 21, "a hole at the end is cut off: %s", err.what);
	realm_close(&r);
}

/* --- let go of, and gone on with --- */

/* What somebody does to the log while it is not held, and what comes of it. */
static void meanwhile(const char *what, bool same, long size)
{
	struct writ_err err = { 0 };
	struct realm r;
	bool is_same = !same;
	int n;

	sh("rm -rf x; cp -a y x");
	if (realm_open(&r, at("x"), true, &err) < 0 || append(&r, 20, &err) < 0) {
		ok(false, "open: %s", err.what);
		return;
	}
	realm_suspend(&r);
	/* What has the same time as what was written is not told apart by it. */
	(void)usleep(20000);
	if (what)
		sh("%s", what);
	n = realm_resume(&r, at("x"), &is_same, &err);
	if (size < 0) {
		ok(n == WRIT_E_DENIED, "refused: %s: %s", what, err.what);
		return;
	}
	ok(n == 0 && is_same == same && (long)r.tree.size == size && append(&r, 21, &err) == 0,
	   "%s: %s", what ? what : "nothing", err.what);
	realm_close(&r);
	ok(read_all("x", &err) == size + 1, "and all of it is there");
}

static void test_rest(void)
{
	struct writ_err err = { 0 };
	struct realm r;
	bool same = true;

	sh("rm -rf x y; true");
	fill("y", 20, false);
	meanwhile(NULL, true, 21);
	meanwhile("ls -l x/wal >/dev/null; cat x/latest x/wal/* >/dev/null", true, 21);
	meanwhile("tail -n 1 $(echo x/wal/*0) | tee -a $(echo x/wal/*0) >/dev/null", false, 22);
	meanwhile("touch x/latest", false, 21);
	meanwhile("cp x/latest x/checkpoint; sed -i 1d x/checkpoint", false, 21);
	meanwhile("mv x z; cp -a z x; rm -r z", false, 21);
	/* An entry that was signed, edited, and then made to look as old as before. */
	meanwhile("sed -i '5s/4/5/' x/wal/*0", false, -1);
	meanwhile("f=$(echo x/wal/*0); touch -r $f t; printf 7 | dd of=$f bs=1 seek=9 conv=notrunc "
		  "status=none; touch -r t $f",
		  false, -1);
	meanwhile("sed -i 15,21d x/wal/*0", false, -1);
	meanwhile("rm x/wal/*0", false, -1);
	meanwhile("touch x/wal/0000000000000200", false, -1);
	/* Others have filled the file that it was in. */
	sh("rm -rf x; cp -a y x");
	ok(realm_open(&r, at("x"), true, &err) == 0, "open: %s", err.what);
	realm_suspend(&r);
	fill("x", 300, false);
	ok(realm_resume(&r, at("x"), &same, &err) == 0 && !same && r.tree.size == 300 &&
		   append(&r, 300, &err) == 0,
	   "it became tiles meanwhile: %s", err.what);
	realm_close(&r);
	ok(access(at("x/wal/0000000000000000"), F_OK) < 0 && read_all("x", &err) == 301,
	   "and what is gone is not made again");
	realm_suspend(&r);
	ok(realm_resume(&r, at("x"), &same, &err) == 0 && !same && r.tree.size == 301,
	   "one that was closed is opened");
	realm_close(&r);
}

/* --- killed, or failed, at each call of the system --- */

static void busy(int ack)
{
	struct writ_err err = { 0 };
	struct realm r = REALM_INIT;
	bool same;

	/* Signed for the first time, then in place of that, then on the disk. */
	for (int round = 0; round < 3; round++) {
		if (realm_resume(&r, at("x"), &same, &err) < 0)
			_exit(3);
		for (int i = 0; i < 2; i++) {
			if (append(&r, r.tree.size, &err) < 0)
				_exit(2);
			if (write(ack, "+", 1) != 1)
				_exit(4);
		}
		if (realm_sign(&r, &key, &sec, round == 2, &err) < 0)
			_exit(2);
		realm_suspend(&r);
	}
	_exit(0);
}

/* Runs busy() up to its @n-th call; kills it there, or makes that call fail. */
static int run_to(unsigned n, int fail, int ack)
{
	const pid_t pid = fork();
	int status;
	unsigned seen = 0;

	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		busy(ack);
	}
	waitpid(pid, &status, 0);
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	for (bool inside = false;;) {
		ptrace(PTRACE_SYSCALL, pid, 0, 0);
		if (waitpid(pid, &status, 0) < 0 || WIFEXITED(status) || WIFSIGNALED(status))
			return status;
		if (!(WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80)))
			continue;
		inside = !inside;
		if (!inside || ++seen != n)
			continue;
		if (!fail) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return status;
		}
#ifdef __x86_64__
		struct user_regs_struct regs;

		ptrace(PTRACE_GETREGS, pid, 0, &regs);
		/* One closes whatever it says, the other is of the sanitizers. */
		if (regs.orig_rax == SYS_close || regs.orig_rax == SYS_sigaltstack)
			continue;
		regs.orig_rax = (unsigned long long)-1;
		ptrace(PTRACE_SETREGS, pid, 0, &regs);
		ptrace(PTRACE_SYSCALL, pid, 0, 0);
		waitpid(pid, &status, 0);
		ptrace(PTRACE_GETREGS, pid, 0, &regs);
		regs.rax = (unsigned long long)-fail;
		ptrace(PTRACE_SETREGS, pid, 0, &regs);
		inside = false;
#endif
	}
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st, (void)kind, (void)ftw;
	return remove(path);
}

/* x is y again, which has no tiles yet: two files are all of it. */
static void reset(struct sv wal, struct sv checkpoint)
{
	struct writ_err err = { 0 };

	(void)nftw(at("x"), remove_one, 8, FTW_DEPTH | FTW_PHYS);
	if (fd_make_dirs(at("x/wal"), &err) < 0 ||
	    fd_replace_file(at("x/wal/0000000000000000"), wal, 0600, &err) < 0 ||
	    fd_replace_file(at("x/checkpoint"), checkpoint, 0600, &err) < 0)
		ok(false, "start again: %s", err.what);
}

static void test_crashes(int fail)
{
	static unsigned calls; /* that it takes, as the first time has shown */
	scoped_buf wal = BUF_INIT(1 << 20), checkpoint = BUF_INIT(1 << 16);
	struct writ_err err = { 0 };
	unsigned n, points = 0;
	size_t lost = 0, refused_n = 0, wrong = 0;
	char acked[16];

	sh("rm -rf y; true");
	fill("y", 253, true);
	ok(fd_read_file(at("y/wal/0000000000000000"), &wal, &err) == 0 &&
		   fd_read_file(at("y/checkpoint"), &checkpoint, &err) == 0,
	   "a log to start with");
	for (n = 1; n < (fail ? calls + 8 : 2000); n++) {
		struct realm r;
		ssize_t got;
		long size;
		int status, ack[2];

		reset(buf_view(&wal), buf_view(&checkpoint));
		if (pipe2(ack, O_NONBLOCK | O_CLOEXEC) < 0)
			break;
		status = run_to(n, fail, ack[1]);
		got = read(ack[0], acked, sizeof(acked));
		close(ack[0]);
		close(ack[1]);
		if (!fail && WIFEXITED(status) && WEXITSTATUS(status) == 0)
			break;
		points++;
		if (realm_open(&r, at("x"), true, &err) < 0) {
			refused_n++;
			tap_note("call %u: %s", n, err.what);
			continue;
		}
		lost += r.tree.size < 253 + (uint64_t)(got > 0 ? got : 0);
		realm_close(&r);
		size = read_all("x", &err);
		wrong += size < 253;
	}
	if (!fail)
		calls = n;
	ok(points > 20 && lost == 0 && refused_n == 0 && wrong == 0,
	   "%s at %u calls: %zu lost something, %zu cannot be opened, %zu do not verify",
	   fail ? strerror(fail) : "killed", points, lost, refused_n, wrong);
}

/* Entries and the end of a session among them, which nobody signs; then somebody does. */
static uint64_t signed_late(const char *name, unsigned before, const char *event, unsigned behind,
			    char last[static 64])
{
	scoped_buf b = BUF_INIT(ENTRY_PUBLIC_MAX);
	struct writ_err err = { 0 };
	scoped_entry e = { 0 };
	uint64_t size = 0;
	struct realm r;

	if (realm_open(&r, at(name), true, &err) < 0)
		return 0;
	ok(append(&r, 0, &err) == 0 && realm_sign(&r, &key, &sec, false, &err) == 0, "signed");
	for (unsigned i = 0; i < before; i++)
		(void)!append(&r, i, &err);
	entry_begin_at(&e, event, 1);
	ok(realm_append(&r, &e, false, NULL, &err) == 0, "append: %s", err.what);
	for (unsigned i = 0; i < behind; i++)
		(void)!append(&r, i, &err);
	realm_close(&r);
	for (int i = 0; i < 2; i++) {
		if (realm_open(&r, at(name), true, &err) < 0)
			return 0;
		ok(append(&r, 1, &err) == 0 && realm_sign(&r, &key, &sec, i, &err) == 0, "signed");
		size = r.tree.size;
		if (i == 0 && realm_entry(&r, size - 1, &b, &err) == 0)
			(void)snprintf(last, 64, SV_FMT, SV_ARG(entry_event(buf_view(&b))));
		realm_close(&r);
	}
	return size;
}

static void test_late(void)
{
	char last[64] = "";

	ok(signed_late("late1", 0, "session.end", 0, last) == 5 &&
		   strcmp(last, "log.unsigned") == 0,
	   "an end that nobody signed is said by who signs next, once: %s", last);
	ok(signed_late("late2", 3, "session.cut", 600, last) == 608 &&
		   strcmp(last, "log.unsigned") == 0,
	   "also from behind its bundle: %s", last);
	ok(signed_late("late3", 300, "session.start", 300, last) == 604 &&
		   strcmp(last, "test") == 0,
	   "a start is none, and nothing is said: %s", last);
}

int main(void)
{
	static const uint8_t seed[32] = { 7 };
	struct writ_err err = { 0 };

	if (crypto_start(&err) < 0 || !mkdtemp(top))
		return 1;
	sign_keypair(seed, &pub, &sec);
	ok(note_key_init(&key, NOTE_KEY_ED25519, SV("writ/log/test"), &pub, &err) == 0, "a key");
	test_growth();
	test_proofs();
	test_many();
	test_damage();
	test_power();
	test_late();
	test_rest();
	test_crashes(0);
	test_crashes(EIO);
	sh("cd / && rm -rf %s", top);
	return tap_done();
}
