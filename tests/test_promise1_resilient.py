# SPDX-License-Identifier: Apache-2.0
"""Resilient next-hop groups (`ip nexthop … type resilient`): the chip goes by the kernel's buckets.

      h1 10.1.0.2 ── swp1 ─┐             ┌─ swp2 ── 10.2.0.2 h2   next hop 2 ┐
                           ├─ the switch ┼─ swp3 ── 10.3.0.2 h3   next hop 3 ├ group 10: buckets 0 … 29
                           ┘             └─ swp4 ── 10.4.0.2 h4   next hop 4 ┘

What sets such a group apart from others: a member that goes or comes moves its own flows and nobody else's.
"""

import contextlib
import json

import pytest

from lib import net, packet, twin
from lib.twin import HOSTS, MAC, lone, port_macs

FLOWS = 600
BUCKETS = 30


def setup(sw, family):
    sw.router()
    sw.ns.sysctl(ipv6__conf__default__accept_dad=0, ipv6__conf__all__accept_dad=0,
                 ipv4__fib_multipath_hash_policy=1, ipv6__fib_multipath_hash_policy=1)
    for p, h in enumerate(HOSTS, 1):
        sw.ip(f"link set swp{p} up")
        sw.ip(f"addr add 10.{p}.0.1/24 dev swp{p}")
        sw.ip(f"addr add fd0{p}::1/64 dev swp{p} nodad")
        for a in (f"10.{p}.0.2", f"fd0{p}::2"):
            sw.ip(f"neigh replace {a} lladdr {MAC[h]} dev swp{p} nud permanent")
    for n in (2, 3, 4):
        sw.ip(f"nexthop add id {n} via {f'10.{n}.0.2' if family == 4 else f'fd0{n}::2'} dev swp{n}")
    sw.ip(f"nexthop add id 10 group 2/3/4 type resilient buckets {BUCKETS} idle_timer 0")
    sw.ip("route add 24.0.0.0/8 nhid 10" if family == 4 else "-6 route add fd24::/16 nhid 10")
    sw.sync()


def frames(gw, family):
    for i in range(FLOWS):
        sport = 1024 + i * 31 % 60000
        if family == 4:
            yield packet.udp4_frame(gw, MAC["h1"], "10.1.0.2", "24.0.0.1", sport=sport)
        else:
            yield packet.udp6_frame(gw, MAC["h1"], "fd01::2", "fd24::1", sport=sport)


def play(sw, family):
    """Where each flow, by its source port, came out."""
    gw = port_macs(sw)[1]
    kind, at = (packet.ETH_IP, 34) if family == 4 else (packet.ETH_IP6, 54)
    with contextlib.ExitStack() as stack:
        wires = {h: stack.enter_context(packet.Wire(sw.hosts[h].ns)) for h in HOSTS}
        for frame in frames(gw, family):
            wires["h1"].send(frame)
        twin.quiet(wires, sw=sw)
        went = {}
        for h, w in wires.items():
            for f in w.caught(lambda f: packet.ethertype(f) == kind and f[at + 2:at + 4] == b"\x07\xd0"):
                assert f[at:at + 2] not in went, "a flow's packet came twice"
                went[f[at:at + 2]] = h
    assert len(went) == FLOWS, f"{FLOWS - len(went)} flows lost"
    return went


def shares(went):
    return {h: sum(1 for x in went.values() if x == h) / FLOWS for h in ("h2", "h3", "h4")}


def held(sw):
    """Buckets of each member as the kernel has them."""
    by = {}
    for b in json.loads(sw.ns.ip("-j nexthop bucket show id 10")):
        by[b["bucket"]["nhid"]] = by.get(b["bucket"]["nhid"], 0) + 1
    return by


@pytest.mark.parametrize("family", [4, 6])
def test_resilient_twin(make, family):
    """On the kernel alone and with the ASIC: shares by buckets, a member's flows move with it and no others."""
    for sw in lone(make):
        setup(sw, family)
        who = "with ASIC" if sw.has_asic else "kernel alone"
        before = sw.cpu_packets() if sw.has_asic else {}
        first = play(sw, family)
        for h, share in shares(first).items():
            assert abs(share - 1 / 3) < 0.07, f"{who}: {h} got {share:.1%} of a third"
        sw.ip("nexthop del id 3")
        sw.sync()
        second = play(sw, family)
        moved = {f for f in first if first[f] != second[f]}
        assert moved == {f for f in first if first[f] == "h3"}, f"{who}: flows of members that stayed moved"
        sw.ip(f"nexthop add id 3 via {'10.3.0.2' if family == 4 else 'fd03::2'} dev swp3")
        sw.ip("nexthop replace id 10 group 2/3/4 type resilient")
        sw.sync()
        third = play(sw, family)
        moved = {f for f in first if second[f] != third[f]}
        assert moved and all(third[f] == "h3" for f in moved), f"{who}: a flow moved, but not to the member that came"
        assert abs(shares(third)["h3"] - 1 / 3) < 0.07, f"{who}: {shares(third)}"
        if sw.has_asic:
            cpu = {k: v for k, v in sw.cpu_delta(before).items() if k not in twin.ALWAYS_CPU}
            assert not cpu, f"the group fits, yet the CPU saw {cpu}"


def test_buckets_follow_the_timers(make):
    """A member that comes gets its buckets when the kernel's timer says so, and the chip follows: shares and
    `tandem explain` are those of `ip nexthop bucket`. A restart of switchd moves no flow, and a link that goes down
    takes its member's flows elsewhere and no others."""
    _, sw = lone(make)
    setup(sw, 4)
    sw.ip("nexthop replace id 10 group 2/3 type resilient idle_timer 3600")
    sw.sync()
    two = play(sw, 4)
    assert set(two.values()) == {"h2", "h3"}
    # what the kernel itself has used waits
    used = [f"route get 24.0.{i // 250}.{1 + i % 250}" for i in range(500)]
    sw.ns.ip_batch(used)
    sw.ip("nexthop replace id 10 group 2/3/4 type resilient")
    sw.sync()
    assert held(sw).keys() == {2, 3}, "the timer has not run out: nothing moves yet"
    assert play(sw, 4) == two
    sw.ns.ip_batch(used)
    sw.ip("nexthop replace id 10 group 2/3/4 type resilient idle_timer 3")
    net.wait_until("the kernel to move buckets", lambda: held(sw).get(4, 0) >= BUCKETS // 3, every=0.2)
    sw.sync()
    three = play(sw, 4)
    moved = {f for f in two if two[f] != three[f]}
    assert moved and all(three[f] == "h4" for f in moved)
    said = sw.tandem("explain", "route", "24.0.0.0/8")
    for n, count in held(sw).items():
        assert f"via 10.{n}.0.2 dev swp{n} {count} of {BUCKETS} buckets" in said, said
    assert abs(shares(three)["h4"] - 1 / 3) < 0.07, shares(three)
    sw.kill("switchd")
    sw.tandem("up", timeout=60)
    sw.sync()
    assert play(sw, 4) == three, "a restart moved flows"
    sw.hosts["h4"].ns.ip("link set eth0 down")
    net.wait_until("the kernel to drop a member whose link is down", lambda: 4 not in held(sw))
    sw.sync()
    four = play(sw, 4)
    moved = {f for f in three if three[f] != four[f]}
    assert moved == {f for f in three if three[f] == "h4"}, "flows of members that stayed moved"
    assert "no differences" in sw.tandem("audit")
