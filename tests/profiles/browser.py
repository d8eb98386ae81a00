"""browser.py - profile browser: a headless browser that renders a page of a server beside it."""
import subprocess

from kit import LONG, PYTHON, ROOT, files, skip, test, tool, work

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
PAGE = """\
    import http.server, subprocess, sys, threading

    BODY = b'''<html><body><p id="x"></p><script>
    fetch("/data").then(r => r.text()).then(t => document.getElementById("x").textContent = "made by script: " + t);
    </script></body></html>'''

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = b"forty-two" if self.path == "/data" else BODY
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    sys.exit(subprocess.run([*sys.argv[1:], "--virtual-time-budget=5000", "--dump-dom", url]).returncode)
    """


def browser(w):
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
    if not any(tool(w, n) for n in names) and LONG and ROOT and tool(w, "apt-get"):
        subprocess.run(["apt-get", "-y", "-qq", "install", "--no-install-recommends", "chromium"], timeout=900,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return next((n for n in names if tool(w, n)), None)


@test("a page from a server in the session is rendered")
def render(w):
    name = browser(w)
    if not name:
        skip(w, "no browser is installed")
        return
    files(w.ws, {"page.py": PAGE})
    r = work(w, "browser", '"$@"', "sh", PYTHON, "page.py", name, *FLAGS)
    w.exits(r, 0, "the browser ends well")
    w.ok('<p id="x">made by script: forty-two</p>' in r.text, "scripts ran and fetched", r)
    r = work(w, "browser", '"$@"; ls -l /var/agent/state/browser/shot.png', "sh", name, *FLAGS,
             "--user-data-dir=/var/agent/state/browser/data", "--screenshot=/var/agent/state/browser/shot.png",
             "data:text/html,<h1>hello</h1>")
    w.exits(r, 0, "a picture of a page lies in the profile's state")
    r = work(w, "browser", "test -d /var/agent/state/browser/data; head -c4 /var/agent/state/browser/shot.png | tail -c3")
    w.same((r.code, r.text), (0, "PNG"), "the next session has it, and the browser's data", r)
    w.clean("no process of the browser stays", 5)


@test("without a browser: what it would find")
def bare(w):
    r = work(w, "browser", """
        echo "display=$DISPLAY sandbox=$CHROME_DEVEL_SANDBOX"
        dd if=/dev/zero of=/dev/shm/block bs=1M count=64 status=none; ls -s --block-size=1M /dev/shm/block
        test ! -e x; ! touch x 2>/dev/null
        """)
    w.same((r.code, r.text.splitlines()), (0, ["display= sandbox=", "64 /dev/shm/block"]),
           "shared memory of its own, no display, nothing of the workspace to change", r)
    got = w.python("""
import socket, threading
s = socket.create_server(("127.0.0.1", 9222))
threading.Thread(target=lambda: s.accept()[0].sendall(b"here"), daemon=True).start()
print(json.dumps(socket.create_connection(("127.0.0.1", 9222), 5).recv(9).decode()))
""", opts=["--profile", "browser"])
    w.same(got, "here", "the usual port for tools of developers is free inside")
    r = work(w, "browser", "echo kept > /var/agent/state/browser/mark")
    r = work(w, "browser", "cat /var/agent/state/browser/mark")
    w.same(r.text, "kept\n", "its state is kept", r)
