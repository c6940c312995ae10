# SPDX-License-Identifier: Apache-2.0
"""Promise 1 at every instant: frames are sent while the object that answers them changes. Each frame has the answer
from before the command or the one from after it, whole and once; what is sent after the barrier has the one from after.

     time ──►   sent, arrived      command begins      it is in sync           the next command
     answer     only before        either of the two   only after ─────────────────────────────►

The two answers are those that the kernel alone gives at rest.
"""

import collections
import re
import threading
import time

import pytest

from lib import net, packet, twin
from lib.packet import Wire, udp4_frame, udp6_frame
from lib.switch import PACE
from lib.twin import HOSTS, MAC, NOBODY, lone, port_macs

FLIPS = 24
PAUSE = 0.002  # between two frames: fewer a second than a policer lets pass to the CPU, whose answer is right as well
NUMBER = re.compile(rb"@(\d{7})")


def router(sw):
    sw.router()
    for i in range(1, 5):
        sw.gateway(i, six=True)
        for address in (f"10.{i}.0.2", f"fd0{i}::2"):
            sw.ip(f"neigh replace {address} lladdr {MAC[f'h{i}']} dev swp{i} nud permanent")


def switch(sw):
    twin.bridge(sw)
    sw.ns.bridge(f"fdb add {MAC['h1']} dev swp1 master static")


def four(mac, number):
    return udp4_frame(mac[1], MAC["h1"], "10.1.0.2", "77.0.1.1", data=b"@%07d" % number)


def six(mac, number):
    return udp6_frame(mac[1], MAC["h1"], "fd01::2", "fd77::1", data=b"@%07d" % number)


def bridged(_, number):
    return udp4_frame(NOBODY, MAC["h1"], "192.0.2.1", "192.0.2.2", data=b"@%07d" % number)


# name: (topology, frame, commands before, command to the first answer, command to the second)
CASES: dict[str, tuple] = {
    "a route": (
        router, four, [], "ip route replace 77.0.0.0/16 via 10.2.0.2", "ip route replace 77.0.0.0/16 via 10.3.0.2"),
    "a route of IPv6": (
        router, six, [], "ip route replace fd77::/32 via fd02::2", "ip route replace fd77::/32 via fd03::2"),
    "a route and a blackhole": (
        router, four, [], "ip route replace 77.0.0.0/16 via 10.2.0.2", "ip route replace blackhole 77.0.0.0/16"),
    "a longer prefix": (
        router, four, ["ip route add 77.0.0.0/16 via 10.2.0.2", "ip route add 77.0.1.0/24 via 10.3.0.2"],
        "ip route del 77.0.1.0/24 via 10.3.0.2", "ip route add 77.0.1.0/24 via 10.3.0.2"),
    "a better metric": (
        router, four,
        ["ip route add 77.0.0.0/16 via 10.2.0.2 metric 20", "ip route add 77.0.0.0/16 via 10.4.0.2 metric 10"],
        "ip route del 77.0.0.0/16 metric 10", "ip route add 77.0.0.0/16 via 10.4.0.2 metric 10"),
    "a next-hop object": (
        router, four, ["ip nexthop add id 5 via 10.2.0.2 dev swp2", "ip route add 77.0.0.0/16 nhid 5"],
        "ip nexthop replace id 5 via 10.2.0.2 dev swp2", "ip nexthop replace id 5 via 10.3.0.2 dev swp3"),
    "a next-hop object and a blackhole": (
        router, four, ["ip nexthop add id 5 via 10.2.0.2 dev swp2", "ip route add 77.0.0.0/16 nhid 5"],
        "ip nexthop replace id 5 via 10.2.0.2 dev swp2", "ip nexthop replace id 5 blackhole"),
    "a group of next-hop objects": (
        router, four, ["ip nexthop add id 5 via 10.2.0.2 dev swp2", "ip nexthop add id 6 via 10.3.0.2 dev swp3",
                       "ip nexthop add id 9 group 5", "ip route add 77.0.0.0/16 nhid 9"],
        "ip nexthop replace id 9 group 5", "ip nexthop replace id 9 group 6"),
    "a neighbour's address": (
        router, four, ["ip route add 77.0.0.0/16 via 10.2.0.2"],
        f"ip neigh replace 10.2.0.2 lladdr {MAC['h2']} dev swp2 nud permanent",
        "ip neigh replace 10.2.0.2 lladdr 02:00:00:00:00:78 dev swp2 nud permanent"),
    "where a station is": (switch, bridged, [], f"bridge fdb replace {NOBODY} dev swp2 master static",
                           f"bridge fdb replace {NOBODY} dev swp3 master static"),
    "whether a station is known": (
        switch, bridged, [f"bridge fdb add {NOBODY} dev swp2 master static"],
        f"bridge fdb del {NOBODY} dev swp2 master", f"bridge fdb add {NOBODY} dev swp2 master static"),
    "whether a port is flooded to": (switch, bridged, [], "bridge link set dev swp4 flood on",
                                     "bridge link set dev swp4 flood off"),
    "whether ports are isolated": (switch, bridged, ["bridge link set dev swp4 isolated on"],
                                   "bridge link set dev swp1 isolated off", "bridge link set dev swp1 isolated on"),
    "a filter": (router, four, ["ip route add 77.0.0.0/16 via 10.2.0.2"],
                 "tc filter del dev swp1 ingress pref 7",
                 "tc filter add dev swp1 ingress pref 7 protocol ip flower dst_ip 77.0.1.1 action drop"),
    "another action of a filter": (
        router, four, ["ip route add 77.0.0.0/16 via 10.2.0.2"],
        "tc filter replace dev swp1 ingress pref 7 handle 1 protocol ip flower dst_ip 77.0.1.1 action pass",
        "tc filter replace dev swp1 ingress pref 7 handle 1 protocol ip flower dst_ip 77.0.1.1 action drop"),
}


