# SPDX-License-Identifier: Apache-2.0
"""Promise 1, the twin test on what a bridge does by itself and with time: ageing, ports that go down, spanning tree,
snooping with a querier, members that are no ports of the chip, MTU, tags, filters, and a bridge that routes.

    h1 ── swp1 ─┐                            h1 ── swp1 ─┐
    h2 ── swp2 ─┼─ br0 ── xh5 ── h5          h2 ── swp2 ─┼─ br0 10.1.0.1 ─┐
    h3 ── swp3 ─┤     (a veth end)           h3 ── swp3 ─┘                ├─ the switch
    h4 ── swp4 ─┘                            h4 ── swp4 10.4.0.1 ─────────┘
"""

import json
import os
import struct
import time

import pytest

from lib import packet, twin
from lib.net import CommandError, wait_until
from lib.packet import ETH_IP, ETH_IP6, ether, icmpv6, ipv4, ipv6, udp, udp4_frame, udp6_frame
from lib.twin import MAC, NOBODY, Step, both, data, nft, tagged

BROADCAST = "ff:ff:ff:ff:ff:ff"
H = MAC
ALL_BUT_1 = {"h2": 1, "h3": 1, "h4": 1}


def check(make, configure, steps, aliens=()):
    wrong, asic = both(make, configure, steps, aliens)
    assert not wrong, "\n".join(wrong)
    audit = asic.tandem("audit", "--wait", "2", check=False, timeout=60)
    assert "no differences" in audit, audit


# --------------------------------------------------------------------------------------- ageing, ports that go down

def settle(sw, h, up):
    """Until the switch has noticed that a host's cable is dead or alive: the kernel's link watch takes a while, and
    says so."""
    def noticed():
        link = json.loads(sw.ip(f"-j link show swp{h[1:]}"))[0]
        return ("LOWER_UP" in link["flags"]) == up and (link["operstate"] == "UP") == up

    wait_until(f"the cable of {h} to be noticed", noticed)
    sw.sync()
    time.sleep(0.2)


def ageing(sw, seconds):
    sw.ip(f"link set br0 type bridge ageing_time {seconds * 100}")


def cable(sw, h, state):
    sw.hosts[h].ns.ip(f"link set eth0 {state}")
    settle(sw, h, state == "up")


def ageing_steps(_):
    known = [("h2", data(NOBODY, H["h2"])), 0.1]
    to_2 = ("h1", data(H["h2"], H["h1"]))
    # for longer than the ageing time, and with pauses so much shorter that a busy machine does not make them longer
    alive = [1.4, ("h2", data(H["h1"], H["h2"])), to_2] * 5
    return [
        Step("known", do=lambda sw: ageing(sw, 6), frames=[("h1", data(NOBODY, H["h1"])), *known, to_2], fits=True,
             expect={"h1": 1, "h2": 2, "h3": 2, "h4": 2}),
        Step("aged: flooded again", frames=[9.5, to_2], fits=True, expect=ALL_BUT_1),
        Step("traffic of its own keeps a station", frames=[*known, *alive, to_2], fits=True,
             expect={"h1": 6, "h2": 6, "h3": 1, "h4": 1}),
        Step("ageing time 0: nothing is learned", do=lambda sw: (ageing(sw, 0), time.sleep(1.5)),
             frames=[*known, 1.5, to_2], fits=True, expect={"h1": 1, "h2": 1, "h3": 2, "h4": 2}),
        Step("learning again", do=lambda sw: ageing(sw, 300), frames=[*known, to_2], fits=True,
             expect={"h1": 1, "h2": 1, "h3": 1, "h4": 1}),
        Step("a port goes down: its stations are forgotten", do=lambda sw: sw.ip("link set swp2 down"), frames=[to_2],
             fits=True, expect={"h3": 1, "h4": 1}),
        Step("and up", do=lambda sw: (sw.ip("link set swp2 up"), settle(sw, "h2", True)), frames=[to_2], fits=True,
             expect=ALL_BUT_1),
        Step("known once more", frames=[*known, to_2], fits=True,
             expect={"h1": 1, "h2": 1, "h3": 1, "h4": 1}),
        Step("a cable is cut: its stations are forgotten", do=lambda sw: cable(sw, "h2", "down"), frames=[to_2],
             fits=True, expect={"h3": 1, "h4": 1}),
        Step("and mended", do=lambda sw: cable(sw, "h2", "up"), frames=[to_2], fits=True, expect=ALL_BUT_1),
        Step("known, and it moves to another port while its own is down", do=lambda sw: sw.ip("link set swp2 down"),
             frames=[("h3", data(NOBODY, H["h2"])), 0.1, to_2], fits=True, expect={"h1": 1, "h3": 1, "h4": 1}),
        Step("the old port comes up: the station stays", do=lambda sw: (sw.ip("link set swp2 up"),
                                                                        settle(sw, "h2", True)),
             frames=[to_2], fits=True, expect={"h3": 1}),
        Step("fdb flush", do=lambda sw: sw.ip("link set br0 type bridge fdb_flush"), frames=[to_2], fits=True,
             expect=ALL_BUT_1),
    ]


def test_ageing_and_ports_down_twin(make):
    check(make, twin.bridge, ageing_steps)


# ------------------------------------------------------------------------------------------------- spanning tree

