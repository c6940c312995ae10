# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci
# timeout: 1500
"""Addresses, both ways: what the chip learns is in the bridge, what the bridge knows is in the chip."""

import json

import l2
from l2 import BROADCAST, chip_fdb, equal, frame, kernel_fdb, mac, run, true, until


def in_bridge(address, port, vlan=None):
    return [r for r in kernel_fdb(address, vlan) if r["ifname"] == f"swp{port}"]


def in_chip(address, port):
    return [r for r in chip_fdb(address) if r["port"] == port and r["action"] == "forward"]


def test_learned_moved_aged(bench):
    bench.bridge(ageing_time=300)
    bench.send(1, frame(mac(9), mac(1)), wait=0)
    row = until(lambda: in_bridge(mac(1), 1))
    true(row, "the bridge was not told")
    equal(sorted(row[0]["flags"]), ["extern_learn", "offload"], "flags")
    bench.send(2, frame(mac(9), mac(1)), wait=0)
    true(until(lambda: in_bridge(mac(1), 2)), "the bridge was not told of the move")
    true(not in_bridge(mac(1), 1), "still at its old place")
    true(until(lambda: not kernel_fdb(mac(1)), 12), "aged in the chip, not in the bridge")
    equal(chip_fdb(mac(1)), [], "aged")


def test_the_bridge_forgets_and_so_does_the_chip(bench):
    bench.bridge()
    for n in (1, 2, 3):
        bench.send(n, frame(mac(9), mac(n)), wait=0)
        true(until(lambda n=n: in_bridge(mac(n), n)), "learned")
    run(f"bridge fdb del {mac(1)} dev swp1 master")
    true(until(lambda: not chip_fdb(mac(1))), "removed by hand")
    run("bridge fdb flush dev swp2 master")
    true(until(lambda: not chip_fdb(mac(2))), "flushed")
    run("ip link set swp3 down")
    true(until(lambda: not chip_fdb(mac(3)) and not kernel_fdb(mac(3))), "port down")
    run("ip link set swp3 up")
    bench.send(1, frame(mac(9), mac(1)), wait=0)
    true(until(lambda: in_bridge(mac(1), 1)), "learned anew")


def test_learned_in_a_vlan(bench):
    bench.bridge(vlan_filtering=1)
    run("bridge vlan add vid 10 dev swp1; bridge vlan add vid 10 dev swp2")
    l2.settle()
    bench.send(1, frame(mac(9), mac(1), vid=10), wait=0)
    true(until(lambda: in_bridge(mac(1), 1, vlan=10)), "learned in VLAN 10")
    bench.send(2, frame(mac(9), mac(1)), wait=0)
    true(until(lambda: in_bridge(mac(1), 2, vlan=1)), "the same address in VLAN 1")
    true(in_bridge(mac(1), 1, vlan=10), "and in VLAN 10 still")
    run("bridge vlan del vid 10 dev swp1")
    true(until(lambda: not kernel_fdb(mac(1), vlan=10)), "gone with its VLAN")
    equal([r["port"] for r in chip_fdb(mac(1))], [2], "in the chip, too")


def test_static(bench):
    bench.bridge(ageing_time=100)
    run(f"bridge fdb add {mac(1)} dev swp1 master static")
    true(until(lambda: in_chip(mac(1), 1)), "static entry in the chip")
    true(until(lambda: "offload" in in_bridge(mac(1), 1)[0]["flags"]), "offload flag")
    bench.expect(2, frame(mac(1), mac(2)), [1], "forwarded to it")
    true(until(lambda: "no_age" in in_chip(mac(1), 1)[0]["flags"]), "it may move, as in the bridge")
    until(lambda: False, 3)
    true(in_chip(mac(1), 1), "it does not age")
    bench.send(3, frame(mac(9), mac(1)), wait=0)
    true(until(lambda: in_bridge(mac(1), 3)), "it moves with its station")
    bench.expect(2, frame(mac(1), mac(2)), [3], "forwarded to its new place")
    until(lambda: False, 3)
    true(in_chip(mac(1), 3), "it does not age there, either")
    run(f"bridge fdb del {mac(1)} dev swp3 master")
    true(until(lambda: not chip_fdb(mac(1))), "removed")
    bench.expect(2, frame(mac(1), mac(2)), [1, 3, 4], "flooded again")


def test_sticky(bench):
    bench.bridge()
    run(f"bridge fdb add {mac(1)} dev swp1 master static sticky")
    true(until(lambda: in_chip(mac(1), 1)), "in the chip")
    until(lambda: False, 0.5)
    equal(in_chip(mac(1), 1)[0]["flags"], ["static"], "it does not move")
    bench.send(3, frame(mac(9), mac(1)))
    true(in_bridge(mac(1), 1) and in_chip(mac(1), 1), "it stays")


