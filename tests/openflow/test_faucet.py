# SPDX-License-Identifier: Apache-2.0
"""Faucet 1.10 as people use it: two VLANs, an ACL, and a route between them.

      office (100)  10.0.1.0/24        guest (200)  10.0.2.0/24          both, tagged
      h1    h2    h3                   h4    h5    h6                    b7
      │     │     │ ACL: no ICMP to    │     │     │                     │
    ┌─┴─────┴─────┴ 10.0.1.1 ──────────┴─────┴─────┴─────────────────────┴─┐
    │ 1     2     3                    4     5     6                     7 │ ── Faucet: 10.0.1.254, 10.0.2.254
    └──────────────────────────────────────────────────────────────────────┘
"""

import os
import re
import time

import pytest

from lib import net
from lib.packet import ETH_ARP, arp, ether, mac as raw_mac
from openflow import world
from openflow.hosts import answered, mac, ping, reaches
from openflow.ofctl import Wires

CONFIG = """
vlans:
  office: {{vid: 100, faucet_mac: "0e:00:00:00:00:64", faucet_vips: ["10.0.1.254/24"]}}
  guest: {{vid: 200, faucet_mac: "0e:00:00:00:00:c8", faucet_vips: ["10.0.2.254/24"]}}
routers:
  between: {{vlans: [office, guest]}}
acls:
  no-ping-to-h1:
    - rule: {{dl_type: 0x800, nw_proto: 1, ipv4_dst: 10.0.1.1, actions: {{allow: 0}}}}
    - rule: {{actions: {{allow: 1}}}}
dps:
  target:
    dp_id: 0x1
    hardware: {hardware}
    interfaces:
      1: {{native_vlan: office}}
      2: {{native_vlan: office}}
      3: {{native_vlan: office, acls_in: [no-ping-to-h1]}}
      4: {{native_vlan: guest}}
      5: {{native_vlan: guest}}
      6: {{native_vlan: guest}}
      7: {{tagged_vlans: [office, guest]}}
"""
# one that takes the switch as it is, and one that tells it by table features which tables it wants
HARDWARE = {"ovs": ("Open vSwitch", "Open vSwitch TFM"), "ofagentd": ("Open vSwitch", "GenericTFM")}  # by kind


def start(cell):
    env = {"FAUCET_CONFIG": cell.path("faucet.yaml"), "FAUCET_LOG": cell.path("faucet.log"),
           "FAUCET_EXCEPTION_LOG": cell.path("exceptions.log"), "FAUCET_PROMETHEUS_ADDR": "127.0.0.1",
           "FAUCET_CONFIG_STAT_RELOAD": "1", "FAUCET_EVENT_SOCK": "0",
           "PATH": f"{os.path.dirname(world.faucet())}:{os.environ['PATH']}"}
    return cell.controller(world.faucet(), "--use-stderr", "--ryu-ofp-listen-host", "127.0.0.1",
                           "--ryu-ofp-tcp-listen-port", world.PORT, env=env)


def configure(cell, text):
    with open(cell.path("next.yaml"), "w", encoding="utf-8") as f:
        f.write(text)
    os.rename(cell.path("next.yaml"), cell.path("faucet.yaml"))


def looks_well(cell):
    assert cell.log("exceptions.log") == "", cell.log("exceptions.log")
    # it says of itself that it sends before the switch is there
    bad = [x for x in cell.log("faucet.log").splitlines() if re.search(r"OFError|ERROR", x) and "DP not up" not in x]
    assert not bad, "\n".join(bad)


def by_the_chip(switch, hosts):
    """What the chip does alone of this: the ACL's drop, and what hosts of a VLAN say to each other, in one of the VLANs
    at least; which, follows from how much was said in each. What is routed has another header and so is the CPU's."""
    switch.spares_the_cpu(lambda: ping(hosts[3], "10.0.1.1", timeout=1) == 0)
    pairs = [(1, "10.0.1.2"), (4, "10.0.2.5")]
    enough = all if switch.profile == "arista-7500e" else any
    net.wait_until(f"pairs to be the chip's: {switch.places()}", lambda: enough(
        [switch.spared(lambda a=a, b=b: ping(hosts[a], b) == 3) for a, b in pairs]), timeout=60)
    before = switch.counters()
    assert answered(hosts[1], "10.0.2.4")
    now = switch.counters()
    assert all(now[k] - before[k] >= 6 for k in before), (before, now)


