# SPDX-License-Identifier: Apache-2.0
"""A switch that a controller rules, on an nxp-t1040 of asicd; its hosts; what the chip and the CPU have done.

    namespace of the switch: asicd (the chip), ofagentd (the agent, and the software), a controller
      swp1 … swp8 ── cables ── hosts, each in a namespace of its own
"""

import struct
import time

from lib import net, openflow
from lib.packet import Catcher, Wire, udp4_frame

PROFILE = "nxp-t1040"
A, B, SOURCE = "10.9.0.1", "10.9.0.2", 20000  # of numbered packets: addresses that no host has, a UDP port
WINDOW = 64  # numbered packets under way: none is lost because somebody was not at his processor


def mac(n):
    return f"02:00:00:00:01:{n:02x}"


class ChipSwitch(openflow.Switch):
    """ofagentd on a chip, in a namespace."""

    def __init__(self, prefix):
        super().__init__(prefix, hosts=0)
        self.macs = {}
        self.vids = {}

    def host(self, n, address=None, vid=None):
        """A host at port n, which says nothing by itself but ARP. `vid`: its numbered packets have that tag."""
        ns = net.Namespace(f"{self.prefix}h{n}")
        self.hosts.append(ns)
        self.macs[n] = mac(n)
        ns.sysctl(ipv6__conf__default__disable_ipv6=1, ipv6__conf__all__disable_ipv6=1)
        net.cable(ns, "eth0", self.ns, f"p{n}", a_mac=self.macs[n])
        # who reads packet sockets and knows nothing of unfinished checksums would pass them on as they are
        for where, end in ((self.ns, f"p{n}"), (ns, "eth0")):
            where.exec("ethtool", "-K", end, "tx", "off", check=False)
        self.vids[n] = vid
        if address:
            ns.ip(f"addr add {address} dev eth0")
        return ns

    def knows(self, n, address, of):
        """Host n need not ask who has an address."""
        self.hosts[n - 1].ip(f"neigh replace {address} lladdr {self.macs[of]} dev eth0 nud permanent")

    def ready(self):
        net.wait_until("the agent to have the chip", lambda: (self.status()["chip"] or {}).get("state") == "open",
                       timeout=30)
        links = [f"swp{n}" for n in self.macs]
        net.wait_until("the chip's ports to have links", lambda: all(p["link"] for p in self.chip_ports()
                                                                     if p["name"] in links), timeout=30)

    def numbers(self):
        """Each port's counters, as asicd has them, from when they stand still: {port: {counter: value}}."""
        def read():
            return {p["port"]: {k: v for k, v in p["counters"].items() if isinstance(v, int)}
                    for p in self.chip_ports()}

        last, end = read(), time.monotonic() + 20
        while time.monotonic() < end:
            time.sleep(0.25)
            this = read()
            if this == last:
                return this
            last = this
        raise TimeoutError("not within 20 s: the ports' counters to stand still")

    def measure(self):
        return Measure(self)

    def probes(self):
        return Probes(self)

    def flows(self):
        """All flows with where they stand and why. In small pages, because the agent forwards nothing meanwhile."""
        rows, cursor = [], 0
        while cursor is not None:
            part = self.get(f"/v1/flows?limit=100&cursor={cursor}")
            rows += part["items"]
            cursor = part["next"]
        return rows

    def flow(self, pick):
        """The one flow that `pick` takes; where there is none, one that is nowhere."""
        found = [f for f in self.flows() if pick(f)]
        return found[0] if len(found) == 1 else {"place": None, "why": f"{len(found)} such flows", "packets": None}

    def why(self, pick=None):
        """What `tandem openflow show flows --why` says, of some flows, without some of its columns."""
        flows = [f for f in self.flows() if pick is None or pick(f)]
        rows = [(f["table"], f["priority"], f"{f['match'] or '-'} => {f['instructions']}", f["place"], f["why"])
                for f in sorted(flows, key=lambda f: (f["table"], -f["priority"], f["match"]))]
        wide = max((len(r[2]) for r in rows), default=4)
        head = ("TABLE", "PRIORITY", "FLOW", "WHERE", "WHY")
        return "\n".join(f"{t:>5} {a:>8} {b:{wide}} {c:8} {d}" for t, a, b, c, d in [head, *rows])


