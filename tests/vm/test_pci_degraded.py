#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# lab: --backend pci --ports 3
# timeout: 200
"""A chip that is filled from empty forwards nothing by half a table: whenever it has fewer routes than the kernel, its
interfaces trap all and its domains flood no unknown unicast; when it has them all, both do as before.

    the chip resets itself, attached cold ──► RIFs and VLANs degraded ──► routes, slowly ──► all there ──► as wanted
                                              └────── who forwards in a look must have had all routes in it ──────┘
"""

import json
import subprocess
import sys
import time

ROUTES = 450
BEGAN = time.monotonic()
SLOW_MS = 4  # a command; less than 2 s for the 256 that may be under way


def run(command):
    subprocess.run(command, shell=True, check=True)


def fault(words):
    run(f"host 'tandem fault {words} --name $LAB_ASIC' >/dev/null")


def looks(seconds, command=""):
    """Each look at the chip for so long, or until it is as it should be: looks.py."""
    line = f"python3 tests/vm/looks.py 30. {ROUTES} {seconds} {command}"
    done = subprocess.run(["host", line], stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(x) for x in done.stdout.splitlines()]


def all_forward(what):
    look = looks(100)[-1]
    if look["there"] < 3 or len(look["forwards"]) != look["there"] or look["routes"] != ROUTES:
        sys.exit(f"FAILED: {what}: of {ROUTES} routes, and of 2 interfaces and a domain that forward: {look}")
    print(f"{what}: {len(look['forwards'])} forward, {time.monotonic() - BEGAN:.0f} s", flush=True)


def configure():
    lines = []
    run("sysctl -qw net.ipv4.ip_forward=1")
    for k in (1, 2):
        run(f"ip link set swp{k} up && ip addr add 10.0.{k}.1/24 dev swp{k}")
        lines.append(f"neigh replace 10.0.{k}.2 lladdr 02:00:00:00:00:0{k} dev swp{k}")
    run("ip link add br0 type bridge vlan_filtering 1 && ip link set swp3 master br0")
    run("ip link set swp3 up && ip link set br0 up")
    lines += [f"route add 30.{n // 250}.{n % 250}.0/24 via 10.0.1.2" for n in range(ROUTES)]
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True)


def filled():
    """From a reset to the last route, by looks that began before it."""
    half, emptied = 0, False
    seen = looks(100, "tandem fault reset --name $LAB_ASIC")
    for look in seen:
        full = look["routes"] == ROUTES
        emptied |= not full
        if not full and look["forwards"]:
            sys.exit(f"FAILED: of {ROUTES} routes {look['routes']} are there, and there forward {look['forwards']}")
        half += 0 < look["routes"] < ROUTES and look["there"] >= 3
    if not emptied or not full:
        sys.exit(f"FAILED: in {len(seen)} looks the chip was never {'full again' if emptied else 'empty'}")
    if not half:
        sys.exit(f"FAILED: none of {len(seen)} looks saw half a table: this shows nothing")
    print(f"{len(seen)} looks, {half} at half a table: nothing forwarded, {time.monotonic() - BEGAN:.0f} s", flush=True)


def main():
    configure()
    all_forward("at first")
    fault(f"delay {SLOW_MS}")
    filled()
    fault("clear")
    all_forward("after a reset")


main()
