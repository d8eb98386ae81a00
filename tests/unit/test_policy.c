#include "tap.h"

#include <stdlib.h>

#include "crypto/crypto.h"
#include "lang/policy.h"
#include "world.h"

/* One policy text, loaded in the made-up world. */
struct load {
	struct arena arena;
	struct diags d;
	struct policy *p;
	int r;
};

static void load_in(struct load *l, const struct policy_env *env, const struct policy_input *in)
{
	struct writ_err err = { 0 };

	*l = (struct load){ .arena = ARENA_INIT(POLICY_ARENA_MAX) };
	l->d.arena = &l->arena;
	l->r = policy_new(env, in, &l->d, &l->p, &err);
}

static void load_text(struct load *l, const char *text)
{
	const struct policy_env env = FAKE_ENV(&fake_ops);
	static struct source src;
	struct policy_input in = { .files = &src, .files_n = 1 };

	src = (struct source){ .name = SV("p"), .dir = SV(""), .text = sv_from(text) };
	load_in(l, &env, &in);
}

static void unload(struct load *l)
{
	arena_clear(&l->arena);
}

static bool has_cap(const struct cap_set *s, const char *text)
{
	for (size_t i = 0; i < s->caps.n; i++)
		if (sv_is(s->caps.v[i].cap.text, text))
			return true;
	return false;
}

static bool has_not(const struct cap_set *s, const char *text)
{
	for (size_t i = 0; i < s->nots.n; i++)
		if (sv_is(s->nots.v[i].cap.text, text))
			return true;
	return false;
}

static bool said(const struct load *l, enum diag_level level, uint32_t line, const char *text)
{
	for (size_t i = 0; i < l->d.list.n; i++) {
		const struct diag *g = &l->d.list.v[i];

		if (g->level == level && (line == 0 || g->at.line == line) &&
		    memmem(g->text.p, g->text.n, text, strlen(text)))
			return true;
	}
	for (size_t i = 0; i < l->d.list.n; i++)
		tap_note("said: %u: " SV_FMT, l->d.list.v[i].at.line, SV_ARG(l->d.list.v[i].text));
	return false;
}

/* --- each surface form and its canonical one --- */

