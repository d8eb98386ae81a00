#include "witness/ask.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "witness/http.h"

#include "base/banned.h"

enum { ROUNDS = 16 };

bool witness_configured(const struct tlog_policy *p)
{
	for (size_t i = 0; i < p->witnesses_n; i++)
		if (p->witness[i].url.n)
			return true;
	return false;
}

/* --- one HTTP request --- */

static int wait_for(int fd, short events, int64_t until, struct writ_err *err)
{
	struct pollfd p = { fd, events, 0 };
	int r;

	do
		r = poll(&p, 1, clock_ms_until(until));
	while (r < 0 && errno == EINTR);
	return r > 0 ? 0
		     : writ_fail(err, WRIT_E_SYS, r < 0 ? errno : ETIMEDOUT,
				 "the witness does not answer");
}

static int connect_witness(const struct http_url *url, int64_t until, int *ret,
			   struct writ_err *err)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(url->at.port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(url->at.port) };
	const bool is_v4 = url->at.host.kind == WIRE_HOST_V4;
	scoped_fd fd =
		socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r, sys = 0;
	socklen_t n = sizeof(sys);

	memcpy(&v4.sin_addr, url->at.host.addr.b, 4);
	memcpy(&v6.sin6_addr, url->at.host.addr.b, 16);
	if (fd < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "socket");
	r = is_v4 ? connect(fd, (const struct sockaddr *)&v4, sizeof(v4))
		  : connect(fd, (const struct sockaddr *)&v6, sizeof(v6));
	if (r < 0 && errno != EINPROGRESS)
		return writ_fail(err, WRIT_E_SYS, errno, "the witness cannot be reached");
	if (r < 0) {
		r = wait_for(fd, POLLOUT, until, err);
		if (r < 0)
			return r;
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &sys, &n) < 0 || sys)
			return writ_fail(err, WRIT_E_SYS, sys, "the witness cannot be reached");
	}
	*ret = fd_take(&fd);
	return 0;
}

static int send_all(int fd, struct sv bytes, int64_t until, struct writ_err *err)
{
	while (bytes.n) {
		const ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);
		int r = 0;

		if (n >= 0)
			bytes = sv_skip(bytes, (size_t)n);
		else if (errno == EAGAIN)
			r = wait_for(fd, POLLOUT, until, err);
		else if (errno != EINTR)
			return writ_fail(err, WRIT_E_SYS, errno, "the witness cannot be reached");
		if (r < 0)
			return r;
	}
	return 0;
}

static int recv_response(int fd, int64_t until, struct buf *in, unsigned *ret_status,
			 struct sv *ret_body, struct writ_err *err)
{
	char bytes[4096];

	for (;;) {
		int r = wait_for(fd, POLLIN, until, err);
		ssize_t n = r < 0 ? -1 : recv(fd, bytes, sizeof(bytes), 0);

		if (r < 0)
			return r;
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return writ_fail(err, WRIT_E_SYS, errno, "the witness does not answer");
		buf_add(in, bytes, (size_t)n);
		r = buf_check(in, err);
		if (r < 0)
			return r;
		switch (witness_http_answer_take(buf_view(in), n == 0, ret_status, ret_body, err)) {
		case WIRE_DONE:
			return 0;
		case WIRE_BAD:
			return err->code;
		case WIRE_MORE:
			break;
		}
	}
}

/* --- one witness --- */

struct asking {
	const struct log_place *place;
	const struct tlog_witness *w;
	struct sv note; /* the signed checkpoint that the witness is asked about */
	uint64_t size;
	int64_t until;
};

/* Makes a witness request that proves how the log grew from @known entries on. */
static int make_request(const struct asking *a, uint64_t known, struct buf *b, struct writ_err *err)
{
	struct witness_request req = { .old_size = known, .checkpoint = a->note };
	char path[LOG_PATH];
	scoped_realm log = REALM_INIT;
	int r;

	if (known && known < a->size &&
	    ((r = audit_log_path(a->place->state, "log", path, err)) < 0 ||
	     (r = realm_open(&log, path, false, err)) < 0 ||
	     (r = tree_prove_consistency(&log.nodes.nodes, known, a->size, &req.proof, err)) < 0))
		return r;
	return tlog_witness_request_print(&req, b, err);
}

