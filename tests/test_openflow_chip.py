# SPDX-License-Identifier: Apache-2.0
"""OpenFlow on a chip that was not made for it: what its tables can do it answers itself, the rest is the software's."""

import contextlib
import json
import os
import signal
import struct
import subprocess
import time

import pytest

from lib import net, openflow, packet
from lib.openflow import BARRIER_REQUEST, ECHO_REQUEST, FLOW_MOD, PACKET_IN, PORT_STATUS
from lib.switch import binaries

CONTROLLER = ("--controller", f"tcp:127.0.0.1:{openflow.PORT}")
LISTENING = ("--controller", f"ptcp:127.0.0.1:{openflow.PORT}")
CHIP = ("--profile", "nxp-t1040")


class ChipSwitch(openflow.Switch):
    """The same switch, its ports asicd's."""

    def to_cpu(self):
        """Packets that the chip gave to the CPU."""
        return sum(p["counters"]["rx_cpu_packets"] for p in self.chip_ports())

    def by_chip(self):
        """Packets that the chip sent out by itself."""
        return sum(p["counters"]["tx_packets"] - p["counters"]["tx_cpu_packets"] for p in self.chip_ports())

    def answers(self, a, b, count):
        """When the answers to `count` pings came."""
        said = self.hosts[a - 1].exec("ping", "-D", "-n", "-c", count, "-i", "0.2", "-W", "1", f"10.0.0.{b}",
                                      check=False)
        return [float(row[1:].split("]")[0]) for row in said.splitlines() if "bytes from" in row]

    def chip_pid(self):
        try:
            with open(os.path.join(self.folder, "asicd.pid"), encoding="utf-8") as f:
                return int(f.read())
        except (OSError, ValueError):
            return 0

    def settled(self):
        net.wait_until("the chip to be as it should", lambda: (self.status()["chip"] or {}).get("state") == "open"
                       and self.status()["chip"]["settled"])

    def start(self, *words):
        """With the chip and a controller that the test speaks for, which comes back."""
        self.up(*LISTENING, *CHIP, *words)
        self.settled()
        return self.peer()


@pytest.fixture
def sw(request):
    yield from openflow.lives(request, ChipSwitch(openflow.new()))


def oxm(field, value, width):
    return struct.pack("!HBB", 0x8000, field << 1, width) + value.to_bytes(width, "big")


def flow_mod(peer, fields, todo, priority=1, idle=0, command=0, flags=0, table=0):
    """A flow_mod of 1.3: fields as (number, value, bytes), instructions as bytes."""
    body = b"".join(oxm(*f) for f in fields)
    match = struct.pack("!HH", 1, 4 + len(body)) + body
    match += bytes(-len(match) % 8)
    peer.send(FLOW_MOD, struct.pack("!QQBBHHHIIIH2x", 0, 0, table, command, idle, 0, priority, 0xffffffff, 0xffffffff,
                                    0xffffffff, flags) + match + todo)


def flow(peer, fields, actions, meter=None, **kw):
    """The same with actions as bytes, all of them at once."""
    todo = b"" if meter is None else struct.pack("!HHI", 6, 8, meter)
    flow_mod(peer, fields, todo + struct.pack("!HH4x", 4, 8 + len(actions)) + actions, **kw)


def goto(peer, fields, table, to):
    flow_mod(peer, fields, struct.pack("!HHB3x", 1, 8, to), table=table)


def out(port):
    return struct.pack("!HHIH6x", 0, 16, port, 0xffff)


def set_field(field, value, width):
    todo = oxm(field, value, width)
    pad = -(4 + len(todo)) % 8
    return struct.pack("!HH", 25, 4 + len(todo) + pad) + todo + bytes(pad)


PUSH_VLAN, POP_VLAN = struct.pack("!HHH2x", 17, 8, 0x8100), struct.pack("!HH4x", 18, 8)
IN_PORT, ETH_DST, ETH_SRC, ETH_TYPE, VLAN_VID, VLAN_PCP, IP_DSCP, IPV6_FLABEL = 0, 3, 4, 5, 6, 7, 8, 28


TO_CONTROLLER = 0xfffffffd


def udp_frame(tci, tos):
    """Of 1 to 2, with a tag or, `None`, without."""
    data = packet.udp("10.0.0.1", "10.0.0.2", 7, 8, b"tandem" * 6)
    tag = b"" if tci is None else struct.pack("!HH", 0x8100, tci)
    return bytes.fromhex("020000000002 020000000001") + tag + b"\x08\0" \
        + packet.ipv4("10.0.0.1", "10.0.0.2", 17, data, tos=tos)


def both_ways(peer, **kw):
    flow(peer, [(IN_PORT, 1, 4)], out(2), **kw)
    flow(peer, [(IN_PORT, 2, 4)], out(1), **kw)
    peer.barrier()


