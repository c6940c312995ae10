# SPDX-License-Identifier: Apache-2.0
"""Logical OpenFlow switches: some of the ports each, numbers, controllers, tables of their own, nothing of others."""

import struct

import pytest

from lib import net, openflow
from lib.openflow import FEATURES_REQUEST, PACKET_IN, PACKET_OUT, PORT, PORT_STATUS

FLOOD, CONTROLLER = 0xfffffffb, 0xfffffffd
BLUE = PORT + 1
# h1 and h2 are red's 1 and 2; h3 and h4 are blue's 2 and 1
SWITCHES = ("--lsi", "red:swp1,swp2", "--lsi", "blue:swp3=2,swp4=1",
            "--controller", f"red=ptcp:127.0.0.1:{PORT}", "--controller", f"blue=ptcp:127.0.0.1:{BLUE}")
CHIP = ("--profile", "nxp-t1040")


@pytest.fixture
def sw(request):
    yield from openflow.lives(request, openflow.Switch(openflow.new(), hosts=4))


def flow10(peer, out, in_port):
    """A flow of 1.0: what comes in there leaves there."""
    wildcards = 0x3fffff & ~1
    match = struct.pack("!IH6s6sHBxHBB2xIIHH", wildcards, in_port, bytes(6), bytes(6), 0, 0, 0, 0, 0, 0, 0, 0, 0)
    peer.send(14, match + struct.pack("!QHHHHIHHHHHH", 0, 0, 0, 0, 1, 0xffffffff, 0xffff, 0, 0, 8, out, 0))


def barrier10(peer):
    return peer.ask(18, answer=19)


def packet_out(peer, port, frame):
    body = struct.pack("!IIH6xHHIH6x", 0xffffffff, CONTROLLER, 16, 0, 16, port, 0xffff)
    peer.send(PACKET_OUT, body + frame)


def ready(sw, *words):
    # a test may be busy for longer than a controller that lives is silent
    sw.up(*SWITCHES, *words, "--probe", "60")
    if "--profile" in words:
        net.wait_until("the chip to be open", lambda: sw.status()["chip"]["state"] == "open"
                       and sw.status()["chip"]["settled"])


def seen(sw):
    """What each host's interface has received."""
    return [int(h.read("/sys/class/net/eth0/statistics/rx_packets")) for h in sw.hosts]


@pytest.mark.parametrize("below", [(), CHIP, (*CHIP, "--mac-lookup", "vlan"), ("--profile", "tiny")])
def test_two_versions_at_once_and_nothing_between_them(sw, below):
    ready(sw, *below, "--versions", "blue=1.0", "--datapath-id", "red=0xaa", "--datapath-id", "blue=0xbb")
    red, blue = sw.peer(), sw.peer(version=1, port=BLUE)
    assert red.ask(FEATURES_REQUEST)[:8] == struct.pack("!Q", 0xaa)
    features = blue.ask(FEATURES_REQUEST)
    assert features[:8] == struct.pack("!Q", 0xbb)
    names = {struct.unpack_from("!H", features, at)[0]: features[at + 8:at + 24].rstrip(b"\0")
             for at in range(24, len(features), 48)}
    assert names == {2: b"swp3", 1: b"swp4"}
    # all that comes goes everywhere, in red; in blue what comes in by 2 leaves by 1
    red.flow(FLOOD)
    red.barrier()
    flow10(blue, 1, 2)
    barrier10(blue)
    before = seen(sw)
    # no neighbour is known that could be asked alone: each is asked by broadcast, with IP behind it
    for a in (1, 3):
        sw.hosts[a - 1].ip("neigh replace 10.0.0.9 lladdr ff:ff:ff:ff:ff:ff dev eth0")
        sw.hosts[a - 1].exec("ping", "-n", "-c", 3, "-i", "0.2", "-W", "1", "10.0.0.9", check=False)
    net.wait_until("all to come", lambda: all(seen(sw)[n] - before[n] >= 3 for n in (1, 3)))
    got = [b - a for a, b in zip(before, seen(sw))]
    assert got == [0, 3, 0, 3], got
    # the way back
    flow10(blue, 2, 1)
    barrier10(blue)
    sw.reaches(1, 2)
    sw.reaches(3, 4)
    assert sw.pings(1, 3, 1) == 0 and sw.pings(4, 2, 1) == 0
    # flows go in one and stay in the other
    red.send(14, struct.pack("!QQBBHHHIIIH2xHH4x", 0, 0, 255, 3, 0, 0, 0, 0xffffffff, 0xffffffff, 0xffffffff, 0, 1, 4))
    red.barrier()
    assert sw.pings(1, 2, 1) == 0 and sw.answered(3, 4, 1)
    rows = {r["lsi"]: r for r in sw.show("lsis")}
    told = ("version_spoken", "flows", "controllers", "datapath_id")
    assert [rows["red"][x] for x in told] == ["1.3", 0, 1, "00000000000000aa"]
    assert [rows["blue"][x] for x in told] == ["1.0", 2, 1, "00000000000000bb"]
    assert rows["blue"]["members"] == "swp4=1,swp3=2"
    if below:
        places = {f["place"] for f in sw.show("flows", "--lsi", "blue")}
        assert places == {"hardware"}, sw.show("flows", "--lsi", "blue", "--why")


