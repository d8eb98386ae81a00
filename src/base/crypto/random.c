#include "crypto/crypto.h"

#include <errno.h>
#include <sodium.h>
#include <sys/random.h>

#include "base/banned.h"

int crypto_start(struct writ_err *err)
{
	if (sodium_init() < 0)
		return writ_fail(err, WRIT_E_BUG, 0, "libsodium does not start");
	return 0;
}

int crypto_random(void *ret_bytes, size_t n, struct writ_err *err)
{
	uint8_t *p = ret_bytes;

	while (n) {
		const ssize_t got = getrandom(p, n, 0);

		if (got < 0) {
			if (errno == EINTR)
				continue;
			return writ_fail(err, WRIT_E_SYS, errno, "getrandom");
		}
		p += got;
		n -= (size_t)got;
	}
	return 0;
}

void crypto_wipe(void *bytes, size_t n)
{
	sodium_memzero(bytes, n);
}
