# SPDX-License-Identifier: Apache-2.0
"""From lines of guest.py and vlans.py to rows of a report, and to curves."""

import statistics

from chart import Panel, draw

TITLES = {"tandem": "Tandem, AF_XDP", "packet": "Tandem, AF_PACKET", "plain": "bridge without VLANs",
          "8021q": "bridge + 8021q", "filtering": "VLAN-filtering bridge"}
# seed 004 against which: (test, peer): the least ratio of rates
TARGETS = {("unicast", "8021q"): 1.3, ("broadcast", "8021q"): 2.0, ("broadcast", "filtering"): 1.0}
TESTS = {"unicast": "unicast, access to trunk", "broadcast": "broadcast, access to access and trunk"}
SEED = 140.0  # thousand packets a second


def row(claim, values, unit, peer="", theirs=(), target=None):
    """`target`: (text, what says whether the median, or the ratio if there is a peer, meets it)."""
    ratios = [a / b for a, b in zip(values, theirs) if b]
    spread = ratios or values
    judged = statistics.median(spread) if spread else None
    return {"claim": claim, "value": statistics.median(values), "unit": unit, "peer": peer,
            "peer_value": statistics.median(theirs) if theirs else None,
            "ratio": statistics.median(ratios) if ratios else None, "target": target[0] if target else "",
            "met": bool(target[1](judged)) if target and judged is not None else None, "runs": len(values),
            "spread": [min(spread), max(spread)]}


def least(ratio):
    return f">= {ratio:g}x", lambda r: r >= ratio


def output(point):
    """Thousand packets a second at the sink that got the fewest."""
    return min(point["got"]) / max(point["seconds"], point["sent"] / point["rate"]) / 1e3


class Part:
    """Lines of one run of guest.py."""

    def __init__(self, name, lines):
        self.name, self.lines = name, lines
        self.points = [x for x in lines if x["step"] == "point"]
        self.generator = sorted((x["sent"], x["busy"]) for x in lines if x["step"] == "generator")
        self.rates = sorted({x["rate"] for x in self.points if x["grid"]})

    def alone(self, frames):
        """Seconds that the generator, and what starts it, takes for so many frames: between two that were measured."""
        known = self.generator
        if not known:
            return 0.0
        if len(known) == 1:
            return known[0][1] * frames / known[0][0]
        pairs = list(zip(known, known[1:]))
        (a, b), (c, d) = next((p for p in pairs if frames <= p[1][0]), pairs[-1])
        return b + (frames - a) * (d - b) / max(c - a, 1)

    def sides(self):
        return list(dict.fromkeys(x["side"] for x in self.points))

    def runs(self, side, test, rate=None):
        """Points of a side by pair."""
        found = {}
        for x in self.points:
            if (x["side"], x["test"]) == (side, test) and rate in (None, x["rate"]):
                found.setdefault(x["pair"], []).append(x)
        return found

    def cuts(self, side, test):
        return {x["pair"]: x["rate"] / 1e3 for x in self.lines
                if x["step"] == "cut" and (x["side"], x["test"]) == (side, test) and x["rate"]}

    def highest(self, side, test):
        return {pair: max(map(output, points)) for pair, points in self.runs(side, test).items()}

    def each(self, side, test):
        """Microseconds of processor time of the switch for a frame that came in, by pair: at the highest rate that all
        sides kept, without the generator; natively at the highest one, of frames that came out at all sinks."""
        found = {}
        if self.name == "native":
            for pair, points in self.runs(side, test).items():
                last = max(points, key=lambda x: x["rate"])
                found[pair] = last["used"] * 1e6 / max(min(last["got"]), 1)
            return found
        kept = [min(c.values(), default=0) for s in self.sides() if (c := self.cuts(s, test)) is not None]
        rates = [r for r in self.rates if kept and r / 1e3 <= min(kept)]
        for pair, points in (self.runs(side, test, rates[-1]) if rates else {}).items():
            x = points[0]
            found[pair] = (x["busy"] - self.alone(x["sent"])) * 1e6 / x["sent"]
        return found

    def beside(self, what, unit, values, test, targets):
        ours = values("tandem", test)
        for side in self.sides():
            theirs = values(side, test)
            both = sorted(ours.keys() & theirs.keys())
            if side == "tandem" or not both:
                continue
            ratio = TARGETS.get((test, side)) if targets else None
            yield row(f"{self.name}, {TESTS[test]}: {what}", [ours[p] for p in both], unit, TITLES[side],
                      [theirs[p] for p in both], least(ratio) if ratio else None)

    def rows(self):
        for test in TESTS:
            if self.name == "native":
                yield from self.beside("highest output", "kpps", self.highest, test, False)
            else:
                yield from self.beside("cut point", "kpps", self.cuts, test, True)
                yield from self.beside("highest output", "kpps", self.highest, test, False)
            yield from self.beside("processor time of the switch per frame", "us", self.each, test, False)
        for x in self.lines:
            if x["step"] == "sample":
                yield row(f"{self.name}, {TESTS[x['test']]}: lost of {x['sent']} frames at {x['rate'] / 1e3:.1f} kpps, "
                          f"{TITLES[x['side']]}", [x["sent"] - min(x["got"])], "frames")

    def chart(self):
        if not self.rates:
            return None
        right = max(SEED, self.rates[-1] / 1e3)
        panels = []
        for test in TESTS:
            rates, busy = [], []
            for side in self.sides():
                runs = [(rate, [p for ps in self.runs(side, test, rate).values() for p in ps]) for rate in self.rates]
                runs = [(rate, ps) for rate, ps in runs if ps]
                for curves, value in ((rates, output), (busy, self.share)):
                    points = [(rate / 1e3, statistics.median(map(value, ps))) for rate, ps in runs]
                    curves.append((TITLES[side], points, False))
            if self.generator:
                alone = [x for x in self.lines if x["step"] == "generator"]
                busy.append(("the generator alone", [(x["rate"] / 1e3, self.share(x)) for x in alone], True))
            if not any(points for _, points, _ in rates):
                continue
            most = max(y for _, points, _ in rates for _, y in points)
            top = next(t for t in (50, 100, 150, 200, 300, 500, 1000, 2000, 5000, 10**9) if t >= most)
            panels.append(Panel(f"{TESTS[test]}: output, thousand a second", top, rates, "", SEED, SEED))
            panels.append(Panel(f"{TESTS[test]}: processor in use", 100, busy, " %", SEED))
        where = {"machine": "one processor in virtual time, generator and sinks included",
                 "native": "the switch on a processor of its own"}[self.name]
        return draw(f"64-byte frames, {where}", panels, right)

    def share(self, x):
        """Per cent of the processor: in the machine all that is not idle, natively what the switch's threads take."""
        span = max(x["seconds"], x["sent"] / x["rate"])
        if self.name == "native":
            return min(100 * x["used"] / span, 100)
        begun = self.alone(0)  # what a process's start takes, and its end
        return max(min(100 * (x["busy"] - max(begun, 0)) / span, 100), 0)