static int post(const struct asking *a, struct sv request, struct buf *in, unsigned *ret_status,
		struct sv *ret_body, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(HTTP_REQUEST_MAX);
	struct http_url url;
	scoped_fd fd = -1;
	int r;

	if ((r = witness_http_url_parse(a->w->url, &url, err)) < 0 ||
	    (r = connect_witness(&url, a->until, &fd, err)) < 0)
		return r;
	witness_http_request_put(&url, request, &b);
	if ((r = buf_check(&b, err)) < 0 || (r = send_all(fd, buf_view(&b), a->until, err)) < 0)
		return r;
	return recv_response(fd, a->until, in, ret_status, ret_body, err);
}

static int refused(unsigned status, struct writ_err *err)
{
	return writ_fail(err, WRIT_E_DENIED, 0, "the witness refuses: %s",
			 status == 403	 ? "it does not know the key of this log"
			 : status == 404 ? "it does not know this log"
			 : status == 503 ? "it is busy"
					 : "its answer is not one that is known");
}

static int take_line(const struct asking *a, struct sv body, struct witnessed_one *ret,
		     struct writ_err *err)
{
	struct sv line;
	int r = tlog_witness_answer_read(body, a->note, &a->w->key, &line, &ret->time, err);

	if (r == 0 && line.n >= sizeof(ret->line))
		r = writ_fail(err, WRIT_E_LIMIT, 0, "the witness signs with too much");
	if (r < 0)
		return r;
	memcpy(ret->line, line.p, line.n);
	ret->line[line.n] = 0;
	ret->what = WITNESSED_COSIGNED;
	ret->size = a->size;
	return 0;
}

static int ask_one(const struct asking *a, struct witnessed_one *ret, struct writ_err *err)
{
	/*
	 * Start with the current size: most witnesses have seen all entries, or all but the newest.
	 */
	uint64_t asked = a->size;

	for (int i = 0; i < ROUNDS; i++) {
		scoped_buf request = BUF_INIT(WITNESS_REQUEST_MAX), in = BUF_INIT(HTTP_ANSWER_MAX);
		unsigned status = 0;
		struct sv body;
		uint64_t said;
		int r = make_request(a, asked, &request, err);

		if (r == 0)
			r = post(a, buf_view(&request), &in, &status, &body, err);
		if (r < 0)
			return r;
		if (status == WITNESS_COSIGN)
			return take_line(a, body, ret, err);
		if (status == WITNESS_INCONSISTENT) {
			ret->what = WITNESSED_DIFFERENT;
			ret->size = asked;
			return 0;
		}
		if (status != WITNESS_CONFLICT)
			return refused(status, err);
		r = tlog_witness_size_parse(body, &said, err);
		if (r < 0)
			return r;
		ret->size = said;
		/* Ask again from the size in a conflict response, unless it shows another log. */
		ret->what = said > a->size ? WITNESSED_SHORTER
			    : said == asked ? WITNESSED_DIFFERENT
					    : WITNESSED_NOT;
		if (ret->what != WITNESSED_NOT)
			return 0;
		asked = said;
	}
	return writ_fail(err, WRIT_E_DENIED, 0, "the witness changes its mind");
}

/* --- all witnesses --- */

static int read_checkpoint(const struct witness_log *l, bool sign, struct buf *b,
			   struct writ_err *err)
{
	const bool ours = !l->fetch;
	char path[LOG_PATH];
	scoped_realm log = REALM_INIT;
	int r;

	/*
	 * SECURITY: sync the log before another party sees the checkpoint. A crash must not remove
	 * entries that a witness has cosigned, or the log would look cut off.
	 */
	if ((!ours && (r = l->fetch(l->ctx, err)) < 0) ||
	    (r = audit_log_path(l->place.state, "log", path, err)) < 0 ||
	    (r = realm_open(&log, path, sign && ours, err)) < 0 ||
	    (sign && ours && (r = audit_log_sign(&l->place, &log, true, err)) < 0) ||
	    (r = realm_read(&log, "checkpoint", b, err)) < 0)
		return r;
	if (b->n == 0)
		return writ_fail(err, WRIT_E_DENIED, 0,
				 "there is no checkpoint that a witness could have seen");
	return 0;
}

