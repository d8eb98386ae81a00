"""peers.py - how other sandboxes start the same command, and who is there to be asked.

tools/peers.sh installs them below build/peers; what is on the PATH is taken, too. A peer
that is missing is shown with the reason, never left out.
"""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from measure import Way

ROOT = Path(os.environ.get("BENCH_ROOT", Path(__file__).resolve().parent.parent))
PEERS = ROOT / "build/peers"
AGENTS = ROOT / "build/agents"
BASE = ROOT / "profiles/base.writ"


def shown():
    """What writ shows of the system by default, as far as this machine has it: paths, and links with where they lead."""
    named = re.findall(r"^allow read \??(/\S+)$", BASE.read_text(), re.M)
    links = {path: os.readlink(path) for path in named if os.path.islink(path)}
    return [path for path in named if path not in links and os.path.exists(path)], links


def bwrap(work):
    """The same view and namespaces; it has no Landlock, no seccomp filter, no limits, no record."""
    cmd = ["bwrap", "--unshare-all", "--die-with-parent", "--tmpfs", "/tmp", "--tmpfs", "/run", "--proc", "/proc", "--dev", "/dev"]
    paths, links = shown()
    for name, target in links.items():
        cmd += ["--symlink", target, name]
    for path in paths:
        cmd += ["--ro-bind", path, path]
    return [*cmd, "--bind", str(work), str(work), "--chdir", str(work), "--"]


def bundle(where, work, command):
    """An OCI bundle with the same view; where it is."""
    rootfs = where / "rootfs"
    for name in ("usr", "etc", "tmp", "run", "proc", "dev"):
        (rootfs / name).mkdir(parents=True, exist_ok=True)
    paths, links = shown()
    for name, target in links.items():
        at = rootfs / name.lstrip("/")
        at.parent.mkdir(parents=True, exist_ok=True)
        at.symlink_to(target)

    def bind(path, mode):
        return {"destination": path, "type": "bind", "source": path, "options": ["rbind", mode, "nosuid"]}

    def tmpfs(path):
        return {"destination": path, "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev"]}
    pts = ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]
    mounts = [{"destination": "/proc", "type": "proc", "source": "proc"}, tmpfs("/dev"), tmpfs("/dev/shm"), tmpfs("/tmp"), tmpfs("/run"),
              {"destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": pts},
              *(bind(path, "ro") for path in paths), bind(str(work), "rw")]
    spec = {"ociVersion": "1.0.0", "root": {"path": "rootfs", "readonly": False}, "hostname": "bench", "mounts": mounts,
            "process": {"terminal": False, "user": {"uid": 0, "gid": 0}, "args": command, "env": ["PATH=/usr/bin:/bin"],
                        "cwd": str(work), "noNewPrivileges": True},
            "linux": {"namespaces": [{"type": t} for t in ("user", "pid", "mount", "network", "ipc", "uts", "cgroup")],
                      "uidMappings": [{"containerID": 0, "hostID": os.getuid(), "size": 1}],
                      "gidMappings": [{"containerID": 0, "hostID": os.getgid(), "size": 1}]}}
    (where / "config.json").write_text(json.dumps(spec))
    return str(where)


def find(name):
    """Its program, or None."""
    if name == "codex":  # the program itself, not the script that starts it
        found = sorted(AGENTS.glob("lib/node_modules/@openai/codex/node_modules/@openai/codex-linux-*/vendor/*/bin/codex"))
        return str(found[0]) if found else shutil.which("codex")
    mine = PEERS / "bin" / name
    return str(mine) if os.access(mine, os.X_OK) else shutil.which(name)


def why_not(name):
    try:
        return "not installed: " + (PEERS / "why-not" / name).read_text().strip()
    except OSError:
        return "not installed: tools/peers.sh has not been run"


def commands(place, work, command):
    """Of each peer: what comes after its program."""
    (place / "srt.json").write_text(json.dumps({
        "network": {"allowedDomains": [], "deniedDomains": []},
        "filesystem": {"denyRead": [], "allowWrite": [str(work)], "denyWrite": []}}))
    (place / "oci").mkdir()
    bundle(place / "oci", work, command)
    oci = ["--root", str(place / "containers"), "run", "-b", str(place / "oci"), "bench"]
    grants = [word for path in [*shown()[0], "/lib", "/lib64", "/bin"] for word in ("--rox", path)]
    return {
        "firejail": ["--quiet", "--noprofile", "--net=none", "--ipc-namespace", "--private-dev", "--private-tmp", "--caps.drop=all",
                     "--seccomp", "--nonewprivs", "--", *command],
        # Without root there is no cgroup for it to make.
        "crun": [*([] if os.geteuid() == 0 else ["--cgroup-manager=disabled"]), *oci],
        "runc": oci,
        "srt": ["--settings", str(place / "srt.json"), *command],
        "codex": ["sandbox", "--", *command],
        "landrun": [*grants, "--rw", str(work), "--", *command],
        "nono": ["run", "--silent", "--allow-cwd", "--block-net", "--", *command],
    }


ENV = {"nono": {"NONO_NO_UPDATE_CHECK": "1"}}  # it would ask the network


def ways(place, work, command):
    """Of each peer a Way, or a string: why there is none."""
    out = {}
    for name, args in commands(place, work, command).items():
        program = find(name)
        out[name] = Way([program, *args], ENV.get(name, {}), peer=True) if program else why_not(name)
    return out


def versions():
    """What each says of itself."""
    out = {}
    for name in ("bwrap", "firejail", "crun", "runc", "srt", "codex", "landrun", "nono"):
        program = find(name)
        if not program:
            continue
        try:
            said = subprocess.run([program, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20).stdout
        except (OSError, subprocess.TimeoutExpired):
            continue
        number = re.search(r"\d+(\.\d+)+", said)
        out[name] = number.group() if number else "unknown"
    return out
