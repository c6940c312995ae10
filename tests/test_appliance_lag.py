# SPDX-License-Identifier: Apache-2.0
"""The appliance's port-channels, engine chip: two of them with two cables that are one link.

    h1 ── port 1 [ a ] port 2 ──── port 2 [ b ] port 1 ── h2
                       port 3 ──── port 3
                       Port-channel1, a trunk
"""

import os
import re

import pytest

from lib import net, traffic
from lib.appliance import ChipSwitch, dotted
from lib.packet import Wire, udp4_frame

MACS = {"h1": "02:00:00:00:0a:01", "h2": "02:00:00:00:0b:01"}
ALL = "ff:ff:ff:ff:ff:ff"
VLAN = 10


def lines(*more):
    """Of either switch: hosts in a VLAN, the cables a trunk."""
    group = ["interface port-channel 1", " switchport mode trunk"]
    members = [x for p in (2, 3) for x in (f"interface swp{p}", " channel-group 1 mode on")]
    return {"lines": [f"vlan {VLAN}", *more, *group, *members], "interfaces": {"port1": {"access": VLAN}}}


@pytest.fixture
def pair(make):
    a, b = ChipSwitch(make.prefix()), ChipSwitch(make.prefix())
    try:
        a.host("h1", 1, MACS["h1"]).address("10.1.0.1/24")
        b.host("h2", 1, MACS["h2"]).address("10.1.0.2/24")
        for port in (2, 3):
            net.cable(a.front, f"p{port}", b.front, f"p{port}")
            a.cabled.append(port)
            b.cabled.append(port)
        for sw in (a, b):
            sw.start(lines())
        yield a, b
    finally:
        for sw in (a, b):
            if os.environ.get("TANDEM_KEEP"):
                print(sw.log("swcfgd"))
            sw.delete()


def reach(pair):
    net.wait_until("h1 to reach h2", lambda: pair[0].hosts["h1"].ping("10.1.0.2"))


def channels(sw):
    """Each port-channel: its flags, and its ports with theirs."""
    rows = re.findall(r"^\d+ +Po(\d+)\((\w+)\) +\S+ *(.*)$", sw.cli("show etherchannel summary"), re.M)
    return {int(n): (flags, re.findall(r"/(\d+)\((\w)\)", ports)) for n, flags, ports in rows}


def sent(sw):
    """Frames that left by either cable."""
    ports = {p["port"]: p for p in sw.api("asicd", "GET", "/v1/ports")["items"]}
    return [ports[p]["counters"]["tx_packets"] for p in (2, 3)]


def once(pair, n, src="h1", at="h2"):
    """A broadcast of a host comes to the other one once, and not back."""
    a, b = pair
    ns = {"h1": a.hosts["h1"].ns, "h2": b.hosts["h2"].ns}
    text = f"number {n:06d}".encode()
    with Wire(ns[src]) as out, Wire(ns[at]) as wire:
        out.send(udp4_frame(ALL, MACS[src], "10.1.0.1", "10.99.0.1", data=text))
        net.wait_until(f"{text!r} at {at}", lambda: wire.caught(lambda f: text in f))
        # what would go round has come again by then
        for _ in range(3):
            a.hosts["h1"].ping("10.1.0.2", check=True)
        assert [len(w.caught(lambda f: text in f)) for w in (out, wire)] == [0, 1]


def cable_is(pair, port, flag):
    """Both know how a cable is."""
    for sw in pair:
        net.wait_until(f"port {port} to be {flag}", lambda s=sw: (str(port), flag) in channels(s)[1][1])


def flooded(sw):
    """Frames that were flooded, and those that were sent for them."""
    row = sw.api("asicd", "GET", "/v1/replication")["items"][0]
    return row["frames"], row["sent"]