def bpdu(src, port, cost, flags=0, root="1000aabbccddee01", bridge="1000aabbccddee01"):
    """A configuration BPDU (IEEE 802.1D 9.3.1): hello 2 s, maximum age 20 s, forward delay 2 s."""
    body = struct.pack("!HBBB", 0, 0, 0, flags) + bytes.fromhex(root) + struct.pack("!I", cost) \
        + bytes.fromhex(bridge) + struct.pack("!HHHHH", port, 0, 20 << 8, 2 << 8, 2 << 8)
    return ether("01:80:c2:00:00:00", src, 3 + len(body), b"\x42\x42\x03" + body)


def stp_off_steps(_):
    def state(n):
        return lambda sw: sw.ns.bridge(f"link set dev swp3 state {n}")

    both_ways = [("h1", data(BROADCAST, H["h1"])), ("h3", data(BROADCAST, H["h3"]))]
    to_3 = ("h1", data(H["h3"], H["h1"]))
    return [
        Step("listening: nothing passes", do=state(1), frames=both_ways, expect={"h2": 1, "h4": 1}),
        Step("and nothing was learned", do=state(3), frames=[to_3], fits=True, expect=ALL_BUT_1),
        Step("learning: nothing passes", do=state(2), frames=both_ways, expect={"h2": 1, "h4": 1}),
        Step("but the station was learned", do=state(3), frames=[to_3], fits=True, expect={"h3": 1}),
        Step("disabled: its stations are not forgotten, but not reached", do=state(0), frames=[to_3], fits=True,
             expect={}),
        Step("forwarding", do=state(3), frames=[to_3], fits=True, expect={"h3": 1}),
    ]


def test_port_states_twin(make):
    check(make, twin.bridge, stp_off_steps)


def stp(sw):
    """The kernel's spanning tree; h1 and h2 will claim to be one better bridge, so swp1 becomes the root port and swp2
    is blocked."""
    twin.bridge(sw, "stp_state 1 forward_delay 200 hello_time 100 max_age 600")


def stp_steps(_):
    def hellos(flags=0):
        return [(f"h{n}", bpdu("aa:bb:cc:dd:ee:01", 0x8000 + n, 0, flags)) for n in (1, 2)]

    hello = hellos()
    change = [x for _ in range(5) for x in (*hellos(1), 1.0)]
    every = [("h1", data(BROADCAST, H["h1"])), ("h2", data(BROADCAST, H["h2"])), ("h3", data(BROADCAST, H["h3"]))]
    return [
        Step("listening at first", frames=[*hello, 0.2, *every], expect={}),
        Step("forwarding after twice the delay, but not the blocked port",
             frames=[*[x for _ in range(5) for x in (*hello, 1.0)], *hello, *every],
             expect={"h1": 1, "h3": 1, "h4": 2}),
        Step("unicast", frames=[("h1", data(H["h3"], H["h1"])), ("h3", data(H["h1"], H["h3"]))], fits=True,
             expect={"h1": 1, "h3": 1}),
        Step("the root tells of a topology change", frames=change, expect={}),
        # the kernel's bridge looks for what is too old when its ageing time is set, else at a time of its own
        Step("so stations age as fast as the forward delay", do=lambda sw: ageing(sw, 300),
             frames=[0.3, ("h1", data(H["h3"], H["h1"]))], fits=True, expect={"h3": 1, "h4": 1}),
        Step("a frame of a blocked port", frames=[("h2", data(H["h1"], H["h2"]))], fits=True, expect={}),
        Step("no spanning tree any more", do=lambda sw: sw.ip("link set br0 type bridge stp_state 0"),
             frames=[0.3, ("h1", data(BROADCAST, H["h1"])), ("h3", data(BROADCAST, H["h3"]))]),
    ]


def test_spanning_tree_twin(make):
    check(make, stp, stp_steps)


# ------------------------------------------------------------------------------------------------- snooping

GROUP4, GROUP6 = "225.1.2.3", "ff05::1234"
GROUP4_MAC, GROUP6_MAC = "01:00:5e:01:02:03", "33:33:00:00:12:34"


def igmp(h, kind, group, dst=None):
    """IGMPv2 (RFC 2236): report 0x16, leave 0x17."""
    body = struct.pack("!BBH4s", kind, 0, 0, bytes(int(x) for x in group.split(".")))
    body = body[:2] + struct.pack("!H", packet.checksum(body)) + body[4:]
    dst = dst or group
    mac = "01:00:5e:" + ":".join(f"{int(x) & (0x7F if i == 0 else 0xFF):02x}" for i, x in enumerate(dst.split(".")[1:]))
    return (h, ether(mac, H[h], ETH_IP, ipv4(f"192.0.2.{h[1:]}", dst, 2, body, ttl=1, options=b"\x94\x04\0\0")))


def mld(h, kind, group, dst, dst_mac, delay=0):
    """MLDv1 (RFC 2710): query 130, report 131; with the router alert option."""
    src = f"fe80::{h[1:]}"
    body = icmpv6(src, dst, kind, 0, struct.pack("!HH", delay, 0) + packet.ipaddress.IPv6Address(group).packed)
    return (h, ether(dst_mac, H[h], ETH_IP6, ipv6(src, dst, 0, bytes([58, 0, 5, 2, 0, 0, 1, 0]) + body, hlim=1)))


def querier(sw, options=""):
    twin.bridge(sw, "mcast_snooping 1")
    # for this long after it has begun, a querier does not yet know all members, and the bridge floods
    sw.ip(f"link set br0 type bridge mcast_query_response_interval 50 mcast_last_member_interval 10 {options}")
    sw.ip("link set br0 type bridge mcast_querier 1")
    time.sleep(1.5)


