"""A real browser, without a screen."""
import re
import shutil

from kit import WEB, need, net, serve, test, town

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--virtual-time-budget=8000"]


@test("Chromium", seconds=300)
def chromium(w):
    name = next((n for n in NAMES if shutil.which(n, path=w.env["PATH"])), None)
    if not need(w, slow=True) or not (name or need(w, NAMES[0])):
        return
    serve(w)
    argv = [name, *FLAGS, "--dump-dom", f"https://{WEB}/page"]
    r = w.call([*argv, "--ignore-certificate-errors"], timeout=90)  # as one of the machine's authorities the test's is none of Chromium's own
    w.same(shown(r), ["200 from the world"] * 4, "outside a page fetches from everywhere", r)
    r = w.call(argv, timeout=90)
    w.same(shown(r), None, "though not without that flag", r)
    w.forget()
    r = w.run(*argv, opts=["--profile", "browser", *w.rules(f"https://{WEB} methods=GET", f"deny net https://{WEB}/closed")], timeout=120)
    got = shown(r) or []
    w.ok(got[:1] == ["200 from the world"] and got[1:2] and got[1].startswith("403") and got[2:] == ["no", "no"],
         "read: the page, its scripts, what they may fetch and nothing else", f"{got}\n{r}")
    w.same({(p[1], p[2]) for p in w.packets()} - {(town.DNS, 53)}, {(net.FIRST, 443)}, "the world saw nothing else")


def shown(r):
    found = re.search(r'<p id="x">(.*?)</p>', r.text, re.S)
    return found[1].split("|") if found and found[1] else None
