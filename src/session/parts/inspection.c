#include "parts/inspection_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "codec/store.h"
#include "l7/settings.h"
#include "parts/directories.h"
#include "parts/engine.h"
#include "parts/helper.h"
#include "parts/network_priv.h"
#include "parts/tokens.h"

#include "base/banned.h"

/*
 * Starts writ-l7, the process that reads requests, for sessions whose policy needs it. writ-l7
 * terminates TLS with the certificate authority of the session, which programs in the jail are told
 * to trust.
 */

enum { READY_MS = 10000, READER_FDS = 6, TRUST_MAX = 16 << 20 };

/* Files in which distributions keep all certificate authorities that the host trusts. */
static const char *const bundles[] = { "/etc/ssl/certs/ca-certificates.crt",
				       "/etc/pki/tls/certs/ca-bundle.crt",
				       "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
				       "/etc/ssl/ca-bundle.pem",
				       "/etc/ssl/cert.pem",
				       NULL };

const struct session_initial inspection_initial =
	SESSION_INITIAL(struct inspection, .reads = false);

bool inspection_reads(const struct session *s)
{
	return inspection_of(s)->reads;
}

struct sv inspection_trust_dir(const struct session *s)
{
	return inspection_of(s)->trust;
}

static bool is_needed(const struct session *s)
{
	const struct cap_set *set = &s->opt->policy->set;

	/* A secret alone allows no network access. */
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
	/* Only writ-l7, which reads requests, can recognise a denied request. */
	for (size_t i = 0; i < set->nots.n; i++)
		if (set->nots.v[i].cap.action == CAP_HTTP_REQUEST)
			return true;
	return false;
}

/* Opens the program writ-l7, which lies beside the program writ, installed or as built. */
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
		*one = (struct l7_secret){ p->name, p->form, p->url, inspection_of(s)->secrets[i] };
	return one != NULL;
}

static int make_settings(struct session *s, int *ret_fd, struct writ_err *err)
{
	struct l7_settings to = { .realm = s->opt->realm,
				  .session = sv_from(s->id),
				  .id = sv_from(inspection_of(s)->placeholder),
				  .set = s->opt->policy->set };
	scoped_buf b = BUF_INIT(L7_SETTINGS_MAX);
	scoped_fd fd = memfd_create("writ-l7", MFD_CLOEXEC);
	int r = fd < 0 ? writ_fail(err, WRIT_E_SYS, errno, "memfd_create") : 0;

	to.shared = *meter_shared(s);
	if (!inspection_of(s)->placeholder[0])
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
	if (r == 0)
		*ret_fd = fd_take(&fd);
	return r;
}

/*
 * Opens a file with the certificate authorities of the host (none if no known file exists) and of
 * the operator.
 */
static int open_roots(const struct session *s, int *ret_fd, struct writ_err *err)
{
	int fd = -1;

	for (size_t i = 0; bundles[i] && fd < 0; i++)
		fd = open(bundles[i], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return operator_roots(s, fd, ret_fd, err);
}

/* Executes writ-l7 with @fds as its descriptors 3 and up. */
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

int inspection_launch(struct session *s, struct writ_err *err)
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
		const int fds[READER_FDS] = { boss[1],
					      link[1],
					      settings,
					      roots,
					      network_of(s)->totals_fd,
					      quota_shares(meter_shared(s)) ? meter_fd(s) : -1 };

		network_of(s)->reader_pid = fork();
		if (network_of(s)->reader_pid == 0)
			exec_reader(program, fds, parent);
		if (network_of(s)->reader_pid < 0)
			r = writ_fail(err, WRIT_E_SYS, errno, "start writ-l7");
	}
	if (r == 0 && egress_send(network_of(s)->egress, &m, &link[0], 1) != 1)
		r = writ_fail(err, WRIT_E_SYS, errno, "speak to egress");
	if (r == 0)
		network_of(s)->reader = fd_take(&boss[0]);
	for (int i = 0; i < 2; i++) {
		fd_scope_close(&boss[i]);
		fd_scope_close(&link[i]);
	}
	return r;
}

int inspection_start(struct session *s, struct writ_err *err)
{
	return inspection_reads(s) ? inspection_launch(s, err) : 0;
}

/* --- certificate authorities that programs in the jail trust --- */

