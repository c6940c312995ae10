#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seed 004's measurement: frames of 64 bytes from an access port to a trunk, and by broadcast to both kinds.

    run.py ─┬─► guest.py, vlans.py --native    here: Tandem beside the bridge that every kernel has
            └─► lab/run --icount, the same     in the machine: beside bridge + 8021q and the bridge that filters
              └─► OUT/lisa.json, lisa.lines, lisa.svg, lisa-native.svg, and a table

  native, machine          rates, and what the switch takes of a processor for a frame
  tcp-native, tcp          four hosts, one of them at one end of all transfers
  vlans-native, vlans      4,094 VLANs on 2 and on 32 trunks; vlans-32: bridge + 8021q on 32 (only when it is named,
                           or with --full)

The quick form, which is what runs without options, takes some minutes and says how things are made; --full is the
one for figures.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time

import figures

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
PARTS = ["native", "machine", "tcp-native", "tcp", "vlans-native", "vlans", "vlans-32"]
NATIVE = "tandem,packet,plain"
MACHINE = "tandem,8021q,filtering"
NATIVE_RATES = "100000,140000,200000,400000,600000,800000,1000000,1400000"
MACHINE_RATES = "10000,20000,30000,40000,60000,80000,100000,140000"


def args():
    p = argparse.ArgumentParser(prog="lisa", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", default=os.path.join(TOP, "out/bench"), help="where the result goes")
    p.add_argument("--full", action="store_true", help="7 pairs, and a sample of 1,000,000 frames")
    p.add_argument("--pairs", type=int, help="pairs of runs (2; full: 7)")
    p.add_argument("--seconds", type=float, help="seconds at each rate (0.2; full: 0.5)")
    p.add_argument("--sample", type=int, help="frames a little below the cut point, in one pair (none; full: 1000000)")
    p.add_argument("--only", action="append", choices=PARTS, help="only this part; may be said again")
    p.add_argument("--lab", default=os.path.join(TOP, "lab/run"), help="what starts the machine")
    p.add_argument("--limit", type=int, help="seconds that one part may take (600; full: 7200)")
    p.add_argument("--from", dest="lines", help="only evaluate: the lines of an earlier run")
    o = p.parse_args()
    o.pairs = o.pairs or (7 if o.full else 2)
    o.seconds = o.seconds or (0.5 if o.full else 0.2)
    o.sample = o.sample if o.sample is not None else (1_000_000 if o.full else 0)
    o.limit = o.limit or (7200 if o.full else 600)
    o.only = o.only or [p for p in PARTS if o.full or p != "vlans-32"]
    return o


def lines_of(part, cmd, limit, log):
    """What a part says, line by line; what it does not get done in time is left out, and that is said."""
    begin, ended = time.monotonic(), False
    with subprocess.Popen(["timeout", "-k", "30", str(limit), *cmd], stdout=subprocess.PIPE, text=True) as p:
        try:
            for text in p.stdout:
                if not text.startswith("{"):
                    print(f"   {text.rstrip()}", flush=True)
                    continue
                line = json.loads(text) | {"part": part}
                log.write(json.dumps(line) + "\n")
                log.flush()
                ended |= line["step"] == "end"
                progress(line)
                yield line
        except BaseException:
            p.terminate()  # `timeout` ends what it has started, and that its machine or namespaces
            raise
    took = time.monotonic() - begin
    if p.returncode == 124:
        print(f"   {part}: ended after {limit} s, the limit; what it had by then is in the table", flush=True)
    elif p.returncode or not ended:
        print(f"   {part}: ended with {p.returncode}; what it had by then is in the table", flush=True)
    else:
        print(f"   {part}: {took:.0f} s", flush=True)


def progress(line):
    if line["step"] == "tcp":
        figures.show_transfer(line)
    elif line["step"] == "vlans":
        print(f"   {figures.TITLES[line['side']]:<24}{line['vlans']} VLANs on {line['trunks']} trunks: "
              f"{line['seconds']:.2f} s", flush=True)
    elif line["step"] == "cut":
        most = f"{line['rate'] / 1e3:.1f} kpps" if line["rate"] else "below the lowest rate"
        who = figures.TITLES[line["side"]]
        print(f"   pair {line['pair'] + 1}  {who:<24}{line['test']:<12}keeps {most}", flush=True)


def command(o, part):
    guest, vlans = os.path.join(HERE, "guest.py"), os.path.join(HERE, "vlans.py")
    here = [sys.executable]
    lab = [o.lab, "--no-driver", "--icount", "--smp", "1", "--timeout", "86400"]
    rates = [guest, "--pairs", str(o.pairs), "--seconds", str(o.seconds), "--sample", str(o.sample)]
    transfers = [guest, "--pairs", str(o.pairs), "--tcp", str(5 * o.seconds)]
    # a side may take so much of its own time, the kernel's in the machine a third of the host's
    all_vlans = [*lab, "--mem", "4096", vlans, "--limit", "600" if o.full else "30"]
    return {
        "native": [*here, *rates, "--native", "--sides", NATIVE, "--rates", NATIVE_RATES],
        "machine": [*lab, *rates, "--sides", MACHINE, "--rates", MACHINE_RATES],
        "tcp-native": [*here, *transfers, "--native", "--sides", NATIVE],
        "tcp": [*lab, *transfers, "--sides", MACHINE],
        "vlans-native": [*here, vlans, "--native", "--pairs", str(o.pairs), "tandem:2", "tandem:32"],
        "vlans": [*all_vlans, "tandem:2", "tandem:32", "filtering:2", "filtering:32", "8021q:2"],
        "vlans-32": [*all_vlans, "8021q:32"],
    }[part]


def gather(o, log):
    found = []
    for part in o.only:
        if part == "native" and (os.cpu_count() or 1) < 2:
            print("native: left out, it needs two processors")
            continue
        print(part, flush=True)
        found += lines_of(part, command(o, part), o.limit, log)
    return found


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    o = args()
    os.makedirs(o.out, exist_ok=True)
    if o.lines:
        with open(o.lines, encoding="utf-8") as f:
            found = [json.loads(line) for line in f]
    else:
        load = os.getloadavg()[0]
        if load > 0.5:
            print(f"others are at work here (a load of {load:.1f}): rates and times of `native` say little")
        with open(os.path.join(o.out, "lisa.lines"), "w", encoding="utf-8") as log:
            found = gather(o, log)
    rows = []
    for part in ("native", "machine"):
        measured = figures.Part(part, [x for x in found if x["part"] == part])
        rows += measured.rows()
        drawing = measured.chart()
        if drawing:
            path = os.path.join(o.out, "lisa.svg" if part == "machine" else f"lisa-{part}.svg")
            with open(path, "w", encoding="utf-8") as f:
                f.write(drawing)
            print(f"drawn to {path}")
    rows += [*figures.transfers(found), *figures.vlans(found)]
    path = os.path.join(o.out, "lisa.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(rows, f, indent=2)
        f.write("\n")
    figures.show(rows)
    print(f"written to {path}")
    if not rows:
        sys.exit("lisa: nothing was measured")


if __name__ == "__main__":
    main()