@pytest.mark.parametrize("way", (0, 1), ids=("plain", "table features"))
def test_vlans_acl_and_routing(cell, kind, way):
    hosts = {}
    for i in range(1, 7):
        vlan = 1 if i <= 3 else 2
        hosts[i] = cell.host(f"p{i}", f"h{i}", mac(i), f"10.0.{vlan}.{i}/24", gateway=f"10.0.{vlan}.254")
    cell.ns.ip("link add p7 type veth peer name b1")
    for end in ("p7", "b1"):
        cell.ns.ip(f"link set {end} arp off up")
    config = CONFIG.format(hardware=HARDWARE[kind.kind][way])
    configure(cell, config)
    controller = start(cell)
    switch = kind(cell)
    switch.lookup = "vlan"  # of a chip below
    switch.bridge("target", 1, [f"p{i}" for i in range(1, 8)])

    # within a VLAN, and to Faucet itself
    reaches(hosts[1], "10.0.1.2")
    reaches(hosts[4], "10.0.2.5")
    reaches(hosts[1], "10.0.1.254")
    reaches(hosts[6], "10.0.2.254")
    # between the VLANs only by way of the route
    reaches(hosts[1], "10.0.2.4")
    reaches(hosts[5], "10.0.1.2")
    # the ACL: this one address by this one protocol from this one port
    assert ping(hosts[3], "10.0.1.1", count=3) == 0
    reaches(hosts[3], "10.0.1.2")
    reaches(hosts[1], "10.0.1.2")
    # tagged: who asks in a VLAN is heard there, untagged, and nowhere else
    with Wires(cell, 1) as w:
        who = "02:00:00:00:02:07"
        w.drain()
        w.send(1, ether("ff:ff:ff:ff:ff:ff", who, ETH_ARP, arp(1, who, "10.0.1.77", "00:00:00:00:00:00", "10.0.1.2"),
                        vid=100))
        end, answer = time.monotonic() + 40, None
        while answer is None and time.monotonic() < end:
            for f in w.caught(0.3, want=1).get(1, []):
                if f[:6] == raw_mac(who) and f[12:18] == bytes.fromhex("810000640806"):
                    answer = f
        assert answer and answer[6:12] == raw_mac(mac(2)), "no tagged answer"
    looks_well(cell)
    if isinstance(switch, world.ChipAgent):
        by_the_chip(switch, hosts)

    # without a controller what was learned goes on; one that is back changes nothing
    controller.kill()
    controller.wait(5)
    assert answered(hosts[1], "10.0.1.2")
    assert answered(hosts[1], "10.0.2.4")
    assert ping(hosts[3], "10.0.1.1") == 0
    told = cell.log("faucet.log").count("configuring DP")
    controller = start(cell)
    # it begins with an empty switch
    net.wait_until("Faucet to tell the switch anew", lambda: cell.log("faucet.log").count("configuring DP") > told,
                   timeout=30)
    reaches(hosts[1], "10.0.1.2")
    reaches(hosts[1], "10.0.2.4")
    assert ping(hosts[3], "10.0.1.1", count=2) == 0

    # a configuration that changes while it runs: the ACL goes
    configure(cell, config.replace("{native_vlan: office, acls_in: [no-ping-to-h1]}", "{native_vlan: office}"))
    reaches(hosts[3], "10.0.1.1")
    # a link that goes and comes back
    hosts[2].ip("link set eth0 down")
    net.wait_until("Faucet to see the port go", lambda: re.search(r"Port 2 .*(down|DOWN)", cell.log("faucet.log")),
                   timeout=40)
    hosts[2].ip("link set eth0 up")
    hosts[2].ip("route replace default via 10.0.1.254")
    reaches(hosts[1], "10.0.1.2")
    looks_well(cell)
