# SPDX-License-Identifier: Apache-2.0
"""Promise 1, the twin test: the same topology, configuration and packets once through the kernel alone, once through
kernel + ASIC. What leaves must be equal, and what fits and is supported must not have touched the CPU.

    bridge                                  router
      h1 ── swp1 ─┐                           h1 10.1.0.2 ── swp1 10.1.0.1 ─┐
      h2 ── swp2 ─┼─ br0                      h2 10.2.0.2 ── swp2 10.2.0.1 ─┼─ the switch
      h3 ── swp3 ─┘                           h3 10.3.0.2 ── swp3 10.3.0.1 ─┘
      h4 ── swp4 ─┘                           h4 10.4.0.2 ── swp4 10.4.0.1 ─┘

The hosts are wires: their stacks are mute, frames are written and caught by packet sockets.
"""

import contextlib
import ipaddress
import struct
import time

import pytest

from lib import packet, twin
from lib.packet import ETH_IP, ETH_IP6, ether, icmp_echo, ipv4, ipv6, udp, udp4_frame, udp6_frame
from lib.twin import HOSTS, MAC, NOBODY, Step, both, data, lone, port_macs

BROADCAST = "ff:ff:ff:ff:ff:ff"


# ------------------------------------------------------------------------------------------------- bridge

