#include "tap.h"

#include "mediated.h"

/* Real git under the mediator: what people do in clones, worktrees and submodules. */

static char base[64], ws[96], priv[96], ours[96];
static struct cap_set set;
static struct sv private_dirs[1], closed_dirs[1];
static const char *script;

static int shell(void)
{
	char text[8192];

	/* Nothing of the host's configuration, and a way to write files by hand. */
	snprintf(text, sizeof(text),
		 "set -e; export HOME=%s GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a "
		 "GIT_AUTHOR_EMAIL=a@b "
		 "GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_EDITOR=true "
		 "GIT_TERMINAL_PROMPT=0 "
		 "GIT_ALLOW_PROTOCOL=file GIT_PAGER=cat; "
		 "exec >%s/log 2>&1; OURS=%s; cd %s; %s",
		 priv, priv, ours, ws, script);
	execl("/bin/sh", "sh", "-c", text, (char *)NULL);
	return 99;
}

static void show_log(const struct box *b)
{
	char cmd[256];

	for (size_t i = 0; i < b->events_n; i++)
		printf("# event: %s: %s\n", b->events[i].object, b->events[i].extra);
	fflush(stdout);
	snprintf(cmd, sizeof(cmd), "sed 's/^/# /' %s/log | tail -20", priv);
	(void)!system(cmd);
}

static struct box run(const char *what, int want)
{
	struct box b = { .traps = BOX_WRITE | BOX_META,
			 .opt = { .set = &set,
				  .realm = SV("r"),
				  .workspace = sv_from(ws),
				  .private_dirs = private_dirs,
				  .private_dirs_n = 1,
				  .closed_dirs = closed_dirs,
				  .closed_dirs_n = 1 } };
	int got;

	script = what;
	got = box_run(&b, shell);
	if (!ok(want < 0 ? got != 0 : got == want, "%.60s (%d)", what, got))
		show_log(&b);
	return b;
}

/* On the host, without a mediator. */
static bool host(const char *what)
{
	char cmd[4096];

	snprintf(cmd, sizeof(cmd),
		 "cd %s && export HOME=%s GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a "
		 "GIT_AUTHOR_EMAIL=a@b "
		 "GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_CONFIG_COUNT=1 "
		 "GIT_CONFIG_KEY_0=protocol.file.allow GIT_CONFIG_VALUE_0=always && { %s ; } "
		 ">/dev/null 2>&1",
		 ws, priv, what);
	return system(cmd) == 0;
}

static void good(const char *what)
{
	const struct box b = run(what, 0);

	if (!ok(b.events_n == 0, "... and nothing was refused (%zu)", b.events_n))
		show_log(&b);
}

static void test_clone(void)
{
	good("git init repo && cd repo && echo a > a && git add a && git commit -m one");
	ok(host("test -d repo/.git && git -C repo fsck"), "a repository the host accepts");
	good("cd repo && echo b >> a && git stash && git stash pop && git commit -am two");
	good("cd repo && git checkout -b topic && echo c > c && git add c && git commit -m three "
	     "&& git "
	     "checkout - && echo d > d && git add d && git commit -m four && git rebase topic");
	good("cd repo && git remote add origin ../upstream && git config branch.topic.remote "
	     "origin");
	good("git clone repo copy && cd copy && git log --oneline && git checkout -b x && git "
	     "branch -u "
	     "origin/topic && git fetch origin");
	good("git clone --bare repo bare.git && cd copy && git remote add b ../bare.git && git "
	     "push b x");
	good("cd copy && git gc && git fsck && git tag -a -m t t1 && git merge origin/topic");
	good("cd copy && git config user.name n && git config --unset user.name && git config "
	     "pull.rebase "
	     "true && git reset --hard HEAD~1 && git clean -fdx");
	good("cd copy && git mv a z && git commit -m moved && git revert --no-edit HEAD && git "
	     "cherry-pick "
	     "HEAD~1");
	good("mkdir -p src/a && echo > src/a/f && mv src lib && rm -rf lib");
	good("rm -rf bare.git");
}

static void test_worktree(void)
{
	good("cd copy && git worktree add ../tree -b tree && cd ../tree && echo w > w && git add w "
	     "&& git "
	     "commit -m w && git status && git stash list");
	ok(host("git -C tree log -1 --format=%s | grep -x w"), "a worktree the host accepts");
	good("cd tree && git config extensions.worktreeConfig true && git config --worktree "
	     "core.sparseCheckout "
	     "false && echo v > w && git commit -am v && git stash && git rebase HEAD~1");
	good("cd copy && git worktree list && git worktree remove --force ../tree && git worktree "
	     "prune");
}

static void test_submodule(void)
{
	ok(host("git init -q super && cd super && git -c protocol.file.allow=always submodule add "
		"../repo mod && "
		"git commit -m sub"),
	   "the host makes a submodule");
	good("cd super/mod && echo m > m && git add m && git commit -m m && git checkout -b br && "
	     "git stash "
	     "list && git config user.email x@y && cd .. && git add mod && git commit -m up");
	ok(host("git init -q super2 && cd super2 && cp ../super/.gitmodules . && sed -i s,mod,two, "
		".gitmodules && "
		"git -c protocol.file.allow=always submodule add ../repo two && git commit -am s "
		"&& git "
		"submodule deinit -f two && rm -rf .git/modules/two"),
	   "and one that is not cloned yet");
	good("cd super2 && git -c protocol.file.allow=always submodule update --init && cd two && "
	     "git log "
	     "-1 && echo q > q && git add q && git commit -m q");
	ok(host("git -C super2/two log -1 --format=%s | grep -x q"),
	   "a submodule the host accepts");
}

