# SPDX-License-Identifier: Apache-2.0
# alone: offers more frames than the machine can take
"""Promise 5.1a with protocols that live: a bond keeps its aggregation (802.3ad, an LACPDU a second each way) and a
bridge its root (spanning tree, a BPDU a second) while an ARP storm comes in by another port of the bridge.

    h1 ── swp1 ──┐
    the storm    ├── br0 10.7.0.254
    h4 ── swp4 ──┘
    br0, the root
    h2 ── swp2 ──┬── bond0
    bond0 ─ swp3 ┘

What a far end has sent the switch's kernel must get, and the aggregation and the tree must stand, but from where a far
end said nothing for too long (a busy machine's affair) until they can stand again; how many looks that leaves is
printed. The storm goes on until enough of both came. Needs a kernel with bonding.
"""

import contextlib
import json
import os
import subprocess
import threading
import time

import pytest

from lib import net, packet
from lib.switch import PACE, binaries
from test_promise1_lacp import PARTNER, SWITCH, bond, works
from test_promise5_bounded import counted, delta
from test_promise5_storms import H1, KINDS

STORM_S = float(os.environ.get("TANDEM_STORM_S", "20"))
ROUNDS = 8  # of the storm, at most
SILENT_S = 2.5  # partners that are asked for every second and say nothing for three are given up (802.1AX, 6.4.4)
HEAL_S = 20     # what was given up may take so long from the next word on: the tree's delays, the aggregation's states
GROUPS = packet.mac("01:80:c2:00:00:00")[:5]  # of link protocols
QUIET = "stp_state 1 hello_time 100 max_age 600 forward_delay 200"  # centiseconds, the least that a kernel takes


@pytest.fixture(autouse=True)
def kernel_has_bonds():
    if not net.kernel_makes("bond"):
        pytest.skip("needs a kernel with bonding")


def spoken(wire, source):
    """When a far end has sent a frame of its protocol, as seen at its own end of the cable, or at the switch's port."""
    return [t for t, f in list(wire.frames) if f[:5] == GROUPS and f[6:12] == source]


class Bench:
    def __init__(self, make, stack):
        self.sw = make.asic()
        for i in (1, 2, 3, 4):
            self.sw.host(f"h{i}", i, H1 if i == 1 else None)
        self.partner, self.root = self.sw.hosts["h2"].ns, self.sw.hosts["h4"].ns
        for ns in (self.sw.ns, *(h.ns for h in self.sw.hosts.values())):
            ns.sysctl(ipv6__conf__all__disable_ipv6=1, ipv6__conf__default__disable_ipv6=1)
        self.sw.start()
        other = self.sw.hosts["h3"].ns
        other.ip("link set eth0 down")
        other.ip(f"link set eth0 netns {self.partner.name} name eth1")
        ends = (("swp2", self.partner, "eth0"), ("swp3", self.partner, "eth1"), ("swp4", self.root, "eth0"))
        self.far, self.near = [], []
        for port, ns, dev in ends:
            source = packet.mac(ns.read(f"/sys/class/net/{dev}/address").strip())
            wire = stack.enter_context(packet.Wire(ns, dev))
            wire.socket.setsockopt(packet.SOL_PACKET, packet.PACKET_IGNORE_OUTGOING, 0)
            self.far.append((wire, source))
            self.near.append((stack.enter_context(packet.Wire(self.sw.ns, port)), source))
        bond(self.sw.ns, SWITCH, ("swp2", "swp3"))
        bond(self.partner, PARTNER, ("eth0", "eth1"))
        self.root.ip("link add br0 type bridge priority 4096", QUIET)
        self.root.ip("link set eth0 master br0")
        self.root.ip("link set br0 up")
        self.sw.ip("link add br0 type bridge", QUIET)
        for i in (1, 4):
            self.sw.ip(f"link set swp{i} master br0")
            self.sw.ip(f"link set swp{i} up")
        # the storm is for the switch, not for the root
        self.sw.ns.bridge("link set dev swp4 bcast_flood off")
        self.sw.ip("link set br0 up")
        self.sw.ip("addr add 10.7.0.254/16 dev br0")
        net.wait_until("both members to work", lambda: all(self.members()), timeout=36 * PACE, every=0.2)
        self.wait_for_the_tree()
        self.sw.sync()

    def members(self):
        return [works(self.sw.ns, dev) for dev in ("swp2", "swp3")]

    def right(self):
        return self.root.read("/sys/class/net/br0/address").strip(), "forwarding", "forwarding"

    def tree(self):
        """Who is the root, and what the two ports do."""
        info = json.loads(self.sw.ip("-j -d link show br0"))[0]["linkinfo"]["info_data"]
        ports = (json.loads(self.sw.ip("-j -d link show", dev))[0]["linkinfo"]["info_slave_data"]["state"]
                 for dev in ("swp1", "swp4"))
        # iproute2 leaves out leading zeros
        return ":".join(f"{int(b, 16):02x}" for b in info["root_id"].split(".")[1].split(":")), *ports

    def wait_for_the_tree(self):
        try:
            net.wait_until("the root to be known, and all to forward", lambda: self.tree() == self.right(),
                           timeout=30 * PACE, every=0.2)
        except TimeoutError as e:
            raise AssertionError(f"{e}: wanted {self.right()}, there is {self.tree()}; BPDUs and LACPDUs sent "
                                 f"{self.said()}, got {self.heard()}") from e

    def said(self):
        """What the far ends have sent so far."""
        return [len(spoken(*end)) for end in self.far]

    def heard(self):
        """What the switch's kernel got of it."""
        return [len(spoken(*end)) for end in self.near]

    def silences(self, begin, end):
        """Each time within which one of the far ends said nothing: [(from, to)] in ns."""
        found = []
        for wire, source in self.far:
            times = [begin, *(t for t in spoken(wire, source) if begin < t < end), end]
            found += zip(times, times[1:])
        return found