def show_transfer(line):
    """Seed 004's table, a line of it for each host."""
    way = "bidirectional" if line["both"] else "unidirectional"
    hosts = enumerate(zip(line["into"], line["out"]), 1)
    print(f"   pair {line['pair'] + 1}  {TITLES[line['side']]}, {way}: "
          + "; ".join(f"host {n} in {i:.0f} out {o:.0f} Mb/s" for n, (i, o) in hosts), flush=True)


def transfers(lines):
    """What all hosts received, together."""
    for part, both in [(p, b) for p in ("tcp-native", "tcp") for b in (False, True)]:
        found = {}
        for x in lines:
            if x["part"] == part and x["step"] == "tcp" and x["both"] == both:
                found.setdefault(x["side"], {})[x["pair"]] = sum(x["into"])
        ours = found.pop("tandem", {})
        where = "native" if part == "tcp-native" else "machine"
        for side, theirs in found.items():
            pairs = sorted(ours.keys() & theirs.keys())
            if pairs:
                yield row(f"{where}, TCP, four hosts, {'both ways' if both else 'host 1 sends'}: all that was received",
                          [ours[p] for p in pairs], "Mb/s", TITLES[side], [theirs[p] for p in pairs])


def most(value):
    return f"< {value:g}", lambda v: v < value


def vlans(lines):
    """Time and memory of all VLANs; what a side had when it was stopped, if it was."""
    found = {}
    for x in lines:
        if x["step"] == "vlans" or x["step"] == "progress":
            where = "native" if x["part"] == "vlans-native" else "machine"
            key = where, x["trunks"], x["side"]
            if x["step"] == "vlans":
                found.setdefault(key, []).append(x)
            elif key not in found or found[key][0]["step"] == "progress":
                found[key] = [x | {"stopped": "time"}]
    for (where, trunks, side), runs in found.items():
        name = f"{where}, {{}} VLANs on {trunks} trunks"
        done = min(x["vlans"] for x in runs)
        stopped = next((f", stopped there for want of {x['stopped']}" for x in runs if x.get("stopped")), "")
        who = "Tandem" if side == "tandem" else TITLES[side]
        what = f"{name.format(format(done, ','))}, {who}{stopped}"
        judged = where == "native" and trunks == 32
        yield row(f"{what}: time", [x["seconds"] for x in runs], "s", target=most(2) if judged else None)
        if side == "tandem":
            grown = [(x["asicd_kb"] + x["swcfgd_kb"]) / 1e3 for x in runs]
            yield row(f"{what}: more memory of both daemons", grown, "MB", target=most(60) if judged else None)
        if where == "machine":
            yield row(f"{what}: less memory available", [x["system_kb"] / 1e3 for x in runs], "MB")
    for trunks in (2, 32):
        ours = found.get(("machine", trunks, "tandem"))
        for side in ("8021q", "filtering"):
            theirs = found.get(("machine", trunks, side))
            if ours and theirs and not theirs[0].get("stopped"):
                yield row(f"machine, 4,094 VLANs on {trunks} trunks: time", [ours[0]["seconds"]], "s", TITLES[side],
                          [theirs[0]["seconds"]])


def show(rows):
    def cell(v):
        return "" if v is None else f"{v:.0f}" if abs(v) >= 1000 else f"{v:.1f}" if abs(v) >= 10 else f"{v:.2f}"

    head = ["claim", "value", "unit", "peer", "peer's", "ratio", "target", "met", "runs", "spread"]
    table = [head] + [
        [r["claim"], cell(r["value"]), r["unit"], r["peer"], cell(r["peer_value"]),
         "" if r["ratio"] is None else f"{r['ratio']:.2f}", r["target"],
         "" if r["met"] is None else "yes" if r["met"] else "NO", str(r["runs"]),
         f"{cell(r['spread'][0])}..{cell(r['spread'][1])}"] for r in rows]
    widths = [max(len(line[i]) for line in table) for i in range(len(head))]
    for line in table:
        print("  ".join(f"{c:<{w}}" for c, w in zip(line, widths)).rstrip())
