#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "codec/json.h"
#include "signer/signer.h"
#include "tlog/proof.h"

#include "base/banned.h"

enum { TIMEOUT_S = 10 /* seconds to wait for a message from writ-signer */ };

int signer_open_plain(int *ret_fd, struct writ_err *err)
{
	static const char *const tails[] = { "/../libexec/writ/writ-signer", "/writ-signer" };
	char path[PATH_MAX + 64];
	const ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
	char *slash;
	int fd = -1;

	if (n > 0 && n < PATH_MAX) {
		path[n] = 0;
		slash = strrchr(path, '/');
		for (size_t i = 0; slash && fd < 0 && i < ARRAY_LEN(tails); i++) {
			memcpy(slash, tails[i], strlen(tails[i]) + 1);
			fd = open(path, O_RDONLY | O_CLOEXEC);
		}
	}
	if (fd < 0)
		fd = open(WRIT_SIGNER_PROGRAM, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "writ-signer is not installed");
	*ret_fd = fd;
	return 0;
}

/*
 * Runs writ-signer in a grandchild: writ need not wait for the grandchild, and closing writ's
 * terminal does not kill it.
 */
_Noreturn static void exec_signer(int program, const char *mode, int socket, int given)
{
	static char name[] = "writ-signer";
	char *word = strdup(mode);
	char *const argv[] = { name, word, NULL }, *const env[] = { NULL };
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setsid();
	if (fork() != 0)
		_exit(0);
	program = fcntl(program, F_DUPFD_CLOEXEC, 16);
	socket = fcntl(socket, F_DUPFD_CLOEXEC, 16);
	given = given < 0 ? -1 : fcntl(given, F_DUPFD_CLOEXEC, 16);
	(void)close_range(3, 15, 0);
	if (!word || dup2(socket, SIGNER_SOCKET) < 0 ||
	    (given >= 0 && dup2(given, SIGNER_GIVEN) < 0))
		_exit(1);
	(void)close_range(5, ~0u, CLOSE_RANGE_CLOEXEC);
	fexecve(program, argv, env);
	_exit(127);
}

