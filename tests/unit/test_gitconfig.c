#include "tap.h"

#include "vcs/gitattributes.h"
#include "vcs/gitconfig.h"
#include "lang/protect.h"

static const char plain[] = "[core]\n"
			    "\trepositoryformatversion = 0\n"
			    "\tfilemode = true\n"
			    "\tbare = false\n";

static void pass(const char *was, const char *is, const char *name)
{
	struct gitconfig_answer a;
	const bool r = gitconfig_check(sv_from(was), sv_from(is), false, &a);

	if (!ok(r, "%s", name))
		printf("# %s\n", a.why);
}

static void fail(const char *was, const char *is, const char *why, const char *name)
{
	struct gitconfig_answer a;
	const bool r = gitconfig_check(sv_from(was), sv_from(is), false, &a);

	ok(!r && strstr(a.why, why), "%s (%s)", name, r ? "passed" : a.why);
}

static void test_safe(void)
{
	pass("", plain, "a new repository");
	pass(plain, plain, "no change");
	pass(plain, "", "safe keys may go");
	pass("",
	     "[remote \"origin\"]\n\turl = https://example.org/a.git\n\tfetch = "
	     "+refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = "
	     "refs/heads/main\n",
	     "a clone");
	pass("", "[remote \"o\"]\nurl=git@example.org:a/b.git\n[remote \"p\"] url = /srv/git/x\n",
	     "scp-like and a path");
	pass("", "[remote \"o\"]\nurl = ../other\n", "a relative path");
	pass("", "[branch \"x\"]\nremote = .\n", "this repository itself");
	pass("", "[USER] Name = A ; comment\n# more\n email = \"a b\" # c\n", "case and comments");
	pass("", "[color \"diff\"]\nmeta = yellow bold\n[advice]\ndetachedHead = false\n", "looks");
	pass("[core]\n\thooksPath = x\n", "[core]\n\thooksPath = x\n[user]\n\tname = n\n",
	     "what was there stays");
	pass("[core]\nhooksPath = x\n[user]\nname=a\n",
	     "[core]\nhooksPath=\"x\" ; c\n[user]\nname=b\n", "and may be written differently");
	pass("", "[submodule \"a\"]\nupdate = none\nurl=../x\nactive = true\n", "a submodule");
}

static void test_unsafe(void)
{
	static const char *const keys[] = {
		"[core]\nhooksPath = /tmp/x",
		"[core]\nfsmonitor = /tmp/x",
		"[core]\nsshCommand = x",
		"[core]\npager = x",
		"[core]\neditor = x",
		"[core]\naskPass = x",
		"[core]\ngitProxy = x",
		"[core]\nworktree = /home",
		"[core]\nattributesFile = x",
		"[core]\nexcludesFile = x",
		"[core]\nalternateRefsCommand = x",
		"[diff]\nexternal = x",
		"[diff \"a\"]\ncommand = x",
		"[diff \"a\"]\ntextconv = x",
		"[merge \"a\"]\ndriver = x",
		"[filter \"a\"]\nclean = x",
		"[filter \"a\"]\nprocess = x",
		"[credential]\nhelper = !x",
		"[include]\npath = x",
		"[includeIf \"gitdir:/\"]\npath = x",
		"[alias]\nco = !x",
		"[gpg]\nprogram = x",
		"[gpg \"ssh\"]\ndefaultKeyCommand = x",
		"[sequence]\neditor = x",
		"[uploadpack]\npackObjectsHook = x",
		"[receive]\nprocReceiveRefs = x",
		"[remote \"o\"]\nuploadpack = x",
		"[remote \"o\"]\nreceivepack = x",
		"[remote \"o\"]\nproxy = x",
		"[remote \"o\"]\nvcs = x",
		"[remote \"o\"]\nurl = ext::sh -c x",
		"[remote \"o\"]\nurl = foo://x",
		"[remote \"o\"]\nurl = -oProxyCommand=x",
		"[remote \"o\"]\nurl = ssh://-oProxyCommand=x/y",
		"[branch \"m\"]\nremote = ext::sh -c x",
		"[branch \"m\"]\nmergeOptions = -s x",
		"[url \"x\"]\ninsteadOf = y",
		"[protocol]\nallow = always",
		"[protocol \"ext\"]\nallow = always",
		"[http]\nproxy = x",
		"[http \"x\"]\nsslCert = x",
		"[init]\ntemplateDir = x",
		"[gc]\nrecentObjectsHook = x",
		"[submodule \"a\"]\nupdate = !x",
		"[interactive]\ndiffFilter = x",
		"[man \"x\"]\ncmd = x",
		"[browser \"x\"]\ncmd = x",
		"[commit]\ntemplate = x",
		"[trailer \"x\"]\ncommand = x",
		"[tar \"x\"]\ncommand = x",
		"[sendemail]\nsmtpServer = x",
		"[nobody]\nknows = this",
		"[help]\nautocorrect = 1",
	};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		fail(plain, keys[i], "may not be set", strchr(keys[i], '\n') + 1);
	fail("[core]\nhooksPath=a\n", "[core]\nhooksPath=b\n", "core.hookspath", "a changed one");
	fail("[core]\nhooksPath=a\n", "", "may not be removed", "a removed one");
	fail("[core]\nhooksPath=a\npager=p\n", "[core]\npager=p\nhooksPath=a\n", "may not be set",
	     "another order");
	fail("", "[core]\nhooks\\\nPath=a\n", "form", "a key cannot go on in the next line");
	fail("", "[user]\nname = a\\\n\n[core]\n hooksPath = x\n", "core.hookspath",
	     "a value can, and what follows is still read");
	fail("", "[user]\nname = \"a\n[core]\nhooksPath = x\"\n", "form", "an open quote");
}

