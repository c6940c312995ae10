# SPDX-License-Identifier: Apache-2.0
"""IGMP snooping of the appliance, engine chip: a group goes to those who have joined it, and to nobody else.

    h1, who asks ── port 1 ─┐        ┌─ port 2 ── h2
                            ├─ chip ─┤
             h4 ── port 4 ──┘        └─ port 3 ── h3, who sends              all in VLAN 10
"""

import ipaddress
import re
import struct

import pytest

from lib import net, packet
from lib.appliance import ChipSwitch
from lib.packet import ETH_IP, ETH_IP6, Wire, ether, icmpv6, ipv4, ipv6, udp4_frame, udp6_frame

MACS = {n: f"02:00:00:00:0a:{n:02x}" for n in (1, 2, 3, 4)}
ALL = "ff:ff:ff:ff:ff:ff"
ALL_HOSTS, ALL_ROUTERS = "224.0.0.1", "224.0.0.2"


def config(*lines):
    ports = {f"port{n}": {"access": 10} for n in MACS}
    return {"vlans": {"10": {}}, "lines": list(lines), "interfaces": {**ports, "vlan10": {"ipv4": "10.10.0.9/24"}}}


def mac_of(group):
    if ":" in group:
        return "33:33:" + ":".join(f"{b:02x}" for b in ipaddress.IPv6Address(group).packed[12:])
    low = [int(x) for x in group.split(".")[1:]]
    return f"01:00:5e:{low[0] & 0x7f:02x}:{low[1]:02x}:{low[2]:02x}"


def igmp(port, kind, group, dst=None, code=0):
    """IGMPv2 (RFC 2236): query 0x11, report 0x16, leave 0x17."""
    body = struct.pack("!BBH4s", kind, code, 0, bytes(int(x) for x in group.split(".")))
    body = body[:2] + struct.pack("!H", packet.checksum(body)) + body[4:]
    dst = dst or group
    head = ipv4(f"10.10.0.{port}", dst, 2, body, ttl=1, options=b"\x94\x04\0\0")
    return ether(mac_of(dst), MACS[port], ETH_IP, head)


def mld(port, kind, group, dst=None, delay=0):
    """MLDv1 (RFC 2710): query 130, report 131, done 132."""
    src, dst = f"fe80::{port}", dst or group
    body = icmpv6(src, dst, kind, 0, struct.pack("!HH", delay, 0) + ipaddress.IPv6Address(group).packed)
    return ether(mac_of(dst), MACS[port], ETH_IP6, ipv6(src, dst, 0, bytes([58, 0, 5, 2, 0, 0, 1, 0]) + body, hlim=1))


def frame_to(port, group, data):
    if ":" not in group:
        return udp4_frame(mac_of(group), MACS[port], f"10.10.0.{port}", group, data=data)
    return udp6_frame(mac_of(group), MACS[port], f"fe80::{port}", group, data=data)