def mac(host):
    return int(host.exec("cat", "/sys/class/net/eth0/address").strip().replace(":", ""), 16)


def test_what_the_chip_can_do_it_does(sw):
    peer = sw.start()
    both_ways(peer)
    sw.reaches(1, 2)
    before = sw.to_cpu()
    assert sw.answered(1, 2, 5)
    # ARP and IP, both ways: the CPU has seen none of it
    assert sw.to_cpu() == before
    rows = sw.show("flows")
    assert [r["place"] for r in rows] == ["hardware", "hardware"]
    assert all("IS2" in r["why"] for r in rows), rows
    # and what was forwarded was counted where it was
    assert all(r["packets"] >= 5 and r["bytes"] is None for r in rows), rows
    ports = {p["name"]: p for p in sw.show("ports")}
    assert ports["swp1"]["rx_packets"] >= 5 and ports["swp1"]["link"] == "up"
    assert ports["swp8"]["link"] == "down"
    # all daemons that it needs are there
    assert "driven by ofagentd" in sw.tandem("status")
    text = sw.tandem("openflow", "show", "flows", "--hardware", "--why")
    assert "WHERE" in text and "in IS2" in text and "COOKIE" not in text, text
    assert sw.show("flows", "--software") == []


def test_stations_stand_in_the_mac_table(sw):
    peer = sw.start()
    for n in (1, 2):
        flow(peer, [(ETH_DST, mac(sw.hosts[n - 1]), 6)], out(n))
    flow(peer, [(ETH_DST, 0xffffffffffff, 6)], out(0xfffffffb))
    peer.barrier()
    sw.reaches(1, 2)
    before = sw.to_cpu()
    assert sw.answered(2, 1, 5)
    assert sw.to_cpu() == before
    rows = sw.show("flows")
    assert all("MAC table" in r["why"] and r["packets"] is None for r in rows), rows


def test_what_it_can_not_do_is_trapped(sw):
    peer = sw.start()
    both_ways(peer)
    # in front: the same packets, and a new source address for them, which the chip does not write
    source = mac(sw.hosts[0])
    rewrite = struct.pack("!HH", 25, 16) + oxm(4, source, 6) + bytes(2)
    flow(peer, [(IN_PORT, 1, 4), (ETH_TYPE, 0x0800, 2)], rewrite + out(2), priority=9)
    peer.barrier()
    sw.reaches(1, 2)
    before = sw.to_cpu()
    assert sw.answered(1, 2, 5)
    # the requests went through the software, the answers did not
    seen = sw.to_cpu() - before
    assert 5 <= seen <= 7, seen
    [trapped] = [r for r in sw.show("flows") if r["priority"] == 9]
    assert trapped["place"] == "software" and "does not do its action" in trapped["why"], trapped
    assert trapped["packets"] >= 5
    # to the controller: as before
    flow(peer, [(IN_PORT, 1, 4), (ETH_TYPE, 0x0800, 2)], out(TO_CONTROLLER), priority=9)
    peer.barrier()
    sw.pings(1, 2, 1)
    assert peer.wait(PACKET_IN)


def test_what_flows_write_the_chip_writes(sw):
    peer = sw.start()
    vid = set_field(VLAN_VID, 0x1007, 2)
    flows = [  # what it asks for, what it does, the tag that comes, the one that goes, the TOS that goes
        ([(VLAN_VID, 0x1001, 2)], vid, 0x6001, 0x6007, 3),
        ([(VLAN_VID, 0x1002, 2)], set_field(VLAN_PCP, 3, 1), 0xa002, 0x6002, 3),
        ([(VLAN_VID, 0x1003, 2)], POP_VLAN, 0x0003, None, 3),
        ([(VLAN_VID, 0, 2)], PUSH_VLAN + vid, None, 0x0007, 3),
        ([(ETH_TYPE, 0x0800, 2), (VLAN_VID, 0x1004, 2)], set_field(IP_DSCP, 46, 1), 0x0004, 0x0004, 46 << 2 | 3),
    ]
    for fields, todo, *_ in flows:
        flow(peer, [(IN_PORT, 1, 4), *fields], todo + out(2), priority=5)
    # behind them, for the same packets and all others; in front what a controller asks to see is in nobody's way
    flow(peer, [(IN_PORT, 1, 4)], out(3))
    flow(peer, [(IN_PORT, 2, 4)], b"")
    flow(peer, [(ETH_TYPE, 0x88cc, 2)], out(TO_CONTROLLER), priority=9)
    peer.barrier()
    rows = [r for r in sw.show("flows") if r["priority"] != 9]
    writes = [r for r in rows if r["priority"] == 5]
    assert len(writes) == 5 and all(r["place"] == "hardware" for r in rows), rows
    assert all("in IS1, 2 lines, which writes, and IS2" in r["why"] for r in writes), rows

    before = sw.to_cpu()
    with packet.Wire(sw.hosts[0]) as a, packet.Wire(sw.hosts[1]) as b:
        for n, (_, _, comes, goes, tos) in enumerate(flows):
            b.clear()
            a.send(udp_frame(comes, 3))
            want = udp_frame(goes, tos)
            net.wait_until(f"flow {n} to write", lambda want=want: want in b.caught())
            assert len(b.caught(lambda f: b"tandem" in f)) == 1, b.caught()
    # byte by byte, and the CPU has seen none of it
    assert sw.to_cpu() == before
    rows = [r for r in sw.show("flows") if r["priority"] == 5]
    assert all(r["packets"] >= 1 for r in rows), rows
    # one in front of a flow makes it the CPU's, with the same answer
    flow(peer, [(IN_PORT, 1, 4), (ETH_TYPE, 0x88b5, 2)], out(3), priority=9)
    peer.barrier()
    rows = [r for r in sw.show("flows") if r["priority"] == 5 and r["place"] == "software"]
    # the fifth asks for IP, which that has not
    assert len(rows) == 4 and all("IS1 would write it, but flow" in r["why"] for r in rows), rows
    with packet.Wire(sw.hosts[0]) as a, packet.Wire(sw.hosts[1]) as b:
        a.send(udp_frame(0x6001, 3))
        net.wait_until("the software to write", lambda: udp_frame(0x6007, 3) in b.caught())
    assert sw.to_cpu() > before


