# SPDX-License-Identifier: Apache-2.0
"""Promise 1, the twin test on VLANs: bridges that filter, VLAN interfaces on bridges and on ports. Needs a kernel with
VLAN filtering and 8021q: the lab's machine has them (tests/vm/e2e), a build machine may not.

    h1 ── swp1  1 pvid, 10 ──┐                    h1 ── swp1  10 pvid ──┐
    h2 ── swp2  10 pvid    ──┼─ br0               h2 ── swp2  10       ─┼─ br0 ── br0.10  10.10.0.1
    h3 ── swp3  1 pvid, 10 ──┤                    h3 ── swp3  20 pvid ──┘    └─── br0.20  10.20.0.1
    h4 ── swp4  10, 20     ──┘                    h4 ── swp4 ── swp4.30 10.30.0.1, untagged 10.4.0.1
"""

import struct
import time

import pytest

from lib import net, packet, twin
from lib.packet import ether, icmp_echo, ipv4, udp4_frame
from lib.twin import MAC, NOBODY, Step, both, data, tagged

BROADCAST = "ff:ff:ff:ff:ff:ff"
H = MAC
BR = "02:00:00:00:01:00"


def kernel_lacks():
    """What of it this kernel does not have."""
    bridge = "ip link add probe type bridge vlan_filtering 1"
    if not net.kernel_does(bridge):
        return "bridge VLAN filtering"
    if not net.kernel_does(bridge, "ip link add link probe name probe.5 type vlan id 5"):
        return "8021q"
    return None


@pytest.fixture(autouse=True)
def kernel_has_vlans():
    lacks = kernel_lacks()
    if lacks:
        pytest.skip(f"needs a kernel with {lacks}")


def vlans(sw, *lines):
    """`bridge vlan LINE`, all in one process."""
    net.run("bridge", "-n", sw.ns.name, "-batch", "-", stdin="".join(f"vlan {x}\n" for x in lines))


def links(sw, *lines):
    """`ip LINE`, all in one process."""
    sw.ns.ip_batch(lines, family="-4")


def check(make, configure, steps):
    wrong, asic = both(make, configure, steps)
    assert not wrong, "\n".join(wrong)
    answer = asic.api("switchd", "POST", "/v1/audit", {"wait_s": 3.0}, timeout=60)
    assert not answer["items"], answer["items"]
    return asic


# ------------------------------------------------------------------------------------------------- bridging

def filtering(sw):
    twin.bridge(sw, "vlan_filtering 1")
    vlans(sw, "add dev swp1 vid 10", "add dev swp3 vid 10", "del dev swp2 vid 1", "add dev swp2 vid 10 pvid untagged",
          "del dev swp4 vid 1", "add dev swp4 vid 10", "add dev swp4 vid 20", "del dev br0 vid 1 self")


