"""Clients of the web: they ask for five URLs, and say what became of each."""
import os
import shutil
import subprocess

from kit import PYTHON, READ, URLS, need, net, serve, test, web_client, words

SHELL = 'for u; do if o=$({} "$u" 2>&1); then echo "yes $o"; else echo "no $(echo "$o" | tail -n1)"; fi; done'
URLLIB = """
import sys, urllib.request
for u in sys.argv[1:]:
    try: print("yes", urllib.request.urlopen(u, timeout=10).read().decode().strip())
    except Exception as e: print("no", e)
"""
JAVA = '''
import java.net.URI;
import java.net.http.*;
import java.time.Duration;

public class Get {
    public static void main(String[] urls) throws Exception {
        HttpClient c = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(10)).build();
        for (String u : urls) {
            try {
                var r = c.send(HttpRequest.newBuilder(URI.create(u)).timeout(Duration.ofSeconds(10)).build(), HttpResponse.BodyHandlers.ofString());
                System.out.println((r.statusCode() == 200 ? "yes " : "no ") + r.body().split("\\\\n")[0]);
            } catch (Exception e) {
                System.out.println("no " + e);
            }
        }
    }
}
'''


@test("curl")
def curl(w):
    if need(w, "curl"):
        serve(w)
        web_client(w, ["sh", "-c", SHELL.format("curl -sSf --max-time 10"), "sh"])


@test("wget")
def wget(w):
    if need(w, "wget", slow=True):
        serve(w)
        web_client(w, ["sh", "-c", SHELL.format("wget -q -t1 -T10 -O-"), "sh"])


@test("openssl s_client verifies who answers")
def openssl(w):
    if not need(w, "openssl", slow=True):
        return
    serve(w)
    script = """
for u; do h=${u#https://}; p=/${h#*/}; h=${h%%/*}; case $h in *:*) ;; *) h=$h:443;; esac
o=$(printf 'GET %s HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n' "$p" "${h%:443}" |
  timeout 10 openssl s_client -quiet -verify_return_error -connect "$h" -servername "${h%:*}" 2>/dev/null)
case $o in *' 200 '*world*) echo yes from the world;; *) echo "no $o" | head -n1;; esac; done"""
    web_client(w, ["sh", "-c", script, "sh"])


@test("Python's urllib")
def urllib(w):
    serve(w)
    web_client(w, [PYTHON, "-c", URLLIB])


@test("Python's requests")
def requests(w):
    if not need(w, slow=True) or not need(w, module="requests"):
        return
    _, bundle = serve(w)
    trust = f"REQUESTS_CA_BUNDLE={bundle}"  # Debian's looks there by itself, others do not
    web_client(w, [PYTHON, "-c", """
import sys, requests
s = requests.Session()
for u in sys.argv[1:]:
    try:
        r = s.get(u, timeout=10)
        r.raise_for_status()
        print("yes", r.text.strip())
    except Exception as e: print("no", e)
"""], outside=dict([trust.split("=", 1)]), tunnel=["--env", "REQUESTS_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt"])


@test("Node's fetch")
def node(w):
    if not need(w, "node"):
        return
    _, bundle = serve(w)
    web_client(w, ["node", "-e", """
(async () => { for (const u of process.argv.slice(1)) {
  try { const r = await fetch(u, {signal: AbortSignal.timeout(10000)}); console.log((r.ok ? "yes " : "no ") + (await r.text()).trim().split("\\n")[0]); }
  catch (e) { console.log("no " + (e.cause || e)); }
} process.exit(0); })();
"""], outside={"NODE_EXTRA_CA_CERTS": str(bundle)}, tunnel=["--env", "NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt"])


