#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "signer/signer_priv.h"

#include "base/banned.h"

/*
 * The log of a user is not secret from that user: writ-signer can send every byte of the log, for
 * verification and for witnesses, which writ-signer cannot reach.
 * SECURITY: send bytes, never a descriptor. The files belong to the user's uid, so a descriptor
 * would allow reopening the files for writing.
 */

enum { DEPTH = 6, FILE_NAME_MAX = 256 };

static int send_one(int fd, const struct realm *log, const char *name, struct writ_err *err)
{
	scoped_fd file = openat(log->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char part[SIGNER_PART_MAX];
	ssize_t n;
	int r = 0;

	if (file < 0 && errno == ENOENT)
		return 0;
	do {
		n = file < 0 ? -1 : read(file, part, sizeof(part));
		if (n < 0)
			return writ_fail(err, WRIT_E_SYS, errno, "%s", name);
		r = signer_send_file(fd, name, (struct sv){ part, (size_t)n }, err);
	} while (r == 0 && n > 0);
	return r;
}

static int send_below(int fd, const struct realm *log, const char *dir, bool entries, int depth,
		      struct writ_err *err);

static int send_name(int fd, const struct realm *log, const char *dir, const char *file,
		     bool entries, int depth, struct writ_err *err)
{
	char name[FILE_NAME_MAX];
	const int n = snprintf(name, sizeof(name), "%s/%s", dir, file);
	struct stat st;

	if (file[0] == '.' || sv_ends(sv_from(file), SV(".new")) ||
	    (!entries && strcmp(name, "tile/entries") == 0))
		return 0;
	if (n < 0 || (size_t)n >= sizeof(name) ||
	    fstatat(log->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return writ_fail(err, WRIT_E_SYS, errno, "%.60s", dir);
	return S_ISDIR(st.st_mode) ? send_below(fd, log, name, entries, depth - 1, err)
				   : send_one(fd, log, name, err);
}

static int send_below(int fd, const struct realm *log, const char *dir, bool entries, int depth,
		      struct writ_err *err)
{
	scoped_list *d = depth ? fd_open_list(log->dir, dir) : NULL;
	const struct dirent *e;
	int r = 0;

	if (!d)
		return depth && errno == ENOENT ? 0 : writ_fail(err, WRIT_E_SYS, errno, "%s", dir);
	while (r == 0 && (e = readdir(d)))
		r = send_name(fd, log, dir, e->d_name, entries, depth, err);
	return r;
}

int signer_send_vkey(const struct held *h, int fd, struct writ_err *err)
{
	scoped_buf b = BUF_INIT(NOTE_VKEY_MAX + 2);
	scoped_key_pair pair = { 0 };
	struct note_key key;
	int r = signer_held_key(h, &pair, &key, err);

	if (r < 0)
		return r;
	note_key_print(&key, &b);
	buf_ch(&b, '\n');
	r = buf_check(&b, err);
	return r == 0 ? signer_send_file(fd, "log.vkey", buf_view(&b), err) : r;
}

static int send_log(const struct held *h, int fd, bool sign, bool entries, struct writ_err *err)
{
	static const char *const files[] = { "checkpoint", "latest", "cosigned" };
	static const char *const dirs[] = { "rotated", "tile", "wal" };
	scoped_realm log = REALM_INIT;
	int r;

	/*
	 * With @sign, sign and sync the log first: its checkpoint can reach others with the copy.
	 */
	if ((r = realm_open(&log, h->path[HELD_LOG], sign, err)) < 0 ||
	    (sign && (r = signer_held_sign(h, &log, true, err)) < 0))
		return r;
	r = signer_send_vkey(h, fd, err);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(files); i++)
		r = send_one(fd, &log, files[i], err);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(dirs); i++)
		r = send_below(fd, &log, dirs[i], entries, DEPTH, err);
	return r == 0 ? signer_send(fd, SIGNER_DONE, SV(""), err) : r;
}

/* Checks that the realm has a log. A request must not create a log. */
static bool has_log(struct held *h)
{
	signer_held_paths(h);
	return attest_is_word(h->realm) && access(h->path[HELD_LOG], F_OK) == 0;
}

static int send_copy(struct held *h, int fd, struct sv message, struct writ_err *err)
{
	struct signer_question q = { 0 };
	const int r = attest_decode(h->a, message, signer_log_members, SIGNER_LOG_N, &q, err);

	if (r < 0)
		return r;
	h->realm = q.realm;
	return has_log(h) ? send_log(h, fd, q.sign, q.entries, err)
			  : signer_send(fd, SIGNER_NONE, SV(""), err);
}

/*
 * Checks that @bytes is a checkpoint of this log. The cosignatures are not verified: writ-signer
 * does not know the user's witnesses, and only that user reads the file and verifies the
 * cosignatures.
 */
static int check_note(const struct held *h, struct realm *log, struct sv bytes,
		      struct checkpoint *ret, struct writ_err *err)
{
	scoped_key_pair pair = { 0 };
	struct note_key key;
	struct digest root;
	int r;

	if ((r = signer_held_key(h, &pair, &key, err)) < 0 ||
	    (r = checkpoint_open(bytes, &key, NULL, ret, err)) < 0)
		return r;
	if (ret->size > log->tree.size)
		return writ_fail(err, WRIT_E_DENIED, 0, "that is no checkpoint of this log");
	r = tree_root(&log->nodes.nodes, ret->size, &root, err);
	if (r == 0 && !digest_eq(&root, &ret->root))
		r = writ_fail(err, WRIT_E_DENIED, 0, "that is no checkpoint of this log");
	return r;
}

static uint64_t cosigned_size(const struct realm *log)
{
	scoped_buf b = BUF_INIT(NOTE_MAX);
	struct writ_err no = { 0 };
	struct checkpoint c;

	return realm_read(log, "cosigned", &b, &no) == 0 && b.n &&
			       checkpoint_read(buf_view(&b), NULL, &c, &no) == 0
		       ? c.size
		       : 0;
}

static int store_cosigned(struct held *h, int fd, struct sv message, struct writ_err *err)
{
	scoped_realm log = REALM_INIT;
	struct checkpoint c;
	int r;

	h->realm = sv_cut(&message, '\n');
	if (!has_log(h))
		return signer_send(fd, SIGNER_NONE, SV(""), err);
	if ((r = realm_open(&log, h->path[HELD_LOG], true, err)) < 0 ||
	    (r = check_note(h, &log, message, &c, err)) < 0 ||
	    (cosigned_size(&log) <= c.size &&
	     (r = fd_replace_deep(log.dir, "cosigned", message, 0600, err)) < 0))
		return r;
	return signer_send(fd, SIGNER_DONE, SV(""), err);
}

int signer_serve_log(int fd, struct writ_err *err)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	scoped_buf b = BUF_INIT(SIGNER_MESSAGE_MAX);
	struct held h = { .a = &a };
	char letter = 0;
	const int r = signer_receive(fd, &b, &letter, err);

	if (r < 0)
		return r;
	if (letter == SIGNER_LOG)
		return send_copy(&h, fd, buf_view(&b), err);
	if (letter == SIGNER_COSIGN)
		return store_cosigned(&h, fd, buf_view(&b), err);
	return writ_fail(err, WRIT_E_SYNTAX, 0, "that is no question");
}
