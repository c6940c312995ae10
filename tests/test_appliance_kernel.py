# SPDX-License-Identifier: Apache-2.0
"""The appliance, engine kernel: the commands make a bridge that filters by VLAN, and VLAN interfaces on it; switchd
offloads. Needs a kernel with both: the lab's machine has them (tests/vm/e2e), a build machine may not.

    t1 ── swp1, trunk 1 and 2 ─┐          ┌─ swp3, access 2 ── a 10.2.0.3
                               ├── br0 ───┤
    t2 ── swp2, trunk 1 and 3 ─┘  │    │  └─ swp4, access 3 ── b 10.3.0.4
                     vlan2 10.2.0.1    vlan3 10.3.0.1
"""

import os
import random
import re

import pytest

from lib import appliance, net
from lib.appliance import BridgeSwitch, ChipSwitch
from lib.switch import AsicSwitch

SEED: dict = {
    "vlans": {"2": {}, "3": {}},
    "interfaces": {
        "port1": {"trunk": True, "allowed": [1, 2]},
        "port2": {"trunk": True, "allowed": [1, 3]},
        "port3": {"access": 2},
        "port4": {"access": 3},
        "vlan2": {"ipv4": "10.2.0.1/24", "mtu": 9000},
        "vlan3": {"ipv4": "10.3.0.1/24"},
    },
    "routing": True,
    "stations": [{"mac": "02:00:00:00:00:77", "vlan": 2, "port": 1}],
    "routes": [{"to": "10.77.0.0/16", "via": "10.2.0.3"}],
}
BARE = ["egress untagged", "pvid"]


@pytest.fixture(name="switch")
def the_switch(make):
    lacks = appliance.kernel_lacks()
    if lacks:
        pytest.skip(f"needs a kernel with {lacks}")
    with BridgeSwitch(make.prefix()) as sw:
        for port, name in ((1, "t1"), (2, "t2"), (3, "a"), (4, "b")):
            sw.host(name, port)
        sw.hosts["a"].address("10.2.0.3/24", gateway="10.2.0.1")
        sw.hosts["b"].address("10.3.0.4/24", gateway="10.3.0.1")
        sw.start(SEED)
        yield sw


def routed(sw):
    return sum(p["counters"]["detail"].get("l3_forwarded", 0) for p in sw.chip("/v1/ports")["items"])


def drift(sw):
    return [re.split(r"  +", row) for row in sw.cli("show platform drift").splitlines()[1:]]


def test_the_seeds_example(switch):
    sw, a = switch, switch.hosts["a"]
    assert sw.members() == {
        "swp1": {1: BARE, 2: []}, "swp2": {1: BARE, 3: []}, "swp3": {2: BARE}, "swp4": {3: BARE},
        "br0": {2: [], 3: []},
    } | {f"swp{n}": {1: BARE} for n in range(5, len(sw.chip("/v1/ports")["items"]) + 1)}
    assert "10.2.0.1/24" in sw.ip("addr show dev vlan2") and "10.3.0.1/24" in sw.ip("addr show dev vlan3")
    assert "10.77.0.0/16 via 10.2.0.3 dev vlan2" in sw.ip("route show proto 84")
    assert "02:00:00:00:00:77 dev swp1 vlan 2 master br0 static" in net.run("bridge", "-n", sw.ns.name, "fdb", "show")
    assert drift(sw) == []

    # the chip forwards, within a VLAN and between two
    net.wait_until("a to reach b", lambda: a.ping("10.3.0.4"))
    sw.hosts_ask_nobody()

    def by_the_chip():
        before = routed(sw)
        a.ping("10.3.0.4", check=True)
        return routed(sw) - before >= 2

    net.wait_until("the chip to route", by_the_chip)
    assert re.search(r"In hardware +yes", sw.cli("show platform why neighbor 10.3.0.4"))
    assert sw.stations()[(2, "02:00:00:00:00:77")] == 1
    links = sw.links()
    assert links["Vlan2"]["carrier"] and all(links[n]["carrier"] for n in links if n.endswith("/0/1")), links

    # a line that is refused leaves nothing
    sw.cli("configure terminal", "interface vlan 9")
    before = sw.kernel()
    for line, words in (
        ("interface vlan 9\nip address 10.2.0.200 255.255.255.0", "overlaps"),
        ("spanning-tree priority 1", "increments of 4096"),
    ):
        with pytest.raises(AssertionError, match=words):
            sw.cli("configure terminal", *line.splitlines())
    assert sw.kernel() == before
    sw.cli("configure terminal", "no interface vlan 9")
    # what the kernel refuses in the middle of many steps: a VLAN interface whose name is another's
    sw.ip("link add vlan7 type dummy")
    before = sw.kernel()
    sw.keep({**SEED, "vlans": {"2": {}, "3": {}, "7": {}}, "routing": False, "stations": [],
             "interfaces": {**SEED["interfaces"], "port3": {"access": 7}, "vlan7": {"ipv4": "10.7.0.1/24"}}}, "wanted")
    with pytest.raises(AssertionError, match="vlan7 is there and is not VLAN 7 of br0"):
        sw.cli("configure replace wanted force")
    assert sw.kernel() == before
    sw.ip("link del vlan7")

    # others' changes: shown, left alone, also by who starts again after a kill -9, which changes nothing
    sw.cli("copy running-config startup-config", "")
    net.run("bridge", "-n", sw.ns.name, "vlan", "add", "dev", "swp2", "vid", "9")
    sw.ip("addr add 10.2.9.1/24 dev vlan2")
    sw.ip("link set swp6 down")
    wanted = [["swp2 VLAN 9", "-", "tagged"], ["swp6", "up", "down"], ["vlan2", "-", "10.2.9.1/24"]]
    assert drift(sw) == wanted
    for row in wanted:  # and said when it happens, once
        line = f"changed by others: {', '.join(row)}\n"
        net.wait_until(line, lambda line=line: sw.log("swcfgd").count(line) == 1)
    sw.cli("configure terminal", "interface vlan 2", "mtu 1400", "interface swp2", "switchport trunk allowed vlan 1-3")
    assert drift(sw) == wanted
    sw.cli("configure terminal", "interface vlan 2", "mtu 9000", "interface swp2", "switchport trunk allowed vlan 1,3")
    before = sw.kernel()
    sw.kill()
    sw.again()
    assert sw.kernel() == before and drift(sw) == wanted
    a.ping("10.3.0.4", check=True)