def bridge_steps(_):
    h = MAC
    all_but_1 = {"h2": 1, "h3": 1, "h4": 1}
    return [
        Step("unknown unicast is flooded", frames=[("h1", data(NOBODY, h["h1"]))], fits=True, expect=all_but_1),
        Step("the answer goes to the learned port", frames=[("h2", data(h["h1"], h["h2"]))], fits=True,
             expect={"h1": 1}),
        Step("known both ways", frames=[("h1", data(h["h2"], h["h1"])), ("h2", data(h["h1"], h["h2"]))], fits=True,
             expect={"h1": 1, "h2": 1}),
        Step("to one's own port: filtered", frames=[("h1", data(h["h1"], h["h1"]))], fits=True, expect={}),
        Step("broadcast once to everyone", frames=[("h1", data(BROADCAST, h["h1"]))], expect=all_but_1),
        Step("ARP is flooded once", frames=[("h1", ether(BROADCAST, h["h1"], 0x0806, packet.arp(
            1, h["h1"], "192.0.2.1", "00:00:00:00:00:00", "192.0.2.2")))], control=True),
        Step("IP multicast, no snooping: flooded", frames=[("h1", data("01:00:5e:01:02:03", h["h1"]))],
             expect=all_but_1),
        Step("IPv6 multicast", frames=[("h1", udp6_frame("33:33:00:00:12:34", h["h1"], "fe80::1", "ff05::1234"))],
             expect=all_but_1),
        Step("a BPDU is flooded while STP is off", frames=[("h1", ether("01:80:c2:00:00:00", h["h1"], 0x0026,
                                                              b"\x42\x42\x03" + bytes(40)))], control=True),
        Step("LLDP passes when the bridge says so",
             do=lambda sw: sw.ip("link set br0 type bridge group_fwd_mask 0x4000"),
             frames=[("h1", ether("01:80:c2:00:00:0e", h["h1"], 0x88CC, bytes(46)))], control=True),
        Step("and stays when not", do=lambda sw: sw.ip("link set br0 type bridge group_fwd_mask 0"),
             frames=[("h1", ether("01:80:c2:00:00:0e", h["h1"], 0x88CC, bytes(46)))], control=True),
        Step("a tag passes a VLAN-unaware bridge", frames=[("h1", data(h["h2"], h["h1"], vid=100)),
                                                           ("h1", data(NOBODY, h["h1"], vid=100))], fits=True,
             expect={"h2": 2, "h3": 1, "h4": 1}),
        Step("a host moves", frames=[("h3", data(NOBODY, h["h1"]))], fits=True,
             expect={"h1": 1, "h2": 1, "h4": 1}),
        Step("and is found there", frames=[("h2", data(h["h1"], h["h2"]))], fits=True, expect={"h3": 1}),
        Step("and back", frames=[("h1", data(NOBODY, h["h1"])), ], fits=True, expect=all_but_1),
        Step("static entry", do=lambda sw: sw.ns.bridge(f"fdb add {NOBODY} dev swp4 master static"),
             frames=[("h1", data(NOBODY, h["h1"]))], fits=True, expect={"h4": 1}),
        Step("static entry gone", do=lambda sw: sw.ns.bridge(f"fdb del {NOBODY} dev swp4 master"),
             frames=[("h1", data(NOBODY, h["h1"]))], fits=True, expect=all_but_1),
        Step("a multicast source is refused", frames=[("h1", data(h["h2"], "03:00:00:00:00:01"))], expect={}),
        Step("isolated ports", do=lambda sw: (sw.ns.bridge("link set dev swp1 isolated on"),
                                              sw.ns.bridge("link set dev swp2 isolated on")),
             frames=[("h1", data(h["h2"], h["h1"])), ("h1", data(BROADCAST, h["h1"]))],
             expect={"h3": 1, "h4": 1}),
        Step("no longer isolated", do=lambda sw: (sw.ns.bridge("link set dev swp1 isolated off"),
                                                  sw.ns.bridge("link set dev swp2 isolated off")),
             frames=[("h1", data(h["h2"], h["h1"]))], fits=True, expect={"h2": 1}),
        Step("no flooding to swp4", do=lambda sw: sw.ns.bridge("link set dev swp4 flood off"),
             frames=[("h1", data(NOBODY, h["h1"]))], fits=True, expect={"h2": 1, "h3": 1}),
        Step("flooding again", do=lambda sw: sw.ns.bridge("link set dev swp4 flood on"),
             frames=[("h1", data(NOBODY, h["h1"]))], fits=True, expect=all_but_1),
        Step("hairpin", do=lambda sw: sw.ns.bridge("link set dev swp1 hairpin on"),
             frames=[("h1", data(h["h1"], h["h1"]))], expect={"h1": 1}),
        Step("hairpin off", do=lambda sw: sw.ns.bridge("link set dev swp1 hairpin off"),
             frames=[("h1", data(h["h1"], h["h1"]))], expect={}),
        Step("port disabled by the bridge", do=lambda sw: sw.ns.bridge("link set dev swp3 state 0"),
             frames=[("h1", data(BROADCAST, h["h1"])), ("h3", data(BROADCAST, h["h3"]))], expect={"h2": 1, "h4": 1}),
        Step("forwarding again", do=lambda sw: sw.ns.bridge("link set dev swp3 state 3"),
             frames=[("h1", data(BROADCAST, h["h1"]))], expect=all_but_1),
        Step("a port leaves the bridge", do=lambda sw: sw.ip("link set swp4 nomaster"),
             frames=[("h1", data(BROADCAST, h["h1"])), ("h4", data(BROADCAST, h["h4"]))], expect={"h2": 1, "h3": 1}),
        Step("and comes back", do=lambda sw: (sw.ip("link set swp4 master br0"), sw.ip("link set swp4 up")),
             frames=[("h1", data(BROADCAST, h["h1"])), ("h4", data(BROADCAST, h["h4"]))],
             expect={"h1": 1, "h2": 2, "h3": 2, "h4": 1}),
        Step("bridge down", do=lambda sw: sw.ip("link set br0 down"),
             frames=[("h1", data(h["h2"], h["h1"]))], expect={}),
        Step("bridge up", do=lambda sw: sw.ip("link set br0 up"),
             frames=[("h1", data(BROADCAST, h["h1"]))], expect=all_but_1),
    ]


def test_bridge_twin(make):
    wrong, _ = both(make, twin.bridge, bridge_steps)
    assert not wrong, "\n".join(wrong)


def snooping_steps(_):
    h = MAC
    return [
        Step("unregistered group", frames=[("h1", data("01:00:5e:01:02:03", h["h1"]))]),
        Step("all-hosts group", frames=[("h1", udp4_frame("01:00:5e:00:00:05", h["h1"], "192.0.2.1", "224.0.0.5"))]),
        Step("unicast", frames=[("h2", data(h["h1"], h["h2"]))], fits=True),
    ]


def test_bridge_with_snooping_twin(make):
    wrong, _ = both(make, lambda sw: twin.bridge(sw, "mcast_snooping 1"), snooping_steps)
    assert not wrong, "\n".join(wrong)


# ------------------------------------------------------------------------------------------------- router

