"""space.py - two networks of our own: the host's, in which writ runs, and the world behind it.

enter() puts the calling process into a new network and starts another process that is the world: whatever address
the host sends to, the world answers for it. Both are gone with their processes. Root needs nothing; an ordinary user
gets a user namespace in which they keep their own number.
"""
import ctypes
import os
import signal
import socket
import struct

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
PR_SET_PDEATHSIG = 1
GATE, HERE, NAMES = "1.2.3.253", "1.2.3.254", "1.2.3.53"
GATE6, HERE6 = "2600:aaaa::1", "2600:aaaa::fe"
SILENT = ("7.7.7.7", "2600:dead::1")  # nobody there ever answers
LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent):
    """Whoever ends the parent ends us."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def unshare(flags):
    if LIBC.unshare(flags) < 0:
        raise OSError(ctypes.get_errno(), "unshare")


# --- rtnetlink ---

RTM_NEWLINK, RTM_NEWADDR, RTM_NEWROUTE = 16, 20, 24
IFLA_IFNAME, IFLA_LINKINFO, IFLA_NET_NS_PID, IFLA_INFO_KIND, IFLA_INFO_DATA, VETH_INFO_PEER = 3, 18, 19, 1, 2, 1
IFA_F_NODAD, IFF_UP, RTN_UNICAST, RTN_LOCAL, RTN_BLACKHOLE, TABLE_MAIN, TABLE_LOCAL = 2, 1, 1, 2, 6, 254, 255


def attr(kind, data):
    if isinstance(data, str):
        data = data.encode() + b"\0"
    return struct.pack("=HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


def packed(address):
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def ask_kernel(kind, body, flags=0):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as s:
        s.sendall(struct.pack("=IHHII", 16 + len(body), kind, 0x5 | flags, 1, 0) + body)
        error = struct.unpack_from("=i", s.recv(65536), 16)[0]
        if error:
            raise OSError(-error, f"{os.strerror(-error)} (rtnetlink {kind})")


def add_pair(name, peer, pid):
    """An interface here, its other end in the network of process @pid."""
    other = attr(VETH_INFO_PEER, struct.pack("=BxHiII", 0, 0, 0, 0, 0) + attr(IFLA_IFNAME, peer) +
                 attr(IFLA_NET_NS_PID, struct.pack("=I", pid)))
    info = attr(IFLA_INFO_KIND, "veth") + attr(IFLA_INFO_DATA, other)
    ask_kernel(RTM_NEWLINK, struct.pack("=BxHiII", 0, 0, 0, 0, 0) + attr(IFLA_IFNAME, name) +
               attr(IFLA_LINKINFO, info), 0x600)


def bring_up(name):
    quiet(name)
    ask_kernel(RTM_NEWLINK, struct.pack("=BxHiII", 0, 0, socket.if_nametoindex(name), IFF_UP, IFF_UP))


def quiet(name):
    """No address that the kernel makes up, and no looking for routers."""
    for file, value in (("addr_gen_mode", "1"), ("accept_ra", "0"), ("router_solicitations", "0")):
        try:
            with open(f"/proc/sys/net/ipv6/conf/{name}/{file}", "w") as f:
                f.write(value)
        except OSError:
            pass


def add_address(name, address, bits):
    raw = packed(address)
    ask_kernel(RTM_NEWADDR, struct.pack("=BBBBI", family(address), bits, IFA_F_NODAD, 0, socket.if_nametoindex(name)) +
               attr(2, raw) + attr(1, raw), 0x600)


def add_route(name, to, bits, via=None, kind=RTN_UNICAST, table=TABLE_MAIN):
    scope = 254 if kind == RTN_LOCAL else 0 if via or kind == RTN_BLACKHOLE or ":" in to else 253
    body = struct.pack("=BBBBBBBBI", family(to), bits, 0, 0, table, 3, scope, kind, 0)
    if bits:
        body += attr(1, packed(to))
    if via:
        body += attr(5, packed(via))
    if kind != RTN_BLACKHOLE:
        body += attr(4, struct.pack("=I", socket.if_nametoindex(name)))
    ask_kernel(RTM_NEWROUTE, body, 0x600)


# --- the two networks ---

def become_somebody():
    """A user namespace in which we are who we were, and may make networks."""
    uid, gid = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER)
    for file, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{file}", "w") as f:
            f.write(text)


def be_world():
    """The network of the world: every address there is is here, but the host's own."""
    bring_up("lo")
    bring_up("w0")
    add_address("w0", GATE, 30)
    add_address("w0", GATE6, 64)
    add_route("w0", HERE, 32, table=TABLE_LOCAL)
    add_route("w0", HERE6, 128, table=TABLE_LOCAL)
    for silent in SILENT:
        add_route("lo", silent, 128 if ":" in silent else 32, kind=RTN_BLACKHOLE, table=TABLE_LOCAL)
    add_route("lo", "0.0.0.0", 0, kind=RTN_LOCAL, table=TABLE_LOCAL)
    add_route("lo", "::", 0, kind=RTN_LOCAL, table=TABLE_LOCAL)


def be_host():
    bring_up("lo")
    bring_up("h0")
    add_address("h0", HERE, 30)
    add_address("h0", HERE6, 64)
    add_route("h0", "0.0.0.0", 0, via=GATE)
    add_route("h0", "::", 0, via=GATE6)


def enter(world_main):
    """Returns the socket to the world, in which world_main(socket) runs, and its process id."""
    if os.geteuid() != 0:
        become_somebody()
    unshare(CLONE_NEWNET)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        code = 1
        try:
            die_with_parent(parent)
            ours.close()
            unshare(CLONE_NEWNET)
            theirs.sendall(b"n")  # the network is there
            if theirs.recv(1) == b"p":
                be_world()
                world_main(theirs)
                code = 0
        except Exception:
            import traceback
            traceback.print_exc()
        finally:
            os._exit(code)
    theirs.close()
    if ours.recv(1) != b"n":
        raise OSError("the world did not begin")
    add_pair("h0", "w0", pid)
    ours.sendall(b"p")
    if ours.recv(1) != b"r":
        raise OSError("the world did not begin")
    be_host()
    return ours, pid