static void test_lowering(void)
{
	/* clang-format off */
	static const struct { const char *rule, *caps[3], *nots[2]; } rows[] = {
		{ "allow read ./src", { "fs.read:r:/home/me/app/src/**" }, { 0 } },
		{ "allow read ./README.md", { "fs.read:r:/home/me/app/README.md" }, { 0 } },
		{ "allow write .", { "fs.read:r:/home/me/app/**", "fs.write:r:/home/me/app/**" }, { 0 } },
		{ "allow write ./logs/*", { "fs.read:r:/home/me/app/logs/*", "fs.write:r:/home/me/app/logs/*" }, { 0 } },
		{ "allow write ./logs/*.txt", { "fs.write:r:/home/me/app/logs/*.txt" }, { 0 } },
		{ "allow read ~/link", { "fs.read:r:/home/me/app/logs/**" }, { 0 } },
		{ "allow read /", { "fs.read:r:/**" }, { 0 } },
		{ "allow read \"/opt/a b\\*c\"", { "fs.read:r:/opt/a%20b%2Ac/**" }, { 0 } },
		{ "allow put ./data/", { "fs.put:r:/home/me/app/data/**" }, { 0 } },
		{ "deny read **/.env", { 0 }, { "fs.read:r:/**/.env/**", "fs.write:r:/**/.env/**" } },
		{ "deny write ./src/*.c", { 0 }, { "fs.write:r:/home/me/app/src/*.c/**" } },
		{ "ask write ./logs", { "fs.write:r:/home/me/app/logs/**;approve=operator" }, { 0 } },
		{ "allow exec git", { "proc.exec:r:/usr/bin/git", "proc.exec:r:/usr/lib/git-core/**", "fs.read:r:/usr/bin/git" }, { 0 } },
		{ "allow exec git args=\"git status **\"", { "proc.exec:r:/usr/bin/git;args=/git/status/**" }, { 0 } },
		{ "allow net api.example.com", { "http.request:r:https://api.example.com:443/**;m=*;q=any" }, { 0 } },
		{ "allow net API.Example.com", { "http.request:r:https://api.example.com:443/**;m=*;q=any" }, { 0 } },
		{ "allow net https://h.example.com/v1/* methods=POST,GET query=none rate=10/1h count=20 up=64K",
		  { "http.request:r:https://h.example.com:443/v1/*;m=GET,POST;max-out=65536;n=20;q=none;rate=10/3600" }, { 0 } },
		{ "allow net http://h.example.com:8080/", { "http.request:r:http://h.example.com:8080/;m=*;q=any" }, { 0 } },
		{ "allow net *.example.com:22", { "net.connect:r:tcp/*.example.com:22" }, { 0 } },
		{ "allow net tcp://10.0.0.0/8:5000-5063", { "net.connect:r:tcp/10.0.0.0/8:5000-5063" }, { 0 } },
		{ "allow net [2001:db8::1]:22", { "net.connect:r:tcp/[2001:db8::1]:22" }, { 0 } },
		{ "allow net localhost:5432", { "net.connect:r:tcp/localhost:5432" }, { 0 } },
		{ "allow net *", { "net.connect:r:tcp/**:80", "net.connect:r:tcp/**:443" }, { 0 } },
		{ "allow net db.example.com:5432 private=10.2.0.0/16,10.0.0.0/16",
		  { "net.connect:r:tcp/db.example.com:5432;priv=10.0.0.0/16,10.2.0.0/16" }, { 0 } },
		{ "allow net https://h.example.com tls=passthrough", { "http.request:r:https://h.example.com:443/**;m=*;q=any;tls=pass" }, { 0 } },
		{ "deny net *", { 0 }, { "net.connect:r:tcp/**:1-65535" } },
		{ "deny net example.com", { 0 }, { "net.connect:r:tcp/example.com:1-65535" } },
		{ "deny net https://example.com/x", { 0 }, { "http.request:r:https://example.com:443/x" } },
		{ "allow listen 8080", { "net.bind:r:tcp/localhost:8080" }, { 0 } },
		{ "allow unix /run/x.sock", { "unix.connect:r:/run/x.sock" }, { 0 } },
		{ "danger unix /run/docker.sock", { "unix.connect:r:/run/docker.sock;danger=1" }, { 0 } },
		{ "allow git git@github.com:acme/app.git fetch push=agent/*",
		  { "git.use:r:ssh://git@github.com:22/acme/app.git;op=fetch,push;ref=refs/heads/agent/*" }, { 0 } },
		{ "allow git https://github.com/acme/app.git fetch", { "git.use:r:https://github.com:443/acme/app.git;op=fetch" }, { 0 } },
		{ "allow device /dev/dri/card0 mode=rw", { "dev.use:r:/dev/dri/card0;o=rw" }, { 0 } },
		{ "allow kernel io_uring", { "kernel.use:r:/io_uring" }, { 0 } },
		{ "allow tool github/* count=5", { "tool.call:r:/mcp/github/*;n=5" }, { 0 } },
		{ "allow agent coder", { "agent.spawn:r:/coder" }, { 0 } },
		{ "env LC_*", { "env.pass:r:/LC_*" }, { 0 } },
		{ "state cache", { "state.use:r:/cache" }, { 0 } },
		{ "secret T from env:T to https://h.example.com as header:X-Key", { "secret.use:r:/T;as=header:x-key;to=https://h.example.com:443/**" }, { 0 } },
		{ "allow shell read-write", { "fs.write:r:/home/me/app/**", "proc.exec:r:/**" }, { 0 } },
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[512];
		struct load l;
		bool good;

		(void)snprintf(text, sizeof(text), "version 1\n%s\n", rows[i].rule);
		load_text(&l, text);
		good = l.r == 0;
		for (size_t k = 0; good && k < 3 && rows[i].caps[k]; k++)
			good = has_cap(&l.p->set, rows[i].caps[k]);
		for (size_t k = 0; good && k < 2 && rows[i].nots[k]; k++)
			good = has_not(&l.p->set, rows[i].nots[k]);
		if (!ok(good, "%s", rows[i].rule)) {
			for (size_t k = 0; k < l.d.list.n; k++)
				tap_note(SV_FMT, SV_ARG(l.d.list.v[k].text));
			for (size_t k = 0; l.r == 0 && k < l.p->set.caps.n; k++)
				if (!l.p->set.rules.v[l.p->set.caps.v[k].rule].built_in)
					tap_note("cap " SV_FMT,
						 SV_ARG(l.p->set.caps.v[k].cap.text));
		}
		unload(&l);
	}
}