static void test_forms(void)
{
	fail("", "[core] hooksPath = x", "core.hookspath", "on the line of its section");
	fail("", "[core]\r\n\thooksPath = x\r\n", "core.hookspath", "carriage returns");
	fail("", "\xef\xbb\xbf[core]\n\thooksPath = x\n", "core.hookspath", "a byte order mark");
	fail("", "[core]fsmonitor\n", "core.fsmonitor", "without a value");
	fail("", "[CORE]\nHOOKSPATH=x\n", "core.hookspath", "upper case");
	fail("", "[core.x]\na=b\n", "form", "the old form of subsections");
	fail("", "[core\n", "form", "an open bracket");
	fail("", "core = x\n", "form", "outside any section");
	fail("", "[user]\nname = \"x\\q\"\n", "form", "an unknown escape");
	fail("", "[user]\nname = a\x01", "user.name", "control characters");
	fail("", "[user \"x\"]\nname = a\n", "user.*.name", "a subsection where none belongs");
	fail("", "[remote]\nurl = x\n", "remote.url", "none where one belongs");
	{
		struct gitconfig_answer a;
		const char with_nul[] = "[user]\nname=a\0b\n";

		ok(!gitconfig_check(SV(""), (struct sv){ with_nul, sizeof(with_nul) - 1 }, false,
				    &a),
		   "a NUL");
		ok(gitconfig_check(SV(""), SV("[core]\nworktree = ../../../sub\n"), true, &a) &&
			   a.has_worktree && strcmp(a.worktree, "../../../sub") == 0,
		   "a submodule's worktree is handed on");
		ok(!gitconfig_check(SV(""), SV("[core]\nworktree=a\nworktree=b\n"), true, &a),
		   "but not two of them");
	}
}

static void test_pointer(void)
{
	struct sv place;

	ok(gitfile_parse(SV("gitdir: ../.git/modules/a\n"), &place), "a .git file");
	is_sv(place, SV("../.git/modules/a"), "and its place");
	ok(!gitfile_parse(SV("gitdir:x"), &place), "without a blank");
	ok(!gitfile_parse(SV("gitdir: \n"), &place), "empty");
	ok(!gitfile_parse(SV("gitdir: a\nb\n"), &place), "two lines");
}

static void test_attributes(void)
{
	static const char *const fine[] = { "",
					    "x\n",
					    "# filter=x\n",
					    "* text=auto\n*.sh text eol=lf\r\n",
					    "*.png binary\n*.lock -diff\tmerge=union",
					    "*.py diff=python -filter !merge",
					    "dist/** linguist-generated=true export-ignore\n" };
	static const char *const wrong[] = { "* filter=lfs\n",
					     "* filter",
					     "* -filter=x",
					     "a text\n  b diff=exif",
					     "* merge=ours",
					     "*\tdiff=",
					     "* secret",
					     "[attr]python text",
					     "[attr]a filter=x",
					     "\"a b\" text",
					     "\"*\"filter=x",
					     "\"*\"diff=x\"",
					     "\xef\xbb\xbf\"*\"filter=x",
					     "\xef\xbb\xbf* filter=x",
					     "\"a\\\"\"filter=x",
					     "* text\vfilter=x",
					     "#x\r* filter=x\n* filter=y",
					     "* diff=python,x",
					     "* --filter",
					     "* Filter=x" };
	char why[GITATTRIBUTES_WHY], longer[2100];

	memset(longer, 'x', sizeof(longer));
	longer[0] = '#';
	ok(!gitattributes_check((struct sv){ longer, sizeof(longer) }, why), "nor a long line");
	ok(gitattributes_check(SV("\"*.c\" text\n"), why), "quotes around a plain pattern");
	for (size_t i = 0; i < ARRAY_LEN(fine); i++)
		ok(gitattributes_check(sv_from(fine[i]), why), "attributes: %zu is fine", i);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		why[0] = 0;
		ok(!gitattributes_check(sv_from(wrong[i]), why) && why[0],
		   "attributes: %zu is not: %s", i, why);
	}
	ok(!gitattributes_check((struct sv){ "* text\0 filter=x", 17 }, why), "nor is a NUL");
}

