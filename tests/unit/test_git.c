#include "tap.h"

#include "gitnet/git.h"

#define BYTES(literal) ((struct sv){ literal, sizeof(literal) - 1 })
#define ZERO "0000000000000000000000000000000000000000"
#define ONE "1111111111111111111111111111111111111111"

static void test_requests(void)
{
	static const struct sv bad[] = {
		BYTES(""),
		BYTES("00"),
		BYTES("0000"),
		BYTES("0004"),
		BYTES("0005a"),
		BYTES("001agit-upload-pack /a.git"),	     /* no NUL */
		BYTES("001bgit-upload-pack a.gitx\0"),	     /* no slash */
		BYTES("001bgit-upload-pack /a.git\0host=x"), /* longer than it says */
		BYTES("0020git-upload-pack /a.git\0host"),   /* a word without its end */
		BYTES("001bgit-upload-pack /a\n.gi\0"),
		BYTES("001egit-upload-archive /a.git\0"),
		BYTES("001bGIT-UPLOAD-PACK /a.git\0"),
		BYTES("0017git-upload-pack  /\0"), /* two blanks */
	};
	struct git_request r = { .version = 9 };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(!gitnet_request_parse(bad[i], &r) && r.version == 9, "refused: %zu", i);
	ok(gitnet_request_parse(BYTES("001bgit-upload-pack /a.git\0"), &r) && !r.push &&
		   r.version == 0 && sv_is(r.path, "a.git"),
	   "a fetch");
	ok(gitnet_request_parse(BYTES("002egit-receive-pack /a.git\0host=x\0\0version=2\0"), &r) &&
		   r.push && r.version == 2 && sv_is(r.path, "a.git"),
	   "a push, of version 2");
}

static void test_updates(void)
{
	static const char *const bad[] = {
		"",
		ZERO,
		ZERO " " ONE,
		ZERO " " ONE " ",
		ZERO " " ONE " heads/x",
		ZERO " " ONE " refs/heads/a b",
		ZERO " " ONE " refs/heads/a..b",
		ZERO " " ONE " refs/heads/../x",
		ZERO " " ONE " refs/heads//x",
		ZERO " " ONE " refs/heads/x/",
		ZERO " " ONE " refs/heads/x.lock",
		ZERO " " ONE " refs/heads/-x",
		ZERO " " ONE " refs/heads/.x",
		ZERO " " ONE " refs/heads/x:refs/heads/y",
		ZERO " " ONE " refs/heads/*",
		ZERO " " ONE " refs/heads/x@{1}",
		ZERO " " ONE "1 refs/heads/x",
		"+" ONE " " ONE " refs/heads/x",
		ZERO " 111111111111111111111111111111111111111G refs/heads/x",
	};
	struct git_update u;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(!gitnet_update_parse(sv_from(bad[i]), &u), "refused: %s", bad[i]);
	ok(gitnet_update_parse(sv_from(ZERO " " ONE " refs/heads/agent/x"), &u) && u.create &&
		   !u.remove && sv_is(u.ref, "refs/heads/agent/x") && sv_is(u.new, ONE),
	   "a new branch");
	ok(gitnet_update_parse(sv_from(ONE " " ZERO " refs/tags/v1"), &u) && u.remove && !u.create,
	   "a deletion");
}

static const struct git_repo *only(struct arena *a, const char *cap, const char *rule,
				   git_repos *repos)
{
	struct cap_set set = { 0 };
	struct cap_entry *e = vec_push(a, &set.caps);
	struct cap_rule *r = vec_push(a, &set.rules);
	struct writ_err err = { 0 };

	*repos = (git_repos){ 0 };
	if (!e || !r || cap_parse(a, CAP_GRANT, sv_from(cap), &e->cap, &err) < 0)
		return NULL;
	r->text = sv_from(rule);
	return gitnet_repos_find(a, &set, repos, &err) == 0 && repos->n == 1 ? &repos->v[0] : NULL;
}

static void test_spellings(void)
{
	scoped_arena a = ARENA_INIT(1 << 20);
	git_repos all;
	const struct git_repo *r;

	r = only(&a, "git.use:r:ssh://git@a.b:22/x/y.git;op=fetch",
		 "allow git git@a.b:x/y.git fetch", &all);
	ok(r && r->spell_n == 3 && sv_is(r->dial, "git@a.b:x/y.git"), "dialled as it was written");
	ok(r && gitnet_repo_at(&all, SV("git@a.b:x/y.git")) == r &&
		   gitnet_repo_at(&all, SV("ssh://git@a.b/x/y.git")) == r &&
		   gitnet_repo_at(&all, SV("ssh://git@a.b:22/x/y.git")) == r,
	   "three spellings");
	ok(!gitnet_repo_at(&all, SV("git@a.b:x/y")) &&
		   !gitnet_repo_at(&all, SV("git@a.b:x/y.git/")) &&
		   !gitnet_repo_at(&all, SV("git@a.b:/x/y.git")) &&
		   !gitnet_repo_at(&all, SV("ssh://a.b/x/y.git")) && !gitnet_repo_at(&all, SV("")),
	   "and no other");
	r = only(&a, "git.use:r:ssh://git@a.b:22/x/y.git;op=fetch",
		 "allow git ssh://git@a.b/x/y.git fetch", &all);
	ok(r && sv_is(r->dial, "ssh://git@a.b/x/y.git"), "a URL stays one");
	r = only(&a, "git.use:r:ssh://git@a.b:2222/x.git;op=fetch",
		 "allow git ssh://git@a.b:2222/x.git fetch", &all);
	ok(r && r->spell_n == 1 && sv_is(r->dial, "ssh://git@a.b:2222/x.git"), "with its port");
	r = only(&a, "git.use:r:https://a.b:443/x%20y.git;op=fetch", "", &all);
	ok(r && sv_is(r->dial, "https://a.b/x%20y.git") &&
		   gitnet_repo_at(&all, SV("https://a.b/x y.git")) == r &&
		   !gitnet_repo_at(&all, SV("https://a.b/x%20y.git")),
	   "what git undid once is not undone again");
}

int main(void)
{
	test_requests();
	test_updates();
	test_spellings();
	return tap_done();
}