class Rig:
    """A switch, and a wire for each of its hosts."""

    def __init__(self, sw):
        self.sw = sw
        self.wires = {n: Wire(sw.hosts[f"h{n}"].ns) for n in MACS}
        self.n = 0

    def close(self):
        for wire in self.wires.values():
            wire.close()

    def query(self, group="0.0.0.0", code=2):
        """All, or who wants a group; returns when it has been everywhere."""
        frame = igmp(1, 0x11, group, ALL_HOSTS if group == "0.0.0.0" else group, code)
        for n in (2, 3, 4):
            self.wires[n].clear()
        self.wires[1].send(frame)
        for n in (2, 3, 4):
            net.wait_until(f"a query at h{n}", lambda n=n: self.wires[n].caught(lambda f: f.startswith(frame[:42])))

    def join(self, port, group):
        self.wires[port].send(igmp(port, 0x16, group))

    def leave(self, port, group):
        self.wires[port].send(igmp(port, 0x17, group, ALL_ROUTERS))

    def show(self, what):
        return self.sw.cli(f"show ip igmp snooping {what}")

    def groups(self):
        """Each group's ports, the switch itself as 0."""
        rows = re.findall(r"^10 +(\S+) +\S+ +(?:v2 +)?(.+?) *$", self.show("groups"), re.M)

        def number(port):
            return 0 if port == "Switch" else int(port.rsplit("/", 1)[1])

        return {group: sorted(map(number, ports.split(", "))) for group, ports in rows}

    def begin(self):
        """Somebody asks, and the time for the answers is over."""
        self.query()
        net.wait_until("groups to go to their members", lambda: "to members" in self.show("querier"))

    def have(self, wanted):
        """These groups have these members, in the chip as well."""
        net.wait_until(f"{wanted}", lambda: {g: self.groups().get(g, []) for g in wanted} == wanted)
        self.sw.sync()

    def who(self, port, group):
        """Who gets a frame to a group, and how often: all has arrived when a broadcast behind it has."""
        self.n += 1
        text, behind = (f"{word} {self.n:06d}".encode() for word in ("number", "behind"))
        self.wires[port].send(frame_to(port, group, text))
        self.wires[port].send(udp4_frame(ALL, MACS[port], f"10.10.0.{port}", "10.10.0.255", data=behind))
        others = [n for n in self.wires if n != port]
        for n in others:
            net.wait_until(f"{behind!r} at h{n}", lambda n=n: self.wires[n].caught(lambda f: behind in f))
        # what the CPU sends of the first one has left before it answers this
        self.sw.hosts[f"h{port}"].ping("10.10.0.9", check=True)
        return {n: len(self.wires[n].caught(lambda f: text in f)) for n in others}

    def goes(self, port, group, *to):
        wanted = {n: int(n in to) for n in self.wires if n != port}
        got = {}

        def so():
            got.clear()
            got.update(self.who(port, group))
            return got == wanted

        net.wait_until(f"{group} from h{port} at {wanted}, not {got}", so)
        # and stays so
        assert self.who(port, group) == wanted


@pytest.fixture
def rig(request, make):
    sw = ChipSwitch(make.prefix())
    rig = None
    try:
        for n, mac in MACS.items():
            sw.host(f"h{n}", n, mac).address(f"10.10.0.{n}/24")
        sw.start(config(*getattr(request, "param", ("ip igmp snooping",))))
        for n in MACS:
            host = sw.hosts[f"h{n}"]
            net.wait_until(f"h{n} to reach the switch", lambda h=host: h.ping("10.10.0.9"))
        rig = Rig(sw)
        yield rig
    finally:
        if rig:
            rig.close()
        print(sw.log("swcfgd"))
        sw.delete()


def multicast_trapped(sw):
    return sw.trapped().get("l2_multicast", 0)


def test_a_group_goes_to_its_members(rig):
    group = "225.1.2.3"
    rig.join(2, group)
    # nobody asks: all is flooded
    rig.have({group: [2]})
    rig.goes(3, group, 1, 2, 4)
    rig.begin()
    before = multicast_trapped(rig.sw)
    rig.goes(3, group, 1, 2)
    rig.goes(3, "225.9.9.9", 1)
    # groups of the link are everybody's
    rig.goes(3, "224.0.0.5", 1, 2, 4)
    assert multicast_trapped(rig.sw) == before, "the chip does it alone"
    rig.wires[2].clear()
    rig.join(4, group)
    rig.have({group: [2, 4]})
    rig.goes(3, group, 1, 2, 4)
    # a report is not told to other members, who would say nothing then
    report = igmp(4, 0x16, group)[:42]
    assert len(rig.wires[1].caught(lambda f: f.startswith(report))) == 1
    assert not rig.wires[2].caught(lambda f: f.startswith(report))
    # who has asked asks whether others are there, and nobody is
    rig.leave(2, group)
    rig.query(group, code=10)
    rig.join(4, group)
    rig.have({group: [4]})
    rig.goes(3, group, 1, 4)
    assert re.search(r"^ +10 +\S+/1\(dynamic\)$", rig.show("mrouter"), re.M)
    rig.sw.cli("configure terminal", "no ip igmp snooping vlan 10")
    rig.goes(3, group, 1, 2, 4)
    assert rig.groups() == {}


@pytest.mark.parametrize("rig", [("ip igmp snooping", "ip igmp snooping querier",
                                  "ip igmp snooping vlan 10 mrouter interface swp4")], indirect=True)
