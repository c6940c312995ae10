# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci
# timeout: 1500
"""Bridges in hardware: who gets a frame, in which form, and that the CPU has nothing to do with it."""

import l2
from l2 import BROADCAST, equal, frame, mac, run, true


def learn(bench, port, address, **words):
    bench.send(port, frame(mac(0xEE), address, **words), wait=0)
    true(l2.until(lambda: l2.chip_fdb(address)), f"the chip did not learn {address}")


def test_unaware_flood_and_unicast(bench):
    bench.bridge()
    a, b = mac(1), mac(2)
    bench.expect(1, frame(b, a), [2, 3, 4], "unknown unicast")
    bench.expect(2, frame(a, b), [1], "learned")
    before = l2.cpu_rx()
    for _ in range(40):
        bench.nic[1].send(frame(b, a))
        bench.nic[2].send(frame(a, b))
    last = frame(b, a)
    bench.expect(1, last, [2], "learned, the other way")
    l2.cpu_saw(before, 0, "known unicast that the CPU saw")
    bench.expect(1, frame(mac(9), a), [2, 3, 4], "unknown unicast")
    l2.cpu_saw(before, 0, "flooded unicast that the CPU saw")


def test_tags_pass_an_unaware_bridge(bench):
    bench.bridge()
    sent = frame(mac(2), mac(1), vid=77)
    got = bench.send(1, sent)
    equal(sorted(got), [2, 3, 4], "who got it")
    for frames in got.values():
        equal(frames, [sent], "as it was sent")


def test_broadcast_once_each_and_a_copy(bench):
    bench.bridge()
    before = l2.cpu_rx()
    bench.expect(3, frame(BROADCAST, mac(3)), [1, 2, 4], "broadcast")
    l2.cpu_saw(before, 1, "copies to the CPU")
    run("ip link set br0 down")
    l2.settle()
    bench.expect(3, frame(BROADCAST, mac(3)), [], "a bridge that is down")


def test_aware_vlans(bench):
    bench.bridge(vlan_filtering=1)
    run("bridge vlan add vid 10 dev swp1 pvid untagged; bridge vlan del vid 1 dev swp1")
    run("bridge vlan add vid 10 dev swp2; bridge vlan add vid 10 dev swp3 untagged")
    l2.settle()
    got = bench.send(1, frame(BROADCAST, mac(1)))
    equal(sorted(got), [2, 3], "VLAN 10")
    equal(got[2][0][12:16], b"\x81\x00\x00\x0a", "tagged on swp2")
    equal(got[3][0][12:14], b"\x88\xb5", "untagged on swp3")
    bench.expect(2, frame(BROADCAST, mac(2), vid=10), [1, 3], "tagged into VLAN 10")
    bench.expect(2, frame(BROADCAST, mac(2)), [3, 4], "untagged: VLAN 1")
    bench.expect(2, frame(BROADCAST, mac(2), vid=20), [], "a VLAN that nobody has")
    bench.expect(1, frame(BROADCAST, mac(1), vid=1), [], "not a member of VLAN 1 any more")
    learn(bench, 1, mac(1))
    before = l2.cpu_rx()
    for _ in range(20):
        bench.nic[2].send(frame(mac(1), mac(2), vid=10))
    bench.expect(2, frame(mac(1), mac(2), vid=10), [1], "learned in VLAN 10")
    bench.expect(2, frame(mac(1), mac(2)), [3, 4], "not known in VLAN 1")
    l2.cpu_saw(before, 0, "unicast that the CPU saw")


def test_pvid_moves_and_goes(bench):
    bench.bridge(vlan_filtering=1)
    run("bridge vlan add vid 30 dev swp1 pvid untagged; bridge vlan add vid 30 dev swp4 untagged")
    l2.settle()
    bench.expect(1, frame(BROADCAST, mac(1)), [4], "the new PVID")
    bench.expect(2, frame(BROADCAST, mac(2)), [1, 3, 4], "the old one's VLAN still reaches the port")
    run("bridge vlan add vid 30 dev swp1 untagged")
    l2.settle()
    bench.expect(1, frame(BROADCAST, mac(1)), [], "no PVID")
    bench.expect(1, frame(BROADCAST, mac(1), vid=30), [4], "tagged still")


