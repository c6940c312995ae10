# SPDX-License-Identifier: Apache-2.0
"""Promise 1, the twin test on who may speak, who is learned: `learning`, `locked`, 802.1X, MAC authentication, entries
that move with their station.

    h1 ── swp1 ─┐
    h2 ── swp2 ─┼─ br0
    h3 ── swp3 ─┤
    h4 ── swp4 ─┘
"""

import json
import os
import time

import pytest

from lib import net, twin
from lib.packet import ether
from lib.twin import MAC, NOBODY, Step, both, data

BROADCAST = "ff:ff:ff:ff:ff:ff"
H = MAC
ROAMER = "02:00:00:00:00:77"
STRANGER = "02:00:00:00:00:66"
ALL_BUT_1 = {"h2": 1, "h3": 1, "h4": 1}


def check(make, configure, steps):
    wrong, asic = both(make, configure, steps)
    assert not wrong, "\n".join(wrong)
    audit = asic.tandem("audit", "--wait", "2", check=False, timeout=60)
    assert "no differences" in audit, audit
    return asic


def port(n, words):
    return lambda sw: sw.ns.bridge(f"link set dev swp{n} {words}")


def fdb(words):
    return lambda sw: sw.ns.bridge(f"fdb {words}")


def do(*what):
    return lambda sw: [f(sw) for f in what]


def ageing(seconds):
    return lambda sw: sw.ip(f"link set br0 type bridge ageing_time {seconds * 100}")


def eapol(src):
    """EAPOL-Start (IEEE 802.1X 11.3.1), to the address that no bridge forwards."""
    return ether("01:80:c2:00:00:03", src, 0x888E, b"\2\1\0\0")


def learning_steps(_):
    speaks = [("h2", data(NOBODY, H["h2"])), ("h2", data(BROADCAST, H["h2"])), 0.1]
    to_2, to_roamer = ("h1", data(H["h2"], H["h1"])), ("h1", data(ROAMER, H["h1"]))
    return [
        Step("learning off: nobody is learned", do=port(2, "learning off"), frames=[*speaks, to_2], fits=True,
             expect={"h1": 2, "h2": 1, "h3": 3, "h4": 3}),
        Step("nor by the frames that the CPU gets", frames=[("h2", eapol(H["h2"])), 0.1, to_2], fits=True,
             expect=ALL_BUT_1),
        Step("on", do=port(2, "learning on"), frames=[*speaks, to_2], fits=True,
             expect={"h1": 2, "h2": 1, "h3": 2, "h4": 2}),
        Step("off again: what was learned stays", do=port(2, "learning off"), frames=[to_2], fits=True,
             expect={"h2": 1}),
        Step("a known station does not move to a port that does not learn", do=port(3, "learning off"),
             frames=[("h3", data(NOBODY, H["h2"])), 0.1, to_2], fits=True, expect={"h1": 1, "h2": 2, "h4": 1}),
        Step("and ages, as nothing that it says there counts", do=ageing(2),
             frames=[2.5, *speaks, 1.0, to_2], fits=True, expect={"h1": 2, "h2": 1, "h3": 3, "h4": 3}),
        Step("no_linklocal_learn: not by what it says to the bridge",
             do=do(port(2, "learning on"), lambda sw: sw.ip("link set br0 type bridge no_linklocal_learn 1 fdb_flush")),
             frames=[("h2", eapol(H["h2"])), 0.1, to_2], fits=True, expect=ALL_BUT_1),
        Step("but by that without it", do=lambda sw: sw.ip("link set br0 type bridge no_linklocal_learn 0"),
             frames=[("h2", eapol(H["h2"])), 0.1, to_2], fits=True, expect={"h2": 1}),
        Step("a port that learns is as it was", frames=[("h4", data(NOBODY, ROAMER)), 0.1, to_roamer], fits=True,
             expect={"h1": 1, "h2": 1, "h3": 1, "h4": 1}),
    ]


def test_learning_is_the_users_twin(make):
    check(make, twin.bridge, learning_steps)


def knocks(*stations, first=()):
    """What a host may try that nobody has let in, also with addresses that are not its own."""
    tries = [f for src in stations for f in (*(make(src) for make in first), data(H["h2"], src), data(BROADCAST, src),
                                             data(NOBODY, src))]
    return [x for f in tries for x in (("h1", f), 0.05)]


