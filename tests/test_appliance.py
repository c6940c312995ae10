# SPDX-License-Identifier: Apache-2.0
"""The appliance, engine chip: VLANs of a database that the kernel does not have, routed by TAPs that it has.

    t1 ── port 1, trunk 1 and 2 ─┐        ┌─ port 3, access 2 ── a 10.2.0.3
                                 ├─ chip ─┤
    t2 ── port 2, trunk 1 and 3 ─┘        └─ port 4, access 3 ── b 10.3.0.4
                           vlan2 10.2.0.1, vlan3 10.3.0.1

Without 8021q in the kernel the hosts of trunks speak by hand.
"""

import copy
import os
import re
import signal
import time

import pytest

from lib import appliance, net, traffic
from lib.appliance import ChipSwitch
from lib.packet import ETH_ARP, ETH_IP, Wire, arp, ether, icmp_echo, ipv4, udp4_frame

SEED: dict = {
    "vlans": {"2": {}, "3": {}},
    "interfaces": {
        "port1": {"trunk": True, "allowed": [1, 2]},
        "port2": {"trunk": True, "allowed": [1, 3]},
        "port3": {"access": 2},
        "port4": {"access": 3},
        "vlan2": {"ipv4": "10.2.0.1/24"},
        "vlan3": {"ipv4": "10.3.0.1/24"},
    },
    "routing": True,
    "tag_native": True,
}
MACS = {p: f"02:00:00:00:0a:{p:02x}" for p in (1, 2, 3, 4)}
ALL = "ff:ff:ff:ff:ff:ff"


@pytest.fixture
def switch(make):
    sw = ChipSwitch(make.prefix())
    try:
        for port, name in ((1, "t1"), (2, "t2"), (3, "a"), (4, "b")):
            sw.host(name, port, MACS[port])
        sw.hosts["a"].address("10.2.0.3/24", gateway="10.2.0.1")
        sw.hosts["b"].address("10.3.0.4/24", gateway="10.3.0.1")
        sw.start(SEED)
        yield sw
    finally:
        if os.environ.get("TANDEM_KEEP"):
            print(sw.log("swcfgd"))
        sw.delete()


def until_the_chip_routes(sw):
    """a reaches b, and no packet of it comes to the CPU any more."""
    a = sw.hosts["a"]
    net.wait_until("a to reach b", lambda: a.ping("10.3.0.4"))
    sw.hosts_ask_nobody()

    def alone():
        before = sw.trapped()
        a.ping("10.3.0.4", check=True)
        now = sw.trapped()
        routed = ("unresolved", "connected", "lpm_miss", "route", "fdb_incomplete")
        return all(now.get(r, 0) == before.get(r, 0) for r in routed)

    net.wait_until("the chip to route without the CPU", alone)


def routed_by_the_chip(sw):
    """Frames that the chip has routed, of all ports, and frames that came to the CPU."""
    ports = sw.api("asicd", "GET", "/v1/ports")["items"]
    return sum(p["counters"]["detail"].get("l3_forwarded", 0) for p in ports)


def test_the_seeds_example(switch):
    until_the_chip_routes(switch)
    before = routed_by_the_chip(switch)
    switch.hosts["a"].ping("10.3.0.4", count=5, interval=0.01, check=True)
    assert routed_by_the_chip(switch) - before >= 10
    known = switch.stations()
    assert known[(2, MACS[3])] == 3 and known[(3, MACS[4])] == 4, known
    links = switch.links()
    assert links["Vlan2"]["mac"] in switch.ns.ip("link show vlan2") and links["Vlan2"]["carrier"], links
    assert links["Vlan2"]["mac"] == links["Vlan3"]["mac"]
    assert len([n for n in links if "Ethernet" in n or "Gig" in n]) == len(switch.chip("/v1/ports")["items"])


def marked(text):
    return lambda f: text in f


def copies_of(wires, text):
    """What each wire has caught of a frame with this text: how often, and with which tags."""
    def tag(f):
        return int.from_bytes(f[14:16], "big") & 0xfff if f[12:14] == b"\x81\x00" else 0

    return {p: [tag(f) for f in w.caught(marked(text))] for p, w in wires.items()}


