# SPDX-License-Identifier: Apache-2.0
"""The appliance's spanning tree, either engine: two of them with two cables between. Engine kernel needs a kernel with
bridges that filter by VLAN: the lab's machine has one (tests/vm/e2e), a build machine may not.

    h1 ── port 1 [ a, the root ] port 2 ──── port 2 [ b ] port 1 ── h2
                                 port 3 ──── port 3
"""

import struct

import pytest

from lib import appliance, net, traffic
from lib.appliance import BridgeSwitch, ChipSwitch
from lib.packet import Wire, udp4_frame

MACS = {"h1": "02:00:00:00:0a:01", "h2": "02:00:00:00:0b:01"}
ALL = "ff:ff:ff:ff:ff:ff"
ROOT, OTHER = ("Root", "FWD"), ("Altn", "BLK")


def config(*lines, host=("spanning-tree portfast",)):
    return {"lines": ["spanning-tree mode rstp", *lines], "interfaces": {"port1": {"lines": list(host)}}}


@pytest.fixture(params=["chip", "kernel"], name="engine")
def the_engine(request):
    if request.param == "chip":
        return ChipSwitch
    lacks = appliance.kernel_lacks()
    if lacks:
        pytest.skip(f"needs a kernel with {lacks}")
    return BridgeSwitch


@pytest.fixture
def pair(make, engine):
    a, b = engine(make.prefix()), engine(make.prefix())
    try:
        a.host("h1", 1, MACS["h1"]).address("10.1.0.1/24")
        b.host("h2", 1, MACS["h2"]).address("10.1.0.2/24")
        for port in (2, 3):
            net.cable(a.front, f"p{port}", b.front, f"p{port}")
            a.cabled.append(port)
            b.cabled.append(port)
        a.start(config("spanning-tree priority 4096"))
        b.start(config())
        yield a, b
    finally:
        for sw in (a, b):
            print(sw.log("swcfgd"))
            sw.delete()


def settled(pair, root=2, other=3):
    """The tree is the one that two cables have."""
    a, b = pair
    designated = {1: ("Desg", "FWD"), 2: ("Desg", "FWD"), 3: ("Desg", "FWD")}
    net.wait_until("a to be the root", lambda: a.tree() == designated)
    wanted = {1: ("Desg", "FWD"), root: ROOT, other: OTHER}
    net.wait_until(f"b to have {wanted}", lambda: b.tree() == wanted)
    a.sync()
    b.sync()
    # what is said is what is in the chip; a port that discards is blocking or listening there
    words = {"FWD": {"forwarding"}, "BLK": {"blocking", "listening"}}
    for sw, tree in ((a, designated), (b, wanted)):
        there = {p["port"]: p["stp_state"] for p in sw.chip("/v1/table/ports")["items"]}
        assert all(there[n] in words[state] for n, (_, state) in tree.items()), there


def reach(pair):
    a, _ = pair
    net.wait_until("h1 to reach h2", lambda: a.hosts["h1"].ping("10.1.0.2"))


def test_two_cables_are_no_loop(pair):
    a, b = pair
    settled(pair)
    reach(pair)
    wires = [Wire(a.hosts["h1"].ns), Wire(b.hosts["h2"].ns)]
    try:
        def once(n):
            text = f"number {n:06d}".encode()
            wires[0].send(udp4_frame(ALL, MACS["h1"], "10.1.0.1", "10.99.0.1", data=text))
            net.wait_until(f"{text!r} at h2", lambda: wires[1].caught(lambda f: text in f))
            # what would go round has come again by then
            for _ in range(3):
                a.hosts["h1"].ping("10.1.0.2", check=True)
            assert [len(w.caught(lambda f: text in f)) for w in wires] == [0, 1]

        once(1)
        # the cable in use is cut: the other one is there at once, and what was learned by the old one is forgotten
        a.front.ip("link set p2 down")
        reach(pair)
        net.wait_until("b to have its other port", lambda: b.tree() == {1: ("Desg", "FWD"), 3: ROOT})
        once(2)
        a.front.ip("link set p2 up")
        settled(pair)
        reach(pair)
        once(3)
        # another root: b's ports forward, one of a's does not
        b.cli("configure terminal", "spanning-tree priority 0")
        net.wait_until("a to have a root port", lambda: a.tree() == {1: ("Desg", "FWD"), 2: ROOT, 3: OTHER})
        reach(pair)
        once(4)
    finally:
        for w in wires:
            w.close()


