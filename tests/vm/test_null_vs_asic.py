#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci --profile tiny --ports 4
# timeout: 240
"""The chip model inside the kernel answers as asicd's firmware does.

    the same random life ──► driver ──► asicd                 ──► every answer, every pool, every flag
                         ──► driver ──► model (backend null)  ──► the same?

Routes of both families, host routes, next hops and groups, neighbours and addresses, also beyond full; deletes between.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import test_fill_drain as fill

SEEDS = [int(x) for x in os.environ.get("SEED", "3 4").split()]
TURNS, EACH = 3, 60
BEGAN = time.monotonic()


OTHERS = re.compile(r"acl-|policer$|mirror$|lag|multicast-group").match


class Slow(Exception):
    """asicd, a process of a busy host, has not answered in time: that is no answer to compare."""


def device():
    return json.loads(fill.run("devlink -j dev")[1])["dev"].popitem()[0]


def pools():
    """Of each: size and used, once nothing is on its way."""
    for _ in range(200):
        found = json.loads(fill.run(f"devlink -j health diagnose {device()} reporter chip")[1])
        while "pools" not in found:
            found = next(iter(found.values()))
        if not any(p["in_flight"] for p in found["pools"]):
            # the model has no lists of rules and no LAGs, and the driver uses none: they must be empty
            return {p["name"]: (p["size"], p["used"]) for p in found["pools"] if p["used"] or not OTHERS(p["name"])}
        time.sleep(0.05)
    sys.exit(f"FAILED: something is on its way for ever: {found}")


def object_of(rnd, n, gateways):
    """(command, what undoes it): what fills and drains a chip, and host routes, next-hop objects and their groups."""
    kind, way = rnd.randrange(12), (rnd.choice((1, 2)), rnd.randrange(2, 2 + gateways))
    if kind == 0:
        key = f"33.{n}.0.1/32"
        return f"route add {key} via 10.0.{way[0]}.{way[1]}", f"route del {key}"
    if kind == 1:
        key = f"2001:db8:ffff::{n + 1:x}/128"
        return f"route add {key} via 2001:db8:{way[0]}::{way[1]}", f"route del {key}"
    if kind == 2:
        return f"nexthop add id {n % 8 + 1} via 10.0.{way[0]}.{way[1]} dev swp{way[0]}", f"nexthop del id {n % 8 + 1}"
    if kind == 3:
        members = "/".join(str(m) for m in sorted(rnd.sample(range(1, 9), 2)))
        return f"nexthop add id {100 + n % 8} group {members}", f"nexthop del id {100 + n % 8}"
    if kind == 4:
        key = f"34.{n}.0.0/16"
        return f"route add {key} nhid {rnd.choice((n % 8 + 1, 100 + n % 8))}", f"route del {key}"
    return fill.object_of(rnd, n, gateways)[1:]


def flags():
    """What the kernel shows of each route and address: in hardware, a trap, failed."""
    shown = [x for f in ("-4", "-6") for x in fill.run(f"ip {f} -o route show")[1].splitlines()]
    shown += [x for x in fill.run("bridge fdb show dev swp3")[1].splitlines() if x.startswith("02:00:00:03")]
    return sorted(re.sub(r"\s*(linkdown|pref medium|proto \w+|metric \d+)", "", x).strip() for x in shown)


def settled():
    """Flags follow answers: until they are the same twice."""
    before = None
    for _ in range(50):
        if (now := (pools(), flags())) == before:
            return now
        before = now
        time.sleep(0.3)
    sys.exit(f"FAILED: {device()} does not come to rest")


def told(commands):
    """Each command, and what was said to it."""
    refused = fill.batch(commands)
    if any("does not answer" in said for said in refused.values()):
        raise Slow
    return [(c, refused.get(c, "yes")) for c in commands]


def life(seed):
    """The answers to a random life, and what was in the chip on the way."""
    rnd, there, answers = random.Random(seed), {}, []
    # many gateways fill the next hops, few leave room for routes: seed by seed
    gateways = (1, 8)[seed % 2]
    for turn in range(TURNS):
        fresh = {}
        for n in rnd.sample(range(250), EACH):
            command, undo = object_of(rnd, n, gateways)
            if command not in there:
                fresh[command] = undo
        said = told(list(fresh))
        answers += said
        there |= {command: fresh[command] for command, answer in said if answer == "yes"}
        answers.append((f"seed {seed}, turn {turn}, filled", settled()))
        going = rnd.sample(sorted(there), len(there) // (1 if turn == TURNS - 1 else 2))
        answers += told([there.pop(command) for command in going])
        answers.append((f"seed {seed}, turn {turn}, drained", settled()))
        now = time.monotonic() - BEGAN
        print(f"{device()}: seed {seed}, turn {turn}: {len(said)} commands, {now:.0f} s", flush=True)
    return answers


def again(seed):
    """A life that is begun anew, from empty, when asicd was late in it."""
    for _ in range(4):
        try:
            return life(seed)
        except Slow:
            print(f"seed {seed}: asicd was late, once more", flush=True)
            for f in ("-4", "-6"):
                fill.run(f"ip {f} route flush proto boot")
            fill.run("ip nexthop flush")
            fill.run("bridge fdb flush dev swp3 static")
            for k in (1, 2):
                fill.run(f"ip neigh flush dev swp{k} nud permanent")
            settled()
    sys.exit(f"FAILED: seed {seed}: asicd is late again and again")


def lives():
    fill.run(f"devlink dev param set {device()} name policy value lockstep cmode runtime")
    fill.configure()
    # what the chip would learn of the NIC behind the port the model can't know
    fill.run("bridge link set dev swp3 learning off")
    answers = [answer for seed in SEEDS for answer in again(seed)]
    fill.run("ip link del br0")
    return answers


def differ(theirs, ours):
    """The first that is not the same, in words."""
    for (what, a), (_, b) in zip(theirs, ours, strict=True):
        if a == b:
            continue
        if isinstance(a, str):
            return f"{what}: asicd says {a}, the model {b}"
        wrong = {name: f"asicd {a[0][name]}, model {b[0].get(name)}" for name in a[0] if a[0][name] != b[0].get(name)}
        theirs_only, ours_only = sorted(set(a[1]) - set(b[1])), sorted(set(b[1]) - set(a[1]))
        return f"{what}: {wrong}; only asicd: {theirs_only}, only model: {ours_only}"
    return None


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("FAILED: it took too long"))
    firmware = lives()
    subprocess.run(["modprobe", "-r", "clsw_pci"], check=True)
    try:
        subprocess.run(["modprobe", "clsw_null", "profile=tiny", "ports=4"], check=True)
        model = lives()
    finally:
        subprocess.run(["modprobe", "-r", "clsw_null"], check=False)
        subprocess.run(["modprobe", "clsw_pci"], check=True)
    if wrong := differ(firmware, model):
        sys.exit(f"FAILED: {wrong}")
    full = [answer for _, answer in firmware if isinstance(answer, str) and "full" in answer]
    tables = {re.sub(r" \(.*", "", answer) for answer in full}
    print(f"{len(firmware)} answers are the same; {len(full)} times full: {', '.join(sorted(tables))}")
    if len(full) < 10 or len(tables) < 3:
        sys.exit("FAILED: the chip was hardly ever full")


main()