class Measure:
    """What the chip's ports count while a `with` block runs."""

    def __init__(self, sw):
        self.sw = sw
        self.ports = {}

    def __enter__(self):
        self.before = self.sw.numbers()
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            after = self.sw.numbers()
            self.ports = {p: {k: v - self.before[p].get(k, 0) for k, v in c.items()} for p, c in after.items()}

    def total(self, counter):
        return sum(c[counter] for c in self.ports.values())

    @property
    def taken(self):
        """Packets that came in."""
        return self.total("rx_packets")

    @property
    def cpu(self):
        """Of these the CPU got."""
        return self.total("rx_cpu_packets")

    @property
    def chip(self):
        """The chip answered by itself: forwarded or dropped."""
        return self.taken - self.cpu

    def sent(self, port):
        """Packets that left by a port: by the chip's own doing, by the software's."""
        c = self.ports[port]
        return c["tx_packets"] - c["tx_cpu_packets"], c["tx_cpu_packets"]

    def facts(self):
        return {"taken": self.taken, "chip": self.chip, "cpu": self.cpu}


class Probes:
    """Numbered packets into the ports and out of them. Their addresses are nobody's, so that no host answers them."""

    MARK = b"tandem demo "

    def __init__(self, sw):
        self.sw = sw
        self.catcher = Catcher()
        self.wires = {n: Wire(sw.hosts[n - 1], "eth0", catcher=self.catcher) for n in sw.macs}
        self.next = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.catcher.close()
        for w in self.wires.values():
            w.close()

    def frame(self, number, source, to, dport):
        """Of the host at `source` to the station of the host at `to`."""
        data = self.MARK + struct.pack("!I", number)
        return udp4_frame(self.sw.macs[to], self.sw.macs[source], A, B, SOURCE, dport, data,
                          vid=self.sw.vids[source])

    def run(self, packets):
        """Sends [(source, to, UDP port, port where it shall leave, or None)]; returns `Came`."""
        first = self.next
        self.next += len(packets)
        came = Came(packets)
        patience = True
        expected = 0
        for i, (source, to, dport, want) in enumerate(packets):
            self.wires[source].send(self.frame(first + i, source, to, dport))
            expected += want is not None
            if i % WINDOW == WINDOW - 1:
                patience = self.collect(came, first, expected, 10 if patience else 0.2)
        self.collect(came, first, expected, 10 if patience else 0.2)
        # those that shall not come have time to come all the same
        self.collect(came, first, len(packets) + 1, 0.5)
        return came

    def collect(self, came, first, until, seconds):
        """Reads what has come until so many have."""
        end = time.monotonic() + seconds
        while True:
            for port, wire in self.wires.items():
                count = len(wire.frames)
                for _, f in wire.frames[:count]:
                    at = f.find(self.MARK)
                    if at >= 0:
                        number = struct.unpack_from("!I", f, at + len(self.MARK))[0]
                        # with the tag that the port's VLAN has, or without one; else it came out where none should
                        vid = struct.unpack_from("!H", f, 14)[0] & 4095 if f[12:14] == b"\x81\x00" else None
                        came.add(number - first, port if vid == self.sw.vids[port] else -port, f)
                del wire.frames[:count]
            if came.count >= until:
                return True
            if time.monotonic() >= end:
                return False
            time.sleep(0.005)


class Came:
    """Where numbered packets came out."""

    def __init__(self, packets):
        self.packets = packets
        self.places = {}
        self.last = {}  # port -> number
        self.reordered = 0
        self.sources = {}  # source address -> packets
        self.count = 0

    def add(self, i, port, frame):
        if 0 <= i < len(self.packets):
            self.count += i not in self.places
            self.places.setdefault(i, []).append(port)
            self.reordered += i < self.last.get(port, -1)
            self.last[port] = i
            who = frame[6:12].hex(":")
            self.sources[who] = self.sources.get(who, 0) + 1

    @property
    def wrong(self):
        """Numbers of those that did not come out once where they should and nowhere else."""
        return [i for i, p in enumerate(self.packets) if self.places.get(i, []) != ([] if p[3] is None else [p[3]])]

    @property
    def right(self):
        return len(self.packets) - len(self.wrong)

    def __str__(self):
        return f"{self.right} of {len(self.packets)} packets right"


class Table:
    """Who answered the packets of each stretch of the demo."""

    def __init__(self):
        self.rows = []

    def add(self, what, m):
        self.rows.append((what, m.taken, m.chip, m.cpu))

    def text(self):
        width = max(len(r[0]) for r in self.rows)
        lines = [f"{'':{width}}  {'packets in':>10}  {'the chip':>10}  {'the CPU':>10}"]
        return "\n".join(lines + [f"{r[0]:{width}}  {r[1]:>10}  {r[2]:>10}  {r[3]:>10}" for r in self.rows])