def filtering_steps(_):
    def d(dst, src, *vids, **kw):
        frame = data(H.get(dst, dst), H[src])
        return (src, tagged(frame, *vids, **kw) if vids else frame)

    return [
        Step("untagged: the PVID's members, their way", frames=[d(NOBODY, "h1")], fits=True, expect={"h3": 1}),
        Step("tagged: members tagged and untagged", frames=[d(NOBODY, "h1", 10)], fits=True,
             expect={"h2": 1, "h3": 1, "h4": 1}),
        Step("a PVID without tag reaches tagged members", frames=[d(NOBODY, "h2")], fits=True,
             expect={"h1": 1, "h3": 1, "h4": 1}),
        Step("a VLAN that the port is not in", frames=[d(NOBODY, "h1", 20), d(NOBODY, "h2", 1)], fits=True, expect={}),
        Step("a VLAN that it is alone in", frames=[d(NOBODY, "h4", 20)], fits=True, expect={}),
        Step("no PVID: untagged is dropped", frames=[d(NOBODY, "h4"), d(BROADCAST, "h4")], fits=True, expect={}),
        Step("its own PVID's tag", frames=[d(NOBODY, "h1", 1)], fits=True, expect={"h3": 1}),
        Step("a priority tag is no VLAN", frames=[d(NOBODY, "h1", 0)], fits=True, expect={"h3": 1}),
        Step("two tags: the outer one counts", frames=[d(NOBODY, "h1", 10, 77)], fits=True,
             expect={"h2": 1, "h3": 1, "h4": 1}),
        Step("802.1ad is payload", frames=[d(NOBODY, "h1", 10, tpid=0x88A8)], fits=True, expect={"h3": 1}),
        Step("what was learned in one VLAN", frames=[d("h1", "h3", 10), d("h1", "h2")], fits=True, expect={"h1": 2}),
        Step("is not known in the other", frames=[d("h2", "h3")], fits=True, expect={"h1": 1}),
        Step("one station, two VLANs, two ports", frames=[d(NOBODY, "h1"), ("h4", tagged(data(NOBODY, H["h1"]), 10)),
                                                          0.3, d("h1", "h3"), d("h1", "h3", 10)], fits=True,
             expect={"h1": 2, "h2": 1, "h3": 2, "h4": 1}),
        Step("broadcast", frames=[d(BROADCAST, "h2")], expect={"h1": 1, "h3": 1, "h4": 1}),
        Step("static in a VLAN", do=lambda sw: sw.ns.bridge(f"fdb add {NOBODY} dev swp4 master static vlan 10"),
             frames=[d(NOBODY, "h1", 10), d(NOBODY, "h1")], fits=True, expect={"h4": 1, "h3": 1}),
        Step("PVID moves", do=lambda sw: vlans(sw, "add dev swp1 vid 10 pvid untagged"),
             frames=[d("h2", "h1"), 0.3, d("h1", "h2"), d(NOBODY, "h3")], fits=True, expect={"h1": 2, "h2": 1}),
        Step("a VLAN is taken away", do=lambda sw: vlans(sw, "del dev swp3 vid 10"),
             frames=[d(BROADCAST, "h2"), d(NOBODY, "h3", 10)], expect={"h1": 1, "h4": 1}),
        Step("and given back", do=lambda sw: vlans(sw, "add dev swp3 vid 10"),
             frames=[d("h8", "h2"), 0.3, d("h2", "h3", 10)], fits=True, expect={"h1": 1, "h2": 1, "h3": 1, "h4": 1}),
        Step("a range", do=lambda sw: vlans(sw, "add dev swp1 vid 100-120", "add dev swp3 vid 100-120"),
             frames=[d("h3", "h1", v) for v in (100, 110, 120, 121)], fits=True, expect={"h3": 3}),
        Step("listening in spanning tree: nothing in any VLAN", do=lambda sw: sw.ns.bridge("link set dev swp3 state 1"),
             frames=[d("h3", "h1", 100), d(NOBODY, "h3", 100)], fits=True, expect={}),
        Step("forwarding", do=lambda sw: sw.ns.bridge("link set dev swp3 state 3"),
             frames=[d(NOBODY, "h1", 100), 0.3, d("h1", "h3", 100)], fits=True, expect={"h1": 1, "h3": 1}),
        Step("isolated ports", do=lambda sw: [sw.ns.bridge(f"link set dev swp{n} isolated on") for n in (1, 3)],
             frames=[d("h3", "h1", 100), d("h8", "h1", 10)], fits=True, expect={"h2": 1, "h4": 1}),
        Step("no longer", do=lambda sw: [sw.ns.bridge(f"link set dev swp{n} isolated off") for n in (1, 3)],
             frames=[d("h3", "h1", 100)], fits=True, expect={"h3": 1}),
        Step("the filter is switched off", do=lambda sw: sw.ip("link set br0 type bridge vlan_filtering 0"),
             frames=[d(NOBODY, "h1"), d(NOBODY, "h4", 20)], fits=True,
             expect={"h1": 1, "h2": 2, "h3": 2, "h4": 1}),
        Step("and on again", do=lambda sw: sw.ip("link set br0 type bridge vlan_filtering 1"),
             frames=[d(NOBODY, "h4", 20), d(NOBODY, "h3")], fits=True, expect={"h1": 1}),
        Step("a VLAN with a state of its own: the kernel's", do=lambda sw: vlans(sw, "set dev swp1 vid 10 state 4"),
             frames=[d("h8", "h2"), d("h8", "h1", 10)], expect={"h3": 1, "h4": 1}),
        Step("its state is forwarding again", do=lambda sw: vlans(sw, "set dev swp1 vid 10 state 3"),
             frames=[d("h8", "h2")], fits=True, expect={"h1": 1, "h3": 1, "h4": 1}),
        Step("802.1ad bridge: the kernel's", do=lambda sw: sw.ip("link set br0 type bridge vlan_protocol 802.1ad"),
             frames=[d(NOBODY, "h1", 10), d(NOBODY, "h1", 10, tpid=0x88A8)]),
    ]


