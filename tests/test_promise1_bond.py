# SPDX-License-Identifier: Apache-2.0
"""Promise 1, the twin test on bonds of ports: active-backup, balance-xor and 802.3ad are groups of the chip, used like
ports. Needs a kernel with bonding: the lab's machine has it (tests/vm/e2e), a build machine may not.

    h1 ── swp1 ─┬─ br0                                 h1 ── swp1  10.0.1.1
    h2 ── swp2 ─┤                                      h3 ── swp3 ─┐
    h3 ── swp3 ─┤ bond0                                h4 ── swp4 ─┴─ bond0  10.0.2.1, bond0.10  10.0.3.1
    h4 ── swp4 ─┘
"""

import contextlib
import json
import time

import pytest

from lib import net, packet, twin
from lib.packet import ETH_IP, ether, ipv4, udp
from lib.switch import PACE
from lib.twin import MAC, NOBODY, Step, both, data, quiet, tagged

BROADCAST = "ff:ff:ff:ff:ff:ff"
H = MAC
BOND = "02:00:00:00:02:00"


@pytest.fixture(autouse=True)
def kernel_has_bonds():
    if not net.kernel_makes("bond"):
        pytest.skip("needs a kernel with bonding")


def links_are_seen(sw):
    """Until the bond, which looks at its links now and then, has seen what they do."""
    def seen():
        links = json.loads(sw.ip("-j -d link show master bond0"))
        by_bond = (x["linkinfo"]["info_slave_data"]["mii_status"] == "UP" for x in links)
        return all(("LOWER_UP" in x["flags"]) == up for x, up in zip(links, by_bond))

    net.wait_until("the bond to have seen its links", seen)
    time.sleep(0.2 * PACE)


def bond(sw, options):
    """bond0 of swp3 and swp4."""
    sw.ip(f"link add bond0 address {BOND} type bond miimon 50 {options}")
    sw.ns.sysctl(ipv6__conf__bond0__disable_ipv6=1)
    for p in ("swp3", "swp4"):
        sw.ns.sysctl(**{f"ipv6__conf__{p}__disable_ipv6": 1})
        sw.ip(f"link set {p} down")
        sw.ip(f"link set {p} master bond0")
    sw.ip("link set bond0 up")
    links_are_seen(sw)
    sw.sync()


def bridged(options):
    def configure(sw):
        twin.bridge(sw, ports=("h1", "h2"))
        bond(sw, options)
        sw.ip("link set bond0 master br0")
        sw.sync()

    return configure


def check(make, configure, steps):
    wrong, asic = both(make, configure, steps)
    assert not wrong, "\n".join(wrong)
    answer = asic.api("switchd", "POST", "/v1/audit", {"wait_s": 3.0}, timeout=60)
    assert not answer["items"], answer["items"]
    return asic


def d(dst, src, **kw):
    return (src, data(H.get(dst, dst), H[src], **kw))


def settle(*commands):
    def do(sw):
        for c in commands:
            sw.ip(c)
        links_are_seen(sw)

    return do


def active_backup(_):
    return [
        Step("unknown: the active member only", frames=[d(NOBODY, "h1")], fits=True, expect={"h2": 1, "h3": 1}),
        Step(
            "in by the active one, and back",
            frames=[d(NOBODY, "h3"), 0.3, d("h3", "h1")],
            fits=True,
            expect={"h1": 1, "h2": 1, "h3": 1},
        ),
        Step("in by the backup: dropped", frames=[d("h1", "h4"), d(BROADCAST, "h4")], fits=True, expect={}),
        Step("broadcast", frames=[d(BROADCAST, "h1")], expect={"h2": 1, "h3": 1}),
        Step(
            "the active one goes",
            do=settle("link set swp3 down"),
            frames=[d("h3", "h1"), d(NOBODY, "h2")],
            fits=True,
            expect={"h1": 1, "h4": 2},
        ),
        Step(
            "what is behind is behind the bond",
            frames=[d("h1", "h3"), ("h4", data(H["h1"], H["h3"])), 0.3, d("h3", "h1")],
            fits=True,
            expect={"h1": 1, "h4": 1},
        ),
        Step(
            "and comes back as a backup",
            do=settle("link set swp3 up"),
            frames=[d("h3", "h1"), d("h1", "h3")],
            fits=True,
            expect={"h4": 1},
        ),
        Step(
            "a static entry",
            do=lambda sw: sw.ns.bridge(f"fdb add {NOBODY} dev bond0 master static"),
            frames=[d(NOBODY, "h1")],
            fits=True,
            expect={"h4": 1},
        ),
        Step(
            "a member leaves for the bridge",
            do=settle("link set swp3 nomaster", "link set swp3 master br0", "link set swp3 up"),
            frames=[d("h8", "h1"), d("h2", "h3")],
            fits=True,
            expect={"h2": 2, "h3": 1, "h4": 1},
        ),
    ]


def test_active_backup(make):
    check(make, bridged("mode active-backup"), active_backup)


EVERY = ("h1", "h2", "h3", "h4")


def unsupported(_):
    return [
        # the first is flooded, and mode broadcast sends by both members
        Step("the kernel bridges", frames=[d("h2", "h1"), d("h1", "h2")], expect=dict.fromkeys(EVERY, 1)),
        Step("in by a member", frames=[("h3", data(H["h1"], H["h3"])), 0.3], expect={"h1": 1}),
    ]


def test_a_mode_that_the_chip_has_not(make):
    asic = check(make, bridged("mode broadcast"), unsupported)
    rows = {p["name"]: p for p in asic.api("switchd", "GET", "/v1/ports")["items"]}
    assert "mode broadcast is not offloaded" in rows["swp3"]["reason"], rows["swp3"]


