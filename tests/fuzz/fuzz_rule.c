#include "fuzz.h"
#include "lang/policy.h"
#include "world.h"

/* A rule flag of a command line, and a question: the first byte picks. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct policy_env env = { .ops = &fake_ops,
					.workspace = SV("/home/me/app"),
					.home = SV("/home/me"),
					.realm = SV("r") };
	struct arena a = ARENA_INIT((size_t)64 << 20);
	struct diags d = { .arena = &a };
	struct writ_err err = { 0 };
	struct source src = { .name = SV("--allow"), .dir = SV("") };

	if (size == 0)
		return 0;
	src.text = (struct sv){ (const char *)data + 1, size - 1 };
	if (data[0] % 8 == 7) {
		struct policy_question q;

		if (policy_ask(&env, &src, &d, &q, &err) == 0 && d.errors)
			__builtin_trap();
	} else {
		const struct policy_arg arg = { (enum policy_arg_kind)(data[0] % 7), src };
		const struct policy_input in = { .args = &arg, .args_n = 1 };
		struct policy *p;

		if (policy_new(&env, &in, &d, &p, &err) == 0 && d.errors)
			__builtin_trap();
	}
	arena_clear(&a);
	return 0;
}