@test("a static Go program", seconds=1200)  # most of it compiles the standard library
def go(w):
    program = shutil.which("go", path=w.env["PATH"] + ":/usr/local/go/bin")
    if not need(w, slow=True) or not (program or need(w, "go")):
        return
    source = w.dir / "main.go"
    source.write_text('''package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

func get(u string) (string, error) {
	host, path, _ := strings.Cut(strings.TrimPrefix(u, "https://"), "/")
	to := host
	if !strings.Contains(to, ":") {
		to += ":443"
	}
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", to, nil)
	if err != nil {
		return "", err
	}
	defer c.Close()
	fmt.Fprintf(c, "GET /%s HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n", path, host)
	b, _ := io.ReadAll(c)
	head, body, _ := strings.Cut(string(b), "\\r\\n\\r\\n")
	if !strings.HasPrefix(head, "HTTP/1.1 200 ") {
		return "", fmt.Errorf("%.40q", head)
	}
	return strings.TrimSpace(body), nil
}

func main() {
	for _, u := range os.Args[1:] {
		if body, err := get(u); err != nil {
			fmt.Println("no", err)
		} else {
			fmt.Println("yes", body)
		}
	}
}
''')
    env = {**w.env, "CGO_ENABLED": "0", "GO111MODULE": "off", "GOCACHE": str(w.dir / "cache"), "GOTOOLCHAIN": "local", "GOFLAGS": ""}
    subprocess.run([program, "build", "-o", str(w.ws / "get"), str(source)], check=True, env=env, cwd=w.dir)
    serve(w)
    web_client(w, ["./get"])


@test("Java", seconds=400)
def java(w):
    if not need(w, "java", "javac", "keytool", slow=True):
        return
    if not os.path.isfile("/etc/ssl/certs/java/cacerts"):
        return w.ok(True, "not run # SKIP Java keeps its authorities elsewhere here")
    w.put("Get.java", JAVA)
    serve(w, java=True)
    web_client(w, ["java", "-XX:TieredStopAtLevel=1", "Get.java"], timeout=120)
    r = w.run("java", "-XX:TieredStopAtLevel=1", "-version", opts=w.rules("https://web.example.test methods=GET"), timeout=60)
    w.ok(r.code == 0 and "Picked up" not in r.said, "and prints no line about it", r)


@test("in tier B, where nothing can be covered, by variables", seconds=200)
def tier_b(w):
    if not need(w, "curl"):
        return
    serve(w, java=net.LONG and os.path.isfile(w.certs / "cacerts"))
    clients = {"curl": ["sh", "-c", SHELL.format("curl -sSf --max-time 10"), "sh"], "Python": [PYTHON, "-c", URLLIB]}
    if net.LONG and shutil.which("javac") and os.path.isfile("/etc/ssl/certs/java/cacerts"):
        w.put("Get.java", JAVA)
        clients["Java"] = ["java", "-XX:TieredStopAtLevel=1", "Get.java"]
    for name, argv in clients.items():
        r = w.run(*argv, *URLS, opts=["--tier", "B", *w.rules(*READ)], timeout=120)
        w.same(words(r), ["yes", "no", "no", "no", "no"], f"{name}: what is allowed and nothing else", r)


@test("through a proxy, to a name that only a pattern allows")
def pattern(w):
    if not need(w, "curl"):
        return
    serve(w)
    argv = ["sh", "-c", SHELL.format("curl -sSf --max-time 10 -x http://proxy.writ:1080"), "sh"]
    r = w.run(*argv, *URLS, opts=w.rules("https://*.example.test methods=GET", "deny net https://web.example.test/closed"), timeout=60)
    w.same(words(r), ["yes", "yes", "no", "no", "no"], "what is allowed and nothing else", r)


@test("a client that trusts nobody but its own authorities")
def pinned(w):
    if not need(w, "curl"):
        return
    serve(w)
    w.put("own.pem", (w.certs / "ca.pem").read_text())
    argv = ["sh", "-c", SHELL.format("curl -sSf --max-time 10 --cacert own.pem"), "sh", *URLS]
    r = w.run(*argv, opts=w.rules(*READ), timeout=60)
    w.ok(words(r) == ["no"] * 5 and "unknown ca" in r.said, "it does not talk to somebody who reads, which is said", r)
    r = w.run(*argv, opts=w.rules("https://web.example.test tls=passthrough"), timeout=60)
    w.same(words(r), ["yes", "no", "no", "no", "yes"], "with tls=passthrough it does, and the name is held", r)