def test_each_has_its_own_stations(sw):
    """On a chip all stand in the MAC table, the same address at another port in each, and the CPU hears nothing."""
    ready(sw, *CHIP)
    red, blue = sw.peer(), sw.peer(port=BLUE)
    macs = [h.read("/sys/class/net/eth0/address").strip() for h in sw.hosts]
    everybody = "ff:ff:ff:ff:ff:ff"
    for peer, at in ((red, {macs[0]: 1, macs[1]: 2}), (blue, {macs[2]: 2, macs[3]: 1, macs[1]: 1})):
        for dst, out in {**at, everybody: FLOOD}.items():
            peer.flow(out, dst=dst)
        peer.barrier()
    for name, n in (("red", 3), ("blue", 4)):
        flows = sw.show("flows", "--lsi", name, "--why")
        assert len(flows) == n and all("in the MAC table" in f["why"] for f in flows), flows
    sw.reaches(1, 2)
    sw.reaches(3, 4)
    # from here on nobody asks who has an address
    for a, b in ((1, 2), (2, 1), (3, 4), (4, 3)):
        sw.hosts[a - 1].ip(f"neigh replace 10.0.0.{b} lladdr {macs[b - 1]} dev eth0 nud permanent")
    for a, b in ((1, 2), (2, 1), (3, 4), (4, 3)):
        assert sw.answered(a, b, 5)
    assert sum(p["counters"]["rx_cpu_packets"] for p in sw.chip_ports()) == 0
    # red's h2 is somebody else's address in blue
    before = seen(sw)
    sw.hosts[2].ip(f"neigh replace 10.0.0.9 lladdr {macs[1]} dev eth0 nud permanent")
    sw.hosts[2].exec("ping", "-n", "-c", 3, "-i", "0.2", "-W", "1", "10.0.0.9", check=False)
    net.wait_until("all to come", lambda: seen(sw)[3] - before[3] >= 3)
    got = [b - a for a, b in zip(before, seen(sw))]
    assert got == [0, 0, 0, 3], got
    after = sw.status()["chip"]
    assert (after["attaches"], after["refused"]) == (2, 0), after


@pytest.mark.parametrize("below", [(), CHIP])
def test_controllers_hear_of_their_own(sw, below):
    ready(sw, *below)
    red, blue = sw.peer(), sw.peer(port=BLUE)
    for peer in (red, blue):
        peer.flow(CONTROLLER, priority=0)
        peer.barrier()
    sw.pings(3, 4, 1)
    # red's number 2 is blue's, too: in_port of the packet-in is blue's number of swp3
    assert struct.unpack_from("!I", blue.wait(PACKET_IN), 24)[0] == 2
    sw.hosts[3].ip("link set eth0 down")
    told = blue.wait(PORT_STATUS)
    assert struct.unpack_from("!I", told, 8)[0] == 1
    # a flood of blue's goes to blue's
    before = seen(sw)
    packet_out(blue, FLOOD, b"\xff" * 6 + b"\2\0\0\0\0\1" + b"\x88\xb5" + bytes(46))
    blue.barrier()
    net.wait_until("the frame to come", lambda: seen(sw)[2] == before[2] + 1)
    assert seen(sw)[:2] == before[:2]
    # and red has heard nothing of all that
    red.send(2, b"still")
    kind, _, body = red.next()
    assert (kind, body) == (3, b"still")
    # blue's controller goes; red's is not missed
    blue.close()
    net.wait_until("it to be missed", lambda: sw.status()["controllers"] == 1)
    assert red.barrier() == b""


