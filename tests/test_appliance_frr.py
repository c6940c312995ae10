# SPDX-License-Identifier: Apache-2.0
"""Routing protocols of the appliance: typed at its console, carried out by FRR, routed by the chip.

    n (FRR, 20.0.0.1) 10.2.0.3 ── port 3, access 2 ─┐
                                                    ├─ swcfgd, FRR ── vlan2 10.2.0.1, vlan3 10.3.0.1
                 a 10.3.0.4 ───── port 4, access 3 ─┘
"""

import json
import re

import pytest

from lib import net
from lib.appliance import ChipSwitch
from lib.frr import Frr

CONFIG: dict = {
    "vlans": {"2": {}, "3": {}},
    "interfaces": {
        "port3": {"access": 2},
        "port4": {"access": 3},
        "vlan2": {"ipv4": "10.2.0.1/24", "lines": ["ip ospf network point-to-point", "ip ospf hello-interval 1",
                                                   "ip ospf dead-interval 120"]},
        "vlan3": {"ipv4": "10.3.0.1/24"},
    },
    "routing": True,
    "lines": ["router ospf 7", " router-id 10.2.0.1", " passive-interface Vlan3", " network 10.2.0.0 0.0.0.255 area 0",
              " network 10.3.0.0 0.0.0.255 area 0",
              "router bgp 65001", " bgp router-id 10.2.0.1", " network 10.3.0.0 mask 255.255.255.0",
              " neighbor 10.2.0.3 remote-as 65002", " neighbor 10.2.0.3 timers 1 180"],
}
OSPF = """\
interface eth0
 ip ospf network point-to-point
 ip ospf hello-interval 1
 ip ospf dead-interval 120
router ospf
 ospf router-id 10.2.0.3
 network 10.2.0.0/24 area 0
 network 20.0.0.1/32 area 0
 timers throttle spf 0 50 100
 timers throttle lsa all 200
 timers lsa min-arrival 0
"""
BGP = """\
router bgp 65002
 bgp router-id 10.2.0.3
 no bgp ebgp-requires-policy
 neighbor 10.2.0.1 remote-as 65001
 neighbor 10.2.0.1 timers connect 1
 address-family ipv4 unicast
  network 30.0.0.1/32
"""
OF_SWITCH = {"zebra": "", "ospfd": "", "bgpd": ""}


@pytest.fixture
def routed(make, folder, routers_available):
    """The switch, its FRR, which does not run yet, and the neighbour's."""
    sw = ChipSwitch(make.prefix())
    both = []
    try:
        for port, name in ((3, "n"), (4, "a")):
            sw.host(name, port)
        n = sw.hosts["n"]
        n.address("10.2.0.3/24")
        n.ns.sysctl(ipv4__ip_forward=1)
        n.ns.ip("addr add 20.0.0.1/32 dev lo")
        n.ns.ip("addr add 30.0.0.1/32 dev lo")
        sw.hosts["a"].address("10.3.0.4/24", gateway="10.3.0.1")
        both += [Frr(sw.ns, folder, "switch"), Frr(n.ns, folder, "n")]
        sw.frr = both[0].folder
        sw.start(CONFIG)
        sw.config = None  # as it is kept
        both[1].start_all({"zebra": "", "ospfd": OSPF, "bgpd": BGP})
        yield sw, *both
    finally:
        for f in both:
            f.stop()
        sw.delete()


def has(sw, command, pattern):
    return re.search(pattern, sw.cli(command), re.M)


def wait_for(sw, command, pattern):
    return net.wait_until(f"{command}: {pattern}", lambda: has(sw, command, pattern))


def routed_by_the_chip(sw):
    return sum(p["counters"]["detail"].get("l3_forwarded", 0) for p in sw.chip("/v1/ports")["items"])


def reaches(sw, address):
    """a reaches it, by the chip."""
    def alone():
        before = routed_by_the_chip(sw)
        return sw.hosts["a"].ping(address) and routed_by_the_chip(sw) >= before + 2

    net.wait_until(f"the chip to route to {address}", alone)