/* --- what is refused, and where it says so --- */

static void test_errors(void)
{
	/* clang-format off */
	static const struct { const char *text; uint32_t line; const char *says; } rows[] = {
		{ "allow write ./logs\n", 1, "begins with its version" },
		{ "version 2\n", 1, "unknown policy version" },
		{ "version 1\nalow write /x\n", 2, "unknown word" },
		{ "version 1\nallow write ./nope\n", 2, "does not exist" },
		{ "version 1\nallow read src\n", 2, "below the workspace" },
		{ "version 1\nallow read ./a/../b\n", 2, "inside a path" },
		{ "version 1\nallow read **/x\n", 2, "works in deny only" },
		{ "version 1\nallow read /run/x.sock\n", 2, "neither a file nor a directory" },
		{ "version 1\nallow read ./README.md/\n", 2, "is a file" },
		{ "version 1\nallow read ./src/*a*\n", 2, "more than one *" },
		{ "version 1\nallow read $NOPE/x\n", 2, "no variable" },
		{ "version 1\nallow exec nope\n", 2, "no program" },
		{ "version 1\nallow net 127.0.0.1:80\n", 2, "loopback" },
		{ "version 1\nallow net 0x7f.1:80\n", 2, "not a host name" },
		{ "version 1\nallow net fe80::1%eth0:80\n", 2, "in brackets" },
		{ "version 1\nallow net b\xc3\xbc" "cher.example:443\n", 2, "ASCII form" },
		{ "version 1\nallow net h.example.com:1-100\n", 2, "at most 64 ports" },
		{ "version 1\nallow net tcp://h.example.com\n", 2, "port is missing" },
		{ "version 1\nallow net h.example.com:80 methods=GET\n", 2, "needs HTTP" },
		{ "version 1\nallow net https://h.example.com methods=get\n", 2, "not a value" },
		{ "version 1\nallow net https://h.example.com/a?b=1\n", 2, "query" },
		{ "version 1\nallow net https://h.example.com/%2e%2e/\n", 2, "not a path pattern" },
		{ "version 1\nallow net https://h.example.com/x tls=passthrough\n", 2, "cannot be looked into" },
		{ "version 1\ndeny net https://h.example.com methods=GET\n", 2, "deny takes no qualifiers" },
		{ "version 1\nallow net *:22\n", 2, "name the host" },
		{ "version 1\nallow read /proc/1\n", 2, "its own /proc" },
		{ "version 1\nask shell read-only\n", 2, "only be allowed" },
		{ "version 1\nenv *\n", 2, "not a variable's name" },
		{ "version 1\nenv A=1\nenv A=2\n", 3, "another value" },
		{ "version 1\nsecret T from env:T to https://h.example.com as bearer\nenv T\n", 3, "stays outside" },
		{ "version 1\nallow net https://h.example.com tls=passthrough\nsecret T from env:T to https://h.example.com as bearer\n", 3, "passed through" },
		{ "version 1\nallow unix /run/docker.sock\n", 2, "root on this machine" },
		{ "version 1\nallow git https://github.com/a/b.git\n", 2, "what may it do" },
		{ "version 1\nopen .git/confg\n", 2, "not a protected name" },
		{ "version 1\nlimit memori 2G\n", 2, "unknown limit" },
		{ "version 1\nlimit memory 2Q\n", 2, "is not a limit" },
		{ "version 1\nrequire fs.raed=exact\n", 2, "unknown guarantee" },
		{ "version 1\nsecret T from env:T to http://h.example.com as bearer\n", 2, "https host only" },
		{ "version 1\nsecret T from T to https://h.example.com as bearer\n", 2, "not a source" },
		{ "version 1\nuse nodee\n", 2, "no profile" },
		{ "version 1\n  allow read .\n", 2, "indentation" },
		{ "version 1\nallow read ./src\nallow read ./src\n", 3, "the same as line 2" },
		{ "version 1\nlimit pids 3\nlimit pids 4\n", 3, "the same as line 2" },
		{ "version 1\nallow write ./src\ndeny write .\n", 2, "can never match" },
		{ "version 1\nallow read ./src\nask read .\n", 2, "can never match" },
		{ "version 1\nallow net https://h.example.com/a\ndeny net https://h.example.com\n", 2, "can never match" },
		{ "version 1\nallow write ./src\nagent a\n  allow write ./logs\n", 4, "more than its parent" },
		{ "version 1\nlimit pids 9\nagent a\n  limit pids 10\n", 4, "more than its parent" },
		{ "version 1\nagent a\nallow read ./src\n", 2, "has no rules" },
		{ "version 1\ntest allow write /etc/passwd\n", 2, "test failed" },
		{ "version 1\nallow write .\ntest deny write ./src/x\n", 3, "test failed" },
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct load l;

		load_text(&l, rows[i].text);
		ok(l.r == WRIT_E_SYNTAX && said(&l, DIAG_ERROR, rows[i].line, rows[i].says),
		   "refused: %s", rows[i].says);
		ok(l.d.errors == 1, "one mistake, one error");
		unload(&l);
	}
}