def test_a_broadcast_is_everywhere_once(switch):
    """Flooded by the chip, with a copy to the CPU, which must not be flooded once more."""
    until_the_chip_routes(switch)
    sw = switch
    wires = {p: Wire(sw.hosts[h].ns) for p, h in ((1, "t1"), (2, "t2"), (3, "a"), (4, "b"))}
    try:
        n = 0

        def once(port, vid, tagged, dst, wanted):
            nonlocal n
            n += 1
            text = f"number {n:06d}".encode()
            wires[port].send(udp4_frame(dst, MACS[port], f"10.{vid}.0.99", "10.99.0.1", data=text,
                                        vid=vid if tagged else None))
            # a frame behind it, by the same port, which arrives: nothing of the first is under way in the chip then
            vid, tagged, to = {1: (2, True, 3), 2: (1, True, 1), 3: (2, False, 1), 4: (3, False, 2)}[port]
            behind = f"behind {n:06d}".encode()
            wires[port].send(udp4_frame(ALL, MACS[port], f"10.{vid}.0.99", "10.99.0.1", data=behind,
                                        vid=vid if tagged else None))
            net.wait_until(f"{behind!r} at port {to}", lambda: wires[to].caught(marked(behind)))
            wanted = {p: [] for p in wires} | wanted
            net.wait_until(f"{text!r} at {wanted}", lambda: copies_of(wires, text) == wanted)
            # what the CPU would send of it has left when its answer to a later question has come
            sw.hosts["a"].ping("10.2.0.1", check=True)
            sw.sync()
            assert copies_of(wires, text) == wanted

        once(3, 2, False, ALL, {1: [2]})
        once(1, 2, True, ALL, {3: [0]})
        once(4, 3, False, ALL, {2: [3]})
        once(1, 1, True, ALL, {2: [1]})
        once(2, 1, True, ALL, {1: [1]})
        # not in that VLAN
        once(1, 3, True, ALL, {})
        # nobody knows this one, and everybody gets it
        once(3, 2, False, "02:00:00:00:0b:0b", {1: [2]})
        # a link's own stays there, the spanning tree's passes where there is none
        once(3, 2, False, "01:80:c2:00:00:0e", {})
        once(3, 2, False, "01:80:c2:00:00:00", {1: [2]})
        # what the router itself asks is in its VLAN alone, with the tags of each port
        sw.ns.exec("ping", "-c", 1, "-W", 1, "10.2.0.77", check=False)
        asked = bytes([10, 2, 0, 77])
        net.wait_until("the router's question", lambda: copies_of(wires, asked)[1])

        def each_alike():
            # a question may be on its way to the second of its ports
            found = copies_of(wires, asked)
            assert set(found[1]) == {2} and set(found[3]) <= {0} and not found[2] and not found[4], found
            return len(found[1]) == len(found[3])

        net.wait_until("each question at both ports", each_alike)
    finally:
        for w in wires.values():
            w.close()


def test_what_is_routed_back_into_its_vlan_goes_once(switch):
    """The chip routes it, and gives a copy to the CPU for an ICMP redirect: the kernel must not route that as well."""
    sw = switch
    now = copy.deepcopy(SEED)
    now["routes"] = [{"to": "10.77.0.0/16", "via": "10.2.0.3"}]
    sw.apply(now)
    until_the_chip_routes(sw)
    router = sw.links()["Vlan2"]["mac"]
    with Wire(sw.hosts["t1"].ns) as t1, Wire(sw.hosts["a"].ns) as a:
        def send(text):
            t1.send(udp4_frame(router, MACS[1], "10.2.0.11", "10.77.0.1", data=text, vid=2))
            net.wait_until(f"{text} at a", lambda: a.caught(marked(text)))
            sw.hosts["a"].ping("10.2.0.1", check=True)
            sw.sync()
            return len(a.caught(marked(text)))

        before = sw.trapped().get("redirect", 0)
        for n in range(10):
            assert send(f"back {n:06d}".encode()) == 1
        assert sw.trapped().get("redirect", 0) >= before + 10, "the chip has routed them"


