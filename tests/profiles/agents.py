"""agents.py - the profile that the name of a command chooses, with programs that only have the names of agents."""
import json

from host import Terminal, wait_for
from kit import test

SHOW = "#!/bin/sh\nexec python3 -c 'import json, os; print(json.dumps(dict(os.environ)))'\n"


def install(w, *names):
    folder = w.dir / "tools/bin"
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text(SHOW)
        (folder / name).chmod(0o755)
    w.env["PATH"] = f"{folder}:{w.env['PATH']}"
    return folder


def shown(w, *command, opts=()):
    r = w.run(*command, opts=opts)
    return json.loads(r.out) if r.code == 0 else {"failed": str(r)}


@test("an agent's name chooses its profile")
def chosen(w):
    folder = install(w, "claude", "codex", "clauded")
    got = shown(w, "claude")
    w.ok(got.get("CLAUDE_CONFIG_DIR") == "/var/agent/state/claude" and got.get("IS_SANDBOX") == "1", "claude", got)
    w.same(shown(w, folder / "claude").get("CLAUDE_CONFIG_DIR"), "/var/agent/state/claude", "by its path, too")
    w.same(shown(w, "codex").get("CODEX_HOME"), "/var/agent/state/codex", "codex")
    w.ok("CLAUDE_CONFIG_DIR" not in shown(w, "clauded"), "a name that only begins so has none")
    with Terminal(w, [w.program, "run", "--", "claude"]) as t:
        w.ok(t.expect(r"writ: tier .* · profile claude · workspace "), "the banner says which", t.screen)
        t.code()
    with Terminal(w, [w.program, "run", "--", "true"]) as t:
        w.same(t.code(), 0, "another command runs")
        w.ok(b"profile" not in t.screen, "and its banner names none", t.screen)


@test("whoever writes a rule says it all")
def not_chosen(w):
    install(w, "claude")
    for opts in (["--allow", "write:."], ["--deny", "read:./x"], ["--profile", "base"], ["--policy", w.policy("allow write .")]):
        got = shown(w, "claude", opts=["--allow", f"read:{w.dir}/tools", *opts])
        w.ok("failed" not in got and "CLAUDE_CONFIG_DIR" not in got, f"{opts[0]}: not the profile", got)
    w.same(shown(w, "claude", opts=["--limit", "pids=99", "--env", "A=b"]).get("CLAUDE_CONFIG_DIR"), "/var/agent/state/claude",
           "limits and variables are no rules")
    (w.home / ".config/writ").mkdir(parents=True, exist_ok=True)
    (w.home / ".config/writ/policy.writ").write_text("version 1\nallow write .\n")
    w.ok("CLAUDE_CONFIG_DIR" not in shown(w, "claude"), "with a policy of one's own neither")
    (w.home / ".config/writ/policy.writ").write_text("version 1\nuse claude\n")
    w.same(shown(w, "claude").get("CLAUDE_CONFIG_DIR"), "/var/agent/state/claude", "unless it uses it")


@test("what the workspace says narrows it")
def narrowed(w):
    install(w, "claude")
    w.put("agent.writ", "version 1\nallow read .\n")
    w.put("f", "before\n")
    (w.dir / "tools/bin/claude").write_text("#!/bin/sh\necho after > f\n")
    r = w.run("claude")
    w.ok(r.code != 0 and (w.ws / "f").read_text() == "before\n", "it may read only", r)


@test("a key stays outside")
def key(w):
    install(w, "claude", "codex")
    w.env.update(ANTHROPIC_API_KEY="sk-one-real-key", OPENAI_API_KEY="sk-two-real-key", CODEX_API_KEY="sk-three-real-key")
    got = shown(w, "claude")
    w.ok(got.get("ANTHROPIC_API_KEY", "").startswith("writ-placeholder-ANTHROPIC_API_KEY-"), "claude has a placeholder", got)
    w.ok("real-key" not in str(got), "and no key at all", got)
    got = shown(w, "codex")
    w.ok(got.get("CODEX_API_KEY", "").startswith("writ-placeholder-CODEX_API_KEY-") and "OPENAI_API_KEY" not in got, "codex has its own first", got)
    del w.env["CODEX_API_KEY"]
    got = shown(w, "codex")
    w.ok(got.get("OPENAI_API_KEY", "").startswith("writ-placeholder-OPENAI_API_KEY-"), "or the general one", got)
    w.ok("real-key" not in str(got), "and no key either", got)


@test("a grant that is kept keeps the profile")
def kept(w):
    folder = install(w, "claude")
    (folder / "claude").write_text("#!/bin/sh\nsleep 60\n")
    w.env["ANTHROPIC_API_KEY"] = "sk-one-real-key"
    (w.dir / "more").mkdir()
    proc = w.start([w.program, "run", "--", "claude"])
    session = wait_for(w.ids).pop()
    r = w.writ("allow", "--always", session, f"read:{w.dir}/more")
    w.exits(r, 0, "it is granted")
    w.writ("stop", session)
    proc.wait(10)
    text = "".join(f.read_text() for f in (w.home / ".config/writ/projects").glob("*.writ"))
    w.ok(text.startswith("version 1\nuse claude\nsecret ANTHROPIC_API_KEY from env:") and f"allow read {w.dir}/more" in text, "the policy has all of it", text)
    w.ok("real-key" not in text, "but the key", text)
    (folder / "claude").write_text(SHOW)
    got = shown(w, "claude")
    w.ok(got.get("CLAUDE_CONFIG_DIR") and got.get("ANTHROPIC_API_KEY", "").startswith("writ-placeholder-"), "and the next run has it", got)
