#include "attest/pin.h"

#include <fcntl.h>

#include "base/fd.h"
#include "crypto/crypto.h"

#include "base/banned.h"

int attest_pin_key(const char *path, const struct attest_key *key, struct writ_err *err)
{
	scoped_buf text = BUF_INIT(64 << 10);
	struct attest_key have[ATTEST_KEYS_MAX];
	size_t n = 0;
	int r;

	if ((r = fd_read_optional(path, &text, err)) < 0 ||
	    (r = attest_keys_parse(buf_view(&text), have, &n, err)) < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (digest_eq(&have[i].id, &key->id))
			return 0;
	if (text.n && text.p[text.n - 1] != '\n')
		buf_ch(&text, '\n');
	attest_key_print(key, &text);
	r = buf_check(&text, err);
	return r < 0 ? r : fd_replace_deep(AT_FDCWD, path, buf_view(&text), 0644, err);
}