/* --- Protected names --- */

static enum protect_rel rel(const char *path, bool fold)
{
	static const struct protect_open none = { NULL, 0 };

	return protect_match(sv_from(path), fold, &none).rel;
}

static void test_protect(void)
{
	static const struct {
		const char *path;
		enum protect_rel rel;
	} cases[] = {
		{ "src/a.c", PROTECT_CLEAR },
		{ ".git", PROTECT_ABOVE },
		{ "a/b/.git", PROTECT_ABOVE },
		{ ".git/config", PROTECT_AT },
		{ "a/.git/config", PROTECT_AT },
		{ ".git/config.lock", PROTECT_CLEAR },
		{ ".git/hooks", PROTECT_AT },
		{ ".git/hooks/pre-commit", PROTECT_BELOW },
		{ ".git/objects/ab", PROTECT_CLEAR },
		{ ".git/info", PROTECT_ABOVE },
		{ ".git/info/exclude", PROTECT_CLEAR },
		{ ".git/info/attributes", PROTECT_AT },
		{ ".git/worktrees", PROTECT_ABOVE },
		{ ".git/worktrees/a", PROTECT_ABOVE },
		{ ".git/worktrees/a/HEAD", PROTECT_CLEAR },
		{ ".git/worktrees/a/config.worktree", PROTECT_AT },
		{ ".git/worktrees/a/b/config", PROTECT_CLEAR },
		{ ".git/modules/a/HEAD", PROTECT_ABOVE },
		{ ".git/modules/config", PROTECT_ABOVE },
		{ ".git/modules/a/config", PROTECT_AT },
		{ ".git/modules/a/b/c/config", PROTECT_AT },
		{ ".git/modules/a/hooks/x", PROTECT_BELOW },
		{ ".git/modules/a/modules/b/info/attributes", PROTECT_AT },
		{ ".claude", PROTECT_AT },
		{ "x/.claude/y", PROTECT_BELOW },
		{ ".config", PROTECT_ABOVE },
		{ ".config/fish", PROTECT_AT },
		{ ".config/other", PROTECT_CLEAR },
		{ "agent.writ", PROTECT_AT },
		{ "sub/agent.writ", PROTECT_CLEAR },
		{ ".Claude", PROTECT_CLEAR },
		{ "", PROTECT_CLEAR },
	};
	static const char *const folded[] = { ".GIT/hooks",
					      ".Git/Config",
					      ".claude. ",
					      "GIT~1/config",
					      "GI1A2B~1/config",
					      ".g\xe2\x80\x8cit/hooks",
					      ".git/hoo\xe2\x84\xaas",
					      ".VSCODE" };
	const struct sv lifted = SV(".vscode");
	const struct protect_open open = { &lifted, 1 };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		ok(rel(cases[i].path, false) == cases[i].rel, "%s is %d", cases[i].path,
		   (int)cases[i].rel);
	for (size_t i = 0; i < ARRAY_LEN(folded); i++) {
		ok(rel(folded[i], true) >= PROTECT_AT, "%s where case does not count", folded[i]);
		ok(rel(folded[i], false) < PROTECT_AT, "%s where it does", folded[i]);
		ok(protect_may_fold(sv_from(folded[i])), "%s may fold", folded[i]);
	}
	ok(rel("src/Makefile", true) == PROTECT_CLEAR, "Makefile folds to nothing of ours");
	ok(!protect_may_fold(SV("src/a.c")), "src/a.c means one thing");
	ok(protect_match(SV(".vscode/x"), false, &open).rel == PROTECT_CLEAR, "open lifts a row");
	ok(protect_match(SV(".idea"), false, &open).rel == PROTECT_AT, "and no other");
	for (const struct protect_name *n = protect_names; n->name; n++)
		if (n->where == PROTECT_DEPTH && n->name[0] != '.')
			ok(false, "%s counts at any depth and has no dot", n->name);
}

int main(void)
{
	test_safe();
	test_unsafe();
	test_forms();
	test_pointer();
	test_attributes();
	test_protect();
	return tap_done();
}