def test_one_stands_alone_without_its_controller_the_other_does_not(sw):
    ready(sw, "--fail", "blue=standalone")
    sw.reaches(3, 4)
    assert sw.pings(1, 2, 1) == 0 and sw.pings(3, 1, 1) == 0
    rows = {r["lsi"]: r["standalone"] for r in sw.show("lsis")}
    assert rows == {"red": False, "blue": True}


def test_ports_come_to_one_and_go(sw):
    ready(sw)
    red, blue = sw.peer(), sw.peer(port=BLUE)
    sw.host(5)
    code, _, err = sw.call("port", "add", "swp5=p5:1", "--lsi", "red")
    assert code == 1 and "swp1 has the number 1 already" in err and err.count("\n") == 1, err
    code, _, err = sw.call("port", "add", "swp5=p5")
    assert code == 1 and "which logical switch, of red, blue?" in err and err.count("\n") == 1, err
    assert "port 5" in sw.tandem("openflow", "port", "add", "swp5=p5", "--lsi", "blue")
    added = blue.wait(PORT_STATUS)
    assert added[0] == 0 and struct.unpack_from("!I", added, 8)[0] == 5
    blue.flow(FLOOD)
    blue.barrier()
    sw.reaches(3, 5)
    sw.tandem("openflow", "port", "del", "swp5")
    while blue.wait(PORT_STATUS)[0] != 1:
        pass
    assert [p["name"] for p in sw.show("ports", "--lsi", "blue")] == ["swp4", "swp3"]
    # and to the other one
    sw.tandem("openflow", "port", "add", "swp5=p5:7", "--lsi", "red")
    assert struct.unpack_from("!I", red.wait(PORT_STATUS), 8)[0] == 7
    assert sw.pings(3, 5, 1) == 0
    red.flow(FLOOD)
    red.barrier()
    sw.reaches(1, 5)


def test_what_cannot_be_is_one_line(sw):
    both = ("--lsi", "red:swp1,swp2", "--lsi", "blue:swp3,swp4")
    for words, why in [(("--lsi", "red:swp1,swp2", "--lsi", "blue:swp2,swp3,swp4"), "swp2 is in red and in blue"),
                       (("--lsi", "red:swp1,swp2,swp3,swp4,swp9"), "red: there is no port swp9"),
                       (("--lsi", "red:swp1,swp2=1,swp3,swp4"), "swp1 and swp2 have the same number 1"),
                       (("--lsi", "red:swp1,swp2,swp3"), "swp4 is in no logical switch"),
                       ((*both, "--datapath-id", "red=1", "--datapath-id", "blue=1"), "the same datapath id"),
                       ((*both, "--controller", "tcp:127.0.0.1"), "which logical switch's, of red, blue?"),
                       ((*both, "--fail", "green=secure"), "there is no logical switch green, but red, blue"),
                       ((*both, "--fail", "red=never"), "neither secure nor standalone"),
                       (("--controller", "red=tcp:127.0.0.1"), "there are no logical switches"),
                       ((*CHIP, "--lsi", "red:swp11"), "red: there is no port swp11"),
                       (("--profile", "tiny", *(w for n in range(1, 9) for w in ("--lsi", f"l{n}:swp{n}"))),
                        "logical switches at most")]:
        code, _, err = sw.call("up", *(w for n in range(1, 5) for w in ("--port", f"swp{n}=p{n}")), *words)
        # what the chip has is not known before it is there
        assert code == (1 if CHIP[0] in words else 2) and why in err and err.count("\n") == 1, (words, err)
    sw.up(*both)
    for words, why in [(("show", "flows"), "which logical switch, of red, blue?"),
                       (("show", "ports", "--lsi", "green"), "there is no logical switch green, but red, blue")]:
        code, _, err = sw.call(*words)
        assert code == 1 and why in err and err.count("\n") == 1, err
    status = sw.status()
    assert (status["ports"], status["lsis"]) == (4, 2) and ", " in status["datapath_id"]