def test_two_forms_of_a_packet_leave_the_chip(sw):
    sw.host(3)
    peer = sw.start()
    tagged = PUSH_VLAN + set_field(VLAN_VID, 0x1064, 2)
    flow(peer, [(IN_PORT, 1, 4), (VLAN_VID, 0, 2)], out(2) + tagged + out(3), priority=5)
    flow(peer, [(IN_PORT, 1, 4), (VLAN_VID, 0x1009, 2)], out(3) + POP_VLAN + out(2), priority=5)
    # what comes in with a VLAN id by which the chip knows such packets is the software's
    flow(peer, [(IN_PORT, 2, 4)], out(3), priority=4)
    flow(peer, [(IN_PORT, 3, 4)], b"")
    peer.barrier()
    rows = [r for r in sw.show("flows") if r["priority"] == 5]
    assert len(rows) == 2 and all(r["place"] == "hardware" and "what each port gets, in ES0, 2 lines" in r["why"]
                                  for r in rows), rows
    before = sw.to_cpu()
    with contextlib.ExitStack() as stack:
        a, b, c = (stack.enter_context(packet.Wire(h)) for h in sw.hosts)
        for comes, second, third in ((None, None, 0x0064), (0x0009, None, 0x0009)):
            b.clear()
            c.clear()
            a.send(udp_frame(comes, 3))
            for wire, tci in ((b, second), (c, third)):
                want = udp_frame(tci, 3)
                net.wait_until(f"{tci} of {comes}", lambda wire=wire, want=want: want in wire.caught())
                assert len(wire.caught(lambda f: b"tandem" in f)) == 1, wire.caught()
        assert sw.to_cpu() == before
        c.clear()
        b.send(udp_frame(0x0fe0, 3))
        net.wait_until("VLAN 4064", lambda: udp_frame(0x0fe0, 3) in c.caught())
        assert len(c.caught(lambda f: b"tandem" in f)) == 1, c.caught()
        assert sw.to_cpu() > before


def test_what_it_can_do_in_part_is_partly_its(sw):
    sw.up(*LISTENING, *CHIP)
    sw.settled()
    peer = sw.peer()
    both_ways(peer)
    # IS2 asks for the source of frames that are not IP's: ARP is answered, IP trapped
    flow(peer, [(ETH_SRC, mac(sw.hosts[0]), 6)], out(2), priority=9)
    peer.barrier()
    sw.reaches(1, 2)
    before = sw.to_cpu()
    assert sw.answered(1, 2, 5)
    assert sw.to_cpu() - before >= 5
    [partly] = [r for r in sw.show("flows") if r["priority"] == 9]
    assert partly["place"] == "partly" and partly["why"].startswith("partly software"), partly
    assert partly["number"] in [r["number"] for r in sw.show("flows", "--software")]
    assert partly["number"] not in [r["number"] for r in sw.show("flows", "--hardware")]


