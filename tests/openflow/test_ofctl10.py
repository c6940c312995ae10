# SPDX-License-Identifier: Apache-2.0
"""OpenFlow 1.0 by a client that others wrote, ovs-ofctl: what the standard (1.0.1) fixes, and Open vSwitch does too."""

import re
import time

import pytest

from lib import net
from openflow.ofctl import DST, PATIENCE, SRC, Client, frame, told

PLAIN = ("-F", "OpenFlow10-table_id")  # the standard's flows, not Nicira's


@pytest.fixture
def of(switch):
    switch.clear()
    return Client(switch, "OpenFlow10")


def test_features_and_ports(of):
    said = of("show")
    assert "OFPT_FEATURES_REPLY" in said and "dpid:0000000000000001" in said, said
    for i in (1, 2, 3):
        assert re.search(rf"^ {i}\(\w+\): addr:", said, re.M), said


def test_add_modify_delete(of):
    of("add-flow", f"priority=5,cookie=0x10,in_port=1,dl_src={SRC},actions=output:2")
    of("add-flow", "priority=7,cookie=0x11,ip,nw_src=10.0.0.0/8,nw_tos=32,actions=mod_nw_tos:64,output:3")
    of("add-flow", "priority=9,cookie=0x12,tcp,tp_dst=80,dl_vlan=7,actions=strip_vlan,output:1")
    assert of.flows() == [
        f"cookie=0x10, priority=5,in_port=1,dl_src={SRC} actions=output:2",
        "cookie=0x11, priority=7,ip,nw_src=10.0.0.0/8,nw_tos=32 actions=mod_nw_tos:64,output:3",
        "cookie=0x12, priority=9,tcp,dl_vlan=7,tp_dst=80 actions=strip_vlan,output:1"]
    of("mod-flows", "in_port=1,actions=output:3")
    assert "actions=output:3" in of.flows("in_port=1")[0]
    # in 1.0 a modify of what is not there adds it
    of("mod-flows", "priority=1,dl_type=0x88cc,actions=drop", options=("--strict",))
    assert len(of.flows()) == 4
    of("del-flows", "out_port=1")
    assert len(of.flows()) == 3
    of("del-flows", "priority=7,ip,nw_src=10.0.0.0/8", options=("--strict",))
    assert len(of.flows()) == 3
    of("del-flows", "priority=7,ip,nw_src=10.0.0.0/8,nw_tos=32", options=("--strict",))
    assert len(of.flows()) == 2
    of("del-flows")
    assert of.flows() == []


def test_the_standards_own_flow_format(of):
    of("add-flow", f"priority=5,in_port=1,dl_src={SRC},actions=output:2", options=PLAIN)
    said = of("dump-flows", options=PLAIN)
    assert f"priority=5,in_port=1,dl_src={SRC} actions=output:2" in said, said


def test_an_exact_match_is_above_all_priorities(of, wires, switch):
    """1.0 gives a rule without wildcards the highest priority whatever its number; to Open vSwitch that is 65535."""
    number = 65534 if switch.kind == "ovs" else 65535
    port = int.from_bytes(b"xx", "big")  # of frame()
    of("add-flow", f"priority={number},dl_dst={DST},actions=output:2", options=PLAIN)
    of("add-flow", f"priority=1,in_port=1,dl_src={SRC},dl_dst={DST},dl_vlan=7,dl_vlan_pcp=0,udp,nw_src=10.0.0.1,"
       f"nw_dst=10.0.0.2,nw_tos=0,tp_src={port},tp_dst={port},actions=output:3", options=PLAIN)
    wires.drain()
    wires.send(1, frame(vid=7))
    assert set(wires.caught(want=1)) == {3}
    wires.send(1, frame(vid=8))
    assert set(wires.caught(want=1)) == {2}


