#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Seed 002's table 1: routes by `ip -batch`, the policies of the resource manager beside no driver at all.

  host:  run.py ──► lab/run --icount ──► guest.py in the machine ──► one JSON line per step
           ├─► lab/run, null and asicd in turns ──► the same in the host's time: the cross-check
           └─► OUT/table1.json and a table: user latency, data outage, beside the papers' figures

Virtual time: every instruction takes 4 ns, the chip's 60 us and 35 or 350 us are arithmetic on the same clock. Each
boot measures everything once, floor first; ratios are taken within a boot. The cross-check is in the host's time,
because asicd is a process of the host: clsw_null and asicd with the same latencies, a boot each, in turns.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
POLICIES = ["lockstep", "prefetch", "credit", "predict-flat", "predict-model"]
QUERIES = [35_000, 350_000]
WRITE_NS = 60_000
# seed 002, table 1: method, query: user latency, data outage; 10,000 routes on a Spectrum SN2100
PAPER = {("lockstep", 35_000): (0.600, 1.10), ("credit", 35_000): (0.480, 0.81),
         ("lockstep", 350_000): (0.600, 3.98), ("credit", 350_000): (0.480, 0.84)}
FLAT_MAX = 49_152           # predict-flat gives routes a fixed share of the null chip, and refuses the next one
CROSS_NS = 35_000           # what `lab/run --asicd --latency` gives asicd: 60 us a write, 35 us a question
CROSS = ["lockstep", "credit"]
CROSS_LIMIT = 0.15
BATCH = 16
SLOW_WRITE_NS = 500_000


def args():
    p = argparse.ArgumentParser(prog="table1")
    p.add_argument("--out", default=os.path.join(TOP, "out/bench"), help="where the result goes")
    p.add_argument("--boots", type=int, default=3, help="boots with 10,000 routes")
    p.add_argument("--boots-50k", type=int, default=1, help="boots with 50,000 routes")
    p.add_argument("--pairs", type=int, default=7, help="pairs of boots of the cross-check against asicd")
    p.add_argument("--only-50k", help="POLICY:QUERY_NS,...: not all of them with 50,000 routes")
    p.add_argument("--lab", default=os.path.join(TOP, "lab/run"), help="what starts the machine")
    p.add_argument("--from", dest="lines", help="only evaluate: the lines of an earlier run")
    return p.parse_args()


def boot(o, steps, timeout, log):
    load = f"TABLE1_LOAD=ports=4 write_ns={WRITE_NS}"
    # the machine's clock jumps ahead while it waits for the disk: its own time-out is of no use
    return lines_of(["timeout", str(timeout), o.lab, "--backend", "null", "--no-load", "--icount", "--ports", "4",
                     "--timeout", "86400", "--mem", "1536", "--env", load,
                     os.path.join(TOP, "bench/table1/guest.py"), *steps], log)


def cross_boot(o, driver, log):
    """A boot in the host's time, one virtual CPU; the chip isn't asked, the kernel's flags are (see guest.py)."""
    chip = {"null": ["--backend", "null", "--env", f"TABLE1_LOAD=ports=4 write_ns={WRITE_NS} query_ns={CROSS_NS}"],
            "pci": ["--backend", "pci", "--asicd", "--latency"]}[driver]
    return lines_of([o.lab, *chip, "--no-load", "--smp", "1", "--ports", "4", "--timeout", "300",
                     os.path.join(TOP, "bench/table1/guest.py"), "--driver", driver, "--flags", "floor:2000",
                     "floor:10000", *(f"{policy}:10000" for policy in CROSS)], log)


def lines_of(cmd, log):
    out = []
    with subprocess.Popen(cmd, stdout=subprocess.PIPE, text=True) as p:
        for line in p.stdout:
            log.write(line)
            log.flush()
            if line.startswith("{"):
                step = json.loads(line)
                out.append(step)
                params = " ".join(f"{k}={v}" for k, v in step["params"].items())
                print(f"   {step['step']:<14}{step['count']:>6} {params:<28} user {step['user_ns'] / 1e9:.3f} s"
                      + (f"  outage {step['outage_ns'] / 1e9:.3f} s" if "outage_ns" in step else ""), flush=True)
    if p.returncode:
        sys.exit(f"table1: the machine's run ended with {p.returncode}; its lines are in {log.name}")
    return out