def test_flows_that_are_used_in_the_chip_stay(sw):
    idle, count = 2, 40
    sw.up(*LISTENING, *CHIP)
    sw.settled()
    peer = sw.peer()
    both_ways(peer)
    sw.reaches(1, 2)
    # where the machine is so busy that the pings themselves pause, flows may end: that attempt says nothing
    for _ in range(10):
        both_ways(peer, idle=idle, flags=1)
        sent, cpu, times = sw.by_chip(), sw.to_cpu(), [time.time()]
        times += sw.answers(1, 2, count)
        flows = sw.show("flows")
        times.append(time.time())
        if max(b - a for a, b in zip(times, times[1:])) < idle - 0.5:
            break
    else:
        pytest.fail("no ten seconds without a pause")
    # requests and answers went through the chip alone
    assert len(times) == 2 + count and times[-1] - times[0] > 3 * idle
    assert sw.by_chip() - sent >= 2 * count and sw.to_cpu() == cpu
    assert len(flows) == 2, flows
    # and unused they end, with all that it has counted
    for _ in flows:
        packets = struct.unpack_from("!Q", peer.wait(11, timeout=60), 24)[0]
        assert packets >= count, packets
    assert sw.show("flows") == []


def test_a_learning_controller(sw):
    # its flows ask for both addresses, of IP packets too, which IS2 can't
    sw.up(*CONTROLLER, "--profile", "arista-7500e", "--versions", "1.3")
    sw.app("learning13.py")
    sw.connected()
    sw.reaches(1, 2)
    sw.reaches(2, 1)
    before = sw.to_cpu()
    assert sw.answered(1, 2, 5)
    assert sw.to_cpu() == before
    learned = [r for r in sw.show("flows") if r["priority"]]
    assert learned and all(r["place"] == "hardware" for r in learned), learned


def test_tables_of_another_version(sw):
    peer = sw.start()
    both_ways(peer)
    sw.reaches(1, 2)
    peer.close()
    net.wait_until("it to be missed", lambda: sw.status()["controllers"] == 0)
    old = sw.peer(version=1)
    assert old.ask(18, answer=19) == b""
    # who asks takes nothing away
    assert [r["place"] for r in sw.show("flows")] == ["hardware", "hardware"] and sw.answered(1, 2, 1)
    # whose first change is the end of what was there: all flows go, of which there is none in 1.0
    every = struct.pack("!IH6s6sHBxHBB2xIIHH", 0x3fffff, 0, bytes(6), bytes(6), 0, 0, 0, 0, 0, 0, 0, 0, 0)
    old.send(14, every + struct.pack("!QHHHHIHH", 0, 3, 0, 0, 0, 0xffffffff, 0xffff, 0))
    assert old.ask(18, answer=19) == b""
    # in the chip as it is: it is not attached anew
    assert sw.log().count("attached to asicd") == 1
    assert sw.show("flows") == [] and sw.pings(1, 2, 1) == 0
    for a, b in ((1, 2), (2, 1)):
        wildcards = 0x3fffff & ~1  # all but the port
        match = struct.pack("!IH6s6sHBxHBB2xIIHH", wildcards, a, bytes(6), bytes(6), 0, 0, 0, 0, 0, 0, 0, 0, 0)
        old.send(14, match + struct.pack("!QHHHHIHHHHHH", 0, 0, 0, 0, 1, 0xffffffff, 0xffff, 0, 0, 8, b, 0))
    assert old.ask(18, answer=19) == b""
    sw.reaches(1, 2)
    assert [r["place"] for r in sw.show("flows")] == ["hardware", "hardware"]


def test_many_flows(sw):
    peer = sw.start()
    for n in range(1200):
        flow(peer, [(ETH_TYPE, 0x0800, 2), (12, 0x0a010000 + n, 4)], out(1 + n % 2), priority=2)
    peer.barrier()
    for n in range(2000):
        flow(peer, [(ETH_DST, 0x020000000000 + n, 6)], out(1 + n % 2))
    peer.barrier()
    usage = sw.status()["chip"]
    # stations come as fast as the chip promises room for them
    net.wait_until("all to be in the chip", lambda: sw.status()["chip"]["mac_used"] == 2000)
    assert usage["acl_used"] == 1200 and usage["refused"] == 0, usage
    flow(peer, [], b"", command=3)  # all
    peer.barrier()
    usage = sw.status()["chip"]
    assert (usage["acl_used"], usage["mac_used"]) == (0, 0), usage


def test_who_is_in_a_full_table_follows_traffic(sw):
    peer = sw.start()
    size = sw.status()["chip"]["acl_size"]
    for n in range(size):
        flow(peer, [(IN_PORT, 3, 4), (ETH_TYPE, 0x2000 + n, 2)], out(4), priority=9)
    both_ways(peer)
    assert sw.status()["chip"]["acl_used"] == size

    def used():
        return [r for r in sw.show("flows") if r["priority"] == 1]

    for row in used():
        assert row["place"] == "software" and f"free 0 of {size}" in row["why"], row
    waits = explained(sw, "in_port=1")
    assert "or more than 2 packets/s, twice what would leave for it" in waits["rules"][0]["needs"], waits
    # frames meet them and none of the others, so they come in for two of these
    net.wait_until("flows that are used to be in the chip",
                   lambda: sw.pings(1, 2, 10) and {r["place"] for r in used()} == {"hardware"}, timeout=120)
    sw.settled()
    before = sw.to_cpu()
    assert sw.answered(1, 2, 5)
    assert sw.to_cpu() == before
    assert sw.status()["chip"]["acl_used"] == size
    assert len(sw.show("flows", "--software")) == 2


