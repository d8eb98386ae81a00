#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "gitnet/git_priv.h"

#include "base/banned.h"

enum { FETCH_MS = 30 * 60 * 1000, SHORT_MS = 60 * 1000, REFS_MAX = 64 << 20 };

/* Options that override the operator's configuration: no hooks, submodules or monitors. */
#define FIXED                                                                                      \
	"-c", "core.hooksPath=/dev/null", "-c", "gc.autoDetach=false", "-c",                       \
		"maintenance.autoDetach=false", "-c", "fetch.recurseSubmodules=false", "-c",       \
		"submodule.recurse=false", "-c", "core.fsmonitor=false"

static int simple(const struct helper *h, const char *const *argv, struct buf *out,
		  struct buf *said)
{
	const struct run r = { .argv = argv, .out = out, .said = said, .timeout_ms = SHORT_MS };

	return gitnet_run_git(h, &r);
}

/*
 * Copies the remote's HEAD to the mirror, unless the mirror's HEAD already names a branch that
 * exists. HEAD determines which branch a clone checks out. The output of ls-remote begins with a
 * line "ref: refs/heads/main\tHEAD".
 */
static void find_head(const struct helper *h, const char *dir, const struct git_repo *repo)
{
	const char *const url = repo->dial.p;
	const char *ask[] = { dir, FIXED, "ls-remote", "--symref", "--", url, "HEAD", NULL };
	const char *known[] = { dir, FIXED, "rev-parse", "--verify", "-q", "HEAD", NULL };
	char ref[256];
	const char *set[] = { dir, FIXED, "symbolic-ref", "HEAD", ref, NULL };
	scoped_buf out = BUF_INIT(SAID_MAX);
	struct sv rest, line;

	if (simple(h, known, NULL, NULL) == 0 || simple(h, ask, &out, NULL) != 0)
		return;
	rest = buf_view(&out);
	line = sv_cut(&rest, '\n');
	if (!sv_starts(line, SV("ref: ")))
		return;
	line = sv_skip(line, 5);
	line = sv_cut(&line, '\t');
	if (!gitnet_ref_is_fine(line))
		return;
	(void)snprintf(ref, sizeof(ref), SV_FMT, SV_ARG(line));
	(void)simple(h, set, NULL, NULL);
}

static int fetch(const struct helper *h, const char *dir, const struct git_repo *repo,
		 struct buf *said, struct writ_err *err)
{
	const char *const url = repo->dial.p;
	const char *argv[] = { dir,
			       FIXED,
			       "fetch",
			       "--quiet",
			       "--prune",
			       "--no-tags",
			       "--no-write-fetch-head",
			       "--",
			       url,
			       "+refs/heads/*:refs/heads/*",
			       "+refs/tags/*:refs/tags/*",
			       NULL };
	const struct run r = { .argv = argv, .said = said, .timeout_ms = FETCH_MS };
	const int status = gitnet_run_git(h, &r);

