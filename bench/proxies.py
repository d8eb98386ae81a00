"""proxies.py - the proxies that bench/egress.py compares with: how each is configured, started and watched.

tools/peers-net.sh brings them. Each has a port that leads to the echo, one to the source and one to the TLS origin;
those that speak CONNECT have one port for the first two. Their logs are off; writ's record is not.
"""
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HAVE = Path(os.environ.get("PEERS_DIR", ROOT / "build/peers"))
LIBS = ":".join(str(HAVE / "deb" / d) for d in ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "lib/x86_64-linux-gnu"))
LOOP = "127.0.0.1"


def tree(pid):
    """A process and all below it."""
    found, todo = [], [str(pid)]
    while todo:
        p = todo.pop()
        try:
            todo += Path(f"/proc/{p}/task/{p}/children").read_text().split()
            found.append(p)
        except OSError:
            pass
    return found


def cpu_of(pids):
    """Seconds of CPU that they have used, all threads."""
    total = 0
    for p in pids:
        for task in Path(f"/proc/{p}/task").glob("*/schedstat"):
            try:
                total += int(task.read_text().split()[0])
            except (OSError, IndexError):
                pass
    return total / 1e9


def memory_of(pids):
    """KiB of their own that they have in memory."""
    total = 0
    for p in pids:
        try:
            text = Path(f"/proc/{p}/status").read_text()
        except OSError:
            continue
        total += next((int(line.split()[1]) for line in text.splitlines() if line.startswith("RssAnon")), 0)
    return total


class Peer:
    """One proxy: start() makes it run, or says why it does not."""
    name, connect = "", False

    def __init__(self, world):
        self.w, self.procs, self.why = world, [], ""
        self.dir = world.dir / self.name
        self.dir.mkdir(mode=0o755)

    def program(self, name):
        for folder in (HAVE / "deb/usr/sbin", HAVE / "deb/usr/bin"):
            if (folder / name).exists():
                return str(folder / name)
        return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")

    def run(self, cmd, **env):
        with open(self.dir / "log", "ab") as log:
            self.procs.append(subprocess.Popen(cmd, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                               preexec_fn=self.w.die_with_parent,
                                               env={**os.environ, "LD_LIBRARY_PATH": LIBS, "HOME": str(self.dir), **env}))

    def begin(self):
        """False: it is not there, and self.why says why."""
        note = HAVE / f"{self.name}.why-not"
        try:
            self.why = note.read_text().strip() if note.exists() else self.start() or ""
        except OSError as e:
            self.why = str(e)
        end = time.monotonic() + 30
        while not self.why and not self.listens():
            if time.monotonic() > end or any(p.poll() is not None for p in self.procs):
                lines = (self.dir / "log").read_text(errors="replace").strip().splitlines()
                lines = [text for text in lines if any(w in text for w in ("FATAL", "ALERT", "emerg"))] or lines
                self.why = "it did not start" + (": " + lines[-1][:150] if lines else " in time")
            time.sleep(0.05)
        if self.why:
            self.end()
        return not self.why

    def listens(self):
        for port in self.ports():
            with socket.socket() as s:
                s.settimeout(1)
                if s.connect_ex((LOOP, port)) != 0:
                    return False
        return True

    def ports(self):
        return sorted({p for p in self.port.values()})

    def target(self, what):
        """Address, port and what CONNECT is asked for."""
        where = f"{self.w.name}:{self.w.port[what]}" if self.connect else "-"
        return LOOP, self.port[what], where

    def pids(self):
        return [p for proc in self.procs for p in tree(proc.pid)]

    def end(self):
        for proc in self.procs:
            for pid in reversed(tree(proc.pid)):
                try:
                    os.kill(int(pid), 9)
                except ProcessLookupError:
                    pass
            proc.wait()


class Nginx(Peer):
    name = "nginx"
    port = {"echo": 18001, "source": 18002, "tls": 18003}

    def start(self):
        program = self.program("nginx")
        module = next((m for m in (HAVE / "deb/usr/lib/nginx/modules/ngx_stream_module.so",
                                   Path("/usr/lib/nginx/modules/ngx_stream_module.so")) if m.exists()), None)
        if not program or not module:
            return "its program or its stream module is not there"
        w = self.w
        (self.dir / "conf").write_text(f"""
load_module {module};
{"user root;" if os.geteuid() == 0 else ""}
worker_processes auto; worker_rlimit_nofile 20000; daemon off; pid {self.dir}/pid; error_log {self.dir}/log error;
events {{ worker_connections 8000; multi_accept on; }}
stream {{
	server {{ listen {LOOP}:{self.port["echo"]} backlog=4096; proxy_pass {w.address}:{w.port["echo"]}; proxy_timeout 10m; }}
	server {{ listen {LOOP}:{self.port["source"]}; proxy_pass {w.address}:{w.port["source"]}; }}
}}
http {{
	access_log off; client_body_temp_path {self.dir}/b; proxy_temp_path {self.dir}/p; fastcgi_temp_path {self.dir}/f;
	uwsgi_temp_path {self.dir}/u; scgi_temp_path {self.dir}/s; keepalive_requests 100000000;
	upstream o {{ server {w.address}:{w.port["tls"]}; keepalive 64; keepalive_requests 100000000; }}
	server {{
		listen {LOOP}:{self.port["tls"]} ssl; ssl_certificate {w.leaf}; ssl_certificate_key {w.leaf_key};
		ssl_protocols TLSv1.3;
		location / {{
			proxy_pass https://o; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
			proxy_ssl_verify on; proxy_ssl_trusted_certificate {w.ca}; proxy_ssl_name {w.name};
			proxy_ssl_server_name on; proxy_ssl_protocols TLSv1.3;
		}}
	}}
}}
""")
        self.run([program, "-e", f"{self.dir}/log", "-p", str(self.dir), "-c", str(self.dir / "conf")])