static int start(int program, const char *mode, int given, int *ret_fd, struct writ_err *err)
{
	const struct timeval timeout = { .tv_sec = TIMEOUT_S };
	scoped_fd ours = -1, theirs = -1;
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "socketpair");
	ours = pair[0];
	theirs = pair[1];
	pid = fork();
	if (pid == 0)
		exec_signer(program, mode, theirs, given);
	if (pid < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "start writ-signer");
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (setsockopt(ours, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0 ||
	    setsockopt(ours, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "setsockopt");
	*ret_fd = fd_take(&ours);
	return 0;
}

int signer_answer_next(int fd, struct buf *b, char *ret, struct writ_err *err)
{
	const int r = signer_receive(fd, b, ret, err);

	if (r < 0)
		return r;
	if (*ret == 0)
		return writ_fail(err, WRIT_E_SYS, 0, "writ-signer ended without a word");
	if (*ret == SIGNER_FAIL)
		return writ_fail(err, WRIT_E_DENIED, 0, "%.110s", b->n ? b->p : "writ-signer");
	return 0;
}

static int expect_done(int fd, struct buf *b, struct writ_err *err)
{
	char letter = 0;
	const int r = signer_answer_next(fd, b, &letter, err);

	return r == 0 && letter != SIGNER_DONE
		       ? writ_fail(err, WRIT_E_SYS, 0, "writ-signer answers something else")
		       : r;
}

/*
 * Sends a message to writ-signer and expects SIGNER_DONE. A failed send is ignored, because a
 * writ-signer that exited early has left the reason in the socket.
 */
static int request(int fd, enum signer_letter letter, struct sv bytes, struct buf *b,
		   struct writ_err *err)
{
	struct writ_err gone = { 0 };

	(void)!signer_send(fd, letter, bytes, &gone);
	return expect_done(fd, b, err);
}

/* --- writ-signer without a group of its own --- */

int signer_sign(const char *keys, struct sv bytes, struct attest_key *ret_key, struct buf *sig,
		struct writ_err *err)
{
	scoped_buf b = BUF_INIT(SIGNER_MESSAGE_MAX);
	scoped_fd program = -1, dir = -1, fd = -1;
	int r;

	if ((r = signer_open_plain(&program, err)) < 0 || (r = fd_make_dirs(keys, err)) < 0)
		return r;
	dir = open(keys, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", keys);
	if ((r = start(program, "sign", dir, &fd, err)) < 0 ||
	    (r = request(fd, SIGNER_SIGN, bytes, &b, err)) < 0 ||
	    (r = attest_key_init(ret_key, sv_sub(buf_view(&b), 0, ATTEST_SPKI), err)) < 0)
		return r;
	buf_sv(sig, sv_skip(buf_view(&b), ATTEST_SPKI));
	return buf_check(sig, err);
}

int signer_verify(const struct attest_key *key, struct sv bytes, struct sv sig,
		  struct writ_err *err)
{
	scoped_buf b = BUF_INIT(SIGNER_MESSAGE_MAX), answer = BUF_INIT(SIGNER_MESSAGE_MAX);
	scoped_fd program = -1, fd = -1;
	int r;

	if (sig.n > ATTEST_SIG_MAX)
		return writ_fail(err, WRIT_E_DENIED, 0, "the signature is too long");
	buf_add(&b, key->der, ATTEST_SPKI);
	buf_ch(&b, (char)sig.n);
	buf_sv(&b, sig);
	buf_sv(&b, bytes);
	if ((r = signer_open_plain(&program, err)) < 0 ||
	    (r = start(program, "verify", -1, &fd, err)) < 0 || (r = buf_check(&b, err)) < 0)
		return r;
	return request(fd, SIGNER_VERIFY, buf_view(&b), &answer, err);
}

/* --- writ-signer installed under a group of its own --- */

int signer_encode(const struct attest_member *v, size_t n, const void *from, struct buf *b,
		  struct writ_err *err)
{
	scoped_json *o = attest_object(v, n, from);

	return o ? cj_encode(o, b, err) : writ_nomem(err);
}

int signer_start(const struct signer_install *in, const char *mode, int given, int *ret,
		 struct writ_err *err)
{
	scoped_fd program = -1;
	gid_t gid;
	int r = signer_usable(in, err);

	if (r == 0)
		r = signer_open_program(in, &program, &gid, err);
	return r == 0 ? start(program, mode, given, ret, err) : r;
}

static int request_members(int fd, enum signer_letter letter, const struct attest_member *v,
			   size_t n, const void *from, struct writ_err *err)
{
	scoped_buf text = BUF_INIT(SIGNER_MESSAGE_MAX), b = BUF_INIT(SIGNER_MESSAGE_MAX);
	const int r = signer_encode(v, n, from, &text, err);

	return r == 0 ? request(fd, letter, buf_view(&text), &b, err) : r;
}

int signer_begin(const struct signer_install *in, const struct signer_about *about, int *ret_fd,
		 struct writ_err *err)
{
	scoped_fd fd = -1;
	int r;

	if ((r = signer_start(in, "session", -1, &fd, err)) < 0 ||
	    (r = request_members(fd, SIGNER_START, signer_start_members, SIGNER_START_N, about,
				 err)) < 0)
		return r;
	*ret_fd = fd_take(&fd);
	return 0;
}

int signer_send_lines(int fd, struct sv lines, struct writ_err *err)
{
	int r = 0;

	/* Cut the lines into as few messages as possible, each of which ends with a whole line. */
	while (r == 0 && lines.n) {
		struct sv part = sv_sub(lines, 0, SIGNER_MESSAGE_MAX - 1);

		if (part.n < lines.n)
			part.n = sv_rfind(part, '\n') + 1;
		r = part.n ? signer_send(fd, SIGNER_LINES, part, err)
			   : writ_fail(err, WRIT_E_LIMIT, 0, "a line of the log is too long");
		lines = sv_skip(lines, part.n);
	}
	return r;
}

int signer_end(int fd, uint64_t exit, uint64_t entries, const struct digest *root,
	       struct writ_err *err)
{
	const struct signer_ending e = { .exit = exit, .entries = entries, .root = *root };

	return request_members(fd, SIGNER_END, signer_end_members, SIGNER_END_N, &e, err);
}

void signer_answer_init(struct signer_answer *w)
{
	w->begun = w->ended = false;
	w->start = w->end = (struct buf)BUF_INIT(PROOF_MAX);
	w->manifest = w->bundle = (struct buf)BUF_INIT(2 * ATTEST_TEXT_MAX);
	w->vkey = w->pem = (struct buf)BUF_INIT(4096);
}

void signer_answer_clear(struct signer_answer *w)
{
	struct buf *const all[] = {
		&w->start, &w->end, &w->manifest, &w->bundle, &w->vkey, &w->pem
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		buf_clear(all[i]);
}

static void store_file(struct signer_answer *w, struct sv message)
{
	const struct {
		const char *name;
		struct buf *to;
	} files[] = { { "start.tlog-proof", &w->start }, { "end.tlog-proof", &w->end },
		      { "session.json", &w->manifest },	 { "session.sigstore.json", &w->bundle },
		      { "log.vkey", &w->vkey },		 { "attest.pub.pem", &w->pem } };
	const struct sv name = sv_cut(&message, '\n');

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (sv_is(name, files[i].name))
			buf_sv(files[i].to, message);
}

int signer_attest(const struct signer_install *in, struct sv realm, struct sv session, int entries,
		  struct signer_answer *w, struct writ_err *err)
{
	const struct signer_question q = { .realm = realm,
					   .session = session,
					   .sign = entries >= 0 };
	scoped_buf b = BUF_INIT(SIGNER_MESSAGE_MAX), text = BUF_INIT(SIGNER_MESSAGE_MAX);
	struct writ_err gone = { 0 };
	scoped_fd fd = -1;
	char letter = SIGNER_FILE;
	int r;

	if ((r = signer_start(in, "attest", entries, &fd, err)) < 0 ||
	    (r = signer_encode(signer_attest_members, SIGNER_ATTEST_N, &q, &text, err)) < 0)
		return r;
	(void)!signer_send(fd, SIGNER_ATTEST, buf_view(&text), &gone);
	while (r == 0 && letter == SIGNER_FILE) {
		r = signer_answer_next(fd, &b, &letter, err);
		if (r == 0 && letter == SIGNER_FILE)
			store_file(w, buf_view(&b));
	}
	w->ended = r == 0 && letter == SIGNER_DONE;
	w->begun = w->ended || (r == 0 && sv_is(buf_view(&b), "begun"));
	return r;
}