def test_a_chip_that_knows_no_flows_is_refused(sw):
    for chip, why in (("spectrum-sn2700", "no flow ports"), ("none", "none")):
        code, _, err = sw.call("up", *LISTENING, "--profile", chip, "--port", "swp1=p1")
        assert code == 1 and why in err and err.count("\n") == 1, err
        assert not (sw.chip_pid() and net.pid_alive(sw.chip_pid(), "asicd"))
    sw.up(*LISTENING, *CHIP)
    sw.settled()


def test_what_cannot_be_is_said_before_anything_starts(sw):
    tiny = ("--profile", "tiny", "--mac-lookup", "vlan")
    for words, why in ((tiny, "4094"), ((*CHIP, "--port", "swp1=p1:7"), "the chip's own")):
        code, _, err = sw.call("up", *LISTENING, *words)
        assert code == 2 and why in err and err.count("\n") == 1, err
        assert not sw.chip_pid()
    sw.up(*LISTENING, *CHIP)
    code, _, err = sw.call("show", "ports", "--hardware")
    assert code == 2 and "are of flows" in err, err


def test_its_chip_is_ofagentds_alone(sw):
    sw.up(*LISTENING, *CHIP)
    chip = sw.chip_pid()
    assert "is ofagentd's" in sw.tandem("down")
    assert net.pid_alive(chip, "asicd")
    # what asicd has nothing to do with may be another thing
    sw.kill()
    assert "asicd runs already" in sw.up(*LISTENING, *CHIP, "--fail", "standalone")
    # another one by the same name, started otherwise, is another switch's
    started = os.path.join(sw.folder, "ofagentd.asicd")
    with open(started, encoding="utf-8") as f:
        text = f.read()
    with open(started, "w", encoding="utf-8") as f:
        f.write(text.replace(str(chip), str(chip + 1)))
    sw.tandem("openflow", "down")
    assert net.pid_alive(chip, "asicd")
    code, _, err = sw.call("up", *LISTENING, *CHIP)
    assert code == 1 and "is not ofagentd's" in err, err
    with open(started, "w", encoding="utf-8") as f:
        f.write(text)
    assert "asicd stopped" in sw.tandem("openflow", "down")
    assert not os.path.exists(started)


def test_what_is_sent_arrives_or_is_counted(sw):
    peer = sw.start()
    # four of each message: more in one turn than the chip's ring has room for
    messages, count = 500, 2000

    def arrived():
        return int(sw.hosts[1].exec("cat", "/sys/class/net/eth0/statistics/rx_packets"))

    def dropped():
        return {p["name"]: p["tx_dropped"] for p in sw.show("ports")}["swp2"]

    before = arrived(), dropped()
    action = 4 * out(2)
    frame = bytes.fromhex("ffffffffffff 020000000001 88b5") + bytes(46)
    body = struct.pack("!IIH6x", 0xffffffff, TO_CONTROLLER, len(action)) + action + frame
    peer.s.sendall(b"".join(struct.pack("!BBHI", 4, 13, 8 + len(body), n) + body for n in range(messages)))
    peer.barrier()
    net.wait_until("each to be somewhere", lambda: arrived() - before[0] + dropped() - before[1] >= count)
    assert dropped() == before[1]


def is_up(peer, port):
    """Has a port a link, as a controller is told that asks?"""
    told = peer.ask(18, struct.pack("!HH4x", 13, 0))
    rows = [told[at:at + 64] for at in range(8, len(told), 64)]
    [state] = [struct.unpack_from("!I", r, 36)[0] for r in rows if struct.unpack_from("!I", r)[0] == port]
    return not state & 1


def told_link(peer, port, up):
    """It is said of a port; what else is said, or said late, does not matter."""
    while True:
        m = peer.wait(PORT_STATUS)
        if m[0] == 2 and struct.unpack_from("!I", m, 8)[0] == port and struct.unpack_from("!I", m, 44)[0] & 1 != up:
            return


def test_links_at_once(sw):
    sw.up(*LISTENING, *CHIP)
    sw.settled()
    peer = sw.peer()
    net.wait_until("the link to be there", lambda: is_up(peer, 1))
    for up in (False, True):
        sw.hosts[0].ip(f"link set eth0 {'up' if up else 'down'}")
        told_link(peer, 1, up)
        assert is_up(peer, 1) == up and is_up(peer, 2)
    both_ways(peer)
    sw.reaches(1, 2)