def test_the_engine_is_what_this_kernel_can_have(make):
    """On either kernel: which one and why is said, and whoever stops it is told what it is."""
    with BridgeSwitch(make.prefix()) as sw:
        sw.options = ["--engine", "auto"]
        said = AsicSwitch.start(sw)
        lacks = appliance.kernel_lacks()
        chip = lacks is not None
        word = "chip" if chip else "kernel"
        what = "VLAN devices on bridges" if lacks == "8021q" else "bridges that filter by VLAN"
        why = f"this kernel has {'no ' if chip else ''}{what}"
        assert f"engine {word}: {why}" in said, said
        assert "its console: swcli" in said
        status = sw.tandem("status")
        assert re.search(r"^swcfgd    pid", status, re.M), status
        assert (re.search(r"^switchd", status, re.M) is None) == chip, status
        assert sw.cli("show version")
        # what it was started with is what comes again, without being asked for
        sw.kill("switchd" if chip else "swcfgd")
        assert "engine" not in sw.again()
        down = sw.tandem("down")
        assert re.search(r"swcfgd stopped \(pid \d+\)", down) and ("switchd stopped" in down) != chip, down


# ------------------------------------------------------------------------------------------------------ the twin

PROFILE = "spectrum-sn2100"  # room for all that a configuration may say


def random_config(r):
    """VLANs 2 to 6, some suspended, some not there; four ports of any mode; interfaces of VLANs."""
    vids = range(2, 7)
    how = {}
    for port in range(1, 5):
        if r.random() < 0.4:
            how[f"port{port}"] = {"access": r.choice(vids)}
        else:
            how[f"port{port}"] = {"trunk": True, "lines": [f"switchport trunk native vlan {r.randint(1, 6)}"]}
            if r.random() < 0.7:
                how[f"port{port}"]["allowed"] = sorted(r.sample(range(1, 7), r.randint(1, 5)))
        how[f"port{port}"]["shutdown"] = r.random() < 0.2
    for vid in r.sample(vids, 2):
        how[f"vlan{vid}"] = {"ipv4": f"10.{vid}.0.1/24"}
    there = r.sample(vids, r.randint(1, 5))
    return {"vlans": {str(v): {"state": "suspend"} if r.random() < 0.2 else {} for v in there}, "interfaces": how,
            "tag_native": r.random() < 0.3, "routing": r.random() < 0.5}


def in_the_chip(sw):
    sw.sync()
    return sorted((m["port"], m["vid"], sorted(m["flags"])) for m in sw.chip("/v1/table/members")["items"] if m["vid"])


def test_both_engines_make_the_same_of_a_configuration(make):
    lacks = appliance.kernel_lacks()
    if lacks:
        pytest.skip(f"needs a kernel with {lacks}")
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed)
    r = random.Random(seed)
    with ChipSwitch(make.prefix(), PROFILE) as chip, BridgeSwitch(make.prefix(), PROFILE) as kernel:
        chip.start({})
        kernel.start()
        members = 0
        for _ in range(30 if os.environ.get("TANDEM_LONG") else 3):
            config = random_config(r)
            said = []
            for sw in (chip, kernel):
                sw.apply(config)
                said.append(sw.cli("show vlan", "show interfaces trunk", "show interfaces status", "show ip route"))
            assert said[0] == said[1], config
            found = in_the_chip(chip)
            members += len(found)
            assert found == in_the_chip(kernel), config
            assert drift(kernel) == [], config
        assert members