def command(sw, line):
    tool, *words = line.split()
    if tool == "ip" and ":" in line and "route" in line:
        words = ["-6", *words]
    sw.ns.exec(tool, *words)


class Traffic:
    """Frames with numbers from h1, one after the other, and what came of each: (place, destination, source) of its
    copies, and when the first one came."""

    def __init__(self, wires, frame, sw):
        self.wires = wires
        self.sw = sw
        self.frame = frame
        self.next = 0
        self.going = True
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while self.going:
            self.wires["h1"].send(self.frame(self.next))
            self.next += 1
            time.sleep(PAUSE)

    def so_far(self):
        """The number of the next frame: all that have it or a later one are sent from now on."""
        return self.next + 1  # one may be on its way into the socket

    def end(self):
        self.going = False
        self.thread.join(5)
        twin.quiet(self.wires, least=0.2, most=3, sw=self.sw)
        answers, first = collections.defaultdict(list), {}
        for host, wire in self.wires.items():
            for when, frame in list(wire.frames):
                number = NUMBER.search(frame)
                if not number:
                    continue
                n = int(number[1])
                sent = self.frame(n)
                if not (host == "h1" and frame == sent):
                    whole = sent[NUMBER.search(sent).start():].rstrip(b"\0") in frame  # without padding
                    answers[n].append((host if whole else f"{host}, cut or changed", packet.mac_text(frame[:6]),
                                       packet.mac_text(frame[6:12])))
                    first[n] = min(when, first.get(n, when))
        return {n: tuple(sorted(answers[n])) for n in range(self.next)}, first


def at_rest(sw, wires, frame):
    """The one answer that a frame has now."""
    for w in wires.values():
        w.clear()
    traffic = Traffic(wires, frame, sw)
    net.wait_until("ten frames to be sent", lambda: traffic.next >= 10, timeout=10)
    answers, _ = traffic.end()
    found = set(answers.values())
    assert len(found) == 1, f"at rest {sw.prefix} answers in more than one way: {found}"
    return found.pop()


def prepared(sw, case):
    topology, _, before, to_first, _ = CASES[case]
    topology(sw)
    for line in before:
        command(sw, line)
    if not (case == "a filter"):
        command(sw, to_first)
    sw.sync()


