#!/usr/bin/env python3
"""run.py - runs programs on other kernels, in a virtual machine made for it.

    tests/kernel/run.py [--kernel 6.1|6.12 ...] [options]              the suite, as TAP
    tests/kernel/run.py --kernel 6.1 [options] -- CMD [ARGUMENT ...]   one command

The kernel comes from the distribution's packages (kept in build/kernel), the
rest of the machine is a tree packed on the spot: busybox, what is named below,
and the libraries it needs. No network, one small ext4 disk at /home and /tmp, in
memory; cgroup version 2 with a part delegated to the ordinary user (uid 1000).

A command runs as root and as that user, in turn, with its output passed on; the
exit code is the first that is not 0. If its first word is a file here, it is
packed. Without a command, as TAP, one machine for each of these parts and users:

    conform    `writ conform`, all of it, in both tiers as the user and as root; every row
               is a result. One that cannot be tried there must be in `unsupported`.
    smoke      smoke.sh: network, live grants, limits; in both tiers, as both
    delegated  every unit test that acts (also in suite `both`) and `writ doctor`
    bare       the same without a cgroup of the user's

    --part NAME        only this one (repeatable)
    --as root|user     only one of them
    --files FROM[:TO]  packs a file or folder; TO is /test/NAME if not said (repeatable)
    --overlay DIR      packs the contents of DIR at / (repeatable)
    --with PROGRAM     packs a program of this machine: bash, git, python3, ... (repeatable)
    --no-delegate      no cgroup belongs to the user, and no controller is on
    --timeout SECONDS  for each command, by the machine's clock (300)
    --memory MIB       of the machine (1536)
    --accel NAME       kvm, tcg (works everywhere), or auto (the default): kvm if a kernel
                       starts with it here
    --keep DIR         what `writ conform` said, as files
    --build DIR        where the programs of the suite are (build/release)
    --fetch            only fetch the kernel packages
"""
import argparse
import copy
import fnmatch
import importlib.machinery
import importlib.util
import json
import lzma
import os
import re
import secrets
import select
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = ROOT / "build" / "kernel"
KERNELS = ("6.1", "6.12")
BOOT_SECONDS, SLACK_SECONDS = 900, 60  # a machine on a busy host takes its time
KVM_BOOT_SECONDS = 30  # it is up in two; there are hosts where it never is
CONFORM_SECONDS = 1800  # for one tier as one user
SLOWER = 12  # how much longer than by its own clock an emulated machine may take
PARTS = ("conform", "smoke", "delegated", "bare")
PROGRAMS = {"conform": ["bash", "git", "make"], "smoke": ["curl"], "delegated": ["bash", "git"],
            "bare": ["bash", "git"]}  # more than what is always there
# Loaded in the machine if the kernel has them as modules, with what they need.
MODULES = ("virtio_pci", "virtio_blk", "brd", "overlay", "fuse", "tun", "veth")
ARGUMENTS = {"brd": "rd_nr=1 rd_size=524288"}  # the disk, in memory: see `icount` below
# What a program needs besides its libraries; {v} is the version of python3.
COMPANIONS = {
    "git": ["/usr/share/git-core/templates"],
    "python3": ["/usr/lib/python{v}"],
}
SKIPPED_FOLDERS = {"__pycache__", "test", "tests", "idlelib", "lib2to3", "ensurepip", "tkinter",
                   "dist-packages", "turtledemo", "pydoc_data"}
ETC = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n"
              "nobody:x:65534:65534:nobody:/nonexistent:/usr/bin/nologin\n",
    "group": "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n1.2.3.10 files.test\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "os-release": "ID=machine\nVERSION_ID=1\n",
}


class Unavailable(Exception):
    """This machine has no such kernel to offer."""


def fail(text):
    sys.exit(f"tests/kernel/run.py: {text}")


