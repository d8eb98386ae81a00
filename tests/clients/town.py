"""town.py - the world of tests/net, with real servers in it."""
import asyncio
import ctypes
import os
import socket
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "net"))
import space  # noqa: E402
import world  # noqa: E402

DNS = world.DNS
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000


def mount(source, target, flags, kind=None):
    if space.LIBC.mount(str(source).encode(), str(target).encode(), kind, flags, None) < 0:
        raise OSError(ctypes.get_errno(), f"mount {target}")


def cover(files):
    """From here on, for this process and what it starts: {name: the file that is seen there, or None for an empty directory}."""
    space.unshare(CLONE_NEWNS)
    mount("none", "/", MS_REC | MS_PRIVATE)
    for target, source in files.items():
        if source is None:
            mount("none", target, 0, b"tmpfs")
        else:
            mount(source, os.path.realpath(target), MS_BIND)


class Town(world.World):
    async def spawn(self, argv, port, log, env=None, covered=None, uid=None):
        """A server that listens at @port once this returns. @covered is for cover(), @uid for who may not be root."""
        parent = os.getpid()

        def prepare():
            space.die_with_parent(parent)
            if covered:
                cover(covered)
                if "/run" in covered:
                    os.mkdir("/run/sshd", 0o755)
            if uid is not None:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
                space.die_with_parent(parent)  # forgotten with the change of user
        with open(log, "ab") as f:
            proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=f, stderr=f, env=env, cwd=os.path.dirname(log), preexec_fn=prepare)
        for _ in range(600):
            if proc.poll() is not None:
                break
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", port)) == 0:
                    return
            await asyncio.sleep(0.05)
        with open(log, errors="replace") as f:
            raise RuntimeError(f"{argv[0]} does not listen: {f.read()[-2000:]}")


def main(boss, only_first=False):
    with open("/proc/sys/net/ipv4/ip_unprivileged_port_start", "w") as f:
        f.write("0")  # of this network: servers that are started have no rights of ours
    asyncio.run(Town(only_first).main(boss))