def test_a_tagged_host_is_routed(switch):
    """t1 in VLAN 2, by its trunk, pings b."""
    sw = switch
    until_the_chip_routes(sw)
    router = sw.links()["Vlan2"]["mac"]
    with Wire(sw.hosts["t1"].ns) as wire:
        ask = arp(1, MACS[1], "10.2.0.11", "00:00:00:00:00:00", "10.2.0.1")
        wire.send(ether(ALL, MACS[1], ETH_ARP, ask, vid=2))
        mac = bytes.fromhex(router.replace(":", ""))

        def answers():
            return wire.caught(lambda f: f[16:18] == b"\x08\x06" and f[26:32] == mac)

        net.wait_until("the router's answer", answers)
        seq = 0

        def answered():
            nonlocal seq
            seq += 1
            echo = icmp_echo(7, seq, data=f"t1 {seq:06d}".encode())
            wire.send(ether(router, MACS[1], ETH_IP, ipv4("10.2.0.11", "10.3.0.4", 1, echo), vid=2))
            time.sleep(0.05)
            # the router may ask who 10.2.0.11 is
            for f in wire.caught(lambda f: f[16:18] == b"\x08\x06" and f[42:46] == bytes([10, 2, 0, 11])):
                wire.send(ether(router, MACS[1], ETH_ARP, arp(2, MACS[1], "10.2.0.11", router, "10.2.0.1"), vid=2))
            return wire.caught(marked(b"t1 "))

        net.wait_until("an answer from b", answered)
        assert wire.caught(marked(b"t1 "))[0][14:16] == b"\x00\x02"


def test_swcfgd_is_killed_and_comes_back(switch, folder):
    """kill -9: the chip forwards on; the next one takes the TAPs over, and loses nothing."""
    sw = switch
    until_the_chip_routes(sw)
    links = sw.ns.ip("-o link show")
    stations = sw.stations()
    stream = traffic.Stream(sw.hosts["a"].ns, sw.hosts["b"].ns, "10.3.0.4", folder, "kill", pps=500, seconds=600)
    for _ in range(3):
        sw.kill("swcfgd")
        # nobody is there, and pings pass
        sw.hosts["a"].ping("10.3.0.4", count=3, interval=0.01, check=True)
        sw.start_swcfgd()
        sw.hosts["a"].ping("10.3.0.4", count=3, interval=0.01, check=True)
    result = stream.finish()
    assert result.count and not result.lost and not result.duplicates, str(result)
    # the same devices: number, MAC, state
    assert sw.ns.ip("-o link show") == links
    assert stations.items() <= sw.stations().items()
    until_the_chip_routes(sw)


def test_asicd_is_killed_and_comes_back(switch):
    sw = switch
    until_the_chip_routes(sw)
    was = number(sw, "vlan2")
    sw.kill("asicd")
    sw.start_asicd()
    until_the_chip_routes(sw)
    assert number(sw, "vlan2") == was
    # one that is away for long takes the carriers with it
    sw.kill("asicd")
    net.wait_until("no carrier", lambda: not carrier(sw, "vlan2") and not carrier(sw, "vlan3"))
    sw.start_asicd()
    net.wait_until("carrier again", lambda: carrier(sw, "vlan2") and carrier(sw, "vlan3"))
    until_the_chip_routes(sw)
    # the new one keeps what the old one kept
    sw.kill("swcfgd")
    sw.start_swcfgd()
    assert number(sw, "vlan2") == was
    until_the_chip_routes(sw)


def number(sw, device):
    return sw.ns.ip("-o link show", device).split(":")[0]


def test_what_is_set_without_a_chip_is_there_when_it_comes(switch):
    sw = switch
    until_the_chip_routes(sw)
    sw.kill("asicd")
    now = copy.deepcopy(SEED)
    now["vlans"]["7"] = {}
    now["interfaces"]["port3"] = {"access": 7}
    now["interfaces"]["vlan7"] = {"ipv4": "10.7.0.1/24"}
    sw.apply(now)
    was = number(sw, "vlan7")
    sw.start_asicd()
    sw.hosts["a"].address("10.7.0.3/24")
    net.wait_until("a to reach its router", lambda: sw.hosts["a"].ping("10.7.0.1"))
    # the chip that was not there when it was made keeps it
    sw.kill("swcfgd")
    sw.start_swcfgd()
    assert number(sw, "vlan7") == was
    sw.hosts["a"].ping("10.7.0.1", check=True)
    # nobody is there: whoever starts first waits for the other
    sw.kill("swcfgd")
    sw.kill("asicd")
    net.wait_until("nothing to be left", lambda: "vlan" not in sw.ns.ip("-o link show"))
    sw.config = SEED
    sw.launch_swcfgd()
    net.wait_until("it to wait", lambda: "waiting" in sw.log("swcfgd"))
    sw.start_asicd()
    sw.wait_for_swcfgd()
    until_the_chip_routes(sw)


