#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/store.h"
#include "l7/settings.h"
#include "session/session_priv.h"

#include "base/banned.h"

/*
 * The process that reads requests, for sessions whose policy needs it: it opens
 * TLS with an authority of the session's own, which programs inside are told to
 * trust.
 */

enum { READY_MS = 10000, READER_FDS = 6, TRUST_MAX = 16 << 20 };

/* Where distributions keep the authorities they trust, all in one file. */
static const char *const bundles[] = { "/etc/ssl/certs/ca-certificates.crt",
				       "/etc/pki/tls/certs/ca-bundle.crt",
				       "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
				       "/etc/ssl/ca-bundle.pem",
				       "/etc/ssl/cert.pem",
				       NULL };

bool read_needed(const struct session *s)
{
	const struct cap_set *set = &s->opt->policy->set;

	/* A secret grants no network by itself. */
	if (!reach_any(set))
		return false;
	for (size_t i = 0; i < set->caps.n; i++) {
		const struct cap *c = &set->caps.v[i].cap;

		if (c->action == CAP_SECRET_USE && !sv_is(c->as, "env"))
			return true;
		if (c->action == CAP_HTTP_REQUEST && !c->tls_pass &&
		    (set->net_level == NET_LEVEL_SIGNED || !reach_is_open(c)))
			return true;
	}
	/* A denied request can only be told apart by reading it. */
	for (size_t i = 0; i < set->nots.n; i++)
		if (set->nots.v[i].cap.action == CAP_HTTP_REQUEST)
			return true;
	return false;
}

/* Beside us, installed or as built. */
static int open_reader(struct writ_err *err)
{
	static const char *const tails[] = { "/../libexec/writ/writ-l7", "/writ-l7" };
	char path[PATH_MAX + 64];
	const ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
	char *slash;

	if (n > 0 && n < PATH_MAX) {
		path[n] = 0;
		slash = strrchr(path, '/');
		for (size_t i = 0; slash && i < ARRAY_LEN(tails); i++) {
			int fd;

			memcpy(slash, tails[i], strlen(tails[i]) + 1);
			fd = open(path, O_RDONLY | O_CLOEXEC);
			if (fd >= 0)
				return fd;
		}
	}
	if (access(WRIT_L7, R_OK) == 0)
		return open(WRIT_L7, O_RDONLY | O_CLOEXEC);
	return writ_fail(err, WRIT_E_UNENFORCEABLE, 0,
			 "requests have to be read, and writ-l7 is not installed");
}

static bool add_secret(struct session *s, struct l7_settings *to, size_t i)
{
	const struct policy_secret *p = &s->opt->policy->secrets.v[i];
	struct l7_secret *one;

	if (sv_is(p->form, "env"))
		return true;
	one = vec_push(s->a, &to->secrets);
	if (one)
		*one = (struct l7_secret){ p->name, p->form, p->url, s->secrets[i] };
	return one != NULL;
}

static int make_settings(struct session *s, int *ret_fd, struct writ_err *err)
{
	struct l7_settings to = { .realm = s->opt->realm,
				  .session = sv_from(s->id),
				  .id = sv_from(s->placeholder),
				  .set = s->opt->policy->set };
	struct buf b = BUF_INIT(L7_SETTINGS_MAX);
	scoped_fd fd = memfd_create("writ-l7", MFD_CLOEXEC);
	int r = fd < 0 ? writ_fail(err, WRIT_E_SYS, errno, "memfd_create") : 0;

	to.shared = s->shared;
	if (!s->placeholder[0])
		to.id = SV("00000000000000000000000000000000");
	for (size_t i = 0; r == 0 && i < s->opt->policy->secrets.n; i++)
		if (!add_secret(s, &to, i))
			r = writ_nomem(err);
	if (r == 0)
		r = l7_settings_encode(&to, &b, err);
	if (r == 0)
		r = fd_write_all(fd, buf_view(&b), err);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "lseek");
	if (b.p)
		explicit_bzero(b.p, b.n);
	buf_clear(&b);
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}