def to_group4(h, group, source="192.0.2.1"):
    low = [int(x) for x in group.split(".")[1:]]
    mac = f"01:00:5e:{low[0] & 0x7F:02x}:{low[1]:02x}:{low[2]:02x}"
    return (h, udp4_frame(mac, H[h], source, group))


def mdb(what):
    return lambda sw: sw.ns.bridge(f"mdb {what}")


def igmp_steps(_):
    to_group = to_group4("h1", GROUP4)
    by_mac = ("h1", ether("01:00:00:01:02:03", H["h1"], 0x88B5, b"by its MAC address"))
    return [
        Step("a group without members", frames=[to_group], fits=True, expect={}),
        Step("h2 joins", frames=[igmp("h2", 0x16, GROUP4), 0.5, to_group], fits=True, expect={"h2": 1}),
        Step("h3 joins", frames=[igmp("h3", 0x16, GROUP4), 0.5, to_group], fits=True, expect={"h2": 1, "h3": 1}),
        Step("a member sends", frames=[to_group4("h2", GROUP4, "192.0.2.2")], fits=True, expect={"h3": 1}),
        Step("h2 leaves", frames=[igmp("h2", 0x17, GROUP4, "224.0.0.2"), 1.2, to_group], fits=True, expect={"h3": 1}),
        Step("the link's own groups are flooded", fits=True, frames=[
            ("h1", udp4_frame("01:00:5e:00:00:fb", H["h1"], "192.0.2.1", "224.0.0.251"))], expect=ALL_BUT_1),
        Step("a permanent member", do=mdb(f"add dev br0 port swp4 grp {GROUP4} permanent"),
             frames=[to_group], fits=True, expect={"h3": 1, "h4": 1}),
        Step("the switch itself, too", do=mdb(f"add dev br0 port br0 grp {GROUP4} temp"),
             frames=[to_group], fits=False, expect={"h3": 1, "h4": 1}),
        Step("it does not any more", do=mdb(f"del dev br0 port br0 grp {GROUP4} temp"),
             frames=[to_group], fits=True, expect={"h3": 1, "h4": 1}),
        Step("a router behind h2", do=lambda sw: sw.ns.bridge("link set dev swp2 mcast_router 2"),
             frames=[to_group, to_group4("h1", "225.9.9.9")], fits=True, expect={"h2": 2, "h3": 1, "h4": 1}),
        Step("an isolated port", do=lambda sw: [
            sw.ns.bridge(f"link set dev {p} isolated on") for p in ("swp1", "swp4")],
             frames=[to_group], fits=True, expect={"h2": 1, "h3": 1}),
        Step("no router there, and nobody isolated", do=lambda sw: (
            sw.ns.bridge("link set dev swp2 mcast_router 0"),
            [sw.ns.bridge(f"link set dev {p} isolated off") for p in ("swp1", "swp4")]),
             frames=[to_group], fits=True, expect={"h3": 1, "h4": 1}),
        Step("what is flooded a port may not want: a group it wants", do=lambda sw: sw.ns.bridge(
            "link set dev swp4 mcast_flood off"), frames=[to_group, by_mac], fits=True,
             expect={"h2": 1, "h3": 2, "h4": 1}),
        Step("a group by MAC address", do=mdb("add dev br0 port swp4 grp 01:00:00:01:02:03 permanent"),
             frames=[by_mac], fits=True, expect={"h4": 1}),
        Step("as unicast", do=lambda sw: sw.ns.bridge("link set dev swp3 mcast_to_unicast on"),
             frames=[igmp("h3", 0x16, GROUP4), 0.5, to_group]),
        Step("not any more", do=lambda sw: sw.ns.bridge("link set dev swp3 mcast_to_unicast off"),
             frames=[to_group], fits=True, expect={"h3": 1, "h4": 1}),
        Step("a member's port goes down", do=lambda sw: sw.ip("link set swp4 down"), frames=[to_group], fits=True,
             expect={"h3": 1}),
        Step("and up", do=lambda sw: (sw.ip("link set swp4 up"), settle(sw, "h4", True)), frames=[to_group], fits=True,
             expect={"h3": 1, "h4": 1}),
        Step("the header is broken: nobody gets it", frames=[
            ("h1", to_group[1][:24] + b"\xff\xff" + to_group[1][26:])], expect={}),
        Step("unicast is none of it", frames=[("h2", data(H["h1"], H["h2"]))], fits=True, expect={"h1": 1}),
        Step("no querier any more: flooded", do=lambda sw: sw.ip("link set br0 type bridge mcast_querier 0"),
             frames=[to_group], fits=True, expect={"h2": 1, "h3": 1}),
        Step("snooping off: flooded", do=lambda sw: sw.ip("link set br0 type bridge mcast_snooping 0"),
             frames=[to_group], fits=True, expect={"h2": 1, "h3": 1}),
    ]


def test_igmp_with_querier_twin(make):
    check(make, querier, igmp_steps)


