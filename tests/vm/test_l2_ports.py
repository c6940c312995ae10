# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci
# timeout: 1500
"""Port flags, spanning-tree states, and what is refused or trapped instead, with its reason."""

import time

import l2
from l2 import BROADCAST, chip_fdb, equal, frame, mac, refused, run, true, until

GROUP = "01:00:5e:00:00:f0"


def flags(port):
    return next(p for p in l2.table("ports") if p["port"] == port)["flags"]


def set_flag(port, words):
    run(f"bridge link set dev swp{port} {words}")
    l2.settle()


def test_flood_flags(bench):
    bench.bridge()
    set_flag(2, "flood off")
    bench.expect(1, frame(mac(9), mac(1)), [3, 4], "unknown unicast")
    bench.expect(1, frame(BROADCAST, mac(1)), [2, 3, 4], "broadcast")
    set_flag(2, "flood on mcast_flood off")
    bench.expect(1, frame(GROUP, mac(1)), [3, 4], "multicast")
    bench.expect(1, frame(mac(9), mac(1)), [2, 3, 4], "unknown unicast")
    set_flag(2, "mcast_flood on bcast_flood off")
    bench.expect(1, frame(BROADCAST, mac(1)), [3, 4], "broadcast")
    set_flag(2, "bcast_flood on")
    bench.expect(1, frame(BROADCAST, mac(1)), [2, 3, 4], "all on")


def test_learning_off(bench):
    bench.bridge()
    set_flag(1, "learning off")
    bench.expect(1, frame(mac(9), mac(1)), [2, 3, 4], "flooded")
    equal(chip_fdb(mac(1)), [], "not learned")
    set_flag(1, "learning on")
    bench.send(1, frame(mac(9), mac(1)), wait=0)
    true(until(lambda: chip_fdb(mac(1))), "learned")


def test_ageing_zero_is_no_learning(bench):
    bench.bridge()
    run("ip link set br0 type bridge ageing_time 0")
    l2.settle()
    bench.expect(1, frame(mac(9), mac(1)), [2, 3, 4], "flooded")
    equal(chip_fdb(mac(1)), [], "not learned")
    bench.expect(2, frame(mac(1), mac(2)), [1, 3, 4], "flooded")


def test_isolated(bench):
    bench.bridge()
    set_flag(1, "isolated on")
    set_flag(2, "isolated on")
    bench.expect(1, frame(BROADCAST, mac(1)), [3, 4], "from an isolated port")
    bench.expect(3, frame(BROADCAST, mac(3)), [1, 2, 4], "from another one")
    set_flag(1, "isolated off")
    bench.expect(1, frame(BROADCAST, mac(1)), [2, 3, 4], "no longer")


def test_hairpin(bench):
    bench.bridge()
    set_flag(1, "hairpin on")
    bench.expect(1, frame(mac(9), mac(1)), [1, 2, 3, 4], "back out, too")
    set_flag(1, "hairpin off")
    bench.expect(1, frame(mac(9), mac(1)), [2, 3, 4], "no longer")


def test_locked(bench):
    bench.bridge()
    set_flag(1, "locked on learning off")
    bench.expect(1, frame(BROADCAST, mac(1)), [], "a stranger")
    run(f"bridge fdb add {mac(1)} dev swp1 master static")
    true(until(lambda: chip_fdb(mac(1))), "authorised")
    bench.expect(1, frame(BROADCAST, mac(1)), [2, 3, 4], "no stranger any more")
    bench.expect(1, frame(BROADCAST, mac(8)), [], "another stranger")


