#include "attest/pin.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "crypto/crypto.h"

#include "base/banned.h"

/* Reads the current contents of the pin file; a missing file counts as empty. */
static int old_text(const char *path, struct buf *b, struct writ_err *err)
{
	struct writ_err none = { 0 };
	const int r = fd_read_file(path, b, &none);

	if (r < 0 && none.sys != ENOENT)
		*err = none;
	return r < 0 && none.sys != ENOENT ? r : 0;
}

static int make_dir_of(const char *path, struct writ_err *err)
{
	char dir[4096];
	const size_t n = sv_rfind(sv_from(path), '/');

	if (n == SIZE_MAX || n == 0)
		return 0;
	if (n >= sizeof(dir))
		return writ_fail(err, WRIT_E_LIMIT, 0, "%s", path);
	memcpy(dir, path, n);
	dir[n] = 0;
	return fd_make_dirs(dir, err);
}

int attest_pin_key(const char *path, const struct attest_key *key, struct writ_err *err)
{
	scoped_buf text = BUF_INIT(64 << 10);
	struct attest_key have[ATTEST_KEYS_MAX];
	size_t n = 0;
	int r = old_text(path, &text, err);

	if (r == 0)
		r = attest_keys_parse(buf_view(&text), have, &n, err);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (digest_eq(&have[i].id, &key->id))
			return 0;
	if (r == 0 && text.n && text.p[text.n - 1] != '\n')
		buf_ch(&text, '\n');
	attest_key_print(key, &text);
	if (r == 0)
		r = buf_check(&text, err);
	if (r == 0)
		r = make_dir_of(path, err);
	return r == 0 ? fd_replace_file(path, buf_view(&text), 0644, err) : r;
}
