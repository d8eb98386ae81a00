/* fuzz_wire_name - host names and addresses as text */
#include "fuzz.h"
#include "wire/name.h"

/* What is printed is read as the same again, and is the same text. */
static void again(const struct wire_host *h)
{
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(300), c = BUF_INIT(300);
	struct wire_host back;

	wire_host_print(h, &b);
	must(wire_host_parse(buf_view(&b), &back, &err) == 0 && wire_host_eq(h, &back));
	wire_host_print(&back, &c);
	must(sv_eq(buf_view(&b), buf_view(&c)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv text = { (const char *)data, size };
	struct writ_err err = { 0 };
	struct wire_authority a, b;
	struct wire_host h;
	const int r = wire_host_parse(text, &h, &err);

	if (r == 0) {
		must(h.kind != WIRE_HOST_NONE && (h.kind == WIRE_HOST_NAME) == (h.n > 0));
		again(&h);
	} else {
		must(err.what[0] != 0);
	}
	/* What a rule can name is read as it stands. */
	if (cap_name_check(text))
		must(r == 0 && h.kind == WIRE_HOST_NAME && sv_eq(wire_host_name(&h), text));
	if (wire_authority_parse(text, 0, &a, &err) == 0) {
		must(a.has_port && a.port && wire_authority_parse(text, 7, &b, &err) == 0);
		must(a.port == b.port && wire_host_eq(&a.host, &b.host));
		again(&a.host);
	}
	return 0;
}