def test_the_chip_forwards_without_its_agent(sw):
    peer = sw.start()
    both_ways(peer)
    sw.reaches(1, 2)
    sw.kill()
    assert sw.answered(1, 2, 5)
    # it comes back with its tables, and goes on with what the chip holds
    assert "runs already" in sw.up(*LISTENING, *CHIP)
    sw.settled()
    rows = sw.show("flows")
    assert [r["place"] for r in rows] == ["hardware", "hardware"]
    # what it has counted is its flows' still, that of the one that was killed too
    assert all(r["packets"] >= 6 for r in rows), rows
    sw.reaches(1, 2)
    peer = sw.peer()
    both_ways(peer)
    sw.reaches(1, 2)
    # and the chip alone goes, and comes back
    os.kill(sw.chip_pid(), 9)
    net.wait_until("the chip to be missed", lambda: "not attached" in sw.status()["chip"]["state"])
    net.wait_until("its ports to be down", lambda: all(p["link"] == "down" for p in sw.show("ports")))
    assert "asicd started" in sw.up(*LISTENING, *CHIP)
    sw.settled()
    sw.reaches(1, 2)
    assert [r["place"] for r in sw.show("flows")] == ["hardware", "hardware"]
    # what was counted in the chip that died nobody knows
    assert [r["packets"] for r in sw.show("flows")] == [None, None]
    code, _, err = sw.call("port", "add", "swp3=p1")
    assert code == 1 and "cables are the chip's" in err, err
    said = sw.tandem("openflow", "down")
    assert "stopped" in said, said


def test_flows_of_two_tables(sw):
    peer = sw.start("--versions", "1.3")
    for n in (1, 2):
        goto(peer, [(IN_PORT, n, 4)], 0, 1)
        flow(peer, [(IN_PORT, n, 4)], out(3 - n), table=1)
    peer.barrier()
    sw.reaches(1, 2)
    before = sw.to_cpu()
    assert sw.answered(1, 2, 5)
    # both tables' flows are one rule each way, and each has counted
    assert sw.to_cpu() == before
    rows = sw.show("flows")
    assert [r["place"] for r in rows] == ["hardware"] * 4, rows
    assert all(r["packets"] >= 5 and r["bytes"] is None for r in rows), rows
    # one table is taken away from under the other: a frame gets there no more
    flow(peer, [], b"", command=3, table=1)
    peer.barrier()
    assert sw.pings(1, 2, 1) == 0


def explained(sw, key):
    return json.loads(sw.tandem("-j", "openflow", "explain", "flow", key))


def test_one_flow_is_explained_whole(sw):
    peer = sw.start("--versions", "1.3")
    station = mac(sw.hosts[0])
    flow(peer, [(ETH_DST, station, 6)], out(1), priority=5)
    flow(peer, [(IN_PORT, 1, 4)], out(2), priority=6, idle=60)
    goto(peer, [(IN_PORT, 2, 4)], 0, 1)
    flow(peer, [(ETH_DST, 0xffffffffffff, 6)], out(1), table=1)
    peer.barrier()
    sw.pings(1, 2, 2)
    # by its match, as it is shown
    chain = explained(sw, "in_port=2")
    assert chain["place"] == "partly" and chain["rules_in_all"] == 2, chain
    rules = {r["does"]: r for r in chain["rules"]}
    last = explained(sw, "table=1,eth_dst=ff:ff:ff:ff:ff:ff")["number"]
    assert rules["output:1"]["flows"] == [chain["number"], last] and rules["output:1"]["lines"] == 1, chain
    assert rules["output:1"]["needs"] is None and rules["drop"]["needs"], chain
    assert explained(sw, "0")["object"].startswith("table 0, priority 5, eth_dst=")
    idle = explained(sw, "in_port=1")
    assert idle["in_hardware"] and idle["idle_timeout"] == 60, idle
    assert [c["slots"] for c in idle["cost"]] == [1, 0], idle
    assert all(c["free"] < c["size"] for c in idle["cost"]), idle
    assert idle["packets"] == idle["hardware_packets"] + idle["software_packets"] >= 2, idle
    # what would be needed
    flow(peer, [(IN_PORT, 1, 4), (ETH_TYPE, 0x86dd, 2), (IPV6_FLABEL, 7, 4)], out(2), priority=9)
    peer.barrier()
    wide = explained(sw, "in_port=1,eth_type=0x86dd,ipv6_flabel=7")
    assert wide["place"] == "software" and wide["rules"][0]["needs"] == "a match without ipv6_flabel", wide
    text = sw.tandem("openflow", "explain", "flow", str(wide["number"]))
    assert "in hardware   no" in text and "  needs       a match without ipv6_flabel" in text, text
    for key, code, said in (("in_port=9", 1, "there is no flow in_port=9"), ("12345", 1, "there is no flow 12345"),
                            (" ", 2, "explain flow of nothing")):
        assert sw.call("explain", "flow", key)[0] == code and said in sw.call("explain", "flow", key)[2]
    # how full it all is: of the chip's tables what they are, not what is promised for now
    sizes = {s["what"]: s for s in json.loads(sw.tandem("-j", "openflow", "show", "tables"))["sizes"]}
    lines, cost = sizes["IS2 lines"], explained(sw, "in_port=1")["cost"][0]
    assert lines["size"] == cost["size"] == 2044 and lines["free"] == cost["free"] < 2044, sizes
    assert (sizes["MAC table entries"]["used"], sizes["MAC table entries"]["size"]) == (1, 8192), sizes
    assert sizes["flows of all tables"]["used"] == len(sw.show("flows")), sizes
    # one match in two tables
    flow(peer, [(IN_PORT, 2, 4)], out(1), table=1)
    peer.barrier()
    code, _, err = sw.call("explain", "flow", "in_port=2")
    assert code == 1 and "2 flows have that match" in err, err
    assert explained(sw, "table=1,in_port=2")["object"].startswith("table 1,")


