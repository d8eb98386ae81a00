#include "codec/json.h"
#include "codec/store.h"
#include "fuzz.h"

/* The length that a DER header at @p gives, and *@ret_head its own; SIZE_MAX if it is none. */
static size_t der_length(const unsigned char *p, size_t n, size_t *ret_head)
{
	size_t v = 0;
	const size_t k = n > 1 && p[1] & 0x80 ? p[1] & 0x7fu : 0;

	if (n < 2 || k > 4 || n < 2 + k)
		return SIZE_MAX;
	for (size_t i = 0; i < k; i++)
		v = v << 8 | p[2 + i];
	*ret_head = 2 + k;
	return k ? v : p[1];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv pem = { (const char *)data, size };
	struct buf java = BUF_INIT(32 << 20), browser = BUF_INIT(32 << 20);
	struct writ_err err = { 0 };
	size_t head = 0;
	json_t *v = NULL;

	/* Whatever comes, what is made is whole: a sequence that ends where it says, and JSON. */
	if (store_java(pem, &java, &err) < 0 ||
	    der_length((const unsigned char *)java.p, java.n, &head) + head != java.n)
		abort();
	if (store_browser(pem, &browser, &err) < 0 ||
	    json_decode(buf_view(&browser), 32 << 20, &v, &err) < 0)
		abort();
	json_decref(v);
	buf_clear(&java);
	buf_clear(&browser);
	return 0;
}