/* The host's own authorities; empty if it has none that we know of. And the operator's. */
static int open_roots(const struct session *s, int *ret_fd, struct writ_err *err)
{
	int fd = -1;

	for (size_t i = 0; bundles[i] && fd < 0; i++)
		fd = open(bundles[i], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return operator_roots(s, fd, ret_fd, err);
}

/* @fds become 3 and those above it. */
_Noreturn static void exec_reader(int program, const int fds[READER_FDS], pid_t parent)
{
	static char name[] = "writ-l7";
	static char *const argv[] = { name, NULL }, *const env[] = { NULL };
	int above[READER_FDS];

	helper_begin(parent);
	program = fcntl(program, F_DUPFD_CLOEXEC, 16);
	for (int i = 0; i < READER_FDS; i++)
		above[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, 16);
	for (int i = 0; i < READER_FDS; i++) {
		(void)close(3 + i);
		if (fds[i] >= 0 && dup2(above[i], 3 + i) < 0)
			_exit(1);
	}
	(void)close_range(3 + READER_FDS, ~0u, CLOSE_RANGE_CLOEXEC);
	fexecve(program, argv, env);
	_exit(127);
}

int read_start(struct session *s, struct writ_err *err)
{
	const struct egress_message m = { .type = EGRESS_READER };
	const pid_t parent = getpid();
	scoped_fd program = open_reader(err), settings = -1, roots = -1;
	int boss[2] = { -1, -1 }, link[2] = { -1, -1 };
	int r = program < 0 ? WRIT_E_UNENFORCEABLE : make_settings(s, &settings, err);

	if (r == 0)
		r = open_roots(s, &roots, err);

	if (r == 0)
		r = helper_pair(boss, err);
	if (r == 0)
		r = helper_pair(link, err);
	if (r == 0) {
		const int fds[READER_FDS] = {
			boss[1],      link[1],
			settings,     roots,
			s->totals_fd, quota_shares(&s->shared) ? s->shared_fd : -1
		};

		s->reader_pid = fork();
		if (s->reader_pid == 0)
			exec_reader(program, fds, parent);
		if (s->reader_pid < 0)
			r = writ_fail(err, WRIT_E_SYS, errno, "start writ-l7");
	}
	if (r == 0 && egress_send(s->egress, &m, &link[0], 1) != 1)
		r = writ_fail(err, WRIT_E_SYS, errno, "speak to egress");
	if (r == 0)
		s->reader = take_fd(&boss[0]);
	for (int i = 0; i < 2; i++) {
		scope_close(&boss[i]);
		scope_close(&link[i]);
	}
	return r;
}

/* --- trust --- */

static int write_trust(struct session *s, const char *name, struct sv text, struct writ_err *err)
{
	const char *path = arena_fmt(s->a, SV_FMT "/%s", SV_ARG(s->paths.trust), name);
	scoped_fd fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;

	if (!path)
		return writ_nomem(err);
	return fd < 0 ? writ_fail(err, WRIT_E_SYS, errno, "%s", path) : fd_write_all(fd, text, err);
}

static const char *const trust_files[] = { "ca.pem", "ca-bundle.pem", "cacerts", "browser.json" };

/* The files are there before the jail is built, so that they can be mounted. */
int read_prepare(struct session *s, struct writ_err *err)
{
	const char *dir;
	int r = 0;

	if (s->paths.info.n) {
		s->paths.trust = s->paths.info;
	} else {
		r = session_place_run(s, err);
		dir = r < 0 ? NULL : arena_fmt(s->a, SV_FMT "/trust", SV_ARG(s->paths.run));
		if (r == 0 && (!dir || mkdir(dir, 0755) < 0))
			r = writ_fail(err, WRIT_E_SYS, errno, "make a directory");
		s->paths.trust = sv_from(dir);
	}
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(trust_files); i++)
		r = write_trust(s, trust_files[i], SV(""), err);
	return r;
}

/* The same for those who do not read PEM. */
static int write_stores(struct session *s, struct sv ours, struct sv all, struct writ_err *err)
{
	struct buf java = BUF_INIT(TRUST_MAX), browser = BUF_INIT(64 << 10);
	int r = store_java(all, &java, err);

	if (r == 0)
		r = write_trust(s, "cacerts", buf_view(&java), err);
	if (r == 0)
		r = store_browser(ours, &browser, err);
	if (r == 0)
		r = write_trust(s, "browser.json", buf_view(&browser), err);
	buf_clear(&java);
	buf_clear(&browser);
	return r;
}