def router(sw):
    sw.router()
    sw.ns.sysctl(ipv6__conf__default__accept_dad=0, ipv6__conf__all__accept_dad=0)
    for p, h in enumerate(HOSTS, 1):
        sw.ip(f"link set swp{p} up")
        sw.ip(f"addr add 10.{p}.0.1/24 dev swp{p}")
        sw.ip(f"addr add fd0{p}::1/64 dev swp{p} nodad")
        sw.ip(f"neigh replace 10.{p}.0.2 lladdr {MAC[h]} dev swp{p} nud permanent")
        sw.ip(f"neigh replace fd0{p}::2 lladdr {MAC[h]} dev swp{p} nud permanent")
    sw.ip("route add 20.0.0.0/8 via 10.2.0.2")
    sw.ip("route add 20.1.0.0/16 via 10.3.0.2")
    sw.ip("route add 20.1.1.0/24 via 10.4.0.2")
    sw.ip("-6 route add fd20::/16 via fd02::2")
    sw.ip("-6 route add fd20:1::/32 via fd03::2")
    sw.ip("route add blackhole 21.0.0.0/24")
    sw.ip("route add unreachable 21.0.1.0/24")
    sw.ip("route add prohibit 21.0.2.0/24")
    sw.sync()


def router_steps(macs):
    gw = macs[1]  # where h1 sends what is to be routed
    h1 = MAC["h1"]

    def u4(dst, src="10.1.0.2", **kw):
        return ("h1", udp4_frame(gw, h1, src, dst, **kw))

    def u6(dst, src="fd01::2", **kw):
        return ("h1", udp6_frame(gw, h1, src, dst, **kw))

    def raw4(body):
        return ("h1", ether(gw, h1, ETH_IP, body))

    good = ipv4("10.1.0.2", "10.2.0.2", 17, udp("10.1.0.2", "10.2.0.2", 1, 2, b"x" * 40))
    broken = good[:10] + struct.pack("!H", struct.unpack_from("!H", good, 10)[0] ^ 0x5555) + good[12:]
    datagram = udp("10.1.0.2", "10.2.0.2", 1, 2, b"x" * 40)
    big = udp("10.1.0.2", "10.2.0.2", 1, 2, b"y" * 1300)
    big6 = udp("fd01::2", "fd02::2", 1, 2, b"y" * 1400)
    hop_by_hop = bytes([17, 0, 1, 4, 0, 0, 0, 0]) + udp("fd01::2", "fd02::2", 1, 2, b"z")
    return [
        Step("connected host", frames=[u4("10.2.0.2"), u6("fd02::2")], fits=True, expect={"h2": 2}),
        Step("longest prefix wins", frames=[u4("20.9.9.9"), u4("20.1.9.9"), u4("20.1.1.9")], fits=True,
             expect={"h2": 1, "h3": 1, "h4": 1}),
        Step("longest prefix wins, IPv6", frames=[u6("fd20:9::9"), u6("fd20:1::9")], fits=True,
             expect={"h2": 1, "h3": 1}),
        Step("TTL 2 is forwarded", frames=[u4("10.2.0.2", ttl=2), u6("fd02::2", hlim=2)], fits=True,
             expect={"h2": 2}),
        Step("TTL 1 is answered", frames=[u4("10.2.0.2", ttl=1), u6("fd02::2", hlim=1)], expect={"h1": 2}),
        Step("TTL 0", frames=[u4("10.2.0.2", ttl=0)]),
        Step("no route: ICMP", frames=[u4("99.0.0.1"), u6("2001:db8::1")], expect={"h1": 2}),
        Step("blackhole", frames=[u4("21.0.0.1")], expect={}),
        Step("unreachable and prohibit", frames=[u4("21.0.1.1"), u4("21.0.2.1")], expect={"h1": 2}),
        Step("ping of the switch", frames=[
            ("h1", ether(gw, h1, ETH_IP, ipv4("10.1.0.2", "10.1.0.1", 1, icmp_echo(7, 1)))),
            ("h1", ether(gw, h1, ETH_IP, ipv4("10.1.0.2", "10.3.0.1", 1, icmp_echo(7, 2)))),
            ("h1", ether(gw, h1, ETH_IP6, ipv6("fd01::2", "fd03::1", 58, packet.icmpv6(
                "fd01::2", "fd03::1", 128, 0, struct.pack("!HH", 7, 3)))))], expect={"h1": 3}),
        Step("bad header checksum", frames=[raw4(broken)], expect={}),
        Step("bad UDP checksum is not ours", frames=[raw4(ipv4("10.1.0.2", "10.2.0.2", 17, datagram[:6] + b"\x12\x34"
                                                               + datagram[8:]))], fits=True, expect={"h2": 1}),
        Step("fragments", frames=[raw4(ipv4("10.1.0.2", "10.2.0.2", 17, datagram, flags=0x2000, ident=9)),
                                  raw4(ipv4("10.1.0.2", "10.2.0.2", 17, b"q" * 32, flags=0x0006, ident=9))],
             fits=True, expect={"h2": 2}),
        Step("options", frames=[raw4(ipv4("10.1.0.2", "10.2.0.2", 17, datagram, options=b"\x94\x04\0\0"))],
             expect={"h2": 1}),
        Step("IPv6 hop-by-hop", frames=[("h1", ether(gw, h1, ETH_IP6, ipv6("fd01::2", "fd02::2", 0, hop_by_hop)))],
             expect={"h2": 1}),
        Step("truncated and nonsense", frames=[
            raw4(good[:18]), raw4(b"\x46" + good[1:19]), raw4(b"\x55" + good[1:]),
            raw4(good[:2] + struct.pack("!H", 1400) + good[4:]), ("h1", ether(gw, h1, ETH_IP6, b"\x60" + bytes(20))),
            ("h1", ether(gw, h1, ETH_IP, b""))], expect={}),
        Step("source martians", frames=[u4("10.2.0.2", src=s) for s in
                                        ("127.0.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.1")], expect={}),
        Step("one's own address as source", frames=[u4("10.2.0.2", src="10.1.0.1")]),
        Step("destination martians", frames=[u4(d) for d in ("127.0.0.1", "0.0.0.0", "240.0.0.1")]),
        Step("link-local source is not forwarded", frames=[u6("fd02::2", src="fe80::1234")]),
        Step("somebody else's MAC", frames=[("h1", udp4_frame(NOBODY, h1, "10.1.0.2", "10.2.0.2"))], expect={}),
        Step("broadcast MAC, routed address", frames=[("h1", udp4_frame(BROADCAST, h1, "10.1.0.2", "10.2.0.2"))],
             expect={}),
        Step("directed broadcast", frames=[u4("10.2.0.255")], expect={}),
        Step("too big for the way out", do=lambda sw: sw.ip("link set swp2 mtu 1280"),
             frames=[raw4(ipv4("10.1.0.2", "10.2.0.2", 17, big)),
                     ("h1", ether(gw, h1, ETH_IP6, ipv6("fd01::2", "fd02::2", 17, big6)))], expect={"h1": 2}),
        Step("too big, may be fragmented", frames=[raw4(ipv4("10.1.0.2", "10.2.0.2", 17, big, flags=0, ident=77))],
             expect={"h2": 2}),
        Step("MTU back", do=lambda sw: sw.ip("link set swp2 mtu 1500"),
             frames=[raw4(ipv4("10.1.0.2", "10.2.0.2", 17, big))], fits=True, expect={"h2": 1}),
        Step("route replaced", do=lambda sw: sw.ip("route replace 20.1.1.0/24 via 10.2.0.2"),
             frames=[u4("20.1.1.9")], fits=True, expect={"h2": 1}),
        Step("route removed: its cover answers", do=lambda sw: sw.ip("route del 20.1.1.0/24"),
             frames=[u4("20.1.1.9")], fits=True, expect={"h3": 1}),
        Step("the better metric", do=lambda sw: (sw.ip("route add 22.0.0.0/24 via 10.3.0.2 metric 20"),
                                                 sw.ip("route add 22.0.0.0/24 via 10.2.0.2 metric 10")),
             frames=[u4("22.0.0.1")], fits=True, expect={"h2": 1}),
        Step("the alias takes over", do=lambda sw: sw.ip("route del 22.0.0.0/24 metric 10"),
             frames=[u4("22.0.0.1")], fits=True, expect={"h3": 1}),
        Step("next-hop object", do=lambda sw: (sw.ip("nexthop add id 5 via 10.4.0.2 dev swp4"),
                                               sw.ip("route add 23.0.0.0/24 nhid 5")),
             frames=[u4("23.0.0.1")], fits=True, expect={"h4": 1}),
        Step("next-hop object replaced", do=lambda sw: sw.ip("nexthop replace id 5 via 10.3.0.2 dev swp3"),
             frames=[u4("23.0.0.1")], fits=True, expect={"h3": 1}),
        Step("host route inside a connected subnet", do=lambda sw: sw.ip("route add 10.2.0.2/32 via 10.3.0.2"),
             frames=[u4("10.2.0.2")], fits=True, expect={"h3": 1}),
        Step("and away again", do=lambda sw: sw.ip("route del 10.2.0.2/32"),
             frames=[u4("10.2.0.2")], fits=True, expect={"h2": 1}),
        Step("a neighbour moves", do=lambda sw: sw.ip(f"neigh replace 10.2.0.2 lladdr {NOBODY} dev swp2 nud permanent"),
             frames=[u4("10.2.0.2"), u4("20.9.9.9")], fits=True, expect={"h2": 2}),
        Step("tagged frame to a port without VLANs", frames=[("h1", udp4_frame(gw, h1, "10.1.0.2", "10.2.0.2",
                                                                              vid=7))], expect={}),
        Step("forwarding off on the way in", do=lambda sw: sw.ns.sysctl(ipv4__conf__swp1__forwarding=0),
             frames=[u4("10.2.0.2")]),
        Step("forwarding on", do=lambda sw: sw.ns.sysctl(ipv4__conf__swp1__forwarding=1),
             frames=[u4("10.2.0.2")], fits=True, expect={"h2": 1}),
        # apart: of packets for one address that come in one go the kernel checks only the first (ip_route_use_hint)
        Step("strict reverse path", do=lambda sw: sw.ns.sysctl(ipv4__conf__swp1__rp_filter=1),
             frames=[u4("10.2.0.2"), 0.3, u4("10.2.0.2", src="10.3.0.9")], expect={"h2": 1}),
        Step("no reverse path filter", do=lambda sw: sw.ns.sysctl(ipv4__conf__swp1__rp_filter=0),
             frames=[u4("10.2.0.2"), u4("10.2.0.2", src="10.3.0.9")], fits=True, expect={"h2": 2}),
        Step("a policy rule", do=lambda sw: (sw.ip("route add 20.9.0.0/16 via 10.4.0.2 table 100"),
                                             sw.ip("rule add from 10.1.0.2 table 100 pref 100")),
             frames=[u4("20.9.9.9")], expect={"h4": 1}),
        Step("rule away", do=lambda sw: sw.ip("rule del pref 100"),
             frames=[u4("20.9.9.9")], fits=True, expect={"h2": 1}),
        Step("a chain at forward that drops", do=lambda sw: twin.nft(
                sw, "add table ip t", "add chain ip t f { type filter hook forward priority 0; policy drop; }"),
             frames=[u4("10.2.0.2"), u6("fd02::2")], expect={"h2": 1}),
        Step("and a rule in it that accepts", do=lambda sw: twin.nft(sw, "add rule ip t f udp dport 2000 accept"),
             frames=[u4("10.2.0.2"), u4("10.2.0.2", dport=2001)], expect={"h2": 1}),
        Step("no chain any more", do=lambda sw: twin.nft(sw, "delete table ip t"),
             frames=[u4("10.2.0.2"), u6("fd02::2")], fits=True, expect={"h2": 2}),
        Step("a chain at the port's ingress", do=lambda sw: twin.nft(
                sw, "add table netdev t",
                "add chain netdev t i { type filter hook ingress device swp1 priority 0; policy accept; }",
                "add rule netdev t i udp dport 2001 drop"),
             frames=[u4("10.2.0.2"), u4("10.2.0.2", dport=2001)], expect={"h2": 1}),
        Step("and away again, too", do=lambda sw: twin.nft(sw, "delete table netdev t"),
             frames=[u4("10.2.0.2"), u4("10.2.0.2", dport=2001)], fits=True, expect={"h2": 2}),
        Step("two tags to a router port", frames=[("h1", twin.tagged(udp4_frame(gw, h1, "10.1.0.2", "10.2.0.2"), *vids))
                                                  for vids in ((7, 8), (0, 8), (0, 0))], expect={"h2": 1}),
        Step("address away: its routes are away", do=lambda sw: sw.ip("addr del 10.3.0.1/24 dev swp3"),
             frames=[u4("20.1.9.9"), u4("10.3.0.2")]),
        Step("link down: routes are away", do=lambda sw: sw.ip("link set swp2 down"),
             frames=[u4("20.9.9.9"), u4("10.2.0.2")]),
        Step("link up again", do=lambda sw: (
                sw.ip("link set swp2 up"), sw.ip("route replace 20.0.0.0/8 via 10.2.0.2"),
                sw.ip(f"neigh replace 10.2.0.2 lladdr {MAC['h2']} dev swp2 nud permanent")),
             frames=[u4("20.9.9.9"), u4("10.2.0.2")], fits=True, expect={"h2": 2}),
    ]