def test_counters_and_tables(of, wires, switch):
    chip = switch.chip
    of("add-flow", f"dl_dst={DST},actions=output:2")
    if chip:
        net.wait_until("the chip to be written", chip.settled, timeout=PATIENCE)
    to_cpu = chip and chip.counters()["rx_cpu_packets"]
    wires.drain()
    wires.send(1, *[frame(size=100)] * 5)
    assert {p: len(f) for p, f in wires.caught(want=5).items()} == {2: 5}
    if chip:
        assert chip.counters()["rx_cpu_packets"] == to_cpu

    entry = chip and chip.is_entry(0, 32768)
    short = chip and not chip.counts_bytes

    def counted():
        said = "".join(of.flows(stats=True))
        return re.search(rf"n_packets={told(5, entry)}, n_bytes={told(500, entry or short)}", said)
    net.wait_until("counters", counted, timeout=PATIENCE)
    assert re.search(rf"packet_count={told(5, entry)}\b", of("dump-aggregate", f"dl_dst={DST}"))
    looked = r"\S+" if chip else r"\d+"
    assert re.search(rf"active=1, lookup={looked}, matched={looked}", of("dump-tables")), of("dump-tables")


def test_packet_in_by_miss_and_by_action(of, wires):
    of("add-flow", f"dl_dst={DST},actions=controller:64")
    with of.monitor(65535) as m:
        wires.send(1, frame(size=100))
        m.wait_for(r"PACKET_IN2? [^\n]*total_len=100 in_port=1 \(via action\)")


def test_packet_out(of, wires):
    wires.drain()
    text = frame(size=64).hex()
    of("packet-out", f"in_port=1 packet={text} actions=mod_dl_src:02:aa:aa:aa:aa:aa,output:2,output:3")
    out = frame(src="02:aa:aa:aa:aa:aa", size=64)
    assert wires.caught(want=2) == {2: [out], 3: [out]}


def test_timeouts_and_flow_removed(of):
    with of.monitor(65535) as m:
        of("add-flow", "priority=3,cookie=0x33,send_flow_rem,hard_timeout=1,in_port=1,actions=output:2")
        of("add-flow", "priority=4,cookie=0x44,send_flow_rem,idle_timeout=1,in_port=2,actions=output:1")
        of("add-flow", "priority=5,cookie=0x55,send_flow_rem,in_port=3,actions=output:1")
        of("del-flows", "in_port=3")
        m.wait_for(r"priority=5,in_port=3[^\n]*reason=delete")
        m.wait_for(r"priority=3,in_port=1[^\n]*reason=hard")
        m.wait_for(r"priority=4,in_port=2[^\n]*reason=idle")
    assert of.flows() == []


def test_overlap(of):
    of("add-flow", "priority=5,in_port=1,actions=output:2")
    assert of.error("add-flow", f"check_overlap,priority=5,dl_src={SRC},actions=output:3") == "OFPFMFC_OVERLAP"
    assert len(of.flows()) == 1


def test_flood_leaves_out_who_does_not_want_it(of, wires):
    of("add-flow", "in_port=1,actions=flood")
    of("mod-port", "3", "no-flood")
    try:
        assert "NO_FLOOD" in of("show")
        time.sleep(0.3)
        wires.drain()
        wires.send(1, frame())
        assert {p: len(f) for p, f in wires.caught(want=1).items()} == {2: 1}
        of("add-flow", "in_port=1,actions=all")
        wires.send(1, frame())
        assert {p: len(f) for p, f in wires.caught(want=2).items()} == {2: 1, 3: 1}
    finally:
        of("mod-port", "3", "flood")


def test_ports_and_queues(of, switch):
    said = of("dump-ports")
    for i in (1, 2, 3):
        assert re.search(rf"port\s+{i}: rx pkts=", said), said
    queues = 0 if switch.kind == "ovs" else 8 * switch.ports
    assert re.search(rf"OFPST_QUEUE reply [^\n]*: {queues} queues", of("queue-stats"))