def test_ports_of_a_chip_come_and_go(sw):
    sw.host(5)
    ready(sw, *CHIP)
    red, blue = sw.peer(), sw.peer(port=BLUE)
    for peer in (red, blue):
        peer.flow(FLOOD)
        peer.barrier()
    sw.reaches(3, 4)
    for words, why in [(("add", "swp5"), "which logical switch, of red, blue?"),
                       (("add", "swp5=p5", "--lsi", "red"), "cables are the chip's"),
                       (("add", "swp1", "--lsi", "blue"), "swp1 is red's port 1 already"),
                       (("add", "swp5:1", "--lsi", "blue"), "swp4 has the number 1 already"),
                       (("add", "swp11", "--lsi", "blue"), "there is no port swp11"),
                       (("del", "swp5"), "there is no port swp5")]:
        code, _, err = sw.call("port", *words)
        assert code == 1 and why in err and err.count("\n") == 1, err
    assert "blue's port 7" in sw.tandem("openflow", "port", "add", "swp5:7", "--lsi", "blue")
    added = blue.wait(PORT_STATUS)
    assert added[0] == 0 and struct.unpack_from("!I", added, 8)[0] == 7
    sw.reaches(3, 5)
    assert sw.pings(5, 1, 1) == 0
    # a flow that asks for it, in front of all
    blue.flow(2, in_port=7, priority=9)
    blue.barrier()
    sw.reaches(5, 3)
    assert sw.pings(5, 4, 1) == 0
    sw.tandem("openflow", "port", "del", "swp5")
    while blue.wait(PORT_STATUS)[0] != 1:
        pass
    assert sw.pings(3, 5, 1) == 0 and sw.answered(3, 4, 1)
    # to the other one, as soon as the command is done
    before = sw.status()["chip"]
    sw.tandem("openflow", "port", "add", "swp5", "--lsi", "red")
    assert struct.unpack_from("!I", red.wait(PORT_STATUS), 8)[0] == 5
    sw.reaches(1, 5)
    assert sw.pings(3, 5, 1) == 0
    row = {p["name"]: p for p in sw.show("ports", "--lsi", "red")}["swp5"]
    assert row["link"] == "up" and row["rx_packets"] < 20 and row["number"] == 5, row
    after = sw.status()["chip"]
    assert after["attaches"] == before["attaches"] and after["refused"] == 0, after
    # and back to the first: its flow for 7 is there as it was
    sw.tandem("openflow", "port", "del", "swp5")
    sw.tandem("openflow", "port", "add", "swp5:7", "--lsi", "blue")
    sw.reaches(5, 3)
    assert sw.pings(5, 4, 1) == 0


def test_a_ports_numbers_never_go_back(sw):
    ready(sw, *CHIP)
    for peer in (sw.peer(), sw.peer(port=BLUE)):
        peer.flow(FLOOD)
        peer.barrier()
    sw.reaches(1, 2)
    assert sw.answered(1, 2, 10)

    def counted():
        [row] = [p for p in sw.show("ports", "--lsi", "red") if p["name"] == "swp1"]
        return [row[k] for k in ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes")]

    before = counted()
    assert before[0] >= 11 and before[2] >= 11, before
    net.end_by_pid_file(f"{sw.folder}/asicd.pid", "asicd")
    sw.up(ports=[])
    net.wait_until("the chip to be back", lambda: sw.status()["chip"]["state"] == "open"
                   and sw.status()["chip"]["attaches"] >= 4, timeout=30)
    again = counted()
    assert all(a >= b for a, b in zip(again, before)), (before, again)
    sw.reaches(1, 2)
    assert sw.answered(1, 2, 5)
    last = counted()
    assert last[0] >= again[0] + 5 and last[0] < again[0] + 60, (again, last)


@pytest.mark.parametrize("below", [(), CHIP])
def test_each_has_its_own_tables_after_a_kill(sw, below):
    ready(sw, *below)
    red, blue = sw.peer(), sw.peer(port=BLUE)
    red.flow(2, in_port=1)
    blue.flow(1, in_port=2)
    blue.flow(2, in_port=1)
    for peer in (red, blue):
        peer.barrier()
        peer.close()
    sw.kill()
    ready(sw, *below)
    assert [len(sw.show("flows", "--lsi", n)) for n in ("red", "blue")] == [1, 2]
