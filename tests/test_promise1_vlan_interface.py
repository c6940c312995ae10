# SPDX-License-Identifier: Apache-2.0
"""Promise 1, the twin test on VLAN interfaces of ports: the ASIC routes by the tag that a frame has, and puts on the
tag of the interface by which it leaves; what a chip can't make look as the kernel does goes through the CPU.

    h1 ── swp1 10.1.0.1 ──┬─ swp1.10 10.10.0.1 ─┐
                          └─ swp1.20 10.20.0.1 ─┤
    h2 ── swp2 10.2.0.1 ────────────────────────┼─ the switch
    h3 ── swp3 ───────────── swp3.10 10.30.0.1 ─┘
"""

import time

import pytest

from lib.net import CommandError
from lib.packet import udp4_frame, udp6_frame
from lib.twin import MAC, NOBODY, Step, both, tagged

H = MAC
BEHIND = {"swp1": ("h1", 1), "swp1.10": ("h1", 10), "swp1.20": ("h1", 20), "swp2": ("h2", 2), "swp3.10": ("h3", 30)}


def add(sw, dev):
    """The interface with its addresses, and the host behind it."""
    host, n = BEHIND[dev]
    if "." in dev:
        port, vid = dev.split(".")
        sw.ip(f"link add link {port} name {dev} type vlan id {vid}")
    sw.ip(f"link set {dev} up")
    sw.ip(f"addr add 10.{n}.0.1/24 dev {dev}")
    sw.ip(f"addr add fd{n:02}::1/64 dev {dev} nodad")
    sw.ip(f"neigh replace 10.{n}.0.2 lladdr {H[host]} dev {dev} nud permanent")
    sw.ip(f"neigh replace fd{n:02}::2 lladdr {H[host]} dev {dev} nud permanent")


def router(sw):
    sw.router()
    sw.ns.sysctl(ipv6__conf__default__accept_dad=0, ipv6__conf__all__accept_dad=0)
    sw.ip("link set swp3 up")
    for dev in BEHIND:
        add(sw, dev)
    sw.ip("route add 20.0.0.0/8 via 10.10.0.2")
    sw.ip("route add 21.0.0.0/8 nexthop via 10.20.0.2 nexthop via 10.30.0.2")
    sw.sync()


