#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the crates' dependencies against the table "Crates and layers" of docs/architecture.md.

A crate may use crates of a smaller layer only, and only those that its row's last column names. What tests alone
use (dev-dependencies) is free. Some foreign crates belong to one crate of ours: nobody else speaks netlink.
"""

import json
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FREE = {"bench", "abi/gen", "fuzz", "tests/twin"}  # measure, generate or test; nothing uses them
OWNED = {
    "netlink-packet-route": {"linux"},
    "netlink-packet-core": {"linux"},
    "netlink-sys": {"linux"},
    "memmap2": {"linux", "abi/carrier"},
    "axum": {"mgmt", "asic/asicd", "switch/core", "openflow/ofagentd"},
    "hyper": {"mgmt"},
    "hyper-util": {"mgmt"},
    "bindgen": {"abi/gen"},
}


def table():
    """folder -> (layer, the last column's text)"""
    rows = {}
    with open(os.path.join(TOP, "docs/architecture.md"), encoding="utf-8") as f:
        for line in f:
            m = re.match(r"\|\s*(\d)\s*\|\s*`([^`]+)`\s*\|[^|]*\|\s*([^|]+?)\s*\|", line)
            if m:
                rows[m.group(2)] = (int(m.group(1)), m.group(3))
    return rows


def short(name):
    return name.removeprefix("tandem-")


def allowed(text, crates):
    """The short names that a last column permits; `crates` maps short name -> folder."""
    text = text.split(":")[0]
    names = set()
    if text.strip().startswith(("nothing", "the kernel")):
        return names
    for part in re.sub(r"\([^)]*\)", "", text).split(","):
        part = part.strip().removesuffix(" only")
        if part.startswith("all of "):
            folder = part.removeprefix("all of ") + "/"
            names |= {n for n, where in crates.items() if where.startswith(folder)}
        else:
            names.add(part)
    return names


def main():
    rows = table()
    if not rows:
        sys.exit("layers: docs/architecture.md has no table of crates")
    cargo = os.environ.get("CARGO", "cargo")
    out = subprocess.run(
        [cargo, "metadata", "--format-version", "1", "--no-deps", "--locked"],
        cwd=TOP, check=True, stdout=subprocess.PIPE,
    ).stdout
    packages = json.loads(out)["packages"]
    folder_of = {p["name"]: os.path.relpath(os.path.dirname(p["manifest_path"]), TOP) for p in packages}
    shorts = {short(n): f for n, f in folder_of.items()}
    wrong = []
    for p in packages:
        folder = folder_of[p["name"]]
        for dep in p["dependencies"]:
            if dep["kind"] == "dev":
                continue
            name = dep["name"]
            if name in OWNED and folder not in OWNED[name]:
                wrong.append(f"{folder} uses {name}, which is for {', '.join(sorted(OWNED[name]))} alone")
            if name not in folder_of or folder in FREE:
                continue
            if folder not in rows:
                wrong.append(f"{folder} is not in the table of docs/architecture.md")
                break
            layer, text = rows[folder]
            target = folder_of[name]
            if target not in rows or rows[target][0] >= layer:
                wrong.append(f"{folder} (layer {layer}) uses {target}, which is not of a smaller layer")
            elif short(name) not in allowed(text, shorts):
                wrong.append(f"{folder} uses {target}; its row names only: {text}")
    for w in wrong:
        print(f"layers: {w}")
    if wrong:
        sys.exit(1)
    print(f"{len(packages)} crates keep to their layers")


if __name__ == "__main__":
    main()