def carrier(sw, device):
    return "LOWER_UP" in sw.ns.ip("-o link show", device)


def test_carrier_follows_the_ports(switch):
    sw = switch
    net.wait_until("carrier at both", lambda: carrier(sw, "vlan2") and carrier(sw, "vlan3"))
    sw.hosts["b"].ns.ip("link set eth0 down")
    sw.hosts["t2"].ns.ip("link set eth0 down")
    net.wait_until("no carrier without ports", lambda: not carrier(sw, "vlan3"))
    assert carrier(sw, "vlan2")
    assert not sw.links()["Vlan3"]["carrier"]
    # what was behind them is not there any more
    assert (3, MACS[4]) not in sw.stations()
    sw.hosts["b"].ns.ip("link set eth0 up")
    net.wait_until("carrier again", lambda: carrier(sw, "vlan3"))
    # a port that is shut down, and a VLAN that is suspended, are none
    now = copy.deepcopy(SEED)
    now["interfaces"]["port4"]["shutdown"] = True
    sw.apply(now)
    net.wait_until("no carrier behind a port that is shut down", lambda: not carrier(sw, "vlan3"))
    sw.apply(SEED)
    net.wait_until("carrier once more", lambda: carrier(sw, "vlan3"))
    sw.hosts["b"].ns.ip("route replace default via 10.3.0.1")
    until_the_chip_routes(sw)


def test_ipv6_where_it_is_set(switch):
    sw = switch
    assert sw.ns.read("/proc/sys/net/ipv6/conf/vlan2/disable_ipv6") == "1"
    now = copy.deepcopy(SEED)
    now["interfaces"]["vlan2"]["ipv6"] = ["fd02::1/64"]
    now["interfaces"]["vlan3"]["ipv6"] = ["fd03::1/64"]
    sw.apply(now)
    sw.hosts["a"].address("fd02::3/64", gateway6="fd02::1")
    sw.hosts["b"].address("fd03::4/64", gateway6="fd03::1")
    net.wait_until("a to reach b", lambda: sw.hosts["a"].ping("fd03::4"))
    sw.hosts_ask_nobody()

    def routed():
        return sum(p["counters"]["detail"].get("l3_forwarded", 0) for p in sw.chip("/v1/ports")["items"])

    def by_the_chip():
        before = routed()
        sw.hosts["a"].ping("fd03::4", check=True)
        return routed() >= before + 2

    net.wait_until("the chip to route it", by_the_chip)
    sw.apply(SEED)
    assert "fd0" not in sw.ns.ip("-6 -o addr show")
    until_the_chip_routes(sw)


def in_chip(sw):
    """How many VLANs and how many router interfaces the chip has."""
    return tuple(len(sw.chip(f"/v1/table/{table}")["items"]) for table in ("vlans", "rifs"))


def test_an_interface_comes_and_goes(switch):
    """With its VLAN and without, time and again; the device's name is free at once."""
    sw = switch
    without = copy.deepcopy(SEED)
    del without["interfaces"]["vlan3"]
    later = copy.deepcopy(SEED)
    del later["vlans"]["3"]
    for _ in range(5):
        until_the_chip_routes(sw)
        for config, there in ((without, False), (SEED, True), (later, True)):
            sw.apply(config)
            assert ("vlan3" in sw.ns.ip("-o link show")) == there
            sw.sync()
            # and the chip has what is configured, and nothing of what is gone
            assert in_chip(sw) == (len(config["vlans"]) + 1, 2 if config is SEED else 1)
        # an interface whose VLAN is not there has no carrier
        net.wait_until("no carrier", lambda: not carrier(sw, "vlan3"))
        sw.apply(SEED)
    until_the_chip_routes(sw)


def test_stations_are_forgotten(switch):
    sw = switch
    for host in sw.hosts.values():  # nobody says anything unasked
        host.ns.sysctl(ipv6__conf__all__disable_ipv6=1)
    until_the_chip_routes(sw)

    def known():
        """Hosts of which the database knows, and the chip."""
        sw.sync()
        there = sw.stations()
        chip = {row["mac"] for row in sw.chip("/v1/table/fdb")["items"]}
        return {p for p in (3, 4) if (p - 1, MACS[p]) in there and MACS[p] in chip}

    net.wait_until("both to be known", lambda: known() == {3, 4})
    sw.cli("clear mac address-table dynamic vlan 3")
    assert known() == {3}
    until_the_chip_routes(sw)
    assert known() == {3, 4}
    sw.cli("clear mac address-table dynamic interface swp3")
    assert known() == {4}
    # what is no command is answered in words, and the next one as ever
    for wrong in ("clear mac address-table dynamic vlan 4095", "clear mac address-table dynamic interface swp9",
                  "clear mac", "x" * 2000, "show vlan id x", "\x00\x1b[6n"):
        with pytest.raises(AssertionError, match="%"):
            sw.cli(stdin=wrong + "\n")
    until_the_chip_routes(sw)


