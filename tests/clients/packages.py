"""Installers of packages, from an index that the test serves."""
import base64
import hashlib
import io
import json
import tarfile
import zipfile

from kit import EVIL, PYTHON, READ, TUNNEL, WEB, need, net, requests, serve, test, town

NODE_TRUST = ["--env", "NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt"]


def installs(w, command, good, env=None, tunnel=(), timeout=90):
    """@command(URL of the index, a new directory) installs; good(directory) says that it is all there."""
    def outcome(run, where, name):
        r = run(command(f"https://{where}", str(w.ws / name)))
        return "installed" if r.code == 0 and good(w.ws / name) else "no", r
    outside = lambda argv: w.call(argv, env={**w.env, **(env or {})}, timeout=timeout)
    for i, where in enumerate((WEB, EVIL, f"{WEB}:8443")):
        got, r = outcome(outside, where, f"outside{i}")
        w.same(got, "installed", f"outside, from {where}", r)
    w.forget()
    for name, rules, opts in (("tunnel", TUNNEL, tunnel), ("read", READ, ())):
        inside = lambda argv: w.run(*argv, opts=[*w.rules(*rules), *opts], timeout=timeout)
        got, r = outcome(inside, WEB, name)
        w.same(got, "installed", f"{name}: from the name that is allowed", r)
        for where in (EVIL, f"{WEB}:8443", net.FIRST) if name == "tunnel" or net.LONG else (EVIL,):
            got, r = outcome(inside, where, name + "-not")
            w.same(got, "no", f"{name}: not from {where}", r)
    w.same({(p[1], p[2]) for p in w.packets()} - {(town.DNS, 53)}, {(net.FIRST, 443)}, "the world saw nothing else")
    w.ok(any(e.get("status") == 200 for e in w.records_of_requests()), "each request is on record", requests(w))


def all_requests(w):
    return [e for record in w.records() for e in record if e["event"] == "net" and e["what"] == "request"]


net.Net.records_of_requests = all_requests


def make_wheel(folder):
    name = "demo-1.0-py3-none-any.whl"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as z:
        z.writestr("demo.py", "answer = 42\n")
        z.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
        z.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr("demo-1.0.dist-info/RECORD", "demo.py,,\ndemo-1.0.dist-info/METADATA,,\ndemo-1.0.dist-info/WHEEL,,\ndemo-1.0.dist-info/RECORD,,\n")
    (folder / "simple/demo").mkdir(parents=True)
    (folder / "simple/demo" / name).write_bytes(data.getvalue())
    digest = hashlib.sha256(data.getvalue()).hexdigest()
    (folder / "simple/demo/index.html").write_text(f'<!DOCTYPE html><html><body><a href="{name}#sha256={digest}">{name}</a></body></html>\n')


@test("pip", seconds=300)
def pip(w):
    if not need(w, slow=True) or not need(w, module="pip"):
        return
    make_wheel(serve(w)[0])
    installs(w, lambda url, to: [PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-cache-dir", "--retries", "0", "--timeout", "10",
                                 "--root-user-action=ignore", "--target", to, "--index-url", f"{url}/simple/", "demo"],
             lambda folder: (folder / "demo.py").is_file(), env={"PIP_CERT": "/etc/ssl/certs/ca-certificates.crt"},
             tunnel=["--env", "PIP_CERT=/etc/ssl/certs/ca-certificates.crt"])


def make_package(folder):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as t:
        for name, text in (("package/package.json", '{"name":"demo","version":"1.0.0","main":"index.js"}'), ("package/index.js", "module.exports = 42\n")):
            info = tarfile.TarInfo(name)
            info.size = len(text)
            t.addfile(info, io.BytesIO(text.encode()))
    raw = data.getvalue()
    (folder / "demo-1.0.0.tgz").write_bytes(raw)
    sum_ = "sha512-" + base64.b64encode(hashlib.sha512(raw).digest()).decode()
    return lambda base: json.dumps({"name": "demo", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {
        "name": "demo", "version": "1.0.0", "dist": {"tarball": f"{base}/demo-1.0.0.tgz", "integrity": sum_}}}})


@test("npm", seconds=400)
def npm(w):
    if not need(w, "npm", "node", slow=True):
        return
    folder, bundle = serve(w)
    (folder / "demo").mkdir()
    # Whatever host is named here, npm takes the tarball from the registry that it was told of.
    (folder / "demo/index.html").write_text(make_package(folder)(f"https://{WEB}"))
    installs(w, lambda url, to: ["npm", "install", "--silent", "--no-audit", "--no-fund", "--no-update-notifier", "--fetch-retries=0", "--replace-registry-host=always", "--prefix", to, "--registry",
                                 f"{url}/", "demo"],
             lambda folder: (folder / "node_modules/demo/index.js").is_file(), env={"NODE_EXTRA_CA_CERTS": str(bundle)}, tunnel=NODE_TRUST)