static uint64_t size_of(struct sv bytes)
{
	struct writ_err no = { 0 };
	struct checkpoint c;

	return checkpoint_read(bytes, NULL, &c, &no) == 0 ? c.size : 0;
}

/* Stores the cosigned checkpoint. The user's own log keeps a larger one that is stored already. */
static int store_cosigned(const struct witness_log *l, struct sv note,
			  const struct witnessed_all *all, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(NOTE_MAX), old = BUF_INIT(NOTE_MAX);
	char path[LOG_PATH];
	scoped_realm log = REALM_INIT;
	int r;

	buf_sv(&b, note);
	for (size_t i = 0; i < all->n; i++)
		buf_str(&b, all->one[i].line);
	if ((r = audit_log_path(l->place.state, "log", path, err)) < 0 ||
	    (r = buf_check(&b, err)) < 0)
		return r;
	if (l->store)
		return l->store(l->ctx, buf_view(&b), err);
	if ((r = realm_open(&log, path, true, err)) < 0)
		return r;
	if (realm_read(&log, "cosigned", &old, err) == 0 && size_of(buf_view(&old)) > all->size)
		return 0;
	return fd_replace_deep(log.dir, "cosigned", buf_view(&b), 0600, err);
}

/* Asks all witnesses about the checkpoint in @note. Returns a bit mask of those that cosigned. */
static uint32_t ask_all(const struct log_place *p, const struct tlog_policy *pins, struct sv note,
			int64_t until, struct witnessed_all *ret)
{
	uint32_t cosigned = 0;

	*ret = (struct witnessed_all){ .size = size_of(note), .n = pins->witnesses_n };
	for (size_t i = 0; i < pins->witnesses_n; i++) {
		/*
		 * Give each witness an equal share of the remaining time, so that a silent witness
		 * delays no other witness.
		 */
		const int64_t now = clock_monotonic_ms();
		const int64_t share = (until - now) / (int64_t)(pins->witnesses_n - i);
		const struct asking a = { p, &pins->witness[i], note, ret->size, now + share };
		struct witnessed_one *one = &ret->one[i];

		if (a.w->url.n == 0)
			(void)!writ_fail_lit(&one->err, WRIT_E_SYS, 0, "it has no URL");
		else if (ask_one(&a, one, &one->err) < 0)
			one->what = WITNESSED_NOT;
		cosigned |= (uint32_t)(one->what == WITNESSED_COSIGNED) << i;
	}
	ret->enough = tlog_policy_met(pins, cosigned);
	return cosigned;
}

static bool any_shorter(const struct witnessed_all *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->one[i].what == WITNESSED_SHORTER)
			return true;
	return false;
}

int witness_ask(const struct witness_log *l, const struct tlog_policy *pins, bool sign, unsigned ms,
		struct witnessed_all *ret, struct writ_err *err)
{
	const int64_t until = clock_monotonic_ms() + ms;
	scoped_buf note = BUF_INIT(NOTE_MAX);
	uint32_t cosigned = 0;

	/*
	 * Another process may have extended the log and had it cosigned after this process read the
	 * log. Read the log again before reporting that the log is shorter than the witness knows.
	 */
	for (int i = 0; i < ROUNDS; i++) {
		scoped_buf fresh = BUF_INIT(NOTE_MAX);
		const int r = read_checkpoint(l, sign, &fresh, err);

		if (r < 0)
			return r;
		if (i && size_of(buf_view(&fresh)) <= ret->size)
			break;
		note.n = 0;
		buf_sv(&note, buf_view(&fresh));
		cosigned = ask_all(&l->place, pins, buf_view(&note), until, ret);
		if (!any_shorter(ret))
			break;
	}
	return sign && cosigned ? store_cosigned(l, buf_view(&note), ret, err) : 0;
}
