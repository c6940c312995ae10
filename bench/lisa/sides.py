# SPDX-License-Identifier: Apache-2.0
"""Devices under test, each the same switch: one VLAN, ports with and without its tag.

    generator h1  eth0 ═ p1 ─┐            ┌─ p2 ═ eth0 h2    tagged, where the side has VLANs
                             ├─ device ───┤
                             ┘            └─ p3 ═ eth0 h3    as it came

A sink is a namespace without an address: its kernel drops what comes, and counts it. That is worked off where the frame
was sent: the far ends of the cables are in the switch's time, on all sides alike. (A thread for each was tried: being
woken costs the sender as much, and frames that another processor frees cost it more.)
"""

import os
import re
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests"))

from lib import net  # noqa: E402
from lib.appliance import ChipSwitch  # noqa: E402
from lib.switch import PREFIX, binaries  # noqa: E402

VLAN = 10
GEN, SINK = "02:00:00:00:00:11", "02:00:00:00:00:22"
# the seed's: a frame comes in at an access port, goes out at a trunk and at another access port
TRUNK = {1: False, 2: True, 3: False}
FOUR = dict.fromkeys((1, 2, 3, 4), False)  # four hosts that know nothing of VLANs


def frame(dst):
    """64 bytes with the checksum, which no virtual cable has; the local experimental EtherType: nobody answers it."""
    return (bytes.fromhex((dst + GEN).replace(":", "")) + b"\x88\xb5").ljust(60, b"\0")


FRAMES = {"unicast": frame(SINK), "broadcast": frame("ff:ff:ff:ff:ff:ff")}


def prefix():
    return f"{PREFIX}{os.getpid()}-l{time.monotonic_ns() // 1000 % 10**6}-"