def state(sw):
    """What the kernel and the chip have of the configuration."""
    addresses = sorted(line.split(" scope ")[0].split(None, 1)[1] for line in
                       sw.ns.ip("-o -4 addr show").splitlines() if "vlan" in line)
    routes = sorted(r.strip() for r in sw.ns.ip("-4 route show").splitlines() if "proto kernel" not in r)
    sw.sync()
    chip = [sorted(map(str, sw.chip(f"/v1/table/{table}")["items"])) for table in ("vlans", "members")]
    settings = [sw.ns.read(f"/proc/sys/net/{name}") for name in (
        "ipv4/ip_forward", "ipv6/conf/all/forwarding", "ipv6/conf/vlan2/disable_ipv6", "ipv6/conf/vlan3/disable_ipv6")]
    # its number is another one when it was made anew, and its carrier comes a moment later
    links = sorted(re.findall(r": (vlan\d+): <.*[<,](UP)\b.* (mtu \d+) ", sw.ns.ip("-o link show")))
    return addresses, routes, chip, in_chip(sw), settings, links


def refused(sw, config, words):
    was = state(sw)
    with pytest.raises(AssertionError, match=words):
        sw.apply(config)
    assert state(sw) == was


def test_all_or_nothing(switch):
    sw = switch
    until_the_chip_routes(sw)
    # the kernel refuses: there is another device of that name
    sw.ns.ip("link add vlan1 type veth peer name other")
    now = copy.deepcopy(SEED)
    del now["interfaces"]["vlan3"]
    now["interfaces"]["port4"] = {"access": 2}
    now["interfaces"]["vlan2"]["ipv4"] = "10.22.0.1/24"
    now["interfaces"]["vlan1"] = {"ipv4": "10.1.0.1/24"}
    now["routing"] = False
    refused(sw, now, "vlan1.*interface of this name")
    sw.ns.ip("link del vlan1")
    until_the_chip_routes(sw)
    # the chip refuses: it has four VLANs
    now = copy.deepcopy(SEED)
    for vid in (4, 5, 6):
        now["vlans"][str(vid)] = {}
    now["interfaces"]["port1"]["allowed"] = [1, 2, 4, 5, 6]
    now["interfaces"]["vlan2"]["secondary"] = ["10.44.0.1/24"]
    now["routes"] = [{"to": "10.77.0.0/16", "via": "10.2.0.3"}]
    refused(sw, now, "the chip refuses Vlan .*full")
    until_the_chip_routes(sw)
    # words before anything is done
    for change, words in (
            ({"port9": {}}, r'line \d+: interface swp9: Invalid input at "swp9"'),
            ({"port1": {"routed": True}}, "no routed ports"),
            ({"vlan4095": {}}, r'interface vlan 4095: Invalid input at "4095"'),
            ({"vlan9": {"ipv4": "10.2.0.129/25"}}, "10.2.0.0 overlaps with Vlan2"),
            ({"port1": {"mtu": 67}}, r'mtu 67: Invalid input at "67"')):
        now = copy.deepcopy(SEED)
        now["interfaces"].update(change)
        refused(sw, now, words)
    until_the_chip_routes(sw)


def test_what_is_refused_at_the_start_is_left_out_alone(switch):
    """One line of a startup-config, by the kernel: without the others all ports would be in VLAN 1."""
    sw = switch
    until_the_chip_routes(sw)
    sw.kill("swcfgd")
    sw.ns.ip("link add vlan1 type veth peer name other")
    now = copy.deepcopy(SEED)
    now["interfaces"] = {"vlan1": {"ipv4": "10.1.0.1/24"}, **now["interfaces"]}
    sw.config = now
    sw.start_swcfgd()
    assert re.search(r"line \d+: interface vlan 1: .*interface of this name", sw.log("swcfgd")), sw.log("swcfgd")
    until_the_chip_routes(sw)
    shown = sw.cli("show running-config")
    assert "interface Vlan3" in shown and "interface Vlan1\n" not in shown and "10.1.0.1" not in shown, shown