def test_a_frame_on_paper_through_both(sw):
    peer = sw.start("--versions", "1.3")
    station, other = (mac(h) for h in sw.hosts)
    flow(peer, [(ETH_DST, station, 6)], out(1), priority=5)
    goto(peer, [(ETH_DST, other, 6)], 0, 1)
    flow(peer, [(IN_PORT, 1, 4)], out(2), table=1)
    peer.barrier()

    def traced(port, to, kind="0806"):
        frame = f"{to:012x}020000000009{kind}" + "00" * 46
        return json.loads(sw.tandem("-j", "openflow", "trace", port, frame))["chip"], frame

    before = sw.to_cpu()
    chip, frame = traced("swp2", station)
    assert chip["same"] and chip["trace"]["egress"] == ["swp1"] and chip["trace"]["frames"] == [frame], chip
    # two tables are one rule of the chip
    chip, _ = traced("swp1", other)
    assert chip["same"] and len(chip["rule"]["flows"]) == 2 and chip["trace"]["egress"] == ["swp2"], chip
    # the software's from its first table on, whatever follows there
    flow_mod(peer, [(ETH_TYPE, 0x86dd, 2), (IPV6_FLABEL, 7, 4)], struct.pack("!HHB3x", 1, 8, 1), priority=9)
    peer.barrier()
    chip, _ = traced("swp1", other, "86dd6000000700000000")
    assert chip["same"] and "no place for ipv6_flabel" in chip["rule"]["why"], chip
    chip, _ = traced("swp2", 0x020000000077)
    assert chip["same"] and chip["trace"]["cpu"] and "the CPU, and the software drops it" in chip["agreement"], chip
    said = sw.tandem("openflow", "trace", "swp2", frame)
    assert "chip verdict     forwarded to swp1" in said, said
    assert "agreement        the chip forwards it to swp1: the same" in said, said
    assert sw.to_cpu() == before, "nothing left"


UNKNOWN = 2**64 - 1


def numbers(peer):
    """Packets of each flow, and what came in and went out at a port, as a controller is told."""
    flows = peer.ask(18, struct.pack("!HH4xB3xIIIQQHH4x", 1, 0, 0xff, 0xffffffff, 0xffffffff, 0, 0, 0, 1, 4))
    port = peer.ask(18, struct.pack("!HH4xI4x", 4, 0, 1))
    packets, at = [], 8
    while at < len(flows):
        packets += struct.unpack_from("!Q", flows, at + 32)
        at += struct.unpack_from("!H", flows, at)[0]
    return packets, struct.unpack_from("!QQ", port, 16)


def test_a_chip_that_is_stopped_is_missed(sw):
    """Nothing is written, and nobody asks: that asicd does not answer is seen all the same, and what it has counted is
    not told meanwhile. When it goes on, all is as it was."""
    peer = sw.start("--probe", "600")
    both_ways(peer)
    sw.reaches(1, 2)
    flows, ports = numbers(peer)
    assert len(flows) == 2 and all(0 < n < UNKNOWN for n in flows + list(ports)), (flows, ports)
    attaches = sw.status()["chip"]["attaches"]
    chip = sw.chip_pid()

    def state(of):
        net.wait_until(of, lambda: sw.status()["chip"]["state"] == of, timeout=60)
    try:
        os.kill(chip, signal.SIGSTOP)
        state("does not answer")
        assert numbers(peer) == ([UNKNOWN] * 2, (UNKNOWN, UNKNOWN))
        rows = sw.show("flows")
        assert [(r["place"], r["packets"]) for r in rows] == [("hardware", None)] * 2, rows
        assert all("it does not now" in r["why"] for r in rows), rows
    finally:
        os.kill(chip, signal.SIGCONT)
    state("open")
    again = numbers(peer)
    both = zip(flows + list(ports), again[0] + list(again[1]))
    assert all(a <= b < UNKNOWN for a, b in both), (flows, ports, again)
    sw.reaches(1, 2)
    assert sw.status()["chip"]["attaches"] == attaches