def routed(sw):
    sw.ip("link set swp1 up")
    sw.ip("addr add 10.0.1.1/24 dev swp1")
    sw.ip(f"neigh add 10.0.1.2 lladdr {H['h1']} dev swp1 nud permanent")
    bond(sw, "mode active-backup")
    sw.ip("addr add 10.0.2.1/24 dev bond0")
    sw.ip(f"neigh add 10.0.2.2 lladdr {H['h3']} dev bond0 nud permanent")
    sw.ip("link add link bond0 name bond0.10 type vlan id 10")
    sw.ns.sysctl(ipv4__ip_forward=1)
    sw.ip("link set bond0.10 up")
    sw.ip("addr add 10.0.3.1/24 dev bond0.10")
    sw.ip(f"neigh add 10.0.3.2 lladdr {H['h3']} dev bond0.10 nud permanent")
    sw.sync()


def routed_steps(macs):
    def r(src, dst, mac, ttl=64):
        return ether(mac, H["h5"], ETH_IP, ipv4(src, dst, 17, udp(src, dst, 1, 2), ttl=ttl))

    return [
        Step(
            "out by the bond, and by its VLAN",
            frames=[("h1", r("10.0.1.2", "10.0.2.2", macs[1])), ("h1", r("10.0.1.2", "10.0.3.2", macs[1]))],
            fits=True,
            expect={"h3": 2},
        ),
        Step(
            "in by the bond",
            frames=[("h3", r("10.0.2.2", "10.0.1.2", BOND)), ("h3", tagged(r("10.0.3.2", "10.0.1.2", BOND), 10))],
            fits=True,
            expect={"h1": 2},
        ),
        Step("not by the backup", frames=[("h4", r("10.0.2.2", "10.0.1.2", BOND))], fits=True, expect={}),
        Step(
            "the active one goes",
            do=settle("link set swp3 down"),
            frames=[("h1", r("10.0.1.2", "10.0.2.2", macs[1])), ("h4", r("10.0.2.2", "10.0.1.2", BOND))],
            fits=True,
            expect={"h1": 1, "h4": 1},
        ),
    ]


def test_routed(make):
    check(make, routed, routed_steps)


@pytest.mark.parametrize("policy", ["layer2", "layer3+4"])
def test_balance_xor_spreads_flows(make, policy):
    asic = make.asic()
    for i, h in enumerate(twin.HOSTS, 1):
        asic.host(h, i, MAC[h])
    asic.start()
    twin.mute(asic)
    bridged(f"mode balance-xor xmit_hash_policy {policy}")(asic)
    asic.ns.bridge(f"fdb add {NOBODY} dev bond0 master static")
    asic.sync()
    with contextlib.ExitStack() as stack:
        wires = {h: stack.enter_context(packet.Wire(host.ns)) for h, host in asic.hosts.items()}
        before = asic.cpu_packets()
        flows = [data(NOBODY, f"02:00:00:00:11:{i:02x}", sport=1000 + i) for i in range(32)]
        for f in flows * 3:
            wires["h1"].send(f)
        quiet(wires, sw=asic)
        got = {h: [f for f in wires[h].caught() if f[:6] == packet.mac(NOBODY)] for h in ("h2", "h3", "h4")}
        cpu = asic.cpu_delta(before)
    assert not got["h2"] and not {k: v for k, v in cpu.items() if k not in twin.ALWAYS_CPU}, cpu
    assert len(got["h3"]) + len(got["h4"]) == 96
    sources = {h: {bytes(f[6:12]) for f in got[h]} for h in ("h3", "h4")}
    # every flow has one member, and both have some
    assert not sources["h3"] & sources["h4"]
    assert sources["h3"] and sources["h4"]


def behind_bond0(sw):
    """Stations that the kernel's bridge knows behind bond0, its own addresses left out."""
    lines = sw.ns.bridge("fdb show dev bond0").splitlines()
    return {line.split()[0] for line in lines if "master br0" in line and "permanent" not in line}


def test_what_was_learned_stays_behind_a_bond_that_becomes_the_kernels(make):
    """The chip had the bond and learned a station there; then a filter at a member makes the bond the kernel's. The
    station stays known, after a new chip as well, until the bond's link goes."""
    asic = make.asic()
    for i, h in enumerate(twin.HOSTS, 1):
        asic.host(h, i, MAC[h])
    asic.start()
    twin.mute(asic)
    bridged("mode balance-xor")(asic)
    with contextlib.ExitStack() as stack:
        wires = {h: stack.enter_context(packet.Wire(host.ns)) for h, host in asic.hosts.items()}
        wires["h3"].send(data(NOBODY, H["h3"]))
        net.wait_until("the station to be known", lambda: H["h3"] in behind_bond0(asic), timeout=10 * PACE)
    match = "protocol all flower src_mac 02:00:00:00:00:99 action drop"
    twin.clsact(asic, 4)
    asic.ns.exec("tc", "filter", "add", "dev", "swp4", "ingress", *match.split())
    asic.sync()
    rows = {p["name"]: p for p in asic.api("switchd", "GET", "/v1/ports")["items"]}
    assert rows["swp3"]["reason"], "the bond is the kernel's"

    def reads():
        return asic.json("status")["switchd"]["upkeep"]["fdb_reads"]

    before = reads()
    asic.kill("asicd")
    asic.tandem("up", timeout=60)
    net.wait_until("the chip's stations to be read", lambda: reads() > before, every=0.2)
    # what is missing on the chip would be looked for once more, and then be taken from the kernel
    time.sleep(3 * PACE)
    asic.sync()
    assert H["h3"] in behind_bond0(asic)
    asic.ip("link set bond0 down")
    net.wait_until("the station to be forgotten", lambda: H["h3"] not in behind_bond0(asic), timeout=10 * PACE)
