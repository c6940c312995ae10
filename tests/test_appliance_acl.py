# SPDX-License-Identifier: Apache-2.0
"""The appliance's access lists, engine chip.

    a 10.2.0.3 ── port 3, access 2 ─┐
    c 10.2.0.5 ── port 5, access 2 ─┴─ chip ── port 4, access 3 ── b 10.3.0.4
                           vlan2 10.2.0.1, vlan3 10.3.0.1
"""

import re
import time

import pytest

from lib import net
from lib.appliance import ChipSwitch
from lib.packet import Wire, ether, ipv4, udp4_frame

CONFIG: dict = {
    "vlans": {"2": {}, "3": {}},
    "interfaces": {
        "port3": {"access": 2},
        "port4": {"access": 3},
        "port5": {"access": 2},
        "vlan2": {"ipv4": "10.2.0.1/24"},
        "vlan3": {"ipv4": "10.3.0.1/24"},
    },
    "routing": True,
}
MACS = {p: f"02:00:00:00:0a:{p:02x}" for p in (3, 4, 5)}


@pytest.fixture
def switch(make):
    sw = ChipSwitch(make.prefix())
    try:
        for port, name, address in ((3, "a", "10.2.0.3"), (5, "c", "10.2.0.5"), (4, "b", "10.3.0.4")):
            gateway = ".".join([*address.split(".")[:3], "1"])
            sw.host(name, port, MACS[port]).address(f"{address}/24", gateway=gateway)
        sw.start(CONFIG)
        yield sw
    finally:
        print(sw.log("swcfgd"))
        sw.delete()


def reach(sw, host, to):
    net.wait_until(f"{host} to reach {to}", lambda: sw.hosts[host].ping(to))


def met(sw, line):
    """How many packets a line of a list has met."""
    found = re.search(rf"^ +{re.escape(line)}(?: \((\d+) match(?:es)?\))?$", sw.cli("show access-lists"), re.M)
    assert found, sw.cli("show access-lists")
    return int(found[1] or 0)


def config(sw, *lines):
    sw.cli("configure terminal", *lines)


def marked(text):
    return lambda f: text in f