	if (status != 0)
		return writ_fail(err, WRIT_E_SYS, 0, "%s",
				 status < 0 ? "it took too long" : "it cannot be reached");
	find_head(h, dir, repo);
	return 0;
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

/*
 * Updates the mirror while holding the mirror's lock. Skips the fetch if another process completed
 * a fetch that began after this request: the mirror is recent enough then.
 */
static int fetch_once(const struct helper *h, const char *dir, const char *top,
		      const struct git_repo *repo, int lock, struct buf *said, struct writ_err *err)
{
	const char *init[] = { FIXED, "init", "-q", "--bare", "--template=", "--", top, NULL };
	struct timespec asked, when[2];
	struct stat st;
	char head[4096];
	bool waited;

	clock_gettime(CLOCK_REALTIME, &asked);
	waited = flock(lock, LOCK_EX | LOCK_NB) < 0;
	if (waited && flock(lock, LOCK_EX) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "lock the mirror");
	if (waited && fstat(lock, &st) == 0 && st.st_size > 0 && is_later(&st.st_mtim, &asked))
		return 0;
	(void)snprintf(head, sizeof(head), "%s/HEAD", top);
	if (access(head, F_OK) < 0 && simple(h, init, NULL, said) != 0)
		return writ_fail(err, WRIT_E_SYS, 0, "its mirror cannot be made");
	clock_gettime(CLOCK_REALTIME, &when[0]);
	if (fetch(h, dir, repo, said, err) < 0)
		return err->code;
	/*
	 * Stamp the lock file with the start of the fetch. A request made before the fetch began is
	 * served by this mirror, which has everything that existed when the request was made.
	 */
	when[1] = when[0];
	(void)!ftruncate(lock, 1);
	(void)futimens(lock, when);
	return 0;
}

int mirror_update(const struct helper *h, struct arena *a, const struct git_repo *repo,
		  const char **ret_dir, struct buf *said, struct writ_err *err)
{
	const struct digest d = crypto_sha256(repo->dial);
	scoped_buf b = BUF_INIT(128);
	const char *top, *dir, *file;
	scoped_fd lock = -1;

	digest_hex(&d, &b);
	top = arena_fmt(a, SV_FMT "/git/%.40s.git", SV_ARG(h->opt->state), b.p ? b.p : "x");
	file = arena_fmt(a, SV_FMT "/git/%.40s.lock", SV_ARG(h->opt->state), b.p ? b.p : "x");
	dir = top ? arena_fmt(a, "--git-dir=%s", top) : NULL;
	if (!dir || !file)
		return writ_nomem(err);
	lock = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lock < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "lock the mirror");
	*ret_dir = top;
	return fetch_once(h, dir, top, repo, lock, said, err);
}

/* --- quarantines for pushes --- */

static int write_at(const char *dir, const char *name, struct sv text, struct writ_err *err)
{
	char path[4200];
	scoped_fd fd = -1;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd < 0 ? writ_fail(err, WRIT_E_SYS, errno, "make a quarantine")
		      : fd_write_all(fd, text, err);
}

/*
 * Waits until no other push of the session runs, and holds the lock for pushes. Simultaneous
 * quarantines could fill the operator's disk.
 */
static int one_at_a_time(const struct helper *h, struct arena *a, struct writ_err *err)
{
	const char *path = arena_fmt(a, SV_FMT "/push.lock", SV_ARG(h->opt->run));
	const int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

	/* Keep the descriptor open, and thereby the lock held, until this process exits. */
	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "wait for another push");
	return 0;
}

/*
 * Creates a quarantine: an empty repository with the mirror's refs, and with the mirror's objects
 * as an alternate.
 */
int gitnet_quarantine_make(const struct helper *h, struct arena *a, const char *mirror,
			   const char **ret_dir, struct writ_err *err)
{
	static const char *const dirs[] = { "", "/refs", "/objects", "/objects/info" };
	const char *git_dir = arena_fmt(a, "--git-dir=%s", mirror);
	const char *argv[] = { git_dir, FIXED, "for-each-ref", "--format=%(objectname) %(refname)",
			       NULL };
	const char *dir = arena_fmt(a, SV_FMT "/push-%d", SV_ARG(h->opt->run), (int)getpid());
	const char *alternate = arena_fmt(a, "%s/objects\n", mirror);
	scoped_buf refs = BUF_INIT(REFS_MAX);

	if (!git_dir || !dir || !alternate)
		return writ_nomem(err);
	/* Set *@ret_dir before creating anything: the caller removes the quarantine in any case. */
	*ret_dir = dir;
	if (one_at_a_time(h, a, err) < 0)
		return err->code;
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		const char *path = arena_fmt(a, "%s%s", dir, dirs[i]);

		if (!path || mkdir(path, 0700) < 0)
			return writ_fail(err, WRIT_E_SYS, errno, "make a quarantine");
	}
	if (simple(h, argv, &refs, NULL) != 0 || refs.failed)
		return writ_fail(err, WRIT_E_SYS, 0, "its refs cannot be read");
	if (write_at(dir, "packed-refs", buf_view(&refs), err) < 0 ||
	    write_at(dir, "HEAD", SV("ref: refs/heads/none\n"), err) < 0 ||
	    write_at(dir, "config",
		     SV("[core]\n\trepositoryformatversion = 0\n\tbare = true\n"), err) < 0)
		return err->code;
	return write_at(dir, "objects/info/alternates", sv_from(alternate), err);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	(void)remove(path);
	return 0;
}

void gitnet_quarantine_remove(const char *dir)
{
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