def igmp3(h, *records):
    """An IGMPv3 report (RFC 3376 4.2): records of type, group, sources."""
    def packed(a):
        return bytes(int(x) for x in a.split("."))

    body = b"".join(struct.pack("!BBH4s", kind, 0, len(sources), packed(group)) + b"".join(map(packed, sources))
                    for kind, group, *sources in records)
    body = struct.pack("!BBHHH", 0x22, 0, 0, 0, len(records)) + body
    body = body[:2] + struct.pack("!H", packet.checksum(body)) + body[4:]
    return (h, ether("01:00:5e:00:00:16", H[h], ETH_IP,
                     ipv4(f"192.0.2.{h[1:]}", "224.0.0.22", 2, body, ttl=1, options=b"\x94\x04\0\0")))


def igmp3_steps(_):
    is_in, to_ex, allow, block = 1, 4, 5, 6
    one, two = (to_group4("h1", GROUP4, f"192.0.2.{n}") for n in (101, 102))
    return [
        Step("h2 wants all sources", frames=[igmp3("h2", (to_ex, GROUP4)), 0.5, one, two], fits=True, expect={"h2": 2}),
        Step("h3 wants one", frames=[igmp3("h3", (allow, GROUP4, "192.0.2.101")), 0.5, one, two], fits=True,
             expect={"h2": 2, "h3": 1}),
        Step("h4 wants all but that one", frames=[igmp3("h4", (to_ex, GROUP4, "192.0.2.101")), 0.5, one, two],
             fits=True, expect={"h2": 2, "h3": 1, "h4": 1}),
        Step("h3 wants another as well", frames=[igmp3("h3", (allow, GROUP4, "192.0.2.102")), 0.5, one, two], fits=True,
             expect={"h2": 2, "h3": 2, "h4": 1}),
        Step("h3 wants the first no more", frames=[igmp3("h3", (block, GROUP4, "192.0.2.101")), 1.5, one, two],
             fits=True, expect={"h2": 2, "h3": 1, "h4": 1}),
        Step("h2 leaves", frames=[igmp3("h2", (3, GROUP4)), 1.5, one, two], fits=True, expect={"h3": 1, "h4": 1}),
        Step("by what it is in", frames=[igmp3("h2", (is_in, GROUP4, "192.0.2.101")), 0.5, one, two], fits=True,
             expect={"h2": 1, "h3": 1, "h4": 1}),
        Step("the switch itself, too", do=mdb(f"add dev br0 port br0 grp {GROUP4} temp"),
             frames=[one, two], fits=False, expect={"h2": 1, "h3": 1, "h4": 1}),
        Step("version 2: sources do not count", do=lambda sw: (
            mdb(f"del dev br0 port br0 grp {GROUP4} temp")(sw),
            sw.ip("link set br0 type bridge mcast_igmp_version 2")), frames=[one, two], fits=True,),
    ]


def test_igmp3_with_sources_twin(make):
    check(make, lambda sw: querier(sw, "mcast_igmp_version 3"), igmp3_steps)


def test_groups_that_do_not_fit(make):
    """tiny has room for four: what has none goes to the CPU, and nothing of it elsewhere."""
    sw = make.asic(profile="tiny")
    for n in (1, 2, 3):
        sw.host(f"h{n}", n, H[f"h{n}"])
    sw.start()
    twin.mute(sw)
    twin.bridge(sw, "mcast_snooping 1 mcast_query_response_interval 50", ports=("h1", "h2", "h3"))
    sw.ip("link set br0 type bridge mcast_querier 1")
    time.sleep(1.5)
    for n in range(1, 7):
        sw.ns.bridge(f"mdb add dev br0 port swp2 grp 225.0.0.{n} permanent")
    sw.sync()
    rows = {g["group"]: g for g in sw.json("show", "mdb")}
    there = [g for g, r in rows.items() if r["state"] == "offloaded"]
    assert len(there) == 4 and len(rows) == 6, rows
    lacks = next(g for g in rows if g not in there)
    said = sw.tandem("explain", "group", lacks)
    assert "multicast-group full (needs 1, free 0 of 4)" in said and "without an entry" in said, said
    with packet.Wire(sw.hosts["h2"].ns) as h2, packet.Wire(sw.hosts["h3"].ns) as h3, \
            packet.Wire(sw.hosts["h1"].ns) as h1:
        for g in rows:
            before = sw.cpu_packets()
            for w in (h2, h3):
                w.clear()
            h1.send(to_group4("h1", g)[1])
            twin.quiet({"h2": h2, "h3": h3}, least=0.15, sw=sw)
            assert len([f for f in h2.caught() if not packet.is_control(f)]) == 1, g
            assert not [f for f in h3.caught() if not packet.is_control(f)], g
            assert ("l2_multicast" in sw.cpu_delta(before)) == (g not in there), g
    assert "no differences" in sw.tandem("audit", "--wait", "5", timeout=60)
    # room again
    for g in there[:2]:
        sw.ns.bridge(f"mdb del dev br0 port swp2 grp {g} permanent")
    sw.sync()
    assert {g["state"] for g in sw.json("show", "mdb")} == {"offloaded"}
    assert "no differences" in sw.tandem("audit", "--wait", "5", timeout=60)