def find_program(name):
    """Of the system, not somebody's shim in front of it."""
    if "/" in name:
        return name
    for folder in ("/usr/bin", "/usr/sbin", "/bin", "/sbin"):
        if os.access(f"{folder}/{name}", os.X_OK):
            return f"{folder}/{name}"
    return shutil.which(name) or fail(f"{name} is missing on this machine")


# ---- the kernel ----

def package_of(kernel):
    """The newest image of that series: the cloud flavour if there is one, it boots faster."""
    out = subprocess.run(["apt-cache", "pkgnames", f"linux-image-{kernel}."], check=True,
                         stdout=subprocess.PIPE, text=True).stdout.split()
    for flavour in ("-cloud-amd64", "-amd64"):
        names = [n for n in out if re.fullmatch(
            re.escape(f"linux-image-{kernel}.") + r"[0-9][^_]*?" + flavour, n)]
        names = [n for n in names if flavour != "-amd64" or not re.search("cloud|rt", n)]
        if names:
            return max(names, key=lambda n: [int(d) for d in re.findall(r"\d+", n)])
    raise Unavailable(f"no package linux-image-{kernel}.*-amd64 in the sources of apt")


def fetch(kernel):
    """The folder of an unpacked kernel package."""
    ready = CACHE / kernel
    if (ready / "name").exists():
        return ready
    if not shutil.which("apt-get"):
        raise Unavailable("no apt-get here to fetch a kernel with")
    name = package_of(kernel)
    CACHE.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="fetch-", dir=CACHE))
    try:
        done = subprocess.run(["apt-get", "-q", "download", name], cwd=work,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise Unavailable(f"apt-get download {name}: {done.stdout.strip()}")
        deb = next(work.glob("*.deb"))
        subprocess.run(["dpkg-deb", "-x", deb, work / "x"], check=True)
        deb.unlink()
        (work / "x" / "name").write_text(name + "\n")
        shutil.rmtree(ready, ignore_errors=True)
        (work / "x").rename(ready)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return ready


def module_files(folder):
    """[(name, bytes)] in the order to load them; what is built in is not a file."""
    found = {}
    for path in folder.glob("**/lib/modules/**/*.ko*"):
        found[path.name.split(".ko")[0].replace("-", "_")] = path
    order = []

    def visit(name):
        name = name.replace("-", "_")
        if name not in found or name in [n for n, _ in order]:
            return
        data = found[name].read_bytes()
        if found[name].suffix == ".xz":
            data = lzma.decompress(data)
        needs = re.search(rb"\0depends=([^\0]*)\0", data)
        for other in needs[1].decode().split(",") if needs else []:
            visit(other)
        order.append((name, data))

    for name in MODULES:
        visit(name)
    return order


# ---- the tree ----

class Tree:
    """Files by their path in the machine; all belong to root. Merged /usr, as distributions do."""

    def __init__(self):
        self.entries = {}  # path: (mode, bytes, file to read or None)
        for folder in ("bin", "sbin", "lib", "lib64"):
            self.link(f"/{folder}", f"usr/{folder}")
            self.folder(f"/usr/{folder}")
        for folder in ("dev", "proc", "sys", "root", "tmp", "etc", "test"):
            self.folder(f"/{folder}")

    def place(self, path):
        path = re.sub(r"^/(bin|sbin|lib|lib64)/", r"/usr/\1/", os.path.normpath(path))
        parent = os.path.dirname(path)
        if parent != "/":
            self.folder(parent)
        return path

    def folder(self, path):
        path = self.place(path)
        self.entries.setdefault(path, (stat.S_IFDIR | 0o755, b"", None))

    def link(self, path, to):
        self.entries[self.place(path) if path.count("/") > 1 else path] = (
            stat.S_IFLNK | 0o777, to.encode(), None)

    def text(self, path, text, mode=0o644):
        self.entries[self.place(path)] = (stat.S_IFREG | mode, text.encode(), None)

    def data(self, path, data):
        self.entries[self.place(path)] = (stat.S_IFREG | 0o644, data, None)

    def device(self, path, major, minor):
        self.entries[self.place(path)] = (stat.S_IFCHR | 0o600, (major, minor), None)

    def file(self, source, path):
        path = self.place(path)
        mode = 0o755 if os.access(source, os.X_OK) else 0o644
        self.entries[path] = (stat.S_IFREG | mode, b"", os.path.realpath(source))
        for library in libraries(source):
            if self.place(library) not in self.entries:
                self.file(library, library)

    def add(self, source, path):
        """A file, or a folder with all in it."""
        if not os.path.isdir(source):
            return self.file(source, path)
        self.folder(path)
        for name in sorted(os.listdir(source)):
            full = os.path.join(source, name)
            if os.path.islink(full) and not os.path.isabs(os.readlink(full)):
                self.link(f"{path}/{name}", os.readlink(full))
            elif os.path.isfile(full) or (os.path.isdir(full) and name not in SKIPPED_FOLDERS):
                self.add(full, f"{path}/{name}")

    def program(self, name):
        source = find_program(name)
        self.file(source, f"/usr/bin/{name}")
        version = re.search(r"python(3\.\d+)$", os.path.realpath(source))
        for extra in COMPANIONS.get(name, []):
            extra = extra.format(v=version[1] if version else "3")
            if os.path.exists(extra):
                self.add(extra, extra)


def libraries(source):
    """Shared libraries and loader of an ELF program or library, as ldd finds them."""
    with open(source, "rb") as f:
        if f.read(4) != b"\x7fELF":
            return []
    out = subprocess.run(["ldd", source], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         text=True).stdout
    return [m for m in re.findall(r"(?:=> |^\s+)(/\S+)", out, re.M) if os.path.exists(m)]


def cpio(tree, out, prefix=""):
    """Writes the entries in the format the kernel unpacks ("newc")."""
    for number, path in enumerate(sorted(tree.entries), 1):
        mode, data, source = tree.entries[path]
        device = data if isinstance(data, tuple) else (0, 0)
        if source:
            data = Path(source).read_bytes()
        elif isinstance(data, tuple):
            data = b""
        record(out, (prefix + path).lstrip("/"), number, mode, data, device)


def record(out, name, number, mode, data, device=(0, 0)):
    name = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name), 0)
    head = b"070701" + b"".join(b"%08X" % f for f in fields) + name
    out.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))


