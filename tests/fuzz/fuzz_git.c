#include <string.h>

#include "fuzz.h"
#include "gitnet/git.h"

/* The same bytes as a request, as a line of a push, and as a name of a ref. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct git_repo one = { .spell = { SV_INIT("https://a.b/x%20y.git") },
				       .spell_n = 1 };
	const git_repos repos = { .v = &one, .n = 1 };
	const struct sv all = { (const char *)data, size };
	struct git_request req;
	struct git_update up;

	if (gitnet_request_parse(all, &req)) {
		if (req.version > 2 || size > GIT_REQUEST_MAX || req.path.p < all.p ||
		    req.path.p + req.path.n > all.p + all.n)
			__builtin_trap();
		for (size_t i = 0; i < req.path.n; i++)
			if ((unsigned char)req.path.p[i] < 0x20)
				__builtin_trap();
		if (gitnet_repo_at(&repos, req.path) && !sv_is(req.path, "https://a.b/x y.git"))
			__builtin_trap();
	}
	if (gitnet_update_parse(all, &up) &&
	    (up.old.n != 40 || up.new.n != 40 || !gitnet_ref_is_fine(up.ref)))
		__builtin_trap();
	/* Nothing that git would take for an option, a pattern, a range or two words. */
	if (gitnet_ref_is_fine(all) && (!sv_starts(all, SV("refs/")) || memchr(data, ' ', size) ||
					memchr(data, ':', size) || memchr(data, 0, size)))
		__builtin_trap();
	return 0;
}