static void test_meaning(void)
{
	struct load l;

	load_text(&l,
		  "version 1\nallow write .\ndeny write ./src\nask read ./data\n"
		  "test allow write ./x\ntest deny write ./src/a\ntest allow read ./src/a\n"
		  "test ask read ./data/d\ntest deny read ~/.ssh/id\ntest deny write /etc/passwd\n"
		  "test allow write /tmp/x\n");
	ok(l.r == 0 && l.p->tests == 7, "deny beats ask beats allow, and the default denies");
	unload(&l);

	load_text(&l, "version 1\nallow read ?./nope\n");
	ok(l.r == 0 && !has_cap(&l.p->set, "fs.read:r:/home/me/app/nope"),
	   "an optional path grants nothing");
	unload(&l);

	load_text(&l, "version 1\nuse none\nallow read ./src\ntest deny read /usr/bin/git\n");
	ok(l.r == 0 && !l.p->has_base && !l.p->set.has_rt, "use none drops base");
	unload(&l);

	load_text(&l, "version 1\nallow shell none\n");
	ok(l.r == 0 && !has_cap(&l.p->set, "proc.exec:r:/**"), "shell none: no programs");
	unload(&l);

	load_text(&l, "version 1\nlimit pids 10000\n");
	ok(l.r == 0 && l.p->set.limits[LIMIT_PIDS] == 10000, "base's limits are only defaults");
	ok(l.r == 0 && l.p->set.limits[LIMIT_FILES] == 65536, "and hold where nothing is said");
	unload(&l);

	load_text(&l, "version 1\nallow write ./src\nallow agent c\nagent c\n  allow write ./src\n"
		      "  test allow write ./src/x\n  test deny write ./logs/x\n  test allow exec "
		      "/usr/bin/git\n");
	ok(l.r == 0 && l.p->agents.n == 1, "an agent within its parent, with base and its exec");
	unload(&l);

	load_text(&l, "version 1\nallow write .\nask write ./data\ndeny write ./src\nallow agent "
		      "c\nagent c\n"
		      "  allow write .\n  test ask write ./data/x\n  test deny write ./src/x\n"
		      "  test allow write ./logs/x\n");
	ok(l.r == 0, "an agent takes over what its parent is denied or has to ask for");
	unload(&l);
}

