"""origin.py CERT KEY FOLDER PORT... - a server of everything that clients ask for over https.

What came is in the log that its parent gave it as stderr, a line "METHOD HOST PATH" each.
"""
import http.server
import os
import ssl
import subprocess
import sys
import threading
from pathlib import Path

CERT, KEY, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])
PAGE = b"""<html><body><p id="x"></p><script>
const say = async u => { try { const r = await fetch(u); return r.status + " " + (await r.text()).trim(); } catch (e) { return "no"; } };
(async () => { const out = []; for (const u of ["/x", "/closed", "https://evil.example.test/x", "https://web.example.test:8443/x"]) out.push(await say(u));
document.getElementById("x").textContent = out.join("|"); })();
</script></body></html>"""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body, kind="text/plain"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path = self.path.partition("?")[0]
        if path.startswith("/git/"):
            return self.git()
        if path == "/page":
            return self.answer(200, PAGE, "text/html")
        if path in ("/x", "/closed"):
            return self.answer(200, b"from the world\n")
        file = FOLDER / path.strip("/")
        if file.is_dir():
            file /= "index.html"
        if ".." in path or not file.is_file():
            return self.answer(404, b"nothing here\n")
        kinds = {".html": "text/html", ".json": "application/json"}
        return self.answer(200, file.read_bytes(), kinds.get(file.suffix, "application/octet-stream"))

    def do_POST(self):
        self.git()

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        whole = b""
        while n := int(self.rfile.readline().split(b";")[0], 16):
            whole += self.rfile.read(n)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def git(self):
        path, _, query = self.path.partition("?")
        env = {"PATH": os.environ["PATH"], "HOME": str(FOLDER), "GIT_PROJECT_ROOT": str(FOLDER), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
               "QUERY_STRING": query, "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers.get("Content-Type", ""),
               "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "REMOTE_ADDR": "-", "GIT_CONFIG_COUNT": "1",
               "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        if self.headers.get("Content-Encoding"):
            env["HTTP_CONTENT_ENCODING"] = self.headers["Content-Encoding"]
        data = self.body() if self.command == "POST" else b""
        out = subprocess.run(["git", "http-backend"], input=data, stdout=subprocess.PIPE, env=env).stdout
        head, _, body = out.partition(b"\r\n\r\n")
        fields = dict(line.decode().split(": ", 1) for line in head.split(b"\r\n") if b": " in line)
        self.answer(int(fields.get("Status", "200").split()[0]), body, fields.get("Content-Type", "text/plain"))

    def log_request(self, code="-", size="-"):
        sys.stderr.write(f"{self.command} {self.headers.get('Host')} {self.path} {code}\n")
        sys.stderr.flush()

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size, daemon_threads = 128, True

    def handle_error(self, request, address):
        pass

    def finish_request(self, request, address):
        request.settimeout(30)
        with tls.wrap_socket(request, server_side=True) as secure:
            super().finish_request(secure, address)


tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(CERT, KEY)
servers = [Server(("0.0.0.0", int(port)), Handler) for port in sys.argv[4:]]
for server in servers[1:]:
    threading.Thread(target=server.serve_forever, daemon=True).start()
servers[0].serve_forever()