def test_ospf_and_bgp(routed):
    sw, mine, _ = routed
    # without FRR: all is taken, and kept; nothing of it is carried out
    assert "ospfd is not reached" in sw.cli("show ip protocols")
    said = sw.cli("configure terminal", "interface vlan 2", "ip ospf cost 9")
    assert "% ospfd is not reached" in said and "it is told when it comes" in said
    assert "ip ospf cost 9" in sw.cli("show running-config interface vlan 2")
    assert not has(sw, "show ip route", "^[OB] ")
    sw.cli("write memory")

    # it comes, and is told all of it
    mine.start_all(OF_SWITCH)
    wait_for(sw, "show ip ospf neighbor", r"^10\.2\.0\.3 +\d+ +FULL/  - +00:0\d:\d\d +10\.2\.0\.3 +Vlan2$")
    wait_for(sw, "show ip route", r"^O +20\.0\.0\.1(/32)? \[110/9\] via 10\.2\.0\.3, [\d:]+, Vlan2$")
    wait_for(sw, "show ip route", r"^B +30\.0\.0\.1(/32)? \[20/0\] via 10\.2\.0\.3, [\d:]+, Vlan2$")
    assert has(sw, "show ip bgp summary", r"^10\.2\.0\.3 +4 +65002 +\d+ +\d+ +\d+ +0 +0 [\d:]+ +1$")
    assert has(sw, "show ip bgp", r"^ \*>  30\.0\.0\.1/32 +10\.2\.0\.3 +0 +0 65002 i$")
    assert has(sw, "show ip ospf interface brief", r"^Vl2 +7 +0 +10\.2\.0\.1/24 +9 +P2P +1/1$")
    assert has(sw, "show ip ospf database", r"\(Process ID 7\)")
    reaches(sw, "20.0.0.1")
    reaches(sw, "30.0.0.1")
    said = sw.cli("ping 20.0.0.1 source vlan 3 repeat 3 timeout 60", "traceroute 20.0.0.1 probe 1 timeout 60",
                  "ping 10.2.0.99 repeat 1 timeout 0")
    assert re.search(r"of 10\.3\.0\.1 \n!!!\nSuccess rate is 100 percent \(3/3\), round-trip min/avg/max = ", said)
    assert re.search(r"^  1 20\.0\.0\.1 \d+ msec $", said, re.M)
    assert said.endswith("\n.\nSuccess rate is 0 percent (0/1)\n")

    assert has(sw, "show ip arp", r"^Internet  10\.2\.0\.3 +\d+ +[\da-f.]{14}  ARPA   Vlan2$")
    routes = json.loads(sw.cli("show ip route | json"))["routes"]
    assert [r["next_hops"] for r in routes if r["code"] == "O" and r["prefix"] == "20.0.0.1/32"] == [
        [{"gateway": "10.2.0.3", "interface": "Vlan2"}]]

    # what FRR refuses has not happened, in any of its daemons
    running, is_set = sw.cli("show running-config"), mine.vty("show running-config")
    with pytest.raises(AssertionError, match="ospfd: .*remove all network commands first"):
        sw.cli("configure terminal", "interface vlan 3", "ip ospf 7 area 0")
    with pytest.raises(AssertionError, match="bgpd: .*Not an internal neighbor"):
        sw.cli("configure terminal", "router bgp 65001", "neighbor 10.2.0.3 route-reflector-client")
    assert sw.cli("show running-config") == running
    assert mine.vty("show running-config") == is_set

    # who is told routes stays so where it becomes the exception
    sw.cli("configure terminal", "router bgp 65001", "no bgp default ipv4-unicast")
    assert has(sw, "show running-config", r"^ neighbor 10\.2\.0\.3 activate$")
    assert has(sw, "show ip route", "^B ")

    # a new swcfgd finds it as it is to be, and changes nothing: the session goes on
    sw.cli("write memory")
    running, is_set = sw.cli("show running-config"), mine.vty("show running-config")
    up = wait_for(sw, "show ip bgp neighbors", r"Connections established (\d+); dropped (\d+)").groups()
    sw.kill("swcfgd")
    assert sw.hosts["a"].ping("20.0.0.1")
    sw.start_swcfgd()
    assert sw.cli("show running-config") == running and mine.vty("show running-config") == is_set
    assert has(sw, "show ip bgp neighbors", r"Connections established (\d+); dropped (\d+)").groups() == up
    assert has(sw, "show ip route", r"^O +20\.0\.0\.1")

    # sessions begin anew where that is asked for
    sw.cli("clear ip bgp *")

    def anew():
        # both ends connect: it may be more than one of each
        found = has(sw, "show ip bgp neighbors", r"Connections established (\d+); dropped (\d+)")
        established, dropped = (int(n) for n in found.groups()) if found else (0, 0)
        return established > int(up[0]) and dropped > int(up[1]) and established > dropped

    net.wait_until("a new session of BGP", anew)

    # a new ospfd has nothing, and is told all of it again
    mine.kill("ospfd")
    net.wait_until("swcfgd to see it", lambda: "ospfd is not reached" in sw.cli("show ip protocols"))
    mine.start_all({"ospfd": ""})
    wait_for(sw, "show ip route", r"^O +20\.0\.0\.1(/32)? \[110/9\] via 10\.2\.0\.3")
    reaches(sw, "20.0.0.1")

    # what goes, goes there
    sw.cli("configure terminal", "no router ospf 7", "no router bgp 65001")
    assert "router " not in mine.vty("show running-config")
    net.wait_until("the routes to go", lambda: not has(sw, "show ip route", "^[OB] "))

    # and what was kept comes again
    sw.cli("clear arp-cache", "reload", "no", "")
    assert sw.cli("show running-config") == running
    assert "router ospf" in mine.vty("show running-config")