def test_router_twin(make):
    wrong, asic = both(make, router, router_steps)
    assert not wrong, "\n".join(wrong)
    audit = asic.tandem("audit", "--wait", "2", check=False, timeout=60)
    assert "no differences" in audit, audit


# ------------------------------------------------------------------------------------------------- ECMP

FLOWS = 12000     # of one weight's share the standard deviation is then 0.43 points, a quarter of what is allowed
TOLERANCE = 0.05  # of the weight, that is 1.7 points of a third


def ecmp_frames(gw, family, policy):
    """One frame per flow: policy 0 tells flows by their addresses, policy 1 by their ports."""
    for i in range(FLOWS):
        sport = 1024 + i * 5 % 60000 if policy else 1024
        if family == 4:
            dst = "24.0.0.1" if policy else str(ipaddress.IPv4Address("24.0.0.1") + 251 * i)
            yield udp4_frame(gw, MAC["h1"], "10.1.0.2", dst, sport=sport)
        else:
            dst = "fd24::1" if policy else str(ipaddress.IPv6Address("fd24::1") + 251 * i)
            yield udp6_frame(gw, MAC["h1"], "fd01::2", dst, sport=sport)


def arrived(wires, sent, patience=10):
    """Waits until the others have caught what h1 has sent; False: something is lost."""
    until = time.monotonic() + patience
    while sum(len(w.frames) for h, w in wires.items() if h != "h1") < sent:
        if time.monotonic() > until:
            return False
        time.sleep(0.001)
    return True


