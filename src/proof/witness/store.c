#include "witness/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>

#include "base/fd.h"

#include "base/banned.h"

int witness_store_open(struct witness_store *k, struct writ_err *err)
{
	char path[PATH_MAX];
	int r = fd_make_dirs(k->dir, err);

	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "%s/lock", k->dir);
	k->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (k->lock < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%s", path);
	if (flock(k->lock, LOCK_EX | LOCK_NB) < 0) {
		witness_store_close(k);
		return writ_fail(err, WRIT_E_DENIED, 0, "another witness has %s", k->dir);
	}
	return 0;
}

void witness_store_close(struct witness_store *k)
{
	fd_scope_close(&k->lock);
	k->lock = -1;
}

static void path_of(const struct witness_store *k, struct sv origin, char ret[static PATH_MAX])
{
	const struct digest d = crypto_sha256(origin);
	scoped_buf hex = BUF_INIT(80);

	digest_hex(&d, &hex);
	(void)snprintf(ret, PATH_MAX, "%s/%s", k->dir, hex.p);
}

/* Loads the witness's state of the log whose file is @path; zeros if the log is new. */
static int load(const char *path, struct sv origin, struct witness_state *ret, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(NOTE_MAX);
	struct checkpoint c;
	int r = fd_read_optional(path, &b, err);

	*ret = (struct witness_state){ 0 };
	/*
	 * SECURITY: refuse to answer if the stored state cannot be read. Treating the log as new
	 * would let its owner present another history.
	 */
	if (r <= 0 || (r = checkpoint_read(buf_view(&b), NULL, &c, err)) < 0)
		return r;
	if (!sv_eq(c.origin, origin))
		return writ_fail(err, WRIT_E_DENIED, 0, "a file of another log");
	*ret = (struct witness_state){ .size = c.size, .root = c.root };
	return 0;
}

static int cosign(struct witness_store *k, const struct witness_request *req, struct sv text,
		  const char *path, uint64_t time, struct buf *body, struct writ_err *err)
{
	scoped_buf kept = BUF_INIT(NOTE_MAX + 4096), line = BUF_INIT(1024);
	int r = cosign_sign(&k->key, &k->sec, time, text, &line, err);

	buf_sv(&kept, req->checkpoint);
	buf_sv(&kept, buf_view(&line));
	/*
	 * SECURITY: store the checkpoint before anyone sees the cosignature. After a crash the
	 * witness must still know which checkpoint it cosigned.
	 */
	if (r < 0 || (r = buf_check(&kept, err)) < 0 ||
	    (r = fd_replace_file(path, buf_view(&kept), 0600, err)) < 0)
		return r;
	buf_sv(body, buf_view(&line));
	return 0;
}

unsigned witness_store_answer(struct witness_store *k, struct sv request, uint64_t time,
			      struct buf *body)
{
	struct writ_err err = { 0 };
	struct witness_request req;
	struct witness_state known, next;
	enum witness_answer answer;
	struct checkpoint c;
	char path[PATH_MAX];
	struct sv text;

	if (tlog_witness_request_parse(request, &req, &err) < 0 ||
	    checkpoint_read(req.checkpoint, NULL, &c, &err) < 0)
		return WITNESS_BAD_REQUEST;
	path_of(k, c.origin, path);
	if (load(path, c.origin, &known, &err) < 0)
		return 500;
	answer = tlog_witness_decide(&req, k->logs, k->logs_n, &known, &next, &text, &err);
	if (answer == WITNESS_CONFLICT)
		tlog_witness_size_print(known.size, body);
	if (answer != WITNESS_COSIGN)
		return answer ? (unsigned)answer : 500;
	return cosign(k, &req, text, path, time, body, &err) < 0 ? 500 : 200;
}