def test_more_interfaces_than_asicd_keeps(switch):
    """Those beyond are not kept; that is no reason to do without the chip when it comes back."""
    sw = switch
    until_the_chip_routes(sw)
    now = copy.deepcopy(SEED)
    # VLANs that are not there: an interface may come first
    for vid in range(100, 370):
        now["interfaces"][f"vlan{vid}"] = {}
    sw.apply(now)
    assert "vlan369 is not kept" in sw.log("swcfgd")
    sw.kill("asicd")
    sw.start_asicd()
    until_the_chip_routes(sw)
    assert "no ASIC: no room to keep" not in sw.log("swcfgd"), sw.log("swcfgd")
    # the kernel needs its time for each that goes, and who ends the test gives it none
    for vid in range(100, 370):
        sw.ns.ip("link del", f"vlan{vid}")


def test_what_was_not_saved_is_gone_after_a_kill(switch):
    """Whatever swcfgd was about: the next one makes the kernel and the chip be as its configuration says."""
    sw = switch
    until_the_chip_routes(sw)
    was = state(sw)
    other = copy.deepcopy(SEED)
    del other["interfaces"]["vlan3"]
    other["vlans"]["7"] = {}
    other["interfaces"]["port4"] = {"access": 7}
    other["interfaces"]["vlan7"] = {"ipv4": "10.7.0.1/24", "ipv6": ["fd07::1/64"]}
    other["interfaces"]["vlan2"]["ipv4"] = "10.22.0.1/24"
    other["routing"] = False
    other["routes"] = [{"to": "10.77.0.0/16"}]
    for delay in (None, 0, 0.002, 0.02, 0.05):  # None: it is done
        if delay is None:
            sw.apply(other)
            sw.kill("swcfgd")
        else:
            sw.keep(other, "wanted")
            asked = sw.begin("configure replace wanted force")
            time.sleep(delay)
            sw.kill("swcfgd")
            asked.wait(net.PATIENCE)
        sw.config = SEED
        sw.start_swcfgd()
        assert state(sw) == was
        assert "vlan7" not in sw.ns.ip("-o link show")
    until_the_chip_routes(sw)


def test_what_has_no_room_goes_by_the_cpu(switch):
    """A startup configuration with more VLANs than the chip has: all of it works, and more can be configured."""
    sw = switch
    sw.kill("swcfgd")
    now = copy.deepcopy(SEED)
    for vid in (4, 5, 6, 7):
        now["vlans"][str(vid)] = {}
    now["interfaces"]["port1"] = {"trunk": True}
    now["interfaces"]["port3"] = now["interfaces"]["port4"] = {"access": 7}
    now["interfaces"]["vlan7"] = {"ipv4": "10.7.0.1/24"}
    sw.config = now
    sw.start_swcfgd()
    a, b = sw.hosts["a"], sw.hosts["b"]
    a.address("10.7.0.3/24")
    b.address("10.7.0.4/24")
    with Wire(sw.hosts["t1"].ns) as t1:
        net.wait_until("a to reach b", lambda: a.ping("10.7.0.4"))
        a.ping("10.7.0.1", check=True)
        assert sw.stations().items() >= {(7, MACS[3]): 3, (7, MACS[4]): 4}.items()
        # known ones are not flooded; a broadcast is, with the VLAN's tag
        t1.clear()
        a.ping("10.7.0.4", count=3, interval=0.01, check=True)
        a.ns.exec("ping", "-c", 1, "-W", 1, "10.7.0.99", check=False)
        wanted = bytes([10, 7, 0, 99])
        net.wait_until("the question at t1", lambda: t1.caught(marked(wanted)))
        assert {f[14:16] for f in t1.caught(marked(wanted))} == {b"\x00\x07"}
        assert not t1.caught(marked(bytes([10, 7, 0, 3, 10, 7, 0, 4])))
    now = copy.deepcopy(now)
    now["vlans"]["2"]["name"] = "office"
    sw.apply(now)
    now["vlans"]["8"] = {}
    with pytest.raises(AssertionError, match="the chip refuses"):
        sw.apply(now)
    sw.apply(SEED)
    until_the_chip_routes(sw)