static int write_trust(struct session *s, const char *name, struct sv text, struct writ_err *err)
{
	const char *path = arena_fmt(s->a, SV_FMT "/%s", SV_ARG(inspection_of(s)->trust), name);
	scoped_fd fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;

	if (!path)
		return writ_nomem(err);
	return fd < 0 ? writ_fail(err, WRIT_E_SYS, errno, "%s", path) : fd_write_all(fd, text, err);
}

static const char *const trust_files[] = { "ca.pem", "ca-bundle.pem", "cacerts", "browser.json" };

/* Makes empty certificate files before the jail is built, so that the jail can mount them. */
int inspection_prepare(struct session *s, struct writ_err *err)
{
	const char *dir;
	int r = 0;

	inspection_of(s)->reads = is_needed(s);
	if (!inspection_reads(s))
		return 0;
	if (directories_get(s)->info.n) {
		inspection_of(s)->trust = directories_get(s)->info;
	} else {
		r = directories_run(s, err);
		dir = r < 0 ? NULL
			    : arena_fmt(s->a, SV_FMT "/trust", SV_ARG(directories_get(s)->run));
		if (r == 0 && (!dir || mkdir(dir, 0755) < 0))
			r = writ_fail(err, WRIT_E_SYS, errno, "make a directory");
		inspection_of(s)->trust = sv_from(dir);
	}
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(trust_files); i++)
		r = write_trust(s, trust_files[i], SV(""), err);
	return r;
}

/* Writes the certificate authorities for programs that do not read PEM files: Java and browsers. */
static int write_stores(struct session *s, struct sv ours, struct sv all, struct writ_err *err)
{
	scoped_buf java = BUF_INIT(TRUST_MAX), browser = BUF_INIT(64 << 10);
	int r = store_java(all, &java, err);

	if (r == 0)
		r = write_trust(s, "cacerts", buf_view(&java), err);
	if (r == 0)
		r = store_browser(ours, &browser, err);
	return r < 0 ? r : write_trust(s, "browser.json", buf_view(&browser), err);
}

int inspection_trust(struct session *s, struct sv pem, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(TRUST_MAX);
	scoped_fd roots = -1;
	int r = open_roots(s, &roots, err);

	if (r == 0 && roots >= 0)
		r = fd_read_all(roots, &b, err);

	/* A session that began without inspection has no directory for certificates. */
	if (inspection_of(s)->trust.n == 0)
		return r;
	if (r == 0) {
		buf_ch(&b, '\n');
		buf_sv(&b, pem);
		r = buf_check(&b, err);
	}
	if (r == 0)
		r = write_trust(s, "ca.pem", pem, err);
	if (r == 0)
		r = write_trust(s, "ca-bundle.pem", buf_view(&b), err);
	return r < 0 ? r : write_stores(s, pem, buf_view(&b), err);
}

/* Waits until writ-l7 has sent the certificate authority of the session. Commands start later. */
int inspection_wait(struct session *s, struct writ_err *err)
{
	struct pollfd p = { network_of(s)->reader, POLLIN, 0 };
	struct egress_message m;
	int fds[EGRESS_FDS];
	size_t n = 0;
	int r;

	if (!inspection_reads(s))
		return 0;
	do {
		r = poll(&p, 1, READY_MS);
	} while (r < 0 && errno == EINTR);
	r = r <= 0 ? 0 : egress_receive(network_of(s)->reader, &m, fds, &n);
	for (size_t i = 0; r > 0 && i < n; i++)
		close(fds[i]);
	if (r <= 0 || m.type != EGRESS_READY)
		return writ_fail(err, WRIT_E_SYS, 0, "writ-l7 did not start");
	return inspection_trust(s, (struct sv){ m.text, m.text_n }, err);
}

/* --- variables by which programs find certificate authorities --- */

enum trust_form {
	TRUST_ALL = 0,
	TRUST_OURS, /* the program adds the session's certificate authority to its own list */
	/*
	 * Set only in tier B, where no mount replaces Java's list of certificate authorities: Java
	 * prints a line when it reads this variable.
	 */
	TRUST_JAVA,
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
	/* Keep this row last: inspection_trust_name() may omit it. */
	{ "JAVA_TOOL_OPTIONS", TRUST_JAVA },
};

bool inspection_trust_name(struct session *s, size_t i, struct sv *ret_name, struct sv *ret_value)
{
	const struct sv info = engine_view(s)->info;
	const char *value = NULL;

	if (i >= ARRAY_LEN(trust_names) ||
	    (trust_names[i].form == TRUST_JAVA && engine_view(s)->own_mounts))
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
