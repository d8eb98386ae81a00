/*
 * fuzz_cap - capability texts. The first byte picks the kind; a newline splits
 * the rest in two, so that pairs are compared as well.
 */
#include "cap/component.h"
#include "fuzz.h"

/* What was accepted must print to the same bytes, which is what canonical means. */
static bool parse(struct arena *a, enum cap_kind kind, struct sv text, struct cap *ret_cap)
{
	struct writ_err err = { 0 };
	scoped_buf b = BUF_INIT(CAP_TEXT_MAX);
	struct cap again;

	if (cap_parse(a, kind, text, ret_cap, &err) < 0)
		return false;
	must(sv_eq(ret_cap->text, text));
	cap_print(ret_cap, &b);
	must(sv_eq(buf_view(&b), text));
	must(cap_parse(a, kind, buf_view(&b), &again, &err) == 0);
	return true;
}

static void compare(struct arena *a, const struct cap *x, const struct cap *y)
{
	struct writ_err err = { 0 };
	bool any = false, other = false;
	struct cap m, n;

	must(cap_within(x, x));
	must(cap_meet(a, x, y, &m, &any, &err) == 0);
	must(cap_meet(a, y, x, &n, &other, &err) == 0);
	must(any == other);
	if (any)
		must(sv_eq(m.text, n.text) && cap_within(&m, x) && cap_within(&m, y));
	if (cap_within(x, y) && cap_within(y, x))
		must(sv_eq(x->text, y->text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_arena a = ARENA_INIT(4 << 20);
	struct sv first, rest = { (const char *)data, size };
	enum cap_kind kind;
	struct cap x, y, req;

	if (size == 0)
		return 0;
	kind = data[0] % 3 == 0 ? CAP_GRANT : data[0] % 3 == 1 ? CAP_REQUEST : CAP_DENIAL;
	rest = sv_skip(rest, 1);
	first = sv_cut(&rest, '\n');
	if (!parse(&a, kind, first, &x))
		return 0;
	if (kind == CAP_GRANT && parse(&a, CAP_GRANT, rest, &y))
		compare(&a, &x, &y);
	if (parse(&a, CAP_REQUEST, rest, &req)) {
		(void)cap_matches(&x, &req);
		if (kind == CAP_DENIAL)
			(void)cap_denies(&x, &req);
	}
	return 0;
}