def test_vlan_filtering_twin(make):
    asic = check(make, filtering, filtering_steps)
    why = asic.api("switchd", "GET", "/v1/ports")["items"][0]["reason"]
    assert "802.1ad is not offloaded" in why, why


# ---------------------------------------------------------------------------------------- multicast groups per VLAN

def snooping(sw):
    filtering(sw)
    sw.ip("link set br0 type bridge mcast_snooping 1 mcast_query_response_interval 50")
    sw.ip("link set br0 type bridge mcast_querier 1")
    time.sleep(1.5)


def snooping_steps(_):
    group, other = "225.1.2.3", "225.9.9.9"

    def to(h, dst, *vids):
        low = [int(x) for x in dst.split(".")[1:]]
        mac = f"01:00:5e:{low[0] & 0x7F:02x}:{low[1]:02x}:{low[2]:02x}"
        return (h, tagged(udp4_frame(mac, H[h], "192.0.2.1", dst), *vids))

    def join(h, *vids):
        body = struct.pack("!BBH4s", 0x16, 0, 0, bytes(int(x) for x in group.split(".")))
        body = body[:2] + struct.pack("!H", packet.checksum(body)) + body[4:]
        report = ipv4("192.0.2.9", group, 2, body, ttl=1, options=b"\x94\x04\0\0")
        return (h, tagged(ether("01:00:5e:01:02:03", H[h], packet.ETH_IP, report), *vids))

    def mdb(*lines):
        text = "".join(f"mdb {x}\n" for x in lines)
        return lambda sw: net.run("bridge", "-n", sw.ns.name, "-batch", "-", stdin=text)

    return [
        Step("a group without members", frames=[to("h1", group, 10), to("h1", group)], fits=True, expect={}),
        Step("a member in one VLAN", do=mdb(f"add dev br0 port swp2 grp {group} permanent vid 10"),
             frames=[to("h1", group, 10), to("h1", group)], fits=True, expect={"h2": 1}),
        Step("h3 joins, with its VLAN's tag", frames=[join("h3", 10), 0.7, to("h1", group, 10), to("h1", group)],
             fits=True, expect={"h2": 1, "h3": 1}),
        Step("from a port without tag", frames=[to("h2", group)], fits=True, expect={"h3": 1}),
        Step("h3 joins in its PVID as well", frames=[join("h3"), 0.7, to("h1", group)], fits=True, expect={"h3": 1}),
        Step("a router behind h4, in its VLANs", do=lambda sw: sw.ns.bridge("link set dev swp4 mcast_router 2"),
             frames=[to("h1", group, 10), to("h1", group), to("h1", other, 10), to("h1", other)], fits=True,
             expect={"h2": 1, "h3": 2, "h4": 2}),
        Step("one member less", do=mdb(f"del dev br0 port swp2 grp {group} permanent vid 10"),
             frames=[to("h1", group, 10)], fits=True, expect={"h3": 1, "h4": 1}),
        Step("snooping per VLAN: the kernel's", do=lambda sw: sw.ip("link set br0 type bridge mcast_vlan_snooping 1"),
             frames=[to("h1", group, 10), to("h1", other)]),
        Step("the bridge's again", do=lambda sw: (
            sw.ip("link set br0 type bridge mcast_vlan_snooping 0"), time.sleep(1.5)),
             frames=[to("h1", other)], expect={}),
        Step("the filter is switched off: entries of VLANs answer nothing",
             do=lambda sw: sw.ip("link set br0 type bridge vlan_filtering 0"), frames=[to("h1", group)], fits=True,
             expect={"h4": 1}),
    ]


def test_groups_per_vlan_twin(make):
    check(make, snooping, snooping_steps)