def test_filtering_is_switched_while_it_runs(bench):
    bench.bridge()
    run("bridge vlan add vid 5 dev swp1 pvid untagged; bridge vlan add vid 5 dev swp2 untagged")
    bench.expect(1, frame(BROADCAST, mac(1)), [2, 3, 4], "VLANs count for nothing yet")
    for _ in range(3):
        run("ip link set br0 type bridge vlan_filtering 1")
        l2.settle()
        bench.expect(1, frame(BROADCAST, mac(1)), [2], "VLAN 5")
        true(all("trap_all" not in p["flags"] for p in l2.table("ports")), "a port still traps everything")
        run("ip link set br0 type bridge vlan_filtering 0")
        l2.settle()
        bench.expect(1, frame(BROADCAST, mac(1)), [2, 3, 4], "one domain")
    equal(len(l2.table("vlans")), 1, "domains")
    equal(len(l2.table("members")), l2.PORTS, "members")


def test_two_bridges_stay_apart(bench):
    bench.bridge("br0", ports=[1, 2])
    bench.bridge("br1", ports=[3, 4], vlan_filtering=1)
    bench.expect(1, frame(BROADCAST, mac(1)), [2], "br0")
    bench.expect(3, frame(BROADCAST, mac(1)), [4], "br1")
    run("ip link set swp2 master br1")
    l2.until(lambda: l2.reads("/sys/class/net/swp2/brport/state", "3"))
    l2.settle()
    bench.expect(3, frame(BROADCAST, mac(1)), [2, 4], "swp2 moved over")


def test_members_that_are_not_ours(bench):
    bench.bridge(ports=[1, 2, 3])
    run("ip link add v0 type veth peer name v1; ip link set v0 master br0; ip link set v0 up; ip link set v1 up")
    bench.devices.append("v1")
    far = bench.nic[9] = l2.Nic("v1")
    l2.until(lambda: l2.reads("/sys/class/net/v0/brport/state", "3"))
    l2.settle()
    try:
        bench.expect(1, frame(BROADCAST, mac(1)), [2, 3, 9], "broadcast, once each")
        bench.expect(1, frame(mac(0x55), mac(1)), [2, 3, 9], "unknown unicast, once each")
        bench.expect(9, frame(mac(1), mac(9)), [1], "from the veth")
        true(l2.until(lambda: [r for r in l2.chip_fdb(mac(9)) if r["action"] == "trap"]), "the veth's station traps")
        bench.expect(2, frame(mac(9), mac(2)), [9], "to the veth")
        before = l2.cpu_rx()
        bench.expect(2, frame(mac(1), mac(2)), [1], "between our ports")
        l2.cpu_saw(before, 0, "known unicast that the CPU saw")
        bench.expect(9, frame(BROADCAST, mac(9)), [1, 2, 3], "broadcast from the veth")
        # the station moves to a port of ours: what it says there reaches the CPU with its broadcast at the latest
        bench.expect(3, frame(BROADCAST, mac(9)), [1, 2, 9], "broadcast of a station that has moved")
        true(l2.until(lambda: [r for r in l2.chip_fdb(mac(9)) if r["port"] == 3]), "moved to swp3 in the chip")
        bench.expect(1, frame(mac(9), mac(1)), [3], "to its new place")
    finally:
        far.socket.close()
        del bench.nic[9]


def test_link_protocols_go_up_and_nowhere_else(bench):
    bench.bridge()
    before = l2.cpu_rx()
    bench.expect(1, frame("01:80:c2:00:00:0e", mac(1)), [], "LLDP is not forwarded")
    l2.cpu_saw(before, 1, "LLDP at the CPU")


def test_snooped_multicast_is_the_cpus(bench):
    bench.bridge(mcast_snooping=1)
    group = "01:00:5e:01:02:03"
    data = frame(group, mac(1), kind=0x0800, data=l2.udp("239.1.2.3"))
    before = l2.cpu_rx()
    # nobody asks for groups: the kernel floods, and does it from the CPU
    bench.expect(1, data, [2, 3, 4], "no querier: flooded")
    l2.cpu_saw(before, 1, "by the CPU")
    run("ip link set br0 type bridge mcast_snooping 0")
    true(l2.until(lambda: "mc_trap" not in l2.table("vlans")[0]["flags"]), "the domain does not trap multicast")
    bench.expect(1, frame(group, mac(1), kind=0x0800, data=l2.udp("239.1.2.3")), [2, 3, 4], "by the chip")


if __name__ == "__main__":
    l2.main()