def strangers():
    """The same, and the frames that a bridge takes of anybody; h2 lives at another port."""
    return knocks(H["h1"], STRANGER, first=[eapol]) + knocks(H["h2"])


def dot1x_steps(_):
    known = [("h2", data(NOBODY, H["h2"])), ("h3", data(NOBODY, H["h3"])), 0.1]
    to_1 = ("h2", data(H["h1"], H["h2"]))
    return [
        Step("nobody is let in", do=port(1, "learning off locked on"), frames=[*known, *strangers(), *strangers()],
             expect={"h1": 2, "h2": 1, "h3": 1, "h4": 2}),
        Step("and nobody is known there",
             frames=[to_1, ("h2", data(STRANGER, H["h2"])), ("h3", data(H["h2"], H["h3"]))],
             fits=True, expect={"h1": 2, "h2": 1, "h3": 2, "h4": 2}),
        Step("the authenticator lets one in", do=fdb(f"replace {H['h1']} dev swp1 master static"),
             frames=[("h1", data(H["h2"], H["h1"])), to_1], fits=True, expect={"h1": 1, "h2": 1}),
        Step("and no other", frames=[("h1", data(H["h2"], STRANGER)), ("h1", data(H["h3"], H["h2"]))], fits=True,
             expect={}),
        Step("it turns up at a port that is not locked", frames=[("h3", data(NOBODY, H["h1"])), 0.1, to_1], fits=True,
             expect={"h1": 1, "h2": 1, "h3": 1, "h4": 1}),
        Step("and has lost its place", frames=[("h1", data(H["h2"], H["h1"]))], fits=True, expect={}),
        Step("let in by an entry that ages", do=fdb(f"replace {H['h1']} dev swp1 master dynamic"),
             frames=[("h1", data(H["h2"], H["h1"]))], fits=True, expect={"h2": 1}),
        Step("until it is taken away", do=fdb(f"del {H['h1']} dev swp1 master"), frames=strangers(), expect={}),
        Step("locked, and learning: link-local frames let in", do=port(1, "learning on"), frames=strangers()[:8],
             expect={"h2": 3, "h3": 2, "h4": 2}),
        Step("unless no_linklocal_learn",
             do=do(lambda sw: sw.ip("link set br0 type bridge no_linklocal_learn 1 fdb_flush")),
             frames=[*known, *strangers()], expect={"h1": 2, "h2": 1, "h3": 1, "h4": 2}),
        Step("unlocked",
             do=do(lambda sw: sw.ip("link set br0 type bridge no_linklocal_learn 0"), port(1, "locked off")),
             frames=[("h1", data(H["h2"], H["h1"])), to_1], fits=True, expect={"h1": 1, "h2": 1}),
    ]


def test_nobody_is_let_in_by_8021x_twin(make):
    check(make, twin.bridge, dot1x_steps)


SET_MAB = """
import socket, struct, sys
index, on = socket.if_nametoindex(sys.argv[1]), int(sys.argv[2])
settings = b"".join(struct.pack("=HHB3x", 5, kind, on) for kind in (8, 39, 40))  # LEARNING, LOCKED, MAB
if not on:
    settings = struct.pack("=HHB3x", 5, 40, 0)
body = struct.pack("=BxHiII", socket.AF_BRIDGE, 0, index, 0, 0)
body += struct.pack("=HH", 4 + len(settings), 12 | 1 << 15) + settings
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
s.send(struct.pack("=IHHII", 16 + len(body), 19, 5, 1, 0) + body)  # RTM_SETLINK, REQUEST | ACK
sys.exit(-struct.unpack_from("=i", s.recv(4096), 16)[0])
"""


def mab(n, on):
    """`bridge link set dev swpN learning on locked on mab on`: older iproute2 has no word for it."""
    return lambda sw: sw.ns.exec("python3", "-c", SET_MAB, f"swp{n}", str(int(on)))