/* --- use --- */

static void test_use(void)
{
	static const struct world_file files[] = {
		{ "a.writ", "version 1\nuse ./b.writ\nallow read ./src\n" },
		{ "b.writ", "version 1\nuse ./a.writ\n" },
		{ "c.writ", "version 1\nuse ./d.writ\nuse ./e.writ\n" },
		{ "d.writ", "version 1\nuse ./f.writ\n" },
		{ "e.writ", "version 1\nuse ./f.writ\nallow read ./src\n" },
		{ "f.writ", "version 1\nallow read ./src\n" },
		{ NULL, NULL },
	};
	struct policy_ops ops = fake_ops;
	const struct policy_env env = FAKE_ENV(&ops);
	struct source src = { .name = SV("p"),
			      .dir = SV(""),
			      .text = SV("version 1\nuse ./a.writ\n") };
	struct policy_input in = { .files = &src, .files_n = 1 };
	struct load l;

	ops.ctx = (void *)(uintptr_t)files;
	load_in(&l, &env, &in);
	ok(l.r == WRIT_E_SYNTAX && said(&l, DIAG_ERROR, 2, "uses itself"), "a cycle is refused");
	unload(&l);

	src.text = SV("version 1\nuse ./c.writ\n");
	load_in(&l, &env, &in);
	ok(l.r == 0, "a diamond is fine, and so are equal rules in two files");
	unload(&l);

	src.text = SV("version 1\nuse ./nope.writ\n");
	load_in(&l, &env, &in);
	ok(l.r == WRIT_E_SYNTAX && said(&l, DIAG_ERROR, 2, "nope.writ"), "a missing file is named");
	unload(&l);
}

/* --- a workspace file that nobody trusts --- */

static void test_narrow(void)
{
	const struct policy_env env = FAKE_ENV(&fake_ops);
	struct source own = { .name = SV("own"),
			      .dir = SV(""),
			      .text = SV("version 1\nallow write .\nallow net "
					 "https://a.example.com\nlimit pids 100\n") };
	struct source ws = { .name = SV("agent.writ"), .dir = SV("") };
	struct policy_input in = { .files = &own, .files_n = 1, .narrow = &ws };
	struct load l;

	ws.text =
		SV("version 1\nallow write ./src\nallow net https://b.example.com\nlimit pids 50\n"
		   "env SECRET\nsecret T from \"cmd:rm -rf x\" to https://a.example.com as "
		   "bearer\nopen .git/config\n");
	load_in(&l, &env, &in);
	ok(l.r == 0, "it is read");
	ok(l.r == 0 && has_cap(&l.p->set, "fs.write:r:/home/me/app/src/**"), "it narrows");
	ok(l.r == 0 && !has_cap(&l.p->set, "fs.write:r:/home/me/app/**"),
	   "what it leaves out is gone");
	ok(l.r == 0 && l.p->set.limits[LIMIT_PIDS] == 50, "it lowers limits");
	ok(said(&l, DIAG_WARNING, 3, "more than your own policy"), "the widening line is named");
	ok(said(&l, DIAG_WARNING, 6, "no effect"), "its secret is named");
	ok(l.r == 0 && l.p->secrets.n == 0 && l.p->opens.n == 0,
	   "its secrets and openings have no effect");
	ok(l.r == 0 && !has_cap(&l.p->set, "env.pass:r:/SECRET"), "its variables neither");
	for (size_t i = 0; l.r == 0 && i < l.p->set.caps.n; i++)
		if (memmem(l.p->set.caps.v[i].cap.text.p, l.p->set.caps.v[i].cap.text.n,
			   "b.example", 9))
			ok(false, "it never widens");
	unload(&l);

	ws.text = SV("version 1\nallow write .\nlimit pids 1000\n");
	load_in(&l, &env, &in);
	ok(l.r == 0 && l.p->set.limits[LIMIT_PIDS] == 100, "it cannot raise a limit");
	unload(&l);
}

