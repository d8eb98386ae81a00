#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/fd.h"
#include "confine/confine.h"
#include "signer/signer_priv.h"

#include "base/banned.h"

/*
 * System calls of writ-signer in the modes "sign" and "verify", which only exchange messages after
 * confinement.
 */
static const int plain_calls[] = {
	SYS_brk,     SYS_clock_gettime,	  SYS_close,	    SYS_exit,	 SYS_exit_group, SYS_futex,
	SYS_getpid,  SYS_getrandom,	  SYS_madvise,	    SYS_mmap,	 SYS_mremap,	 SYS_munmap,
	SYS_recvmsg, SYS_restart_syscall, SYS_rt_sigreturn, SYS_sendmsg,
};

/* System calls of writ-signer in the installed modes, which also keep a log. */
static const int file_calls[] = {
	SYS_brk,	  SYS_clock_gettime,
	SYS_close,	  SYS_exit,
	SYS_exit_group,	  SYS_faccessat,
	SYS_faccessat2,	  SYS_statx,
	SYS_fcntl,	  SYS_fdatasync,
	SYS_flock,	  SYS_fstat,
	SYS_fsync,	  SYS_ftruncate,
	SYS_futex,	  SYS_getdents64,
	SYS_geteuid,	  SYS_getpid,
	SYS_getrandom,	  SYS_linkat,
	SYS_lseek,	  SYS_madvise,
	SYS_mkdirat,	  SYS_mmap,
	SYS_mremap,	  SYS_munmap,
	SYS_newfstatat,	  SYS_openat,
	SYS_pread64,	  SYS_read,
	SYS_recvmsg,	  SYS_renameat,
	SYS_renameat2,	  SYS_restart_syscall,
	SYS_rt_sigreturn, SYS_sendmsg,
	SYS_unlinkat,	  SYS_write,
#ifdef SYS_mkdir
	SYS_mkdir,	  SYS_rename,
	SYS_access,	  SYS_unlink,
	SYS_open,
#endif
};

/* --- state inherited from the caller --- */

static bool is_socket(int fd)
{
	int type = 0, family = 0;
	socklen_t n = sizeof(int), m = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_SEQPACKET &&
	       getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &m) == 0 && family == AF_UNIX;
}

/*
 * Resets the handlers of all signals, ignores common signals that would stop or end the program,
 * and stops all inherited timers.
 */
static void reset_signals(void)
{
	static const int ignored[] = { SIGHUP,	SIGINT,	 SIGQUIT,   SIGTERM, SIGPIPE,
				       SIGALRM, SIGUSR1, SIGUSR2,   SIGTSTP, SIGTTIN,
				       SIGTTOU, SIGXFSZ, SIGVTALRM, SIGPROF, SIGIO };
	const struct itimerval never = { 0 };
	sigset_t none;

	for (int i = 1; i < 32; i++)
		if (i != SIGKILL && i != SIGSTOP)
			(void)signal(i, SIG_DFL);
	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		(void)signal(ignored[i], SIG_IGN);
	(void)setitimer(ITIMER_REAL, &never, NULL);
	(void)setitimer(ITIMER_VIRTUAL, &never, NULL);
	(void)setitimer(ITIMER_PROF, &never, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Resets all state that writ-signer inherited from the caller.
 * SECURITY: the program may be setgid, and the caller chose environment, directory, descriptors,
 * signals, timers and umask. Only the socket and the given descriptor are kept.
 */
static bool reset_inherited(void)
{
	int null;

	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)clearenv();
	(void)umask(077);
	reset_signals();
	if (chdir("/") < 0 || close_range(SIGNER_GIVEN + 1, ~0u, 0) < 0)
		return false;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return false;
	for (int i = 0; i < 3; i++)
		if (null != i && dup2(null, i) < 0)
			return false;
	if (null > SIGNER_GIVEN)
		(void)close(null);
	return is_socket(SIGNER_SOCKET);
}

/* --- the installed program --- */

/* Copies DIR to @ret if the path of this program is DIR/bin/writ-signer; fails otherwise. */
static int own_dir(char ret[static PATH_MAX], struct writ_err *err)
{
	static const char tail[] = "/bin/writ-signer";
	const ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);
	const size_t m = sizeof(tail) - 1;

	if (n <= (ssize_t)m || memcmp(ret + n - (ssize_t)m, tail, m) != 0)
		return writ_fail(err, WRIT_E_DENIED, 0, "this writ-signer is not installed");
	ret[(size_t)n - m] = 0;
	return 0;
}

/*
 * Opens the data directory.
 * SECURITY: the caller may have hard-linked writ-signer to another place. Refuse a directory that
 * the caller could have made or can change.
 */