int read_trust(struct session *s, struct sv pem, struct writ_err *err)
{
	struct buf b = BUF_INIT(TRUST_MAX);
	scoped_fd roots = -1;
	int r = open_roots(s, &roots, err);

	if (r == 0 && roots >= 0)
		r = fd_read_all(roots, &b, err);

	/* Nothing was to be read when the session began: it has no place for them. */
	if (s->paths.trust.n == 0) {
		buf_clear(&b);
		return r;
	}
	if (r == 0) {
		buf_ch(&b, '\n');
		buf_sv(&b, pem);
		r = buf_check(&b, err);
	}
	if (r == 0)
		r = write_trust(s, "ca.pem", pem, err);
	if (r == 0)
		r = write_trust(s, "ca-bundle.pem", buf_view(&b), err);
	if (r == 0)
		r = write_stores(s, pem, buf_view(&b), err);
	buf_clear(&b);
	return r;
}

/* Nothing runs before its authority is known. */
int read_wait(struct session *s, struct writ_err *err)
{
	struct pollfd p = { s->reader, POLLIN, 0 };
	struct egress_message m;
	int fds[EGRESS_FDS];
	size_t n = 0;
	int r;

	do {
		r = poll(&p, 1, READY_MS);
	} while (r < 0 && errno == EINTR);
	r = r <= 0 ? 0 : egress_receive(s->reader, &m, fds, &n);
	for (size_t i = 0; r > 0 && i < n; i++)
		close(fds[i]);
	if (r <= 0 || m.type != EGRESS_READY)
		return writ_fail(err, WRIT_E_SYS, 0, "writ-l7 did not start");
	return read_trust(s, (struct sv){ m.text, m.text_n }, err);
}

/* --- what programs look at to find authorities --- */

enum trust_form {
	TRUST_ALL = 0,
	TRUST_OURS, /* the program adds it to its own */
	TRUST_JAVA, /* where no mount covers its list: it prints a line whenever it heeds this */
};

static const struct {
	const char *name;
	enum trust_form form;
} trust_names[] = {
	{ "SSL_CERT_FILE", TRUST_ALL },
	{ "CURL_CA_BUNDLE", TRUST_ALL },
	{ "GIT_SSL_CAINFO", TRUST_ALL },
	{ "REQUESTS_CA_BUNDLE", TRUST_ALL },
	{ "PIP_CERT", TRUST_ALL },
	{ "AWS_CA_BUNDLE", TRUST_ALL },
	{ "NODE_EXTRA_CA_CERTS", TRUST_OURS },
	{ "NPM_CONFIG_CAFILE", TRUST_ALL },
	{ "DENO_CERT", TRUST_OURS },
	{ "CARGO_HTTP_CAINFO", TRUST_ALL },
	{ "NIX_SSL_CERT_FILE", TRUST_ALL },
	{ "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", TRUST_ALL },
	{ "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", TRUST_ALL },
	{ "BUNDLE_SSL_CA_CERT", TRUST_ALL },
	{ "PERL_LWP_SSL_CA_FILE", TRUST_ALL },
	{ "JAVA_TOOL_OPTIONS", TRUST_JAVA }, /* keep last: it may be left out */
};

bool read_trust_name(const struct session *s, size_t i, struct sv *ret_name, struct sv *ret_value)
{
	const struct sv info = s->view.info;
	const char *value = NULL;

	if (i >= ARRAY_LEN(trust_names) ||
	    (trust_names[i].form == TRUST_JAVA && s->view.own_mounts))
		return false;
	switch (trust_names[i].form) {
	case TRUST_ALL:
		value = arena_fmt(s->a, SV_FMT "/ca-bundle.pem", SV_ARG(info));
		break;
	case TRUST_OURS:
		value = arena_fmt(s->a, SV_FMT "/ca.pem", SV_ARG(info));
		break;
	case TRUST_JAVA:
		value = arena_fmt(s->a, "-Djavax.net.ssl.trustStore=" SV_FMT "/cacerts",
				  SV_ARG(info));
		break;
	}
	*ret_name = sv_from(trust_names[i].name);
	*ret_value = sv_from(value);
	return value != NULL;
}