def ecmp_play(sw, family, policy):
    """What came to every host: a list of flows (addresses and ports, as bytes). Every flow is sent twice."""
    gw = port_macs(sw)[1]
    kind, addresses, ports = (ETH_IP, slice(26, 34), slice(34, 38)) if family == 4 else (
        ETH_IP6, slice(22, 54), slice(54, 58))
    with contextlib.ExitStack() as stack:
        wires = {h: stack.enter_context(packet.Wire(sw.hosts[h].ns)) for h in HOSTS}
        sent, all_came = 0, True
        for _ in range(2):
            for frame in ecmp_frames(gw, family, policy):
                wires["h1"].send(frame)
                sent += 1
                if sent % 200 == 0 and all_came:  # no queue on the way is that short
                    all_came = arrived(wires, sent)
            twin.quiet(wires, most=5, sw=sw)
        return {h: [f[addresses] + f[ports] for f in w.caught(
            lambda f: packet.ethertype(f) == kind and f[ports][2:] == b"\x07\xd0")]
            for h, w in wires.items()}


@pytest.mark.parametrize("policy", [0, 1], ids=["addresses", "ports"])
@pytest.mark.parametrize("family", [4, 6])
def test_ecmp_twin(make, family, policy):
    """Two of three shares go to h3, one to h2: on the kernel alone and with the ASIC each flow keeps its port, and the
    shares are within 5 % of the weights. With the ASIC the CPU sees none of it."""
    for sw in lone(make):
        router(sw)
        sw.ns.sysctl(ipv4__fib_multipath_hash_policy=policy, ipv6__fib_multipath_hash_policy=policy)
        if family == 4:
            sw.ip("route add 24.0.0.0/8 nexthop via 10.2.0.2 weight 1 nexthop via 10.3.0.2 weight 2")
        else:
            sw.ip("-6 route add fd24::/16 nexthop via fd02::2 weight 1 nexthop via fd03::2 weight 2")
        sw.sync()
        before = sw.cpu_packets() if sw.has_asic else {}
        seen = ecmp_play(sw, family, policy)
        who = "with ASIC" if sw.has_asic else "kernel alone"
        total = len(seen["h2"]) + len(seen["h3"])
        counts = {h: len(flows) for h, flows in seen.items()}
        assert total == 2 * FLOWS and not seen["h4"] and not seen["h1"], f"{who}: {counts}"
        assert not set(seen["h2"]) & set(seen["h3"]), f"{who}: a flow changed its port"
        share = len(seen["h2"]) / total
        assert abs(share - 1 / 3) <= TOLERANCE / 3, f"{who}: h2 got {share:.2%}, a third was wanted"
        if sw.has_asic:
            cpu = {k: v for k, v in sw.cpu_delta(before).items() if k not in twin.ALWAYS_CPU}
            assert not cpu, f"ECMP fits, yet the CPU saw {cpu}"
