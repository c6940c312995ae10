#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --ports 4 --profile tiny
# timeout: 300
"""Whatever the driver said yes to is in hardware: random fills and drains of routes, next hops, groups, neighbours and
addresses that share a chip, and under predict-model the chip takes objects to its last slot.

    fill at random until every class is refused ──► all accepted offloaded, accounts add up ──► drain half, again, all
"""

import glob
import json
import os
import random
import subprocess
import sys
import time

SEED = int(os.environ.get("SEED", "1"))
DEV = "platform/clsw_null"


def run(words, text=None):
    done = subprocess.run(words.split(), input=text, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr + done.stdout


def fail(text):
    sys.exit(f"FAILED (SEED={SEED}): {text}")


def batch(lines):
    """Runs each line; those that were refused, with what was said."""
    refused = {}
    lines = list(lines)
    if stations := [x for x in lines if x.startswith("fdb")]:
        # nobody is told no there: what has no room makes its domain trap
        run("bridge -force -batch -", "\n".join(stations) + "\n")
        lines = [x for x in lines if not x.startswith("fdb")]
    _, said = run("ip -force -batch -", "\n".join(lines) + "\n")
    error = ""
    for line in said.splitlines():
        if line.startswith("Error"):
            error = line
        elif line.startswith("Command failed"):
            refused[int(line.rsplit(":", 1)[1])] = error
    return {lines[n - 1]: error for n, error in refused.items()}


def diagnose():
    found = json.loads(run(f"devlink -j health diagnose {DEV} reporter chip")[1])
    while "pools" not in found:
        found = next(iter(found.values()))
    return found


def chip(name):
    with open(glob.glob(f"/sys/kernel/debug/clsw_null/*/{name}")[0]) as f:
        return f.read().strip()


def adds_up(what):
    for pool in diagnose()["pools"]:
        if pool["used"] + pool["in_flight"] + pool["committed"] + pool["free"] != pool["size"]:
            fail(f"{what}: {pool}")
    if chip("check") != "ok":
        fail(f"{what}: the chip's own check says {chip('check')}")


def agree(what):
    """Until driver and chip have the same accounts."""
    for _ in range(200):
        ours = {p["name"]: (p["used"], p["in_flight"], p["committed"], p["free"]) for p in diagnose()["pools"]}
        rows = [line.split() for line in chip("pools").splitlines()]
        theirs = {row[0]: tuple(int(x) for x in row[2:]) for row in rows}
        if ours == theirs:
            return ours
        time.sleep(0.1)
    fail(f"{what}: ours {ours}, the chip's {theirs}")


def offloaded(keys, what):
    for _ in range(100):
        shown = run("ip route show")[1] + run("ip -6 route show")[1]
        state = {line.split()[1 if line.startswith("blackhole") else 0]: line for line in shown.splitlines() if line}
        # the ways of IPv6 multipath come on lines of their own, behind the flags
        bad = [k for k in keys if "rt_offload_failed" in state.get(k, "rt_offload_failed")
               or ("rt_offload" not in state[k] and "rt_trap" not in state[k])]
        if not bad:
            return
        time.sleep(0.1)
    fail(f"{what}: accepted and not in hardware: {[state.get(k, k) for k in bad[:3]]}")


def object_of(rnd, n, gateways=8):
    """(key, command, what undoes it); on each of two ports so many gateways."""
    kind = rnd.randrange(8)
    ways = rnd.sample([(k, h) for k in (1, 2) for h in range(2, 2 + gateways)], 2)
    if kind in (0, 1):
        key = f"30.{n}.0.0/16"
        return key, f"route add {key} via 10.0.{ways[0][0]}.{ways[0][1]}", f"route del {key}"
    if kind == 2:
        key = f"31.{n}.0.0/16"
        hops = " ".join(f"nexthop via 10.0.{k}.{h}" for k, h in ways)
        return key, f"route add {key} {hops}", f"route del {key}"
    if kind == 3:
        key = f"2001:db8:{n + 1:x}::/48"
        return key, f"route add {key} via 2001:db8:{ways[0][0]}::{ways[0][1]}", f"route del {key}"
    if kind == 4:
        key = f"32.{n}.0.0/16"
        return key, f"route add blackhole {key}", f"route del blackhole {key}"
    if kind == 5:
        address = f"10.0.1.{100 + n % 100}"
        mac = f"02:00:00:01:00:{n % 100:02x}"
        return None, f"neigh replace {address} lladdr {mac} dev swp1", f"neigh del {address} dev swp1"
    if kind == 6:
        mac = f"02:00:00:03:00:{n % 256:02x}"
        return None, f"fdb add {mac} dev swp3 master static vlan 1", f"fdb del {mac} dev swp3 master vlan 1"
    address = f"2001:db8:2::{0x100 + n:x}"
    mac = f"02:00:00:02:00:{n % 256:02x}"
    return None, f"neigh replace {address} lladdr {mac} dev swp2", f"neigh del {address} dev swp2"


def life(rnd, policy, empty):
    run(f"devlink dev param set {DEV} name policy value {policy} cmode runtime")
    there, accepted, refusals = {}, 0, 0
    for turn in range(4):
        drawn = [object_of(rnd, n) for n in rnd.sample(range(250), 60)]
        fresh = {c: (k, u) for k, c, u in drawn if c not in there}
        refused = batch(fresh)
        for command, why in refused.items():
            if "clsw: " not in why:
                fail(f"{policy}: {command} was refused by somebody else: {why}")
        there |= {c: v for c, v in fresh.items() if c not in refused}
        accepted += len(fresh) - len(refused)
        refusals += len(refused)
        adds_up(f"{policy}, turn {turn}")
        offloaded([k for k, _ in there.values() if k], f"{policy}, turn {turn}")
        if diagnose()["mispredicted"]:
            fail(f"{policy}: promised and refused: {diagnose()['mispredicted']}")
        going = rnd.sample(sorted(there), len(there) // (1 if turn == 3 else 2))
        if stuck := batch(there.pop(command)[1] for command in going):
            fail(f"{policy}: deletes were refused: {stuck}")
    left = {k: v[0] for k, v in agree(policy).items()}
    if left != empty:
        fail(f"{policy}: not empty after the drain: {left}, at first {empty}")
    print(f"{policy}: {accepted} accepted, all in hardware; {refusals} refused", flush=True)
    return refusals


def last_slot():
    """Under predict-model the chip has no free slot left when it first says full."""
    run(f"devlink dev param set {DEV} name policy value predict-model cmode runtime")
    refused = batch(f"route add blackhole 40.{n}.0.0/16" for n in range(64))
    why = next(iter(refused.values()), "nobody was refused")
    if "IPv4 LPM full (needs 1, free 0 of 32)" not in why:
        fail(f"last slot: {why}")
    reserve = 4
    size, used = ipv4_slots()
    if used < size - reserve:
        fail(f"last slot: {used} of {size} are used, {reserve} are kept for connected prefixes")
    # what is kept is there for them: an interface's address is three prefixes (its own, its net's, the broadcast's)
    if refused := batch(["addr add 10.0.11.1/24 dev swp1"]):
        fail(f"last slot: with {used} of {size} used an address was refused: {refused}")
    offloaded(["10.0.11.0/24"], "a connected prefix")
    agree("a connected prefix")
    if ipv4_slots() != (size, used + 3):
        fail(f"last slot: {ipv4_slots()[1]} of {size} are used, {used} were before an address took three")
    why = next(iter(batch(["addr add 10.0.12.1/24 dev swp1"]).values()), "nobody was refused")
    if f"IPv4 LPM full (needs 4, free {size - used - 3} of {size})" not in why:
        fail(f"last slot: one address more: {why}")
    batch(["addr del 10.0.11.1/24 dev swp1", *(f"route del blackhole 40.{n}.0.0/16" for n in range(64))])
    print(f"predict-model: {used} of {size} slots used, an address has three of the {reserve} that are kept",
          flush=True)


def ipv4_slots():
    """Size of the chip's table of IPv4 prefixes, and how many are in use."""
    rows = {line.split()[0]: [int(x) for x in line.split()[1:]] for line in chip("pools").splitlines()}
    return tuple(rows["ipv4-lpm"][:2])


def configure():
    run("ip link add br0 type bridge vlan_filtering 1")
    run("ip link set swp3 master br0")
    run("ip link set swp3 up")
    run("ip link set br0 up")
    run("sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1")
    for k in (1, 2):
        run(f"ip link set swp{k} up")
        run(f"ip addr add 10.0.{k}.1/24 dev swp{k}")
        run(f"ip -6 addr add 2001:db8:{k}::1/64 dev swp{k} nodad")
    time.sleep(2)


def main():
    rnd = random.Random(SEED)
    configure()
    empty = {k: v[0] for k, v in agree("at first").items()}
    refusals = sum(life(rnd, p, empty) for p in ("lockstep", "prefetch", "credit", "predict-model"))
    if not refusals:
        fail("the chip was never full")
    last_slot()


if __name__ == "__main__":
    main()