def steps(count, only=None):
    yield "floor:2000"          # warm-up: programs come from the disk, and the disk lives in the host's time
    yield f"floor:{count}"
    for q in QUERIES:
        for policy in POLICIES:
            if policy == "predict-flat" and count > FLAT_MAX:
                continue
            if not only or f"{policy}:{q}" in only.split(","):
                yield f"{policy}:{count}:query_ns={q}"


def beyond():
    """What the papers did not have: several writes at once; after a reset of the chip all routes are written anew."""
    for batch in (1, BATCH):
        yield f"credit:10000:query_ns=35000,write_batch={batch},replay=1"
    # what the chip's model takes of the CPU: to look at the clock costs, too, so in a step of its own
    yield "credit:10000:query_ns=35000,write_batch=1,measure=1"
    # a slow chip, behind which routes queue: the last one, and the last one with a packet waiting for it
    for packet in (0, 1):
        yield f"credit:10000:measure=0,write_ns={SLOW_WRITE_NS},packet={packet}"


def key(step):
    p = step["params"]
    extra = f"packet{p['packet']}" if "packet" in p else ""
    extra = next((k + p[k] for k in ("replay", "measure") if p.get(k, "0") != "0"), extra)
    return step["step"], step["count"], int(p.get("query_ns", 0)), int(p.get("write_batch", 1)), extra


def gather(boots):
    """By step: figures of all boots; the floor of the same boot beside each."""
    found = {}
    for lines in boots:
        floor = {s["count"]: s["user_ns"] for s in lines if s["step"] == "floor"}
        for s in lines:
            if s["step"] == "floor" and s["count"] == 2000:
                continue
            found.setdefault(key(s), []).append(s | {"floor_ns": floor.get(s["count"])})
    return found


def row(claim, values, unit="s", peer="", peer_value=None, ratios=None, target="", met=None):
    spread = ratios or values
    return {"claim": claim, "value": statistics.median(values), "unit": unit, "peer": peer, "peer_value": peer_value,
            "ratio": statistics.median(ratios) if ratios else None, "target": target, "met": met, "runs": len(values),
            "spread": [min(spread), max(spread)]}


def seconds(runs, what):
    return [r[what] / 1e9 for r in runs]


def evaluate(found):
    rows = []
    for count in (10_000, 50_000):
        base = found.get(("floor", count, 0, 1, ""))
        if not base:
            continue
        name = f"{count // 1000}k"
        rows.append(row(f"{name} no driver: user latency (the floor)", seconds(base, "user_ns")))
        rows[-1]["spread_percent"] = round(100 * (rows[-1]["spread"][1] / rows[-1]["spread"][0] - 1), 3)
        outage = {}
        for q in QUERIES:
            for policy in POLICIES:
                runs = found.get((policy, count, q, 1, ""))
                if not runs:
                    continue
                paper = PAPER.get((policy, q)) if count == 10_000 else None
                what = f"{name} {policy}, query {q // 1000} us"
                user, floor = seconds(runs, "user_ns"), seconds(runs, "floor_ns")
                ratios = [u / f for u, f in zip(user, floor)]
                met = statistics.median(ratios) <= 1.05 if policy == "credit" else None
                rows.append(row(f"{what}: user latency", user, "s", "no driver", statistics.median(floor), ratios,
                                "" if met is None else "<= 1.05x", met))
                rows[-1]["paper"] = paper[0] if paper else None
                measured = found.get((policy, count, q, 1, "measure1"))
                if measured:
                    model = [r["model_ns"] / 1e9 for r in measured]
                    rows.append(row(f"{what}: of that, the chip's model (a real chip works beside the CPU)", model))
                out = seconds(runs, "outage_ns")
                outage[policy, q] = out
                bound = [1.1 * max(f, count * WRITE_NS / 1e9) + WRITE_NS / 1e9 for f in floor]
                ratios = [a / b for a, b in zip(out, bound)]
                target, met = ("<= 1x", statistics.median(ratios) <= 1) if policy == "credit" else ("", None)
                rows.append(row(f"{what}: data outage", out, "s", "1.1 max(floor, writes) + 1 write",
                                statistics.median(bound), ratios, target, met))
                rows[-1]["paper"] = paper[1] if paper else None
        for q in QUERIES:
            a, b = outage.get(("lockstep", q)), outage.get(("credit", q))
            if not (a and b):
                continue
            ratios = [x / y for x, y in zip(a, b)]
            target, met = (">= 4x", statistics.median(ratios) >= 4) if q == 350_000 else ("", None)
            rows.append(row(f"{name} query {q // 1000} us: lockstep's outage beside credit's", a, "s", "credit",
                            statistics.median(b), ratios, target, met))
            if count == 10_000:
                pa, pb = PAPER["lockstep", q][1], PAPER["credit", q][1]
                rows[-1]["paper"] = round(pa / pb, 2)
    one = found.get(("credit", 10_000, 35_000, 1, "replay1"))
    many = found.get(("credit", 10_000, 35_000, BATCH, "replay1"))
    if one and many:
        a, b = seconds(many, "replay_ns"), seconds(one, "replay_ns")
        rows.append(row(f"10k routes back after a reset of the chip, {BATCH} writes at once", a, "s", "one at a time",
                        statistics.median(b), [x / y for x, y in zip(a, b)]))
    waits = found.get(("credit", 10_000, 0, 1, "packet0"))
    hurried = found.get(("credit", 10_000, 0, 1, "packet1"))
    if waits and hurried:
        a, b = seconds(hurried, "last_after_ns"), seconds(waits, "last_after_ns")
        rows.append(row(f"10k routes, write {SLOW_WRITE_NS // 1000} us: the last one, with a packet waiting for it, "
                        "after ip has ended", a, "s", "no packet", statistics.median(b), [x / y for x, y in zip(a, b)]))
    return rows