class Watch(threading.Thread):
    """Looks at the aggregation and the tree all the time; `looks`: [(when in ns, how it is if not as it should)]."""

    def __init__(self, bench):
        super().__init__()
        self.bench, self.over = bench, threading.Event()
        self.looks = []

    def run(self):
        while not self.over.wait(0.2):
            began = time.monotonic_ns()
            state = (self.bench.members(), self.bench.tree())
            self.looks.append((began, None if state == ([True, True], self.bench.right()) else state))

    def end(self):
        self.over.set()
        self.join()

    def judged(self, began):
        """What was seen while no far end had been silent for too long, and how many such silences there were."""
        silences = [(a + SILENT_S * 1e9, b + HEAL_S * 1e9)
                    for a, b in self.bench.silences(began, time.monotonic_ns()) if b - a >= SILENT_S * 1e9]
        return [state for at, state in list(self.looks) if not any(a <= at <= b for a, b in silences)], len(silences)


def test_live_protocols_beside_an_arp_storm(make, record_property):
    with contextlib.ExitStack() as stack:
        storm(Bench(make, stack), record_property)


def storm(bench, record_property):
    program = os.path.join(binaries(), "blast")
    if not os.access(program, os.X_OK):
        pytest.fail(f"no {program}: cargo build --release -p tandem-linux --features testing --bin blast")
    heard, said = bench.heard(), bench.said()  # in this order: what is on its way is nobody's loss
    before, port = bench.sw.show("traps")["items"], bench.sw.ports()["swp1"]
    watch, began = Watch(bench), time.monotonic_ns()
    watch.start()
    seconds = 0
    try:
        for _ in range(ROUNDS):
            flood = bench.sw.hosts["h1"].ns.popen(program, "eth0", bench.sw.front.name, "p1", KINDS["arp"](H1, 7).hex(),
                                                  STORM_S, stdout=subprocess.PIPE, text=True)
            words = flood.stdout.read().split()
            flood.stdout.close()
            assert flood.wait() == 0 and len(words) == 2, "the storm did not run: see what it said above"
            seconds += float(words[1])
            sent = [b - a for a, b in zip(said, bench.said())]
            reasons = delta(before, bench.sw.show("traps")["items"], "reason")
            # more than the CPU takes, else it is no storm; something that it could have taken along; a look that counts
            if reasons.get("arp", (0, 0))[1] > 10_000 and min(sent) >= 5 and watch.judged(began)[0]:
                break
    finally:
        watch.end()
    judged, silences = watch.judged(began)
    broken = [state for state in judged if state]
    sent = [b - a for a, b in zip(said, bench.said())]
    got = []

    def all_there():
        got[:] = [b - a for a, b in zip(heard, bench.heard())]
        return all(g >= s for g, s in zip(got, sent))

    try:
        net.wait_until("what was sent to be there", all_there, timeout=5 * PACE)
    except TimeoutError:
        pass
    reasons = delta(before, bench.sw.show("traps")["items"], "reason")
    now = bench.sw.ports()["swp1"]
    offered = sum(counted(now, k) - counted(port, k) for k in ("cable_rx_frames", "cable_rx_overrun"))
    report = (f"storm: {offered:,} frames in {seconds:.0f} s; LACPDUs by two ports and BPDUs: sent {sent}, got "
              f"{got}; {silences} silences of {SILENT_S} s; {len(judged)} of {len(watch.looks)} looks judged; to "
              f"the CPU (passed, dropped) {reasons}")
    print(report)
    record_property("storm", report)
    assert reasons.get("arp", (0, 0))[1] > 10_000, f"{ROUNDS} rounds were no storm; {report}"
    assert min(sent) >= 5, f"far ends that said next to nothing; {report}"
    assert all(g >= s for g, s in zip(got, sent)), report
    assert judged, f"a far end was silent whenever somebody looked; {report}"
    assert not broken, f"{broken[:3]}; {report}"
    net.wait_until("both members to work", lambda: all(bench.members()), timeout=36 * PACE, every=0.2)
    bench.wait_for_the_tree()