def mab_steps(_):
    to_2, to_1 = ("h1", data(H["h2"], H["h1"])), ("h2", data(H["h1"], H["h2"]))
    known = [("h2", data(NOBODY, H["h2"])), 0.1]
    return [
        Step("nobody is let in", do=mab(1, True), frames=[*known, *knocks(H["h1"], STRANGER, H["h2"]), to_2],
             expect={"h1": 1, "h3": 1, "h4": 1}),
        Step("what is sent to one who only knocked goes to that port alone",
             frames=[0.3, to_1, ("h3", data(STRANGER, H["h3"]))], expect={"h1": 2}),
        Step("who knocked is let in", do=fdb(f"replace {H['h1']} dev swp1 master static"), frames=[to_2, to_1],
             expect={"h1": 1, "h2": 1}),
        Step("and nobody else", frames=knocks(STRANGER, H["h2"]), expect={}),
        Step("without it, those who only knocked are forgotten", do=mab(1, False), frames=knocks(STRANGER, H["h2"]),
             expect={}),
    ]


def test_mac_authentication_twin(make):
    if tuple(int(x) for x in os.uname().release.split("-", maxsplit=1)[0].split(".")[:2]) < (6, 2):
        pytest.skip("needs a kernel with MAC authentication (6.2)")
    asic = check(make, twin.bridge, mab_steps)
    mab(1, True)(asic)
    asic.sync()
    rows = {r["name"]: r for r in asic.api("switchd", "GET", "/v1/ports")["items"]}
    assert "mab" in rows["swp1"]["reason"] and not rows["swp2"]["reason"], rows


def roaming_steps(_):
    add = fdb(f"add {ROAMER} dev swp1 master extern_learn")
    to_roamer = ("h2", data(ROAMER, H["h2"]))
    return [
        Step("an entry of another program's", do=add, frames=[to_roamer], fits=True, expect={"h1": 1}),
        Step("does not age", do=ageing(1), frames=[2.5, to_roamer], fits=True, expect={"h1": 1}),
        Step("moves with its station", do=ageing(300), frames=[("h3", data(NOBODY, ROAMER)), 0.1, to_roamer], fits=True,
             expect={"h1": 1, "h2": 1, "h3": 1, "h4": 1}),
        Step("and back", frames=[("h1", data(NOBODY, ROAMER)), 0.1, to_roamer], fits=True,
             expect={"h1": 1, "h2": 1, "h3": 1, "h4": 1}),
        Step("and ages from then on", do=lambda sw: (ageing(1)(sw), time.sleep(2.5)), frames=[to_roamer], fits=True,
             expect={"h1": 1, "h3": 1, "h4": 1}),
        Step("not to a port that does not learn", do=do(ageing(300), add, port(3, "learning off")),
             frames=[("h3", data(NOBODY, ROAMER)), 0.1, to_roamer], fits=True, expect={"h1": 2, "h2": 1, "h4": 1}),
        Step("sticky ones stay", do=do(port(3, "learning on"), fdb(f"replace {ROAMER} dev swp1 master static sticky")),
             frames=[("h3", data(NOBODY, ROAMER)), 0.1, to_roamer], fits=True, expect={"h1": 2, "h2": 1, "h4": 1}),
    ]


def test_entries_of_other_programs_move_twin(make):
    check(make, twin.bridge, roaming_steps)


LIMIT = """
import socket, struct, sys
def attr(kind, data):
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)
body = struct.pack("=BxHiII", 0, 0, socket.if_nametoindex("br0"), 0, 0)
body += attr(18, attr(1, b"bridge\\0") + attr(2, attr(49, struct.pack("=I", int(sys.argv[1])))))
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
s.send(struct.pack("=IHHII", 16 + len(body), 16, 5, 1, 0) + body)  # RTM_NEWLINK, REQUEST | ACK
sys.exit(-struct.unpack_from("=i", s.recv(4096), 16)[0])
"""


def limit(stations):
    """`ip link set br0 type bridge fdb_max_learned N`: older iproute2 has no word for it."""
    return lambda sw: sw.ns.exec("python3", "-c", LIMIT, str(stations))


def places(sw):
    """Where the kernel's bridge knows the hosts to be: MAC address -> port."""
    rows = json.loads(sw.ns.bridge("-j fdb show br br0"))
    return {r["mac"]: r["ifname"] for r in rows if r["mac"] in H.values() and r.get("master") == "br0"}


