/* fuzz_wire_target - request targets, and whether rules see what is sent */
#include "cap/cap.h"
#include "fuzz.h"
#include "wire/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sv raw = { (const char *)data, size };
	scoped_buf b = BUF_INIT(1 << 20), again = BUF_INIT(1 << 20);
	scoped_buf x = BUF_INIT(1 << 20), y = BUF_INIT(1 << 20);
	struct writ_err err = { 0 };
	struct target t, u;
	struct sv rest = raw;

	must(!target_method_check(raw) || (raw.n <= 16 && sv_is_graph(raw)));
	(void)target_is_override(raw);
	if (target_parse(raw, &b, &t, &err) != TARGET_OK) {
		must(err.what[0] && b.n == 0);
		return 0;
	}
	must(target_parse(t.text, &again, &u, &err) == TARGET_OK && sv_eq(t.text, u.text));
	must(sv_is_graph(t.text));
	must(cap_put_http_path(&x, sv_cut(&rest, '?'), &err) == 0);
	must(cap_put_http_path(&y, t.path, &err) == 0 && sv_eq(buf_view(&x), buf_view(&y)));
	must(sv_eq(t.query, rest));
	return 0;
}