def test_lists_hold_for_what_the_chip_bridges_and_routes(switch):
    sw = switch
    for host, to in (("a", "10.3.0.4"), ("a", "10.2.0.5"), ("b", "10.2.0.5"), ("a", "10.2.0.1")):
        reach(sw, host, to)
    # at a port: bridged, routed, and to the switch itself
    config(sw, "ip access-list extended HOSTS", "deny icmp any host 10.2.0.5 echo", "deny udp any any eq 53",
           "permit ip any any", "interface swp3", "ip access-group HOSTS in")
    assert not sw.hosts["a"].ping("10.2.0.5")
    sw.hosts["a"].ping("10.3.0.4", check=True)
    sw.hosts["b"].ping("10.2.0.5", check=True)
    assert met(sw, "10 deny icmp any host 10.2.0.5 echo") >= 1
    assert met(sw, "30 permit ip any any") >= 1
    with Wire(sw.hosts["a"].ns) as a, Wire(sw.hosts["c"].ns) as c:
        def pieces(port, text):
            """A packet in two pieces: the ports are in the first one."""
            frame = udp4_frame(MACS[5], MACS[3], "10.2.0.3", "10.2.0.5", port, port, data=text * 4)
            packet = bytearray(frame[14:])
            payload = bytes(packet[20:])
            for more, at in ((1, 0), (0, 16)):
                part = payload[at:at + 16] if more else payload[at:]
                a.send(ether(MACS[5], MACS[3], 0x0800, ipv4("10.2.0.3", "10.2.0.5", 17, part,
                                                            flags=more << 13 | at // 8)))

        # behind what is denied comes what is permitted, by the same way
        pieces(53, b"denied 1")
        pieces(54, b"passes 1")
        net.wait_until("two pieces", lambda: len(c.caught(marked(b"passes 1"))) == 2)
        heads = [f for f in c.caught(lambda f: f[12:14] == b"\x08\x00" and f[23:24] == b"\x11") if f[20] & 0x20]
        assert [f[36:38] for f in heads] == [bytes([0, 54])], heads
    config(sw, "interface swp3", "no ip access-group in")
    reach(sw, "a", "10.2.0.5")
    # at a VLAN interface: what is routed out of it, not what is bridged, nor the switch's own
    config(sw, "access-list 10 deny host 10.2.0.3", "access-list 10 permit any",
           "interface vlan 3", "ip access-group 10 out")
    assert not sw.hosts["a"].ping("10.3.0.4")
    for host, to in (("c", "10.3.0.4"), ("b", "10.3.0.1"), ("a", "10.2.0.5")):
        sw.hosts[host].ping(to, check=True)
    sw.ns.exec("ping", "-c", 1, "-W", 5, "10.3.0.4")
    # nor what the kernel routes, as long as the chip does not know the neighbour
    sw.ns.ip("neigh flush dev vlan3")
    assert not sw.hosts["a"].ping("10.3.0.4")
    config(sw, "interface vlan 3", "no ip access-group out", "interface vlan 2", "ip access-group 10 in")
    assert not sw.hosts["a"].ping("10.3.0.4")
    assert not sw.hosts["a"].ping("10.2.0.1")
    for host, to in (("c", "10.3.0.4"), ("c", "10.2.0.1"), ("a", "10.2.0.5")):
        sw.hosts[host].ping(to, check=True)
    # what goes to everybody goes up where the list permits it, and to the ports of the VLAN anyway
    with Wire(sw.hosts["a"].ns) as a, Wire(sw.hosts["c"].ns) as c, Wire(sw.ns, "vlan2") as up:
        for wire, port, text in ((a, 3, b"of a"), (c, 5, b"of c")):
            wire.send(udp4_frame("ff:ff:ff:ff:ff:ff", MACS[port], f"10.2.0.{port}", "10.2.0.255", data=text))
        net.wait_until("c's", lambda: up.caught(marked(b"of c")))
        net.wait_until("a's at c", lambda: c.caught(marked(b"of a")))
        assert not up.caught(marked(b"of a"))
    # of IPv6, with neighbours that nobody has permitted: they are not asked for what they answer either
    for host, address in (("a", "fd02::3/64"), ("c", "fd02::5/64")):
        sw.hosts[host].address(address)
    config(sw, "ipv6 access-list SIX", "permit icmp any any echo-reply", "interface swp3",
           "ipv6 traffic-filter SIX in")
    sw.hosts["c"].ping("fd02::3", check=True)
    assert not sw.hosts["a"].ping("fd02::5")
    sw.hosts["c"].ping("fd02::3", check=True)
    config(sw, "interface swp3", "no ipv6 traffic-filter SIX in")
    reach(sw, "a", "fd02::5")
    # what has no room is refused, and what was there holds
    before = sw.cli("show running-config")
    long = [f"permit tcp host 10.9.0.{n} any" for n in range(1, 12)]
    sw.cli("configure terminal", "ip access-list extended LONG", *long)
    with pytest.raises(AssertionError, match=r"access list.*full \(needs"):
        config(sw, "interface vlan 2", "ip access-group LONG in")
    config(sw, "no ip access-list extended LONG")
    assert sw.cli("show running-config") == before
    assert not sw.hosts["a"].ping("10.3.0.4")
    sw.hosts["c"].ping("10.3.0.4", check=True)
    # kill -9: the chip holds to it, and so does the next one
    sw.cli("write memory")
    sw.config = None
    sw.kill("swcfgd")
    assert not sw.hosts["a"].ping("10.3.0.4")
    sw.start_swcfgd()
    assert not sw.hosts["a"].ping("10.3.0.4")
    sw.hosts["c"].ping("10.3.0.4", check=True)


def test_copies_and_limits(switch):
    """Each frame of a has one copy at c, whoever forwards it; broadcasts of a beyond a limit are dropped."""
    sw = switch
    for host, to in (("a", "10.3.0.4"), ("c", "10.2.0.3")):
        reach(sw, host, to)
    sw.hosts_ask_nobody()
    config(sw, "monitor session 1 source interface swp3", "monitor session 1 destination interface swp5")
    with Wire(sw.hosts["a"].ns) as a, Wire(sw.hosts["b"].ns) as b, Wire(sw.hosts["c"].ns) as c:
        router = sw.links()["Vlan2"]["mac"]
        a.send(udp4_frame(router, MACS[3], "10.2.0.3", "10.3.0.4", data=b"routed 1"))
        # the CPU's: its time to live is over, and an answer comes to a
        a.send(udp4_frame(router, MACS[3], "10.2.0.3", "10.3.0.4", data=b"late 1", ttl=1))
        b.send(udp4_frame(router, MACS[4], "10.3.0.4", "10.2.0.3", data=b"back 1"))
        # each itself, and the ICMP message that quotes it
        for text in (b"routed 1", b"late 1", b"back 1"):
            net.wait_until(f"two of {text!r} at c", lambda text=text: len(c.caught(marked(text))) >= 2)
        sw.hosts["a"].ping("10.2.0.1", check=True)
        sw.sync()
        kinds = [sorted(f[23] for f in c.caught(marked(text))) for text in (b"routed 1", b"late 1", b"back 1")]
        assert kinds == [[1, 17]] * 3, kinds
        # c is in no VLAN
        c.send(udp4_frame("ff:ff:ff:ff:ff:ff", MACS[5], "10.2.0.5", "10.2.0.3", data=b"of c 1"))
        assert not sw.hosts["c"].ping("10.2.0.3")
        assert not a.caught(marked(b"of c 1"))
        config(sw, "no monitor session 1")
        reach(sw, "c", "10.2.0.3")
        # one broadcast each second; what is for one station passes
        config(sw, "interface swp3", "storm-control broadcast level pps 1")
        c.clear()
        began = time.monotonic()
        for _ in range(20):
            a.send(udp4_frame("ff:ff:ff:ff:ff:ff", MACS[3], "10.2.0.3", "10.2.0.255", data=b"storm"))
            a.send(udp4_frame(MACS[5], MACS[3], "10.2.0.3", "10.2.0.5", data=b"behind"))
        net.wait_until("all behind", lambda: len(c.caught(marked(b"behind"))) == 20)
        assert 1 <= len(c.caught(marked(b"storm"))) <= 2 + time.monotonic() - began
        config(sw, "interface swp3", "no storm-control broadcast level")


def test_a_policy_limits_a_class(switch):
    """What is of the class has its rate, what a list denies besides ends, all else passes."""
    sw = switch
    reach(sw, "a", "10.2.0.5")
    config(sw, "access-list 100 permit udp any any eq 2000", "class-map GOLD", "match access-group 100",
           "policy-map IN", "class GOLD", "police 8000 10000", "interface swp3", "service-policy input IN",
           "access-list 101 deny udp any any eq 53", "access-list 101 permit ip any any",
           "interface swp3", "ip access-group 101 in")
    with Wire(sw.hosts["a"].ns) as a, Wire(sw.hosts["c"].ns) as c:
        began = time.monotonic()
        for _ in range(40):
            a.send(udp4_frame(MACS[5], MACS[3], "10.2.0.3", "10.2.0.5", 1, 2000, data=b"gold".ljust(1400)))
            a.send(udp4_frame(MACS[5], MACS[3], "10.2.0.3", "10.2.0.5", 1, 53, data=b"denied"))
            a.send(udp4_frame(MACS[5], MACS[3], "10.2.0.3", "10.2.0.5", 1, 2001, data=b"behind"))
        net.wait_until("all behind", lambda: len(c.caught(marked(b"behind"))) == 40)
        # 10,000 octets at once, and 1,000 each second
        gold = len(c.caught(marked(b"gold")))
        assert 1 <= gold <= (11_500 + 1000 * (time.monotonic() - began)) / 1400, gold
        assert not c.caught(marked(b"denied"))
        counts = re.findall(r"(?:conformed|exceeded) (\d+) packets", sw.cli("show policy-map interface"))
        assert [int(n) for n in counts] == [gold, 40 - gold], counts


def test_lists_of_vlans_on_a_trunk(make):
    """t is in VLAN 2 without a tag, or with one, and in VLAN 3; b in VLAN 3."""
    sw = ChipSwitch(make.prefix(), profile="spectrum-sn2100")
    try:
        sw.host("t", 1, MACS[3])
        sw.host("b", 4, MACS[4]).address("10.3.0.4/24", gateway="10.3.0.1")
        trunk = {"trunk": True, "allowed": [2, 3], "lines": ["switchport trunk native vlan 2"]}
        stations = [{"mac": MACS[3], "vlan": vid, "port": 1} for vid in (2, 3)]
        lists = ["access-list 1 deny host 10.2.0.66", "access-list 1 permit any"]
        sw.start({**CONFIG, "lines": lists, "stations": stations,
                  "interfaces": {**CONFIG["interfaces"], "port1": trunk}})
        for net_ in ("2", "3"):
            sw.ns.ip(f"neigh replace 10.{net_}.0.9 lladdr {MACS[3]} dev vlan{net_}")
        reach(sw, "b", "10.3.0.1")
        router = sw.links()["Vlan2"]["mac"]
        with Wire(sw.hosts["t"].ns) as t, Wire(sw.hosts["b"].ns) as b:
            n = 0

            def passes(wire, to, vid, denied):
                """From t, with this tag: what is denied, and behind it what is not, which comes out at a wire."""
                nonlocal n
                n += 1
                for source in (66, 65):
                    text = f"from {source}, {n:04d}".encode()
                    t.send(udp4_frame(router, MACS[3], f"10.2.0.{source}", to, data=text, vid=vid))
                net.wait_until(f"{text!r}", lambda: wire.caught(marked(text)))
                there = bool(wire.caught(marked(f"from 66, {n:04d}".encode())))
                assert there is not denied, (to, vid, n)
                return wire.caught(marked(text))[-1]

            for vid in (None, 2, 0):
                passes(b, "10.3.0.4", vid, denied=False)
            config(sw, "interface vlan 2", "ip access-group 1 in")
            for vid in (None, 2, 0):
                passes(b, "10.3.0.4", vid, denied=True)
            # another VLAN of the same port
            passes(b, "10.3.0.4", 3, denied=False)
            config(sw, "interface vlan 2", "no ip access-group 1 in", "interface vlan 3", "ip access-group 1 out")
            passes(b, "10.3.0.4", None, denied=True)
            # out by the trunk, with a tag and without
            assert passes(t, "10.3.0.9", None, denied=True)[12:16] == b"\x81\x00\x00\x03"
            assert passes(t, "10.2.0.9", 3, denied=False)[12:14] == b"\x08\x00"
            config(sw, "interface vlan 2", "ip access-group 1 out")
            passes(t, "10.2.0.9", 3, denied=True)
    finally:
        print(sw.log("swcfgd"))
        sw.delete()
