#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All VLANs on trunks: what it takes until they are there, in time and memory. One JSON object per line.

   p1 ═ trunk of VLANs 1 to 4,094 ─┐         bridge + 8021q: an interface per VLAN and trunk, a bridge per VLAN
   …                               ├─ side
   pN ═ trunk of VLANs 1 to 4,094 ─┘

A side that takes too long, or all memory, is left where it is: each line says how many VLANs there were by then.
"""

import argparse
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from guest import say  # noqa: E402
from sides import prefix  # noqa: E402

from lib import net  # noqa: E402
from lib.appliance import ChipSwitch  # noqa: E402

VLANS = 4094
CHUNK = 64
SPARE_KB = 150_000     # memory that is left when a side is stopped


def available_kb():
    with open("/proc/meminfo", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("MemAvailable"))


def pss_kb(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))


def cables(ns, trunks):
    ns.sysctl(ipv6__conf__all__disable_ipv6=1, ipv6__conf__default__disable_ipv6=1)
    ns.ip_batch([line for n in range(1, trunks + 1) for line in
                 (f"link add p{n} type veth peer name q{n}", f"link set p{n} up", f"link set q{n} up")])


def tandem(trunks, _limit):
    """Typed into the console; over when the chip has said that it has all."""
    sw = ChipSwitch(prefix(), profile="spectrum-sn2700")
    try:
        cables(sw.front, trunks)
        sw.cabled = list(range(1, trunks + 1))
        sw.start()
        time.sleep(0.5)
        daemons = [sw.pid("asicd"), sw.pid("swcfgd")]
        before, free, began = list(map(pss_kb, daemons)), available_kb(), time.monotonic()
        sw.cli("configure terminal", f"vlan 2-{VLANS}", "exit", f"interface range swp1 - {trunks}",
               "switchport mode trunk", "end")
        sw.sync()
        took = time.monotonic() - began
        used = next(r["used"] for r in sw.chip("/v1/resources")["items"] if r["name"] == "vlan-member")
        if used < trunks * VLANS:  # ports without a cable are in VLAN 1
            raise RuntimeError(f"the chip has {used} memberships, not the {trunks * VLANS} of the trunks")
        grown = [b - a for a, b in zip(before, map(pss_kb, daemons))]
        return {"vlans": VLANS, "seconds": took, "system_kb": free - available_kb(), "asicd_kb": grown[0],
                "swcfgd_kb": grown[1]}
    finally:
        sw.delete()


def filtering(trunks, _limit):
    ns = net.Namespace(prefix() + "sw")
    cables(ns, trunks)
    free, began = available_kb(), time.monotonic()
    ns.ip("link add br0 up type bridge vlan_filtering 1 mcast_snooping 0")
    ns.ip_batch([f"link set p{n} master br0" for n in range(1, trunks + 1)], timeout=600)
    lines = "".join(f"vlan add dev p{n} vid 2-{VLANS}\n" for n in range(1, trunks + 1))
    net.run("bridge", "-n", ns.name, "-batch", "-", stdin=lines, timeout=600)
    took = time.monotonic() - began
    out = {"vlans": VLANS, "seconds": took, "system_kb": free - available_kb()}
    ns.delete()
    return out


def subinterfaces(trunks, limit):
    """The namespace is left as it is: to take it away would take as long again, and the machine ends anyway."""
    ns = net.Namespace(prefix() + "sw")
    cables(ns, trunks)
    free, began, done = available_kb(), time.monotonic(), 0
    while done < VLANS:
        lines = []
        for v in range(done + 1, min(done + CHUNK, VLANS) + 1):
            lines.append(f"link add b{v} type bridge mcast_snooping 0")
            for n in range(1, trunks + 1):
                lines += [f"link add link p{n} name p{n}.{v} type vlan id {v}", f"link set p{n}.{v} master b{v} up"]
            lines.append(f"link set b{v} up")
            done = v
        ns.ip_batch(lines, timeout=3600)
        took = time.monotonic() - began
        now = {"vlans": done, "seconds": took, "system_kb": free - available_kb(), "interfaces": done * trunks}
        why = "time" if took > limit else "memory" if available_kb() < SPARE_KB else ""
        if why and done < VLANS:
            return now | {"stopped": why}
        say(step="progress", side="8021q", trunks=trunks, **now)
    return now


SIDES = {"tandem": tandem, "filtering": filtering, "8021q": subinterfaces}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--native", action="store_true")
    p.add_argument("--pairs", type=int, default=1)
    p.add_argument("--limit", type=float, default=600, help="seconds for one side")
    p.add_argument("steps", nargs="+", help="SIDE:TRUNKS")
    o = p.parse_args()
    if not o.native:
        os.environ["TANDEM_BIN"] = "/opt/tandem"
        net.run("modprobe", "-a", "veth", "tun", "bridge", "8021q")
    say(step="begin", kernel=os.uname().release, cores=os.cpu_count())
    for pair in range(o.pairs):
        for name, trunks in (s.split(":") for s in o.steps):
            say(step="vlans", side=name, trunks=int(trunks), pair=pair, **SIDES[name](int(trunks), o.limit))
    say(step="end")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