def test_routes_and_stations(switch):
    sw = switch
    until_the_chip_routes(sw)
    now = copy.deepcopy(SEED)
    now["routes"] = [{"to": "10.77.0.0/16", "via": "10.3.0.4"}, {"to": "10.78.0.0/16"},
                     {"to": "10.79.0.0/16", "via": "10.9.0.9", "distance": 200}]
    now["stations"] = [{"vlan": 2, "mac": "02:00:00:00:0c:0c", "port": 1}]
    sw.apply(now)
    routes = sw.ns.ip("route show proto 84")
    assert "10.77.0.0/16 via 10.3.0.4 dev vlan3" in routes and "blackhole 10.78.0.0/16" in routes, routes
    assert "10.79" not in routes, "no link leads to its gateway"
    sw.hosts["b"].ns.ip("addr add 10.77.0.1/32 dev lo")
    net.wait_until("a reaches what is behind b", lambda: sw.hosts["a"].ping("10.77.0.1"))
    assert sw.stations()[(2, "02:00:00:00:0c:0c")] == 1
    text = b"to a station set by hand"
    wires = {p: Wire(sw.hosts[h].ns) for p, h in ((1, "t1"), (2, "t2"))}
    try:
        wires[2].send(udp4_frame("02:00:00:00:0c:0c", MACS[2], "10.3.0.9", "10.99.0.1", vid=3))
        with Wire(sw.hosts["a"].ns) as a:
            a.send(udp4_frame("02:00:00:00:0c:0c", MACS[3], "10.2.0.9", "10.99.0.1", data=text))
        net.wait_until("it at port 1", lambda: copies_of(wires, text) == {1: [2], 2: []})
    finally:
        for w in wires.values():
            w.close()
    # a link leads to the gateway now, and the interface that a route left by comes back with it
    now = copy.deepcopy(now)
    now["interfaces"]["vlan2"]["secondary"] = ["10.9.0.1/24"]
    now["interfaces"]["vlan3"]["shutdown"] = True
    sw.apply(now)
    routes = sw.ns.ip("route show proto 84")
    assert "10.79.0.0/16 via 10.9.0.9 dev vlan2 metric 200" in routes and "10.77" not in routes, routes
    del now["interfaces"]["vlan3"]["shutdown"]
    sw.apply(now)
    assert "10.77.0.0/16 via 10.3.0.4 dev vlan3" in sw.ns.ip("route show proto 84")
    # a restart leaves what is wanted, and takes what is not
    sw.kill("swcfgd")
    sw.config = SEED
    sw.start_swcfgd()
    assert not sw.ns.ip("route show proto 84").strip()
    assert "10.9.0.1" not in sw.ns.ip("-o addr show")
    assert (2, "02:00:00:00:0c:0c") not in sw.stations()
    until_the_chip_routes(sw)


def test_what_lies_below_is_shown(switch):
    """show platform: full or not, what floods cost, and why something is where it is."""
    sw = switch
    until_the_chip_routes(sw)
    rows = re.findall(r"^(\S.*?) +(\d+) +(\d+) +(\d+)$", sw.cli("show platform resources"), re.M)
    pools = {p["name"]: (p["used"], p["free"], p["size"]) for p in sw.api("asicd", "GET", "/v1/resources")["items"]}
    assert {name: tuple(map(int, rest)) for name, *rest in rows} == pools

    def cost():
        return {k: int(n) for k, n in re.findall(r"^(\S.*?)  +(\d+)$", sw.cli("show platform replication"), re.M)}

    def flooded(port, vid, tagged):
        before = cost()
        with Wire(sw.hosts[{1: "t1", 3: "a"}[port]].ns) as wire:
            wire.send(udp4_frame(ALL, MACS[port], "10.2.0.99", "10.99.0.1", data=b"x", vid=vid if tagged else None))
            net.wait_until("the flood to be counted", lambda: cost()["Frames flooded"] > before["Frames flooded"])
        now = cost()
        return {k: now[k] - before[k] for k in now}

    for host in sw.hosts.values():  # nobody else says anything
        host.ns.sysctl(ipv6__conf__all__disable_ipv6=1)
    # from port 3, untagged, to the trunk: one tag put on, by either
    one = flooded(3, 2, False)
    would = "Bridge and VLAN interfaces would change"
    assert one["Frames sent for them"] == one["Tags changed"] == one[would] == 1, one
    # from a trunk to the other one, in VLAN 1: as it is, where VLAN interfaces take the tag off and put one on
    one = flooded(1, 1, True)
    assert one["Tags changed"] == 0 and one[would] == 2, one
    said = sw.cli("show platform why neighbor 10.3.0.4")
    assert re.search(r"^In hardware +yes$", said, re.M), said
    assert re.search(r"^State +trap, for \d+ s$", sw.cli("show platform why route 10.2.0.0/24"), re.M)
    assert MACS[3] in sw.cli(f"show platform why mac {appliance.dotted(MACS[3])}")
    for wrong in ("route nonsense", "neighbor 10.2", "mac 1"):
        with pytest.raises(AssertionError, match="%"):
            sw.cli(f"show platform why {wrong}")


