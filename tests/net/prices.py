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
            time.sleep(1)  # who types at once has not read it, and is not heard
            t.type(answer + "\n")
            w.ok(t.code(30) is not None, "it ends")
            rest = t.screen.decode(errors="replace")
        got = json.loads((w.ws / "out").read_text()) if (w.ws / "out").exists() else []
        w.same({x for x in got}, {want}, "the answer holds for all that wait", got)
        w.same(rest.count("[y"), 0, "and nobody is asked again", rest[-800:])
    w.same(w.accepted(), [], "after a no, nothing was dialled")


@test("a question about a request says what it does")
def request(w):
    w.zone("ask.example.test", net.FIRST)
    w.serve("http", 80)
    w.put("s.py", "import os, sys, json\n" + net.INSIDE + """
talk("ask.example.test", 80, b"DELETE /all/of/it HTTP/1.1\\r\\nHost: ask.example.test\\r\\n\\r\\n", seconds=20)
""")
    with net.host.Terminal(w, [w.program, "run", *w.rules("ask net http://ask.example.test/** methods=DELETE"), "--", net.host.PYTHON, "s.py"]) as t:
        w.ok(t.expect(r"reach DELETE ask\.example\.test:80/all/of/it\?", 15), "method, host, port and path", t.screen[-600:])
        time.sleep(1)
        t.type("n")
        t.code(20)
    w.same(w.accepted(), [], "after a no, nothing was dialled")