def base_tree(opts):
    tree = Tree()
    # A shell of its own, because that of busybox runs its own unshare(1), which knows less
    # than the one that the test of the probe asks for a second opinion.
    for name in ["busybox", "dash", "unshare", "setpriv", "mke2fs"] + opts.programs:
        tree.program(name)
    tree.link("/usr/bin/sh", "dash")
    for name, text in ETC.items():
        tree.text(f"/etc/{name}", text)
    for folder in opts.overlay:
        tree.add(folder, "")
    for spec in opts.files:
        source, _, to = spec.partition(":")
        if not os.path.exists(source):
            fail(f"{source}: no such file")
        tree.add(source, to or f"/test/{os.path.basename(source.rstrip('/'))}")
    tree.text("/init", (HERE / "init.sh").read_text(), 0o755)
    return tree


def pack(path, tree, modules, jobs, mark, opts):
    """The initramfs: busybox and modules to start with, the machine's root below /tree."""
    first = Tree()
    first.program("busybox")
    first.link("/usr/bin/sh", "busybox")
    first.device("/dev/console", 5, 1)
    first.text("/init", (HERE / "init.sh").read_text(), 0o755)
    first.text("/modules/order", "".join(f"{n}.ko {ARGUMENTS.get(n, '')}\n" for n, _ in modules))
    for name, data in modules:
        first.data(f"/modules/{name}.ko", data)
    tree.text("/jobs/config", f"MARK={mark}\nDELEGATE={0 if opts.no_delegate else 1}\n")
    tree.text("/jobs/list", "".join(f"{i} {j.who} {j.seconds or opts.timeout}\n"
                                    for i, j in enumerate(jobs)))
    for i, job in enumerate(jobs):
        tree.text(f"/jobs/{i}", f"exec {shlex.join(job.command)}\n")
    with open(path, "wb") as out:
        cpio(first, out)
        record(out, "tree", 1, stat.S_IFDIR | 0o755, b"")
        cpio(tree, out, "/tree")
        record(out, "TRAILER!!!", 0, 0, b"")