def test_who_looks_waits_for_nobody(switch):
    """asicd is stopped: a line of one session waits for it, and what others look at meanwhile does not."""
    sw = switch
    until_the_chip_routes(sw)
    os.kill(sw.pid("asicd"), signal.SIGSTOP)
    try:
        line = sw.begin("configure terminal", "interface vlan 4")
        # it is in the log before it is carried out
        net.wait_until("the line to begin", lambda: "interface vlan 4" in sw.log("swcfgd"))
        shown = sw.cli("show vlan", "show running-config", "show mac address-table", "show users", "show clock",
                       "show processes cpu", "dir")
        assert line.poll() is None, "it has not waited for the chip"
        assert "VLAN0002" in shown and "interface Vlan3" in shown, shown
        assert " asicd " in shown and " swcfgd " in shown, shown
    finally:
        os.kill(sw.pid("asicd"), signal.SIGCONT)
    assert line.wait(net.PATIENCE) == 0
    assert "interface Vlan4" in sw.cli("show running-config")
    until_the_chip_routes(sw)


def test_what_is_not_confirmed_is_as_it_was_after_a_kill(switch):
    """Neither what was not kept before is lost, nor what was kept since is carried out."""
    sw = switch
    sw.cli("configure terminal", "vlan 66")
    sw.cli("configure terminal revert timer 100", "no vlan 66", "vlan 77", "end", "write memory")
    sw.kill()
    sw.config = None  # what was written is what is there
    sw.start_swcfgd()
    shown = sw.cli("show vlan", "show archive config differences")
    assert "VLAN0066" in shown and "VLAN0077" not in shown, shown
    assert "is as it was before" in sw.log("swcfgd")
    # in time, by the switch itself, though nobody is there any more
    sw.cli("configure terminal revert timer 1", "vlan 78")
    net.wait_until("the minute to pass", lambda: "VLAN0078" not in sw.cli("show vlan"), timeout=60 + net.PATIENCE)
    sw.cli("configure terminal revert timer 100", "vlan 79", "end", "configure confirm")
    sw.kill()
    sw.start_swcfgd()
    shown = sw.cli("show vlan")
    assert "VLAN0066" not in shown and "VLAN0077" in shown, "a start begins with what is kept"


def test_a_neighbour_set_by_hand(switch):
    """The kernel's, while its interface is up; the chip routes to it without a question."""
    sw = switch
    until_the_chip_routes(sw)
    there = "lladdr 02:00:00:00:00:77 PERMANENT"

    def known():
        return there in sw.ns.ip("neigh show 10.2.0.77 dev vlan2")

    sw.cli("configure terminal", "arp 10.2.0.77 0200.0000.0077 arpa", "mac address-table static 0200.0000.0077 vlan 2 "
           "interface swp3", "arp 10.99.0.1 0200.0000.0078 arpa")
    assert known()
    wire = Wire(sw.hosts["a"].ns)
    try:
        def arrives():
            sw.hosts["b"].ping("10.2.0.77")
            return wire.caught(lambda f: f[:6] == bytes.fromhex("020000000077"))

        net.wait_until("what is for it to leave by its port", arrives)
    finally:
        wire.close()
    sw.cli("configure terminal", "interface vlan 2", "shutdown")
    assert not known()
    sw.cli("configure terminal", "interface vlan 2", "no shutdown")
    assert known()
    shown = sw.cli("show ip arp", "show running-config")
    assert re.search(r"10\.2\.0\.77 +- +0200\.0000\.0077 +ARPA +Vlan2", shown), shown
    assert "arp 10.99.0.1 0200.0000.0078 ARPA" in shown, shown
    # it was not kept
    sw.kill()
    sw.start_swcfgd()
    assert not known()