@pytest.mark.parametrize("case", CASES, ids=[re.sub(r"\W+", "-", c) for c in CASES])
def test_each_frame_has_the_answer_from_before_or_after(make, case):
    _, frame, _, to_first, to_second = CASES[case]
    kernel, asic = lone(make)
    if "tc filter" in to_second:
        try:
            for sw in (kernel, asic):
                twin.clsact(sw, 1)
            for line in (to_second, "tc filter del dev swp1 ingress pref 7"):
                kernel.ns.exec(*line.split())
        except net.CommandError:
            pytest.skip("needs a kernel with flower and mirred")
    macs = port_macs(asic)

    def numbered(n):
        return frame(macs, n)

    expected, wires = [], {}
    try:
        for sw in (kernel, asic):
            prepared(sw, case)
            wires[sw] = {h: Wire(host.ns) for h, host in sw.hosts.items() if h in HOSTS}
        expected.append(at_rest(kernel, wires[kernel], numbered))
        command(kernel, to_second)
        expected.append(at_rest(kernel, wires[kernel], numbered))
        assert expected[0] != expected[1], f"the step itself changes nothing: {expected}"
        assert at_rest(asic, wires[asic], numbered) == expected[0]
        for w in wires[asic].values():
            w.clear()
        traffic = Traffic(wires[asic], numbered, asic)
        phases = [(0, 0, expected[0])]  # (first frame sent in sync, when the command for it began, its answer)
        begun = []
        for flip in range(FLIPS):
            time.sleep(0.02 * PACE)
            begun.append(time.monotonic_ns())
            command(asic, to_first if flip % 2 else to_second)
            asic.sync()
            phases.append((traffic.so_far(), begun[-1], expected[(flip + 1) % 2]))
        time.sleep(0.02 * PACE)
        answers, came = traffic.end()
    finally:
        for some in wires.values():
            for w in some.values():
                w.close()
    wrong, between = judged(answers, came, phases)
    assert not wrong, f"{len(wrong)} of {len(answers)} frames: " + "; ".join(wrong[:5])
    assert between >= FLIPS, f"only {between} frames were sent while something changed"
    print(f"{case}: {len(answers)} frames, {between} of them between a command and its barrier")
    assert asic.api("switchd", "POST", "/v1/audit", {"wait_s": 3.0}, timeout=60)["items"] == []


def judged(answers, came, phases):
    """What is wrong, and how many frames were under way while something changed. A frame of a phase has that phase's
    answer; or the next one's, if it did not come before the next command began. One that never came was on its way then
    only if none sent after it had come already."""
    wrong, between = [], 0
    for (first, _, answer), following in zip(phases, [*phases[1:], None]):
        end = following[0] if following else len(answers)
        landed = max((n for n in range(first, end) if following and n in came and came[n] < following[1]), default=-1)
        for n in range(first, end):
            got = answers.get(n)
            if got == answer:
                between += bool(following and n in came and came[n] >= following[1])
                continue
            may = following and got == following[2] and (came[n] >= following[1] if n in came else n > landed)
            between += bool(may)
            if not may:
                wrong.append(f"frame {n} of phase from {first}: {got}, wanted {answer}"
                             + (f" or, after the next command, {following[2]}" if following else ""))
    return wrong, between


@pytest.mark.no_daemons
def test_the_judge_says_no():
    a, b = (("h2", "x", "y"),), (("h3", "x", "y"),)
    phases = [(0, 0, a), (4, 100, b)]
    right = {0: a, 1: a, 2: b, 3: a, 4: b, 5: b}
    came = {0: 10, 1: 90, 2: 110, 3: 105, 4: 130, 5: 140}
    assert judged(right, came, phases) == ([], 2)
    assert judged({**right, 5: a}, came, phases)[0], "the old answer after the barrier"
    assert judged({**right, 1: b}, came, phases)[0], "the new answer before the command"
    assert judged({**right, 2: ()}, came, phases)[0], "lost on the way"
    assert judged({**right, 2: a + b}, came, phases)[0], "both"
    dropped = [(0, 0, a), (4, 100, ())]
    gone = {0: a, 1: a, 2: (), 3: (), 4: (), 5: ()}
    assert judged(gone, {0: 10, 1: 90}, dropped)[0] == []
    assert judged({**gone, 0: ()}, {1: 90}, dropped)[0], "lost before the command: the one after it had come"