def test_groups_over_restarts(make):
    """Killed and back: the chip's entries stay; the kernel forwards until it is sure again that there is a querier."""
    sw = make.asic()
    for n in (1, 2, 3):
        sw.host(f"h{n}", n, H[f"h{n}"])
    sw.start()
    twin.mute(sw)
    twin.bridge(sw, "mcast_snooping 1 mcast_query_response_interval 100", ports=("h1", "h2", "h3"))
    sw.ip("link set br0 type bridge mcast_querier 1")
    sw.ns.bridge(f"mdb add dev br0 port swp2 grp {GROUP4} permanent")
    sw.ns.bridge("link set dev swp3 mcast_router 2")

    def offloaded():
        return {g["group"]: g["state"] for g in sw.json("show", "mdb")} == {GROUP4: "offloaded", "routers": "offloaded"}

    def table():
        return sw.json("show", "mdb", "--hw")

    wait_until("the querier to be believed", offloaded, timeout=20)
    had = table()
    assert [p["dev"] for p in had[0]["ports"]] == ["swp2"], had
    for daemon in ("switchd", "asicd"):
        sw.kill(daemon)
        if daemon == "switchd":
            assert table() == had
        sw.tandem("up", timeout=60)
        sw.sync()
        assert table() == had, daemon
        with packet.Wire(sw.hosts["h1"].ns) as h1, packet.Wire(sw.hosts["h2"].ns) as h2, \
                packet.Wire(sw.hosts["h3"].ns) as h3:
            h1.send(to_group4("h1", GROUP4)[1])
            twin.quiet({"h2": h2, "h3": h3}, least=0.25, sw=sw)
            got = [len([f for f in w.caught() if not packet.is_control(f)]) for w in (h2, h3)]
            assert got == [1, 1], (daemon, got)
        wait_until("the querier to be believed again", offloaded, timeout=20)
        assert "no differences" in sw.tandem("audit", "--wait", "5", timeout=60)


def mld_steps(_):
    def to(group, mac):
        return ("h1", udp6_frame(mac, H["h1"], "fe80::1", group))

    to_group = to(GROUP6, GROUP6_MAC)
    target = packet.ipaddress.IPv6Address("2001:db8::9").packed
    solicitation = ("h1", ether("33:33:ff:00:00:09", H["h1"], ETH_IP6, ipv6(
        "fe80::1", "ff02::1:ff00:9", 58, icmpv6("fe80::1", "ff02::1:ff00:9", 135, 0, bytes(4) + target), hlim=255)))
    return [
        Step("before there is a querier: flooded", frames=[to_group], fits=True, expect=ALL_BUT_1),
        Step("also of a group with members", frames=[mld("h3", 131, GROUP6, GROUP6, GROUP6_MAC), 0.3, to_group],
             fits=True, expect=ALL_BUT_1),
        Step("which is left", frames=[mld("h3", 132, GROUP6, "ff02::2", "33:33:00:00:00:02"), 3.0]),
        # h4 is the querier, and so a router: everything goes there
        Step("only to the router", frames=[mld("h4", 130, "::", "ff02::1", "33:33:00:00:00:01", 400), 1.5, to_group],
             fits=True, expect={"h4": 1}),
        Step("h3 joins", frames=[mld("h3", 131, GROUP6, GROUP6, GROUP6_MAC), 0.5, to_group],
             fits=True, expect={"h3": 1, "h4": 1}),
        Step("a group of the link, without members", frames=[to("ff02::fb", "33:33:00:00:00:fb")], fits=True,
             expect={"h4": 1}),
        Step("all nodes", frames=[to("ff02::1", "33:33:00:00:00:01")], fits=True, expect=ALL_BUT_1),
        Step("a solicitation that nobody listens for", frames=[solicitation], control=True),
        Step("h2 listens for it", frames=[mld("h2", 131, "ff02::1:ff00:9", "ff02::1:ff00:9", "33:33:ff:00:00:09"), 0.2,
                                          solicitation], control=True),
    ]


def test_mld_with_querier_twin(make):
    check(make, lambda sw: twin.bridge(sw, "mcast_snooping 1"), mld_steps)


# ------------------------------------------------------------------------------------------------- other members

def alien_steps(_):
    everyone = {**ALL_BUT_1, "h5": 1}

    def join(sw):
        sw.ns.sysctl(ipv6__conf__xh5__disable_ipv6=1)
        sw.ip("link set xh5 master br0")
        sw.ip("link set xh5 up")

    return [
        Step("before it joins", frames=[("h1", data(NOBODY, H["h1"])), ("h2", data(H["h1"], H["h2"]))], fits=True,
             expect={"h1": 1, "h2": 1, "h3": 1, "h4": 1}),
        Step("unknown and broadcast, once to everyone", do=join,
             frames=[("h1", data(NOBODY, H["h1"])), ("h1", data(BROADCAST, H["h1"]))],
             expect={h: 2 for h in everyone}),
        Step("from there", frames=[("h5", data(H["h1"], H["h5"])), ("h5", data(BROADCAST, H["h5"]))],
             expect={"h1": 2, "h2": 1, "h3": 1, "h4": 1}),
        Step("to there", frames=[("h1", data(H["h5"], H["h1"]))], expect={"h5": 1}),
        Step("between ports", frames=[("h2", data(H["h1"], H["h2"])), ("h1", data(H["h2"], H["h1"]))],
             expect={"h1": 1, "h2": 1}),
        Step("a station moves there", frames=[("h5", data(NOBODY, H["h2"])), 0.1, ("h1", data(H["h2"], H["h1"]))],
             expect={"h1": 1, "h2": 1, "h3": 1, "h4": 1, "h5": 1}),
        Step("and back", frames=[("h2", data(NOBODY, H["h2"])), 0.1, ("h1", data(H["h2"], H["h1"]))],
             expect={"h1": 1, "h2": 1, "h3": 1, "h4": 1, "h5": 1}),
        Step("when it has left, the chip forwards again", do=lambda sw: sw.ip("link set xh5 nomaster"),
             frames=[("h1", data(NOBODY, H["h1"])), ("h2", data(NOBODY, H["h2"])), 0.1, ("h1", data(H["h2"], H["h1"]))],
             fits=True, expect={"h1": 1, "h2": 2, "h3": 2, "h4": 2}),
    ]


