/* fuzz_wire_hello - the start of a stream, at once and in pieces of the first byte's size */
#include "fuzz.h"
#include "wire/hello.h"

static enum hello_state push(struct hello *h, struct sv all, size_t piece, size_t *ret_used)
{
	enum hello_state s = HELLO_MORE;
	struct writ_err err = { 0 };
	size_t used = 0;

	while (all.n && s == HELLO_MORE) {
		const struct sv in = sv_sub(all, 0, piece);
		size_t n;

		s = hello_push(h, in, &n, &err);
		must(n <= in.n && (s != HELLO_MORE || n == in.n));
		used += n;
		all = sv_skip(all, in.n);
	}
	must((s == HELLO_BAD) == (err.what[0] != 0));
	*ret_used = used;
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t one[HELLO_ROOM], two[HELLO_ROOM];
	struct sv all = { (const char *)data + 1, size - 1 };
	struct hello a, b;
	enum hello_state s;
	size_t m, n;

	if (size == 0)
		return 0;
	hello_init(&a, one, sizeof(one));
	hello_init(&b, two, sizeof(two));
	s = push(&a, all, SIZE_MAX, &m);
	must(push(&b, all, 1u + data[0], &n) == s);
	if (s != HELLO_OK)
		return 0;
	must(m == n && wire_host_eq(&a.name, &b.name) && a.version == b.version &&
	     a.has_ech == b.has_ech && a.alpn_n == b.alpn_n);
	for (size_t i = 0; i < a.alpn_n; i++)
		must(sv_eq(a.alpn[i], b.alpn[i]) && a.alpn[i].n);
	return 0;
}
