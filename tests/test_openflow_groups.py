# SPDX-License-Identifier: Apache-2.0
"""Groups on a chip: what its tables can do of their buckets it answers itself, and the numbers are right."""

import struct

import pytest

from lib import net, openflow
from test_openflow_chip import CHIP, ChipSwitch, IN_PORT, LISTENING, flow, out

GROUP_MOD, METER_MOD, MULTIPART, REPLY = 15, 29, 18, 19
ANY = 0xffffffff
ADD, MODIFY, DELETE = 0, 1, 2
ALL, SELECT, INDIRECT, FAILOVER = 0, 1, 2, 3
UNKNOWN = 0xffffffffffffffff


@pytest.fixture
def sw(request):
    yield from openflow.lives(request, ChipSwitch(openflow.new(), hosts=3))


def bucket(actions, watch=ANY, weight=0):
    return struct.pack("!HHII4x", 16 + len(actions), weight, watch, ANY) + actions


def group_mod(peer, command, kind, number, *buckets):
    peer.send(GROUP_MOD, struct.pack("!HBxI", command, kind, number) + b"".join(buckets))


def group(number):
    return struct.pack("!HHI", 22, 8, number)


def counts(peer, number):
    """Packets of a group, of each bucket, and all their bytes, as a controller is told."""
    told = peer.ask(MULTIPART, struct.pack("!HH4xI4x", 6, 0, number), answer=REPLY)[8:]
    packets, octets = struct.unpack_from("!QQ", told, 16)
    each = [struct.unpack_from("!QQ", told, at) for at in range(40, len(told), 16)]
    return packets, [p for p, _ in each], [octets] + [o for _, o in each]


def through(peer, sw, number):
    """What host 1 sends goes through a group, what comes back does not."""
    flow(peer, [(IN_PORT, 1, 4)], group(number))
    flow(peer, [(IN_PORT, 2, 4)], out(1))
    peer.barrier()
    sw.settled()


def test_a_group_is_the_chips_and_counts(sw):
    peer = sw.start()
    group_mod(peer, ADD, INDIRECT, 1, bucket(out(2)))
    through(peer, sw, 1)
    sw.reaches(1, 2)
    before, told = sw.to_cpu(), counts(peer, 1)
    assert sw.answered(1, 2, 5)
    # ARP and IP: the CPU has seen none of it
    assert sw.to_cpu() == before
    packets, each, octets = counts(peer, 1)
    assert each == [packets] and packets >= told[0] + 5, (told, packets, each)
    # IS2 counts no bytes
    assert octets == [UNKNOWN, UNKNOWN]
    [row] = sw.show("groups")
    assert row["place"] == "hardware" and row["packets"] == packets and row["bytes"] is None, row
    assert "WHERE" in sw.tandem("openflow", "show", "groups")
    [first] = [r for r in sw.show("flows") if r["instructions"].startswith("group")]
    assert first["place"] == "hardware" and first["packets"] == packets, first
    # other buckets: they count anew
    group_mod(peer, MODIFY, ALL, 1, bucket(out(2)), bucket(out(3)))
    peer.barrier()
    assert counts(peer, 1)[:2] == (0, [0, 0])
    before = sw.to_cpu()
    assert sw.answered(1, 2, 5)
    assert sw.to_cpu() == before
    packets, each, _ = counts(peer, 1)
    assert packets >= 5 and each == [packets, packets], each
    # a deleted group takes the flow along, and nothing goes there any more
    group_mod(peer, DELETE, ALL, 1)
    peer.barrier()
    assert [r["match"] for r in sw.show("flows")] == ["in_port=2"] and sw.pings(1, 2, 1) == 0