def test_the_switch_asks_itself(rig):
    """A host of Linux answers, and is no member any more when its socket is closed."""
    group = "225.4.5.6"
    code = ("import socket,struct,sys; s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
            f"s.setsockopt(0, 35, struct.pack('4s4si', socket.inet_aton('{group}'), socket.inet_aton('10.10.0.2'), 0));"
            "sys.stdin.read()")
    host = rig.sw.hosts["h2"].ns.popen("python3", "-c", code, stdin=-1)
    try:
        rig.have({group: [2]})
        net.wait_until("groups to go to their members", lambda: "to members" in rig.show("querier"))
        assert "10.10.0.9" in rig.show("querier")
        rig.goes(3, group, 2, 4)
        rig.goes(1, "225.9.9.9", 4)
    finally:
        host.stdin.close()
        host.wait(10)
    # it leaves, is asked for, and nobody answers
    rig.have({group: []})
    rig.goes(3, group, 4)


def test_swcfgd_is_killed_and_nobody_loses_a_frame(rig):
    """The chip goes on as it did; the next one floods until it knows who is a member."""
    group = "225.1.2.3"
    rig.join(2, group)
    rig.begin()
    rig.have({group: [2]})
    rig.goes(3, group, 1, 2)
    rig.wires[2].clear()
    sent = []

    def stream():
        for _ in range(20):
            text = f"frame {len(sent):06d}".encode()
            sent.append(text)
            rig.wires[3].send(udp4_frame(mac_of(group), MACS[3], "10.10.0.3", group, data=text))

    rig.sw.kill("swcfgd")
    stream()
    rig.sw.launch_swcfgd()

    def answers():
        stream()
        return rig.sw.answers("swcfgd") or rig.sw.ended("swcfgd")

    net.wait_until("swcfgd to answer", answers, every=0.01)
    rig.sw.wait_for_swcfgd()
    stream()
    rig.goes(3, group, 1, 2, 4)
    for text in sent:
        assert len(rig.wires[2].caught(lambda f, text=text: text in f)) == 1, text
    rig.join(2, group)
    rig.begin()
    rig.have({group: [2]})
    rig.goes(3, group, 1, 2)


def test_a_chip_that_has_no_room_leaves_it_to_the_cpu(rig):
    """The profile has room for four groups: others go by the CPU, to the same hosts."""
    groups = [f"225.0.1.{n}" for n in range(1, 8)]
    for group in groups:
        rig.join(2, group)
    rig.begin()
    net.wait_until("all groups", lambda: set(groups) <= set(rig.groups()))
    rig.sw.sync()
    before = multicast_trapped(rig.sw)
    for group in groups:
        rig.goes(3, group, 1, 2)
    rig.goes(3, "225.9.9.9", 1)
    assert multicast_trapped(rig.sw) > before
    # who is gone makes room
    for group in groups:
        rig.query(group, code=10)
    for group in groups[:2]:
        rig.join(2, group)
    net.wait_until("two groups", lambda: set(rig.groups()) == set(groups[:2]))
    rig.sw.sync()
    rig.goes(3, groups[0], 1, 2)
    before = multicast_trapped(rig.sw)
    rig.goes(3, groups[1], 1, 2)
    rig.goes(3, groups[5], 1)
    assert multicast_trapped(rig.sw) == before


@pytest.mark.parametrize("rig", [("ipv6 mld snooping",)], indirect=True)
def test_groups_of_ipv6(rig):
    """The same of MLD, while groups of IPv4 are flooded."""
    group, shown = "ff05::1:2", lambda what: rig.sw.cli(f"show ipv6 mld snooping {what}")
    rig.wires[1].send(mld(1, 130, "::", "ff02::1", 200))
    net.wait_until("groups to go to their members", lambda: "to members" in shown("querier"))
    rig.goes(3, group, 1)
    rig.wires[2].send(mld(2, 131, group))
    net.wait_until("a member", lambda: re.search(r"^10 +FF05::1:2 +mld +v1 +\S+/2$", shown("address"), re.M))
    rig.sw.sync()
    rig.goes(3, group, 1, 2)
    rig.goes(3, "ff02::1", 1, 2, 4)
    rig.goes(3, "225.1.2.3", 1, 2, 4)
    # who asks finds nobody any more
    rig.wires[2].send(mld(2, 132, group, "ff02::2"))
    rig.wires[1].send(mld(1, 130, group, group, 100))
    net.wait_until("no member", lambda: "FF05::1:2" not in shown("address"))
    rig.sw.sync()
    rig.goes(3, group, 1)