def known(**where):
    """Waits until these hosts, and no others, are known at these ports: in the kernel, and in the chip."""
    want = {H[h]: f"swp{n}" for h, n in where.items()}

    def wait(sw, _):
        net.wait_until(f"the bridge to know {want}, not {places(sw)}", lambda: places(sw) == want, timeout=60)
        sw.sync()
    return wait


def arrived(host, frames):
    """Waits until so many frames of this step have come to a host."""
    def wait(_, wires):
        net.wait_until(f"{frames} frames at {host}", lambda: len(wires[host].frames) >= frames, timeout=60)
    return wait


AGEING_S, ROUND_S, ROUNDS, STALL_S = 8, 0.3, 32, 2.5


def speaking(sw, wires):
    """Two speak to each other for longer than the ageing time, never silent for long. Where the machine did not let
    them speak for so long that they may have lost their places, it tells nothing: once more."""
    for _ in range(20):
        for w in wires.values():
            w.clear()
        latest, longest = time.monotonic(), 0.0
        for _ in range(ROUNDS):
            wires["h2"].send(data(H["h1"], H["h2"]))
            wires["h3"].send(data(H["h2"], H["h1"]))
            time.sleep(ROUND_S)
            longest, latest = max(longest, time.monotonic() - latest), time.monotonic()
        if longest < STALL_S:
            return
        wires["h3"].send(data(NOBODY, H["h1"]))
        wires["h2"].send(data(NOBODY, H["h2"]))
        known(h1=3, h2=2)(sw, wires)
        twin.quiet(wires, sw=sw)
    raise TimeoutError(f"the machine stood still for {STALL_S} s, time and again")


def limit_steps(_):
    speaks = {h: (h, data(NOBODY, H[h])) for h in H}
    to = {h: ("h4", data(H[h], H["h4"])) for h in H}
    return [
        Step("before there is a limit all are learned",
             frames=[speaks["h1"], speaks["h2"], speaks["h3"], arrived("h4", 3), to["h3"]], fits=True,
             expect={"h1": 2, "h2": 2, "h3": 3, "h4": 3}),
        Step("two may be known", do=do(limit(2), lambda sw: sw.ip("link set br0 type bridge fdb_flush")),
             frames=[speaks["h1"], known(h1=1), speaks["h2"], known(h1=1, h2=2), speaks["h3"], arrived("h4", 3),
                     to["h1"], to["h2"], to["h3"], arrived("h3", 3), known(h1=1, h2=2)],
             expect={"h1": 4, "h2": 4, "h3": 3, "h4": 3}),
        Step("whom the chip forwards", frames=[("h1", data(H["h2"], H["h1"])), ("h2", data(H["h1"], H["h2"]))],
             fits=True, expect={"h1": 1, "h2": 1}),
        Step("they may move", frames=[("h3", data(NOBODY, H["h1"])), known(h1=3, h2=2), ("h2", data(H["h1"], H["h2"]))],
             expect={"h1": 1, "h2": 1, "h3": 1, "h4": 1}),
        Step("and lose their place to nobody as long as they speak", do=ageing(AGEING_S),
             frames=[speaking, to["h2"], arrived("h2", ROUNDS + 1), ("h2", data(H["h4"], H["h2"]))],
             expect={"h1": 1, "h2": ROUNDS + 1, "h3": ROUNDS + 1, "h4": 1}),
        Step("who is silent makes room for another",
             frames=[known(), speaks["h4"], known(h4=4), ("h3", data(H["h4"], H["h3"]))],
             expect={"h1": 1, "h2": 1, "h3": 1, "h4": 1}),
        Step("without a limit the chip learns", do=do(ageing(300), limit(0)),
             frames=[("h1", data(NOBODY, ROAMER)), arrived("h4", 1), ("h2", data(ROAMER, H["h2"]))], fits=True,
             expect={"h1": 1, "h2": 1, "h3": 1, "h4": 1}),
    ]


def test_a_limit_of_learned_stations_twin(make):
    if tuple(int(x) for x in os.uname().release.split("-", maxsplit=1)[0].split(".")[:2]) < (6, 7):
        pytest.skip("needs a kernel with fdb_max_learned (6.7)")
    check(make, twin.bridge, limit_steps)