# ---- the machine ----

class Job:
    def __init__(self, who, command, name="", seconds=0):
        self.who, self.command, self.name, self.seconds = who, command, name, seconds
        self.output, self.code, self.took = b"", None, 0

    def text(self):
        return self.output.decode(errors="replace")


def clock(accel):
    """Emulated, the machine's time is the number of its instructions, and it does not wait
    while it sleeps: however slow and busy this host is, nothing in it is late. So nothing in
    it may wait for this host either: its disk is memory."""
    return ["-icount", "shift=2,sleep=off"] if accel == "tcg" else []


class Machine:
    """One boot that does all jobs. on_output(job, bytes) hears them as they speak, and
    on_end(job) when one has ended."""

    def __init__(self, kernel, jobs, opts, on_output=lambda job, data: None,
                 on_end=lambda job: None):
        self.kernel, self.jobs, self.opts = kernel, jobs, opts
        self.on_output, self.on_end = on_output, on_end
        self.mark, self.release, self.boot_seconds, self.console = secrets.token_hex(8), "", 0, ""

    def run(self):
        if os.uname().machine != "x86_64":
            raise Unavailable("programs of this machine are not for those kernels")
        if not shutil.which("qemu-system-x86_64"):
            raise Unavailable("no qemu-system-x86_64 here")
        folder, accel = fetch(self.kernel), self.opts.accel
        with tempfile.TemporaryDirectory(prefix="writ-kernel-") as work:
            initrd, disk, log = f"{work}/initrd", f"{work}/disk", f"{work}/console"
            pack(initrd, base_tree(self.opts), module_files(folder), self.jobs, self.mark, self.opts)
            with open(disk, "wb") as f:
                f.truncate(1 << 20)  # somebody's disk, to be kept from
            qemu = subprocess.Popen(
                [find_program("qemu-system-x86_64"), "-M", "q35", "-accel", accel,
                 "-cpu", "max" if accel == "tcg" else "host,-arch-capabilities",
                 # Two would not start 6.1 with that clock.
                 "-smp", "1" if accel == "tcg" else "2",
                 "-m", str(self.opts.memory), "-display", "none",
                 "-nodefaults", "-no-reboot", "-nic", "none", "-serial", f"file:{log}",
                 "-serial", "stdio", "-drive", f"file={disk},if=virtio,format=raw,cache=unsafe",
                 "-kernel", str(next((folder / "boot").glob("vmlinuz-*"))), "-initrd", initrd,
                 *clock(accel), "-append", "console=ttyS0 quiet panic=-1 oops=panic mitigations=off "
                 "no_timer_check tsc=reliable"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            try:
                self.listen(qemu, KVM_BOOT_SECONDS if accel == "kvm" else BOOT_SECONDS)
            finally:
                qemu.kill()
                qemu.wait()
                self.console = Path(log).read_text(errors="replace") if Path(log).exists() else ""

    def listen(self, qemu, seconds=BOOT_SECONDS):
        """Reads until the machine is off or somebody's time is over."""
        begin, stream = time.monotonic(), b""
        limit, current, since = begin + seconds, 0, begin
        mark = re.compile(rb"\x1e" + self.mark.encode() + rb" (\w+) ([^\s\x1e]+) ?(\d*)\x1e")
        while (wait := limit - time.monotonic()) > 0:
            if not select.select([qemu.stdout], [], [], wait)[0]:
                return
            chunk = os.read(qemu.stdout.fileno(), 65536)
            if not chunk:
                return
            stream += chunk
            while m := mark.search(stream):
                self.heard(current, stream[:m.start()])
                stream = stream[m.end():]
                if m[1] == b"ready":
                    self.release, self.boot_seconds = m[2].decode(), time.monotonic() - begin
                else:
                    job, current = self.jobs[int(m[2])], int(m[2]) + 1
                    job.code, job.took = int(m[3]), time.monotonic() - since
                    self.on_end(job)
                since = time.monotonic()
                patience = self.jobs[current].seconds if current < len(self.jobs) else 0
                patience = (patience or self.opts.timeout) + SLACK_SECONDS
                limit = since + patience * (SLOWER if self.opts.accel == "tcg" else 1)
            # What may be the beginning of a mark waits for its end.
            cut = stream.rfind(b"\x1e", max(0, len(stream) - 100))
            cut = len(stream) if cut < 0 else cut
            self.heard(current, stream[:cut])
            stream = stream[cut:]

    def heard(self, current, data):
        if data and self.release and current < len(self.jobs):
            self.jobs[current].output += data
            self.on_output(self.jobs[current], data)


# ---- what is asked for ----

def choose(opts):
    """kvm where a kernel starts with it; there are hosts that only look as if."""
    if opts.accel != "auto":
        return
    opts.accel = "kvm"
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        machine = Machine(opts.kernels[0], [], opts)
        try:
            machine.run()
        except Unavailable:
            pass
        if machine.release:
            return
        print("# /dev/kvm is here and starts no such kernel: emulated", flush=True)
    opts.accel = "tcg"


def whoever(opts):
    return [opts.who] if opts.who else ["root", "user"]


def one_command(opts):
    command = list(opts.command)
    if os.path.isfile(command[0]):
        opts.files.append(command[0])
        command[0] = f"/test/{os.path.basename(command[0])}"
    worst = 0
    for kernel in opts.kernels:
        jobs = [Job(who, command) for who in whoever(opts)]
        spoken = []

        def speak(job, data):
            if job not in spoken:
                spoken.append(job)
                print(f"# kernel {kernel}, as {job.who}:", file=sys.stderr, flush=True)
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

        machine = Machine(kernel, jobs, opts, speak)
        machine.run()
        print(f"# {machine.release or 'no kernel'} was up in {machine.boot_seconds:.1f} s",
              file=sys.stderr)
        for job in jobs:
            if job.code is None:
                print(f"tests/kernel/run.py: as {job.who}: no end; the console said:\n"
                      + machine.console[-3000:], file=sys.stderr)
            else:
                print(f"# as {job.who}: exit code {job.code}", file=sys.stderr)
            worst = worst or (125 if job.code is None else job.code)
    return worst


def load_judge():
    path = str(ROOT / "tests" / "run")
    loader = importlib.machinery.SourceFileLoader("run", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
    loader.exec_module(module)
    return module.judge


def packed(opts, word):
    """A word of a test's command or environment, as it is in the machine."""
    if not word.startswith(f"{ROOT}/") and not word.startswith(f"{opts.build}/"):
        return word
    to = f"/test/{os.path.basename(word)}"
    if word not in opts.files:
        opts.files.append(word)
    return to


def suite_commands(opts):
    """[(name, command)]; what they need is packed."""
    out = subprocess.run(["meson", "introspect", "--tests", opts.build], check=True,
                         stdout=subprocess.PIPE).stdout
    found = [("writ doctor", ["/test/writ", "doctor"])]
    for test in json.loads(out):
        # Others that act are written in Python, or test the library: what is here is below them.
        if not {"both", "unit"} <= {s.split(":")[-1] for s in test["suite"]}:
            continue
        env = {"WRIT": "/test/writ", **test["env"]}
        if env.get("SRC") == str(ROOT):  # as a whole it is not for the machine
            del env["SRC"]
        found.append((test["name"], ["env"] + [f"{k}={packed(opts, v)}" for k, v in env.items()]
                      + [packed(opts, word) for word in test["cmd"]]))
    return found


def conform_jobs(opts):
    """Root prepares what only root can; what works without a sandbox is found out once."""
    jobs = []
    for who in whoever(opts):
        for tier in "AB":
            command = ["/test/writ", "conform", "--json", "--tier", tier, "--dir", "/tmp",
                       "--bare", f"/root/bare-{who}.json"]
            as_user = ["--user", "user"] if who == "user" else []
            jobs.append(Job("both" if as_user else who, command + as_user, f"tier {tier} as {who}",
                            CONFORM_SECONDS))
    return jobs


def smoke_jobs(opts):
    return [Job(who, ["sh", "/test/smoke.sh", tier], f"tier {tier} as {who}")
            for who in whoever(opts) for tier in "AB"]


def unit_jobs(opts):
    return [Job(who, command, f"{name} as {who}") for name, command in suite_commands(opts)
            for who in whoever(opts)]


def unsupported():
    """[(rows, said, kernels, who, why)]: what cannot be tried in a machine."""
    lines = (HERE / "unsupported").read_text().splitlines()
    return [line.split(None, 4) for line in lines if line and not line.startswith("#")]


def declared(table, kernel, who, row):
    """Why this row cannot be tried there; None if nobody said so beforehand."""
    words = row["bare_said"].split()
    # A code, or who is needed to prepare it.
    said = "root" if words[:2] == ["needs", "root"] else words[0] if words else ""
    for rows, code, kernels, user, why in table:
        if (fnmatch.fnmatchcase(row["id"], rows) and said == code
                and kernels in ("*", kernel) and user in ("*", who)):
            return why
    return None


def judge_row(table, kernel, who, row):
    """(good, what to say behind it)"""
    if row["verdict"] == "n.a.":
        why = declared(table, kernel, who, row)
        return why is not None, f" # SKIP {why}" if why else ""
    return row["verdict"] in ("held", "blocked", "gap", "works"), ""


class Suite:
    """Runs the parts on each kernel and says as TAP how it was."""

    def __init__(self, opts):
        self.opts, self.count, self.bad, self.lock = opts, 0, 0, threading.Lock()
        self.judge, self.unsupported = load_judge(), unsupported()
        prog = [p for p in sorted(Path(opts.build, "prog").iterdir()) if p.is_file()
                and os.access(p, os.X_OK)]
        opts.files += [str(p) for p in prog] + [str(HERE / "smoke.sh"),
                                                f"{opts.build}/tests/escape/writ-escape"]
        self.jobs = {"conform": conform_jobs, "smoke": smoke_jobs, "delegated": unit_jobs,
                     "bare": unit_jobs}

    def ok(self, good, name, notes=""):
        self.count, self.bad = self.count + 1, self.bad + (not good)
        print(f"{'' if good else 'not '}ok {self.count} - {name}", flush=True)
        for line in notes.splitlines():
            print(f"# {line}", flush=True)

    def program(self, kernel, part, job):
        """A program that speaks TAP, or just ends."""
        name = f"{kernel}, {part}, {job.name}"
        tally = self.judge(name, job.code, job.text())
        skipped = f", {tally.skipped} skipped" if tally.skipped else ""
        self.ok(tally.passed and not tally.failures, f"{name} ({tally.passed} passed{skipped}, "
                f"{job.took:.0f} s)", "".join(f"{what}\n{text}\n" for what, text in tally.failures))

    def conform(self, kernel, part, job):
        where, text, who = f"{kernel}, {job.name}", job.text(), job.name.split()[-1]
        if self.opts.keep:
            os.makedirs(self.opts.keep, exist_ok=True)
            Path(self.opts.keep, f"{kernel}-{job.name.replace(' ', '-')}.json").write_text(text)
        start, end = text.find('{"version":1,'), text.rfind("\n]}")
        try:
            rows = json.loads(text[start:end + 3])["rows"]
        except (ValueError, KeyError):
            self.ok(False, f"{where}: no result ({job.code})", text[-3000:])
            return
        bad, counts = self.bad, {}
        for row in rows:
            counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
            good, end = judge_row(self.unsupported, kernel, who, row)
            self.ok(good, f"{where}: {row['id']} {row['verdict']}: {row['what']}{end}",
                    "" if good else f"{row['why']}; without a sandbox: {row['bare_said']}")
        self.ok(rows and (job.code == 0 or self.bad > bad), f"{where}: ended with {job.code}", text[:start])
        print(f"# {where}: {', '.join(f'{n} {v}' for v, n in sorted(counts.items()))}; "
              f"{job.took:.0f} s", flush=True)

    def tell(self, kernel, part, job):
        with self.lock:
            (self.conform if part == "conform" else self.program)(kernel, part, job)

    def boot(self, kernel, part, who):
        opts = copy.deepcopy(self.opts)
        opts.who, opts.no_delegate = who, part == "bare"
        opts.programs += PROGRAMS.get(part, [])
        jobs = self.jobs[part](opts)
        machine = Machine(kernel, jobs, opts, on_end=lambda job: self.tell(kernel, part, job))
        try:
            machine.run()
        except Unavailable as e:
            with self.lock:
                self.ok(True, f"kernel {kernel}, {part}, as {who} # SKIP {e}")
            return
        for job in jobs if machine.release else []:
            if job.code is None:  # the machine ended with it
                self.tell(kernel, part, job)
        with self.lock:
            self.ok(bool(machine.release), f"kernel {kernel}, {part}, as {who}: {machine.release} "
                    f"was up in {machine.boot_seconds:.1f} s",
                    "" if machine.release else machine.console[-3000:])

    def run(self):
        units = [(kernel, part, who) for part in self.opts.parts or PARTS
                 for kernel in self.opts.kernels for who in whoever(self.opts)]
        # An emulated machine uses one processor of this host, and its clock is its own.
        beside = len(os.sched_getaffinity(0)) if self.opts.accel == "tcg" else 1
        with ThreadPoolExecutor(beside) as pool:
            for done in [pool.submit(self.boot, *unit) for unit in units]:
                done.result()
        print(f"1..{self.count}")
        return 1 if self.bad else 0


def arguments(argv):
    p = argparse.ArgumentParser(usage=__doc__, add_help=False)
    p.add_argument("--kernel", dest="kernels", action="append", choices=KERNELS)
    p.add_argument("--as", dest="who", choices=("root", "user"))
    p.add_argument("--files", action="append", default=[])
    p.add_argument("--overlay", action="append", default=[])
    p.add_argument("--with", dest="programs", action="append", default=[])
    p.add_argument("--no-delegate", action="store_true")
    p.add_argument("--timeout", type=int, default=300)
    p.add_argument("--memory", type=int, default=1536)
    p.add_argument("--accel", choices=("auto", "tcg", "kvm"), default="auto")
    p.add_argument("--part", dest="parts", action="append", choices=PARTS)
    p.add_argument("--keep")
    p.add_argument("--build", default=str(ROOT / "build" / "release"))
    p.add_argument("--fetch", action="store_true")
    p.add_argument("command", nargs="*")
    opts = p.parse_args(argv)
    opts.kernels = opts.kernels or list(KERNELS)
    return opts


def main(argv):
    opts = arguments(argv)
    if opts.fetch:
        for kernel in opts.kernels:
            print((fetch(kernel) / "name").read_text().strip())
        return 0
    choose(opts)
    if opts.command:
        return one_command(opts)
    return Suite(opts).run()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Unavailable as e:
        fail(e)