# ------------------------------------------------------------------------------------------------- routing

def routing(sw):
    sw.router()
    twin.bridge(sw, "vlan_filtering 1", ports=("h1", "h2", "h3"))
    vlans(sw, "add dev swp1 vid 10 pvid untagged", "del dev swp2 vid 1", "add dev swp2 vid 10",
          "add dev swp3 vid 20 pvid untagged", "add dev br0 vid 10 self", "add dev br0 vid 20 self")
    links(sw, "link set swp4 up", "link add link br0 name br0.10 type vlan id 10",
          "link add link br0 name br0.20 type vlan id 20", "link add link swp4 name swp4.30 type vlan id 30",
          *(f"link set {d} up" for d in ("br0.10", "br0.20", "swp4.30")))
    for d in ("br0.10", "br0.20", "swp4", "swp4.30"):
        sw.ns.sysctl(**{f"ipv6__conf__{d}__disable_ipv6": 1})
    links(sw, "addr add 10.10.0.1/24 dev br0.10", "addr add 10.20.0.1/24 dev br0.20", "addr add 10.4.0.1/24 dev swp4",
          "addr add 10.30.0.1/24 dev swp4.30",
          *(f"neigh add {a} lladdr {m} dev {d} nud permanent" for a, m, d in (
              ("10.10.0.2", H["h1"], "br0.10"), ("10.10.0.3", H["h2"], "br0.10"), ("10.20.0.2", H["h3"], "br0.20"),
              ("10.4.0.2", H["h4"], "swp4"), ("10.30.0.2", "02:00:00:00:00:34", "swp4.30"))),
          "route add 10.99.0.0/16 via 10.30.0.2")
    sw.ns.bridge(f"fdb add {H['h1']} dev swp1 master static vlan 10")
    sw.ns.bridge(f"fdb add {H['h2']} dev swp2 master static vlan 10")
    sw.ns.bridge(f"fdb add {H['h3']} dev swp3 master static vlan 20")


def routing_steps(macs):
    m4 = macs[4]

    def ip(src_host, dst_mac, src, dst, *vids, **kw):
        frame = udp4_frame(dst_mac, H[src_host], src, dst, data=b"routed", **kw)
        return (src_host, tagged(frame, *vids) if vids else frame)

    def down(sw):
        links(sw, "link set swp4.30 down")

    def up(sw):
        links(sw, "link set swp4.30 up", "neigh replace 10.30.0.2 lladdr 02:00:00:00:00:34 dev swp4.30 nud permanent",
              "route replace 10.99.0.0/16 via 10.30.0.2")

    ping = ether(BR, H["h2"], 0x0800, ipv4("10.10.0.3", "10.10.0.1", 1, icmp_echo(1, 1)))
    return [
        Step("VLAN to VLAN, untagged", frames=[ip("h1", BR, "10.10.0.2", "10.20.0.2")], fits=True, expect={"h3": 1}),
        Step("VLAN to VLAN, tagged in", frames=[ip("h2", BR, "10.10.0.3", "10.20.0.2", 10)], fits=True,
             expect={"h3": 1}),
        Step("VLAN to VLAN, tagged out", frames=[ip("h3", BR, "10.20.0.2", "10.10.0.3")], fits=True,
             expect={"h2": 1}),
        Step("within the VLAN it is bridged", frames=[("h1", data(H["h2"], H["h1"]))], fits=True, expect={"h2": 1}),
        Step("VLAN to port", frames=[ip("h1", BR, "10.10.0.2", "10.4.0.2")], fits=True, expect={"h4": 1}),
        Step("VLAN to a VLAN interface on a port", frames=[ip("h1", BR, "10.10.0.2", "10.30.0.2"),
                                                          ip("h2", BR, "10.10.0.3", "10.99.1.1", 10)], fits=True,
             expect={"h4": 2}),
        Step("and back: tagged and untagged are two interfaces",
             frames=[ip("h4", m4, "10.30.0.2", "10.10.0.2", 30), ip("h4", m4, "10.4.0.2", "10.10.0.2")], fits=True,
             expect={"h1": 2}),
        Step("from one to the other, on one port", frames=[ip("h4", m4, "10.30.0.2", "10.4.0.2", 30)], fits=True,
             expect={"h4": 1}),
        Step("a VLAN that the port has no interface for", frames=[ip("h4", m4, "10.30.0.2", "10.10.0.2", 31)],
             expect={}),
        Step("other people's frames in the interface's VLAN", frames=[ip("h4", NOBODY, "10.30.0.2", "10.10.0.2", 30)],
             fits=True, expect={}),
        Step("an own address, tagged", frames=[("h2", tagged(ping, 10))], expect={"h2": 1}),
        Step("TTL ends", frames=[ip("h2", BR, "10.10.0.3", "10.20.0.2", 10, ttl=1)], expect={"h2": 1}),
        Step("the interface goes down", do=down, frames=[ip("h4", m4, "10.30.0.2", "10.10.0.2", 30)], expect={}),
        Step("and up", do=up, frames=[ip("h4", m4, "10.30.0.2", "10.10.0.2", 30),
                                      ip("h1", BR, "10.10.0.2", "10.99.1.1")], fits=True, expect={"h1": 1, "h4": 1}),
        Step("the bridge leaves the VLAN", do=lambda sw: vlans(sw, "del dev br0 vid 20 self"),
             frames=[ip("h1", BR, "10.10.0.2", "10.20.0.2"), ip("h3", BR, "10.20.0.2", "10.10.0.2")], expect={}),
        Step("and is in it again", do=lambda sw: vlans(sw, "add dev br0 vid 20 self"),
             frames=[ip("h1", BR, "10.10.0.2", "10.20.0.2"), ip("h3", BR, "10.20.0.2", "10.10.0.2")], fits=True,
             expect={"h1": 1, "h3": 1}),
        Step("an address on the bridge itself: where its untagged frames belong",
             do=lambda sw: (vlans(sw, "add dev br0 vid 20 pvid untagged self", "add dev br0 vid 10 self"),
                            links(sw, "addr add 10.21.0.1/24 dev br0",
                                  f"neigh add 10.21.0.2 lladdr {H['h3']} dev br0 nud permanent")),
             frames=[ip("h1", BR, "10.10.0.2", "10.21.0.2")], fits=True, expect={"h3": 1}),
    ]


