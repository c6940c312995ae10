# SPDX-License-Identifier: Apache-2.0
"""The two switches that scenarios are played on, side by side, and how they are made new between scenarios."""

import concurrent.futures
import ctypes
import fcntl
import itertools
import os
import re
import socket
import struct
import subprocess
import time

from lib import net, packet, twin
from lib.switch import PACE, AsicSwitch, KernelSwitch

from .generate import INDEX, PORT_MAC, neighbour_times

PREFIX = "tnt-"
_count = itertools.count(1)
SIOCGIFFLAGS, IFF_UP, IFF_RUNNING = 0x8913, 1, 0x40
# What a scenario may set, as it is before one
SETTINGS = [f"ipv4/conf/{p}/{k}" for p in PORT_MAC for k in
            ("forwarding=1", "rp_filter=0", "ignore_routes_with_linkdown=0")] \
    + [f"ipv6/conf/{p}/disable_ipv6=1" for p in PORT_MAC] + ["ipv6/conf/all/forwarding=1", "ipv4/ip_forward=1"]


class Inside:
    """A thread that lives in a namespace: sysctls and device flags without a process for each."""

    def __init__(self, name):
        self.pool = concurrent.futures.ThreadPoolExecutor(1, initializer=self._enter, initargs=(name,))
        self.pool.submit(lambda: None).result()

    def _enter(self, name):
        fd = os.open(f"/run/netns/{name}", os.O_RDONLY | os.O_CLOEXEC)
        if net._libc.setns(fd, net.CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns to {name}")
        os.close(fd)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def sysctl(self, settings):
        """Writes KEY=VALUE words; what was refused, as words."""
        def put():
            refused = []
            for s in settings:
                key, value = s.split("=")
                try:
                    with open(f"/proc/sys/net/{key}", "w", encoding="utf-8") as f:
                        f.write(value)
                except OSError as e:
                    refused.append(f"{s}: {e.strerror}")
            return refused

        return self.pool.submit(put).result()

    def flags(self, *devices):
        """(up, carrier) of each device; (None, None) of one that is not there."""
        def get():
            found = {}
            for d in devices:
                try:
                    answer = fcntl.ioctl(self.socket, SIOCGIFFLAGS, struct.pack("16sH22x", d.encode(), 0))
                    flags = struct.unpack_from("16sH", answer)[1]
                    found[d] = (bool(flags & IFF_UP), bool(flags & IFF_RUNNING))
                except OSError:
                    found[d] = (None, None)
            return found

        return self.pool.submit(get).result()

    def close(self):
        self.pool.submit(self.socket.close).result()
        self.pool.shutdown()


class Side:
    """One of the two: the switch, its wires, and commands to it."""

    def __init__(self, sw):
        self.sw = sw
        self.inside = Inside(sw.ns.name)
        self.cut = set()   # hosts whose cable is cut
        self.answers = {}  # host -> {address as bytes: MAC as bytes}
        self.wires = {h: packet.Wire(host.ns, answer=lambda f, h=h: answer(f, self.answers.get(h)))
                      for h, host in sw.hosts.items()}

    def begin(self, tool, lines):
        """Starts `ip -force -batch` or `bridge ...`; `end` tells what was refused."""
        words = [*tool, "-n", self.sw.ns.name, "-force", "-batch", "-"] if tool[0] == "ip" else \
            ["bridge", "-n", self.sw.ns.name, "-force", "-batch", "-"]
        p = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        p.stdin.write("\n".join(lines) + "\n")
        p.stdin.close()
        return p

    @staticmethod
    def end(p):
        said = p.stderr.read()
        p.wait(30)
        p.stderr.close()
        return said

    def close(self):
        for w in self.wires.values():
            w.close()
        self.inside.close()
        self.sw.delete()


def answer(frame, table):
    """The answer of a host to ARP or neighbour solicitation for an address of its own (RFC 826, RFC 4861), or None."""
    if not table or len(frame) < 42:
        return None
    kind = packet.ethertype(frame)
    if kind == packet.ETH_ARP and frame[20:22] == b"\0\1":
        mine = table.get(frame[38:42])
        return mine and (frame[6:12] + mine + frame[12:20] + b"\0\2" + mine + frame[38:42]
                         + frame[22:32]).ljust(60, b"\0")
    if kind == packet.ETH_IP6 and len(frame) >= 78 and frame[20] == 58 and frame[54] == 135:
        mine = table.get(frame[62:78])
        if not mine or frame[22:38] == bytes(16):
            return None
        src, dst = socket.inet_ntop(socket.AF_INET6, frame[62:78]), socket.inet_ntop(socket.AF_INET6, frame[22:38])
        body = packet.icmpv6(src, dst, 136, 0, b"\x60\0\0\0" + frame[62:78] + b"\2\1" + mine)
        return frame[6:12] + mine + b"\x86\xdd" + packet.ipv6(src, dst, 58, body, hlim=255)
    return None


class _Maker:
    """What `twin.lone` asks for its switches."""

    def __init__(self, profile):
        self.profile = profile
        self.switches = []

    def asic(self):
        self.switches.append(AsicSwitch(f"{PREFIX}{os.getpid()}-{next(_count)}-", profile=self.profile))
        return self.switches[-1]

    def kernel(self, **kw):
        self.switches.append(KernelSwitch(f"{PREFIX}{os.getpid()}-{next(_count)}-", **kw))
        return self.switches[-1]


def prepare(sw):
    """Settings that no message tells of, before there are daemons and ports: as they stay for all scenarios."""
    sw.router()
    sw.ns.sysctl(ipv4__fib_multipath_hash_policy=1, ipv6__fib_multipath_hash_policy=1, ipv6__conf__all__accept_dad=0,
                 ipv6__conf__default__accept_dad=0, ipv6__conf__default__router_solicitations=0,
                 ipv6__conf__default__accept_ra=0)
    if os.path.isdir("/proc/sys/net/bridge"):
        sw.ns.sysctl(**{f"bridge__bridge-nf-call-{t}tables": 0 for t in ("ip", "ip6", "arp")})


class Bench:
    """Kernel alone and kernel + ASIC with one profile, used by many scenarios."""

    def __init__(self, profile):
        self.profile = profile
        self.played = 0
        self.sides = []
        self.made = _Maker(profile)
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def _make(self):
        switches = twin.lone(self.made, prepare=prepare)
        self.kernel, self.asic = self.sides = [Side(sw) for sw in switches]
        for sw in switches:
            for h in sw.hosts.values():
                h.ns.ip("link set eth0 mtu 9000")
        for p in PORT_MAC:
            self.asic.sw.front.ip(f"link set p{p[3:]} mtu 9000")
        for side in self.sides:
            side.inside.sysctl([s.removeprefix("sysctl ") for p in PORT_MAC for s in neighbour_times(p)])
        self.log_at = {"asicd": 0, "switchd": 0}
        self.empty = None
        self.reset()
        self.empty = self.state()
        self.warnings()

    # ------------------------------------------------------------------------------------------------- commands

    def both(self, tool, lines):
        """The same lines to both kernels; what they refused, of each."""
        if not lines:
            return "", ""
        running = [side.begin(tool, lines) for side in self.sides]
        return tuple(side.end(p) for side, p in zip(self.sides, running))

    def sysctl(self, settings):
        return tuple(side.inside.sysctl(settings) for side in self.sides)

    def sync(self, seconds=12):
        self.asic.sw.api("switchd", "POST", "/v1/sync", {"timeout_ms": int(seconds * 1000 * PACE)}, timeout=60)

    def restart(self):
        self.asic.sw.tandem("up", timeout=60 * PACE)

    def carriers(self, timeout=3.0):
        """Waits until both sides' ports agree on being up and having carrier: the kernel's link watch takes a while."""
        end = time.monotonic() + timeout * PACE
        names = list(INDEX)
        while True:
            want, got = (s.inside.flags(*names) for s in self.sides)
            if want == got or time.monotonic() > end:
                return [f"{n}: (up, carrier) {want[n]} in the kernel alone, {got[n]} with ASIC"
                        for n in names if want[n] != got[n]]
            time.sleep(0.01)

    def mac_table_full(self):
        """Has the chip no room for one more station, however it hashes?"""
        classes = self.asic.sw.api("asicd", "GET", "/v1/resources")["classes"]
        return any(c["cls"] == "mac" and not c["free_guaranteed"] for c in classes)

    def received(self):
        """Frames the chip's ports have taken from their cables so far."""
        return sum(row["counters"]["rx_packets"] + row["counters"]["rx_dropped"]
                   for row in self.asic.sw.api("asicd", "GET", "/v1/ports")["items"])

    # ----------------------------------------------------------------------------------------------- new again

    def reset(self):
        """Both switches as they were made; what was left behind, as lines: then they must not be used again."""
        alive = all(net.pid_alive(self.asic.sw.pid(d), d) for d in ("asicd", "switchd"))
        if not alive:
            self.restart()
        self.asic.sw.api("asicd", "POST", "/v1/fault", {"kind": "clear"})
        for side in self.sides:
            side.answers = {}
            for h, host in side.sw.hosts.items():
                if h in side.cut:
                    host.ns.ip("link set eth0 up")
            side.cut = set()
        lines = ["link del brA", "link del brB", "nexthop flush"]
        for p, mac in PORT_MAC.items():
            lines += [f"link set {p} nomaster", f"link set {p} mtu 1500 address {mac} up", f"addr flush dev {p}",
                      f"neigh flush dev {p} nud all", f"neigh flush dev {p} nud permanent", f"route flush dev {p}"]
        lines += ["route flush table main", "nexthop flush"]
        self.sysctl([f"ipv6/conf/{p}/disable_ipv6=1" for p in PORT_MAC])
        self.both(["ip"], lines)
        self.both(["ip", "-6"], ["route flush table main", "neigh flush all nud all", "neigh flush all nud permanent"])
        self.sysctl(SETTINGS)
        self.carriers()
        self.sync()
        for side in self.sides:
            for w in side.wires.values():
                w.clear()
        if self.empty is None:
            return []
        now = self.state()
        return [f"{k}: {self.empty[k]} before, {now[k]} now" for k in now if now[k] != self.empty[k]]

    def state(self):
        """What must be the same after every reset."""
        found = {}
        for name, side in zip(("kernel", "asic"), self.sides):
            for what in ("route show table all", "-6 route show table all", "neigh show nud all", "nexthop show"):
                text = side.sw.ip(*what.split())
                found[f"{name}: {what}"] = sorted(" ".join(x.split()) for x in text.splitlines())
            at = f"{name}: neigh show nud all"
            found[at] = [x for x in found[at] if x.split()[-1] not in ("NOARP", "FAILED", "INCOMPLETE")]
        pools = self.asic.sw.api("asicd", "GET", "/v1/resources")["items"]
        found["chip"] = {p["name"]: p["used"] + p["in_flight"] for p in pools}
        return found

    def warnings(self, disturbed=False):
        """What the daemons' logs have said since the last call that is a warning or worse. `disturbed`: a daemon was
        killed or a fault plan set, which they are to tell of."""
        found = []
        for daemon in ("asicd", "switchd"):
            text = self.asic.sw.log(daemon)
            new = text[self.log_at[daemon]:] if len(text) >= self.log_at[daemon] else text
            self.log_at[daemon] = len(text)
            found += [f"{daemon}: {line}" for line in new.splitlines()
                      if re.search(r"panicked|overflow" if disturbed else r"\b(WARN|ERROR)\b|panicked|overflow", line)]
        return found

    def logs(self):
        return {d: self.asic.sw.log(d) for d in ("asicd", "switchd")}

    def close(self):
        for side in self.sides:
            side.close()
        for sw in self.made.switches[len(self.sides):]:
            sw.delete()