def steps(macs):
    def u4(dev, dst, vid=None, **kw):
        """From the host behind an interface, in its VLAN or another one."""
        host, n = BEHIND[dev]
        frame = udp4_frame(macs[int(dev[3])], H[host], f"10.{n}.0.2", dst, **kw)
        vid = vid if vid is not None else int(dev.partition(".")[2] or 0)
        return (host, tagged(frame, vid) if vid else frame)

    def u6(dev, dst):
        host, n = BEHIND[dev]
        frame = udp6_frame(macs[int(dev[3])], H[host], f"fd{n:02}::2", dst)
        vid = int(dev.partition(".")[2] or 0)
        return (host, tagged(frame, vid) if vid else frame)

    def other_mac(sw, mac):
        sw.ip(f"link set swp1.20 address {mac}")
        sw.ip(f"neigh replace 10.20.0.2 lladdr {H['h1']} dev swp1.20 nud permanent")

    own = "02:00:00:00:20:01"
    return [
        Step("tagged to untagged and back", frames=[u4("swp1.10", "10.2.0.2"), u4("swp2", "10.10.0.2"),
                                                    u6("swp1.10", "fd02::2"), u6("swp2", "fd10::2")], fits=True,
             expect={"h1": 2, "h2": 2}),
        Step("from one VLAN of a port to another", frames=[u4("swp1.10", "10.20.0.2"), u4("swp1", "10.10.0.2")],
             fits=True, expect={"h1": 2}),
        Step("the same VLAN on another port is another network", frames=[u4("swp1.10", "10.30.0.2"),
                                                                        u4("swp3.10", "10.10.0.2")], fits=True,
             expect={"h1": 1, "h3": 1}),
        Step("the priority of a tag is not kept", frames=[u4("swp1.10", "10.20.0.2", vid=0xE00A)], fits=True,
             expect={"h1": 1}),
        Step("over a gateway in a VLAN", frames=[u4("swp2", "20.1.2.3")], fits=True, expect={"h1": 1}),
        Step("the VLAN decides who is asked", frames=[u4("swp1.10", "10.2.0.2", vid=30),
                                                      u4("swp1.10", "10.2.0.2", vid=4094)], expect={}),
        Step("two tags", frames=[("h1", tagged(udp4_frame(macs[1], H["h1"], "10.10.0.2", "10.2.0.2"), 10, 20))],
             expect={}),
        Step("another station's MAC", frames=[("h1", tagged(udp4_frame(NOBODY, H["h1"], "10.10.0.2", "10.2.0.2"), 10))],
             expect={}),
        Step("down: nobody takes it, though the port is up", do=lambda sw: sw.ip("link set swp1.20 down"),
             frames=[u4("swp1.20", "10.2.0.2"), u4("swp1.10", "10.2.0.2")], expect={"h2": 1}),
        Step("and up", do=lambda sw: (sw.ip("link del swp1.20"), add(sw, "swp1.20")),
             frames=[u4("swp1.20", "10.2.0.2"), u4("swp2", "10.20.0.2")], fits=True, expect={"h1": 1, "h2": 1}),
        Step("a MAC address of its own", do=lambda sw: other_mac(sw, own), frames=[
            ("h1", tagged(udp4_frame(own, H["h1"], "10.20.0.2", "10.2.0.2"), 20)), u4("swp1.10", "10.2.0.2"),
            u4("swp2", "10.20.0.2")], expect={"h1": 1, "h2": 2}),
        Step("the port's again", do=lambda sw: other_mac(sw, macs[1]),
             frames=[u4("swp1.20", "10.2.0.2"), u4("swp2", "10.20.0.2")], fits=True, expect={"h1": 1, "h2": 1}),
        Step("priorities", do=lambda sw: sw.ip("link set swp1.20 type vlan egress 0:5"),
             frames=[u4("swp2", "10.20.0.2"), u4("swp1.20", "10.2.0.2")], expect={"h1": 1, "h2": 1}),
        Step("too big for the VLAN, not for its port", do=lambda sw: sw.ip("link set swp1.10 mtu 1280"),
             frames=[u4("swp2", "10.10.0.2", data=bytes(1100)), u4("swp2", "10.1.0.2", data=bytes(1400))],
             expect={"h1": 2}),
        Step("a bridge on top", do=lambda sw: (sw.ip("link add br0 type bridge mcast_snooping 0"),
                                               sw.ip("link set swp1.20 master br0"), sw.ip("link set swp2 master br0"),
                                               sw.ip("link set br0 up"), time.sleep(0.5)),
             frames=[("h1", tagged(udp4_frame(H["h2"], H["h1"], "192.0.2.1", "192.0.2.2"), 20))], expect={"h2": 1}),
        Step("gone", do=lambda sw: (sw.ip("link del br0"), sw.ip("link del swp1.20"), sw.ip("link del swp1.10")),
             frames=[u4("swp1.10", "10.2.0.2"), u4("swp3.10", "10.1.0.2")], expect={"h1": 1}),
    ]


def test_vlan_interfaces_of_ports_twin(make):
    probe = make.kernel()
    probe.host("h1", 1)
    try:
        probe.ip("link add link swp1 name swp1.10 type vlan id 10")
    except CommandError as e:
        if "Unknown device type" in e.said or "not supported" in e.said:
            pytest.skip("needs the kernel's VLAN_8021Q")
        raise
    wrong, asic = both(make, router, steps)
    assert not wrong, "\n".join(wrong)
    audit = asic.tandem("audit", "--wait", "2", check=False, timeout=60)
    assert "no differences" in audit, audit