def test_member_that_is_no_port_twin(make):
    check(make, twin.bridge, alien_steps, aliens=["h5"])


def slow_port_steps(_):
    """swp1 alone goes through the CPU; what the kernel learns there the chip knows as well."""
    def chain(sw):
        nft(sw, "add table netdev t",
            "add chain netdev t i { type filter hook ingress device swp1 priority 0; policy accept; }")

    return [
        Step("a station of it", do=chain, frames=[("h1", data(NOBODY, H["h1"]))], expect=ALL_BUT_1),
        Step("is known to the others", frames=[("h2", data(H["h1"], H["h2"]))], fits=True, expect={"h1": 1}),
        Step("and finds them", frames=[("h1", data(H["h2"], H["h1"]))], expect={"h2": 1}),
        Step("the others among themselves", frames=[("h3", data(H["h2"], H["h3"]))], fits=True, expect={"h2": 1}),
        Step("it moves to another port", frames=[("h3", data(NOBODY, H["h1"])), 0.1, ("h2", data(H["h1"], H["h2"]))],
             fits=True, expect={"h1": 1, "h2": 1, "h3": 1, "h4": 1}),
        Step("and back", frames=[("h1", data(NOBODY, H["h1"])), 0.2, ("h2", data(H["h1"], H["h2"]))],
             expect={"h1": 1, "h2": 1, "h3": 1, "h4": 1}),
        Step("what the chain drops is not learned", do=lambda sw: nft(sw, "add rule netdev t i drop"),
             frames=[("h1", data(NOBODY, H["h3"])), 0.1, ("h2", data(H["h3"], H["h2"]))], fits=False, expect={"h3": 1}),
        Step("no chain any more", do=lambda sw: nft(sw, "delete table netdev t"),
             frames=[("h2", data(H["h1"], H["h2"])), ("h1", data(H["h2"], H["h1"]))], fits=True,
             expect={"h1": 1, "h2": 1}),
    ]


def test_slow_port_twin(make):
    check(make, twin.bridge, slow_port_steps)


def vlan_bridge(sw):
    try:
        twin.bridge(sw, "vlan_filtering 1")
    except CommandError as e:
        if "not supported" in e.said:
            pytest.skip("needs the kernel's BRIDGE_VLAN_FILTERING")
        raise


def vlan_steps(_):
    return [
        Step("unknown", frames=[("h1", data(NOBODY, H["h1"]))], expect=ALL_BUT_1),
        Step("known", frames=[("h2", data(H["h1"], H["h2"])), 0.1, ("h1", data(H["h2"], H["h1"]))],
             expect={"h1": 1, "h2": 1}),
        Step("a VLAN of two ports", do=lambda sw: [sw.ns.bridge(f"vlan add dev swp{p} vid 5") for p in (1, 2)],
             frames=[("h1", data(BROADCAST, H["h1"], vid=5)), ("h3", data(BROADCAST, H["h3"], vid=5))],
             expect={"h2": 1}),
        Step("no filtering any more", do=lambda sw: sw.ip("link set br0 type bridge vlan_filtering 0"),
             frames=[("h1", data(NOBODY, H["h1"])), ("h2", data(NOBODY, H["h2"])), 0.1, ("h1", data(H["h2"], H["h1"]))],
             fits=True, expect={"h1": 1, "h2": 2, "h3": 2, "h4": 2}),
    ]


def test_vlan_filtering_twin(make):
    check(make, vlan_bridge, vlan_steps)


# ------------------------------------------------------------------------------------------------- sizes and tags

def sized(length, dst="h2", **kw):
    """A frame from h1 of `length` bytes, its tags not counted."""
    return ("h1", data(H.get(dst, dst), H["h1"], payload=bytes(length - 42), **kw))


def size_steps(_):
    learned = [(h, data(NOBODY, H[h])) for h in ("h1", "h2")]
    plain = data(H["h2"], H["h1"])
    return [
        Step("stations", frames=learned, fits=True, expect={"h1": 1, "h2": 1, "h3": 2, "h4": 2}),
        # an untagged frame may be longer than the MTU by the header, on some kernels by a tag's four bytes more
        Step("a port's MTU", do=lambda sw: sw.ip("link set swp2 mtu 1000"),
             frames=[sized(1014), sized(1014, vid=5), sized(1018, vid=5)], fits=True, expect={"h2": 3}),
        Step("too long for it", frames=[sized(1019), sized(1400)], fits=True, expect={}),
        Step("flooded to where it fits", frames=[sized(1400, NOBODY)], fits=True, expect={"h3": 1, "h4": 1}),
        Step("the bridge's own MTU is none of a bridged frame's business",
             do=lambda sw: (sw.ip("link set swp2 mtu 1500"), sw.ip("link set br0 mtu 1000")),
             frames=[sized(1400), sized(1514)], fits=True, expect={"h2": 2}),
        Step("two tags", frames=[("h1", tagged(plain, 5, 6)), ("h1", tagged(plain, 5, 6, tpid=0x88A8)),
                                 ("h1", tagged(plain, 0, 6)), ("h1", tagged(plain, 5, 5, 5))], fits=True,
             expect={"h2": 4}),
        Step("two tags, unknown station", frames=[("h1", tagged(data(NOBODY, H["h1"]), 5, 6, tpid=0x88A8))], fits=True,
             expect=ALL_BUT_1),
        Step("two tags, full length", frames=[("h1", tagged(sized(1510)[1], 5, 6))], fits=True, expect={"h2": 1}),
        Step("a station of a tagged frame is one of the bridge", frames=[
            ("h3", tagged(data(NOBODY, "02:00:00:00:00:33"), 5, 6)), 0.1, ("h1", data("02:00:00:00:00:33", H["h1"]))],
             fits=True, expect={"h1": 1, "h2": 1, "h3": 1, "h4": 1}),
    ]