def test_swcfgd_is_killed_and_comes_back(pair):
    """The chip forwards as it did; the next one begins with what is no loop in any case."""
    a, b = pair
    settled(pair)
    reach(pair)
    b.kill("swcfgd")
    a.hosts["h1"].ping("10.1.0.2", check=True)
    b.start_swcfgd()
    settled(pair)
    reach(pair)
    with Wire(b.hosts["h2"].ns) as wire:
        text = b"after the new one"
        with Wire(a.hosts["h1"].ns) as h1:
            h1.send(udp4_frame(ALL, MACS["h1"], "10.1.0.1", "10.99.0.1", data=text))
            net.wait_until("it at h2", lambda: wire.caught(lambda f: text in f))
            a.hosts["h1"].ping("10.1.0.2", check=True)
            assert len(wire.caught(lambda f: text in f)) == 1
            assert not h1.caught(lambda f: text in f)


def bpdu(mac):
    """An RST BPDU of a bridge that is worse than any."""
    own = struct.pack("!H", 0xf000) + bytes.fromhex(mac.replace(":", ""))
    body = b"\x42\x42\x03" + b"\0\0\x02\x02\x0c" + own + struct.pack("!I", 0) + own
    body += struct.pack("!HHHHH", 0x8001, 0, 20 << 8, 2 << 8, 15 << 8) + b"\0"
    head = bytes.fromhex("0180c2000000" + mac.replace(":", "")) + struct.pack("!H", len(body))
    return (head + body).ljust(60, b"\0")


@pytest.fixture
def alone(make, engine):
    sw = engine(make.prefix())
    try:
        for n in (1, 2):
            sw.host(f"h{n}", n, f"02:00:00:00:0a:{n:02x}").address(f"10.1.0.{n}/24")
        edge = ["spanning-tree portfast", "spanning-tree bpduguard enable"]
        sw.start({"lines": ["spanning-tree mode rstp"],
                  "interfaces": {f"port{n}": {"lines": edge} for n in (1, 2)}})
        yield sw
    finally:
        print(sw.log("swcfgd"))
        sw.delete()


def status(sw, port):
    line = [words for words in map(str.split, sw.cli("show interfaces status").splitlines())
            if words and words[0].endswith(f"/{port}")]
    return line[0][1]


def test_a_bpdu_where_none_is_to_be(alone):
    sw = alone
    h1 = sw.hosts["h1"]
    net.wait_until("h1 to reach h2", lambda: h1.ping("10.1.0.2"))
    name = next(n for n in sw.links() if n.endswith("/1"))
    with Wire(h1.ns) as wire, Wire(sw.hosts["h2"].ns) as other:
        wire.send(bpdu(MACS["h1"]))
        net.wait_until("the port to be out of service", lambda: status(sw, 1) == "err-disabled")
        sw.sync()
        assert not h1.ping("10.1.0.2")
        own = bytes.fromhex(MACS["h1"].replace(":", ""))
        assert not other.caught(lambda f: f[6:12] == own and f[:6] == b"\x01\x80\xc2\0\0\0"), "it went no further"
    sw.cli("configure terminal", f"interface {name}", "shutdown")
    assert status(sw, 1) == "disabled"
    sw.cli("configure terminal", f"interface {name}", "no shutdown")
    net.wait_until("h1 to reach h2 again", lambda: h1.ping("10.1.0.2"))
    assert status(sw, 1) == "connected"
    # without a tree all forwards
    sw.cli("configure terminal", "no spanning-tree mode")
    assert "No spanning tree" in sw.cli("show spanning-tree")
    h1.ping("10.1.0.2", check=True)


def test_hosts_lose_nothing_by_a_restart(alone, folder):
    sw = alone
    net.wait_until("h1 to reach h2", lambda: sw.hosts["h1"].ping("10.1.0.2"))
    sw.hosts_ask_nobody()
    stream = traffic.Stream(sw.hosts["h1"].ns, sw.hosts["h2"].ns, "10.1.0.2", folder, "kill", pps=500, seconds=600)
    for _ in range(2):
        sw.kill("swcfgd")
        sw.start_swcfgd()
        net.wait_until("the tree", lambda: set(sw.tree().values()) == {("Desg", "FWD")})
        sw.hosts["h1"].ping("10.1.0.2", count=3, interval=0.01, check=True)
    result = stream.finish()
    assert result.count and not result.lost and not result.duplicates, str(result)