def test_who_waits_for_a_chip_that_does_not_answer(sw):
    """An asicd that is stopped forwards on when it goes on, so barriers wait for it; nobody else does, while attempts
    to attach wait for its answer. Of one that has ended nothing passes: there is nothing to wait for."""
    peer = sw.start("--probe", "600")
    other = sw.peer()
    both_ways(peer)
    sw.reaches(1, 2)
    chip = sw.chip_pid()

    def counted():
        return numbers(other)
    flows, ports = counted()
    assert len(flows) == 2 and all(0 < n < UNKNOWN for n in flows + list(ports)), (flows, ports)

    def attempts():
        tasks = f"/proc/{sw.pid()}/task"
        names = {}
        for t in os.listdir(tasks):
            with contextlib.suppress(OSError), open(f"{tasks}/{t}/comm", encoding="utf-8") as f:
                names[t] = f.read().strip()
        return {t for t, name in names.items() if name == "attach"}

    def answers_meanwhile():
        under_way = attempts()
        assert other.ask(ECHO_REQUEST, b"x") == b"x"
        return sw.status() and under_way & attempts()

    def stopped(n):
        os.kill(chip, signal.SIGSTOP)
        flow(peer, [(ETH_TYPE, 0x9000 + n, 2)], out(2), priority=9)
        peer.send(BARRIER_REQUEST)
        net.wait_until("the chip to be missed", lambda: "not attached" in sw.status()["chip"]["state"], timeout=60)
        net.wait_until("answers during an attempt to attach", answers_meanwhile, timeout=60, every=0.01)
        with pytest.raises(TimeoutError):
            peer.wait(BARRIER_REQUEST + 1, timeout=0.5)
    try:
        stopped(1)
        # it may forward on, and nobody knows how much, by what was on its way as well
        assert counted() == ([UNKNOWN] * 3, (UNKNOWN, UNKNOWN))
        assert all("or what the chip forwards on" in r["why"] for r in sw.show("flows"))
        os.kill(chip, signal.SIGCONT)
        peer.wait(BARRIER_REQUEST + 1, timeout=60)
        sw.settled()
        sw.reaches(1, 2)
        # what was lost of flows is lost; a port's numbers go on
        flows, later = counted()
        assert flows == [UNKNOWN] * 3, flows
        assert all(a < b < UNKNOWN for a, b in zip(ports, later)), (ports, later)
        stopped(2)
    finally:
        os.kill(chip, signal.SIGKILL)
    peer.wait(BARRIER_REQUEST + 1, timeout=60)
    # nothing comes or goes any more: ports stand where they were read last
    assert counted() == ([UNKNOWN] * 4, later)
    assert all(r["why"].startswith("software: the chip is not attached") for r in sw.show("flows"))
    # and what comes from here on, which the software counts alone
    flow(peer, [(ETH_TYPE, 0x9003, 2)], out(2), priority=9)
    peer.barrier()
    assert counted() == ([UNKNOWN] * 4 + [0], later)
    assert "not attached" in sw.status()["chip"]["state"]
    assert "asicd started" in sw.up(*LISTENING, *CHIP, "--probe", "600")
    sw.settled()
    sw.reaches(1, 2)
    assert [r["place"] for r in sw.show("flows")] == ["hardware"] * 5


def test_another_chip_is_not_taken_for_it(sw):
    peer = sw.start()
    both_ways(peer)
    was = sw.chip_pid()
    os.kill(was, 9)
    net.wait_until("asicd to be gone", lambda: not net.pid_alive(was, "asicd"), every=0.01)

    def asicd(*words):
        # what the killed one held is given back some time after its end
        for _ in range(50):
            p = sw.ns.popen(os.path.join(binaries(), "asicd"), "--name", sw.name, *words, "--port", "swp1=p1",
                            "--port", "swp2=p2", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
            try:
                p.wait(timeout=1)
            except subprocess.TimeoutExpired:
                return p
        raise AssertionError("asicd ends")

    def state():
        return sw.status()["chip"]["state"]
    other = asicd("--profile", "arista-7500e")
    try:
        refused = "another chip is there, arista-7500e instead of nxp-t1040"
        net.wait_until("it to be refused", lambda: refused in state(), timeout=30)
    finally:
        other.kill()
        other.wait()
    # what it was it may be again
    same = asicd(*CHIP)
    try:
        net.wait_until("it to be attached", lambda: state() == "open", timeout=30)
        sw.settled()
        sw.reaches(1, 2)
    finally:
        same.kill()
        same.wait()
