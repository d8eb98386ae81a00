#include "crypto/crypto.h"
#include "fuzz.h"
#include "lang/policy.h"
#include "world.h"

/*
 * A whole policy: must end with a policy or with diagnostics, and what parses
 * must print to something that prints to itself.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct policy_env env = { .ops = &fake_ops,
					.workspace = SV("/home/me/app"),
					.home = SV("/home/me"),
					.realm = SV("r"),
					.missing_ok = size > 0 && data[0] & 1 };
	struct source src = { .name = SV("p"),
			      .dir = SV(""),
			      .text = { (const char *)data, size } };
	const struct policy_input in = { .files = &src, .files_n = 1 };
	struct arena a = ARENA_INIT((size_t)64 << 20);
	struct diags d = { .arena = &a };
	struct buf once = BUF_INIT(1 << 22), twice = BUF_INIT(1 << 22), shown = BUF_INIT(1 << 24);
	struct writ_err err = { 0 };
	struct policy *p = NULL;
	const int r = policy_new(&env, &in, &d, &p, &err);

	if (r == 0 && d.errors)
		__builtin_trap();
	if (r == WRIT_E_SYNTAX && d.errors == 0)
		__builtin_trap();
	diag_print_all(&d, &shown, false);
	if (policy_print(&src, &(struct diags){ .arena = &a }, &once, &err) == 0) {
		const struct source again = { .name = SV("p"),
					      .dir = SV(""),
					      .text = buf_view(&once) };

		if (policy_print(&again, &(struct diags){ .arena = &a }, &twice, &err) != 0 ||
		    !sv_eq(buf_view(&once), buf_view(&twice)))
			__builtin_trap();
	}
	buf_clear(&once);
	buf_clear(&twice);
	buf_clear(&shown);
	arena_clear(&a);
	return 0;
}