static int open_data(int *ret_fd, struct writ_err *err)
{
	char dir[PATH_MAX];
	struct stat top, st;
	scoped_fd fd = -1, data = -1;
	int r = own_dir(dir, err);

	if (r < 0)
		return r;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	data = fd < 0 ? -1 : openat(fd, "data", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (data < 0 || fstat(fd, &top) < 0 || fstat(data, &st) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "writ-signer's own directory");
	if (top.st_uid != 0 || (top.st_mode & 022) || st.st_gid != getegid() ||
	    (st.st_mode & 07777) != 02770 || (getuid() != 0 && st.st_uid == getuid()))
		return writ_fail(err, WRIT_E_DENIED, 0,
				 "writ-signer's directory is not as it was installed");
	*ret_fd = fd_take(&data);
	return 0;
}

/* Changes to the calling user's directory below the data directory. */
static int enter_own(int data, struct writ_err *err)
{
	char name[32];
	struct stat st;
	scoped_fd fd = -1;

	(void)snprintf(name, sizeof(name), "%lu", (unsigned long)getuid());
	if (mkdirat(data, name, 0700) < 0 && errno != EEXIST)
		return writ_fail(err, WRIT_E_SYS, errno, "writ-signer's own directory");
	fd = openat(data, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0 || fchdir(fd) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "writ-signer's own directory");
	if (st.st_uid != getuid() || (st.st_mode & 0777) != 0700)
		return writ_fail(err, WRIT_E_DENIED, 0, "this user's directory is somebody else's");
	return 0;
}

static int enter_installed(struct writ_err *err)
{
	static const struct confine_tree trees[] = {
		{ ".", CONFINE_WRITE }, { "/proc/sys/kernel/random/boot_id", CONFINE_READ }
	};
	scoped_fd data = -1;
	int r;

	/*
	 * SECURITY: work only with a group that the caller does not have. Without setgid
	 * writ-signer could not protect its files; if the user is a member of the group, the user
	 * can change the files, too.
	 */
	if (getegid() == getgid() || signer_in_group(getegid()))
		return writ_fail(
			err, WRIT_E_DENIED, 0,
			"writ-signer was not given its group: no_new_privs or a nosuid mount, "
			"or the user is in it");
	if (getuid() != geteuid())
		return writ_fail(err, WRIT_E_DENIED, 0, "writ-signer is setuid, and must not be");
	if ((r = open_data(&data, err)) < 0 || (r = enter_own(data, err)) < 0 ||
	    (r = p256_start(err)) < 0)
		return r;
	/* Confine the process: the given descriptor, which it still reads, needs no path. */
	return confine_within(trees, ARRAY_LEN(trees), file_calls, ARRAY_LEN(file_calls), err);
}

/* --- the program as built --- */

static int serve_sign(int fd, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(SIGNER_MESSAGE_MAX), sig = BUF_INIT(ATTEST_SIG_MAX);
	scoped_buf back = BUF_INIT(512);
	struct attest_key pub;
	scoped_p256 *k = NULL;
	char letter = 0;
	int r;

	if ((r = p256_start(err)) < 0 || (r = p256_load(SIGNER_GIVEN, &k, err)) < 0 ||
	    (r = p256_public(k, &pub, err)) < 0 ||
	    (r = confine_self(plain_calls, ARRAY_LEN(plain_calls), 0, err)) < 0 ||
	    (r = signer_receive(fd, &b, &letter, err)) < 0)
		return r;
	if (letter != SIGNER_SIGN)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "that is nothing to sign");
	r = p256_sign(k, buf_view(&b), &sig, err);
	if (r < 0)
		return r;
	buf_add(&back, pub.der, sizeof(pub.der));
	buf_sv(&back, buf_view(&sig));
	return signer_send(fd, SIGNER_DONE, buf_view(&back), err);
}

static int serve_verify(int fd, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(SIGNER_MESSAGE_MAX);
	struct attest_key key;
	struct sv rest, sig;
	char letter = 0;
	int r;

	if ((r = p256_start(err)) < 0 ||
	    (r = confine_self(plain_calls, ARRAY_LEN(plain_calls), 0, err)) < 0 ||
	    (r = signer_receive(fd, &b, &letter, err)) < 0)
		return r;
	if (letter != SIGNER_VERIFY || b.n < ATTEST_SPKI + 1)
		return writ_fail(err, WRIT_E_SYNTAX, 0, "that is nothing to check");
	rest = buf_view(&b);
	sig = sv_sub(rest, ATTEST_SPKI + 1, (unsigned char)rest.p[ATTEST_SPKI]);
	if ((r = attest_key_init(&key, sv_sub(rest, 0, ATTEST_SPKI), err)) < 0 ||
	    (r = p256_verify(&key, sv_skip(rest, ATTEST_SPKI + 1 + sig.n), sig, err)) < 0)
		return r;
	return signer_send(fd, SIGNER_DONE, SV(""), err);
}

static const struct {
	const char *name;
	/*
	 * only the installed program has this mode; the installed program refuses the other modes
	 */
	bool installed;
	int (*run)(int fd, struct writ_err *err);
} modes[] = {
	{ "sign", false, serve_sign },
	{ "verify", false, serve_verify },
	{ "session", true, signer_serve_session },
	{ "attest", true, signer_serve_attest },
	{ "log", true, signer_serve_log },
};

static int run(const char *word, struct writ_err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		int r = 0;

		if (strcmp(modes[i].name, word) != 0)
			continue;
		if (modes[i].installed)
			r = enter_installed(err);
		else if (getauxval(AT_SECURE))
			r = writ_fail(err, WRIT_E_DENIED, 0, "the installed one does not do that");
		return r == 0 ? modes[i].run(SIGNER_SOCKET, err) : r;
	}
	return writ_fail(err, WRIT_E_SYNTAX, 0, "there is no such use of writ-signer");
}

int signer_main(int argc, char **argv)
{
	struct writ_err err = { 0 }, ignored = { 0 };
	int r;

	if (!reset_inherited())
		return 1;
	r = crypto_start(&err);
	if (r == 0)
		r = run(argc == 2 ? argv[1] : "", &err);
	if (r < 0)
		(void)!signer_send(SIGNER_SOCKET, SIGNER_FAIL, sv_from(err.what), &ignored);
	return r < 0;
}