def test_spanning_tree_states(bench):
    # without STP the kernel has armed its timer all the same: once it is over, states stay as they are set
    bench.bridge(forward_delay=200)
    time.sleep(2.5)
    lldp = "01:80:c2:00:00:0e"
    for state, name, out, learns in ((1, "listening", [], False), (2, "learning", [], True),
                                     (3, "forwarding", [2, 3, 4], True)):
        run(f"bridge link set dev swp1 state {state}")
        true(until(lambda name=name: l2.table("ports")[0]["stp_state"] == name), f"{name} in the chip")
        bench.expect(1, frame(BROADCAST, mac(state, station=3)), out, f"{name}: from the port")
        bench.expect(2, frame(BROADCAST, mac(2)), [1, 3, 4] if out else [3, 4], f"{name}: to the port")
        equal(bool(chip_fdb(mac(state, station=3))), learns, f"{name}: learned")
        before = l2.cpu_rx()
        bench.send(1, frame(lldp, mac(0x77, station=3)), wait=0)
        l2.cpu_saw(before, 1, f"{name}: LLDP at the CPU")
    bench.send(1, frame(mac(9), mac(1)), wait=0)
    true(until(lambda: chip_fdb(mac(1)) and l2.kernel_fdb(mac(1))), "learned")
    run("bridge link set dev swp1 state 1")
    true(until(lambda: l2.table("ports")[0]["stp_state"] == "listening"), "listening in the chip")
    bench.expect(2, frame(mac(1), mac(2)), [], "behind a port that does not forward: dropped, as in the bridge")
    true(chip_fdb(mac(1)) and l2.kernel_fdb(mac(1)), "and not forgotten")
    run("bridge link set dev swp1 state 0")
    true(until(lambda: not chip_fdb(mac(1)) and not l2.kernel_fdb(mac(1))), "forgotten when the port is disabled")


def test_stp_of_the_kernel(bench):
    """Two cables between two bridges would be a loop: the kernel's STP frames pass, its states arrive."""
    bench.bridge(stp_state=1, forward_delay=200, hello_time=100)
    equal({p["stp_state"] for p in l2.table("ports")[:l2.PORTS]}, {"forwarding"}, "states")


def test_refused_flags(bench):
    bench.bridge()
    before = flags(1)
    true("multicast" in refused("bridge link set dev swp1 mcast_to_unicast on"), "the reason")
    true("MAC authentication" in refused("bridge link set dev swp1 learning on locked on mab on"), "the reason")
    l2.settle()
    equal(flags(1), before, "nothing changed")


def test_refused_bridges(bench):
    run("ip link add br0 type bridge vlan_filtering 1 vlan_protocol 802.1ad; ip link add br1 type bridge mst_enabled 1",
        check=False)
    bench.devices += ["br0", "br1"]
    true("802.1Q" in refused("ip link set swp1 master br0"), "802.1ad")
    run("ip link set br0 type bridge vlan_protocol 802.1Q; ip link set swp1 master br0")
    true("802.1Q" in refused("ip link set br0 type bridge vlan_protocol 802.1ad"), "802.1ad later")
    if "mst_enabled 1" in run("ip -d link show br1"):
        true("spanning trees" in refused("ip link set swp2 master br1"), "MST")


def trapped(port):
    return until(lambda: "trap_all" in flags(port))


def forwards(port):
    return until(lambda: "trap_all" not in flags(port))


def test_devices_on_top_trap(bench):
    bench.bridge(ports=[1, 2, 3])
    for words in (
        "ip link add mv0 link swp4 type macvlan",
        "ip link add mv0 type bond; ip link set swp4 down; ip link set swp4 master mv0; ip link set swp4 up",
        "ip link set swp4 master br0; ip link add mv0 link swp4 type vlan id 7",
    ):
        run(words)
        true(trapped(4), words)
        run("ip link del mv0; ip link set swp4 nomaster")
        true(forwards(4), f"after {words}")
    run("ip link set swp4 up")
    run("ip link set br0 promisc on")
    true(trapped(1), "a promiscuous bridge")
    bench.expect(1, frame(mac(9), mac(1)), [2, 3], "the CPU forwards, once each")
    run("ip link set br0 promisc off")
    true(forwards(1), "no longer")
    run("bridge link set dev swp1 neigh_suppress on")
    true(trapped(2), "ARP suppression")
    run("bridge link set dev swp1 neigh_suppress off")
    true(forwards(2), "no longer")


def test_filters_trap(bench):
    bench.bridge()
    run("nft add table bridge t; nft add chain bridge t c '{ type filter hook forward priority 0; policy drop; }'")
    try:
        true(trapped(1), "a bridge chain")
        bench.expect(1, frame(BROADCAST, mac(1)), [], "dropped by the chain")
    finally:
        run("nft delete table bridge t")
    true(forwards(1), "no longer")
    bench.expect(1, frame(BROADCAST, mac(1)), [2, 3, 4], "forwarded again")
    run("nft add table netdev t; nft add chain netdev t c '{ type filter hook ingress device swp2 priority 0; }'")
    try:
        true(trapped(1), "an ingress chain on a member")
    finally:
        run("nft delete table netdev t")
    true(forwards(1), "no longer")