def test_sizes_and_tags_twin(make):
    check(make, twin.bridge, size_steps)


# ------------------------------------------------------------------------------------------------- filters

def filter_steps(_):
    learned = [(h, data(NOBODY, H[h])) for h in ("h1", "h2", "h3")]
    to_2, to_3 = ("h1", data(H["h2"], H["h1"])), ("h1", data(H["h3"], H["h1"]))
    return [
        Step("stations", frames=[*learned, 0.1, to_2, to_3], fits=True, expect={"h1": 2, "h2": 3, "h3": 3, "h4": 3}),
        Step("a bridge chain that drops what goes to h2", do=lambda sw: nft(
            sw, "add table bridge t", "add chain bridge t f { type filter hook forward priority 0; policy accept; }",
            f"add rule bridge t f ether daddr {H['h2']} drop"), frames=[to_2, to_3], expect={"h3": 1}),
        Step("the policy drops everything", do=lambda sw: nft(
            sw, "add chain bridge t f { policy drop; }"), frames=[to_2, to_3], expect={}),
        Step("no chain any more", do=lambda sw: nft(sw, "delete table bridge t"), frames=[to_2, to_3], fits=True,
             expect={"h2": 1, "h3": 1}),
        Step("a routing chain is none of the bridge's", do=lambda sw: nft(
            sw, "add table ip t", "add chain ip t f { type filter hook forward priority 0; policy drop; }"),
             frames=[2.2, to_2, to_3], fits=True, expect={"h2": 1, "h3": 1}),
    ]


def filters(sw):
    twin.bridge(sw)
    # where br_netfilter is loaded, a new namespace sends bridged frames through the routing chains
    if os.path.exists("/proc/sys/net/bridge"):
        sw.ns.sysctl(**{"bridge__bridge-nf-call-iptables": 0})


def test_bridge_filters_twin(make):
    check(make, filters, filter_steps)


# ---------------------------------------------------------------------------------- a bridge as a router's interface

def routed_bridge(sw):
    sw.router()
    sw.ns.sysctl(ipv6__conf__default__accept_dad=0, ipv6__conf__all__accept_dad=0)
    twin.bridge(sw, ports=("h1", "h2", "h3"))
    sw.ns.sysctl(ipv6__conf__br0__disable_ipv6=0)
    sw.ip("link set swp4 up")
    for dev, n in (("br0", 1), ("swp4", 4)):
        sw.ip(f"addr add 10.{n}.0.1/24 dev {dev}")
        sw.ip(f"addr add fd0{n}::1/64 dev {dev} nodad")
    for h, dev, net in (("h1", "br0", 1), ("h2", "br0", 1), ("h3", "br0", 1), ("h4", "swp4", 4)):
        sw.ip(f"neigh replace 10.{net}.0.1{h[1:]} lladdr {H[h]} dev {dev} nud permanent")
        sw.ip(f"neigh replace fd0{net}::1{h[1:]} lladdr {H[h]} dev {dev} nud permanent")
    sw.sync()