/* --- nothing is lost and nothing slips in --- */

static void test_review(void)
{
	static const struct sv own[] = { SV_INIT("/home/me/.config/writ"),
					 SV_INIT("/home/me/app/state") };
	struct policy_env env = FAKE_ENV(&fake_ops);
	struct source src = { .name = SV("p"), .dir = SV("") };
	struct source ws = { .name = SV("agent.writ"), .dir = SV("") };
	struct policy_input in = { .files = &src, .files_n = 1 };
	struct load l;

	load_text(&l, "version 1\ndeny git https://h.example.com:80-90/a/b\n");
	ok(l.r == WRIT_E_SYNTAX && said(&l, DIAG_ERROR, 2, "one port"),
	   "a denial is never dropped in silence");
	unload(&l);

	env.own = own;
	env.own_n = 2;
	src.text = SV("version 1\nallow write .\nallow write ~\ntest deny write "
		      "~/.config/writ/policy.writ\n"
		      "test deny write ./state/realm\ntest allow write ./logs/x\n");
	load_in(&l, &env, &in);
	ok(l.r == 0, "writ's own files stay out of reach, whatever is granted");
	unload(&l);

	ws.text = SV("version 1\nallow write .\nlimit session 9999d\nlimit pids 1000000\n");
	src.text =
		SV("version 1\nallow write .\nenv FOO\nstate s\nagent a\n  allow write ./logs\n");
	in.narrow = &ws;
	load_in(&l, &env, &in);
	ok(l.r == 0 && l.p->set.limits[LIMIT_SESSION] == 86400 &&
		   l.p->set.limits[LIMIT_PIDS] == 4096,
	   "an untrusted file cannot raise base's limits");
	ok(l.r == 0 && has_cap(&l.p->set, "env.pass:r:/FOO") &&
		   has_cap(&l.p->set, "state.use:r:/s"),
	   "nor take away what it cannot speak about");
	unload(&l);
	ws.text = SV("version 1\nallow write ./src\n");
	load_in(&l, &env, &in);
	ok(l.r == 0 && !has_cap(&l.p->agents.v[0].set, "fs.write:r:/home/me/app/logs/**"),
	   "and it cuts agents down instead of breaking them");
	unload(&l);
	in.narrow = NULL;

	load_text(&l,
		  "version 1\nisolation >= vm\nworkspace cow\nnet level signed\nrequire net=exact\n"
		  "limit session 20m\nlimit memory 1G\nallow net https://x.example.com count=5\n"
		  "agent a\n  allow read ./src\n");
	ok(l.r == 0 && l.p->agents.v[0].set.isolation == ISOLATION_VM &&
		   l.p->agents.v[0].set.workspace == WORKSPACE_COW &&
		   l.p->agents.v[0].set.net_level == NET_LEVEL_SIGNED &&
		   l.p->agents.v[0].set.require[G_NET] == LEVEL_EXACT &&
		   l.p->agents.v[0].set.limits[LIMIT_SESSION] == 1200 &&
		   l.p->agents.v[0].set.limits[LIMIT_MEMORY] == 1 << 30,
	   "an agent stays inside its parent's walls");
	ok(l.r == 0 && l.p->agents.v[0].set.prices.n == 1, "and pays its parent's prices");
	unload(&l);

	load_text(&l, "version 1\ndeny write ~/link\n");
	ok(l.r == 0 && has_not(&l.p->set, "fs.write:r:/home/me/link/**") &&
		   has_not(&l.p->set, "fs.write:r:/home/me/app/logs/**"),
	   "a denied link is denied by both names");
	unload(&l);
	load_text(&l, "version 1\ndeny exec nosuch\n");
	ok(l.r == 0 && has_not(&l.p->set, "proc.exec:r:/**/nosuch/**"),
	   "a denied program is denied everywhere");
	unload(&l);
	load_text(&l, "version 1\ndeny net 10.0.0.0/8\ndeny net localhost\ndeny net 127.0.0.1:80\n"
		      "deny net example.com:1-65535\n");
	ok(l.r == 0 && has_not(&l.p->set, "net.connect:r:tcp/10.0.0.0/8:1-65535") &&
		   has_not(&l.p->set, "net.connect:r:tcp/localhost:1-65535") &&
		   has_not(&l.p->set, "net.connect:r:tcp/127.0.0.1:80"),
	   "networks, loopback and all ports can be denied");
	unload(&l);
}