def test_a_persons_entry_over_a_learned_one(bench):
    bench.bridge(ageing_time=200)
    bench.send(1, frame(mac(9), mac(1)), wait=0)
    true(until(lambda: in_bridge(mac(1), 1)), "learned")
    run(f"bridge fdb replace {mac(1)} dev swp2 master static sticky")
    true(until(lambda: in_chip(mac(1), 2)), "in the chip at the person's place")
    bench.send(1, frame(mac(9), mac(1)))
    until(lambda: False, 4)
    true(in_chip(mac(1), 2) and in_bridge(mac(1), 2), "neither moved nor aged")
    run(f"bridge fdb del {mac(1)} dev swp2 master")
    true(until(lambda: not chip_fdb(mac(1))), "removed")


def test_extern_learn_of_others(bench):
    bench.bridge(ageing_time=100)
    run(f"bridge fdb add {mac(1)} dev swp1 master extern_learn")
    true(until(lambda: in_chip(mac(1), 1)), "in the chip")
    until(lambda: False, 3)
    true(in_chip(mac(1), 1), "it does not age")
    bench.send(2, frame(mac(9), mac(1)), wait=0)
    true(until(lambda: in_bridge(mac(1), 2)), "it moves")


def test_own_addresses_trap(bench):
    bench.bridge()
    own = json.loads(run("ip -j link show br0"))[0]["address"]
    true(until(lambda: [r for r in chip_fdb(own) if r["action"] == "trap"]), "the bridge's own address")
    run("ip link set br0 address 02:00:00:00:aa:01")
    true(until(lambda: [r for r in chip_fdb("02:00:00:00:aa:01") if r["action"] == "trap"]), "a new one")
    before = l2.cpu_rx()
    bench.expect(1, frame("02:00:00:00:aa:01", mac(1)), [], "to the bridge itself")
    l2.cpu_saw(before, 1, "at the CPU")
    run("bridge fdb add 02:00:00:00:aa:02 dev br0 self permanent; "
        "bridge fdb add 02:00:00:00:aa:03 dev swp1 master permanent")
    true(until(lambda: [r for r in chip_fdb("02:00:00:00:aa:03") if r["action"] == "trap"]), "a local one by hand")


def test_the_event_comes_before_the_frame(bench):
    """The answer to a station's very first frame is not flooded: the bridge knows it by then."""
    bench.bridge(ports=[1, 2, 3])
    run("ip link add v0 type veth peer name v1; ip link set v0 master br0; ip link set v0 up; ip link set v1 up")
    bench.devices.append("v1")
    far = bench.nic[9] = l2.Nic("v1")
    until(lambda: l2.reads("/sys/class/net/v0/brport/state", "3"))
    l2.settle()
    try:
        for n in range(20):
            address = mac(n, station=7)
            ask = frame(BROADCAST, address)
            bench.nic[1].send(ask)
            true(until(lambda ask=ask: bench.copies(ask).get(9)), "the question")
            bench.expect(9, frame(address, mac(0xAA)), [1], "the answer")
    finally:
        far.socket.close()
        del bench.nic[9]


def test_a_chip_that_was_reset_knows_again(bench):
    bench.bridge()
    run(f"bridge fdb add {mac(1)} dev swp1 master static")
    bench.send(2, frame(mac(9), mac(2)), wait=0)
    true(until(lambda: in_chip(mac(1), 1) and in_bridge(mac(2), 2)), "known before")
    l2.host("tandem fault reset --name $LAB_ASIC")
    true(until(lambda: "recovered:" in run("dmesg"), 30), "no recovery")
    true(until(lambda: in_chip(mac(1), 1), 30), "the static entry is back")
    true(until(lambda: in_chip(mac(2), 2) and in_bridge(mac(2), 2), 30), "the learned one, on both sides")
    l2.settle()
    bench.expect(3, frame(mac(2), mac(3)), [2], "forwarded to the learned one")
    bench.expect(3, frame(BROADCAST, mac(3)), [1, 2, 4], "and to all")


def test_filtering_is_switched_and_entries_follow(bench):
    bench.bridge()
    run(f"bridge fdb add {mac(1)} dev swp2 master static; "
        f"bridge fdb replace {mac(1)} dev swp1 master static vlan 1")
    true(until(lambda: in_chip(mac(1), 2)), "without VLANs")
    bench.send(3, frame(mac(9), mac(3)), wait=0)
    true(until(lambda: in_bridge(mac(3), 3)), "learned")
    run("ip link set br0 type bridge vlan_filtering 1")
    true(until(lambda: in_chip(mac(1), 1) and not in_chip(mac(1), 2)), "with VLANs")
    true(until(lambda: not kernel_fdb(mac(3))), "learned without VLANs, forgotten")
    run("ip link set br0 type bridge vlan_filtering 0")
    true(until(lambda: in_chip(mac(1), 2) and not in_chip(mac(1), 1)), "without VLANs again")


if __name__ == "__main__":
    l2.main()