def schedstat(pid):
    """Seconds of processor time of all threads of a process."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f:
                total += int(f.read().split()[0])
        except FileNotFoundError:
            pass  # has ended meanwhile
    return total / 1e9


def counted(ns):
    """Frames and bytes that eth0 of a namespace has received."""
    for line in ns.read("/proc/thread-self/net/dev").splitlines():
        name, _, rest = line.partition(":")
        if name.strip() == "eth0":
            words = rest.split()
            return int(words[1]), int(words[0])
    raise LookupError(f"{ns.name} has no eth0")


def thread_of(ns, dev):
    """What comes in there is taken by a thread of the kernel, and not by whoever sends it; its number."""
    def there():
        found = set()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
                    if re.match(rf"napi/{dev}-", f.read()):
                        found.add(int(pid))
            except (FileNotFoundError, ProcessLookupError):
                pass
        return found

    before = there()
    ns.exec("sh", "-c", f"echo 1 >/sys/class/net/{dev}/threaded")
    new = there() - before
    if len(new) != 1:
        raise RuntimeError(f"the kernel has {len(new)} new threads for {dev} of {ns.name}, not one")
    return min(new)


class Tandem:
    """asicd and swcfgd: the appliance, engine chip."""

    title = "Tandem"
    tagged = True

    def __init__(self, trunk, kind="af_xdp"):
        self.switch = ChipSwitch(prefix(), profile="spectrum-sn2700")
        self.switch.port_kind = kind
        try:
            self.hosts = {n: self.switch.host(f"h{n}", n, GEN if n == 1 else None).ns for n in trunk}
            for ns in self.hosts.values():
                ns.sysctl(ipv6__conf__all__disable_ipv6=1)
            self.switch.front.exec("ethtool", "-K", "p1", "gro", "on")  # a ring for what the generator redirects
            how = {f"port{n}": {"trunk": True, "allowed": [VLAN]} if t else {"access": VLAN} for n, t in trunk.items()}
            self.switch.start({"vlans": {str(VLAN): {}}, "interfaces": how,
                               "stations": [{"mac": SINK, "vlan": VLAN, "port": 2}]})
            ports = self.switch.chip("/v1/ports")["items"]
            found = [p["attachment"].split(":")[0] for p in ports if p["attachment"]]
            if found != [kind] * len(trunk):
                raise RuntimeError(f"the ports are by {found}, not by {kind}")
            self.pid = self.switch.pid("asicd")
        except BaseException:
            self.delete()
            raise

    def used(self):
        """Seconds of processor time that its own threads have used."""
        return schedstat(self.pid)

    def pin(self, core):
        for task in os.listdir(f"/proc/{self.pid}/task"):
            os.sched_setaffinity(int(task), {core})

    def delete(self):
        self.switch.delete()


class Kernel:
    """Namespaces around what the kernel forwards with by itself."""

    tagged = True

    def __init__(self, trunk):
        name = prefix()
        self.trunk = trunk
        self.all = []
        self.thread = None
        try:
            self.sw = self._namespace(name + "sw")
            self.hosts = {n: self._namespace(f"{name}h{n}") for n in trunk}
            for n, ns in self.hosts.items():
                net.cable(ns, "eth0", self.sw, f"p{n}", a_mac=GEN if n == 1 else None)
            self.sw.exec("ethtool", "-K", "p1", "gro", "on")  # a ring for what the generator redirects
            self.build()
        except BaseException:
            self.delete()
            raise

    def _namespace(self, name):
        ns = net.Namespace(name)
        self.all.append(ns)
        ns.sysctl(ipv6__conf__all__disable_ipv6=1, ipv6__conf__default__disable_ipv6=1)
        return ns

    def build(self):
        raise NotImplementedError

    def bridge(self, name, ports, more=""):
        self.sw.ip(f"link add {name} type bridge mcast_snooping 0 {more}")
        for p in ports:
            self.sw.ip(f"link set {p} master {name} up")
        self.sw.ip(f"link set {name} up")

    def used(self):
        return schedstat(self.thread) if self.thread else 0.0

    def pin(self, core):
        """Port 1's frames are taken by a thread of the kernel, on that core, and not on the generator's."""
        self.thread = thread_of(self.sw, "p1")
        os.sched_setaffinity(self.thread, {core})

    def delete(self):
        for ns in self.all:
            ns.delete()


class Plain(Kernel):
    """A bridge that knows no VLANs: every kernel has it."""

    title = "bridge without VLANs"
    tagged = False

    def build(self):
        self.bridge("br0", [f"p{n}" for n in self.trunk])
        self.sw.bridge("fdb add", SINK, "dev p2 master static")


class Subinterfaces(Kernel):
    """Seed 004's: an interface for each VLAN of a trunk, a bridge for each VLAN."""

    title = "bridge + 8021q"

    def build(self):
        ports = {n: f"p{n}.{VLAN}" if t else f"p{n}" for n, t in self.trunk.items()}
        for n in filter(self.trunk.get, self.trunk):
            self.sw.ip(f"link set p{n} up")
            self.sw.ip(f"link add link p{n} name {ports[n]} type vlan id {VLAN}")
        self.bridge("br1", ports.values())
        self.sw.bridge("fdb add", SINK, f"dev {ports[2]} master static")


class Filtering(Kernel):
    """One bridge that filters by VLAN."""

    title = "VLAN-filtering bridge"

    def build(self):
        self.bridge("br0", [f"p{n}" for n in self.trunk], "vlan_filtering 1 vlan_default_pvid 0")
        for n, t in self.trunk.items():
            self.sw.bridge(f"vlan add dev p{n} vid {VLAN}", "" if t else "pvid untagged")
        self.sw.bridge("fdb add", SINK, f"dev p2 master static vlan {VLAN}")


SIDES = {
    "tandem": Tandem,
    "packet": lambda trunk: Tandem(trunk, "af_packet"),
    "plain": Plain,
    "8021q": Subinterfaces,
    "filtering": Filtering,
}


def pace(*words):
    return [os.path.join(binaries(), "pace"), *map(str, words)]