def test_a_link_that_goes_down_is_followed_in_the_chip(sw):
    peer = sw.start()
    group_mod(peer, ADD, FAILOVER, 1, bucket(out(3), watch=3), bucket(out(2), watch=2))
    through(peer, sw, 1)
    assert sw.pings(1, 2, 1) == 0
    packets, each, _ = counts(peer, 1)
    assert packets > 0 and each == [packets, 0], each
    sw.hosts[2].exec("ip", "link", "set", "eth0", "down")
    sw.reaches(1, 2)
    sw.settled()
    before, told = sw.to_cpu(), counts(peer, 1)
    assert sw.answered(1, 2, 5)
    assert sw.to_cpu() == before
    packets, each, _ = counts(peer, 1)
    assert sum(each) == packets and each[0] == told[1][0] and each[1] >= told[1][1] + 5, (told, each)
    # and back
    sw.hosts[2].exec("ip", "link", "set", "eth0", "up")
    net.wait_until("the first bucket to be taken again", lambda: sw.pings(1, 2, 1) == 0)
    assert [r["place"] for r in sw.show("groups")] == ["hardware"]


def test_a_bucket_that_is_taken_is_taken_after_a_restart(sw):
    peer = sw.start()
    group_mod(peer, ADD, FAILOVER, 1, bucket(out(2), watch=2), bucket(out(3), watch=3))
    through(peer, sw, 1)
    sw.reaches(1, 2)
    for _ in range(2):
        sw.kill()
        sw.up(*LISTENING, *CHIP)
        sw.settled()
        # which ports are up the chip tells when it has taken the process
        assert "attached to asicd: the chip goes on as it is" in sw.log(), sw.log()
    before = sw.to_cpu()
    assert sw.answered(1, 2, 5)
    assert sw.to_cpu() == before
    assert [r["place"] for r in sw.show("groups")] == ["hardware"]
    # what was counted before is not known
    peer = sw.peer()
    assert counts(peer, 1)[0] == UNKNOWN
    # and a cable that was pulled while there was no process
    group_mod(peer, MODIFY, FAILOVER, 1, bucket(out(3), watch=3), bucket(out(2), watch=2))
    peer.barrier()
    assert sw.pings(1, 2, 1) == 0
    sw.kill()
    sw.hosts[2].exec("ip", "link", "set", "eth0", "down")
    sw.up(*LISTENING, *CHIP)
    sw.reaches(1, 2)
    assert [r["link"] for r in sw.show("ports")[:3]] == ["up", "up", "down"], sw.show("ports")


def test_what_chooses_and_what_measures_is_the_softwares(sw):
    peer = sw.start()
    group_mod(peer, ADD, SELECT, 1, bucket(out(2), weight=1), bucket(out(2), weight=1))
    drop = struct.pack("!HHII4x", 1, 16, 1000000, 0)
    peer.send(METER_MOD, struct.pack("!HHI", 0, 2, 7) + drop)
    flow(peer, [(IN_PORT, 1, 4)], group(1))
    flow(peer, [(IN_PORT, 2, 4)], out(1), meter=7)
    peer.barrier()
    sw.settled()
    sw.reaches(1, 2)
    before = sw.to_cpu()
    assert sw.answered(1, 2, 5)
    # requests and answers
    assert sw.to_cpu() - before >= 10
    why = {r["match"]: r["why"] for r in sw.show("flows")}
    assert "a group that chooses a bucket" in why["in_port=1"] and "a meter's rate" in why["in_port=2"], why
    [chosen], [meter] = sw.show("groups"), sw.show("meters")
    assert (chosen["place"], meter["place"]) == ("software", "software")
    packets, each, octets = counts(peer, 1)
    assert packets >= 5 and sum(each) == packets and UNKNOWN not in octets, (packets, each, octets)
    # with one bucket there is nothing to choose
    group_mod(peer, MODIFY, SELECT, 1, bucket(out(2), weight=1))
    peer.barrier()
    before = sw.to_cpu()
    assert sw.answered(1, 2, 5)
    assert sw.to_cpu() - before < 10
    assert [r["place"] for r in sw.show("groups")] == ["hardware"]