def evaluate_cross(pairs):
    """Rows of the cross-check: what clsw_null takes beside what asicd takes, per pair."""
    rows = []
    for policy in CROSS if pairs else []:
        for what, name in (("user_ns", "user latency"), ("outage_ns", "until all are shown as in hardware")):
            null, asicd = ([next(s[what] / 1e9 for s in lines if s["step"] == policy) for lines in side]
                           for side in zip(*pairs))
            ratios = [a / b for a, b in zip(null, asicd)]
            rows.append(row(f"cross-check, host's time: 10k {policy}, query {CROSS_NS // 1000} us: {name}, clsw_null",
                            null, "s", "asicd", statistics.median(asicd), ratios, f"within {CROSS_LIMIT:.0%}",
                            abs(statistics.median(ratios) - 1) <= CROSS_LIMIT))
    return rows


def show(rows):
    head = ["claim", "value", "unit", "paper", "peer", "peer's", "ratio", "target", "met", "runs", "spread"]
    table = [head]
    for r in rows:
        table.append([r["claim"], f"{r['value']:.3f}", r["unit"], "" if r.get("paper") is None else f"{r['paper']:.2f}",
                      r["peer"], "" if r["peer_value"] is None else f"{r['peer_value']:.3f}",
                      "" if r["ratio"] is None else f"{r['ratio']:.3f}", r["target"],
                      "" if r["met"] is None else "yes" if r["met"] else "NO", str(r["runs"]),
                      f"{r['spread'][0]:.3f}..{r['spread'][1]:.3f}"])
    widths = [max(len(line[i]) for line in table) for i in range(len(head))]
    for line in table:
        print("  ".join(f"{c:<{w}}" for c, w in zip(line, widths)).rstrip())


def main():
    o = args()
    os.makedirs(o.out, exist_ok=True)
    raw = os.path.join(o.out, "table1.lines")
    boots, cross = [], []
    if o.lines:
        with open(o.lines, encoding="utf-8") as f:
            for line in f:
                if line.startswith("#"):
                    where = cross if line.startswith("# cross") else boots
                    where.append([])
                elif line.startswith("{"):
                    where[-1].append(json.loads(line))
    else:
        with open(raw, "w", encoding="utf-8") as log:
            for i in range(o.boots):
                print(f"boot {i + 1} of {o.boots}, 10,000 routes", flush=True)
                log.write("# 10k\n")
                boots.append(boot(o, [*steps(10_000), *beyond()], 1500, log))
            for i in range(o.boots_50k):
                print(f"boot {i + 1} of {o.boots_50k}, 50,000 routes", flush=True)
                log.write("# 50k\n")
                boots.append(boot(o, list(steps(50_000, o.only_50k)), 3000, log))
            for i in range(o.pairs):
                for driver in ("null", "pci"):
                    print(f"cross-check, pair {i + 1} of {o.pairs}: {driver}", flush=True)
                    log.write(f"# cross {driver}\n")
                    cross.append(cross_boot(o, driver, log))
    rows = evaluate(gather(boots)) + evaluate_cross(list(zip(cross[::2], cross[1::2])))
    path = os.path.join(o.out, "table1.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(rows, f, indent=2)
        f.write("\n")
    show(rows)
    print(f"written to {path}")


main()
