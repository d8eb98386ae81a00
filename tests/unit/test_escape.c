/*
 * test_escape - which keys are for us, and which for the command
 */
#include "tap.h"
#include "term/relay.h"

static void escape_is(const char *keys, const char *want, bool leaves, const char *name)
{
	const struct sv all = sv_from(keys);

	/* Whole, and one key at a time. */
	for (size_t step = all.n ? all.n : 1; step; step = step > 1 ? 1 : 0) {
		scoped_buf b = BUF_INIT(100);
		bool held = false, left = false;

		for (size_t i = 0; i < all.n && !left; i += step)
			left = escape_step(&held, sv_sub(all, i, step), &b);
		ok(left == leaves && sv_is(buf_view(&b), want), "escape: %s", name);
	}
}

int main(void)
{
	escape_is("abc", "abc", false, "other keys go through");
	escape_is("a\035db", "a", true, "with d it leaves, and nothing behind it is sent");
	escape_is("\035\035d", "\035d", false, "twice it is sent once");
	escape_is("\035x", "\035x", false, "with another key both are sent");
	escape_is("a\035", "a", false, "alone it waits");
	return tap_done();
}