/* --- laws --- */

static const char *const pool[] = {
	"allow read ./src",
	"allow write ./logs",
	"ask write ./data",
	"deny read **/.env",
	"allow net https://a.example.com",
	"allow net https://b.example.com/v1/** methods=GET",
	"deny net https://a.example.com/admin",
	"limit pids 50",
	"limit memory 1G",
	"env FOO",
	"allow exec git",
	"allow listen 8080",
	"state x",
	"allow kernel ptrace-own",
};

static void put_policy(struct buf *b, unsigned mask, unsigned rotate)
{
	buf_str(b, "version 1\n");
	for (unsigned i = 0; i < ARRAY_LEN(pool); i++) {
		const unsigned k = (i + rotate) % ARRAY_LEN(pool);

		if (mask & 1u << k)
			buf_fmt(b, "%s\n", pool[k]);
	}
}

static struct digest digest_of(unsigned mask, unsigned rotate)
{
	struct buf b = BUF_INIT(65536);
	struct digest d = { { 0 } };
	struct writ_err err = { 0 };
	struct load l;

	put_policy(&b, mask, rotate);
	load_text(&l, b.p);
	if (l.r == 0)
		(void)!cap_set_digest(&l.p->set, &d, &err);
	unload(&l);
	buf_clear(&b);
	return d;
}

static void test_laws(void)
{
	unsigned cases = 0, same = 0, stable = 0;

	srand(7);
	for (; cases < 300; cases++) {
		const unsigned mask = (unsigned)rand() & ((1u << ARRAY_LEN(pool)) - 1);
		const struct digest x = digest_of(mask, 0);
		const struct digest y = digest_of(mask, 1 + (unsigned)rand() % 13);
		struct buf b = BUF_INIT(65536);
		struct buf once = BUF_INIT(65536);
		struct buf twice = BUF_INIT(65536);
		struct writ_err err = { 0 };
		scoped_arena a = ARENA_INIT(1 << 24);
		struct diags d = { .arena = &a };
		struct source src = { .name = SV("p"), .dir = SV("") };

		same += memcmp(&x, &y, sizeof(x)) == 0;
		put_policy(&b, mask, 0);
		src.text = buf_view(&b);
		if (policy_print(&src, &d, &once, &err) == 0) {
			src.text = buf_view(&once);
			if (policy_print(&src, &d, &twice, &err) == 0)
				stable += sv_eq(buf_view(&once), buf_view(&twice)) &&
					  sv_eq(buf_view(&once), buf_view(&b));
		}
		buf_clear(&b);
		buf_clear(&once);
		buf_clear(&twice);
	}
	ok(same == cases, "order of rules never matters (%u cases)", cases);
	ok(stable == cases, "print(parse(x)) = x (%u cases)", cases);
}

int main(void)
{
	struct writ_err err = { 0 };

	if (crypto_start(&err) < 0)
		return 1;
	test_lowering();
	test_errors();
	test_meaning();
	test_use();
	test_narrow();
	test_review();
	test_laws();
	return tap_done();
}
