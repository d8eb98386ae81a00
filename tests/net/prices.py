"""Prices of rules hold however policies are put together, and `ask` asks."""
import json
import time

import net
from net import test


@test("a number that one policy gives to a pattern holds for all that another makes of it")
def narrowed(w):
    for name in ("a", "b", "c"):
        w.zone(f"{name}.pkg.test", net.FIRST)
    w.serve("echo", 7000)
    (w.home / ".config/writ").mkdir(parents=True)
    (w.home / ".config/writ/policy.writ").write_text("version 1\nallow write .\nallow net tcp://*.pkg.test:7000 count=3\n")
    (w.ws / "agent.writ").write_text("version 1\nallow write .\nallow net tcp://a.pkg.test:7000\nallow net tcp://b.pkg.test:7000\n")
    got = w.inside(None, """
show([[talk(n + ".pkg.test", 7000) for n in "aabbab"], talk("c.pkg.test", 7000)])
""")
    w.same(got[0].count("ping"), 3, "three in all, not three for each", got)
    w.same(got[1], "no name", "and the other policy narrows")


@test("`ask` with nobody there to ask is no")
def nobody(w):
    w.zone("ask.example.test", net.FIRST)
    w.serve("echo", 7000)
    got = w.inside(["ask net tcp://ask.example.test:7000"], "show(talk('ask.example.test', 7000, seconds=20))")
    w.ok(got in ("ECONNRESET", ""), "a reset", got)
    w.same(w.accepted(), [], "and nothing was dialled")
    w.same(w.queries(), [], "or asked for")


@test("one question for many connections at once; yes lets all of them through", seconds=60)
def one_question(w):
    w.zone("ask.example.test", net.FIRST)
    w.serve("echo", 7000)
    script = """
out, lock = [], threading.Lock()
def go():
    r = talk("ask.example.test", 7000, seconds=30)
    with lock: out.append(r)
threads = [threading.Thread(target=go) for _ in range(30)]
[t.start() for t in threads], [t.join() for t in threads]
open("out", "w").write(json.dumps(out))
"""
    w.put("s.py", "import os, sys, json\n" + net.INSIDE + script)
    for answer, want in (("y", "ping"), ("n", "ECONNRESET")):
        (w.ws / "out").unlink(missing_ok=True)
        w.forget()
        with net.host.Terminal(w, [w.program, "run", *w.rules("ask net tcp://ask.example.test:7000"), "--", net.host.PYTHON, "s.py"]) as t:
            asked = t.expect(r"ask\.example\.test", 15)
            if not w.ok(asked, f"a person is asked ({answer})", t.screen[-600:]):
                continue
            w.same(w.queries(), [], "before anybody outside is")
            time.sleep(0.6)
            t.type(answer + "\n")
            w.ok(t.code(30) is not None, "it ends")
            rest = t.screen.decode(errors="replace")
        got = json.loads((w.ws / "out").read_text()) if (w.ws / "out").exists() else []
        w.same({x for x in got}, {want}, "the answer holds for all that wait", got)
        w.same(rest.count("[y"), 0, "and nobody is asked again", rest[-800:])
    w.same(w.accepted(), [], "after a no, nothing was dialled")


@test("keys that were pressed before a question could be read are no answer to it", seconds=60)
def typed_ahead(w):
    w.zone("ask.example.test", net.FIRST)
    w.zone("two.example.test", net.SECOND)
    w.serve("echo", 7000)
    w.put("s.py", "import os, sys, json\n" + net.INSIDE + "open('out', 'w').write(json.dumps([talk(n + '.example.test', 7000, seconds=30) for n in ('ask', 'two')]))")
    with net.host.Terminal(w, [w.program, "run", *w.rules("ask net tcp://ask.example.test:7000", "ask net tcp://two.example.test:7000"),
                               "--", net.host.PYTHON, "s.py"]) as t:
        end = time.monotonic() + 40
        while not t.ended() and time.monotonic() < end:  # somebody who types all the time
            try:
                t.type("y\n")
            except OSError:
                break
            t.pump(0.02)
    w.same(json.loads((w.ws / "out").read_text()), ["ping", "ping"], "somebody who goes on pressing y is asked twice")
    e = w.events("approval")
    w.same([(x["answer"], x["how"]) for x in e], [("allow", "a person")] * 2, "and answers twice")
    w.ok(all(x["ms"] >= 400 for x in e), "but never at once", e)
