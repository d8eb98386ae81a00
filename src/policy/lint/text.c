#include "lint/check_priv.h"

#include <string.h>

#include "base/banned.h"

/* Does @s begin with the first @n bytes of the lower-case text @want, ignoring case? */
static bool begins(struct sv s, const char *want, size_t n)
{
	if (s.n < n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (sv_lower(s.p[i]) != want[i])
			return false;
	return true;
}

bool lint_has(struct sv s, const char *want)
{
	const size_t n = strlen(want);

	for (size_t i = 0; i + n <= s.n; i++)
		if (begins(sv_skip(s, i), want, n))
			return true;
	return false;
}

bool lint_eq(struct sv s, const char *want)
{
	const size_t n = strlen(want);

	return s.n == n && begins(s, want, n);
}

bool lint_starts(struct sv s, const char *prefix)
{
	return sv_starts(s, sv_from(prefix));
}

bool lint_ends(struct sv s, const char *suffix)
{
	return sv_ends(s, sv_from(suffix));
}

bool lint_any(struct sv s, const char *const *list, bool (*test)(struct sv s, const char *word))
{
	for (; *list; list++)
		if (test(s, *list))
			return true;
	return false;
}

bool lint_in(struct sv s, const char *const *list)
{
	return lint_any(s, list, sv_is);
}

struct sv lint_base(struct sv path)
{
	const size_t slash = sv_rfind(path, '/');

	return slash == SIZE_MAX ? path : sv_skip(path, slash + 1);
}

struct sv lint_default(struct sv s)
{
	size_t dash;

	if (s.n < 3 || !lint_starts(s, "${") || s.p[s.n - 1] != '}')
		return s;
	dash = sv_find(s, '-');
	if (dash == SIZE_MAX || sv_find(s, '}') != s.n - 1)
		return s;
	return sv_sub(s, dash + 1, s.n - dash - 2);
}

bool lint_is_reference(struct sv s)
{
	if (s.n < 2)
		return false;
	if ((s.p[0] == '$' && s.p[1] != ' ') || (lint_starts(s, "{{") && lint_ends(s, "}}")))
		return true;
	return s.p[0] == '%' && s.p[s.n - 1] == '%';
}

struct sv lint_cut(struct sv *in, char sep)
{
	unsigned depth = 0;
	size_t i;
	struct sv head;

	for (i = 0; i < in->n; i++) {
		const char ch = in->p[i];

		if (ch == '$' && i + 1 < in->n && in->p[i + 1] == '{')
			depth++;
		else if (ch == '}' && depth)
			depth--;
		else if (ch == sep && !depth)
			break;
	}
	head = sv_sub(*in, 0, i);
	*in = sv_skip(*in, i + 1);
	return head;
}