class Haproxy(Peer):
    name = "haproxy"
    port = {"echo": 18011, "source": 18012, "tls": 18013}

    def start(self):
        program, w = self.program("haproxy"), self.w
        if not program:
            return "its program is not there"
        both = self.dir / "both.pem"
        both.write_text(w.leaf.read_text() + w.leaf_key.read_text())
        (self.dir / "conf").write_text(f"""
global
	maxconn 4000
defaults
	timeout connect 5s
	timeout client 10m
	timeout server 10m
	option splice-auto
listen echo
	mode tcp
	bind {LOOP}:{self.port["echo"]} backlog 4096
	server o {w.address}:{w.port["echo"]}
listen source
	mode tcp
	bind {LOOP}:{self.port["source"]}
	server o {w.address}:{w.port["source"]}
listen tls
	mode http
	http-reuse always
	bind {LOOP}:{self.port["tls"]} ssl crt {both} ssl-min-ver TLSv1.3
	server o {w.address}:{w.port["tls"]} ssl verify required ca-file {w.ca} sni str({w.name}) verifyhost {w.name}
""")
        self.run([program, "-db", "-f", str(self.dir / "conf")])


class Squid(Peer):
    name, connect = "squid", True
    port = {"echo": 18021, "source": 18021, "tls": 18022}

    def start(self):
        program, w = self.program("squid"), self.w
        certgen = next((c for c in (HAVE / "deb/usr/lib/squid/security_file_certgen",
                                    Path("/usr/lib/squid/security_file_certgen")) if c.exists()), None)
        if not program or not certgen:
            return "its program, or that with TLS, is not there"
        deb = HAVE / "deb" if (HAVE / "deb/usr/share/squid").is_dir() else Path("/")
        env = {**os.environ, "LD_LIBRARY_PATH": LIBS}
        subprocess.run([certgen, "-c", "-s", self.dir / "certs", "-M", "4MB"], check=True, env=env,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        both = self.dir / "both.pem"
        both.write_text(w.ca.read_text() + w.ca_key.read_text())
        (self.dir / "conf").write_text(f"""
http_port {LOOP}:{self.port["echo"]}
http_port {LOOP}:{self.port["tls"]} ssl-bump tls-cert={both} generate-host-certificates=on dynamic_cert_mem_cache_size=4MB
sslcrtd_program {certgen} -s {self.dir}/certs -M 4MB
ssl_bump bump all
tls_outgoing_options cafile={w.ca}
http_access allow all
cache deny all
access_log none
cache_log {self.dir}/log
pid_filename none
netdb_filename none
coredump_dir {self.dir}
mime_table {deb}/usr/share/squid/mime.conf
icon_directory {deb}/usr/share/squid/icons
error_directory {deb}/usr/share/squid/errors/en
pinger_enable off
unlinkd_program {certgen.parent}/unlinkd
logfile_daemon {certgen.parent}/log_file_daemon
visible_hostname bench
dns_nameservers {w.dns}
max_filedescriptors 20000
shutdown_lifetime 0
""")
        cmd = [program, "-N", "-f", str(self.dir / "conf")]
        if os.geteuid() == 0:
            # It will not be root.
            subprocess.run(["chown", "-R", "nobody", self.dir], check=True)
            cmd = ["setpriv", "--pdeathsig=KILL", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *cmd]
        self.run(cmd)


class Mitmproxy(Peer):
    name, connect = "mitmproxy", True
    port = {"echo": 18031, "source": 18031, "tls": 18032}

    def start(self):
        program = HAVE / "mitm/bin/mitmdump"
        if not program.exists():
            return "its program is not there"
        common = [str(program), "-q", "--listen-host", LOOP, "--set", f"confdir={self.dir}",
                  "--set", f"ssl_verify_upstream_trusted_ca={self.w.ca}"]
        self.run([*common, "-p", str(self.port["echo"]), "--ignore-hosts", ".*"])
        self.run([*common, "-p", str(self.port["tls"])])

    def target(self, what):
        # It would ask the system's name server, and there is none here.
        return LOOP, self.port[what], f"{self.w.address}:{self.w.port[what]}"


class Srt(Peer):
    name, connect = "srt", True
    port = {"echo": 18041, "source": 18041, "tls": 18042}

    def start(self):
        if not shutil.which("node") or not (HAVE / "srt/node_modules").is_dir():
            return "it or node is not there"
        self.run(["node", str(ROOT / "bench/srt.mjs"), str(HAVE / "srt/node_modules"), self.w.address, str(self.w.ca),
                  str(self.port["echo"]), str(self.port["tls"])])


PEERS = (Nginx, Haproxy, Squid, Mitmproxy, Srt)
