# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci --profile tiny
# timeout: 900
"""A chip with room for 4 domains, 16 members, a few addresses: what doesn't fit is refused, or traps, and is undone."""

import l2
from l2 import BROADCAST, chip_fdb, equal, frame, mac, refused, run, tables, true, until

L2_TABLES = ("ports", "vlans", "members", "fdb")


def flags_of_domain():
    return l2.table("vlans")[0]["flags"]


def test_domains_full(bench):
    bench.bridge(vlan_filtering=1, ports=[1, 2])
    run("bridge vlan add vid 2-4 dev swp1")
    l2.settle()
    before = tables(*L2_TABLES)
    text = refused("bridge vlan add vid 5 dev swp1")
    true("VLAN" in text and "(needs 1, free 0 of 4)" in text, f"the reason: {text}")
    true("\t5" not in run("bridge vlan show dev swp1"), "VLAN 5 is not in the bridge")
    l2.settle()
    equal(tables(*L2_TABLES), before, "the chip")
    equal(len(before[1]), 4, "domains")
    # a bridge that finds no domain: the port does not join
    run("ip link add br9 type bridge")
    bench.devices.append("br9")
    text = refused("ip link set swp3 master br9")
    true("(needs 1, free 0 of 4)" in text, f"the reason: {text}")
    true("master" not in run("ip link show swp3"), "swp3 has not joined")
    l2.settle()
    equal(tables(*L2_TABLES), before, "the chip")
    run("bridge vlan del vid 4 dev swp1; ip link set swp3 master br9")
    l2.settle()
    equal(len(l2.table("vlans")), 4, "room again")
    # what was there all the time works on
    bench.expect(1, frame(BROADCAST, mac(1)), [2], "VLAN 1")


def test_members_full(bench):
    bench.bridge(vlan_filtering=1)
    l2.batch("bridge", *(f"vlan add vid 2-4 dev swp{p}" for p in (1, 2, 3, 4)))
    l2.settle()
    before = tables(*L2_TABLES)
    equal(len(before[2]), 16, "members")
    run("ip link set swp5 up")
    text = refused("ip link set swp5 master br0")
    true("(needs 1, free 0 of 16)" in text, f"the reason: {text}")
    true("master" not in run("ip link show swp5"), "swp5 has not joined")
    run("ip link set swp5 down")
    l2.settle()
    equal(tables(*L2_TABLES)[1:3], before[1:3], "the chip")


def test_addresses_full(bench):
    """What the bridge knows and the chip can't hold: unknown unicast traps, nobody gets what isn't his."""
    bench.bridge()
    held = len(l2.table("fdb"))
    l2.batch("bridge", *(f"fdb add {mac(n, station=9)} dev swp2 master static" for n in range(50)))
    true(until(lambda: "uc_trap" in flags_of_domain()), "the domain traps unknown unicast")
    rows = l2.table("fdb")
    true(held < len(rows) < held + 50, f"{len(rows)} entries in the chip")
    there = {r["mac"] for r in rows}
    missing = [mac(n, station=9) for n in range(50) if mac(n, station=9) not in there]
    before = l2.cpu_rx()
    bench.expect(1, frame(missing[0], mac(1)), [2], "the CPU forwards what is missing, to its port alone")
    l2.cpu_saw(before, 1, "by the CPU")
    offloaded = run("bridge fdb show dev swp2").count("offload")
    true(until(lambda: run("bridge fdb show dev swp2").count("offload") == len(
        [r for r in l2.table("fdb") if r["port"] == 2])), f"offload flags: {offloaded}")
    l2.batch("bridge", *(f"fdb del {mac(n, station=9)} dev swp2 master" for n in range(50)))
    true(until(lambda: "uc_trap" not in flags_of_domain()), "no longer")
    equal([r for r in l2.table("fdb") if r["mac"].startswith("02:00:00:00:09")], [], "all removed")


def test_what_failed_gets_in_when_there_is_room(bench):
    bench.bridge()
    l2.batch("bridge", *(f"fdb add {mac(n, station=9)} dev swp2 master static" for n in range(40)))
    true(until(lambda: "uc_trap" in flags_of_domain()), "full")
    there = {r["mac"] for r in l2.table("fdb")}
    missing = [mac(n, station=9) for n in range(40) if mac(n, station=9) not in there]
    l2.batch("bridge", *(f"fdb del {address} dev swp2 master" for address in sorted(there)
                         if address.startswith("02:00:00:00:09")))
    true(until(lambda: all(chip_fdb(m) for m in missing[:3]), 15), "written when there was room")
    true(until(lambda: "uc_trap" not in flags_of_domain(), 15), "nothing is missing any more")


if __name__ == "__main__":
    l2.main()