def test_two_cables_are_one_link(pair):
    a, b = pair
    reach(pair)
    frames, out = flooded(a)
    for sw in pair:
        assert channels(sw) == {1: ("SU", [("2", "P"), ("3", "P")])}
    once(pair, 1)
    once(pair, 2, "h2", "h1")
    # of each VLAN there is one other port: a port-channel counts once
    now = flooded(a)
    assert now[0] >= frames + 2 and now[1] - out == now[0] - frames
    # stations are behind it, whichever cable they came by
    known = a.cli(f"show mac address-table vlan {VLAN}")
    assert re.search(dotted(MACS["h2"]) + r" +DYNAMIC +Po1$", known, re.M), known
    # flows go by both
    before = sent(a)
    with Wire(a.hosts["h1"].ns) as wire, Wire(b.hosts["h2"].ns) as other:
        for port in range(64):
            wire.send(udp4_frame(MACS["h2"], MACS["h1"], "10.1.0.1", "10.1.0.2", sport=port, data=b"flow"))
        net.wait_until("64 flows", lambda: len(other.caught(lambda f: b"flow" in f)) == 64)
    assert all(now - then >= 10 for now, then in zip(sent(a), before)), "both carry some"
    # a cable is cut, and comes back; the other one
    for n, port in enumerate((2, 3)):
        a.front.ip(f"link set p{port} down")
        left = "3" if port == 2 else "2"
        cable_is(pair, port, "D")
        assert (left, "P") in channels(b)[1][1] and channels(b)[1][0] == "SU"
        reach(pair)
        once(pair, 10 + n)
        a.front.ip(f"link set p{port} up")
        cable_is(pair, port, "P")
        reach(pair)
        once(pair, 20 + n)
    # both: what was behind it is forgotten
    for port in (2, 3):
        a.front.ip(f"link set p{port} down")
    net.wait_until("it to be down", lambda: channels(b)[1][0] == "SD")
    net.wait_until("h1 to be forgotten",
                   lambda: dotted(MACS["h1"]) not in b.cli(f"show mac address-table dynamic vlan {VLAN}"))


def test_it_is_set_as_one_port(pair):
    a, _ = pair
    reach(pair)
    # what is said of it holds for both cables
    a.cli("configure terminal", "interface port-channel 1", "switchport trunk allowed vlan 20")
    assert not a.hosts["h1"].ping("10.1.0.2")
    a.cli("configure terminal", "interface port-channel 1", f"switchport trunk allowed vlan add {VLAN}")
    reach(pair)
    # a station by hand
    station = f"mac address-table static {dotted(MACS['h2'])} vlan {VLAN} interface port-channel 1"
    a.cli("configure terminal", station)
    assert re.search(r"STATIC +Po1$", a.cli("show mac address-table"), re.M)
    once(pair, 1)
    a.cli("configure terminal", f"no {station}")
    # shut down: so are its ports
    a.cli("configure terminal", "interface port-channel 1", "shutdown")
    assert channels(a)[1][0] == "SD" and not a.hosts["h1"].ping("10.1.0.2")
    a.cli("configure terminal", "interface port-channel 1", "no shutdown")
    reach(pair)
    # what can't be is refused, and nothing changes
    before = a.cli("show running-config")
    for commands, why in (
        (["interface swp2", "channel-group 1 mode active"], "speaks no LACP"),
        (["interface swp2", "switchport access vlan 10"], "is in Port-channel1"),
        (["monitor session 1 source interface swp2"], "a monitor session"),
        (["interface swp2", "ip access-group 10 in"], "an access list"),
    ):
        with pytest.raises(AssertionError, match=why):
            a.cli("configure terminal", *commands)
    assert a.cli("show running-config") == before
    once(pair, 2)
    # its end: the cables would be a loop
    a.cli("configure terminal", "no interface port-channel 1")
    status = a.cli("show interfaces status")
    assert len(re.findall(r"^Te1/0/[23] .* disabled ", status, re.M)) == 2, status