def test_vlan_interfaces_twin(make):
    asic = check(make, routing, routing_steps)
    # kill -9: what was right is not written again
    counters = asic.json("status")
    assert counters is not None


# ------------------------------------------------------------------------------------------- a VLAN without room

def test_audit_of_a_bridge_with_a_vlan_without_room(make):
    """Ports trap, and with them go the bridge's router interface and that of a VLAN, as a station may be where the chip
    sees none: that is no difference. They are back when there is room again."""
    sw = make.asic(profile="tiny")
    for n in (1, 2):
        sw.host(f"h{n}", n, H[f"h{n}"])
    sw.start()
    links(sw, f"link add br0 address {BR} type bridge mcast_snooping 0 vlan_filtering 1", "link set swp1 master br0 up",
          "link set swp2 master br0 up", "link set br0 up", "addr add 10.5.0.1/24 dev br0")
    vlans(sw, "add dev swp1 vid 10", "add dev br0 vid 10 self")
    links(sw, "link add link br0 name br0.10 type vlan id 10", "link set br0.10 up", "addr add 10.6.0.1/24 dev br0.10")
    size = next(p["size"] for p in sw.show("resources")["items"] if p["name"] == "vlan")

    def audited(rifs):
        answer = sw.api("switchd", "POST", "/v1/audit", {"wait_s": 3.0}, timeout=60)
        assert not answer["items"], answer["items"]
        assert len(sw.show("rifs")) == rifs
        return [p["reason"] or "" for p in sw.show("ports") if p["name"] in ("swp1", "swp2")]

    assert not any(audited(2))
    vlans(sw, f"add dev swp2 vid 100-{100 + size}")
    full = f"vlan full (needs 1, free 0 of {size})"
    assert all(full in reason for reason in audited(0))
    links(sw, "link set br0 down")
    assert all(full in reason for reason in audited(0))
    links(sw, "link set br0 up")
    vlans(sw, f"del dev swp2 vid 100-{100 + size}")
    assert not any(audited(2))