def test_states_of_vlans_trap(bench):
    """Without MST the bridge tells no driver of them."""
    bench.bridge(vlan_filtering=1)
    for n in bench.nic:
        run(f"bridge vlan add vid 10 dev swp{n}")
    run("ip link add br0.10 link br0 type vlan id 10; bridge vlan add vid 10 dev br0 self; ip link set br0.10 up;"
        " ip addr add 10.10.0.1/24 dev br0.10")
    bench.devices.append("br0.10")
    l2.settle()
    bench.expect(1, frame(BROADCAST, mac(1), vid=10), [2, 3, 4], "forwarding everywhere")
    true(until(lambda: l2.table("rifs")), "the VLAN's interface is a RIF")
    for port, state in (("swp2", 4), ("swp2", 2), ("swp2", 0)):
        run(f"bridge vlan set vid 10 dev {port} state {state}")
        true(trapped(1), f"state {state}: the kernel forwards")
        true(until(lambda: not l2.table("rifs")), f"state {state}: and routes")
        bench.expect(1, frame(BROADCAST, mac(state + 1), vid=10), [3, 4], f"state {state}: not to that port")
        bench.expect(2, frame(BROADCAST, mac(2), vid=10), [], f"state {state}: not from that port")
        bench.expect(2, frame(BROADCAST, mac(2)), [1, 3, 4], f"state {state}: in another VLAN it is a port like others")
        run(f"bridge vlan set vid 10 dev {port} state 3")
        true(forwards(1), f"forwarding again after {state}")
        true(until(lambda: l2.table("rifs")), f"and routing after {state}")
    run("bridge vlan set vid 10 dev swp2 state 4")
    true(trapped(1), "blocking")
    run("ip link set br0 type bridge vlan_filtering 0")
    true(forwards(1), "without VLANs there are no such states")
    bench.expect(1, frame(BROADCAST, mac(1), vid=10), [2, 3, 4], "as for the kernel")
    run("ip link set br0 type bridge vlan_filtering 1")
    true(trapped(1), "blocking again")
    run("bridge vlan del vid 10 dev swp2")
    true(forwards(1), "gone with the VLAN")
    run("; ".join(f"ip link set swp{n} nomaster" for n in bench.nic) + "; bridge vlan set vid 10 dev br0 self state 4; "
        "ip link set swp1 master br0")
    true(trapped(1), "a state that is there before the first port")
    run("ip link set swp3 master br0")
    true(trapped(3), "also of a port that comes later")


def test_groups_by_mac_address_trap(bench):
    bench.bridge(mcast_snooping=1)
    run("bridge mdb add dev br0 port swp2 grp 01:00:00:01:02:03 permanent")
    true(trapped(1), "a group that the chip can't tell apart")
    bench.expect(1, frame("01:00:00:01:02:03", mac(1)), [2], "to its member alone")
    run("ip link set swp2 nomaster")
    true(forwards(1), "gone with its port")


def test_groups_are_counted_once(bench):
    """A replace is told as one more add."""
    bench.bridge(mcast_snooping=1)
    group = "dev br0 port swp2 grp 01:00:00:01:02:03"
    run(f"bridge mdb add {group} permanent")
    true(trapped(1), "a group that the chip can't tell apart")
    for _ in range(2):
        run(f"bridge mdb replace {group} permanent")
    run(f"bridge mdb del {group}")
    true(forwards(1), "gone")


def test_groups_of_the_bridge_device_trap(bench):
    """No port belongs to it: the bridge sends it nowhere, and the chip would flood it."""
    bench.bridge(mcast_snooping=1)
    run("bridge mdb add dev br0 port br0 grp 01:00:00:01:02:03 permanent")
    true(trapped(1), "a group of the bridge's own")
    bench.expect(1, frame("01:00:00:01:02:03", mac(1)), [], "to nobody")
    run("bridge mdb del dev br0 port br0 grp 01:00:00:01:02:03")
    true(forwards(1), "gone")
    bench.expect(1, frame("01:00:00:01:02:03", mac(1)), [2, 3, 4], "flooded again")


if __name__ == "__main__":
    l2.main()