def test_the_switch_itself_speaks_over_it(pair):
    """An interface of the VLAN: what the CPU floods leaves once, and what comes by a cable is the port-channel's."""
    a, b = pair
    for sw, own in ((a, "10.1.0.11"), (b, "10.1.0.12")):
        sw.cli("configure terminal", f"interface vlan {VLAN}", f"ip address {own} 255.255.255.0")
    reach(pair)
    net.wait_until("a to reach b", lambda: "!" in a.cli("ping 10.1.0.12 repeat 1 timeout 1"))
    net.wait_until("h1 to reach b", lambda: a.hosts["h1"].ping("10.1.0.12"))
    # who has 10.1.0.77? asked by a, once
    a.ns.sysctl(**{f"ipv4__neigh__vlan{VLAN}__mcast_solicit": 1})
    who = b"\x0a\x01\x00\x4d"
    with Wire(b.hosts["h2"].ns) as wire:
        def asked():
            return wire.caught(lambda f: f[12:14] == b"\x08\x06" and f[38:42] == who)

        a.cli("ping 10.1.0.77 repeat 1 timeout 1")
        net.wait_until("h2 to be asked", asked)
        # what goes by the other cable has come as well by then
        for _ in range(3):
            a.hosts["h1"].ping("10.1.0.2", check=True)
        assert len(asked()) == 1


def test_it_is_one_port_of_the_spanning_tree(pair):
    a, b = pair
    reach(pair)
    for sw, more in ((a, ["spanning-tree priority 4096"]), (b, [])):
        sw.cli("configure terminal", *more, "spanning-tree mode rstp", "interface swp1", "spanning-tree portfast")
    root = r"^Po1 +Root FWD (\d+) +128\.2049 +P2p"
    net.wait_until("b to have its root port", lambda: re.search(root, b.cli("show spanning-tree"), re.M))
    assert "Port        2049 (Port-channel1)" in b.cli("show spanning-tree")
    assert not re.search(r"^Te1/0/[23] ", b.cli("show spanning-tree"), re.M)
    reach(pair)
    once(pair, 1)
    # one cable is half of its speed, and it stays what it is
    def cost():
        found = re.search(root, b.cli("show spanning-tree"), re.M)
        return int(found[1]) if found else 0

    before = cost()
    assert before
    a.front.ip("link set p2 down")
    net.wait_until("it to cost twice as much", lambda: cost() == 2 * before)
    reach(pair)
    once(pair, 2)
    a.front.ip("link set p2 up")
    # apart, they are the tree's: one of two cables discards
    for sw in (a, b):
        sw.cli("configure terminal", "interface range te1/0/2-3", "no channel-group")
    net.wait_until("one to discard", lambda: sorted(b.tree().get(p, ("", ""))[1] for p in (2, 3)) == ["BLK", "FWD"])
    reach(pair)
    once(pair, 3)


def test_swcfgd_is_killed_and_comes_back(pair, folder):
    a, b = pair
    reach(pair)
    for host, other in ((a.hosts["h1"], MACS["h2"]), (b.hosts["h2"], MACS["h1"])):
        address = "10.1.0.2" if other == MACS["h2"] else "10.1.0.1"
        host.ns.ip(f"neigh replace {address} lladdr {other} nud permanent dev eth0")
    before = sum(sent(a))
    stream = traffic.Stream(a.hosts["h1"].ns, b.hosts["h2"].ns, "10.1.0.2", folder, "kill", pps=500, seconds=600)
    net.wait_until("it to flow", lambda: sum(sent(a)) > before + 100)
    for _ in range(2):
        a.kill("swcfgd")
        a.start_swcfgd()
        a.hosts["h1"].ping("10.1.0.2", count=3, interval=0.01, check=True)
    result = stream.finish()
    assert result.count and not result.lost and not result.duplicates, str(result)
    assert channels(a) == {1: ("SU", [("2", "P"), ("3", "P")])}
    once(pair, 1)
    # an empty chip gets it anew
    a.kill("asicd")
    a.start_asicd()
    net.wait_until("its cables", lambda: channels(a) == {1: ("SU", [("2", "P"), ("3", "P")])})
    a.sync()
    reach(pair)
    once(pair, 2)


def test_no_room_in_the_chip(make):
    """More members than the chip has: refused, and all is as it was."""
    sw = ChipSwitch(make.prefix())
    try:
        sw.host("h1", 1, MACS["h1"])
        sw.start()
        before = sw.cli("show running-config")
        with pytest.raises(AssertionError, match="the chip refuses a port-channel: lag-member full"):
            sw.cli("configure terminal", "interface range te1/0/1-5", "channel-group 1 mode on")
        assert sw.cli("show running-config") == before
    finally:
        sw.delete()