def routed_bridge_steps(macs):
    br0, swp4 = "02:00:00:00:01:00", macs[4]

    def down(h, size=0, **ip):
        """From h4 to a host of the bridge."""
        dst = f"10.1.0.1{h[1:]}"
        return ("h4", ether(swp4, H["h4"], ETH_IP, ipv4("10.4.0.14", dst, 17, udp(
            "10.4.0.14", dst, 1, 2, bytes(size)), **ip)))

    def up(h, **ip):
        return (h, udp4_frame(br0, H[h], f"10.1.0.1{h[1:]}", "10.4.0.14", **ip))

    six = ("h4", udp6_frame(swp4, H["h4"], "fd04::14", "fd01::12"))
    return [
        Step("the station is unknown: routed, then flooded", frames=[down("h2")], fits=True,
             expect={"h1": 1, "h2": 1, "h3": 1}),
        Step("up", frames=[up("h1"), up("h2"), ("h2", udp6_frame(br0, H["h2"], "fd01::12", "fd04::14"))], fits=True,
             expect={"h4": 3}),
        Step("down, the station is known", frames=[down("h2"), down("h1"), six], fits=True, expect={"h1": 1, "h2": 2}),
        Step("bridged as ever", frames=[("h1", data(H["h2"], H["h1"]))], fits=True, expect={"h2": 1}),
        Step("routed within the bridge", frames=[("h1", udp4_frame(br0, H["h1"], "10.1.0.11", "10.1.0.12"))],
             fits=True, expect={"h2": 1}),
        Step("TTL 1", frames=[up("h1", ttl=1)], expect={"h1": 1}),
        Step("ping of the bridge's address, and of the other one", frames=[
            ("h1", ether(br0, H["h1"], ETH_IP, ipv4("10.1.0.11", dst, 1, packet.icmp_echo(3, 1))))
            for dst in ("10.1.0.1", "10.4.0.1")], expect={"h1": 2}),
        Step("a tagged frame for the router", frames=[("h1", udp4_frame(br0, H["h1"], "10.1.0.11", "10.4.0.14",
                                                                       vid=5))], expect={}),
        Step("the bridge's MTU: answered", do=lambda sw: sw.ip("link set br0 mtu 1300"),
             frames=[down("h2", 1300), ("h4", ether(swp4, H["h4"], ETH_IP6, ipv6("fd04::14", "fd01::12", 17, udp(
                 "fd04::14", "fd01::12", 1, 2, bytes(1300)))))], expect={"h4": 2}),
        Step("the bridge's MTU: fragmented", frames=[down("h2", 1300, flags=0, ident=5)], expect={"h2": 2}),
        Step("what fits", frames=[down("h2", 1200)], fits=True, expect={"h2": 1}),
        Step("the port down: routed to where the station is not any more", do=lambda sw: sw.ip("link set swp2 down"),
             frames=[down("h2")], fits=True, expect={"h1": 1, "h3": 1}),
        Step("and up", do=lambda sw: (sw.ip("link set swp2 up"), settle(sw, "h2", True)), frames=[down("h2")],
             fits=True, expect={"h1": 1, "h2": 1, "h3": 1}),
        Step("the bridge down", do=lambda sw: sw.ip("link set br0 down"), frames=[down("h2"), up("h1")]),
    ]


def test_routed_bridge_twin(make):
    check(make, routed_bridge, routed_bridge_steps)


# ------------------------------------------------------------------------------------------------- storm control

def unknown(sw, count=200):
    """How many of so many frames to an unknown station reach h2."""
    with packet.Wire(sw.hosts["h1"].ns) as h1, packet.Wire(sw.hosts["h2"].ns) as h2:
        for _ in range(count):
            h1.send(data(NOBODY, H["h1"]))
        twin.quiet({"h2": h2}, least=0.5, most=5, sw=sw)
        return len([f for f in h2.caught() if not packet.is_control(f)])


def test_storm_control_is_kept_over_restarts(make):
    sw = make.asic()
    for n in (1, 2):
        sw.host(f"h{n}", n, H[f"h{n}"])
    sw.start()
    twin.mute(sw)
    twin.bridge(sw, ports=("h1", "h2"))
    assert unknown(sw) == 200
    said = sw.tandem("port", "storm", "swp1", "--unknown-unicast", "20", "--broadcast", "500")
    assert "swp1: unknown_unicast at most 20 packets/s" in said and "broadcast at most 500" in said, said

    def limits():
        return {(s["dev"], s["kind"]): s["rate_packets"] for s in sw.json("show", "storms") if s["rate_packets"]}

    want = {("swp1", "unknown_unicast"): 20, ("swp1", "broadcast"): 500}
    assert limits() == want
    assert unknown(sw) < 60
    for daemon in ("switchd", "asicd", "switchd"):
        sw.kill(daemon)
        sw.tandem("up", timeout=60)
        sw.sync()
        assert limits() == want, daemon
        assert unknown(sw) < 60, daemon
    # of both: tandem up says it again
    sw.tandem("down")
    sw.tandem("up", timeout=60)
    assert limits() == want
    sw.ip("link del br0")
    twin.bridge(sw, ports=("h1", "h2"))
    assert unknown(sw) < 60
    sw.tandem("port", "storm", "swp1", "--unknown-unicast", "off", "--broadcast", "off")
    assert limits() == {}
    assert unknown(sw) == 200
    for wrong in (["swp99", "--broadcast", "1"], ["swp1"], ["swp1", "--broadcast", "0"]):
        with pytest.raises(CommandError):
            sw.tandem("port", "storm", *wrong)


# ------------------------------------------------------------------- an entry by hand that is not in the chip

def test_an_entry_that_the_chip_has_not_follows_its_station(make):
    """In the kernel an entry by hand moves with its station. What the chip learned isn't written over one in general,
    as the chip has it and learned before that; only the store knows that this one isn't there."""
    sw = make.asic()
    for n in (1, 2):
        sw.host(f"h{n}", n, H[f"h{n}"])
    sw.start()
    twin.mute(sw)
    twin.bridge(sw, ports=("h1", "h2"))
    sw.tandem("fault", "fail", "--cls", "fdb", "--count", "0")
    sw.ns.bridge("fdb", "add", NOBODY, "dev", "swp1", "master", "static")
    sw.sync()

    def where():
        entries = json.loads(sw.ns.bridge("-j", "fdb", "show", "br", "br0"))
        return [e["ifname"] for e in entries if e["mac"] == NOBODY and e.get("master") == "br0"]

    assert where() == ["swp1"]
    with packet.Wire(sw.hosts["h2"].ns) as h2:
        h2.send(data(H["h1"], NOBODY))
        wait_until("the kernel to be told", lambda: where() == ["swp2"], timeout=5)
    sw.tandem("fault", "clear")
    out = sw.tandem("audit", "--wait", "5", check=False, timeout=60)
    assert "no differences" in out, out
