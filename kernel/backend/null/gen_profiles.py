#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""profiles/*.toml -> profiles.gen.h, the chips that clsw_null can be. `--check`: is the header current?"""

import os
import sys
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
OUT = os.path.join(HERE, "profiles.gen.h")
NAMES = ["spectrum-sn2700", "arista-7500e", "jericho2-large", "tiny"]
CAGES = {"rj45": "TND_CAGE_RJ45", "sfp": "TND_CAGE_SFP", "qsfp": "TND_CAGE_QSFP"}
BREAKOUT = {1: "TND_BREAKOUT_NONE", 2: "TND_BREAKOUT_2", 4: "TND_BREAKOUT_4"}
POOLS = ["rif", "vrf", "vlan", "vlan_member", "nexthop", "nhg", "nhg_member"]
TEXTS = ["vendor", "product", "part_number", "serial"]


def profile(name):
    with open(os.path.join(TOP, "profiles", name + ".toml"), "rb") as f:
        p = tomllib.load(f)
    if p["name"] != name:
        sys.exit(f"gen_profiles: profiles/{name}.toml calls itself {p['name']}")
    e, w = p["exact"], p["exact"]["widths"]
    yield f'\t\t.name = "{name}",'
    for key in ["banks", "buckets_per_bank", "slots_per_bucket", "stash", "max_moves"]:
        yield f"\t\t.{key} = {e[key]},"
    for kind in ["mac", "host4", "host6"]:
        yield f"\t\t.width_{kind} = {w[kind]},"
    for family in ["4", "6"]:
        yield f"\t\t.lpm{family} = {p['lpm' + family]['size']},"
        yield f"\t\t.lpm{family}_cost = {p['lpm' + family]['cost']},"
    for pool in POOLS:
        yield f"\t\t.{pool} = {p['pools'][pool]},"
    yield f"\t\t.nhg_max_members = {p['pools']['nhg_max_members']},"
    yield f"\t\t.write_ns = {p['latency']['write_ns']},"
    yield f"\t\t.query_ns = {p['latency']['query_ns']},"
    if len(p["ports"]) != 1:
        sys.exit(f"gen_profiles: profiles/{name}.toml has {len(p['ports'])} runs of ports, struct null_profile holds 1")
    r = p["ports"][0]
    yield f"\t\t.ports = {r['count']},"
    yield f"\t\t.cage = {CAGES[r['cage']]},"
    yield f"\t\t.lanes = {r['lanes']},"
    yield f"\t\t.breakout = {' | '.join(BREAKOUT[b] for b in r['breakout'])},"
    yield f"\t\t.speed_mbps = {r['speed_mbps']},"
    for key in TEXTS:
        yield f'\t\t.{key} = "{p["platform"][key]}",'
    mac = ", ".join("0x" + b for b in p["platform"]["base_mac"].split(":"))
    yield f"\t\t.base_mac = {{ {mac} }},"
    yield f"\t\t.mac_count = {p['platform']['mac_count']},"


def header():
    yield "/* SPDX-License-Identifier: GPL-2.0 */"
    yield "/* Made by gen_profiles.py from profiles/ (sources of the numbers are there): don't edit */"
    yield ""
    yield "static const struct null_profile null_profiles[] = {"
    for name in NAMES:
        yield "\t{"
        yield from profile(name)
        yield "\t},"
    yield "};"


def main():
    text = "\n".join(header()) + "\n"
    if "--check" in sys.argv[1:]:
        with open(OUT, encoding="utf-8") as f:
            if f.read() != text:
                sys.exit("profiles.gen.h is not what profiles/ says: run kernel/backend/null/gen_profiles.py")
        return
    with open(OUT, "w", encoding="utf-8") as f:
        f.write(text)


main()