static void bad(const char *what, const char *object)
{
	const struct box b = run(what, -1);

	if (!ok(box_denied(&b, object) != NULL, "... %s is refused", object))
		show_log(&b);
}

static void test_attacks(void)
{
	static const char *const keys[] = {
		"core.hooksPath /tmp", "core.fsmonitor x", "core.sshCommand x",
		"core.pager x",	       "diff.external x",  "filter.x.clean x",
		"credential.helper x", "include.path x",   "alias.x !x",
		"core.worktree /home", "gpg.program x",	   "remote.origin.url ext::x",
		"url.x.insteadOf y",
	};
	char text[256];

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		snprintf(text, sizeof(text), "cd copy && git config %s", keys[i]);
		bad(text, "/copy/.git/config");
	}
	ok(host("! grep -qi 'hookspath\\|fsmonitor\\|ext::' copy/.git/config"),
	   "none of it is there");
	bad("echo x > copy/.git/hooks/pre-commit", "/hooks/pre-commit");
	bad("echo x > super/.git/modules/mod/hooks/post-checkout", "/hooks/post-checkout");
	bad("cd super/mod && git config core.hooksPath x", "/.git/modules/mod/config");
	bad("cd super/mod && git config core.worktree ../../../../.git/hooks",
	    "/.git/modules/mod/config");
	bad("cd super/mod && git config core.worktree /", "/.git/modules/mod/config");
	bad("cp copy/.git/config x && echo '[core]hooksPath=x' >> x && mv x copy/.git/config",
	    "/copy/.git/config");
	bad("git -C copy config remote.h.url $OURS/evil.git", "/copy/.git/config");
	bad("git -C copy config remote.h.pushurl file://${OURS%s}%73/evil.git",
	    "/copy/.git/config");
	bad("git -C copy config branch.main.remote ../../ours/evil.git", "/copy/.git/config");
	bad("git -C copy config remote.pushDefault localhost:.local/state/writ/homes/x",
	    "/copy/.git/config");
	bad("mkdir -p copy/.git/remotes && echo URL: ext::x > copy/.git/remotes/h", "/remotes/h");
	bad("git -C copy worktree add ../wt -b wt && rm copy/.git/worktrees/wt/commondir && echo "
	    "$OURS > copy/.git/worktrees/wt/commondir; cat copy/.git/worktrees/wt/commondir",
	    "/wt/commondir");
	bad("echo /x > y && mv y copy/.git/worktrees/wt/commondir", "/wt/commondir");
	bad("echo /x > y && ln y copy/.git/worktrees/wt/commondir", "/wt/commondir");
	good("echo ../.. > y && mv y copy/.git/worktrees/wt/commondir && git -C wt status && git "
	     "-C "
	     "copy worktree remove ../wt && git -C copy worktree add ../wt wt");
	bad("mkdir -p b/remotes b/refs && echo URL: ext::x > b/remotes/h && mkdir b/objects",
	    "/b/objects");
	bad("git init --bare c && mkdir -p c/remotes && echo URL: ext::x > c/remotes/h",
	    "/c/remotes/h");
	bad("mkdir -p copy/.git/branches && echo ext::x > copy/.git/branches/h", "/branches/h");
	bad("mv copy/.git copy/git", "/copy/.git");
	ok(host("git clone --bare repo old.git && echo > old.git/hooks/post-update"),
	   "a hook that sleeps");
	bad("chmod +x old.git/hooks/post-update", "/hooks/post-update");
	good("git -C copy config remote.h.url https://host/a..b.git && git -C copy config "
	     "remote.h.pushurl me@host:x/y.git && git -C copy config remote.h.url ../repo");
	good("chmod +x old.git/HEAD && mkdir hooks && echo > hooks/x && chmod +x hooks/x");
	bad("mkdir n && ln -s ../copy/.git n/.git", "/n/.git");
	bad("rm -rf copy/.git/hooks && mkdir copy/.git/hooks && cp /bin/true "
	    "copy/.git/hooks/pre-commit",
	    "/hooks/pre-commit");
	bad("mkdir -p e/objects e/refs && echo ref: refs/heads/m > e/HEAD && printf "
	    "'[core]\\nfsmonitor=x\\n' > e/config",
	    "/e/config");
	bad("mkdir f && printf '[core]\\nfsmonitor=x\\n' > f/config && mkdir f/objects f/refs",
	    "/f/config");
}

int main(void)
{
	char cmd[128];

	snprintf(base, sizeof(base), "/tmp/writ-git-XXXXXX");
	if (!mkdtemp(base))
		return 1;
	snprintf(ws, sizeof(ws), "%s/ws", base);
	snprintf(priv, sizeof(priv), "%s/priv", base);
	snprintf(ours, sizeof(ours), "%s/ours", base);
	if (mkdir(ws, 0755) < 0 || mkdir(priv, 0755) < 0 || mkdir(ours, 0755) < 0)
		return 1;
	closed_dirs[0] = sv_from(ours);
	private_dirs[0] = sv_from(priv);
	snprintf(cmd, sizeof(cmd), "fs.write:r:%s/**", ws);
	box_cap(&set, CAP_GRANT, "fs.read:r:/**");
	box_cap(&set, CAP_GRANT, cmd);
	test_clone();
	test_worktree();
	test_submodule();
	test_attacks();
	snprintf(cmd, sizeof(cmd), "rm -rf %s", base);
	(void)!system(cmd);
	arena_clear(&box_arena);
	return tap_done();
}
