#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "parts/commands.h"
#include "parts/inspection_priv.h"
#include "parts/record.h"
#include "wire/upstream.h"

#include "base/banned.h"

/*
 * Settings about the host's network come from writ's own environment, not from a policy: a policy
 * may be written by others.
 */

enum { ROOTS_MAX = 4 << 20, LOGIN_MAX = 1024 };

static struct sv setting(const struct session *s, struct sv name)
{
	return environ_get(s->opt->environ, name);
}

/* Appends the content of the file whose path is in the variable @name. */
static int read_named(const struct session *s, struct sv name, struct buf *b, struct writ_err *err)
{
	const char *path = arena_str(s->a, setting(s, name));
	scoped_fd fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;

	if (!path)
		return writ_nomem(err);
	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, SV_FMT ": %s", SV_ARG(name), path);
	return fd_read_all(fd, b, err);
}

static int load_proxy(struct session *s, struct writ_err *err)
{
	const struct sv name = SV("WRIT_UPSTREAM_PROXY"), login = SV("WRIT_UPSTREAM_PROXY_LOGIN");
	scoped_buf b = BUF_INIT(LOGIN_MAX);
	struct upstream *u;
	int r;

	if (setting(s, name).n == 0)
		return 0;
	u = arena_new(s->a, struct upstream);
	if (!u)
		return writ_nomem(err);
	r = upstream_parse(setting(s, name), u, err);
	if (r == 0 && setting(s, login).n) {
		r = read_named(s, login, &b, err);
		if (r == 0)
			r = upstream_login(u, buf_view(&b), err);
	}
	if (b.p)
		explicit_bzero(b.p, b.n);
	if (r == 0)
		inspection_of(s)->upstream = u;
	return r;
}

/* Loads the certificate authorities that the operator adds to those of the host. */
static int load_roots(struct session *s, struct writ_err *err)
{
	const struct sv name = SV("WRIT_CA_FILE");
	scoped_buf b = BUF_INIT(ROOTS_MAX);
	int r;

	if (setting(s, name).n == 0)
		return 0;
	r = read_named(s, name, &b, err);
	if (r == 0 && (b.n == 0 || !memmem(b.p, b.n, "-----BEGIN CERTIFICATE-----", 27)))
		r = writ_fail(err, WRIT_E_SYNTAX, 0, "WRIT_CA_FILE: no certificate in PEM");
	if (r == 0 && !arena_sv(s->a, buf_view(&b), &inspection_of(s)->more_roots))
		r = writ_nomem(err);
	return r;
}

int operator_start(struct session *s, struct writ_err *err)
{
	const int r = load_proxy(s, err);

	return r < 0 ? r : load_roots(s, err);
}

void operator_record(const struct session *s, struct entry *entry)
{
	scoped_buf at = BUF_INIT(512);

	if (s->opt->resolver.n)
		record_str(entry, "resolver", s->opt->resolver);
	if (inspection_of(s)->upstream) {
		wire_host_print(&inspection_of(s)->upstream->at.host, &at);
		buf_fmt(&at, ":%u", inspection_of(s)->upstream->at.port);
		record_str(entry, "upstream_proxy", buf_view(&at));
	}
	if (inspection_of(s)->more_roots.n)
		record_str(entry, "ca_file", setting(s, SV("WRIT_CA_FILE")));
}

/*
 * Sets *@ret_fd to @roots, or to a file with the certificate authorities of @roots and of the
 * operator.
 */
int operator_roots(const struct session *s, int roots, int *ret_fd, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(16 << 20);
	scoped_fd host = roots, fd = -1;
	int r;

	if (inspection_of(s)->more_roots.n == 0) {
		*ret_fd = fd_take(&host);
		return 0;
	}
	fd = memfd_create("writ-roots", MFD_CLOEXEC);
	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "memfd_create");
	r = fd_read_all(host, &b, err);
	buf_ch(&b, '\n');
	buf_sv(&b, inspection_of(s)->more_roots);
	if (r == 0)
		r = buf_check(&b, err);
	if (r == 0)
		r = fd_write_all(fd, buf_view(&b), err);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = writ_fail(err, WRIT_E_SYS, errno, "lseek");
	if (r == 0)
		*ret_fd = fd_take(&fd);
	return r;
}

const struct upstream *operator_upstream(const struct session *s)
{
	return inspection_of(s)->upstream;
}
